//! A map of bounded size that forgets entries that were not used for a long time.

use std::collections::HashMap;
use std::hash::Hash;

/// A map of at most `capacity` entries, in two generations. When the young generation has half of
/// them, it becomes the old one, and the entries of the old one that were not used since are
/// forgotten.
#[derive(Debug)]
pub struct BoundedMap<K, V> {
    young: HashMap<K, V>,
    old: HashMap<K, V>,
    half: usize,
}

impl<K: Eq + Hash, V> BoundedMap<K, V> {
    /// Creates an empty map of at most `capacity` entries, which must be at least 2.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { young: HashMap::new(), old: HashMap::new(), half: (capacity / 2).max(1) }
    }

    /// Adds or replaces an entry.
    pub fn insert(&mut self, key: K, value: V) {
        self.old.remove(&key);
        if self.young.len() >= self.half && !self.young.contains_key(&key) {
            self.old = std::mem::take(&mut self.young);
        }
        self.young.insert(key, value);
    }

    /// Returns the value of an entry, which is used by this.
    pub fn get(&mut self, key: &K) -> Option<&mut V> {
        if !self.young.contains_key(key) {
            let (key, value) = self.old.remove_entry(key)?;
            self.insert(key, value);
        }
        self.young.get_mut(key)
    }

    /// Removes an entry and returns its value.
    pub fn remove(&mut self, key: &K) -> Option<V> {
        self.young.remove(key).or_else(|| self.old.remove(key))
    }

    /// Number of entries.
    #[must_use]
    pub fn len(&self) -> usize {
        self.young.len() + self.old.len()
    }

    /// Whether there is no entry.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.young.is_empty() && self.old.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn the_last_used_entries_are_known_and_the_size_is_bounded(keys in proptest::collection::vec(0u8..40, 0..300)) {
            const CAPACITY: usize = 16;
            let mut map = BoundedMap::new(CAPACITY);
            for (place, key) in keys.iter().enumerate() {
                if place % 2 == 0 || map.get(key).is_none() {
                    map.insert(*key, place);
                }
                prop_assert!(map.len() <= CAPACITY);
                // Half of the capacity is the number of entries that are certainly known.
                let mut recent: Vec<u8> = Vec::new();
                for key in keys[..=place].iter().rev() {
                    if !recent.contains(key) && recent.len() < CAPACITY / 2 {
                        recent.push(*key);
                    }
                }
                for key in recent {
                    prop_assert!(map.young.contains_key(&key) || map.old.contains_key(&key), "{key}");
                }
            }
        }
    }

    #[test]
    fn a_removed_entry_is_unknown() {
        let mut map = BoundedMap::new(4);
        map.insert(1, 'a');
        assert_eq!((map.remove(&1), map.remove(&1)), (Some('a'), None));
        assert!(map.get(&1).is_none() && map.is_empty());
    }
}
