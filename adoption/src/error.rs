//! Errors of the commands.

use crate::check::FileFault;
use crate::import::ImportError;
use datafusion::error::DataFusionError;
use datafusion::parquet::errors::ParquetError;
use nonesuch_lab::record::RecordError;
use nonesuch_lab::report::PageError;
use std::fmt::Write as _;
use std::io;
use std::path::PathBuf;

/// Why a command fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum AdoptionError {
    #[error("cannot read {}: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("cannot write {}: {source}", path.display())]
    WriteParquet { path: PathBuf, source: ParquetError },
    #[error("{} already exists: choose another directory, or write --force to replace the file", .0.display())]
    Exists(PathBuf),
    #[error("there is no file *.parquet in {}: nonesuch adoption import writes such files", .0.display())]
    NoFiles(PathBuf),
    #[error("{}", files_text(.0))]
    Files(Vec<(PathBuf, FileFault)>),
    #[error(
        "no snapshot is left: {0} snapshots were read, and each has rows that are invalid or repeated (see above)"
    )]
    NoSnapshots(usize),
    #[error("the path {} cannot be written as a URL: use an absolute path", .0.display())]
    Path(PathBuf),
    #[error("{query}: {source}{}", memory_hint(source))]
    Query { query: &'static str, source: DataFusionError },
    #[error(transparent)]
    Import(#[from] ImportError),
    #[error(transparent)]
    Record(#[from] RecordError),
    #[error(transparent)]
    Page(#[from] PageError),
    #[error("cannot write to standard output: {0}")]
    Print(io::Error),
    #[error("cannot start threads: {0}")]
    Threads(io::Error),
    #[error("cannot write the table {table} as CSV: {source}")]
    Csv { table: &'static str, source: datafusion::arrow::error::ArrowError },
    #[error("the end of the period, {to}, is before its start, {from}")]
    Period { from: jiff::civil::Date, to: jiff::civil::Date },
}

/// Lists all files that cannot be used, so that the user can repair them at once.
fn files_text(files: &[(PathBuf, FileFault)]) -> String {
    let mut text = "files that cannot be used:".to_owned();
    for (path, fault) in files {
        let _ = write!(text, "\n  {}: {fault}", path.display());
    }
    text.push_str("\nremove or replace these files; docs/adoption.md describes the columns");
    text
}

/// Returns the remedy if the memory is exhausted.
fn memory_hint(error: &DataFusionError) -> &'static str {
    if matches!(error.find_root(), DataFusionError::ResourcesExhausted(_)) {
        "; set a larger limit with --memory, fewer --threads, or another directory with --spill"
    } else {
        ""
    }
}
