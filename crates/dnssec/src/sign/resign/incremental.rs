//! The previous signed zone, in which some names are planned and signed again. All other names are
//! copied.

use super::affected::{AffectedNames, links};
use super::chain::{ChainUpdate, Entry};
use super::outcome::{NameChange as Replaced, PlannedNames};
use super::scan::{Scan, chain_type, scan};
use super::view::{Edits, View};
use crate::denial::Mapping;
use crate::keys::KeySet;
use crate::sign::chunk::{Scratch, Signer, ZonemdPlacement};
use crate::sign::plan::Plan;
use crate::sign::reuse::ReusableSignatures;
use crate::sign::serial::choose_serial;
use crate::sign::signers::Signers;
use crate::sign::{
    PreviousZone, SignError, SignOptions, SignStatistics, SignWarning, Signed, apex, stray_records,
};
use nonesuch_proto::{Rtype, serial};
use nonesuch_zone::{Contents, NameStatus, Node, NodesBuilder, Rrset, ZoneRef};
use rayon::prelude::*;

/// Number of names that a thread signs as one unit of work; at most twice as many.
const NAMES_AT_ONCE: usize = 128;

/// Signs the zone that results from `edits` of the previous zone. `signed` is the zone to be
/// signed, if it is available: signatures of keys that are not given are copied from it or from the
/// previous zone. The outer `None` means that the chain cannot be updated and the whole zone must
/// be planned; the inner `None` means that no signature is due.
pub(super) fn sign_incrementally(
    edits: &Edits<'_>,
    keys: &KeySet,
    options: &SignOptions<'_>,
    signed: Option<&Contents>,
) -> Result<Option<Option<PlannedNames>>, SignError> {
    let Some(rtype) = mendable(edits, options) else { return Ok(None) };
    let Some(reuse) = ReusableSignatures::new(keys, options) else { return Ok(None) };
    let signed: Vec<&Contents> = signed.into_iter().chain([edits.previous.head()]).collect();
    let (Some(old), Some(unsigned)) = (edits.previous.soa(), edits.after.soa()) else { return Ok(None) };
    let mut prepared = apex::prepare(&edits.after, old.serial, keys, options, &signed)?;
    let Some(scan) = scan(edits.previous, &prepared.signers, &reuse, options)? else { return Ok(None) };
    let is_later = serial::is_before(old.serial, unsigned.serial);
    if edits.touched.len() == 1 && scan.stale.is_empty() && !is_later && is_current(edits, &prepared.apex) {
        return Ok(Some(None));
    }
    let (serial, warning) = choose_serial(options, unsigned.serial);
    prepared.set_serial(serial);
    let mut warnings: Vec<SignWarning> = warning.into_iter().collect();
    warnings.extend_from_slice(&prepared.warnings);
    warnings.extend(prepared.check_transition(edits.previous, options)?);
    let apex::Prepared { apex, signers, .. } = prepared;
    let view = View::new(edits, &apex);
    let changed = AffectedNames::of(&view);
    let Some(links) = links(&view, &changed, options) else { return Ok(None) };
    let mending = ChainUpdate::new(&view, rtype, &changed.names, &links, &scan.stale);
    let Some(rdatas) = mending.rdatas(options.mechanism, &options.nsec3) else { return Ok(None) };
    // Names that could not be loaded seem to be missing. The result must not depend on them.
    edits.previous.check_loaded()?;
    let (patch, statuses) = unsigned_patch(&mending, &rdatas);
    warnings.extend(stray_records::check_changed(&patch, &statuses));
    let replaced = replaced(edits.previous, &mending.entries);
    let previous = options.previous.zip(replaced.as_ref());
    let previous = previous.map(|(previous, contents)| PreviousZone { contents, ..previous });
    let options = &SignOptions { previous: previous.or(options.previous), ..options.clone() };
    let (patch, mut statistics) = sign_patch(&patch, statuses, &signers, options)?;
    add_kept(edits.previous, &mending.entries, &scan, &mut statistics);
    statistics.serial = serial;
    let places = places(&mending.entries, &patch);
    let patch = Signed { contents: patch, statistics, warnings };
    Ok(Some(Some(PlannedNames { patch, places })))
}

/// The type of the chain records, if the chain does not change as a whole. `None` in these cases:
/// the TTL of the chain changes, which follows from the SOA record; the letter case of the apex
/// changes, which the hashed owners copy; the zone has a digest over all records (RFC 8976); the
/// previous zone is unsigned or has another chain.
fn mendable(edits: &Edits<'_>, options: &SignOptions<'_>) -> Option<Rtype> {
    let (old, new) = (edits.previous.head(), &edits.after);
    let (old_apex, new_apex) = (old.nodes().next()?, new.nodes().next()?);
    let same_ttl = old.soa()?.negative_ttl() == new.soa()?.negative_ttl();
    let same_name =
        old.apex().wire() == new.apex().wire() && old_apex.name().wire() == new_apex.name().wire();
    let digested = old_apex.has(Rtype::ZONEMD)
        || new_apex.has(Rtype::ZONEMD)
        || options.zonemd.as_ref().is_some_and(|hashes| !hashes.is_empty());
    let signed = old_apex.has(Rtype::DNSKEY) && old_apex.signatures(Rtype::SOA).is_some();
    let chained = match options.mechanism.mapping() {
        Mapping::Itself => old_apex.has(Rtype::NSEC) && !old_apex.has(Rtype::NSEC3PARAM),
        Mapping::Sha1 => old_apex.has(Rtype::NSEC3PARAM) && !old_apex.has(Rtype::NSEC),
        Mapping::Vrf => false,
    };
    let whole = signed && chained && !old_apex.has(Rtype::NSEC5KEY);
    let dname = old_apex.has(Rtype::DNAME) != new_apex.has(Rtype::DNAME);
    if whole && same_ttl && same_name && !digested && !dname { chain_type(options.mechanism) } else { None }
}

