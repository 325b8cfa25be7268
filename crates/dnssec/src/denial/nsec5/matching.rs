//! Matches the names of a zone with the records of its NSEC5 chain: with stored proofs, which are
//! verified, or with the VRF key. Without either, it compares the number of names and records of
//! each kind.

use super::proofs::find_stored;
use super::{Hash, Nsec5, Nsec5Evidence, OPT_OUT_FLAG, Proofs, WILDCARD_FLAG, chain};
use crate::denial::names::{ChainName, chain_names, insert_rrsig};
use crate::denial::push_bitmap_types;
use crate::keys::Nsec5Key;
use crate::verify::{FaultReason, Findings, Mode, VerifyWarning, Zone, check_bitmap};
use nonesuch_crypto::vrf::{VrfPrivateKey, VrfPublicKey, proof_to_hash};
use nonesuch_proto::{Name, Rtype, bitmap};
use nonesuch_zone::Node;
use rayon::prelude::*;
use std::collections::{BTreeMap, BTreeSet};

/// Number of names that a thread handles as one unit of work.
const CHUNK_NAMES: usize = 256;

/// A usable VRF key of the zone.
pub(super) struct ZoneVrfKey {
    /// The key as in its NSEC5KEY record.
    pub(super) nsec5key: Nsec5Key,
    /// The same key, parsed to verify proofs.
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
    pub(super) key: Option<&'c ZoneVrfKey>,
    pub(super) opt_out: bool,
    pub(super) mode: Mode,
}

/// The hash of a name, if it is known, and its source.
#[derive(Clone, Copy)]
enum KnownHash {
    /// The name has no stored proof, or its stored proof is not valid.
    Unknown,
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
    let chain_key = chain.key.map(|key| &key.nsec5key);
    let stored_proofs = evidence.proofs.filter(|proofs| {
        let reason = if *proofs.zone() != *zone.contents.apex() {
            FaultReason::ProofsOfOtherZone { zone: proofs.zone().clone() }
        } else if chain_key.is_some_and(|key| proofs.key() != key) {
            FaultReason::ProofsOfOtherKey { tag: proofs.key().tag() }
        } else {
            return chain_key.is_some();
        };
        findings.fault(apex, Some(Rtype::NSEC5PROOF), reason);
        false
    });
    let vrf_key = evidence.key.filter(|private| chain_key == Some(&Nsec5Key::of(private)));
    if stored_proofs.is_none() && vrf_key.is_none() {
        findings.warn(VerifyWarning::NamesNotMatched);
        return check_kinds(chain, &names, findings);
    }
    let mut known = vec![KnownHash::Unknown; names.len()];
    if let Some(stored) = stored_proofs {
        verify_stored(chain, &names, stored, &mut known, findings);
    }
    if let Some(private) = vrf_key {
        compute_unknown(chain, &names, private, &mut known);
    }
    match_records(chain, &names, &known, findings);
}

impl Chain<'_, '_> {
    /// Whether the chain must contain the name. An opt-out chain may omit only insecure
    /// delegations.
    fn must_contain(&self, name: &ChainName) -> bool {
        !self.opt_out || name.is_empty_non_terminal() || name.is_required
    }

    fn name(&self, name: &ChainName) -> Name {
        name.name(self.zone.contents).to_name()
    }

    /// Finds the record with `hash`; an error is the index at which the record would be.
    fn find_record(&self, hash: &Hash) -> Result<usize, usize> {
        self.records.binary_search_by(|record| record.hash.cmp(hash))
    }

    /// Writes the types that the bit map of the record of a name must have to `types`.
    fn bitmap_types(&self, name: &ChainName, types: &mut Vec<Rtype>) {
        types.clear();
        if name.is_empty_non_terminal() {
            return;
        }
        let (node, status) =
            (self.zone.contents.node(name.node as usize), self.zone.statuses[name.node as usize]);
        push_bitmap_types(self.zone.rtypes(node), status, types);
        insert_rrsig(types, status);
    }
}

