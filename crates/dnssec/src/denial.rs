//! Denial of existence. The records of [`nsec`], [`nsec3`] and [`nsec5`] form a chain in the zone.
//! The records of [`minimal_nsec`], [`compact`] and [`white_lies`] are generated online.
//!
//! Two properties distinguish the mechanisms: the value that represents a name in a record
//! ([`NameHash`]), and whether the signer or the server generates the records
//! ([`DenialGeneration`]). The table [`MECHANISMS`] lists both. Each mechanism has a directory with
//! a file for each caller:
//!
//! - `chain` generates the records, for the signer.
//! - `check` checks the chain, for the verifier.
//! - `prove` finds or generates the records of a response, for the server.
//! - `validate` determines what the records of a response deny, for the validator.
//!
//! A mechanism with records generated online has only `prove`: its records are NSEC or NSEC3
//! records, which `nsec::validate` and `nsec3::validate` read. The types in the bit map for a name
//! are the same for all mechanisms, and this module computes them.
//!
//! The code that builds responses does not depend on the mechanism of the zone. It passes a
//! [`prove::DenialTarget`] (a name, a type, a closer match than the wildcard, a type at a wildcard,
//! or a DS RRset) and gets a [`prove::Proof`]. The proof has templates of the image, or pieces
//! ([`proof_piece::ProofPiece`]: an RRset of the image, a record to be signed, or a name to be
//! proved with NSEC5). `prove` is a pure function of the image, the target and, for NSEC5, the VRF
//! hashes known so far: it does not sign, evaluate a VRF or read the time.
//!
//! To add a mechanism, add a variant of [`Mechanism`], a row to [`MECHANISMS`] and a directory. The
//! command line, comparisons and reports read the table. The image indexes records by the owner
//! name or by the hash in it, depending on the mechanism ([`nonesuch_zone::image`]). Records
//! generated online need a row in [`prove::prove_online`]; all mechanisms share the code that
//! signs, caches and counts them. `tests/faults/` has a table of general faults, and one file for
//! each mechanism with the faults of this mechanism.

pub mod compact;
pub mod minimal_nsec;
pub(crate) mod names;
pub mod nsec;
pub mod nsec3;
pub mod nsec5;
pub mod proof_piece;
pub mod prove;
pub mod white_lies;

pub use nsec3::Nsec3Params;

use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::NameStatus;
use std::fmt;
use std::str::FromStr;

/// Returns the bit map in the RDATA of an NSEC, NSEC3 or NSEC5 record; `None` if they are malformed or of
/// another type.
#[must_use]
pub fn type_bitmap(rtype: Rtype, rdata: &[u8]) -> Option<&[u8]> {
    match rtype {
        Rtype::NSEC => NameRef::split_from(rdata).ok().map(|(_, map)| map),
        Rtype::NSEC3 => nsec3::Nsec3::parse(rdata).map(|fields| fields.bitmap),
        Rtype::NSEC5 => nsec5::Nsec5::parse(rdata).map(|fields| fields.bitmap),
        _ => None,
    }
}

/// The denial mechanism of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Mechanism {
    /// NSEC (RFC 4034 §4): the records contain names.
    Nsec,
    /// NSEC3 (RFC 5155): the records contain hashes of names.
    Nsec3,
    /// NSEC3 with opt-out: the chain omits insecure delegations (RFC 5155 §6).
    Nsec3OptOut,
    /// NSEC5 (draft-vcelak-nsec5): the records contain VRF outputs. Only the holder of the VRF key
    /// can compute them, and everyone can verify them.
    Nsec5,
    /// NSEC5 with opt-out: the chain omits insecure delegations.
    Nsec5OptOut,
    /// Minimally covering NSEC (RFC 4470): the server generates NSEC records that each cover one
    /// name.
    MinimalNsec,
    /// Compact denial (RFC 9824): the server generates one NSEC record at the query name.
    Compact,
    /// NSEC3 white lies (RFC 7129, appendix B): the server generates NSEC3 records that each cover
    /// one hash.
    WhiteLies,
}

/// Whether the signer or the server generates the records of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DenialGeneration {
    /// The signer generates a chain of records, which is part of the zone.
    Offline,
    /// The server generates the records for each response and signs them with the ZSK of the zone.
    Online,
}

/// The value that represents a name in the records of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum NameHash {
    /// The name itself, not hashed.
    Unhashed,
    /// The salted SHA-1 hash of the name (RFC 5155 §5).
    Sha1,
    /// The output of a verifiable random function (RFC 9381) for the name.
    Vrf,
}

