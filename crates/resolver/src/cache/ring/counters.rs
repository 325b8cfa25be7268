//! Counters of a shard. They are read without its lock.

use super::shard::Shard;
use std::iter::Sum;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Statistics of the cache. The counts begin at the creation of the cache.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Number of entries at present. Expired entries count until their memory is used again.
    pub entries: u64,
    /// Octets of memory that are allocated at present.
    pub octets: u64,
    /// Number of lookups that found data.
    pub hits: u64,
    /// Number of lookups that found none.
    pub misses: u64,
    /// Number of insertions that stored data.
    pub insertions: u64,
    /// Number of entries that were dropped before they expired, to make room for others.
    pub evictions: u64,
}

impl Sum for Statistics {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |sum, next| Self {
            entries: sum.entries + next.entries,
            octets: sum.octets + next.octets,
            hits: sum.hits + next.hits,
            misses: sum.misses + next.misses,
            insertions: sum.insertions + next.insertions,
            evictions: sum.evictions + next.evictions,
        })
    }
}

/// The counters of a shard.
#[derive(Debug, Default)]
pub(super) struct Counters {
    entries: AtomicU64,
    octets: AtomicU64,
    hits: AtomicU64,
    misses: AtomicU64,
    insertions: AtomicU64,
    evictions: AtomicU64,
}

/// Adds to a counter. The caller has the lock, so no other thread writes, and the addition need not
/// be atomic.
fn add(counter: &AtomicU64, number: u64) {
    counter.store(counter.load(Relaxed).wrapping_add(number), Relaxed);
}

impl Counters {
    /// Counts a hit or a miss. The caller need not have the lock.
    pub(super) fn count_lookup(&self, is_hit: bool) {
        (if is_hit { &self.hits } else { &self.misses }).fetch_add(1, Relaxed);
    }

    /// Counts an insertion that dropped `evictions` entries. The caller has the lock.
    pub(super) fn count_insertion(&self, evictions: u64) {
        add(&self.insertions, 1);
        add(&self.evictions, evictions);
    }

    /// Sets the numbers of entries and octets. The caller has the lock.
    pub(super) fn update_size(&self, shard: &Shard) {
        self.entries.store(shard.entries() as u64, Relaxed);
        self.octets.store(shard.octets() as u64, Relaxed);
    }

    /// Returns the values.
    pub(super) fn read(&self) -> Statistics {
        Statistics {
            entries: self.entries.load(Relaxed),
            octets: self.octets.load(Relaxed),
            hits: self.hits.load(Relaxed),
            misses: self.misses.load(Relaxed),
            insertions: self.insertions.load(Relaxed),
            evictions: self.evictions.load(Relaxed),
        }
    }
}
