//! Directory of an experiment's results: `results.json`, `results.csv`, `runs.csv`,
//! `results.parquet` and `report.html`.
//!
//! The results are those of one run, or of several runs that were merged. `results.json` then
//! contains the records of all of them in `runs`.
//!
//! Each file is written under a temporary name, synchronised and renamed. The record is the last.
//! It contains a checksum of the data. Thus reading detects files of two different runs, which a
//! crash between two renames can cause.

use super::csv;
use super::definition::Definition;
use super::error::StoreError;
use super::merge::Runs;
use super::parquet_file;
use super::results::{FORMAT, Record, Results};
use crate::data::{DataColumn, DataTable};
use crate::files::{read_bounded, replace_file};
use crate::presentation::PresentationError;
use crate::record::{self, RunRecord};
use serde::de::{DeserializeOwned, IgnoredAny};
use serde::{Deserialize, Serialize};
use std::fs;
use std::path::Path;

/// File name of the record.
pub const JSON_FILE: &str = "results.json";
/// File name of the data as CSV.
pub const CSV_FILE: &str = "results.csv";
/// File name of the data as Parquet.
pub const PARQUET_FILE: &str = "results.parquet";
/// File name of the table of runs: a row for each run.
pub const RUNS_FILE: &str = "runs.csv";
/// File name of the HTML report.
pub const PAGE_FILE: &str = "report.html";

/// File names of the results, in the order of their description.
pub const FILES: [&str; 5] = [JSON_FILE, CSV_FILE, RUNS_FILE, PARQUET_FILE, PAGE_FILE];

/// Key of the records in the metadata of the Parquet file: a JSON list with one object for each
/// run.
const RUNS_KEY: &str = "nonesuch.runs";
/// Key of the columns in the metadata of the Parquet file: a JSON list of names, types and meanings.
const COLUMNS_KEY: &str = "nonesuch.columns";

/// Maximum octets of `results.json` that are read.
const JSON_MAX: u64 = 16 << 20;
/// Maximum octets of `results.csv` that are read: about a million rows.
const CSV_MAX: u64 = 128 << 20;
/// Maximum number of columns, and of merged runs.
const LIST_MAX: usize = 1000;

/// Format of `results.json`: the record and a description of the data. `R` is [`Record`] or
/// [`MergedRecord`].
#[derive(Serialize, Deserialize)]
struct Stored<R> {
    #[serde(flatten)]
    record: R,
    columns: Vec<DataColumn>,
    rows: u64,
    /// Checksum of the octets of `results.csv`.
    check_sum: String,
}

/// Record of merged runs.
#[derive(Serialize, Deserialize)]
struct MergedRecord {
    /// Version of the format: [`FORMAT`].
    format: u32,
    /// The experiment, with the parameters of the first run.
    experiment: Definition,
    /// Records of the runs, in the order of their rows.
    runs: Vec<Record>,
}

/// Checks that the results of a run of the experiment `name` can be written to `dir`: the directory
/// has no results, or those of a single run of the same experiment, or `overwrite` is set.
///
/// # Errors
/// Fails if `dir` contains results of another experiment, merged results, or a file with the name
/// of a result file.
pub fn check_free(dir: &Path, name: &str, overwrite: bool) -> Result<(), StoreError> {
    if overwrite {
        return Ok(());
    }
    match occupant(dir, name)? {
        Some(Occupant { runs: Some(_), .. }) => Err(occupied(dir, "the merged results of several runs")),
        _ => Ok(()),
    }
}

/// Checks that merged runs can be written to `dir`: the directory has no results, or merged results
/// without other runs, or `overwrite` is set.
///
/// # Errors
/// Fails if `dir` contains results of another experiment, of a single run, or of other runs, or a
/// file with the name of a result file.
pub fn check_free_for_runs(dir: &Path, runs: &Runs, overwrite: bool) -> Result<(), StoreError> {
    if overwrite {
        return Ok(());
    }
    let is_merged = |run: &RunIdentifier| runs.results().any(|own| own.record.run.run_id == run.run_id);
    match occupant(dir, &runs.first().record.experiment.name)? {
        Some(Occupant { runs: None, .. }) => Err(occupied(dir, "the results of a single run")),
        Some(Occupant { runs: Some(stored), .. }) if !stored.iter().all(is_merged) => {
            Err(occupied(dir, "merged results with other runs"))
        }
        _ => Ok(()),
    }
}

