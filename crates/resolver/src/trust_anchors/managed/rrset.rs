//! The DNSKEY RRset of a zone, and the keys that sign it.

use super::key::without_revoke;
use super::{ManagedKey, ObservationFault};
use nonesuch_crypto::{Algorithm, PublicKey, key_tag};
use nonesuch_dnssec::keys::{PROTOCOL, REVOKE, SEP, ZONE_KEY};
use nonesuch_dnssec::rrsig::{Rrsig, Validity, push_signed_data};
use nonesuch_proto::{NameRef, Rtype};

/// Maximum number of DNSKEY records in an RRset that is accepted.
pub const MAX_DNSKEYS: usize = 32;
/// Maximum number of signatures by keys of the RRset that are used.
const MAX_SIGNATURES: usize = 16;
/// Maximum number of signatures to verify for one key, in case of equal key tags.
const MAX_SIGNATURES_PER_KEY: usize = 2;
/// Maximum number of signatures to verify in one observation.
pub const MAX_VERIFICATIONS: usize = 16;

/// The DNSKEY RRset of a zone, from the answer section of a response.
#[derive(Clone, Copy, Debug)]
pub struct Observation<'a> {
    /// RDATA of each DNSKEY record, in any order.
    pub dnskeys: &'a [&'a [u8]],
    /// RDATA of each RRSIG record at the apex. Signatures over other types are ignored.
    pub signatures: &'a [&'a [u8]],
}

/// The times of valid signatures over an RRset.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct SignatureTimes {
    /// The original TTL, in seconds.
    pub(super) original_ttl: u32,
    /// The time to the expiration, in seconds.
    pub(super) expiration_interval: u32,
}

impl SignatureTimes {
    pub(super) fn least(self, other: Self) -> Self {
        Self {
            original_ttl: self.original_ttl.min(other.original_ttl),
            expiration_interval: self.expiration_interval.min(other.expiration_interval),
        }
    }
}

/// Counts the verifications of one observation.
#[derive(Debug, Default)]
pub(super) struct Work {
    pub(super) verifications: usize,
}

/// A DNSKEY RRset at a time.
#[derive(Debug)]
pub(super) struct KeyRrset<'a> {
    apex: NameRef<'a>,
    /// RDATA in canonical order without duplicates (RFC 4034 §6.3).
    keys: Vec<&'a [u8]>,
    /// The signatures by keys of the RRset that are valid at the time, if they verify.
    signatures: Vec<Rrsig<'a>>,
    /// Seconds since 1970 modulo 2^32.
    now: u32,
}

impl<'a> KeyRrset<'a> {
    pub(super) fn new(
        apex: NameRef<'a>,
        observation: Observation<'a>,
        now: u64,
    ) -> Result<Self, ObservationFault> {
        // The canonical form of DNSKEY RDATA is the RDATA itself, so the order is that of the octets.
        let mut keys = observation.dnskeys.to_vec();
        keys.sort_unstable();
        keys.dedup();
        if keys.len() > MAX_DNSKEYS {
            return Err(ObservationFault::TooManyKeys);
        }
        let now = now as u32;
        let tags: Vec<(u16, Option<u8>)> =
            keys.iter().map(|rdata| (key_tag(rdata), rdata.get(3).copied())).collect();
        let is_usable = |fields: &Rrsig<'_>| {
            fields.covered == Rtype::DNSKEY
                && fields.signer == apex
                && fields.labels == apex.rrsig_labels()
                && fields.validity(now) == Validity::Valid
                && tags.contains(&(fields.tag, Some(fields.algorithm.0)))
        };
        let signatures = observation.signatures.iter().filter_map(|rdata| Rrsig::parse(rdata));
        let signatures = signatures.filter(is_usable).take(MAX_SIGNATURES).collect();
        Ok(Self { apex, keys, signatures, now })
    }

    /// Returns the zone keys without the REVOKE flag.
    pub(super) fn usable_keys(&self) -> impl Iterator<Item = &'a [u8]> {
        self.keys
            .iter()
            .copied()
            .filter(|rdata| zone_key_flags(rdata).is_some_and(|flags| flags & REVOKE == 0))
    }

    /// Returns the zone keys with the REVOKE flag.
    pub(super) fn revoked_keys(&self) -> impl Iterator<Item = &'a [u8]> {
        self.keys
            .iter()
            .copied()
            .filter(|rdata| zone_key_flags(rdata).is_some_and(|flags| flags & REVOKE != 0))
    }

    /// Returns whether the RRset has the key. A revoked key may have or lack the REVOKE flag.
    pub(super) fn shows(&self, key: &ManagedKey) -> bool {
        let is_form = |revoked: &[u8]| without_revoke(revoked) == key.rdata();
        self.keys.binary_search(&key.rdata()).is_ok() || key.is_revoked() && self.revoked_keys().any(is_form)
    }

    /// Searches for a valid signature by the key `dnskey` of the RRset. The key may be revoked: its tag
    /// is then that of the DNSKEY record with the REVOKE flag.
    pub(super) fn verify(&self, dnskey: &[u8], work: &mut Work) -> Option<SignatureTimes> {
        let [_, _, _, algorithm, public @ ..] = dnskey else { return None };
        let (tag, algorithm) = (key_tag(dnskey), Algorithm(*algorithm));
        let is_by_key = |fields: &&Rrsig<'_>| fields.tag == tag && fields.algorithm == algorithm;
        let mut signatures = self.signatures.iter().filter(is_by_key).take(MAX_SIGNATURES_PER_KEY).peekable();
        signatures.peek()?;
        let public = PublicKey::parse(algorithm, public).ok()?;
        let valid = signatures.find(|fields| self.is_valid(fields, &public, work))?;
        Some(SignatureTimes {
            original_ttl: valid.original_ttl,
            expiration_interval: valid.expiration.wrapping_sub(self.now),
        })
    }

    fn is_valid(&self, fields: &Rrsig<'_>, public: &PublicKey, work: &mut Work) -> bool {
        if work.verifications == MAX_VERIFICATIONS {
            return false;
        }
        work.verifications += 1;
        let mut message = Vec::new();
        push_signed_data(fields, self.apex, self.keys.iter().copied(), &mut message);
        public.verify(&message, fields.signature).is_ok()
    }
}

/// Returns the flags of a DNSKEY record; `None` if it is not a zone key (RFC 4034 §2.1).
fn zone_key_flags(rdata: &[u8]) -> Option<u16> {
    let [high, low, PROTOCOL, _, ..] = *rdata else { return None };
    let flags = u16::from_be_bytes([high, low]);
    (flags & ZONE_KEY != 0).then_some(flags)
}

/// Returns whether a DNSKEY record has the SEP flag.
pub(super) fn is_sep(rdata: &[u8]) -> bool {
    zone_key_flags(rdata).is_some_and(|flags| flags & SEP != 0)
}

/// Returns whether a DNSKEY record has a public key that can verify signatures.
pub(super) fn is_supported(rdata: &[u8]) -> bool {
    let [_, _, _, algorithm, public @ ..] = rdata else { return false };
    PublicKey::parse(Algorithm(*algorithm), public).is_ok()
}
