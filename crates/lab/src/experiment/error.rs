//! Errors of reading, running and storing experiments.

use super::csv::CsvError;
use super::parquet_file::ParquetFileError;
use crate::data::UnfitRow;
use crate::measure::ForeignError;
use crate::measure::level::LevelError;
use crate::presentation::PresentationError;
use nonesuch_zone::read::read_remedy;
use std::io;
use std::path::{Path, PathBuf};

/// Reasons why a definition is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum DefinitionError {
    #[error(
        "there is no experiment '{name}': `nonesuch lab list` shows those that are built in; write ./{name} for a file"
    )]
    Unknown { name: String },
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: too large for an experiment, which takes at most 1 MiB", path.display())]
    TooLarge { path: PathBuf },
    #[error("{file}:{line}:{column}: {message}")]
    Malformed { file: String, line: usize, column: usize, message: String },
    #[error("{file}: the parameters do not go together: {message}")]
    Parameters { file: String, message: String },
    #[error("{file}: {source}")]
    Presentation { file: String, source: PresentationError },
    #[error("--set {key}: there is no such parameter; there are {known}")]
    UnknownParameter { key: String, known: String },
    #[error("--set {key}={value}: {message}")]
    Set { key: String, value: String, message: String },
}

/// Reasons why an experiment fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum RunError {
    #[error("nothing is left to measure: {reason}")]
    Nothing { reason: String },
    #[error("{source}; or take it out of `--set levels=`")]
    Level { source: LevelError },
    #[error("cannot keep to CPU {cpu}: {source}; choose another one with --cpu, or none with --cpu none")]
    Pin { cpu: usize, source: io::Error },
    #[error("{subject}: {operation} fails: figures of it would say nothing")]
    Operation { subject: String, operation: &'static str },
    #[error("{}: a folder for zones cannot be made: {source}; name another place with TMPDIR", path.display())]
    Folder { path: PathBuf, source: io::Error },
    #[error("{zone}: {reason}")]
    Zone { zone: String, reason: String },
    #[error("{program}: {reason}")]
    Probe { program: String, reason: String },
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    #[error(transparent)]
    Data(#[from] UnfitRow),
}

/// Reasons why results cannot be stored or read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum StoreError {
    #[error(
        "{}: cannot be read: {source}{}; results are in the folder that `nonesuch lab run` left",
        path.display(), read_remedy(source)
    )]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error(
        "{}: holds {what}, which would be overwritten: choose another folder with --out, or add --overwrite",
        dir.display()
    )]
    Occupied { dir: PathBuf, what: String },
    #[error("{}: is no record of results as `nonesuch lab run` writes it: {source}", path.display())]
    Record { path: PathBuf, source: serde_json::Error },
    #[error("{}: has format {found}, but format {known} is read: make it anew with this version", path.display())]
    Format { path: PathBuf, found: u32, known: u32 },
    #[error("{}: {source}", path.display())]
    Csv { path: PathBuf, source: CsvError },
    #[error("{}: {source}", path.display())]
    Parquet { path: PathBuf, source: ParquetFileError },
    #[error(
        "{}: is not the table that {} was written with: take both from one run, or run the experiment again",
        data.display(),
        record.display()
    )]
    Mismatch { data: PathBuf, record: PathBuf },
    #[error("{}: {source}", path.display())]
    Presentation { path: PathBuf, source: PresentationError },
}

/// Creates a temporary directory for zones, keys and results in `within`.
pub(super) fn temporary_folder(within: &Path) -> Result<tempfile::TempDir, RunError> {
    let folder = tempfile::Builder::new().prefix("nonesuch-lab-").tempdir_in(within);
    folder.map_err(|source| RunError::Folder { path: within.to_path_buf(), source })
}
