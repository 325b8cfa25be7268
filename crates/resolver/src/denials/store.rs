//! The zones of the cache, in shards, and the memory of all of them.

use super::zone::{Update, Zone};
use crate::hasher::BuildFastHasher;
use nonesuch_proto::NameRef;
use siphasher::sip::SipHasher13;
use std::collections::{BTreeSet, HashMap};
use std::sync::atomic::{AtomicU32, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Number of parts with separate locks.
const SHARDS: usize = 64;
/// Number of counters that tell without a lock whether the cache may have a zone.
const FILTER: usize = 4096;
/// In place of a second of expiry: the shard is empty.
const NEVER: u32 = u32::MAX;

/// Identifies a zone: the hash of its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ZoneId(u64);

/// All zones. Names of zones are in lower case.
#[derive(Debug)]
pub(super) struct Store {
    shards: Box<[Shard]>,
    /// The number of zones whose hashes select the counter.
    filter: Box<[AtomicU32]>,
    /// One more than the maximum number of labels that a zone ever had; 0 if there was no zone.
    depth: AtomicUsize,
    zones: AtomicUsize,
    entries: AtomicUsize,
    /// Octets of all zones, including octets reserved for updates.
    octets: AtomicUsize,
    evictions: AtomicU64,
    octets_max: usize,
    zone_entries_max: usize,
    hasher: SipHasher13,
}

#[derive(Debug)]
struct Shard {
    content: Mutex<ShardContent>,
    /// The second at which its first entry expires, or [`NEVER`]. It changes only under the lock.
    earliest: AtomicU32,
}

#[derive(Debug, Default)]
struct ShardContent {
    zones: HashMap<u64, Zone, BuildFastHasher>,
    /// For each zone, the second at which its first entry expires.
    expiries: BTreeSet<(u32, u64)>,
}

/// The size of a zone.
#[derive(Clone, Copy, Default)]
struct Size {
    zones: usize,
    entries: usize,
    octets: usize,
    earliest: Option<u32>,
}

impl Size {
    fn of(zone: Option<&Zone>) -> Self {
        zone.map_or_else(Self::default, |zone| Self {
            zones: 1,
            entries: zone.len(),
            octets: zone.octets(),
            earliest: zone.earliest(),
        })
    }
}

impl Store {
    pub(super) fn new(octets_max: usize, zone_entries_max: usize, key: &[u8; 16]) -> Self {
        let shard = |_| Shard { content: Mutex::default(), earliest: AtomicU32::new(NEVER) };
        Self {
            shards: (0..SHARDS).map(shard).collect(),
            filter: (0..FILTER).map(|_| AtomicU32::new(0)).collect(),
            depth: AtomicUsize::new(0),
            zones: AtomicUsize::new(0),
            entries: AtomicUsize::new(0),
            octets: AtomicUsize::new(0),
            evictions: AtomicU64::new(0),
            octets_max,
            zone_entries_max,
            hasher: SipHasher13::new_with_key(key),
        }
    }

    /// Returns the numbers of zones, entries, octets and evictions.
    pub(super) fn counts(&self) -> (usize, usize, usize, u64) {
        let read = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let evictions = self.evictions.load(Ordering::Relaxed);
        (read(&self.zones), read(&self.entries), read(&self.octets), evictions)
    }

    /// Returns the identifier of a zone.
    pub(super) fn id(&self, apex: NameRef<'_>) -> ZoneId {
        ZoneId(self.hasher.hash(apex.wire()))
    }

    fn shard(&self, id: ZoneId) -> &Shard {
        // The map in the shard and the filter use the low bits.
        &self.shards[(id.0 >> 32) as usize % SHARDS]
    }

    fn filter(&self, id: ZoneId) -> &AtomicU32 {
        &self.filter[id.0 as usize % FILTER]
    }

    /// Calls `read` with a zone, under the lock of its shard.
    pub(super) fn with<R>(&self, id: ZoneId, apex: NameRef<'_>, read: impl FnOnce(&Zone) -> R) -> Option<R> {
        let content = self.shard(id).lock();
        content.zones.get(&id.0).filter(|zone| zone.apex().view() == apex).map(read)
    }

    /// Calls `read` with the closest zone at or above `name`, under the lock of its shard. A name
    /// outside of all zones usually takes no lock.
    pub(super) fn with_closest<R>(
        &self,
        name: NameRef<'_>,
        mut read: impl FnMut(&Zone) -> R,
    ) -> Option<(ZoneId, R)> {
        let labels = self.depth.load(Ordering::Relaxed).checked_sub(1)?;
        let mut candidate = Some(name.suffix(labels));
        while let Some(apex) = candidate {
            let id = self.id(apex);
            if self.filter(id).load(Ordering::Relaxed) > 0
                && let Some(result) = self.with(id, apex, &mut read)
            {
                return Some((id, result));
            }
            candidate = apex.parent();
        }
        None
    }

    /// Adds data to a zone. It first removes entries that expire first until the memory suffices.
    /// Returns false if the data do not fit, or there is neither such a zone nor an SOA RRset and
    /// entries for a new one.
    pub(super) fn update(&self, update: Update) -> bool {
        let (id, reserved) = (self.id(update.apex.view()), update.octets());
        if !self.reserve(reserved) {
            return false;
        }
        self.shard(id).edit(id, self, reserved, |zones| {
            let zone = match zones.entry(id.0) {
                std::collections::hash_map::Entry::Occupied(entry) => entry.into_mut(),
                std::collections::hash_map::Entry::Vacant(place) => {
                    let (Some(soa), Some(chain)) = (&update.soa, &update.chain) else { return false };
                    place.insert(Zone::new(update.apex.clone(), soa.clone(), chain.clone()))
                }
            };
            if zone.apex() != &update.apex {
                return false;
            }
            let evicted = zone.update(update, self.zone_entries_max);
            self.evictions.fetch_add(evicted as u64, Ordering::Relaxed);
            true
        })
    }

    /// Adds to the octets, and removes entries until the sum is within the maximum. Returns false if
    /// this is impossible.
    fn reserve(&self, octets: usize) -> bool {
        loop {
            let add = |used: usize| used.checked_add(octets).filter(|sum| *sum <= self.octets_max);
            if self.octets.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).is_ok() {
                return true;
            }
            if octets > self.octets_max || !self.evict() {
                return false;
            }
        }
    }

    /// Removes the entry that expires first. Returns whether there was one.
    fn evict(&self) -> bool {
        let earliest = |shard: &&Shard| shard.earliest.load(Ordering::Relaxed);
        let Some(shard) = self.shards.iter().min_by_key(earliest) else { return false };
        let first = shard.lock().expiries.first().copied();
        let Some((_, id)) = first else { return false };
        let is_removed =
            shard.edit(ZoneId(id), self, 0, |zones| zones.get_mut(&id).is_some_and(Zone::remove_earliest));
        self.evictions.fetch_add(is_removed.into(), Ordering::Relaxed);
        is_removed
    }

    /// As [`DenialCache::flush_below`](super::DenialCache::flush_below).
    pub(super) fn flush_below(&self, name: NameRef<'_>) -> usize {
        let mut removed = 0;
        for shard in &self.shards {
            let ids: Vec<u64> = shard.lock().zones.keys().copied().collect();
            for id in ids {
                shard.edit(ZoneId(id), self, 0, |zones| {
                    let Some(zone) = zones.get_mut(&id) else { return };
                    if zone.apex().view().is_at_or_below(name) {
                        removed += zone.len();
                        zones.remove(&id);
                    } else if name.is_below(zone.apex().view()) {
                        removed += zone.flush_below(name);
                    }
                });
            }
        }
        removed
    }

    /// Adds the change of the size of a zone to the counters.
    fn count(&self, id: ZoneId, labels: usize, before: Size, after: Size) {
        let change = |counter: &AtomicUsize, before: usize, after: usize| {
            counter.fetch_add(after.wrapping_sub(before), Ordering::Relaxed);
        };
        change(&self.entries, before.entries, after.entries);
        change(&self.octets, before.octets, after.octets);
        if before.zones == after.zones {
            return;
        }
        change(&self.zones, before.zones, after.zones);
        if after.zones > 0 {
            self.depth.fetch_max(labels + 1, Ordering::Relaxed);
            self.filter(id).fetch_add(1, Ordering::Relaxed);
        } else {
            self.filter(id).fetch_sub(1, Ordering::Relaxed);
        }
    }
}

