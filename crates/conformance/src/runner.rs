//! Runs scenarios against a machine, and judges its replies.
//!
//! [`run`] runs one scenario. It plays the steps as the program of the dialect does: Deckard waits for
//! the reply to each query, and Unbound's `testbound` delivers responses without any delay and moves
//! time only in steps that say so. [`Suite`] runs all scenarios of some directories and compares the
//! outcomes with a list of known exceptions.

mod deckard;
mod exceptions;
mod failure;
mod servers;
mod suite;
#[cfg(test)]
mod tests;
mod unbound;

pub use exceptions::{Exception, ExceptionKind, Exceptions, ExceptionsError};
pub use failure::{Failed, Failure, UndefinedQuery};
pub use suite::{Counts, Suite, Verdict, find_scenarios};

use crate::rpl::{Action, Dialect, Entry, Scenario, ScenarioSettings};
use nonesuch_net::machine::Machine;
use std::time::Duration;

/// A resolver cannot have the configuration of a scenario. The text names the cause, for example an
/// option.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Unsupported(pub String);

/// Makes the machine for a scenario. In the settings, `qname_minimisation` is never `None`.
pub type MakeMachine<'f> = dyn Fn(&ScenarioSettings) -> Result<Box<dyn Machine>, Unsupported> + 'f;

/// Result of a scenario.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// All replies are as expected.
    Passed,
    /// The machine does not do what the scenario expects.
    Failed(Box<Failed>),
    /// The scenario needs something that the machine or this runner lacks; the text names it.
    NotApplicable(String),
}

/// Options of a run.
#[derive(Clone, Copy, Debug)]
pub struct RunOptions {
    /// Seed of the simulator.
    pub seed: u64,
    /// Maximum time from a client query to its reply. Deckard waits for 5 s.
    pub patience: Duration,
}

impl Default for RunOptions {
    fn default() -> Self {
        Self { seed: 1, patience: Duration::from_secs(5) }
    }
}

/// UNIX time of scenarios that state no time: 2023-11-14.
const DEFAULT_UNIX: u64 = 1_700_000_000;

/// Runs a scenario: once if it states whether to minimise query names, otherwise with and without
/// minimisation, as Deckard does. The first failure ends the run.
#[must_use]
pub fn run(scenario: &Scenario, make_machine: &MakeMachine<'_>, options: RunOptions) -> Outcome {
    if let Some(reason) = unsupported_part(scenario) {
        return Outcome::NotApplicable(reason);
    }
    let modes = match scenario.settings.qname_minimisation {
        Some(mode) => vec![mode],
        None => vec![true, false],
    };
    for mode in modes {
        let settings = ScenarioSettings { qname_minimisation: Some(mode), ..scenario.settings.clone() };
        let machine = match make_machine(&settings) {
            Ok(machine) => machine,
            Err(Unsupported(reason)) => return Outcome::NotApplicable(reason),
        };
        let result = match settings.dialect {
            Dialect::Deckard => deckard::play(scenario, machine, options),
            Dialect::Unbound => unbound::play(scenario, machine, options),
        };
        if let Err(failed) = result {
            return Outcome::Failed(Box::new(Failed { minimises: mode, ..*failed }));
        }
    }
    Outcome::Passed
}

/// Returns the first part of a scenario that this runner does not support.
fn unsupported_part(scenario: &Scenario) -> Option<String> {
    let dialect = scenario.settings.dialect;
    let in_step = scenario.steps.iter().find_map(|step| {
        let reason = match &step.action {
            Action::Unsupported(what) => Some(what.clone()),
            Action::Timeout | Action::Error if dialect == Dialect::Deckard => {
                Some("TIMEOUT or ERROR in Deckard's dialect".to_owned())
            }
            _ => step.entry().and_then(unsupported_entry),
        };
        reason.map(|reason| format!("line {}: {reason}", step.line))
    });
    in_step.or_else(|| {
        let mut entries = scenario.ranges.iter().flat_map(|range| &range.entries);
        entries
            .find_map(|entry| unsupported_entry(entry).map(|reason| format!("line {}: {reason}", entry.line)))
    })
}

fn unsupported_entry(entry: &Entry) -> Option<String> {
    let reasons = [
        (entry.has_tsig, "TSIG"),
        (entry.extra_messages > 0, "EXTRA_PACKET"),
        (entry.adjust.copies_client_subnet, "copy_ednsdata_assume_clientsubnet"),
        (!entry.adjust.delay.is_zero(), "sleep"),
    ];
    reasons.iter().find(|(is_needed, _)| *is_needed).map(|(_, reason)| (*reason).to_owned())
}
