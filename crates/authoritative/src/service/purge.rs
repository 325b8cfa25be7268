//! Removing what is kept of zones that are not there: on command alone, since a zone that was taken out of the configuration
//! by mistake is to come back with its journal.

use super::Service;
use super::activity::lock;
use super::members::Membership;
use super::state::file_stem;
use nonesuch_proto::Name;
use std::collections::BTreeSet;
use std::io;

/// Why nothing is removed.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PurgeError {
    /// There is no state folder.
    #[error("nothing is kept: there is no state-dir")]
    NoState,
    /// The zone is there.
    #[error(
        "zone {0} is served: take it out of the configuration and reload, or have it anew with `nonesuch ctl zone retransfer`"
    )]
    Served(Name),
    /// Nothing is kept.
    #[error("nothing is kept of a zone {0}")]
    NotKept(Name),
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
        let state = self.state.as_ref().ok_or(PurgeError::NoState)?;
        // Held, so that the zone does not come meanwhile, and one that goes is gone.
        let _changing = lock(&self.changing);
        if self.zone(apex).is_some() {
            return Err(PurgeError::Served(apex.clone()));
        }
        if state.remove(apex) { Ok(()) } else { Err(PurgeError::NotKept(apex.clone())) }
    }

    /// Removes what is kept of zones that are not there; returns how their files were named. Members of a catalog that is
    /// there and was not read yet are waited for.
    ///
    /// # Errors
    /// Where the folder cannot be read.
    pub fn purge_all(&self) -> Result<Vec<String>, PurgeError> {
        let state = self.state.as_ref().ok_or(PurgeError::NoState)?;
        let _changing = lock(&self.changing);
        // The table itself is not held: transfers ask for zones, and the disk may be slow.
        let zones: BTreeSet<Name> = lock(&self.table).keys().cloned().collect();
        let mut known: BTreeSet<String> = zones.iter().map(file_stem).collect();
        let members = Membership::all_but(state, &zones)?;
        let awaited = members.iter().filter(|member| zones.contains(&member.catalog));
        known.extend(awaited.map(|member| file_stem(&member.zone)));
        let orphans: Vec<String> = state.stems()?.difference(&known).cloned().collect();
        for stem in &orphans {
            state.remove_stem(stem);
        }
        Ok(orphans)
    }
}