fn occupied(dir: &Path, what: impl Into<String>) -> StoreError {
    StoreError::Occupied { dir: dir.to_path_buf(), what: what.into() }
}

/// The part of a record of any format version that states what it contains.
#[derive(Deserialize)]
struct Occupant {
    experiment: ExperimentName,
    /// The merged runs; `None` for a single run.
    runs: Option<Vec<RunIdentifier>>,
}

#[derive(Deserialize)]
struct ExperimentName {
    name: String,
}

#[derive(Deserialize)]
struct RunIdentifier {
    run_id: String,
}

/// Returns what the record in `dir` contains, or `None` if `dir` has no results. Fails if `dir` has
/// results of another experiment than `name`, or files that are not results.
fn occupant(dir: &Path, name: &str) -> Result<Option<Occupant>, StoreError> {
    if let Ok(text) = read_bounded(&dir.join(JSON_FILE), JSON_MAX) {
        let Ok(found) = serde_json::from_slice::<Occupant>(&text) else {
            return Err(occupied(dir, format!("a file {JSON_FILE} that is not a results file")));
        };
        if found.experiment.name != name {
            return Err(occupied(dir, format!("the results of the experiment {}", found.experiment.name)));
        }
        return Ok(Some(found));
    }
    match FILES.iter().find(|file| dir.join(file).symlink_metadata().is_ok()) {
        Some(file) => Err(occupied(dir, format!("a file {file} that does not belong to an experiment"))),
        None => Ok(None),
    }
}

/// Writes results and their report to `dir`. Creates the directory if it does not exist.
///
/// # Errors
/// Fails if a file cannot be written or the report cannot be generated.
pub fn save(dir: &Path, results: &Results) -> Result<(), StoreError> {
    let check_sum = write_data(dir, &results.data, &[&results.record.run])?;
    write_report(dir, results.page())?;
    write_record(dir, results.record.clone(), &results.data, check_sum)
}

/// Writes merged runs and their report to `dir`, as [`save`] does.
///
/// # Errors
/// Fails as [`save`] does.
pub fn save_runs(dir: &Path, runs: &Runs) -> Result<(), StoreError> {
    let data = runs.data().map_err(|source| {
        let source = source.into();
        StoreError::Csv { path: dir.join(CSV_FILE), source }
    })?;
    let records: Vec<&RunRecord> = runs.results().map(|results| &results.record.run).collect();
    let check_sum = write_data(dir, &data, &records)?;
    write_page(dir, runs)?;
    let experiment = runs.first().record.experiment.clone();
    let runs = runs.results().map(|results| results.record.clone()).collect();
    write_record(dir, MergedRecord { format: FORMAT, experiment, runs }, &data, check_sum)
}

/// Writes the rows as CSV and Parquet, and the table of runs. Returns the checksum of the rows.
fn write_data(dir: &Path, data: &DataTable, runs: &[&RunRecord]) -> Result<String, StoreError> {
    fs::create_dir_all(dir).map_err(|source| StoreError::Write { path: dir.to_path_buf(), source })?;
    let failed = |file| move |source| StoreError::Csv { path: dir.join(file), source };
    let text = csv::write(data).map_err(failed(CSV_FILE))?;
    let table = record::runs(runs).map_err(|source| failed(RUNS_FILE)(source.into()))?;
    let table = csv::write(&table).map_err(failed(RUNS_FILE))?;
    let metadata = [
        (RUNS_KEY, serde_json::json!(runs).to_string()),
        (COLUMNS_KEY, serde_json::json!(data.columns()).to_string()),
    ];
    let octets = parquet_file::write(data, &metadata)
        .map_err(|source| StoreError::Parquet { path: dir.join(PARQUET_FILE), source })?;
    write_file(dir, PARQUET_FILE, &octets)?;
    write_file(dir, RUNS_FILE, &table)?;
    write_file(dir, CSV_FILE, &text)?;
    Ok(check_sum(&text))
}

