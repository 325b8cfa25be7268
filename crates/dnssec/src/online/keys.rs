//! The keys of a zone that is signed online, and the RRsets that each key signs.

use crate::denial::Mechanism;
use crate::keys::{KeyPair, Role, published_keys};
use nonesuch_crypto::{ALGORITHMS, Algorithm, DigestType, SignError, sign_batch};
use nonesuch_proto::{Name, NameRef, Rtype};
use std::fmt;

/// The reason why keys cannot sign a zone online.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OnlineKeyError {
    /// A key belongs to another zone.
    #[error("key {tag} belongs to the zone {owner}, not to {zone}: use only keys of {zone}")]
    WrongZone {
        /// The zone that is served.
        zone: Name,
        /// The key's owner.
        owner: Name,
        /// The key's tag.
        tag: u16,
    },
    /// The DNSKEY record of a private key is not in the zone's DNSKEY RRset. Signatures by this key
    /// would not validate.
    #[error(
        "key {tag} of {zone} is not in the zone's DNSKEY RRset: add its record and sign the RRset again \
        (`nonesuch zone sign --only-keys`), or move the key to another directory"
    )]
    NotPublished {
        /// The apex of the zone that the keys sign.
        zone: Name,
        /// The key's tag.
        tag: u16,
    },
    /// The DNSKEY RRset has an algorithm of which no private key signs data (RFC 4035 §2.2).
    #[error(
        "no active private key of algorithm {algorithm} can sign the data of {zone}, whose DNSKEY RRset has \
        that algorithm: provide its zone-signing key (K*.private; `nonesuch key list` shows which keys are \
        active), or remove the algorithm from the DNSKEY RRset"
    )]
    NoSigner {
        /// The apex of the zone that the keys sign.
        zone: Name,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The DNSKEY RRset has no signature, and no private key can sign it.
    #[error(
        "the DNSKEY RRset of {zone} is not signed, and the key directory has no active private key-signing \
        key: sign the RRset on the host that has this key, with `nonesuch zone sign --only-keys`, and serve \
        the output file"
    )]
    KeysNotSigned {
        /// The apex of the zone that the keys sign.
        zone: Name,
    },
    /// The DNSKEY RRset has no signature, and no private key of one of its algorithms can sign it
    /// (RFC 4035 §2.2).
    #[error(
        "the DNSKEY RRset of {zone} is not signed, and the key directory has no active private key-signing \
        key of {algorithm}: add the key, or sign the RRset on the host that has this key, with `nonesuch \
        zone sign --only-keys`, and serve the output file"
    )]
    KeysNotSignedBy {
        /// The apex of the zone that the keys sign.
        zone: Name,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The cryptographic library cannot sign with a key.
    #[error("key {tag} of {zone} cannot sign ({source}): generate another key")]
    CannotSign {
        /// The apex of the zone that the keys sign.
        zone: Name,
        /// Tag of the key.
        tag: u16,
        /// The error of the library.
        source: SignError,
    },
    /// The zone and the key files have no DNSKEY record.
    #[error("there is no key of the zone {0}: generate one with `nonesuch key generate {0}`")]
    NoKey(Name),
}

/// The private keys of a zone, their roles, and the denial mechanism.
pub struct OnlineKeys {
    zone: Name,
    mechanism: Mechanism,
    pairs: Vec<KeyPair>,
    /// Indexes of the keys that sign the DNSKEY, CDS and CDNSKEY RRsets at the apex. The server
    /// signs these RRsets online only if the zone has no signatures over them.
    key_set_signers: Vec<usize>,
    /// Indexes of the keys that sign all other RRsets. Not empty.
    data_signers: Vec<usize>,
    /// Validity of signatures, in seconds.
    validity: u32,
    /// The row of [`ALGORITHMS`] of the first key that signs data.
    algorithm_row: usize,
    /// Part of the cache key of signatures: the same for the same zone, keys and validity.
    id: u64,
}

impl OnlineKeys {
    /// Assigns roles to `pairs` according to `dnskeys`, the RDATA of all DNSKEY records of the
    /// zone. `validity` is the validity of signatures in seconds.
    ///
    /// # Errors
    /// [`OnlineKeyError::WrongZone`]; [`OnlineKeyError::NotPublished`];
    /// [`OnlineKeyError::NoSigner`]; [`OnlineKeyError::NoKey`] if `dnskeys` has no key that can
    /// sign.
    pub(super) fn new(
        zone: &Name,
        pairs: Vec<KeyPair>,
        dnskeys: &[Vec<u8>],
        mechanism: Mechanism,
        validity: u32,
    ) -> Result<Self, OnlineKeyError> {
        let roles = published_keys(dnskeys);
        let (mut key_set_signers, mut data_signers) = (Vec::new(), Vec::new());
        for (index, pair) in pairs.iter().enumerate() {
            if pair.owner != *zone {
                let (owner, tag) = (pair.owner.clone(), pair.tag());
                return Err(OnlineKeyError::WrongZone { zone: zone.clone(), owner, tag });
            }
            let rdata = pair.dnskey_rdata();
            let Some(published) = roles.iter().find(|published| published.rdata == rdata) else {
                return Err(OnlineKeyError::NotPublished { zone: zone.clone(), tag: pair.tag() });
            };
            if published.role != Role::Zsk {
                key_set_signers.push(index);
            }
            if published.role != Role::Ksk {
                data_signers.push(index);
            }
        }
        let signs_data =
            |algorithm| data_signers.iter().any(|index: &usize| pairs[*index].algorithm() == algorithm);
        if let Some(key) = roles.iter().find(|key| !signs_data(key.algorithm)) {
            return Err(OnlineKeyError::NoSigner { zone: zone.clone(), algorithm: key.algorithm });
        }
        let Some(first) = data_signers.first().map(|index: &usize| pairs[*index].algorithm()) else {
            return Err(OnlineKeyError::NoKey(zone.clone()));
        };
        // The table has the algorithm of every key.
        let algorithm_row = ALGORITHMS.iter().position(|entry| entry.algorithm == first).unwrap_or_default();
        let id = compute_id(zone, &pairs, validity);
        Ok(Self {
            zone: zone.clone(),
            mechanism,
            pairs,
            key_set_signers,
            data_signers,
            validity,
            algorithm_row,
            id,
        })
    }

