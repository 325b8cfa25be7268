//! Estimates the signatures that a resolver verifies from the responses that it gets.
//!
//! The estimate is that of a resolver with an empty cache at the begin of the recording:
//!
//! - Each RRset of an answer or authority section with signatures of a zone in the chain of trust is
//!   verified, with the validator of `nonesuch resolve`. Each verified signature counts, failed ones
//!   too.
//! - A verified RRset with the same signatures is verified again only when its time to live is over.
//!   The limit is that of a cache (RFC 4035 §5.3.3).
//! - The keys of a zone are those of a DNSKEY RRset that a trust anchor or a verified DS RRset proves.
//!   RRsets wait for them for [`PATIENCE`] seconds, because resolvers request keys after the data.
//!   Afterwards they count as unknown: their zone is no part of the chain of trust, or its keys were in
//!   the cache of the resolver before the recording began.
//!
//! Resolvers differ: some do not verify RRsets that they do not need, or verify them before each use.

use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::validate::{
    AlgorithmPolicy, Budget, EntryPoints, Question, RrsetStatus, TrustedKeys, ValidationLimits, validate,
};
use nonesuch_lab::cost_model::BoundedMap;
use nonesuch_proto::message::{self, Header, Message, Record, Section, flags};
use nonesuch_proto::{Class, Name, Rtype};
use nonesuch_resolver::trust_anchors::{AnchorRecord, TrustAnchors};
use std::collections::HashMap;
use std::hash::{BuildHasher as _, RandomState};
use std::sync::Arc;

/// Zones whose keys and DS RRsets are stored.
const ZONES_MAX: usize = 100_000;
/// Verified RRsets that are stored.
const VERIFIED_MAX: usize = 1_000_000;
/// RRsets that wait for the keys of their zone.
const WAITING_MAX: usize = 10_000;
/// Maximum number of RRsets of a response that are read.
const RRSETS_MAX: usize = 64;
/// Maximum time to wait for the keys of a zone, in seconds.
const PATIENCE: u64 = 10;

/// A value until a time, in seconds since 1970.
struct Until<T> {
    value: T,
    end: u64,
}

/// An RRset with its signatures.
#[derive(Clone)]
struct SignedRrset {
    owner: Name,
    rtype: Rtype,
    /// The records and their RRSIG records, in the answer section.
    records: Vec<Record>,
    signer: Name,
}

/// Counts signatures to verify.
pub(super) struct Estimator {
    anchors: TrustAnchors,
    limits: ValidationLimits,
    /// The RDATA of verified DS RRsets.
    ds: BoundedMap<Name, Until<Vec<Vec<u8>>>>,
    keys: BoundedMap<Name, Until<Arc<TrustedKeys>>>,
    /// Verified RRsets, with their time to live in seconds.
    verified: BoundedMap<[u64; 2], Until<u64>>,
    hashers: [RandomState; 2],
    /// RRsets that wait for keys, by zone, with the time at which they were seen.
    waiting: HashMap<Name, Vec<(u64, SignedRrset)>>,
    waiting_count: usize,
    /// The time of the last check for RRsets that have waited too long.
    checked_at: u64,
    unknown: u64,
}

/// The keys for an RRset.
enum Keys {
    Known(Arc<TrustedKeys>),
    /// Not yet.
    Missing,
    /// A validator cannot use them.
    Unusable,
}

impl Estimator {
    pub(super) fn new(anchors: TrustAnchors) -> Self {
        Self {
            anchors,
            limits: ValidationLimits::default(),
            ds: BoundedMap::new(ZONES_MAX),
            keys: BoundedMap::new(ZONES_MAX),
            verified: BoundedMap::new(VERIFIED_MAX),
            hashers: [RandomState::new(), RandomState::new()],
            waiting: HashMap::new(),
            waiting_count: 0,
            checked_at: 0,
            unknown: 0,
        }
    }

    /// Number of RRsets whose signatures are not in the estimate.
    pub(super) fn unknown(&self) -> u64 {
        self.unknown + self.waiting_count as u64
    }

    /// Returns the number of signatures that are verified because of a response. `now` is in seconds since
    /// 1970.
    pub(super) fn count(&mut self, response: &Message, now: u64) -> u64 {
        if now >= self.checked_at + PATIENCE {
            self.give_up_waiting(now);
        }
        let mut todo: Vec<(u64, SignedRrset)> =
            signed_rrsets(response).into_iter().map(|rrset| (now, rrset)).collect();
        let mut verified = 0;
        while let Some((since, rrset)) = todo.pop() {
            let (count, freed) = self.verify(since, rrset, now);
            verified += count;
            let waiting = freed.and_then(|zone| self.waiting.remove(&zone)).unwrap_or_default();
            self.waiting_count -= waiting.len();
            todo.extend(waiting);
        }
        verified
    }

