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
const OVERHEAD: usize = 128;
/// One part in this number of the capacity is for probation.
const PROBATION: usize = 10;
/// Maximum count of uses of an entry, and so the maximum number of passes through the main queue
/// without further use.
const MOST_USES: u8 = 3;
/// Memory of a hash in the ghost queue and its set, in bytes.
const GHOST: usize = 32;

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
    places: HashMap<u64, u32, BuildHasherDefault<IdentityHasher>>,
    entries: Vec<Option<Entry>>,
    free: Vec<u32>,
    probation: VecDeque<u32>,
    main: VecDeque<u32>,
    ghosts: VecDeque<u64>,
    is_ghost: Hashes,
    /// Bytes in probation and in total.
    in_probation: usize,
    octets: usize,
    bound: usize,
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
    fn octets(&self) -> usize {
        OVERHEAD + self.key.len() + self.value.len()
    }
}

impl Cache {
    /// A cache of at most `bound` bytes. If a batch exceeds the bound, its entries remain until the
    /// next batch.
    pub(super) fn new(bound: usize) -> Self {
        Self {
            hasher: RandomState::new(),
            places: HashMap::default(),
            entries: Vec::new(),
            free: Vec::new(),
            probation: VecDeque::new(),
            main: VecDeque::new(),
            ghosts: VecDeque::new(),
            is_ghost: Hashes::default(),
            in_probation: 0,
            octets: 0,
            bound,
        }
    }

    /// The hash of a key; the other functions take it as argument.
    pub(super) fn hash(&self, key: &[u8]) -> u64 {
        self.hasher.hash_one(key)
    }

    /// Memory of the entries in bytes.
    pub(super) const fn octets(&self) -> usize {
        self.octets
    }

