//! The overview of all experiments: the documents that they repeat, what each document claims, what
//! was measured, and where both differ.
//!
//! `experiments/overview.toml` has the documents and their claims. The verdicts are computed from
//! the results in the directories of the experiments. A claim without results, or whose expression
//! fails, is not measured; the other claims remain.

mod failures;

pub use failures::Failure;

use super::definition::Definition;
use super::error::StoreError;
use super::results::{Record, Results};
use super::store::{self, JSON_FILE};
use crate::presentation::{ClaimForm, Scope, Verdict};
use crate::published;
use crate::report::{ClaimCount, ClaimPart, DocumentPart, ExperimentPart, Link, OverviewPage, duration};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../../../experiments/overview.toml");

/// Directory of the overview in that of all experiments.
const DIRECTORY: &str = "report";
/// File name of the page.
const PAGE_FILE: &str = "index.html";

/// The file `experiments/overview.toml`.
#[derive(Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Form {
    title: String,
    document: Vec<DocumentForm>,
}

/// A document and its claims.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct DocumentForm {
    /// Identifier in `published-figures.toml`.
    publication: String,
    /// The question that the document answers.
    question: String,
    /// The claims. The first is the main claim.
    claim: Vec<ClaimForm>,
}

/// The documents. The list is empty if the built-in text is invalid; a test excludes this case.
static FORM: LazyLock<Form> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

/// The overview of the results in a directory.
#[derive(Debug)]
pub struct Overview {
    page: OverviewPage,
}

/// What is known of an experiment.
struct Known {
    part: ExperimentPart,
    /// The names for expressions; missing without results.
    scope: Option<Scope>,
    results: Option<Results>,
}

/// Whether `dir` has the results of several experiments, each in a directory with its name.
pub fn is_collection(dir: &Path, experiments: &[Definition]) -> bool {
    let has_results = |dir: PathBuf| dir.join(JSON_FILE).is_file();
    !has_results(dir.to_path_buf())
        && (page_path(dir).is_file() || experiments.iter().any(|one| has_results(dir.join(&one.name))))
}

/// Returns the path of the page for the results in `dir`.
pub fn page_path(dir: &Path) -> PathBuf {
    dir.join(DIRECTORY).join(PAGE_FILE)
}

/// Stores which experiments failed in the last run of all, for the overview.
///
/// # Errors
/// Fails if the file cannot be written.
pub fn store_failures(dir: &Path, failures: &[Failure]) -> Result<(), StoreError> {
    failures::write(&create(dir)?, failures)
}

/// Writes the overview of the results of `experiments` in `dir`.
///
/// # Errors
/// Fails if the page cannot be generated or written. Missing or damaged results are not an error.
pub fn write(dir: &Path, experiments: &[Definition]) -> Result<Overview, StoreError> {
    let overview = Overview::collect(dir, experiments);
    let html = overview
        .page
        .to_html()
        .map_err(|source| StoreError::Presentation { path: page_path(dir), source: source.into() })?;
    store::write_file(&create(dir)?, PAGE_FILE, html.as_bytes())?;
    Ok(overview)
}

/// Creates the directory of the overview.
fn create(dir: &Path) -> Result<PathBuf, StoreError> {
    let path = dir.join(DIRECTORY);
    match fs::create_dir_all(&path) {
        Ok(()) => Ok(path),
        Err(source) => Err(StoreError::Write { path, source }),
    }
}

impl Overview {
    /// Compares the claims with the results of `experiments` in `dir`.
    fn collect(dir: &Path, experiments: &[Definition]) -> Self {
        let (failures, mut notes) = match failures::read(&dir.join(DIRECTORY)) {
            Ok(failures) => (failures, Vec::new()),
            Err(error) => (Vec::new(), vec![error.to_string()]),
        };
        let known: BTreeMap<&str, Known> = experiments
            .iter()
            .map(|experiment| (experiment.name.as_str(), Known::read(dir, experiment, &failures)))
            .collect();
        notes.extend(notes_on(&known));
        let mut page = OverviewPage {
            title: FORM.title.clone(),
            documents: FORM.document.iter().map(|form| document(form, &known)).collect(),
            run_facts: known.values().find_map(Known::facts).unwrap_or_default(),
            notes,
            ..OverviewPage::default()
        };
        page.lead = lead(page.count());
        page.explanation = explanation(known.values());
        // In the order of `lab list`.
        let mut known = known;
        let part = |experiment: &Definition| Some(known.remove(experiment.name.as_str())?.part);
        page.experiments = experiments.iter().filter_map(part).collect();
        Self { page }
    }

