//! Results for a terminal: one line for each item.

use super::super::{CheckReport, Item, ItemResult, Outcome};
use crate::report::printable;
use std::fmt::Write as _;

impl CheckReport {
    /// The facts, one line for each result, and a line with the numbers of results.
    #[must_use]
    pub fn to_text(&self) -> String {
        let mut text = format!("{}\n", printable(&self.title()));
        // Writing to a string does not fail.
        for (term, value) in &self.facts {
            let _ = writeln!(text, "{}: {}", printable(term), printable(value));
        }
        for result in &self.results {
            let _ = writeln!(text, "{}", result.line());
        }
        let _ = writeln!(text, "{}", self.summary_text());
        text
    }

    /// The kind, the subject and the profile.
    pub(super) fn title(&self) -> String {
        format!("{} {}, profile {}", self.kind, self.subject, self.profile.name())
    }

    /// The numbers of results as a line.
    #[must_use]
    pub fn summary_text(&self) -> String {
        let summary = self.summary();
        format!("{} passed, {} failed, {} not testable", summary.passed, summary.failed, summary.not_testable)
    }
}

impl ItemResult {
    /// Number, result, subject and reason.
    #[must_use]
    pub fn line(&self) -> String {
        let result = match self.outcome {
            Outcome::Fail(_) => "FAIL",
            _ => self.outcome.name(),
        };
        let reason = self.reason();
        let reason = if reason.is_empty() { reason } else { format!(": {reason}") };
        format!("{:8} {result:12}  {}{reason}", self.item.id, self.item.subject)
    }

    /// The reason as a sentence without control characters; empty for a pass without a note.
    pub(super) fn reason(&self) -> String {
        match &self.outcome {
            Outcome::NotTestable(text) => format!("could not verify this because {}", printable(text)),
            outcome => printable(outcome.text()),
        }
    }
}

/// The items of a table: number, subject, rules and method of each.
#[must_use]
pub fn list_text<'i>(items: impl IntoIterator<Item = &'i Item>) -> String {
    let mut text = String::new();
    for item in items {
        let groups = [(item.is_jprs, "jprs"), (item.is_quick, "quick"), (true, "full")];
        let groups = groups.into_iter().filter_map(|(contains, name)| contains.then_some(name));
        let groups = groups.collect::<Vec<_>>().join(", ");
        let rules = item.rules.join(", ");
        let _ = writeln!(
            text,
            "{:8} {}\n         {rules}\n         {}\n         profiles: {groups}",
            item.id, item.subject, item.method
        );
    }
    text
}
