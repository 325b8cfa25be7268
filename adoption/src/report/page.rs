//! The page and the text of a report.

use super::charts::{all_sources, by_source, has_values, lines, percent, source_name};
use super::timeline::{Timelines, last_days};
use super::{InputFacts, Report};
use crate::check::Skipped;
use crate::snapshot::{Day, date_text};
use crate::table::TableRow;
use nonesuch_lab::report::{
    Bar, Block, Chart, Column, Page, Section, Series, Table, duration, figure, grouped,
};
use std::collections::BTreeMap;

const LEAD: &str = "Who signs with what, over time. A domain is signed if it has a DNSKEY record and its parent zone has a DS \
    record; domains with DNSKEY records but without DS records are counted separately, because resolvers treat them as unsigned. \
    Without measurements of DNSKEY records, a domain with DS records counts as signed.";

/// Maximum number of rows of a table of parameters for each source.
const MAX_PARAMETERS: usize = 10;
/// Maximum number of notes of a kind.
const MAX_NOTES: usize = 20;

pub(super) fn page(report: &Report) -> Page {
    let timelines = Timelines::of(report);
    let last = last_days(report);
    Page {
        title: "Adoption of DNSSEC".to_owned(),
        lead: LEAD.to_owned(),
        facts: facts(report),
        run_facts: report.record.facts(),
        attachment: None,
        sections: vec![
            input(&report.input),
            signed(report, &timelines, &last),
            algorithms(report, &timelines, &last),
            curves(report, &timelines),
            denial(report, &timelines, &last),
            operators(report, &timelines, &last),
            popularity(report, &timelines, &last),
        ]
        .into_iter()
        .filter(|section| !section.blocks.is_empty())
        .collect(),
    }
}

fn facts(report: &Report) -> Vec<(String, String)> {
    let days: Vec<Day> = report.rows("status").map(|row| row.day("date")).collect();
    let (first, last) = (days.iter().min().copied().unwrap_or(0), days.iter().max().copied().unwrap_or(0));
    let input = &report.input;
    [
        ("dates", format!("{} to {}", date_text(first), date_text(last))),
        ("rows", grouped(input.rows.try_into().unwrap_or(i64::MAX))),
        ("snapshots", grouped(input.snapshots as i64)),
        ("skipped snapshots", grouped(input.skipped.len() as i64)),
        ("files", grouped(input.files as i64)),
        ("time", duration(report.cost.seconds)),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}

/// Returns the notes about the input.
pub(super) fn notes(input: &InputFacts) -> Vec<String> {
    let gaps = input.gaps.iter().map(|gap| {
        format!(
            "{}: gap: no snapshot between {} and {}; usually there is one every {} days",
            gap.source, gap.after, gap.before, gap.usual_days
        )
    });
    let unknown = input.unknown_algorithms.iter().map(|algorithm| {
        format!(
            "{}: unknown algorithm number {}: {} signed domains, first on {}; counted under its number",
            algorithm.source, algorithm.number, algorithm.domains, algorithm.date
        )
    });
    [
        limited(input.skipped.iter().map(skipped_text).collect(), "skipped snapshots"),
        limited(gaps.collect(), "gaps"),
        limited(unknown.collect(), "unknown algorithms"),
    ]
    .concat()
}

/// Returns the text of a skipped snapshot.
pub(super) fn skipped_text(snapshot: &Skipped) -> String {
    format!("{} on {}: snapshot skipped: {}", snapshot.source, snapshot.date, snapshot.reason)
}

fn limited(mut notes: Vec<String>, kind: &str) -> Vec<String> {
    let more = notes.len().saturating_sub(MAX_NOTES);
    notes.truncate(MAX_NOTES);
    if more > 0 {
        notes.push(format!("{more} further {kind}: report.json lists all"));
    }
    notes
}

fn input(input: &InputFacts) -> Section {
    let notes = notes(input);
    let blocks = if notes.is_empty() { Vec::new() } else { vec![Block::Notes(notes)] };
    Section { title: "Input".to_owned(), blocks }
}

fn signed(report: &Report, timelines: &Timelines, last: &BTreeMap<String, Day>) -> Section {
    let share = |column: &'static str| {
        lines(report, timelines, "status", |_| Some(String::new()), move |row| percent(row, column))
    };
    let signed = all_sources(timelines, &share("signed_share"), "", "Signed domains", "% of domains");
    let without_ds = all_sources(
        timelines,
        &share("dnskey_without_ds_share"),
        "",
        "Domains with DNSKEY and without DS",
        "% of domains",
    );
    // Input without measurements of DNSKEY records has no such domains.
    let charts = [vec![signed], [without_ds].into_iter().filter(has_values).collect()].concat();
    Section {
        title: "Signed domains".to_owned(),
        blocks: vec![Block::LineCharts(charts), Block::Table(status_table(report, last))],
    }
}

