//! Catalog zones (RFC 9432): the list of a server's zones, as a zone that secondaries transfer.
//!
//! [`Catalog::read`] reads a catalog zone. [`Registry`] determines the changes for a consumer of
//! several catalogs. [`produce()`] generates a catalog zone. This module performs no I/O. A broken
//! catalog changes nothing; its previous version remains in effect.

mod group;
mod produce;
mod read;
mod registry;
#[cfg(test)]
mod tests;

pub use group::Group;
pub use produce::{ProduceError, produce};
pub use read::CatalogError;
pub use registry::{OwningCatalog, Registry};

use nonesuch_proto::Name;
use std::collections::BTreeMap;

/// Content of a catalog zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// The apex of the catalog zone.
    pub apex: Name,
    /// The member zones. Their names are in lower case.
    pub members: BTreeMap<Name, Member>,
}

/// A zone to list in a catalog that this server produces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducedMember {
    /// The name of the zone.
    pub zone: Name,
    /// Value of its `group` property (RFC 9432 §4.3.2).
    pub group: Option<String>,
    /// The catalog that may take over the zone (`coo` property, §4.3.1).
    pub new_owner: Option<Name>,
    /// The catalog that the zone moves from, and that still lists it.
    pub former_owner: Option<Name>,
    /// The label of the zone in that catalog. With another label, consumers would reset the zone
    /// and transfer it again (§5.4).
    pub label: Option<Vec<u8>>,
}

impl ProducedMember {
    /// Creates a member that does not move between catalogs.
    #[must_use]
    pub const fn new(zone: Name, group: Option<String>) -> Self {
        Self { zone, group, new_owner: None, former_owner: None, label: None }
    }
}

/// A catalog's entry for one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The unique label. If it changes, consumers reset all state of the zone (RFC 9432 §5.4).
    pub label: Vec<u8>,
    /// Values of the `group` property (§4.3.2), in canonical order.
    pub groups: Vec<Group>,
    /// The catalog that may take over the zone (`coo` property, §4.3.1).
    pub new_owner: Option<Name>,
}

/// A change for a zone. Callers apply changes in the given order.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// Serve the zone, with the settings of the catalog that [`Registry::owner`] returns.
    Add {
        /// The name of the zone.
        zone: Name,
    },
    /// Stop serving the zone, and remove its stored data (§5.3).
    Remove {
        /// The name of the zone.
        zone: Name,
        /// The catalog that owned the zone.
        catalog: Name,
    },
    /// Remove the stored data of the zone and load it again, because its label changed (§5.4). The
    /// catalog may have changed too.
    Reset {
        /// The name of the zone.
        zone: Name,
    },
    /// Serve the zone with other settings: its groups changed, or another catalog took it over
    /// (§4.3.1).
    Update {
        /// The name of the zone.
        zone: Name,
    },
    /// A catalog lists a zone that the server already serves for another catalog or from its
    /// configuration. The caller only logs this (§5.2).
    Clash {
        /// The name of the zone.
        zone: Name,
        /// The catalog whose entry is ignored.
        catalog: Name,
    },
}
