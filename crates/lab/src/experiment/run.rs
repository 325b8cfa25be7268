//! Options and findings of a run.

use super::error::RunError;
use crate::data::{DataColumn, DataTable};
use crate::measure::Subject;
use crate::measure::backend::ProberBackend;
use crate::measure::bench::make_key;
use crate::measure::level::{Level, LevelError, LevelProgram};
use crate::measure::probe::Ready;
use crate::measure::prober::ProberError;
use crate::peers::Peer;
use crate::record::{LIMITED_BY, MACHINE_ID, OTHERS_CPU, RUN_ID, RunRecord, measurement_columns};
use serde::Serialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::fmt::Display;
use std::path::Path;

/// Share of the measured wall time in which the measured thread does not have the CPU. Above it,
/// the report contains a warning.
const MAX_LOST_CPU_SHARE: f64 = 0.02;

/// Options of a run, in addition to the parameters of the experiment.
pub struct RunOptions<'a> {
    /// Seed of all random values except keys.
    pub seed: u64,
    /// Current time for the record, in seconds since 1970.
    pub now: u32,
    /// Command line, for the record.
    pub command: String,
    /// Commit of this program for the record; `unknown` if it is not known.
    pub commit: &'a str,
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

    /// Returns the error of a program that does not measure; `None` is this program.
    pub(crate) fn prober_fault(&self, program: Option<&LevelProgram>, source: ProberError) -> RunError {
        let program = program.map_or(self.program, |program| &program.program).to_path_buf();
        RunError::Prober { program, source }
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
    /// Versions of the measured programs of others, by name.
    pub(crate) peers: BTreeMap<String, String>,
    /// Identifiers of the run and of the machine.
    run_id: String,
    machine_id: String,
    /// Wall time of all measurements with known CPU time, in seconds.
    wall: f64,
    /// CPU time of these measurements, in seconds.
    cpu: f64,
    failures: Vec<Failure>,
}

/// Jobs of the same kind that failed for the same reason.
#[derive(Debug)]
struct Failure {
    job: String,
    /// What the first of these jobs measured.
    first: String,
    reason: String,
    /// Number of these jobs.
    count: u64,
}

impl Findings {
    /// Creates empty findings for data with these columns, and with those of all measurements.
    pub(crate) fn new(mut columns: Vec<DataColumn>) -> Self {
        columns.extend(measurement_columns());
        Self {
            data: DataTable::new(columns),
            notes: Vec::new(),
            peers: BTreeMap::new(),
            run_id: String::new(),
            machine_id: String::new(),
            wall: 0.0,
            cpu: 0.0,
            failures: Vec::new(),
        }
    }

    /// Sets the identifiers that each row has.
    pub(crate) fn of_run(self, run: &RunRecord) -> Self {
        Self { run_id: run.run_id.clone(), machine_id: run.machine.id.clone(), ..self }
    }

    /// Adds the installed versions of measured peers to the record of the run.
    pub(crate) fn record_peers(&mut self, peers: impl IntoIterator<Item = Peer>) {
        for peer in peers {
            if let Some(version) = peer.version() {
                self.peers.entry(peer.info().name.to_owned()).or_insert(version);
            }
        }
    }

    /// Adds a row from a structure with one field for each column of the experiment, and the fields
    /// of `Conditions` if they were measured.
    pub(crate) fn push(&mut self, row: &impl Serialize) -> Result<(), RunError> {
        let Ok(Value::Object(mut fields)) = serde_json::to_value(row) else {
            return Ok(self.data.push_row(row)?);
        };
        let defaults = [
            (RUN_ID, self.run_id.as_str().into()),
            (MACHINE_ID, self.machine_id.as_str().into()),
            (OTHERS_CPU, Value::Null),
            (LIMITED_BY, Value::Null),
        ];
        for (name, default) in defaults {
            fields.entry(name).or_insert(default);
        }
        Ok(self.data.push_row(&fields)?)
    }

    /// Returns the result for a level. If the level cannot be measured, fails if the user selected
    /// the level; otherwise adds a note and returns `None`.
    fn level_or_note<T>(
        &mut self,
        options: &RunOptions<'_>,
        found: Result<T, LevelError>,
    ) -> Result<Option<T>, RunError> {
        match found {
            Ok(found) => Ok(Some(found)),
            Err(source) if options.levels_chosen => Err(RunError::Level { source }),
            Err(reason) => Ok(self.found_or_note(Err(reason))),
        }
    }

