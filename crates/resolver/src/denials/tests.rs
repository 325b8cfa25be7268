//! Tests of the cache of denials.

mod bounds;
mod insertion;
mod lookup;
mod random;
mod signed_zone;

use super::{DenialCache, DenialCacheOptions, Found, Search};
use crate::cache::NegativeKind;
use crate::record::Rrset;
use crate::testing::{name, rrset};
use nonesuch_dnssec::validate::{Budget, TrustedKeys, ValidationLimits};
use nonesuch_net::machine::Now;
use nonesuch_proto::Rtype;
use std::sync::LazyLock;
use std::time::{Duration, Instant};

/// More than any lookup needs.
const ENOUGH_HASHES: u32 = 10_000;

/// Returns a time some seconds after the creation of the caches.
fn at(second: u64) -> Now {
    static START: LazyLock<Instant> = LazyLock::new(Instant::now);
    Now { instant: *START + Duration::from_secs(second), unix: 1_700_000_000 + second }
}

fn cache() -> DenialCache {
    DenialCache::new(DenialCacheOptions::new(4 << 20, [3; 16]), at(0))
}

/// Keys of a zone whose records no test verifies.
fn keys(apex: &str) -> TrustedKeys {
    TrustedKeys::new(&name(apex), [], &ValidationLimits::default())
}

fn soa(apex: &str, ttl: u32, minimum: u32) -> Rrset {
    rrset(&[&format!("{apex} {ttl} SOA ns.test. h.test. 7 3600 300 3600000 {minimum}")])
}

/// Inserts records of the zone at `apex`, each with its own RRset, and an SOA RRset with a TTL of 900.
fn insert(cache: &DenialCache, apex: &str, records: &[&str], second: u64) -> usize {
    let mut rrsets: Vec<Rrset> = records.iter().map(|record| rrset(&[record])).collect();
    rrsets.push(soa(apex, 900, 900));
    cache.insert(&keys(apex), &rrsets, &mut Budget::default(), at(second))
}

fn prove(cache: &DenialCache, owner: &str, rtype: Rtype, second: u64) -> Search {
    cache.prove(name(owner).view(), rtype, ENOUGH_HASHES, at(second))
}

/// What the cache denies.
fn denied(cache: &DenialCache, owner: &str, rtype: Rtype, second: u64) -> Option<NegativeKind> {
    match prove(cache, owner, rtype, second).found? {
        Found::Denied(denied) => Some(denied.kind),
        Found::Wildcard(_) => None,
    }
}

/// Owners, types and TTLs of the records of a denial.
fn authority(cache: &DenialCache, owner: &str, rtype: Rtype, second: u64) -> Vec<(String, Rtype, u32)> {
    let authority = match prove(cache, owner, rtype, second).found {
        Some(Found::Denied(denied)) => denied.authority,
        Some(Found::Wildcard(wildcard)) => wildcard.authority,
        None => Vec::new(),
    };
    authority.iter().map(|rrset| (rrset.owner.to_string(), rrset.rtype, rrset.ttl)).collect()
}
