//! A bounded cache for one thread; keys and values are octets.
//!
//! It has three FIFO queues, as in S3-FIFO (Yang et al., SOSP 2023). A new entry enters a small
//! *probation* queue, which has a tenth of the capacity. When an entry leaves probation, it moves
//! to the *main* queue if it was used, and otherwise it is evicted. So a flood of names that are
//! queried once does not evict entries of the main queue. A *ghost* queue stores the hashes of the
//! entries evicted from probation: if such an entry soon returns, it enters the main queue
//! directly. A used entry at the head of the main queue returns to its tail once for each counted
//! use.

use std::collections::hash_map::RandomState;
use std::collections::{HashMap, HashSet, VecDeque};
use std::hash::{BuildHasher as _, BuildHasherDefault, Hasher};

/// Memory of an entry in bytes, in addition to its key and value: in the map, the queue and the
/// allocator.
const ENTRY_OVERHEAD_BYTES: usize = 128;
/// The capacity of the probation queue is the capacity of the cache divided by this number.
const PROBATION_DIVISOR: usize = 10;
/// Maximum count of uses of an entry, and so the maximum number of passes through the main queue
/// without further use.
const MAX_USES: u8 = 3;
/// Memory of a hash in the ghost queue and its set, in bytes.
const GHOST_BYTES: usize = 32;

/// A hasher for values that are already keyed and evenly distributed hashes: returns the value.
#[derive(Debug, Default)]
pub(super) struct IdentityHasher(u64);

impl Hasher for IdentityHasher {
    fn write_u64(&mut self, hash: u64) {
        self.0 = hash;
    }

    fn write(&mut self, octets: &[u8]) {
        octets.iter().for_each(|octet| self.0 = self.0 << 8 | u64::from(*octet));
    }

    fn finish(&self) -> u64 {
        self.0
    }
}

/// A set of key hashes.
pub(super) type Hashes = HashSet<u64, BuildHasherDefault<IdentityHasher>>;

/// The entries of the cache and its limit.
#[derive(Debug)]
pub(super) struct Cache {
    /// Keyed, so that clients cannot choose names with equal hashes.
    hasher: RandomState,
    /// Index of each entry, by the hash of its key.
    indexes: HashMap<u64, u32, BuildHasherDefault<IdentityHasher>>,
    entries: Vec<Option<Entry>>,
    /// Indexes of the empty elements of `entries`.
    free: Vec<u32>,
    probation: VecDeque<u32>,
    main: VecDeque<u32>,
    /// The ghost queue, and the same hashes as a set. The set lacks the hash of an entry that has
    /// returned; its element of the queue remains until it is the oldest.
    ghosts: VecDeque<u64>,
    ghost_set: Hashes,
    /// Memory of the entries in the probation queue, in bytes.
    probation_bytes: usize,
    /// Memory of all entries, in bytes.
    bytes: usize,
    /// Maximum of `bytes`.
    capacity: usize,
}

#[derive(Debug)]
struct Entry {
    hash: u64,
    key: Box<[u8]>,
    value: Box<[u8]>,
    /// Time from which the value must be replaced, in seconds, serial number arithmetic.
    stale_from: u32,
    /// The batch that inserted the entry. During this batch the entry is not evicted, and its uses
    /// are not counted.
    batch: u32,
    uses: u8,
    is_main: bool,
}

impl Entry {
    fn bytes(&self) -> usize {
        ENTRY_OVERHEAD_BYTES + self.key.len() + self.value.len()
    }
}

