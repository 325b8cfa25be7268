//! Which zones are in the chain of trust: the validated keys of secure zones, and zones that are proved
//! to be insecure. All workers share one [`TrustTable`].
//!
//! The memory of the table is bounded. If it is full, the tables of keys are removed (below), and zones that
//! were not used recently;
//! the next question about one of them fetches its DS and DNSKEY RRsets again, often from the cache.
//! The entry of a zone includes the tables with which some processors verify signatures of a key
//! faster ([`TrustedKeys::memory_octets`]).

use nonesuch_dnssec::validate::{InsecureReason, TrustedKeys};
use nonesuch_net::machine::Now;
use nonesuch_proto::NameRef;
use siphasher::sip128::{Hasher128, SipHasher13};
use std::collections::{HashMap, VecDeque};
use std::hash::Hasher;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

/// Number of parts with separate locks.
const PARTS: usize = 16;
/// Octets of an entry without its keys.
const ENTRY_OCTETS: usize = 256;

/// The status of a zone in the chain of trust.
#[derive(Clone, Debug)]
pub(crate) enum ZoneTrust {
    /// The validated keys of a secure zone.
    Secure(Arc<TrustedKeys>),
    /// The zone and all zones below it without a trust anchor are insecure.
    Insecure(InsecureReason),
}

impl ZoneTrust {
    /// The same keys without the tables of some of them; `None` if none has a table.
    fn without_tables(&self) -> Option<Self> {
        match self {
            Self::Secure(keys) => keys.without_tables().map(|keys| Self::Secure(Arc::new(keys))),
            Self::Insecure(_) => None,
        }
    }
}

/// The table.
#[derive(Debug)]
pub struct TrustTable {
    parts: [Mutex<Part>; PARTS],
    part_octets: usize,
    hasher: SipHasher13,
}

/// The hash of the name of a zone in lower case. The hash is keyed and has 128 bits, so no two names
/// have the same.
type Key = u128;

#[derive(Debug, Default)]
struct Part {
    entries: HashMap<Key, Entry>,
    /// The keys in the order in which they are tested for removal. Keys may be missing in `entries`.
    order: VecDeque<Key>,
    octets: usize,
}

#[derive(Debug)]
struct Entry {
    trust: ZoneTrust,
    expires: Instant,
    octets: usize,
    /// Whether the entry was used since it was last tested for removal.
    is_used: bool,
    /// Length of the name, for [`TrustTable::clear_below`].
    name: Box<[u8]>,
}

impl TrustTable {
    /// Returns an empty table of at most `octets`. `key`: secret random octets.
    pub(crate) fn new(octets: usize, key: &[u8; 16]) -> Self {
        Self {
            parts: std::array::from_fn(|_| Mutex::default()),
            part_octets: octets / PARTS,
            hasher: SipHasher13::new_with_key(key),
        }
    }

    fn key(&self, zone: NameRef<'_>) -> Key {
        let mut hasher = self.hasher;
        let mut lower = [0; nonesuch_proto::MAX_NAME];
        if let Some(lower) = lower.get_mut(..zone.len()) {
            lower.copy_from_slice(zone.wire());
            lower.make_ascii_lowercase();
            hasher.write(lower);
        }
        hasher.finish128().as_u128()
    }

    fn part(&self, key: Key) -> MutexGuard<'_, Part> {
        self.parts[key as usize % PARTS].lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the status of a zone if it is known.
    pub(crate) fn get(&self, zone: NameRef<'_>, now: Now) -> Option<ZoneTrust> {
        let key = self.key(zone);
        let mut part = self.part(key);
        let entry = part.entries.get_mut(&key).filter(|entry| entry.expires > now.instant)?;
        entry.is_used = true;
        Some(entry.trust.clone())
    }

    /// Sets the status of a zone for `ttl` seconds, at least one.
    pub(crate) fn insert(&self, zone: NameRef<'_>, trust: ZoneTrust, ttl: u32, now: Now) {
        let key = self.key(zone);
        let expires = now.instant + Duration::from_secs(ttl.max(1).into());
        let octets = ENTRY_OCTETS + octets_of(&trust);
        let name = zone.wire().to_ascii_lowercase().into();
        let mut part = self.part(key);
        match part.entries.insert(key, Entry { trust, expires, octets, is_used: false, name }) {
            Some(old) => part.octets -= old.octets,
            None => part.order.push_back(key),
        }
        part.octets += octets;
        part.shrink(self.part_octets, now.instant);
    }

    /// Sets the NSEC5 keys of a secure zone. The time of its entry does not change, unless `ttl` seconds
    /// end earlier.
    pub(crate) fn replace_keys(&self, zone: NameRef<'_>, keys: Arc<TrustedKeys>, ttl: u32, now: Now) {
        let key = self.key(zone);
        let mut part = self.part(key);
        if let Some(entry) = part.entries.get_mut(&key) {
            entry.expires = entry.expires.min(now.instant + Duration::from_secs(ttl.max(1).into()));
            entry.trust = ZoneTrust::Secure(keys);
        }
        part.measure(key);
        part.shrink(self.part_octets, now.instant);
    }

