//! The jobs of a cell. A job that fails is told and left out: hours of other figures are not lost with it.

use super::super::child::{self, Ended};
use super::super::plan::Cell;
use super::super::rows::{Job, Row};
use super::Runner;
use crate::compare::server::Server;
use crate::experiment::error::RunError;
use crate::process;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// From one signing to the next, seconds: registries publish changes about so often.
const LATER: u32 = 1800;
/// A server has so long to read its zone.
const READY_LIMIT: Duration = Duration::from_secs(1800);

/// A file that is removed again.
struct Temporary(PathBuf);

impl Drop for Temporary {
    fn drop(&mut self) {
        // What is not there needs no removing, and the folder vanishes after all.
        let _ = fs::remove_file(&self.0);
    }
}

impl Runner<'_> {
    /// Signs and verifies; at the first level also serves, packs and signs again, where the zone is one of those.
    pub(super) fn measure_cell(&mut self, cell: Cell) -> Result<(), RunError> {
        let keys = match self.keys(cell.zone, cell.algorithm) {
            Ok(keys) => keys,
            Err(reason) => {
                let scheme = self.choices[cell.algorithm].0.scheme();
                self.note(format!("Left out: {scheme}: keys cannot be made: {reason}."));
                return Ok(());
            }
        };
        let signed = Temporary(self.folder.path().join("signed"));
        let begun = Instant::now();
        let Some(row) = self.sign(cell, &keys, &signed.0)? else { return Ok(()) };
        self.verify(cell, &signed.0)?;
        let signatures = row.signatures.unwrap_or_default();
        self.costs.learn(cell, signatures, begun.elapsed().as_secs_f64());
        self.known.insert((cell.zone, cell.denial), signatures);
        if self.zones[cell.zone].extras && cell.level == 0 {
            let begun = Instant::now();
            self.serve(self.empty_row(cell, Job::Serve, false), &signed.0, cell)?;
            self.transfer(self.empty_row(cell, Job::Transfer, false), &signed.0, cell)?;
            self.resign(cell, &keys, &signed.0)?;
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
                self.serve(self.empty_row(cell, Job::Serve, true), &file, cell)?;
                self.transfer(self.empty_row(cell, Job::Transfer, true), &file, cell)?;
            }
        }
        Ok(())
    }

    fn command(&self, cell: Cell, words: &[&str]) -> Command {
        let mut command = self.signers[cell.level].program.command();
        command.args(words).args(["--origin", &self.zones[cell.zone].origin]);
        command
    }

    fn signing(&self, cell: Cell, zone: Option<&Path>, keys: &Path, out: &Path, now: u32) -> Command {
        let mut command = self.command(cell, &["zone", "sign", "--json"]);
        command.args(zone).arg("--keys").arg(keys).arg("--output").arg(out);
        command.args(["--denial", &self.denials[cell.denial].to_string(), "--now", &now.to_string()]);
        command
    }

    fn sign(&mut self, cell: Cell, keys: &Path, out: &Path) -> Result<Option<Row>, RunError> {
        let mut command = self.signing(cell, Some(&self.zones[cell.zone].file), keys, out, self.options.now);
        let Some(ended) = self.run_job(cell, Job::Sign, &mut command) else { return Ok(None) };
        let row = Row {
            signatures: ended.number("signatures"),
            records: ended.number("records"),
            octets: fs::metadata(out).ok().map(|data| data.len()),
            ..self.row(cell, Job::Sign, &ended)
        };
        self.push(&row)?;
        Ok(Some(row))
    }

    fn verify(&mut self, cell: Cell, signed: &Path) -> Result<(), RunError> {
        let mut command = self.command(cell, &["zone", "verify", "--json"]);
        command.arg(signed).args(["--now", &self.options.now.to_string()]);
        let Some(ended) = self.run_job(cell, Job::Verify, &mut command) else { return Ok(()) };
        let row =
            Row { signatures: ended.number("signatures_verified"), ..self.row(cell, Job::Verify, &ended) };
        self.push(&row)
    }

    /// Signs the changed zone half an hour later, with the signed one at hand: from two zone files, then from a compiled
    /// zone and a set of changes. This is the one place that knows how either is asked for.
    fn resign(&mut self, cell: Cell, keys: &Path, signed: &Path) -> Result<(), RunError> {
        let Some(changed) = self.zones[cell.zone].changed.clone() else { return Ok(()) };
        let now = self.options.now.wrapping_add(LATER);
        let out = Temporary(self.folder.path().join("signed-again"));
        let mut command = self.signing(cell, Some(&changed), keys, &out.0, now);
        command.arg("--previous").arg(signed);
        self.run_resigning(cell, Job::Resign, &mut command, &out.0)?;
        let image = Temporary(self.folder.path().join("signed.image"));
        let out = Temporary(self.folder.path().join("signed-again.image"));
        let changes = match self.compile(cell, signed, &image.0, &changed) {
            Ok(changes) => changes,
            Err(fault) => {
                self.leave_out(&self.empty_row(cell, Job::ResignCompiled, false), &fault);
                return Ok(());
            }
        };
        let mut command = self.signing(cell, None, keys, &out.0, now);
        command.arg("--previous").arg(&image.0).arg("--changes").arg(changes).arg("--compiled");
        self.run_resigning(cell, Job::ResignCompiled, &mut command, &out.0)
    }

    fn run_resigning(
        &mut self,
        cell: Cell,
        job: Job,
        command: &mut Command,
        out: &Path,
    ) -> Result<(), RunError> {
        let Some(ended) = self.run_job(cell, job, command) else { return Ok(()) };
        let row = Row {
            signatures: ended.number("signatures"),
            records: ended.number("records"),
            octets: fs::metadata(out).ok().map(|data| data.len()),
            ..self.row(cell, job, &ended)
        };
        self.push(&row)
    }

    /// What is at hand where a registry signs every half hour: the compiled signed zone, and what has changed. Neither is
    /// measured; the changes are the same for every algorithm.
    fn compile(&self, cell: Cell, signed: &Path, image: &Path, changed: &Path) -> Result<PathBuf, String> {
        let mut command = self.command(cell, &["zone", "compile", "--verify", "none"]);
        command.arg(signed).arg("-f").arg(image);
        let ended = child::run(&mut command).map_err(|error| error.to_string())?;
        ended.fault().map_or(Ok(()), Err)?;
        let changes = changed.with_extension("changes");
        if !changes.exists() {
            let mut command = self.command(cell, &["zone", "diff", "--changes"]);
            command.arg(&self.zones[cell.zone].file).arg(changed);
            let status = File::create(&changes)
                .and_then(|out| command.stdin(Stdio::null()).stderr(Stdio::null()).stdout(out).status());
            // That the zones differ is no fault.
            let known = status.map_err(|error| error.to_string())?.code().is_some_and(|code| code < 2);
            if !known {
                // Half of the changes would be taken for all of them.
                let _ = fs::remove_file(&changes);
                return Err("zone diff fails".to_owned());
            }
        }
        Ok(changes)
    }

    /// Starts a server of the zone and takes its memory once it is ready. The zone was verified before.
    fn serve(&mut self, mut row: Row, file: &Path, cell: Cell) -> Result<(), RunError> {
        let log = Temporary(self.folder.path().join("log"));
        let mut command = self.command(cell, &["serve", "--listen", "127.0.0.1:0", "--workers", "1"]);
        command.arg(file).args(["--verify", "structural", "--now", &self.options.now.to_string()]);
        match Server::start(command, None, &log.0, READY_LIMIT) {
            Ok(server) => {
                let (memory, cpu) = (process::memory(server.pid()), process::cpu_time(server.pid()));
                row.memory_kib = memory.map(|memory| memory.proportional_kib.unwrap_or(memory.resident_kib));
                row.wall_seconds = Some(server.ready_after.as_secs_f64());
                row.user_seconds = cpu.map(|cpu| cpu.user_us as f64 * 1e-6);
                row.system_seconds = cpu.map(|cpu| cpu.system_us as f64 * 1e-6);
                self.push(&row)
            }
            Err(error) => {
                self.leave_out(&row, &error.to_string());
                Ok(())
            }
        }
    }

    fn transfer(&mut self, mut row: Row, file: &Path, cell: Cell) -> Result<(), RunError> {
        let mut command = self.examiner();
        command.arg(file).args(["--transfer", "--origin", &self.zones[cell.zone].origin]);
        match self.examine(&mut command) {
            Ok(found) => {
                let transfer = found.transfer.unwrap_or_default();
                row.octets = Some(transfer.octets);
                row.messages = Some(transfer.messages);
                row.records = Some(transfer.records);
                row.level.clear();
                self.push(&row)
            }
            Err(error) => {
                self.leave_out(&row, &error.to_string());
                Ok(())
            }
        }
    }

    /// Runs a job to its end; where it fails, says so.
    fn run_job(&mut self, cell: Cell, job: Job, command: &mut Command) -> Option<Ended> {
        let fault = match child::run(command) {
            Ok(ended) => match ended.fault() {
                None => return Some(ended),
                Some(fault) => fault,
            },
            Err(error) => error.to_string(),
        };
        let row = self.empty_row(cell, job, false);
        self.leave_out(&row, &fault);
        None
    }

    fn leave_out(&mut self, row: &Row, fault: &str) {
        let what = [&row.zone, &row.algorithm, &row.denial, &row.level].map(String::as_str);
        let what: Vec<&str> = what.into_iter().filter(|word| !word.is_empty()).collect();
        match self.failures.iter_mut().find(|(job, _, known, _)| *job == row.job && known == fault) {
            Some((.., count)) => *count += 1,
            None => self.failures.push((row.job, what.join(", "), fault.to_owned(), 1)),
        }
    }

    fn row(&self, cell: Cell, job: Job, ended: &Ended) -> Row {
        Row {
            wall_seconds: Some(ended.wall_seconds),
            user_seconds: Some(ended.user_seconds),
            system_seconds: Some(ended.system_seconds),
            memory_kib: Some(ended.peak_kib),
            ..self.empty_row(cell, job, false)
        }
    }

    fn empty_row(&self, cell: Cell, job: Job, unsigned: bool) -> Row {
        let of_signed = |text: String| if unsigned { String::new() } else { text };
        Row {
            run: cell.run,
            job,
            zone: self.zones[cell.zone].name.clone(),
            level: self.signers[cell.level].name.to_owned(),
            algorithm: of_signed(self.choices[cell.algorithm].0.to_string()),
            denial: of_signed(self.denials[cell.denial].to_string()),
            signatures: None,
            records: None,
            octets: None,
            messages: None,
            wall_seconds: None,
            user_seconds: None,
            system_seconds: None,
            memory_kib: None,
        }
    }
}
