//! Tables as CSV (RFC 4180): a line of names, then one line for each row, ends of lines as CR LF.
//!
//! A field is quoted where it holds a quote, a comma or an end of line, and quotes in it are doubled; that is all that
//! the format asks. A missing cell is an empty field. Numbers are written so that they are read back to the last bit.

use super::data::{DataColumn, DataTable, Kind, UnfitRow, Value};
use std::fmt::Write as _;

/// Why a text is no table of these columns.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum CsvError {
    /// A quoted field has no end.
    #[error("line {line}: a quoted field has no end")]
    Open {
        /// Line that it begins on.
        line: usize,
    },
    /// A quote stands where none may.
    #[error("line {line}: a quote within a field; quote the whole field and double the quote")]
    Quote {
        /// The line.
        line: usize,
    },
    /// The names are others.
    #[error("line 1: the columns are not {wanted}")]
    Columns {
        /// The names that were expected.
        wanted: String,
    },
    /// A field is not of its column's kind.
    #[error("line {line}: '{field}' in the column {column} is no number of the kind that it holds")]
    Field {
        /// The line.
        line: usize,
        /// The column.
        column: String,
        /// The field.
        field: String,
    },
    /// A row has too few or too many fields.
    #[error(transparent)]
    Row(#[from] UnfitRow),
}

/// The table as text.
#[must_use]
pub fn write(table: &DataTable) -> String {
    let mut out = String::with_capacity(64 * (table.rows().len() + 1));
    push_line(table.columns().iter().map(|column| column.name.as_str().into()), &mut out);
    for row in table.rows() {
        push_line(row.iter().map(field), &mut out);
    }
    out
}

fn push_line<'a>(fields: impl Iterator<Item = std::borrow::Cow<'a, str>>, out: &mut String) {
    for (place, field) in fields.enumerate() {
        if place > 0 {
            out.push(',');
        }
        if field.contains(['"', ',', '\r', '\n']) {
            let _ = write!(out, "\"{}\"", field.replace('"', "\"\""));
        } else {
            out.push_str(&field);
        }
    }
    out.push_str("\r\n");
}

fn field(value: &Value) -> std::borrow::Cow<'_, str> {
    match value {
        Value::Missing => "".into(),
        Value::Text(text) => text.into(),
        Value::Integer(value) => value.to_string().into(),
        // `{:?}` is the shortest form that is read back as the same number.
        Value::Number(value) => format!("{value:?}").into(),
    }
}

/// Reads a table of the columns given. Lines may end in LF alone, as tools that edit such files leave them.
///
/// # Errors
/// Where the text is no CSV, or a table of other columns.
pub fn read(text: &str, columns: &[DataColumn]) -> Result<DataTable, CsvError> {
    let mut records = Records { rest: text, line: 1 };
    let head = records.next().transpose()?.map(|(_, fields)| fields).unwrap_or_default();
    if !head.iter().eq(columns.iter().map(|column| &column.name)) {
        let names: Vec<&str> = columns.iter().map(|column| column.name.as_str()).collect();
        return Err(CsvError::Columns { wanted: names.join(",") });
    }
    let mut table = DataTable::new(columns.to_vec());
    for record in records {
        let (line, fields) = record?;
        // What has no column is left for the table to refuse.
        let kinds = columns.iter().map(Some).chain(std::iter::repeat(None));
        let row = fields.into_iter().zip(kinds).map(|(field, column)| value(field, column, line));
        table.push(row.collect::<Result<_, _>>()?)?;
    }
    Ok(table)
}

fn value(field: String, column: Option<&DataColumn>, line: usize) -> Result<Value, CsvError> {
    if field.is_empty() {
        return Ok(Value::Missing);
    }
    let Some(column) = column else { return Ok(Value::Text(field)) };
    let read = match column.kind {
        Kind::Text => return Ok(Value::Text(field)),
        Kind::Integer => field.parse().map(Value::Integer).ok(),
        Kind::Number => field.parse().map(Value::Number).ok(),
    };
    read.ok_or_else(|| CsvError::Field { line, column: column.name.clone(), field })
}

/// The records of a text: the line that each begins on, and its fields.
struct Records<'t> {
    rest: &'t str,
    line: usize,
}

impl Iterator for Records<'_> {
    type Item = Result<(usize, Vec<String>), CsvError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.rest.is_empty() {
            return None;
        }
        let line = self.line;
        let mut fields = Vec::new();
        loop {
            match self.take_field() {
                Ok(field) => fields.push(field),
                Err(error) => {
                    self.rest = "";
                    return Some(Err(error));
                }
            }
            match self.rest.strip_prefix(',') {
                Some(rest) => self.rest = rest,
                None => break,
            }
        }
        let rest = self.rest;
        self.rest = rest.strip_prefix("\r\n").or_else(|| rest.strip_prefix('\n')).unwrap_or(rest);
        self.line += 1;
        Some(Ok((line, fields)))
    }
}

