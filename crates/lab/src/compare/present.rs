//! A comparison for readers: the table on the terminal, and the page.

mod charts;
mod words;

use super::Cell;
use super::figures::{Comparison, LoadFigures, Measured, Row, Work};
use crate::process::CPU_STEP_US;
use crate::report::{Block, Column, Page, Section, Table, figure, grouped};
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;

/// Name of the file for machines.
pub const JSON_FILE: &str = "compare.json";
/// Name of the file for people.
pub const PAGE_FILE: &str = "report.html";

/// What is signed most today (RFC 8624 §3.1 recommends it): other rows are held against it.
const REFERENCE: Cell =
    Cell::Signed { algorithm: Algorithm::ECDSAP256SHA256, bits: None, mechanism: Mechanism::Nsec };

/// Columns of the terminal that the table is made for.
const TERMINAL: usize = 120;

const MEBI: f64 = 1024.0;
const MEGA: f64 = 1e6;

impl Row {
    /// The algorithm with the length of its keys, or `unsigned`; an experimental one has a `*` behind it.
    #[must_use]
    pub fn algorithm_label(&self) -> String {
        let mark = if self.experimental().is_some() { "*" } else { "" };
        match (&self.algorithm, self.bits) {
            (None, _) => "unsigned".to_owned(),
            (Some(algorithm), None) => format!("{algorithm}{mark}"),
            (Some(algorithm), Some(bits)) => format!("{algorithm}/{bits}{mark}"),
        }
    }

    /// Why the algorithm is experimental, by the table of algorithms.
    fn experimental(&self) -> Option<&'static str> {
        Algorithm(self.algorithm_number?).entry()?.scheme.experimental
    }

    /// The mechanism's title; a dash for the unsigned zone.
    #[must_use]
    pub fn denial_label(&self) -> String {
        let Some(name) = &self.denial else { return "–".to_owned() };
        // A comparison may come from a version that knows more mechanisms.
        name.parse::<Mechanism>()
            .map_or_else(|_| name.clone(), |mechanism| mechanism.entry().title.to_owned())
    }

    fn label(&self) -> String {
        if self.algorithm.is_none() {
            return self.algorithm_label();
        }
        format!("{} {}", self.algorithm_label(), self.denial_label())
    }

    fn memory_mib(&self) -> Option<f64> {
        self.server_resident_kib.map(|kib| kib as f64 / MEBI)
    }
}

impl Comparison {
    /// The table for a terminal of 120 columns, its legend, and all notes below it.
    #[must_use]
    pub fn table(&self) -> String {
        let reference = self.reference();
        let mut table = Table { columns: terminal_columns(), rows: Vec::new(), legend: Vec::new() };
        table.rows = self.rows.iter().map(|row| terminal_row(row, reference)).collect();
        table.legend = words::terminal_legend(reference, self.rows.iter().any(|row| !row.notes.is_empty()));
        let mut text = table.to_text();
        let experimental = self.experimental_notes();
        let mut notes: Vec<String> =
            experimental.iter().flat_map(|note| words::fold(&format!("* {note}"), TERMINAL)).collect();
        notes.extend(self.all_notes());
        if !notes.is_empty() {
            let notes = Table { legend: notes, ..Table::default() };
            // A table without columns and rows is its legend below an empty head.
            text.push_str(notes.to_text().trim_start_matches('\n'));
        }
        text
    }

    /// The page.
    #[must_use]
    pub fn page(&self) -> Page {
        let zone = &self.zone;
        let charts = |title: &str, text: &str, charts| Section {
            title: title.to_owned(),
            blocks: vec![Block::Paragraph(text.to_owned()), Block::Charts(charts)],
        };
        let mut sections = vec![self.summary()];
        sections.push(charts("Signing and verifying the zone", words::WORK, charts::work(self)));
        sections.push(charts("Size of the zone", words::SIZE, charts::size(self)));
        sections.push(charts("Size of responses", words::RESPONSES, charts::responses(self)));
        sections.push(charts("Work of the server", words::SERVER, charts::server(self)));
        sections.push(self.all_figures());
        sections.push(words::method(self));
        sections.push(words::terms());
        Page {
            title: format!("What DNSSEC costs on {}", zone.origin),
            lead: words::lead(self),
            facts: words::facts(self),
            sections,
        }
    }

    /// The row that others are held against.
    fn reference(&self) -> Option<&Row> {
        let signed = || self.rows.iter().filter(|row| row.algorithm.is_some());
        signed().find(|row| row.is_of(&REFERENCE)).or_else(|| signed().next())
    }

    /// Notes of the whole and of its rows, each with what it is about.
    fn all_notes(&self) -> Vec<String> {
        let of_rows = self.rows.iter().flat_map(|row| {
            let label = row.label();
            row.notes.iter().map(move |note| format!("! {label}: {note}"))
        });
        self.notes.iter().map(|note| format!("! {note}")).chain(of_rows).collect()
    }

