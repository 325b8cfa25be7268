//! What a version is beside the one whose place it takes: what people are to know of that, and what the journal is to forget.

use super::Refused;
use super::settings::ZoneSettings;
use super::state::{REUSED, StateFolder};
use crate::Published;
use nonesuch_dnssec::facts::{alias_keys, is_signed};
use nonesuch_dnssec::online::OnlineKeys;
use nonesuch_dnssec::transition::{DataSigners, KeyState, TransitionFault, denial_kind, transition};
use nonesuch_proto::{Name, Rtype, serial};
use nonesuch_zone::{ChangeSet, Contents, Image};
use std::io::{self, Write as _};

/// The first line of the file that keeps up to which serial versions were published twice.
const HEAD: &str = "nonesuch reused 1";

/// What is known of the version that was published last.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Seen {
    serial: u32,
    is_signed: bool,
    keys: KeyState,
}

impl Seen {
    /// Of a version that is served.
    pub(super) fn of(published: &Published) -> Self {
        let image = published.image();
        let is_signed = published.is_online() || image.is_signed();
        let mut keys = key_state(image);
        if let Some(online) = published.online_keys() {
            // The image shows no denial chain, and perhaps no signature.
            keys.denial = None;
            if keys.signing.is_empty() {
                [keys.signing, _] = online.signing_dnskeys();
            }
        }
        Self { serial: image.serial(), is_signed, keys }
    }

    /// Of a version that is kept: the image of a zone that is signed when asked has keys, and no denials.
    pub(super) fn of_image(image: &Image) -> Self {
        let keys = key_state(image);
        Self { serial: image.serial(), is_signed: image.is_signed() || !keys.dnskeys.is_empty(), keys }
    }

    /// Forgets keys that no validator holds any longer.
    pub(super) fn at(mut self, now: u32) -> Self {
        if self.keys.is_expired(now) {
            self.keys.dnskeys.clear();
        }
        self
    }

    /// Lists the faults of the step from this version to `after`, the state of `published`. Calls `load` for its records where
    /// `contents` is `None`.
    fn transition(
        &self,
        (after, published): (&Self, &Published),
        contents: Option<&Contents>,
        load: impl FnOnce() -> Option<Contents>,
    ) -> Vec<TransitionFault> {
        if !(self.is_signed && after.is_signed)
            || self.keys.dnskeys.is_empty()
            || after.keys.dnskeys.is_empty()
        {
            return Vec::new();
        }
        let (before, next) = (&self.keys, &after.keys);
        let by_keys = |keys: &[Vec<u8>]| {
            let apex = published.image().apex().to_name();
            transition(before, next, DataSigners::Keys { apex: &apex, keys })
        };
        // Each signature is by a key that the previous version has.
        if next.dnskeys.iter().all(|key| before.dnskeys.contains(key)) {
            return by_keys(&[]);
        }
        if let Some([_, data]) = published.online_keys().map(OnlineKeys::signing_dnskeys)
            && !contents.is_some_and(is_signed)
        {
            return by_keys(&data);
        }
        let loaded = if contents.is_none() { load() } else { None };
        match contents.or(loaded.as_ref()) {
            Some(contents) => transition(before, next, DataSigners::Zone(contents)),
            None => by_keys(&[]),
        }
    }
}

fn key_state(image: &Image) -> KeyState {
    let apex = image.find_exact(image.apex());
    let records = apex.and_then(|apex| apex.template(Rtype::DNSKEY)).map(|keys| keys.expand());
    let records = records.unwrap_or_default();
    let of = |rtype| records.iter().filter(move |record| record.1 == rtype).map(|record| &record.3);
    let has_nsec = apex.is_some_and(|apex| apex.nsec().is_some());
    let denial = denial_kind(has_nsec, image.nsec3_parameters().is_some(), image.nsec5_key().is_some());
    let signatures = of(Rtype::RRSIG).map(Vec::as_slice);
    KeyState::of_records(image.serial(), of(Rtype::DNSKEY).cloned().collect(), signatures, denial)
}