/// Finds the stored proof of each name and verifies it.
fn verify_stored(
    chain: &Chain<'_, '_>,
    names: &[ChainName],
    stored: &Proofs,
    known: &mut [KnownHash],
    findings: &mut Findings,
) {
    let zone = chain.zone;
    if let Some(soa) = zone.contents.soa().filter(|soa| soa.serial != stored.serial()) {
        findings.warn(VerifyWarning::ProofsSerial { stored: stored.serial(), zone: soa.serial });
    }
    let (proof_indexes, extra) = find_stored(zone.contents, names, stored);
    for name in extra {
        findings.fault(name.view(), Some(Rtype::NSEC5PROOF), FaultReason::ProofExtra);
    }
    let outcomes: Vec<Option<ProofOutcome>> = names
        .par_chunks(CHUNK_NAMES)
        .zip(proof_indexes.par_chunks(CHUNK_NAMES))
        .flat_map_iter(|(names, indexes)| verify_proofs(chain, names, indexes, stored))
        .collect();
    let proved: BTreeSet<&Hash> = match outcomes.iter().flatten().any(Result::is_err) {
        true => outcomes.iter().flatten().flatten().collect(),
        false => BTreeSet::new(),
    };
    for ((name, outcome), known) in names.iter().zip(&outcomes).zip(known) {
        let reason = match outcome {
            Some(Ok(hash)) => {
                *known = KnownHash::Stored(*hash);
                continue;
            }
            Some(Err(ProofFault::StoredHash)) => FaultReason::StoredHashMismatch,
            Some(Err(ProofFault::Invalid(Some(hash)))) if proved.contains(hash) => {
                FaultReason::ProofOfOtherName { hashed: hashed_name(zone, hash) }
            }
            Some(Err(ProofFault::Invalid(_))) => FaultReason::BadProof,
            None if chain.must_contain(name) => FaultReason::ProofMissing,
            None => continue,
        };
        findings.fault(name.name(zone.contents), Some(Rtype::NSEC5PROOF), reason);
    }
}

/// The reason why a stored proof is unusable.
enum ProofFault {
    /// The proof is not valid for the name. The value is the hash in the proof, which may be that
    /// of another name; `None` if the proof is malformed.
    Invalid(Option<Hash>),
    /// The proof is valid, but its hash differs from the stored hash.
    StoredHash,
}

/// The hash that a stored proof proves, or the fault of the proof.
type ProofOutcome = Result<Hash, ProofFault>;

/// Verifies the stored proofs of `names` as one batch. `proof_indexes` has the index of the proof
/// of each name. The result is `None` for a name without a proof.
///
/// Unless the mode is [`Mode::Full`], no proof is verified, and all stored hashes are accepted.
fn verify_proofs(
    chain: &Chain<'_, '_>,
    names: &[ChainName],
    proof_indexes: &[u32],
    stored: &Proofs,
) -> Vec<Option<ProofOutcome>> {
    let found: Vec<Option<(&Hash, &[u8])>> =
        proof_indexes.iter().map(|index| stored.get(usize::try_from(*index).ok()?)).collect();
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
    let mut results = Vec::with_capacity(items.len());
    key.public.verify_batch(&items, &mut results);
    let mut results = results.into_iter();
    let mut next_outcome = |(stored, proof): (&Hash, &[u8])| match results.next()? {
        Ok(hash) if hash == *stored => Some(Ok(hash)),
        Ok(_) => Some(Err(ProofFault::StoredHash)),
        Err(_) => Some(Err(ProofFault::Invalid(proof_to_hash(key.nsec5key.algorithm(), proof).ok()))),
    };
    found.into_iter().map(|found| found.and_then(&mut next_outcome)).collect()
}

/// Computes the hashes of the names whose hash is unknown. If the cryptographic library fails, they
/// remain unknown.
fn compute_unknown(
    chain: &Chain<'_, '_>,
    names: &[ChainName],
    private: &VrfPrivateKey,
    known: &mut [KnownHash],
) {
    names.par_chunks(CHUNK_NAMES).zip(known.par_chunks_mut(CHUNK_NAMES)).for_each(|(names, known)| {
        let is_unknown = |known: &KnownHash| matches!(known, KnownHash::Unknown);
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
            unknown.zip(hashes).for_each(|(known, hash)| *known = KnownHash::Computed(hash));
        }
    });
}

