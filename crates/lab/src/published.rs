//! Published figures of other authors, for comparison in reports:
//! `experiments/published-figures.toml`.
//!
//! Absolute figures are only valid for the hardware of the publication. Compare ratios and the
//! shape of curves.

use crate::measure::subject::experimental;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::sync::LazyLock;

const TEXT: &str = include_str!("../../../experiments/published-figures.toml");

/// A cell of a published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum Cell {
    Number(f64),
    /// A text; empty if the figure is not published.
    Text(String),
}

/// A published table.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct PublishedTable {
    /// Identifier in the `published` list of experiments.
    pub id: String,
    pub title: String,
    /// Identifier of the publication.
    publication: String,
    /// Page, section, figure or table of the publication.
    place: String,
    /// Authors, title, venue, place and address of the publication, for the reader.
    #[serde(skip_deserializing)]
    pub source: String,
    /// Hardware of the measurement; empty if not published.
    #[serde(default)]
    pub hardware: String,
    /// Method of the measurement and remarks for the reader.
    #[serde(default)]
    pub note: String,
    /// Column headings.
    pub columns: Vec<String>,
    /// Rows. Each row has one cell for each column.
    pub rows: Vec<Vec<Cell>>,
    /// The rows as maps from column heading to cell.
    #[serde(skip_deserializing)]
    pub(crate) records: Vec<BTreeMap<String, Cell>>,
}

/// A publication.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Publication {
    pub(crate) id: String,
    pub(crate) title: String,
    pub(crate) authors: String,
    /// Journal, conference or web site, with the year.
    pub(crate) venue: String,
    /// Address, a DOI if there is one.
    pub(crate) url: String,
}

impl Publication {
    /// Describes a place in the publication.
    fn source(&self, place: &str) -> String {
        let Self { title, authors, venue, url, .. } = self;
        format!("{authors}: {title} ({venue}), {place}, {url}")
    }
}

#[derive(Default, Deserialize)]
#[serde(deny_unknown_fields)]
struct Document {
    publication: Vec<Publication>,
    table: Vec<PublishedTable>,
}

/// The publications and their tables. The lists are empty if the built-in text is invalid; a test
/// excludes this case.
static DOCUMENT: LazyLock<Document> = LazyLock::new(|| {
    let Document { publication: publications, table: mut tables } = toml::from_str(TEXT).unwrap_or_default();
    for table in &mut tables {
        let publication = publications.iter().find(|publication| publication.id == table.publication);
        table.source = publication.map(|publication| publication.source(&table.place)).unwrap_or_default();
        let record = |row: &Vec<Cell>| table.columns.iter().cloned().zip(row.iter().cloned()).collect();
        table.records = table.rows.iter().map(record).collect();
    }
    Document { publication: publications, table: tables }
});

/// Returns the table with the identifier `id`.
pub(crate) fn table(id: &str) -> Option<&'static PublishedTable> {
    DOCUMENT.table.iter().find(|table| table.id == id)
}

/// Returns the publication with the identifier `id`.
pub(crate) fn publication(id: &str) -> Option<&'static Publication> {
    DOCUMENT.publication.iter().find(|publication| publication.id == id)
}

/// Formats a cell for reports: appends `*` to the name of a scheme that is experimental in this
/// program.
pub(crate) fn marked(cell: &str) -> String {
    let mark = if experimental(cell).is_some() { "*" } else { "" };
    format!("{cell}{mark}")
}

/// Returns the identifiers of all tables.
pub(crate) fn identifiers() -> Vec<&'static str> {
    DOCUMENT.table.iter().map(|table| table.id.as_str()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn the_tables_are_sound() {
        let _: Document = toml::from_str(TEXT).expect("sound");
        assert!(DOCUMENT.table.len() > 10);
        assert_eq!(identifiers().iter().collect::<HashSet<_>>().len(), DOCUMENT.table.len());
        for table in DOCUMENT.table.iter() {
            assert!(!table.source.is_empty() && !table.title.is_empty(), "{}", table.id);
            assert!(table.rows.iter().all(|row| row.len() == table.columns.len()), "{}", table.id);
        }
    }

    #[test]
    fn each_figure_has_a_publication_and_a_place_in_it() {
        let document: Document = toml::from_str(TEXT).expect("sound");
        let ids: HashSet<&str> =
            document.publication.iter().map(|publication| publication.id.as_str()).collect();
        assert_eq!(ids.len(), document.publication.len());
        for Publication { id, title, authors, venue, url } in &document.publication {
            assert!([title, authors, venue].iter().all(|text| !text.is_empty()), "{id}");
            assert!(url.starts_with("https://") || url.starts_with("http://"), "{id}: {url}");
            assert!(DOCUMENT.table.iter().any(|table| table.publication == *id), "{id} is not used");
        }
        for table in DOCUMENT.table.iter() {
            assert!(ids.contains(table.publication.as_str()), "{}", table.id);
            assert!(!table.place.trim().is_empty(), "{}", table.id);
            assert!(table.source.contains("://") && table.source.contains(&table.place), "{}", table.id);
        }
    }

    #[test]
    fn experimental_schemes_are_marked() {
        let print = |name: &str| marked(name);
        assert_eq!(
            ["Falcon-512", "MAYO-2", "ECDSA P-256", "3.5"].map(print),
            ["Falcon-512*", "MAYO-2*", "ECDSA P-256", "3.5"]
        );
    }

    #[test]
    fn known_figures_are_there() {
        let ratios = table("ecc-validation-ratios").expect("a table");
        let ed25519 =
            ratios.rows.iter().find(|row| row[0] == Cell::Text("Ed25519".to_owned())).expect("a row");
        assert_eq!(ed25519[2..], [7.9, 2.5, 0.7, 0.1].map(Cell::Number));
        assert_eq!(
            (&ratios.rows[0][2], &ratios.rows[0][4]),
            (&Cell::Number(27.5), &Cell::Text(String::new()))
        );
    }
}