/// Returns the rows of the last snapshot of each source.
fn last_rows<'r>(
    report: &'r Report,
    table: &str,
    last: &BTreeMap<String, Day>,
) -> impl Iterator<Item = TableRow<'r>> {
    report.rows(table).filter(move |row| last.get(row.text("source")) == Some(&row.day("date")))
}

fn status_table(report: &Report, last: &BTreeMap<String, Day>) -> Table {
    const COLUMNS: [&str; 6] =
        ["domains", "signed", "dnskey_without_ds", "ds_without_dnskey", "unsigned", "unknown"];
    let titles = ["domains", "signed", "DNSKEY, no DS", "DS, no DNSKEY", "unsigned", "unknown"];
    let mut columns = vec![Column::text("source"), Column::text("date")];
    columns.extend(titles.map(|title| Column::figures("", title)));
    columns.push(Column::figures("", "signed, %"));
    let rows = last_rows(report, "status", last).map(|row| {
        let mut cells = vec![source_name(row.text("source")).to_owned(), date_text(row.day("date"))];
        cells.extend(COLUMNS.map(|column| grouped(row.integer(column))));
        cells.push(figure(percent(row, "signed_share")));
        cells
    });
    Table {
        columns,
        rows: rows.collect(),
        legend: vec!["Shares are of the domains whose status is known.".to_owned()],
    }
}

/// Returns the name of an algorithm; its number if it has no name.
fn algorithm_name(row: TableRow<'_>) -> String {
    match row.text("name") {
        "" => format!("unknown ({})", row.integer("algorithm")),
        name => name.to_owned(),
    }
}

fn algorithms(report: &Report, timelines: &Timelines, last: &BTreeMap<String, Day>) -> Section {
    let shares =
        lines(report, timelines, "algorithms", |row| Some(algorithm_name(row)), |row| percent(row, "share"));
    section_of_charts(
        "Algorithms",
        by_source(timelines, &shares, "Algorithms", "% of signed domains"),
        vec![Block::Table(algorithm_table(report, last))],
    )
}

fn algorithm_table(report: &Report, last: &BTreeMap<String, Day>) -> Table {
    let rows = last_rows(report, "algorithms", last).map(|row| {
        vec![
            source_name(row.text("source")).to_owned(),
            date_text(row.day("date")),
            row.integer("algorithm").to_string(),
            algorithm_name(row),
            grouped(row.integer("domains")),
            figure(percent(row, "share")),
        ]
    });
    Table {
        columns: vec![
            Column::text("source"),
            Column::text("date"),
            Column::figures("", "number"),
            Column::text("algorithm"),
            Column::figures("", "signed domains"),
            Column::figures("", "%"),
        ],
        rows: rows.collect(),
        legend: vec!["A domain with keys of two algorithms counts for both.".to_owned()],
    }
}

fn section_of_charts(
    title: &str,
    charts: Vec<nonesuch_lab::report::LineChart>,
    blocks: Vec<Block>,
) -> Section {
    let charts = if charts.is_empty() { Vec::new() } else { vec![Block::LineCharts(charts)] };
    Section { title: title.to_owned(), blocks: [charts, blocks].concat() }
}

/// Adoption of elliptic curves, and by which operators.
fn curves(report: &Report, timelines: &Timelines) -> Section {
    let is_curve = |row: TableRow<'_>| row.text("family") == "ECC";
    let all = lines(
        report,
        timelines,
        "families",
        |row| is_curve(row).then(String::new),
        |row| percent(row, "share"),
    );
    let operators = lines(
        report,
        timelines,
        "operator_families",
        |row| is_curve(row).then(|| row.text("operator").to_owned()),
        |row| percent(row, "share"),
    );
    let mut charts = Vec::new();
    if !all.is_empty() {
        let title = "Signed with elliptic curves (ECDSA, EdDSA)";
        charts.push(all_sources(timelines, &all, "", title, "% of signed domains"));
        charts.extend(by_source(
            timelines,
            &operators,
            "Operators of domains signed with elliptic curves",
            "% of these domains",
        ));
    }
    section_of_charts("Elliptic curves", charts, Vec::new())
}

fn denial(report: &Report, timelines: &Timelines, last: &BTreeMap<String, Day>) -> Section {
    let mechanisms = lines(
        report,
        timelines,
        "denial",
        |row| Some(row.text("denial").to_owned()),
        |row| percent(row, "share"),
    );
    let mut charts =
        by_source(timelines, &mechanisms, "Denial mechanisms", "% of domains with a known mechanism");
    for (column, title) in [
        ("rfc9276_share", "NSEC3 without iterations and salt (RFC 9276)"),
        ("zero_iterations_share", "NSEC3 without additional iterations"),
        ("no_salt_share", "NSEC3 without salt"),
        ("opt_out_share", "NSEC3 with opt-out"),
    ] {
        let share =
            lines(report, timelines, "nsec3_summary", |_| Some(String::new()), |row| percent(row, column));
        if !share.is_empty() {
            charts.push(all_sources(timelines, &share, "", title, "% of domains with NSEC3"));
        }
    }
    let table = nsec3_table(report, last);
    let table = if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] };
    section_of_charts("Denial of existence", charts, table)
}

