//! Compares a version with the previous one: warnings for operators, and serials that the journal
//! must not contain.

use super::VersionError;
use super::settings::ZoneSettings;
use super::state::StateDirectory;
use crate::Published;
use nonesuch_dnssec::inspect::alias_keys;
use nonesuch_dnssec::transition::{
    DataSigners, KeyState, SignedVersion, TransitionFault, denial_kind, transition,
};
use nonesuch_proto::{Name, Rtype, serial};
use nonesuch_zone::{ChangeSet, Contents, Image, load_regular};
use std::io;
use std::path::Path;

/// Summary of the last published version.
#[derive(Clone, Debug)]
pub(super) struct VersionSummary {
    serial: u32,
    is_signed: bool,
    keys: KeyState,
    image: Image,
    /// RDATA of the DNSKEY records of the keys that sign online; empty if no key signs online.
    online_signers: Vec<Vec<u8>>,
}

impl VersionSummary {
    /// Summarizes a served version.
    pub(super) fn of(published: &Published) -> Self {
        let mut summary = Self::of_image(published.image(), published.online_keys().is_some());
        if let Some(keys) = published.online_keys() {
            let [for_keys, for_data] = keys.signing_dnskeys();
            if summary.keys.signing.is_empty() {
                summary.keys.signing = for_keys;
            }
            summary.online_signers = for_data;
        }
        summary
    }

    /// Summarizes a stored version. If the zone is signed online (`is_signed_online`), its image
    /// contains no denial chain, possibly no signatures, and no information about which keys sign.
    /// Therefore each key that may sign data counts as a signing key.
    pub(super) fn of_image(image: &Image, is_signed_online: bool) -> Self {
        let mut keys = key_state(image);
        let online_signers = if is_signed_online { keys.data_keys() } else { Vec::new() };
        keys.denial = keys.denial.filter(|_| !is_signed_online);
        let (serial, is_signed) = (image.serial(), is_signed_online || image.is_signed());
        Self { serial, is_signed, keys, image: image.clone(), online_signers }
    }

    /// Returns the version for the comparison of key states.
    fn version(&self) -> SignedVersion<'_> {
        let data = DataSigners::Image { image: &self.image, online: &self.online_signers };
        SignedVersion { keys: &self.keys, data }
    }

    /// Returns the faults of a transition from this version to `after` at `now`. If the signatures
    /// of the key set have expired, no validator has this version, and there are no faults.
    fn transition(&self, after: &Self, now: u32) -> Vec<TransitionFault> {
        let is_compared = self.is_signed && after.is_signed && !self.keys.is_expired(now);
        if !is_compared || self.keys.dnskeys.is_empty() || after.keys.dnskeys.is_empty() {
            return Vec::new();
        }
        transition(self.version(), after.version(), Some(now))
    }
}

/// Returns the state of the keys in an image.
fn key_state(image: &Image) -> KeyState {
    let apex = image.find_exact(image.apex());
    let records = apex.and_then(|apex| apex.template(Rtype::DNSKEY)).map(|keys| keys.expand());
    let records = records.unwrap_or_default();
    let of = |rtype| records.iter().filter(move |record| record.rtype == rtype).map(|record| &record.rdata);
    let has_nsec = apex.is_some_and(|apex| apex.nsec().is_some());
    let denial = denial_kind(has_nsec, image.nsec3_parameters().is_some(), image.nsec5_key().is_some());
    let signatures = of(Rtype::RRSIG).map(Vec::as_slice);
    KeyState::of_records(image.serial(), of(Rtype::DNSKEY).cloned().collect(), signatures, denial)
}

/// Returns warnings about the version `published` compared with the previous one at `now`.
///
/// # Errors
/// Returns an error if validators with the previous version would regard it as bogus, and the
/// settings reject such a version.
pub(super) fn compare_versions(
    before: Option<&VersionSummary>,
    published: &Published,
    serial_change: SerialChange,
    settings: &ZoneSettings,
    now: u32,
) -> Result<Vec<String>, VersionError> {
    let after = VersionSummary::of(published);
    let faults = before.map(|before| before.transition(&after, now)).unwrap_or_default();
    if !faults.is_empty() && settings.rejects_unsafe_transitions() {
        return Err(VersionError::UnsafeTransition(faults));
    }
    let mut warnings = warnings(before, &after, serial_change);
    warnings.extend(faults.iter().map(|fault| format!("unsafe transition: {fault}")));
    Ok(warnings)
}

/// The change of serial and records from the previous version (RFC 1982).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum SerialChange {
    /// No previous version is known.
    NoPrevious,
    /// The serial is greater than the previous one.
    Increased { from: u32 },
    /// Serial and records are the same.
    Unchanged,
    /// The serial is the same, but the records differ.
    Reused { serial: u32 },
    /// The serial is not greater than the previous one.
    Decreased { from: u32 },
}

