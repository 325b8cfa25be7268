//! The tables.

use super::super::rows::Job;
use super::super::summary::{Line, View};
use super::super::{AlgorithmFacts, ZoneFacts};
use super::{marked, title};
use crate::experiment::published::{self, Cell, PublishedTable};
use crate::experiment::statistics::Statistics;
use crate::report::{self, Block, Column, Table, figure, grouped};

const KIB_IN_MIB: f64 = 1024.0;
const MEGA: f64 = 1e6;

pub(super) fn dash() -> String {
    "–".to_owned()
}

fn show(value: Option<f64>) -> String {
    value.map_or_else(dash, figure)
}

fn ratio(value: Option<f64>) -> String {
    value.map_or_else(dash, report::ratio)
}

fn whole(value: Option<u64>) -> String {
    value.map_or_else(dash, |value| grouped(i64::try_from(value).unwrap_or(i64::MAX)))
}

fn median(statistics: Option<Statistics>) -> Option<f64> {
    statistics.map(|statistics| statistics.median)
}

fn mebibytes(line: &Line) -> Option<f64> {
    median(line.memory_kib).map(|kib| kib / KIB_IN_MIB)
}

fn megabytes(octets: Option<u64>) -> Option<f64> {
    octets.map(|octets| octets as f64 / MEGA)
}

/// Published figures beside ours, one table for each kind.
pub(super) fn published(view: &View<'_>, named: &[String]) -> Vec<Block> {
    let table = |id: &str| published::table(id).filter(|_| named.iter().any(|name| name == id));
    let mut tables: Vec<Table> = Vec::new();
    tables.extend(table("pqc-signing-times").map(|table| times(view, table)));
    tables.extend(table("pqc-zone-sizes").and_then(|table| sizes(view, table)));
    tables.push(findings(view));
    tables.retain(|table| !table.rows.is_empty());
    tables.into_iter().map(Block::Table).collect()
}

fn denial_columns(view: &View<'_>, group: &str, columns: &mut Vec<Column>) {
    columns.extend(view.denials().iter().map(|(_, title)| Column::figures(group, title)));
}

fn scheme<'v>(view: &View<'v>, name: &str) -> Option<&'v AlgorithmFacts> {
    view.algorithms().into_iter().find(|facts| facts.scheme == name)
}

/// Time of signing, in times of P-256.
fn times(view: &View<'_>, published: &PublishedTable) -> Table {
    let mut columns =
        vec![Column::text("algorithm"), Column::text("level"), Column::figures("", "published")];
    columns.push(Column::text("zone"));
    denial_columns(view, "here, CPU time", &mut columns);
    denial_columns(view, "here, time on the wall", &mut columns);
    let mut rows = Vec::new();
    for row in &published.rows {
        let Some(facts) = row.first().and_then(|cell| scheme(view, &cell.print())) else { continue };
        for level in view.levels() {
            let place = published.columns.iter().position(|column| column == level);
            let theirs = place.and_then(|place| row.get(place)).map_or_else(dash, Cell::print);
            for zone in view.zones() {
                let lines: Vec<Option<&Line>> = view
                    .denials()
                    .iter()
                    .map(|(denial, _)| view.find(Job::Sign, &zone.zone, level, &facts.algorithm, denial))
                    .collect();
                if lines.iter().all(Option::is_none) {
                    continue;
                }
                let mut cells = vec![marked(facts), level.to_owned(), theirs.clone(), title(zone)];
                cells.extend(lines.iter().map(|line| ratio(line.and_then(|line| line.cpu_times))));
                cells.extend(lines.iter().map(|line| ratio(line.and_then(|line| line.wall_times))));
                rows.push(cells);
            }
        }
    }
    let legend = format!(
        "Time of signing in times of ECDSA P-256. Published: {}; {}.",
        published.source, published.hardware
    );
    Table { columns, rows, legend: vec![legend] }
}

