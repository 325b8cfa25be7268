//! Access of transfers to a service ([`ZoneStore`]): reads zones and publishes transferred
//! versions.

use super::Service;
use super::state::{STATE_SUFFIX, StateFile};
use crate::AnswerSettings;
use arc_swap::ArcSwap;
use nonesuch_proto::Name;
use nonesuch_secondary::{PublishError, ReceivedVersion, RejectedVersions, StoredState, Timers, ZoneStore};
use nonesuch_server::tsig::TsigKeys;
use nonesuch_zone::Contents;
use std::sync::Arc;
use std::time::Instant;

/// Access of transfers to a service.
#[derive(Clone, Debug)]
pub struct ServiceZoneStore {
    /// The service.
    pub service: Arc<Service>,
    /// The settings of the server, including the TSIG keys.
    pub settings: Arc<ArcSwap<AnswerSettings>>,
}

impl ServiceZoneStore {
    /// Changes the stored state of a zone; `what` names the changed part in the log.
    fn update_state(&self, apex: &Name, part: &str, change: impl FnOnce(&mut StateFile)) {
        let Some(state) = self.service.state_directory() else { return };
        if let Err(error) = state.update(apex, change) {
            let file = state.path(apex, STATE_SUFFIX);
            tracing::warn!(name: "state-not-stored", zone = %apex, file = %file.display(), %error, "zone {apex}: cannot store {part}: make the directory writable for this user");
        }
    }
}

impl ZoneStore for ServiceZoneStore {
    fn contents(&self, apex: &Name) -> Option<Arc<Contents>> {
        self.service.contents(apex)
    }

    fn publish(&self, apex: &Name, received: ReceivedVersion) -> Result<(), PublishError> {
        let ReceivedVersion { primary, contents, steps } = received;
        let published = self.service.publish_from(&primary, apex, contents, &steps);
        published.map(drop).map_err(|refused| refused.into_publish_error(self.service.shifted_now()))
    }

    fn expire(&self, apex: &Name) {
        self.service.set_expired(apex, true);
    }

    fn restore(&self, apex: &Name) {
        self.service.set_expired(apex, false);
    }

    fn store(&self, apex: &Name) -> bool {
        // The error was logged at publication, and is in the status of the zone.
        self.service.store(apex).is_ok()
    }

    fn load_state(&self, apex: &Name) -> StoredState {
        let stored = self.service.state_directory().map(|state| state.read_state(apex)).unwrap_or_default();
        StoredState { timers: stored.timers, rejected: stored.rejected }
    }

    fn store_timers(&self, apex: &Name, timers: Timers) {
        self.update_state(apex, "timers", |stored| stored.timers = Some(timers));
    }

    fn store_rejected(&self, apex: &Name, rejected: RejectedVersions) {
        let rejected = Some(rejected).filter(|rejected| !rejected.serials.is_empty());
        self.update_state(apex, "rejected serials", |stored| stored.rejected = rejected);
    }

    fn forget(&self, apex: &Name) {
        if let Some(state) = self.service.state_directory() {
            // State that remains is ignored if its serial does not match.
            let _ = state.update(apex, |stored| (stored.timers, stored.rejected) = (None, None));
        }
    }

    fn set_expiry(&self, apex: &Name, expires: Option<Instant>) {
        self.service.set_expiry(apex, expires);
    }

    fn keys(&self) -> TsigKeys {
        self.settings.load().tsig_keys.clone()
    }
}
