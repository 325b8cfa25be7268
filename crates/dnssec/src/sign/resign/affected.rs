//! The names whose data or status may change, and the bit maps of their chain records in the new
//! zone.

use super::view::{View, collect_bitmap_types, owns_data, status_below};
use crate::denial::NameHash;
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
    /// Indexes of the nodes of the previous zone at these names, and of nodes without data below
    /// them.
    nodes: HashSet<u32>,
}

impl<'z> AffectedNames<'z> {
    /// The changed owners, and all names below an owner that becomes or ceases to be a zone cut or
    /// the owner of a DNAME record.
    pub(super) fn of(view: &View<'z>) -> Self {
        let mut names = view.changed_owners.to_vec();
        let mut nodes = HashSet::new();
        for (&name, &found) in view.changed_owners.iter().zip(view.old_positions) {
            nodes.extend(found.ok().map(|found| found.index as u32));
            let old = found.ok().map(|found| found.node);
            let is_apex = name == view.old.apex().view();
            let before = old.and_then(|node| status_below_node(node, is_apex));
            let after = view.data_or_previous(name, || old).and_then(|node| status_below_node(node, is_apex));
            if before == after {
                continue;
            }
            let first = found.map_or_else(|insert_at| insert_at, |found| found.index + 1);
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

/// Sorts names in canonical order and removes duplicates.
fn sort_names(names: &mut Vec<NameRef<'_>>) {
    names.sort_by(|a, b| a.cmp_canonical(*b));
    names.dedup_by(|a, b| a == b);
}

/// The new chain at one owner: a chain record, or its absence.
pub(super) struct ChainLink {
    /// Owner of the chain record: the name, or its NSEC3 hash below the apex.
    pub(super) owner: Name,
    /// Bit map of the record; `None` if the new chain has no record with this owner.
    pub(super) bitmap: Option<Vec<u8>>,
}

/// The new chain at the affected names, sorted by owner in canonical order. For NSEC3, also at
/// their ancestors. `None` if two of these names have the same hash, or if a new name has the hash
/// of a name of the previous chain.
pub(super) fn links(
    view: &View<'_>,
    affected: &AffectedNames<'_>,
    options: &SignOptions<'_>,
) -> Option<Vec<ChainLink>> {
    let mut bitmaps = BitmapBuilder { view, affected, mechanism: options.mechanism, types: Vec::new() };
    if options.mechanism.name_hash() == NameHash::Unhashed {
        let link =
            |name: &NameRef<'_>| ChainLink { owner: name.to_name(), bitmap: bitmaps.nsec_bitmap(*name) };
        return Some(affected.names.iter().map(link).collect());
    }
    let mut canonical = Vec::new();
    let mut hashed: Vec<(Hash, Option<Vec<u8>>)> = Vec::new();
    for name in names_and_ancestors(view, affected) {
        let hash = options.nsec3.hash(name, &mut canonical);
        hashed.push((hash, bitmaps.nsec3_bitmap(name)));
        if bitmaps.is_new_name(name) && has_nsec3(view, &hash) {
            return None;
        }
    }
    hashed.sort();
    if hashed.windows(2).any(|pair| pair[0].0 == pair[1].0) {
        return None;
    }
    let mut owner = Vec::new();
    let link = |(hash, bitmap)| {
        owner.clear();
        chain::push_owner(&hash, view.old.apex().view(), &mut owner);
        ChainLink { owner: NameRef::from_wire_unchecked(&owner).to_name(), bitmap }
    };
    Some(hashed.into_iter().map(link).collect())
}

/// Whether the previous zone has an NSEC3 record for `hash`.
fn has_nsec3(view: &View<'_>, hash: &Hash) -> bool {
    let mut owner = Vec::new();
    chain::push_owner(hash, view.old.apex().view(), &mut owner);
    view.old.find(NameRef::from_wire_unchecked(&owner)).is_ok_and(|found| found.node.has(Rtype::NSEC3))
}

/// The affected names and their ancestors below the apex, which may become or cease to be empty
/// non-terminals.
fn names_and_ancestors<'z>(view: &View<'z>, affected: &AffectedNames<'z>) -> Vec<NameRef<'z>> {
    let apex_len = view.old.apex().view().len();
    let mut names = affected.names.clone();
    for &name in &affected.names {
        let ancestors = std::iter::successors(name.parent(), |name| name.parent());
        names.extend(ancestors.take_while(|name| name.len() > apex_len));
    }
    sort_names(&mut names);
    names
}

/// Computes the bit maps of chain records of the new zone.
struct BitmapBuilder<'v, 'z> {
    view: &'v View<'z>,
    affected: &'v AffectedNames<'z>,
    mechanism: Mechanism,
    /// Buffer for the types of a bit map.
    types: Vec<Rtype>,
}

impl<'z> BitmapBuilder<'_, 'z> {
    /// The bit map of the NSEC record of `name`; `None` if it has no NSEC record.
    fn nsec_bitmap(&mut self, name: NameRef<'_>) -> Option<Vec<u8>> {
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

    /// The bit map of the NSEC3 record of `name`, empty for an empty non-terminal; `None` if it has
    /// no NSEC3 record.
    fn nsec3_bitmap(&mut self, name: NameRef<'_>) -> Option<Vec<u8>> {
        let is_apex = name == self.view.old.apex().view();
        let opt_out = self.mechanism.is_opt_out();
        let mut out = Vec::new();
        let Some(node) = self.view.data(name) else {
            let is_empty_non_terminal =
                self.view.occlusion_of(name).is_none() && self.has_chain_name_below(name, opt_out);
            return is_empty_non_terminal.then_some(out);
        };
        let status = self.view.status(name, node);
        if !status.is_in_chain() || opt_out && is_insecure_delegation(node, status) {
            return None;
        }
        collect_bitmap_types(node, is_apex, status, &mut self.types);
        chain::insert_rrsig(&mut self.types, status);
        bitmap::push(&self.types, &mut out);
        Some(out)
    }

    /// Whether a name below `name` in the new zone has data and is in the chain. With `opt_out`,
    /// only names that an opt-out chain requires count. No ancestor of `name` may be a zone cut or
    /// own a DNAME record. The first name with data below `name` is not occluded, so it is in a
    /// chain without opt-out.
    fn has_chain_name_below(&self, name: NameRef<'_>, opt_out: bool) -> bool {
        let view = self.view;
        let first = view.changed_owner_index(name).map_or_else(|insert_at| insert_at, |index| index + 1);
        let changed_owners = view.changed_owners[first..].iter().take_while(|below| below.is_below(name));
        let counts = |below: NameRef<'_>, node| !opt_out || view.is_required(below, node);
        if changed_owners.copied().any(|below| view.data(below).is_some_and(|node| counts(below, node))) {
            return true;
        }
        let first = view.old.find(name).map_or_else(|insert_at| insert_at, |found| found.index + 1);
        let below = view.old.nodes(first..view.old.node_count());
        below.take_while(|below| below.node.name().is_below(name)).any(|FoundNode { index: place, node }| {
            if !owns_data(node) || view.changed_owner_index(node.name()).is_ok() {
                return false;
            }
            if self.affected.nodes.contains(&(place as u32)) {
                return counts(node.name(), node);
            }
            // In the previous zone, a name is required if and only if it has signatures other than
            // that of its NSEC3 record.
            !opt_out
                || node.rrsets().any(|rrset| rrset.rtype() == Rtype::RRSIG && rrset.covered() != Rtype::NSEC3)
        })
    }

    /// Whether the previous chain cannot contain the name, because the previous zone has no names
    /// below it and no data at it.
    fn is_new_name(&self, name: NameRef<'_>) -> bool {
        let old = self.view.old;
        let (has_data, next) = match old.find(name) {
            Ok(found) => (owns_data(found.node), found.index + 1),
            Err(insert_at) => (false, insert_at),
        };
        let has_names_below = old.node(next).is_some_and(|node| node.name().is_below(name));
        !has_data && !has_names_below
    }
}
