//! Tables as Parquet: one row group; optional, typed columns (UTF-8 text, INT64, DOUBLE); no
//! compression.
//!
//! These files are for other tools. This program does not read them: the CSV file contains the same
//! data, and its reader does not panic on any input.

use crate::data::{ColumnType, DataColumn, DataTable};
use parquet::basic::{LogicalType, Repetition, Type as PhysicalType};
use parquet::column::writer::ColumnWriter;
use parquet::data_type::ByteArray;
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::{Type, TypePtr};
use serde_json::Value;
use std::sync::Arc;

/// The library rejects a table; no table is known to cause this error.
#[derive(Debug, thiserror::Error)]
#[error("cannot write Parquet: {0}")]
pub struct ParquetFileError(#[from] ParquetError);

/// Converts a table to the octets of a Parquet file. `metadata` are keys and values for the
/// metadata of the file.
///
/// # Errors
/// Fails if the library rejects the table; no table is known to cause this error.
pub(crate) fn write(table: &DataTable, metadata: &[(&str, String)]) -> Result<Vec<u8>, ParquetFileError> {
    let maker = format!("nonesuch {}", env!("CARGO_PKG_VERSION"));
    let entry = |(key, value): &(&str, String)| KeyValue::new((*key).to_owned(), value.clone());
    let metadata = metadata.iter().map(entry).collect();
    let properties =
        WriterProperties::builder().set_created_by(maker).set_key_value_metadata(Some(metadata)).build();
    let mut writer = SerializedFileWriter::new(Vec::new(), schema(table.columns())?, Arc::new(properties))?;
    let mut group = writer.next_row_group()?;
    let mut place = 0;
    while let Some(mut column) = group.next_column()? {
        write_column(table, place, column.untyped())?;
        column.close()?;
        place += 1;
    }
    group.close()?;
    Ok(writer.into_inner()?)
}

fn schema(columns: &[DataColumn]) -> Result<TypePtr, ParquetError> {
    let fields = columns.iter().map(|column| {
        let (physical, logical) = types(column.kind);
        let field = Type::primitive_type_builder(&column.name, physical)
            .with_repetition(Repetition::OPTIONAL)
            .with_logical_type(logical);
        field.build().map(Arc::new)
    });
    let fields = fields.collect::<Result<_, _>>()?;
    Type::group_type_builder("results").with_fields(fields).build().map(Arc::new)
}

const fn types(kind: ColumnType) -> (PhysicalType, Option<LogicalType>) {
    match kind {
        ColumnType::Text => (PhysicalType::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::Integer => (PhysicalType::INT64, None),
        ColumnType::Number => (PhysicalType::DOUBLE, None),
    }
}

/// The definition level is 1 for a cell with a value and 0 for a missing cell.
fn write_column(table: &DataTable, place: usize, writer: &mut ColumnWriter<'_>) -> Result<(), ParquetError> {
    let cells = || table.rows().iter().filter_map(|row| row.get(place));
    let levels: Vec<i16> = cells().map(|cell| i16::from(!cell.is_null())).collect();
    match writer {
        ColumnWriter::ByteArrayColumnWriter(writer) => {
            let values: Vec<ByteArray> = cells().filter_map(Value::as_str).map(ByteArray::from).collect();
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnWriter::Int64ColumnWriter(writer) => {
            let values: Vec<i64> = cells().filter_map(Value::as_i64).collect();
            writer.write_batch(&values, Some(&levels), None)?;
        }
        ColumnWriter::DoubleColumnWriter(writer) => {
            let values: Vec<f64> = cells().filter_map(Value::as_f64).collect();
            writer.write_batch(&values, Some(&levels), None)?;
        }
        _ => return Err(ParquetError::General("a column of a kind that is never made".to_owned())),
    }
    Ok(())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;
    use crate::data::tests::{any_table, columns};
    use bytes::Bytes;
    use parquet::column::reader::{ColumnReader, ColumnReaderImpl};
    use parquet::data_type::DataType;
    use parquet::file::reader::{FileReader, SerializedFileReader};
    use proptest::prelude::*;

    /// Reads a table with the reader of the library, column by column.
    pub(in crate::experiment) fn read(octets: Vec<u8>, columns: &[DataColumn]) -> DataTable {
        let reader = SerializedFileReader::new(Bytes::from(octets)).expect("a Parquet file");
        let schema = reader.metadata().file_metadata().schema_descr();
        let names: Vec<&str> = schema.columns().iter().map(|column| column.name()).collect();
        assert!(names.iter().eq(columns.iter().map(|column| &column.name)), "{names:?}");
        assert_eq!(reader.num_row_groups(), 1);
        let group = reader.get_row_group(0).expect("a row group");
        let rows = usize::try_from(reader.metadata().file_metadata().num_rows()).expect("rows");
        let columns_read = (0..columns.len())
            .map(|place| read_column(group.get_column_reader(place).expect("a column"), rows).into_iter());
        let mut cells: Vec<_> = columns_read.collect();
        let mut table = DataTable::new(columns.to_vec());
        for _ in 0..rows {
            let row = cells.iter_mut().map(|cells| cells.next().expect("a cell")).collect();
            table.push(row).expect("a row");
        }
        assert!(cells.iter_mut().all(|cells| cells.next().is_none()));
        table
    }

    fn read_column(reader: ColumnReader, rows: usize) -> Vec<Value> {
        match reader {
            ColumnReader::ByteArrayColumnReader(reader) => {
                read_cells(reader, rows, |octets| octets.as_utf8().expect("UTF-8").into())
            }
            ColumnReader::Int64ColumnReader(reader) => read_cells(reader, rows, |value| (*value).into()),
            ColumnReader::DoubleColumnReader(reader) => read_cells(reader, rows, |value| (*value).into()),
            _ => panic!("a column of a kind that is never made"),
        }
    }

    fn read_cells<T: DataType>(
        mut reader: ColumnReaderImpl<T>,
        rows: usize,
        cell: impl Fn(&T::T) -> Value,
    ) -> Vec<Value> {
        let (mut levels, mut values) = (Vec::new(), Vec::new());
        // A table without rows has no pages.
        if rows > 0 {
            reader.read_records(rows, Some(&mut levels), None, &mut values).expect("cells");
        }
        let mut values = values.iter();
        levels
            .into_iter()
            .map(|level| if level == 0 { Value::Null } else { cell(values.next().expect("a value")) })
            .collect()
    }

    #[test]
    fn columns_are_typed() {
        let mut table = DataTable::new(columns());
        table.push(vec!["é".into(), (-5).into(), Value::Null]).expect("a row");
        let octets = write(&table, &[("key", "value".to_owned())]).expect("written");
        let reader = SerializedFileReader::new(Bytes::from(octets)).expect("a Parquet file");
        let metadata = reader.metadata().file_metadata();
        assert_eq!(metadata.num_rows(), 1);
        assert!(metadata.created_by().expect("a maker").starts_with("nonesuch "));
        let entries = metadata.key_value_metadata().expect("metadata");
        assert!(entries.contains(&KeyValue::new("key".to_owned(), "value".to_owned())), "{entries:?}");
        let schema = metadata.schema_descr();
        let types: Vec<_> = schema.columns().iter().map(|column| column.physical_type()).collect();
        assert_eq!(types, [PhysicalType::BYTE_ARRAY, PhysicalType::INT64, PhysicalType::DOUBLE]);
        assert_eq!(schema.column(0).logical_type_ref(), Some(&LogicalType::String));
        // A row as the library reads it; other tools use the same representation.
        let row = reader.get_row_iter(None).expect("rows").next().expect("a row").expect("read");
        assert_eq!(row.to_string(), "{name: \"é\", count: -5, seconds: null}");
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..ProptestConfig::default() })]

        #[test]
        fn tables_are_read_back(table in any_table()) {
            let octets = write(&table, &[]).expect("written");
            prop_assert_eq!(read(octets, &columns()), table);
        }
    }
}
