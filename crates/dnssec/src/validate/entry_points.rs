//! Selects the keys of a zone that its DS RRset or a trust anchor names (RFC 4035 §5.2, RFC 4509 §3,
//! RFC 6840 §5.2). One of them must sign the DNSKEY RRset.

use super::budget::ValidationLimits;
use super::keys::{TrustedKeys, has_zone_key_flag, has_zone_key_flags};
use super::policy::{AlgorithmPolicy, is_post_quantum};
use super::reason::{BogusReason, InsecureReason};
use crate::keys::ds_rdata;
use nonesuch_crypto::{Algorithm, DigestType, key_tag};
use nonesuch_proto::{Name, NameRef};

/// Number of DNSKEY records with the tag and algorithm of a DS record whose digests are computed.
const KEYS_PER_DS: usize = 2;

/// The DS RRset of a zone, or the DS and DNSKEY records of its trust anchor.
#[derive(Clone, Copy, Debug, Default)]
pub struct EntryPoints<'a> {
    /// RDATA of DS records.
    pub ds: &'a [&'a [u8]],
    /// RDATA of DNSKEY records, which only trust anchors have.
    pub dnskeys: &'a [&'a [u8]],
}

/// Why a zone has no entry point that signs its DNSKEY RRset.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum NoEntryPoint {
    /// The validator knows no algorithm or no digest of the entry points, or cannot use their keys.
    Insecure(InsecureReason),
    /// No DNSKEY record matches.
    Bogus(BogusReason),
}

/// A DS record of a known algorithm and digest.
#[derive(Clone, Copy, Debug)]
struct Ds<'a> {
    tag: u16,
    algorithm: Algorithm,
    digest_type: DigestType,
    rdata: &'a [u8],
}

impl<'a> EntryPoints<'a> {
    /// Whether a validator knows the algorithm and the digest of one of them. If not, the zone is
    /// Insecure, whatever its DNSKEY RRset is.
    ///
    /// # Errors
    /// The reason for which the zone is Insecure.
    pub fn check(&self, policy: AlgorithmPolicy, limits: &ValidationLimits) -> Result<(), InsecureReason> {
        let is_known = |rdata: &&&[u8]| rdata.get(3).is_some_and(|number| policy.knows(Algorithm(*number)));
        if self.dnskeys.iter().any(|rdata| is_known(&rdata)) {
            return Ok(());
        }
        self.usable_ds(policy, limits).map(|_| ())
    }

    /// Returns the DS records of known algorithms and digests. RFC 4509 §3: SHA-1 does not count if
    /// there is another digest.
    fn usable_ds(
        &self,
        policy: AlgorithmPolicy,
        limits: &ValidationLimits,
    ) -> Result<Vec<Ds<'a>>, InsecureReason> {
        let (mut usable, mut has_known_algorithm) = (Vec::new(), false);
        for rdata in self.ds {
            let [high, low, algorithm, digest_type, ..] = *rdata else { continue };
            let (algorithm, digest_type) = (Algorithm(*algorithm), DigestType(*digest_type));
            if !policy.knows(algorithm) {
                continue;
            }
            has_known_algorithm = true;
            if digest_type.octets().is_some() && usable.len() < limits.ds_records {
                let tag = u16::from_be_bytes([*high, *low]);
                usable.push(Ds { tag, algorithm, digest_type, rdata });
            }
        }
        // RFC 4509 §3.
        if usable.iter().any(|ds| ds.digest_type != DigestType::SHA1) {
            usable.retain(|ds| ds.digest_type != DigestType::SHA1);
        }
        match (usable.is_empty(), has_known_algorithm) {
            (false, _) => Ok(usable),
            (true, true) => Err(InsecureReason::UnsupportedDigests),
            (true, false) => Err(InsecureReason::UnsupportedAlgorithms),
        }
    }

    /// Returns the keys of a DNSKEY RRset that the entry points name. The RRset is Secure if one of
    /// them signs it.
    ///
    /// # Errors
    /// The zone is Insecure, or no usable key matches.
    pub fn select(
        &self,
        apex: &Name,
        dnskeys: &[&'a [u8]],
        policy: AlgorithmPolicy,
        limits: &ValidationLimits,
    ) -> Result<TrustedKeys, NoEntryPoint> {
        if dnskeys.len() > limits.dnskeys {
            return Err(NoEntryPoint::Bogus(BogusReason::TooManyKeys(dnskeys.len())));
        }
        let from_anchor = self.dnskeys.iter().filter(|rdata| dnskeys.contains(rdata)).copied();
        let mut named: Vec<&[u8]> = from_anchor.collect();
        // An attacker can remove a key from the RRset, which is not validated yet.
        let mut has_unmatched = named.len() < self.dnskeys.len();
        match self.usable_ds(policy, limits) {
            Ok(usable) => {
                for ds in usable {
                    let matching = matching_keys(apex.view(), ds, dnskeys);
                    let before = named.len();
                    named.extend(matching.filter(|key| has_zone_key_flags(key)));
                    has_unmatched |= named.len() == before;
                }
            }
            Err(reason) if self.dnskeys.is_empty() => return Err(NoEntryPoint::Insecure(reason)),
            Err(_) => {}
        }
        if named.is_empty() {
            let has_zone_key = dnskeys.iter().any(|rdata| has_zone_key_flag(rdata));
            let is_without = !dnskeys.is_empty() && !has_zone_key;
            let reason = if is_without { BogusReason::NoZoneKey } else { BogusReason::NoMatchingKey };
            return Err(NoEntryPoint::Bogus(reason));
        }
        let keys = TrustedKeys::with_policy(apex, named, policy, limits);
        match keys.unusable_reason() {
            None => Ok(keys),
            Some(NoEntryPoint::Insecure(_)) if has_unmatched => {
                Err(NoEntryPoint::Bogus(BogusReason::NoMatchingKey))
            }
            Some(reason) => Err(reason),
        }
    }

    /// Whether the validator accepts only post-quantum signatures of the zone: its policy requires it,
    /// and an entry point has such an algorithm.
    #[must_use]
    pub fn require_post_quantum(&self, policy: AlgorithmPolicy) -> bool {
        let number = |at: usize| move |rdata: &&[u8]| rdata.get(at).map(|number| Algorithm(*number));
        let ds = self.ds.iter().filter_map(number(2));
        let mut all = ds.chain(self.dnskeys.iter().filter_map(number(3)));
        policy.requires_post_quantum
            && all.any(|algorithm| policy.knows(algorithm) && is_post_quantum(algorithm))
    }
}

/// Returns the keys whose digest a DS record has.
fn matching_keys<'k>(apex: NameRef<'_>, ds: Ds<'_>, dnskeys: &[&'k [u8]]) -> impl Iterator<Item = &'k [u8]> {
    let candidates = dnskeys
        .iter()
        .copied()
        .filter(move |key| key.get(3) == Some(&ds.algorithm.0) && key_tag(key) == ds.tag);
    candidates
        .take(KEYS_PER_DS)
        .filter(move |key| ds_rdata(apex, key, ds.digest_type).as_deref() == Some(ds.rdata))
}
