//! Runs of the same experiment, on one machine or several, and their common report.
//!
//! The rows of a run are compared only with each other: the report computes the lines of each run
//! separately and shows them side by side, grouped by machine.

use super::csv::{self, CsvError};
use super::error::StoreError;
use super::results::{Record, Results};
use super::store;
use crate::data::{DataTable, RowMismatch};
use crate::presentation::{PresentationError, Report, Scope};
use crate::record::{RUN_ID, RunRecord};
use crate::report::{Block, Column, Page, Section, Table, figure, printable};
use minijinja::value::Value;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::{Path, PathBuf};

/// Number of digits of an identifier in headings.
const SHORT: usize = 8;

/// Results of at least one run of an experiment, ordered by machine and date.
#[derive(Clone, Debug, PartialEq)]
pub struct Runs {
    first: Results,
    others: Vec<Results>,
}

/// Reasons why runs cannot be merged.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum MergeError {
    #[error(transparent)]
    Store(#[from] StoreError),
    #[error("nothing to merge: name at least one output directory of `nonesuch lab run`")]
    Nothing,
    #[error(
        "{}: contains results of the experiment {found}, but {} contains results of {wanted}: merge only runs of the same experiment",
        dir.display(), first.display()
    )]
    Experiment { dir: PathBuf, found: String, first: PathBuf, wanted: String },
    #[error(
        "{}: was measured with the method {found}, but {} with {wanted}: run the same experiment file on all machines",
        dir.display(), first.display()
    )]
    Method { dir: PathBuf, found: &'static str, first: PathBuf, wanted: &'static str },
    #[error(
        "{}: was measured with Nonesuch {found}, but {} with Nonesuch {wanted}: run the experiment with the same version on all machines",
        dir.display(), first.display()
    )]
    Version { dir: PathBuf, found: String, first: PathBuf, wanted: String },
    #[error(
        "{}: has other columns or another report than {}: run the same experiment file on all machines",
        dir.display(), first.display()
    )]
    Columns { dir: PathBuf, first: PathBuf },
    #[error(
        "{}: the results have no identifier of the run, because an earlier version wrote them: run the experiment again",
        dir.display()
    )]
    NoIdentifier { dir: PathBuf },
    #[error(
        "{}: has other results of the run {run_id} than {}: merge only one of these directories",
        dir.display(), first.display()
    )]
    Conflict { dir: PathBuf, first: PathBuf, run_id: String },
    #[error("{}: is one of the directories to merge: choose another directory with --out", dir.display())]
    Overwrites { dir: PathBuf },
}

/// Reads the results in `dirs`, which can be merged results themselves, and joins their runs. A run
/// that occurs more than once is used once. `out` is the directory to which the caller writes the
/// result.
///
/// # Errors
/// Fails if a directory has no valid results, the runs are of different experiments, methods,
/// versions of the program, or columns, a run has no identifier or two different results, or `out`
/// is one of `dirs`.
pub fn merge(dirs: &[PathBuf], out: &Path) -> Result<Runs, MergeError> {
    if let Some(dir) = dirs.iter().find(|dir| is_same(dir, out)) {
        return Err(MergeError::Overwrites { dir: dir.clone() });
    }
    let mut found: Vec<(&PathBuf, Results)> = Vec::new();
    for dir in dirs {
        for results in store::load(dir)?.into_results() {
            check(dir, &results, found.first())?;
            let run_id = &results.record.run.run_id;
            match found.iter().find(|(_, known)| known.record.run.run_id == *run_id) {
                None => found.push((dir, results)),
                Some((_, known)) if *known == results => {}
                Some((first, _)) => {
                    let (first, run_id) = ((*first).clone(), run_id.clone());
                    return Err(MergeError::Conflict { dir: dir.clone(), first, run_id });
                }
            }
        }
    }
    Runs::ordered(found.into_iter().map(|(_, results)| results).collect()).ok_or(MergeError::Nothing)
}

/// Whether both paths are the same directory.
fn is_same(dir: &Path, out: &Path) -> bool {
    match (dir.canonicalize(), out.canonicalize()) {
        (Ok(dir), Ok(out)) => dir == out,
        _ => dir == out,
    }
}

/// Checks that the results have an identifier and match those found first.
fn check(dir: &Path, results: &Results, first: Option<&(&PathBuf, Results)>) -> Result<(), MergeError> {
    let Record { experiment, run, .. } = &results.record;
    if run.run_id.is_empty() || results.data.columns().iter().all(|column| column.name != RUN_ID) {
        return Err(MergeError::NoIdentifier { dir: dir.to_path_buf() });
    }
    let Some((first, other)) = first else { return Ok(()) };
    let (dir, first) = (dir.to_path_buf(), (*first).clone());
    let Record { experiment: wanted, run: other_run, .. } = &other.record;
    if experiment.name != wanted.name {
        let (found, wanted) = (experiment.name.clone(), wanted.name.clone());
        return Err(MergeError::Experiment { dir, found, first, wanted });
    }
    let (method, wanted_method) = (experiment.method.name(), wanted.method.name());
    if method != wanted_method {
        return Err(MergeError::Method { dir, found: method, first, wanted: wanted_method });
    }
    let (found, wanted_version) = (&run.machine.nonesuch, &other_run.machine.nonesuch);
    if found != wanted_version {
        let (found, wanted) = (found.clone(), wanted_version.clone());
        return Err(MergeError::Version { dir, found, first, wanted });
    }
    let is_same =
        results.data.columns() == other.data.columns() && experiment.presentation() == wanted.presentation();
    if is_same { Ok(()) } else { Err(MergeError::Columns { dir, first }) }
}

