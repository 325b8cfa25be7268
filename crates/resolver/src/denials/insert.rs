//! Insertions.

use super::entry::{Entry, StoredRrset};
use super::keys;
use super::options::Counters;
use super::zone::{Chain, Key, Nsec3Chain, Soa, Update};
use super::{DenialCache, DenialCacheOptions};
use crate::record::Rrset;
use nonesuch_dnssec::denial::nsec3::hash_block_count;
use nonesuch_dnssec::validate::aggressive::{DenialRecord, Span};
use nonesuch_dnssec::validate::{Budget, TrustedKeys};
use nonesuch_net::machine::Now;
use nonesuch_proto::{Class, NameRef, Rtype};
use std::sync::Arc;

/// Maximum octets of an entry.
const ENTRY_OCTETS_MAX: usize = 16 << 10;
/// Maximum number of additional iterations of NSEC3 (RFC 9276 §3.2). With more, denials are Insecure.
const ITERATIONS_MAX: u16 = 50;
/// Maximum TTL (RFC 2181 §8): a larger value counts as 0.
const TTL_MAX: u32 = i32::MAX as u32;

impl DenialCache {
    /// Inserts denial records of one validated response. Returns the number of inserted records.
    ///
    /// `rrsets`: the Secure NSEC, NSEC3 and NSEC5 RRsets, the Proven NSEC5PROOF RRsets, and the Secure
    /// SOA RRset if the response has one, all of the zone that `keys` validated. Their TTLs are
    /// limited by the signatures ([`RrsetOutcome::ttl`](nonesuch_dnssec::validate::RrsetOutcome::ttl)).
    /// RRsets of other types are ignored. If neither the response nor the cache has the SOA RRset,
    /// nothing is inserted: a denial contains it (RFC 2308 §3).
    ///
    /// An NSEC5PROOF RRset with several records is not inserted, because the validation verified only
    /// one of them.
    ///
    /// For the first NSEC3 record of a zone, the hash of the apex is computed, and deducted from `budget`.
    /// NSEC3 records are ignored if the rest does not suffice.
    pub fn insert(&self, keys: &TrustedKeys, rrsets: &[Rrset], budget: &mut Budget, now: Now) -> usize {
        let now = self.second(now);
        let apex = keys.apex();
        let soa = rrsets.iter().find_map(|rrset| read_soa(rrset, apex, &self.options, now));
        let known = self.store.with(self.store.id(apex), apex, |zone| (zone.soa().ttl, zone.chain().clone()));
        let (known_ttl, known_chain) = known.unzip();
        let Some(ttl_max) = soa.as_ref().map(|soa| soa.ttl).or(known_ttl) else { return 0 };
        let (chain, entries) = (None, Vec::new());
        let mut reader = Reader { keys, ttl_max, now, budget, known_chain, chain, entries, minimal: 0 };
        for rrset in rrsets {
            reader.add(rrset);
        }
        let Reader { chain, entries, minimal, .. } = reader;
        Counters::add(&self.counters.minimal, minimal);
        let count = entries.len();
        if !self.store.update(Update { apex: apex.to_canonical(), soa, chain, entries }) {
            return 0;
        }
        Counters::add(&self.counters.insertions, count as u64);
        count
    }
}

/// Reads the SOA RRset of the zone.
fn read_soa(rrset: &Rrset, apex: NameRef<'_>, options: &DenialCacheOptions, now: u32) -> Option<Soa> {
    if (rrset.rtype, rrset.class) != (Rtype::SOA, Class::IN) || rrset.owner.view() != apex {
        return None;
    }
    let minimum = soa_minimum(rrset.records.iter().next()?)?;
    // RFC 8198 §5.4, RFC 9077.
    let ttl = bound_ttl(rrset.ttl).min(bound_ttl(minimum)).min(options.ttl_max);
    let expires = now.saturating_add(ttl);
    let is_usable = ttl > 0 && rrset.records.octets().len() <= ENTRY_OCTETS_MAX;
    is_usable.then(|| Soa { rrset: Arc::new(StoredRrset::new(rrset, expires)), ttl })
}

/// Returns the last field of SOA RDATA (RFC 1035 §3.3.13).
fn soa_minimum(rdata: &[u8]) -> Option<u32> {
    let (_, rest) = NameRef::split_from(rdata).ok()?;
    let (_, numbers) = NameRef::split_from(rest).ok()?;
    numbers.last_chunk().filter(|_| numbers.len() == 20).map(|minimum| u32::from_be_bytes(*minimum))
}

