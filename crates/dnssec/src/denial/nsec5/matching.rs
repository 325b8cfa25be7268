//! Matches the names of a zone with the records of its NSEC5 chain: with stored proofs, which are
//! verified, or with the VRF key. Without either, it compares the number of names and records of
//! each kind.

use super::proofs::find_stored;
use super::{Hash, Nsec5, Nsec5Evidence, OPT_OUT, Proofs, WILDCARD, chain};
use crate::denial::names::{ChainName, chain_names, complete_types};
use crate::denial::push_bitmap_types;
use crate::keys::Nsec5Key;
use crate::verify::{FaultReason, Findings, Mode, VerifyWarning, Zone, check_bitmap};
use nonesuch_crypto::vrf::{VrfPrivateKey, VrfPublicKey, proof_to_hash};
use nonesuch_proto::{Name, Rtype, bitmap};
use nonesuch_zone::Node;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Number of names that a thread handles as one unit of work.
const CHUNK: usize = 256;

/// A key of the zone that can verify proofs.
pub(super) struct ZoneKey {
    pub(super) key: Nsec5Key,
    pub(super) public: VrfPublicKey,
}

/// A record of the chain; each owner has one.
pub(super) struct Record<'z> {
    pub(super) hash: Hash,
    pub(super) node: Node<'z>,
    /// `None` if the record is malformed.
    pub(super) fields: Option<Nsec5<'z>>,
}

impl Record<'_> {
    pub(super) fn has_flag(&self, flag: u8) -> bool {
        self.fields.is_some_and(|fields| fields.flags & flag != 0)
    }
}

/// A chain after the check of its records and links.
pub(super) struct Chain<'c, 'z> {
    pub(super) zone: &'c Zone<'z>,
    /// The records, sorted by hash.
    pub(super) records: &'c [Record<'z>],
    /// The key of the chain, if the zone has it.
    pub(super) key: Option<&'c ZoneKey>,
    pub(super) opt_out: bool,
    pub(super) mode: Mode,
}

/// The known hash of a name.
#[derive(Clone, Copy)]
enum Known {
    /// Unknown: no proof exists, or none is trusted.
    Nothing,
    /// The hash of a stored proof.
    Stored(Hash),
    /// The hash computed with the VRF key.
    Computed(Hash),
}

/// Checks that each name has a record with the properties of the name, and that no other records
/// exist.
pub(super) fn check(chain: &Chain<'_, '_>, evidence: &Nsec5Evidence<'_>, findings: &mut Findings) {
    let zone = chain.zone;
    let names = chain_names(zone.contents, &zone.statuses, &zone.chain_nodes());
    let apex = zone.contents.apex().view();
    let key = chain.key.map(|key| &key.key);
    let stored = evidence.proofs.filter(|proofs| {
        let reason = if *proofs.zone() != *zone.contents.apex() {
            FaultReason::ProofsOfOtherZone { zone: proofs.zone().clone() }
        } else if key.is_some_and(|key| proofs.key() != key) {
            FaultReason::ProofsOfOtherKey { tag: proofs.key().tag() }
        } else {
            return key.is_some();
        };
        findings.fault(apex, Some(Rtype::NSEC5PROOF), reason);
        false
    });
    let private = evidence.key.filter(|private| key == Some(&Nsec5Key::of(private)));
    if stored.is_none() && private.is_none() {
        findings.warn(VerifyWarning::NamesNotMatched);
        return count_kinds(chain, &names, findings);
    }
    let mut known = vec![Known::Nothing; names.len()];
    if let Some(stored) = stored {
        verify_stored(chain, &names, stored, &mut known, findings);
    }
    if let Some(private) = private {
        compute_unknown(chain, &names, private, &mut known);
    }
    match_records(chain, &names, &known, findings);
}

impl Chain<'_, '_> {
    /// Whether the chain must contain the name. An opt-out chain may omit only insecure
    /// delegations.
    fn requires(&self, name: &ChainName) -> bool {
        !self.opt_out || name.is_empty() || name.required
    }

