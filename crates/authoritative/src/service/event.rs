//! Events of the zones of a service.

use super::ZoneSettings;
use nonesuch_proto::Name;
use std::sync::Arc;

/// Events of zones, for transfers and catalogs.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ZoneEvent {
    /// A version of the zone is published.
    Published {
        /// Name of the zone.
        apex: Name,
        /// Whether the version came from a primary or a file, or was generated. It is `false` for a
        /// stored version, and for a version without a zone file that is published again with other
        /// keys.
        is_new: bool,
    },
    /// The zone is not loaded from a file, and no stored version of it was loaded. The previous
    /// version is still served, if there is one.
    NotLoaded {
        /// Name of the zone.
        apex: Name,
    },
    /// The zone was added.
    Added(Arc<ZoneSettings>),
    /// The settings of the zone changed.
    Changed(Arc<ZoneSettings>),
    /// The zone was removed.
    Removed {
        /// Name of the zone.
        apex: Name,
        /// Whether its stored files remain.
        keeps_files: bool,
    },
    /// The stored versions of all configured catalogs are loaded, if they exist.
    CatalogsLoaded,
    /// All zones of the settings have been loaded, if they have a source to load from.
    Loaded,
    /// The stored versions of the members of stored catalogs have been loaded.
    MembersLoaded,
    /// The settings were reloaded; templates may have changed.
    Reloaded,
    /// The service has stopped. No events follow.
    Stopped,
}

/// Number of zones by their state after startup.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartupSummary {
    /// Zones that are served.
    pub serving: usize,
    /// Zones that are not ready or have expired, and wait for a transfer.
    pub waiting: usize,
    /// Zones that could not be loaded.
    pub failed: usize,
}