impl Cache {
    /// Creates a cache of at most `capacity` bytes. If the entries of one batch exceed the
    /// capacity, they remain until the next batch.
    pub(super) fn new(capacity: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            indexes: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            probation: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
            ghost_set: Hashes::default(),
            probation_bytes: 0,
            bytes: 0,
            capacity,
        }
    }

    /// The hash of a key; the other functions take it as argument.
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Memory of the entries in bytes.
    pub(super) const fn bytes(&self) -> usize {
        self.bytes
    }

    /// Number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.indexes.len()
    }

    /// The value of `key`, which has the hash `hash`, and the time from which it must be replaced.
    /// Counts a use, unless the entry was inserted in `batch`.
    pub(super) fn find(&mut self, hash: u64, key: &[u8], batch: u32) -> Option<(&[u8], u32)> {
        let index = *self.indexes.get(&hash)?;
        let entry = self.entries[index as usize].as_mut().filter(|entry| *entry.key == *key)?;
        if entry.batch != batch {
            entry.uses = (entry.uses + 1).min(MAX_USES);
        }
        Some((&entry.value, entry.stale_from))
    }

    /// The value of the entry with `hash`. Only after a successful [`Cache::find`], because it does
    /// not compare the key. Counts no use.
    pub(super) fn peek(&self, hash: u64) -> Option<&[u8]> {
        let index = *self.indexes.get(&hash)?;
        self.entries[index as usize].as_ref().map(|entry| &*entry.value)
    }

    /// Inserts an entry; replaces an entry with the same hash.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        key: Box<[u8]>,
        value: Box<[u8]>,
        stale_from: u32,
        batch: u32,
    ) {
        if let Some(index) = self.indexes.get(&hash) {
            return self.replace(*index, key, value, stale_from, batch);
        }
        let is_main = self.ghost_set.remove(&hash);
        let entry = Entry { hash, key, value, stale_from, batch, uses: 0, is_main };
        self.bytes += entry.bytes();
        if !is_main {
            self.probation_bytes += entry.bytes();
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as u32
        });
        self.entries[index as usize] = Some(entry);
        self.indexes.insert(hash, index);
        if is_main {
            self.main.push_back(index)
        } else {
            self.probation.push_back(index)
        }
        self.evict_to_capacity(batch);
    }

    fn replace(&mut self, index: u32, key: Box<[u8]>, value: Box<[u8]>, stale_from: u32, batch: u32) {
        let Some(entry) = self.entries[index as usize].as_mut() else { return };
        let before = entry.bytes();
        (entry.key, entry.value, entry.stale_from, entry.batch) = (key, value, stale_from, batch);
        let after = entry.bytes();
        if !entry.is_main {
            self.probation_bytes = self.probation_bytes - before + after;
        }
        self.bytes = self.bytes - before + after;
        self.evict_to_capacity(batch);
    }

    /// Evicts entries until the cache is within its capacity, or has only entries of `batch`.
    fn evict_to_capacity(&mut self, batch: u32) {
        while self.bytes > self.capacity {
            let is_probation_full = self.probation_bytes > self.capacity / PROBATION_DIVISOR;
            let done = if is_probation_full && self.shrink_probation(batch) {
                true
            } else {
                self.shrink_main(batch)
            };
            if !done && !self.shrink_probation(batch) {
                return;
            }
        }
    }

    /// Removes the oldest entry from the probation queue: to the main queue if it was used,
    /// otherwise out of the cache. Returns `false` and removes nothing if the queue is empty or the
    /// oldest entry is of `batch`.
    fn shrink_probation(&mut self, batch: u32) -> bool {
        let Some(index) = self.probation.front().copied() else { return false };
        let Some(entry) = self.entries[index as usize].as_mut() else { return false };
        if entry.batch == batch {
            return false;
        }
        self.probation.pop_front();
        self.probation_bytes -= entry.bytes();
        if entry.uses > 0 {
            (entry.is_main, entry.uses) = (true, 0);
            self.main.push_back(index);
        } else {
            let hash = entry.hash;
            self.remove(index);
            self.add_ghost(hash);
        }
        true
    }

    /// Evicts an unused entry of the main queue. Returns `false` if the queue is empty or all its
    /// entries are of `batch`.
    fn shrink_main(&mut self, batch: u32) -> bool {
        // Each entry returns to the tail at most once for each counted use.
        for _ in 0..self.main.len() * (usize::from(MAX_USES) + 1) {
            let Some(index) = self.main.pop_front() else { return false };
            let Some(entry) = self.entries[index as usize].as_mut() else { continue };
            if entry.uses == 0 && entry.batch != batch {
                self.remove(index);
                return true;
            }
            entry.uses = entry.uses.saturating_sub(1);
            self.main.push_back(index);
        }
        false
    }

    fn remove(&mut self, index: u32) {
        if let Some(entry) = self.entries[index as usize].take() {
            self.bytes -= entry.bytes();
            self.indexes.remove(&entry.hash);
            self.free.push(index);
        }
    }

    /// Stores the hash of an entry that was evicted from probation. The ghost queue has at most a
    /// tenth of the capacity.
    fn add_ghost(&mut self, hash: u64) {
        if self.ghost_set.insert(hash) {
            self.ghosts.push_back(hash);
        }
        while self.ghosts.len() > self.capacity / PROBATION_DIVISOR / GHOST_BYTES {
            if let Some(oldest) = self.ghosts.pop_front() {
                self.ghost_set.remove(&oldest);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const VALUE: usize = 200;

    fn put(cache: &mut Cache, key: u32, batch: u32) {
        let octets = key.to_be_bytes();
        cache.insert(cache.hash(&octets), octets.into(), vec![key as u8; VALUE].into(), 0, batch);
    }

    fn has(cache: &mut Cache, key: u32, batch: u32) -> bool {
        let octets = key.to_be_bytes();
        let hash = cache.hash(&octets);
        cache.find(hash, &octets, batch).is_some_and(|(value, _)| *value == [key as u8; VALUE])
    }

    #[test]
    fn a_flood_of_new_keys_neither_exceeds_the_capacity_nor_evicts_used_entries() {
        let mut cache = Cache::new(64 << 10);
        let used_keys = 0..20;
        for key in used_keys.clone() {
            put(&mut cache, key, 0);
        }
        for batch in 1..20_000 {
            for key in used_keys.clone().filter(|key| key % 20 == batch % 20) {
                assert!(has(&mut cache, key, batch), "{key} in batch {batch}");
            }
            put(&mut cache, 1000 + batch, batch);
            assert!(cache.bytes() <= 64 << 10);
            assert!(has(&mut cache, 1000 + batch, batch));
        }
        assert!(cache.len() > 150 && cache.ghosts.len() <= (64 << 10) / PROBATION_DIVISOR / GHOST_BYTES);
        assert_eq!(cache.indexes.len() + cache.free.len(), cache.entries.len());
        assert!(cache.ghosts.len() >= cache.ghost_set.len());
    }

    #[test]
    fn entries_of_a_batch_remain_until_the_next_batch() {
        let mut cache = Cache::new(1 << 10);
        for key in 0..50 {
            put(&mut cache, key, 1);
        }
        assert!((0..50).all(|key| has(&mut cache, key, 1)));
        assert!(cache.bytes() > 1 << 10);
        put(&mut cache, 50, 2);
        assert!(has(&mut cache, 50, 2) && cache.bytes() <= 1 << 10);
    }

    #[test]
    fn an_entry_that_soon_returns_enters_the_main_queue() {
        let mut cache = Cache::new(64 << 10);
        put(&mut cache, 1, 0);
        // Enough entries to evict the first one, and not enough to remove its hash from the ghost
        // queue.
        for key in 100..300 {
            put(&mut cache, key, key);
        }
        assert!(!has(&mut cache, 1, 300));
        put(&mut cache, 1, 301);
        for key in 400..1000 {
            put(&mut cache, key, key);
        }
        assert!(has(&mut cache, 1, 1001));
        assert!(!has(&mut cache, 400, 1001));
    }

    #[test]
    fn a_new_value_replaces_the_old_one() {
        let mut cache = Cache::new(64 << 10);
        let hash = cache.hash(b"k");
        cache.insert(hash, (*b"k").into(), vec![1; 10].into(), 5, 1);
        let before = cache.bytes();
        cache.insert(hash, (*b"k").into(), vec![2; 30].into(), 9, 2);
        assert_eq!(cache.find(hash, b"k", 2), Some((&[2; 30][..], 9)));
        assert_eq!((cache.bytes(), cache.len()), (before + 20, 1));
        assert_eq!(cache.find(hash, b"other key of that hash", 2), None);
    }
}
