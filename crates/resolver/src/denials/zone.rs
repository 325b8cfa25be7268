//! The entries of one zone.

use super::entry::{Entry, StoredRrset};
use super::keys::{self, common_labels};
use nonesuch_dnssec::validate::aggressive::Sha1Hash;
use nonesuch_proto::{Name, NameRef};
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Bound;
use std::sync::Arc;

/// Estimate of the octets of a zone in addition to its entries, the SOA RRset and the salt.
const ZONE_OCTETS: usize = 768;
/// After all keys with a prefix: a key has at most this number of octets after its prefix.
const AFTER_HASHES: [u8; 33] = [u8::MAX; 33];

/// The key of an entry.
pub(super) type Key = Arc<[u8]>;

/// How the records of a zone represent names.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Chain {
    Nsec,
    Nsec3(Arc<Nsec3Chain>),
    Nsec5,
}

/// The parameters of an NSEC3 chain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Nsec3Chain {
    pub(super) salt: Vec<u8>,
    pub(super) iterations: u16,
    /// The hash of the apex.
    pub(super) apex: Sha1Hash,
}

/// The SOA RRset of a zone.
#[derive(Clone, Debug)]
pub(super) struct Soa {
    pub(super) rrset: Arc<StoredRrset>,
    /// Minimum of the TTL with which it was inserted and of its last field.
    pub(super) ttl: u32,
}

/// What a response adds to a zone.
#[derive(Debug)]
pub(super) struct Update {
    pub(super) apex: Name,
    pub(super) soa: Option<Soa>,
    /// `None` if the response has no entries.
    pub(super) chain: Option<Chain>,
    pub(super) entries: Vec<(Key, Arc<Entry>)>,
}

impl Update {
    /// Returns the maximum by which the octets of the zone grow.
    pub(super) fn octets(&self) -> usize {
        let entries = self.entries.iter().map(|(key, entry)| entry.octets(key.len())).sum::<usize>();
        entries + fixed_octets(&self.apex, self.soa.as_ref(), self.chain.as_ref())
    }
}

/// Returns the octets of a zone without entries.
fn fixed_octets(apex: &Name, soa: Option<&Soa>, chain: Option<&Chain>) -> usize {
    let salt = match chain {
        Some(Chain::Nsec3(chain)) => chain.salt.len(),
        _ => 0,
    };
    ZONE_OCTETS + apex.wire().len() + salt + soa.map_or(0, |soa| soa.rrset.octets())
}

/// The place of a key in the chain.
#[derive(Clone, Debug)]
pub(super) enum Position {
    /// A record has this key.
    Matched(Arc<Entry>),
    /// A record covers this key.
    Covered(Arc<Entry>),
}

/// A zone with entries.
#[derive(Debug)]
pub(super) struct Zone {
    apex: Name,
    soa: Soa,
    chain: Chain,
    entries: BTreeMap<Key, Arc<Entry>>,
    /// The entries in the order of their expiry.
    expiries: BTreeSet<(u32, Key)>,
    /// Octets of the entries.
    octets: usize,
    /// Number of entries that can deny a name.
    covering: usize,
    /// Maximum number of labels of a name with an NSEC5 proof.
    deepest_proof: usize,
}

impl Zone {
    /// Returns a zone without entries.
    pub(super) fn new(apex: Name, soa: Soa, chain: Chain) -> Self {
        let (entries, expiries) = (BTreeMap::new(), BTreeSet::new());
        Self { apex, soa, chain, entries, expiries, octets: 0, covering: 0, deepest_proof: 0 }
    }

    pub(super) const fn apex(&self) -> &Name {
        &self.apex
    }

    pub(super) const fn soa(&self) -> &Soa {
        &self.soa
    }

