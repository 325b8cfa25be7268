//! The known part of a chain of hashes: NSEC3 (20 octets) or NSEC5 (32 octets).

use super::estimate::Sample;
use nonesuch_proto::Rtype;
use std::collections::BTreeMap;
use std::ops::Bound::{Excluded, Unbounded};

/// Bits of a hash that select an entry of [`GapIndex`].
const INDEX_BITS: u32 = 20;
/// Number of new records after which [`GapIndex`] is built again, at least.
const REBUILD_MIN: usize = 64;

/// A record of the chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChainRecord<const N: usize> {
    /// The next hash.
    pub next: [u8; N],
    /// Whether the record has the opt-out flag.
    pub opt_out: bool,
    /// The types of the name.
    pub types: Vec<Rtype>,
}

/// The effect of a record on the known part of the chain.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Inserted {
    /// The record is new.
    New,
    /// The record was known.
    Known,
    /// The record contradicts known records, which are forgotten: the zone has changed, or the server
    /// lies.
    Replaced,
}

/// The known records of a chain.
#[derive(Clone, Debug)]
pub struct HashChain<const N: usize> {
    records: BTreeMap<[u8; N], ChainRecord<N>>,
    /// Number of records whose next hash is not the owner of a known record.
    open: usize,
    /// Sum of the spans of all records, as a share of all hashes.
    covered: f64,
    /// The records that cover hashes of random names, in the order of their discovery.
    samples: Vec<Sample>,
    index: GapIndex,
}

impl<const N: usize> Default for HashChain<N> {
    fn default() -> Self {
        Self {
            records: BTreeMap::new(),
            open: 0,
            covered: 0.0,
            samples: Vec::new(),
            index: GapIndex::all_open(),
        }
    }
}

impl<const N: usize> HashChain<N> {
    /// Number of known records.
    #[must_use]
    pub fn len(&self) -> usize {
        self.records.len()
    }

