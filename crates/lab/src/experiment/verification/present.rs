//! The report of the benchmark: charts, ratio tables, VRFs, levels, foreign processors, all figures, and how they were
//! come by.

mod foreign;
mod words;

#[cfg(test)]
pub(super) use foreign::table as foreign_table;

use super::ratios::{self, Ratios, ratios};
use super::subject::Operation;
use super::summary::{Line, lines, rate, schemes};
use super::{About, Parameters, SubjectFacts, openssl, runner};
use crate::experiment::method::Report;
use crate::experiment::published::{self, PublishedTable};
use crate::experiment::results::{Results, UnreadableColumn};
use crate::report::{Axis, Bar, Block, Chart, Column, Section, Series, Table, figure, grouped};

/// The published table that stands among the ratios of verification.
const PUBLISHED_RATIOS: &str = "ecc-validation-ratios";

/// Operations that are shown together: those on signatures, or those on proofs of VRFs.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Part {
    operation: Operation,
    vrf: bool,
}

/// Those on signatures.
const SIGNATURES: [Part; 2] =
    [Part { operation: Operation::Verify, vrf: false }, Part { operation: Operation::Sign, vrf: false }];

/// Those on proofs.
const VRFS: [Part; 2] =
    [Part { operation: Operation::Prove, vrf: true }, Part { operation: Operation::Verify, vrf: true }];

/// What a report is made of.
struct View<'r> {
    about: &'r About,
    parameters: &'r Parameters,
    lines: Vec<Line>,
    published: Option<&'static PublishedTable>,
}

