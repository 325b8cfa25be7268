//! What a zone has for a name, and what a client must get: RFC 1034 §4.3.2, RFC 4592, RFC 6672.

use super::name_below;
use super::world::{Rrset, World};
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, NameRef, Rtype};
use std::collections::BTreeMap;

/// Maximum number of aliases that a client can expect to be followed.
const ALIASES_MAX: usize = 8;

/// An RRset with its owner.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OwnedRrset {
    pub(super) owner: Name,
    pub(super) rtype: Rtype,
    pub(super) data: Rrset,
}

/// What a zone has for a name and type.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// The name is in this zone below, or is its apex.
    Delegation(usize),
    /// The RRset.
    Answer(OwnedRrset),
    /// A CNAME RRset, or a DNAME RRset and the CNAME RRset that follows from it, and the target.
    Alias(Vec<OwnedRrset>, Name),
    /// The name exists without this type.
    NoData,
    /// The name does not exist.
    NameError,
}

/// The response that a client must get.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Truth {
    pub(super) rcode: Rcode,
    pub(super) answer: Vec<OwnedRrset>,
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
            return Found::Delegation(child);
        }
        let names = &self.zones[zone].names;
        if let Some(found) = self.find_dname(zone, name) {
            return found;
        }
        if let Some(node) = names.get(name) {
            return find_in_node(node, name, rtype);
        }
        if self.has_names_below(zone, name) {
            return Found::NoData;
        }
        let mut above = std::iter::successors(name.view().parent(), |name| name.parent());
        let exists = |name: &NameRef<'_>| {
            let name = name.to_name();
            names.contains_key(&name) || self.has_names_below(zone, &name)
        };
        // The apex exists.
        let encloser = above.find(exists).map_or_else(Name::root, NameRef::to_name);
        match names.get(&name_below("*", &encloser)) {
            Some(node) => find_in_node(node, name, rtype),
            None => Found::NameError,
        }
    }

    fn find_dname(&self, zone: usize, name: &Name) -> Option<Found> {
        let above = std::iter::successors(name.view().parent(), |name| name.parent());
        let (owner, data) = above.map(NameRef::to_name).find_map(|owner| {
            let data = self.zones[zone].names.get(&owner)?.get(&Rtype::DNAME.0)?.clone();
            Some((owner, data))
        })?;
        let target = data.1.first()?;
        let prefix = &name.wire()[..name.wire().len() - owner.wire().len()];
        let new = NameRef::from_wire(&[prefix, target].concat()).ok()?.to_name();
        let cname = (data.0, vec![new.wire().to_vec()]);
        let dname = OwnedRrset { owner, rtype: Rtype::DNAME, data };
        Some(Found::Alias(
            vec![dname, OwnedRrset { owner: name.clone(), rtype: Rtype::CNAME, data: cname }],
            new,
        ))
    }

    /// Whether the zone, or a zone below it, has names below `name`.
    fn has_names_below(&self, zone: usize, name: &Name) -> bool {
        let own = self.zones[zone].names.keys();
        own.chain(self.zones.iter().map(|zone| &zone.apex)).any(|other| other.view().is_below(name.view()))
    }

    /// Returns the response that a client must get. Returns `None` if servers that lie or mislead are
    /// involved, or more aliases than a resolver must follow.
    pub(super) fn truth(&self, name: &Name, rtype: Rtype) -> Option<Truth> {
        let (mut name, mut answer) = (name.clone(), Vec::new());
        for _ in 0..ALIASES_MAX {
            let zone = self.zone_of(&name);
            if self.is_misleading(zone) {
                return None;
            }
            let rcode = match self.find(zone, &name, rtype) {
                Found::Alias(rrsets, _) if rtype == Rtype::CNAME => {
                    answer.extend(rrsets);
                    Rcode::NOERROR
                }
                Found::Alias(rrsets, target) => {
                    answer.extend(rrsets);
                    name = target;
                    continue;
                }
                Found::Answer(rrset) => {
                    answer.push(rrset);
                    Rcode::NOERROR
                }
                Found::NameError => Rcode::NXDOMAIN,
                Found::NoData | Found::Delegation(_) => Rcode::NOERROR,
            };
            return Some(Truth { rcode, answer });
        }
        None
    }
}

fn find_in_node(node: &BTreeMap<u16, Rrset>, name: &Name, rtype: Rtype) -> Found {
    let owned = |rtype: Rtype, data: &Rrset| OwnedRrset { owner: name.clone(), rtype, data: data.clone() };
    if let Some(data) = node.get(&rtype.0) {
        return Found::Answer(owned(rtype, data));
    }
    let Some(data) = node.get(&Rtype::CNAME.0) else { return Found::NoData };
    let target = data.1.first().and_then(|target| NameRef::from_wire(target).ok());
    target.map_or(Found::NoData, |target| Found::Alias(vec![owned(Rtype::CNAME, data)], target.to_name()))
}
