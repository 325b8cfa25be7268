//! Preparation of a run: programs, zones, keys.

use super::Runner;
use super::parameters::ZoneChoice;
use crate::experiment::error::RunError;
use crate::experiment::parameters::deduplicate;
use crate::generate::{GenerateOptions, ZoneModel, generate};
use crate::measure::job::{self, JobError};
use crate::measure::level::{Level, LevelProgram, command_with_all_cpu_features};
use crate::measure::probe::ImplementationInfo;
use crate::measure::prober::Prober;
use crate::measure::{Changes, ExamineResult, Operation, Selection, Subject, ZoneCounts};
use serde::Serialize;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A zone and its properties.
#[derive(Serialize)]
pub(super) struct Zone {
    #[serde(skip)]
    pub(super) file: PathBuf,
    /// File with a changed version of the zone, if the zone is re-signed.
    #[serde(skip)]
    pub(super) changed: Option<PathBuf>,
    /// Whether the zone is also served, transferred and re-signed.
    #[serde(skip)]
    pub(super) extras: bool,
    /// Name of the zone in the data.
    pub(super) zone: String,
    source: String,
    #[serde(flatten)]
    pub(super) counts: ZoneCounts,
    /// Size of the file.
    octets: u64,
    /// Counts of the changes in the changed version, if it exists.
    changes: Option<Changes>,
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

/// Number of signatures that the faster code for many signatures processes together. `zone sign` and
/// `zone verify` pass more signatures of a key at a time, if the zone has them.
const BATCH: u16 = 64;

/// Apex of generated zones. Like the top-level domains that they imitate, it has two letters. ISO
/// 3166-1 reserves this code for its users, so it belongs to no country.
const ORIGIN: &str = "zz.";

impl Runner<'_> {
    /// Adds the programs of the levels. If no level has a program, adds this program at level
    /// native. If the user selected the levels, a level without a program is an error instead.
    pub(super) fn add_levels(&mut self) -> Result<(), RunError> {
        let selections: Vec<_> =
            self.choices.iter().map(|chosen| Selection::Signatures(chosen.choice)).collect();
        // Without selections, the list would contain all algorithms.
        let subjects = if selections.is_empty() { Vec::new() } else { Subject::list(&selections, BATCH, 0) };
        let keys = self.findings.make_keys(&subjects);
        for level in self.parameters.levels.clone() {
            if self.signers.iter().all(|signer| signer.level != level.name()) {
                self.add_level(level, &keys)?;
            }
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
        let ours = || LevelProgram { program: self.options.program.to_path_buf(), environment: &[] };
        let found = level.find(self.options.program).and_then(|found| {
            let program = found.unwrap_or_else(ours);
            program.version().map(|version| (program, version))
        });
        let Some((program, version)) = self.findings.level_or_note(self.options, found)? else {
            return Ok(());
        };
        self.findings.check_version(level, &version);
        let version = format!("Nonesuch {version}");
        let implementations = self.describe_code(&program, keys)?;
        self.signers.push(LevelSigner { level: level.name(), version, implementations, program });
        Ok(())
    }

    /// Returns the code with which a program signs and verifies with each algorithm.
    fn describe_code(
        &self,
        program: &LevelProgram,
        keys: &[(Subject, String)],
    ) -> Result<Vec<ZoneImplementation>, RunError> {
        let fault = |source| RunError::Prober { program: program.program.clone(), source };
        let (prober, _) = Prober::prepare(Some(program), keys, self.options.seed).map_err(fault)?;
        let mut found = Vec::new();
        for chosen in &self.choices {
            for operation in [Operation::Sign, Operation::Verify] {
                let code = prober.implementation(chosen.choice, BATCH, operation).cloned();
                let algorithm = chosen.choice.to_string();
                found.extend(code.map(|code| ZoneImplementation { algorithm, operation, code }));
            }
        }
        Ok(found)
    }

    /// Writes each zone to the temporary directory, without DNSSEC records. For a zone that is
    /// re-signed, also writes a changed version.
    pub(super) fn add_zones(&mut self) -> Result<(), RunError> {
        let choices = deduplicate(self.parameters.zones.iter().cloned());
        let count = choices.len();
        for (place, choice) in choices.into_iter().enumerate() {
            self.options.begin(0, 1, &format!("generating {choice}"));
            self.add_zone(place, &choice, self.parameters.served.holds(place, count))?;
        }
        Ok(())
    }

    fn add_zone(&mut self, place: usize, choice: &ZoneChoice, extras: bool) -> Result<(), RunError> {
        let file = self.folder.path().join(format!("zone-{place}"));
        let changed = (extras && self.parameters.change_share.value() > 0.0)
            .then(|| self.folder.path().join(format!("changed-{place}")));
        let mut examine = self.examiner();
        let source = match choice {
            ZoneChoice::Like { like, names } => {
                self.generate(*like, *names, &file)?;
                examine.arg(&file).args(["--origin", ORIGIN]);
                format!("generated like {like} with {names} names, seed {}", self.options.seed)
            }
            ZoneChoice::File { path, origin } => {
                examine.arg(path).arg("--unsigned").arg(&file);
                origin.iter().for_each(|origin| _ = examine.args(["--origin", origin]));
                path.display().to_string()
            }
        };
        if let Some(changed) = &changed {
            let (share, seed) = (self.parameters.change_share.value(), self.options.seed);
            examine
                .arg("--changed")
                .arg(changed)
                .arg(format!("--share={share}"))
                .arg(format!("--seed={seed}"));
        }
        let found = self.examine(&mut examine)?;
        self.zones.push(Zone {
            octets: fs::metadata(&file).map_or(0, |data| data.len()),
            file,
            changed,
            extras,
            zone: choice.to_string(),
            source,
            counts: found.counts,
            changes: found.changes,
        });
        Ok(())
    }

    fn generate(&self, like: ZoneModel, names: u64, file: &Path) -> Result<(), RunError> {
        let failed = |reason: String| RunError::Zone { zone: file.display().to_string(), reason };
        let mut out = File::create(file).map_err(|error| failed(error.to_string()))?;
        let options = GenerateOptions { like, names, seed: self.options.seed, origin: ORIGIN };
        generate(&options, &mut out).map_err(|error| failed(error.to_string()))?;
        Ok(())
    }

    /// Returns the command `nonesuch lab zone` of this program, whose time is not measured.
    pub(super) fn examiner(&self) -> Command {
        let mut command = command_with_all_cpu_features(self.options.program);
        command.args(["lab", "zone"]);
        command
    }

    /// Runs a command from [`Self::examiner`] and parses its output.
    pub(super) fn examine(&self, command: &mut Command) -> Result<ExamineResult, RunError> {
        let program = self.options.program.display().to_string();
        let ended = job::run(command).map_err(|error| match error {
            JobError::Start(_) => RunError::Probe { program: program.clone(), reason: error.to_string() },
            // The message begins with the name of the file.
            JobError::Failed { .. } => {
                RunError::Zone { zone: "invalid zone".to_owned(), reason: error.to_string() }
            }
        })?;
        let unread = |error: serde_json::Error| RunError::Probe { program, reason: error.to_string() };
        serde_json::from_str(&ended.output).map_err(unread)
    }

    /// Returns a directory with a KSK and a ZSK for this zone and algorithm. All programs use the
    /// same keys.
    pub(super) fn keys(&mut self, zone: usize, algorithm: usize) -> Result<PathBuf, JobError> {
        let folder = self.folder.path().join(format!("keys-{zone}-{algorithm}"));
        if self.keys.contains(&folder) {
            return Ok(folder);
        }
        fs::create_dir_all(&folder)?;
        let choice = self.choices[algorithm].choice;
        for kind in [Some("--ksk"), None] {
            let mut command = command_with_all_cpu_features(self.options.program);
            command.args(["key", "generate", &self.zones[zone].counts.origin, "--algorithm"]);
            command.arg(choice.algorithm.to_string()).arg("--dir").arg(&folder).args(kind);
            // The keys are active at the time of signing.
            command.args(["--now", &self.options.now.to_string()]);
            if let Some(bits) = choice.bits {
                command.args(["--force", "--bits", &bits.to_string()]);
            }
            job::run(&mut command)?;
        }
        self.keys.insert(folder.clone());
        Ok(folder)
    }
}