/// Size of the signed zone, in times of the one signed with P-256.
fn sizes(view: &View<'_>, published: &PublishedTable) -> Option<Table> {
    let theirs = |name: &str| {
        published
            .rows
            .iter()
            .find(|row| row.first().is_some_and(|cell| cell.print() == name))?
            .get(1)?
            .number()
    };
    let base = theirs("ECDSA P-256")?;
    let mut columns = vec![Column::text("algorithm"), Column::figures("", "published, .nl")];
    columns.push(Column::text("zone"));
    denial_columns(view, "here", &mut columns);
    let mut rows = Vec::new();
    for facts in view.algorithms().into_iter().filter(|facts| facts.algorithm != view.base) {
        for zone in view.zones() {
            let of = |algorithm: &str, denial: &str| {
                Some(view.find_any(Job::Sign, &zone.zone, algorithm, denial)?.octets? as f64)
            };
            let here = |denial: &str| Some(of(&facts.algorithm, denial)? / of(&view.base, denial)?);
            let here: Vec<Option<f64>> = view.denials().iter().map(|(denial, _)| here(denial)).collect();
            if here.iter().any(Option::is_some) {
                let mut cells =
                    vec![marked(facts), ratio(theirs(&facts.scheme).map(|size| size / base)), title(zone)];
                cells.extend(here.into_iter().map(ratio));
                rows.push(cells);
            }
        }
    }
    let legend = format!(
        "Octets of the signed zone file in times of the one signed with ECDSA P-256. Published: {base} MB with ECDSA P-256; {}.",
        published.source
    );
    Some(Table { columns, rows, legend: vec![legend] })
}

/// What the study found, in words: job, algorithm, what it is held against, and the words.
const FINDINGS: [(Job, &str, &str, &str); 4] = [
    (Job::Sign, "Falcon-512", "RSA-1280", "Falcon signs about as fast as RSA"),
    (Job::Sign, "MAYO-2", "ECDSA P-256", "MAYO signs little slower than ECDSA P-256"),
    (Job::Verify, "Falcon-512", "ECDSA P-256", "Falcon validates about as fast as ECDSA P-256"),
    (Job::Verify, "MAYO-2", "RSA-1280", "MAYO validates about as fast as RSA"),
];

/// The findings beside the ratios that they speak of.
fn findings(view: &View<'_>) -> Table {
    let level = "x86-64-v3";
    let mut columns = vec![Column::text("found with x86-64-v3"), Column::text("ratio"), Column::text("zone")];
    denial_columns(view, "here, CPU time", &mut columns);
    let mut rows = Vec::new();
    for (job, name, against, words) in FINDINGS {
        let (Some(own), Some(other)) = (scheme(view, name), scheme(view, against)) else { continue };
        for zone in view.zones() {
            let of = |facts: &AlgorithmFacts, denial: &str| {
                median(view.find(job, &zone.zone, level, &facts.algorithm, denial)?.cpu)
            };
            let here = |denial: &str| Some(of(own, denial)? / of(other, denial)?);
            let here: Vec<Option<f64>> = view.denials().iter().map(|(denial, _)| here(denial)).collect();
            if here.iter().any(Option::is_some) {
                let ratio_name = format!("{} / {}", marked(own), marked(other));
                let mut cells = vec![words.to_owned(), ratio_name, title(zone)];
                cells.extend(here.into_iter().map(ratio));
                rows.push(cells);
            }
        }
    }
    Table { columns, rows, legend: vec!["Below 1: here the first takes less CPU time.".to_owned()] }
}

