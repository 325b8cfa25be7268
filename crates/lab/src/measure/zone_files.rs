//! Zone files of experiments, prepared with the commands of this program: a generated zone, queries
//! for it, keys, and signed versions. The time of these commands is not measured.

use super::AlgorithmChoice;
use super::job::{self, JobError};
use super::level::LevelProgram;
use super::prepare::PrepareZoneError;
use super::zone_commands::ZoneCommands;
use crate::load::QueryList;
use nonesuch_dnssec::Mechanism;
use std::path::{Path, PathBuf};
use std::process::Command;
use tempfile::TempDir;

/// Number of queries in a list, which each load repeats.
const QUERIES: u64 = 100_000;

/// Files of one zone in a temporary directory. Dropping it removes the files.
pub(crate) struct ZoneFiles {
    /// The program `nonesuch`, built for one instruction level.
    pub(crate) program: LevelProgram,
    /// Directory of all files; empty at the start.
    pub(crate) directory: TempDir,
    /// Apex of the zone.
    pub(crate) origin: &'static str,
    /// Current time for all commands: creation of keys, signatures, and `serve --now`; in seconds
    /// since 1970.
    pub(crate) now: u32,
}

impl ZoneFiles {
    /// Returns the directory, for other files of the experiment.
    pub(crate) fn directory(&self) -> &Path {
        self.directory.path()
    }

    /// Generates a zone like a top-level domain with `names` delegations, and queries for it. Each
    /// call with the same seed generates the same zone. `denied` selects queries for names that do
    /// not exist.
    pub(crate) fn generate(
        &self,
        names: u32,
        denied: bool,
        seed: u64,
    ) -> Result<QueryList, PrepareZoneError> {
        let file = self.directory().join("queries");
        let mut command = self.program.command();
        command.args(["zone", "generate", "--like", "tld", "-o", self.origin]);
        command.args(["--denied", if denied { "100" } else { "0" }]);
        command.args(["--names", &names.to_string(), "--seed", &seed.to_string()]);
        command.args(["--query-count", &QUERIES.to_string(), "--queries"]).arg(&file);
        job::run(command.arg("-f").arg(self.unsigned()))?;
        Ok(QueryList::from_file(&file)?)
    }

    /// Generates a KSK and a ZSK.
    pub(crate) fn generate_keys(&self, choice: AlgorithmChoice) -> Result<(), JobError> {
        self.commands().generate_keys(choice, self.now, self.directory())
    }

    /// Signs the zone with the keys.
    pub(crate) fn sign(&self, denial: Mechanism) -> Result<(), JobError> {
        let (unsigned, signed) = (self.unsigned(), self.signed(denial));
        let mut command = self.commands().sign(Some(&unsigned), self.directory(), denial, self.now, &signed);
        job::run(&mut command).map(drop)
    }

    /// Returns the command that serves the zone that is signed with this mechanism.
    pub(crate) fn serve_command(&self, denial: Mechanism, workers: u16) -> Command {
        self.commands().serve_command(&self.signed(denial), workers, self.now)
    }

    fn commands(&self) -> ZoneCommands<'_> {
        ZoneCommands { program: &self.program, origin: self.origin }
    }

    /// Returns the path of the generated zone.
    fn unsigned(&self) -> PathBuf {
        self.directory().join("zone")
    }

    /// Returns the path of the zone that is signed with this mechanism.
    fn signed(&self, denial: Mechanism) -> PathBuf {
        self.directory().join(format!("{denial}.signed"))
    }
}
