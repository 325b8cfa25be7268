//! Storage for a bounded number of values, with keys that are not used twice.

/// Identifies a value in [`Slots`]. The key of a removed value matches no later value.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct Key(u64);

/// Bits of a key for the index of the slot. The next 32 bits are the number of values that the slot
/// had before. The upper 8 bits are zero.
const INDEX_BITS: u32 = 24;

impl Key {
    /// Number of bits of a key.
    pub(super) const BITS: u32 = INDEX_BITS + u32::BITS;

    pub(super) const fn from_bits(bits: u64) -> Self {
        Self(bits)
    }

    pub(super) const fn to_bits(self) -> u64 {
        self.0
    }

    const fn new(index: usize, generation: u32) -> Self {
        Self((generation as u64) << INDEX_BITS | index as u64)
    }

    const fn index(self) -> usize {
        (self.0 & ((1 << INDEX_BITS) - 1)) as usize
    }

    const fn generation(self) -> u32 {
        (self.0 >> INDEX_BITS) as u32
    }
}

/// A bounded number of values. Memory grows with the number of values, up to the bound.
#[derive(Debug)]
pub(super) struct Slots<T> {
    slots: Vec<Slot<T>>,
    /// Indexes of slots without a value.
    free: Vec<usize>,
    max: usize,
}

#[derive(Debug)]
struct Slot<T> {
    generation: u32,
    value: Option<T>,
}

impl<T> Slots<T> {
    /// Returns storage for at most `max` values.
    pub(super) fn new(max: usize) -> Self {
        Self { slots: Vec::new(), free: Vec::new(), max: max.min(1 << INDEX_BITS) }
    }

    pub(super) fn len(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    pub(super) fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Whether another value can be inserted.
    pub(super) fn has_room(&self) -> bool {
        self.len() < self.max
    }

    /// Stores the value that `make` returns for its key; `None` if there is no room.
    pub(super) fn insert_with(&mut self, make: impl FnOnce(Key) -> T) -> Option<Key> {
        if !self.has_room() {
            return None;
        }
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(Slot { generation: 0, value: None });
            self.slots.len() - 1
        });
        let slot = self.slots.get_mut(index)?;
        let key = Key::new(index, slot.generation);
        slot.value = Some(make(key));
        Some(key)
    }

    /// Stores a value; `None` if there is no room.
    pub(super) fn insert(&mut self, value: T) -> Option<Key> {
        self.insert_with(|_| value)
    }

    pub(super) fn get_mut(&mut self, key: Key) -> Option<&mut T> {
        let slot = self.slots.get_mut(key.index())?;
        if slot.generation == key.generation() { slot.value.as_mut() } else { None }
    }

    pub(super) fn remove(&mut self, key: Key) -> Option<T> {
        let slot = self.slots.get_mut(key.index())?;
        if slot.generation != key.generation() {
            return None;
        }
        let value = slot.value.take()?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(key.index());
        Some(value)
    }

    /// Returns all values with their keys.
    pub(super) fn iter(&self) -> impl Iterator<Item = (Key, &T)> {
        self.slots
            .iter()
            .enumerate()
            .filter_map(|(index, slot)| Some((Key::new(index, slot.generation), slot.value.as_ref()?)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_matches_only_its_value() {
        let mut slots = Slots::new(2);
        let first = slots.insert("first").expect("room");
        let second = slots.insert("second").expect("room");
        assert_eq!(slots.insert("third"), None);
        assert_eq!(slots.remove(first), Some("first"));
        let third = slots.insert("third").expect("room");
        assert_ne!(first, third);
        assert_eq!(slots.get_mut(first), None);
        assert_eq!(slots.remove(first), None);
        assert_eq!(slots.get_mut(third), Some(&mut "third"));
        let mut all: Vec<_> = slots.iter().collect();
        all.sort_by_key(|(key, _)| key.to_bits());
        assert_eq!(all, [(second, &"second"), (third, &"third")]);
        assert_eq!((slots.len(), slots.has_room()), (2, false));
        assert_eq!(slots.get_mut(Key::from_bits(u64::MAX)), None);
    }

    #[test]
    fn keys_leave_the_upper_bits_free() {
        let key = Key::new((1 << INDEX_BITS) - 1, u32::MAX);
        assert_eq!((key.to_bits() >> Key::BITS, key.generation()), (0, u32::MAX));
        assert_eq!(key.index(), (1 << INDEX_BITS) - 1);
    }
}