    /// Whether no record is known.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.records.is_empty()
    }

    /// The records in the order of their hashes.
    pub fn records(&self) -> impl Iterator<Item = (&[u8; N], &ChainRecord<N>)> {
        self.records.iter()
    }

    /// The record with this owner hash.
    #[must_use]
    pub fn record(&self, owner: &[u8; N]) -> Option<&ChainRecord<N>> {
        self.records.get(owner)
    }

    /// Whether every next hash is the owner of a known record, so that no hash is missing.
    #[must_use]
    pub fn is_complete(&self) -> bool {
        !self.is_empty() && self.open == 0
    }

    /// The share of all hashes between the owner and the next hash of known records, 0 to 1.
    #[must_use]
    pub fn coverage(&self) -> f64 {
        if self.is_complete() { 1.0 } else { self.covered.clamp(0.0, 1.0) }
    }

    /// The random samples for the estimate of the number of names.
    #[must_use]
    pub fn samples(&self) -> &[Sample] {
        &self.samples
    }

    /// Restores the samples of a state.
    pub(super) fn set_samples(&mut self, samples: Vec<Sample>) {
        self.samples = samples;
    }

    /// The record at or before `hash`; before the first hash, the last record.
    fn predecessor(&self, hash: &[u8; N]) -> Option<(&[u8; N], &ChainRecord<N>)> {
        self.records.range(..=*hash).next_back().or_else(|| self.records.last_key_value())
    }

    /// Whether a known record has this hash as its owner or covers it.
    pub(super) fn is_known(&self, hash: &[u8; N]) -> bool {
        self.predecessor(hash)
            .is_some_and(|(owner, record)| owner == hash || is_between(hash, owner, &record.next))
    }

    /// A quick check of the first 32 bits of a hash: `false` if it is certainly known.
    #[inline]
    pub(super) fn may_be_unknown(&self, first_word: u32) -> bool {
        self.index.is_open(first_word)
    }

    /// Adds the record that covers the hash of a random name, and its span to the samples.
    pub(super) fn insert_sample(&mut self, owner: [u8; N], record: ChainRecord<N>) -> Inserted {
        let (known, uncovered) = (self.len(), 1.0 - self.covered);
        let span = span_share(&owner, &record.next);
        let inserted = self.insert(owner, record);
        if inserted == Inserted::New {
            self.samples.push(Sample { known: known as u64, uncovered, span });
        }
        inserted
    }

    /// Adds a record. Records that contradict it are forgotten.
    pub(super) fn insert(&mut self, owner: [u8; N], record: ChainRecord<N>) -> Inserted {
        if let Some(known) = self.records.get_mut(&owner).filter(|known| known.next == record.next) {
            *known = record;
            return Inserted::Known;
        }
        let replaced = self.forget_contradictions(&owner, &record.next);
        // The known record before it names this one.
        let before = self.predecessor(&owner).is_some_and(|(_, before)| before.next == owner);
        let closes_itself = record.next == owner;
        self.open -= usize::from(before);
        self.open += usize::from(!closes_itself && !self.records.contains_key(&record.next));
        self.covered += span_share(&owner, &record.next);
        self.records.insert(owner, record);
        self.refresh_index();
        if replaced { Inserted::Replaced } else { Inserted::New }
    }

    /// Removes the records that overlap the span from `owner` to `next`. Returns whether there were any.
    fn forget_contradictions(&mut self, owner: &[u8; N], next: &[u8; N]) -> bool {
        let covering =
            self.predecessor(owner).filter(|(start, record)| is_between(owner, start, &record.next));
        let mut wrong: Vec<[u8; N]> = covering.map(|(start, _)| *start).into_iter().collect();
        wrong.extend(self.records.contains_key(owner).then_some(*owner));
        let starts =
            |range: std::collections::btree_map::Range<'_, [u8; N], ChainRecord<N>>| -> Vec<[u8; N]> {
                range.map(|(start, _)| *start).collect()
            };
        if owner < next {
            wrong.extend(starts(self.records.range((Excluded(*owner), Excluded(*next)))));
        } else {
            wrong.extend(starts(self.records.range((Excluded(*owner), Unbounded))));
            wrong.extend(starts(self.records.range((Unbounded, Excluded(*next)))));
        }
        wrong.sort_unstable();
        wrong.dedup();
        for start in &wrong {
            self.remove(start);
        }
        !wrong.is_empty()
    }

    fn remove(&mut self, owner: &[u8; N]) {
        let Some(record) = self.records.remove(owner) else { return };
        self.covered -= span_share(owner, &record.next);
        self.open -= usize::from(record.next != *owner && !self.records.contains_key(&record.next));
        let is_named = self.predecessor(owner).is_some_and(|(_, before)| before.next == *owner);
        self.open += usize::from(is_named);
        // A gap has appeared: all hashes may be unknown until the index is built again.
        self.index = GapIndex::all_open();
    }

    /// Builds the index of the gaps again if many records are new.
    fn refresh_index(&mut self) {
        let new = self.len().abs_diff(self.index.records);
        if new < REBUILD_MIN.max(self.index.records / 8) {
            return;
        }
        self.index = GapIndex::all_closed(self.len());
        for record in self.records.values() {
            if self.records.contains_key(&record.next) {
                continue;
            }
            // The gap begins at this next hash, and ends at the owner after it.
            let after = self.records.range(record.next..).next().or_else(|| self.records.first_key_value());
            if let Some((end, _)) = after {
                self.index.open(first_word(&record.next), first_word(end), *end <= record.next);
            }
        }
    }
}

/// The first 32 bits of a hash.
fn first_word<const N: usize>(hash: &[u8; N]) -> u32 {
    hash.first_chunk().map_or(0, |octets| u32::from_be_bytes(*octets))
}

/// Whether `hash` is strictly between `owner` and `next`. In the last record of a chain, `next` is not
/// after `owner`: the span continues with the first hash.
pub(super) fn is_between<const N: usize>(hash: &[u8; N], owner: &[u8; N], next: &[u8; N]) -> bool {
    if owner < next { owner < hash && hash < next } else { owner < hash || hash < next }
}

/// The share of all hashes from `owner` to `next`; 1 if they are equal.
pub(super) fn span_share<const N: usize>(owner: &[u8; N], next: &[u8; N]) -> f64 {
    if owner == next {
        return 1.0;
    }
    let mut difference = *next;
    let mut borrow = false;
    for (octet, start) in difference.iter_mut().zip(owner).rev() {
        let (value, first) = octet.overflowing_sub(*start);
        let (value, second) = value.overflowing_sub(u8::from(borrow));
        (*octet, borrow) = (value, first || second);
    }
    difference.iter().rev().fold(0.0, |share, octet| (share + f64::from(*octet)) / 256.0)
}

/// Which parts of the hashes have gaps, by their first bits.
#[derive(Clone, Debug)]
struct GapIndex {
    /// A bit for each value of the first [`INDEX_BITS`] bits.
    open: Vec<u64>,
    /// Number of records for which it was built.
    records: usize,
}

impl GapIndex {
    fn all_open() -> Self {
        Self { open: vec![u64::MAX; 1 << (INDEX_BITS - 6)], records: 0 }
    }

    fn all_closed(records: usize) -> Self {
        Self { open: vec![0; 1 << (INDEX_BITS - 6)], records }
    }

