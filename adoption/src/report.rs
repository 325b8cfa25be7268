//! `nonesuch adoption report`: checks the snapshots, counts their rows, and writes tables and a page.

mod charts;
mod page;
mod timeline;

use crate::arguments::ReportArguments;
use crate::check::{self, Gap, Inspection, Skipped, gaps};
use crate::engine::{Engine, Limits};
use crate::error::AdoptionError;
use crate::output::{create_directory, write_file};
use crate::progress;
use crate::queries::{COUNT_VIEWS, RESULTS, SNAPSHOT_VIEWS};
use crate::snapshot::{Day, date_text};
use crate::table::Table;
use nonesuch_lab::record::{Invocation, RunRecord};
use nonesuch_lab::report::grouped;
use serde::Serialize;
use serde_json::{Value, json};
use std::collections::{BTreeMap, HashSet};
use std::fs;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};
use std::time::{Instant, SystemTime, UNIX_EPOCH};

/// Version of the form of report.json.
const FORMAT: u32 = 1;

/// Everything that a report shows.
pub(crate) struct Report {
    pub(crate) record: RunRecord,
    /// Results of the queries, by name.
    pub(crate) tables: BTreeMap<&'static str, Table>,
    pub(crate) input: InputFacts,
    pub(crate) cost: Cost,
}

/// What the run took.
#[derive(Clone, Copy, Debug, Default, Serialize)]
pub(crate) struct Cost {
    /// Seconds for checking and counting.
    pub(crate) seconds: f64,
    /// Maximum resident memory of the process in MiB; `None` if the system does not report it.
    pub(crate) peak_memory_mib: Option<u64>,
}

/// Reads the maximum of the resident memory from `proc_pid_status(5)`.
fn peak_memory_mib() -> Option<u64> {
    let status = fs::read_to_string("/proc/self/status").ok()?;
    let kib = status.lines().find_map(|line| line.strip_prefix("VmHWM:"))?.trim().strip_suffix(" kB")?;
    Some(kib.parse::<u64>().ok()? / 1024)
}

/// Facts about the input, and its parts that are not used.
#[derive(Debug, Serialize)]
pub(crate) struct InputFacts {
    pub(crate) files: usize,
    /// Rows that were read.
    pub(crate) rows: u64,
    /// Snapshots that were read: pairs of source and date.
    pub(crate) snapshots: usize,
    /// Limit of the memory of queries in bytes.
    pub(crate) memory: usize,
    pub(crate) skipped: Vec<Skipped>,
    pub(crate) gaps: Vec<Gap>,
    pub(crate) unknown_algorithms: Vec<UnknownAlgorithm>,
}

/// A number that is not the number of an algorithm.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct UnknownAlgorithm {
    pub(crate) number: i64,
    pub(crate) source: String,
    /// First snapshot with this number.
    pub(crate) date: String,
    /// Signed domains with this number in that snapshot.
    pub(crate) domains: i64,
}

pub(crate) fn run(arguments: &ReportArguments) -> Result<(), AdoptionError> {
    let start = Instant::now();
    let mut report = create(arguments)?;
    report.cost = Cost { seconds: start.elapsed().as_secs_f64(), peak_memory_mib: peak_memory_mib() };
    let json = report.to_json();
    let out = &arguments.out;
    for table in report.tables.values() {
        table.write(&tables_directory(out))?;
    }
    write_file(&out.join("report.json"), format!("{json:#}\n").as_bytes())?;
    write_file(&out.join("report.html"), page::page(&report).to_html()?.as_bytes())?;
    for note in page::notes(&report.input) {
        eprintln!("nonesuch: warning: {note}");
    }
    if arguments.json {
        print(&format!("{json}\n"))?;
    } else {
        print(&summary(arguments, &report))?;
    }
    Ok(())
}

fn summary(arguments: &ReportArguments, report: &Report) -> String {
    let out = &arguments.out;
    let (page, tables) = (out.join("report.html"), tables_directory(out));
    let Cost { seconds, peak_memory_mib } = report.cost;
    let memory =
        peak_memory_mib.map_or_else(String::new, |memory| format!(", at most {memory} MiB of memory"));
    let rows = grouped(report.input.rows.try_into().unwrap_or(i64::MAX));
    format!(
        "{}{} and the tables in {} written\n{rows} rows in {seconds:.1} s{memory}\n",
        page::text(report),
        page.display(),
        tables.display(),
    )
}

/// Prints the text, as far as the reader of standard output takes it.
fn print(text: &str) -> Result<(), AdoptionError> {
    match io::stdout().lock().write_all(text.as_bytes()) {
        Err(error) if error.kind() != io::ErrorKind::BrokenPipe => Err(AdoptionError::Print(error)),
        _ => Ok(()),
    }
}

fn tables_directory(out: &Path) -> PathBuf {
    out.join("tables")
}

