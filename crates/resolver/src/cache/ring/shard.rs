//! A shard: a log and its index. The caller has the lock.

use super::entry::{Entry, Header, Label, NameKey};
use super::index::{self, Index, Slot};
use super::log::{Log, Position, SEGMENT_OCTETS};

/// Maximum octets of a value. A larger one would take a large part of a segment, whose rest may stay
/// unused. This is enough for a proof of a missing name with three NSEC3 records and with signatures
/// of SLH-DSA-SHA2-128s (7,856 octets each).
pub(in crate::cache) const VALUE_MAX: usize = 40 << 10;
/// Maximum number of used entries that one insertion renews. Further ones are dropped, so an
/// insertion does bounded work even if all entries are in use.
pub(super) const RENEWALS_MAX: usize = 8;

/// Why an entry was not stored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum StoreError {
    /// The name or the value is too long.
    TooLarge,
    /// All places of the index that the name can have are in use.
    IndexPath,
}

/// A shard.
#[derive(Debug)]
pub(super) struct Shard {
    index: Index,
    log: Log,
}

impl Shard {
    /// Returns an empty shard. `buckets`: size of the index; `segments`: maximum size of the log.
    pub(super) fn new(buckets: usize, segments: usize) -> Self {
        const { assert!(VALUE_MAX + 512 < SEGMENT_OCTETS) };
        Self { index: Index::new(buckets), log: Log::new(segments) }
    }

    /// Returns the number of entries, expired ones included.
    pub(super) const fn entries(&self) -> usize {
        self.index.entries()
    }

    /// Returns the octets of memory that are allocated.
    pub(super) const fn octets(&self) -> usize {
        self.index.octets() + self.log.octets()
    }

    /// Returns the number of regions of the index.
    pub(super) const fn regions(&self) -> usize {
        self.index.regions()
    }

    fn find(&self, name: &NameKey<'_>, label: Label) -> Option<(Slot, Position)> {
        self.index.find(name.hash, index::tag(name.hash, label), |position| {
            let entry = self.log.entry(position);
            entry.label == label && entry.name.eq_ignore_ascii_case(name.lower)
        })
    }

    /// Whether a name may have entries.
    pub(super) fn may_have_entries(&self, name: &NameKey<'_>) -> bool {
        self.index.may_have_name(name.hash)
    }

