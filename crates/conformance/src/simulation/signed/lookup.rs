//! What a zone has for a name: RFC 1034 §4.3.2, RFC 4592, RFC 6672.

use super::chain::wildcard;
use super::world::World;
use super::zone::{RecordSet, Zone};
use nonesuch_proto::{Name, NameRef, Rtype};
use std::collections::BTreeMap;

/// A name, and where its records are in the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Place {
    pub(super) name: Name,
    /// The owner in the zone: the name itself, or a wildcard.
    pub(super) source: Name,
    /// The closest encloser of a name that a wildcard matches.
    pub(super) encloser: Option<Name>,
}

/// What a zone has for a name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The name is in this zone below, or is its apex.
    Cut(usize),
    /// The RRset exists.
    Rrset(Place),
    /// A CNAME RRset, and its target.
    Cname(Place, Name),
    /// The owner of a DNAME RRset, and the new name; `None` if this is too long.
    Dname(Name, Option<Name>),
    /// The name exists without this type.
    NoData(Place),
    /// The name does not exist: its closest encloser.
    NameError(Name),
}

impl World {
    /// Looks a name up in a zone.
    pub(super) fn find(&self, zone: usize, name: &Name, rtype: Rtype) -> Found {
        let is_cut = |child: &usize| {
            let cut = &self.zones[*child];
            cut.parent == Some(zone)
                && name.view().is_at_or_below(cut.apex.view())
                && !(rtype == Rtype::DS && *name == cut.apex)
        };
        if let Some(child) = (0..self.zones.len()).find(is_cut) {
            return Found::Cut(child);
        }
        self.zones[zone].find(name, rtype)
    }

    /// Returns the zone with the longest apex that is `name` or above it. The DS RRset of a zone is in
    /// its parent.
    pub(super) fn zone_of(&self, name: &Name, rtype: Rtype) -> usize {
        let enclosing = (0..self.zones.len()).filter(|zone| {
            let apex = &self.zones[*zone].apex;
            name.view().is_at_or_below(apex.view())
                && !(rtype == Rtype::DS && name == apex && !apex.view().is_root())
        });
        enclosing.max_by_key(|zone| self.zones[*zone].apex.view().label_count()).unwrap_or(0)
    }
}

impl Zone {
    fn find(&self, name: &Name, rtype: Rtype) -> Found {
        if let Some(found) = self.find_dname(name) {
            return found;
        }
        let place = |source: &Name, encloser| Place { name: name.clone(), source: source.clone(), encloser };
        if let Some(node) = self.records.get(name) {
            return find_in_node(node, place(name, None), rtype);
        }
        if self.exists(name) {
            return Found::NoData(place(name, None));
        }
        let encloser = self.encloser(name);
        let wildcard = wildcard(&encloser);
        match self.records.get(&wildcard) {
            Some(node) => find_in_node(node, place(&wildcard, Some(encloser)), rtype),
            None => Found::NameError(encloser),
        }
    }

    /// Returns the closest name above `name` that exists.
    fn encloser(&self, name: &Name) -> Name {
        let mut above = std::iter::successors(name.view().parent(), |name| name.parent());
        let exists = |name: &NameRef<'_>| self.exists(&name.to_name());
        above.find(exists).map_or_else(Name::root, NameRef::to_name)
    }

    /// Whether the zone has the name, or names below it.
    pub(super) fn exists(&self, name: &Name) -> bool {
        self.records.keys().any(|other| other.view().is_at_or_below(name.view()))
    }

    fn find_dname(&self, name: &Name) -> Option<Found> {
        let above = std::iter::successors(name.view().parent(), |name| name.parent());
        let (owner, set) = above.map(NameRef::to_name).find_map(|owner| {
            let set = self.set(&owner, Rtype::DNAME)?;
            Some((owner, set))
        })?;
        let prefix = &name.wire()[..name.wire().len() - owner.wire().len()];
        let new = [prefix, set.rdatas.first()?].concat();
        let new = NameRef::from_wire(&new).ok().map(NameRef::to_name);
        Some(Found::Dname(owner, new))
    }
}

fn find_in_node(node: &BTreeMap<Rtype, RecordSet>, place: Place, rtype: Rtype) -> Found {
    if node.contains_key(&rtype) {
        return Found::Rrset(place);
    }
    let cname = node.get(&Rtype::CNAME).and_then(|set| set.rdatas.first());
    match cname.and_then(|target| NameRef::from_wire(target).ok()) {
        Some(target) => Found::Cname(place, target.to_name()),
        None => Found::NoData(place),
    }
}
