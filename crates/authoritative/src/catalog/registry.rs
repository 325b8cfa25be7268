//! The catalogs that a server consumes, and the zones that each of them owns (RFC 9432 §5).

use super::{Catalog, Change, Group};
use nonesuch_proto::Name;
use std::collections::{BTreeMap, BTreeSet};

/// The catalog that owns a zone, and its entry for the zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OwningCatalog {
    /// The apex of the catalog.
    pub catalog: Name,
    /// The unique label, as in [`Member::label`](super::Member::label).
    pub label: Vec<u8>,
    /// The groups, as in [`Member::groups`](super::Member::groups).
    pub groups: Vec<Group>,
}

/// All catalogs of a server, and the zones that it serves because of them.
#[derive(Clone, Debug, Default)]
pub struct Registry {
    /// Zones that are served independently of catalogs.
    configured: BTreeSet<Name>,
    /// The last valid version of each catalog, by apex.
    catalogs: BTreeMap<Name, Catalog>,
    /// The owner of each member zone.
    owners: BTreeMap<Name, OwningCatalog>,
}

impl Registry {
    /// Creates a registry without catalogs. The server serves the `configured` zones independently
    /// of catalogs. They include the catalog zones.
    #[must_use]
    pub fn new(configured: impl IntoIterator<Item = Name>) -> Self {
        let configured = configured.into_iter().map(|zone| zone.view().to_canonical()).collect();
        Self { configured, ..Self::default() }
    }

    /// Returns the catalog that owns a zone, with its entry for the zone. Returns `None` if no
    /// catalog owns it.
    #[must_use]
    pub fn owner(&self, zone: &Name) -> Option<&OwningCatalog> {
        self.owners.get(zone)
    }

    /// Returns the zones that the server serves because of catalogs.
    pub fn members(&self) -> impl Iterator<Item = &Name> {
        self.owners.keys()
    }

    /// Returns whether the registry has a version of this catalog.
    #[must_use]
    pub fn contains(&self, catalog: &Name) -> bool {
        self.catalogs.contains_key(catalog)
    }

    /// Restores all catalogs and the `owners` of zones from the time when the server stopped, a map
    /// from zones to catalogs. A catalog owns a zone again if it still lists it. If a zone moved
    /// and both catalogs still list it, the catalog that it moved to owns it. Returns the changes.
    #[must_use]
    pub fn restore(&mut self, catalogs: Vec<Catalog>, owners: &BTreeMap<Name, Name>) -> Vec<Change> {
        self.catalogs.extend(catalogs.iter().map(|catalog| (catalog.apex.clone(), catalog.clone())));
        let owned = owners.iter().filter(|(zone, _)| !self.configured.contains(*zone));
        let owned: Vec<(Name, Name)> = owned.map(|(zone, catalog)| (zone.clone(), catalog.clone())).collect();
        let mut changes: Vec<Change> =
            owned.iter().filter_map(|(zone, catalog)| self.apply_listing(zone, catalog)).collect();
        changes.extend(catalogs.into_iter().flat_map(|catalog| self.update(catalog)));
        changes
    }

    /// Processes the next version of a catalog. Returns the changes.
    #[must_use]
    pub fn update(&mut self, catalog: Catalog) -> Vec<Change> {
        let apex = catalog.apex.clone();
        let before = self.catalogs.insert(apex.clone(), catalog);
        let unlisted = before.map(|before| self.owned_zones(&before)).unwrap_or_default();
        let unlisted = unlisted.into_iter().filter(|zone| !self.catalogs[&apex].members.contains_key(zone));
        let unlisted: Vec<Name> = unlisted.collect();
        let mut changes = Vec::new();
        for zone in unlisted {
            self.reassign(&zone, &mut changes);
        }
        let zones: Vec<Name> = self.catalogs[&apex].members.keys().cloned().collect();
        for zone in &zones {
            changes.extend(self.apply_listing(zone, &apex));
            self.follow_moves(zone, &mut changes);
        }
        changes
    }

    /// Returns the zones that `catalog` lists and owns.
    fn owned_zones(&self, catalog: &Catalog) -> Vec<Name> {
        let is_owner = |zone: &&Name| self.owner(zone).is_some_and(|owner| owner.catalog == catalog.apex);
        catalog.members.keys().filter(is_owner).cloned().collect()
    }

