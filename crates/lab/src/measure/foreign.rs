//! Instructions per operation on foreign processors, from the file that `tools/foreign` writes. The
//! file contains no times, because time under an emulator is meaningless.

use super::backend::MeasurementRow;
use super::openssl;
use super::probe;
use super::probe::ImplementationInfo;
use super::subject::{Operation, OperationNameError, Subject, SubjectError};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Maximum file size, in octets. A row needs about 200 octets.
const FILE_MAX: u64 = 1 << 20;
/// Maximum length of a processor name, in characters.
const PROCESSOR_MAX: usize = 32;
/// Value of `source` in the file for programs of this project.
const OURS: &str = "ours";

/// Reasons why a file of instruction counts is rejected.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignError {
    #[error("foreign: {}: cannot be read: {source}; `tools/foreign DIRECTORY` writes DIRECTORY/foreign.json", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("foreign: {}: too large for instruction counts: the maximum is 1 MiB; name the foreign.json that `tools/foreign` wrote", path.display())]
    TooLarge { path: PathBuf },
    #[error("foreign: {}: not a foreign.json of `tools/foreign`: {source}; write it again with `tools/foreign`", path.display())]
    Form { path: PathBuf, source: serde_json::Error },
    #[error("foreign: {}: row {row}: {reason}; write the file again with `tools/foreign`", path.display())]
    Row { path: PathBuf, row: usize, reason: RowError },
    #[error("foreign: {}: has no rows: run `tools/foreign`, which reports the missing requirements", path.display())]
    Empty { path: PathBuf },
}

/// Reasons why a row is invalid.
#[derive(Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    #[error("'{0}' is not a processor such as arm64")]
    Processor(String),
    #[error("'{name}' is not a source: known are {OURS} and {}", openssl::NAME)]
    Source { name: String },
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error(transparent)]
    Operation(#[from] OperationNameError),
    #[error("{subject} does not support the operation {}", operation.name())]
    Absent { subject: Subject, operation: Operation },
    #[error(
        "impossible values: a mean of {instructions} instructions, a minimum of {least} and a maximum of {greatest} in {count} operations"
    )]
    Numbers { count: u64, instructions: u64, least: u64, greatest: u64 },
    #[error("duplicate row: {} of {subject} on {processor}", operation.name())]
    Twice { subject: Subject, operation: Operation, processor: String },
}

/// Metadata of the counts.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForeignCountsInfo {
    /// Name and version of the emulator.
    pub counter: String,
    pub openssl: String,
    /// Time of the counting, in RFC 3339 format.
    pub date: String,
    /// Pairs of a processor and its model in the emulator.
    pub models: Vec<(String, String)>,
}

/// The JSON document in the file.
#[derive(Deserialize)]
struct Document {
    counter: String,
    openssl: String,
    date: String,
    rows: Vec<Row>,
}

/// A row of the document.
#[derive(Deserialize)]
struct Row {
    processor: String,
    model: String,
    source: String,
    algorithm: String,
    operation: String,
    count: u64,
    instructions: u64,
    least: u64,
    greatest: u64,
}

/// Content of a valid file.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) info: ForeignCountsInfo,
    pub(crate) counts: Vec<Count>,
}

/// Instructions per operation of one subject on one processor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Count {
    /// Program: `nonesuch` or `openssl`.
    pub(crate) backend: &'static str,
    pub(crate) processor: String,
    pub(crate) subject: Subject,
    pub(crate) operation: Operation,
    pub(crate) operations: u64,
    /// Mean number of instructions per operation.
    pub(crate) instructions: u64,
    /// Instructions per operation in the round with the fewest.
    pub(crate) least: u64,
    /// Instructions per operation in the round with the most.
    pub(crate) most: u64,
}

