//! The raw data of an experiment: a table with typed, described columns and one row for each
//! measurement.

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Type of the cells of a column. The variants are those of the data files.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ColumnType {
    Text,
    Integer,
    Number,
}

/// A column: name, type of the cells, and meaning with the unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataColumn {
    /// Name in the data files: lower-case words, joined by underscores.
    pub name: String,
    pub kind: ColumnType,
    /// Meaning of the cells, with the unit.
    pub meaning: String,
}

impl DataColumn {
    /// Creates a column with the name, the type of its cells and their meaning.
    pub fn new(name: &str, kind: ColumnType, meaning: &str) -> Self {
        Self { name: name.to_owned(), kind, meaning: meaning.to_owned() }
    }
}

impl ColumnType {
    /// Whether a cell of this type may contain the value. Null is a missing cell. An empty text is
    /// not allowed, because CSV cannot distinguish it from a missing cell.
    fn permits(self, value: &Value) -> bool {
        match self {
            _ if value.is_null() => true,
            Self::Text => value.as_str().is_some_and(|text| !text.is_empty()),
            Self::Integer => value.is_i64(),
            Self::Number => value.is_f64(),
        }
    }

    /// Converts the value of a field to the value of a cell: an empty text becomes null, and an
    /// unsigned integer above `i64::MAX` becomes `i64::MAX`, the maximum of the data files.
    fn cell_value(self, value: Value) -> Value {
        match (self, &value) {
            (Self::Text, Value::String(text)) if text.is_empty() => Value::Null,
            (Self::Integer, Value::Number(number)) if number.is_u64() => {
                number.as_i64().unwrap_or(i64::MAX).into()
            }
            (Self::Number, Value::Number(number)) => number.as_f64().into(),
            _ => value,
        }
    }
}

/// A table of raw data. Every row has one cell for each column. A cell has the type of its column
/// or is null.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataTable {
    columns: Vec<DataColumn>,
    rows: Vec<Vec<Value>>,
}

/// The row has the wrong number of cells, or a cell has the wrong type.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row} does not match the columns: a cell has another type, or the number of cells differs")]
pub struct RowMismatch {
    /// Number of the row, starting at 1.
    pub row: usize,
}

impl DataTable {
    /// Creates a table with these columns and no rows.
    pub const fn new(columns: Vec<DataColumn>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Fails if the row does not have exactly one cell of the correct type for each column.
    pub fn push(&mut self, row: Vec<Value>) -> Result<(), RowMismatch> {
        let fits = row.len() == self.columns.len()
            && row.iter().zip(&self.columns).all(|(cell, column)| column.kind.permits(cell));
        if !fits {
            return Err(RowMismatch { row: self.rows.len() + 1 });
        }
        self.rows.push(row);
        Ok(())
    }

    /// Appends a row from a structure with one field for each column. `None` or an empty text
    /// becomes a missing cell.
    ///
    /// # Errors
    /// Fails if a field has no column, a column has no field, or a value has the wrong type.
    pub fn push_row(&mut self, row: &impl Serialize) -> Result<(), RowMismatch> {
        let mismatch = RowMismatch { row: self.rows.len() + 1 };
        let Ok(Value::Object(mut fields)) = serde_json::to_value(row) else { return Err(mismatch) };
        let cells =
            self.columns.iter().map(|column| Some(column.kind.cell_value(fields.remove(&column.name)?)));
        let cells = cells.collect::<Option<Vec<Value>>>().filter(|_| fields.is_empty()).ok_or(mismatch)?;
        self.push(cells)
    }

    /// Returns the columns.
    pub fn columns(&self) -> &[DataColumn] {
        &self.columns
    }

    /// Returns the rows.
    pub fn rows(&self) -> &[Vec<Value>] {
        &self.rows
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;
    use serde_json::json;

    /// Columns of all types.
    pub(crate) fn columns() -> Vec<DataColumn> {
        vec![
            DataColumn::new("name", ColumnType::Text, "who"),
            DataColumn::new("count", ColumnType::Integer, "how many"),
            DataColumn::new("seconds", ColumnType::Number, "how long, s"),
        ]
    }

    /// Generates tables without empty texts, because CSV cannot distinguish an empty text from a
    /// missing cell.
    pub(crate) fn any_table() -> impl Strategy<Value = DataTable> {
        let text = prop_oneof![
            Just(Value::Null),
            "[a-z \",\r\n\u{e9}#]{1,12}".prop_map(Value::String),
            ".{1,5}".prop_map(Value::String),
        ];
        let integer = prop_oneof![Just(Value::Null), any::<i64>().prop_map(Value::from)];
        let normal = prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO;
        let number = prop_oneof![Just(Value::Null), normal.prop_map(Value::from)];
        let row = (text, integer, number).prop_map(|(a, b, c)| vec![a, b, c]);
        proptest::collection::vec(row, 0..40).prop_map(|rows| {
            let mut table = DataTable::new(columns());
            rows.into_iter().for_each(|row| table.push(row).expect("a fitting row"));
            table
        })
    }

    #[test]
    fn rows_that_do_not_fit_are_refused() {
        let mut table = DataTable::new(columns());
        let good = vec![json!("a"), json!(1), Value::Null];
        assert_eq!(table.push(good.clone()), Ok(()));
        assert_eq!(table.push(good[..2].to_vec()), Err(RowMismatch { row: 2 }));
        assert_eq!(table.push([good, vec![Value::Null]].concat()), Err(RowMismatch { row: 2 }));
        let swapped = vec![json!(1), json!("a"), Value::Null];
        assert_eq!(table.push(swapped), Err(RowMismatch { row: 2 }));
        assert_eq!(table.rows().len(), 1);
    }

    #[test]
    fn counts_beyond_a_file_are_the_most_it_holds() {
        let mut table = DataTable::new(columns());
        table.push_row(&json!({ "name": "", "count": u64::MAX, "seconds": 2 })).expect("a fitting row");
        assert_eq!(table.rows()[0], [Value::Null, json!(i64::MAX), json!(2.0)]);
        assert!(table.push_row(&json!({ "name": "", "count": 0.5, "seconds": 2 })).is_err());
    }
}
