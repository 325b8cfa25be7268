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

use self::jobs::Job;
use self::parameters::ChosenAlgorithm;
use self::plan::{PlanInput, Trial};
use self::prepare::{LevelSigner, Zone};
use super::error::{RunError, temporary_directory};
use super::parameters::deduplicate;
use super::run::{Findings, RunOptions};
use crate::conditions::Conditions;
use crate::measure::cost::{Costs, estimate_signatures};
use crate::measure::job::FinishedJob;
use nonesuch_dnssec::Mechanism;
use serde::Serialize;
use serde_json::json;
use std::collections::{HashMap, HashSet};
use std::path::PathBuf;
use std::time::Instant;

/// A row of the data: the result of one job. The fields are the columns. Texts are empty and
/// figures `None` if they do not apply to the job, or could not be measured.
#[derive(Debug, Default, Serialize)]
struct Row {
    /// Number of the run, starting at 0.
    run: u32,
    job: Job,
    /// Zone as in the parameter `zones`.
    zone: String,
    /// Instruction level; empty for a transfer, which this program measures.
    level: &'static str,
    /// Algorithm, and key length if it has several. Empty for an unsigned zone, like `denial`.
    algorithm: String,
    denial: String,
    /// Number of signatures that the job generated or verified.
    signatures: Option<u64>,
    /// Records of the signed zone, or of the transfer.
    records: Option<u64>,
    /// Size of the output file, or of all messages of the transfer.
    octets: Option<u64>,
    /// Number of messages of the transfer.
    messages: Option<u64>,
    /// Duration of the process; for serving, the time until the server is ready.
    wall_seconds: Option<f64>,
    /// CPU time in user mode.
    user_seconds: Option<f64>,
    /// CPU time in kernel mode.
    system_seconds: Option<f64>,
    /// Maximum resident memory of the process; for serving, the proportional set size of the server
    /// when it is ready, or its resident memory if the system does not provide that size.
    memory_kib: Option<u64>,
    #[serde(flatten)]
    conditions: Conditions,
}

/// Runs the experiment, adds its rows and notes to `findings`, and returns its description for the
/// record: zones, levels, algorithms, CPU, omitted trials and duration.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    parameters.cpu.run_bound(|cpu| Runner::prepare(parameters, options, findings)?.measure(cpu))
}

