//! Catalog zones (RFC 9432): the list of a server's zones, as a zone that secondaries transfer.
//!
//! [`Catalog::read`] reads one, [`Registry`] says what changes for a consumer that has several, [`produce()`] makes one. Nothing
//! here has I/O, and nothing is changed by a catalog that is broken: the one before stays.

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

/// What a catalog zone says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Catalog {
    /// The catalog zone.
    pub apex: Name,
    /// The zones that it lists, in lower case.
    pub members: BTreeMap<Name, Member>,
}

/// A zone as a catalog is to list it that is made here.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ProducedMember {
    /// The zone.
    pub zone: Name,
    /// Its `group` property (RFC 9432 §4.3.2).
    pub group: Option<String>,
    /// The catalog that it may move to (`coo` property, §4.3.1).
    pub new_owner: Option<Name>,
    /// The catalog that it comes from, and still stands in.
    pub former_owner: Option<Name>,
    /// The label that it has there: with another one all that consumers have of it would be had anew (§5.4).
    pub label: Option<Vec<u8>>,
}

impl ProducedMember {
    /// A zone that stays where it is.
    #[must_use]
    pub const fn new(zone: Name, group: Option<String>) -> Self {
        Self { zone, group, new_owner: None, former_owner: None, label: None }
    }
}

/// What a catalog says of one zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Member {
    /// The unique label: another one for the same zone means that all state of the zone is to be reset (RFC 9432 §5.4).
    pub label: Vec<u8>,
    /// The values of the `group` property (§4.3.2), in canonical order.
    pub groups: Vec<Group>,
    /// The catalog that the zone may move to (`coo` property, §4.3.1).
    pub new_owner: Option<Name>,
}

/// What is to be done about a zone. Changes are to be made in the order in which they come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Change {
    /// It is to be served, by the catalog that [`Registry::owner`] names.
    Add {
        /// The zone.
        zone: Name,
    },
    /// It is not to be served any longer, and all that is stored of it is to be removed (§5.3).
    Remove {
        /// The zone.
        zone: Name,
        /// The catalog that had it.
        catalog: Name,
    },
    /// All that is stored of it is to be removed, and had anew: its label has changed (§5.4), perhaps with its catalog.
    Reset {
        /// The zone.
        zone: Name,
    },
    /// It is to be served with other settings: it has other groups, or another catalog has it from now on (§4.3.1).
    Update {
        /// The zone.
        zone: Name,
    },
    /// A catalog lists it, and it is served already, by another catalog or by the configuration: nothing is to be done but to say
    /// so (§5.2).
    Clash {
        /// The zone.
        zone: Name,
        /// The catalog that is not heeded.
        catalog: Name,
    },
}
