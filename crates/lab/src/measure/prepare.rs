//! Zones for jobs: a generated zone or a zone file, without DNSSEC records, and its changed
//! version. The time of the preparation is not measured.

use super::job::{self, JobError};
use super::level::command_with_all_cpu_features;
use super::zone_choice::ZoneChoice;
use super::{Changes, ExamineResult, ZoneCounts};
use crate::generate::{GenerateError, GenerateOptions, generate};
use crate::load::QueryListError;
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
    #[error("cannot write {}: {source}; set TMPDIR to another directory", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot generate the zone: {0}")]
    Generate(GenerateError),
    #[error("cannot prepare the zone: {0}")]
    Failed(#[from] JobError),
    #[error("{}: the output is not that of this version: {source}; run the experiment again", program.display())]
    Output { program: PathBuf, source: serde_json::Error },
    #[error(transparent)]
    Queries(#[from] QueryListError),
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

/// Generates a zone into `file`.
pub(crate) fn write_generated(options: &GenerateOptions<'_>, file: &Path) -> Result<(), PrepareZoneError> {
    let path = file.to_path_buf();
    let mut out = match File::create(file) {
        Ok(out) => out,
        Err(source) => return Err(PrepareZoneError::Write { path, source }),
    };
    generate(options, &mut out).map(drop).map_err(|error| match error {
        GenerateError::Write(source) => PrepareZoneError::Write { path, source },
        other => PrepareZoneError::Generate(other),
    })
}

/// Prepares zones with this program.
#[derive(Clone, Copy)]
pub(crate) struct ZonePreparer<'a> {
    pub(crate) program: &'a Path,
    /// Directory for the files.
    pub(crate) directory: &'a Path,
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
        let file = self.directory.join(format!("zone-{place}"));
        let changed = change_share.map(|share| (share, self.directory.join(format!("changed-{place}"))));
        let mut examine = self.examiner();
        let source = match choice {
            ZoneChoice::Like { like, names } => {
                let (like, names, seed) = (*like, *names, self.seed);
                write_generated(&GenerateOptions { like, names, seed, origin: ORIGIN }, &file)?;
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

    /// Returns the command `nonesuch lab zone` of this program.
    pub(crate) fn examiner(&self) -> Command {
        let mut command = command_with_all_cpu_features(self.program);
        command.args(["lab", "zone"]);
        command
    }

    /// Runs a command from [`Self::examiner`] and parses its output.
    pub(crate) fn examine(&self, command: &mut Command) -> Result<ExamineResult, PrepareZoneError> {
        let ended = job::run(command)?;
        serde_json::from_str(&ended.output)
            .map_err(|source| PrepareZoneError::Output { program: self.program.to_path_buf(), source })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn zones_that_cannot_be_prepared_are_told() {
        let directory = tempfile::tempdir().expect("a directory");
        let choice: ZoneChoice = "tld:20".parse().expect("a choice");
        let fault = |program: &str, directory: &Path| {
            let preparer = ZonePreparer { program: Path::new(program), directory, seed: 1 };
            preparer.prepare(0, &choice, Some(0.1)).expect_err("a fault")
        };
        let error = fault("/nonexistent/nonesuch", directory.path());
        assert!(matches!(error, PrepareZoneError::Failed(JobError::Run { .. })), "{error}");
        // The zone file is written before the program reads it.
        assert!(fs::metadata(directory.path().join("zone-0")).expect("written").len() > 100);
        let error = fault("/bin/false", directory.path());
        assert!(matches!(error, PrepareZoneError::Failed(JobError::Failed { .. })), "{error}");
        assert!(matches!(fault("/bin/echo", directory.path()), PrepareZoneError::Output { .. }));
        let error = fault("/bin/false", Path::new("/nonexistent"));
        assert!(matches!(error, PrepareZoneError::Write { .. }), "{error}");
    }
}
