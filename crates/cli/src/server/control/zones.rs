//! Control requests for single zones and for stored versions.

use crate::config::added_zones::{self, AddedZonesChange, AddedZonesError};
use crate::control_protocol::{
    PurgeResult, RefreshStarted, ZoneAdded, ZoneNotified, ZonePurged, ZoneReloaded, ZoneRemoved,
};
use crate::files::count_text;
use crate::server::control::error::ControlError;
use crate::server::control::export::ExportSource;
use crate::server::daemon::{ConfigurationSource, Daemon};
use nonesuch_authoritative::service::{ServingState, ZoneSource, ZoneStatus};
use nonesuch_proto::Name;
use nonesuch_secondary::notify::NotifyReason;
use std::path::Path;
use std::sync::PoisonError;

impl Daemon {
    /// Adds a zone to the file of added zones and serves it. `settings` are the keys and
    /// values of its `zone` table in a configuration.
    pub(crate) fn add_zone(
        &self,
        apex: &Name,
        settings: toml::Table,
    ) -> Result<Option<ZoneAdded>, ControlError> {
        self.change_added_zones(
            |main| added_zones::add(main, apex, settings),
            |change| {
                let zone = change.zone(apex)?;
                self.configuration().zones.push(zone.clone());
                let status = self.service.add_configured(zone.clone());
                tracing::info!(name: "zone-added", zone = apex.to_string(), state = status.state.as_str(), "zone {apex}: added");
                let configuration_warnings = change.loaded.warnings.iter().map(ToString::to_string);
                let warnings: Vec<String> = configuration_warnings.chain(status.warnings).collect();
                let ZoneStatus { zone, state, serial, error, .. } = status;
                Some(ZoneAdded { zone, state, serial, error, warnings })
            },
        )
    }

    /// Removes a zone from the file of added zones and stops serving it. Its stored version stays.
    pub(crate) fn remove_zone(&self, apex: &Name) -> Result<ZoneRemoved, ControlError> {
        self.change_added_zones(
            |main| added_zones::remove(main, apex),
            |_| {
                self.configuration().zones.retain(|zone| zone.apex != *apex);
                self.service.remove_configured(apex);
                tracing::info!(name: "zone-removed", zone = apex.to_string(), "zone {apex}: removed");
                ZoneRemoved { zone: apex.to_string() }
            },
        )
    }

    /// Changes the file of added zones, writes it and applies the change. Waits for other changes
    /// and reloads.
    fn change_added_zones<T>(
        &self,
        change: impl FnOnce(&Path) -> Result<AddedZonesChange, AddedZonesError>,
        apply: impl FnOnce(&AddedZonesChange) -> T,
    ) -> Result<T, ControlError> {
        let ConfigurationSource::File(main) = &self.source else {
            return Err(ControlError::NoConfiguration);
        };
        let _reload_guard = self.reload_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.service.wait_until_loaded();
        let change = change(main)?;
        change.write()?;
        Ok(apply(&change))
    }

    /// Sends NOTIFY with the SOA record of the served version to the secondaries of a zone (RFC
    /// 1996).
    pub(crate) fn notify_zone(&self, apex: &Name) -> Result<ZoneNotified, ControlError> {
        let settings = self.service.settings_of(apex).ok_or_else(|| ControlError::NoZone(apex.clone()))?;
        let servers_to_notify = &settings.transfers.also_notify;
        if servers_to_notify.is_empty() {
            return Err(ControlError::NoSecondaries(apex.clone()));
        }
        let status = self.service.zone_status(Some(apex)).into_iter().next();
        let served = status.filter(|status| status.state == ServingState::Serving);
        let (Some(status), Some(soa)) = (served, self.service.soa_record(apex)) else {
            return Err(ControlError::NotServed(apex.clone()));
        };
        self.transfers.send_notify(apex, soa, servers_to_notify.clone(), NotifyReason::Change);
        let servers = servers_to_notify.iter().map(|remote| remote.address.to_string()).collect();
        Ok(ZoneNotified { zone: status.zone, serial: status.serial, servers })
    }

    /// Starts a refresh of a zone or, with `is_complete`, a transfer of the complete zone. Does not
    /// wait for the primaries.
    pub(crate) fn refresh(&self, apex: &Name, is_complete: bool) -> Result<RefreshStarted, ControlError> {
        let settings = self.service.settings_of(apex).ok_or_else(|| ControlError::NoZone(apex.clone()))?;
        if settings.source != ZoneSource::Primaries {
            return Err(ControlError::NoPrimaries(apex.clone()));
        }
        if is_complete {
            self.transfers.retransfer(apex);
        } else {
            self.transfers.refresh(apex);
        }
        Ok(RefreshStarted { zone: apex.to_string(), is_started: true })
    }

    /// The records of the last published version of a zone.
    pub(crate) fn export(&self, apex: &Name) -> Result<ExportSource, ControlError> {
        if self.service.settings_of(apex).is_none() {
            return Err(ControlError::NoZone(apex.clone()));
        }
        if let Some(contents) = self.service.contents(apex) {
            return Ok(ExportSource::InMemory(contents));
        }
        match self.service.stored_zone(apex) {
            Ok(Some(zone)) => Ok(ExportSource::Stored(Box::new(zone))),
            Ok(None) => Err(ControlError::NotStored(apex.clone())),
            Err(source) => Err(ControlError::StoredVersion { apex: apex.clone(), source }),
        }
    }

    /// Removes the stored files of a zone that is not configured.
    pub(crate) fn purge_zone(&self, apex: &Name) -> Result<ZonePurged, ControlError> {
        self.service.purge_zone(apex)?;
        tracing::info!(name: "stored-files-removed", zone = apex.to_string(), "zone {apex}: stored files removed");
        Ok(ZonePurged { zone: apex.to_string(), purged: true })
    }

    /// Removes the stored files of all zones that are neither configured nor members of a
    /// configured catalog.
    pub(crate) fn purge_all(&self) -> Result<PurgeResult, ControlError> {
        let purged = self.service.purge_all()?;
        tracing::info!(
            name: "stored-files-removed",
            "state-dir: stored files of zones that are not configured removed: {}",
            count_text(purged.len(), "zone")
        );
        Ok(PurgeResult { purged })
    }

    /// Reloads one zone. For a secondary zone, starts a refresh.
    pub(crate) fn reload_zone(&self, apex: &Name) -> Result<ZoneReloaded, ControlError> {
        let is_secondary =
            self.service.settings_of(apex).is_some_and(|settings| settings.source == ZoneSource::Primaries);
        if is_secondary {
            return self.refresh(apex, false).map(ZoneReloaded::RefreshStarted);
        }
        let rejected = |source| ControlError::VersionRejected { apex: apex.clone(), source };
        let updated = self.service.reload_zone(apex).map_err(rejected)?;
        // If the version did not change, its warnings were reported when it was loaded.
        let warnings = if updated { self.service.warnings(apex) } else { Vec::new() };
        Ok(ZoneReloaded::Loaded { zone: apex.to_string(), updated, warnings })
    }
}
