//! What a run is given, and where it leaves what it finds.

use super::error::RunError;
use crate::data::{DataColumn, DataTable};
use crate::measure::level::{Level, LevelError};
use serde::Serialize;
use std::path::Path;

/// What an experiment is run with, beside its parameters.
pub struct RunOptions<'a> {
    /// Seed of all that is random but keys.
    pub seed: u64,
    /// The time, in seconds since 1970, for the record.
    pub now: u32,
    /// The command line, for the record.
    pub command: String,
    /// Whether the user chose the levels: one without its program is an error then, and else left out with a note.
    pub levels_chosen: bool,
    /// The program `nonesuch`: other forms of it are looked for beside it.
    pub program: &'a Path,
    /// Called before each step.
    pub progress: &'a (dyn Fn(Step<'_>) + Sync),
}

impl RunOptions<'_> {
    pub(crate) fn begin(&self, index: usize, steps: usize, what: &str) {
        (self.progress)(Step { index: index as u64, steps: steps as u64, what });
    }
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

/// What a run finds: rows, and what a reader must know before believing the figures.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) data: DataTable,
    pub(crate) notes: Vec<String>,
}

impl Findings {
    /// None yet, of data with these columns.
    pub(crate) const fn new(columns: Vec<DataColumn>) -> Self {
        Self { data: DataTable::new(columns), notes: Vec::new() }
    }

    /// Adds a row: a structure with a field for each column.
    pub(crate) fn push(&mut self, row: &impl Serialize) -> Result<(), RunError> {
        Ok(self.data.push_row(row)?)
    }

    /// What was found for a level. One that cannot be measured is an error where the user chose it, and else left out.
    pub(crate) fn level<T>(
        &mut self,
        options: &RunOptions<'_>,
        found: Result<T, LevelError>,
    ) -> Result<Option<T>, RunError> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(source) if options.levels_chosen => Err(RunError::Level { source }),
            Err(reason) => {
                self.note(format!("Left out: {reason}."));
                Ok(None)
            }
        }
    }

    /// Notes that the program of a level is of another version.
    pub(crate) fn check_version(&mut self, level: Level, version: &str) {
        if version != env!("CARGO_PKG_VERSION") {
            self.note(format!("The program of level {} is of version {version}.", level.name()));
        }
    }

    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
