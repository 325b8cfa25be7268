//! State of reloads: the settings at the start of the server, and whether the configuration that
//! was read last is in use.

use crate::config::{Configuration, Dnstap, Limits, Server};
use crate::control_protocol::RefusedConfiguration;
use crate::metrics;
use nonesuch_server::clock::seconds_now;
use nonesuch_server::limits::OverBudgetAction;
use std::sync::{Mutex, MutexGuard, PoisonError};

/// The settings at the start of the server that change only with a restart.
struct StartedWith {
    pub(crate) server: Server,
    pub(crate) limits: Limits,
    pub(crate) dnstap: Option<Dnstap>,
}

/// The reloads of a server.
pub(crate) struct ReloadStatus {
    started: StartedWith,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    numbers: metrics::Reloads,
    /// Why the configuration that was read last was rejected.
    problems: Option<String>,
}

impl ReloadStatus {
    /// Status of a server that starts now with this configuration.
    pub(crate) fn new(started: &Configuration) -> Self {
        let now = seconds_now();
        let numbers = metrics::Reloads { last: now, in_force_since: now, ..metrics::Reloads::default() };
        let Configuration { server, limits, dnstap, .. } = started;
        let started = StartedWith { server: server.clone(), limits: limits.clone(), dnstap: dnstap.clone() };
        Self { started, known: Mutex::new(Known { numbers, problems: None }) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Records the end of a reload. `problems` is the reason if the configuration was rejected.
    pub(crate) fn note(&self, problems: Option<String>) {
        let mut known = self.known();
        let numbers = &mut known.numbers;
        numbers.last = seconds_now();
        numbers.is_refused = problems.is_some();
        if problems.is_some() {
            numbers.refused += 1;
        } else {
            numbers.done += 1;
            numbers.in_force_since = numbers.last;
        }
        known.problems = problems;
    }

    /// The counters for the metrics.
    pub(crate) fn numbers(&self) -> metrics::Reloads {
        self.known().numbers
    }

    /// Time and reason of the rejection, if the configuration that was read last was rejected.
    pub(crate) fn refused(&self) -> Option<RefusedConfiguration> {
        let known = self.known();
        let problems = known.problems.clone()?;
        Some(RefusedConfiguration { at: known.numbers.last, problems })
    }

    /// Names of the changed settings that take effect only after a restart.
    pub(crate) fn needs_restart(&self, configuration: &Configuration) -> Vec<&'static str> {
        needs_restart(&self.started, configuration)
    }
}

/// Names of the settings that differ and that take effect only after a restart.
fn needs_restart(old: &StartedWith, new: &Configuration) -> Vec<&'static str> {
    let (a, b) = (&old.server, &new.server);
    // The limits that need a restart; the others are set to fixed values.
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
        ("user", a.user != b.user),
        ("state-dir", a.state_dir != b.state_dir),
        ("listen", a.listen != b.listen),
        ("listen-tls", a.listen_tls != b.listen_tls),
        ("tls-authorities", a.tls_authorities != b.tls_authorities),
        ("workers", a.workers != b.workers),
        ("cpus", a.cpus != b.cpus),
        ("control-socket", a.control_socket != b.control_socket),
        ("control-group", a.control_group != b.control_group),
        ("metrics-listen", a.metrics_listen != b.metrics_listen),
        ("signature-cache", a.signature_cache != b.signature_cache),
        ("load-jobs", a.load_jobs != b.load_jobs),
        ("dnstap", old.dnstap != new.dnstap),
        ("limits of connections and transfers", restart_limits(&old.limits) != restart_limits(&new.limits)),
    ];
    changes.iter().filter(|(_, is_changed)| *is_changed).map(|(key, _)| *key).collect()
}
