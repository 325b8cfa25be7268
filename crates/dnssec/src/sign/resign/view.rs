//! The new zone as the previous one with other data at the names that changes touch.

use crate::denial;
use crate::denial::names::is_insecure_delegation;
use crate::sign::SignError;
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_zone::change::{ChangeError, ChangeSet, SerialRule};
use nonesuch_zone::{Contents, FoundNode, NameStatus, Node, NodesBuilder, Rrset, Splice, ZoneRef};

/// Data of the names that changes touch, before and after; the apex is always among them.
pub(super) struct Edits<'z> {
    pub(super) previous: ZoneRef<'z>,
    /// Owners touched, in canonical order, each once, the apex first.
    pub(super) touched: Vec<NameRef<'z>>,
    /// Where they are in the previous zone, or would stand.
    pub(super) places: Vec<Result<FoundNode<'z>, usize>>,
    /// Their data after the changes, without what signing makes; those that have none are not there.
    pub(super) after: Contents,
}

impl<'z> Edits<'z> {
    /// Applies the changes to the names that they touch.
    pub(super) fn new(previous: ZoneRef<'z>, changes: &'z ChangeSet) -> Result<Self, ChangeError> {
        let apex = previous.apex().view();
        let mut touched: Vec<NameRef<'z>> = Vec::new();
        for change in changes.touched() {
            change.check_in_zone(apex)?;
            touched.push(change.name());
        }
        if touched.first().is_none_or(|first| *first != apex) {
            touched.insert(0, apex);
        }
        let mut before = NodesBuilder::default();
        let places: Vec<_> = touched.iter().map(|name| previous.find(*name)).collect();
        places.iter().flatten().for_each(|found| push_data(found.node, &mut before));
        let before = Contents::from_nodes(previous.apex(), before);
        // The serial of the signed zone is another one than that of the zone file.
        let applied = changes.apply(&before, SerialRule::Any)?;
        let mut after = NodesBuilder::default();
        applied.nodes().for_each(|node| push_data(node, &mut after));
        Ok(Self { previous, touched, places, after: Contents::from_nodes(applied.apex(), after) })
    }

    /// The data of the whole new zone; at names that are not touched with what signing made.
    pub(super) fn apply_to_all(&self) -> Result<Contents, SignError> {
        let mut parts = Splice::new(self.after.apex());
        let mut at = 0;
        for (&name, found) in self.touched.iter().zip(&self.places) {
            let place = found.map_or_else(|place| place, |found| found.place);
            parts.push_nodes(self.previous, at..place);
            if let Ok(node) = self.after.find(name) {
                parts.push_nodes(&self.after, node.index()..node.index() + 1);
            }
            at = place + usize::from(found.is_ok());
        }
        parts.push_nodes(self.previous, at..self.previous.node_count());
        Ok(parts.to_contents()?)
    }
}

fn push_data(node: Node<'_>, run: &mut NodesBuilder) {
    if !owns_data(node) {
        return;
    }
    run.begin_node(node.name());
    data(node).for_each(|rrset| run.push_rrset(rrset));
}

/// The RRsets of a node that are data, not made while signing.
pub(super) fn data(node: Node<'_>) -> impl Iterator<Item = Rrset<'_>> {
    node.rrsets().filter(|rrset| !rrset.rtype().is_signature_or_chain())
}

pub(super) fn owns_data(node: Node<'_>) -> bool {
    data(node).next().is_some()
}

/// The new zone.
pub(super) struct View<'z> {
    pub(super) old: ZoneRef<'z>,
    /// Owners touched, in canonical order.
    pub(super) touched: &'z [NameRef<'z>],
    /// Where they are in the previous zone, or would stand.
    pub(super) places: &'z [Result<FoundNode<'z>, usize>],
    after: &'z Contents,
    /// The apex of the new zone as signing prepares it.
    apex: &'z Contents,
}

impl<'z> View<'z> {
    pub(super) fn new(edits: &'z Edits<'z>, apex: &'z Contents) -> Self {
        Self {
            old: edits.previous,
            touched: &edits.touched,
            places: &edits.places,
            after: &edits.after,
            apex,
        }
    }

    /// The apex of the new zone.
    pub(super) fn apex(&self) -> Node<'z> {
        self.apex.node(0)
    }

    /// TTL of the chain's records (RFC 9077 §3).
    pub(super) fn chain_ttl(&self) -> u32 {
        self.apex.soa().map_or(0, |soa| soa.negative_ttl())
    }

    /// Where `name` is or would be among the owners touched.
    pub(super) fn touched_at(&self, name: NameRef<'_>) -> Result<usize, usize> {
        self.touched.binary_search_by(|touched| touched.cmp_canonical(name))
    }

    /// The node that has the data of `name` in the new zone.
    pub(super) fn data(&self, name: NameRef<'_>) -> Option<Node<'z>> {
        self.data_over(name, || self.old.find(name).ok().map(|found| found.node))
    }

    /// The same where the previous zone has the node that `old` finds.
    pub(super) fn data_over(
        &self,
        name: NameRef<'_>,
        old: impl FnOnce() -> Option<Node<'z>>,
    ) -> Option<Node<'z>> {
        if name == self.old.apex().view() {
            return Some(self.apex());
        }
        match self.touched_at(name) {
            Ok(_) => self.after.find(name).ok(),
            Err(_) => old().filter(|node| owns_data(*node)),
        }
    }

    /// Whether `name`, which is below the apex, is below a zone cut or DNAME.
    pub(super) fn cover(&self, name: NameRef<'_>) -> Option<NameStatus> {
        if self.apex().has(Rtype::DNAME) {
            return Some(NameStatus::BelowDname);
        }
        let least = self.old.apex().view().label_count() + 1;
        // The highest one counts: what is below it is not the zone's.
        (least..name.label_count()).find_map(|labels| covers(self.data(name.suffix(labels))?))
    }

    /// The standing of a name with the data of `node`.
    pub(super) fn standing(&self, name: NameRef<'_>, node: Node<'_>) -> NameStatus {
        if name == self.old.apex().view() {
            return NameStatus::Authoritative;
        }
        let own = if node.has(Rtype::NS) { NameStatus::Delegation } else { NameStatus::Authoritative };
        self.cover(name).unwrap_or(own)
    }

    /// Whether an opt-out chain needs the name (RFC 5155 §7.1).
    pub(super) fn is_required(&self, name: NameRef<'_>, node: Node<'_>) -> bool {
        let standing = self.standing(name, node);
        standing.is_in_chain() && !is_insecure_delegation(node, standing)
    }
}

/// What the names below a node that is not the apex are because of it.
pub(super) fn covers(node: Node<'_>) -> Option<NameStatus> {
    if node.has(Rtype::NS) {
        Some(NameStatus::BelowCut)
    } else if node.has(Rtype::DNAME) {
        Some(NameStatus::BelowDname)
    } else {
        None
    }
}

/// The types of a node that its chain record shows, without those that the mechanism adds; all of the apex are there.
pub(super) fn shown_types(node: Node<'_>, is_apex: bool, standing: NameStatus, types: &mut Vec<Rtype>) {
    types.clear();
    let rtypes = node.rrsets().map(Rrset::rtype).filter(|rtype| is_apex || !rtype.is_signature_or_chain());
    denial::push_shown_types(rtypes, standing, types);
}
