//! Instructions per operation on foreign processors: the file that `tools/foreign` leaves, its rows in the data, and what
//! is read back from them for the report. Time under an emulator says nothing, so none is taken in or told.

use super::About;
use super::openssl;
use super::runner;
use super::subject::{Operation, Subject};
use crate::experiment::data::{DataColumn, DataTable, Kind, Value};
use crate::experiment::results::UnreadableColumn;
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
    /// It cannot be read.
    #[error("foreign: {}: cannot be read: {source}; `tools/foreign DIRECTORY` leaves DIRECTORY/foreign.json", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It is larger than any that is left.
    #[error("foreign: {}: too large for counted instructions, which take at most 1 MiB: give the foreign.json that `tools/foreign` left", path.display())]
    TooLarge {
        /// The file.
        path: PathBuf,
    },
    /// It has another form.
    #[error("foreign: {}: is no foreign.json as `tools/foreign` leaves it: {source}; make it anew", path.display())]
    Form {
        /// The file.
        path: PathBuf,
        /// Where and why.
        source: serde_json::Error,
    },
    /// A row says what cannot be.
    #[error("foreign: {}: row {row}: {reason}; make it anew with `tools/foreign`", path.display())]
    Row {
        /// The file.
        path: PathBuf,
        /// Number of the row, from 1.
        row: usize,
        /// What is wrong.
        reason: String,
    },
    /// It has no rows.
    #[error("foreign: {}: has no rows: `tools/foreign` names what it needs", path.display())]
    Empty {
        /// The file.
        path: PathBuf,
    },
}

/// What is known of the counts beside them.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct ForeignFacts {
    /// The emulator that counted, with its version.
    pub counter: String,
    /// Version of OpenSSL.
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
pub(super) struct Foreign {
    pub(super) facts: ForeignFacts,
    pub(super) counts: Vec<Count>,
}

/// Instructions of one operation on one processor.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Count {
    /// `nonesuch` or `openssl`.
    pub(super) backend: &'static str,
    pub(super) processor: String,
    pub(super) subject: Subject,
    pub(super) operation: Operation,
    /// Operations that were counted.
    pub(super) operations: u64,
    /// Instructions per operation, the mean.
    pub(super) instructions: u64,
    /// The round with the fewest, per operation.
    pub(super) least: u64,
    /// The round with the most, per operation.
    pub(super) most: u64,
}

/// Reads the file at `path`.
///
/// # Errors
/// Where it cannot be read, has another form, or a row says what cannot be.
pub(super) fn read(path: &Path) -> Result<Foreign, ForeignError> {
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
    let mut foreign =
        Foreign { facts: ForeignFacts { counter, openssl, date, models: Vec::new() }, counts: Vec::new() };
    for (place, row) in rows.iter().enumerate() {
        let count = count_of(row).and_then(|count| foreign.add(&row.model, count));
        count.map_err(|reason| ForeignError::Row { path: path.to_path_buf(), row: place + 1, reason })?;
    }
    Ok(foreign)
}

impl Foreign {
    fn add(&mut self, model: &str, count: Count) -> Result<(), String> {
        if self.counts.iter().any(|other| other.key() == count.key()) {
            return Err(format!(
                "{} of {} on {} stands there twice",
                count.operation.name(),
                count.subject,
                count.processor
            ));
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

    /// The row of the data, in the order of [`super::summary::columns`]: a count, and no time.
    pub(super) fn cells(&self) -> Vec<Value> {
        let ours = self.backend == runner::NAME;
        vec![
            Value::Missing,
            Value::text(self.backend),
            Value::text(&self.processor),
            Value::text(&self.subject.to_string()),
            Value::text(&self.subject.scheme()),
            Value::text(if ours { self.subject.library() } else { openssl::NAME }),
            Value::text(self.operation.name()),
            Value::count(self.operations),
            Value::Missing,
            Value::Missing,
            Value::count(self.instructions),
            Value::count(self.least),
            Value::count(self.most),
        ]
    }
}

/// A row that says what can be.
fn count_of(row: &Row) -> Result<Count, String> {
    let is_name = |octet: u8| octet.is_ascii_lowercase() || octet.is_ascii_digit() || octet == b'-';
    if row.processor.is_empty() || row.processor.len() > PROCESSOR_MAX || !row.processor.bytes().all(is_name)
    {
        return Err(format!("'{}' is no processor such as arm64", row.processor));
    }
    let backend = match row.source.as_str() {
        OURS => runner::NAME,
        openssl::NAME => openssl::NAME,
        other => return Err(format!("'{other}' is no source: there are {OURS} and {}", openssl::NAME)),
    };
    let subject: Subject = row.algorithm.parse().map_err(|error: super::SubjectError| error.to_string())?;
    let operation: Operation = row.operation.parse()?;
    if !subject.has(operation) {
        return Err(format!("{subject} has no operation {}", operation.name()));
    }
    let Row { count, instructions, least, greatest, .. } = *row;
    let ordered = 0 < least && least <= instructions && instructions <= greatest;
    if count == 0 || !ordered || i64::try_from(greatest).is_err() {
        return Err(format!(
            "a mean of {instructions} instructions between {least} and {greatest} in {count} operations cannot be"
        ));
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

/// The columns of the data that only these counts fill.
pub(super) fn columns() -> Vec<DataColumn> {
    let column = |name: &str, meaning: &str| DataColumn::new(name, Kind::Integer, meaning);
    vec![
        column(
            "instructions",
            "Instructions per operation that an emulator counted, the mean; level is then the processor, and there is no \
             time. Missing where time was measured",
        ),
        column("instructions_least", "The same of the round with the fewest"),
        column("instructions_most", "The same of the round with the most"),
    ]
}

/// The counts in the data; none in data that have no columns for them.
///
/// # Errors
/// Where one of the columns is missing or of another kind, and the record says that there are counts.
pub(super) fn counts(about: &About, data: &DataTable) -> Result<Vec<Count>, UnreadableColumn> {
    if about.foreign.is_none() {
        return Ok(Vec::new());
    }
    let wanted = super::summary::columns();
    let place = |wanted: &DataColumn| {
        let place = data.place(&wanted.name).filter(|place| data.columns()[*place].kind == wanted.kind);
        place.ok_or_else(|| UnreadableColumn(wanted.name.clone()))
    };
    let places = wanted.iter().map(place).collect::<Result<Vec<usize>, _>>()?;
    let rows = data.rows().iter();
    Ok(rows
        .filter_map(|row| count_in(&places.iter().map(|place| &row[*place]).collect::<Vec<_>>()))
        .collect())
}

/// The count in a row of the data, where it is one.
fn count_in(row: &[&Value]) -> Option<Count> {
    let [_, backend, processor, subject, _, _, operation, operations, _, _, instructions, least, most] = row
    else {
        return None;
    };
    let number = |cell: &Value| cell.as_integer().and_then(|value| u64::try_from(value).ok());
    Some(Count {
        backend: [runner::NAME, openssl::NAME].into_iter().find(|name| backend.as_text() == Some(name))?,
        processor: processor.as_text()?.to_owned(),
        subject: subject.as_text()?.parse().ok()?,
        operation: operation.as_text()?.parse().ok()?,
        operations: number(operations)?,
        instructions: number(instructions).filter(|count| *count > 0)?,
        least: number(least)?,
        most: number(most)?,
    })
}

#[cfg(test)]
mod tests;
