//! Entries of any kind in memory of a fixed size, shared by all threads.
//!
//! An entry has a key (a name in any case, and a [`Label`]), an expiry and a value, all as octets.
//! The name selects the shard and the place in the index, so all entries of a name are in one shard
//! and near each other: one hash and one lock serve all lookups of a name. The hash has a secret
//! key, so a client cannot choose names that share a shard or a place.
//!
//! A shard is a [`log`] of entries and an [`index`] of their positions. Both grow with the entries, up to
//! a bound, and there is no allocation for an entry. When the log is full, a new entry replaces the
//! oldest ones. An oldest entry that was read since it was written is written again (second chance,
//! as the CLOCK algorithm has it), so entries in use stay.

mod counters;
mod entry;
mod index;
mod log;
mod shard;
#[cfg(test)]
mod tests;

pub use counters::Statistics;
pub(super) use entry::{Entry, Label, NameKey};
pub(super) use shard::VALUE_MAX;

use counters::Counters;
use index::BUCKET_OCTETS;
use log::SEGMENT_OCTETS;
use shard::{Shard, StoreError};
use siphasher::sip::SipHasher13;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Minimum octets of a shard. With less, a few large entries would replace all others.
pub(super) const SHARD_OCTETS_MIN: usize = 512 << 10;
/// The part of the memory for the index: at most one eighth. So the index is full before the log is only if
/// an entry has less than 80 octets on average.
const INDEX_DIVISOR: usize = 8;
/// Octets of a segment with the allocator's header, and with its places in the tables of the log.
const SEGMENT_COST: usize = SEGMENT_OCTETS + 64;

/// The shards.
#[derive(Debug)]
pub(super) struct Ring {
    shards: Box<[Locked]>,
    hasher: SipHasher13,
}

/// A shard and its counters. Two shards share no cache line (and no pair of adjacent lines, which
/// processors load together).
#[derive(Debug)]
#[repr(align(128))]
struct Locked {
    shard: Mutex<Shard>,
    counters: Counters,
}

impl Locked {
    fn lock(&self) -> MutexGuard<'_, Shard> {
        self.shard.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Ring {
    /// Returns an empty ring that uses at most `octets` of memory, at least [`SHARD_OCTETS_MIN`].
    /// `shards`: the number of shards; fewer if the memory is not enough for so many. `key`: the key
    /// of the hash.
    pub(super) fn new(octets: usize, shards: usize, key: &[u8; 16]) -> Self {
        let octets = octets.max(SHARD_OCTETS_MIN);
        let count = shards.clamp(1, octets / SHARD_OCTETS_MIN);
        let index_octets = octets / count / INDEX_DIVISOR;
        let segments = (octets / count - index_octets - size_of::<Locked>()) / SEGMENT_COST;
        let shard = |_| {
            let shard = Shard::new(index_octets / BUCKET_OCTETS, segments);
            let counters = Counters::default();
            counters.update_size(&shard);
            Locked { shard: Mutex::new(shard), counters }
        };
        Self { shards: (0..count).map(shard).collect(), hasher: SipHasher13::new_with_key(key) }
    }

    /// Returns the key of a name in lower case.
    pub(super) fn key<'n>(&self, lower: &'n [u8]) -> NameKey<'n> {
        NameKey { hash: self.hasher.hash(lower), lower }
    }

    fn shard(&self, name: &NameKey<'_>) -> &Locked {
        // The upper bits of the upper half. The index takes the lower half, and the tags take the
        // lower bits of the upper half.
        let at = ((name.hash >> 32) * self.shards.len() as u64) >> 32;
        &self.shards[at as usize]
    }

    /// Calls `copy` under the lock for the entries of a name with these labels, in their order,
    /// until it returns `Some`. Entries that have expired at `now` are skipped. `copy` should only
    /// copy. The entry that was copied counts as used.
    pub(super) fn read<R>(
        &self,
        name: &NameKey<'_>,
        labels: &[Label],
        now: u32,
        copy: impl FnMut(Entry<'_>) -> Option<R>,
    ) -> Option<R> {
        self.shard(name).lock().read(name, labels, now, copy)
    }

    /// Counts a lookup of this name as a hit or miss.
    pub(super) fn count_lookup(&self, name: &NameKey<'_>, is_hit: bool) {
        self.shard(name).counters.count_lookup(is_hit);
    }

    /// Calls `edit` under the lock with an editor of the entries of this name.
    pub(super) fn edit<R>(&self, name: &NameKey<'_>, now: u32, edit: impl FnOnce(&mut Editor<'_>) -> R) -> R {
        let locked = self.shard(name);
        let mut shard = locked.lock();
        let result = edit(&mut Editor { shard: &mut shard, counters: &locked.counters, name, now });
        locked.counters.update_size(&shard);
        result
    }

    /// Removes all entries for whose name `matches` returns true. The name may have any case. Returns
    /// the number of removed entries. It visits the whole index, with a short lock for each region of
    /// it. Entries that are inserted meanwhile may stay.
    pub(super) fn remove_if(&self, mut matches: impl FnMut(&[u8]) -> bool) -> usize {
        let mut removed = 0;
        for locked in &self.shards {
            // A split between two locks moves entries only to a region that is visited later.
            for region in 0.. {
                let mut shard = locked.lock();
                if region == shard.regions() {
                    break;
                }
                removed += shard.remove_in(region, &mut matches);
                locked.counters.update_size(&shard);
            }
        }
        removed
    }

    /// Returns the counters of all shards. Takes no lock.
    pub(super) fn statistics(&self) -> Statistics {
        self.shards.iter().map(|locked| locked.counters.read()).sum()
    }
}

