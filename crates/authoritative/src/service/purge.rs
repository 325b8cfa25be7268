//! Removing what is kept of zones that are not there: on command alone, since a zone that was taken out of the configuration
//! by mistake is to come back with its journal.

use super::activity::lock;
use super::state::Membership;
use super::state::file_stem;
use super::zone::Zone;
use super::{Service, ZoneSource};
use nonesuch_proto::Name;
use std::collections::BTreeSet;
use std::io;

/// What a zone of primaries can be had anew with.
const RETRANSFER: &str = ", or have it anew with `nonesuch ctl zone retransfer`";

/// Why nothing is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// There is no state folder.
    #[error("nothing is kept: there is no state-dir")]
    NoState,
    /// The zone is there.
    #[error("zone {0} is served: take it out of the configuration and reload")]
    Served(Name),
    /// The zone is there, and comes from primaries.
    #[error("zone {0} is served: take it out of the configuration and reload{RETRANSFER}")]
    Transferred(Name),
    /// The zone is there, as a member of a catalog.
    #[error(
        "zone {zone} is served as a member of catalog {catalog}: take it out of that, and what is kept of it goes at once{rest}"
    )]
    Member {
        /// The zone.
        zone: Name,
        /// The catalog.
        catalog: Name,
        /// What else can be done.
        rest: &'static str,
    },
    /// Nothing is kept.
    #[error("nothing is kept of a zone {0}")]
    NotStored(Name),
    /// The folder cannot be read.
    #[error("state-dir cannot be read: {0}: see to the folder's rights")]
    Read(#[from] io::Error),
}

impl Service {
    /// Removes what is kept of a zone that is not there.
    ///
    /// # Errors
    /// Where it is there, or nothing is kept of it.
    pub fn purge_zone(&self, apex: &Name) -> Result<(), PurgeError> {
        if self.state.is_none() {
            return Err(PurgeError::NoState);
        }
        // Held, so that the zone does not come meanwhile.
        let _changing = lock(&self.changing);
        if let Some(zone) = self.zone(apex) {
            return Err(self.served(&zone));
        }
        if self.delete_stored(apex) { Ok(()) } else { Err(PurgeError::NotStored(apex.clone())) }
    }

    /// What is to be done about a zone that is there.
    fn served(&self, zone: &Zone) -> PurgeError {
        let is_transferred = zone.settings().source == ZoneSource::Primaries;
        let apex = zone.apex().clone();
        match (self.catalog_of(&apex), is_transferred) {
            (Some(catalog), true) => PurgeError::Member { zone: apex, catalog, rest: RETRANSFER },
            (Some(catalog), false) => PurgeError::Member { zone: apex, catalog, rest: "" },
            (None, true) => PurgeError::Transferred(apex),
            (None, false) => PurgeError::Served(apex),
        }
    }

    /// Removes what is kept of zones that are not there; returns how their files were named. Members of a catalog that is
    /// there and was not read yet are waited for.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn purge_all(&self) -> Result<Vec<String>, PurgeError> {
        let state = self.state.as_ref().ok_or(PurgeError::NoState)?;
        let _changing = lock(&self.changing);
        // No zone comes or goes while `changing` is held; others look for zones meanwhile, and the folder may be slow.
        let zones: BTreeSet<Name> = lock(&self.table).keys().cloned().collect();
        let mut known: BTreeSet<String> = zones.iter().map(file_stem).collect();
        let members = Membership::all_but(state, &zones)?;
        let awaited = members.iter().filter(|member| zones.contains(&member.catalog));
        known.extend(awaited.map(|member| file_stem(&member.zone)));
        let orphans: Vec<String> = state.stems()?.difference(&known).cloned().collect();
        for stem in &orphans {
            state.remove_stem(stem);
        }
        let abandoned: Vec<Name> =
            lock(&self.abandoned).keys().filter(|apex| !zones.contains(*apex)).cloned().collect();
        for apex in &abandoned {
            self.delete_stored(apex);
        }
        Ok(orphans)
    }
}
