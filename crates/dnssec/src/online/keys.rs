//! The keys of a zone that is signed when asked: which of them the server has, and what each signs.

use crate::denial::Mechanism;
use crate::keys::{KeyPair, Role, published_roles};
use nonesuch_crypto::{ALGORITHMS, Algorithm, DigestType, SignError, sign_batch};
use nonesuch_proto::{Name, NameRef, Rtype};
use std::fmt;

/// Why keys cannot sign a zone online.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum OnlineKeyError {
    /// A key is another zone's.
    #[error("key {tag} belongs to the zone {owner}, not to {zone}: give the keys of {zone} only")]
    WrongZone {
        /// The zone that is served.
        zone: Name,
        /// The key's owner.
        owner: Name,
        /// The key's tag.
        tag: u16,
    },
    /// A private key is not in the zone's DNSKEY RRset: no signature of it would validate.
    #[error(
        "key {tag} of {zone} is not in the zone's DNSKEY RRset: add its record and sign the RRset again \
         (`nonesuch zone sign --only-keys`), or move the key to another folder"
    )]
    NotPublished {
        /// The zone.
        zone: Name,
        /// The key's tag.
        tag: u16,
    },
    /// No private key of an algorithm signs data.
    #[error(
        "no active private key of algorithm {algorithm} signs the data of {zone}, whose DNSKEY RRset has that algorithm: give its \
         zone-signing key (K*.private; `nonesuch key list` shows which keys are active), or take the algorithm out of the DNSKEY RRset"
    )]
    NoSigner {
        /// The zone.
        zone: Name,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// The DNSKEY RRset has no signature, and no key could sign it.
    #[error(
        "the DNSKEY RRset of {zone} is not signed, and the folder has no active private key-signing key: sign it where that key is, \
         with `nonesuch zone sign --only-keys`, and serve that file"
    )]
    KeysNotSigned {
        /// The zone.
        zone: Name,
    },
    /// The DNSKEY RRset has no signature, and of one of its algorithms no key could sign it (RFC 4035 §2.2).
    #[error(
        "the DNSKEY RRset of {zone} is not signed, and the folder has no active private key-signing key of {algorithm}: add it, or \
         sign where that key is, with `nonesuch zone sign --only-keys`, and serve that file"
    )]
    KeysNotSignedBy {
        /// The zone.
        zone: Name,
        /// The algorithm.
        algorithm: Algorithm,
    },
    /// A key cannot sign.
    #[error("key {tag} of {zone} makes no signature ({source}): make another one")]
    CannotSign {
        /// The zone.
        zone: Name,
        /// Tag of the key.
        tag: u16,
        /// Why.
        source: SignError,
    },
    /// There is no DNSKEY record to publish.
    #[error("there is no key of the zone {0}: make one with `nonesuch key generate {0}`")]
    NoKey(Name),
}

/// The private keys of a zone, what signs what, and how the zone denies.
pub struct OnlineKeys {
    zone: Name,
    mechanism: Mechanism,
    pairs: Vec<KeyPair>,
    /// Indices of the keys that sign DNSKEY, CDS and CDNSKEY RRsets, where those come without signatures.
    for_keys: Vec<usize>,
    /// Indices of the keys that sign all other RRsets.
    for_data: Vec<usize>,
    validity: u32,
    /// The row of [`ALGORITHMS`] of the first key that signs data.
    algorithm_row: usize,
    /// What signatures are cached under: the same keys and validity have the same.
    id: u64,
}

