//! Presentation: the conversion of rows of data to grouped lines, an HTML page and terminal tables.
//! A TOML file describes it.
//!
//! An experiment returns rows. Its file defines the meaning of the columns, the grouping of rows
//! into lines, the statistics of each group, and the sentences, tables and charts that show them.
//! Expressions and templates have the syntax of Jinja (`minijinja`). `docs/laboratory.md` lists the
//! names and filters for them.

mod claim;
mod evaluator;
mod line_charts;
mod lines;
mod render;

pub(crate) use claim::{ClaimForm, Verdict};
pub(crate) use evaluator::{Evaluator, Scope, fold};
pub(crate) use lines::lines;

use crate::data::{ColumnType, DataColumn, DataTable};
use crate::experiment::CsvError;
use crate::report::{Attachment, Page, PageError, Section};
use line_charts::LineChartForm;
use minijinja::Value;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// Description of the data and the report in a TOML file.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Presentation {
    pub(crate) rows: RowsForm,
    /// Grouping of the rows.
    pub(crate) lines: LinesForm,
    pub(crate) report: ReportForm,
}

/// Columns of the data, and values computed for each row.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct RowsForm {
    columns: Vec<ColumnForm>,
    /// Computed columns. Each can use the columns before it, and `rows` for all rows.
    computed: Vec<Definition>,
    /// Expression that selects rows; empty: all rows.
    only: String,
}

/// A column of the data.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ColumnForm {
    name: String,
    kind: ColumnType,
    meaning: String,
    /// Whether data of earlier versions may lack the column.
    #[serde(default)]
    optional: bool,
}

/// Grouping of rows into lines, one for each combination of the columns `by`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct LinesForm {
    by: Vec<String>,
    /// Columns for which a line has the value of the first row.
    first: Vec<String>,
    /// Columns for which a line has the mean.
    means: Vec<String>,
    /// Columns for which a line has statistics.
    statistics: Vec<String>,
    /// Titles of statistics and of derived values, with the unit, for tables of several runs.
    titles: BTreeMap<String, String>,
    /// Values computed for each line. They can use `lines` for all lines with the values computed
    /// before.
    derived: Vec<Definition>,
    /// Sort key of the lines. Lines with the same key keep the order of their first occurrence.
    order: String,
}

/// A name and the expression for its value. With steps in `each`, the value is the list of all
/// values.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Definition {
    name: String,
    #[serde(default)]
    each: Vec<String>,
    value: String,
}

/// Description of the report.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct ReportForm {
    /// Definitions for all following expressions.
    define: Vec<Definition>,
    /// Title of the page, if the experiment has none.
    title: String,
    lead: String,
    facts: Vec<TermForm>,
    sections: Vec<SectionForm>,
    terminal: Vec<BlockForm>,
    /// Values that `--json` prints in addition to the lines.
    summary: Vec<Definition>,
}

/// A term and its value. It is omitted if the value is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct TermForm {
    #[serde(default)]
    each: Vec<String>,
    word: String,
    value: String,
}

/// A section. It is omitted if it has blocks and all of them are empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct SectionForm {
    each: Vec<String>,
    title: String,
    text: String,
    blocks: Vec<BlockForm>,
}

/// A block: text, notes, terms, charts of bars and of lines, and a table. Empty parts are omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct BlockForm {
    each: Vec<String>,
    /// Whether all charts of this block, for all its values of `each`, share an axis.
    share_axis: bool,
    text: String,
    notes: Vec<NoteForm>,
    terms: Vec<TermForm>,
    charts: Vec<ChartForm>,
    line_charts: Vec<LineChartForm>,
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
    /// Steps that generate the rows.
    rows: Vec<String>,
    columns: Vec<CellForm>,
    /// Templates of the lines below the table.
    #[serde(default)]
    legend: Vec<String>,
}

/// A column of a table, or several with `each`. If it has both titles, it is a column of figures,
/// unless the title `figures` is empty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default)]
struct CellForm {
    each: Vec<String>,
    group: String,
    /// Title of a text column.
    text: Option<String>,
    /// Title of a column of figures.
    figures: Option<String>,
    cell: String,
}

