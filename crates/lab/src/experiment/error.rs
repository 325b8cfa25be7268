//! What keeps an experiment from being read, run or kept.

use super::csv::CsvError;
use super::parquet_file::ParquetFileError;
use crate::data::UnfitRow;
use crate::measure::ForeignError;
use crate::measure::level::LevelError;
use crate::presentation::PresentationError;
use nonesuch_zone::read::read_remedy;
use std::io;
use std::path::PathBuf;

/// Why a text is no experiment.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum DefinitionError {
    /// There is none of that name.
    #[error(
        "there is no experiment '{name}': `nonesuch lab list` shows those that are built in; write ./{name} for a file"
    )]
    Unknown {
        /// The name.
        name: String,
    },
    /// The file cannot be read.
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The file is larger than any experiment.
    #[error("{}: too large for an experiment, which takes at most 1 MiB", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// The file is at fault.
    #[error("{file}:{line}:{column}: {message}")]
    Malformed {
        /// The file.
        file: String,
        /// The line, from 1.
        line: usize,
        /// The column, from 1.
        column: usize,
        /// What is wrong, and what was expected.
        message: String,
    },
    /// The parameters do not go together.
    #[error("{file}: the parameters do not go together: {message}")]
    Parameters {
        /// The file.
        file: String,
        /// What is wrong.
        message: String,
    },
    /// The presentation is at fault.
    #[error("{file}: {source}")]
    Presentation {
        /// The file.
        file: String,
        /// What is wrong.
        source: PresentationError,
    },
    /// A parameter that there is not was to be set.
    #[error("--set {key}: there is no such parameter; there are {known}")]
    UnknownParameter {
        /// The parameter.
        key: String,
        /// Those that there are.
        known: String,
    },
    /// A parameter cannot have that value.
    #[error("--set {key}={value}: {message}")]
    Set {
        /// The parameter.
        key: String,
        /// The value.
        value: String,
        /// What is wrong.
        message: String,
    },
}

/// Why an experiment has no results.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// There is nothing to measure.
    #[error("nothing is left to measure: {reason}")]
    Nothing {
        /// Why.
        reason: String,
    },
    /// A level that was asked for cannot be measured.
    #[error("{source}; or take it out of `--set levels=`")]
    Level {
        /// The level, and why.
        source: LevelError,
    },
    /// The CPU cannot be used.
    #[error("cannot keep to CPU {cpu}: {source}; choose another one with --cpu, or none with --cpu none")]
    Pin {
        /// Number of the CPU.
        cpu: usize,
        /// What the system said.
        source: io::Error,
    },
    /// What is measured fails.
    #[error("{subject}: {operation} fails: figures of it would say nothing")]
    Operation {
        /// What.
        subject: String,
        /// Which operation.
        operation: &'static str,
    },
    /// There is no room for what is measured.
    #[error("{}: a folder for zones cannot be made: {source}; name another place with TMPDIR", path.display())]
    Folder {
        /// Where.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A zone cannot be made or read.
    #[error("{zone}: {reason}")]
    Zone {
        /// The zone.
        zone: String,
        /// Why.
        reason: String,
    },
    /// A program that measures on our behalf fails.
    #[error("{program}: {reason}")]
    Probe {
        /// The program.
        program: String,
        /// Why.
        reason: String,
    },
    /// A file of instructions that were counted elsewhere is refused.
    #[error(transparent)]
    Foreign(#[from] ForeignError),
    /// The data do not fit their columns, which is a fault of this program.
    #[error(transparent)]
    Data(#[from] UnfitRow),
}

/// Why results are not kept or not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum StoreError {
    /// A file cannot be read.
    #[error(
        "{}: cannot be read: {source}{}; results are in the folder that `nonesuch lab run` left",
        path.display(), read_remedy(source)
    )]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// A file cannot be written.
    #[error("{}: cannot be written: {source}", path.display())]
    Write {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// The folder holds something else.
    #[error(
        "{}: holds {what}, which would be overwritten: choose another folder with --out, or add --overwrite",
        dir.display()
    )]
    Occupied {
        /// The folder.
        dir: PathBuf,
        /// What it holds.
        what: String,
    },
    /// The record cannot be read.
    #[error("{}: is no record of results as `nonesuch lab run` writes it: {source}", path.display())]
    Record {
        /// The file.
        path: PathBuf,
        /// Why.
        source: serde_json::Error,
    },
    /// The record is of another version.
    #[error("{}: has format {found}, but format {known} is read: make it anew with this version", path.display())]
    Format {
        /// The file.
        path: PathBuf,
        /// The version found.
        found: u32,
        /// The version that is read.
        known: u32,
    },
    /// The CSV file is at fault.
    #[error("{}: {source}", path.display())]
    Csv {
        /// The file.
        path: PathBuf,
        /// Why.
        source: CsvError,
    },
    /// The Parquet file is at fault.
    #[error("{}: {source}", path.display())]
    Parquet {
        /// The file.
        path: PathBuf,
        /// Why.
        source: ParquetFileError,
    },
    /// The data are not those that the record is of.
    #[error(
        "{}: is not the table that {} was written with: take both from one run, or run the experiment again",
        data.display(),
        record.display()
    )]
    Mismatch {
        /// The file of data.
        data: PathBuf,
        /// The record.
        record: PathBuf,
    },
    /// There is no report of the data.
    #[error("{}: {source}", path.display())]
    Presentation {
        /// The record.
        path: PathBuf,
        /// Why.
        source: PresentationError,
    },
}

/// A folder for zones, keys and outcomes.
pub(super) fn temporary_folder() -> Result<tempfile::TempDir, RunError> {
    let folder = tempfile::Builder::new().prefix("nonesuch-lab-").tempdir();
    folder.map_err(|source| RunError::Folder { path: std::env::temp_dir(), source })
}
