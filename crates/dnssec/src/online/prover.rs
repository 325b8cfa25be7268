//! The VRF key of a zone with NSEC5 and its stored proofs. They are the only secrets of the zone
//! that its server has. Neither of them can sign.

use super::keys::short_digest;
use super::stored_proofs::StoredProofs;
use crate::denial::is_generated_by_signing;
use crate::denial::nsec5::{Nsec5DirectoryError, Proofs, StoredVrfKey};
use crate::keys::Nsec5Key;
use nonesuch_crypto::vrf::{VRF_ALGORITHMS, VRF_HASH_OCTETS, VrfPrivateKey};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_zone::{Contents, Image};
use std::fmt;
use std::path::{Path, PathBuf};

/// Approximate number of stored proofs that a new prover generates again and compares, to detect
/// proofs of another key at once.
const SAMPLE_COUNT: usize = 4;

/// The reason why a VRF key or stored proofs cannot serve a zone.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ProverError {
    /// The zone has no NSEC5KEY record of this key.
    #[error(
        "the VRF key {tag} is not among the NSEC5KEY records of {zone}: name the directory of the VRF key with which the zone was signed"
    )]
    KeyNotInZone {
        /// The zone.
        zone: Name,
        /// Tag of the key.
        tag: u16,
    },
    /// The chain is of another key. During a rollover, the zone has both keys.
    #[error(
        "the NSEC5 records of {zone} belong to VRF key {chain}, not to {tag}: name the directory of the VRF key with which the zone was signed"
    )]
    KeyNotOfChain {
        /// The zone.
        zone: Name,
        /// Tag of the key.
        tag: u16,
        /// Key tag in the NSEC5 records.
        chain: u16,
    },
    /// The VRF key equals a DNSKEY or CDNSKEY of the zone, so the server could sign the zone.
    #[error(
        "the VRF key {tag} of {zone} is also its DNSKEY {dnskey}: anyone who obtains the VRF key of this \
        server could sign the zone; generate another VRF key and sign the zone again"
    )]
    SigningKey {
        /// The zone.
        zone: Name,
        /// Tag of the VRF key.
        tag: u16,
        /// Tag of the DNSKEY or CDNSKEY record.
        dnskey: u16,
    },
    /// The proofs are for another zone or key.
    #[error(
        "the stored proofs do not belong to the zone {zone} and VRF key {tag}: sign the zone again, which regenerates the proofs"
    )]
    ForeignProofs {
        /// The zone.
        zone: Name,
        /// Tag of the key.
        tag: u16,
    },
    /// The proofs differ from those that the key generates.
    #[error(
        "the stored proofs of {zone} do not match its VRF key: sign the zone again, which regenerates the proofs"
    )]
    WrongProofs {
        /// The zone.
        zone: Name,
    },
}

/// The reason why a server cannot use the directory with the VRF key and the stored proofs of a
/// zone.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadProverError {
    /// A file cannot be read or is malformed.
    #[error(transparent)]
    Directory(#[from] Nsec5DirectoryError),
    /// The directory has a signing key.
    #[error(
        "{}: a signing key in a directory that the server of {zone} reads: with NSEC5, the server must have \
        no signing key, so that an attacker who controls the server cannot forge data; move the key to a \
        separate directory",
        path.display()
    )]
    SigningKey {
        /// The file.
        path: PathBuf,
        /// The zone.
        zone: Name,
    },
    /// The zone publishes no VRF key of the directory.
    #[error(
        "{}: no VRF key of {zone} in this directory is among its NSEC5KEY records: name the directory of the VRF key with which the zone was signed",
        dir.display()
    )]
    NoKey {
        /// The directory.
        dir: PathBuf,
        /// The zone.
        zone: Name,
    },
    /// The key or the proofs are not suitable for the zone.
    #[error("{}: {source}", dir.display())]
    Prover {
        /// The directory.
        dir: PathBuf,
        /// The fault.
        source: ProverError,
    },
}

/// The types of records with keys that sign the zone now (DNSKEY) or later (CDNSKEY).
const SIGNING_KEY_TYPES: [Rtype; 2] = [Rtype::DNSKEY, Rtype::CDNSKEY];

