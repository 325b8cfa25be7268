//! Denial of existence: the mechanisms whose chain stands in the zone ([`nsec`], [`nsec3`], [`nsec5`]), and those whose
//! records are generated online ([`minimal_nsec`], [`compact`], [`white_lies`]).
//!
//! Two questions tell the mechanisms apart: what a name is mapped to ([`Mapping`]), and who generates the records, the signer
//! or the server ([`DenialGeneration`]). [`MECHANISMS`] is the table of the answers. Each mechanism has a folder with a file for
//! each caller:
//!
//! - `chain` makes the records, for the signer;
//! - `check` checks the chain, for the verifier;
//! - `prove` finds or generates the records of an answer, for the server;
//! - `validate` says what the records of a response deny, for the validator.
//!
//! A mechanism with records generated online has `prove` alone: they are NSEC or NSEC3 records, which `nsec::validate` and
//! `nsec3::validate` read. The types that a record shows for a name are the same for all mechanisms, and computed here.
//!
//! The server does not know which mechanism a zone has. It says what is denied ([`prove::DenialTarget`]: a name, a type, a closer
//! match than the wildcard, a type at a wildcard, a DS RRset) and gets a [`prove::Proof`]: templates of the image, or pieces
//! ([`proof_piece::ProofPiece`]: an RRset of the image, a record to be signed, a name to be proved with NSEC5). `prove` is a pure
//! function of the image, the question and, for NSEC5, the VRF hashes known so far: it does not sign, evaluate a VRF or read
//! the time.
//!
//! To add a mechanism, add a variant of [`Mechanism`], a row to [`MECHANISMS`] and a folder. Command line, comparison and
//! reports read the table. Whether its records stand at names or at hashes decides where the image indexes them
//! ([`nonesuch_zone::image`]). Records generated online need a row in [`prove::prove_online`]; signing, caching and counting
//! them are common to all. `tests/faults/` plants general faults by a table, and those of one mechanism in a file of its own.

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

/// How a zone denies that a name or type exists.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum Mechanism {
    /// NSEC (RFC 4034 §4): the names themselves.
    Nsec,
    /// NSEC3 (RFC 5155): hashes of the names.
    Nsec3,
    /// NSEC3 that leaves insecure delegations out (RFC 5155 §6).
    Nsec3OptOut,
    /// NSEC5 (draft-vcelak-nsec5): hashes that only the holder of a key can compute, and everyone can verify.
    Nsec5,
    /// NSEC5 that leaves insecure delegations out.
    Nsec5OptOut,
    /// NSEC records made when asked, each over one name (RFC 4470).
    MinimalNsec,
    /// Compact denial (RFC 9824): one NSEC record made when asked, at the name itself.
    Compact,
    /// NSEC3 white lies (RFC 7129, appendix B): NSEC3 records made when asked, each over one hash.
    WhiteLies,
}

/// When the records of a mechanism are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum DenialGeneration {
    /// By the signer: the zone holds a chain of them.
    Offline,
    /// By the nameserver, with the zone's ZSK, for each answer.
    Online,
}

/// What stands in the chain for a name.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Mapping {
    /// The name itself.
    Itself,
    /// Its salted SHA-1 hash (RFC 5155 §5).
    Sha1,
    /// The output of a verifiable random function.
    Vrf,
}

/// One row of the table of mechanisms.
#[derive(Clone, Copy, Debug)]
pub struct MechanismEntry {
    /// The mechanism.
    pub mechanism: Mechanism,
    /// Its name on the command line.
    pub name: &'static str,
    /// Other names that the command line takes.
    pub aliases: &'static [&'static str],
    /// Its name in tables and reports.
    pub title: &'static str,
    /// What stands in its records for a name.
    pub mapping: Mapping,
    /// When its records are made.
    pub generation: DenialGeneration,
    /// Whether insecure delegations are left out of its chain.
    pub opt_out: bool,
}

/// Every mechanism; adding one is a row here, a variant above and a folder beside this file.
pub static MECHANISMS: &[MechanismEntry] = &[
    MechanismEntry {
        mechanism: Mechanism::Nsec,
        name: "nsec",
        aliases: &[],
        title: "NSEC",
        mapping: Mapping::Itself,
        generation: DenialGeneration::Offline,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::Nsec3,
        name: "nsec3",
        aliases: &[],
        title: "NSEC3",
        mapping: Mapping::Sha1,
        generation: DenialGeneration::Offline,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::Nsec3OptOut,
        name: "nsec3-opt-out",
        aliases: &["nsec3-optout"],
        title: "NSEC3 opt-out",
        mapping: Mapping::Sha1,
        generation: DenialGeneration::Offline,
        opt_out: true,
    },
    MechanismEntry {
        mechanism: Mechanism::Nsec5,
        name: "nsec5",
        aliases: &[],
        title: "NSEC5",
        mapping: Mapping::Vrf,
        generation: DenialGeneration::Offline,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::Nsec5OptOut,
        name: "nsec5-opt-out",
        aliases: &["nsec5-optout"],
        title: "NSEC5 opt-out",
        mapping: Mapping::Vrf,
        generation: DenialGeneration::Offline,
        opt_out: true,
    },
    MechanismEntry {
        mechanism: Mechanism::MinimalNsec,
        name: "minimal-nsec",
        aliases: &["minimally-covering-nsec"],
        title: "Minimal NSEC",
        mapping: Mapping::Itself,
        generation: DenialGeneration::Online,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::Compact,
        name: "compact",
        aliases: &["compact-denial", "black-lies"],
        title: "Compact denial",
        mapping: Mapping::Itself,
        generation: DenialGeneration::Online,
        opt_out: false,
    },
    MechanismEntry {
        mechanism: Mechanism::WhiteLies,
        name: "white-lies",
        aliases: &["nsec3-white-lies"],
        title: "NSEC3 white lies",
        mapping: Mapping::Sha1,
        generation: DenialGeneration::Online,
        opt_out: false,
    },
];

