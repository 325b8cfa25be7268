//! Negative trust anchors (RFC 7646) of a running resolver: control requests, status and log.

use super::daemon::ResolverDaemon;
use super::unix_time;
use crate::control_protocol::{NegativeAnchorStatus, ZoneRemoved};
use crate::server::control::error::ControlError;
use nonesuch_proto::Name;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_resolver::options::NegativeAnchor;
use nonesuch_resolver::{ActiveNegativeAnchor, MAX_NEGATIVE_ANCHOR_LIFETIME, NegativeAnchorEnd};

impl ResolverDaemon {
    /// Adds a negative trust anchor that ends after `lifetime` seconds at the latest. With `recheck`, it
    /// ends earlier if the zone validates again.
    pub(crate) fn add_negative_anchor(
        &self,
        zone: &Name,
        lifetime: u64,
        recheck: bool,
    ) -> Result<NegativeAnchorStatus, ControlError> {
        // RFC 7646 §4.
        if !(1..=MAX_NEGATIVE_ANCHOR_LIFETIME).contains(&lifetime) {
            return Err(ControlError::NegativeAnchorLifetime { max: MAX_NEGATIVE_ANCHOR_LIFETIME });
        }
        let expires = unix_time() + lifetime;
        let anchor = NegativeAnchor { name: zone.clone(), expires: Some(expires), is_rechecked: recheck };
        self.shared.add_negative_anchor(anchor.clone())?;
        self.wake();
        let until = Rfc3339(expires).to_string();
        tracing::warn!(name: "negative-anchor-added", zone = zone.to_string(), until, "zone {zone}: negative trust anchor added, not validated until {until}");
        Ok(status(&ActiveNegativeAnchor { anchor, is_configured: false }))
    }

    /// Ends the negative trust anchors with this name.
    pub(crate) fn remove_negative_anchor(&self, zone: &Name) -> Result<ZoneRemoved, ControlError> {
        if !self.shared.remove_negative_anchor(zone.view()) {
            return Err(ControlError::NoNegativeAnchor(zone.clone()));
        }
        self.wake();
        tracing::info!(name: "negative-anchor-ended", zone = zone.to_string(), reason = "removed", "zone {zone}: negative trust anchor ended: removed");
        Ok(ZoneRemoved { zone: zone.to_string() })
    }

    pub(crate) fn negative_anchors(&self) -> Vec<NegativeAnchorStatus> {
        self.shared.negative_anchors().iter().map(status).collect()
    }

    /// Logs the ends of negative trust anchors.
    pub(super) fn log_negative_anchors(&self) {
        for (zone, end) in self.shared.take_negative_anchor_events() {
            let reason = match end {
                NegativeAnchorEnd::Expired => "expired",
                NegativeAnchorEnd::Validates => "validates",
            };
            tracing::info!(name: "negative-anchor-ended", zone = zone.to_string(), reason, "zone {zone}: negative trust anchor ended: {reason}");
        }
    }
}

fn status(active: &ActiveNegativeAnchor) -> NegativeAnchorStatus {
    let NegativeAnchor { name, expires, is_rechecked } = &active.anchor;
    NegativeAnchorStatus {
        zone: name.to_string(),
        until: *expires,
        recheck: *is_rechecked,
        configured: active.is_configured,
    }
}