/// Reads the file at `path`.
///
/// # Errors
/// Fails if the file cannot be read, has another format, or contains an invalid row.
pub(crate) fn read(path: &Path) -> Result<Foreign, ForeignError> {
    let failed = |source| ForeignError::Read { path: path.to_path_buf(), source };
    let mut octets = Vec::new();
    File::open(path).map_err(failed)?.take(FILE_MAX + 1).read_to_end(&mut octets).map_err(failed)?;
    if octets.len() as u64 > FILE_MAX {
        return Err(ForeignError::TooLarge { path: path.to_path_buf() });
    }
    parse(&octets, path)
}

fn parse(octets: &[u8], path: &Path) -> Result<Foreign, ForeignError> {
    let document: Document = serde_json::from_slice(octets)
        .map_err(|source| ForeignError::Form { path: path.to_path_buf(), source })?;
    if document.rows.is_empty() {
        return Err(ForeignError::Empty { path: path.to_path_buf() });
    }
    let Document { counter, openssl, date, rows } = document;
    let mut foreign = Foreign {
        info: ForeignCountsInfo { counter, openssl, date, models: Vec::new() },
        counts: Vec::new(),
    };
    for (place, row) in rows.iter().enumerate() {
        let count = count_of(row).and_then(|count| foreign.add(&row.model, count));
        count.map_err(|reason| ForeignError::Row { path: path.to_path_buf(), row: place + 1, reason })?;
    }
    Ok(foreign)
}

impl Foreign {
    fn add(&mut self, model: &str, count: Count) -> Result<(), RowError> {
        if self.counts.iter().any(|other| other.key() == count.key()) {
            let Count { subject, operation, processor, .. } = count;
            return Err(RowError::Twice { subject, operation, processor });
        }
        if !self.info.models.iter().any(|(processor, _)| *processor == count.processor) {
            self.info.models.push((count.processor.clone(), model.to_owned()));
        }
        self.counts.push(count);
        Ok(())
    }
}

impl From<Count> for MeasurementRow {
    fn from(count: Count) -> Self {
        let ours = count.subject.implementation(count.operation).filter(|_| count.backend == probe::NAME);
        let library = ours.map_or(openssl::NAME, |found| found.library).to_owned();
        let batch = Some(count.subject.batch.unwrap_or(1));
        Self {
            backend: count.backend,
            subject: count.subject.to_string(),
            scheme: count.subject.scheme(),
            level: count.processor,
            // The kernel of the other processor is unknown.
            code: ImplementationInfo { library, batch, ..ImplementationInfo::default() },
            operation: count.operation.name(),
            operations: count.operations,
            instructions: Some(count.instructions),
            instructions_least: Some(count.least),
            instructions_most: Some(count.most),
            ..Self::default()
        }
    }
}

impl Count {
    fn key(&self) -> (&str, &str, Subject, Operation) {
        (self.backend, &self.processor, self.subject, self.operation)
    }
}

/// Converts a row, and rejects it if a value is invalid.
fn count_of(row: &Row) -> Result<Count, RowError> {
    let is_name = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-';
    if row.processor.is_empty() || row.processor.len() > PROCESSOR_MAX || !row.processor.bytes().all(is_name)
    {
        return Err(RowError::Processor(row.processor.clone()));
    }
    let backend = match row.source.as_str() {
        OURS => probe::NAME,
        openssl::NAME => openssl::NAME,
        other => return Err(RowError::Source { name: other.to_owned() }),
    };
    let subject: Subject = row.algorithm.parse()?;
    let operation: Operation = row.operation.parse()?;
    if !subject.has(operation) {
        return Err(RowError::Absent { subject, operation });
    }
    let Row { count, instructions, least, greatest, .. } = *row;
    let ordered = 0 < least && least <= instructions && instructions <= greatest;
    if count == 0 || !ordered || i64::try_from(greatest).is_err() {
        return Err(RowError::Numbers { count, instructions, least, greatest });
    }
    let processor = row.processor.clone();
    Ok(Count {
        backend,
        processor,
        subject,
        operation,
        operations: count,
        instructions,
        least,
        most: greatest,
    })
}

#[cfg(test)]
pub(crate) mod tests;
