//! Presentation: how rows of data become grouped lines, a page and a table for a terminal, as a TOML file describes it.
//!
//! An experiment yields rows. Its file says what the columns mean, how rows are grouped into lines, which statistics are
//! taken of each group, and which sentences, tables and charts show them. Expressions and templates are those of Jinja
//! (`minijinja`); docs/laboratory.md lists the names and filters that they can use.

mod evaluator;
mod lines;
mod render;

pub(crate) use evaluator::{Evaluator, Scope};
pub(crate) use lines::lines;

use crate::data::{DataColumn, DataTable, Kind};
use crate::report::{Page, Section};
use minijinja::Value;
use serde::{Deserialize, Serialize};
use std::sync::LazyLock;

/// What a file says of the data and their report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Presentation {
    pub(crate) rows: RowsForm,
    /// How rows are grouped.
    pub(crate) lines: LinesForm,
    pub(crate) report: ReportForm,
}

/// The rows of the data, and what is computed of each.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RowsForm {
    columns: Vec<ColumnForm>,
    /// Columns that are computed, each of those before it; `rows` are all rows.
    computed: Vec<Definition>,
    /// The rows that count: an expression. Empty: all.
    only: String,
}

/// A column of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnForm {
    name: String,
    kind: Kind,
    meaning: String,
    /// Data of earlier versions may lack it.
    #[serde(default)]
    optional: bool,
}

/// How rows become lines, one for each combination of the columns `by`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LinesForm {
    by: Vec<String>,
    /// Columns of which the first row's cell is taken.
    first: Vec<String>,
    /// Columns of which the mean is taken.
    means: Vec<String>,
    /// Columns of which statistics are taken.
    statistics: Vec<String>,
    /// What is computed of each line; `lines` are all lines, with what was computed before.
    derived: Vec<Definition>,
    /// What lines are sorted by; lines of equal value keep the order in which they occur first.
    order: String,
}

/// A name and the expression that gives its value; with steps in `each`, the list of all values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    name: String,
    #[serde(default)]
    each: Vec<String>,
    value: String,
}

/// The report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReportForm {
    /// Names for all that follows.
    define: Vec<Definition>,
    /// Title of the page, where the experiment has none.
    title: String,
    lead: String,
    facts: Vec<TermForm>,
    sections: Vec<SectionForm>,
    terminal: Vec<BlockForm>,
    /// What `--json` prints beside the lines.
    summary: Vec<Definition>,
}

/// A word and its meaning; left out where the meaning is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TermForm {
    #[serde(default)]
    each: Vec<String>,
    word: String,
    value: String,
}

/// A section. One with blocks, all of which are empty, is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SectionForm {
    each: Vec<String>,
    title: String,
    text: String,
    blocks: Vec<BlockForm>,
}

/// A block: its text, notes, terms, charts and table. What is empty is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct BlockForm {
    each: Vec<String>,
    /// Whether all charts that this form gives have one axis.
    share_axis: bool,
    text: String,
    notes: Vec<NoteForm>,
    terms: Vec<TermForm>,
    charts: Vec<ChartForm>,
    table: Option<TableForm>,
}

/// A note.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct NoteForm {
    #[serde(default)]
    each: Vec<String>,
    text: String,
}

/// A table.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TableForm {
    /// The steps that give a row each.
    rows: Vec<String>,
    columns: Vec<CellForm>,
    /// Templates of the lines below.
    #[serde(default)]
    legend: Vec<String>,
}

/// A column of a table, or with `each` several. One with both titles is of figures unless that title is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CellForm {
    each: Vec<String>,
    group: String,
    /// Title of a column of text.
    text: Option<String>,
    /// Title of a column of figures.
    figures: Option<String>,
    cell: String,
}

/// A chart, or with `each` several. One without groups is left out.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct ChartForm {
    each: Vec<String>,
    title: String,
    unit: String,
    logarithmic: bool,
    /// Whether all charts that this form gives in a block have one axis.
    share_axis: bool,
    /// Steps of the groups, and the expression of a group's label.
    groups: Vec<String>,
    group: String,
    /// Whether groups without bars stay.
    empty_groups: bool,
    /// Steps of the series, and the expression of their name.
    series: Vec<String>,
    name: String,
    /// Steps of a bar, which see group and series; then its value and the ends of its spread.
    bar: Vec<String>,
    value: String,
    least: String,
    most: String,
    /// A line across the chart, where there is a value.
    reference: Option<Definition>,
}

/// What all pages have, before and after what is their own.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    before: ReportForm,
    after: ReportForm,
}

/// Empty where the text were at fault, which a test rules out.
static FRAME: LazyLock<Frame> =
    LazyLock::new(|| toml::from_str(include_str!("presentation/page.toml")).unwrap_or_default());

/// A report without its frame.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Title of the page, where the experiment has none.
    pub(crate) title: String,
    /// What the figures mean, in a paragraph below the title.
    pub(crate) lead: String,
    /// Facts beside those that every report has.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) sections: Vec<Section>,
    /// What a terminal shows.
    pub text: String,
    /// What `--json` prints beside the record.
    pub summary: serde_json::Value,
}

/// Why data have no report.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the messages say what variants and fields are
pub enum PresentationError {
    #[error("the column {0} is missing or of another kind")]
    Column(String),
    #[error("the presentation is at fault: {text}: {source:#}")]
    Expression { text: String, source: minijinja::Error },
    #[error("the page cannot be made: {0:#}")]
    Page(#[from] minijinja::Error),
    #[error(
        "the presentation is at fault: '{0}' is no step: write NAME in LIST, NAME = VALUE, or if CONDITION"
    )]
    Step(String),
}

impl Presentation {
    /// The columns of the data.
    pub(crate) fn columns(&self) -> Vec<DataColumn> {
        let column = |form: &ColumnForm| DataColumn::new(&form.name, form.kind, &form.meaning);
        self.rows.columns.iter().map(column).collect()
    }

    /// That the data have the columns that the report needs.
    pub(crate) fn check(&self, data: &DataTable) -> Result<(), PresentationError> {
        let is_there = |form: &&ColumnForm| {
            data.columns().iter().any(|column| column.name == form.name && column.kind == form.kind)
        };
        match self.rows.columns.iter().filter(|form| !form.optional).find(|form| !is_there(form)) {
            Some(missing) => Err(PresentationError::Column(missing.name.clone())),
            None => Ok(()),
        }
    }

    /// Makes the report of no rows, which finds most faults before anything is measured.
    pub(crate) fn try_out(&self) -> Result<(), PresentationError> {
        let nothing =
            ["about", "parameters", "record"].map(|name| (name.to_owned(), Value::from(Scope::new())));
        let mut scope = Scope::from(nothing);
        lines(self, &DataTable::new(self.columns()), &mut scope)?;
        self.report(scope).map(drop)
    }

    /// The report, of all that `scope` holds.
    pub(crate) fn report(&self, scope: Scope) -> Result<Report, PresentationError> {
        render::report(&self.report, &Evaluator::default(), scope)
    }

    /// The page, as HTML, of all that `scope` holds.
    pub(crate) fn page(&self, scope: &Scope) -> Result<String, PresentationError> {
        let mut page = Page::default();
        for form in [&FRAME.before, &self.report, &FRAME.after] {
            let part = render::report(form, &Evaluator::default(), scope.clone())?;
            if page.title.is_empty() {
                page.title = part.title;
            }
            page.lead.push_str(&part.lead);
            page.facts.extend(part.facts);
            page.sections.extend(part.sections);
        }
        Ok(page.to_html()?)
    }
}

#[cfg(test)]
mod tests;
