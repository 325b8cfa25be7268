//! The jobs of a cell. A job that fails is told and left out: hours of other figures are not lost with it.

use super::plan::Cell;
use super::{Row, Runner};
use crate::experiment::error::{RunError, temporary_folder};
use crate::measure::job::{self, FinishedJob, JobError};
use crate::measure::server::{Server, serving};
use crate::process;
use serde::Serialize;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// From one signing to the next, seconds: registries publish changes about so often.
const LATER: u32 = 1800;
/// A server has so long to read its zone.
const READY_LIMIT: Duration = Duration::from_secs(1800);

/// What a job does.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Job {
    /// Signs a whole zone: from zone file to zone file.
    #[default]
    Sign,
    Verify,
    /// Signs a changed zone, with what can be kept of the signed one.
    Resign,
    /// The same from a compiled signed zone and a set of changes.
    ResignCompiled,
    /// Loads a zone to serve it.
    Serve,
    /// Packs a zone into the messages of a transfer.
    Transfer,
}

impl Job {
    /// The name, as the data have it.
    fn name(self) -> String {
        serde_json::json!(self).as_str().unwrap_or_default().to_owned()
    }
}

/// Jobs that failed for one reason.
pub(super) struct Failure {
    job: Job,
    what: String,
    fault: String,
    count: u64,
}

