//! Instructions on foreign processors: a table for each operation, processors as columns, ours above OpenSSL's.

use crate::experiment::data::DataTable;
use crate::experiment::results::UnreadableColumn;
use crate::experiment::verification::foreign::{Count, counts};
use crate::experiment::verification::subject::{Operation, Subject};
use crate::experiment::verification::{About, ForeignFacts};
use crate::report::{Block, Column, Section, Table, grouped};

/// What the others are held against; it and its like come first.
const REFERENCE: &str = "x86-64-v3";
const FIRST: [&str; 5] = [REFERENCE, "x86-64-v2", "arm64", "armhf", "mips64el"];

/// The section; nothing where no counts were given.
pub(super) fn section(about: &About, data: &DataTable) -> Result<Option<Section>, UnreadableColumn> {
    let Some(facts) = &about.foreign else { return Ok(None) };
    let counts = counts(about, data)?;
    let mut blocks = vec![Block::Paragraph(text(facts))];
    for operation in Operation::ALL {
        let table = table(&counts, operation);
        if !table.rows.is_empty() {
            blocks.push(Block::Table(table));
        }
    }
    let models = facts.models.iter().cloned();
    blocks.push(Block::Terms(models.collect()));
    Ok(Some(Section { title: "Foreign processors".to_owned(), blocks }))
}

fn text(facts: &ForeignFacts) -> String {
    format!(
        "What an operation costs on other processors, home routers' among them, in instructions. They were counted under an \
         emulator, which tells their number exactly and says nothing about time: a small processor needs more cycles for \
         each than a large one. Counted by {}, {}; OpenSSL is {}. Below, each processor with its model there.",
        facts.counter, facts.date, facts.openssl
    )
}

/// Thousands of instructions, and the ratio to the reference of the same program.
pub(in crate::experiment::verification) fn table(counts: &[Count], operation: Operation) -> Table {
    let of_operation: Vec<&Count> = counts.iter().filter(|count| count.operation == operation).collect();
    let processors = processors(&of_operation);
    let per = match operation {
        Operation::Verify => "verification",
        Operation::Sign => "signature",
        Operation::Prove => "proof",
    };
    let mut columns = vec![Column::text(&format!("Instructions per {per}")), Column::text("program")];
    columns.extend(processors.iter().map(|name| Column::figures("thousands", name)));
    let others = || processors.iter().filter(|name| **name != REFERENCE);
    let against = format!("times those of {REFERENCE}");
    columns.extend(others().map(|name| Column::figures(&against, name)));
    let mut keys: Vec<(&str, Subject)> = Vec::new();
    for count in &of_operation {
        if !keys.contains(&(count.backend, count.subject)) {
            keys.push((count.backend, count.subject));
        }
    }
    keys.sort_by_key(|(backend, _)| *backend);
    let row = |(backend, subject): (&str, Subject)| {
        let find = |processor: &str| {
            let is_it = |count: &&&Count| {
                (count.backend, count.subject, &*count.processor) == (backend, subject, processor)
            };
            of_operation.iter().find(is_it).map(|count| count.instructions)
        };
        let mut cells = vec![subject.to_string(), backend.to_owned()];
        cells.extend(processors.iter().map(|name| find(name).map_or_else(dash, thousands)));
        cells.extend(others().map(|name| {
            let pair = find(name).zip(find(REFERENCE));
            pair.map_or_else(dash, |(own, reference)| format!("{:.2}", own as f64 / reference as f64))
        }));
        cells
    };
    Table {
        rows: keys.into_iter().map(row).collect(),
        columns,
        legend: vec![format!(
            "Instructions, not time. Ratios are to {REFERENCE} of the same program; below 1: fewer."
        )],
    }
}

/// The processors in their order: the usual ones, then others as they stand in the file.
fn processors<'c>(counts: &[&'c Count]) -> Vec<&'c str> {
    let mut names: Vec<&str> = Vec::new();
    for count in counts {
        if !names.contains(&&*count.processor) {
            names.push(&count.processor);
        }
    }
    names.sort_by_key(|name| FIRST.iter().position(|first| first == name).unwrap_or(FIRST.len()));
    names
}

fn dash() -> String {
    "–".to_owned()
}

/// To the nearest thousand; what is less than one has a decimal.
fn thousands(instructions: u64) -> String {
    match instructions {
        ..1000 => format!("{:.1}", instructions as f64 / 1000.0),
        _ => grouped(((instructions + 500) / 1000) as i64),
    }
}
