//! The index of a shard: positions of entries by the hash of their name.
//!
//! It is an open-addressing table of buckets. A bucket is one cache line: seven tags, seven
//! positions, and the number of entries that passed it because it was full. The path of a hash
//! begins at its home bucket and goes on to the following ones of its region. A lookup ends at a bucket
//! that no entry has passed. So the removal of an entry leaves no marker and moves no other entry.
//!
//! The table begins with one region and grows with the number of entries (linear hashing): the regions
//! are split in turn, each into itself and a new one at the end of the table. A split moves at most the
//! entries of one region. Otherwise entries that are few would be spread over all pages of a large table.
//!
//! A tag has 16 bits of the hash and 16 bits of the label. All entries of a name have the same path
//! and the same upper half of the tag. An entry is read to compare its key only if its tag matches.

use super::entry::Label;
use super::log::Position;
use std::ops::Range;

/// Octets of a bucket: a cache line.
pub(super) const BUCKET_OCTETS: usize = 64;
/// Words of 32 bits of a bucket.
const BUCKET_WORDS: usize = BUCKET_OCTETS / 4;
/// Number of entries of a bucket. Their tags are in the first words.
const LANES: usize = 7;
/// The word with the number of entries that passed the bucket.
const PASSED_AT: usize = 7;
/// The first of the words with positions; 0 in a free lane.
const POSITIONS_AT: usize = 8;
/// Maximum number of buckets of a path. An entry that needs a longer one is not stored: that takes
/// hundreds of entries with adjacent hashes.
const PATH_MAX: usize = 64;
/// Maximum number of entries for each 100 lanes. Up to this, the path of most entries is one bucket.
const LOAD_PERCENT: usize = 80;
/// Number of entries for each 100 lanes from which a table below its maximum size grows. Regions that are
/// not split yet have up to twice the average.
const GROWTH_PERCENT: usize = LOAD_PERCENT / 2;
/// Minimum number of buckets of a region; a smaller table has one region. A region has less than twice this number.
const REGION_BUCKETS_MIN: usize = 64;

/// The index.
#[derive(Debug)]
pub(super) struct Index {
    words: Vec<u32>,
    /// The first word of the first bucket, so that buckets are aligned.
    first: usize,
    /// Number of buckets of a region.
    region_buckets: usize,
    regions: usize,
    /// The bits of a hash that number a region: fewer of them for the regions that are not split yet.
    region_mask: usize,
    /// Maximum number of regions: a power of two, so that all have the same load at last.
    regions_max: usize,
    entries: usize,
    entries_max: usize,
}

/// The place of an entry in the index. It stays until the entry is removed or another one is inserted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Slot {
    bucket: usize,
    lane: usize,
}

/// Returns the tag of an entry.
pub(super) const fn tag(hash: u64, label: Label) -> u32 {
    name_tag(hash) << 16 | label.fold() as u32
}

/// Returns the upper half of the tags of a name.
const fn name_tag(hash: u64) -> u32 {
    (hash >> 32) as u16 as u32
}

/// Returns a bit for each lane whose tag has a property. It checks all lanes, because a branch for
/// each would cost more.
fn lanes_where(bucket: &[u32; BUCKET_WORDS], has: impl Fn(u32) -> bool) -> u32 {
    (0..LANES).fold(0, |lanes, lane| lanes | u32::from(has(bucket[lane])) << lane)
}

impl Index {
    /// Returns an empty index of at most `buckets` buckets, at least two, including one that is lost to
    /// alignment.
    pub(super) fn new(buckets: usize) -> Self {
        let buckets = buckets.saturating_sub(1).max(1);
        let regions_max = 1 << (buckets / REGION_BUCKETS_MIN).checked_ilog2().unwrap_or(0);
        let region_buckets = buckets / regions_max;
        let buckets = region_buckets * regions_max;
        // Zeroed memory: the system provides a page when it is first written.
        let words = vec![0; (buckets + 1) * BUCKET_WORDS];
        let first = words.as_ptr().align_offset(BUCKET_OCTETS);
        Self {
            words,
            first: if first < BUCKET_WORDS { first } else { 0 },
            region_buckets,
            regions: 1,
            region_mask: 0,
            regions_max,
            entries: 0,
            entries_max: (buckets * LANES * LOAD_PERCENT / 100).max(1),
        }
    }