    /// Opens the entries of the gap from `first` to `last`. A gap that `wraps` continues after the last
    /// hash with the first.
    fn open(&mut self, first: u32, last: u32, wraps: bool) {
        let count = 1_u32 << INDEX_BITS;
        let (mut entry, last) = (first >> (32 - INDEX_BITS), last >> (32 - INDEX_BITS));
        if entry == last && wraps {
            self.open.fill(u64::MAX);
            return;
        }
        self.set(entry);
        while entry != last {
            entry = (entry + 1) % count;
            self.set(entry);
        }
    }

    fn set(&mut self, entry: u32) {
        self.open[(entry >> 6) as usize] |= 1 << (entry & 63);
    }

    #[inline]
    fn is_open(&self, first_word: u32) -> bool {
        let entry = first_word >> (32 - INDEX_BITS);
        self.open[(entry >> 6) as usize] >> (entry & 63) & 1 == 1
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn record(next: u8) -> ChainRecord<2> {
        ChainRecord { next: [next, 0], opt_out: false, types: Vec::new() }
    }

    fn insert(chain: &mut HashChain<2>, owner: u8, next: u8) -> Inserted {
        chain.insert([owner, 0], record(next))
    }

    #[test]
    fn a_chain_is_complete_when_each_next_hash_is_an_owner() {
        let mut chain = HashChain::<2>::default();
        assert!(!chain.is_complete());
        assert_eq!(insert(&mut chain, 10, 20), Inserted::New);
        assert_eq!(insert(&mut chain, 200, 10), Inserted::New);
        assert!(!chain.is_complete());
        assert!(chain.is_known(&[15, 0]) && chain.is_known(&[10, 0]) && chain.is_known(&[5, 1]));
        assert!(!chain.is_known(&[20, 0]) && !chain.is_known(&[100, 0]));
        assert!((chain.coverage() - 76.0 / 256.0).abs() < 1e-9);
        assert_eq!(insert(&mut chain, 20, 200), Inserted::New);
        assert!(chain.is_complete());
        assert_eq!(insert(&mut chain, 20, 200), Inserted::Known);
        assert_eq!((chain.coverage(), chain.len()), (1.0, 3));
    }

    #[test]
    fn a_chain_of_one_record_covers_all() {
        let mut chain = HashChain::<2>::default();
        insert(&mut chain, 9, 9);
        assert!(chain.is_complete() && chain.is_known(&[0, 0]) && chain.is_known(&[255, 1]));
    }

    #[test]
    fn a_contradicting_record_replaces_those_that_it_contradicts() {
        let mut chain = HashChain::<2>::default();
        insert(&mut chain, 10, 20);
        insert(&mut chain, 20, 10);
        assert!(chain.is_complete());
        // A name was added to the zone.
        assert_eq!(insert(&mut chain, 30, 10), Inserted::Replaced);
        assert!(!chain.is_complete());
        assert_eq!(chain.len(), 2);
        assert_eq!(insert(&mut chain, 20, 30), Inserted::New);
        assert!(chain.is_complete());
        // A name was removed.
        assert_eq!(insert(&mut chain, 20, 10), Inserted::Replaced);
        assert!(chain.is_complete());
        assert_eq!(chain.len(), 2);
    }

    #[test]
    fn spans_are_shares_of_all_hashes() {
        assert!((span_share(&[0u8; 20], &[128; 20]) - 0.501_960_8).abs() < 1e-6);
        assert!((span_share(&[192, 0], &[64, 0]) - 0.0).abs() < 1.0);
        let (mut lie, hash) = ([7u8; 20], [7u8; 20]);
        lie[19] = 9;
        assert!(span_share(&hash, &lie) < 1e-37);
        assert!((span_share(&[255u8; 20], &[0; 20])) < 1e-37);
        assert_eq!(span_share(&[3u8; 20], &[3; 20]), 1.0);
    }

    #[test]
    fn the_index_opens_every_gap() {
        let mut chain = HashChain::<4>::default();
        let hash = |number: u32| (number * 0x0100_0000).to_be_bytes();
        for number in (0..200).filter(|number| number % 10 != 0) {
            chain.insert(hash(number), ChainRecord { next: hash(number + 1), opt_out: false, types: vec![] });
        }
        for number in 0..255_u32 {
            let inside = (number * 0x0100_0000 + 77).to_be_bytes();
            if !chain.is_known(&inside) {
                assert!(chain.may_be_unknown(u32::from_be_bytes(inside)), "{number}");
            }
        }
        assert!(!chain.may_be_unknown(0x0580_0000));
    }
}