/// Lists warnings about the version `published` compared with the previous one. Calls `load` for its records where `contents` is
/// `None`.
///
/// # Errors
/// Where it breaks validators that hold the previous version, and the settings reject such a version.
pub(super) fn compared(
    before: Option<&Seen>,
    (published, contents): (&Published, Option<&Contents>),
    relation: Relation,
    settings: &ZoneSettings,
    load: impl FnOnce() -> Option<Contents>,
) -> Result<Vec<String>, Refused> {
    let after = Seen::of(published);
    let faults = before.map(|before| before.transition((&after, published), contents, load));
    let faults = faults.unwrap_or_default();
    if !faults.is_empty() && settings.rejects_unsafe_transitions() {
        return Err(Refused::UnsafeTransition(faults));
    }
    let mut warnings = warnings(before, &after, relation, settings);
    warnings.extend(faults.iter().map(|fault| format!("unsafe transition: {fault}")));
    Ok(warnings)
}

/// How the records of a version stand to those of the one before (RFC 1982).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Relation {
    /// There is none before, as far as is known.
    First,
    /// Its serial is after that of the one before.
    Follows { from: u32 },
    /// It is the one before.
    Same,
    /// Other records with the same serial.
    Reused { serial: u32 },
    /// Its serial is not after that of the one before.
    Back { from: u32 },
}

impl Relation {
    pub(super) fn of(before: Option<&Contents>, contents: &Contents) -> Self {
        let serials = before.and_then(Contents::soa).zip(contents.soa());
        match before.zip(serials.map(|(old, new)| (old.serial, new.serial))) {
            None => Self::First,
            Some((_, (from, to))) if serial::is_before(from, to) => Self::Follows { from },
            Some((before, (from, to))) if from == to => {
                let is_same = ChangeSet::between(before, contents, |_| true).is_empty();
                if is_same { Self::Same } else { Self::Reused { serial: from } }
            }
            Some((_, (from, _))) => Self::Back { from },
        }
    }

    /// The serial under which other records may be at secondaries from now on.
    const fn reused(self) -> Option<u32> {
        match self {
            Self::Reused { serial } | Self::Back { from: serial } => Some(serial),
            Self::First | Self::Follows { .. } | Self::Same => None,
        }
    }
}

/// What people are to know of a version that takes the place of another.
fn warnings(before: Option<&Seen>, after: &Seen, relation: Relation, settings: &ZoneSettings) -> Vec<String> {
    let mut warnings = Vec::new();
    if settings.keeps_contents() {
        warnings.extend(match relation {
            Relation::Reused { serial } => Some(format!(
                "serial {serial} is as before although records differ: secondaries will not take this version; raise the serial"
            )),
            Relation::Back { from } => Some(format!(
                "serial {} is not after {from}: secondaries will not take this version; raise the serial",
                after.serial
            )),
            Relation::First | Relation::Follows { .. } | Relation::Same => None,
        });
    }
    if before.is_some_and(|before| before.is_signed) && !after.is_signed {
        warnings.push(
            "the version before was signed, and this one is not: where the parent zone has DS records of it, validating \
             resolvers take it for bogus; sign it (dnssec = \"required\" has such versions refused)"
                .to_owned(),
        );
    }
    warnings
}

/// What is to be known of keys that have a number of zones with NSEC5, in a zone that has none.
pub(super) fn alias_warnings(published: &Published) -> Vec<String> {
    let image = published.image();
    if image.nsec5_key().is_some() {
        return Vec::new();
    }
    let keys = image.apex_rdatas(Rtype::DNSKEY);
    let said = alias_keys(keys.iter().map(Vec::as_slice)).into_iter().map(|key| {
        format!(
            "key {} ({}) has a number for zones with NSEC5, and this zone has none: resolvers without NSEC5 take it for insecure",
            key.tag, key.algorithm
        )
    });
    said.collect()
}

