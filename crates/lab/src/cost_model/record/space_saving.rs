//! The most frequent domains, in bounded memory.
//!
//! The algorithm is Space-Saving (Metwally, Agrawal, El Abbadi: "Efficient Computation of Frequent
//! and Top-k Elements in Data Streams", ICDT 2005): a new domain replaces the one with the lowest
//! count, and takes over its count as uncertainty. With m entries after N queries:
//!
//! - the true number of queries of a domain is between count − uncertainty and count,
//! - the uncertainty is at most N / m,
//! - each domain with more than N / m queries has an entry.

use nonesuch_proto::Name;
use std::collections::HashMap;

/// A domain with its count.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CountedDomain {
    /// The apex of the zone.
    pub domain: Name,
    /// The queries, at most.
    pub count: u64,
    /// The part of the count that may be of other domains.
    pub uncertainty: u64,
    /// Whether a response had an RRSIG record of this signer.
    pub signed: bool,
}

impl CountedDomain {
    /// The queries that are certainly of this domain.
    #[must_use]
    pub const fn at_least(&self) -> u64 {
        self.count.saturating_sub(self.uncertainty)
    }
}

/// Counts the queries of at most `capacity` domains.
#[derive(Debug)]
pub struct SpaceSaving {
    capacity: usize,
    /// A heap: the count of an entry is not below the count of the entry at (place − 1) / 2.
    heap: Vec<CountedDomain>,
    places: HashMap<Name, usize>,
}

impl SpaceSaving {
    /// Creates an empty table. `capacity` is at least 1.
    #[must_use]
    pub fn new(capacity: usize) -> Self {
        Self { capacity: capacity.max(1), heap: Vec::new(), places: HashMap::new() }
    }

    /// Counts queries of a domain.
    pub fn add(&mut self, domain: &Name, queries: u64, signed: bool) {
        if let Some(place) = self.places.get(domain).copied() {
            let entry = &mut self.heap[place];
            entry.count += queries;
            entry.signed |= signed;
            self.sift_down(place);
            return;
        }
        let mut entry = CountedDomain { domain: domain.clone(), count: queries, uncertainty: 0, signed };
        if self.heap.len() < self.capacity {
            self.insert(entry);
            return;
        }
        // The root of the heap has the lowest count.
        let lowest = &mut self.heap[0];
        (entry.count, entry.uncertainty) = (lowest.count + queries, lowest.count);
        let replaced = std::mem::replace(lowest, entry);
        self.places.remove(&replaced.domain);
        self.places.insert(domain.clone(), 0);
        self.sift_down(0);
    }

    /// Adds the entry of an earlier table. It is ignored if the table is full or has the domain.
    pub fn restore(&mut self, entry: CountedDomain) {
        if self.heap.len() < self.capacity && !self.places.contains_key(&entry.domain) {
            self.insert(entry);
        }
    }

    /// Returns the entries, in no order.
    #[must_use]
    pub fn entries(&self) -> &[CountedDomain] {
        &self.heap
    }

    fn insert(&mut self, entry: CountedDomain) {
        let mut place = self.heap.len();
        self.places.insert(entry.domain.clone(), place);
        self.heap.push(entry);
        while place > 0 && self.heap[place].count < self.heap[(place - 1) / 2].count {
            self.swap(place, (place - 1) / 2);
            place = (place - 1) / 2;
        }
    }

    fn sift_down(&mut self, mut place: usize) {
        loop {
            let children = (2 * place + 1..2 * place + 3).filter(|child| *child < self.heap.len());
            let Some(lowest) = children.min_by_key(|child| self.heap[*child].count) else { return };
            if self.heap[place].count <= self.heap[lowest].count {
                return;
            }
            self.swap(place, lowest);
            place = lowest;
        }
    }

    fn swap(&mut self, one: usize, other: usize) {
        self.heap.swap(one, other);
        for place in [one, other] {
            if let Some(known) = self.places.get_mut(&self.heap[place].domain) {
                *known = place;
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::BTreeMap;

    fn name(number: u8) -> Name {
        format!("z{number}.example.").parse().unwrap()
    }

    proptest! {
        /// The guarantees of the paper, for skewed and even streams.
        #[test]
        fn counts_are_bounded_and_frequent_domains_are_kept(
            capacity in 1usize..12,
            stream in prop_oneof![
                proptest::collection::vec(0u8..30, 0..400),
                proptest::collection::vec((0u8..8, 0u8..4).prop_map(|(a, b)| a * b), 0..400),
            ],
        ) {
            let mut table = SpaceSaving::new(capacity);
            let mut truth: BTreeMap<Name, u64> = BTreeMap::new();
            for number in &stream {
                table.add(&name(*number), 1, number % 2 == 1);
                *truth.entry(name(*number)).or_default() += 1;
            }
            let total = stream.len() as u64;
            prop_assert!(table.entries().len() <= capacity);
            prop_assert_eq!(table.entries().iter().map(|entry| entry.count).sum::<u64>(), total);
            for entry in table.entries() {
                let count = truth[&entry.domain];
                prop_assert!(entry.at_least() <= count && count <= entry.count, "{entry:?}: {count}");
                prop_assert!(entry.uncertainty * capacity as u64 <= total, "{entry:?}");
            }
            for (domain, count) in &truth {
                let is_frequent = count * capacity as u64 > total;
                let is_kept = table.entries().iter().any(|entry| entry.domain == *domain);
                prop_assert!(is_kept || !is_frequent, "{domain}: {count} of {total}");
            }
            if truth.len() <= capacity {
                prop_assert!(table.entries().iter().all(|entry| entry.uncertainty == 0));
            }
        }
    }

    #[test]
    fn a_domain_is_signed_after_one_signature() {
        let mut table = SpaceSaving::new(2);
        table.add(&name(1), 1, false);
        table.add(&"Z1.EXAMPLE.".parse().unwrap(), 2, true);
        table.add(&name(1), 1, false);
        let [entry] = table.entries() else { panic!("one domain") };
        assert_eq!((entry.count, entry.signed), (4, true));
    }

    #[test]
    fn a_restored_table_counts_on() {
        let mut table = SpaceSaving::new(2);
        for (number, count) in [(1, 9), (2, 5), (3, 1)] {
            table.restore(CountedDomain { domain: name(number), count, uncertainty: 1, signed: false });
        }
        table.add(&name(4), 1, true);
        let mut entries: Vec<_> =
            table.entries().iter().map(|entry| (entry.count, entry.at_least())).collect();
        entries.sort_unstable();
        assert_eq!(entries, [(6, 1), (9, 8)]);
    }
}