/// A chart, or several with `each`. A chart without groups is omitted.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
struct ChartForm {
    each: Vec<String>,
    title: String,
    unit: String,
    logarithmic: bool,
    /// Whether all charts of this form in a block share an axis.
    share_axis: bool,
    /// Steps that generate the groups, and the expression for the label of a group.
    groups: Vec<String>,
    group: String,
    /// Whether to keep groups without bars.
    empty_groups: bool,
    /// Steps that generate the series, and the expression for the name of a series.
    series: Vec<String>,
    name: String,
    /// Steps of a bar, which can use the names of group and series; then its value and the ends of
    /// its spread.
    bar: Vec<String>,
    value: String,
    least: String,
    most: String,
    /// A reference line across the chart, if its value exists. Its name is a template.
    reference: Option<Definition>,
}

/// Common parts of all pages, before and after the specific parts.
#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Frame {
    before: ReportForm,
    after: ReportForm,
}

/// The common parts. They are empty if the built-in text is invalid; a test excludes this case.
static FRAME: LazyLock<Frame> =
    LazyLock::new(|| toml::from_str(include_str!("presentation/page.toml")).unwrap_or_default());

/// A report without the common parts.
#[derive(Clone, Debug, Default)]
pub struct Report {
    /// Title of the page, if the experiment has none.
    pub(crate) title: String,
    /// Introduction below the title: the meaning of the figures.
    pub(crate) lead: String,
    /// Facts in addition to those in all reports.
    pub(crate) facts: Vec<(String, String)>,
    pub(crate) sections: Vec<Section>,
    /// Text for the terminal.
    pub text: String,
    /// JSON that `--json` prints in addition to the record.
    pub summary: serde_json::Value,
}

/// Reasons why a report cannot be generated.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum PresentationError {
    #[error("the column {0} is missing or has another type")]
    Column(String),
    #[error("error in the presentation: {text}: {source:#}")]
    Expression { text: String, source: minijinja::Error },
    #[error("cannot write the data of the page as CSV: {0}")]
    Csv(#[from] CsvError),
    #[error(transparent)]
    Page(#[from] PageError),
    #[error(
        "error in the presentation: '{0}' is not a step: write NAME in LIST, NAME = VALUE, or if CONDITION"
    )]
    Step(String),
    #[error(
        "error in the presentation: its lists of steps have too many steps or iterations: \
         use fewer nested lists"
    )]
    TooManySteps,
}

impl LinesForm {
    /// Returns the columns that identify a line.
    pub(crate) fn by(&self) -> &[String] {
        &self.by
    }

    /// Returns the names and titles of the figures of a line: the statistics, and the derived values
    /// that have a title.
    pub(crate) fn figures(&self) -> impl Iterator<Item = (&str, String)> {
        let statistics = self.statistics.iter().map(|name| {
            (name.as_str(), self.titles.get(name).cloned().unwrap_or_else(|| format!("Median of {name}")))
        });
        let derived = self.derived.iter().map(|derived| &derived.name);
        let derived = derived.filter_map(|name| Some((name.as_str(), self.titles.get(name)?.clone())));
        statistics.chain(derived)
    }
}

impl Presentation {
    /// Returns the columns of the data.
    pub(crate) fn columns(&self) -> Vec<DataColumn> {
        let column = |form: &ColumnForm| DataColumn::new(&form.name, form.kind, &form.meaning);
        self.rows.columns.iter().map(column).collect()
    }

