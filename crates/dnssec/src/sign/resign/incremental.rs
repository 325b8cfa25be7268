//! Updates the previous signed zone: plans and signs again the affected names, and copies all other
//! names.

use super::affected::{AffectedNames, links};
use super::chain::{ChainUpdate, PlannedEntry};
use super::outcome::{NameChange, ZonePatch};
use super::scan::{Scan, chain_type, scan};
use super::view::{Edits, View};
use crate::denial::NameHash;
use crate::keys::KeySet;
use crate::sign::chunk::{ChunkSigner, Scratch, ZonemdPlacement};
use crate::sign::key_assignment::KeyAssignment;
use crate::sign::plan::Plan;
use crate::sign::reuse::ReusableSignatures;
use crate::sign::serial::choose_serial;
use crate::sign::{
    PreviousZone, SignError, SignOptions, SignStatistics, SignWarning, Signed, apex, stray_records,
};
use nonesuch_proto::{Rtype, serial};
use nonesuch_zone::{Contents, NameStatus, Node, NodesBuilder, Rrset, ZoneRef};
use rayon::prelude::*;

/// Minimum number of names that a thread signs as one unit of work, if there are as many. The
/// maximum is twice the minimum.
const MIN_NAMES_PER_CHUNK: usize = 128;

/// Signs the zone that results from `edits` of the previous zone. `contents` is the zone to be
/// signed, if it is available. Signatures of keys whose private keys were not given are copied from
/// it or from the previous zone.
///
/// The outer `None` means that the chain cannot be updated and the whole zone must be planned. The
/// inner `None` means that the previous zone is current.
pub(super) fn sign_incrementally(
    edits: &Edits<'_>,
    keys: &KeySet,
    options: &SignOptions<'_>,
    contents: Option<&Contents>,
) -> Result<Option<Option<ZonePatch>>, SignError> {
    let Some(rtype) = updatable_chain_type(edits, options) else { return Ok(None) };
    let Some(reuse) = ReusableSignatures::new(keys, options) else { return Ok(None) };
    let signature_sources: Vec<&Contents> = contents.into_iter().chain([edits.previous.head()]).collect();
    let (Some(old), Some(unsigned)) = (edits.previous.soa(), edits.after.soa()) else { return Ok(None) };
    let mut prepared = apex::prepare(&edits.after, old.serial, keys, options, &signature_sources)?;
    let Some(scan) = scan(edits.previous, &prepared.assignment, &reuse, options)? else { return Ok(None) };
    let has_later_serial = serial::is_before(old.serial, unsigned.serial);
    // The apex is always among the changed owners.
    let is_only_apex = edits.changed_owners.len() == 1;
    if is_only_apex && scan.stale.is_empty() && !has_later_serial && has_same_apex(edits, &prepared.apex) {
        return Ok(Some(None));
    }
    let (serial, warning) = choose_serial(options, unsigned.serial);
    prepared.set_serial(serial);
    let mut warnings: Vec<SignWarning> = warning.into_iter().collect();
    warnings.extend_from_slice(&prepared.warnings);
    warnings.extend(prepared.check_transition(edits.previous, options)?);
    let apex::PreparedApex { apex, assignment, .. } = prepared;
    let view = View::new(edits, &apex);
    let affected = AffectedNames::of(&view);
    let Some(links) = links(&view, &affected, options) else { return Ok(None) };
    let update = ChainUpdate::new(&view, rtype, &affected.names, &links, &scan.stale);
    let Some(rdatas) = update.chain_rdatas(options.mechanism, &options.nsec3) else { return Ok(None) };
    // Names that could not be loaded seem to be missing. The result must not depend on them.
    edits.previous.check_loaded()?;
    let (patch, statuses) = unsigned_patch(&update, &rdatas);
    warnings.extend(stray_records::check_changed(&patch, &statuses));
    let old_nodes = old_nodes(edits.previous, &update.entries);
    let previous = options.previous.zip(old_nodes.as_ref());
    let previous = previous.map(|(previous, contents)| PreviousZone { contents, ..previous });
    let options = &SignOptions { previous: previous.or(options.previous), ..options.clone() };
    let (patch, mut statistics) = sign_patch(&patch, statuses, &assignment, options)?;
    add_copied_nodes(edits.previous, &update.entries, &scan, &mut statistics);
    statistics.serial = serial;
    let name_changes = name_changes(&update.entries, &patch);
    let patch = Signed { contents: patch, statistics, warnings };
    Ok(Some(Some(ZonePatch { patch, name_changes })))
}