/// Signing a changed zone, in shares of signing all of it.
pub(super) fn again(view: &View<'_>) -> Vec<Block> {
    const WAYS: [(Job, &str); 2] =
        [(Job::Resign, "zone files"), (Job::ResignCompiled, "compiled zone, changes")];
    let mut columns = ["zone", "denial", "algorithm", "level", "from"].map(Column::text).to_vec();
    columns.extend(["all", "changed", "share, %"].map(|title| Column::figures("CPU s", title)));
    columns.extend(["all", "changed"].map(|title| Column::figures("wall s", title)));
    columns.extend(["all", "changed"].map(|title| Column::figures("peak memory, MiB", title)));
    let mut rows = Vec::new();
    for (zone, denial, facts) in combinations(view) {
        for (job, way) in WAYS {
            let line = view.find_any(job, &zone.zone, &facts.algorithm, &denial.0);
            let all = line
                .and_then(|line| view.find(Job::Sign, &zone.zone, &line.level, &facts.algorithm, &denial.0));
            let Some((line, all)) = line.zip(all) else { continue };
            let mut cells =
                vec![title(zone), denial.1.clone(), marked(facts), line.level.clone(), way.to_owned()];
            cells.extend(again_figures(line, all));
            rows.push(cells);
        }
    }
    blocks(Table { columns, rows, legend: vec!["Medians of the runs.".to_owned()] })
}

fn again_figures(line: &Line, all: &Line) -> [String; 7] {
    let share = median(line.cpu).zip(median(all.cpu)).map(|(part, all)| 100.0 * part / all);
    [
        show(median(all.cpu)),
        show(median(line.cpu)),
        show(share),
        show(median(all.wall)),
        show(median(line.wall)),
        show(mebibytes(all)),
        show(mebibytes(line)),
    ]
}

/// Zones, mechanisms and algorithms, in the order of the report.
fn combinations<'v>(view: &View<'v>) -> Vec<(&'v ZoneFacts, (String, String), &'v AlgorithmFacts)> {
    let mut all = Vec::new();
    for zone in view.zones() {
        for denial in view.denials() {
            all.extend(view.algorithms().into_iter().map(|facts| (zone, denial.clone(), facts)));
        }
    }
    all
}

fn blocks(table: Table) -> Vec<Block> {
    if table.rows.is_empty() { Vec::new() } else { vec![Block::Table(table)] }
}

/// Memory of a server, and a transfer.
pub(super) fn serving(view: &View<'_>) -> Vec<Block> {
    let mut columns = ["zone", "denial", "algorithm"].map(Column::text).to_vec();
    columns.extend(["MiB", "times unsigned", "ready after, s"].map(|title| Column::figures("server", title)));
    columns.extend(
        ["MB", "times unsigned", "messages"].map(|title| Column::figures("transfer, computed", title)),
    );
    let mut rows = Vec::new();
    for zone in view.zones() {
        rows.extend(serving_row(view, zone, ("", "–"), "", "unsigned"));
        for (denial, denial_title) in view.denials() {
            rows.extend(view.algorithms().into_iter().filter_map(|facts| {
                serving_row(view, zone, (&denial, &denial_title), &facts.algorithm, &marked(facts))
            }));
        }
    }
    blocks(Table { columns, rows, legend: Vec::new() })
}

fn serving_row(
    view: &View<'_>,
    zone: &ZoneFacts,
    (denial, denial_title): (&str, &str),
    algorithm: &str,
    name: &str,
) -> Option<Vec<String>> {
    let find = |job: Job, algorithm: &str, denial: &str| view.find_any(job, &zone.zone, algorithm, denial);
    let (server, transfer) = (find(Job::Serve, algorithm, denial), find(Job::Transfer, algorithm, denial));
    if server.is_none() && transfer.is_none() {
        return None;
    }
    let memory = server.and_then(mebibytes);
    let octets = transfer.and_then(|line| megabytes(line.octets));
    let unsigned_memory = find(Job::Serve, "", "").and_then(mebibytes);
    let unsigned_octets = find(Job::Transfer, "", "").and_then(|line| megabytes(line.octets));
    let times = |own: Option<f64>, base: Option<f64>| ratio(own.zip(base).map(|(own, base)| own / base));
    Some(vec![
        title(zone),
        denial_title.to_owned(),
        name.to_owned(),
        show(memory),
        times(memory, unsigned_memory),
        show(server.and_then(|line| median(line.wall))),
        show(octets),
        times(octets, unsigned_octets),
        whole(transfer.and_then(|line| line.messages)),
    ])
}

