//! State of reloads: the settings at the start of the server, and whether the configuration that
//! was read last is in use.

use crate::config::{Configuration, Dnstap, Limits, Server};
use crate::control_protocol::RefusedConfiguration;
use crate::metrics;
use nonesuch_server::clock::seconds_now;
use nonesuch_server::limits::OverBudgetAction;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The settings at the start of the server. Some of them change only with a restart.
struct StartSettings {
    server: Server,
    limits: Limits,
    dnstap: Option<Dnstap>,
}

/// The reloads of a server.
pub(crate) struct ReloadStatus {
    at_start: StartSettings,
    pub(crate) history: ReloadHistory,
}

/// The results of the reloads so far.
pub(crate) struct ReloadHistory(Mutex<ReloadResults>);

struct ReloadResults {
    counters: metrics::Reloads,
    /// Why the configuration that was read last was rejected; `None` if it is in use.
    problems: Option<String>,
}

impl ReloadStatus {
    /// Status of a server that starts now with this configuration.
    pub(crate) fn new(at_start: &Configuration) -> Self {
        let Configuration { server, limits, dnstap, .. } = at_start;
        let at_start =
            StartSettings { server: server.clone(), limits: limits.clone(), dnstap: dnstap.clone() };
        Self { at_start, history: ReloadHistory::begin() }
    }

    /// Names of the changed settings that take effect only after a restart.
    pub(crate) fn settings_needing_restart(&self, configuration: &Configuration) -> Vec<&'static str> {
        changed_restart_settings(&self.at_start, configuration)
    }
}

impl ReloadHistory {
    /// History of a server that has read its configuration now.
    pub(crate) fn begin() -> Self {
        let now = seconds_now();
        let counters =
            metrics::Reloads { last_read_at: now, in_use_since: now, ..metrics::Reloads::default() };
        Self(Mutex::new(ReloadResults { counters, problems: None }))
    }

    fn results(&self) -> MutexGuard<'_, ReloadResults> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the end of a reload. `problems` is the reason if the configuration was rejected.
    pub(crate) fn record(&self, problems: Option<String>) {
        let mut results = self.results();
        let counters = &mut results.counters;
        counters.last_read_at = seconds_now();
        counters.is_last_rejected = problems.is_some();
        if problems.is_some() {
            counters.rejected += 1;
        } else {
            counters.succeeded += 1;
            counters.in_use_since = counters.last_read_at;
        }
        results.problems = problems;
    }

    /// The counters for the metrics.
    pub(crate) fn counters(&self) -> metrics::Reloads {
        self.results().counters
    }

    /// Time of the read and reason of the rejection, if the configuration that was read last was
    /// rejected.
    pub(crate) fn rejected_configuration(&self) -> Option<RefusedConfiguration> {
        let results = self.results();
        let problems = results.problems.clone()?;
        Some(RefusedConfiguration { at: results.counters.last_read_at, problems })
    }
}

/// Logs that these settings take effect at the next start, if there are any.
pub(crate) fn warn_of_restart(keys: &[&str]) {
    if !keys.is_empty() {
        tracing::warn!(
            name: "restart-needed",
            "configuration: restart the server to apply the changes of {}",
            keys.join(", ")
        );
    }
}

/// Names of the settings that differ and that take effect only after a restart. `limits of
/// connections and transfers` stands for the keys of `[limits]` that need a restart.
fn changed_restart_settings(old: &StartSettings, new: &Configuration) -> Vec<&'static str> {
    let (old_server, new_server) = (&old.server, &new.server);
    // Only limits that need a restart are compared, so the others get the same fixed values in
    // both.
    let restart_limits = |limits: &Limits| Limits {
        responses_per_second: 0,
        nxdomain_responses_per_second: 0,
        referral_responses_per_second: 0,
        client_responses_per_second: 0,
        slip: 0,
        response_table: 0,
        online_share: 1,
        online_busy_share: 1,
        online_over: OverBudgetAction::Truncate,
        ..limits.clone()
    };
    let changes = [
        ("user", old_server.user != new_server.user),
        ("state-dir", old_server.state_dir != new_server.state_dir),
        ("listen", old_server.listen != new_server.listen),
        ("listen-tls", old_server.tls.listen != new_server.tls.listen),
        ("tls-authorities", old_server.tls_authorities != new_server.tls_authorities),
        ("workers", old_server.workers != new_server.workers),
        ("cpus", old_server.cpus != new_server.cpus),
        ("control-socket", old_server.control_socket != new_server.control_socket),
        ("control-group", old_server.control_group != new_server.control_group),
        ("metrics-listen", old_server.metrics_listen != new_server.metrics_listen),
        ("signature-cache", old_server.signature_cache != new_server.signature_cache),
        ("load-jobs", old_server.load_jobs != new_server.load_jobs),
        ("dnstap", old.dnstap != new.dnstap),
        ("limits of connections and transfers", restart_limits(&old.limits) != restart_limits(&new.limits)),
    ];
    changes.iter().filter(|(_, is_changed)| *is_changed).map(|(key, _)| *key).collect()
}
