//! Zone signing: the cost of signing and verifying a top-level domain with each algorithm, denial
//! mechanism and instruction level, relative to ECDSA P-256.
//!
//! The method is that of "Evaluating post-quantum cryptography in DNSSEC signing for top-level
//! domain operators" (SIDN, TMA 2025): the program that an operator would run signs and verifies
//! complete zone files, and the experiment records the size of the result. Each job is a separate
//! process. The operating system reports its CPU time and memory. Each run measures all algorithms
//! and levels in turn, so that a disturbance of the machine affects all of them.

mod jobs;
mod parameters;
mod plan;
mod prepare;

pub(crate) use parameters::Parameters;

use self::jobs::{Failure, Job};
use self::parameters::ChosenAlgorithm;
use self::plan::{Cell, Costs, Shape, signatures};
use self::prepare::{Signer, Zone};
use super::error::{RunError, temporary_folder};
use super::parameters::each_once;
use super::run::{Findings, RunOptions};
use crate::measure::job::FinishedJob;
use nonesuch_dnssec::Mechanism;
use serde::Serialize;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Instant;

/// A row of the data: the result of one job. Texts are empty and figures `None` if they do not
/// apply to the job.
#[derive(Debug, Default, Serialize)]
struct Row {
    run: u32,
    job: Job,
    zone: String,
    level: &'static str,
    algorithm: String,
    denial: String,
    signatures: Option<u64>,
    records: Option<u64>,
    octets: Option<u64>,
    messages: Option<u64>,
    wall_seconds: Option<f64>,
    user_seconds: Option<f64>,
    system_seconds: Option<f64>,
    memory_kib: Option<u64>,
}

/// Runs the experiment and returns its description for the record.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    parameters.cpu.keep(|cpu| Runner::prepare(parameters, options, findings)?.measure(cpu))
}

struct Runner<'a> {
    options: &'a RunOptions<'a>,
    findings: &'a mut Findings,
    begun: Instant,
    parameters: &'a Parameters,
    denials: Vec<Mechanism>,
    choices: Vec<ChosenAlgorithm>,
    zones: Vec<Zone>,
    signers: Vec<Signer>,
    /// Temporary directory with zones, keys and results. Dropping it removes the files.
    folder: tempfile::TempDir,
    /// Directories in which keys have been generated.
    keys: HashSet<PathBuf>,
    costs: Costs,
    /// Number of signatures of each zone by mechanism, as far as measured.
    known: Vec<HashMap<Mechanism, u64>>,
    left_out: Vec<Cell>,
    /// Measured cells, with `run` set to 0.
    measured: HashSet<Cell>,
    failures: Vec<Failure>,
}

impl<'a> Runner<'a> {
    fn prepare(
        parameters: &'a Parameters,
        options: &'a RunOptions<'a>,
        findings: &'a mut Findings,
    ) -> Result<Self, RunError> {
        let mut runner = Self {
            options,
            findings,
            begun: Instant::now(),
            parameters,
            denials: each_once(parameters.denial.iter().map(|denial| denial.0)),
            choices: parameters.choices(),
            zones: Vec::new(),
            signers: Vec::new(),
            folder: temporary_folder(&std::env::temp_dir())?,
            keys: HashSet::new(),
            costs: Costs::default(),
            known: vec![HashMap::new(); parameters.zones.len()],
            left_out: Vec::new(),
            measured: HashSet::new(),
            failures: Vec::new(),
        };
        runner.add_levels()?;
        runner.refuse_nothing()?;
        runner.add_zones()?;
        Ok(runner)
    }

    fn refuse_nothing(&self) -> Result<(), RunError> {
        let reason = if self.signers.is_empty() {
            self.findings.notes.join(" ")
        } else if self.choices.is_empty() || self.denials.is_empty() || self.parameters.zones.is_empty() {
            "set at least one algorithm, one denial mechanism and one zone".to_owned()
        } else {
            return Ok(());
        };
        Err(RunError::Nothing { reason })
    }

