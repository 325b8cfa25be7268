//! Running an experiment, and its results: the record of a run and its data, and the report that is made of the two alone.

use super::definition::Definition;
use super::error::RunError;
use super::run::{Findings, RunOptions};
use crate::data::{DataTable, Kind};
use crate::machine::Machine;
use crate::presentation::{PresentationError, Report, Scope, lines};
use crate::published::{self, PublishedTable};
use crate::report::{Block, Column, Page, Section, Table};
use minijinja::value::{Serde, Value};
use nonesuch_proto::timestamp::Rfc3339;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Version of the record; another one is refused when read.
pub(crate) const FORMAT: u32 = 1;

/// All that is known of a run beside its data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of this form: [`FORMAT`].
    pub format: u32,
    /// The experiment, with the parameters that it was run with.
    pub experiment: Definition,
    /// When it was run, RFC 3339.
    pub date: String,
    pub command: String,
    /// What randomness was drawn from.
    pub seed: u64,
    pub machine: Machine,
    /// What was measured with what, by the name of the method.
    pub about: BTreeMap<String, serde_json::Value>,
    /// What a reader must know before believing the figures.
    pub notes: Vec<String>,
}

/// The outcome of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// The record.
    pub record: Record,
    /// The data.
    pub data: DataTable,
}

/// Runs an experiment.
///
/// # Errors
/// Where nothing can be measured, or what is measured fails. What is missing of that which was asked for is a note.
pub fn run(definition: &Definition, options: &RunOptions<'_>) -> Result<Results, RunError> {
    let mut findings = Findings::new(definition.presentation().columns());
    let about = definition.method.run(options, &mut findings)?;
    let machine = Machine::here(None);
    let mut notes: Vec<String> = machine.note_of_debug_build().into_iter().collect();
    notes.extend(findings.notes);
    let record = Record {
        format: FORMAT,
        experiment: definition.clone(),
        date: Rfc3339(options.now.into()).to_string(),
        command: options.command.clone(),
        seed: options.seed,
        machine,
        about: BTreeMap::from([(definition.method.name().to_owned(), about)]),
        notes,
    };
    Ok(Results { record, data: findings.data })
}

impl Results {
    /// The report, without the parts that all have.
    ///
    /// # Errors
    /// Where the data lack a column, or the presentation is at fault.
    pub fn report(&self) -> Result<Report, PresentationError> {
        let definition = &self.record.experiment;
        let method = serde_json::to_value(&definition.method).unwrap_or_default();
        // A record of two methods was not written by this program.
        let about = self.record.about.get(definition.method.name());
        let about = about.ok_or_else(|| PresentationError::Column("method".to_owned()))?;
        let mut scope = Scope::from([
            ("record".to_owned(), Value::from(Serde(&self.record))),
            ("about".to_owned(), Value::from(Serde(about))),
            ("parameters".to_owned(), Value::from(Serde(&method["parameters"]))),
        ]);
        let presentation = definition.presentation();
        lines(&presentation, &self.data, &mut scope)?;
        presentation.report(scope)
    }

    /// The page, as HTML.
    ///
    /// # Errors
    /// As [`Results::report`].
    pub fn page(&self) -> Result<String, PresentationError> {
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
        facts.extend(record.machine.facts(&record.date, &record.command));
        facts.push(("Seed".to_owned(), record.seed.to_string()));
        let title = record.experiment.title.clone();
        Ok(Page { title, lead: report.lead, facts, sections }.to_html())
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
