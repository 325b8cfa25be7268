//! Zone files of experiments, prepared with the commands of this program: a generated zone, queries
//! for it, keys, and signed versions. The time of these commands is not measured.

use super::job::{self, JobError};
use super::level::command_with_all_cpu_features;
use super::server::{ServedZone, serving};
use crate::load::{QueryList, QueryListError};
use nonesuch_dnssec::Mechanism;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Number of queries in a list, which each load repeats.
const QUERIES: u64 = 100_000;

/// Reasons why zone files cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneFilesError {
    #[error("{}: {source}", program.display())]
    Command { program: PathBuf, source: JobError },
    #[error("{origin}: {source}")]
    Queries { origin: &'static str, source: QueryListError },
}

/// Files of one zone in a temporary directory. Dropping it removes the files.
pub(crate) struct ZoneFiles<'a> {
    program: &'a Path,
    folder: TempDir,
    /// Apex of the zone.
    pub(crate) origin: &'static str,
}

impl<'a> ZoneFiles<'a> {
    /// `program` is this program; `folder` is empty.
    pub(crate) const fn new(program: &'a Path, folder: TempDir, origin: &'static str) -> Self {
        Self { program, folder, origin }
    }

    /// Returns the directory, for other files of the experiment.
    pub(crate) fn folder(&self) -> &Path {
        self.folder.path()
    }

    /// Returns a command of this program.
    pub(crate) fn command(&self, words: &[&str]) -> Command {
        let mut command = command_with_all_cpu_features(self.program);
        command.args(words);
        command
    }

    /// Generates a zone like a top-level domain with `names` delegations, and queries for it. Each
    /// call with the same seed generates the same zone. `denied` selects queries for names that do
    /// not exist.
    pub(crate) fn generate(&self, names: u32, denied: bool, seed: u64) -> Result<QueryList, ZoneFilesError> {
        let file = self.folder().join("queries");
        let share = if denied { "100" } else { "0" };
        let mut command =
            self.command(&["zone", "generate", "--like", "tld", "-o", self.origin, "--denied", share]);
        command.args(["--names", &names.to_string(), "--seed", &seed.to_string()]);
        command.args(["--query-count", &QUERIES.to_string(), "--queries"]).arg(&file);
        self.run(command.arg("-f").arg(self.unsigned()))?;
        QueryList::from_file(&file).map_err(|source| ZoneFilesError::Queries { origin: self.origin, source })
    }

    /// Generates a KSK and a ZSK of the algorithm with this mnemonic.
    pub(crate) fn generate_keys(&self, algorithm: &str) -> Result<(), ZoneFilesError> {
        for kind in [Some("--ksk"), None] {
            let mut command =
                self.command(&["key", "generate", self.origin, "--algorithm", algorithm, "--dir"]);
            self.run(command.arg(self.folder()).args(kind))?;
        }
        Ok(())
    }

    /// Signs the zone with the keys. The result is at [`Self::signed`].
    pub(crate) fn sign(&self, denial: Mechanism) -> Result<(), ZoneFilesError> {
        let denial_name = denial.to_string();
        let mut command =
            self.command(&["zone", "sign", "-o", self.origin, "--denial", &denial_name, "--keys"]);
        command.arg(self.folder()).arg("-f").arg(self.signed(denial)).arg(self.unsigned());
        self.run(&mut command)
    }

    /// Returns the command that serves the zone that is signed with this mechanism.
    pub(crate) fn serving(&self, denial: Mechanism, workers: u16) -> Command {
        serving(
            command_with_all_cpu_features(self.program),
            &ServedZone::without_keys(self.origin, &self.signed(denial)),
            workers,
        )
    }

    /// Returns the path of the generated zone.
    pub(crate) fn unsigned(&self) -> PathBuf {
        self.folder().join("zone")
    }

    /// Returns the path of the zone that is signed with this mechanism.
    pub(crate) fn signed(&self, denial: Mechanism) -> PathBuf {
        self.folder().join(format!("{denial}.signed"))
    }

    fn run(&self, command: &mut Command) -> Result<(), ZoneFilesError> {
        let fault = |source| ZoneFilesError::Command { program: self.program.to_path_buf(), source };
        job::run(command).map(drop).map_err(fault)
    }
}