fn write_record(
    dir: &Path,
    record: impl Serialize,
    data: &DataTable,
    check_sum: String,
) -> Result<(), StoreError> {
    let path = dir.join(JSON_FILE);
    let rows = data.rows().len() as u64;
    let stored = Stored { record, columns: data.columns().to_vec(), rows, check_sum };
    let record =
        serde_json::to_string_pretty(&stored).map_err(|source| StoreError::Record { path, source })?;
    write_file(dir, JSON_FILE, format!("{record}\n").as_bytes())
}

/// Writes the report of one run or of merged runs to `dir`.
///
/// # Errors
/// Fails if the file cannot be written or the report cannot be generated.
pub fn write_page(dir: &Path, runs: &Runs) -> Result<(), StoreError> {
    write_report(dir, runs.page())
}

fn write_report(dir: &Path, page: Result<String, PresentationError>) -> Result<(), StoreError> {
    let page = page.map_err(|source| StoreError::Presentation { path: dir.join(JSON_FILE), source })?;
    write_file(dir, PAGE_FILE, page.as_bytes())
}

/// Reads the results of one run or of merged runs in `dir`: the record, and the data from the CSV
/// file.
///
/// # Errors
/// Fails if a file is missing or invalid, or if the files belong to different runs.
pub fn load(dir: &Path) -> Result<Runs, StoreError> {
    let (text, is_merged) = read_record(dir)?;
    if !is_merged {
        let (record, data) = read::<Record>(dir, &text)?;
        return Ok(Runs::of(Results { record, data }));
    }
    let (merged, data) = read::<MergedRecord>(dir, &text)?;
    check_count(&dir.join(JSON_FILE), "runs", merged.runs.len())?;
    Runs::split(merged.runs, &data)
        .ok_or_else(|| StoreError::Mismatch { data: dir.join(CSV_FILE), record: dir.join(JSON_FILE) })
}

#[derive(Deserialize)]
struct Version {
    format: u32,
    runs: Option<IgnoredAny>,
}

/// Checks that a list of a record is not longer than any that this program writes.
fn check_count(path: &Path, what: &'static str, count: usize) -> Result<(), StoreError> {
    if count > LIST_MAX {
        return Err(StoreError::TooMany { path: path.to_owned(), what, limit: LIST_MAX });
    }
    Ok(())
}

/// Reads the text of `results.json`, and checks the version of its format. Returns the text and
/// whether it is the record of merged runs.
fn read_record(dir: &Path) -> Result<(Vec<u8>, bool), StoreError> {
    let path = dir.join(JSON_FILE);
    let text =
        read_bounded(&path, JSON_MAX).map_err(|source| StoreError::Read { path: path.clone(), source })?;
    match serde_json::from_slice(&text) {
        Ok(Version { format: FORMAT, runs }) => Ok((text, runs.is_some())),
        Ok(Version { format, .. }) => Err(StoreError::Format { path, found: format, known: FORMAT }),
        Err(source) => Err(StoreError::Record { path, source }),
    }
}

/// Reads the data in `dir`, which the record `text` describes.
fn read<R: DeserializeOwned>(dir: &Path, text: &[u8]) -> Result<(R, DataTable), StoreError> {
    let path = dir.join(JSON_FILE);
    let stored: Stored<R> =
        serde_json::from_slice(text).map_err(|source| StoreError::Record { path: path.clone(), source })?;
    check_count(&path, "columns", stored.columns.len())?;
    let from = dir.join(CSV_FILE);
    let text =
        read_bounded(&from, CSV_MAX).map_err(|source| StoreError::Read { path: from.clone(), source })?;
    let unreadable = |source| StoreError::Csv { path: from.clone(), source };
    let data = csv::read(&text, &stored.columns).map_err(unreadable)?;
    let unedited = csv::write(&data).map_err(unreadable)?;
    // The checksum does not depend on line ends, because other tools can change them.
    if data.rows().len() as u64 != stored.rows || check_sum(&unedited) != stored.check_sum {
        return Err(StoreError::Mismatch { data: from, record: path });
    }
    Ok((stored.record, data))
}

/// Returns the 64-bit FNV-1a hash, which detects mistakes but not forgery.
fn check_sum(text: &[u8]) -> String {
    let sum = text.iter().fold(0xcbf2_9ce4_8422_2325_u64, |sum, octet| {
        (sum ^ u64::from(*octet)).wrapping_mul(0x0100_0000_01b3)
    });
    format!("{sum:016x}")
}