    pub(super) const fn chain(&self) -> &Chain {
        &self.chain
    }

    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }

    /// Whether a record can deny a name.
    pub(super) const fn can_cover(&self) -> bool {
        self.covering > 0
    }

    pub(super) const fn deepest_proof(&self) -> usize {
        self.deepest_proof
    }

    /// Returns the octets that the zone counts with.
    pub(super) fn octets(&self) -> usize {
        fixed_octets(&self.apex, Some(&self.soa), Some(&self.chain)) + self.octets
    }

    /// Returns the second at which the first entry expires.
    pub(super) fn earliest(&self) -> Option<u32> {
        self.expiries.first().map(|(expires, _)| *expires)
    }

    /// Adds the data of a response. A change of the chain or of its parameters removes all earlier
    /// entries. If there are more entries than `max`, the entries that expire first are removed; returns
    /// their number.
    pub(super) fn update(&mut self, update: Update, max: usize) -> usize {
        if let Some(soa) = update.soa {
            self.soa = soa;
        }
        if let Some(chain) = update.chain.filter(|chain| *chain != self.chain) {
            *self = Self::new(self.apex.clone(), self.soa.clone(), chain);
        }
        for (key, entry) in update.entries {
            self.remove_contradicted(&key, &entry);
            self.insert(key, entry);
        }
        let excess = self.len().saturating_sub(max);
        for _ in 0..excess {
            self.remove_earliest();
        }
        excess
    }

    fn insert(&mut self, key: Key, entry: Arc<Entry>) {
        self.remove(&key);
        self.octets += entry.octets(key.len());
        self.covering += usize::from(entry.can_cover());
        if entry.is_proof() {
            self.deepest_proof = self.deepest_proof.max(entry.rrset.owner().view().label_count());
        }
        self.expiries.insert((entry.rrset.expires, Arc::clone(&key)));
        self.entries.insert(key, entry);
    }

    fn remove(&mut self, key: &[u8]) -> bool {
        let Some((key, entry)) = self.entries.remove_entry(key) else { return false };
        self.octets -= entry.octets(key.len());
        self.covering -= usize::from(entry.can_cover());
        self.expiries.remove(&(entry.rrset.expires, key));
        true
    }

    /// Removes the entry that expires first.
    pub(super) fn remove_earliest(&mut self) -> bool {
        let first = self.expiries.first().map(|(_, key)| Arc::clone(key));
        first.is_some_and(|key| self.remove(&key))
    }

    /// Removes the records whose spans overlap that of a newer record: the zone has changed.
    fn remove_contradicted(&mut self, key: &Key, entry: &Entry) {
        if entry.is_proof() {
            return;
        }
        let prefix = self.prefix(key).to_vec();
        let before = self.at_or_before(&prefix, key).filter(|(other, _)| *other != key);
        let mut removed: Vec<Key> = before
            .filter(|(other, before)| before.covers(other, key))
            .map(|(other, _)| Arc::clone(other))
            .into_iter()
            .collect();
        let next = &*entry.next;
        let end = [prefix.as_slice(), &AFTER_HASHES].concat();
        let all_after = if prefix.is_empty() { Bound::Unbounded } else { Bound::Excluded(end.as_slice()) };
        let mut remove = |bounds: (Bound<&[u8]>, Bound<&[u8]>)| {
            removed.extend(self.entries.range::<[u8], _>(bounds).map(|(key, _)| Arc::clone(key)));
        };
        if **key < *next {
            remove((Bound::Excluded(key), Bound::Excluded(next)));
        } else {
            remove((Bound::Excluded(key), all_after));
            remove((Bound::Included(&prefix), Bound::Excluded(next)));
        }
        removed.retain(|other| other != key);
        for other in removed {
            self.remove(&other);
        }
    }

    /// Returns the octets that the keys of all records of the chain begin with.
    fn prefix<'k>(&self, key: &'k [u8]) -> &'k [u8] {
        match self.chain {
            Chain::Nsec | Chain::Nsec3(_) => &[],
            Chain::Nsec5 => keys::nsec5_prefix(key),
        }
    }

    /// Returns the record at or before a key; the last record of the chain if it does not exist.
    fn at_or_before(&self, prefix: &[u8], key: &[u8]) -> Option<(&Key, &Arc<Entry>)> {
        // Without a comparison for the lower bound, the search takes less time.
        let start = if prefix.is_empty() { Bound::Unbounded } else { Bound::Included(prefix) };
        let before = self.entries.range::<[u8], _>((start, Bound::Included(key))).next_back();
        before.or_else(|| {
            if prefix.is_empty() {
                return self.entries.last_key_value();
            }
            let end = [prefix, &AFTER_HASHES].concat();
            self.entries.range::<[u8], _>((Bound::Included(prefix), Bound::Excluded(&end[..]))).next_back()
        })
    }

    /// Returns the unexpired record that matches or covers a key.
    pub(super) fn find(&self, key: &[u8], now: u32) -> Option<Position> {
        let (found, entry) = self.at_or_before(self.prefix(key), key)?;
        if entry.rrset.expires <= now {
            return None;
        }
        if **found == *key {
            return Some(Position::Matched(Arc::clone(entry)));
        }
        entry.covers(found, key).then(|| Position::Covered(Arc::clone(entry)))
    }

    /// Returns the unexpired entry with this key.
    pub(super) fn get(&self, key: &[u8], now: u32) -> Option<&Arc<Entry>> {
        self.entries.get(key).filter(|entry| entry.rrset.expires > now)
    }

    /// Removes the records of an NSEC zone that have an owner at or below `name`, or cover it. From
    /// other zones it removes all entries. Returns the number of removed entries.
    pub(super) fn flush_below(&mut self, name: NameRef<'_>) -> usize {
        let before = self.len();
        let flushed = keys::name_key(name);
        let labels = name.label_count();
        let denies = |key: &Key, entry: &Arc<Entry>| {
            self.chain != Chain::Nsec || entry.covers(key, &flushed) || common_labels(key, &flushed) == labels
        };
        let keys: Vec<Key> = self
            .entries
            .iter()
            .filter(|(key, entry)| denies(key, entry))
            .map(|(key, _)| Arc::clone(key))
            .collect();
        for key in keys {
            self.remove(&key);
        }
        before - self.len()
    }
}
