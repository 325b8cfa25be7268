//! What the status of zones tells of catalogs (RFC 9432): one that cannot be used, and of a member where it comes from.

use super::Service;
use super::activity::lock;
use nonesuch_proto::Name;

/// Where a member of a catalog comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct CatalogMembership {
    /// The catalog.
    pub(super) catalog: Name,
    /// The template that it is served by.
    pub(super) template: String,
}

impl Service {
    /// Notes why a catalog cannot be used in the version that is here, or that it can.
    pub(super) fn note_catalog(&self, apex: &Name, fault: Option<String>) {
        if let Some(zone) = self.zone(apex) {
            lock(&zone.runtime).catalog_fault = fault;
        }
    }

    /// Notes where a member comes from.
    pub(super) fn note_member(&self, apex: &Name, member_of: CatalogMembership) {
        if let Some(zone) = self.zone(apex).filter(|zone| zone.is_member()) {
            lock(&zone.runtime).member_of = Some(member_of);
        }
    }

    /// The catalog that a zone is a member of; none where the configuration names the zone.
    pub(super) fn catalog_of(&self, apex: &Name) -> Option<Name> {
        lock(&self.zone(apex)?.runtime).member_of.as_ref().map(|member_of| member_of.catalog.clone())
    }
}
