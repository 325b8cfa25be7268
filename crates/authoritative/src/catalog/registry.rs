//! The catalogs that a server consumes, and which of them has which zone (RFC 9432 §5).

use super::{Catalog, Change, add, compare};
use nonesuch_proto::Name;
use std::collections::{BTreeMap, BTreeSet};

/// Who has a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Owner {
    catalog: Name,
    label: Vec<u8>,
    groups: Vec<Vec<u8>>,
}

/// All catalogs of a server, and the zones that it serves because of them.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    configured: BTreeSet<Name>,
    catalogs: BTreeMap<Name, Catalog>,
    owners: BTreeMap<Name, Owner>,
}

impl Registry {
    /// Without catalogs yet; `configured` zones are served whatever catalogs say. Catalog zones are among them.
    #[must_use]
    pub fn new(configured: impl IntoIterator<Item = Name>) -> Self {
        let configured = configured.into_iter().map(|zone| zone.view().to_canonical()).collect();
        Self { configured, ..Self::default() }
    }

    /// The catalog that has a zone.
    #[must_use]
    pub fn owner(&self, zone: &Name) -> Option<&Name> {
        self.owners.get(zone).map(|owner| &owner.catalog)
    }

    /// The zones that are served because of catalogs.
    pub fn members(&self) -> impl Iterator<Item = &Name> {
        self.owners.keys()
    }

    /// Takes all catalogs as they were when the server stopped. A zone that moved from one to another, and that both still
    /// list, belongs to the one that it moved to.
    #[must_use]
    pub fn load(&mut self, catalogs: Vec<Catalog>) -> Vec<Change> {
        self.catalogs.extend(catalogs.iter().map(|catalog| (catalog.apex.clone(), catalog.clone())));
        catalogs.into_iter().flat_map(|catalog| self.update(catalog)).collect()
    }

    /// Takes the next version of a catalog; says what changes.
    #[must_use]
    pub fn update(&mut self, catalog: Catalog) -> Vec<Change> {
        let apex = catalog.apex.clone();
        let gone: Vec<Name> = self
            .owners
            .iter()
            .filter(|(zone, owner)| owner.catalog == apex && !catalog.members.contains_key(*zone))
            .map(|(zone, _)| zone.clone())
            .collect();
        self.catalogs.insert(apex.clone(), catalog);
        let mut changes = Vec::new();
        for zone in gone {
            self.give_up(&zone, &mut changes);
        }
        let zones: Vec<Name> = self.catalogs[&apex].members.keys().cloned().collect();
        changes.extend(zones.iter().filter_map(|zone| self.settle(zone, &apex)));
        changes
    }

    /// Takes a catalog out; says what changes.
    #[must_use]
    pub fn forget(&mut self, catalog: &Name) -> Vec<Change> {
        self.catalogs.remove(catalog);
        let had: Vec<Name> = self
            .owners
            .iter()
            .filter(|(_, owner)| owner.catalog == *catalog)
            .map(|(zone, _)| zone.clone())
            .collect();
        let mut changes = Vec::new();
        for zone in had {
            self.give_up(&zone, &mut changes);
        }
        changes
    }

    /// Takes other configured zones; says what changes for members. The changes are to be made before the configured zones are
    /// added, and after those that are gone were removed.
    #[must_use]
    pub fn set_configured(&mut self, configured: impl IntoIterator<Item = Name>) -> Vec<Change> {
        let configured = configured.into_iter().map(|zone| zone.view().to_canonical()).collect();
        let before = std::mem::replace(&mut self.configured, configured);
        let mut changes = Vec::new();
        for zone in self.configured.difference(&before) {
            if self.owners.remove(zone).is_some() {
                changes.push(Change::Remove { zone: zone.clone() });
            }
        }
        let free: Vec<Name> = before.difference(&self.configured).cloned().collect();
        for zone in free {
            changes.extend(self.adopt(&zone));
        }
        changes
    }

    /// Removes a zone from its catalog; another catalog that lists it has it then.
    fn give_up(&mut self, zone: &Name, changes: &mut Vec<Change>) {
        self.owners.remove(zone);
        changes.push(Change::Remove { zone: zone.clone() });
        changes.extend(self.adopt(zone));
    }

    /// Gives a zone that nobody has to the first catalog that lists it.
    fn adopt(&mut self, zone: &Name) -> Option<Change> {
        let lists = |catalog: &&Catalog| catalog.members.contains_key(zone);
        let catalog = self.catalogs.values().find(lists)?.apex.clone();
        self.settle(zone, &catalog)
    }

    /// Decides about a zone that `catalog` lists.
    fn settle(&mut self, zone: &Name, catalog: &Name) -> Option<Change> {
        let member = self.catalogs.get(catalog)?.members.get(zone)?.clone();
        let clash = || Some(Change::Clash { zone: zone.clone(), catalog: catalog.clone() });
        if self.configured.contains(zone) {
            return clash();
        }
        let change = match self.owners.get(zone) {
            None => {
                let lists = |other: &Name| {
                    self.catalogs.get(other).is_some_and(|other| other.members.contains_key(zone))
                };
                if member.new_owner.as_ref().is_some_and(|new| new != catalog && lists(new)) {
                    // It has moved already.
                    return None;
                }
                add(zone, catalog, &member)
            }
            Some(owner) if owner.catalog == *catalog => {
                compare(zone, (&owner.label, &owner.groups), &member)?
            }
            // §4.4.1: only where the catalog that has the zone lets it go to this one.
            Some(owner) if self.lets_go(zone, &owner.catalog, catalog) => Change::Move {
                zone: zone.clone(),
                from: owner.catalog.clone(),
                to: catalog.clone(),
                groups: member.groups.clone(),
                is_reset: owner.label != member.label,
            },
            Some(_) => return clash(),
        };
        let owner = Owner { catalog: catalog.clone(), label: member.label, groups: member.groups };
        self.owners.insert(zone.clone(), owner);
        Some(change)
    }

    fn lets_go(&self, zone: &Name, from: &Name, to: &Name) -> bool {
        let member = self.catalogs.get(from).and_then(|catalog| catalog.members.get(zone));
        member.is_some_and(|member| member.new_owner.as_ref() == Some(to))
    }
}
