//! Snapshots: one row for each domain of a source on a day. This module has the only definition of the
//! columns, and the writer.

use crate::error::AdoptionError;
use crate::output::Output;
use datafusion::arrow::array::{
    ArrayRef, BooleanBuilder, Date32Builder, Int32Builder, RecordBatch, StringBuilder,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema, SchemaRef};
use datafusion::parquet::arrow::ArrowWriter;
use datafusion::parquet::basic::Compression;
use datafusion::parquet::errors::ParquetError;
use datafusion::parquet::file::properties::WriterProperties;
use jiff::civil::{Date, date};
use std::fs::File;
use std::path::Path;
use std::sync::{Arc, LazyLock};

/// Days since 1970-01-01, as Arrow and Parquet store dates.
pub(crate) type Day = i32;

/// The columns of a snapshot: name and type. `docs/adoption.md` describes their values. Only the first
/// three must not be NULL.
pub(crate) const COLUMNS: [(&str, DataType); 12] = [
    ("source", DataType::Utf8),
    ("date", DataType::Date32),
    ("domain", DataType::Utf8),
    ("dnskey_algorithms", DataType::Utf8),
    ("ds_algorithms", DataType::Utf8),
    ("ds_digests", DataType::Utf8),
    ("operator", DataType::Utf8),
    ("denial", DataType::Utf8),
    ("nsec3_iterations", DataType::Int32),
    ("nsec3_salt", DataType::Utf8),
    ("nsec3_opt_out", DataType::Boolean),
    ("rank", DataType::Int32),
];

/// Denial mechanisms in the column `denial`.
pub(crate) const DENIALS: [&str; 5] = ["nsec", "nsec3", "nsec5", "minimal-nsec", "compact"];

/// The columns as an Arrow schema. All columns are nullable, because other programs rarely write
/// columns that are not; the check of the rows finds NULL in the first three.
pub(crate) static SCHEMA: LazyLock<SchemaRef> = LazyLock::new(|| {
    let fields = COLUMNS.map(|(name, kind)| Field::new(name, kind, true));
    Arc::new(Schema::new(fields.to_vec()))
});

/// Returns the days since 1970-01-01.
pub(crate) fn day_of(date_of_day: Date) -> Day {
    date(1970, 1, 1).duration_until(date_of_day).as_hours().div_euclid(24).try_into().unwrap_or(Day::MAX)
}

/// Returns the date as `YYYY-MM-DD`; the number of days if the date is outside of the years that
/// `jiff` knows.
pub(crate) fn date_text(day: Day) -> String {
    let seconds = i64::from(day) * 86_400;
    match date(1970, 1, 1).checked_add(jiff::SignedDuration::from_secs(seconds)) {
        Ok(date) => date.to_string(),
        Err(_) => format!("day {day}"),
    }
}

/// A row. A list that is `None` was not measured; an empty list has no records.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Row<'a> {
    pub(crate) source: &'a str,
    pub(crate) day: Day,
    pub(crate) domain: &'a str,
    pub(crate) dnskey_algorithms: Option<&'a str>,
    pub(crate) ds_algorithms: Option<&'a str>,
    pub(crate) ds_digests: Option<&'a str>,
    pub(crate) operator: Option<&'a str>,
    pub(crate) denial: Option<&'a str>,
    pub(crate) nsec3: Nsec3<'a>,
    pub(crate) rank: Option<i32>,
}

/// Parameters of NSEC3 (RFC 5155 §3): additional iterations, the salt as hexadecimal digits, and
/// whether records have the opt-out flag. `None` is unknown, or another mechanism.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Nsec3<'a> {
    pub(crate) iterations: Option<i32>,
    pub(crate) salt: Option<&'a str>,
    pub(crate) opt_out: Option<bool>,
}

/// Rows that are collected before they are written.
const BATCH_ROWS: usize = 32 * 1024;
/// Rows of a row group, which bounds the memory of the writer.
const GROUP_ROWS: usize = 512 * 1024;

