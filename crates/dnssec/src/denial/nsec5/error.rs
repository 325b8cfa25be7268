//! Errors of signing with NSEC5.

use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::ProveError;
use nonesuch_proto::{Name, Rtype};

/// The reason why a zone cannot be signed with NSEC5.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Nsec5Error {
    /// The caller passed no proofs for the chain.
    #[error("NSEC5 needs the proofs of the names in the zone: generate them with the VRF key first")]
    NoProofs,
    /// The proofs are not for the names of the chain of this zone.
    #[error(
        "the proofs do not match the names of {zone}: generate exactly the proofs for the chain of this zone"
    )]
    ForeignProofs {
        /// The zone.
        zone: Name,
    },
    /// Hashed owner names do not fit below the apex.
    #[error("the zone name {zone} is too long for NSEC5, which prepends a hash of 53 octets to it: use NSEC")]
    ApexTooLong {
        /// The zone.
        zone: Name,
    },
    /// A key or record has an algorithm number that resolvers without NSEC5 know; they would treat
    /// the zone as bogus.
    #[error(
        "the {rtype} {tag} of {zone} has algorithm {algorithm}, but with NSEC5 all keys need alias algorithm \
        numbers, which resolvers without NSEC5 do not know: generate keys with `nonesuch key generate {zone} \
        --nsec5`, and use only those"
    )]
    NotAliasAlgorithm {
        /// The zone.
        zone: Name,
        /// DNSKEY, CDS or CDNSKEY.
        rtype: Rtype,
        /// Tag of the key.
        tag: u16,
        /// Its algorithm.
        algorithm: Algorithm,
    },
    /// A VRF key equals a DNSKEY or CDNSKEY of the zone.
    #[error(
        "the VRF key {tag} of {zone} is also its DNSKEY {dnskey}: anyone who obtains the VRF key of the \
        server could sign the zone; generate another VRF key, or sign with another key"
    )]
    SigningKey {
        /// The zone.
        zone: Name,
        /// Tag of the VRF key.
        tag: u16,
        /// Tag of the DNSKEY or CDNSKEY record.
        dnskey: u16,
    },
    /// The zone has another NSEC5KEY record with the tag of the VRF key of the chain.
    #[error(
        "the zone has another NSEC5KEY with tag {tag}, and NSEC5KEY records with the same tag cannot prove anything: generate another VRF key"
    )]
    SameTag {
        /// The tag.
        tag: u16,
    },
    /// The zone has no well-formed SOA record.
    #[error("the zone {0} has no well-formed SOA record at its apex")]
    NoSoa(Name),
    /// The generation of a proof failed.
    #[error(transparent)]
    Prove(#[from] ProveError),
}
