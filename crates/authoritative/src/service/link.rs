//! What transfers need of a service ([`Host`]): what is held of zones, and a way to publish what was transferred.

use super::{Refused, Service};
use crate::Settings;
use crate::secondary::{Host, PublishError, Received};
use crate::tsig::Keys;
use arc_swap::ArcSwap;
use nonesuch_proto::Name;
use nonesuch_zone::Contents;
use std::sync::Arc;
use std::time::Instant;

/// What transfers need of a service.
#[derive(Clone, Debug)]
pub struct Link {
    /// The service.
    pub service: Arc<Service>,
    /// The server's settings, the TSIG keys among them.
    pub settings: Arc<ArcSwap<Settings>>,
}

impl Host for Link {
    fn contents(&self, apex: &Name) -> Option<Arc<Contents>> {
        self.service.contents(apex)
    }

    fn publish(&self, apex: &Name, received: Received) -> Result<(), PublishError> {
        let Received { primary, contents, steps } = received;
        let published = self.service.publish_from(&primary, apex, contents, &steps);
        published.map(drop).map_err(|refused| match refused {
            Refused::Unknown | Refused::OtherSource => PublishError::Unwanted(refused.to_string()),
            Refused::Unsound { first, .. } => PublishError::Refused(first.join("; ")),
            other => PublishError::Refused(other.to_string()),
        })
    }

    fn expire(&self, apex: &Name) {
        self.service.set_expired(apex, true);
    }

    fn restore(&self, apex: &Name) {
        self.service.set_expired(apex, false);
    }

    fn store(&self, apex: &Name) -> bool {
        // The error was logged at publication, and is in the zone's status.
        self.service.store(apex).is_ok()
    }

    fn set_expiry(&self, apex: &Name, expires: Option<Instant>) {
        self.service.set_expiry(apex, expires);
    }

    fn keys(&self) -> Keys {
        self.settings.load().keys.clone()
    }
}