impl SerialChange {
    /// Compares the serials and records of two versions.
    pub(super) fn of(before: Option<&Contents>, contents: &Contents) -> Self {
        let serials = before.and_then(Contents::soa).zip(contents.soa());
        match before.zip(serials.map(|(old, new)| (old.serial, new.serial))) {
            None => Self::NoPrevious,
            Some((_, (from, to))) if serial::is_before(from, to) => Self::Increased { from },
            Some((before, (from, to))) if from == to => {
                let is_same = ChangeSet::between(before, contents, |_| true).is_empty();
                if is_same { Self::Unchanged } else { Self::Reused { serial: from } }
            }
            Some((_, (from, _))) => Self::Decreased { from },
        }
    }

    /// Compares the images of both versions, for zones whose records are not in memory. Otherwise
    /// like [`SerialChange::of`].
    fn of_images(before: &VersionSummary, after: &VersionSummary) -> Self {
        let (from, to) = (before.serial, after.serial);
        if from != to {
            return if serial::is_before(from, to) {
                Self::Increased { from }
            } else {
                Self::Decreased { from }
            };
        }
        // If a zone is signed online, its keys can change without a change of its records.
        let has_changed =
            before.keys.dnskeys == after.keys.dnskeys && !before.image.has_same_octets(&after.image);
        if has_changed { Self::Reused { serial: from } } else { Self::Unchanged }
    }

    /// Returns the warning about `serial`, the serial of the later version.
    pub(super) fn warning(self, serial: u32) -> Option<String> {
        match self {
            Self::Reused { serial } => Some(format!(
                "serial {serial} is unchanged, but records differ: secondaries will not transfer this version; increase the serial"
            )),
            Self::Decreased { from } => Some(format!(
                "serial {serial} is not higher than the previous serial {from}: secondaries will not transfer this version; increase the serial"
            )),
            Self::NoPrevious | Self::Increased { .. } | Self::Unchanged => None,
        }
    }

    /// Returns the serial for which secondaries may have different records from now on.
    const fn ambiguous_serial(self) -> Option<u32> {
        match self {
            Self::Reused { serial } | Self::Decreased { from: serial } => Some(serial),
            Self::NoPrevious | Self::Increased { .. } | Self::Unchanged => None,
        }
    }
}

/// Returns the warning about the serial of `contents`, a version of the zone `apex`, compared with
/// the version in the state directory `dir`. Returns `None` if no version is stored, if it cannot
/// be read, or if the serial increases.
#[must_use]
pub fn serial_warning(dir: &Path, apex: &Name, contents: &Contents) -> Option<String> {
    let stored = load_regular(&StateDirectory::version_path(dir, apex), Some(apex)).ok()?.contents;
    SerialChange::of(Some(&stored), contents).warning(contents.soa()?.serial)
}

/// Returns warnings about a version that replaces another one.
fn warnings(
    before: Option<&VersionSummary>,
    after: &VersionSummary,
    serial_change: SerialChange,
) -> Vec<String> {
    let mut warnings = Vec::new();
    let serial_change = match before {
        Some(before) if serial_change == SerialChange::NoPrevious => SerialChange::of_images(before, after),
        _ => serial_change,
    };
    warnings.extend(serial_change.warning(after.serial));
    if before.is_some_and(|before| before.is_signed) && !after.is_signed {
        warnings.push(
            "the previous version was signed, and this version is not: if the parent zone has DS records for the zone, validating \
             resolvers treat this version as bogus; sign it (dnssec = \"required\" rejects such versions)"
                .to_owned(),
        );
    }
    warnings
}

/// Returns warnings about keys with alias algorithm numbers in a zone without NSEC5.
pub(super) fn alias_warnings(published: &Published) -> Vec<String> {
    let image = published.image();
    if image.nsec5_key().is_some() {
        return Vec::new();
    }
    let keys = image.apex_rdatas(Rtype::DNSKEY);
    let warnings = alias_keys(keys.iter().map(Vec::as_slice)).into_iter().map(|key| {
        format!(
            "key {} ({}) has an algorithm number for zones with NSEC5, and this zone has no NSEC5: resolvers without NSEC5 treat the zone as insecure",
            key.tag, key.algorithm
        )
    });
    warnings.collect()
}