/// Whether the previous zone has the same `apex`. The caller prepares it with the serial of the
/// previous zone.
fn is_current(edits: &Edits<'_>, apex: &Contents) -> bool {
    let is_chain = |rrset: &Rrset<'_>| matches!(rrset.rtype(), Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3);
    let mut olds = edits.previous.head().node(0).rrsets().filter(|rrset| !is_chain(rrset));
    let same = apex.node(0).rrsets().all(|new| {
        olds.next().is_some_and(|old| {
            (old.rtype(), old.ttl()) == (new.rtype(), new.ttl()) && old.rdatas().eq(new.rdatas())
        })
    });
    same && olds.next().is_none()
}

/// The entries that remain in the new zone, unsigned, with their chain records; and the status of
/// each.
fn unsigned_patch(mending: &ChainUpdate<'_, '_>, rdatas: &[Vec<u8>]) -> (Contents, Vec<NameStatus>) {
    let (mut run, mut statuses) = (NodesBuilder::default(), Vec::new());
    let chain_ttl = mending.view.chain_ttl();
    for (entry, rdata) in mending.entries.iter().zip(rdatas) {
        if entry.data.is_none() && rdata.is_empty() {
            continue;
        }
        run.begin_node(entry.data.map_or(entry.name, Node::name));
        statuses.push(entry.status);
        let mut link = (!rdata.is_empty()).then_some(rdata);
        let mut push_link = |run: &mut NodesBuilder, before: Rtype| {
            if let Some(rdata) = link.take_if(|_| mending.rtype < before) {
                run.begin_rrset(mending.rtype, mending.rtype, chain_ttl);
                run.push_record(|out| out.extend_from_slice(rdata));
            }
        };
        let is_apex = entry.place == 0 && entry.found;
        for rrset in entry.data.into_iter().flat_map(Node::rrsets) {
            // The prepared apex has only those signer-generated RRsets that belong to it.
            if is_apex || !rrset.rtype().is_signature_or_chain() {
                push_link(&mut run, rrset.rtype());
                run.push_rrset(rrset);
            }
        }
        push_link(&mut run, Rtype(u16::MAX));
    }
    (Contents::from_nodes(mending.view.old.apex(), run), statuses)
}

/// The nodes of a compiled zone that are planned again. The head of the zone alone does not have
/// their signatures, which may be reused.
fn replaced(previous: ZoneRef<'_>, entries: &[Entry<'_>]) -> Option<Contents> {
    let ZoneRef::Stored(zone) = previous else { return None };
    let mut run = NodesBuilder::default();
    let found = entries.iter().filter(|entry| entry.found).filter_map(|entry| zone.node(entry.place));
    found.for_each(|node| run.push_node(node));
    Some(Contents::from_nodes(zone.apex(), run))
}

fn sign_patch(
    patch: &Contents,
    statuses: Vec<NameStatus>,
    signers: &Signers<'_>,
    options: &SignOptions<'_>,
) -> Result<(Contents, SignStatistics), SignError> {
    let plan = Plan::of_all(patch, statuses);
    let signer = Signer::new(&plan, signers, options, ZonemdPlacement::Apex);
    // For few names, all chunks have the same size: large enough for batches, and small enough to
    // use all threads.
    let count = plan.items().len();
    let chunk = count.div_ceil((count / NAMES_AT_ONCE).max(1)).max(1);
    let outcomes: Result<Vec<(NodesBuilder, SignStatistics)>, SignError> = plan
        .items()
        .par_chunks(chunk)
        .map_init(Scratch::default, |scratch, items| {
            let mut run = NodesBuilder::default();
            let statistics = signer.sign_chunk(items, scratch, &mut run)?;
            Ok((run, statistics))
        })
        .collect();
    let mut statistics = SignStatistics::default();
    let runs = outcomes?.into_iter().map(|(run, part)| {
        statistics.add(&part);
        run
    });
    let runs = runs.collect();
    let signed = Contents::from_parts(patch.apex(), runs);
    signed.check_sizes()?;
    Ok((signed, statistics))
}

/// Adds the numbers of the copied nodes to those of the planned names.
fn add_kept(previous: ZoneRef<'_>, entries: &[Entry<'_>], scan: &Scan, statistics: &mut SignStatistics) {
    let (mut signatures, mut rrsets, mut chain) = (scan.signatures, scan.rrsets_signed, scan.chain_records);
    let mut records = scan.records;
    for entry in entries.iter().filter(|entry| entry.found) {
        for rrset in previous.node(entry.place).into_iter().flat_map(Node::rrsets) {
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

/// The positions of the nodes of `patch` in the zone.
fn places(entries: &[Entry<'_>], patch: &Contents) -> Vec<Replaced> {
    let mut next = patch.nodes().peekable();
    let place = |entry: &Entry<'_>| {
        let is = next.next_if(|node| node.name() == entry.name).is_some();
        Replaced { at: entry.place, was: entry.found, is }
    };
    entries.iter().map(place).collect()
}
