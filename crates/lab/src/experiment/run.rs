//! Running an experiment: what a method is given, and what it gives back.

use super::data::DataTable;
use super::definition::Definition;
use super::error::RunError;
use super::method::About;
use super::results::{FORMAT, Record, Results};
use crate::compare::rfc3339;
use crate::machine::Machine;
use std::path::Path;

/// What an experiment is run with, beside its parameters.
pub struct RunOptions<'a> {
    /// What is random is drawn from this, but keys.
    pub seed: u64,
    /// The time, in seconds since 1970, for the record.
    pub now: u32,
    /// The command line, for the record.
    pub command: String,
    /// Whether the levels were chosen by whoever asks: one without its program is an error then, and else left out with a
    /// note.
    pub levels_chosen: bool,
    /// The program `nonesuch`: other forms of it are looked for beside it.
    pub program: &'a Path,
    /// Called before each step.
    pub progress: &'a (dyn Fn(Step<'_>) + Sync),
}

/// Where a run is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'s> {
    /// Number of the step, from 0.
    pub index: u64,
    /// Number of steps.
    pub steps: u64,
    /// What begins.
    pub what: &'s str,
}

/// What a method found.
pub(super) struct Found {
    /// What was measured with what.
    pub about: About,
    /// What was measured.
    pub data: DataTable,
    /// What a reader must know before believing the figures.
    pub notes: Vec<String>,
}

/// Runs an experiment.
///
/// # Errors
/// Where nothing can be measured, or what is measured fails. What is missing of that which was asked for is a note.
pub fn run(definition: &Definition, options: &RunOptions<'_>) -> Result<Results, RunError> {
    let found = definition.method.run(options)?;
    let machine = Machine::here(None);
    let mut notes = Vec::new();
    if !machine.optimised {
        let remedy = "make it again with a release build (cargo run --release)";
        notes.push(format!("A build with the checks of a debug build was measured: {remedy}."));
    }
    notes.extend(found.notes);
    let record = Record {
        format: FORMAT,
        experiment: definition.clone(),
        date: rfc3339(options.now),
        command: options.command.clone(),
        seed: options.seed,
        machine,
        about: found.about,
        notes,
    };
    Ok(Results { record, data: found.data })
}