    /// Number of entries.
    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.places.len()
    }

    /// The value of `key`, which has the hash `hash`, and the time from which it must be replaced.
    pub(super) fn find(&mut self, hash: u64, key: &[u8], batch: u32) -> Option<(&[u8], u32)> {
        let place = *self.places.get(&hash)?;
        let entry = self.entries[place as usize].as_mut().filter(|entry| *entry.key == *key)?;
        if entry.batch != batch {
            entry.uses = (entry.uses + 1).min(MOST_USES);
        }
        Some((&entry.value, entry.stale_from))
    }

    /// The value of the entry with `hash`, after a successful [`Cache::find`].
    pub(super) fn peek(&self, hash: u64) -> Option<&[u8]> {
        let place = *self.places.get(&hash)?;
        self.entries[place as usize].as_ref().map(|entry| &*entry.value)
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
        if let Some(place) = self.places.get(&hash) {
            return self.replace(*place, key, value, stale_from, batch);
        }
        let is_main = self.is_ghost.remove(&hash);
        let entry = Entry { hash, key, value, stale_from, batch, uses: 0, is_main };
        self.octets += entry.octets();
        if !is_main {
            self.in_probation += entry.octets();
        }
        let place = self.free.pop().unwrap_or_else(|| {
            self.entries.push(None);
            (self.entries.len() - 1) as u32
        });
        self.entries[place as usize] = Some(entry);
        self.places.insert(hash, place);
        if is_main {
            self.main.push_back(place)
        } else {
            self.probation.push_back(place)
        }
        self.make_room(batch);
    }

    fn replace(&mut self, place: u32, key: Box<[u8]>, value: Box<[u8]>, stale_from: u32, batch: u32) {
        let Some(entry) = self.entries[place as usize].as_mut() else { return };
        let before = entry.octets();
        (entry.key, entry.value, entry.stale_from, entry.batch) = (key, value, stale_from, batch);
        let after = entry.octets();
        if !entry.is_main {
            self.in_probation = self.in_probation - before + after;
        }
        self.octets = self.octets - before + after;
        self.make_room(batch);
    }

    /// Evicts entries until the cache is within its bound or has only entries of this batch.
    fn make_room(&mut self, batch: u32) {
        while self.octets > self.bound {
            let from_probation = self.in_probation > self.bound / PROBATION;
            let done =
                if from_probation && self.shrink_probation(batch) { true } else { self.shrink_main(batch) };
            if !done && !self.shrink_probation(batch) {
                return;
            }
        }
    }

    /// Removes the oldest entry from probation. `false` if it and thus all later ones are of this
    /// batch.
    fn shrink_probation(&mut self, batch: u32) -> bool {
        let Some(place) = self.probation.front().copied() else { return false };
        let Some(entry) = self.entries[place as usize].as_mut() else { return false };
        if entry.batch == batch {
            return false;
        }
        self.probation.pop_front();
        self.in_probation -= entry.octets();
        if entry.uses > 0 {
            (entry.is_main, entry.uses) = (true, 0);
            self.main.push_back(place);
        } else {
            let hash = entry.hash;
            self.remove(place);
            self.remember(hash);
        }
        true
    }

    /// Evicts an unused entry of the main queue; `false` if all entries are of this batch.
    fn shrink_main(&mut self, batch: u32) -> bool {
        // Each entry returns to the tail at most once for each counted use.
        for _ in 0..self.main.len() * (usize::from(MOST_USES) + 1) {
            let Some(place) = self.main.pop_front() else { return false };
            let Some(entry) = self.entries[place as usize].as_mut() else { continue };
            if entry.uses == 0 && entry.batch != batch {
                self.remove(place);
                return true;
            }
            entry.uses = entry.uses.saturating_sub(1);
            self.main.push_back(place);
        }
        false
    }

    fn remove(&mut self, place: u32) {
        if let Some(entry) = self.entries[place as usize].take() {
            self.octets -= entry.octets();
            self.places.remove(&entry.hash);
            self.free.push(place);
        }
    }

    /// Stores the hash of an entry that was evicted from probation. The ghost queue has at most a
    /// tenth of the capacity.
    fn remember(&mut self, hash: u64) {
        if self.is_ghost.insert(hash) {
            self.ghosts.push_back(hash);
        }
        while self.ghosts.len() > self.bound / PROBATION / GHOST {
            if let Some(oldest) = self.ghosts.pop_front() {
                self.is_ghost.remove(&oldest);
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
    fn the_bound_holds_under_a_flood_and_what_is_used_stays() {
        let mut cache = Cache::new(64 << 10);
        let often = 0..20;
        for key in often.clone() {
            put(&mut cache, key, 0);
        }
        for batch in 1..20_000 {
            for key in often.clone().filter(|key| key % 20 == batch % 20) {
                assert!(has(&mut cache, key, batch), "{key} in batch {batch}");
            }
            put(&mut cache, 1000 + batch, batch);
            assert!(cache.octets() <= 64 << 10);
            assert!(has(&mut cache, 1000 + batch, batch));
        }
        assert!(cache.len() > 150 && cache.ghosts.len() <= (64 << 10) / PROBATION / GHOST);
        assert_eq!(cache.places.len() + cache.free.len(), cache.entries.len());
        assert!(cache.ghosts.len() >= cache.is_ghost.len());
    }

    #[test]
    fn a_batch_is_held_whole_and_goes_with_the_next() {
        let mut cache = Cache::new(1 << 10);
        for key in 0..50 {
            put(&mut cache, key, 1);
        }
        assert!((0..50).all(|key| has(&mut cache, key, 1)));
        assert!(cache.octets() > 1 << 10);
        put(&mut cache, 50, 2);
        assert!(has(&mut cache, 50, 2) && cache.octets() <= 1 << 10);
    }

    #[test]
    fn what_comes_again_soon_is_kept_longer() {
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
    fn a_value_made_anew_takes_the_place_of_the_old() {
        let mut cache = Cache::new(64 << 10);
        let hash = cache.hash(b"k");
        cache.insert(hash, (*b"k").into(), vec![1; 10].into(), 5, 1);
        let before = cache.octets();
        cache.insert(hash, (*b"k").into(), vec![2; 30].into(), 9, 2);
        assert_eq!(cache.find(hash, b"k", 2), Some((&[2; 30][..], 9)));
        assert_eq!((cache.octets(), cache.len()), (before + 20, 1));
        assert_eq!(cache.find(hash, b"other key of that hash", 2), None);
    }
}