/// The properties of a zone with NSEC5 that the VRF key and the stored proofs must match. They are
/// available from the records or from an image.
#[derive(Clone, Debug)]
pub struct Nsec5Zone {
    apex: Name,
    /// RDATA of the NSEC5KEY records.
    keys: Vec<Vec<u8>>,
    /// RDATA of the DNSKEY and CDNSKEY records.
    signing_keys: Vec<Vec<u8>>,
    /// Key tag in the NSEC5 records of the chain; `None` if the zone has no chain.
    chain_tag: Option<u16>,
}

impl Nsec5Zone {
    /// Reads the properties from the records of a zone.
    #[must_use]
    pub fn of_contents(zone: &Contents) -> Self {
        let apex = zone.apex().view();
        let rdatas = |rtype| zone.apex_rrset(rtype).into_iter().flat_map(|rrset| rrset.rdatas());
        let chain_nodes =
            zone.nodes().filter(|node| is_generated_by_signing(Rtype::NSEC5, node.name(), apex));
        let mut chain_rdatas =
            chain_nodes.filter_map(|node| node.rrset(Rtype::NSEC5)).flat_map(|rrset| rrset.rdatas());
        Self {
            apex: zone.apex().clone(),
            keys: rdatas(Rtype::NSEC5KEY).map(<[u8]>::to_vec).collect(),
            signing_keys: SIGNING_KEY_TYPES.into_iter().flat_map(rdatas).map(<[u8]>::to_vec).collect(),
            chain_tag: chain_rdatas.find_map(|rdata| rdata.first_chunk().map(|tag| u16::from_be_bytes(*tag))),
        }
    }

    /// Reads the properties from an image.
    #[must_use]
    pub fn of_image(image: &Image) -> Self {
        Self {
            apex: image.apex().to_name(),
            keys: image.apex_rdatas(Rtype::NSEC5KEY),
            signing_keys: SIGNING_KEY_TYPES.into_iter().flat_map(|rtype| image.apex_rdatas(rtype)).collect(),
            chain_tag: image.nsec5_key().map(|(tag, _)| tag),
        }
    }

    /// The zone's apex.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// Whether the zone has the NSEC5KEY record of `key`.
    fn publishes(&self, key: &VrfPrivateKey) -> bool {
        let public = Nsec5Key::of(key);
        self.keys.iter().any(|rdata| rdata == public.rdata())
    }

    /// Whether the zone has a chain of another key than `key`.
    fn is_of_other_key(&self, key: &VrfPrivateKey) -> bool {
        self.chain_tag.is_some_and(|chain_tag| chain_tag != Nsec5Key::of(key).tag())
    }
}

/// The VRF key and the stored proofs of one zone.
pub struct Nsec5Prover {
    key: VrfPrivateKey,
    tag: u16,
    stored: Option<StoredProofs>,
    /// The row of [`VRF_ALGORITHMS`] under which cache lookups are counted.
    algorithm_row: usize,
    id: u64,
}

impl Nsec5Prover {
    /// Creates the prover of `zone` with its key and its stored proofs.
    ///
    /// # Errors
    /// All variants of [`ProverError`].
    pub fn new(zone: &Contents, key: VrfPrivateKey, proofs: Option<Proofs>) -> Result<Self, ProverError> {
        Self::for_zone(&Nsec5Zone::of_contents(zone), key, proofs)
    }

