//! What the step from one version of a signed zone to the next breaks for validators that still hold what they have of the
//! previous version: its DNSKEY RRset, or the DS records of the keys that sign it (RFC 6781 §4.1, RFC 7583 §3).
//!
//! [`transition`] is a pure function of both versions. It does not know how long ago the previous version was published, so it
//! reports no step that only needs time, such as removing a key that signed before.

use crate::denial::Mapping;
use crate::keys::{REVOKE, SEP};
use crate::rrsig::Rrsig;
use nonesuch_crypto::{Algorithm, key_tag};
use nonesuch_proto::{Name, Rtype, serial};
use nonesuch_zone::Contents;

/// The keys of one version of a signed zone, and the kind of its denial chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeyState {
    /// Serial number.
    pub serial: u32,
    /// RDATA of the DNSKEY records.
    pub dnskeys: Vec<Vec<u8>>,
    /// RDATA of the keys that sign the DNSKEY RRset; empty where they are not known.
    pub signing: Vec<Vec<u8>>,
    /// How names are mapped to records of the denial chain; `None` where there is no chain.
    pub denial: Option<Mapping>,
    /// The latest expiration of the RRSIG records over the DNSKEY RRset, in serial arithmetic; `None` where they are not known.
    pub expires: Option<u32>,
}

impl KeyState {
    /// Reads the apex of a zone; `None` where there is no signed DNSKEY RRset.
    #[must_use]
    pub fn of(zone: &Contents) -> Option<Self> {
        let apex = zone.nodes().next()?;
        let (dnskeys, signatures) = (apex.rrset(Rtype::DNSKEY)?, apex.signatures(Rtype::DNSKEY)?);
        let serial = zone.soa()?.serial;
        let has = |rtype| apex.has(rtype);
        let denial = denial_kind(has(Rtype::NSEC), has(Rtype::NSEC3PARAM), has(Rtype::NSEC5KEY));
        let dnskeys = dnskeys.rdatas().map(<[u8]>::to_vec).collect();
        Some(Self::of_records(serial, dnskeys, signatures.rdatas(), denial))
    }

    /// The state of a version with these DNSKEY records and RRSIG records over them, as RDATA.
    #[must_use]
    pub fn of_records<'r>(
        serial: u32,
        dnskeys: Vec<Vec<u8>>,
        signatures: impl Iterator<Item = &'r [u8]>,
        denial: Option<Mapping>,
    ) -> Self {
        let signatures: Vec<Rrsig<'_>> = signatures.filter_map(Rrsig::parse).collect();
        let signers: Vec<Signer> = signatures.iter().map(Signer::of_fields).collect();
        let later = |a, b| if serial::is_before(a, b) { b } else { a };
        let expires = signatures.iter().map(|fields| fields.expiration).reduce(later);
        let signs = |rdata: &&Vec<u8>| Signer::of_key(rdata).is_some_and(|key| signers.contains(&key));
        let signing = dnskeys.iter().filter(signs).cloned().collect();
        Self { serial, dnskeys, signing, denial, expires }
    }

    /// Whether the signatures over the DNSKEY RRset have expired: no validator holds that RRset any longer (RFC 4035 §5.3.3).
    #[must_use]
    pub fn is_expired(&self, now: u32) -> bool {
        self.expires.is_some_and(|expires| serial::is_before(expires, now))
    }

    /// The keys that the parent's DS records may name: signers of the DNSKEY RRset that are not revoked, with the SEP flag where
    /// any has it; all keys where the signers are not known.
    fn entry_points(&self) -> Vec<&[u8]> {
        let known = if self.signing.is_empty() { &self.dnskeys } else { &self.signing };
        let usable = || known.iter().map(Vec::as_slice).filter(|key| flags(key) & REVOKE == 0);
        let with_flag: Vec<&[u8]> = usable().filter(|key| flags(key) & SEP != 0).collect();
        if with_flag.is_empty() { usable().collect() } else { with_flag }
    }

    /// The keys that sign the DNSKEY RRset, or all where that is not known.
    fn signing_keys(&self) -> Vec<&[u8]> {
        let known = if self.signing.is_empty() { &self.dnskeys } else { &self.signing };
        known.iter().map(Vec::as_slice).collect()
    }
}