impl Runner<'_> {
    /// Signs and verifies; at the first level also serves, packs and signs again, where the zone is one of those.
    pub(super) fn measure_cell(&mut self, cell: Cell) -> Result<(), RunError> {
        let keys = match self.keys(cell.zone, cell.algorithm) {
            Ok(keys) => keys,
            Err(reason) => {
                let scheme = self.choices[cell.algorithm].choice.scheme();
                self.findings.note(format!("Left out: {scheme}: keys cannot be made: {reason}."));
                return Ok(());
            }
        };
        let folder = temporary_folder(self.folder.path())?;
        let signed = folder.path().join("signed");
        let begun = Instant::now();
        let file = &self.zones[cell.zone].file;
        let mut command = self.signing(cell, Some(file), &keys, &signed, self.options.now);
        let Some(row) = self.sign(cell, Job::Sign, &mut command, &signed)? else { return Ok(()) };
        self.verify(cell, &signed)?;
        let signatures = row.signatures.unwrap_or_default();
        self.costs.learn(cell, signatures, begun.elapsed().as_secs_f64());
        self.known[cell.zone].insert(self.denials[cell.denial], signatures);
        if self.zones[cell.zone].extras && cell.level == 0 {
            let begun = Instant::now();
            self.serve(self.empty_row(cell, Job::Serve), &signed, cell)?;
            self.transfer(self.empty_row(cell, Job::Transfer), &signed, cell)?;
            self.resign(cell, &keys, &signed, folder.path())?;
            self.costs.learn_extras(signatures, begun.elapsed().as_secs_f64());
        }
        Ok(())
    }

    /// What the unsigned zone comes to, to hold others against.
    pub(super) fn measure_unsigned(&mut self) -> Result<(), RunError> {
        for place in 0..self.zones.len() {
            if self.zones[place].extras {
                let file = self.zones[place].file.clone();
                let cell = Cell { run: 0, zone: place, denial: 0, algorithm: 0, level: 0 };
                let row = |job| Row {
                    algorithm: String::new(),
                    denial: String::new(),
                    ..self.empty_row(cell, job)
                };
                let (serve, transfer) = (row(Job::Serve), row(Job::Transfer));
                self.serve(serve, &file, cell)?;
                self.transfer(transfer, &file, cell)?;
            }
        }
        Ok(())
    }

    fn command(&self, cell: Cell, words: &[&str]) -> Command {
        let mut command = self.signers[cell.level].program.command();
        command.args(words).args(["--origin", &self.zones[cell.zone].counts.origin]);
        command
    }

    fn signing(&self, cell: Cell, zone: Option<&Path>, keys: &Path, out: &Path, now: u32) -> Command {
        let mut command = self.command(cell, &["zone", "sign", "--json"]);
        command.args(zone).arg("--keys").arg(keys).arg("--output").arg(out);
        command.args(["--denial", &self.denials[cell.denial].to_string(), "--now", &now.to_string()]);
        command
    }

    /// Carries out a job that signs, and adds its row.
    fn sign(
        &mut self,
        cell: Cell,
        job: Job,
        command: &mut Command,
        out: &Path,
    ) -> Result<Option<Row>, RunError> {
        let Some(ended) = self.run_job(cell, job, command) else { return Ok(None) };
        let row = Row {
            signatures: ended.number("signatures"),
            records: ended.number("records"),
            octets: fs::metadata(out).ok().map(|data| data.len()),
            ..self.row(cell, job, &ended)
        };
        self.findings.push(&row)?;
        Ok(Some(row))
    }

    fn verify(&mut self, cell: Cell, signed: &Path) -> Result<(), RunError> {
        let mut command = self.command(cell, &["zone", "verify", "--json"]);
        command.arg(signed).args(["--now", &self.options.now.to_string()]);
        let Some(ended) = self.run_job(cell, Job::Verify, &mut command) else { return Ok(()) };
        let row =
            Row { signatures: ended.number("signatures_verified"), ..self.row(cell, Job::Verify, &ended) };
        self.findings.push(&row)
    }

    /// Signs the changed zone half an hour later, with the signed one at hand: from two zone files, then from a compiled
    /// zone and a set of changes. This is the one place that knows how either is asked for.
    fn resign(&mut self, cell: Cell, keys: &Path, signed: &Path, folder: &Path) -> Result<(), RunError> {
        let Some(changed) = self.zones[cell.zone].changed.clone() else { return Ok(()) };
        let now = self.options.now.wrapping_add(LATER);
        let out = folder.join("signed-again");
        let mut command = self.signing(cell, Some(&changed), keys, &out, now);
        command.arg("--previous").arg(signed);
        self.sign(cell, Job::Resign, &mut command, &out)?;
        let image = folder.join("signed.image");
        let out = folder.join("signed-again.image");
        let compiled = self.compile(cell, signed, &image, &changed);
        let Some(changes) = self.told(&self.empty_row(cell, Job::ResignCompiled), compiled) else {
            return Ok(());
        };
        let mut command = self.signing(cell, None, keys, &out, now);
        command.arg("--previous").arg(&image).arg("--changes").arg(changes).arg("--compiled");
        self.sign(cell, Job::ResignCompiled, &mut command, &out).map(drop)
    }

    /// What is at hand where a registry signs every half hour: the compiled signed zone, and what has changed. Neither is
    /// measured; the changes are the same for every algorithm.
    fn compile(&self, cell: Cell, signed: &Path, image: &Path, changed: &Path) -> Result<PathBuf, JobError> {
        let mut command = self.command(cell, &["zone", "compile", "--verify", "none"]);
        job::run(command.arg(signed).arg("-f").arg(image))?;
        let changes = changed.with_extension("changes");
        if !changes.exists() {
            let mut command = self.command(cell, &["zone", "diff", "--changes"]);
            command.arg(&self.zones[cell.zone].file).arg(changed);
            let out = File::create(&changes)?;
            let status = command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(out).status()?;
            // That the zones differ is no fault.
            if status.code().is_none_or(|code| code >= 2) {
                // Half of the changes would be taken for all of them.
                let _ = fs::remove_file(&changes);
                return Err(JobError::Failed { status, said: "zone diff fails".to_owned() });
            }
        }
        Ok(changes)
    }

    /// Starts a server of the zone and takes its memory once it is ready. The zone was verified before.
    fn serve(&mut self, mut row: Row, file: &Path, cell: Cell) -> Result<(), RunError> {
        let log = self.folder.path().join("log");
        let program = self.signers[cell.level].program.command();
        let mut command = serving(program, &self.zones[cell.zone].counts.origin, file, 1);
        command.args(["--now", &self.options.now.to_string()]);
        let started = Server::start(command, None, &log, READY_LIMIT);
        let Some(server) = self.told(&row, started) else { return Ok(()) };
        let (memory, cpu) = (process::memory(server.pid()), process::cpu_time(server.pid()));
        row.memory_kib = memory.map(|memory| memory.proportional_kib.unwrap_or(memory.resident_kib));
        row.wall_seconds = Some(server.ready_after.as_secs_f64());
        row.user_seconds = cpu.map(|cpu| cpu.user_us as f64 * 1e-6);
        row.system_seconds = cpu.map(|cpu| cpu.system_us as f64 * 1e-6);
        self.findings.push(&row)
    }

    fn transfer(&mut self, mut row: Row, file: &Path, cell: Cell) -> Result<(), RunError> {
        let mut command = self.examiner();
        command.arg(file).args(["--transfer", "--origin", &self.zones[cell.zone].counts.origin]);
        let examined = self.examine(&mut command);
        let Some(found) = self.told(&row, examined) else { return Ok(()) };
        let transfer = found.transfer.unwrap_or_default();
        row.octets = Some(transfer.octets);
        row.messages = Some(transfer.messages);
        row.records = Some(transfer.records);
        row.level = "";
        self.findings.push(&row)
    }

    /// Runs a job to its end.
    fn run_job(&mut self, cell: Cell, job: Job, command: &mut Command) -> Option<FinishedJob> {
        self.told(&self.empty_row(cell, job), job::run(command))
    }

    /// Each reason for which jobs failed is told once.
    pub(super) fn note_failures(&mut self) {
        for Failure { job, what, fault, count } in std::mem::take(&mut self.failures) {
            let fault = fault.trim_end_matches('.');
            let more = if count > 1 { format!(" (first of {count} alike)") } else { String::new() };
            self.findings.note(format!("Left out: {}, {what}{more}: {fault}.", job.name()));
        }
    }

    /// The outcome of a job; a failure is kept to be told.
    fn told<T>(&mut self, row: &Row, outcome: Result<T, impl ToString>) -> Option<T> {
        let fault = match outcome {
            Ok(outcome) => return Some(outcome),
            Err(error) => error.to_string(),
        };
        match self.failures.iter_mut().find(|known| known.job == row.job && known.fault == fault) {
            Some(known) => known.count += 1,
            None => {
                let what = [&*row.zone, &row.algorithm, &row.denial, row.level];
                let what = what.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(", ");
                self.failures.push(Failure { job: row.job, what, fault, count: 1 });
            }
        }
        None
    }
}
