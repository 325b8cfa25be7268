//! The part of the zone status that concerns catalogs (RFC 9432): faults of a catalog, and the
//! catalog and template of a member.

use super::Service;
use super::activity::lock;
use nonesuch_proto::Name;

/// The origin of a member.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CatalogMembership {
    /// The catalog that lists the member.
    pub(super) catalog: Name,
    /// The template with the settings of the member.
    pub(super) template: String,
}

impl Service {
    /// Records why the current version of a catalog cannot be used; `None` if it can be used.
    pub(super) fn note_catalog_fault(&self, apex: &Name, fault: Option<String>) {
        if let Some(zone) = self.zone(apex) {
            lock(&zone.runtime).catalog_fault = fault;
        }
    }

    /// Records the catalog and template of a member.
    pub(super) fn note_member(&self, apex: &Name, member_of: CatalogMembership) {
        if let Some(zone) = self.zone(apex).filter(|zone| zone.is_member()) {
            lock(&zone.runtime).member_of = Some(member_of);
        }
    }

    /// Returns the catalog that lists a zone as a member; `None` for a configured zone.
    pub(super) fn catalog_of(&self, apex: &Name) -> Option<Name> {
        lock(&self.zone(apex)?.runtime).member_of.as_ref().map(|member_of| member_of.catalog.clone())
    }
}
