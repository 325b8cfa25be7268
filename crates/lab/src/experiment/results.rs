//! Running an experiment, and its results: the record of a run and its data, and the report that is made of the two alone.

use super::definition::Definition;
use super::error::RunError;
use super::run::{Findings, RunOptions};
use crate::data::DataTable;
use crate::machine::Machine;
use crate::presentation::{PresentationError, Report, Scope, lines};
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
        self.record.experiment.presentation().report(self.scope()?)
    }

    /// The page, as HTML.
    ///
    /// # Errors
    /// As [`Results::report`].
    pub fn page(&self) -> Result<String, PresentationError> {
        self.record.experiment.presentation().page(&self.scope()?)
    }

    /// What the presentation sees.
    fn scope(&self) -> Result<Scope, PresentationError> {
        let definition = &self.record.experiment;
        let method = serde_json::to_value(&definition.method).unwrap_or_default();
        // A record of two methods was not written by this program.
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
