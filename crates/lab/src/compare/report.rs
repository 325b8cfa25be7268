//! A comparison for readers, as `experiments/compare.toml` says: the table on the terminal, and the page.

use super::CompareError;
use super::figures::Comparison;
use crate::presentation::{Presentation, Report, Scope};
use crate::report::Page;
use minijinja::value::{Serde, Value};
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../../../experiments/compare.toml");

/// Empty where the text that is built in were at fault, which a test rules out.
static PRESENTATION: LazyLock<Presentation> = LazyLock::new(|| toml::from_str(TEXT).unwrap_or_default());

impl Comparison {
    /// The report, without what all pages have.
    fn report(&self) -> Result<Report, CompareError> {
        let serde_json::Value::Object(fields) = serde_json::json!(self) else { return Ok(Report::default()) };
        let scope: Scope =
            fields.into_iter().map(|(name, value)| (name, Value::from(Serde(value)))).collect();
        Ok(PRESENTATION.report(scope)?)
    }

    /// The table for a terminal of 120 columns, its legend, and all notes below it.
    ///
    /// # Errors
    /// [`CompareError::Report`]; no comparison is known to give it.
    pub fn table(&self) -> Result<String, CompareError> {
        Ok(self.report()?.text)
    }

    /// The page.
    ///
    /// # Errors
    /// As [`Comparison::table`].
    pub fn page(&self) -> Result<Page, CompareError> {
        let Report { title, lead, mut facts, sections, .. } = self.report()?;
        facts.extend(self.machine.facts(&self.date, &self.command));
        Ok(Page { title, lead, facts, sections })
    }
}
