//! Options and statistics.

use std::sync::atomic::{AtomicU64, Ordering};

/// Options of a [`DenialCache`](super::DenialCache).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DenialCacheOptions {
    /// Maximum octets of memory of all entries. 0: nothing is cached.
    pub octets: usize,
    /// Maximum time in seconds for which a record is used (RFC 8198 §5.4 recommends at most three
    /// hours).
    pub ttl_max: u32,
    /// Maximum number of entries of a zone. Each NSEC, NSEC3, NSEC5 and NSEC5PROOF RRset is an entry.
    pub zone_entries_max: usize,
    /// Secret random octets: the key of the hash of zone names.
    pub seed: [u8; 16],
}

impl DenialCacheOptions {
    /// Returns the default options of a cache with at most `octets` of memory. `seed`: secret random
    /// octets.
    #[must_use]
    pub const fn new(octets: usize, seed: [u8; 16]) -> Self {
        Self { octets, ttl_max: 3600, zone_entries_max: 4096, seed }
    }
}

/// Counts since the creation of a [`DenialCache`](super::DenialCache), and its current size.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct DenialStatistics {
    /// Zones with entries.
    pub zones: usize,
    /// Entries.
    pub entries: usize,
    /// Octets of memory of the entries, as counted for [`DenialCacheOptions::octets`].
    pub octets: usize,
    /// Entries that were removed because the memory or their zone was full.
    pub evictions: u64,
    /// Entries that were inserted.
    pub insertions: u64,
    /// Records that were not inserted, because they deny a single name.
    pub minimal: u64,
    /// Lookups that found a denial or a denial of closer names than a wildcard.
    pub hits: u64,
    /// Lookups in a zone of the cache that found nothing. Lookups for names outside of all zones are
    /// not counted.
    pub misses: u64,
    /// SHA-1 blocks computed for NSEC3 hashes in lookups.
    pub hash_blocks: u64,
}

/// The counters of [`DenialStatistics`].
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) insertions: AtomicU64,
    pub(super) minimal: AtomicU64,
    pub(super) hits: AtomicU64,
    pub(super) misses: AtomicU64,
    pub(super) hash_blocks: AtomicU64,
}

impl Counters {
    /// Adds to a counter.
    pub(super) fn add(counter: &AtomicU64, number: u64) {
        if number > 0 {
            counter.fetch_add(number, Ordering::Relaxed);
        }
    }

    /// Returns the statistics without the size of the cache.
    pub(super) fn read(&self) -> DenialStatistics {
        let read = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
        DenialStatistics {
            insertions: read(&self.insertions),
            minimal: read(&self.minimal),
            hits: read(&self.hits),
            misses: read(&self.misses),
            hash_blocks: read(&self.hash_blocks),
            ..DenialStatistics::default()
        }
    }
}
