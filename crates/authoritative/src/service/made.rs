//! What the image of a zone that is signed when asked was made by, kept beside it: it is mapped after a restart where that
//! is the same.
//!
//! Such an image depends on the records of the zone, which stand behind it, on the mechanism, and on the DNSKEY records of the
//! folder of keys, which are published where the zone has none. No signature of private keys is in it but those that came
//! with the zone: those keys are loaded at each start, and are no part of the digest.

use super::state::{Fingerprint, MADE, StateFolder, ZONE};
use nonesuch_crypto::tables_digest;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_proto::Name;
use nonesuch_zone::Verification;
use std::io::{self, Write as _};

/// The first line of the file.
const HEAD: &str = "nonesuch made 1";

/// What is known of an image.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Made {
    /// Of mechanism and key records ([`digest_of`]).
    pub(super) digest: String,
    /// What was verified of the zone.
    pub(super) verification: Verification,
    /// Whether the zone's DNSKEY RRset came with signatures.
    pub(super) has_signed_keys: bool,
}

/// A digest of the inputs of an image other than the zone: the mechanism, the public records of all keys in the directory, and
/// the tables of algorithms that the zone was verified with.
pub(super) fn digest_of(mechanism: Mechanism, records: &[KeyRecord]) -> String {
    let mut rdatas: Vec<&[u8]> = records.iter().map(KeyRecord::rdata).collect();
    rdatas.sort_unstable();
    rdatas.dedup();
    let mut hasher = blake3::Hasher::new();
    let tables = tables_digest();
    for part in [mechanism.to_string().as_bytes(), &tables].into_iter().chain(rdatas) {
        hasher.update(&(part.len() as u64).to_le_bytes()).update(part);
    }
    hasher.finalize().to_hex().to_string()
}

impl Made {
    /// Writes it beside the image of `apex`, which must be there: it holds for that file alone.
    pub(super) fn write(&self, state: &StateFolder, apex: &Name) -> io::Result<()> {
        let image = Fingerprint::of(&state.path(apex, ZONE))?;
        state.write(apex, MADE, |out| out.write_all(self.text(&image).as_bytes()))
    }

    /// What is known of the image of `apex`; `None` where nothing is that holds for the image that is there.
    pub(super) fn read(state: &StateFolder, apex: &Name) -> Option<Self> {
        let text = std::fs::read_to_string(state.path(apex, MADE)).ok()?;
        let image = Fingerprint::of(&state.path(apex, ZONE)).ok()?;
        let made = Self::parse(&text)?;
        (made.text(&image) == text).then_some(made)
    }

    fn text(&self, image: &Fingerprint) -> String {
        let verified = match self.verification {
            Verification::Nothing | Verification::OtherTables { .. } => "nothing".to_owned(),
            Verification::Structural { at } => format!("structural {at}"),
            Verification::Full { at } => format!("full {at}"),
        };
        let keys = if self.has_signed_keys { "signed" } else { "unsigned" };
        format!("{HEAD}\nimage {}\nby {}\nkeys {keys}\nverified {verified}\n", image.words(), self.digest)
    }

    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ').map(str::to_owned);
        let _ = (value("nonesuch made")?, value("image")?);
        let digest = value("by")?;
        let has_signed_keys = value("keys")? == "signed";
        let verified = value("verified")?;
        let verification = match verified.split_once(' ') {
            None if verified == "nothing" => Verification::Nothing,
            Some(("structural", at)) => Verification::Structural { at: at.parse().ok()? },
            Some(("full", at)) => Verification::Full { at: at.parse().ok()? },
            _ => return None,
        };
        Some(Self { digest, verification, has_signed_keys })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_noted_holds_for_one_image() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFolder::open(dir.path()).unwrap();
        let apex: Name = "example.".parse().unwrap();
        for verification in
            [Verification::Nothing, Verification::Structural { at: 7 }, Verification::Full { at: u32::MAX }]
        {
            for has_signed_keys in [false, true] {
                let made = Made { digest: "ab".into(), verification, has_signed_keys };
                state.write(&apex, ZONE, |out| out.write_all(b"\x89NSCI\r\n\x1aimage")).unwrap();
                made.write(&state, &apex).unwrap();
                assert_eq!(Made::read(&state, &apex), Some(made));
            }
        }
        state.write(&apex, ZONE, |out| out.write_all(b"\x89NSCI\r\n\x1aimage")).unwrap();
        assert_eq!(Made::read(&state, &apex), None, "another file");
    }

    #[test]
    fn a_note_that_was_altered_is_none() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFolder::open(dir.path()).unwrap();
        let apex: Name = "example.".parse().unwrap();
        let made =
            Made { digest: "ab".into(), verification: Verification::Full { at: 7 }, has_signed_keys: true };
        state.write(&apex, ZONE, |out| out.write_all(b"\x89NSCI\r\n\x1aimage")).unwrap();
        made.write(&state, &apex).unwrap();
        let path = state.path(&apex, MADE);
        let text = std::fs::read_to_string(&path).unwrap();
        for altered in
            [text.replace("made 1", "made 2"), text.replace("full 7", "full"), format!("{text}more\n")]
        {
            std::fs::write(&path, altered).unwrap();
            assert_eq!(Made::read(&state, &apex), None);
        }
    }

    /// Older notes have a digest without the tables, and so mean nothing.
    #[test]
    fn digests_depend_on_the_tables_of_algorithms() {
        let mechanism = Mechanism::Compact.to_string();
        let mut hasher = blake3::Hasher::new();
        hasher.update(&(mechanism.len() as u64).to_le_bytes()).update(mechanism.as_bytes());
        assert_ne!(digest_of(Mechanism::Compact, &[]), hasher.finalize().to_hex().to_string());
        hasher.update(&(tables_digest().len() as u64).to_le_bytes()).update(&tables_digest());
        assert_eq!(digest_of(Mechanism::Compact, &[]), hasher.finalize().to_hex().to_string());
    }

    #[test]
    fn digests_tell_mechanisms_apart() {
        assert_ne!(digest_of(Mechanism::Compact, &[]), digest_of(Mechanism::WhiteLies, &[]));
    }
}