    /// For each experimental algorithm, once, why it is.
    fn experimental_notes(&self) -> Vec<String> {
        let mut notes = Vec::new();
        for row in &self.rows {
            let (Some(name), Some(reason)) = (&row.algorithm, row.experimental()) else { continue };
            let note = format!("{name} is experimental: {reason}.");
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        notes
    }

    /// Notes, and which row is best at what.
    fn summary(&self) -> Section {
        let experimental = self.experimental_notes().into_iter().map(|note| format!("* {note}"));
        let notes = self.all_notes().into_iter().map(|note| note.trim_start_matches("! ").to_owned());
        let notes = experimental.chain(notes).collect();
        let best = |what: &str, unit: &str, of: fn(&Row) -> Option<f64>| {
            let signed = self.rows.iter().filter(|row| row.algorithm.is_some());
            let ranked = signed.filter_map(|row| of(row).map(|value| (row, value)));
            let (row, value) = ranked.min_by(|a, b| a.1.total_cmp(&b.1))?;
            let told = match value > 0.0 {
                true => format!("{} {unit}", figure(value)),
                false => "less than the clock tells".to_owned(),
            };
            Some((what.to_owned(), format!("{}: {told}", row.label())))
        };
        let terms = [
            best("Cheapest to sign", "CPU s", |row| row.signing.map(|work| work.cpu_s)),
            best("Cheapest to verify", "CPU s", |row| row.verification.map(|work| work.cpu_s)),
            best("Smallest zone file", "MB", |row| Some(row.zone_octets as f64 / MEGA)),
            best("Smallest denials", "octets in the mean", |row| whole_octets(&row.denied)),
            best("Cheapest denials", "µs of the server's CPU", |row| {
                // A truncated response proves nothing.
                let cpu = row.denied.server_cpu_us_per_query.filter(|_| !row.denied.is_truncated());
                cpu.map(|cpu| cpu.value)
            }),
        ];
        Section {
            title: "In short".to_owned(),
            blocks: vec![Block::Notes(notes), Block::Terms(terms.into_iter().flatten().collect())],
        }
    }

    /// Two tables: one of all columns would fit no screen and no sheet.
    fn all_figures(&self) -> Section {
        let table = |columns, row: fn(&Row) -> Vec<String>, legend: &str| {
            let rows = self.rows.iter().map(row).collect();
            Block::Table(Table { columns, rows, legend: vec![legend.to_owned()] })
        };
        let zone = table(zone_columns(), zone_row, words::ZONE_LEGEND);
        let load = table(load_columns(), load_row, words::LOAD_LEGEND);
        Section { title: "All figures".to_owned(), blocks: vec![zone, load] }
    }
}

fn terminal_columns() -> Vec<Column> {
    let figures = |group: &str, titles: &[&str]| -> Vec<Column> {
        titles.iter().map(|title| Column::figures(group, title)).collect()
    };
    [
        vec![Column::text("algorithm"), Column::text("denial")],
        figures("signing", &["CPU s", "×"]),
        figures("verifying", &["CPU s", "×"]),
        figures("zone file", &["MB", "×"]),
        figures("server", &["MiB"]),
        figures("answer octets", &["exist.", "denied"]),
        figures("µs/query", &["exist.", "denied"]),
        figures("1000 q/s", &["exist.", "denied"]),
    ]
    .concat()
}

fn terminal_row(row: &Row, reference: Option<&Row>) -> Vec<String> {
    let ratio = |of: &dyn Fn(&Row) -> Option<f64>| match (of(row), reference.and_then(of)) {
        // Less than the clock's step is no figure to hold against another.
        (Some(value), Some(base)) if base > 0.0 && value > 0.0 => figure_of_ratio(value / base),
        _ => String::new(),
    };
    let signing = |row: &Row| row.signing.map(|work| work.cpu_s);
    let verification = |row: &Row| row.verification.map(|work| work.cpu_s);
    let octets = |row: &Row| Some(row.zone_octets as f64);
    let mark = if row.notes.is_empty() { "" } else { "!" };
    let loads = [&row.existing, &row.denied];
    let mut cells = vec![
        row.algorithm_label(),
        format!("{}{mark}", row.denial_label()),
        row.signing.as_ref().map_or_else(|| "–".to_owned(), cpu_of_work),
        ratio(&signing),
        row.verification.as_ref().map_or_else(|| "–".to_owned(), cpu_of_work),
        ratio(&verification),
        figure(row.zone_octets as f64 / MEGA),
        ratio(&octets),
        optional(row.memory_mib()),
    ];
    cells.extend(loads.map(|load| whole_octets(load).map_or_else(|| truncated(load), figure)));
    cells.extend(loads.map(cpu_of_query));
    cells.extend(loads.map(|load| figure(load.qps.value / 1000.0)));
    cells
}

/// Mean size of responses, where they are whole.
fn whole_octets(load: &LoadFigures) -> Option<f64> {
    (!load.is_truncated()).then_some(load.response_octets_mean)
}

/// What stands in place of the size where responses are truncated: which share of them, in percent.
fn truncated(load: &LoadFigures) -> String {
    match (100.0 * load.truncated_share()).floor() {
        percent if percent < 100.0 => format!("TC {percent}%"),
        _ => "TC all".to_owned(),
    }
}

/// CPU time for all of `count`, `total` µs, counted in the system's steps: what is less than one step is told as that.
fn in_steps(total: f64, count: u64, unit_us: f64) -> String {
    let count = count.max(1) as f64;
    if total > 0.0 {
        return figure(total / count / unit_us);
    }
    format!("<{}", figure(CPU_STEP_US as f64 / count / unit_us))
}

/// CPU time of the server for a query, µs.
fn cpu_of_query(load: &LoadFigures) -> String {
    let answers = load.queries.saturating_sub(load.lost);
    load.server_cpu_us_per_query
        .map_or_else(|| "–".to_owned(), |cpu| in_steps(cpu.value * answers as f64, answers, 1.0))
}

/// CPU time of work, s.
fn cpu_of_work(work: &Work) -> String {
    let runs = u64::from(work.runs);
    in_steps(work.cpu_s * MEGA * runs as f64, runs, MEGA)
}

/// One decimal is what a glance takes in; two below one.
fn figure_of_ratio(ratio: f64) -> String {
    match ratio {
        _ if ratio < 0.995 => format!("{ratio:.2}"),
        _ if ratio < 99.95 => format!("{ratio:.1}"),
        _ => figure(ratio),
    }
}

fn optional(value: Option<f64>) -> String {
    value.map_or_else(|| "–".to_owned(), figure)
}

fn zone_columns() -> Vec<Column> {
    let work = ["wall s", "from–to", "CPU s", "signatures", "CPU µs each"];
    let mut columns = vec![Column::text("algorithm"), Column::text("denial")];
    for group in ["signing", "verifying"] {
        columns.extend(work.map(|title| Column::figures(group, title)));
    }
    columns.extend(["records", "octets"].map(|title| Column::figures("zone file", title)));
    columns
}

fn zone_row(row: &Row) -> Vec<String> {
    let mut cells = vec![row.algorithm_label(), row.denial_label()];
    for work in [row.signing, row.verification] {
        cells.extend(work.map_or_else(|| vec!["–".to_owned(); 5], |work| work_cells(&work)));
    }
    cells.push(grouped(row.records as i64));
    cells.push(grouped(row.zone_octets as i64));
    cells
}

fn load_columns() -> Vec<Column> {
    let load = ["octets", "largest", "µs/query", "from–to", "1000 q/s", "from–to", "TC", "lost"];
    let mut columns = vec![Column::text("algorithm"), Column::text("denial")];
    columns.extend(["MiB", "ready s"].map(|title| Column::figures("server", title)));
    for group in ["existing names", "denied names"] {
        columns.extend(load.map(|title| Column::figures(group, title)));
    }
    columns
}

fn load_row(row: &Row) -> Vec<String> {
    let mut cells = vec![row.algorithm_label(), row.denial_label()];
    cells.push(optional(row.memory_mib()));
    cells.push(figure(row.ready_s));
    for load in [&row.existing, &row.denied] {
        cells.extend(load_cells(load));
    }
    cells
}

fn work_cells(work: &Work) -> Vec<String> {
    let (runs, signatures) = (f64::from(work.runs), u64::from(work.runs) * work.signatures);
    let each = (signatures > 0).then(|| in_steps(work.cpu_s * MEGA * runs, signatures, 1.0));
    vec![
        figure(work.wall_s.value),
        range(work.wall_s),
        cpu_of_work(work),
        grouped(work.signatures as i64),
        each.unwrap_or_else(|| "–".to_owned()),
    ]
}

fn load_cells(load: &LoadFigures) -> Vec<String> {
    let cpu = load.server_cpu_us_per_query;
    let Measured { value, least, most } = load.qps;
    let thousands = Measured { value: value / 1000.0, least: least / 1000.0, most: most / 1000.0 };
    vec![
        figure(load.response_octets_mean),
        grouped(load.response_octets_max as i64),
        cpu_of_query(load),
        cpu.map_or_else(|| "–".to_owned(), range),
        figure(thousands.value),
        range(thousands),
        grouped(load.truncated as i64),
        grouped(load.lost as i64),
    ]
}

fn range(measured: Measured) -> String {
    format!("{}–{}", figure(measured.least), figure(measured.most))
}
