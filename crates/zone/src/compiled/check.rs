//! Checks of the invariants of [`Contents`] that are read from a compiled zone. Contents from the
//! builder or from signing need no such check.

use super::{CompiledError, Flaw};
use crate::builder::ZoneFault;
use crate::contents::{Contents, RrsetEntry};
use crate::node_checks;
use nonesuch_proto::{NameRef, Rtype, rdata};
use rayon::prelude::*;

/// Number of nodes that a task of the thread pool checks.
const NODES_PER_TASK: usize = 4096;

/// Checks the names, their order, the RRsets and the RDATA of a whole zone, and the rules of
/// [`node_checks::check_node`].
pub(super) fn check(contents: &Contents) -> Result<(), CompiledError> {
    let starts: Vec<usize> = (0..contents.nodes.len()).step_by(NODES_PER_TASK).collect();
    let first = starts
        .par_iter()
        .map(|start| check_nodes(contents, *start, NODES_PER_TASK, 0))
        .find_first(Result::is_err);
    first.unwrap_or(Ok(()))?;
    check_apex(contents)
}

/// Same as [`check`], for one chunk. `first_node` is the index of its first node in the zone.
pub(super) fn check_chunk(contents: &Contents, first_node: usize) -> Result<(), CompiledError> {
    check_nodes(contents, 0, contents.nodes.len(), first_node)?;
    if first_node == 0 { check_apex(contents) } else { Ok(()) }
}

fn check_apex(contents: &Contents) -> Result<(), CompiledError> {
    let Some(first) = contents.nodes().next() else {
        return Err(CompiledError::Zone(ZoneFault::NoSoa(contents.apex.clone())));
    };
    // The apex in the header and the name of the first node may differ only in letter case.
    if first.name() != contents.apex.view() {
        return Err(CompiledError::Malformed { node: 0, flaw: Flaw::NameOrder });
    }
    if contents.soa().is_none() {
        return Err(CompiledError::Zone(ZoneFault::NoSoa(contents.apex.clone())));
    }
    Ok(())
}

/// Checks `count` nodes from the index `start` on. `first_node` is the index in the zone of the
/// first node of `contents`; errors have the index in the zone.
fn check_nodes(
    contents: &Contents,
    start: usize,
    count: usize,
    first_node: usize,
) -> Result<(), CompiledError> {
    let malformed = |node, flaw| CompiledError::Malformed { node: node + first_node, flaw };
    let apex = contents.apex.view();
    let before =
        start.checked_sub(1).map(|index| name_of(contents, index).map_err(|flaw| malformed(index, flaw)));
    let mut previous = before.transpose()?;
    for index in start..contents.nodes.len().min(start + count) {
        let name = name_of(contents, index).map_err(|flaw| malformed(index, flaw))?;
        if !is_next_name(name, previous, apex) {
            return Err(malformed(index, Flaw::NameOrder));
        }
        previous = Some(name);
        check_rrsets(contents, index).map_err(|flaw| malformed(index, flaw))?;
        if let Some(fault) = node_checks::check_node(contents.node(index), contents.apex.view()) {
            return Err(CompiledError::Zone(fault));
        }
    }
    Ok(())
}

/// Whether `name` is in the zone and after `previous` in canonical order. `previous` must be in the
/// zone; it is `None` for the first name. There are fast paths, because most names have the same
/// parent as the previous name or are below it.
pub(super) fn is_next_name(name: NameRef<'_>, previous: Option<NameRef<'_>>, apex: NameRef<'_>) -> bool {
    let Some(previous) = previous else { return name.is_at_or_below(apex) };
    let (Some(parent), Some(first)) = (name.parent(), name.labels().next()) else { return false };
    if parent.wire() == previous.wire() {
        return true;
    }
    let is_sibling =
        previous.len() > apex.len() && previous.parent().is_some_and(|other| other.wire() == parent.wire());
    if let Some(before) = previous.labels().next().filter(|_| is_sibling) {
        let (before, first) = (before.iter(), first.iter());
        return before.map(u8::to_ascii_lowercase).lt(first.map(u8::to_ascii_lowercase));
    }
    previous.cmp_canonical(name).is_lt() && name.is_at_or_below(apex)
}

