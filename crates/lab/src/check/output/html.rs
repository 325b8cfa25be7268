//! Results as a page.

use super::super::{CheckReport, ItemResult, Outcome, Picture};
use crate::report::{Block, Column, Page, PageError, Section, Table};

impl CheckReport {
    /// The report as one HTML file: facts, a table of the results, all messages of the items that did not
    /// pass, and method and rules of all items.
    ///
    /// # Errors
    /// The page is not rendered, which is a fault of this program.
    pub fn to_html(&self) -> Result<String, PageError> {
        self.page().to_html()
    }

    /// As [`to_html`](Self::to_html), with the picture of a chain of trust below the results.
    ///
    /// # Errors
    /// As those of `to_html`.
    pub fn to_html_with(&self, picture: Picture) -> Result<String, PageError> {
        let mut page = self.page();
        let section = Section { title: picture.title.clone(), blocks: vec![Block::Picture(picture)] };
        page.sections.insert(page.sections.len().min(1), section);
        page.to_html()
    }

    /// The page, to which a check may add sections.
    pub(crate) fn page(&self) -> Page {
        let started_at = ("start".to_owned(), self.started_at_text());
        let results = Section {
            title: "Results".to_owned(),
            blocks: vec![Block::TextTable(table(
                &["item", "result", "subject", "reason"],
                self.results.iter().map(ItemResult::cells),
            ))],
        };
        let methods = self.results.iter().map(|result| {
            let item = &result.item;
            [item.id, &item.rules.join(", "), item.method].map(str::to_owned).to_vec()
        });
        let methods = Section {
            title: "Methods".to_owned(),
            blocks: vec![Block::TextTable(table(&["item", "rules", "method"], methods))],
        };
        let explained = self.results.iter().filter(|result| !matches!(result.outcome, Outcome::Pass(_)));
        Page {
            title: format!("Check of {} {}", self.kind, self.subject),
            lead: format!("Profile {}: {}.", self.profile.name(), self.summary_text()),
            facts: self.facts.iter().cloned().chain([started_at]).collect(),
            sections: [results]
                .into_iter()
                .chain(explained.map(ItemResult::section))
                .chain([methods])
                .collect(),
            ..Page::default()
        }
    }
}

impl ItemResult {
    fn cells(&self) -> Vec<String> {
        let mark = match self.outcome {
            Outcome::Pass(_) => "✓",
            Outcome::Fail(_) => "✗",
            Outcome::NotTestable(_) => "–",
        };
        let result = format!("{mark} {}", self.outcome.name());
        vec![self.item.id.to_owned(), result, self.item.subject.to_owned(), self.reason()]
    }

    /// The messages of the item.
    fn section(&self) -> Section {
        Section {
            title: format!("{}: {}", self.item.id, self.outcome.name()),
            blocks: vec![Block::Listing(self.explain())],
        }
    }
}

fn table(columns: &[&str], rows: impl Iterator<Item = Vec<String>>) -> Table {
    Table {
        columns: columns.iter().map(|title| Column::text(title)).collect(),
        rows: rows.collect(),
        legend: Vec::new(),
    }
}