/// Reads the input and runs all queries.
fn create(arguments: &ReportArguments) -> Result<Report, AdoptionError> {
    let record = record()?;
    let files = input_files(&arguments.inputs)?;
    create_directory(&tables_directory(&arguments.out))?;
    let threads = arguments.threads.count();
    let progress = progress::bar(files.len(), "checking files");
    let inspection = check::inspect(&files, threads, &progress);
    progress.finish_and_clear();
    let inspection = inspection?;
    let engine =
        Engine::new(&Limits { memory: arguments.memory, threads, spill: arguments.spill.as_deref() })?;
    engine.register_snapshots(&files, &[])?;
    let repeated = if inspection.is_unordered() { engine.repeated()? } else { Vec::new() };
    let skipped = inspection.skipped(&repeated);
    if !skipped.is_empty() {
        skip(&engine, &files, &inspection, &skipped)?;
    }
    let tables = run_queries(&engine, &tables_directory(&arguments.out))?;
    let unused: HashSet<(&str, Day)> =
        skipped.iter().map(|snapshot| (snapshot.source.as_str(), snapshot.day)).collect();
    let used = inspection.snapshots.keys().filter(|(source, day)| !unused.contains(&(source.as_str(), *day)));
    let input = InputFacts {
        files: files.len(),
        rows: inspection.rows(),
        snapshots: inspection.snapshots.len(),
        memory: arguments.memory,
        gaps: gaps(used),
        unknown_algorithms: tables.get("algorithms").map_or_else(Vec::new, unknown_algorithms),
        skipped,
    };
    Ok(Report { record, tables, input, cost: Cost::default() })
}

/// Returns the record of this run.
fn record() -> Result<RunRecord, AdoptionError> {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| time.as_secs());
    let command = std::env::args_os().map(|argument| argument.to_string_lossy().into_owned());
    let command = command.collect::<Vec<_>>().join(" ");
    let now = now.try_into().unwrap_or(u32::MAX);
    Ok(RunRecord::begin(Invocation { now, command: &command, seed: 0, commit: env!("NONESUCH_COMMIT") })?)
}

/// Returns the files, in the order of their paths: each given file, and `*.parquet` of each directory.
fn input_files(inputs: &[PathBuf]) -> Result<Vec<PathBuf>, AdoptionError> {
    let mut files = Vec::new();
    for input in inputs {
        let failed = |source| AdoptionError::Read { path: input.clone(), source };
        if !fs::metadata(input).map_err(failed)?.is_dir() {
            files.push(input.clone());
            continue;
        }
        let before = files.len();
        for entry in fs::read_dir(input).map_err(failed)? {
            let path = entry.map_err(failed)?.path();
            if path.extension().is_some_and(|extension| extension == "parquet") && path.is_file() {
                files.push(path);
            }
        }
        if files.len() == before {
            return Err(AdoptionError::NoFiles(input.clone()));
        }
    }
    files.sort();
    files.dedup();
    Ok(files)
}

/// Removes the skipped snapshots from the table of all snapshots.
fn skip(
    engine: &Engine,
    files: &[PathBuf],
    inspection: &Inspection,
    skipped: &[Skipped],
) -> Result<(), AdoptionError> {
    if skipped.len() < inspection.snapshots.len() {
        return engine.register_snapshots(files, skipped);
    }
    for snapshot in skipped {
        eprintln!("nonesuch: warning: {}", page::skipped_text(snapshot));
    }
    Err(AdoptionError::NoSnapshots(skipped.len()))
}

fn run_queries(engine: &Engine, directory: &Path) -> Result<BTreeMap<&'static str, Table>, AdoptionError> {
    let progress = progress::bar(1 + RESULTS.len(), "counting");
    for view in SNAPSHOT_VIEWS {
        engine.register_view(view)?;
    }
    engine.store_counts(&directory.join("counts.parquet"))?;
    progress.inc(1);
    for view in COUNT_VIEWS {
        engine.register_view(view)?;
    }
    let mut tables = BTreeMap::new();
    for query in RESULTS {
        tables.insert(query.name, engine.run(query)?);
        progress.inc(1);
    }
    progress.finish_and_clear();
    Ok(tables)
}

/// Returns the numbers of algorithms without a name, each with its first snapshot.
fn unknown_algorithms(algorithms: &Table) -> Vec<UnknownAlgorithm> {
    let mut found: BTreeMap<(i64, &str), UnknownAlgorithm> = BTreeMap::new();
    for row in algorithms.rows().filter(|row| row.text("name").is_empty()) {
        let (number, source) = (row.integer("algorithm"), row.text("source"));
        found.entry((number, source)).or_insert_with(|| UnknownAlgorithm {
            number,
            source: source.to_owned(),
            date: date_text(row.day("date")),
            domains: row.integer("domains"),
        });
    }
    found.into_values().collect()
}

impl Report {
    /// Returns the rows of a table; none if it does not exist.
    pub(crate) fn rows(&self, table: &str) -> impl Iterator<Item = crate::table::TableRow<'_>> {
        self.tables.get(table).into_iter().flat_map(Table::rows)
    }

    /// Returns the report as JSON: facts of the input, and the rows of the last snapshot of each source.
    fn to_json(&self) -> Value {
        let last = timeline::last_days(self);
        let rows = |table: &Table| -> Value {
            let rows = table.rows().filter(|row| last.get(row.text("source")) == Some(&row.day("date")));
            rows.map(crate::table::TableRow::to_json).collect()
        };
        let tables: BTreeMap<&str, Value> =
            self.tables.iter().map(|(name, table)| (*name, rows(table))).collect();
        json!({ "format": FORMAT, "run": self.record, "cost": self.cost, "input": self.input, "last_snapshots": tables })
    }
}
