//! The overview page: documents with their claims, what was measured, and the list of experiments.
//!
//! It has the look and the policy of the other pages ([`super::Page`]), and no script.

use super::{Column, PageError, Table, html};
use serde::Serialize;

/// The overview.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct OverviewPage {
    pub(crate) title: String,
    /// Introduction below the title.
    pub(crate) lead: String,
    /// How to read the page.
    pub(crate) explanation: String,
    /// Warnings about the results.
    pub(crate) notes: Vec<String>,
    pub(crate) documents: Vec<DocumentPart>,
    pub(crate) experiments: Vec<ExperimentPart>,
    /// Terms and values of the machine.
    pub(crate) run_facts: Vec<(String, String)>,
}

/// A document and its claims.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct DocumentPart {
    /// Identifier, the anchor of its section.
    pub(crate) id: String,
    pub(crate) title: String,
    /// Authors and venue.
    pub(crate) source: String,
    pub(crate) url: String,
    /// The question that the document answers.
    pub(crate) question: String,
    /// The claims, the most important first.
    pub(crate) claims: Vec<ClaimPart>,
    pub(crate) count: ClaimCount,
    /// The experiments that measure its claims.
    pub(crate) reports: Vec<Link>,
}

/// Number of claims with each verdict.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct ClaimCount {
    pub(crate) all: usize,
    pub(crate) agree: usize,
    pub(crate) differ: usize,
    pub(crate) not_measured: usize,
}

/// A claim, and what was measured.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ClaimPart {
    pub(crate) name: String,
    pub(crate) text: String,
    pub(crate) place: String,
    pub(crate) published: String,
    /// When the claim agrees with the measurement.
    pub(crate) rule: String,
    /// Empty if nothing was measured.
    pub(crate) measured: String,
    /// `agrees`, `differs` or `not-measured`.
    pub(crate) verdict: &'static str,
    /// Reason of a difference, or why nothing was measured.
    pub(crate) reason: String,
    pub(crate) report: Option<Link>,
}

/// The name of an experiment and the address of its report, relative to the overview. Without
/// results, the address is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Link {
    pub(crate) name: String,
    pub(crate) address: String,
}

/// An experiment and its answer.
#[derive(Clone, Debug, Default, Serialize)]
pub(crate) struct ExperimentPart {
    pub(crate) report: Link,
    pub(crate) title: String,
    pub(crate) question: String,
    pub(crate) answer: String,
    /// Why there are no results, or none of the last run; empty: there are.
    pub(crate) problem: String,
    pub(crate) date: String,
    pub(crate) duration: String,
    pub(crate) notes: Vec<String>,
}

impl OverviewPage {
    /// Renders the page as one HTML file.
    pub(crate) fn to_html(&self) -> Result<String, PageError> {
        Ok(html::render_overview(self)?)
    }

    /// Returns the number of claims of all documents with each verdict.
    pub(crate) fn count(&self) -> ClaimCount {
        let counts = self.documents.iter().map(|document| document.count);
        counts.fold(ClaimCount::default(), |sum, count| ClaimCount {
            all: sum.all + count.all,
            agree: sum.agree + count.agree,
            differ: sum.differ + count.differ,
            not_measured: sum.not_measured + count.not_measured,
        })
    }

    /// Returns the claims as tables for a terminal.
    pub(crate) fn to_text(&self) -> String {
        let columns = vec![Column::text("claim"), Column::text("verdict"), Column::text("measured")];
        let tables = self.documents.iter().map(|document| {
            let row = |claim: &ClaimPart| {
                vec![claim.name.clone(), claim.verdict.replace('-', " "), claim.measured.clone()]
            };
            let rows = document.claims.iter().map(row).collect();
            let table = Table { columns: columns.clone(), rows, legend: Vec::new() };
            format!("{}\n\n{}", super::printable(&document.title), table.to_text())
        });
        let problems = self.experiments.iter().filter(|experiment| !experiment.problem.is_empty());
        let problems = problems.map(|experiment| {
            format!("! {}: {}\n", experiment.report.name, super::printable(&experiment.problem))
        });
        let problems: String = problems.collect();
        tables.chain((!problems.is_empty()).then_some(problems)).collect::<Vec<_>>().join("\n")
    }
}