const fn bound_ttl(ttl: u32) -> u32 {
    if ttl > TTL_MAX { 0 } else { ttl }
}

/// Reads the RRsets of a response.
struct Reader<'k> {
    keys: &'k TrustedKeys,
    /// Maximum TTL of the records.
    ttl_max: u32,
    now: u32,
    budget: &'k mut Budget,
    /// The chain of the records of the zone that the cache has.
    known_chain: Option<Chain>,
    /// The chain of the records so far.
    chain: Option<Chain>,
    entries: Vec<(Key, Arc<Entry>)>,
    /// Number of records that were not inserted, because they deny a single name.
    minimal: u64,
}

impl Reader<'_> {
    /// Adds an RRset. `None` if it is not usable.
    fn add(&mut self, rrset: &Rrset) -> Option<()> {
        let apex = self.keys.apex();
        let owner = rrset.owner.view();
        // Each name has one denial record, and one verified proof.
        let rdata = rrset.records.iter().next().filter(|_| rrset.records.iter().nth(1).is_none())?;
        if rrset.class != Class::IN || !owner.is_at_or_below(apex) {
            return None;
        }
        match rrset.rtype {
            Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5 => {
                let record = DenialRecord::read(rrset.rtype, owner, rdata, apex).ok()?;
                self.add_record(rrset, &record)
            }
            Rtype::NSEC5PROOF => {
                let (tag, hash) = self.keys.nsec5_hash(rdata)?;
                self.accept_chain(&Chain::Nsec5)?;
                let key = keys::nsec5_proof_key(owner);
                self.push(key, self.entry(rrset, keys::nsec5_record_key(tag, &hash)))
            }
            _ => None,
        }
    }

    fn add_record(&mut self, rrset: &Rrset, record: &DenialRecord<'_>) -> Option<()> {
        let span = record.span();
        if record.is_minimal() {
            self.minimal += 1;
            return None;
        }
        let chain = match span {
            Span::Names { .. } => Chain::Nsec,
            Span::Sha1 { iterations, .. } if iterations > ITERATIONS_MAX => return None,
            Span::Sha1 { salt, iterations, .. } => self.nsec3_chain(salt, iterations)?,
            Span::Vrf { .. } => Chain::Nsec5,
        };
        self.accept_chain(&chain)?;
        let (key, next) = keys::span_keys(&span);
        let (can_be_encloser, is_opt_out) = (record.can_be_encloser(), record.is_opt_out());
        self.push(key, Entry { can_be_encloser, is_opt_out, ..self.entry(rrset, next) })
    }

    /// Returns the NSEC3 chain with these parameters. The hash of the apex is computed once for the records
    /// of a response, and not if the cache has records of the chain.
    fn nsec3_chain(&mut self, salt: &[u8], iterations: u16) -> Option<Chain> {
        let has_parameters = |chain: &&Chain| matches!(chain, Chain::Nsec3(known) if known.salt == salt && known.iterations == iterations);
        if let Some(chain) = self.chain.iter().chain(&self.known_chain).find(has_parameters) {
            return Some(chain.clone());
        }
        let apex = self.keys.apex().wire();
        let blocks = hash_block_count(apex.len(), salt.len(), iterations);
        // The records of a response have the same parameters (RFC 5155 §7.2).
        if self.chain.is_some() || blocks > self.budget.hash_blocks_left() {
            return None;
        }
        self.budget.charge_hash_blocks(blocks);
        let apex = nonesuch_crypto::nsec3_hash(apex, salt, iterations);
        Some(Chain::Nsec3(Arc::new(Nsec3Chain { salt: salt.to_vec(), iterations, apex })))
    }

    /// Ignores records of another chain than that of the first record.
    fn accept_chain(&mut self, chain: &Chain) -> Option<()> {
        (self.chain.get_or_insert_with(|| chain.clone()) == chain).then_some(())
    }

    fn entry(&self, rrset: &Rrset, next: Vec<u8>) -> Entry {
        let expires = self.now.saturating_add(bound_ttl(rrset.ttl).min(self.ttl_max));
        let rrset = StoredRrset::new(rrset, expires);
        Entry { rrset, next: next.into(), can_be_encloser: false, is_opt_out: false }
    }

    fn push(&mut self, key: Vec<u8>, entry: Entry) -> Option<()> {
        let is_usable = entry.rrset.expires > self.now && entry.octets(key.len()) <= ENTRY_OCTETS_MAX;
        is_usable.then(|| self.entries.push((key.into(), Arc::new(entry))))
    }
}
