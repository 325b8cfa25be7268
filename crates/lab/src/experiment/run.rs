//! Options and findings of a run.

use super::error::RunError;
use crate::data::{DataColumn, DataTable};
use crate::measure::level::{Level, LevelError};
use serde::Serialize;
use std::path::Path;

/// Options of a run, in addition to the parameters of the experiment.
pub struct RunOptions<'a> {
    /// Seed of all random values except keys.
    pub seed: u64,
    /// Current time for the record, in seconds since 1970.
    pub now: u32,
    /// Command line, for the record.
    pub command: String,
    /// Whether the user selected the levels. If so, a level without its program is an error.
    /// Otherwise it is omitted with a note.
    pub levels_chosen: bool,
    /// Path of the program `nonesuch`. The programs of the levels are in the same directory.
    pub program: &'a Path,
    /// Called before each step.
    pub progress: &'a (dyn Fn(Step<'_>) + Sync),
}

impl RunOptions<'_> {
    /// Reports the start of step `index` (starting at 0) of `steps`.
    pub(crate) fn begin(&self, index: usize, steps: usize, what: &str) {
        (self.progress)(Step { index: index as u64, steps: steps as u64, what });
    }
}

/// Progress of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step<'s> {
    /// Number of the step, starting at 0.
    pub index: u64,
    /// Number of steps.
    pub steps: u64,
    /// Description of the step.
    pub what: &'s str,
}

/// Findings of a run: rows, and notes about conditions that affect how far the figures can be
/// trusted.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) data: DataTable,
    pub(crate) notes: Vec<String>,
}

impl Findings {
    /// Creates empty findings for data with these columns.
    pub(crate) const fn new(columns: Vec<DataColumn>) -> Self {
        Self { data: DataTable::new(columns), notes: Vec::new() }
    }

    /// Adds a row from a structure with one field for each column.
    pub(crate) fn push(&mut self, row: &impl Serialize) -> Result<(), RunError> {
        Ok(self.data.push_row(row)?)
    }

    /// Returns the result for a level. If the level cannot be measured, fails if the user selected
    /// the level; otherwise adds a note and returns `None`.
    pub(crate) fn level_or_note<T>(
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

    /// Adds a note if the program of a level has another version.
    pub(crate) fn check_version(&mut self, level: Level, version: &str) {
        if version != env!("CARGO_PKG_VERSION") {
            self.note(format!("The program of level {} has version {version}.", level.name()));
        }
    }

    /// Adds a note, unless the same note exists.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}
