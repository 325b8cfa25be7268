//! Errors of reading, running and storing experiments.

use super::csv::CsvError;
use super::parquet_file::ParquetFileError;
use super::server_load::ZoneSourceError;
use crate::data::RowMismatch;
use crate::load::LoadError;
use crate::measure::ForeignError;
use crate::measure::level::LevelError;
use crate::measure::loaded::LoadedError;
use crate::measure::prepare::PrepareZoneError;
use crate::measure::prober::ProberError;
use crate::measure::zone_preparation::ZonePreparationError;
use crate::presentation::PresentationError;
use crate::record::RecordError;
use crate::testbed::TestbedError;
use nonesuch_zone::read::read_remedy;
use std::io;
use std::path::{Path, PathBuf};

/// Reasons why a definition is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum DefinitionError {
    #[error(
        "unknown experiment '{name}': `nonesuch lab list` shows the built-in experiments; write ./{name} for a file"
    )]
    Unknown { name: String },
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: too large for an experiment definition: the maximum is 1 MiB", path.display())]
    TooLarge { path: PathBuf },
    #[error("{file}:{line}:{column}: {message}")]
    Malformed { file: String, line: usize, column: usize, message: String },
    #[error("{file}: the parameters are inconsistent: {message}")]
    Parameters { file: String, message: String },
    #[error("{file}: {source}")]
    Presentation { file: String, source: PresentationError },
    #[error("--set {key}: unknown parameter; known are {known}")]
    UnknownParameter { key: String, known: String },
    #[error("--set {key}={value}: {message}")]
    Set { key: String, value: String, message: String },
}

/// Reasons why an experiment fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum RunError {
    #[error("nothing to measure: {reason}")]
    Nothing { reason: String },
    #[error("{source}; or remove the level from `--set levels=`")]
    Level { source: LevelError },
    #[error("cannot bind to CPU {cpu}: {source}; choose another CPU with --cpu, or none with --cpu none")]
    Pin { cpu: usize, source: io::Error },
    #[error("{}: {source}", program.display())]
    Prober { program: PathBuf, source: ProberError },
    #[error("{}: cannot create a directory for zones: {source}; set TMPDIR to another directory", path.display())]
    Directory { path: PathBuf, source: io::Error },
    #[error(transparent)]
    PrepareZone(#[from] PrepareZoneError),
    #[error(transparent)]
    Loaded(#[from] LoadedError),
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    #[error(transparent)]
    ZoneSource(#[from] ZoneSourceError),
    #[error(transparent)]
    ZonePreparation(#[from] ZonePreparationError),
    #[error("{name}: {source}")]
    LoadedServer { name: String, source: Box<LoadError> },
    #[error(transparent)]
    Testbed(#[from] TestbedError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Data(#[from] RowMismatch),
}

/// Reasons why results cannot be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum StoreError {
    #[error(
        "{}: cannot be read: {source}{}; name the output directory of `nonesuch lab run`",
        path.display(), read_remedy(source)
    )]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{}: contains {what}, which would be overwritten: choose another directory with --out, or add --overwrite",
        dir.display()
    )]
    Occupied { dir: PathBuf, what: String },
    #[error(
        "{}: not a results file of `nonesuch lab run`: {source}; name the output directory of `nonesuch lab run`",
        path.display()
    )]
    Record { path: PathBuf, source: serde_json::Error },
    #[error("{}: has format {found}, but only format {known} is supported: run the experiment again with this version", path.display())]
    Format { path: PathBuf, found: u32, known: u32 },
    #[error("{}: has more than {limit} {what}: merge only output directories of `nonesuch lab run`", path.display())]
    TooMany { path: PathBuf, what: &'static str, limit: usize },
    #[error("{}: {source}; use the file as `nonesuch lab run` wrote it, or run the experiment again", path.display())]
    Csv { path: PathBuf, source: CsvError },
    #[error("{}: {source}", path.display())]
    Parquet { path: PathBuf, source: ParquetFileError },
    #[error(
        "{}: this table and {} are from different runs: use both files of the same run, or run the experiment again",
        data.display(),
        record.display()
    )]
    Mismatch { data: PathBuf, record: PathBuf },
    #[error("{}: {source}", path.display())]
    Presentation { path: PathBuf, source: PresentationError },
}

/// Creates a temporary directory for zones, keys and results in `within`.
pub(super) fn temporary_directory(within: &Path) -> Result<tempfile::TempDir, RunError> {
    let directory = tempfile::Builder::new().prefix("nonesuch-lab-").tempdir_in(within);
    directory.map_err(|source| RunError::Directory { path: within.to_path_buf(), source })
}