/// Access to the entries of one name, under the lock of its shard.
#[derive(Debug)]
pub(super) struct Editor<'s> {
    shard: &'s mut Shard,
    counters: &'s Counters,
    name: &'s NameKey<'s>,
    now: u32,
}

/// The result of [`Editor::insert`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Stored {
    /// The entry is stored.
    Yes,
    /// The entry is larger than [`VALUE_MAX`] allows, or the name is not a name.
    TooLarge,
    /// The name has too many entries.
    TooMany,
}

impl Editor<'_> {
    /// Whether the name may have entries, also expired ones.
    pub(super) fn may_have_entries(&self) -> bool {
        self.shard.may_have_entries(self.name)
    }

    /// Returns the entry with this label, even if it has expired.
    pub(super) fn entry(&self, label: Label) -> Option<Entry<'_>> {
        self.shard.entry(self.name, label)
    }

    /// Inserts or replaces an entry. `owner`: the name in any case. If the name has
    /// `entries_max` entries that have not expired, an entry with a new label is not stored.
    pub(super) fn insert(
        &mut self,
        owner: &[u8],
        label: Label,
        expiry: u32,
        value: &[u8],
        entries_max: usize,
    ) -> Stored {
        debug_assert!(owner.eq_ignore_ascii_case(self.name.lower));
        if self.is_full(label, entries_max) {
            return Stored::TooMany;
        }
        let entry = Entry { name: owner, label, expiry, value };
        match self.shard.store(self.name.hash, &entry, self.now) {
            Ok(evictions) => {
                self.counters.count_insertion(evictions);
                Stored::Yes
            }
            Err(StoreError::TooLarge) => Stored::TooLarge,
            Err(StoreError::IndexPath) => Stored::TooMany,
        }
    }

    /// Whether there is no room for another label at this name. Removes expired entries of the name
    /// if that makes room.
    fn is_full(&mut self, label: Label, entries_max: usize) -> bool {
        if self.entry(label).is_some() || self.shard.count(self.name) < entries_max {
            return false;
        }
        let now = self.now;
        self.retain(|entry| entry.expiry > now);
        self.shard.count(self.name) >= entries_max
    }

    /// Removes the entry with this label. Returns whether there was one.
    pub(super) fn remove(&mut self, label: Label) -> bool {
        self.shard.remove(self.name, label)
    }

    /// Removes the entries of the name for which `keep` returns false. Returns their number.
    pub(super) fn retain(&mut self, keep: impl FnMut(&Entry<'_>) -> bool) -> usize {
        self.shard.retain(self.name, keep)
    }
}
