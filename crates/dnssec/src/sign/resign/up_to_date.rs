//! Checks whether signing would change the previous zone: compares it to the plan of the zone, with
//! unchanged serial.

use super::scan::verify_sample;
use crate::denial::is_generated_by_signing;
use crate::keys::KeySet;
use crate::sign::key_assignment::KeyAssignment;
use crate::sign::options::check;
use crate::sign::plan::{Plan, PlanItem, PlannedRecords, PlannedRrset, VisitBuffers};
use crate::sign::reuse::ReusableSignatures;
use crate::sign::stream::NAMES_PER_CHUNK;
use crate::sign::{SignError, SignOptions, apex};
use crate::verify::{Findings, zonemd};
use nonesuch_proto::{NameRef, Rtype, serial};
use nonesuch_zone::{Contents, Node, Rrset};
use rayon::prelude::*;

/// Octets of SOA RDATA after the names (RFC 1035 §3.3.13): five numbers, of which the serial is the
/// first.
const SOA_NUMBERS_OCTETS: usize = 20;

/// Whether the previous zone of `options` equals the result of signing `contents`, except for the
/// serial, with all of its signatures reused. `false` without a previous zone, or if the serial of
/// `contents` is later than that of the previous zone.
///
/// # Errors
/// As [`sign`](crate::sign()).
pub fn is_current(contents: &Contents, keys: &KeySet, options: &SignOptions<'_>) -> Result<bool, SignError> {
    check(contents, keys, options)?;
    let Some(previous) = options.previous.map(|previous| previous.contents) else { return Ok(false) };
    let (Some(soa), Some(old)) = (contents.soa(), previous.soa()) else { return Ok(false) };
    // The comparison of the data finds most changes, and takes much less time than planning.
    if serial::is_before(old.serial, soa.serial) || !has_same_data(contents, previous) {
        return Ok(false);
    }
    let prepared = apex::prepare(contents, old.serial, keys, options, &[contents, previous])?;
    let plan = Plan::new(contents, &prepared.apex, options)?;
    let Some(reuse) = ReusableSignatures::new(keys, options) else { return Ok(false) };
    if plan.items().len() != previous.node_count()
        || !matches_previous_zone(&plan, &prepared.assignment, &reuse)
    {
        return Ok(false);
    }
    // As in every reuse of signatures, a sample of them must verify.
    verify_sample(previous.into(), &prepared.assignment, &reuse)?;
    Ok(has_valid_zonemd(previous, old.serial))
}

/// Whether the digests of the ZONEMD records match the zone (RFC 8976 §4); `true` without such
/// records.
fn has_valid_zonemd(zone: &Contents, serial: u32) -> bool {
    let mut findings = Findings::default();
    zonemd::check(zone, serial, &mut findings);
    findings.has_no_faults()
}

/// Whether both zones have the same RRsets, apart from those that the signer may generate.
fn has_same_data(contents: &Contents, previous: &Contents) -> bool {
    let apex = contents.apex().view();
    let mut old = previous.nodes().filter(|node| data(*node, apex).next().is_some());
    let mut new = contents.nodes().filter(|node| data(*node, apex).next().is_some());
    loop {
        match (old.next(), new.next()) {
            (None, None) => return true,
            (Some(old), Some(new)) if is_same_node(old, new, apex) => {}
            _ => return false,
        }
    }
}

/// The RRsets of a node that the signer never generates or changes.
fn data<'n>(node: Node<'n>, apex: NameRef<'n>) -> impl Iterator<Item = Rrset<'n>> {
    let generated_at_apex = [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY, Rtype::ZONEMD, Rtype::NSEC5KEY];
    let is_apex = node.index() == 0;
    node.rrsets().filter(move |rrset| {
        let rtype = rrset.rtype();
        !(is_generated_by_signing(rtype, node.name(), apex) || is_apex && generated_at_apex.contains(&rtype))
    })
}

