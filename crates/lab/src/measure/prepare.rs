//! Zones for jobs: a generated zone or a zone file, without DNSSEC records, its changed version, and
//! keys. The time of the preparation is not measured.

use super::job::{self, JobError};
use super::level::command_with_all_cpu_features;
use super::zone_choice::ZoneChoice;
use super::{Changes, Choice, ExamineResult, ZoneCounts};
use crate::generate::{GenerateError, GenerateOptions, ZoneModel, generate};
use serde::Serialize;
use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Apex of generated zones. Like the top-level domains that they imitate, it has two letters. ISO
/// 3166-1 reserves this code for its users, so it belongs to no country.
const ORIGIN: &str = "zz.";

/// Reasons why a zone cannot be prepared.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum PrepareZoneError {
    #[error("{}: {source}", path.display())]
    Create { path: PathBuf, source: io::Error },
    #[error("{}: {source}", path.display())]
    Generate { path: PathBuf, source: GenerateError },
    #[error("{}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    /// The message of the job begins with the name of the file.
    #[error("invalid zone: {0}")]
    Invalid(JobError),
    #[error("{}: {source}", program.display())]
    Output { program: PathBuf, source: serde_json::Error },
}

/// A zone and its properties.
#[derive(Debug, Serialize)]
pub(crate) struct PreparedZone {
    #[serde(skip)]
    pub(crate) file: PathBuf,
    /// File with a changed version of the zone, if there is one.
    #[serde(skip)]
    pub(crate) changed: Option<PathBuf>,
    /// Name of the zone in the data.
    pub(crate) zone: String,
    source: String,
    #[serde(flatten)]
    pub(crate) counts: ZoneCounts,
    /// Size of the file.
    octets: u64,
    /// Counts of the changes in the changed version, if it exists.
    changes: Option<Changes>,
}

/// Prepares zones with this program.
#[derive(Clone, Copy)]
pub(crate) struct ZonePreparer<'a> {
    pub(crate) program: &'a Path,
    /// Directory for the files.
    pub(crate) folder: &'a Path,
    pub(crate) seed: u64,
}

impl ZonePreparer<'_> {
    /// Writes a zone without DNSSEC records, as number `place`. If `change_share` is given, also
    /// writes a version in which this share of the records differs.
    pub(crate) fn prepare(
        &self,
        place: usize,
        choice: &ZoneChoice,
        change_share: Option<f64>,
    ) -> Result<PreparedZone, PrepareZoneError> {
        let file = self.folder.join(format!("zone-{place}"));
        let changed = change_share.map(|share| (share, self.folder.join(format!("changed-{place}"))));
        let mut examine = self.examiner();
        let source = match choice {
            ZoneChoice::Like { like, names } => {
                self.generate(*like, *names, &file)?;
                examine.arg(&file).args(["--origin", ORIGIN]);
                format!("generated like {like} with {names} names, seed {}", self.seed)
            }
            ZoneChoice::File { path, origin } => {
                examine.arg(path).arg("--unsigned").arg(&file);
                origin.iter().for_each(|origin| _ = examine.args(["--origin", origin]));
                path.display().to_string()
            }
        };
        if let Some((share, changed)) = &changed {
            examine.arg("--changed").arg(changed);
            examine.args([format!("--share={share}"), format!("--seed={}", self.seed)]);
        }
        let found = self.examine(&mut examine)?;
        Ok(PreparedZone {
            octets: fs::metadata(&file).map_or(0, |data| data.len()),
            file,
            changed: changed.map(|(_, file)| file),
            zone: choice.to_string(),
            source,
            counts: found.counts,
            changes: found.changes,
        })
    }

    fn generate(&self, like: ZoneModel, names: u64, file: &Path) -> Result<(), PrepareZoneError> {
        let path = file.to_path_buf();
        let mut out = match File::create(file) {
            Ok(out) => out,
            Err(source) => return Err(PrepareZoneError::Create { path, source }),
        };
        let options = GenerateOptions { like, names, seed: self.seed, origin: ORIGIN };
        generate(&options, &mut out).map_err(|source| PrepareZoneError::Generate { path, source })?;
        Ok(())
    }

    /// Returns the command `nonesuch lab zone` of this program.
    pub(crate) fn examiner(&self) -> Command {
        let mut command = command_with_all_cpu_features(self.program);
        command.args(["lab", "zone"]);
        command
    }

    /// Runs a command from [`Self::examiner`] and parses its output.
    pub(crate) fn examine(&self, command: &mut Command) -> Result<ExamineResult, PrepareZoneError> {
        let program = self.program.to_path_buf();
        let ended = job::run(command).map_err(|error| match error {
            JobError::Start(source) => PrepareZoneError::Start { program: program.clone(), source },
            failed @ JobError::Failed { .. } => PrepareZoneError::Invalid(failed),
        })?;
        serde_json::from_str(&ended.output).map_err(|source| PrepareZoneError::Output { program, source })
    }

    /// Generates a KSK and a ZSK for the zone `origin` in the directory `folder`. The keys are
    /// active at `now`. Also generates weak RSA keys.
    pub(crate) fn generate_keys(
        &self,
        origin: &str,
        choice: Choice,
        now: u32,
        folder: &Path,
    ) -> Result<(), JobError> {
        fs::create_dir_all(folder)?;
        for kind in [Some("--ksk"), None] {
            let mut command = command_with_all_cpu_features(self.program);
            command.args(["key", "generate", origin, "--algorithm", &choice.algorithm.to_string()]);
            command.arg("--dir").arg(folder).args(kind).args(["--now", &now.to_string()]);
            if let Some(bits) = choice.bits {
                command.args(["--force", "--bits", &bits.to_string()]);
            }
            job::run(&mut command)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_that_cannot_be_prepared_are_told() {
        let folder = tempfile::tempdir().expect("a directory");
        let choice: ZoneChoice = "tld:20".parse().expect("a choice");
        let fault = |program: &str, folder: &Path| {
            let preparer = ZonePreparer { program: Path::new(program), folder, seed: 1 };
            preparer.prepare(0, &choice, Some(0.1)).expect_err("a fault")
        };
        let error = fault("/nonexistent/nonesuch", folder.path());
        assert!(matches!(error, PrepareZoneError::Start { .. }), "{error}");
        // The zone file is written before the program reads it.
        assert!(fs::metadata(folder.path().join("zone-0")).expect("written").len() > 100);
        assert!(matches!(fault("/bin/false", folder.path()), PrepareZoneError::Invalid(_)));
        assert!(matches!(fault("/bin/echo", folder.path()), PrepareZoneError::Output { .. }));
        let error = fault("/bin/false", Path::new("/nonexistent"));
        assert!(matches!(error, PrepareZoneError::Create { .. }), "{error}");
    }
}