/// Notes what `relation` says of serials that were published twice; tells whether it says any. Nothing that leads from one of
/// them may stand in a journal: a secondary may have other records under that serial, and would have them for ever.
///
/// # Errors
/// Those of writing.
pub(super) fn note_reused(state: &StateFolder, apex: &Name, relation: Relation) -> io::Result<bool> {
    let Some(serial) = relation.reused() else { return Ok(false) };
    let known = reused_until(state, apex).filter(|known| serial::is_before(serial, *known));
    let serial = known.unwrap_or(serial);
    state.write(apex, REUSED, |out| writeln!(out, "{HEAD}\nserial {serial}"))?;
    Ok(true)
}

/// Whether what leads from this serial may be given to secondaries that have it.
pub(super) fn is_unambiguous(state: &StateFolder, apex: &Name, from: u32) -> bool {
    reused_until(state, apex).is_none_or(|known| serial::is_before(known, from))
}

fn reused_until(state: &StateFolder, apex: &Name) -> Option<u32> {
    let text = std::fs::read_to_string(state.path(apex, REUSED)).ok()?;
    text.strip_prefix(HEAD)?.trim().strip_prefix("serial ")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::acl::AccessList;
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
            (contents(8, ""), Relation::Follows { from: 7 }),
            (contents(7, ""), Relation::Same),
            (contents(7, "a 60 A 192.0.2.1\n"), Relation::Reused { serial: 7 }),
            (contents(6, ""), Relation::Back { from: 7 }),
            (contents(7u32.wrapping_add(1 << 31), ""), Relation::Back { from: 7 }),
        ] {
            assert_eq!(Relation::of(Some(&old), &new), expected);
        }
        assert_eq!(Relation::of(None, &old), Relation::First);
    }

    #[test]
    fn serials_that_were_used_twice_are_remembered_up_to_the_highest() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFolder::open(dir.path()).unwrap();
        let apex: Name = "example.".parse().unwrap();
        assert!(is_unambiguous(&state, &apex, 4));
        assert!(!note_reused(&state, &apex, Relation::Follows { from: 4 }).unwrap());
        assert!(note_reused(&state, &apex, Relation::Back { from: 9 }).unwrap());
        assert!(note_reused(&state, &apex, Relation::Reused { serial: 4 }).unwrap());
        for (from, expected) in [(3, false), (4, false), (9, false), (10, true)] {
            assert_eq!(is_unambiguous(&state, &apex, from), expected, "{from}");
        }
    }

    #[test]
    fn what_would_break_a_zone_is_said() {
        let keys =
            KeyState { serial: 7, dnskeys: Vec::new(), signing: Vec::new(), denial: None, expires: None };
        let seen = |is_signed| Seen { serial: 7, is_signed, keys: keys.clone() };
        let mut settings = ZoneSettings::of_file("example.".parse().unwrap(), "zone".into());
        let (unsigned, one) = (seen(false), seen(true));
        for (before, after, expected) in [
            (&one, &unsigned, Some("was signed, and this one is not")),
            (&one, &one, None),
            (&unsigned, &one, None),
            (&unsigned, &unsigned, None),
        ] {
            let said = warnings(Some(before), after, Relation::Reused { serial: 7 }, &settings);
            assert_eq!(said.len(), usize::from(expected.is_some()), "{said:?}");
            assert!(expected.is_none_or(|words| said[0].contains(words)), "{said:?}");
        }
        assert!(warnings(None, &unsigned, Relation::First, &settings).is_empty());
        settings.transfers.transfer = AccessList::anybody();
        let said = warnings(None, &one, Relation::Reused { serial: 7 }, &settings);
        assert!(said[0].contains("serial 7 is as before although records differ"), "{said:?}");
        let said = warnings(None, &one, Relation::Back { from: 9 }, &settings);
        assert!(said[0].contains("serial 7 is not after 9"), "{said:?}");
    }
}