/// Returns the most frequent parameters of NSEC3 of each source.
fn nsec3_table(report: &Report, last: &BTreeMap<String, Day>) -> Table {
    let mut rows: Vec<TableRow<'_>> = last_rows(report, "nsec3", last).collect();
    rows.sort_by_key(|row| (row.text("source"), std::cmp::Reverse(row.integer("domains"))));
    let most = rows.chunk_by(|a, b| a.text("source") == b.text("source"));
    let most = most.flat_map(|of_source| of_source.iter().take(MAX_PARAMETERS));
    let known = |value: Option<i64>| value.map_or_else(|| "unknown".to_owned(), |value| value.to_string());
    let rows = most.map(|row| {
        vec![
            source_name(row.text("source")).to_owned(),
            date_text(row.day("date")),
            known(row.optional_integer("iterations")),
            known(row.optional_integer("salt_octets")),
            row.flag("opt_out").map_or("unknown", |flag| if flag { "yes" } else { "no" }).to_owned(),
            grouped(row.integer("domains")),
            figure(percent(*row, "share")),
        ]
    });
    Table {
        columns: vec![
            Column::text("source"),
            Column::text("date"),
            Column::figures("NSEC3", "iterations"),
            Column::figures("NSEC3", "salt, octets"),
            Column::text("opt-out"),
            Column::figures("", "domains"),
            Column::figures("", "%"),
        ],
        rows: rows.collect(),
        legend: Vec::new(),
    }
}

fn operators(report: &Report, timelines: &Timelines, last: &BTreeMap<String, Day>) -> Section {
    let shares = lines(
        report,
        timelines,
        "operators",
        |row| Some(row.text("operator").to_owned()),
        |row| percent(row, "share_of_signed"),
    );
    let rows = last_rows(report, "operators", last).map(|row| {
        vec![
            source_name(row.text("source")).to_owned(),
            date_text(row.day("date")),
            row.text("operator").to_owned(),
            grouped(row.integer("domains")),
            grouped(row.integer("signed")),
            figure(percent(row, "signed_share")),
            figure(percent(row, "share_of_signed")),
        ]
    });
    let table = Table {
        columns: vec![
            Column::text("source"),
            Column::text("date"),
            Column::text("operator"),
            Column::figures("", "domains"),
            Column::figures("", "signed"),
            Column::figures("", "% of its domains"),
            Column::figures("", "% of all signed"),
        ],
        rows: rows.collect(),
        legend: vec!["The ten operators of each source with the most signed domains on any date.".to_owned()],
    };
    section_of_charts(
        "Operators",
        by_source(timelines, &shares, "Signed domains by operator", "% of signed domains"),
        vec![Block::Table(table)],
    )
}

/// Returns the name of a class of ranks.
fn rank_class(up_to: i64) -> String {
    match up_to {
        1000 => "rank 1 to 1,000".to_owned(),
        i64::MIN..=1_000_000 => format!("rank {} to {}", grouped(up_to / 10 + 1), grouped(up_to)),
        _ => "rank above 1,000,000".to_owned(),
    }
}

fn popularity(report: &Report, timelines: &Timelines, last: &BTreeMap<String, Day>) -> Section {
    let shares = lines(
        report,
        timelines,
        "ranks",
        |row| Some(rank_class(row.integer("rank_up_to"))),
        |row| percent(row, "signed_share"),
    );
    if shares.is_empty() {
        return Section::default();
    }
    let charts = by_source(timelines, &shares, "Signed domains by popularity", "% of domains");
    let bars = shares.keys().map(|source| rank_bars(report, source, last)).collect();
    section_of_charts("Popularity", charts, vec![Block::Charts(bars)])
}

/// Returns the shares of the last snapshot of a source, by class of ranks.
fn rank_bars(report: &Report, source: &str, last: &BTreeMap<String, Day>) -> Chart {
    let rows: Vec<TableRow<'_>> =
        last_rows(report, "ranks", last).filter(|row| row.text("source") == source).collect();
    let bar = |row: &TableRow<'_>| Some(Bar { value: percent(*row, "signed_share"), spread: None });
    let date = last.get(source).map_or_else(String::new, |day| date_text(*day));
    Chart {
        title: format!("Signed domains by popularity, {}, {date}", source_name(source)),
        unit: "% of domains".to_owned(),
        groups: rows.iter().map(|row| rank_class(row.integer("rank_up_to"))).collect(),
        series: vec![Series { name: "signed".to_owned(), bars: rows.iter().map(bar).collect() }],
        ..Chart::default()
    }
}

/// Returns the report for a terminal: the last snapshot of each source.
pub(super) fn text(report: &Report) -> String {
    let last = last_days(report);
    format!("{}\n{}\n", status_table(report, &last).to_text(), algorithm_table(report, &last).to_text())
}
