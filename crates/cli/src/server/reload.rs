//! Reload of the configuration or of one zone of a running server.

use crate::config::{self, Problems};
use crate::control_protocol::ReloadResult;
use crate::server::daemon::{ConfigurationSource, Daemon};
use crate::server::preflight;
use crate::server::reload_status::warn_of_restart;
use crate::server::settings::{ConfigurationInUse, SettingsError, answer_settings, set_log};
use nonesuch_authoritative::service::Settings;
use std::path::Path;
use std::sync::{Arc, PoisonError};

/// Why a reload fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ReloadError {
    #[error(transparent)]
    Configuration(#[from] Problems),
    #[error(transparent)]
    Settings(#[from] SettingsError),
}

impl Daemon {
    /// Reads the configuration again and applies it. A configuration with a fault is rejected as a
    /// whole. Waits while the server starts and while another reload runs.
    pub(crate) fn reload(&self) -> Result<ReloadResult, ReloadError> {
        let _reload_guard = self.reload_lock.lock().unwrap_or_else(PoisonError::into_inner);
        let _ = self.service.wait_until_loaded();
        self.notifier.notify_reloading();
        let outcome = self.reload_all();
        if let Err(problems) = &outcome {
            tracing::error!(name: "configuration-rejected", "configuration: rejected, keeping the previous configuration:\n{problems}");
        }
        self.reloads.history.record(outcome.as_ref().err().map(ToString::to_string));
        self.notifier.notify_ready(&self.status_line());
        outcome
    }

    fn reload_all(&self) -> Result<ReloadResult, ReloadError> {
        match &self.source {
            ConfigurationSource::File(path) => self.reload_configuration(path),
            ConfigurationSource::Arguments => {
                let settings = self.configuration().service_settings();
                Ok(self.reload_zones(settings, &[]))
            }
        }
    }

    fn reload_zones(&self, settings: Settings, needs_restart: &[&str]) -> ReloadResult {
        let needs_restart = needs_restart.iter().map(|key| (*key).to_owned()).collect();
        ReloadResult { report: self.service.reload(settings), needs_restart }
    }

    fn reload_configuration(&self, path: &Path) -> Result<ReloadResult, ReloadError> {
        let loaded = config::load(path)?;
        for warning in &loaded.warnings {
            tracing::warn!(name: "configuration-warning", "{warning}");
        }
        let new = loaded.configuration;
        // Also without TLS in use, so that a restart does not fail.
        let identity = preflight::load_identity(&new.server.tls, &loaded.sources)?;
        let identity = self.tls_identity.as_ref().zip(identity);
        let mut current = self.configuration();
        let settings_in_use = self.context.settings.load();
        let in_use = ConfigurationInUse { configuration: &current, settings: &settings_in_use };
        let settings = answer_settings(&new, Some(in_use))?;
        // Nothing after this line rejects the configuration.
        let restart_keys = self.reloads.settings_needing_restart(&new);
        warn_of_restart(&restart_keys);
        set_log(&new);
        self.context.settings.store(Arc::new(settings));
        if let Some((slot, identity)) = identity {
            slot.replace(identity);
        }
        if let Some(tap) = &self.context.dnstap {
            tap.reopen();
        }
        let service_settings = new.service_settings();
        *current = new;
        drop(current);
        self.warn_of_certificate();
        Ok(self.reload_zones(service_settings, &restart_keys))
    }
}