    /// The apex of the zone that the keys sign.
    #[must_use]
    pub const fn zone(&self) -> &Name {
        &self.zone
    }

    /// The mechanism that generates the denial records.
    #[must_use]
    pub const fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The indexes of the keys that sign an RRset of `rtype` at `owner`: the signers of the key set
    /// for DNSKEY, CDS and CDNSKEY at the apex (RFC 7344 §4.1), and the signers of data for all
    /// others.
    pub(super) fn signers(&self, owner: NameRef<'_>, rtype: Rtype) -> &[usize] {
        let is_key_set = matches!(rtype, Rtype::DNSKEY | Rtype::CDS | Rtype::CDNSKEY);
        if is_key_set && owner == self.zone.view() { &self.key_set_signers } else { &self.data_signers }
    }

    /// The key with this index, which is one of [`OnlineKeys::signers`].
    pub(super) fn pair(&self, index: usize) -> &KeyPair {
        &self.pairs[index]
    }

    /// Length of a signature by this key in octets.
    pub(super) fn signature_octets(&self, index: usize) -> usize {
        self.pair(index).private().signature_octets()
    }

    /// Whether at least one private key signs the DNSKEY RRset.
    pub(super) const fn can_sign_key_set(&self) -> bool {
        !self.key_set_signers.is_empty()
    }

    /// The first algorithm of `dnskeys` for which no private key signs the DNSKEY RRset; `None` if
    /// every algorithm has such a key.
    pub(super) fn unsigned_algorithm(&self, dnskeys: &[Vec<u8>]) -> Option<Algorithm> {
        let mut algorithms = published_keys(dnskeys).into_iter().map(|key| key.algorithm);
        let signs_key_set =
            |algorithm| self.key_set_signers.iter().any(|index| self.pairs[*index].algorithm() == algorithm);
        algorithms.find(|algorithm| !signs_key_set(*algorithm))
    }

    /// Generates a few signatures with each key, to detect keys that cannot sign. Some
    /// cryptographic libraries initialise data at the first signature, which then does not delay
    /// the first response.
    ///
    /// # Errors
    /// [`OnlineKeyError::CannotSign`].
    pub(super) fn test_all(&self) -> Result<(), OnlineKeyError> {
        let mut signatures = Vec::new();
        for pair in &self.pairs {
            let signed = sign_batch(pair.private(), &[&b"nonesuch"[..]; 8], &mut signatures);
            let (zone, tag) = (self.zone.clone(), pair.tag());
            signed.map_err(|source| OnlineKeyError::CannotSign { zone, tag, source })?;
        }
        Ok(())
    }

    /// Tags of the private keys that sign only the key set. They should not be on the server.
    pub fn key_signing_tags(&self) -> impl Iterator<Item = u16> + '_ {
        let only_key_set = self.key_set_signers.iter().filter(|index| !self.data_signers.contains(*index));
        only_key_set.map(|index| self.pairs[*index].tag())
    }

    /// Two lists of DNSKEY RDATA: the keys that sign the key set if the zone has no signatures over
    /// it, and the keys that sign all other RRsets.
    #[must_use]
    pub fn signing_dnskeys(&self) -> [Vec<Vec<u8>>; 2] {
        [&self.key_set_signers, &self.data_signers]
            .map(|indices| indices.iter().map(|index| self.pairs[*index].dnskey_rdata()).collect())
    }

    /// Validity of signatures, in seconds.
    pub(super) const fn validity(&self) -> u32 {
        self.validity
    }

    /// The row of [`ALGORITHMS`] under which cache lookups are counted.
    pub(super) const fn algorithm_row(&self) -> usize {
        self.algorithm_row
    }

    /// Part of the cache key of signatures by these keys.
    pub(super) const fn id(&self) -> u64 {
        self.id
    }
}

impl fmt::Debug for OnlineKeys {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let tags: Vec<u16> = self.pairs.iter().map(KeyPair::tag).collect();
        f.debug_struct("OnlineKeys").field("zone", &self.zone).field("tags", &tags).finish_non_exhaustive()
    }
}

/// Returns the [`OnlineKeys::id`] of keys and their validity.
fn compute_id(zone: &Name, pairs: &[KeyPair], validity: u32) -> u64 {
    let mut all = validity.to_be_bytes().to_vec();
    all.extend_from_slice(zone.wire());
    pairs.iter().for_each(|pair| all.extend_from_slice(&pair.dnskey_rdata()));
    short_digest(&all)
}

/// The first eight octets of the SHA-256 digest of `octets`, as a number (big-endian).
pub(super) fn short_digest(octets: &[u8]) -> u64 {
    let digest = DigestType::SHA256.digest(&[octets]).unwrap_or_default();
    digest.first_chunk().map_or(0, |head| u64::from_be_bytes(*head))
}
