//! Errors of recordings.

use crate::data::RowMismatch;
use crate::experiment::CsvError;
use crate::experiment::parquet_file::ParquetFileError;
use std::io;
use std::path::PathBuf;

/// Why a recording cannot be read or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum RecordingError {
    #[error(
        "{}: is not a recording: the directory has no file recording.json: name a directory that \
        `nonesuch plan record --out` wrote",
        path.display()
    )]
    NotARecording { path: PathBuf },
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: is not a description of a recording: {source}: restore the file, or record again", path.display())]
    Metadata { path: PathBuf, source: serde_json::Error },
    #[error(
        "{}: has the format {found}, and this program knows {known}: use the version of nonesuch that wrote it",
        path.display()
    )]
    Format { path: PathBuf, found: u32, known: u32 },
    #[error("{}: {source}: restore the file, or remove this part and all later ones", path.display())]
    Csv { path: PathBuf, source: CsvError },
    #[error(
        "{}: is missing, but the recording has {parts} parts: restore the file, or remove all later parts and set \
        \"parts\" in recording.json",
        path.display()
    )]
    MissingPart { path: PathBuf, parts: u32 },
    #[error("{}: line {line}: {fault}: remove the line, or record again", path.display())]
    Window { path: PathBuf, line: usize, fault: WindowFault },
    #[error("{}: line {line}: expected a domain name, two numbers, and 0 or 1: remove the line", path.display())]
    Domain { path: PathBuf, line: usize },
    #[error("{}: has more than {limit} {what}: record with longer windows", path.display())]
    TooMany { path: PathBuf, what: &'static str, limit: usize },
    #[error("{}: the recording has no window: record for longer than one window", path.display())]
    Empty { path: PathBuf },
    #[error(
        "{}: contains a recording with another {what}: {found}, and not {wanted}: record to another directory, or \
        repeat the options of the recording",
        path.display()
    )]
    Differs { path: PathBuf, what: &'static str, found: String, wanted: String },
    #[error("{}: another process records to this directory: end it, or name another directory", path.display())]
    InUse { path: PathBuf },
    #[error("{}: contains other files: name an empty or new directory", path.display())]
    Occupied { path: PathBuf },
    #[error(transparent)]
    Table(#[from] RowMismatch),
    #[error("{}: {source}", path.display())]
    Parquet { path: PathBuf, source: ParquetFileError },
}

/// Why a window is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum WindowFault {
    #[error("the column {column} is empty")]
    Missing { column: &'static str },
    #[error("the column {column} has a negative number")]
    Negative { column: &'static str },
    #[error("the window has no length, or ends after the range of times")]
    Length,
    #[error(
        "the window begins before the end of the one above it: a clock went back, or lines were exchanged"
    )]
    Order,
    #[error("{part} is greater than {whole}")]
    Contradiction { part: &'static str, whole: &'static str },
}
