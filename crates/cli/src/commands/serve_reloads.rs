//! What is known of reloads: with what the server was started, and whether the configuration that was read last is in force.

use super::serve_settings::needs_restart;
use crate::config::{Configuration, Dnstap, Limits, Server};
use crate::metrics;
use nonesuch_authoritative::seconds_now;
use serde_json::{Value, json};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// What a server was started with, and keeps until it is started again.
pub(super) struct Started {
    pub(super) server: Server,
    pub(super) limits: Limits,
    pub(super) dnstap: Option<Dnstap>,
}

/// The reloads of a server.
pub(super) struct Reloads {
    started: Started,
    known: Mutex<Known>,
}

#[derive(Default)]
struct Known {
    numbers: metrics::Reloads,
    /// Why the configuration that was read last is refused.
    problems: Option<String>,
}

impl Reloads {
    /// A server that was started with this configuration, read at this moment.
    pub(super) fn new(started: &Configuration) -> Self {
        let now = seconds_now();
        let numbers = metrics::Reloads { last: now, in_force_since: now, ..metrics::Reloads::default() };
        let Configuration { server, limits, dnstap, .. } = started;
        let started = Started { server: server.clone(), limits: limits.clone(), dnstap: dnstap.clone() };
        Self { started, known: Mutex::new(Known { numbers, problems: None }) }
    }

    fn known(&self) -> MutexGuard<'_, Known> {
        self.known.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes what became of a reload.
    pub(super) fn note(&self, outcome: Result<(), &str>) {
        let mut known = self.known();
        known.problems = outcome.err().map(ToOwned::to_owned);
        let numbers = &mut known.numbers;
        numbers.last = seconds_now();
        numbers.is_refused = outcome.is_err();
        if outcome.is_ok() {
            numbers.done += 1;
            numbers.in_force_since = numbers.last;
        } else {
            numbers.refused += 1;
        }
    }

    /// For the metrics.
    pub(super) fn numbers(&self) -> metrics::Reloads {
        self.known().numbers
    }

    /// The configuration that was read last, where it is refused: when, and why.
    pub(super) fn refused(&self) -> Value {
        let known = self.known();
        known
            .problems
            .as_ref()
            .map_or(Value::Null, |problems| json!({ "at": known.numbers.last, "problems": problems }))
    }

    /// Settings in which a configuration differs from what runs until the server is started again.
    pub(super) fn needs_restart(&self, configuration: &Configuration) -> Vec<&'static str> {
        needs_restart(&self.started, configuration)
    }
}
