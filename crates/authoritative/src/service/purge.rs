//! Removes stored files of zones that do not exist. Only a command removes them: if an operator
//! removes a zone from the configuration by mistake, its journal remains available.

use super::activity::lock;
use super::state::Membership;
use super::state::file_stem;
use super::zone::Zone;
use super::{Service, ZoneSource};
use nonesuch_proto::Name;
use std::collections::BTreeSet;
use std::io;

/// Remedy for a zone from primaries.
const RETRANSFER_REMEDY: &str = ", or transfer it again with `nonesuch ctl zone retransfer`";

/// Reasons why nothing is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// The server has no state directory.
    #[error("no files are stored: state-dir is not configured")]
    NoState,
    /// The zone is configured.
    #[error("zone {0} is served: remove it from the configuration and reload")]
    Served(Name),
    /// The zone is configured and comes from primaries.
    #[error("zone {0} is served: remove it from the configuration and reload{RETRANSFER_REMEDY}")]
    Transferred(Name),
    /// The zone is a member of a catalog.
    #[error(
        "zone {zone} is served as a member of catalog {catalog}: remove it from the catalog, and the server deletes its stored files immediately{remedy}"
    )]
    Member {
        /// The name of the zone.
        zone: Name,
        /// The catalog that lists the zone.
        catalog: Name,
        /// Additional remedy for the error message.
        remedy: &'static str,
    },
    /// The zone has no stored files.
    #[error("no files are stored for zone {0}")]
    NotStored(Name),
    /// The directory cannot be read.
    #[error("cannot read state-dir: {0}: check the permissions of the directory")]
    Read(#[from] io::Error),
}

impl Service {
    /// Removes the stored files of a zone that does not exist.
    ///
    /// # Errors
    /// Returns an error if the zone exists, or if it has no stored files.
    pub fn purge_zone(&self, apex: &Name) -> Result<(), PurgeError> {
        if self.state_directory.is_none() {
            return Err(PurgeError::NoState);
        }
        // Prevents another thread from adding the zone in the meantime.
        let _zone_set_lock = lock(&self.zone_set_lock);
        if let Some(zone) = self.zone(apex) {
            return Err(self.served_error(&zone));
        }
        if self.delete_stored(apex) { Ok(()) } else { Err(PurgeError::NotStored(apex.clone())) }
    }

    /// Returns the error for a zone that exists.
    fn served_error(&self, zone: &Zone) -> PurgeError {
        let is_transferred = zone.settings().source == ZoneSource::Primaries;
        let apex = zone.apex().clone();
        match (self.catalog_of(&apex), is_transferred) {
            (Some(catalog), true) => PurgeError::Member { zone: apex, catalog, remedy: RETRANSFER_REMEDY },
            (Some(catalog), false) => PurgeError::Member { zone: apex, catalog, remedy: "" },
            (None, true) => PurgeError::Transferred(apex),
            (None, false) => PurgeError::Served(apex),
        }
    }

    /// Removes the stored files of all zones that do not exist. Returns the stems of the removed
    /// files. Does not remove members of a catalog that exists, because it may not have been read
    /// yet.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub fn purge_all(&self) -> Result<Vec<String>, PurgeError> {
        let state = self.state_directory.as_ref().ok_or(PurgeError::NoState)?;
        let _zone_set_lock = lock(&self.zone_set_lock);
        // While `zone_set_lock` is locked, no zone is added or removed. The lock of `zone_map`
        // is released, because other threads need it and the directory may be slow.
        let zones: BTreeSet<Name> = lock(&self.zone_map).keys().cloned().collect();
        let mut known: BTreeSet<String> = zones.iter().map(file_stem).collect();
        let members = Membership::all_except(state, &zones)?;
        let awaited = members.iter().filter(|member| zones.contains(&member.catalog));
        known.extend(awaited.map(|member| file_stem(&member.zone)));
        let orphans: Vec<String> = state.stems()?.difference(&known).cloned().collect();
        for stem in &orphans {
            state.remove_stem(stem);
        }
        let abandoned: Vec<Name> =
            lock(&self.removed_zone_locks).keys().filter(|apex| !zones.contains(*apex)).cloned().collect();
        for apex in &abandoned {
            self.delete_stored(apex);
        }
        Ok(orphans)
    }
}