    /// Returns the claims and their verdicts as text for a terminal.
    pub fn text(&self) -> String {
        format!("{}\n\n{}", self.page.lead, self.page.to_text())
    }

    /// Returns the overview as a section of a Markdown document.
    pub fn markdown(&self) -> String {
        let OverviewPage { title, lead, .. } = &self.page;
        format!("## {title}\n\n{lead}\n\n```text\n{}\n```\n", self.page.to_text().trim_end())
    }

    /// Returns the content of the page as JSON.
    pub fn json(&self) -> serde_json::Value {
        serde_json::to_value(&self.page).unwrap_or_default()
    }
}

/// States the number of claims with each verdict.
fn lead(count: ClaimCount) -> String {
    format!(
        "Of {} claims of {} documents, {} agree with what was measured here, {} differ, and {} were not measured.",
        count.all,
        FORM.document.len(),
        count.agree,
        count.differ,
        count.not_measured
    )
}

/// States how to read the page, and the duration of all experiments.
fn explanation<'k>(known: impl Iterator<Item = &'k Known>) -> String {
    let seconds: f64 = known.filter_map(|known| known.results.as_ref()?.record.seconds).sum();
    let took =
        if seconds > 0.0 { format!(" The experiments took {}.", duration(seconds)) } else { String::new() };
    format!(
        "The verdicts are computed from the results; the sections below state the condition of each. Hardware and \
         programs are not those of the documents, so most claims are compared as ratios.{took}"
    )
}

/// Returns notes if experiments failed, or the results are of several machines or builds.
fn notes_on(known: &BTreeMap<&str, Known>) -> Vec<String> {
    let distinct = |property: &dyn Fn(&Results) -> String| -> Vec<String> {
        let values = known.values().filter_map(|known| known.results.as_ref()).map(property);
        values.collect::<BTreeSet<_>>().into_iter().collect()
    };
    let failed = known.values().filter(|known| !known.part.problem.is_empty()).count();
    let machines = distinct(&|results| results.record.run.machine.id.clone()).len();
    let builds = distinct(&|results| {
        let run = &results.record.run;
        format!("{}{}", run.commit, if run.machine.optimised { "" } else { " (with debug assertions)" })
    });
    let notes = [
        (failed > 0).then(|| {
            format!(
                "Experiments without results of the last run: {failed} of {}. The table of experiments states the reasons.",
                known.len()
            )
        }),
        (machines > 1).then(|| format!("The results are of {machines} machines.")),
        (builds.len() > 1)
            .then(|| format!("The results are of different commits or builds: {}.", builds.join(", "))),
    ];
    notes.into_iter().flatten().collect()
}

/// Compares the claims of a document with the results.
fn document(form: &DocumentForm, known: &BTreeMap<&str, Known>) -> DocumentPart {
    let mut part = DocumentPart {
        id: form.publication.clone(),
        question: form.question.clone(),
        claims: form.claim.iter().map(|form| claim(form, known)).collect(),
        ..DocumentPart::default()
    };
    if let Some(publication) = published::publication(&form.publication) {
        part.title.clone_from(&publication.title);
        part.source = format!("{}: {}", publication.authors, publication.venue);
        part.url.clone_from(&publication.url);
    }
    let with = |verdict: &str| part.claims.iter().filter(|claim| claim.verdict == verdict).count();
    part.count = ClaimCount {
        all: part.claims.len(),
        agree: with(verdict_name(Verdict::Agrees)),
        differ: with(verdict_name(Verdict::Differs)),
        not_measured: with(verdict_name(Verdict::NotMeasured)),
    };
    for claim in &part.claims {
        part.reports.extend(claim.report.iter().filter(|report| !report.address.is_empty()).cloned());
    }
    let mut seen = BTreeSet::new();
    part.reports.retain(|report| seen.insert(report.name.clone()));
    part
}

const fn verdict_name(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "agrees",
        Verdict::Differs => "differs",
        Verdict::NotMeasured => "not-measured",
    }
}

