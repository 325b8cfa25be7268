//! The names with changed data or status, and their entries in the chain of the new zone.

use super::view::{View, collect_bitmap_types, owns_data, status_below};
use crate::denial::Mapping;
use crate::denial::names::is_insecure_delegation;
use crate::denial::nsec3::Hash;
use crate::denial::nsec3::chain;
use crate::denial::{Mechanism, nsec};
use crate::sign::SignOptions;
use nonesuch_proto::{Name, NameRef, Rtype, bitmap};
use nonesuch_zone::{FoundNode, NameStatus, Node};
use std::collections::HashSet;

/// Names with data or status that may differ from the previous zone.
pub(super) struct AffectedNames<'z> {
    /// Sorted in canonical order, without duplicates.
    pub(super) names: Vec<NameRef<'z>>,
    /// Indexes of those names that are nodes of the previous zone.
    nodes: HashSet<u32>,
}

impl<'z> AffectedNames<'z> {
    /// The changed names, and all names below a name that becomes or ceases to be a zone cut or the
    /// owner of a DNAME record.
    pub(super) fn of(view: &View<'z>) -> Self {
        let mut names = view.touched.to_vec();
        let mut nodes = HashSet::new();
        for (&name, &found) in view.touched.iter().zip(view.places) {
            nodes.extend(found.ok().map(|found| found.index as u32));
            let old = found.ok().map(|found| found.node);
            let is_apex = name == view.old.apex().view();
            let before = old.and_then(|node| status_below_node(node, is_apex));
            let after = view.data_over(name, || old).and_then(|node| status_below_node(node, is_apex));
            if before == after {
                continue;
            }
            let first = found.map_or_else(|place| place, |found| found.index + 1);
            let below = view.old.nodes(first..view.old.node_count());
            for FoundNode { index: place, node } in below.take_while(|below| below.node.name().is_below(name))
            {
                nodes.insert(place as u32);
                if owns_data(node) {
                    names.push(node.name());
                }
            }
        }
        sort_names(&mut names);
        Self { names, nodes }
    }
}

/// The status of the names below a node, if the node occludes them. The NS RRset of the apex is not
/// a zone cut.
fn status_below_node(node: Node<'_>, is_apex: bool) -> Option<NameStatus> {
    if is_apex { node.has(Rtype::DNAME).then_some(NameStatus::BelowDname) } else { status_below(node) }
}

fn sort_names(names: &mut Vec<NameRef<'_>>) {
    names.sort_by(|a, b| a.cmp_canonical(*b));
    names.dedup_by(|a, b| a == b);
}

/// The state of the new chain at one owner.
pub(super) struct ChainLink {
    /// Owner of the chain record in the signed zone.
    pub(super) owner: Name,
    /// Bit map of the record; `None` if the new chain has no record here.
    pub(super) types: Option<Vec<u8>>,
}

/// The state of the new chain for the changed names, sorted by owner in canonical order. `None` if
/// two of these names have the same hash, or a new name has the hash of another name.
pub(super) fn links(
    view: &View<'_>,
    changed: &AffectedNames<'_>,
    options: &SignOptions<'_>,
) -> Option<Vec<ChainLink>> {
    let mut shown = Shown { view, changed, mechanism: options.mechanism, types: Vec::new() };
    if options.mechanism.mapping() == Mapping::Itself {
        let link = |name: &NameRef<'_>| ChainLink { owner: name.to_name(), types: shown.by_nsec(*name) };
        return Some(changed.names.iter().map(link).collect());
    }
    let mut canonical = Vec::new();
    let mut hashed: Vec<(Hash, Option<Vec<u8>>)> = Vec::new();
    for name in with_ancestors(view, changed) {
        let hash = options.nsec3.hash(name, &mut canonical);
        hashed.push((hash, shown.by_nsec3(name)));
        if shown.is_fresh(name) && has_nsec3(view, &hash) {
            return None;
        }
    }
    hashed.sort();
    if hashed.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let mut owner = Vec::new();
    let link = |(hash, types)| {
        owner.clear();
        chain::push_owner(&hash, view.old.apex().view(), &mut owner);
        ChainLink { owner: NameRef::from_checked(&owner).to_name(), types }
    };
    Some(hashed.into_iter().map(link).collect())
}

