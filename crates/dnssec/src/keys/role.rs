//! The role of a key, which depends on the other keys of its zone.

use super::{REVOKE, SEP, ZONE_KEY};
use nonesuch_crypto::Algorithm;
use std::fmt;

/// The RRsets that a key signs (RFC 9499 §10).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Role {
    /// Key-signing key: signs only DNSKEY, CDS and CDNSKEY.
    Ksk,
    /// Zone-signing key: signs all other RRsets.
    Zsk,
    /// Combined signing key: signs all RRsets.
    Csk,
}

impl fmt::Display for Role {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Ksk => "KSK",
            Self::Zsk => "ZSK",
            Self::Csk => "CSK",
        })
    }
}

/// The role of each key of one zone, in the order of `keys`. Each key is a pair of algorithm and
/// DNSKEY flags.
///
/// For each algorithm, a key with the SEP flag signs the key set, and a key without it signs the
/// data. If all keys of an algorithm have the flag, or none has it, they sign both. A revoked key
/// signs only the key set (RFC 5011 §2.1) and does not affect the roles of other keys.
#[must_use]
pub fn roles(keys: &[(Algorithm, u16)]) -> Vec<Role> {
    let is_revoked = |flags: u16| flags & REVOKE != 0;
    let is_sep = |flags: u16| flags & SEP != 0;
    let role = |(algorithm, flags): &(Algorithm, u16)| {
        if is_revoked(*flags) {
            return Role::Ksk;
        }
        let has_other_kind = keys.iter().any(|(other_algorithm, other_flags)| {
            other_algorithm == algorithm
                && !is_revoked(*other_flags)
                && is_sep(*other_flags) != is_sep(*flags)
        });
        match (has_other_kind, is_sep(*flags)) {
            (false, _) => Role::Csk,
            (true, true) => Role::Ksk,
            (true, false) => Role::Zsk,
        }
    };
    keys.iter().map(role).collect()
}

/// A key of the zone's DNSKEY RRset.
pub(crate) struct PublishedKey<'k> {
    pub(crate) rdata: &'k [u8],
    pub(crate) algorithm: Algorithm,
    pub(crate) role: Role,
}

/// The zone keys among the DNSKEY RDATA of a zone, with their roles. Omits keys without the Zone
/// Key flag, which sign nothing (RFC 4034 §2.1.1).
pub(crate) fn published_keys(dnskeys: &[Vec<u8>]) -> Vec<PublishedKey<'_>> {
    let read = |rdata: &'_ [u8]| match rdata {
        [high, low, _, algorithm, _, ..] => Some((Algorithm(*algorithm), u16::from_be_bytes([*high, *low]))),
        _ => None,
    };
    let keys = dnskeys.iter().filter_map(|rdata| Some((rdata.as_slice(), read(rdata)?)));
    let (rdatas, kinds): (Vec<&[u8]>, Vec<(Algorithm, u16)>) =
        keys.filter(|(_, (_, flags))| flags & ZONE_KEY != 0).unzip();
    let roles = roles(&kinds);
    let keys = rdatas.into_iter().zip(kinds).zip(roles);
    keys.map(|((rdata, (algorithm, _)), role)| PublishedKey { rdata, algorithm, role }).collect()
}