    /// As [`Nsec5Prover::new`], with the properties of the zone in place of its records.
    ///
    /// # Errors
    /// As [`Nsec5Prover::new`].
    pub fn for_zone(
        zone: &Nsec5Zone,
        key: VrfPrivateKey,
        proofs: Option<Proofs>,
    ) -> Result<Self, ProverError> {
        let public = Nsec5Key::of(&key);
        let (tag, apex) = (public.tag(), zone.apex());
        if !zone.publishes(&key) {
            return Err(ProverError::KeyNotInZone { zone: apex.clone(), tag });
        }
        // During a rollover the zone publishes several VRF keys, and the server may have all of
        // them.
        for published in zone.keys.iter().filter_map(|rdata| Nsec5Key::from_rdata(rdata)) {
            let signing_keys = zone.signing_keys.iter().map(Vec::as_slice);
            if let Some(dnskey) = published.find_signing_key(signing_keys) {
                return Err(ProverError::SigningKey { zone: apex.clone(), tag: published.tag(), dnskey });
            }
        }
        if let Some(chain) = zone.chain_tag.filter(|chain| *chain != tag) {
            return Err(ProverError::KeyNotOfChain { zone: apex.clone(), tag, chain });
        }
        if proofs.as_ref().is_some_and(|proofs| proofs.zone() != apex || *proofs.key() != public) {
            return Err(ProverError::ForeignProofs { zone: apex.clone(), tag });
        }
        let stored = proofs.and_then(StoredProofs::new);
        // The table has the algorithm of every key.
        let algorithm_row =
            VRF_ALGORITHMS.iter().position(|entry| entry.algorithm == key.algorithm()).unwrap_or_default();
        let prover = Self { key, tag, stored, algorithm_row, id: short_digest(public.rdata()) };
        if prover.has_wrong_proofs() {
            return Err(ProverError::WrongProofs { zone: apex.clone() });
        }
        Ok(prover)
    }

    /// Creates the prover of `zone` with one of the `keys` in the directory `dir`, and with
    /// `proofs`, which are stored there. During a rollover, selects the key of the chain.
    ///
    /// # Errors
    /// [`LoadProverError::NoKey`]; [`LoadProverError::Prover`] with an error of
    /// [`Nsec5Prover::new`].
    pub fn from_directory(
        zone: &Nsec5Zone,
        dir: &Path,
        mut keys: Vec<StoredVrfKey>,
        proofs: Option<Proofs>,
    ) -> Result<Self, LoadProverError> {
        let dir = || dir.to_path_buf();
        // During a rollover both keys are in the zone, and the chain is of one of them.
        let is_of_chain = |key: &VrfPrivateKey| zone.publishes(key) && !zone.is_of_other_key(key);
        let index = keys.iter().position(|stored| is_of_chain(&stored.key));
        let Some(index) = index.or_else(|| keys.iter().position(|stored| zone.publishes(&stored.key))) else {
            return Err(LoadProverError::NoKey { dir: dir(), zone: zone.apex().clone() });
        };
        let key = keys.swap_remove(index).key;
        Self::for_zone(zone, key, proofs).map_err(|source| LoadProverError::Prover { dir: dir(), source })
    }

    /// Generates a few of the stored proofs again. Returns whether one of them differs.
    fn has_wrong_proofs(&self) -> bool {
        let Some(stored) = &self.stored else { return false };
        let apex = stored.zone();
        let step = (stored.len() / SAMPLE_COUNT).max(1);
        stored.entries().step_by(step).any(|entry| {
            let mut proof = Vec::new();
            let hash = self.key.prove(entry.full_name(apex).wire(), &mut proof);
            hash.is_ok_and(|hash| hash != *entry.hash || proof != entry.proof)
        })
    }

    /// Key tag, as in the NSEC5 and NSEC5PROOF records.
    #[must_use]
    pub const fn tag(&self) -> u16 {
        self.tag
    }

    /// Number of stored proofs.
    #[must_use]
    pub fn stored_count(&self) -> usize {
        self.stored.as_ref().map_or(0, StoredProofs::len)
    }

    /// The stored hash and proof of `name`, which must be in lower case; `None` if no proof is
    /// stored.
    pub(super) fn stored(&self, name: NameRef<'_>) -> Option<(&[u8; VRF_HASH_OCTETS], &[u8])> {
        self.stored.as_ref()?.find(name)
    }

    /// The VRF key.
    #[must_use]
    pub const fn key(&self) -> &VrfPrivateKey {
        &self.key
    }

    /// The stored proofs.
    #[must_use]
    pub fn proofs(&self) -> Option<&Proofs> {
        self.stored.as_ref().map(StoredProofs::proofs)
    }

    pub(super) const fn algorithm_row(&self) -> usize {
        self.algorithm_row
    }

    pub(super) const fn id(&self) -> u64 {
        self.id
    }
}

impl fmt::Debug for Nsec5Prover {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Nsec5Prover")
            .field("tag", &self.tag)
            .field("stored", &self.stored_count())
            .finish_non_exhaustive()
    }
}