    /// Returns the number of entries.
    pub(super) const fn entries(&self) -> usize {
        self.entries
    }

    /// Returns the number of regions.
    pub(super) const fn regions(&self) -> usize {
        self.regions
    }

    /// Returns the octets of memory of the regions.
    pub(super) const fn octets(&self) -> usize {
        (self.regions * self.region_buckets + 1) * BUCKET_OCTETS
    }

    /// Whether another entry would exceed the maximum.
    pub(super) const fn is_full(&self) -> bool {
        self.entries >= self.entries_max
    }

    /// Returns the region of a hash.
    const fn region(&self, hash: u64) -> usize {
        let region = hash as usize & self.region_mask;
        if region < self.regions { region } else { region & self.region_mask >> 1 }
    }

    /// Returns the buckets of a region.
    const fn buckets_of(&self, region: usize) -> Range<usize> {
        region * self.region_buckets..(region + 1) * self.region_buckets
    }

    /// Returns the buckets of the path of a hash.
    fn path(&self, hash: u64) -> impl Iterator<Item = usize> + use<> {
        let Range { start, end } = self.buckets_of(self.region(hash));
        let home = start + (((hash as u32 as u64) * self.region_buckets as u64) >> 32) as usize;
        (home..end).chain(start..home).take(PATH_MAX)
    }

    fn bucket(&self, bucket: usize) -> &[u32; BUCKET_WORDS] {
        let start = self.first + bucket * BUCKET_WORDS;
        self.words[start..].first_chunk().expect("the table has all buckets")
    }

    fn bucket_mut(&mut self, bucket: usize) -> &mut [u32; BUCKET_WORDS] {
        let start = self.first + bucket * BUCKET_WORDS;
        self.words[start..].first_chunk_mut().expect("the table has all buckets")
    }

    /// Returns the entry with this tag for whose position `matches` returns true.
    pub(super) fn find(
        &self,
        hash: u64,
        tag: u32,
        mut matches: impl FnMut(Position) -> bool,
    ) -> Option<(Slot, Position)> {
        for at in self.path(hash) {
            let bucket = self.bucket(at);
            let lanes = lanes_where(bucket, |found| found == tag);
            for lane in (0..LANES).filter(|lane| lanes >> lane & 1 == 1) {
                if let Some(position) = Position::from_word(bucket[POSITIONS_AT + lane])
                    && matches(position)
                {
                    return Some((Slot { bucket: at, lane }, position));
                }
            }
            if bucket[PASSED_AT] == 0 {
                return None;
            }
        }
        None
    }

    /// Whether there may be entries of the name with this hash.
    pub(super) fn may_have_name(&self, hash: u64) -> bool {
        for at in self.path(hash) {
            let bucket = self.bucket(at);
            if lanes_where(bucket, |tag| tag >> 16 == name_tag(hash)) != 0 {
                return true;
            }
            if bucket[PASSED_AT] == 0 {
                return false;
            }
        }
        false
    }

    /// Returns the entries whose tag has the upper half that belongs to `hash`: those of the name,
    /// and rarely one of another name.
    pub(super) fn of_name(&self, hash: u64) -> impl Iterator<Item = (Slot, Position)> {
        let mut is_passed = true;
        self.path(hash)
            .take_while(move |at| std::mem::replace(&mut is_passed, self.bucket(*at)[PASSED_AT] != 0))
            .flat_map(|at| self.in_bucket(at))
            .filter(move |(slot, _)| self.bucket(slot.bucket)[slot.lane] >> 16 == name_tag(hash))
    }

    /// Returns the entries in a region.
    pub(super) fn in_region(&self, region: usize) -> impl Iterator<Item = (Slot, Position)> {
        self.buckets_of(region).flat_map(|at| self.in_bucket(at))
    }