    /// Verifies an RRset unless it is cached. Returns the number of verified signatures, and the zone
    /// whose keys or DS RRset it is.
    fn verify(&mut self, since: u64, rrset: SignedRrset, now: u64) -> (u64, Option<Name>) {
        let id = self.identify(&rrset);
        if let Some(known) = self.verified.get(&id).filter(|known| now < known.end) {
            // A cache takes the new time to live.
            let end = now + known.value;
            known.end = end;
            return (0, self.learn(&rrset, end));
        }
        let keys = match self.keys_for(&rrset, now) {
            Keys::Known(keys) => keys,
            Keys::Missing => {
                self.wait(since, rrset);
                return (0, None);
            }
            Keys::Unusable => return (0, None),
        };
        let (count, ttl) = verify_with(&rrset, &keys, now, self.limits);
        let Some(ttl) = ttl else { return (count, None) };
        self.verified.insert(id, Until { value: ttl.into(), end: now + u64::from(ttl) });
        (count, self.learn(&rrset, now + u64::from(ttl)))
    }

    /// Stores the keys or the DS RRset of a zone. Returns the zone.
    fn learn(&mut self, rrset: &SignedRrset, end: u64) -> Option<Name> {
        let rdatas = || rrset.rdatas().map(<[u8]>::to_vec).collect();
        match rrset.rtype {
            Rtype::DNSKEY if rrset.owner == rrset.signer => {
                let keys = TrustedKeys::new(&rrset.owner, rrset.rdatas(), &self.limits);
                self.keys.insert(rrset.owner.clone(), Until { value: Arc::new(keys), end });
            }
            Rtype::DS => self.ds.insert(rrset.owner.clone(), Until { value: rdatas(), end }),
            _ => return None,
        }
        Some(rrset.owner.clone())
    }

    fn keys_for(&mut self, rrset: &SignedRrset, now: u64) -> Keys {
        if rrset.rtype == Rtype::DNSKEY && rrset.owner == rrset.signer {
            return self.entry_keys(rrset, now);
        }
        let known = self.keys.get(&rrset.signer).filter(|known| now < known.end);
        known.map_or(Keys::Missing, |known| Keys::Known(Arc::clone(&known.value)))
    }

    /// Returns the keys of a DNSKEY RRset that a trust anchor or a DS RRset names.
    fn entry_keys(&mut self, rrset: &SignedRrset, now: u64) -> Keys {
        let (mut ds, mut dnskeys): (Vec<&[u8]>, Vec<&[u8]>) = (Vec::new(), Vec::new());
        match self.anchors.closest(rrset.owner.view()) {
            Some(anchor) if anchor.apex == rrset.owner => {
                for record in &anchor.records {
                    match record {
                        AnchorRecord::Ds(rdata) => ds.push(rdata),
                        AnchorRecord::Dnskey(rdata) => dnskeys.push(rdata),
                    }
                }
            }
            _ => match self.ds.get(&rrset.owner).filter(|known| now < known.end) {
                Some(known) => ds.extend(known.value.iter().map(Vec::as_slice)),
                None => return Keys::Missing,
            },
        }
        let published: Vec<&[u8]> = rrset.rdatas().collect();
        let entry = EntryPoints { ds: &ds, dnskeys: &dnskeys };
        match entry.select(&rrset.owner, &published, AlgorithmPolicy::ALL, &self.limits) {
            Ok(keys) => Keys::Known(Arc::new(keys)),
            Err(_) => Keys::Unusable,
        }
    }

    fn wait(&mut self, since: u64, rrset: SignedRrset) {
        if self.waiting_count >= WAITING_MAX {
            self.unknown += 1;
            return;
        }
        self.waiting_count += 1;
        self.waiting.entry(rrset.signer.clone()).or_default().push((since, rrset));
    }

    /// Removes the RRsets that have waited too long for keys.
    fn give_up_waiting(&mut self, now: u64) {
        self.checked_at = now;
        let before = self.waiting_count;
        for rrsets in self.waiting.values_mut() {
            rrsets.retain(|(since, _)| now < since + PATIENCE);
        }
        self.waiting.retain(|_, rrsets| !rrsets.is_empty());
        self.waiting_count = self.waiting.values().map(Vec::len).sum();
        self.unknown += (before - self.waiting_count) as u64;
    }