fn is_same_node(old: Node<'_>, new: Node<'_>, apex: NameRef<'_>) -> bool {
    let (mut old_rrsets, mut new_rrsets) = (data(old, apex), data(new, apex));
    old.name().wire() == new.name().wire()
        && loop {
            match (old_rrsets.next(), new_rrsets.next()) {
                (None, None) => break true,
                (Some(a), Some(b)) if a.rtype() == b.rtype() && is_same_rrset(a, b) => {}
                _ => break false,
            }
        }
}

fn is_same_rrset(old: Rrset<'_>, new: Rrset<'_>) -> bool {
    old.ttl() == new.ttl()
        && old.count() == new.count()
        && old.rdatas().zip(new.rdatas()).all(|(a, b)| is_same_rdata(old.rtype(), a, b))
}

/// Whether the RDATA are equal, except for the serial of SOA records. For ZONEMD records, compares
/// only scheme and hash algorithm (RFC 8976 §2.2), because the digest follows from the rest of the
/// zone.
fn is_same_rdata(rtype: Rtype, old: &[u8], new: &[u8]) -> bool {
    match rtype {
        Rtype::SOA => {
            let without_serial = |rdata: &[u8]| {
                let (names, numbers) =
                    rdata.split_at_checked(rdata.len().checked_sub(SOA_NUMBERS_OCTETS)?)?;
                Some((names.to_vec(), numbers.get(4..)?.to_vec()))
            };
            without_serial(old) == without_serial(new)
        }
        Rtype::ZONEMD => old.get(4..6) == new.get(4..6),
        _ => old == new,
    }
}

/// Whether the previous zone, of `reuse`, has the records of the plan with reusable signatures.
fn matches_previous_zone(
    plan: &Plan<'_>,
    assignment: &KeyAssignment<'_>,
    reuse: &ReusableSignatures<'_>,
) -> bool {
    plan.items().par_chunks(NAMES_PER_CHUNK).all(|items| {
        let (mut buffers, mut owner) = (VisitBuffers::default(), Vec::new());
        let Some(first) = items.first() else { return true };
        let mut cursor = reuse.cursor_from(plan.owner(*first, &mut owner));
        items.iter().all(|&item| {
            let old = cursor.seek(plan.owner(item, &mut owner));
            old.is_some_and(|old| matches_previous(plan, assignment, reuse, item, old, &mut buffers))
        })
    })
}

/// Whether the node `old` of the previous zone has the records of `item` with reusable signatures.
fn matches_previous<'a>(
    plan: &Plan<'_>,
    assignment: &KeyAssignment<'_>,
    reuse: &ReusableSignatures<'a>,
    item: PlanItem,
    old: Node<'a>,
    buffers: &mut VisitBuffers,
) -> bool {
    let mut old_rrsets = old.rrsets();
    let mut is_same = true;
    plan.visit(item, buffers, |owner, planned| {
        if !is_same {
            return;
        }
        is_same = owner.wire() == old.name().wire()
            && old_rrsets.next().is_some_and(|old| matches_planned(old, &planned));
        if is_same && planned.signed {
            let expected = assignment.signers_at(owner, planned.rtype);
            is_same = old_rrsets.next().is_some_and(|found| {
                found.covered() == planned.rtype
                    && found.ttl() == planned.ttl
                    && found.count()
                        == expected.len() + assignment.copied_signatures(owner, planned.rtype).count()
                    && expected.iter().all(|key| reuse.find_reusable(found, owner, &planned, *key).is_some())
                    && assignment
                        .copied_signatures(owner, planned.rtype)
                        .all(|copied| found.rdatas().any(|old| old == copied))
            });
        }
    });
    is_same && old_rrsets.next().is_none()
}

/// Whether the RRset `old` equals the planned one, except for the serial and the digest of the
/// zone.
fn matches_planned(old: Rrset<'_>, planned: &PlannedRrset<'_>) -> bool {
    let is_same = match planned.records {
        PlannedRecords::Stored(new) => is_same_rrset(old, new),
        PlannedRecords::Generated(new) => old.count() == 1 && old.rdatas().all(|rdata| rdata == new),
    };
    is_same && (old.rtype(), old.ttl()) == (planned.rtype, planned.ttl)
}
