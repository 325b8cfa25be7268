//! The trusted keys of a zone: its DNSKEY RRset and its NSEC5KEY RRset. Each key is parsed and
//! validated once.

use super::budget::ValidationLimits;
use super::entry_points::NoEntryPoint;
use super::policy::{AlgorithmPolicy, is_post_quantum};
use super::reason::{BogusReason, InsecureReason};
use crate::keys::{Nsec5Key, PROTOCOL, REVOKE, ZONE_KEY};
use nonesuch_crypto::vrf::{VRF_HASH_OCTETS, VrfPublicKey, hash_of_valid_proof};
use nonesuch_crypto::{Algorithm, DigestType, PublicKey, key_tag};
use nonesuch_proto::{Name, NameRef};

/// A parsed DNSKEY that may verify signatures.
#[derive(Clone, Debug)]
pub(super) struct ZoneKey {
    pub(super) tag: u16,
    pub(super) algorithm: Algorithm,
    pub(super) public: PublicKey,
    pub(super) digest: KeyDigest,
}

/// A parsed NSEC5KEY, which verifies NSEC5 proofs.
#[derive(Clone, Debug)]
pub(crate) struct ProofKey {
    pub(super) tag: u16,
    pub(super) public: VrfPublicKey,
    pub(super) digest: KeyDigest,
}

/// The first octets of the SHA-256 digest of DNSKEY or NSEC5KEY RDATA.
pub(super) type KeyDigest = [u8; 16];

/// The usability of a DNSKEY RRset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum KeySetStatus {
    /// The RRset has keys to verify with.
    Usable,
    /// The RRset has no key: nothing is trusted.
    Empty,
    /// None of its zone keys has a supported algorithm: the zone is Insecure.
    Unsupported,
    /// The zone is Bogus.
    Bogus(BogusReason),
}

/// The NSEC5KEY RRset.
#[derive(Clone, Debug)]
enum Nsec5Keys {
    Usable(Vec<ProofKey>),
    /// The RRset is missing or not usable. Denials by NSEC5 are Bogus for this reason.
    Unusable(BogusReason),
}

/// The trusted keys of one zone.
///
/// The caller is responsible for the trust: it checks the DNSKEY RRset against a trust anchor or DS
/// record, and the NSEC5KEY RRset with [`TrustedKeys::learn_nsec5_keys`].
#[derive(Clone, Debug)]
pub struct TrustedKeys {
    apex: Name,
    keys: Vec<ZoneKey>,
    /// Tags of keys without the zone key flag, which verify nothing.
    other_tags: Vec<u16>,
    status: KeySetStatus,
    nsec5: Nsec5Keys,
}

