//! Reload of the configuration of a running resolver.

use super::daemon::ResolverDaemon;
use super::{unix_time, within_memory};
use crate::config::Problems;
use crate::config::resolver::{self, LoadedResolver, ResolverConfiguration};
use crate::control_protocol::ResolverReload;
use crate::logging;
use crate::server::preflight;
use crate::server::reload_status::warn_of_restart;
use nonesuch_resolver::ReplaceError;
use nonesuch_resolver::options::OptionsError;
use std::path::Path;
use std::sync::PoisonError;

/// Why a reload fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum ResolverReloadError {
    #[error("the resolver has no configuration to reload: start it with `nonesuch resolve --config FILE`")]
    NoConfiguration,
    Configuration(#[from] Problems),
    Options(#[from] OptionsError),
    Replace(#[from] ReplaceError),
}

impl ResolverDaemon {
    /// Reads the configuration again and applies it. A configuration with a fault is rejected as a
    /// whole. Waits for another reload.
    pub(crate) fn reload(&self) -> Result<ResolverReload, ResolverReloadError> {
        let mut needs_restart = self.needs_restart.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(path) = &self.path else {
            tracing::warn!(name: "reload-without-configuration", "reload: no configuration: start the resolver with --config");
            return Err(ResolverReloadError::NoConfiguration);
        };
        self.notifier.notify_reloading();
        let outcome = self.apply(path);
        match &outcome {
            Ok(changed) => {
                needs_restart.clone_from(changed);
                tracing::info!(name: "configuration-reloaded", "configuration: reloaded");
                warn_of_restart(changed);
            }
            Err(problems) => {
                tracing::error!(name: "configuration-rejected", "configuration: rejected, keeping the previous configuration:\n{problems}");
            }
        }
        self.reloads.record(outcome.as_ref().err().map(ToString::to_string));
        self.notifier.notify_ready(&self.status_line());
        let needs_restart = outcome?.into_iter().map(str::to_owned).collect();
        Ok(ResolverReload { needs_restart })
    }

    /// Returns the names of the settings that need a restart.
    fn apply(&self, path: &Path) -> Result<Vec<&'static str>, ResolverReloadError> {
        let LoadedResolver { configuration: mut new, warnings, sources } = resolver::load(path)?;
        for warning in &warnings {
            tracing::warn!(name: "configuration-warning", "{warning}");
        }
        // Also without TLS in use, so that a restart does not fail.
        let identity = preflight::load_identity(&new.tls, &sources)?;
        let changed = keep_start_settings(&mut new, &self.at_start);
        self.shared.replace_options(within_memory(new.options, self.workers)?, unix_time())?;
        self.wake();
        if let Some(tls) = &self.tls {
            tls.replace(&new.tls, identity);
            tls.warn_of_certificate();
        }
        logging::configure(new.log.level, new.log.format);
        Ok(changed)
    }
}

/// Resets the settings that change only at a start to their values at the start: sockets, threads,
/// memory and caches follow from them. Returns the names of the settings that differed.
fn keep_start_settings(
    new: &mut ResolverConfiguration,
    at_start: &ResolverConfiguration,
) -> Vec<&'static str> {
    let mut changed = Vec::new();
    for (key, is_changed) in [
        ("listen", new.listen != at_start.listen),
        ("listen-tls", new.tls.listen != at_start.tls.listen),
        ("tls-handshake", new.tls_handshake != at_start.tls_handshake),
        ("user", new.user != at_start.user),
        ("control-socket", new.control_socket != at_start.control_socket),
        ("control-group", new.control_group != at_start.control_group),
        ("metrics-listen", new.metrics_listen != at_start.metrics_listen),
        ("workers", new.workers != at_start.workers),
        ("anchor-state", new.anchor_state != at_start.anchor_state),
    ] {
        changed.extend(is_changed.then_some(key));
    }
    let (new, old) = (&mut new.options, &at_start.options);
    let aggressive = (&mut new.validation.aggressive, &old.validation.aggressive);
    keep("aggressive-denial", aggressive.0, aggressive.1, &mut changed);
    let anchors = (&mut new.validation.anchors, &old.validation.anchors);
    if anchors.0.is_empty() != anchors.1.is_empty() {
        changed.push("validation");
        anchors.0.clone_from(anchors.1);
    }
    keep("memory", &mut new.memory, &old.memory, &mut changed);
    keep("server-entries", &mut new.server_entries, &old.server_entries, &mut changed);
    keep("nxdomain-cut", &mut new.nxdomain_cut, &old.nxdomain_cut, &mut changed);
    keep("edns-payload", &mut new.edns_payload, &old.edns_payload, &mut changed);
    keep("client-queries", &mut new.clients.queries, &old.clients.queries, &mut changed);
    keep("ttl-min", &mut new.ttl.min, &old.ttl.min, &mut changed);
    keep("ttl-max", &mut new.ttl.max, &old.ttl.max, &mut changed);
    keep("negative-ttl-max", &mut new.ttl.negative_max, &old.ttl.negative_max, &mut changed);
    changed
}

fn keep<T: Clone + PartialEq>(key: &'static str, new: &mut T, old: &T, changed: &mut Vec<&'static str>) {
    if new != old {
        changed.push(key);
        new.clone_from(old);
    }
}