impl Records<'_> {
    /// Takes a field; what follows is a comma, the end of a line, or nothing.
    fn take_field(&mut self) -> Result<String, CsvError> {
        let Some(quoted) = self.rest.strip_prefix('"') else {
            let end = self.rest.find([',', '\n']).unwrap_or(self.rest.len());
            let (field, rest) = self.rest.split_at(end);
            let bare = if rest.starts_with('\n') { field.strip_suffix('\r').unwrap_or(field) } else { field };
            if bare.contains(['"', '\r']) {
                return Err(CsvError::Quote { line: self.line });
            }
            self.rest = &self.rest[bare.len()..];
            return Ok(bare.to_owned());
        };
        let line = self.line;
        let (mut field, mut rest) = (String::new(), quoted);
        loop {
            let end = rest.find('"').ok_or(CsvError::Open { line })?;
            field.push_str(&rest[..end]);
            rest = &rest[end + 1..];
            let Some(more) = rest.strip_prefix('"') else { break };
            field.push('"');
            rest = more;
        }
        self.line += field.matches('\n').count();
        if !(rest.is_empty() || rest.starts_with([',', '\n']) || rest.starts_with("\r\n")) {
            return Err(CsvError::Quote { line: self.line });
        }
        self.rest = rest;
        Ok(field)
    }
}

#[cfg(test)]
mod tests {
    use super::super::data::tests::{any_table, columns};
    use super::*;
    use proptest::prelude::*;

    fn table() -> DataTable {
        let mut table = DataTable::new(columns());
        let rows = [
            vec![Value::text("a,b"), Value::Integer(-1), Value::Number(0.1 + 0.2)],
            vec![Value::text("say \"x\"\r\nand go"), Value::Missing, Value::Number(1e300)],
            vec![Value::Missing, Value::Integer(i64::MAX), Value::Number(2.0)],
        ];
        rows.into_iter().for_each(|row| table.push(row).expect("a row"));
        table
    }

    const TEXT: &str = "name,count,seconds\r\n\"a,b\",-1,0.30000000000000004\r\n\
        \"say \"\"x\"\"\r\nand go\",,1e300\r\n,9223372036854775807,2.0\r\n";

    #[test]
    fn the_quote_rules_of_rfc_4180() {
        assert_eq!(write(&table()), TEXT);
        assert_eq!(read(TEXT, &columns()), Ok(table()));
        // Other tools leave LF alone, and no end of line at the end.
        let edited = "name,count,seconds\n\"a\",1,2\nb,,";
        let read = read(edited, &columns()).expect("a table");
        assert_eq!(read.rows()[0], [Value::text("a"), Value::Integer(1), Value::Number(2.0)]);
        assert_eq!(read.rows()[1], [Value::text("b"), Value::Missing, Value::Missing]);
    }

    #[test]
    fn what_is_no_table_is_named_by_line() {
        let fault = |text: &str| read(text, &columns()).expect_err("a fault").to_string();
        assert_eq!(fault(""), "line 1: the columns are not name,count,seconds");
        assert_eq!(fault("name,count\r\n"), "line 1: the columns are not name,count,seconds");
        let head = "name,count,seconds\n";
        assert!(fault(&format!("{head}a,1,2\nb,x,1\n")).starts_with("line 3: 'x' in the column count"));
        assert!(fault(&format!("{head}a,1,2\nb,1,1,\n")).starts_with("row 2 does not fit"));
        assert!(fault(&format!("{head}a,1\n")).starts_with("row 1 does not fit"));
        assert_eq!(fault(&format!("{head}a,1,2\n\"b\n\n")), "line 3: a quoted field has no end");
        assert!(fault(&format!("{head}\"a\nb\"c,1,2\n")).starts_with("line 3: a quote"));
        assert!(fault(&format!("{head}a\"b,1,2\n")).starts_with("line 2: a quote"));
    }

    proptest! {
        #[test]
        fn tables_are_read_back(table in any_table()) {
            prop_assert_eq!(read(&write(&table), &columns()), Ok(table));
        }

        #[test]
        fn any_text_is_read_or_refused(text in "(name,count,seconds\n)?[a\",\r\n1.]{0,40}") {
            if let Ok(table) = read(&text, &columns()) {
                prop_assert_eq!(read(&write(&table), &columns()), Ok(table));
            }
        }
    }
}