    /// Returns an entry, even if it has expired.
    pub(super) fn entry(&self, name: &NameKey<'_>, label: Label) -> Option<Entry<'_>> {
        self.find(name, label).map(|(_, position)| self.log.entry(position))
    }

    /// As [`Ring::read`](super::Ring::read).
    pub(super) fn read<R>(
        &mut self,
        name: &NameKey<'_>,
        labels: &[Label],
        now: u32,
        mut copy: impl FnMut(Entry<'_>) -> Option<R>,
    ) -> Option<R> {
        for (number, label) in labels.iter().enumerate() {
            // Most names without the first label have no entry at all.
            if number == 1 && !self.index.may_have_name(name.hash) {
                return None;
            }
            let Some((_, position)) = self.find(name, *label) else { continue };
            let entry = self.log.entry(position);
            if entry.expiry > now
                && let Some(result) = copy(entry)
            {
                self.log.mark_used(position);
                return Some(result);
            }
        }
        None
    }

    /// Inserts or replaces an entry; `hash`: the hash of its name in lower case. Returns the number
    /// of unexpired entries that were dropped to make room.
    pub(super) fn store(&mut self, hash: u64, entry: &Entry<'_>, now: u32) -> Result<u64, StoreError> {
        let header = Header::of(hash, entry).filter(|_| entry.value.len() <= VALUE_MAX);
        let header = header.ok_or(StoreError::TooLarge)?;
        let evictions = self.make_room(header.size(), now);
        // Searched now, because making room may have removed the replaced entry.
        let name = NameKey { hash, lower: entry.name };
        let old = self.find(&name, entry.label);
        let position = self.log.append(&header, entry);
        if let Some((slot, _)) = old {
            self.index.set_position(slot, position);
            return Ok(evictions);
        }
        let hash_at = |position| self.log.header(position).hash;
        let is_indexed = self.index.insert(hash, index::tag(hash, entry.label), position, hash_at);
        is_indexed.then_some(evictions).ok_or(StoreError::IndexPath)
    }

    fn make_room(&mut self, size: usize, now: u32) -> u64 {
        let (mut evictions, mut renewals) = (0, 0);
        while self.index.is_full() || !self.log.has_room(size) {
            let Some((position, header)) = self.log.oldest() else {
                self.log.advance(!self.index.is_full());
                continue;
            };
            match self.slot(position, &header) {
                Some(slot) if header.is_used && header.expiry > now && renewals < RENEWALS_MAX => {
                    let position = self.log.renew_oldest(&header);
                    self.index.set_position(slot, position);
                    renewals += 1;
                }
                slot => {
                    evictions += u64::from(slot.is_some() && header.expiry > now);
                    slot.into_iter().for_each(|slot| self.index.remove(header.hash, slot));
                    self.log.drop_oldest(&header);
                }
            }
        }
        evictions
    }

    /// Returns the place in the index of the entry at this position; `None` if it was removed or
    /// replaced.
    fn slot(&self, position: Position, header: &Header) -> Option<Slot> {
        let tag = index::tag(header.hash, header.label);
        self.index.find(header.hash, tag, |found| found == position).map(|(slot, _)| slot)
    }

    /// Returns the number of entries of a name. Entries of another name may be counted too, with a
    /// probability of 1 in 65,536 for each entry nearby.
    pub(super) fn count(&self, name: &NameKey<'_>) -> usize {
        self.index.of_name(name.hash).count()
    }

    /// Removes an entry. Returns whether there was one.
    pub(super) fn remove(&mut self, name: &NameKey<'_>, label: Label) -> bool {
        let slot = self.find(name, label).map(|(slot, _)| slot);
        slot.into_iter().for_each(|slot| self.index.remove(name.hash, slot));
        slot.is_some()
    }

    /// Removes the entries of a name for which `keep` returns false. Returns their number.
    pub(super) fn retain(&mut self, name: &NameKey<'_>, mut keep: impl FnMut(&Entry<'_>) -> bool) -> usize {
        let is_removed = |position| {
            let entry = self.log.entry(position);
            entry.name.eq_ignore_ascii_case(name.lower) && !keep(&entry)
        };
        let of_name = self.index.of_name(name.hash);
        self.remove_all(filter_positions(of_name, is_removed))
    }

    /// Removes the entries in a region of the index for whose name `matches` returns true. Returns their
    /// number.
    pub(super) fn remove_in(&mut self, region: usize, mut matches: impl FnMut(&[u8]) -> bool) -> usize {
        let found = self.index.in_region(region);
        self.remove_all(filter_positions(found, |position| matches(self.log.entry(position).name)))
    }

    fn remove_all(&mut self, found: Vec<(Slot, Position)>) -> usize {
        let removed = found.len();
        for (slot, position) in found {
            self.index.remove(self.log.header(position).hash, slot);
        }
        removed
    }

    /// Panics unless each entry of the index is in the log, and only once.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self) {
        let logged: std::collections::HashSet<Position> = self.log.positions().into_iter().collect();
        let indexed: Vec<_> =
            (0..self.index.regions()).flat_map(|region| self.index.in_region(region)).collect();
        let distinct: std::collections::HashSet<_> = indexed.iter().map(|(_, position)| *position).collect();
        assert_eq!(distinct.len(), indexed.len());
        assert!(distinct.is_subset(&logged));
        self.index.assert_consistent(|position| self.log.header(position).hash);
    }
}

fn filter_positions(
    entries: impl Iterator<Item = (Slot, Position)>,
    mut is_removed: impl FnMut(Position) -> bool,
) -> Vec<(Slot, Position)> {
    entries.filter(|(_, position)| is_removed(*position)).collect()
}
