//! What a run needs before anything is measured: programs, zones, keys.

use super::super::parameters::ZoneChoice;
use super::super::{LevelFacts, ZoneFacts, child};
use super::{Runner, Signer, Zone};
use crate::experiment::error::RunError;
use crate::experiment::level::{Level, LevelProgram};
use crate::experiment::run::Step;
use crate::experiment::signing::Examined;
use crate::generate::{GenerateOptions, Like, generate};
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// The apex of generated zones: two letters, as those that they are like have, which are nobody's (ISO 3166-1 leaves
/// them to users).
const ORIGIN: &str = "zz.";

impl Runner<'_> {
    /// Where none of the levels has its program, and nobody chose them, this program is measured as it is.
    pub(super) fn add_levels(&mut self) -> Result<(), RunError> {
        for level in self.parameters.levels.clone() {
            if self.signers.iter().all(|signer| signer.name != level.name()) {
                self.add_level(level)?;
            }
        }
        if self.signers.is_empty() && !self.parameters.levels.contains(&Level::Native) {
            self.note(
                "No program of these levels is there: this program is measured as it is, at level native."
                    .to_owned(),
            );
            self.add_level(Level::Native)?;
        }
        Ok(())
    }

    fn add_level(&mut self, level: Level) -> Result<(), RunError> {
        let found = level.find(self.options.program).and_then(|found| {
            let program = found.unwrap_or_else(|| LevelProgram {
                program: self.options.program.to_path_buf(),
                environment: Vec::new(),
            });
            version(&program).map(|version| (program, version))
        });
        let (program, version) = match found {
            Ok(found) => found,
            Err(reason) if self.options.levels_chosen => return Err(RunError::Level { reason }),
            Err(reason) => {
                self.note(format!("Left out: {reason}."));
                return Ok(());
            }
        };
        if version != env!("CARGO_PKG_VERSION") {
            self.note(format!("The program of level {} is of version {version}.", level.name()));
        }
        self.about.levels.push(LevelFacts {
            level: level.name().to_owned(),
            version: format!("Nonesuch {version}"),
            environment: program.environment.clone(),
        });
        self.signers.push(Signer { name: level.name(), program });
        Ok(())
    }

    /// Leaves each zone in the folder, and a changed form of those that are signed again.
    pub(super) fn add_zones(&mut self) -> Result<(), RunError> {
        let mut choices: Vec<ZoneChoice> = Vec::new();
        for choice in &self.parameters.zones {
            if !choices.contains(choice) {
                choices.push(choice.clone());
            }
        }
        let count = choices.len();
        for (place, choice) in choices.into_iter().enumerate() {
            (self.options.progress)(Step { index: 0, steps: 1, what: &format!("making {choice}") });
            let extras = self.parameters.served.holds(place, count);
            self.add_zone(place, &choice, extras)?;
        }
        Ok(())
    }

    fn add_zone(&mut self, place: usize, choice: &ZoneChoice, extras: bool) -> Result<(), RunError> {
        let file = self.folder.path().join(format!("zone-{place}"));
        let changed = (extras && f64::from(self.parameters.change_share) > 0.0)
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
            let (share, seed) = (f64::from(self.parameters.change_share), self.options.seed);
            examine
                .arg("--changed")
                .arg(changed)
                .arg(format!("--share={share}"))
                .arg(format!("--seed={seed}"));
        }
        let found = self.examine(&mut examine)?;
        self.about.zones.push(ZoneFacts {
            zone: choice.to_string(),
            source,
            origin: found.origin.clone(),
            records: found.records,
            names: found.names,
            delegations: found.delegations,
            signed_delegations: found.signed_delegations,
            octets: fs::metadata(&file).map_or(0, |data| data.len()),
            changes: found.changes,
        });
        self.zones.push(Zone {
            name: choice.to_string(),
            file,
            changed,
            origin: found.origin,
            names: found.names,
            delegations: found.delegations,
            signed_delegations: found.signed_delegations,
            extras,
        });
        Ok(())
    }

    fn generate(&self, like: Like, names: u64, file: &Path) -> Result<(), RunError> {
        let failed = |reason: String| RunError::Zone { zone: file.display().to_string(), reason };
        let mut out = File::create(file).map_err(|error| failed(error.to_string()))?;
        let options = GenerateOptions { like, names, seed: self.options.seed, origin: ORIGIN };
        generate(&options, &mut out).map_err(|error| failed(error.to_string()))?;
        Ok(())
    }

    /// `nonesuch lab zone`, by this program: what it does is not measured.
    pub(super) fn examiner(&self) -> Command {
        let mut command = crate::experiment::level::unmasked(self.options.program);
        command.args(["lab", "zone"]);
        command
    }

    pub(super) fn examine(&self, command: &mut Command) -> Result<Examined, RunError> {
        let program = self.options.program.display().to_string();
        let ended = child::run(command)
            .map_err(|error| RunError::Probe { program: program.clone(), reason: error.to_string() })?;
        if let Some(fault) = ended.fault() {
            // What it says of a file begins with that file.
            return Err(RunError::Zone { zone: "a zone cannot be taken".to_owned(), reason: fault });
        }
        let unread = |error: serde_json::Error| RunError::Probe { program, reason: error.to_string() };
        serde_json::from_str(&ended.output).map_err(unread)
    }

    /// A folder with a KSK and a ZSK of a zone's own, the same for all programs.
    pub(super) fn keys(&mut self, zone: usize, algorithm: usize) -> Result<PathBuf, String> {
        if let Some(folder) = self.keys.get(&(zone, algorithm)) {
            return Ok(folder.clone());
        }
        let folder = self.folder.path().join(format!("keys-{zone}-{algorithm}"));
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let choice = self.choices[algorithm].0;
        for kind in [Some("--ksk"), None] {
            let mut command = crate::experiment::level::unmasked(self.options.program);
            command.args(["key", "generate", &self.zones[zone].origin, "--algorithm"]);
            command.arg(choice.algorithm.to_string()).arg("--dir").arg(&folder).args(kind);
            if let Some(bits) = choice.bits {
                command.args(["--force", "--bits", &bits.to_string()]);
            }
            let ended = child::run(&mut command).map_err(|error| error.to_string())?;
            ended.fault().map_or(Ok(()), Err)?;
        }
        self.keys.insert((zone, algorithm), folder.clone());
        Ok(folder)
    }
}

/// What the program says that it is.
fn version(program: &LevelProgram) -> Result<String, String> {
    let path = program.program.display();
    let ended = child::run(program.command().arg("--version")).map_err(|error| format!("{path}: {error}"))?;
    if let Some(fault) = ended.fault() {
        return Err(format!("{path}: {fault}"));
    }
    let version = ended.output.trim().strip_prefix("nonesuch ").map(str::to_owned);
    version.ok_or_else(|| format!("{path}: is no nonesuch: --version says otherwise"))
}