/// Whether the previous zone has an NSEC3 record for `hash`.
fn has_nsec3(view: &View<'_>, hash: &Hash) -> bool {
    let mut owner = Vec::new();
    chain::push_owner(hash, view.old.apex().view(), &mut owner);
    view.old.find(NameRef::from_checked(&owner)).is_ok_and(|found| found.node.has(Rtype::NSEC3))
}

/// The changed names and their ancestors, which may become or cease to be empty non-terminals.
fn with_ancestors<'z>(view: &View<'z>, changed: &AffectedNames<'z>) -> Vec<NameRef<'z>> {
    let apex = view.old.apex().view().len();
    let mut names = changed.names.clone();
    for &name in &changed.names {
        let above = std::iter::successors(name.parent(), |name| name.parent());
        names.extend(above.take_while(|name| name.len() > apex));
    }
    sort_names(&mut names);
    names
}

/// Computes the bit maps of the chain for names of the new zone.
struct Shown<'v, 'z> {
    view: &'v View<'z>,
    changed: &'v AffectedNames<'z>,
    mechanism: Mechanism,
    types: Vec<Rtype>,
}

impl<'z> Shown<'_, 'z> {
    fn by_nsec(&mut self, name: NameRef<'_>) -> Option<Vec<u8>> {
        let node = self.view.data(name)?;
        let status = self.view.status(name, node);
        if !status.is_in_chain() {
            return None;
        }
        collect_bitmap_types(node, name == self.view.old.apex().view(), status, &mut self.types);
        let mut rdata = Vec::new();
        nsec::chain::push_rdata(NameRef::ROOT, &mut self.types, &mut rdata);
        Some(rdata.split_off(NameRef::ROOT.len()))
    }

    fn by_nsec3(&mut self, name: NameRef<'_>) -> Option<Vec<u8>> {
        let is_apex = name == self.view.old.apex().view();
        let opt_out = self.mechanism.is_opt_out();
        let mut out = Vec::new();
        let Some(node) = self.view.data(name) else {
            let is_empty_non_terminal =
                self.view.occlusion_of(name).is_none() && self.owns_below(name, opt_out);
            return is_empty_non_terminal.then_some(out);
        };
        let status = self.view.status(name, node);
        if !status.is_in_chain() || opt_out && is_insecure_delegation(node, status) {
            return None;
        }
        collect_bitmap_types(node, is_apex, status, &mut self.types);
        chain::complete_types(&mut self.types, status);
        bitmap::push(&self.types, &mut out);
        Some(out)
    }

    /// Whether a name below `name` is in the chain; no ancestor of `name` may be a zone cut or own
    /// a DNAME record. The first name with data is always part of the zone; an opt-out chain needs
    /// a name that it requires.
    fn owns_below(&self, name: NameRef<'_>, opt_out: bool) -> bool {
        let view = self.view;
        let first = view.touched_at(name).map_or_else(|place| place, |place| place + 1);
        let touched = view.touched[first..].iter().take_while(|below| below.is_below(name));
        let counts = |below: NameRef<'_>, node| !opt_out || view.is_required(below, node);
        if touched.copied().any(|below| view.data(below).is_some_and(|node| counts(below, node))) {
            return true;
        }
        let first = view.old.find(name).map_or_else(|place| place, |found| found.index + 1);
        let below = view.old.nodes(first..view.old.node_count());
        below.take_while(|below| below.node.name().is_below(name)).any(|FoundNode { index: place, node }| {
            if !owns_data(node) || view.touched_at(node.name()).is_ok() {
                return false;
            }
            if self.changed.nodes.contains(&(place as u32)) {
                return counts(node.name(), node);
            }
            // In the previous zone, a name is required if and only if it has signatures other than
            // that of its NSEC3 record.
            !opt_out
                || node.rrsets().any(|rrset| rrset.rtype() == Rtype::RRSIG && rrset.covered() != Rtype::NSEC3)
        })
    }

    /// Whether the previous chain cannot have contained the name: the zone had no data at or below
    /// it.
    fn is_fresh(&self, name: NameRef<'_>) -> bool {
        let old = self.view.old;
        let (here, next) = match old.find(name) {
            Ok(found) => (owns_data(found.node), found.index + 1),
            Err(place) => (false, place),
        };
        let is_above = old.node(next).is_some_and(|node| node.name().is_below(name));
        !here && !is_above
    }
}
