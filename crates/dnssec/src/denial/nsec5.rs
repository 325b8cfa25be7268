//! NSEC5 (draft-vcelak-nsec5; "Making NSEC5 Practical for DNSSEC"): a chain over the outputs of a verifiable random
//! function (RFC 9381), which only the holder of the VRF key can compute, so that nobody enumerates the zone; and which
//! does not sign, so that nobody who steals it forges.
//!
//! Proofs come first ([`prove_chain`]), for every name of the chain; signing makes the chain of their hashes, so that the
//! signer never sees the VRF key, and whoever serves the zone keeps them ([`Proofs`]) beside it.

pub(crate) mod chain;
pub(crate) mod check;
mod directory;
mod error;
mod file;
mod matching;
mod proofs;
pub(in crate::denial) mod prove;
mod requirements;
pub(crate) mod validate;

pub use directory::{Nsec5DirectoryError, StoredVrfKey, is_vrf_key_of, parse_proofs};
pub use error::Nsec5Error;
pub use file::ProofsFileError;
pub(crate) use proofs::names_of_chain;
pub use proofs::{Nsec5Chain, ProofEntry, Proofs, ProveOptions, ProveStatistics, prove_chain};
pub(crate) use requirements::prepare_apex;
pub use requirements::{check_separate, check_signing};

use data_encoding::BASE32HEX_NOPAD;
use nonesuch_crypto::vrf::{VRF_HASH_OCTETS, VrfPrivateKey};
use nonesuch_proto::{MAX_NAME, NameRef};

/// The opt-out flag: set on every record of an opt-out chain.
pub(crate) const OPT_OUT: u8 = 1;
/// The wildcard flag: a wildcard stands directly below the name that the record is of.
pub(crate) const WILDCARD: u8 = 2;
/// Octets of a hashed owner label: 32 octets in base32hex.
pub(crate) const LABEL: usize = 52;
/// Most octets of the name of an apex, on the wire, that the owner of an NSEC5 record can stand below.
pub const LONGEST_APEX: usize = MAX_NAME - 1 - LABEL;

/// A hashed name.
pub(crate) type Hash = [u8; VRF_HASH_OCTETS];

/// What a zone with NSEC5 is verified with beside what is public.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nsec5Evidence<'a> {
    /// The proofs stored for it.
    pub proofs: Option<&'a Proofs>,
    /// The VRF key: names without stored proofs are hashed with it.
    pub key: Option<&'a VrfPrivateKey>,
}

/// The fields of NSEC5 RDATA.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Nsec5<'a> {
    pub(crate) tag: u16,
    pub(crate) flags: u8,
    pub(crate) next: &'a [u8],
    pub(crate) bitmap: &'a [u8],
}

impl<'a> Nsec5<'a> {
    pub(crate) fn parse(rdata: &'a [u8]) -> Option<Self> {
        let [high, low, flags, length, rest @ ..] = rdata else { return None };
        let (next, bitmap) = rest.split_at_checked(usize::from(*length))?;
        Some(Self { tag: u16::from_be_bytes([*high, *low]), flags: *flags, next, bitmap })
    }
}

/// Whether `owner` is that of a record of a chain: one label, that of a hash, below the apex.
pub(crate) fn is_chain_owner(owner: NameRef<'_>, apex: NameRef<'_>) -> bool {
    hash_of(owner, apex).is_some()
}

/// The hash that the owner of a record of the chain is made of.
pub(crate) fn hash_of(owner: NameRef<'_>, apex: NameRef<'_>) -> Option<Hash> {
    let label = owner.labels().next().filter(|label| label.len() == LABEL)?;
    if owner.parent()? != apex {
        return None;
    }
    let mut upper = [0; LABEL];
    upper.copy_from_slice(label);
    upper.make_ascii_uppercase();
    let mut hash = Hash::default();
    BASE32HEX_NOPAD.decode_mut(&upper, &mut hash).ok()?;
    Some(hash)
}