    /// A hash of the owner, the type, the records and the signatures.
    fn identify(&self, rrset: &SignedRrset) -> [u64; 2] {
        let mut records: Vec<(Rtype, &[u8])> =
            rrset.records.iter().map(|record| (record.rtype, record.rdata.as_slice())).collect();
        records.sort_unstable_by_key(|(rtype, rdata)| (rtype.0, *rdata));
        [0, 1].map(|which: usize| {
            let hasher = &self.hashers[which];
            let records: Vec<(u16, &[u8])> = records.iter().map(|(rtype, rdata)| (rtype.0, *rdata)).collect();
            hasher.hash_one((&rrset.owner, rrset.rtype.0, records))
        })
    }
}

impl SignedRrset {
    /// The RDATA of the records, without signatures.
    fn rdatas(&self) -> impl Iterator<Item = &[u8]> {
        self.records.iter().filter(|record| record.rtype == self.rtype).map(|record| record.rdata.as_slice())
    }
}

/// Verifies an RRset as the answer to a question for it. Returns the number of verified signatures, and
/// the time to live in seconds if one is valid.
fn verify_with(
    rrset: &SignedRrset,
    keys: &TrustedKeys,
    now: u64,
    limits: ValidationLimits,
) -> (u64, Option<u32>) {
    let (name, rtype) = (rrset.owner.clone(), rrset.rtype);
    let header =
        Header { id: 0, flags: flags::QR | flags::AA, counts: [1, rrset.records.len() as u16, 0, 0] };
    let questions = vec![message::Question { name, rtype, class: Class::IN }];
    let response = Message { header, questions, records: rrset.records.clone() };
    let question = Question { name: rrset.owner.view(), rtype };
    // Signatures are valid for times modulo 2^32 (RFC 4034 §3.1.5). The response to a wildcard lacks the
    // proof here, which does not change the status of the RRset.
    let validation = validate(question, &response, keys, now as u32, &mut Budget::new(limits));
    let secure = validation
        .rrsets
        .iter()
        .find(|found| found.rtype == rtype && matches!(found.status, RrsetStatus::Secure));
    (validation.work.signatures.into(), secure.map(|found| found.ttl))
}

/// Returns the RRsets of the answer and authority sections that have signatures.
fn signed_rrsets(response: &Message) -> Vec<SignedRrset> {
    let mut rrsets: Vec<(Section, SignedRrset)> = Vec::new();
    let records = response.records.iter().filter(|record| {
        record.class == Class::IN && record.section != Section::Additional && !record.rtype.is_meta()
    });
    let (signatures, data): (Vec<&Record>, Vec<&Record>) =
        records.partition(|record| record.rtype == Rtype::RRSIG);
    for record in signatures {
        let Some(fields) = Rrsig::parse(&record.rdata) else { continue };
        let has_room = rrsets.len() < RRSETS_MAX;
        match find(&mut rrsets, record, fields.covered) {
            Some(rrset) => rrset.records.push(in_answer(record)),
            None if has_room => {
                let (owner, signer) = (record.owner.clone(), fields.signer.to_canonical());
                let rrset =
                    SignedRrset { owner, rtype: fields.covered, records: vec![in_answer(record)], signer };
                rrsets.push((record.section, rrset));
            }
            None => {}
        }
    }
    for record in data {
        if let Some(rrset) = find(&mut rrsets, record, record.rtype) {
            rrset.records.push(in_answer(record));
        }
    }
    let has_data = |rrset: &SignedRrset| rrset.rdatas().next().is_some();
    rrsets.into_iter().map(|(_, rrset)| rrset).filter(has_data).collect()
}

fn find<'r>(
    rrsets: &'r mut [(Section, SignedRrset)],
    record: &Record,
    rtype: Rtype,
) -> Option<&'r mut SignedRrset> {
    let is_same = |(section, rrset): &&mut (Section, SignedRrset)| {
        *section == record.section && rrset.rtype == rtype && rrset.owner == record.owner
    };
    rrsets.iter_mut().find(is_same).map(|(_, rrset)| rrset)
}