/// Writes a Parquet file of snapshots.
pub(crate) struct SnapshotWriter {
    writer: ArrowWriter<File>,
    output: Output,
    path: std::path::PathBuf,
    rows: usize,
    day: Date32Builder,
    /// The columns of text, in the order of the columns.
    texts: [StringBuilder; 8],
    iterations: Int32Builder,
    opt_out: BooleanBuilder,
    rank: Int32Builder,
}

impl SnapshotWriter {
    /// Creates the file, which gets its name when [`SnapshotWriter::finish`] ends.
    pub(crate) fn create(path: &Path) -> Result<Self, AdoptionError> {
        let output = Output::create(path)?;
        let writer = ArrowWriter::try_new(output.writer()?, Arc::clone(&SCHEMA), Some(properties()))
            .map_err(|source| AdoptionError::WriteParquet { path: path.to_owned(), source })?;
        Ok(Self {
            writer,
            output,
            path: path.to_owned(),
            rows: 0,
            day: Date32Builder::new(),
            texts: std::array::from_fn(|_| StringBuilder::new()),
            iterations: Int32Builder::new(),
            opt_out: BooleanBuilder::new(),
            rank: Int32Builder::new(),
        })
    }

    /// Adds a row. Rows in the order of source, date and domain are checked faster.
    pub(crate) fn push(&mut self, row: &Row<'_>) -> Result<(), AdoptionError> {
        let texts = [
            Some(row.source),
            Some(row.domain),
            row.dnskey_algorithms,
            row.ds_algorithms,
            row.ds_digests,
            row.operator,
            row.denial,
            row.nsec3.salt,
        ];
        for (builder, text) in self.texts.iter_mut().zip(texts) {
            builder.append_option(text);
        }
        self.day.append_value(row.day);
        self.iterations.append_option(row.nsec3.iterations);
        self.opt_out.append_option(row.nsec3.opt_out);
        self.rank.append_option(row.rank);
        self.rows += 1;
        if self.rows == BATCH_ROWS { self.flush() } else { Ok(()) }
    }

    fn flush(&mut self) -> Result<(), AdoptionError> {
        self.rows = 0;
        let [source, domain, dnskeys, ds, digests, operator, denial, salt] =
            self.texts.each_mut().map(|builder| Arc::new(builder.finish()) as ArrayRef);
        let columns: Vec<ArrayRef> = vec![
            source,
            Arc::new(self.day.finish()),
            domain,
            dnskeys,
            ds,
            digests,
            operator,
            denial,
            Arc::new(self.iterations.finish()),
            salt,
            Arc::new(self.opt_out.finish()),
            Arc::new(self.rank.finish()),
        ];
        let batch = RecordBatch::try_new(Arc::clone(&SCHEMA), columns).map_err(ParquetError::from);
        let written = batch.and_then(|batch| self.writer.write(&batch));
        written.map_err(|source| AdoptionError::WriteParquet { path: self.path.clone(), source })
    }

    /// Writes the remaining rows and gives the file its name.
    pub(crate) fn finish(mut self) -> Result<(), AdoptionError> {
        self.flush()?;
        let Self { writer, output, path, .. } = self;
        writer.close().map_err(|source| AdoptionError::WriteParquet { path, source })?;
        output.commit()
    }
}

/// Properties of all Parquet files of this program. Every reader knows Snappy.
pub(crate) fn properties() -> WriterProperties {
    WriterProperties::builder()
        .set_created_by(format!("nonesuch adoption {}", env!("CARGO_PKG_VERSION")))
        .set_compression(Compression::SNAPPY)
        .set_max_row_group_row_count(Some(GROUP_ROWS))
        .build()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn days_are_counted_from_1970() {
        for (text, day) in
            [("1970-01-01", 0), ("1969-12-31", -1), ("2000-03-01", 11_017), ("2016-02-29", 16_860)]
        {
            assert_eq!((day_of(text.parse().expect("a date")), date_text(day)), (day, text.to_owned()));
        }
        assert_eq!(date_text(Day::MAX), format!("day {}", Day::MAX));
    }
}
