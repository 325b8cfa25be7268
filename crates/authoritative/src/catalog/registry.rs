//! The catalogs that a server consumes, and which of them has which zone (RFC 9432 §5).

use super::{Catalog, Change, Group};
use nonesuch_proto::Name;
use std::collections::{BTreeMap, BTreeSet};

/// The catalog that has a zone, and what it says of the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwningCatalog {
    /// The catalog.
    pub catalog: Name,
    /// As [`Member::label`](super::Member::label).
    pub label: Vec<u8>,
    /// As [`Member::groups`](super::Member::groups).
    pub groups: Vec<Group>,
}

/// All catalogs of a server, and the zones that it serves because of them.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    configured: BTreeSet<Name>,
    catalogs: BTreeMap<Name, Catalog>,
    owners: BTreeMap<Name, OwningCatalog>,
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
    pub fn owner(&self, zone: &Name) -> Option<&OwningCatalog> {
        self.owners.get(zone)
    }

    /// The zones that are served because of catalogs.
    pub fn members(&self) -> impl Iterator<Item = &Name> {
        self.owners.keys()
    }

    /// Whether a version of this catalog was taken.
    #[must_use]
    pub fn knows(&self, catalog: &Name) -> bool {
        self.catalogs.contains_key(catalog)
    }

    /// Takes all catalogs as they were when the server stopped, and which of them had which zone. That one has it again where it
    /// lists it still. A zone that moved from one to another, and that both still list, belongs to the one that it moved to.
    #[must_use]
    pub fn load(&mut self, catalogs: Vec<Catalog>, owners: &BTreeMap<Name, Name>) -> Vec<Change> {
        self.catalogs.extend(catalogs.iter().map(|catalog| (catalog.apex.clone(), catalog.clone())));
        let of_owners = owners.iter().filter(|(zone, _)| !self.configured.contains(*zone));
        let of_owners: Vec<(Name, Name)> =
            of_owners.map(|(zone, catalog)| (zone.clone(), catalog.clone())).collect();
        let mut changes: Vec<Change> =
            of_owners.iter().filter_map(|(zone, catalog)| self.apply_changes(zone, catalog)).collect();
        changes.extend(catalogs.into_iter().flat_map(|catalog| self.update(catalog)));
        changes
    }

    /// Takes the next version of a catalog; says what changes.
    #[must_use]
    pub fn update(&mut self, catalog: Catalog) -> Vec<Change> {
        let apex = catalog.apex.clone();
        let before = self.catalogs.insert(apex.clone(), catalog);
        let gone = before.map(|before| self.owned(&before)).unwrap_or_default();
        let gone = gone.into_iter().filter(|zone| !self.catalogs[&apex].members.contains_key(zone));
        let gone: Vec<Name> = gone.collect();
        let mut changes = Vec::new();
        for zone in gone {
            self.give_up(&zone, &mut changes);
        }
        let zones: Vec<Name> = self.catalogs[&apex].members.keys().cloned().collect();
        for zone in &zones {
            changes.extend(self.apply_changes(zone, &apex));
            self.follow_moves(zone, &mut changes);
        }
        changes
    }

    /// The zones of a version of a catalog that the catalog has.
    fn owned(&self, catalog: &Catalog) -> Vec<Name> {
        let is_owner = |zone: &&Name| self.owner(zone).is_some_and(|owner| owner.catalog == catalog.apex);
        catalog.members.keys().filter(is_owner).cloned().collect()
    }

    /// Gives a zone that its catalog lets go to the one that it names, where that lists it already: the versions of two catalogs
    /// come in any order.
    fn follow_moves(&mut self, zone: &Name, changes: &mut Vec<Change>) {
        // Catalogs may name each other in a circle.
        let mut seen = BTreeSet::new();
        while let Some(owner) = self.owner(zone).map(|owner| owner.catalog.clone())
            && let Some(to) = self.new_owner(zone, &owner).cloned()
            && self.new_owner(zone, &to) != Some(&owner)
            && seen.insert(owner)
            && !seen.contains(&to)
        {
            match self.apply_changes(zone, &to) {
                None | Some(Change::Clash { .. }) => return,
                Some(change) => changes.push(change),
            }
        }
    }

    /// The catalog that `from` lets a zone go to, where that is another one.
    fn new_owner(&self, zone: &Name, from: &Name) -> Option<&Name> {
        let member = self.catalogs.get(from)?.members.get(zone)?;
        member.new_owner.as_ref().filter(|to| *to != from)
    }

    /// Notes that the newest version of a catalog is broken: the last valid one stays, but lets no member zone go to another
    /// catalog, since its members must not be reconfigured in any way (RFC 9432 §5.1).
    pub fn mark_broken(&mut self, catalog: &Name) {
        if let Some(catalog) = self.catalogs.get_mut(catalog) {
            catalog.members.values_mut().for_each(|member| member.new_owner = None);
        }
    }

    /// Takes a catalog out; says what changes.
    #[must_use]
    pub fn forget(&mut self, catalog: &Name) -> Vec<Change> {
        let Some(last) = self.catalogs.remove(catalog) else { return Vec::new() };
        let had = self.owned(&last);
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
        let new: Vec<Name> = self.configured.difference(&before).cloned().collect();
        let mut changes: Vec<Change> = new.iter().filter_map(|zone| self.remove(zone)).collect();
        let free: Vec<Name> = before.difference(&self.configured).cloned().collect();
        for zone in free {
            changes.extend(self.adopt(&zone));
        }
        changes
    }

    /// Removes a zone from its catalog; another catalog that lists it has it then.
    fn give_up(&mut self, zone: &Name, changes: &mut Vec<Change>) {
        changes.extend(self.remove(zone));
        changes.extend(self.adopt(zone));
    }

    fn remove(&mut self, zone: &Name) -> Option<Change> {
        let (zone, owner) = self.owners.remove_entry(zone)?;
        Some(Change::Remove { zone, catalog: owner.catalog })
    }

    /// Gives a zone that nobody has to the first catalog that lists it.
    fn adopt(&mut self, zone: &Name) -> Option<Change> {
        let lists = |catalog: &&Catalog| catalog.members.contains_key(zone);
        let catalog = self.catalogs.values().find(lists)?.apex.clone();
        self.apply_changes(zone, &catalog)
    }

    /// Decides about a zone that `catalog` lists.
    fn apply_changes(&mut self, zone: &Name, catalog: &Name) -> Option<Change> {
        let member = self.catalogs.get(catalog)?.members.get(zone)?.clone();
        let clash = || Some(Change::Clash { zone: zone.clone(), catalog: catalog.clone() });
        if self.configured.contains(zone) {
            return clash();
        }
        let is_other = |owner: &OwningCatalog| owner.catalog != *catalog;
        let change = match self.owners.get(zone) {
            None => {
                let lists = |other: &Name| {
                    self.catalogs.get(other).is_some_and(|other| other.members.contains_key(zone))
                };
                let has_moved = |new: &Name| lists(new) && self.new_owner(zone, new) != Some(catalog);
                if self.new_owner(zone, catalog).is_some_and(has_moved) {
                    // It has moved already.
                    return None;
                }
                Change::Add { zone: zone.clone() }
            }
            // The move was made already, or each lets the zone go to the other.
            Some(owner) if is_other(owner) && member.new_owner.as_ref() == Some(&owner.catalog) => {
                return None;
            }
            // §4.3.1: only where the catalog that has the zone lets it go to this one.
            Some(owner) if is_other(owner) && self.new_owner(zone, &owner.catalog) != Some(catalog) => {
                return clash();
            }
            Some(owner) if owner.label != member.label => Change::Reset { zone: zone.clone() },
            Some(owner) if !is_other(owner) && owner.groups == member.groups => return None,
            Some(_) => Change::Update { zone: zone.clone() },
        };
        let owner = OwningCatalog { catalog: catalog.clone(), label: member.label, groups: member.groups };
        self.owners.insert(zone.clone(), owner);
        Some(change)
    }
}