impl Runs {
    /// The results of one run.
    pub(super) const fn of(results: Results) -> Self {
        Self { first: results, others: Vec::new() }
    }

    /// Orders runs by machine and date. Returns `None` without runs.
    fn ordered(mut all: Vec<Results>) -> Option<Self> {
        let key = |results: &Results| {
            let RunRecord { run_id, date, machine, .. } = &results.record.run;
            (machine.cpu.clone(), machine.id.clone(), date.clone(), run_id.clone())
        };
        all.sort_by_key(key);
        let mut all = all.into_iter();
        Some(Self { first: all.next()?, others: all.collect() })
    }

    /// Distributes the rows of merged runs. Returns `None` if there are no runs, two runs have the
    /// same identifier, or a row belongs to no run.
    pub(super) fn split(records: Vec<Record>, data: &DataTable) -> Option<Self> {
        let place = data.columns().iter().position(|column| column.name == RUN_ID)?;
        let empty = |record| Results { record, data: DataTable::new(data.columns().to_vec()) };
        let count = records.len();
        let named = records.into_iter().map(|record| (record.run.run_id.clone(), empty(record)));
        let mut all: HashMap<String, Results> = named.collect();
        if all.len() < count {
            return None;
        }
        for row in data.rows() {
            let own = all.get_mut(row.get(place)?.as_str()?)?;
            own.data.push(row.clone()).ok()?;
        }
        Self::ordered(all.into_values().collect())
    }

    /// Returns the results of each run.
    pub fn results(&self) -> impl Iterator<Item = &Results> {
        std::iter::once(&self.first).chain(&self.others)
    }

    fn into_results(self) -> impl Iterator<Item = Results> {
        std::iter::once(self.first).chain(self.others)
    }

    /// Returns the results of the first run.
    pub const fn first(&self) -> &Results {
        &self.first
    }

    /// Returns the rows of all runs, in the order of the runs.
    pub(super) fn data(&self) -> Result<DataTable, RowMismatch> {
        let mut data = DataTable::new(self.first.data.columns().to_vec());
        for row in self.results().flat_map(|results| results.data.rows()) {
            data.push(row.clone())?;
        }
        Ok(data)
    }

    /// Returns the report: that of the run, or for several runs the tables that show them side by
    /// side.
    ///
    /// # Errors
    /// Fails as [`Results::report`] does.
    pub fn report(&self) -> Result<Report, PresentationError> {
        if self.others.is_empty() {
            return self.first.report();
        }
        let tables = self.tables()?;
        let notes: String = self.notes().iter().map(|note| format!("{}\n", printable(note))).collect();
        let tables = tables.iter().map(|(title, table)| format!("{title}\n\n{}", table.to_text()));
        let text = Some(notes).filter(|notes| !notes.is_empty()).into_iter().chain(tables);
        let summaries: Result<BTreeMap<&str, _>, PresentationError> = self
            .results()
            .map(|results| Ok((results.record.run.run_id.as_str(), results.report()?.summary)))
            .collect();
        let summary = serde_json::json!(summaries?);
        Ok(Report { text: text.collect::<Vec<_>>().join("\n"), summary, ..Report::default() })
    }

    /// Returns the HTML page.
    ///
    /// # Errors
    /// Fails as [`Results::report`] does.
    pub fn page(&self) -> Result<String, PresentationError> {
        if self.others.is_empty() {
            return self.first.page();
        }
        let experiment = &self.first.record.experiment;
        let machines = self.results().map(|results| &results.record.run.machine.id);
        let machines = machines.collect::<BTreeSet<_>>().len();
        let blocks = self.tables()?.into_iter();
        let blocks = blocks.flat_map(|(title, table)| [Block::Paragraph(title), Block::Table(table)]);
        let mut page = Page {
            title: experiment.title.clone(),
            lead: format!("Runs: {}; machines: {machines}.", 1 + self.others.len()),
            facts: vec![("Question".to_owned(), experiment.question.clone())],
            attachment: Some(csv::attachment(&self.data().map_err(CsvError::from)?, store::CSV_FILE)?),
            sections: vec![Section { title: "Side by side".to_owned(), blocks: blocks.collect() }],
            ..Page::default()
        };
        let differences = self.differences();
        if !differences.is_empty() {
            page.sections[0].blocks.insert(0, Block::Notes(differences));
        }
        let mut last = Vec::new();
        for (place, results) in self.results().enumerate() {
            let (part, after) = experiment.presentation().parts(&results.scope()?)?;
            if place == 0 && !part.lead.is_empty() {
                page.lead += &format!(" The first run: {}", part.lead.trim());
            }
            let run = format!("{}, {}", machine(results), results.record.run.date);
            let facts = Section {
                title: run.clone(),
                blocks: vec![Block::Terms([part.facts, part.run_facts].concat())],
            };
            let titled =
                |section: Section| Section { title: format!("{} – {run}", section.title), ..section };
            page.sections.push(facts);
            page.sections.extend(part.sections.into_iter().map(titled));
            last = after;
        }
        page.sections.extend(last);
        Ok(page.to_html()?)
    }