    fn in_bucket(&self, at: usize) -> impl Iterator<Item = (Slot, Position)> {
        let bucket = self.bucket(at);
        (0..LANES).filter_map(move |lane| {
            Some((Slot { bucket: at, lane }, Position::from_word(bucket[POSITIONS_AT + lane])?))
        })
    }

    /// Adds an entry, which must not be there yet. Returns whether its path has a free lane. `hash_at`
    /// returns the hash of the entry at a position.
    pub(super) fn insert(
        &mut self,
        hash: u64,
        tag: u32,
        position: Position,
        hash_at: impl Fn(Position) -> u64,
    ) -> bool {
        let lanes = self.regions * self.region_buckets * LANES;
        if self.entries * 100 >= lanes * GROWTH_PERCENT && self.regions < self.regions_max {
            self.split_region(hash_at);
        }
        self.place(hash, tag, position)
    }

    /// Splits the next region of the round: moves some of its entries to a new region.
    fn split_region(&mut self, hash_at: impl Fn(Position) -> u64) {
        let split_bit = 1 << self.regions.ilog2();
        let region = self.regions - split_bit;
        let moved: Vec<(u64, Slot, u32, Position)> = self
            .in_region(region)
            .map(|(slot, position)| (hash_at(position), slot, position))
            .filter(|(hash, ..)| *hash as usize & split_bit != 0)
            .map(|(hash, slot, position)| (hash, slot, self.bucket(slot.bucket)[slot.lane], position))
            .collect();
        for (hash, slot, ..) in &moved {
            self.remove(*hash, *slot);
        }
        self.regions += 1;
        self.region_mask = self.regions.next_power_of_two() - 1;
        for (hash, _, tag, position) in moved {
            // The path of an entry may be too long in the new order. Then the entry is lost.
            self.place(hash, tag, position);
        }
    }

    fn place(&mut self, hash: u64, tag: u32, position: Position) -> bool {
        let is_free = |lane: &usize, at| self.bucket(at)[POSITIONS_AT + lane] == 0;
        let free = self.path(hash).find_map(|at| Some((at, (0..LANES).find(|lane| is_free(lane, at))?)));
        let Some((target, lane)) = free else { return false };
        for at in self.path(hash).take_while(|at| *at != target) {
            self.bucket_mut(at)[PASSED_AT] += 1;
        }
        let bucket = self.bucket_mut(target);
        bucket[lane] = tag;
        bucket[POSITIONS_AT + lane] = position.to_word();
        self.entries += 1;
        true
    }

    /// Changes the position of an entry.
    pub(super) fn set_position(&mut self, slot: Slot, position: Position) {
        self.bucket_mut(slot.bucket)[POSITIONS_AT + slot.lane] = position.to_word();
    }

    /// Removes an entry. `hash`: the hash with which it was inserted.
    pub(super) fn remove(&mut self, hash: u64, slot: Slot) {
        for at in self.path(hash).take_while(|at| *at != slot.bucket) {
            self.bucket_mut(at)[PASSED_AT] -= 1;
        }
        let bucket = self.bucket_mut(slot.bucket);
        bucket[slot.lane] = 0;
        bucket[POSITIONS_AT + slot.lane] = 0;
        self.entries -= 1;
    }

    /// Panics unless the number of entries and the counts of passed buckets fit the entries, whose
    /// hashes `hash` returns.
    #[cfg(test)]
    pub(super) fn assert_consistent(&self, hash: impl Fn(Position) -> u64) {
        let buckets = self.regions * self.region_buckets;
        let mut passed = vec![0; buckets];
        let mut entries = 0;
        for (slot, position) in (0..self.regions).flat_map(|region| self.in_region(region)) {
            entries += 1;
            assert!(self.path(hash(position)).any(|at| at == slot.bucket), "an entry is not on its path");
            for at in self.path(hash(position)).take_while(|at| *at != slot.bucket) {
                passed[at] += 1;
            }
        }
        let counted: Vec<u32> = (0..buckets).map(|at| self.bucket(at)[PASSED_AT]).collect();
        assert_eq!((entries, passed), (self.entries, counted));
    }
}
