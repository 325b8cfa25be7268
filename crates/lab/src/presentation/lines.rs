//! Groups the rows of the data into lines, and computes statistics of each group.

use super::{Evaluator, LinesForm, Presentation, PresentationError, RowsForm, Scope};
use crate::data::{ColumnType, DataColumn, DataTable};
use crate::statistics::Statistics;
use minijinja::value::{Serde, Value};
use std::collections::BTreeMap;

/// Adds the rows of `data` and their lines to `scope`, as `rows` and `lines`.
pub(crate) fn lines(
    presentation: &Presentation,
    data: &DataTable,
    scope: &mut Scope,
) -> Result<(), PresentationError> {
    presentation.check(data)?;
    let evaluator = Evaluator::default();
    let mut rows: Vec<Scope> = data.rows().iter().map(|row| record(data, row)).collect();
    compute(&presentation.rows, &evaluator, &mut rows, scope)?;
    let mut lines = group(&presentation.lines, &rows);
    derive(&presentation.lines, &evaluator, &mut lines, scope)?;
    scope.insert("lines".to_owned(), lines.into());
    Ok(())
}

/// Returns a row as a map from column name to value. A missing text becomes an empty text.
fn record(data: &DataTable, row: &[serde_json::Value]) -> Scope {
    let value = |column: &DataColumn, cell: &serde_json::Value| match column.kind {
        ColumnType::Text => cell.as_str().unwrap_or_default().into(),
        _ => Value::from(Serde(cell)),
    };
    let cells = data.columns().iter().zip(row);
    cells.map(|(column, cell)| (column.name.clone(), value(column, cell))).collect()
}

/// Adds the computed columns and removes the rows that `only` does not select.
fn compute(
    form: &RowsForm,
    evaluator: &Evaluator,
    rows: &mut Vec<Scope>,
    scope: &mut Scope,
) -> Result<(), PresentationError> {
    add(&form.computed, "rows", evaluator, rows, scope)?;
    if !form.only.is_empty() {
        let mut counts = Vec::with_capacity(rows.len());
        for row in &*rows {
            counts.push(evaluator.value(&form.only, &within(row, scope))?.is_true());
        }
        let mut counts = counts.into_iter();
        rows.retain(|_| counts.next().unwrap_or_default());
    }
    Ok(())
}

/// Adds the values of the definitions to each record. The definitions can use the variable `all`
/// names for all records.
fn add(
    definitions: &[super::Definition],
    all: &str,
    evaluator: &Evaluator,
    records: &mut [Scope],
    scope: &mut Scope,
) -> Result<(), PresentationError> {
    scope.insert(all.to_owned(), records.to_vec().into());
    for definition in definitions {
        for record in &mut *records {
            let value = evaluator.define(definition, &within(record, scope))?;
            record.insert(definition.name.clone(), value);
        }
        scope.insert(all.to_owned(), records.to_vec().into());
    }
    Ok(())
}

/// Returns the variables for a record's expressions. The record's own variables take precedence
/// over those in `scope`.
fn within(record: &Scope, scope: &Scope) -> Scope {
    scope.iter().chain(record).map(|(name, value)| (name.clone(), value.clone())).collect()
}

/// Returns a line for each group, in the order of first occurrence.
fn group(form: &LinesForm, rows: &[Scope]) -> Vec<Scope> {
    let mut places: BTreeMap<Vec<&Value>, usize> = BTreeMap::new();
    let mut groups: Vec<Vec<&Scope>> = Vec::new();
    for row in rows {
        let key = form.by.iter().filter_map(|column| row.get(column)).collect();
        let place = *places.entry(key).or_insert(groups.len());
        if place == groups.len() {
            groups.push(Vec::new());
        }
        groups[place].push(row);
    }
    groups.iter().map(|group| line(form, group)).collect()
}

fn line(form: &LinesForm, group: &[&Scope]) -> Scope {
    let mut line = Scope::new();
    let Some(first) = group.first() else { return line };
    for column in form.by.iter().chain(&form.first) {
        line.insert(column.clone(), first.get(column).cloned().unwrap_or_default());
    }
    let numbers = |column: &String| {
        let cells = group.iter().filter_map(|row| row.get(column));
        cells
            .filter_map(|cell| f64::try_from(cell.clone()).ok())
            .filter(|number| number.is_finite())
            .collect::<Vec<_>>()
    };
    for column in &form.means {
        let numbers = numbers(column);
        let mean = (!numbers.is_empty()).then(|| numbers.iter().sum::<f64>() / numbers.len() as f64);
        line.insert(column.clone(), mean.into());
    }
    for column in &form.statistics {
        line.insert(column.clone(), Value::from(Serde(Statistics::of(&numbers(column)))));
    }
    line
}

fn derive(
    form: &LinesForm,
    evaluator: &Evaluator,
    lines: &mut Vec<Scope>,
    scope: &mut Scope,
) -> Result<(), PresentationError> {
    add(&form.derived, "lines", evaluator, lines, scope)?;
    if form.order.is_empty() {
        return Ok(());
    }
    let mut keyed = Vec::with_capacity(lines.len());
    for line in lines.drain(..) {
        keyed.push((evaluator.value(&form.order, &within(&line, scope))?, line));
    }
    keyed.sort_by(|(a, _), (b, _)| a.cmp(b));
    lines.extend(keyed.into_iter().map(|(_, line)| line));
    Ok(())
}
