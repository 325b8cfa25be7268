//! The jobs of a trial. A failed job has no row, but a note. It does not end the experiment,
//! because hours of other measurements would be lost.

use super::plan::Trial;
use super::{Row, Runner};
use crate::experiment::error::{RunError, temporary_directory};
use crate::measure::job::{self, FinishedJob, JobError};
use crate::measure::zone_commands::ZoneCommands;
use crate::process;
use serde::Serialize;
use std::fmt::Display;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Instant;

/// Time from signing to re-signing, in seconds. It corresponds to the interval at which registries
/// publish changes.
const RESIGN_AFTER_SECONDS: u32 = 1800;

/// Kind of job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Job {
    /// Signs a complete zone, from zone file to zone file.
    #[default]
    Sign,
    /// Verifies the signed zone file.
    Verify,
    /// Signs a changed zone file and reuses signatures of the signed zone file.
    Resign,
    /// Like `Resign`, from a compiled signed zone and a change set.
    ResignCompiled,
    /// Starts a server with the zone, and ends when the server is ready.
    Serve,
    /// Packs a zone into the messages of a transfer.
    Transfer,
}

impl Job {
    /// Returns the name of the job in the data.
    fn name(self) -> String {
        serde_json::json!(self).as_str().unwrap_or_default().to_owned()
    }
}

