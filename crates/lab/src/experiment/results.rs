//! Runs an experiment. The results are a record of the run and the data. The report depends only on
//! these two.

use super::csv;
use super::definition::Definition;
use super::error::RunError;
use super::run::{Findings, RunOptions};
use super::store;
use crate::data::DataTable;
use crate::presentation::{PresentationError, Report, Scope, fold, lines};
use crate::record::{Invocation, RunRecord};
use minijinja::value::{Serde, Value};
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::time::Instant;

/// Version of the record format. Reading rejects other versions.
pub(crate) const FORMAT: u32 = 1;

/// Maximum length of a line of Markdown, in characters.
const MARKDOWN_WIDTH: usize = 100;

/// Metadata of a run.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Record {
    /// Version of the format: [`FORMAT`].
    pub format: u32,
    /// The experiment, with the parameters of the run.
    pub experiment: Definition,
    /// Facts about the run that do not depend on the experiment.
    #[serde(flatten)]
    pub run: RunRecord,
    /// Description of the measured programs and zones, by the name of the method.
    pub about: BTreeMap<String, serde_json::Value>,
    /// Conditions that affect how far the figures can be trusted.
    pub notes: Vec<String>,
    /// Duration of the run, in seconds; missing in records of earlier versions.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub seconds: Option<f64>,
}

/// Results of an experiment.
#[derive(Clone, Debug, PartialEq)]
pub struct Results {
    /// Record of the run.
    pub record: Record,
    /// Raw data.
    pub data: DataTable,
}

/// Runs the experiment of `definition`: measures, and checks the rows against its columns.
///
/// # Errors
/// Fails if nothing can be measured or a measurement fails. Requested measurements that are omitted
/// become notes.
pub fn run(definition: &Definition, options: &RunOptions<'_>) -> Result<Results, RunError> {
    let begun = Instant::now();
    let RunOptions { now, seed, commit, command, .. } = options;
    let run = RunRecord::begin(Invocation { now: *now, command, seed: *seed, commit })?;
    let mut findings = Findings::new(definition.presentation().columns()).of_run(&run);
    let about = definition.method.run(options, &mut findings)?;
    let mut notes: Vec<String> = run.machine.debug_build_note().into_iter().collect();
    notes.extend(findings.notes);
    let record = Record {
        format: FORMAT,
        experiment: definition.clone(),
        run: RunRecord { peers: findings.peers, ..run },
        about: BTreeMap::from([(definition.method.name().to_owned(), about)]),
        notes,
        seconds: Some(begun.elapsed().as_secs_f64()),
    };
    Ok(Results { record, data: findings.data })
}

impl Results {
    /// Returns the report, without the parts that are the same in all reports.
    ///
    /// # Errors
    /// Fails if the data lack a column or the presentation is invalid.
    pub fn report(&self) -> Result<Report, PresentationError> {
        self.record.experiment.presentation().report(self.scope()?)
    }

    /// Returns a section of a Markdown document: title, question, answer, command, and the table of
    /// the terminal.
    ///
    /// # Errors
    /// Fails as [`Results::report`] does.
    pub fn markdown(&self) -> Result<String, PresentationError> {
        let Definition { title, question, .. } = &self.record.experiment;
        let Report { lead, text, .. } = self.report()?;
        let answer = fold(&format!("{question} {lead}"), MARKDOWN_WIDTH, "");
        let (command, text) = (&self.record.run.command, text.trim_end());
        Ok(format!("## {title}\n\n{answer}\n\n    {command}\n\n```text\n{text}\n```\n"))
    }

    /// Returns the HTML page.
    ///
    /// # Errors
    /// Fails as [`Results::report`] does.
    pub fn page(&self) -> Result<String, PresentationError> {
        let data = csv::attachment(&self.data, store::CSV_FILE)?;
        self.record.experiment.presentation().page(&self.scope()?, data)
    }

    /// Returns the variables of the presentation, with the definitions of the report.
    pub(super) fn defined(&self) -> Result<Scope, PresentationError> {
        self.record.experiment.presentation().defined(self.scope()?)
    }

    /// Returns the variables of the presentation.
    pub(super) fn scope(&self) -> Result<Scope, PresentationError> {
        let definition = &self.record.experiment;
        let method = serde_json::to_value(&definition.method).unwrap_or_default();
        // A record with another method is not from this program.
        let about = self.record.about.get(definition.method.name());
        let about = about.ok_or_else(|| PresentationError::Column("method".to_owned()))?;
        let mut scope = Scope::from([
            ("record".to_owned(), Value::from(Serde(&self.record))),
            ("about".to_owned(), Value::from(Serde(about))),
            ("parameters".to_owned(), Value::from(Serde(&method["parameters"]))),
            ("columns".to_owned(), Value::from(Serde(self.data.columns()))),
        ]);
        lines(&definition.presentation(), &self.data, &mut scope)?;
        Ok(scope)
    }
}