/// The kind of a denial chain by the types at the apex. The chain of NSEC3 counts where NSEC3PARAM is there (RFC 5155 §4).
#[must_use]
pub const fn denial_kind(has_nsec: bool, has_nsec3param: bool, has_nsec5key: bool) -> Option<Mapping> {
    match (has_nsec3param, has_nsec, has_nsec5key) {
        (true, _, _) => Some(Mapping::Sha1),
        (false, true, _) => Some(Mapping::Itself),
        (false, false, true) => Some(Mapping::Vrf),
        (false, false, false) => None,
    }
}

/// What signs the data of the next version.
#[derive(Clone, Copy, Debug)]
pub enum DataSigners<'d> {
    /// All of these keys sign each RRset.
    Keys {
        /// The zone.
        apex: &'d Name,
        /// RDATA of their DNSKEY records.
        keys: &'d [Vec<u8>],
    },
    /// The RRSIG records of the zone.
    Zone(&'d Contents),
}

/// What breaks validators that hold the previous version's keys.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum TransitionFault {
    /// No key that signed the previous DNSKEY RRset signs the next one.
    #[error(
        "no key that signed the previous DNSKEY RRset ({}) signs the new one ({}): for the parent's DS records of the previous keys \
         the zone is bogus",
        describe_keys(previous),
        describe_keys(next)
    )]
    KeySigners {
        /// Tags of the keys that signed.
        previous: Vec<u16>,
        /// Tags of the keys that sign.
        next: Vec<u16>,
    },
    /// An RRset is signed only by keys that the previous DNSKEY RRset does not have.
    #[error(
        "{owner} {rtype} is signed only by {}, absent from the previous DNSKEY RRset: bogus for validators that have that RRset \
         cached",
        describe_keys(tags)
    )]
    DataSigners {
        /// Owner of the first such RRset in canonical order.
        owner: Name,
        /// Its type.
        rtype: Rtype,
        /// Tags of the keys.
        tags: Vec<u16>,
    },
    /// The kind of the denial chain changes under the same serial: secondaries keep the previous chain, and validators get proofs
    /// of both.
    #[error("the denial chain changes from {} to {} under the same serial {serial}: raise the serial", kind(*previous), kind(*next))]
    DenialKind {
        /// The serial of both.
        serial: u32,
        /// The previous kind.
        previous: Mapping,
        /// The next kind.
        next: Mapping,
    },
}

const fn kind(mapping: Mapping) -> &'static str {
    match mapping {
        Mapping::Itself => "NSEC",
        Mapping::Sha1 => "NSEC3",
        Mapping::Vrf => "NSEC5",
    }
}

/// Keys by their tags: `key 7`, `keys 7, 8`.
pub(crate) fn describe_keys(tags: &[u16]) -> String {
    let list: Vec<String> = tags.iter().map(u16::to_string).collect();
    format!("{} {}", if tags.len() == 1 { "key" } else { "keys" }, list.join(", "))
}

/// Faults in one line.
#[must_use]
pub fn list_faults(faults: &[TransitionFault]) -> String {
    faults.iter().map(TransitionFault::to_string).collect::<Vec<_>>().join("; ")
}

/// Lists what the step from `previous` to `next` breaks, at most one fault of each kind.
#[must_use]
pub fn transition(previous: &KeyState, next: &KeyState, data: DataSigners<'_>) -> Vec<TransitionFault> {
    let mut faults = Vec::new();
    let (before, after) = (previous.entry_points(), next.signing_keys());
    if !before.iter().any(|key| after.contains(key)) {
        faults.push(TransitionFault::KeySigners { previous: tags(&before), next: tags(&after) });
    }
    faults.extend(unknown_data_signers(previous, next, data));
    if let (Some(old), Some(new), true) = (previous.denial, next.denial, previous.serial == next.serial)
        && old != new
    {
        faults.push(TransitionFault::DenialKind { serial: next.serial, previous: old, next: new });
    }
    faults
}