    /// Returns notes for the comparison of several runs: their differences, and the notes of each
    /// run.
    pub fn notes(&self) -> Vec<String> {
        let own = self.results().flat_map(|results| {
            let run = format!("{}, {}", machine(results), results.record.run.date);
            results.record.notes.iter().map(move |note| format!("{run}: {note}"))
        });
        self.differences().into_iter().chain(own).collect()
    }

    /// Returns notes if the runs have different parameters, or are of different builds.
    fn differences(&self) -> Vec<String> {
        let is_other = |results: &Results| results.record.experiment != self.first.record.experiment;
        let parameters = self.results().any(is_other).then(|| {
            "The runs have different parameters, which results.json lists: compare their figures with care."
                .to_owned()
        });
        let build = |results: &Results| {
            let RunRecord { commit, machine, .. } = &results.record.run;
            let debug = if machine.optimised { "" } else { " (with debug assertions)" };
            format!("{commit}{debug}")
        };
        let builds: Vec<String> = self.results().map(build).collect::<BTreeSet<_>>().into_iter().collect();
        let commits = (builds.len() > 1)
            .then(|| format!("The runs are of different commits or builds: {}.", builds.join(", ")));
        parameters.into_iter().chain(commits).collect()
    }

    /// Returns a table for each figure of the lines: a row for each line of any run, and the figure
    /// of the line in each run.
    fn tables(&self) -> Result<Vec<(String, Table)>, PresentationError> {
        let presentation = self.first.record.experiment.presentation();
        let by = presentation.lines.by();
        let mut keys: Vec<Vec<String>> = Vec::new();
        let mut known = BTreeSet::new();
        let mut runs = Vec::new();
        for results in self.results() {
            let mut lines = BTreeMap::new();
            for line in lines_of(&results.scope()?) {
                let key = key(&line, by);
                if known.insert(key.clone()) {
                    keys.push(key.clone());
                }
                lines.entry(key).or_insert(line);
            }
            runs.push(lines);
        }
        let tables = presentation.lines.figures().map(|(name, title)| {
            let rows = keys.iter().filter_map(|key| row(key, name, &runs)).collect();
            (format!("{title}."), Table { columns: self.columns(by), rows, legend: Vec::new() })
        });
        Ok(tables.filter(|(_, table)| !table.rows.is_empty()).collect())
    }

    fn columns(&self, by: &[String]) -> Vec<Column> {
        let names = by.iter().map(|name| Column::text(name.trim_start_matches('_')));
        let runs = self.results().map(|results| {
            let RunRecord { run_id, date, .. } = &results.record.run;
            let date = date.get(..16).unwrap_or(date);
            Column::figures(&machine(results), &format!("{date} ({})", shortened(run_id)))
        });
        names.chain(runs).collect()
    }
}

/// Names the machine of a run.
fn machine(results: &Results) -> String {
    let machine = &results.record.run.machine;
    let cpu = if machine.cpu.is_empty() { "unknown CPU" } else { &machine.cpu };
    format!("{cpu} ({})", shortened(&machine.id))
}

fn shortened(identifier: &str) -> &str {
    identifier.get(..SHORT).unwrap_or(identifier)
}

/// Returns the lines in the variables of a presentation.
fn lines_of(scope: &Scope) -> Vec<Value> {
    scope.get("lines").and_then(|lines| lines.try_iter().ok()).map_or(Vec::new(), Iterator::collect)
}

/// Returns the values of the columns `by` of a line.
fn key(line: &Value, by: &[String]) -> Vec<String> {
    by.iter().map(|name| line.get_attr(name).unwrap_or_default().to_string()).collect()
}

/// Returns a row: the key, and in each run the figure `name`, or its median if it has statistics.
/// `runs` contains the lines of each run by their keys. Returns `None` if no run has this figure.
fn row(key: &[String], name: &str, runs: &[BTreeMap<Vec<String>, Value>]) -> Option<Vec<String>> {
    let figure_of = |lines: &BTreeMap<Vec<String>, Value>| {
        let value = lines.get(key)?.get_attr(name).ok()?;
        f64::try_from(value.get_attr("median").unwrap_or_default()).or_else(|_| f64::try_from(value)).ok()
    };
    let found: Vec<Option<f64>> = runs.iter().map(figure_of).collect();
    let cells = || found.iter().map(|value| value.map_or_else(|| "–".to_owned(), figure));
    found.iter().any(Option::is_some).then(|| key.iter().cloned().chain(cells()).collect())
}

#[cfg(test)]
mod tests;