/// Compares a claim with the results of its experiment.
fn claim(form: &ClaimForm, known: &BTreeMap<&str, Known>) -> ClaimPart {
    let own = known.get(form.experiment.as_str());
    let mut part = ClaimPart {
        name: form.name.clone(),
        text: form.text.clone(),
        place: form.place.clone(),
        rule: form.rule().to_owned(),
        verdict: verdict_name(Verdict::NotMeasured),
        report: own.map(|known| known.part.report.clone()),
        ..ClaimPart::default()
    };
    let missing = if !form.unmeasured.is_empty() {
        form.unmeasured.clone()
    } else if own.is_none() {
        "No experiment of this version measures it.".to_owned()
    } else if let Some(known) = own.filter(|known| known.scope.is_none()) {
        known.part.problem.clone()
    } else if !form.is_bound() {
        "The report of the experiment has the figures; no condition for a verdict is defined.".to_owned()
    } else {
        String::new()
    };
    if let (true, Some(scope)) = (missing.is_empty(), own.and_then(|known| known.scope.as_ref())) {
        let found = form.judge(scope);
        part.verdict = verdict_name(found.verdict);
        (part.published, part.measured, part.reason) = (found.published, found.measured, found.reason);
    } else {
        // The published figure depends on no results; a test evaluates it.
        (part.published, part.reason) = (form.published().unwrap_or_default(), missing);
    }
    part
}

impl Known {
    /// Reads the results of an experiment, and whether it failed after them.
    fn read(dir: &Path, experiment: &Definition, failures: &[Failure]) -> Self {
        let name = &experiment.name;
        let mut part = ExperimentPart {
            report: Link { name: name.clone(), address: String::new() },
            title: experiment.title.clone(),
            question: experiment.question.clone(),
            ..ExperimentPart::default()
        };
        let results = match load(&dir.join(name), name) {
            Ok(results) => results,
            Err(problem) => {
                let failed = failures.iter().find(|failure| failure.experiment == *name);
                part.problem =
                    failed.map_or(problem, |failure| format!("The run failed: {}.", failure.reason));
                return Self { part, scope: None, results: None };
            }
        };
        let record = &results.record;
        part.report.address = format!("../{name}/{}", store::PAGE_FILE);
        part.date = record.run.date.get(..16).unwrap_or(&record.run.date).replace('T', " ");
        part.duration = record.seconds.map(duration).unwrap_or_default();
        part.notes = record.notes.iter().cloned().chain(omitted(record)).collect();
        let is_later = |failure: &&Failure| failure.experiment == *name && failure.date >= record.run.date;
        if let Some(failure) = failures.iter().find(is_later) {
            part.problem =
                format!("The last run failed: {}. The report is that of an earlier run.", failure.reason);
            return Self { part, scope: None, results: Some(results) };
        }
        let scope = match (results.defined(), results.report()) {
            (Ok(scope), Ok(report)) => {
                part.answer = report.lead;
                Some(scope)
            }
            (Err(error), _) | (_, Err(error)) => {
                part.problem = format!("The report cannot be generated: {error}.");
                None
            }
        };
        Self { part, scope, results: Some(results) }
    }

    /// Returns facts about the machine of the results.
    fn facts(&self) -> Option<Vec<(String, String)>> {
        let run = &self.results.as_ref()?.record.run;
        let machine = &run.machine;
        let fact = |word: &str, value: String| (word.to_owned(), value);
        let mut facts = vec![
            fact("CPU", format!("{}, usable CPUs: {}", machine.cpu, machine.cpus)),
            fact("Hypervisor", machine.hypervisor.clone()),
            fact("Operating system", machine.system.clone()),
            fact("Measured with", format!("Nonesuch {}, commit {}", machine.nonesuch, run.commit)),
            fact("Command", run.command.clone()),
        ];
        facts.retain(|(_, value)| !value.is_empty());
        Some(facts)
    }
}

/// Returns a note if the method omitted jobs for lack of time.
fn omitted(record: &Record) -> Option<String> {
    let count = record.about.get(record.experiment.method.name())?.get("left_out")?.as_array()?.len();
    (count > 0).then(|| format!("Jobs omitted for lack of time: {count}; the report lists them."))
}

/// Reads the results of the experiment `name` in `dir`. If there are several runs, only the first
/// counts. Returns the reason if there are none.
fn load(dir: &Path, name: &str) -> Result<Results, String> {
    if !dir.join(JSON_FILE).exists() {
        return Err(format!("No results: the file {name}/{JSON_FILE} does not exist."));
    }
    let runs = store::load(dir).map_err(|error| format!("The results cannot be read: {error}."))?;
    let results = runs.first();
    if results.record.experiment.name != name {
        return Err(format!("The directory {name} has results of {}.", results.record.experiment.name));
    }
    Ok(results.clone())
}

#[cfg(test)]
mod tests;
