//! How many times slower: against RSA and ECDSA, as the first study of these costs printed it, ours, `openssl`'s and the
//! published figures beside each other.

use super::About;
use super::subject::Operation;
use super::summary::{Line, rate, schemes};
use crate::experiment::published::{Cell, PublishedTable};
use crate::report::{Column, Table, ratio};
use serde::Serialize;

/// What others are held against: group, title and scheme.
pub(super) const REFERENCES: [(&str, &str, &str); 4] = [
    ("against RSA", "1024", "RSA-1024"),
    ("against RSA", "2048", "RSA-2048"),
    ("against ECDSA", "P-256", "ECDSA P-256"),
    ("against ECDSA", "P-384", "ECDSA P-384"),
];

/// Title of the published table's columns that hold the ratios.
const PUBLISHED_COLUMNS: [&str; 4] = ["RSA-1024", "RSA-2048", "P-256", "P-384"];

/// The ratios of a scheme by one program.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub(super) struct Ratios {
    pub(super) backend: String,
    pub(super) level: String,
    pub(super) scheme: String,
    pub(super) operation: Operation,
    pub(super) library: String,
    /// Against each of [`REFERENCES`]: times slower; nothing where one of the two was not measured.
    pub(super) times_slower: [Option<f64>; 4],
}

/// Of every signature scheme but the RSA ones that others are held against, by the programs at `places`, sorted by scheme.
pub(super) fn ratios(about: &About, places: &[usize], lines: &[Line], operation: Operation) -> Vec<Ratios> {
    let held = schemes(lines, false)
        .into_iter()
        .filter(|scheme| !REFERENCES[..2].iter().any(|(.., name)| name == scheme));
    held.flat_map(|scheme| {
        let of = move |place: usize| one(about, lines, place, &scheme, operation);
        places.iter().copied().filter_map(of).collect::<Vec<_>>()
    })
    .collect()
}

fn one(about: &About, lines: &[Line], place: usize, scheme: &str, operation: Operation) -> Option<Ratios> {
    let backend = about.backends.get(place)?;
    let own = rate(lines, place, scheme, operation)?;
    let line = lines.iter().find(|line| line.place == place && line.scheme == scheme)?;
    Some(Ratios {
        backend: backend.name.clone(),
        level: backend.level.clone(),
        scheme: scheme.to_owned(),
        operation,
        library: line.library.clone(),
        times_slower: REFERENCES
            .map(|(_, _, name)| rate(lines, place, name, operation).map(|rate| rate / own)),
    })
}

/// One decimal, as published, and below one two digits that say something; a dash where there is none, and for ECDSA against ECDSA.
fn print(ratios: &Ratios, place: usize) -> String {
    let within = place >= 2 && ratios.scheme.starts_with("ECDSA");
    match ratios.times_slower[place].filter(|_| !within) {
        None => "-".to_owned(),
        Some(value) if value < 0.995 => ratio(value),
        Some(value) => format!("{value:.1}"),
    }
}

/// The table, with the published rows below ours of the same scheme; `marked` is how a scheme is shown.
pub(super) fn table(
    ratios: &[Ratios],
    published: Option<&PublishedTable>,
    marked: &dyn Fn(&str) -> String,
) -> Table {
    let mut columns = ["algorithm", "measured", "level", "implementation"].map(Column::text).to_vec();
    columns.extend(REFERENCES.map(|(group, title, _)| Column::figures(group, title)));
    let mut rows = Vec::new();
    let mut names: Vec<&str> = Vec::new();
    for row in ratios {
        if !names.contains(&row.scheme.as_str()) {
            names.push(&row.scheme);
        }
    }
    for name in names {
        let first = rows.len();
        rows.extend(ratios.iter().filter(|row| row.scheme == name).map(own_row));
        rows.extend(published.into_iter().flat_map(|table| published_rows(table, name)));
        rows[first..].iter_mut().for_each(|row: &mut Vec<String>| row[0] = marked(name));
    }
    let mut legend = vec![
        "Times slower than the algorithm at the head of the column, by the same program at the same level; below 1: \
         faster. Ratios are of medians. RSA is that of RSASHA256."
            .to_owned(),
    ];
    if let Some(table) = published.filter(|_| rows.iter().any(|row| row[1] == PUBLISHED)) {
        legend.push(format!("Published: {}; {}. {}", table.source, table.hardware, table.note));
    }
    Table { columns, rows, legend }
}

const PUBLISHED: &str = "published";

fn own_row(row: &Ratios) -> Vec<String> {
    let mut cells = vec![row.scheme.clone(), "here".to_owned(), row.level.clone(), row.library.clone()];
    cells.extend((0..REFERENCES.len()).map(|place| print(row, place)));
    cells
}

fn published_rows(table: &PublishedTable, scheme: &str) -> Vec<Vec<String>> {
    let place = |title: &str| table.columns.iter().position(|column| column == title);
    let cell = |row: &[Cell], title: &str| {
        place(title).and_then(|place| row.get(place)).map_or_else(|| "-".to_owned(), Cell::print)
    };
    let of_scheme = table.rows.iter().filter(|row| cell(row, "algorithm") == scheme);
    of_scheme
        .map(|row| {
            let implementation = format!("OpenSSL {}", cell(row, "OpenSSL"));
            let mut cells = vec![scheme.to_owned(), PUBLISHED.to_owned(), "-".to_owned(), implementation];
            cells.extend(PUBLISHED_COLUMNS.map(
                |title| match place(title).and_then(|place| row.get(place)) {
                    Some(Cell::Number(value)) => format!("{value:.1}"),
                    _ => "-".to_owned(),
                },
            ));
            cells
        })
        .collect()
}