/// Records a serial that was published with different records. Returns whether there was one. The
/// journal must not contain changes from such a serial: a secondary may have other records with
/// that serial, and would keep them permanently.
///
/// # Errors
/// Returns an error if writing fails.
pub(super) fn note_reused(
    state: &StateDirectory,
    apex: &Name,
    serial_change: SerialChange,
) -> io::Result<bool> {
    let Some(serial) = serial_change.ambiguous_serial() else { return Ok(false) };
    state.update_durably(apex, |stored| {
        let known = stored.reused_serial.filter(|known| serial::is_before(serial, *known));
        stored.reused_serial = Some(known.unwrap_or(serial));
    })?;
    Ok(true)
}

/// Returns whether changes from this serial may be sent to secondaries.
pub(super) fn is_unambiguous(state: &StateDirectory, apex: &Name, from: u32) -> bool {
    state.read_state(apex).reused_serial.is_none_or(|known| serial::is_before(known, from))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_zone::read;
    use std::path::Path;

    fn contents(serial: u32, rest: &str) -> Contents {
        let text = format!("$ORIGIN example.\n@ 60 SOA . . {serial} 1 1 1 1\n@ 60 NS ns.other.\n{rest}");
        read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents
    }

    #[test]
    fn versions_are_compared_by_serial_and_records() {
        let old = contents(7, "");
        for (new, expected) in [
            (contents(8, ""), SerialChange::Increased { from: 7 }),
            (contents(7, ""), SerialChange::Unchanged),
            (contents(7, "a 60 A 192.0.2.1\n"), SerialChange::Reused { serial: 7 }),
            (contents(6, ""), SerialChange::Decreased { from: 7 }),
            (contents(7u32.wrapping_add(1 << 31), ""), SerialChange::Decreased { from: 7 }),
        ] {
            assert_eq!(SerialChange::of(Some(&old), &new), expected);
        }
        assert_eq!(SerialChange::of(None, &old), SerialChange::NoPrevious);
    }

    #[test]
    fn the_highest_reused_serial_is_remembered() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(dir.path()).unwrap();
        let apex: Name = "example.".parse().unwrap();
        assert!(is_unambiguous(&state, &apex, 4));
        assert!(!note_reused(&state, &apex, SerialChange::Increased { from: 4 }).unwrap());
        assert!(note_reused(&state, &apex, SerialChange::Decreased { from: 9 }).unwrap());
        assert!(note_reused(&state, &apex, SerialChange::Reused { serial: 4 }).unwrap());
        for (from, expected) in [(3, false), (4, false), (9, false), (10, true)] {
            assert_eq!(is_unambiguous(&state, &apex, from), expected, "{from}");
        }
    }

    fn summary_of(contents: &Contents, is_signed: bool) -> VersionSummary {
        VersionSummary { is_signed, ..VersionSummary::of_image(&Image::compile(contents).unwrap(), false) }
    }

    #[test]
    fn a_zone_that_becomes_unsigned_causes_a_warning() {
        let of = |is_signed| summary_of(&contents(7, ""), is_signed);
        let (unsigned, one) = (of(false), of(true));
        for (before, after, expected) in [
            (&one, &unsigned, true),
            (&one, &one, false),
            (&unsigned, &one, false),
            (&unsigned, &unsigned, false),
        ] {
            let found = warnings(Some(before), after, SerialChange::Unchanged);
            assert_eq!(found.len(), usize::from(expected), "{found:?}");
            // The setting that rejects such versions.
            assert!(found.iter().all(|warning| warning.contains("dnssec = \"required\"")), "{found:?}");
        }
        assert!(warnings(None, &unsigned, SerialChange::NoPrevious).is_empty());
    }

    #[test]
    fn a_serial_that_does_not_increase_causes_a_warning() {
        let one = summary_of(&contents(7, ""), false);
        let reused = SerialChange::Reused { serial: 7 };
        let found = warnings(None, &one, reused);
        assert_eq!(found[0], reused.warning(7).unwrap());
        assert!(found[0].starts_with("serial 7 "), "{found:?}");
        let decreased = SerialChange::Decreased { from: 9 };
        let found = warnings(None, &one, decreased);
        assert_eq!(found[0], decreased.warning(7).unwrap());
        assert!(found[0].starts_with("serial 7 ") && found[0].contains(" serial 9:"), "{found:?}");
        // Without the records of the previous version, the images are compared.
        for (serial, rest, expected) in [
            (7, "", None),
            (7, "a 60 A 192.0.2.1\n", reused.warning(7)),
            (8, "a 60 A 192.0.2.1\n", None),
            (6, "", SerialChange::Decreased { from: 7 }.warning(6)),
        ] {
            let found =
                warnings(Some(&one), &summary_of(&contents(serial, rest), false), SerialChange::NoPrevious);
            assert_eq!(found, Vec::from_iter(expected), "{serial} {rest}");
        }
    }
}
