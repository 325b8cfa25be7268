//! Results of queries: tables with typed columns.

use crate::error::AdoptionError;
use crate::output::{Output, write_file};
use crate::snapshot::{Day, date_text, properties};
use datafusion::arrow::array::{Array, AsArray as _, RecordBatch};
use datafusion::arrow::compute;
use datafusion::arrow::csv;
use datafusion::arrow::datatypes::{DataType, Date32Type, Field, Float64Type, Int64Type, Schema, SchemaRef};
use datafusion::arrow::error::ArrowError;
use datafusion::parquet::arrow::ArrowWriter;
use serde_json::Value;
use std::path::Path;
use std::sync::Arc;

/// A result. Its columns have the types Utf8, Int64, Float64, Date32 or Boolean.
#[derive(Clone, Debug)]
pub(crate) struct Table {
    pub(crate) name: &'static str,
    rows: RecordBatch,
}

impl Table {
    /// Creates a table from the batches of a result.
    pub(crate) fn new(
        name: &'static str,
        schema: &SchemaRef,
        batches: &[RecordBatch],
    ) -> Result<Self, ArrowError> {
        let all = compute::concat_batches(schema, batches)?;
        let kind = |kind: &DataType| match kind {
            DataType::Utf8View | DataType::LargeUtf8 => DataType::Utf8,
            kind if kind.is_integer() => DataType::Int64,
            kind if kind.is_floating() => DataType::Float64,
            other => other.clone(),
        };
        let fields =
            schema.fields().iter().map(|field| Field::new(field.name(), kind(field.data_type()), true));
        let schema: SchemaRef = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
        Ok(Self { name, rows: cast(&all, &schema)? })
    }

    /// Iterates over the rows.
    pub(crate) fn rows(&self) -> impl Iterator<Item = TableRow<'_>> {
        (0..self.rows.num_rows()).map(|place| TableRow { rows: &self.rows, place })
    }

    /// Writes the table as CSV and as Parquet.
    pub(crate) fn write(&self, directory: &Path) -> Result<(), AdoptionError> {
        let mut text = Vec::new();
        let mut writer = csv::WriterBuilder::new().with_header(true).build(&mut text);
        writer.write(&self.rows).map_err(|source| AdoptionError::Csv { table: self.name, source })?;
        drop(writer);
        write_file(&directory.join(format!("{}.csv", self.name)), &text)?;
        let path = directory.join(format!("{}.parquet", self.name));
        let output = Output::create(&path)?;
        let written = ArrowWriter::try_new(output.writer()?, self.rows.schema(), Some(properties()));
        let written = written.and_then(|mut writer| {
            writer.write(&self.rows)?;
            writer.close()
        });
        written.map_err(|source| AdoptionError::WriteParquet { path, source })?;
        output.commit()
    }
}

/// Casts the columns to the types of a schema.
pub(crate) fn cast(batch: &RecordBatch, schema: &SchemaRef) -> Result<RecordBatch, ArrowError> {
    let columns = batch.columns().iter().zip(schema.fields());
    let columns = columns.map(|(column, field)| compute::cast(column, field.data_type()));
    RecordBatch::try_new(Arc::clone(schema), columns.collect::<Result<_, _>>()?)
}

/// A row of a table. A column that does not exist, or has another type, is like one with NULL; the tests of
/// the report read every column.
#[derive(Clone, Copy)]
pub(crate) struct TableRow<'t> {
    rows: &'t RecordBatch,
    place: usize,
}

impl<'t> TableRow<'t> {
    fn column(self, name: &str) -> Option<&'t dyn Array> {
        self.rows.column_by_name(name).map(AsRef::as_ref).filter(|column| column.is_valid(self.place))
    }

    /// Returns a text; empty if it is NULL.
    pub(crate) fn text(self, name: &str) -> &'t str {
        let column = self.column(name).and_then(|column| column.as_string_opt::<i32>());
        column.map_or("", |column| column.value(self.place))
    }

    /// Returns an integer; `None` if it is NULL.
    pub(crate) fn optional_integer(self, name: &str) -> Option<i64> {
        let column = self.column(name)?.as_primitive_opt::<Int64Type>()?;
        Some(column.value(self.place))
    }

    /// Returns an integer; 0 if it is NULL.
    pub(crate) fn integer(self, name: &str) -> i64 {
        self.optional_integer(name).unwrap_or(0)
    }

    /// Returns a number; NaN if it is NULL.
    pub(crate) fn number(self, name: &str) -> f64 {
        let column = self.column(name).and_then(|column| column.as_primitive_opt::<Float64Type>());
        column.map_or(f64::NAN, |column| column.value(self.place))
    }

    /// Returns a flag; `None` if it is NULL.
    pub(crate) fn flag(self, name: &str) -> Option<bool> {
        Some(self.column(name)?.as_boolean_opt()?.value(self.place))
    }

    /// Returns a day; 0 if it is NULL.
    pub(crate) fn day(self, name: &str) -> Day {
        let column = self.column(name).and_then(|column| column.as_primitive_opt::<Date32Type>());
        column.map_or(0, |column| column.value(self.place))
    }

    /// Returns the row as a JSON object.
    pub(crate) fn to_json(self) -> Value {
        let schema = self.rows.schema();
        let cell = |field: &Field| {
            let name = field.name();
            if self.column(name).is_none() {
                return Value::Null;
            }
            match field.data_type() {
                DataType::Int64 => self.integer(name).into(),
                DataType::Float64 => self.number(name).into(),
                DataType::Date32 => date_text(self.day(name)).into(),
                DataType::Boolean => self.flag(name).into(),
                _ => self.text(name).into(),
            }
        };
        schema.fields().iter().map(|field| (field.name().clone(), cell(field))).collect()
    }
}