    fn name(&self, name: &ChainName) -> Name {
        name.name(self.zone.contents).to_name()
    }

    fn find(&self, hash: &Hash) -> Result<usize, usize> {
        self.records.binary_search_by(|record| record.hash.cmp(hash))
    }

    /// The types that the record of a name must list.
    fn shown_types(&self, name: &ChainName, types: &mut Vec<Rtype>) {
        types.clear();
        if name.is_empty() {
            return;
        }
        let (node, status) =
            (self.zone.contents.node(name.node as usize), self.zone.statuses[name.node as usize]);
        push_bitmap_types(self.zone.rtypes(node), status, types);
        complete_types(types, status);
    }
}

/// Finds the stored proof of each name and verifies it.
fn verify_stored(
    chain: &Chain<'_, '_>,
    names: &[ChainName],
    stored: &Proofs,
    known: &mut [Known],
    findings: &mut Findings,
) {
    let zone = chain.zone;
    if let Some(soa) = zone.contents.soa().filter(|soa| soa.serial != stored.serial()) {
        findings.warn(VerifyWarning::ProofsSerial { stored: stored.serial(), zone: soa.serial });
    }
    let (places, extra) = find_stored(zone.contents, names, stored);
    for name in extra {
        findings.fault(name.view(), Some(Rtype::NSEC5PROOF), FaultReason::ProofExtra);
    }
    let outcomes: Vec<Option<ProofOutcome>> = names
        .par_chunks(CHUNK)
        .zip(places.par_chunks(CHUNK))
        .flat_map_iter(|(names, places)| verify_proofs(chain, names, places, stored))
        .collect();
    let proved: BTreeSet<&Hash> = match outcomes.iter().flatten().any(Result::is_err) {
        true => outcomes.iter().flatten().flatten().collect(),
        false => BTreeSet::new(),
    };
    for ((name, outcome), known) in names.iter().zip(&outcomes).zip(known) {
        let reason = match outcome {
            Some(Ok(hash)) => {
                *known = Known::Stored(*hash);
                continue;
            }
            Some(Err(Unproved::StoredHash)) => FaultReason::StoredHash,
            Some(Err(Unproved::Proof(Some(hash)))) if proved.contains(hash) => {
                FaultReason::ProofOfOtherName { hashed: hashed_name(zone, hash) }
            }
            Some(Err(Unproved::Proof(_))) => FaultReason::BadProof,
            None if chain.requires(name) => FaultReason::ProofMissing,
            None => continue,
        };
        findings.fault(name.name(zone.contents), Some(Rtype::NSEC5PROOF), reason);
    }
}

/// The reason why a stored proof is unusable.
enum Unproved {
    /// The proof is not valid for the name. The hash in it may be the hash of another name.
    Proof(Option<Hash>),
    /// The proof is valid, but its hash differs from the stored hash.
    StoredHash,
}

/// The hash that a stored proof proves, or the fault of the proof.
type ProofOutcome = Result<Hash, Unproved>;