pub(super) fn write_file(dir: &Path, name: &str, octets: &[u8]) -> Result<(), StoreError> {
    replace_file(dir, name, octets).map_err(|source| StoreError::Write { path: dir.join(name), source })
}

#[cfg(test)]
mod tests {
    use super::super::verification::tests::sample;
    use super::*;

    fn saved() -> (tempfile::TempDir, Results) {
        let folder = tempfile::tempdir().expect("a directory");
        let results = sample();
        save(folder.path(), &results).expect("saved");
        (folder, results)
    }

    fn fault(dir: &Path) -> StoreError {
        load(dir).expect_err("a fault")
    }

    #[test]
    fn all_files_hold_the_same_results() {
        let (folder, results) = saved();
        let mut names: Vec<String> = fs::read_dir(folder.path())
            .expect("a directory")
            .map(|entry| entry.expect("an entry").file_name().to_string_lossy().into_owned())
            .collect();
        names.sort();
        assert_eq!(names, ["report.html", "results.csv", "results.json", "results.parquet", "runs.csv"]);
        assert_eq!(load(folder.path()).expect("loaded"), Runs::of(results.clone()));
        let octets = fs::read(folder.path().join(PARQUET_FILE)).expect("a file");
        assert_eq!(parquet_file::tests::read(octets, results.data.columns()), results.data);
    }

    /// Removes what a format before identifiers did not have, with the last columns of each row.
    fn make_old(dir: &Path) {
        let path = dir.join(CSV_FILE);
        let text = fs::read_to_string(&path).expect("a file");
        let count = record::measurement_columns().len();
        let lines = text.lines().map(|line| line.rsplitn(count + 1, ',').last().expect("a field"));
        let old: String = lines.map(|line| format!("{line}\r\n")).collect();
        fs::write(&path, &old).expect("written");
        let path = dir.join(JSON_FILE);
        let text = fs::read_to_string(&path).expect("a record");
        let mut json: serde_json::Value = serde_json::from_str(&text).expect("JSON");
        json["check_sum"] = check_sum(old.as_bytes()).into();
        let columns = json["columns"].as_array_mut().expect("columns");
        columns.truncate(columns.len() - count);
        for name in ["run_id", "commit", "peers"] {
            json.as_object_mut().expect("an object").remove(name).expect("a field");
        }
        let kept = ["cpu", "cpus", "memory_kib", "system", "nonesuch", "rustc", "optimised"];
        json["machine"].as_object_mut().expect("an object").retain(|name, _| kept.contains(&name.as_str()));
        fs::write(&path, json.to_string()).expect("written");
        fs::remove_file(dir.join(RUNS_FILE)).expect("removed");
    }

    #[test]
    fn results_without_identifiers_are_still_read() {
        let (folder, results) = saved();
        make_old(folder.path());
        let runs = load(folder.path()).expect("loaded");
        let old = runs.first();
        assert_eq!((old.record.run.run_id.as_str(), old.record.run.machine.id.as_str()), ("", ""));
        assert_eq!(old.record.run.date, results.record.run.date);
        assert_eq!(old.data.rows().len(), results.data.rows().len());
        write_page(folder.path(), &runs).expect("a page");
        let page = fs::read_to_string(folder.path().join(PAGE_FILE)).expect("a page");
        assert!(page.contains("10.0") && !page.contains("Machine identifier"), "{page}");
    }