    /// Measures the memory of a zone's keys again, after they have verified signatures.
    pub(crate) fn update_size(&self, zone: NameRef<'_>, now: Now) {
        let key = self.key(zone);
        let mut part = self.part(key);
        part.measure(key);
        part.shrink(self.part_octets, now.instant);
    }

    /// Removes the zones at and below a name.
    pub(crate) fn clear_below(&self, name: NameRef<'_>) {
        for part in &self.parts {
            let mut part = part.lock().unwrap_or_else(PoisonError::into_inner);
            let Part { entries, octets, .. } = &mut *part;
            entries.retain(|_, entry| {
                let is_kept = !NameRef::from_wire_unchecked(&entry.name).is_at_or_below(name);
                *octets -= if is_kept { 0 } else { entry.octets };
                is_kept
            });
        }
    }

    /// Number of zones, and octets of their keys.
    #[must_use]
    pub fn size(&self) -> (usize, usize) {
        let parts = self.parts.iter().map(|part| part.lock().unwrap_or_else(PoisonError::into_inner));
        parts.fold((0, 0), |(zones, octets), part| (zones + part.entries.len(), octets + part.octets))
    }
}

impl Part {
    fn measure(&mut self, key: Key) {
        if let Some(entry) = self.entries.get_mut(&key) {
            let octets = ENTRY_OCTETS + octets_of(&entry.trust);
            self.octets = self.octets - entry.octets + octets;
            entry.octets = octets;
        }
    }

    /// Removes entries until the part has at most `octets_max`, the unused and expired ones first.
    fn shrink(&mut self, octets_max: usize, now: Instant) {
        while self.octets > octets_max
            && let Some(key) = self.order.pop_front()
        {
            let Some(entry) = self.entries.get_mut(&key) else { continue };
            let is_current = entry.expires > now;
            if is_current && let Some(without_tables) = entry.trust.without_tables() {
                let octets = ENTRY_OCTETS + octets_of(&without_tables);
                self.octets = self.octets - entry.octets + octets;
                (entry.trust, entry.octets) = (without_tables, octets);
                self.order.push_back(key);
            } else if entry.is_used && is_current {
                entry.is_used = false;
                self.order.push_back(key);
            } else {
                self.octets -= entry.octets;
                self.entries.remove(&key);
            }
        }
        // Keys of entries that `clear_below` has removed.
        if self.order.len() > 2 * self.entries.len() + PARTS {
            let Self { entries, order, .. } = self;
            order.retain(|key| entries.contains_key(key));
        }
    }
}

fn octets_of(trust: &ZoneTrust) -> usize {
    match trust {
        ZoneTrust::Secure(keys) => keys.memory_octets(),
        ZoneTrust::Insecure(_) => 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::name;

    fn at(second: u64) -> Now {
        static START: std::sync::OnceLock<Instant> = std::sync::OnceLock::new();
        Now { instant: *START.get_or_init(Instant::now) + Duration::from_secs(second), unix: 0 }
    }

    const INSECURE: ZoneTrust = ZoneTrust::Insecure(InsecureReason::UnsignedDelegation);

    #[test]
    fn an_entry_is_found_in_any_letter_case_until_it_expires() {
        let table = TrustTable::new(1 << 20, &[1; 16]);
        table.insert(name("Example.").view(), INSECURE, 10, at(0));
        assert!(table.get(name("eXample.").view(), at(9)).is_some());
        assert!(table.get(name("example.").view(), at(10)).is_none());
        assert!(table.get(name("example.org.").view(), at(0)).is_none());
        // A TTL of 0 lasts for a second: the validations that wait for the keys need them.
        table.insert(name("zero.").view(), INSECURE, 0, at(0));
        assert!(table.get(name("zero.").view(), at(0)).is_some());
    }

    #[test]
    fn memory_is_bounded_and_zones_in_use_stay() {
        let octets = PARTS * ENTRY_OCTETS * 8;
        let table = TrustTable::new(octets, &[1; 16]);
        let used: Vec<_> = (0..16).map(|number| name(&format!("used{number}."))).collect();
        used.iter().for_each(|zone| table.insert(zone.view(), INSECURE, 100, at(0)));
        for number in 0..10_000 {
            table.insert(name(&format!("n{number}.")).view(), INSECURE, 100, at(0));
            table.get(used[number % used.len()].view(), at(0));
        }
        let (zones, counted) = table.size();
        assert!(zones <= PARTS * 8 && counted <= octets, "{zones} {counted}");
        let survivors = used.iter().filter(|zone| table.get(zone.view(), at(0)).is_some()).count();
        assert!(survivors >= 12, "{survivors}");
    }

    #[test]
    fn zones_at_and_below_a_name_are_removed() {
        let table = TrustTable::new(1 << 20, &[1; 16]);
        for zone in [".", "example.", "a.example.", "other."] {
            table.insert(name(zone).view(), INSECURE, 100, at(0));
        }
        table.clear_below(name("Example.").view());
        let known = |zone: &str| table.get(name(zone).view(), at(0)).is_some();
        assert_eq!([".", "example.", "a.example.", "other."].map(known), [true, false, false, true]);
        assert_eq!(table.size().0, 2);
        table.clear_below(NameRef::ROOT);
        assert_eq!(table.size(), (0, 0));
    }
}
