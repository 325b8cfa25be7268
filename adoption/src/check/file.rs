//! The columns and rows of a Parquet file.

use super::row::{RowChecker, RowFault, Values};
use super::{Snapshot, SnapshotKey};
use crate::snapshot::{COLUMNS, Day};
use datafusion::arrow::array::{Array, AsArray as _, BooleanArray, PrimitiveArray, RecordBatch, StringArray};
use datafusion::arrow::datatypes::{ArrowPrimitiveType, DataType, Date32Type, Int32Type};
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::ProjectionMask;
use datafusion::parquet::arrow::arrow_reader::{ArrowReaderOptions, ParquetRecordBatchReaderBuilder};
use datafusion::parquet::errors::ParquetError;
use std::collections::BTreeMap;
use std::fs::File;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;

/// Rows that are read at a time.
const BATCH_ROWS: usize = 8192;

/// Why a file cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum FileFault {
    #[error("cannot be opened: {0}")]
    Open(#[from] std::io::Error),
    #[error("is not a Parquet file, or is cut or damaged: {0}")]
    Metadata(#[from] ParquetError),
    #[error("is cut or damaged: {0}")]
    Rows(#[from] ArrowError),
    #[error("is damaged: the Parquet library fails on it")]
    Panic,
    #[error("the columns {} are missing", .0.join(", "))]
    Missing(Vec<&'static str>),
    #[error("the column {column} has the type {found}, not {expected}")]
    Type { column: &'static str, found: DataType, expected: DataType },
    #[error("row {row} has no {column}")]
    Null { row: u64, column: &'static str },
}

/// Reads and checks all rows of a file.
pub(super) fn inspect(path: &Path) -> Result<BTreeMap<SnapshotKey, Snapshot>, FileFault> {
    // The library is not free of panics on damaged files. Nothing of the file is used after one.
    catch_unwind(AssertUnwindSafe(|| inspect_file(path))).unwrap_or(Err(FileFault::Panic))
}

fn inspect_file(path: &Path) -> Result<BTreeMap<SnapshotKey, Snapshot>, FileFault> {
    let file = File::open(path)?;
    // Other programs add an Arrow schema with types of their own, such as dictionaries.
    let options = ArrowReaderOptions::new().with_skip_arrow_metadata(true);
    let builder = ParquetRecordBatchReaderBuilder::try_new_with_options(file, options)?;
    check_columns(builder.schema())?;
    let mask = ProjectionMask::columns(builder.parquet_schema(), COLUMNS.map(|(name, _)| name));
    let mut reader = FileReader::default();
    for batch in builder.with_projection(mask).with_batch_size(BATCH_ROWS).build()? {
        reader.read(&batch?)?;
    }
    Ok(reader.finish())
}

fn check_columns(schema: &datafusion::arrow::datatypes::Schema) -> Result<(), FileFault> {
    let missing =
        COLUMNS.iter().map(|(name, _)| *name).filter(|name| schema.column_with_name(name).is_none());
    let missing: Vec<&str> = missing.collect();
    if !missing.is_empty() {
        return Err(FileFault::Missing(missing));
    }
    for (column, expected) in COLUMNS {
        let found = schema.column_with_name(column).map(|(_, field)| field.data_type().clone());
        if let Some(found) = found.filter(|found| *found != expected) {
            return Err(FileFault::Type { column, found, expected });
        }
    }
    Ok(())
}

/// Collects the snapshots of a file.
#[derive(Default)]
struct FileReader {
    finished: BTreeMap<SnapshotKey, Snapshot>,
    current: Option<(SnapshotKey, Snapshot)>,
    /// Domain of the last row of the current snapshot.
    last_domain: String,
    checker: RowChecker,
    rows: u64,
}

impl FileReader {
    fn read(&mut self, batch: &RecordBatch) -> Result<(), FileFault> {
        let columns = Columns::of(batch)?;
        for place in 0..batch.num_rows() {
            self.rows += 1;
            let row = self.rows;
            let source = text(columns.source, place).ok_or(FileFault::Null { row, column: "source" })?;
            let day = number(columns.day, place).ok_or(FileFault::Null { row, column: "date" })?;
            self.enter(source, day);
            self.add(&columns.values(place));
        }
        Ok(())
    }

    /// Makes the snapshot of a row the current one.
    fn enter(&mut self, source: &str, day: Day) {
        if self.current.as_ref().is_some_and(|((known, date), _)| *date == day && known == source) {
            return;
        }
        let key = (source.to_owned(), day);
        self.leave();
        // Rows of a snapshot that others interrupt are not in order.
        let snapshot = self.finished.remove(&key).map(|snapshot| Snapshot { is_unordered: true, ..snapshot });
        self.current = Some((key, snapshot.unwrap_or_default()));
    }

    fn leave(&mut self) {
        self.finished.extend(self.current.take());
        self.last_domain.clear();
    }

    fn add(&mut self, values: &Values<'_>) {
        let Some((_, snapshot)) = &mut self.current else { return };
        snapshot.rows += 1;
        let domain = values.domain.unwrap_or_default();
        let is_repeated = snapshot.rows > 1 && domain == self.last_domain;
        let fault = self.checker.fault(values).or_else(|| is_repeated.then_some(RowFault::Repeated));
        if let Some(fault) = fault {
            snapshot.faults.add(self.rows, domain, &fault);
        }
        snapshot.is_unordered |= domain < self.last_domain.as_str();
        self.last_domain.clear();
        self.last_domain.push_str(domain);
    }

    fn finish(mut self) -> BTreeMap<SnapshotKey, Snapshot> {
        self.leave();
        self.finished
    }
}

/// The columns of a batch.
struct Columns<'b> {
    source: &'b StringArray,
    day: &'b PrimitiveArray<Date32Type>,
    domain: &'b StringArray,
    dnskey_algorithms: &'b StringArray,
    ds_algorithms: &'b StringArray,
    ds_digests: &'b StringArray,
    denial: &'b StringArray,
    iterations: &'b PrimitiveArray<Int32Type>,
    salt: &'b StringArray,
    opt_out: &'b BooleanArray,
    rank: &'b PrimitiveArray<Int32Type>,
}

impl<'b> Columns<'b> {
    fn of(batch: &'b RecordBatch) -> Result<Self, FileFault> {
        Ok(Self {
            source: text_column(batch, "source")?,
            day: number_column(batch, "date")?,
            domain: text_column(batch, "domain")?,
            dnskey_algorithms: text_column(batch, "dnskey_algorithms")?,
            ds_algorithms: text_column(batch, "ds_algorithms")?,
            ds_digests: text_column(batch, "ds_digests")?,
            denial: text_column(batch, "denial")?,
            iterations: number_column(batch, "nsec3_iterations")?,
            salt: text_column(batch, "nsec3_salt")?,
            opt_out: column(batch, "nsec3_opt_out")?
                .as_boolean_opt()
                .ok_or_else(|| missing("nsec3_opt_out"))?,
            rank: number_column(batch, "rank")?,
        })
    }

    fn values(&self, place: usize) -> Values<'b> {
        Values {
            domain: text(self.domain, place),
            dnskey_algorithms: text(self.dnskey_algorithms, place),
            ds_algorithms: text(self.ds_algorithms, place),
            ds_digests: text(self.ds_digests, place),
            denial: text(self.denial, place),
            iterations: number(self.iterations, place),
            salt: text(self.salt, place),
            opt_out: self.opt_out.is_valid(place).then(|| self.opt_out.value(place)),
            rank: number(self.rank, place),
        }
    }
}

fn missing(column: &'static str) -> FileFault {
    FileFault::Missing(vec![column])
}

fn column<'b>(batch: &'b RecordBatch, name: &'static str) -> Result<&'b dyn Array, FileFault> {
    batch.column_by_name(name).map(AsRef::as_ref).ok_or_else(|| missing(name))
}

fn text_column<'b>(batch: &'b RecordBatch, name: &'static str) -> Result<&'b StringArray, FileFault> {
    column(batch, name)?.as_string_opt().ok_or_else(|| missing(name))
}

fn number_column<'b, T: ArrowPrimitiveType>(
    batch: &'b RecordBatch,
    name: &'static str,
) -> Result<&'b PrimitiveArray<T>, FileFault> {
    column(batch, name)?.as_primitive_opt().ok_or_else(|| missing(name))
}

fn text(array: &StringArray, place: usize) -> Option<&str> {
    array.is_valid(place).then(|| array.value(place))
}

fn number<T: ArrowPrimitiveType>(array: &PrimitiveArray<T>, place: usize) -> Option<T::Native> {
    array.is_valid(place).then(|| array.value(place))
}