    #[test]
    fn the_table_of_runs_has_the_record() {
        let (folder, results) = saved();
        let text = fs::read_to_string(folder.path().join(RUNS_FILE)).expect("a file");
        let lines: Vec<&str> = text.lines().collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0].starts_with("run_id,machine_id,date,"), "{text}");
        let run = &results.record.run;
        assert!(lines[1].starts_with(&format!("{},{},{},", run.run_id, run.machine.id, run.date)), "{text}");
    }

    #[test]
    fn the_report_of_the_data_is_the_report_of_the_run() {
        let (folder, _) = saved();
        let page = folder.path().join(PAGE_FILE);
        let first = fs::read_to_string(&page).expect("a page");
        fs::remove_file(&page).expect("removed");
        write_page(folder.path(), &load(folder.path()).expect("loaded")).expect("written");
        assert_eq!(fs::read_to_string(&page).expect("a page"), first);
    }

    #[test]
    fn files_of_two_runs_are_not_taken_for_one() {
        let (folder, _) = saved();
        let path = folder.path().join(CSV_FILE);
        let text = fs::read_to_string(&path).expect("a file");
        let (lines, _) = text.trim_end().rsplit_once("\r\n").expect("lines");
        for other in [text.replacen("400000", "400001", 1), lines.to_owned()] {
            fs::write(&path, other).expect("written");
            let error = fault(folder.path());
            let StoreError::Mismatch { data, record } = &error else { panic!("{error}") };
            assert_eq!((data, record), (&path, &folder.path().join(JSON_FILE)));
        }
        // Line ends are not part of the data.
        fs::write(&path, text.replace("\r\n", "\n")).expect("written");
        assert!(load(folder.path()).is_ok());
    }

    #[test]
    fn damaged_and_missing_files_are_named() {
        let (folder, _) = saved();
        let json = folder.path().join(JSON_FILE);
        let text = fs::read_to_string(&json).expect("a record");
        fs::write(folder.path().join(CSV_FILE), "a,b\r\n").expect("written");
        let error = fault(folder.path());
        let StoreError::Csv { path, source: csv::CsvError::Columns { wanted } } = &error else {
            panic!("{error}")
        };
        assert!(path.ends_with(CSV_FILE) && wanted.starts_with("iteration,backend,"), "{error}");
        fs::remove_file(folder.path().join(CSV_FILE)).expect("removed");
        let error = fault(folder.path());
        assert!(matches!(&error, StoreError::Read { path, .. } if path.ends_with(CSV_FILE)), "{error}");
        fs::write(&json, text.replacen("\"format\": 1", "\"format\": 9", 1)).expect("written");
        let error = fault(folder.path());
        assert!(matches!(error, StoreError::Format { found: 9, known: 1, .. }), "{error}");
        fs::write(&json, &text[..text.len() / 2]).expect("written");
        let error = fault(folder.path());
        assert!(matches!(&error, StoreError::Record { path, .. } if *path == json), "{error}");
        fs::remove_file(&json).expect("removed");
        let error = fault(folder.path());
        assert!(matches!(&error, StoreError::Read { path, .. } if *path == json), "{error}");
    }

    #[test]
    fn a_folder_of_something_else_is_not_overwritten_unasked() {
        let (folder, results) = saved();
        let dir = folder.path();
        let name = &results.record.experiment.name;
        assert!(check_free(dir, name, false).is_ok());
        let occupant = |name: &str| {
            let error = check_free(dir, name, false).expect_err("refused");
            assert!(error.to_string().contains("--overwrite"), "{error}");
            match error {
                StoreError::Occupied { dir: occupied, what } if occupied == dir => what,
                other => panic!("{other}"),
            }
        };
        let what = occupant("another");
        assert!(what.contains("verification-benchmark") && !what.contains(JSON_FILE), "{what}");
        assert!(check_free(dir, "another", true).is_ok());
        fs::write(dir.join(JSON_FILE), "{}").expect("written");
        let what = occupant(name);
        assert!(what.contains(JSON_FILE), "{what}");
        fs::remove_file(dir.join(JSON_FILE)).expect("removed");
        let what = occupant(name);
        assert!(what.contains(CSV_FILE), "{what}");
        let empty = tempfile::tempdir().expect("a directory");
        assert!(check_free(empty.path(), name, false).is_ok());
        assert!(check_free(&empty.path().join("none"), name, false).is_ok());
    }

    #[test]
    fn a_failed_writing_leaves_nothing_beside() {
        let folder = tempfile::tempdir().expect("a directory");
        fs::create_dir(folder.path().join(CSV_FILE)).expect("a directory with the name of the file");
        let error = save(folder.path(), &sample()).expect_err("refused");
        assert!(matches!(&error, StoreError::Write { path, .. } if path.ends_with(CSV_FILE)), "{error}");
        assert!(!folder.path().join(JSON_FILE).exists());
        let left = fs::read_dir(folder.path()).expect("a directory").filter_map(Result::ok);
        assert!(left.into_iter().all(|entry| !entry.file_name().to_string_lossy().starts_with('.')));
    }
}