impl Shard {
    fn lock(&self) -> MutexGuard<'_, ShardContent> {
        self.content.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes or inserts a zone. A zone without entries is then removed, and what depends on the
    /// size of the zone is updated. `reserved`: octets that were reserved for the change.
    fn edit<R>(
        &self,
        id: ZoneId,
        store: &Store,
        reserved: usize,
        change: impl FnOnce(&mut HashMap<u64, Zone, BuildFastHasher>) -> R,
    ) -> R {
        let mut guard = self.lock();
        let content = &mut *guard;
        let mut before = Size::of(content.zones.get(&id.0));
        let result = change(&mut content.zones);
        if content.zones.get(&id.0).is_some_and(|zone| zone.len() == 0) {
            content.zones.remove(&id.0);
        }
        let zone = content.zones.get(&id.0);
        let after = Size::of(zone);
        let labels = zone.map_or(0, |zone| zone.apex().view().label_count());
        if let Some(earliest) = before.earliest {
            content.expiries.remove(&(earliest, id.0));
        }
        if let Some(earliest) = after.earliest {
            content.expiries.insert((earliest, id.0));
        }
        let earliest = content.expiries.first().map_or(NEVER, |(earliest, _)| *earliest);
        self.earliest.store(earliest, Ordering::Relaxed);
        before.octets += reserved;
        store.count(id, labels, before, after);
        result
    }
}