    /// Moves a zone to the catalog that the `coo` property of its owner names, if that catalog
    /// already lists the zone. This is necessary because the versions of two catalogs can arrive in
    /// any order.
    fn follow_moves(&mut self, zone: &Name, changes: &mut Vec<Change>) {
        // The `coo` properties of catalogs can form a cycle.
        let mut seen = BTreeSet::new();
        while let Some(owner) = self.owner(zone).map(|owner| owner.catalog.clone())
            && let Some(to) = self.new_owner(zone, &owner).cloned()
            && self.new_owner(zone, &to) != Some(&owner)
            && seen.insert(owner)
            && !seen.contains(&to)
        {
            match self.apply_listing(zone, &to) {
                None | Some(Change::Clash { .. }) => return,
                Some(change) => changes.push(change),
            }
        }
    }

    /// Returns the catalog that the `coo` property of a zone in the catalog `from` names, if it is
    /// not `from` itself.
    fn new_owner(&self, zone: &Name, from: &Name) -> Option<&Name> {
        let member = self.catalogs.get(from)?.members.get(zone)?;
        member.new_owner.as_ref().filter(|to| *to != from)
    }

    /// Records that the newest version of a catalog is broken. The last valid version remains, but
    /// without `coo` properties, because the members must not be reconfigured in any way (RFC 9432
    /// §5.1).
    pub fn mark_broken(&mut self, catalog: &Name) {
        if let Some(catalog) = self.catalogs.get_mut(catalog) {
            catalog.members.values_mut().for_each(|member| member.new_owner = None);
        }
    }

    /// Removes a catalog. Returns the changes.
    #[must_use]
    pub fn remove_catalog(&mut self, catalog: &Name) -> Vec<Change> {
        let Some(last) = self.catalogs.remove(catalog) else { return Vec::new() };
        let owned = self.owned_zones(&last);
        let mut changes = Vec::new();
        for zone in owned {
            self.reassign(&zone, &mut changes);
        }
        changes
    }

    /// Replaces the configured zones. Returns the changes for member zones. The caller applies them
    /// after it removes zones that are no longer configured, and before it adds new configured
    /// zones.
    #[must_use]
    pub fn set_configured(&mut self, configured: impl IntoIterator<Item = Name>) -> Vec<Change> {
        let configured = configured.into_iter().map(|zone| zone.view().to_canonical()).collect();
        let before = std::mem::replace(&mut self.configured, configured);
        let new: Vec<Name> = self.configured.difference(&before).cloned().collect();
        let mut changes: Vec<Change> = new.iter().filter_map(|zone| self.remove_owner(zone)).collect();
        let free: Vec<Name> = before.difference(&self.configured).cloned().collect();
        for zone in free {
            changes.extend(self.assign_owner(&zone));
        }
        changes
    }

    /// Removes a zone from its catalog. If another catalog lists the zone, it becomes the owner.
    fn reassign(&mut self, zone: &Name, changes: &mut Vec<Change>) {
        changes.extend(self.remove_owner(zone));
        changes.extend(self.assign_owner(zone));
    }

    /// Removes the owner of a zone. Returns the change, if the zone had an owner.
    fn remove_owner(&mut self, zone: &Name) -> Option<Change> {
        let (zone, owner) = self.owners.remove_entry(zone)?;
        Some(Change::Remove { zone, catalog: owner.catalog })
    }

    /// Assigns a zone without an owner to the first catalog that lists it.
    fn assign_owner(&mut self, zone: &Name) -> Option<Change> {
        let lists = |catalog: &&Catalog| catalog.members.contains_key(zone);
        let catalog = self.catalogs.values().find(lists)?.apex.clone();
        self.apply_listing(zone, &catalog)
    }

    /// Determines the change for a zone that `catalog` lists, and updates its owner.
    fn apply_listing(&mut self, zone: &Name, catalog: &Name) -> Option<Change> {
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
                    // The zone has already moved.
                    return None;
                }
                Change::Add { zone: zone.clone() }
            }
            // The zone has already moved, or the `coo` properties of both catalogs name each other.
            Some(owner) if is_other(owner) && member.new_owner.as_ref() == Some(&owner.catalog) => {
                return None;
            }
            // §4.3.1: a zone moves only if the `coo` property of its owner names this catalog.
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
