//! NSEC5 (draft-vcelak-nsec5; "Making NSEC5 Practical for DNSSEC"): a chain over the outputs of a
//! verifiable random function (VRF, RFC 9381). Only the holder of the VRF key can compute the
//! outputs, so others cannot enumerate the zone offline. The VRF key does not sign, so a thief of
//! the key cannot forge records.
//!
//! [`prove_chain`] first generates the proofs for all names of the chain. The signer then generates
//! the chain from the hashes in the proofs, so it never needs the VRF key. The server of the zone
//! stores the proofs ([`Proofs`]) with the zone.

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
pub(crate) use proofs::select_chain_names;
pub use proofs::{Nsec5Chain, ProofEntry, Proofs, ProveOptions, ProveStatistics, prove_chain};
pub(crate) use requirements::nsec5key_records;
pub use requirements::{check_nsec5_requirements, check_vrf_key_cannot_sign};

use data_encoding::BASE32HEX_NOPAD;
use nonesuch_crypto::vrf::{VRF_HASH_OCTETS, VrfPrivateKey};
use nonesuch_proto::{MAX_NAME, NameRef};

/// The opt-out flag: set on every record of an opt-out chain.
pub const OPT_OUT_FLAG: u8 = 1;
/// The Wildcard flag: a wildcard exists directly below the name of the record.
pub(crate) const WILDCARD_FLAG: u8 = 2;
/// Length of the first label of a hashed owner name: 32 octets in base32hex.
pub(crate) const HASH_LABEL_OCTETS: usize = 52;
/// Maximum length in octets, in wire format, of an apex below which an NSEC5 owner name fits.
pub const MAX_APEX_OCTETS: usize = MAX_NAME - 1 - HASH_LABEL_OCTETS;

/// The VRF output of a name.
pub(crate) type Hash = [u8; VRF_HASH_OCTETS];

/// The private data with which the verifier matches the names of a zone to its NSEC5 records.
#[derive(Clone, Copy, Debug, Default)]
pub struct Nsec5Evidence<'a> {
    /// The proofs stored for the zone.
    pub proofs: Option<&'a Proofs>,
    /// The VRF key, for the hashes of names without stored proofs.
    pub key: Option<&'a VrfPrivateKey>,
}

/// The fields of NSEC5 RDATA.
#[derive(Clone, Copy, Debug)]
pub struct Nsec5<'a> {
    /// Key tag of the NSEC5KEY record.
    pub tag: u16,
    /// The flags.
    pub flags: u8,
    /// The next hash.
    pub next: &'a [u8],
    /// The type bit map.
    pub bitmap: &'a [u8],
}

impl<'a> Nsec5<'a> {
    /// Parses NSEC5 RDATA; `None` if they are truncated.
    #[must_use]
    pub fn parse(rdata: &'a [u8]) -> Option<Self> {
        let [high, low, flags, length, rest @ ..] = rdata else { return None };
        let (next, bitmap) = rest.split_at_checked(usize::from(*length))?;
        Some(Self { tag: u16::from_be_bytes([*high, *low]), flags: *flags, next, bitmap })
    }
}

/// Whether `owner` can own a record of a chain: one label, which encodes a hash, below the apex.
pub(crate) fn is_chain_owner(owner: NameRef<'_>, apex: NameRef<'_>) -> bool {
    decode_owner(owner, apex).is_some()
}

/// The hash that the first label of `owner` encodes; `None` if `owner` is not the name of an NSEC5
/// record of the zone at `apex`.
#[must_use]
pub fn decode_owner(owner: NameRef<'_>, apex: NameRef<'_>) -> Option<Hash> {
    let label = owner.labels().next().filter(|label| label.len() == HASH_LABEL_OCTETS)?;
    if owner.parent()? != apex {
        return None;
    }
    let mut upper = [0; HASH_LABEL_OCTETS];
    upper.copy_from_slice(label);
    upper.make_ascii_uppercase();
    let mut hash = Hash::default();
    BASE32HEX_NOPAD.decode_mut(&upper, &mut hash).ok()?;
    Some(hash)
}