/// Verifies the stored proofs of names in batches. `places` has the index of the proof of each
/// name. The result is `None` for a name without a proof.
fn verify_proofs(
    chain: &Chain<'_, '_>,
    names: &[ChainName],
    places: &[u32],
    stored: &Proofs,
) -> Vec<Option<ProofOutcome>> {
    let found: Vec<Option<(&Hash, &[u8])>> =
        places.iter().map(|place| stored.at(usize::try_from(*place).ok()?)).collect();
    let Some(key) = chain.key.filter(|_| chain.mode == Mode::Full) else {
        return found.into_iter().map(|found| found.map(|(hash, _)| Ok(*hash))).collect();
    };
    let canonical = names.iter().zip(&found).filter(|(_, found)| found.is_some()).map(|(name, _)| {
        let mut octets = Vec::new();
        name.name(chain.zone.contents).push_canonical(&mut octets);
        octets
    });
    let canonical: Vec<Vec<u8>> = canonical.collect();
    let proofs = found.iter().flatten().map(|(_, proof)| *proof);
    let items: Vec<(&[u8], &[u8])> = canonical.iter().map(Vec::as_slice).zip(proofs).collect();
    let mut verdicts = Vec::with_capacity(items.len());
    key.public.verify_batch(&items, &mut verdicts);
    let mut verdicts = verdicts.into_iter();
    let mut judge = |(stored, proof): (&Hash, &[u8])| match verdicts.next()? {
        Ok(hash) if hash == *stored => Some(Ok(hash)),
        Ok(_) => Some(Err(Unproved::StoredHash)),
        Err(_) => Some(Err(Unproved::Proof(proof_to_hash(key.key.algorithm(), proof).ok()))),
    };
    found.into_iter().map(|found| found.and_then(&mut judge)).collect()
}

/// Computes the hashes of the names without a usable proof. If the cryptographic library fails,
/// they remain unknown.
fn compute_unknown(chain: &Chain<'_, '_>, names: &[ChainName], private: &VrfPrivateKey, known: &mut [Known]) {
    names.par_chunks(CHUNK).zip(known.par_chunks_mut(CHUNK)).for_each(|(names, known)| {
        let is_unknown = |known: &Known| matches!(known, Known::Nothing);
        let canonical =
            names.iter().zip(known.iter()).filter(|(_, known)| is_unknown(known)).map(|(name, _)| {
                let mut octets = Vec::new();
                name.name(chain.zone.contents).push_canonical(&mut octets);
                octets
            });
        let canonical: Vec<Vec<u8>> = canonical.collect();
        let inputs: Vec<&[u8]> = canonical.iter().map(Vec::as_slice).collect();
        let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
        if private.prove_batch(&inputs, &mut proofs, &mut hashes).is_ok() {
            let unknown = known.iter_mut().filter(|known| is_unknown(known));
            unknown.zip(hashes).for_each(|(known, hash)| *known = Known::Computed(hash));
        }
    });
}

/// Finds the record of each name, and reports records that belong to no name.
fn match_records(chain: &Chain<'_, '_>, names: &[ChainName], known: &[Known], findings: &mut Findings) {
    let mut used = vec![false; chain.records.len()];
    let mut types = Vec::new();
    let mut unknown = 0;
    for (name, known) in names.iter().zip(known) {
        let (hash, is_stored) = match known {
            Known::Stored(hash) => (hash, true),
            Known::Computed(hash) => (hash, false),
            Known::Nothing => {
                unknown += usize::from(chain.requires(name));
                continue;
            }
        };
        match chain.find(hash) {
            Ok(place) => {
                used[place] = true;
                check_record(chain, name, &chain.records[place], &mut types, findings);
            }
            Err(place) => report_missing(chain, name, hash, place, is_stored, findings),
        }
    }
    let unused: Vec<&Record<'_>> =
        chain.records.iter().zip(&used).filter(|(_, used)| !**used).map(|(record, _)| record).collect();
    if unknown == 0 {
        for record in unused {
            findings.fault(record.node.name(), Some(Rtype::NSEC5), FaultReason::ChainExtra);
        }
    } else if unused.len() != unknown {
        report_count(chain, names, findings);
    }
}

fn check_record(
    chain: &Chain<'_, '_>,
    name: &ChainName,
    record: &Record<'_>,
    types: &mut Vec<Rtype>,
    findings: &mut Findings,
) {
    let Some(fields) = record.fields else { return };
    let owner = record.node.name();
    match (name.has_wildcard, record.has_flag(WILDCARD)) {
        (true, false) => {
            let reason = FaultReason::WildcardFlagClear { name: chain.name(name) };
            findings.fault(owner, Some(Rtype::NSEC5), reason);
        }
        (false, true) => {
            let reason = FaultReason::WildcardFlagSet { name: chain.name(name) };
            findings.fault(owner, Some(Rtype::NSEC5), reason);
        }
        _ => {}
    }
    chain.shown_types(name, types);
    check_bitmap(record.node, Rtype::NSEC5, types, fields.bitmap, findings);
}

