//! What a service tells of its zones.

use super::ZoneSettings;
use nonesuch_proto::Name;
use std::sync::Arc;

/// What happens to zones, for those who transfer them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ZoneEvent {
    /// The zone is served in this version.
    Published {
        /// Its name.
        apex: Name,
        /// Whether it was not served or kept before.
        is_new: bool,
    },
    /// Nothing was there to load of a zone of primaries: it has the version that is served already, or none.
    NotLoaded {
        /// Its name.
        apex: Name,
    },
    /// The zone is there.
    Added(Arc<ZoneSettings>),
    /// The zone has other settings.
    Changed(Arc<ZoneSettings>),
    /// The zone is gone.
    Removed {
        /// Its name.
        apex: Name,
        /// Whether what is kept of it stays.
        is_kept: bool,
    },
    /// The stored versions of all catalogs that the settings name are loaded, as far as there are any.
    CatalogsLoaded,
    /// All zones of the settings were loaded, as far as there was anything to load.
    Loaded,
    /// What is kept of the members of stored catalogs was loaded.
    MembersLoaded,
    /// The settings were reloaded: templates may be others.
    Reloaded,
    /// Nothing will happen any more.
    Stopped,
}

/// How the zones of the settings came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StartupSummary {
    /// Zones that are served.
    pub serving: usize,
    /// Zones of primaries that wait for their first transfer.
    pub waiting: usize,
    /// Zones that could not be loaded.
    pub failed: usize,
}