/// The names of a zone that a client can learn from denials.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Enumeration {
    /// All names: the records form a chain of names.
    ZoneWalk,
    /// The names that a dictionary contains: their hashes can be tested offline (RFC 5155 §12.1.1).
    Dictionary,
    /// No names.
    Impossible,
}

impl Enumeration {
    /// Returns the name in data files.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::ZoneWalk => "zone-walk",
            Self::Dictionary => "dictionary",
            Self::Impossible => "impossible",
        }
    }
}

/// One row of [`MECHANISMS`].
#[derive(Clone, Copy, Debug)]
pub struct MechanismEntry {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// The name on the command line and in the configuration.
    pub name: &'static str,
    /// Other names that the command line accepts.
    pub aliases: &'static [&'static str],
    /// The name in tables and reports.
    pub title: &'static str,
    /// The value that represents a name in its records.
    pub name_hash: NameHash,
    /// Whether the signer or the server generates its records.
    pub generation: DenialGeneration,
    /// Whether its chain omits insecure delegations.
    pub opt_out: bool,
}

/// All mechanisms, in the order of the variants of [`Mechanism`].
pub static MECHANISMS: &[MechanismEntry] = &[
    MechanismEntry {
        mechanism: Mechanism::Nsec,
        name: "nsec",
        aliases: &[],
        title: "NSEC",
        name_hash: NameHash::Unhashed,
        generation: DenialGeneration::Offline,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::Nsec3,
        name: "nsec3",
        aliases: &[],
        title: "NSEC3",
        name_hash: NameHash::Sha1,
        generation: DenialGeneration::Offline,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::Nsec3OptOut,
        name: "nsec3-opt-out",
        aliases: &["nsec3-optout"],
        title: "NSEC3 opt-out",
        name_hash: NameHash::Sha1,
        generation: DenialGeneration::Offline,
        opt_out: true,
    },
    MechanismEntry {
        mechanism: Mechanism::Nsec5,
        name: "nsec5",
        aliases: &[],
        title: "NSEC5",
        name_hash: NameHash::Vrf,
        generation: DenialGeneration::Offline,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::Nsec5OptOut,
        name: "nsec5-opt-out",
        aliases: &["nsec5-optout"],
        title: "NSEC5 opt-out",
        name_hash: NameHash::Vrf,
        generation: DenialGeneration::Offline,
        opt_out: true,
    },
    MechanismEntry {
        mechanism: Mechanism::MinimalNsec,
        name: "minimal-nsec",
        aliases: &["minimally-covering-nsec"],
        title: "Minimal NSEC",
        name_hash: NameHash::Unhashed,
        generation: DenialGeneration::Online,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::Compact,
        name: "compact",
        aliases: &["compact-denial", "black-lies"],
        title: "Compact denial",
        name_hash: NameHash::Unhashed,
        generation: DenialGeneration::Online,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::WhiteLies,
        name: "white-lies",
        aliases: &["nsec3-white-lies"],
        title: "NSEC3 white lies",
        name_hash: NameHash::Sha1,
        generation: DenialGeneration::Online,
        opt_out: false,
    },
];

impl MechanismEntry {
    /// Whether a server answers from the signed zone alone, without a private key for records or
    /// proofs.
    #[must_use]
    pub const fn is_served_without_keys(&self) -> bool {
        matches!(self.generation, DenialGeneration::Offline) && !matches!(self.name_hash, NameHash::Vrf)
    }

    /// Returns the names that a client can learn from the denials of a server.
    #[must_use]
    pub const fn enumeration(&self) -> Enumeration {
        match (self.generation, self.name_hash) {
            (DenialGeneration::Online, _) | (_, NameHash::Vrf) => Enumeration::Impossible,
            (DenialGeneration::Offline, NameHash::Unhashed) => Enumeration::ZoneWalk,
            (DenialGeneration::Offline, NameHash::Sha1) => Enumeration::Dictionary,
        }
    }

    /// Whether an attacker with all data of a server can forge any data of the zone: the server has
    /// a zone-signing key.
    #[must_use]
    pub const fn stolen_server_can_forge(&self) -> bool {
        matches!(self.generation, DenialGeneration::Online)
    }
}

impl Mechanism {
    /// The row of [`MECHANISMS`].
    #[must_use]
    pub fn entry(self) -> &'static MechanismEntry {
        // A test checks that the rows have the order of the variants.
        &MECHANISMS[self as usize]
    }

    /// Whether the chain omits insecure delegations.
    #[must_use]
    pub fn is_opt_out(self) -> bool {
        self.entry().opt_out
    }

    /// Whether the signer or the server generates the records.
    #[must_use]
    pub fn generation(self) -> DenialGeneration {
        self.entry().generation
    }

    /// The value that represents a name in the records.
    #[must_use]
    pub fn name_hash(self) -> NameHash {
        self.entry().name_hash
    }
}

