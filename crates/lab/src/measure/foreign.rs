//! Instructions per operation on foreign processors: the file that `tools/foreign` leaves. Time under an emulator says
//! nothing, so none is taken in.

use super::openssl;
use super::probe;
use super::subject::{Operation, OperationNameError, Subject, SubjectError};
use serde::{Deserialize, Serialize};
use std::fs::File;
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};

/// Octets of the largest file that is taken: a row takes about 200.
const FILE_MAX: u64 = 1 << 20;
/// Characters of the longest name of a processor.
const PROCESSOR_MAX: usize = 32;
/// What the file calls our own programs.
const OURS: &str = "ours";

/// Why a file of counted instructions is refused.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ForeignError {
    #[error("foreign: {}: cannot be read: {source}; `tools/foreign DIRECTORY` leaves DIRECTORY/foreign.json", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("foreign: {}: too large for counted instructions, which take at most 1 MiB: give the foreign.json that `tools/foreign` left", path.display())]
    TooLarge { path: PathBuf },
    #[error("foreign: {}: is no foreign.json as `tools/foreign` leaves it: {source}; make it anew", path.display())]
    Form { path: PathBuf, source: serde_json::Error },
    #[error("foreign: {}: row {row}: {reason}; make it anew with `tools/foreign`", path.display())]
    Row { path: PathBuf, row: usize, reason: RowError },
    #[error("foreign: {}: has no rows: `tools/foreign` names what it needs", path.display())]
    Empty { path: PathBuf },
}

/// Why a row cannot be.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RowError {
    #[error("'{0}' is no processor such as arm64")]
    Processor(String),
    #[error("'{name}' is no source: there are {OURS} and {}", openssl::NAME)]
    Source { name: String },
    #[error(transparent)]
    Subject(#[from] SubjectError),
    #[error(transparent)]
    Operation(#[from] OperationNameError),
    #[error("{subject} has no operation {}", operation.name())]
    Absent { subject: Subject, operation: Operation },
    #[error(
        "a mean of {instructions} instructions between {least} and {greatest} in {count} operations cannot be"
    )]
    Numbers { count: u64, instructions: u64, least: u64, greatest: u64 },
    #[error("{} of {subject} on {processor} stands there twice", operation.name())]
    Twice { subject: Subject, operation: Operation, processor: String },
}

/// What is known of the counts beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct ForeignCountsInfo {
    /// The emulator that counted, with its version.
    pub counter: String,
    pub openssl: String,
    /// When it was counted, RFC 3339.
    pub date: String,
    /// Processors, and the emulator's model of each.
    pub models: Vec<(String, String)>,
}

/// The file.
#[derive(Deserialize)]
struct Document {
    counter: String,
    openssl: String,
    date: String,
    rows: Vec<Row>,
}

/// A row of it.
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

/// The content of a sound file.
#[derive(Debug)]
pub(crate) struct Foreign {
    pub(crate) facts: ForeignCountsInfo,
    pub(crate) counts: Vec<Count>,
}

/// Instructions of one operation on one processor.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Count {
    /// `nonesuch` or `openssl`.
    pub(crate) backend: &'static str,
    pub(crate) processor: String,
    pub(crate) subject: Subject,
    pub(crate) operation: Operation,
    pub(crate) operations: u64,
    /// Instructions per operation, the mean.
    pub(crate) instructions: u64,
    /// The round with the fewest, per operation.
    pub(crate) least: u64,
    /// The round with the most, per operation.
    pub(crate) most: u64,
}

/// Reads the file at `path`.
///
/// # Errors
/// Where it cannot be read, has another form, or a row says what cannot be.
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
        facts: ForeignCountsInfo { counter, openssl, date, models: Vec::new() },
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
        if !self.facts.models.iter().any(|(processor, _)| *processor == count.processor) {
            self.facts.models.push((count.processor.clone(), model.to_owned()));
        }
        self.counts.push(count);
        Ok(())
    }
}

impl Count {
    fn key(&self) -> (&str, &str, Subject, Operation) {
        (self.backend, &self.processor, self.subject, self.operation)
    }
}

/// A row that says what can be.
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