impl TrustedKeys {
    /// As [`with_policy`](Self::with_policy), with [`AlgorithmPolicy::ALL`].
    #[must_use]
    pub fn new<'k>(
        apex: &Name,
        dnskeys: impl IntoIterator<Item = &'k [u8]>,
        limits: &ValidationLimits,
    ) -> Self {
        Self::with_policy(apex, dnskeys, AlgorithmPolicy::ALL, limits)
    }

    /// Creates the trusted keys from the RDATA of the DNSKEY RRset of the zone at `apex`. It
    /// ignores keys without the zone key flag or with another protocol than 3 (RFC 4034 §2.1), and
    /// revoked keys (RFC 5011 §2.1).
    #[must_use]
    pub fn with_policy<'k>(
        apex: &Name,
        dnskeys: impl IntoIterator<Item = &'k [u8]>,
        policy: AlgorithmPolicy,
        limits: &ValidationLimits,
    ) -> Self {
        let distinct = distinct(dnskeys, limits.dnskeys);
        let (mut keys, mut other_tags) = (Vec::new(), Vec::new());
        let (mut is_malformed, mut is_unsupported) = (false, false);
        for rdata in distinct.iter().take(limits.dnskeys) {
            let [_, _, _, algorithm, public @ ..] = *rdata else { continue };
            if !has_zone_key_flags(rdata) {
                other_tags.extend((!is_zone_key(rdata)).then(|| key_tag(rdata)));
                continue;
            }
            let algorithm = Algorithm(*algorithm);
            match policy.parse(algorithm, public) {
                Ok(public) => {
                    keys.push(ZoneKey { tag: key_tag(rdata), algorithm, public, digest: digest(rdata) })
                }
                Err(error) if error.is_unusable() => is_unsupported = true,
                Err(_) => is_malformed = true,
            }
        }
        let status = match distinct.len() {
            0 => KeySetStatus::Empty,
            count if count > limits.dnskeys => KeySetStatus::Bogus(BogusReason::TooManyKeys(count)),
            _ if !keys.is_empty() => KeySetStatus::Usable,
            _ if is_unsupported && !is_malformed => KeySetStatus::Unsupported,
            count if count == other_tags.len() => KeySetStatus::Bogus(BogusReason::NoZoneKeyFlag),
            _ => KeySetStatus::Bogus(BogusReason::NoUsableKey),
        };
        let nsec5 = Nsec5Keys::Unusable(BogusReason::NoNsec5Key);
        Self { apex: apex.view().to_canonical(), keys, other_tags, status, nsec5 }
    }

    /// Sets the NSEC5 keys from the RDATA of the NSEC5KEY RRset, which must be Secure. It validates
    /// each key of a known algorithm once (RFC 9381 §5.4.5) and ignores keys of unknown algorithms.
    /// Denials by NSEC5 are Bogus if no key is usable, two keys have the same tag, or the number of
    /// keys exceeds [`ValidationLimits::nsec5_keys`].
    pub fn set_nsec5_keys<'k>(
        &mut self,
        nsec5_keys: impl IntoIterator<Item = &'k [u8]>,
        limits: &ValidationLimits,
    ) {
        let distinct = distinct(nsec5_keys, limits.nsec5_keys);
        self.nsec5 = match read_nsec5_keys(&distinct, limits) {
            Ok(keys) => Nsec5Keys::Usable(keys),
            Err(reason) => Nsec5Keys::Unusable(reason),
        };
    }

    /// Returns the apex of the zone, in lower case.
    #[must_use]
    pub fn apex(&self) -> NameRef<'_> {
        self.apex.view()
    }

    /// Keeps only the keys of post-quantum algorithms.
    pub fn keep_post_quantum(&mut self) {
        self.keys.retain(|key| is_post_quantum(key.algorithm));
        if self.keys.is_empty() && self.status == KeySetStatus::Usable {
            self.status = KeySetStatus::Bogus(BogusReason::NoUsableKey);
        }
    }

    /// Whether a key has an alias algorithm number, so that the zone may have NSEC5 records.
    #[must_use]
    pub fn may_use_nsec5(&self) -> bool {
        self.keys.iter().any(|key| key.algorithm.without_alias() != key.algorithm)
    }

    /// Returns the key tags and algorithms of the keys that verify signatures.
    pub fn tags(&self) -> impl Iterator<Item = (u16, Algorithm)> {
        self.keys.iter().map(|key| (key.tag, key.algorithm))
    }

    /// Whether the NSEC5KEY RRset is known.
    #[must_use]
    pub const fn knows_nsec5_keys(&self) -> bool {
        !matches!(self.nsec5, Nsec5Keys::Unusable(BogusReason::NoNsec5Key))
    }

    /// Octets of memory that the keys take, approximately ([`PublicKey::memory_octets`]).
    #[must_use]
    pub fn memory_octets(&self) -> usize {
        let nsec5 = self.nsec5_keys().unwrap_or_default().iter().map(|key| key.public.memory_octets());
        nsec5.sum::<usize>()
            + self.keys.iter().map(|key| key.public.memory_octets() + size_of::<ZoneKey>()).sum::<usize>()
    }

    /// Returns the same keys without the tables that [`verify_jobs`](super::verify_jobs) has built for some of
    /// them; `None` if none has a table.
    #[must_use]
    pub fn without_tables(&self) -> Option<Self> {
        let mut keys = self.clone();
        let mut had_table = false;
        for key in &mut keys.keys {
            if let Some(public) = key.public.without_table() {
                (key.public, had_table) = (public, true);
            }
        }
        had_table.then_some(keys)
    }

    /// Why no key can verify; `None` if one can.
    pub(super) fn unusable_reason(&self) -> Option<NoEntryPoint> {
        match &self.status {
            KeySetStatus::Usable => None,
            KeySetStatus::Empty => Some(NoEntryPoint::Bogus(BogusReason::NoMatchingKey)),
            KeySetStatus::Unsupported => Some(NoEntryPoint::Insecure(InsecureReason::UnsupportedAlgorithms)),
            KeySetStatus::Bogus(reason) => Some(NoEntryPoint::Bogus(reason.clone())),
        }
    }

    /// Returns the key tag and the hash in the RDATA of an NSEC5PROOF record that a validation with
    /// these keys found valid. It does not verify the proof. `None` if no key has the tag, or the
    /// proof has a wrong length.
    #[must_use]
    pub fn nsec5_hash(&self, proof_rdata: &[u8]) -> Option<(u16, [u8; VRF_HASH_OCTETS])> {
        let (tag, proof) = proof_rdata.split_first_chunk()?;
        let tag = u16::from_be_bytes(*tag);
        let key = self.nsec5_keys().ok()?.iter().find(|key| key.tag == tag)?;
        Some((tag, hash_of_valid_proof(key.public.algorithm(), proof).ok()?))
    }

    pub(super) const fn key_set_status(&self) -> &KeySetStatus {
        &self.status
    }

    /// Returns the keys with this tag and algorithm, at most `max_keys`. Several keys may have the
    /// same tag.
    pub(super) fn candidates(
        &self,
        tag: u16,
        algorithm: Algorithm,
        max_keys: usize,
    ) -> impl Iterator<Item = &ZoneKey> {
        self.keys.iter().filter(move |key| key.tag == tag && key.algorithm == algorithm).take(max_keys)
    }

    /// Whether a DNSKEY record with this tag has no zone key flag.
    pub(super) fn lacks_zone_flag(&self, tag: u16) -> bool {
        self.other_tags.contains(&tag)
    }

    /// Returns the keys that verify NSEC5 proofs.
    ///
    /// # Errors
    /// The reason for which the zone has no usable NSEC5KEY record.
    pub(crate) fn nsec5_keys(&self) -> Result<&[ProofKey], BogusReason> {
        match &self.nsec5 {
            Nsec5Keys::Usable(keys) => Ok(keys),
            Nsec5Keys::Unusable(reason) => Err(reason.clone()),
        }
    }
}