/// Finds the record of each name, and reports records that belong to no name. If hashes of names
/// are unknown, the unused records can belong to these names, so only the numbers are compared.
fn match_records(chain: &Chain<'_, '_>, names: &[ChainName], known: &[KnownHash], findings: &mut Findings) {
    let mut used = vec![false; chain.records.len()];
    let mut types = Vec::new();
    let mut unknown = 0;
    for (name, known) in names.iter().zip(known) {
        let (hash, is_stored) = match known {
            KnownHash::Stored(hash) => (hash, true),
            KnownHash::Computed(hash) => (hash, false),
            KnownHash::Unknown => {
                unknown += usize::from(chain.must_contain(name));
                continue;
            }
        };
        match chain.find_record(hash) {
            Ok(index) => {
                used[index] = true;
                check_record(chain, name, &chain.records[index], &mut types, findings);
            }
            Err(index) => report_missing(chain, name, hash, index, is_stored, findings),
        }
    }
    let unused: Vec<&Record<'_>> =
        chain.records.iter().zip(&used).filter(|(_, used)| !**used).map(|(record, _)| record).collect();
    if unknown == 0 {
        for record in unused {
            findings.fault(record.node.name(), Some(Rtype::NSEC5), FaultReason::ChainExtra);
        }
    } else if unused.len() != unknown {
        check_count(chain, names, findings);
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
    match (name.has_wildcard, record.has_flag(WILDCARD_FLAG)) {
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
    chain.bitmap_types(name, types);
    check_bitmap(record.node, Rtype::NSEC5, types, fields.bitmap, findings);
}

/// Reports a name without a record. The record would be at `index`, after the record that covers
/// the name. `is_stored` states whether `hash` is from a stored proof.
fn report_missing(
    chain: &Chain<'_, '_>,
    name: &ChainName,
    hash: &Hash,
    index: usize,
    is_stored: bool,
    findings: &mut Findings,
) {
    let covering =
        index.checked_sub(1).map_or_else(|| chain.records.last(), |before| chain.records.get(before));
    let is_covered_by_opt_out = covering.is_some_and(|record| record.has_flag(OPT_OUT_FLAG));
    let hashed = hashed_name(chain.zone, hash);
    let (rtype, reason) = match (chain.must_contain(name), is_covered_by_opt_out) {
        (false, true) if !is_stored => return,
        (false, true) => (Rtype::NSEC5PROOF, FaultReason::ProofExtra),
        (true, true) => (Rtype::NSEC5, FaultReason::OptOutOverSecure { hashed }),
        (_, false) => (Rtype::NSEC5, FaultReason::Nsec5Missing { hashed }),
    };
    findings.fault(name.name(chain.zone.contents), Some(rtype), reason);
}

/// Checks that the number of records can be that of the names. Returns whether it can.
fn check_count(chain: &Chain<'_, '_>, names: &[ChainName], findings: &mut Findings) -> bool {
    let min_names = names.iter().filter(|name| chain.must_contain(name)).count() as u64;
    let (records, max_names) = (chain.records.len() as u64, names.len() as u64);
    let is_possible = (min_names..=max_names).contains(&records);
    if !is_possible {
        let apex = chain.zone.contents.apex().view();
        findings.fault(apex, Some(Rtype::NSEC5), FaultReason::ChainCount { records, min_names, max_names });
    }
    is_possible
}

/// Numbers of records and names with the same bit map and Wildcard flag.
#[derive(Clone, Copy, Default)]
struct KindCounts {
    records: u64,
    /// Number of names that must be in the chain.
    min_names: u64,
    /// Number of names that may be in the chain.
    max_names: u64,
}

/// Checks that the number of records of each kind agrees with the number of names of that kind.
/// Without proofs and VRF key, the verifier cannot assign records to names.
fn check_kinds(chain: &Chain<'_, '_>, names: &[ChainName], findings: &mut Findings) {
    if !check_count(chain, names, findings) || chain.records.iter().any(|record| record.fields.is_none()) {
        return;
    }
    let mut kinds: BTreeMap<(Vec<u8>, bool), KindCounts> = BTreeMap::new();
    let (mut types, mut map) = (Vec::new(), Vec::new());
    for name in names {
        chain.bitmap_types(name, &mut types);
        map.clear();
        bitmap::push(&types, &mut map);
        let kind = counts_of_kind(&mut kinds, &map, name.has_wildcard);
        kind.min_names += u64::from(chain.must_contain(name));
        kind.max_names += 1;
    }
    for record in chain.records {
        let Some(fields) = record.fields else { continue };
        counts_of_kind(&mut kinds, fields.bitmap, record.has_flag(WILDCARD_FLAG)).records += 1;
    }
    let apex = chain.zone.contents.apex().view();
    for ((map, wildcard), KindCounts { records, min_names, max_names }) in kinds {
        if !(min_names..=max_names).contains(&records) {
            let types = bitmap::types(&map).collect();
            let reason = FaultReason::ChainKindCount { types, wildcard, records, min_names, max_names };
            findings.fault(apex, Some(Rtype::NSEC5), reason);
        }
    }
}

fn counts_of_kind<'k>(
    kinds: &'k mut BTreeMap<(Vec<u8>, bool), KindCounts>,
    map: &[u8],
    wildcard: bool,
) -> &'k mut KindCounts {
    kinds.entry((map.to_vec(), wildcard)).or_default()
}

/// The owner of the record for `hash`. If the apex is too long for NSEC5 records, the result is the
/// apex.
pub(super) fn hashed_name(zone: &Zone<'_>, hash: &Hash) -> Name {
    let apex = zone.contents.apex();
    Name::prepend(&chain::label(hash), apex.view()).unwrap_or_else(|_| apex.clone())
}
