//! A map of fixed size. All memory is allocated at the start; a new entry replaces an old one.
//!
//! The hash of a key selects a set of eight places. If all of them are taken, the new entry replaces
//! an expired one, or else the first one that was not used since the set was last searched for a
//! place ("second chance"). So a flood of addresses that are used once does not replace servers that
//! are in use.

/// Number of entries in a set.
const WAYS: usize = 8;

pub(super) struct Bounded<K, V> {
    sets: Box<[Set<K, V>]>,
    /// Number of entries.
    entries: usize,
    /// Number of entries that were replaced before they had expired.
    evicted: u64,
}

struct Set<K, V> {
    ways: [Option<Way<K, V>>; WAYS],
    /// The place at which the next search begins.
    hand: u8,
}

struct Way<K, V> {
    key: K,
    value: V,
    is_used: bool,
}

impl<K: Eq, V> Bounded<K, V> {
    /// Returns an empty map for at most `capacity` entries, but at least eight.
    pub(super) fn new(capacity: usize) -> Self {
        // A power of two, because a mask selects the set.
        let sets = 1usize << (capacity / WAYS).max(1).ilog2();
        let sets = (0..sets).map(|_| Set { ways: [const { None }; WAYS], hand: 0 }).collect();
        Self { sets, entries: 0, evicted: 0 }
    }

    pub(super) const fn len(&self) -> usize {
        self.entries
    }

    pub(super) const fn evicted(&self) -> u64 {
        self.evicted
    }

    fn set_index(&self, hash: u64) -> usize {
        (hash >> 32) as usize & (self.sets.len() - 1)
    }

    /// Returns the value of a key, without an effect on its replacement.
    pub(super) fn peek(&self, hash: u64, key: &K) -> Option<&V> {
        let set = &self.sets[self.set_index(hash)];
        set.ways.iter().flatten().find(|way| way.key == *key).map(|way| &way.value)
    }

    /// Returns the value of a key, and marks it as used.
    pub(super) fn get(&mut self, hash: u64, key: &K) -> Option<&mut V> {
        let index = self.set_index(hash);
        let way = self.sets[index].ways.iter_mut().flatten().find(|way| way.key == *key)?;
        way.is_used = true;
        Some(&mut way.value)
    }

    /// Returns the value of a key, and marks it as used. If the map does not have the key, inserts
    /// `value()` for it, possibly in the place of another entry.
    pub(super) fn get_or_insert(
        &mut self,
        hash: u64,
        key: K,
        is_expired: impl Fn(&V) -> bool,
        value: impl FnOnce() -> V,
    ) -> &mut V {
        let index = self.set_index(hash);
        let set = &mut self.sets[index];
        let found = set.ways.iter().position(|way| way.as_ref().is_some_and(|way| way.key == key));
        let place = found.unwrap_or_else(|| set.find_place(&is_expired));
        let way = &mut set.ways[place];
        if found.is_none() {
            match way {
                None => self.entries += 1,
                Some(old) => self.evicted += u64::from(!is_expired(&old.value)),
            }
            // A new entry proves itself by a second use.
            *way = None;
        }
        let way = way.get_or_insert_with(|| Way { key, value: value(), is_used: false });
        way.is_used = found.is_some();
        &mut way.value
    }
}

impl<K, V> Set<K, V> {
    /// Returns the place for a new entry: a free one, that of an expired entry, or that of the first
    /// unused entry.
    fn find_place(&mut self, is_expired: impl Fn(&V) -> bool) -> usize {
        let is_available = |way: &Option<Way<K, V>>| way.as_ref().is_none_or(|way| is_expired(&way.value));
        if let Some(place) = self.ways.iter().position(is_available) {
            return place;
        }
        loop {
            let place = usize::from(self.hand) % WAYS;
            self.hand = (self.hand + 1) % WAYS as u8;
            match &mut self.ways[place] {
                // Each entry is unused when it is seen for the second time.
                Some(way) if way.is_used => way.is_used = false,
                _ => return place,
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::address::mix;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn insert(map: &mut Bounded<u32, u32>, key: u32, value: u32) {
        *map.get_or_insert(mix(key.into()), key, |_| false, || value) = value;
    }

    #[test]
    fn memory_is_bounded_for_any_number_of_keys() {
        for (capacity, expected) in [(0, 8), (1, 8), (8, 8), (100, 64), (1000, 512), (1024, 1024)] {
            let mut map = Bounded::new(capacity);
            (0..100_000).for_each(|key| insert(&mut map, key, key));
            assert_eq!((map.len(), map.sets.len() * WAYS), (expected, expected), "{capacity}");
            assert_eq!(map.evicted(), 100_000 - expected as u64);
        }
    }

    #[test]
    fn entries_in_use_survive_a_flood_of_others() {
        let mut map = Bounded::new(1024);
        let used: Vec<u32> = (0..200).collect();
        used.iter().for_each(|key| insert(&mut map, *key, *key));
        for key in 1000..100_000 {
            insert(&mut map, key, key);
            // Each of the entries is used once in 200 insertions, that is, after one or two insertions
            // into its set on average. An entry that is lost does not return.
            let key = used[key as usize % used.len()];
            map.get(mix(key.into()), &key);
        }
        let survivors = used.iter().filter(|key| map.peek(mix((**key).into()), key).is_some()).count();
        assert!(survivors > 150, "{survivors}");
    }

    #[test]
    fn an_expired_entry_is_replaced_first() {
        let mut map = Bounded::new(8);
        (0..8).for_each(|key| insert(&mut map, key, key));
        map.get_or_insert(0, 100, |value| *value == 5, || 100);
        assert!(map.peek(0, &5).is_none() && map.peek(0, &100).is_some());
        assert_eq!((map.len(), map.evicted()), (8, 0));
    }

    #[test]
    fn an_entry_that_was_used_gets_a_second_chance() {
        let mut map = Bounded::new(8);
        (0..8).for_each(|key| insert(&mut map, key, key));
        map.get(0, &0);
        insert(&mut map, 8, 8);
        assert!(map.peek(0, &0).is_some() && map.peek(0, &1).is_none());
        // It was not used again.
        (9..16).for_each(|key| insert(&mut map, key, key));
        assert!(map.peek(0, &0).is_none());
    }

    proptest! {
        #[test]
        fn the_map_has_the_last_value_of_each_key_that_it_did_not_evict(
            operations in proptest::collection::vec((0..200u32, 0..1000u32), 0..1000),
        ) {
            let mut map = Bounded::new(128);
            let mut model = HashMap::new();
            for (key, value) in operations {
                insert(&mut map, key, value);
                model.insert(key, value);
                prop_assert_eq!(map.peek(mix(key.into()), &key), Some(&value));
            }
            let found = model.iter().filter(|(key, value)| {
                map.peek(mix(u64::from(**key)), key).is_some_and(|found| found == *value)
            });
            prop_assert_eq!(found.count(), map.len());
            prop_assert!(map.len() <= 128);
        }
    }
}
