//! Checks the NSEC chain of a signed zone (RFC 4035 §2.3).

use crate::denial::{insert_type, push_bitmap_types};
use crate::verify::{FaultReason, Findings, Zone, check_bitmap};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::Node;

/// Checks that each name of the zone has one NSEC record with the next name and the types of the
/// name.
pub(crate) fn check(zone: &Zone<'_>, findings: &mut Findings) {
    check_extra(zone, findings);
    let chain_nodes = zone.chain_nodes();
    let mut types = Vec::new();
    for (position, &index) in chain_nodes.iter().enumerate() {
        let node = zone.contents.node(index as usize);
        // The next name of the last name is the apex.
        let next = chain_nodes.get(position + 1).map_or(0, |next| *next as usize);
        check_node(zone, node, zone.contents.node(next).name(), &mut types, findings);
    }
}

fn check_node(
    zone: &Zone<'_>,
    node: Node<'_>,
    next: NameRef<'_>,
    types: &mut Vec<Rtype>,
    findings: &mut Findings,
) {
    let owner = node.name();
    let Some(rrset) = node.rrset(Rtype::NSEC) else {
        return findings.fault(owner, Some(Rtype::NSEC), FaultReason::ChainMissing);
    };
    findings.check_chain_ttl(owner, Rtype::NSEC, zone.chain_ttl, rrset.ttl());
    if rrset.count() > 1 {
        findings.fault(owner, Some(Rtype::NSEC), FaultReason::MultipleRecords);
    }
    types.clear();
    push_bitmap_types(zone.rtypes(node), zone.statuses[node.index()], types);
    insert_type(types, Rtype::RRSIG);
    insert_type(types, Rtype::NSEC);
    for rdata in rrset.rdatas() {
        let Ok((found, map)) = NameRef::split_from(rdata) else {
            findings.fault(owner, Some(Rtype::NSEC), FaultReason::MalformedRecord);
            continue;
        };
        if found != next {
            let reason = FaultReason::ChainBroken { expected: next.to_name(), found: found.to_name() };
            findings.fault(owner, Some(Rtype::NSEC), reason);
        }
        check_bitmap(node, Rtype::NSEC, types, map, findings);
    }
}

/// Reports NSEC records at names without other data; RFC 4035 §2.3 forbids them.
fn check_extra(zone: &Zone<'_>, findings: &mut Findings) {
    for (node, status) in zone.contents.nodes().zip(&zone.statuses) {
        if status.is_in_chain() && node.has(Rtype::NSEC) && !zone.owns_data(node) {
            findings.fault(node.name(), Some(Rtype::NSEC), FaultReason::ChainExtra);
        }
    }
}
