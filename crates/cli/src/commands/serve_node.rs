//! A running server with all that belongs to it: what signals and the control socket act on.

use super::serve_control::no_zone;
use super::serve_export::Exported;
use super::serve_reloads::Reloads;
use super::serve_settings::{answer_settings, set_log, workers};
use super::serve_system::Notifier;
use crate::config::certificate::warn_of_expiry;
use crate::config::{self, Configuration};
use crate::error::Failure;
use crate::files::counted;
use nonesuch_authoritative::Shared;
use nonesuch_authoritative::secondary::Transfers;
use nonesuch_authoritative::server::{Bound, Server};
use nonesuch_authoritative::service::{ActivityStatus, Service, Settings, Source};
use nonesuch_net::tls::IdentitySlot;
use nonesuch_proto::Name;
use serde_json::{Value, json};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Instant;
use tokio::sync::Notify;

/// Where the configuration of a server comes from.
pub(super) enum Origin {
    /// A file, which a reload reads again.
    File(PathBuf),
    /// The command line: a reload looks at the zone's file alone.
    Arguments,
}

impl Origin {
    pub(super) fn path(&self) -> Option<&Path> {
        match self {
            Self::File(path) => Some(path),
            Self::Arguments => None,
        }
    }
}

/// What a running server is made of.
pub(super) struct Node {
    pub(super) origin: Origin,
    /// The configuration that is in force.
    pub(super) configuration: Mutex<Configuration>,
    pub(super) service: Arc<Service>,
    pub(super) shared: Shared,
    pub(super) transfers: Arc<Transfers>,
    pub(super) identity: Option<IdentitySlot>,
    /// What answers; `None` before it does, and when it has ended.
    pub(super) server: Mutex<Option<Server>>,
    pub(super) notifier: Notifier,
    pub(super) stop: Notify,
    /// Held by the reload that goes on: the next one reads the configuration after it, so that the newest one stays.
    pub(super) reloading: Mutex<()>,
    /// What became of them.
    pub(super) reloads: Reloads,
    pub(super) begun: Instant,
}

impl Node {
    pub(super) fn configuration(&self) -> MutexGuard<'_, Configuration> {
        self.configuration.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Starts answering at sockets that are bound.
    pub(super) fn start(&self, bound: Bound) -> Result<(), Failure> {
        let server = bound.start(&self.shared)?;
        *self.server.lock().unwrap_or_else(PoisonError::into_inner) = Some(server);
        Ok(())
    }

    /// UDP threads of each address.
    pub(super) fn workers(&self) -> usize {
        workers(&self.configuration())
    }

    /// Has the server stop.
    pub(super) fn ask_to_stop(&self) {
        self.stop.notify_one();
    }

    /// Reads the configuration again and does what it says; a faulty one is refused as a whole. While the server starts, and
    /// while another reload goes on, it waits.
    pub(super) fn reload(&self) -> Result<Value, String> {
        let _one = self.reloading.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.service.wait();
        self.notifier.reloading();
        let outcome = self.reload_all();
        if let Err(problems) = &outcome {
            tracing::error!("the configuration is refused, the one of before stays:\n{problems}");
        }
        self.reloads.note(outcome.as_ref().map(drop).map_err(String::as_str));
        self.notifier.ready(&self.words());
        outcome
    }

    fn reload_all(&self) -> Result<Value, String> {
        match &self.origin {
            Origin::File(path) => self.reload_configuration(path),
            Origin::Arguments => {
                let settings = self.configuration().service_settings();
                Ok(self.reload_zones(settings, &[]))
            }
        }
    }

    fn reload_zones(&self, settings: Settings, needs_restart: &[&str]) -> Value {
        let report = self.service.reload(settings);
        let mut report = serde_json::to_value(report).unwrap_or_default();
        report["needs_restart"] = json!(needs_restart);
        report
    }

