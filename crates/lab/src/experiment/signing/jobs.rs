//! The jobs of a cell. A failed job is omitted and reported. It does not end the experiment,
//! because hours of other measurements would be lost.

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

/// Time from signing to re-signing, in seconds. It corresponds to the interval at which registries
/// publish changes.
const LATER: u32 = 1800;
/// Time limit for the server to read its zone.
const READY_LIMIT: Duration = Duration::from_secs(1800);

/// Kind of job.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Job {
    /// Signs a complete zone, from zone file to zone file.
    #[default]
    Sign,
    Verify,
    /// Signs a changed zone and reuses signatures of the signed zone.
    Resign,
    /// The same, from a compiled signed zone and a change set.
    ResignCompiled,
    /// Starts a server with the zone.
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

/// Jobs that failed for the same reason.
pub(super) struct Failure {
    job: Job,
    what: String,
    fault: String,
    count: u64,
}

impl Runner<'_> {
    /// Signs and verifies the zone. At the first level, also measures serving, transfer and
    /// re-signing, if `served` selects the zone.
    pub(super) fn measure_cell(&mut self, cell: Cell) -> Result<(), RunError> {
        let keys = match self.keys(cell.zone, cell.algorithm) {
            Ok(keys) => keys,
            Err(reason) => {
                let scheme = self.choices[cell.algorithm].choice.scheme();
                self.findings.note(format!("Left out: {scheme}: cannot generate keys: {reason}."));
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

    /// Measures serving and transfer of the unsigned zones, as the baseline.
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

    /// Runs a job that signs a zone, and adds its row.
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

    /// Re-signs the changed zone half an hour later: from two zone files, and from a compiled zone
    /// and a change set. Only this function knows the options of both methods.
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

    /// Prepares the files of a registry that signs every half hour: the compiled signed zone and
    /// the change set. This preparation is not measured. The change set is the same for all
    /// algorithms.
    fn compile(&self, cell: Cell, signed: &Path, image: &Path, changed: &Path) -> Result<PathBuf, JobError> {
        let mut command = self.command(cell, &["zone", "compile", "--verify", "none"]);
        job::run(command.arg(signed).arg("-f").arg(image))?;
        let changes = changed.with_extension("changes");
        if !changes.exists() {
            let mut command = self.command(cell, &["zone", "diff", "--changes"]);
            command.arg(&self.zones[cell.zone].file).arg(changed);
            let out = File::create(&changes)?;
            let status = command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(out).status()?;
            // Exit status 1 means that the zones differ, which is not an error.
            if status.code().is_none_or(|code| code >= 2) {
                // A later call must not use an incomplete change set.
                let _ = fs::remove_file(&changes);
                return Err(JobError::Failed { status, said: "zone diff fails".to_owned() });
            }
        }
        Ok(changes)
    }

    /// Starts a server with the zone and records its memory when it is ready. The server does not
    /// verify the signatures again.
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

    /// Runs a job until it ends.
    fn run_job(&mut self, cell: Cell, job: Job, command: &mut Command) -> Option<FinishedJob> {
        self.told(&self.empty_row(cell, job), job::run(command))
    }

    /// Adds a note for each reason for which jobs failed.
    pub(super) fn note_failures(&mut self) {
        for Failure { job, what, fault, count } in std::mem::take(&mut self.failures) {
            let fault = fault.trim_end_matches('.');
            let more =
                if count > 1 { format!(" (first of {count} identical failures)") } else { String::new() };
            self.findings.note(format!("Left out: {}, {what}{more}: {fault}.", job.name()));
        }
    }

    /// Returns the result of a job, or records its failure for a note.
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
