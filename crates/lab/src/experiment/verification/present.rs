//! The report of the benchmark: charts, ratio tables, levels, all figures, and how they were come by.

mod words;

use super::ratios::{self, Ratios, ratios};
use super::subject::Operation;
use super::summary::{Line, lines, rate, schemes};
use super::{About, Parameters, SubjectFacts, openssl, runner};
use crate::experiment::method::{Method, Report};
use crate::experiment::published::{self, PublishedTable};
use crate::experiment::results::{Results, UnreadableColumn};
use crate::report::{Axis, Bar, Block, Chart, Column, Section, Series, Table, figure, grouped};

/// The published table that stands among the ratios of verification.
const PUBLISHED_RATIOS: &str = "ecc-validation-ratios";

/// What a report is made of.
struct View<'r> {
    about: &'r About,
    parameters: &'r Parameters,
    lines: Vec<Line>,
    published: Option<&'static PublishedTable>,
}

/// The report of `results`, whose record has `about`.
pub(in crate::experiment) fn report(about: &About, results: &Results) -> Result<Report, UnreadableColumn> {
    let Method::VerificationBenchmark(parameters) = &results.record.experiment.method;
    let named = results.record.experiment.published.iter().any(|id| id == PUBLISHED_RATIOS);
    let published = published::table(PUBLISHED_RATIOS).filter(|_| named);
    let view = View { about, parameters, lines: lines(about, &results.data)?, published };
    let mut sections = vec![view.warnings(), view.charts()];
    sections.extend(Operation::ALL.into_iter().filter_map(|operation| view.ratio_section(operation)));
    sections.extend(view.levels());
    sections.push(view.all_figures());
    sections.push(words::method(&view));
    sections.retain(|section| !section.blocks.is_empty());
    let all: Vec<usize> = (0..about.backends.len()).collect();
    let all_ratios: Vec<Ratios> =
        Operation::ALL.iter().flat_map(|operation| ratios(about, &all, &view.lines, *operation)).collect();
    Ok(Report {
        lead: words::lead(&view),
        facts: words::facts(&view),
        sections,
        text: view.text(&results.record.notes),
        summary: serde_json::json!({ "lines": view.lines, "ratios": all_ratios }),
    })
}