    fn reload_configuration(&self, path: &Path) -> Result<Value, String> {
        let read = config::load(path).map_err(|problems| problems.to_string())?;
        for warning in &read.warnings {
            tracing::warn!("{warning}");
        }
        let new = read.configuration;
        let identity = match (&self.identity, &new.server.tls) {
            (Some(slot), Some(_)) => {
                let identity = config::load_identity(&new, &read.sources);
                identity.map_err(|problems| problems.to_string())?.map(|identity| (slot, identity))
            }
            _ => None,
        };
        let mut current = self.configuration();
        let settings = answer_settings(&new, Some((&current, &self.shared.settings.load())))?;
        // From here on nothing is refused.
        let restart = self.reloads.needs_restart(&new);
        if !restart.is_empty() {
            tracing::warn!(
                "what was changed since the start of {} takes effect when the server is started again",
                restart.join(", ")
            );
        }
        set_log(&new);
        self.shared.settings.store(Arc::new(settings));
        if let Some((slot, identity)) = identity {
            slot.replace(identity);
        }
        if let Some(tap) = &self.shared.tap {
            tap.reopen();
        }
        let service_settings = new.service_settings();
        *current = new;
        drop(current);
        self.warn_of_certificate();
        Ok(self.reload_zones(service_settings, &restart))
    }

    /// What goes on.
    pub(super) fn activities(&self) -> Vec<ActivityStatus> {
        self.service.activities().list()
    }

    /// Warns of a certificate that has expired, or soon will.
    pub(super) fn warn_of_certificate(&self) {
        let files = self.configuration().server.tls.clone();
        if let Some(said) = files.and_then(|files| warn_of_expiry(&files.certificate, jiff::Timestamp::now()))
        {
            tracing::warn!("{said}");
        }
    }

    /// Loads one zone again.
    pub(super) fn reload_zone(&self, apex: &Name) -> Result<Value, String> {
        let is_secondary =
            self.service.settings_of(apex).is_some_and(|settings| settings.source == Source::Primaries);
        if is_secondary {
            return self.refresh(apex, false);
        }
        let updated = self.service.reload_zone(apex).map_err(|refused| format!("zone {apex}: {refused}"))?;
        // What was odd about the version that stays was said when it came.
        let warnings = if updated { self.service.warnings(apex) } else { Vec::new() };
        Ok(json!({ "zone": apex.to_string(), "updated": updated, "warnings": warnings }))
    }

    /// Asks the primaries of a zone, or transfers all of it.
    pub(super) fn refresh(&self, apex: &Name, is_whole: bool) -> Result<Value, String> {
        let settings = self.service.settings_of(apex).ok_or_else(|| no_zone(apex))?;
        if settings.source != Source::Primaries {
            return Err(format!(
                "zone {apex} has no primaries: `nonesuch ctl reload {apex}` reads its file again"
            ));
        }
        if is_whole {
            self.transfers.retransfer(apex);
        } else {
            self.transfers.refresh(apex);
        }
        Ok(json!({ "zone": apex.to_string(), "asked": true }))
    }

    /// The records of a zone as they were published last.
    pub(super) fn export(&self, apex: &Name) -> Result<Exported, String> {
        if self.service.settings_of(apex).is_none() {
            return Err(no_zone(apex));
        }
        if let Some(contents) = self.service.contents(apex) {
            return Ok(Exported::Held(contents));
        }
        match self.service.kept(apex) {
            Ok(Some(zone)) => Ok(Exported::Kept(Box::new(zone))),
            Ok(None) => Err(format!(
                "zone {apex}: no version of it is kept: there is none yet, or no state-dir; its records are in its file"
            )),
            Err(error) => Err(format!("zone {apex}: {error}")),
        }
    }

    /// Removes what is kept of a zone that is not there.
    pub(super) fn purge_zone(&self, apex: &Name) -> Result<Value, String> {
        self.service.purge_zone(apex).map_err(|error| error.to_string())?;
        tracing::info!(zone = apex.to_string(), "zone {apex}: what was kept of it is removed");
        Ok(json!({ "zone": apex.to_string(), "purged": true }))
    }

    /// Removes what is kept of all zones that are not there.
    pub(super) fn purge_all(&self) -> Result<Value, String> {
        let purged = self.service.purge_all().map_err(|error| error.to_string())?;
        tracing::info!(
            "what was kept of zones that are not there is removed: {}",
            counted(purged.len(), "zone")
        );
        Ok(json!({ "purged": purged }))
    }
}