impl OnlineKeys {
    /// Gives each of `pairs` its role, by all of the zone's DNSKEY records. `validity` in seconds.
    ///
    /// # Errors
    /// Where a key is another zone's or not published, or an algorithm has no key that signs data (RFC 4035 §2.2).
    pub(super) fn new(
        zone: &Name,
        pairs: Vec<KeyPair>,
        dnskeys: &[Vec<u8>],
        mechanism: Mechanism,
        validity: u32,
    ) -> Result<Self, OnlineKeyError> {
        let roles = published_roles(dnskeys);
        let (mut for_keys, mut for_data) = (Vec::new(), Vec::new());
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
                for_keys.push(index);
            }
            if published.role != Role::Ksk {
                for_data.push(index);
            }
        }
        let signs = |algorithm| for_data.iter().any(|index: &usize| pairs[*index].algorithm() == algorithm);
        if let Some(key) = roles.iter().find(|key| !signs(key.algorithm)) {
            return Err(OnlineKeyError::NoSigner { zone: zone.clone(), algorithm: key.algorithm });
        }
        let Some(first) = for_data.first().map(|index: &usize| pairs[*index].algorithm()) else {
            return Err(OnlineKeyError::NoKey(zone.clone()));
        };
        // A key is of an algorithm that the table has.
        let algorithm_row = ALGORITHMS.iter().position(|entry| entry.algorithm == first).unwrap_or_default();
        let id = identify(zone, &pairs, validity);
        Ok(Self { zone: zone.clone(), mechanism, pairs, for_keys, for_data, validity, algorithm_row, id })
    }

    /// The zone.
    #[must_use]
    pub const fn zone(&self) -> &Name {
        &self.zone
    }

    /// The mechanism whose records are generated.
    #[must_use]
    pub const fn mechanism(&self) -> Mechanism {
        self.mechanism
    }

    /// The keys that sign an RRset of `rtype` at `owner`: those of the keys at the apex (RFC 7344 §4.1), or those of data.
    pub(super) fn signers(&self, owner: NameRef<'_>, rtype: Rtype) -> &[usize] {
        let of_keys = matches!(rtype, Rtype::DNSKEY | Rtype::CDS | Rtype::CDNSKEY);
        if of_keys && owner == self.zone.view() { &self.for_keys } else { &self.for_data }
    }

    /// Number of private keys.
    pub(super) const fn len(&self) -> usize {
        self.pairs.len()
    }

    /// The key at one of the places that [`OnlineKeys::signers`] gives.
    pub(super) fn pair(&self, index: usize) -> &KeyPair {
        &self.pairs[index]
    }

    /// Octets of a signature of that key; for RSA the minimum.
    pub(super) fn signature_octets(&self, index: usize) -> usize {
        let pair = self.pair(index);
        // RFC 3110 §2: an RSA key is the modulus, as long as the signature, behind one octet and an exponent of mostly three.
        let modulus = || pair.dnskey_rdata().len().saturating_sub(4 + 4);
        let entry = pair.algorithm().entry();
        entry.and_then(|entry| entry.scheme.signature_octets).unwrap_or_else(modulus)
    }

    /// Whether a key here can sign the DNSKEY RRset.
    pub(super) const fn signs_keys(&self) -> bool {
        !self.for_keys.is_empty()
    }

    /// An algorithm of `dnskeys` that no key here can sign the DNSKEY RRset with.
    pub(super) fn unsigned_algorithm(&self, dnskeys: &[Vec<u8>]) -> Option<Algorithm> {
        let mut algorithms = published_roles(dnskeys).into_iter().map(|key| key.algorithm);
        let signs = |algorithm| self.for_keys.iter().any(|index| self.pairs[*index].algorithm() == algorithm);
        algorithms.find(|algorithm| !signs(*algorithm))
    }

    /// Makes a few signatures with each key: what libraries make at the first one is there when the first answer wants it.
    pub(super) fn try_all(&self) -> Result<(), OnlineKeyError> {
        let mut signatures = Vec::new();
        for pair in &self.pairs {
            let signed = sign_batch(pair.private(), &[&b"nonesuch"[..]; 8], &mut signatures);
            let (zone, tag) = (self.zone.clone(), pair.tag());
            signed.map_err(|source| OnlineKeyError::CannotSign { zone, tag, source })?;
        }
        Ok(())
    }

    /// Tags of private keys that sign nothing but keys: better kept elsewhere.
    pub fn key_signing_tags(&self) -> impl Iterator<Item = u16> + '_ {
        let only_keys = self.for_keys.iter().filter(|index| !self.for_data.contains(*index));
        only_keys.map(|index| self.pairs[*index].tag())
    }

    /// RDATA of the DNSKEY records of two sets of keys: the signers of the key set, where that comes without signatures, and the
    /// signers of all other RRsets.
    #[must_use]
    pub fn signing_dnskeys(&self) -> [Vec<Vec<u8>>; 2] {
        [&self.for_keys, &self.for_data]
            .map(|indices| indices.iter().map(|index| self.pairs[*index].dnskey_rdata()).collect())
    }

    /// Validity of signatures, in seconds.
    pub(super) const fn validity(&self) -> u32 {
        self.validity
    }

    /// The row of [`ALGORITHMS`] that searches in the cache are counted by.
    pub(super) const fn algorithm_row(&self) -> usize {
        self.algorithm_row
    }

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

fn identify(zone: &Name, pairs: &[KeyPair], validity: u32) -> u64 {
    let mut all = validity.to_be_bytes().to_vec();
    all.extend_from_slice(zone.wire());
    pairs.iter().for_each(|pair| all.extend_from_slice(&pair.dnskey_rdata()));
    first_octets(&all)
}

/// The first eight octets of a digest.
pub(super) fn first_octets(octets: &[u8]) -> u64 {
    let digest = DigestType::SHA256.digest(&[octets]).unwrap_or_default();
    digest.first_chunk().map_or(0, |head| u64::from_be_bytes(*head))
}
