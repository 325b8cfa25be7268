//! Tables as CSV (RFC 4180): one line with the column names, and one line for each row. Lines end
//! in CRLF.
//!
//! A missing cell is an empty field. Numbers are exact: reading restores all bits.

use crate::data::{ColumnType, DataColumn, DataTable, RowMismatch};
use crate::report::Attachment;
use csv::{ReaderBuilder, StringRecord, Terminator, WriterBuilder};
use serde_json::{Number, Value};
use std::borrow::Cow;

/// Reasons why a table cannot be read or written as CSV.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum CsvError {
    #[error(transparent)]
    Csv(#[from] csv::Error),
    #[error("line 1: the columns are not {}", shortened(wanted))]
    Columns { wanted: String },
    #[error(
        "line {line}: '{}' in the column {} is not a number of the type of this column",
        shortened(field),
        shortened(column)
    )]
    Field { line: u64, column: String, field: String },
    #[error(transparent)]
    Row(#[from] RowMismatch),
}

/// Maximum characters of a text of the file in an error.
const SHOWN_MAX: usize = 200;

/// Returns the start of a text of the file for an error, without control characters.
fn shortened(text: &str) -> String {
    let mut characters = text.chars();
    let shown: String = characters.by_ref().take(SHOWN_MAX).flat_map(char::escape_debug).collect();
    if characters.next().is_some() { shown + "..." } else { shown }
}

/// Returns a table as CSV for download from a page.
///
/// # Errors
/// Fails as [`write()`] does.
pub(crate) fn attachment(table: &DataTable, name: &str) -> Result<Attachment, CsvError> {
    Ok(Attachment { name: name.to_owned(), media_type: "text/csv;charset=utf-8", octets: write(table)? })
}

/// Converts a table to CSV.
///
/// # Errors
/// Fails with [`CsvError::Csv`]; no table is known to cause this error.
pub(crate) fn write(table: &DataTable) -> Result<Vec<u8>, CsvError> {
    let mut out = Vec::with_capacity(64 * (table.rows().len() + 1));
    let mut writer = WriterBuilder::new().terminator(Terminator::CRLF).from_writer(&mut out);
    writer.write_record(table.columns().iter().map(|column| &column.name))?;
    for row in table.rows() {
        writer.write_record(row.iter().map(|cell| field(cell).into_owned()))?;
    }
    drop(writer);
    Ok(out)
}

fn field(value: &Value) -> Cow<'_, str> {
    match value {
        Value::Null => "".into(),
        Value::String(text) => text.into(),
        // `{:?}` writes the shortest text that represents the same number.
        value if value.is_f64() => format!("{:?}", value.as_f64().unwrap_or_default()).into(),
        value => value.to_string().into(),
    }
}

/// Reads a table with the given columns. Lines may also end in LF, because editors can change the
/// line ends.
///
/// # Errors
/// Fails if the text is not valid CSV, or the table has other columns.
pub(crate) fn read(text: &[u8], columns: &[DataColumn]) -> Result<DataTable, CsvError> {
    let mut reader = ReaderBuilder::new().flexible(true).from_reader(text);
    let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
    if !reader.headers()?.iter().eq(names.iter().copied()) {
        return Err(CsvError::Columns { wanted: names.join(",") });
    }
    let mut table = DataTable::new(columns.to_vec());
    for record in reader.into_records() {
        let record = record?;
        if record.len() != columns.len() {
            return Err(RowMismatch { row: table.rows().len() + 1 }.into());
        }
        table.push(row(&record, columns)?)?;
    }
    Ok(table)
}

fn row(record: &StringRecord, columns: &[DataColumn]) -> Result<Vec<Value>, CsvError> {
    let line = record.position().map_or(0, csv::Position::line);
    record.iter().zip(columns).map(|(field, column)| value(field, column, line)).collect()
}

fn value(field: &str, column: &DataColumn, line: u64) -> Result<Value, CsvError> {
    if field.is_empty() {
        return Ok(Value::Null);
    }
    let read = match column.kind {
        ColumnType::Text => return Ok(field.into()),
        ColumnType::Integer => field.parse::<i64>().ok().map(Number::from),
        ColumnType::Number => field.parse().ok().and_then(Number::from_f64),
    };
    let fault = || CsvError::Field { line, column: column.name.clone(), field: field.to_owned() };
    read.map(Value::Number).ok_or_else(fault)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::tests::{any_table, columns};
    use proptest::prelude::*;
    use serde_json::json;

    fn table() -> DataTable {
        let mut table = DataTable::new(columns());
        let rows = [
            vec![json!("a,b"), json!(-1), json!(0.1 + 0.2)],
            vec![json!("say \"x\"\r\nand go"), Value::Null, json!(1e300)],
            vec![Value::Null, json!(i64::MAX), json!(2.0)],
        ];
        rows.into_iter().for_each(|row| table.push(row).expect("a row"));
        table
    }

    const TEXT: &str = "name,count,seconds\r\n\"a,b\",-1,0.30000000000000004\r\n\
        \"say \"\"x\"\"\r\nand go\",,1e300\r\n,9223372036854775807,2.0\r\n";

    #[test]
    fn the_quote_rules_of_rfc_4180() {
        assert_eq!(write(&table()).expect("written"), TEXT.as_bytes());
        assert_eq!(read(TEXT.as_bytes(), &columns()).expect("read"), table());
        // Other tools write only LF, and no line end after the last line.
        let edited = "name,count,seconds\n\"a\",1,2\nb,,";
        let read = read(edited.as_bytes(), &columns()).expect("a table");
        assert_eq!(read.rows()[0], [json!("a"), json!(1), json!(2.0)]);
        assert_eq!(read.rows()[1], [json!("b"), Value::Null, Value::Null]);
    }

    #[test]
    fn what_is_no_table_is_named_by_line() {
        let fault = |text: &str| read(text.as_bytes(), &columns()).expect_err("a fault");
        for text in ["", "name,count\r\n"] {
            let error = fault(text);
            assert!(
                matches!(&error, CsvError::Columns { wanted } if wanted == "name,count,seconds"),
                "{error}"
            );
        }
        let head = "name,count,seconds\n";
        let error = fault(&format!("{head}a,1,2\nb,x,1\n"));
        assert!(
            matches!(&error, CsvError::Field { line: 3, column, field } if column == "count" && field == "x"),
            "{error}"
        );
        for (rows, row) in [("a,1,2\nb,1,1,\n", 2), ("a,1\n", 1), ("a,1,2\n\"b\n\n", 2)] {
            let error = fault(&format!("{head}{rows}"));
            assert!(matches!(&error, CsvError::Row(unfit) if unfit.row == row), "{error}");
        }
        assert!(read(b"name,count,seconds\n\xff,1,2\n", &columns()).is_err());
    }

    proptest! {
        #[test]
        fn tables_are_read_back(table in any_table()) {
            prop_assert_eq!(read(&write(&table).expect("written"), &columns()).expect("read"), table);
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(name,count,seconds\n)?[a\",\r\n1.]{0,40}") {
            if let Ok(table) = read(text.as_bytes(), &columns()) {
                prop_assert_eq!(read(&write(&table).expect("written"), &columns()).expect("read"), table);
            }
        }
    }
}