    /// Returns this presentation followed by that which the experiments with a method have in
    /// common. Columns and definitions of the latter are defined first.
    pub(crate) fn before(self, common: &Self) -> Self {
        let Self { rows: common_rows, lines: common_lines, report: common_report } = common.clone();
        let or_common = |own: Vec<String>, common| if own.is_empty() { common } else { own };
        let only = if self.rows.only.is_empty() { common_rows.only } else { self.rows.only };
        let rows = RowsForm {
            columns: [common_rows.columns, self.rows.columns].concat(),
            computed: [common_rows.computed, self.rows.computed].concat(),
            only,
        };
        let order = if self.lines.order.is_empty() { common_lines.order } else { self.lines.order };
        let lines = LinesForm {
            by: or_common(self.lines.by, common_lines.by),
            first: [common_lines.first, self.lines.first].concat(),
            means: [common_lines.means, self.lines.means].concat(),
            statistics: [common_lines.statistics, self.lines.statistics].concat(),
            titles: common_lines.titles.into_iter().chain(self.lines.titles).collect(),
            derived: [common_lines.derived, self.lines.derived].concat(),
            order,
        };
        let own = self.report;
        let report = ReportForm {
            define: [common_report.define, own.define].concat(),
            facts: [own.facts, common_report.facts].concat(),
            sections: [own.sections, common_report.sections].concat(),
            terminal: if own.terminal.is_empty() { common_report.terminal } else { own.terminal },
            ..own
        };
        Self { rows, lines, report }
    }

    /// Checks that the data have all columns that the report needs.
    pub(crate) fn check(&self, data: &DataTable) -> Result<(), PresentationError> {
        let is_there = |form: &&ColumnForm| {
            data.columns().iter().any(|column| column.name == form.name && column.kind == form.kind)
        };
        match self.rows.columns.iter().filter(|form| !form.optional).find(|form| !is_there(form)) {
            Some(missing) => Err(PresentationError::Column(missing.name.clone())),
            None => Ok(()),
        }
    }

    /// Generates a report without rows, which detects almost all errors of a presentation before
    /// the measurement.
    pub(crate) fn try_out(&self) -> Result<(), PresentationError> {
        self.report(self.scope_without_rows()?).map(drop)
    }

    fn scope_without_rows(&self) -> Result<Scope, PresentationError> {
        let nothing =
            ["about", "parameters", "record"].map(|name| (name.to_owned(), Value::from(Scope::new())));
        let mut scope = Scope::from(nothing);
        lines(self, &DataTable::new(self.columns()), &mut scope)?;
        Ok(scope)
    }

    /// Returns the names for expressions, with definitions, of results without rows.
    #[cfg(test)]
    pub(crate) fn empty_scope(&self) -> Result<Scope, PresentationError> {
        self.defined(self.scope_without_rows()?)
    }

    /// Returns `scope` with the definitions of the report.
    pub(crate) fn defined(&self, scope: Scope) -> Result<Scope, PresentationError> {
        render::defined(&self.report, &Evaluator::default(), scope)
    }

    /// Generates the report. Its expressions can use all variables in `scope`.
    pub(crate) fn report(&self, scope: Scope) -> Result<Report, PresentationError> {
        render::report(&self.report, &Evaluator::default(), scope)
    }

    /// Generates the HTML page, which contains `attachment` for download. Its expressions can use
    /// all variables in `scope`.
    pub(crate) fn page(&self, scope: &Scope, attachment: Attachment) -> Result<String, PresentationError> {
        let (mut page, after) = self.parts(scope)?;
        page.sections.extend(after);
        page.attachment = Some(attachment);
        Ok(page.to_html()?)
    }

    /// Generates the page without its last sections, and these sections, which do not depend on the
    /// rows.
    pub(crate) fn parts(&self, scope: &Scope) -> Result<(Page, Vec<Section>), PresentationError> {
        let part = |form| render::report(form, &Evaluator::default(), scope.clone());
        let [before, own, after] = [part(&FRAME.before)?, part(&self.report)?, part(&FRAME.after)?];
        let page = Page {
            title: if before.title.is_empty() { own.title } else { before.title },
            lead: [before.lead, own.lead].concat(),
            facts: [before.facts, own.facts].concat(),
            run_facts: after.facts,
            attachment: None,
            sections: [before.sections, own.sections].concat(),
        };
        Ok((page, after.sections))
    }
}

#[cfg(test)]
mod tests;
