//! The cache of validated denial records, for aggressive use (RFC 8198): records of earlier responses
//! answer queries for other names and types of their zone. All workers share one [`DenialCache`].
//!
//! It finds records that may deny a name, and [`nonesuch_dnssec::validate::aggressive`] decides what
//! they prove. So an answer of this cache is one that a validator of the client accepts as Secure.
//!
//! - NSEC: the records of a zone are in canonical order. They deny names, types, and wildcards.
//! - NSEC3: the records are in the order of the hashes. A lookup computes hashes, within a limit that
//!   the caller sets, and not while it holds a lock. Zones with more than 50 additional iterations are
//!   not cached. Records with the opt-out flag deny only types of the names that they match (RFC 8198
//!   §5.2, RFC 5155 §9.2).
//! - NSEC5: only the server computes hashes. So the proofs are found by their names: they deny
//!   types of a name, and the names at and below a next closer name (RFC 8020).
//!
//! Records that a server generates for one name are not cached, because they deny no other name:
//! compact denial (RFC 9824), minimally covering NSEC (RFC 4470), white lies (RFC 7129)
//! ([`DenialRecord::is_minimal`](nonesuch_dnssec::validate::aggressive::DenialRecord::is_minimal)).
//! They would only fill the memory. [`DenialStatistics::minimal`] counts them. So a zone with compact
//! denial gets no NXDOMAIN from this cache.
//!
//! Large NSEC3 zones gain little: the cached records cover a small part of the hashes, and each lookup
//! computes hashes. PowerDNS Recursor therefore has `aggressive_cache_max_nsec3_hash_cost` and
//! `aggressive-nsec3-min-hit-ratio`. Here the caller's limit bounds the hashes, and a lookup of a name
//! computes one hash if no record of the zone can deny a name.
//!
//! # Times
//! A record is used for the minimum of its TTL, the TTL of the SOA RRset, the last field of the SOA
//! record (RFC 8198 §5.4, RFC 9077) and [`DenialCacheOptions::ttl_max`]. Times are in whole seconds
//! since the creation of the cache. Data expire up to a second early, and never late.
//!
//! # Memory
//! Each entry counts with its octets and a fixed estimate of the structures around it. The sum never
//! exceeds [`DenialCacheOptions::octets`]; fixed structures of about 24 KiB are extra. If the memory
//! or a zone is full, the entry that expires first is removed: expired entries go first.
//!
//! # Locks
//! Each shard has a lock, under which entries are only searched, copied and inserted. A lookup takes
//! the lock of a zone only if the cache may have this zone; a table of counters without a lock shows this.

mod entry;
mod insert;
mod keys;
mod options;
mod prove;
mod search;
mod store;
#[cfg(test)]
mod tests;
mod zone;

pub use options::{DenialCacheOptions, DenialStatistics};
pub use prove::{Denied, Found, Search, Wildcard};

use nonesuch_net::machine::Now;
use nonesuch_proto::NameRef;
use options::Counters;
use std::time::Instant;
use store::Store;

/// The cache of validated denial records. All workers share it.
#[derive(Debug)]
pub struct DenialCache {
    options: DenialCacheOptions,
    created: Instant,
    store: Store,
    counters: Counters,
}

impl DenialCache {
    /// Returns an empty cache. No later time may be before `now`.
    #[must_use]
    pub fn new(options: DenialCacheOptions, now: Now) -> Self {
        let store = Store::new(options.octets, options.zone_entries_max, &options.seed);
        Self { options, created: now.instant, store, counters: Counters::default() }
    }

    /// Removes all records that may deny a name at or below `name`: those of the zones at and below
    /// it, and those of the zones above it. From an NSEC zone above it only the records of such
    /// names are removed; from an NSEC3 or NSEC5 zone all, because the hashes of the names below are
    /// unknown. Returns the number of removed records. It visits all zones.
    pub fn flush_below(&self, name: NameRef<'_>) -> usize {
        self.store.flush_below(name)
    }

    /// Returns the statistics. It takes no lock.
    #[must_use]
    pub fn statistics(&self) -> DenialStatistics {
        let (zones, entries, octets, evictions) = self.store.counts();
        DenialStatistics { zones, entries, octets, evictions, ..self.counters.read() }
    }

    /// Returns the second of a time since the creation of the cache, rounded down.
    fn second(&self, now: Now) -> u32 {
        let second = now.instant.saturating_duration_since(self.created).as_secs();
        u32::try_from(second).unwrap_or(u32::MAX)
    }
}
