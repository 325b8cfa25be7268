//! Results: the record of a run and its data, and the report that is made of the two alone.

use super::data::{DataTable, Kind};
use super::definition::Definition;
use super::method::{About, Method, Report};
use super::published::{self, PublishedTable};
use crate::machine::Machine;
use crate::report::{Block, Column, Page, Section, Table, figure};
use serde::{Deserialize, Serialize};

/// Version of the record; another one is refused when read.
pub const FORMAT: u32 = 1;

/// All that is known of a run beside its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this form: [`FORMAT`].
    pub format: u32,
    /// The experiment, with the parameters that it was run with.
    pub experiment: Definition,
    /// When it was run, RFC 3339.
    pub date: String,
    /// The command that ran it.
    pub command: String,
    /// What randomness was drawn from.
    pub seed: u64,
    /// The machine.
    pub machine: Machine,
    /// What was measured with what.
    pub about: About,
    /// What a reader must know before believing the figures.
    pub notes: Vec<String>,
}

/// What an experiment came to.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The record.
    pub record: Record,
    /// The data.
    pub data: DataTable,
}

/// The data lack a column that the report needs, or have another kind in it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the column {0} is missing or of another kind")]
pub struct UnreadableColumn(pub String);

impl Results {
    /// The method's part of the report.
    ///
    /// # Errors
    /// Where the data lack a column.
    pub fn report(&self) -> Result<Report, UnreadableColumn> {
        Method::report(self)
    }

    /// The page.
    ///
    /// # Errors
    /// Where the data lack a column.
    pub fn page(&self) -> Result<Page, UnreadableColumn> {
        let report = self.report()?;
        let record = &self.record;
        let mut sections = report.sections;
        if !record.notes.is_empty() {
            let blocks = vec![Block::Notes(record.notes.clone())];
            sections.insert(0, Section { title: "To know beforehand".to_owned(), blocks });
        }
        sections.extend(self.published());
        sections.push(self.columns());
        let mut facts = vec![("Question".to_owned(), record.experiment.question.clone())];
        facts.extend(report.facts);
        facts.extend(self.facts());
        Ok(Page { title: record.experiment.title.clone(), lead: report.lead, facts, sections })
    }

    /// Machine and make.
    fn facts(&self) -> Vec<(String, String)> {
        let Record { machine, date, command, seed, .. } = &self.record;
        let rustc = if machine.rustc.is_empty() { "compiler unknown" } else { &machine.rustc };
        let facts = [
            ("CPU", format!("{}, {} usable", machine.cpu, machine.cpus)),
            ("Memory", format!("{} GiB", figure(machine.memory_kib as f64 / (1024.0 * 1024.0)))),
            ("System", machine.system.clone()),
            ("Made by", format!("Nonesuch {} ({rustc})", machine.nonesuch)),
            ("Made at", date.clone()),
            ("Command", command.clone()),
            ("Seed", seed.to_string()),
        ];
        facts.map(|(word, value)| (word.to_owned(), value)).to_vec()
    }

    /// The published tables that the experiment names.
    fn published(&self) -> Option<Section> {
        let ids = &self.record.experiment.published;
        let blocks: Vec<Block> =
            ids.iter().filter_map(|id| published::table(id)).flat_map(published_blocks).collect();
        let title = "Published figures".to_owned();
        (!blocks.is_empty()).then_some(Section { title, blocks })
    }

    /// What the columns of the data mean.
    fn columns(&self) -> Section {
        let text = format!(
            "Every measurement is a row of results.csv and of results.parquet, {} in all, with these columns. \
             `nonesuch lab report` makes this page again from results.csv and results.json.",
            self.data.rows().len()
        );
        let kind = |kind: Kind| match kind {
            Kind::Text => "text",
            Kind::Integer => "whole number",
            Kind::Number => "number",
        };
        let terms = self.data.columns().iter();
        let terms =
            terms.map(|column| (column.name.clone(), format!("{} ({})", column.meaning, kind(column.kind))));
        let blocks = vec![Block::Paragraph(text), Block::Terms(terms.collect())];
        Section { title: "The data".to_owned(), blocks }
    }
}

fn published_blocks(table: &PublishedTable) -> [Block; 2] {
    let figures = |place: usize| {
        table.rows.iter().any(|row| row.get(place).is_some_and(|cell| cell.number().is_some()))
    };
    let columns =
        table.columns.iter().enumerate().map(|(place, title)| {
            if figures(place) { Column::figures("", title) } else { Column::text(title) }
        });
    let rows: Vec<Vec<String>> = table
        .rows
        .iter()
        .map(|row| row.iter().map(|cell| published::marked(&cell.print())).collect())
        .collect();
    let mut legend = vec![format!("Source: {}.", table.source)];
    if !table.hardware.is_empty() {
        legend.push(format!("Measured on: {}.", table.hardware));
    }
    if !table.note.is_empty() {
        legend.push(table.note.clone());
    }
    if rows.iter().flatten().any(|cell| cell.ends_with('*')) {
        legend.push("*: an experimental algorithm.".to_owned());
    }
    [
        Block::Paragraph(format!("{}.", table.title)),
        Block::Table(Table { columns: columns.collect(), rows, legend }),
    ]
}
