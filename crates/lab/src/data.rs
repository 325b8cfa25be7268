//! The table of an experiment's raw data: typed columns, each with its meaning, and one row for each measurement.

use serde::{Deserialize, Serialize};

/// What the cells of a column are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Kind {
    Text,
    Integer,
    Number,
}

/// A column: its name in the files, what its cells are, and what they mean, with the unit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct DataColumn {
    /// Name: lower case, words joined by underlines.
    pub name: String,
    pub kind: Kind,
    /// What they mean, with the unit.
    pub meaning: String,
}

impl DataColumn {
    /// A column.
    pub fn new(name: &str, kind: Kind, meaning: &str) -> Self {
        Self { name: name.to_owned(), kind, meaning: meaning.to_owned() }
    }
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    Missing,
    /// Of a column of [`Kind::Text`]; not empty, since CSV could not tell an empty one from a missing one.
    Text(String),
    Integer(i64),
    Number(f64),
}

impl Value {
    /// A text; nothing for an empty one.
    pub fn text(text: &str) -> Self {
        if text.is_empty() { Self::Missing } else { Self::Text(text.to_owned()) }
    }

    /// A count; what no file can hold is the most that it can.
    pub fn count(count: u64) -> Self {
        Self::Integer(i64::try_from(count).unwrap_or(i64::MAX))
    }

    /// Whether the cell may stand in a column of `kind`.
    pub const fn fits(&self, kind: Kind) -> bool {
        matches!(
            (self, kind),
            (Self::Missing, _)
                | (Self::Text(_), Kind::Text)
                | (Self::Integer(_), Kind::Integer)
                | (Self::Number(_), Kind::Number)
        )
    }

    /// The text of a cell.
    pub fn as_text(&self) -> Option<&str> {
        if let Self::Text(text) = self { Some(text) } else { None }
    }

    /// The whole number of a cell.
    pub const fn as_integer(&self) -> Option<i64> {
        if let Self::Integer(value) = self { Some(*value) } else { None }
    }

    /// The number of a cell.
    pub const fn as_number(&self) -> Option<f64> {
        if let Self::Number(value) = self { Some(*value) } else { None }
    }
}

/// A table of raw data. Every row has a cell for each column, of the column's kind or missing.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DataTable {
    columns: Vec<DataColumn>,
    rows: Vec<Vec<Value>>,
}

/// A row has not one fitting cell for each column.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("row {row} does not fit the columns: a cell of another kind, one too few or one too many")]
pub struct UnfitRow {
    /// Number of the row, from 1.
    pub row: usize,
}

impl DataTable {
    /// A table without rows.
    pub const fn new(columns: Vec<DataColumn>) -> Self {
        Self { columns, rows: Vec::new() }
    }

    /// Appends a row.
    ///
    /// # Errors
    /// Where it has not one fitting cell for each column.
    pub fn push(&mut self, row: Vec<Value>) -> Result<(), UnfitRow> {
        let fits = row.len() == self.columns.len()
            && row.iter().zip(&self.columns).all(|(cell, column)| cell.fits(column.kind));
        if !fits {
            return Err(UnfitRow { row: self.rows.len() + 1 });
        }
        self.rows.push(row);
        Ok(())
    }

    /// Appends a row: a structure with a field for each column. A missing value, or an empty text, is a missing cell.
    ///
    /// # Errors
    /// Where a field has no column, a column no field, or a value another kind.
    pub fn push_row(&mut self, row: &impl Serialize) -> Result<(), UnfitRow> {
        let unfit = UnfitRow { row: self.rows.len() + 1 };
        let Ok(serde_json::Value::Object(mut fields)) = serde_json::to_value(row) else { return Err(unfit) };
        let cells = self.columns.iter().map(|column| cell(fields.remove(&column.name)?, column.kind));
        let cells = cells.collect::<Option<Vec<Value>>>().filter(|_| fields.is_empty()).ok_or(unfit)?;
        self.push(cells)
    }

    /// The columns.
    pub fn columns(&self) -> &[DataColumn] {
        &self.columns
    }

    /// The rows.
    pub fn rows(&self) -> &[Vec<Value>] {
        &self.rows
    }
}

/// The cell of a column of `kind` with this value.
fn cell(value: serde_json::Value, kind: Kind) -> Option<Value> {
    match (kind, value) {
        (_, serde_json::Value::Null) => Some(Value::Missing),
        (Kind::Text, serde_json::Value::String(text)) => Some(Value::text(&text)),
        (Kind::Integer, value) => {
            value.as_i64().map(Value::Integer).or_else(|| value.as_u64().map(Value::count))
        }
        (Kind::Number, value) => value.as_f64().map(Value::Number),
        _ => None,
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Columns of every kind.
    pub(crate) fn columns() -> Vec<DataColumn> {
        vec![
            DataColumn::new("name", Kind::Text, "who"),
            DataColumn::new("count", Kind::Integer, "how many"),
            DataColumn::new("seconds", Kind::Number, "how long, s"),
        ]
    }

    /// Any table with cells that can be told apart when written: no empty text, no NaN.
    pub(crate) fn any_table() -> impl Strategy<Value = DataTable> {
        let text = prop_oneof![
            Just(Value::Missing),
            "[a-z \",\r\n\u{e9}#]{1,12}".prop_map(Value::Text),
            ".{1,5}".prop_map(Value::Text),
        ];
        let integer = prop_oneof![Just(Value::Missing), any::<i64>().prop_map(Value::Integer)];
        let normal = prop::num::f64::NORMAL | prop::num::f64::SUBNORMAL | prop::num::f64::ZERO;
        let number = prop_oneof![
            Just(Value::Missing),
            normal.prop_map(Value::Number),
            Just(Value::Number(f64::INFINITY))
        ];
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
        let good = vec![Value::text("a"), Value::count(1), Value::Missing];
        assert_eq!(table.push(good.clone()), Ok(()));
        assert_eq!(table.push(good[..2].to_vec()), Err(UnfitRow { row: 2 }));
        assert_eq!(table.push([good, vec![Value::Missing]].concat()), Err(UnfitRow { row: 2 }));
        let swapped = vec![Value::count(1), Value::text("a"), Value::Missing];
        assert_eq!(table.push(swapped), Err(UnfitRow { row: 2 }));
        assert_eq!(table.rows().len(), 1);
    }

    #[test]
    fn counts_beyond_a_file_are_the_most_it_holds() {
        assert_eq!(Value::count(u64::MAX), Value::Integer(i64::MAX));
        assert_eq!(Value::text(""), Value::Missing);
    }
}