fn digest(rdata: &[u8]) -> KeyDigest {
    let mut digest = KeyDigest::default();
    let sha256 = DigestType::SHA256.digest(&[rdata]).unwrap_or_default();
    digest.iter_mut().zip(sha256).for_each(|(octet, value)| *octet = value);
    digest
}

/// Whether DNSKEY RDATA have the zone key flag (RFC 4034 §2.1.1).
pub(super) fn is_zone_key(rdata: &[u8]) -> bool {
    rdata.first_chunk().is_some_and(|flags| u16::from_be_bytes(*flags) & ZONE_KEY != 0)
}

/// Whether DNSKEY RDATA have the zone key flag, protocol 3 (RFC 4034 §2.1), and no REVOKE flag (RFC
/// 5011 §2.1).
pub(super) fn has_zone_key_flags(rdata: &[u8]) -> bool {
    let &[high, low, protocol, ..] = rdata else { return false };
    let flags = u16::from_be_bytes([high, low]);
    flags & ZONE_KEY != 0 && flags & REVOKE == 0 && protocol == PROTOCOL
}

/// Returns the distinct elements of `rdatas` (RFC 2181 §5), at most `limit` + 1.
fn distinct<'k>(rdatas: impl IntoIterator<Item = &'k [u8]>, limit: usize) -> Vec<&'k [u8]> {
    let mut distinct: Vec<&[u8]> = Vec::new();
    for rdata in rdatas {
        if distinct.len() > limit {
            break;
        }
        if !distinct.contains(&rdata) {
            distinct.push(rdata);
        }
    }
    distinct
}

fn read_nsec5_keys(rdatas: &[&[u8]], limits: &ValidationLimits) -> Result<Vec<ProofKey>, BogusReason> {
    if rdatas.is_empty() {
        return Err(BogusReason::NoNsec5Key);
    }
    if rdatas.len() > limits.nsec5_keys {
        return Err(BogusReason::TooManyNsec5Keys(rdatas.len()));
    }
    let mut tags: Vec<u16> = Vec::new();
    let mut keys = Vec::new();
    for key in rdatas.iter().filter_map(|rdata| Nsec5Key::from_rdata(rdata)) {
        // If two keys have the same tag, an attacker could combine a proof with the records of the
        // other key's chain, and deny an existing name.
        if tags.contains(&key.tag()) {
            return Err(BogusReason::SameNsec5Tag(key.tag()));
        }
        tags.push(key.tag());
        if let Ok(public) = key.public_key() {
            keys.push(ProofKey { tag: key.tag(), public, digest: digest(key.rdata()) });
        }
    }
    if keys.is_empty() { Err(BogusReason::NoUsableNsec5Key) } else { Ok(keys) }
}
