//! Data and functions that the checks of signatures and of the chain share.

use super::report::{FaultReason, Findings};
use super::watch::{ProgressCounter, ProgressFn};
use crate::denial::nsec5;
use nonesuch_proto::{Rtype, bitmap};
use nonesuch_zone::{Contents, NameStatus, Node, Rrset, name_statuses};

/// A zone with the data that the checks need.
pub(crate) struct Zone<'z> {
    pub(crate) contents: &'z Contents,
    pub(crate) statuses: Vec<NameStatus>,
    /// TTL of chain records according to RFC 9077, in seconds.
    pub(crate) chain_ttl: u32,
    pub(super) progress: ProgressCounter<'z>,
}

impl<'z> Zone<'z> {
    pub(super) fn new(contents: &'z Contents, chain_ttl: u32, progress: Option<ProgressFn<'z>>) -> Self {
        Self {
            contents,
            statuses: name_statuses(contents),
            chain_ttl,
            progress: ProgressCounter::new(contents, progress),
        }
    }

    /// Returns the indices of the nodes that must be in the chain of the zone: they are not
    /// occluded, and have records other than signatures and chain records.
    pub(crate) fn chain_nodes(&self) -> Vec<u32> {
        let nodes = self.contents.nodes().zip(&self.statuses);
        let chain_nodes = nodes.filter(|(node, status)| status.is_in_chain() && self.owns_data(*node));
        chain_nodes.map(|(node, _)| node.index() as u32).collect()
    }

    pub(crate) fn name_status(&self, node: Node<'z>) -> NameStatus {
        self.statuses[node.index()]
    }

    /// Whether a node has records other than signatures and records of a denial chain.
    pub(crate) fn owns_data(&self, node: Node<'_>) -> bool {
        self.rtypes(node).any(|rtype| !matches!(rtype, Rtype::RRSIG | Rtype::NSEC | Rtype::NSEC3))
    }

    /// Returns the types of a node, except NSEC5 records that belong to a chain.
    pub(crate) fn rtypes<'n>(&self, node: Node<'n>) -> impl Iterator<Item = Rtype> + use<'n, '_, 'z> {
        let apex = self.contents.apex().view();
        let is_chain =
            move |rtype: &Rtype| *rtype == Rtype::NSEC5 && nsec5::is_chain_owner(node.name(), apex);
        node.rrsets().map(Rrset::rtype).filter(move |rtype| !is_chain(rtype))
    }
}

/// Compares the bit map of the chain record at `node` with the types that it should have.
/// `expected` is in ascending order.
pub(crate) fn check_bitmap(
    node: Node<'_>,
    rtype: Rtype,
    expected: &[Rtype],
    map: &[u8],
    findings: &mut Findings,
) {
    if !bitmap::is_valid(map) {
        findings.fault(node.name(), Some(rtype), FaultReason::MalformedRecord);
        return;
    }
    let has = |found: Rtype| bitmap::contains(map, found);
    for &missing in expected.iter().filter(|expected| !has(**expected)) {
        findings.fault(node.name(), Some(rtype), FaultReason::BitmapMissing(missing));
    }
    for extra in bitmap::types(map).filter(|found| expected.binary_search(found).is_err()) {
        findings.fault(node.name(), Some(rtype), FaultReason::BitmapExtra(extra));
    }
}