    fn measure(mut self, cpu: Option<u64>) -> Result<serde_json::Value, RunError> {
        let cells = Shape {
            runs: self.parameters.runs.value(),
            zones: self.zones.len(),
            denials: self.denials.len(),
            levels: self.signers.len(),
            choices: &self.choices,
            limited: self.parameters.limit().is_some(),
        }
        .cells();
        self.measure_unsigned()?;
        for (index, cell) in cells.iter().enumerate() {
            self.options.begin(index, cells.len(), &self.describe(*cell));
            if self.has_time(*cell) {
                self.measure_cell(*cell)?;
                self.measured.insert(Cell { run: 0, ..*cell });
            } else {
                self.left_out.push(*cell);
            }
        }
        self.note_failures();
        if self.findings.data.rows().is_empty() {
            return Err(RunError::Nothing { reason: self.findings.notes.join(" ") });
        }
        Ok(json!({
            "zones": self.zones,
            "levels": self.signers,
            "algorithms": self.choices.iter().map(ChosenAlgorithm::facts).collect::<Vec<_>>(),
            "cpu": cpu,
            "left_out": self.describe_left_out(),
            "seconds": self.begun.elapsed().as_secs_f64(),
        }))
    }

    fn describe(&self, cell: Cell) -> String {
        let (zone, denial) = (&self.zones[cell.zone].zone, self.denials[cell.denial]);
        let scheme = self.choices[cell.algorithm].choice.scheme();
        format!("{zone}, {scheme}, {denial}, {}", self.signers[cell.level].level)
    }

    /// Whether the cell is expected to end within the time limit.
    fn has_time(&self, cell: Cell) -> bool {
        let Some(limit) = self.parameters.limit() else { return true };
        let (zone, denial) = (&self.zones[cell.zone], self.denials[cell.denial]);
        let guess = || signatures(&zone.counts, denial);
        let signatures = self.known[cell.zone].get(&denial).map_or_else(guess, |known| *known as f64);
        let extras = zone.extras && cell.level == 0;
        let expected = self.costs.expect(cell, self.choices[cell.algorithm].choice, signatures, extras);
        self.begun.elapsed().as_secs_f64() + expected <= limit.as_secs_f64()
    }

    /// Describes the cells that were never measured, with one line for each zone and mechanism.
    fn describe_left_out(&self) -> Vec<String> {
        // The base algorithm has more than one cell in a run.
        let is_missing = |cell: &&Cell| cell.run == 0 && !self.measured.contains(cell);
        let missing: Vec<&Cell> = self.left_out.iter().filter(is_missing).collect();
        let lines = each_once(missing.iter().map(|cell| [cell.zone, cell.denial]));
        let line = |[zone, denial]: [usize; 2]| {
            let own = missing.iter().filter(|cell| [cell.zone, cell.denial] == [zone, denial]);
            let whats = each_once(own.map(|cell| {
                format!(
                    "{} at {}",
                    self.choices[cell.algorithm].choice.scheme(),
                    self.signers[cell.level].level
                )
            }));
            let denial = self.denials[denial].entry().title;
            format!("{}, {denial}: {}", self.zones[zone].zone, whats.join(", "))
        };
        lines.into_iter().map(line).collect()
    }

    /// Returns a row with the cost of a process.
    fn row(&self, cell: Cell, job: Job, ended: &FinishedJob) -> Row {
        Row {
            wall_seconds: Some(ended.wall_seconds),
            user_seconds: Some(ended.user_seconds),
            system_seconds: Some(ended.system_seconds),
            memory_kib: Some(ended.peak_kib),
            ..self.empty_row(cell, job)
        }
    }

    fn empty_row(&self, cell: Cell, job: Job) -> Row {
        Row {
            run: cell.run,
            job,
            zone: self.zones[cell.zone].zone.clone(),
            level: self.signers[cell.level].level,
            algorithm: self.choices[cell.algorithm].choice.to_string(),
            denial: self.denials[cell.denial].to_string(),
            ..Row::default()
        }
    }
}

#[cfg(test)]
mod tests;