/// As [`transition`], of two zones; nothing where one of them is not signed.
#[must_use]
pub fn transition_between(previous: &Contents, next: &Contents) -> Vec<TransitionFault> {
    match (KeyState::of(previous), KeyState::of(next)) {
        (Some(before), Some(after)) => transition(&before, &after, DataSigners::Zone(next)),
        _ => Vec::new(),
    }
}

/// The first RRset that is signed only by keys absent from the previous DNSKEY RRset.
fn unknown_data_signers(
    previous: &KeyState,
    next: &KeyState,
    data: DataSigners<'_>,
) -> Option<TransitionFault> {
    let is_known = |key: &Vec<u8>| previous.dnskeys.contains(key);
    match data {
        DataSigners::Keys { keys, .. } if keys.is_empty() || keys.iter().any(is_known) => None,
        DataSigners::Keys { apex, keys } => {
            let tags = keys.iter().map(|key| key_tag(key)).collect();
            Some(TransitionFault::DataSigners { owner: apex.clone(), rtype: Rtype::SOA, tags })
        }
        // Signatures are by published keys, or verifying finds them.
        DataSigners::Zone(_) if next.dnskeys.iter().all(is_known) => None,
        DataSigners::Zone(zone) => find_unknown_signers(previous, next, zone),
    }
}

fn find_unknown_signers(previous: &KeyState, next: &KeyState, zone: &Contents) -> Option<TransitionFault> {
    // A signature is known where the previous DNSKEY RRset has its key, and the next one no other key that looks so.
    let known: Vec<Signer> = previous
        .dnskeys
        .iter()
        .filter_map(|key| Some((key, Signer::of_key(key)?)))
        .filter(|(key, signer)| {
            let is_other = |other: &&Vec<u8>| Signer::of_key(other) == Some(*signer);
            next.dnskeys.contains(key) || !next.dnskeys.iter().any(|other| is_other(&other))
        })
        .map(|(_, signer)| signer)
        .collect();
    let is_known = |rdata: &[u8]| Signer::of_signature(rdata).is_some_and(|signer| known.contains(&signer));
    let sets = zone.nodes().flat_map(|node| node.rrsets().map(move |rrset| (node, rrset)));
    let mut unknown = sets.filter(|(node, rrset)| {
        let is_key_set = node.index() == 0 && rrset.covered() == Rtype::DNSKEY;
        rrset.rtype() == Rtype::RRSIG && !is_key_set && !rrset.rdatas().any(is_known)
    });
    let (node, rrset) = unknown.next()?;
    let mut tags: Vec<u16> =
        rrset.rdatas().filter_map(Signer::of_signature).map(|signer| signer.tag).collect();
    tags.sort_unstable();
    tags.dedup();
    Some(TransitionFault::DataSigners { owner: node.name().to_name(), rtype: rrset.covered(), tags })
}

/// A key as an RRSIG record names it.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Signer {
    tag: u16,
    algorithm: Algorithm,
}

impl Signer {
    fn of_key(dnskey: &[u8]) -> Option<Self> {
        Some(Self { tag: key_tag(dnskey), algorithm: Algorithm(*dnskey.get(3)?) })
    }

    fn of_signature(rrsig: &[u8]) -> Option<Self> {
        Rrsig::parse(rrsig).as_ref().map(Self::of_fields)
    }

    const fn of_fields(fields: &Rrsig<'_>) -> Self {
        Self { tag: fields.tag, algorithm: fields.algorithm }
    }
}

fn flags(dnskey: &[u8]) -> u16 {
    dnskey.first_chunk().map_or(0, |flags| u16::from_be_bytes(*flags))
}

fn tags(keys: &[&[u8]]) -> Vec<u16> {
    keys.iter().map(|key| key_tag(key)).collect()
}