impl View<'_> {
    /// Whether anything was measured of an operation.
    fn has(&self, operation: Operation) -> bool {
        self.lines.iter().any(|line| line.operation == operation)
    }

    /// The experimental schemes, with the reasons.
    fn warnings(&self) -> Section {
        let mut notes: Vec<String> = Vec::new();
        let subjects = self.about.subjects.iter();
        for (facts, reason) in subjects.filter_map(|facts| Some((facts, facts.experimental.as_ref()?))) {
            notes.push(format!("{} is experimental: {reason}.", facts.scheme));
        }
        let blocks = if notes.is_empty() { Vec::new() } else { vec![Block::Notes(notes)] };
        Section { title: "Experimental algorithms".to_owned(), blocks }
    }

    fn is_experimental(&self, scheme: &str) -> bool {
        self.about.subjects.iter().any(|facts| facts.scheme == scheme && facts.experimental.is_some())
    }

    /// A scheme, marked where it is experimental.
    fn marked(&self, scheme: &str) -> String {
        let mark = if self.is_experimental(scheme) { "*" } else { "" };
        format!("{scheme}{mark}")
    }

    fn charts(&self) -> Section {
        let operations = Operation::ALL.into_iter().filter(|operation| self.has(*operation));
        let charts: Vec<Chart> = operations.map(|operation| self.chart(operation)).collect();
        let mut blocks = Vec::new();
        if !charts.is_empty() {
            blocks.push(Block::Paragraph(words::CHARTS.to_owned()));
            blocks.push(Block::Charts(charts));
        }
        Section { title: "Operations a second".to_owned(), blocks }
    }

    fn chart(&self, operation: Operation) -> Chart {
        let all = schemes(&self.lines);
        let is_measured = |scheme: &&String| {
            self.lines.iter().any(|line| line.scheme == **scheme && line.operation == operation)
        };
        let groups: Vec<&String> = all.iter().filter(is_measured).collect();
        let bar = |place: usize, scheme: &str| {
            let mut lines = self.lines.iter();
            let line = lines
                .find(|line| line.place == place && line.scheme == scheme && line.operation == operation)?;
            let Line { per_second, .. } = line;
            let spread = (per_second.count > 1).then_some((per_second.least, per_second.most));
            Some(Bar { value: per_second.median, spread })
        };
        let series = self.about.shown().into_iter().map(|place| Series {
            name: self.about.backends[place].label(),
            bars: groups.iter().map(|scheme| bar(place, scheme)).collect(),
        });
        Chart {
            title: words::noun(operation).to_owned(),
            unit: "a second, logarithmic".to_owned(),
            series: series.collect(),
            groups: groups.iter().map(|scheme| self.marked(scheme)).collect(),
            axis: Axis::Logarithmic,
            ..Chart::default()
        }
    }

    fn ratio_section(&self, operation: Operation) -> Option<Section> {
        let ratios = ratios(self.about, &self.about.shown(), &self.lines, operation);
        if ratios.is_empty() {
            return None;
        }
        let published = self.published.filter(|_| operation == Operation::Verify);
        let title = format!("{}: times slower than RSA and ECDSA", words::noun(operation));
        let text = words::ratios(operation).to_owned();
        Some(Section {
            title,
            blocks: vec![Block::Paragraph(text), Block::Table(ratios::table(&ratios, published))],
        })
    }

    /// What a level changes, for each program that measured at more than one.
    fn levels(&self) -> Option<Section> {
        let mut blocks = Vec::new();
        for name in [runner::NAME, openssl::NAME] {
            let backends = self.about.backends.iter().enumerate();
            let places: Vec<usize> =
                backends.filter(|(_, backend)| backend.name == name).map(|(place, _)| place).collect();
            let Some((first, others)) = places.split_first().filter(|(_, others)| !others.is_empty()) else {
                continue;
            };
            for operation in Operation::ALL.into_iter().filter(|operation| self.has(*operation)) {
                blocks.push(Block::Table(self.level_table(name, *first, others, operation)));
            }
        }
        if blocks.is_empty() {
            return None;
        }
        blocks.insert(0, Block::Paragraph(words::LEVELS.to_owned()));
        Some(Section { title: "Instruction levels".to_owned(), blocks })
    }

    fn level_table(&self, name: &str, first: usize, others: &[usize], operation: Operation) -> Table {
        let level = |place: usize| self.about.backends[place].level.clone();
        let places = || std::iter::once(first).chain(others.iter().copied());
        let mut columns = vec![Column::text(&format!("{}, {name}", words::noun(operation)))];
        columns.extend(places().map(|place| Column::figures("a second", &level(place))));
        let slower = format!("times slower than {}", level(first));
        columns.extend(others.iter().map(|place| Column::figures(&slower, &level(*place))));
        columns.extend(places().map(|place| Column::figures("times slower than ECDSA P-256", &level(place))));
        let rows = schemes(&self.lines).into_iter().filter_map(|scheme| {
            let of = |place: usize, scheme: &str| rate(&self.lines, place, scheme, operation);
            let own = |place: usize| of(place, &scheme);
            places().any(|place| own(place).is_some()).then(|| {
                let times = |reference: Option<f64>, own: Option<f64>| {
                    reference
                        .zip(own)
                        .map_or_else(|| "–".to_owned(), |(reference, own)| format!("{:.2}", reference / own))
                };
                let mut cells = vec![self.marked(&scheme)];
                cells.extend(places().map(|place| own(place).map_or_else(|| "–".to_owned(), figure)));
                cells.extend(others.iter().map(|place| times(own(first), own(*place))));
                cells.extend(places().map(|place| times(of(place, "ECDSA P-256"), own(place))));
                cells
            })
        });
        Table { rows: rows.collect(), columns, legend: vec!["Of medians; below 1: faster.".to_owned()] }
    }

    fn all_figures(&self) -> Section {
        let mut columns =
            ["subject", "scheme", "library", "program", "level", "operation"].map(Column::text).to_vec();
        columns.push(Column::figures("", "iterations"));
        let figures = ["mean", "std. dev.", "%", "median", "least", "most"];
        columns.extend(figures.map(|title| Column::figures("a second", title)));
        columns.push(Column::figures("", "µs each"));
        let row = |line: &Line| {
            let statistics = line.per_second;
            let mut cells = vec![
                line.subject.clone(),
                self.marked(&line.scheme),
                line.library.clone(),
                line.backend.clone(),
                line.level.clone(),
                line.operation.name().to_owned(),
                grouped(statistics.count as i64),
            ];
            let percent = format!("{:.1}", statistics.deviation_percent());
            cells.extend([figure(statistics.mean), figure(statistics.deviation), percent]);
            cells.extend([statistics.median, statistics.least, statistics.most].map(figure));
            cells.push(figure(1e6 / statistics.median));
            cells
        };
        let table = Table {
            columns,
            rows: self.lines.iter().map(row).collect(),
            legend: vec![words::FIGURES.to_owned()],
        };
        let sizes = Table {
            columns: vec![
                Column::text("subject"),
                Column::text("library"),
                Column::text("version"),
                Column::figures("octets", "public key"),
                Column::figures("octets", "signature"),
            ],
            rows: self.about.subjects.iter().map(size_row).collect(),
            legend: vec![
                "Sizes are those of the DNSKEY public key field and of the RRSIG signature field.".to_owned(),
            ],
        };
        let mut blocks = vec![Block::Table(table)];
        if !sizes.rows.is_empty() {
            blocks.push(Block::Table(sizes));
        }
        Section { title: "All figures".to_owned(), blocks }
    }

    /// For a terminal: a row for each subject, a pair of columns for each program.
    fn text(&self, notes: &[String]) -> String {
        let mut columns = vec![Column::text("algorithm"), Column::text("library")];
        let operations: Vec<Operation> =
            Operation::ALL.into_iter().filter(|operation| self.has(*operation)).collect();
        let shown = self.about.shown();
        for place in &shown {
            let label = self.about.backends[*place].label();
            columns.extend(
                operations
                    .iter()
                    .map(|operation| Column::figures(&label, &format!("{}/s", operation.name()))),
            );
        }
        let rows = schemes(&self.lines).into_iter().map(|scheme| {
            let library =
                self.lines.iter().find(|line| line.scheme == scheme).map(|line| line.library.clone());
            let mut cells = vec![self.marked(&scheme), library.unwrap_or_default()];
            for place in shown.iter().copied() {
                cells.extend(operations.iter().map(|operation| {
                    rate(&self.lines, place, &scheme, *operation).map_or_else(|| "–".to_owned(), figure)
                }));
            }
            cells
        });
        let rows = rows.collect();
        let legend = vec![words::terminal(
            self.parameters,
            self.lines.iter().any(|line| self.is_experimental(&line.scheme)),
        )];
        let mut text = Table { columns, rows, legend }.to_text();
        // A terminal has room for one level.
        let first = |place: &usize| self.about.backends[*place].level == self.about.backends[0].level;
        let places: Vec<usize> = shown.into_iter().filter(first).collect();
        let ratios = ratios(self.about, &places, &self.lines, Operation::Verify);
        if !ratios.is_empty() {
            let mut table = ratios::table(&ratios, self.published);
            table.legend = vec![
                "Verification: times slower than the head of the column; published: see the report."
                    .to_owned(),
            ];
            text.push('\n');
            text.push_str(&table.to_text());
        }
        let notes = notes.iter().map(|note| format!("! {note}")).collect::<Vec<_>>();
        if !notes.is_empty() {
            let notes = Table { legend: notes, ..Table::default() };
            // A table without columns and rows is its legend below an empty head.
            text.push_str(notes.to_text().trim_start_matches('\n'));
        }
        text
    }
}

fn size_row(facts: &SubjectFacts) -> Vec<String> {
    vec![
        facts.subject.clone(),
        facts.library.clone(),
        facts.library_version.clone(),
        grouped(facts.key_octets as i64),
        grouped(facts.signature_octets as i64),
    ]
}