/// Every job of every cell, a table for each zone and job.
pub(super) fn all(view: &View<'_>) -> Vec<Block> {
    let mut blocks = Vec::new();
    for zone in view.zones() {
        for job in [Job::Sign, Job::Verify] {
            let table = job_table(view, zone, job);
            if !table.rows.is_empty() {
                blocks.push(Block::Table(table));
            }
        }
    }
    blocks
}

fn job_table(view: &View<'_>, zone: &ZoneFacts, job: Job) -> Table {
    let noun = if job == Job::Sign { "signing" } else { "validation" };
    let mut columns = [&*format!("{noun}, {}", title(zone)), "algorithm", "level"].map(Column::text).to_vec();
    columns.push(Column::figures("", "runs"));
    columns.extend(["median", "least", "most", "× P-256"].map(|title| Column::figures("CPU s", title)));
    columns.extend(["median", "× P-256"].map(|title| Column::figures("wall s", title)));
    columns.extend(["number", "a CPU s"].map(|title| Column::figures("signatures", title)));
    columns.push(Column::figures("peak", "MiB"));
    if job == Job::Sign {
        columns.extend(["records", "MB"].map(|title| Column::figures("zone file", title)));
    }
    let mut rows = Vec::new();
    for (denial, denial_title) in view.denials() {
        for facts in view.algorithms() {
            let levels = view.levels().into_iter();
            let found =
                levels.filter_map(|level| view.find(job, &zone.zone, level, &facts.algorithm, &denial));
            rows.extend(found.map(|line| job_row(line, &denial_title, facts)));
        }
    }
    Table { columns, rows, legend: Vec::new() }
}

fn job_row(line: &Line, denial: &str, facts: &AlgorithmFacts) -> Vec<String> {
    let mut cells = vec![denial.to_owned(), marked(facts), line.level.clone()];
    cells.push(line.cpu.map_or_else(dash, |cpu| cpu.count.to_string()));
    cells.push(show(median(line.cpu)));
    cells.push(show(line.cpu.map(|cpu| cpu.least)));
    cells.push(show(line.cpu.map(|cpu| cpu.most)));
    cells.extend([ratio(line.cpu_times), show(median(line.wall)), ratio(line.wall_times)]);
    cells.extend([whole(line.signatures), show(line.per_cpu_second()), show(mebibytes(line))]);
    if line.job == Job::Sign {
        cells.extend([whole(line.records), show(megabytes(line.octets))]);
    }
    cells
}

/// For a terminal: one zone, a row for each mechanism and algorithm.
pub(super) fn short(view: &View<'_>, zone: &ZoneFacts) -> Table {
    let levels = view.levels();
    let mut columns = [&*title(zone), "algorithm"].map(Column::text).to_vec();
    for noun in ["signing, × P-256", "validation, × P-256"] {
        columns.extend(levels.iter().map(|level| Column::figures(noun, level.trim_start_matches("x86-64-"))));
    }
    columns.extend([Column::figures("zone", "MB"), Column::figures("peak", "MiB")]);
    let mut rows = Vec::new();
    for (denial, denial_title) in view.denials() {
        for facts in view.algorithms() {
            let find = |job: Job, level: &str| view.find(job, &zone.zone, level, &facts.algorithm, &denial);
            let Some(first) = view.find_any(Job::Sign, &zone.zone, &facts.algorithm, &denial) else {
                continue;
            };
            let mut cells = vec![denial_title.clone(), marked(facts)];
            for job in [Job::Sign, Job::Verify] {
                cells.extend(
                    levels.iter().map(|level| ratio(find(job, level).and_then(|line| line.cpu_times))),
                );
            }
            cells.extend([show(megabytes(first.octets)), show(mebibytes(first))]);
            rows.push(cells);
        }
    }
    let legend = "CPU time; medians of the runs. *: experimental, see the report.".to_owned();
    Table { columns, rows, legend: vec![legend] }
}