struct Runner<'a> {
    options: &'a RunOptions<'a>,
    findings: &'a mut Findings,
    begun: Instant,
    parameters: &'a Parameters,
    denials: Vec<Mechanism>,
    choices: Vec<ChosenAlgorithm>,
    zones: Vec<Zone>,
    /// Program of each measured level.
    signers: Vec<LevelSigner>,
    /// Temporary directory with zones, keys and results. Dropping it removes the files.
    directory: tempfile::TempDir,
    /// Directories in which keys have been generated.
    keys: HashSet<PathBuf>,
    costs: Costs,
    /// Number of signatures of each zone by mechanism, as far as measured.
    known: Vec<HashMap<Mechanism, u64>>,
    /// Trials that the time limit excluded.
    left_out: Vec<Trial>,
    /// Measured trials, with `run` set to 0.
    measured: HashSet<Trial>,
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
            denials: deduplicate(parameters.denial.iter().map(|denial| denial.0)),
            choices: parameters.choices(),
            zones: Vec::new(),
            signers: Vec::new(),
            directory: temporary_directory(&std::env::temp_dir())?,
            keys: HashSet::new(),
            costs: Costs::default(),
            known: vec![HashMap::new(); parameters.zones.len()],
            left_out: Vec::new(),
            measured: HashSet::new(),
        };
        runner.add_levels()?;
        runner.require_trials()?;
        runner.add_zones()?;
        Ok(runner)
    }

    /// Fails if there is nothing to measure.
    fn require_trials(&self) -> Result<(), RunError> {
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
        let trials = PlanInput {
            runs: self.parameters.runs.value(),
            zones: self.zones.len(),
            denials: self.denials.len(),
            levels: self.signers.len(),
            choices: &self.choices,
            limited: self.parameters.limit().is_some(),
        }
        .trials();
        self.measure_unsigned()?;
        for (index, trial) in trials.iter().enumerate() {
            self.options.begin(index, trials.len(), &self.describe(*trial));
            if self.fits_time_limit(*trial) {
                self.measure_trial(*trial)?;
                self.measured.insert(Trial { run: 0, ..*trial });
            } else {
                self.left_out.push(*trial);
            }
        }
        self.findings.note_failures();
        if self.findings.data.rows().is_empty() {
            return Err(RunError::Nothing { reason: self.findings.notes.join(" ") });
        }
        Ok(json!({
            "zones": self.zones,
            "levels": self.signers,
            "algorithms": self.choices.iter().map(ChosenAlgorithm::info).collect::<Vec<_>>(),
            "cpu": cpu,
            "left_out": self.describe_left_out(),
            "seconds": self.begun.elapsed().as_secs_f64(),
        }))
    }

    fn describe(&self, trial: Trial) -> String {
        let (zone, denial) = (&self.zones[trial.zone].prepared.zone, self.denials[trial.denial]);
        let scheme = self.choices[trial.algorithm].choice.scheme();
        format!("{zone}, {scheme}, {denial}, {}", self.signers[trial.level].level)
    }

    /// Whether the trial is expected to end within the time limit. Without a limit, every trial is.
    fn fits_time_limit(&self, trial: Trial) -> bool {
        let Some(limit) = self.parameters.limit() else { return true };
        let (zone, denial) = (&self.zones[trial.zone], self.denials[trial.denial]);
        let estimated = || estimate_signatures(&zone.prepared.counts, denial);
        let signatures = self.known[trial.zone].get(&denial).map_or_else(estimated, |known| *known as f64);
        let extras = zone.extras && trial.level == 0;
        let expected = self.costs.expected_seconds(
            trial.costs(),
            self.choices[trial.algorithm].choice,
            signatures,
            extras,
        );
        self.begun.elapsed().as_secs_f64() + expected <= limit.as_secs_f64()
    }

    /// Describes the trials that were measured in no run, with one line for each zone and
    /// mechanism.
    fn describe_left_out(&self) -> Vec<String> {
        // With a time limit, the plan has a trial of the base algorithm twice in a run. If only one
        // of the two is left out, the trial is not missing.
        let is_missing = |trial: &&Trial| trial.run == 0 && !self.measured.contains(trial);
        let missing: Vec<&Trial> = self.left_out.iter().filter(is_missing).collect();
        let lines = deduplicate(missing.iter().map(|trial| [trial.zone, trial.denial]));
        let line = |[zone, denial]: [usize; 2]| {
            let own = missing.iter().filter(|trial| [trial.zone, trial.denial] == [zone, denial]);
            let descriptions = deduplicate(own.map(|trial| {
                format!(
                    "{} at {}",
                    self.choices[trial.algorithm].choice.scheme(),
                    self.signers[trial.level].level
                )
            }));
            let denial = self.denials[denial].entry().title;
            format!("{}, {denial}: {}", self.zones[zone].prepared.zone, descriptions.join(", "))
        };
        lines.into_iter().map(line).collect()
    }

    /// Returns a row with the time and memory of a process.
    fn row_with_costs(&self, trial: Trial, job: Job, ended: &FinishedJob) -> Row {
        Row {
            wall_seconds: Some(ended.wall_seconds),
            user_seconds: Some(ended.user_seconds),
            system_seconds: Some(ended.system_seconds),
            memory_kib: Some(ended.peak_kib),
            conditions: ended.conditions,
            ..self.empty_row(trial, job)
        }
    }

    /// Returns a row without figures.
    fn empty_row(&self, trial: Trial, job: Job) -> Row {
        Row {
            run: trial.run,
            job,
            zone: self.zones[trial.zone].prepared.zone.clone(),
            level: self.signers[trial.level].level,
            algorithm: self.choices[trial.algorithm].choice.to_string(),
            denial: self.denials[trial.denial].to_string(),
            ..Row::default()
        }
    }
}

#[cfg(test)]
mod tests;