impl Runner<'_> {
    /// Signs and verifies the zone. At the first level, also measures serving, transfer and
    /// re-signing, if `served` selects the zone.
    pub(super) fn measure_trial(&mut self, trial: Trial) -> Result<(), RunError> {
        let keys = match self.keys(trial.zone, trial.algorithm) {
            Ok(keys) => keys,
            Err(reason) => {
                let scheme = self.choices[trial.algorithm].choice.scheme();
                self.findings.note(format!("Left out: {scheme}: cannot generate keys: {reason}."));
                return Ok(());
            }
        };
        let directory = temporary_directory(self.directory.path())?;
        let signed = directory.path().join("signed");
        let begun = Instant::now();
        let (file, denial) = (&self.zones[trial.zone].prepared.file, self.denials[trial.denial]);
        let mut command = self.commands(trial).sign(Some(file), &keys, denial, self.options.now, &signed);
        let Some(row) = self.sign(trial, Job::Sign, &mut command, &signed)? else { return Ok(()) };
        self.verify(trial, &signed)?;
        let signatures = row.signatures.unwrap_or_default();
        self.costs.record(trial.costs(), signatures, begun.elapsed().as_secs_f64());
        self.known[trial.zone].insert(self.denials[trial.denial], signatures);
        if self.zones[trial.zone].extras && trial.level == 0 {
            let begun = Instant::now();
            self.serve(self.empty_row(trial, Job::Serve), &signed, trial)?;
            self.transfer(self.empty_row(trial, Job::Transfer), &signed, trial)?;
            self.resign(trial, &keys, &signed, directory.path())?;
            self.costs.record_extras(signatures, begun.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// Measures serving and transfer of the unsigned zones, as the baseline.
    pub(super) fn measure_unsigned(&mut self) -> Result<(), RunError> {
        for place in 0..self.zones.len() {
            if self.zones[place].extras {
                let file = self.zones[place].prepared.file.clone();
                let trial = Trial { run: 0, zone: place, denial: 0, algorithm: 0, level: 0 };
                let row = |job| Row {
                    algorithm: String::new(),
                    denial: String::new(),
                    ..self.empty_row(trial, job)
                };
                let (serve, transfer) = (row(Job::Serve), row(Job::Transfer));
                self.serve(serve, &file, trial)?;
                self.transfer(transfer, &file, trial)?;
            }
        }
        Ok(())
    }

    /// Returns the commands of the level's program for the zone.
    fn commands(&self, trial: Trial) -> ZoneCommands<'_> {
        let origin = &self.zones[trial.zone].prepared.counts.origin;
        ZoneCommands { program: &self.signers[trial.level].program, origin }
    }

    /// Runs a job that signs a zone, and adds and returns its row. Returns `None` if the job
    /// failed.
    fn sign(
        &mut self,
        trial: Trial,
        job: Job,
        command: &mut Command,
        out: &Path,
    ) -> Result<Option<Row>, RunError> {
        let Some(ended) = self.run_or_record(trial, job, command) else { return Ok(None) };
        let row = Row {
            signatures: ended.number("signatures"),
            records: ended.number("records"),
            octets: fs::metadata(out).ok().map(|data| data.len()),
            ..self.row_with_costs(trial, job, &ended)
        };
        self.findings.push(&row)?;
        Ok(Some(row))
    }

    fn verify(&mut self, trial: Trial, signed: &Path) -> Result<(), RunError> {
        let mut command = self.commands(trial).verify(signed, self.options.now);
        let Some(ended) = self.run_or_record(trial, Job::Verify, &mut command) else { return Ok(()) };
        let row = Row {
            signatures: ended.number("signatures_verified"),
            ..self.row_with_costs(trial, Job::Verify, &ended)
        };
        self.findings.push(&row)
    }

    /// Re-signs the changed zone, half an hour after the first signing: from two zone files, and
    /// from a compiled zone and a change set. Does nothing if the zone has no changed version.
    fn resign(&mut self, trial: Trial, keys: &Path, signed: &Path, directory: &Path) -> Result<(), RunError> {
        let Some(changed) = self.zones[trial.zone].prepared.changed.clone() else { return Ok(()) };
        let now = self.options.now.wrapping_add(RESIGN_AFTER_SECONDS);
        let denial = self.denials[trial.denial];
        let out = directory.join("signed-again");
        let mut command = self.commands(trial).sign(Some(&changed), keys, denial, now, &out);
        command.arg("--previous").arg(signed);
        self.sign(trial, Job::Resign, &mut command, &out)?;
        let (image, out) = (directory.join("signed.image"), directory.join("signed-again.image"));
        let compiled = self.compile(trial, signed, &image, &changed);
        let Some(changes) = self.result_or_record(&self.empty_row(trial, Job::ResignCompiled), compiled)
        else {
            return Ok(());
        };
        let mut command = self.commands(trial).sign(None, keys, denial, now, &out);
        command.arg("--previous").arg(&image).arg("--changes").arg(changes).arg("--compiled");
        self.sign(trial, Job::ResignCompiled, &mut command, &out).map(drop)
    }

    /// Prepares the files of a registry that signs every half hour: compiles the signed zone, and
    /// returns the path of the change set. This preparation is not measured. The change set is the
    /// same for all algorithms.
    fn compile(
        &self,
        trial: Trial,
        signed: &Path,
        image: &Path,
        changed: &Path,
    ) -> Result<PathBuf, JobError> {
        let commands = self.commands(trial);
        commands.compile(signed, image)?;
        let changes = changed.with_extension("changes");
        if !changes.exists() {
            commands.write_changes(&self.zones[trial.zone].prepared.file, changed, &changes)?;
        }
        Ok(changes)
    }

    /// Starts a server with the zone and records its memory and CPU time when it is ready. The
    /// server does not verify the signatures.
    fn serve(&mut self, mut row: Row, file: &Path, trial: Trial) -> Result<(), RunError> {
        let log = self.directory.path().join("log");
        let started = self.commands(trial).serve(file, self.options.now, &log);
        let Some(server) = self.result_or_record(&row, started) else { return Ok(()) };
        let (memory, cpu) = (process::memory(server.pid()), process::cpu_time(server.pid()));
        row.memory_kib = memory.map(|memory| memory.proportional_kib.unwrap_or(memory.resident_kib));
        row.wall_seconds = Some(server.ready_after.as_secs_f64());
        row.user_seconds = cpu.map(|cpu| cpu.user_us as f64 * 1e-6);
        row.system_seconds = cpu.map(|cpu| cpu.system_us as f64 * 1e-6);
        self.findings.push(&row)
    }

    /// Packs the zone into the messages of a transfer and records their number and size.
    fn transfer(&mut self, mut row: Row, file: &Path, trial: Trial) -> Result<(), RunError> {
        let preparer = self.preparer();
        let mut command = preparer.examiner();
        command.arg(file).args(["--transfer", "--origin", &self.zones[trial.zone].prepared.counts.origin]);
        let examined = preparer.examine(&mut command);
        let Some(found) = self.result_or_record(&row, examined) else { return Ok(()) };
        let transfer = found.transfer.unwrap_or_default();
        row.octets = Some(transfer.octets);
        row.messages = Some(transfer.messages);
        row.records = Some(transfer.records);
        row.level = "";
        self.findings.push(&row)
    }

    /// Runs a job until it ends. Returns `None` if the job failed.
    fn run_or_record(&mut self, trial: Trial, job: Job, command: &mut Command) -> Option<FinishedJob> {
        self.result_or_record(&self.empty_row(trial, job), job::run(command))
    }

    /// Returns the result of the job of this row. If the job failed, records the failure for a note
    /// and returns `None`.
    fn result_or_record<T>(&mut self, row: &Row, outcome: Result<T, impl Display>) -> Option<T> {
        let words = [&*row.zone, &row.algorithm, &row.denial, row.level];
        let place = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
        outcome.map_err(|reason| self.findings.record_failure(&row.job.name(), place, &reason)).ok()
    }
}
