//! Commands of a program that generate keys, and sign, verify, compile, compare and serve zones:
//! the jobs of operators.

use super::AlgorithmChoice;
use super::job::{self, JobError};
use super::level::LevelProgram;
use super::server::{READY_LIMIT, ServedZone, Server, ServerError, serve_command};
use nonesuch_dnssec::Mechanism;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

/// A program, and the apex of a zone.
#[derive(Clone, Copy)]
pub(crate) struct ZoneCommands<'a> {
    pub(crate) program: &'a LevelProgram,
    pub(crate) origin: &'a str,
}

impl ZoneCommands<'_> {
    /// Generates a KSK and a ZSK in `directory`, which is created if it is missing. The keys are
    /// active at `now`. Also generates weak RSA keys.
    pub(crate) fn generate_keys(
        &self,
        choice: AlgorithmChoice,
        now: u32,
        directory: &Path,
    ) -> Result<(), JobError> {
        fs::create_dir_all(directory).map_err(JobError::Store)?;
        for kind in [Some("--ksk"), None] {
            let mut command = self.program.command();
            command.args(["key", "generate", self.origin, "--algorithm", &choice.algorithm.to_string()]);
            command.arg("--dir").arg(directory).args(kind).args(["--now", &now.to_string()]);
            if let Some(bits) = choice.bits {
                command.args(["--force", "--bits", &bits.to_string()]);
            }
            job::run(&mut command)?;
        }
        Ok(())
    }

    /// Returns the command that signs `zone` with the keys of a directory at the time `now`. If
    /// `zone` is `None`, arguments that the caller adds must describe the zone.
    pub(crate) fn sign(
        &self,
        zone: Option<&Path>,
        keys: &Path,
        denial: Mechanism,
        now: u32,
        out: &Path,
    ) -> Command {
        let mut command = self.command(&["zone", "sign", "--json"]);
        command.args(zone).arg("--keys").arg(keys).arg("--output").arg(out);
        command.args(["--denial", &denial.to_string(), "--now", &now.to_string()]);
        command
    }

    /// Returns the command that verifies a signed zone completely at the time `now`.
    pub(crate) fn verify(&self, signed: &Path, now: u32) -> Command {
        let mut command = self.command(&["zone", "verify", "--json"]);
        command.arg(signed).args(["--now", &now.to_string()]);
        command
    }

    /// Compiles a zone without verification.
    pub(crate) fn compile(&self, zone: &Path, image: &Path) -> Result<(), JobError> {
        let mut command = self.command(&["zone", "compile", "--verify", "none"]);
        job::run(command.arg(zone).arg("-f").arg(image)).map(drop)
    }

    /// Writes the change set between two versions of the zone.
    pub(crate) fn write_changes(&self, old: &Path, new: &Path, changes: &Path) -> Result<(), JobError> {
        let mut command = self.command(&["zone", "diff", "--changes"]);
        command.arg(old).arg(new).stdin(Stdio::null()).stderr(Stdio::null());
        let status = command.stdout(File::create(changes).map_err(JobError::Store)?).status();
        let status = status.map_err(|source| JobError::run(&command, source))?;
        // Exit status 1 means that the zones differ, which is not an error.
        if status.code().is_none_or(|code| code >= 2) {
            // A later call must not use an incomplete change set.
            let _ = fs::remove_file(changes);
            return Err(JobError::Failed { status, message: "zone diff fails".to_owned() });
        }
        Ok(())
    }

    /// Returns the command that serves the zone. The server does not verify the signatures.
    pub(crate) fn serve_command(&self, zone: &Path, workers: u16, now: u32) -> Command {
        let served = ServedZone::without_keys(self.origin, zone);
        let mut command = serve_command(self.program.command(), &served, workers);
        command.args(["--now", &now.to_string()]);
        command
    }

    /// Starts a server with the zone and one worker. Standard error goes to the file `log`.
    pub(crate) fn serve(&self, zone: &Path, now: u32, log: &Path) -> Result<Server, ServerError> {
        Server::start(self.serve_command(zone, 1, now), None, log, READY_LIMIT)
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = self.program.command();
        command.args(words).args(["--origin", self.origin]);
        command
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_failed_comparison_leaves_no_change_set() {
        let directory = tempfile::tempdir().expect("a directory");
        let changes = directory.path().join("changes");
        let write = |program: &str| {
            let program = LevelProgram::native(Path::new(program));
            let commands = ZoneCommands { program: &program, origin: "zz." };
            commands.write_changes(Path::new("old"), Path::new("new"), &changes)
        };
        // Exit status 1, as if the zones differed.
        write("/bin/false").expect("no error");
        assert!(changes.exists());
        // The shell finds no script `zone`.
        let error = write("/bin/sh").expect_err("it failed");
        assert!(matches!(error, JobError::Failed { .. }), "{error}");
        assert!(!changes.exists());
    }
}