    /// Returns the result. If it is an error, adds a note and returns `None`.
    pub(crate) fn found_or_note<T>(&mut self, found: Result<T, impl Display>) -> Option<T> {
        found.map_err(|reason| self.note(format!("Left out: {reason}."))).ok()
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

    /// Prepares the subjects of `keys` in the program of a level. If the level cannot be measured,
    /// the result is as that of [`Self::level_or_note`]. Adds notes if the program has another
    /// version or commit, or cannot measure a subject.
    pub(crate) fn prepare_level(
        &mut self,
        options: &RunOptions<'_>,
        level: Level,
        keys: &[(Subject, String)],
    ) -> Result<Option<ProberBackend>, RunError> {
        let Some(program) = self.level_or_note(options, level.find(options.program))? else {
            return Ok(None);
        };
        let backend = match ProberBackend::prepare(level, program.clone(), keys, options.seed, options.commit)
        {
            Ok(backend) => backend,
            Err(source) => {
                let fault = options.prober_fault(program.as_ref(), source);
                if options.levels_chosen {
                    return Err(fault);
                }
                self.note(format!("Left out: {}: {fault}.", level.name()));
                return Ok(None);
            }
        };
        self.note_other_build(level, &backend.prober.ready, options.commit);
        for (subject, reason) in &backend.prober.ready.failed {
            self.note(format!("Left out: {subject} at level {}: {reason}.", level.name()));
        }
        Ok(Some(backend))
    }

    /// Adds notes if the program of a level has another version than this program, or is not of
    /// `commit`.
    fn note_other_build(&mut self, level: Level, ready: &Ready, commit: &str) {
        let level = level.name();
        if ready.version != env!("CARGO_PKG_VERSION") {
            self.note(format!("The program of level {level} has version {}.", ready.version));
        }
        if ready.commit != commit {
            let found = if ready.commit.is_empty() { "an unknown commit" } else { &ready.commit };
            self.note(format!(
                "The program of level {level} is of {found}, and this program of {commit}: build it again with \
                `tools/build-level {level}`."
            ));
        }
    }

    /// Adds the times of a measurement for [`Self::check_disturbance`], in seconds.
    pub(crate) fn add_times(&mut self, wall: Option<f64>, cpu: Option<f64>) {
        if let Some((wall, cpu)) = wall.zip(cpu) {
            self.wall += wall;
            self.cpu += cpu;
        }
    }

    /// Adds a warning if other programs used the CPU during the measurements.
    pub(crate) fn check_disturbance(&mut self) {
        let lost = 1.0 - self.cpu / self.wall;
        if self.wall > 0.0 && lost > MAX_LOST_CPU_SHARE {
            self.note(format!(
                "Other programs used the processor for {:.0} % of the time: on average, the rates are too low by \
                this percentage, and they vary more than on an idle machine.",
                100.0 * lost
            ));
        }
    }

    /// Returns the error that there is nothing to measure: because of the notes, or, without notes,
    /// because of the parameters that `advice` names.
    pub(crate) fn nothing_to_measure(&self, advice: &str) -> RunError {
        let reason = if self.notes.is_empty() { advice.to_owned() } else { self.notes.join(" ") };
        RunError::Nothing { reason }
    }

    /// Records that a job failed. `place` describes what it measured.
    pub(crate) fn record_failure(&mut self, job: &str, place: String, reason: &impl Display) {
        let reason = reason.to_string();
        match self.failures.iter_mut().find(|known| known.job == job && known.reason == reason) {
            Some(known) => known.count += 1,
            None => self.failures.push(Failure { job: job.to_owned(), first: place, reason, count: 1 }),
        }
    }

    /// Adds a note for each reason for which jobs failed.
    pub(crate) fn note_failures(&mut self) {
        for Failure { job, first, reason, count } in std::mem::take(&mut self.failures) {
            let reason = reason.trim_end_matches('.');
            let more =
                if count > 1 { format!(" (first of {count} identical failures)") } else { String::new() };
            self.note(format!("Left out: {job}, {first}{more}: {reason}."));
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
    fn jobs_that_fail_for_one_reason_are_one_note() {
        let mut findings = Findings::new(Vec::new());
        for (job, place, reason) in [("sign", "a", "no."), ("sign", "b", "no."), ("verify", "a", "no")] {
            findings.record_failure(job, place.to_owned(), &reason);
        }
        findings.note_failures();
        let expected = ["Left out: sign, a (first of 2 identical failures): no.", "Left out: verify, a: no."];
        assert_eq!(findings.notes, expected);
    }

    #[test]
    fn a_program_of_another_commit_is_noted() {
        let notes = |commit: &str| {
            let version = env!("CARGO_PKG_VERSION").to_owned();
            let ready = Ready { version, commit: commit.to_owned(), ..Ready::default() };
            let mut findings = Findings::new(Vec::new());
            findings.note_other_build(Level::X86_64V2, &ready, "v1-3-gabc");
            findings.notes
        };
        assert_eq!(notes("v1-3-gabc"), [""; 0]);
        for (commit, found) in [("v1-2-gdef", "is of v1-2-gdef"), ("", "is of an unknown commit")] {
            let notes = notes(commit);
            assert!(notes.len() == 1 && notes[0].contains(found), "{notes:?}");
            assert!(notes[0].contains("tools/build-level x86-64-v2"), "{notes:?}");
        }
    }

    #[test]
    fn other_programs_on_the_processor_are_noted() {
        let note = |wall, cpu| {
            let mut findings = Findings::new(Vec::new());
            findings.add_times(Some(wall), Some(cpu));
            findings.add_times(Some(100.0), None);
            findings.check_disturbance();
            findings.notes.pop()
        };
        assert_eq!((note(10.0, 9.9), note(0.0, 0.0)), (None, None));
        let note = note(10.0, 7.5).expect("a note");
        assert!(note.contains(" 25 % "), "{note}");
    }
}