/// Returns the name of a node, or the fault in its octets.
fn name_of(contents: &Contents, index: usize) -> Result<NameRef<'_>, Flaw> {
    let start = contents.nodes[index].name as usize;
    let end = contents.nodes.get(index + 1).map_or(contents.names.len(), |next| next.name as usize);
    NameRef::from_wire(contents.names.get(start..end).ok_or(Flaw::Length)?).map_err(|_| Flaw::Name)
}

/// Checks that a node has RRsets in the order of their types, each followed by its signatures.
fn check_rrsets(contents: &Contents, index: usize) -> Result<(), Flaw> {
    let start = contents.nodes[index].first_rrset as usize;
    let end = contents.nodes.get(index + 1).map_or(contents.rrsets.len(), |next| next.first_rrset as usize);
    let rrsets = contents.rrsets.get(start..end).filter(|rrsets| !rrsets.is_empty()).ok_or(Flaw::Length)?;
    let mut previous = None;
    for (position, rrset) in rrsets.iter().enumerate() {
        let is_signature = rrset.rtype == Rtype::RRSIG;
        let sort_key = Some((rrset.covered, is_signature));
        if sort_key <= previous {
            return Err(Flaw::RrsetOrder);
        }
        previous = sort_key;
        // RFC 2181 §8: a TTL has 31 bits.
        let is_covered_valid = is_signature || rrset.rtype == rrset.covered;
        if !is_covered_valid || rrset.rtype.is_meta() || rrset.ttl > 0x7fff_ffff || rrset.count == 0 {
            return Err(Flaw::Rrset);
        }
        let next_rrset = contents.rrsets.get(start + position + 1);
        check_records(contents, rrset, next_rrset.map_or(contents.rdata.len() as u64, |next| next.start))?;
    }
    Ok(())
}

/// Checks that the records of an RRset are well formed and in canonical order, and end at the start
/// of the next RRset.
fn check_records(contents: &Contents, rrset: &RrsetEntry, end: u64) -> Result<(), Flaw> {
    let range = usize::try_from(rrset.start).ok().zip(usize::try_from(end).ok());
    let mut rest = range.and_then(|(start, end)| contents.rdata.get(start..end)).ok_or(Flaw::Length)?;
    let mut previous: Option<&[u8]> = None;
    for _ in 0..rrset.count {
        let (length, tail) = rest.split_first_chunk::<2>().ok_or(Flaw::Length)?;
        let length = usize::from(u16::from_be_bytes(*length));
        let (record, tail) = tail.split_at_checked(length).ok_or(Flaw::Length)?;
        rest = tail;
        if !rdata::is_well_formed(rrset.rtype, record) {
            return Err(Flaw::Rdata);
        }
        if rrset.rtype == Rtype::RRSIG && !record.starts_with(&rrset.covered.0.to_be_bytes()) {
            return Err(Flaw::Rrset);
        }
        if previous.is_some_and(|previous| !is_before(rrset.rtype, previous, record)) {
            return Err(Flaw::RecordOrder);
        }
        previous = Some(record);
    }
    if rest.is_empty() { Ok(()) } else { Err(Flaw::Length) }
}

/// Whether `a` precedes `b` in canonical order (RFC 4034 §6.3). Canonical form changes only
/// upper-case letters. So the octets are compared directly if there is no upper-case letter up to
/// the first difference.
fn is_before(rtype: Rtype, a: &[u8], b: &[u8]) -> bool {
    let common = a.iter().zip(b).take_while(|(x, y)| x == y).count();
    match (a.get(..=common), b.get(common)) {
        (Some(head), Some(octet)) if !head.iter().chain([octet]).any(u8::is_ascii_uppercase) => {
            head[common] < *octet
        }
        _ => rdata::cmp_canonical(rtype, a, b).is_lt(),
    }
}