/// The type of the chain records, if single names of the previous zone can be updated. `None` in
/// these cases:
///
/// - The TTL of the chain changes, which follows from the SOA record.
/// - The letter case of the apex changes, which is also in the hashed owners.
/// - The zone has a digest over all records (RFC 8976).
/// - The apex gains or loses a DNAME record, which occludes all other names.
/// - The previous zone is unsigned or has another chain.
fn updatable_chain_type(edits: &Edits<'_>, options: &SignOptions<'_>) -> Option<Rtype> {
    let (old, new) = (edits.previous.head(), &edits.after);
    let (old_apex, new_apex) = (old.nodes().next()?, new.nodes().next()?);
    let has_same_ttl = old.soa()?.negative_ttl() == new.soa()?.negative_ttl();
    let has_same_name =
        old.apex().wire() == new.apex().wire() && old_apex.name().wire() == new_apex.name().wire();
    let has_zonemd = old_apex.has(Rtype::ZONEMD)
        || new_apex.has(Rtype::ZONEMD)
        || options.zonemd.as_ref().is_some_and(|hashes| !hashes.is_empty());
    let is_signed = old_apex.has(Rtype::DNSKEY) && old_apex.signatures(Rtype::SOA).is_some();
    let has_chain = match options.mechanism.name_hash() {
        NameHash::Unhashed => old_apex.has(Rtype::NSEC) && !old_apex.has(Rtype::NSEC3PARAM),
        NameHash::Sha1 => old_apex.has(Rtype::NSEC3PARAM) && !old_apex.has(Rtype::NSEC),
        NameHash::Vrf => false,
    };
    let is_usable = is_signed && has_chain && !old_apex.has(Rtype::NSEC5KEY);
    let dname_changes = old_apex.has(Rtype::DNAME) != new_apex.has(Rtype::DNAME);
    let is_updatable = is_usable && has_same_ttl && has_same_name && !has_zonemd && !dname_changes;
    if is_updatable { chain_type(options.mechanism) } else { None }
}

/// Whether the previous zone has the prepared `apex`, without signatures and chain records. The
/// serial of `apex` must be that of the previous zone.
fn has_same_apex(edits: &Edits<'_>, apex: &Contents) -> bool {
    let is_chain = |rrset: &Rrset<'_>| matches!(rrset.rtype(), Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3);
    let mut old_rrsets = edits.previous.head().node(0).rrsets().filter(|rrset| !is_chain(rrset));
    let is_same = apex.node(0).rrsets().all(|new| {
        old_rrsets.next().is_some_and(|old| {
            (old.rtype(), old.ttl()) == (new.rtype(), new.ttl()) && old.rdatas().eq(new.rdatas())
        })
    });
    is_same && old_rrsets.next().is_none()
}

/// The nodes of the entries that the new zone has, with their chain records and without signatures,
/// and the status of each node. `rdatas` is the RDATA of the chain record of each entry, empty if
/// it has none.
fn unsigned_patch(update: &ChainUpdate<'_, '_>, rdatas: &[Vec<u8>]) -> (Contents, Vec<NameStatus>) {
    let (mut builder, mut statuses) = (NodesBuilder::default(), Vec::new());
    let chain_ttl = update.view.chain_ttl();
    for (entry, rdata) in update.entries.iter().zip(rdatas) {
        if entry.data.is_none() && rdata.is_empty() {
            continue;
        }
        builder.begin_node(entry.data.map_or(entry.name, Node::name));
        statuses.push(entry.status);
        let mut chain_rdata = (!rdata.is_empty()).then_some(rdata);
        // Appends the chain record, if it was not appended and precedes the type `before`.
        let mut push_chain_record = |builder: &mut NodesBuilder, before: Rtype| {
            if let Some(rdata) = chain_rdata.take_if(|_| update.rtype < before) {
                builder.begin_rrset(update.rtype, update.rtype, chain_ttl);
                builder.push_record(|out| out.extend_from_slice(rdata));
            }
        };
        let is_apex = entry.position == 0 && entry.in_previous;
        for rrset in entry.data.into_iter().flat_map(Node::rrsets) {
            // The prepared apex has only the generated RRsets that it must have. Other nodes still
            // have those of the previous zone.
            if is_apex || !rrset.rtype().is_signature_or_chain() {
                push_chain_record(&mut builder, rrset.rtype());
                builder.push_rrset(rrset);
            }
        }
        push_chain_record(&mut builder, Rtype(u16::MAX));
    }
    (Contents::from_nodes(update.view.old.apex(), builder), statuses)
}

