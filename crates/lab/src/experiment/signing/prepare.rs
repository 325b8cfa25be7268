//! Preparation of a run: programs, zones, keys.

use super::Runner;
use crate::experiment::error::RunError;
use crate::experiment::parameters::deduplicate;
use crate::measure::backend::ProberBackend;
use crate::measure::job::JobError;
use crate::measure::level::{Level, LevelProgram};
use crate::measure::prepare::{PreparedZone, ZonePreparer};
use crate::measure::probe::ImplementationInfo;
use crate::measure::zone_commands::ZoneCommands;
use crate::measure::{Operation, Selection, Subject};
use serde::Serialize;
use std::path::PathBuf;

/// A prepared zone.
#[derive(Serialize)]
pub(super) struct Zone {
    #[serde(flatten)]
    pub(super) prepared: PreparedZone,
    /// Whether the zone is also served, transferred and re-signed.
    #[serde(skip)]
    pub(super) extras: bool,
}

/// A program that signs and verifies at an instruction level.
#[derive(Serialize)]
pub(super) struct LevelSigner {
    pub(super) level: &'static str,
    /// Version that the program reports.
    version: String,
    /// Code that signs and verifies with each algorithm.
    implementations: Vec<ZoneImplementation>,
    #[serde(flatten)]
    pub(super) program: LevelProgram,
}

/// The code with which a program signs or verifies zones.
#[derive(Serialize)]
struct ZoneImplementation {
    algorithm: String,
    operation: Operation,
    #[serde(flatten)]
    code: ImplementationInfo,
}

/// Number of signatures that the code for batches processes together. `zone sign` and `zone verify`
/// pass more at a time if a part of the zone has them; the DNSKEY RRset is signed alone.
const BATCH: u16 = 64;

impl Runner<'_> {
    /// Adds the programs of the levels. If no level has a program, adds this program at level
    /// native. If the user selected the levels, a level without a program is an error instead.
    pub(super) fn add_levels(&mut self) -> Result<(), RunError> {
        let selections: Vec<_> =
            self.choices.iter().map(|chosen| Selection::Signatures(chosen.choice)).collect();
        // Without selections, the list would contain all algorithms.
        let subjects = if selections.is_empty() { Vec::new() } else { Subject::list(&selections, BATCH, 0) };
        let keys = self.findings.make_keys(&subjects);
        for level in deduplicate(self.parameters.levels.iter().copied()) {
            self.add_level(level, &keys)?;
        }
        if self.signers.is_empty() && !self.parameters.levels.contains(&Level::Native) {
            self.findings.note(
                "No program for these levels exists: this program is measured instead, at level native."
                    .to_owned(),
            );
            self.add_level(Level::Native, &keys)?;
        }
        Ok(())
    }

    fn add_level(&mut self, level: Level, keys: &[(Subject, String)]) -> Result<(), RunError> {
        let Some(backend) = self.findings.prepare_level(self.options, level, keys)? else { return Ok(()) };
        self.signers.push(LevelSigner {
            level: level.name(),
            version: backend.info().version,
            implementations: self.describe_code(&backend),
            program: backend.program.clone().unwrap_or_else(|| LevelProgram::native(self.options.program)),
        });
        Ok(())
    }

    /// Returns the code with which a program signs and verifies with each algorithm.
    fn describe_code(&self, backend: &ProberBackend) -> Vec<ZoneImplementation> {
        let mut found = Vec::new();
        for chosen in &self.choices {
            for operation in [Operation::Sign, Operation::Verify] {
                let code = backend.prober.implementation(chosen.choice, BATCH, operation).cloned();
                let algorithm = chosen.choice.to_string();
                found.extend(code.map(|code| ZoneImplementation { algorithm, operation, code }));
            }
        }
        found
    }

    /// Writes each zone to the temporary directory, without DNSSEC records. For a zone that is
    /// re-signed, also writes a changed version.
    pub(super) fn add_zones(&mut self) -> Result<(), RunError> {
        let choices = deduplicate(self.parameters.zones.iter().cloned());
        let share = Some(self.parameters.change_share.value()).filter(|share| *share > 0.0);
        for (place, choice) in choices.iter().enumerate() {
            self.options.begin(0, 1, &format!("generating {choice}"));
            let extras = self.parameters.served.holds(place, choices.len());
            let prepared = self.preparer().prepare(place, choice, share.filter(|_| extras))?;
            self.zones.push(Zone { prepared, extras });
        }
        Ok(())
    }

    pub(super) fn preparer(&self) -> ZonePreparer<'_> {
        ZonePreparer {
            program: self.options.program,
            directory: self.directory.path(),
            seed: self.options.seed,
        }
    }

    /// Returns a directory with a KSK and a ZSK for this zone and algorithm. All programs use the
    /// same keys.
    pub(super) fn keys(&mut self, zone: usize, algorithm: usize) -> Result<PathBuf, JobError> {
        let directory = self.directory.path().join(format!("keys-{zone}-{algorithm}"));
        if !self.keys.contains(&directory) {
            let program = LevelProgram::native(self.options.program);
            let origin = &self.zones[zone].prepared.counts.origin;
            let commands = ZoneCommands { program: &program, origin };
            commands.generate_keys(self.choices[algorithm].choice, self.options.now, &directory)?;
            self.keys.insert(directory.clone());
        }
        Ok(directory)
    }
}