/// Reports a name without a record. The record would be at index `place`, after the record that
/// covers the name.
fn report_missing(
    chain: &Chain<'_, '_>,
    name: &ChainName,
    hash: &Hash,
    place: usize,
    is_stored: bool,
    findings: &mut Findings,
) {
    let covering =
        place.checked_sub(1).map_or_else(|| chain.records.last(), |before| chain.records.get(before));
    let opted_out = covering.is_some_and(|record| record.has_flag(OPT_OUT));
    let hashed = hashed_name(chain.zone, hash);
    let (rtype, reason) = match (chain.requires(name), opted_out) {
        (false, true) if !is_stored => return,
        (false, true) => (Rtype::NSEC5PROOF, FaultReason::ProofExtra),
        (true, true) => (Rtype::NSEC5, FaultReason::OptOutOverSecure { hashed }),
        (_, false) => (Rtype::NSEC5, FaultReason::Nsec5Missing { hashed }),
    };
    findings.fault(name.name(chain.zone.contents), Some(rtype), reason);
}

fn report_count(chain: &Chain<'_, '_>, names: &[ChainName], findings: &mut Findings) -> bool {
    let least = names.iter().filter(|name| chain.requires(name)).count() as u64;
    let (records, most) = (chain.records.len() as u64, names.len() as u64);
    let fits = (least..=most).contains(&records);
    if !fits {
        let apex = chain.zone.contents.apex().view();
        findings.fault(apex, Some(Rtype::NSEC5), FaultReason::ChainCount { records, least, most });
    }
    fits
}

/// Numbers of names and records with the same bit map and Wildcard flag.
#[derive(Clone, Copy, Default)]
struct Kind {
    records: u64,
    least: u64,
    most: u64,
}

/// Without proofs, the verifier cannot assign records to names. It checks that the number of
/// records of each kind agrees with the number of names.
fn count_kinds(chain: &Chain<'_, '_>, names: &[ChainName], findings: &mut Findings) {
    if !report_count(chain, names, findings) || chain.records.iter().any(|record| record.fields.is_none()) {
        return;
    }
    let mut kinds: BTreeMap<(Vec<u8>, bool), Kind> = BTreeMap::new();
    let (mut types, mut map) = (Vec::new(), Vec::new());
    for name in names {
        chain.shown_types(name, &mut types);
        map.clear();
        bitmap::push(&types, &mut map);
        let kind = kind_of(&mut kinds, &map, name.has_wildcard);
        kind.least += u64::from(chain.requires(name));
        kind.most += 1;
    }
    for record in chain.records {
        let Some(fields) = record.fields else { continue };
        kind_of(&mut kinds, fields.bitmap, record.has_flag(WILDCARD)).records += 1;
    }
    let apex = chain.zone.contents.apex().view();
    for ((map, wildcard), Kind { records, least, most }) in kinds {
        if !(least..=most).contains(&records) {
            let types = bitmap::types(&map).collect();
            let reason = FaultReason::ChainKind { types, wildcard, records, least, most };
            findings.fault(apex, Some(Rtype::NSEC5), reason);
        }
    }
}

fn kind_of<'k>(kinds: &'k mut BTreeMap<(Vec<u8>, bool), Kind>, map: &[u8], wildcard: bool) -> &'k mut Kind {
    kinds.entry((map.to_vec(), wildcard)).or_default()
}

/// The owner of the record for `hash`. If the apex is too long for NSEC5 records, the result is the
/// apex.
pub(super) fn hashed_name(zone: &Zone<'_>, hash: &Hash) -> Name {
    let apex = zone.contents.apex();
    Name::prepend(&chain::label(hash), apex.view()).unwrap_or_else(|_| apex.clone())
}