/// The nodes of a compiled zone that are planned again, with their signatures, which may be reused.
/// `None` if the whole previous zone is in memory.
fn old_nodes(previous: ZoneRef<'_>, entries: &[PlannedEntry<'_>]) -> Option<Contents> {
    let ZoneRef::Stored(zone) = previous else { return None };
    let mut builder = NodesBuilder::default();
    let found =
        entries.iter().filter(|entry| entry.in_previous).filter_map(|entry| zone.node(entry.position));
    found.for_each(|node| builder.push_node(node));
    Some(Contents::from_nodes(zone.apex(), builder))
}

/// Signs the nodes `patch`, which have their chain records.
fn sign_patch(
    patch: &Contents,
    statuses: Vec<NameStatus>,
    assignment: &KeyAssignment<'_>,
    options: &SignOptions<'_>,
) -> Result<(Contents, SignStatistics), SignError> {
    let plan = Plan::with_stored_chain(patch, statuses);
    let signer = ChunkSigner::new(&plan, assignment, options, ZonemdPlacement::Apex);
    // All chunks have the same size: large enough for batches, and small enough that few names
    // occupy all threads.
    let count = plan.items().len();
    let names_per_chunk = count.div_ceil((count / MIN_NAMES_PER_CHUNK).max(1)).max(1);
    let outcomes: Result<Vec<(NodesBuilder, SignStatistics)>, SignError> = plan
        .items()
        .par_chunks(names_per_chunk)
        .map_init(Scratch::default, |scratch, items| {
            let mut builder = NodesBuilder::default();
            let statistics = signer.sign_chunk(items, scratch, &mut builder)?;
            Ok((builder, statistics))
        })
        .collect();
    let mut statistics = SignStatistics::default();
    let builders = outcomes?.into_iter().map(|(builder, added)| {
        statistics.add(&added);
        builder
    });
    let builders = builders.collect();
    let signed = Contents::from_parts(patch.apex(), builders);
    signed.check_sizes()?;
    Ok((signed, statistics))
}

/// Adds the numbers of the copied nodes: those of the whole previous zone (`scan`) without those of
/// the nodes that are planned again.
fn add_copied_nodes(
    previous: ZoneRef<'_>,
    entries: &[PlannedEntry<'_>],
    scan: &Scan,
    statistics: &mut SignStatistics,
) {
    let (mut signatures, mut rrsets, mut chain) = (scan.signatures, scan.rrsets_signed, scan.chain_records);
    let mut records = scan.records;
    for entry in entries.iter().filter(|entry| entry.in_previous) {
        for rrset in previous.node(entry.position).into_iter().flat_map(Node::rrsets) {
            records -= rrset.count() as u64;
            match rrset.rtype() {
                Rtype::RRSIG => {
                    signatures -= rrset.count() as u64;
                    rrsets -= 1;
                }
                Rtype::NSEC | Rtype::NSEC3 => chain -= 1,
                _ => {}
            }
        }
    }
    statistics.signatures_kept += signatures;
    statistics.rrsets_signed += rrsets;
    statistics.chain_records += chain;
    statistics.records += records;
}

/// The position of each entry, and whether the previous zone and `patch` have it.
fn name_changes(entries: &[PlannedEntry<'_>], patch: &Contents) -> Vec<NameChange> {
    let mut next = patch.nodes().peekable();
    let name_change = |entry: &PlannedEntry<'_>| {
        let in_new = next.next_if(|node| node.name() == entry.name).is_some();
        NameChange { index: entry.position, in_previous: entry.in_previous, in_new }
    };
    entries.iter().map(name_change).collect()
}
