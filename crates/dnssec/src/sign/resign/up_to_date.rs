//! Checks whether signing would change anything: compares the plan of the zone, with unchanged
//! serial, to the previous zone.

use super::scan::verify_sample;
use crate::denial::is_generated_by_signing;
use crate::keys::KeySet;
use crate::sign::options::check;
use crate::sign::plan::{Item, Plan, PlannedRecords, PlannedRrset, VisitBuffers};
use crate::sign::reuse::ReusableSignatures;
use crate::sign::signers::Signers;
use crate::sign::stream::CHUNK;
use crate::sign::{SignError, SignOptions, apex};
use crate::verify::{Findings, zonemd};
use nonesuch_proto::{NameRef, Rtype, serial};
use nonesuch_zone::{Contents, Node, Rrset};
use rayon::prelude::*;

/// Octets of SOA RDATA after the names (RFC 1035 §3.3.13).
const SOA_NUMBERS: usize = 20;

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
    // The comparison of the data finds most changes at a small part of the cost of planning.
    if serial::is_before(old.serial, soa.serial) || !has_same_data(contents, previous) {
        return Ok(false);
    }
    let prepared = apex::prepare(contents, old.serial, keys, options, &[contents, previous])?;
    let plan = Plan::new(contents, &prepared.apex, options)?;
    let Some(reuse) = ReusableSignatures::new(keys, options) else { return Ok(false) };
    if plan.items().len() != previous.node_count() || !is_same_zone(&plan, &prepared.signers, &reuse) {
        return Ok(false);
    }
    // As for partial reuse, a sample of the signatures must verify if the zone remains unchanged.
    verify_sample(previous.into(), &prepared.signers, &reuse)?;
    Ok(has_right_digests(previous, old.serial))
}

/// Whether the ZONEMD records, if any, match the zone (RFC 8976 §4).
fn has_right_digests(zone: &Contents, serial: u32) -> bool {
    let mut findings = Findings::default();
    zonemd::check(zone, serial, &mut findings);
    findings.is_sound()
}

/// Whether both zones have the same data, without RRsets that the signer may generate.
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

/// The RRsets of a node that the signer never generates.
fn data<'n>(node: Node<'n>, apex: NameRef<'n>) -> impl Iterator<Item = Rrset<'n>> {
    let made = [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY, Rtype::ZONEMD, Rtype::NSEC5KEY];
    let is_apex = node.index() == 0;
    node.rrsets().filter(move |rrset| {
        let rtype = rrset.rtype();
        !(is_generated_by_signing(rtype, node.name(), apex) || is_apex && made.contains(&rtype))
    })
}

fn is_same_node(old: Node<'_>, new: Node<'_>, apex: NameRef<'_>) -> bool {
    let (mut olds, mut news) = (data(old, apex), data(new, apex));
    old.name().wire() == new.name().wire()
        && loop {
            match (olds.next(), news.next()) {
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
            let parts = |rdata: &[u8]| {
                let (names, numbers) = rdata.split_at_checked(rdata.len().checked_sub(SOA_NUMBERS)?)?;
                Some((names.to_vec(), numbers.get(4..)?.to_vec()))
            };
            parts(old) == parts(new)
        }
        Rtype::ZONEMD => old.get(4..6) == new.get(4..6),
        _ => old == new,
    }
}

fn is_same_zone(plan: &Plan<'_>, signers: &Signers<'_>, reuse: &ReusableSignatures<'_>) -> bool {
    plan.items().par_chunks(CHUNK).all(|items| {
        let (mut buffers, mut owner) = (VisitBuffers::default(), Vec::new());
        let Some(first) = items.first() else { return true };
        let mut cursor = reuse.cursor_from(plan.owner(*first, &mut owner));
        items.iter().all(|&item| {
            let old = cursor.seek(plan.owner(item, &mut owner));
            old.is_some_and(|old| is_same_item(plan, signers, reuse, item, old, &mut buffers))
        })
    })
}

fn is_same_item<'a>(
    plan: &Plan<'_>,
    signers: &Signers<'_>,
    reuse: &ReusableSignatures<'a>,
    item: Item,
    old: Node<'a>,
    buffers: &mut VisitBuffers,
) -> bool {
    let mut rest = old.rrsets();
    let mut same = true;
    plan.visit(item, buffers, |owner, piece| {
        if !same {
            return;
        }
        same = owner.wire() == old.name().wire() && rest.next().is_some_and(|old| is_same_piece(old, &piece));
        if same && piece.signed {
            let expected = signers.signers_at(owner, piece.rtype);
            same = rest.next().is_some_and(|found| {
                found.covered() == piece.rtype
                    && found.ttl() == piece.ttl
                    && found.count() == expected.len() + signers.copied(owner, piece.rtype).count()
                    && expected.iter().all(|key| reuse.reusable(found, owner, &piece, *key).is_some())
                    && signers
                        .copied(owner, piece.rtype)
                        .all(|copied| found.rdatas().any(|old| old == copied))
            });
        }
    });
    same && rest.next().is_none()
}

fn is_same_piece(old: Rrset<'_>, piece: &PlannedRrset<'_>) -> bool {
    let is_same = match piece.records {
        PlannedRecords::Stored(new) => is_same_rrset(old, new),
        PlannedRecords::Generated(new) => old.count() == 1 && old.rdatas().all(|rdata| rdata == new),
    };
    is_same && (old.rtype(), old.ttl()) == (piece.rtype, piece.ttl)
}