/// The report of `results`, whose record has `about` and `parameters`.
pub(in crate::experiment) fn report(
    about: &About,
    parameters: &Parameters,
    results: &Results,
) -> Result<Report, UnreadableColumn> {
    let named = results.record.experiment.published.iter().any(|id| id == PUBLISHED_RATIOS);
    let published = published::table(PUBLISHED_RATIOS).filter(|_| named);
    let view = View { about, parameters, lines: lines(about, &results.data)?, published };
    let signatures = view.charts("Operations a second", words::CHARTS, &SIGNATURES);
    let mut sections = vec![view.warnings(), signatures];
    sections.extend(Operation::ALL.into_iter().filter_map(|operation| view.ratio_section(operation)));
    sections.push(view.charts("VRFs of NSEC5", words::VRFS, &VRFS));
    sections.extend(view.levels());
    sections.extend(foreign::section(about, &results.data)?);
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
    /// Of `parts`, those of which anything was measured.
    fn measured(&self, parts: &[Part]) -> Vec<Part> {
        let is_of = |part: &Part, line: &Line| line.operation == part.operation && line.is_vrf() == part.vrf;
        let parts = parts.iter().copied();
        parts.filter(|part| self.lines.iter().any(|line| is_of(part, line))).collect()
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

    fn charts(&self, title: &str, text: &str, parts: &[Part]) -> Section {
        let charts: Vec<Chart> = self.measured(parts).into_iter().map(|part| self.chart(part)).collect();
        let mut blocks = Vec::new();
        if !charts.is_empty() {
            blocks.push(Block::Paragraph(text.to_owned()));
            blocks.push(Block::Charts(charts));
        }
        Section { title: title.to_owned(), blocks }
    }

    fn chart(&self, part: Part) -> Chart {
        let operation = part.operation;
        let all = schemes(&self.lines, part.vrf);
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
            title: words::noun(part).to_owned(),
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
        let noun = words::noun(Part { operation, vrf: false });
        let title = format!("{noun}: times slower than RSA and ECDSA");
        let text = words::ratios(operation).to_owned();
        Some(Section {
            title,
            blocks: vec![
                Block::Paragraph(text),
                Block::Table(ratios::table(&ratios, published, &|scheme| self.marked(scheme))),
            ],
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
            for part in self.measured(&[SIGNATURES, VRFS].concat()) {
                let table = self.level_table(name, *first, others, part);
                // openssl has no VRFs.
                if !table.rows.is_empty() {
                    blocks.push(Block::Table(table));
                }
            }
        }
        if blocks.is_empty() {
            return None;
        }
        blocks.insert(0, Block::Paragraph(words::LEVELS.to_owned()));
        Some(Section { title: "Instruction levels".to_owned(), blocks })
    }

    fn level_table(&self, name: &str, first: usize, others: &[usize], part: Part) -> Table {
        let reference = if part.vrf { "ECVRF-P256-SHA256-TAI" } else { "ECDSA P-256" };
        let level = |place: usize| self.about.backends[place].level.clone();
        let places = || std::iter::once(first).chain(others.iter().copied());
        let mut columns = vec![Column::text(&format!("{}, {name}", words::noun(part)))];
        columns.extend(places().map(|place| Column::figures("a second", &level(place))));
        let slower = format!("times slower than {}", level(first));
        columns.extend(others.iter().map(|place| Column::figures(&slower, &level(*place))));
        let against = format!("times slower than {reference}");
        columns.extend(places().map(|place| Column::figures(&against, &level(place))));
        let rows = schemes(&self.lines, part.vrf).into_iter().filter_map(|scheme| {
            let of = |place: usize, scheme: &str| rate(&self.lines, place, scheme, part.operation);
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
                cells.extend(places().map(|place| times(of(place, reference), own(place))));
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
                Column::figures("octets", "signature or proof"),
            ],
            rows: self.about.subjects.iter().map(size_row).collect(),
            legend: vec![
                "Sizes are those of the public key field of DNSKEY or NSEC5KEY, and of the signature field of RRSIG or the \
                 proof."
                    .to_owned(),
            ],
        };
        let mut blocks = vec![Block::Table(table)];
        if !sizes.rows.is_empty() {
            blocks.push(Block::Table(sizes));
        }
        Section { title: "All figures".to_owned(), blocks }
    }

    /// For a terminal: signatures, VRFs, ratios, and what must be known.
    fn text(&self, notes: &[String]) -> String {
        let experimental = self.lines.iter().any(|line| self.is_experimental(&line.scheme));
        let mut signatures = self.rates("algorithm", &SIGNATURES);
        let mut vrfs = self.rates("VRF", &VRFS);
        let legend = vec![words::terminal(self.parameters, experimental)];
        let last = if vrfs.rows.is_empty() { &mut signatures } else { &mut vrfs };
        last.legend = legend;
        let mut text = String::new();
        if !signatures.rows.is_empty() || vrfs.rows.is_empty() {
            text.push_str(&signatures.to_text());
        }
        if !vrfs.rows.is_empty() {
            text.push_str(if text.is_empty() { "" } else { "\n" });
            text.push_str(&vrfs.to_text());
        }
        // A terminal has room for one level.
        let first = |place: &usize| self.about.backends[*place].level == self.about.backends[0].level;
        let places: Vec<usize> = self.about.shown().into_iter().filter(first).collect();
        let ratios = ratios(self.about, &places, &self.lines, Operation::Verify);
        if !ratios.is_empty() {
            let mut table = ratios::table(&ratios, self.published, &|scheme| self.marked(scheme));
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

    /// A row for each subject, a column for each program and operation.
    fn rates(&self, title: &str, parts: &[Part]) -> Table {
        let mut columns = vec![Column::text(title), Column::text("library")];
        let vrf = parts.iter().any(|part| part.vrf);
        let parts = self.measured(parts);
        let mut shown = self.about.shown();
        // openssl has no VRFs.
        let is_of = |place: usize, line: &Line| line.place == place && line.is_vrf();
        if vrf {
            shown.retain(|place| self.lines.iter().any(|line| is_of(*place, line)));
        }
        for place in &shown {
            let label = self.about.backends[*place].label();
            columns.extend(
                parts.iter().map(|part| Column::figures(&label, &format!("{}/s", part.operation.name()))),
            );
        }
        let rows = schemes(&self.lines, vrf).into_iter().map(|scheme| {
            let library =
                self.lines.iter().find(|line| line.scheme == scheme).map(|line| line.library.clone());
            let mut cells = vec![self.marked(&scheme), library.unwrap_or_default()];
            for place in shown.iter().copied() {
                cells.extend(parts.iter().map(|part| {
                    rate(&self.lines, place, &scheme, part.operation).map_or_else(|| "–".to_owned(), figure)
                }));
            }
            cells
        });
        Table { rows: rows.collect(), columns, legend: Vec::new() }
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