impl fmt::Display for Mechanism {
    /// Writes the name on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.entry().name)
    }
}

/// The text is not the name of a mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown denial mechanism (known: nsec, nsec3, nsec3-opt-out, nsec5, nsec5-opt-out; generated online by the server: minimal-nsec, compact, white-lies)"
)]
pub struct UnknownMechanism;

impl FromStr for Mechanism {
    type Err = UnknownMechanism;

    fn from_str(text: &str) -> Result<Self, UnknownMechanism> {
        let matches = |name: &str| name.eq_ignore_ascii_case(text);
        MECHANISMS
            .iter()
            .find(|entry| matches(entry.name) || entry.aliases.iter().any(|alias| matches(alias)))
            .map(|entry| entry.mechanism)
            .ok_or(UnknownMechanism)
    }
}

/// Whether an RRset of `rtype` at a name with this status is authoritative data of the zone: it is
/// signed, and the bit map of the chain record lists it.
///
/// RFC 4035 §2.2: at a delegation, the zone has authority only over the DS RRset and the records of
/// the chain. Glue and the NS RRset of the child are not signed.
#[must_use]
pub const fn is_signed(rtype: Rtype, status: NameStatus) -> bool {
    match status {
        NameStatus::Authoritative => rtype.0 != Rtype::RRSIG.0,
        NameStatus::Delegation => matches!(rtype, Rtype::DS | Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5),
        // A DNAME record at the apex occludes all names below it except the hashed owner names,
        // which are directly below the apex.
        NameStatus::BelowDname => matches!(rtype, Rtype::NSEC3 | Rtype::NSEC5),
        NameStatus::BelowCut => false,
    }
}

/// Whether the signer generates RRsets of `rtype` at `owner` in the zone at `apex`; other RRsets
/// are data of the zone.
///
/// The type number of NSEC5 is for private use: an RRset of this type whose owner cannot be the
/// owner of a chain record is data of the zone.
#[must_use]
pub fn is_generated_by_signing(rtype: Rtype, owner: NameRef<'_>, apex: NameRef<'_>) -> bool {
    rtype.is_signature_or_chain() || rtype == Rtype::NSEC5 && nsec5::is_chain_owner(owner, apex)
}

/// Appends the types of a name that the bit map of its chain record lists, in ascending order.
/// `rtypes` are the types of all RRsets at the name and must be ascending.
///
/// RFC 4035 §2.3: at a delegation, the bit map has NS and the types over which the parent has
/// authority, and no others. RFC 5155 §7.1: the result omits RRSIG, NSEC and NSEC3; each mechanism
/// adds the types of these that it needs. The caller omits the NSEC5 records of a chain
/// ([`is_generated_by_signing`]).
pub(crate) fn push_bitmap_types(
    rtypes: impl Iterator<Item = Rtype>,
    status: NameStatus,
    out: &mut Vec<Rtype>,
) {
    let is_listed = |rtype: &Rtype| match *rtype {
        Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3 => false,
        Rtype::NS => true,
        rtype => is_signed(rtype, status),
    };
    out.extend(rtypes.filter(is_listed));
}

/// Adds `rtype` to `types`, which is and remains in ascending order.
pub(crate) fn insert_type(types: &mut Vec<Rtype>, rtype: Rtype) {
    if let Err(index) = types.binary_search(&rtype) {
        types.insert(index, rtype);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_variants_and_names_are_parsed() {
        for entry in MECHANISMS {
            assert_eq!(entry.mechanism.entry().name, entry.name);
            assert_eq!(entry.mechanism.to_string().parse(), Ok(entry.mechanism));
            for alias in entry.aliases {
                assert_eq!(alias.to_uppercase().parse(), Ok(entry.mechanism));
            }
        }
        assert_eq!("nsec4".parse::<Mechanism>(), Err(UnknownMechanism));
    }

    #[test]
    fn the_bit_map_of_a_delegation_has_only_ns_and_ds() {
        let all = [Rtype::A, Rtype::NS, Rtype::DS, Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3];
        let shown = |status| {
            let mut types = Vec::new();
            push_bitmap_types(all.into_iter(), status, &mut types);
            types
        };
        assert_eq!(shown(NameStatus::Delegation), [Rtype::NS, Rtype::DS]);
        assert_eq!(shown(NameStatus::Authoritative), [Rtype::A, Rtype::NS, Rtype::DS]);
    }
}
