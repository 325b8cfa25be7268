//! Options and findings of a run.

use super::error::RunError;
use crate::data::{DataColumn, DataTable};
use crate::measure::Subject;
use crate::measure::bench::make_key;
use crate::measure::level::{Level, LevelError};
use serde::Serialize;
use std::path::Path;

/// Share of the measured wall time in which the measured thread does not have the CPU. Above it, the
/// report contains a warning.
const MAX_LOST_CPU_SHARE: f64 = 0.02;

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

    /// Generates the keys of the subjects. All programs measure with the same keys. A subject whose
    /// key cannot be generated becomes a note.
    pub(crate) fn make_keys(&mut self, subjects: &[Subject]) -> Vec<(Subject, String)> {
        let mut keys = Vec::new();
        for subject in subjects {
            match make_key(*subject) {
                Ok(key) => keys.push((*subject, key)),
                Err(error) => self.note(format!("Left out: {subject}: {error}.")),
            }
        }
        keys
    }

    /// Adds a note if the program of a level has another version.
    pub(crate) fn check_version(&mut self, level: Level, version: &str) {
        if version != env!("CARGO_PKG_VERSION") {
            self.note(format!("The program of level {} has version {version}.", level.name()));
        }
    }

    /// Adds a warning if other programs used the CPU during the measurements. `wall` and `cpu` are
    /// the times of the measured threads, in seconds.
    pub(crate) fn check_disturbance(&mut self, wall: f64, cpu: f64) {
        let lost = 1.0 - cpu / wall;
        if wall > 0.0 && lost > MAX_LOST_CPU_SHARE {
            self.note(format!(
                "Other programs used the processor for {:.0} % of the time: on average, the rates are too low by \
                this percentage, and they vary more than on an idle machine.",
                100.0 * lost
            ));
        }
    }

    /// Adds a note, unless the same note exists.
    pub(crate) fn note(&mut self, note: String) {
        if !self.notes.contains(&note) {
            self.notes.push(note);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_programs_on_the_processor_are_noted() {
        let note = |wall, cpu| {
            let mut findings = Findings::new(Vec::new());
            findings.check_disturbance(wall, cpu);
            findings.notes.pop()
        };
        assert_eq!((note(10.0, 9.9), note(0.0, 0.0)), (None, None));
        let note = note(10.0, 7.5).expect("a note");
        assert!(note.contains(" 25 % "), "{note}");
    }
}