impl MechanismEntry {
    /// Whether a nameserver answers from the signed zone alone, without a key to make records or proofs with.
    #[must_use]
    pub const fn is_served_without_keys(&self) -> bool {
        matches!(self.generation, DenialGeneration::Offline) && !matches!(self.mapping, Mapping::Vrf)
    }
}

impl Mechanism {
    /// The row of the table.
    #[must_use]
    pub fn entry(self) -> &'static MechanismEntry {
        // The rows stand in the order of the variants, which a test checks.
        &MECHANISMS[self as usize]
    }

    /// Whether insecure delegations are left out of the chain.
    #[must_use]
    pub fn is_opt_out(self) -> bool {
        self.entry().opt_out
    }

    /// When its records are made.
    #[must_use]
    pub fn generation(self) -> DenialGeneration {
        self.entry().generation
    }

    /// What stands in the chain for a name.
    #[must_use]
    pub fn mapping(self) -> Mapping {
        self.entry().mapping
    }
}

impl fmt::Display for Mechanism {
    /// The name on the command line.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.entry().name)
    }
}

/// The text names no mechanism.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "unknown denial mechanism (known: nsec, nsec3, nsec3-opt-out, nsec5, nsec5-opt-out; made by the nameserver when asked: \
     minimal-nsec, compact, white-lies)"
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

/// Whether records of `rtype` at a name of `standing` are the zone's own, to be signed and shown in the chain.
///
/// RFC 4035 §2.2: at a delegation the zone has authority over the DS RRset and the chain's records alone; glue and
/// the NS RRset of the child are not signed.
#[must_use]
pub const fn is_signed(rtype: Rtype, standing: NameStatus) -> bool {
    match standing {
        NameStatus::Authoritative => rtype.0 != Rtype::RRSIG.0,
        NameStatus::Delegation => matches!(rtype, Rtype::DS | Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5),
        // A DNAME at the apex occludes all names but the hashed ones, which stand directly below it.
        NameStatus::BelowDname => matches!(rtype, Rtype::NSEC3 | Rtype::NSEC5),
        NameStatus::BelowCut => false,
    }
}

/// Whether an RRset of `rtype` at `owner` is made by signing the zone at `apex`, and is no data of the zone.
///
/// The number of NSEC5 is of private use: what does not stand where the records of a chain do is the zone's own.
#[must_use]
pub fn is_generated_by_signing(rtype: Rtype, owner: NameRef<'_>, apex: NameRef<'_>) -> bool {
    rtype.is_signature_or_chain() || rtype == Rtype::NSEC5 && nsec5::is_chain_owner(owner, apex)
}

/// Appends the types of a name's own records that its chain record shows, ascending; `rtypes` come ascending.
///
/// RFC 4035 §2.3: at a delegation the NS bit is set and no other bit but those of what the parent has authority
/// over. RFC 5155 §7.1: RRSIG, NSEC and NSEC3 are not among them: the mechanism adds what belongs there. The caller leaves
/// out the NSEC5 records of a chain ([`is_generated_by_signing`]).
pub(crate) fn push_shown_types(
    rtypes: impl Iterator<Item = Rtype>,
    standing: NameStatus,
    out: &mut Vec<Rtype>,
) {
    let shown = |rtype: &Rtype| match *rtype {
        Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3 => false,
        Rtype::NS => true,
        rtype => is_signed(rtype, standing),
    };
    out.extend(rtypes.filter(shown));
}

/// Adds `rtype` to `types`, which stay ascending.
pub(crate) fn insert_type(types: &mut Vec<Rtype>, rtype: Rtype) {
    if let Err(place) = types.binary_search(&rtype) {
        types.insert(place, rtype);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_stand_in_the_order_of_the_variants_and_names_are_read_back() {
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
    fn at_a_delegation_only_ns_and_ds_are_shown() {
        let all = [Rtype::A, Rtype::NS, Rtype::DS, Rtype::RRSIG, Rtype::NSEC, Rtype::NSEC3];
        let shown = |standing| {
            let mut types = Vec::new();
            push_shown_types(all.into_iter(), standing, &mut types);
            types
        };
        assert_eq!(shown(NameStatus::Delegation), [Rtype::NS, Rtype::DS]);
        assert_eq!(shown(NameStatus::Authoritative), [Rtype::A, Rtype::NS, Rtype::DS]);
    }
}