fn in_answer(record: &Record) -> Record {
    Record { section: Section::Answer, ..record.clone() }
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_lab::tree::{AnchorForm, Description, Fault, PlantedFault, Tree, ZoneDescription};

    const NOW: u32 = 1_767_225_600;

    fn tree() -> Tree {
        let mut island = ZoneDescription::new("island.example.");
        island.ds = false;
        let mut bad = ZoneDescription::new("bad.example.");
        let at = Some("www".to_owned());
        bad.faults = vec![PlantedFault { at, ..PlantedFault::new(Fault::WrongSignature) }];
        let zones = vec![
            ZoneDescription::new("."),
            ZoneDescription::new("example."),
            ZoneDescription { names: 2, ..ZoneDescription::new("signed.example.") },
            island,
            bad,
        ];
        Tree::build(&Description { zones, ..Description::default() }, 1, NOW).expect("a tree")
    }

    fn estimator(tree: &Tree) -> Estimator {
        Estimator::new(TrustAnchors::read(&tree.anchors(AnchorForm::Ds)).expect("anchors"))
    }

    /// The work for the responses that a resolver with an empty cache gets: at each zone that of the
    /// question, then that of the keys.
    fn resolve(tree: &Tree, estimator: &mut Estimator, name: &str, now: u64) -> u64 {
        let name: Name = name.parse().unwrap();
        let zones = tree.zones.iter().filter(|zone| name.view().is_at_or_below(zone.origin.view()));
        let mut count = 0;
        for zone in zones {
            count += estimator.count(&zone.respond(name.view(), Rtype::A), now);
            count += estimator.count(&zone.respond(zone.origin.view(), Rtype::DNSKEY), now);
        }
        count
    }

    #[test]
    fn each_signature_is_verified_once_in_its_time_to_live() {
        let (tree, now) = (tree(), u64::from(NOW));
        let mut estimator = estimator(&tree);
        // Of each zone the DNSKEY RRset; two DS RRsets and an address.
        assert_eq!(resolve(&tree, &mut estimator, "host0.signed.example.", now), 3 + 2 + 1);
        assert_eq!(resolve(&tree, &mut estimator, "host0.signed.example.", now + 1), 0);
        assert_eq!(resolve(&tree, &mut estimator, "host1.signed.example.", now + 1), 1);
        // Everything has expired in the cache.
        assert_eq!(resolve(&tree, &mut estimator, "host0.signed.example.", now + 7 * 86_400), 6);
        assert_eq!(estimator.unknown(), 0);
    }

    #[test]
    fn denials_are_verified() {
        let (tree, now) = (tree(), u64::from(NOW));
        let mut estimator = estimator(&tree);
        resolve(&tree, &mut estimator, "www.signed.example.", now);
        let denied = resolve(&tree, &mut estimator, "none.signed.example.", now);
        let response =
            tree.zones[2].respond("none.signed.example.".parse::<Name>().unwrap().view(), Rtype::A);
        let signatures = response.records.iter().filter(|record| record.rtype == Rtype::RRSIG).count() as u64;
        assert!(denied > 1 && denied == signatures, "{denied} of {signatures}");
    }

    #[test]
    fn an_island_of_security_is_not_verified() {
        let (tree, now) = (tree(), u64::from(NOW));
        let mut estimator = estimator(&tree);
        // The DNSKEY RRsets of two zones, a DS RRset, and the denial of the DS RRset of the island.
        assert_eq!(resolve(&tree, &mut estimator, "www.island.example.", now), 2 + 1 + 1);
        assert_eq!(estimator.unknown(), 2);
        estimator.give_up_waiting(now + PATIENCE);
        assert_eq!((estimator.unknown(), estimator.waiting_count), (2, 0));
    }

    #[test]
    fn a_signature_that_does_not_verify_is_verified_each_time() {
        let (tree, now) = (tree(), u64::from(NOW));
        let mut estimator = estimator(&tree);
        assert_eq!(resolve(&tree, &mut estimator, "www.bad.example.", now), 6);
        assert_eq!(resolve(&tree, &mut estimator, "www.bad.example.", now + 1), 1);
    }

    #[test]
    fn rrsets_wait_for_keys_in_bounded_memory() {
        let (tree, now) = (tree(), u64::from(NOW));
        let mut estimator = estimator(&tree);
        let response = tree.zones[2].respond("www.signed.example.".parse::<Name>().unwrap().view(), Rtype::A);
        for _ in 0..WAITING_MAX + 5 {
            assert_eq!(estimator.count(&response, now), 0);
        }
        assert_eq!((estimator.waiting_count, estimator.unknown()), (WAITING_MAX, WAITING_MAX as u64 + 5));
    }
}
