//! Merging of runs: rows, records, duplicates and errors.

use super::super::verification::tests::sample;
use super::*;
use crate::record::tests::sample as sample_run;
use std::fs;

/// Writes results of a run on a machine to the directory `name`.
fn write(folder: &Path, name: &str, run_id: &str, machine_id: &str) -> PathBuf {
    let mut results = sample();
    results.record.run = sample_run(run_id, machine_id);
    let mut data = DataTable::new(results.data.columns().to_vec());
    for row in results.data.rows() {
        let cells = row.iter().zip(results.data.columns()).map(|(cell, column)| match column.name.as_str() {
            "run_id" => run_id.into(),
            "machine_id" => machine_id.into(),
            _ => cell.clone(),
        });
        data.push(cells.collect()).expect("a row");
    }
    let dir = folder.join(name);
    store::save(&dir, &Results { data, ..results }).expect("saved");
    dir
}

/// Edits the record in a directory.
fn edit(dir: &Path, change: impl FnOnce(&mut serde_json::Value)) {
    let path = dir.join(store::JSON_FILE);
    let mut json = serde_json::from_slice(&fs::read(&path).expect("a record")).expect("JSON");
    change(&mut json);
    fs::write(&path, json.to_string()).expect("written");
}

fn ids(runs: &Runs) -> Vec<&str> {
    runs.results().map(|results| results.record.run.run_id.as_str()).collect()
}

#[test]
fn runs_are_joined_once_and_ordered_by_machine() {
    let folder = tempfile::tempdir().expect("a directory");
    let dirs = [("a", "run-3", "m-1"), ("b", "run-2", "m-2"), ("c", "run-1", "m-1"), ("d", "run-2", "m-2")]
        .map(|(name, run, machine)| write(folder.path(), name, run, machine));
    let out = folder.path().join("out");
    let merged = merge(&dirs, &out).expect("merged");
    assert_eq!(ids(&merged), ["run-1", "run-3", "run-2"]);
    store::save_runs(&out, &merged).expect("saved");
    let loaded = store::load_runs(&out).expect("loaded");
    assert_eq!(loaded, merged);
    let rows = sample().data.rows().len();
    assert_eq!(loaded.data().expect("rows").rows().len(), 3 * rows);
    assert!(loaded.results().all(|results| results.data.rows().len() == rows));
    let table = fs::read_to_string(out.join(store::RUNS_FILE)).expect("a table");
    assert_eq!(table.lines().count(), 4);
    // Merged results can be merged again.
    let name = &merged.first().record.experiment.name;
    assert!(store::check_free_for_runs(&out, name, false).is_ok());
    let single = store::check_free_for_runs(&dirs[0], name, false);
    assert!(matches!(&single, Err(StoreError::Occupied { dir, .. }) if *dir == dirs[0]), "{single:?}");
    let again = merge(&[out, write(folder.path(), "e", "run-4", "m-3")], &folder.path().join("more"));
    assert_eq!(ids(&again.expect("merged")), ["run-1", "run-3", "run-2", "run-4"]);
}

#[test]
fn the_report_shows_machines_side_by_side() {
    let folder = tempfile::tempdir().expect("a directory");
    let dirs = [write(folder.path(), "a", "run-1", "m-1"), write(folder.path(), "b", "run-2", "m-2")];
    let merged = merge(&dirs, &folder.path().join("out")).expect("merged");
    let report = merged.report().expect("a report");
    let line = report.text.lines().find(|line| line.contains("MAYO2")).expect("a line");
    let figures: Vec<&str> = line.split_ascii_whitespace().rev().take(2).collect();
    assert_eq!(figures, ["6,000", "6,000"], "{}", report.text);
    for part in ["A CPU (m-1)", "A CPU (m-2)", "(run-1)", "(run-2)"] {
        assert!(report.text.contains(part), "{part}: {}", report.text);
    }
    assert!(report.summary["run-2"]["lines"].is_array());
    let page = merged.page().expect("a page");
    assert!(page.contains("2 runs on 2 machines") && page.contains("A CPU (m-2)"), "{page}");
    assert_eq!(page.matches(">The data</h2>").count(), 1);
    assert!(!page.contains("different parameters"));
}

#[test]
fn other_parameters_are_noted() {
    let folder = tempfile::tempdir().expect("a directory");
    let dirs = [write(folder.path(), "a", "run-1", "m-1"), write(folder.path(), "b", "run-2", "m-2")];
    edit(&dirs[1], |json| json["experiment"]["parameters"]["seconds"] = 0.5.into());
    let merged = merge(&dirs, &folder.path().join("out")).expect("merged");
    assert!(merged.page().expect("a page").contains("different parameters"));
}

#[test]
fn runs_that_do_not_match_are_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let out = folder.path().join("out");
    let first = write(folder.path(), "first", "run-1", "m-1");
    let with = |change: fn(&mut serde_json::Value)| {
        let other = write(folder.path(), "other", "run-2", "m-2");
        edit(&other, change);
        merge(&[first.clone(), other], &out).expect_err("refused")
    };
    let error = with(|json| json["experiment"]["name"] = "another".into());
    assert!(matches!(&error, MergeError::Experiment { found, .. } if found == "another"), "{error}");
    let error = with(|json| json["machine"]["nonesuch"] = "9.0".into());
    assert!(matches!(&error, MergeError::Version { found, .. } if found == "9.0"), "{error}");
    let error = with(|json| json["columns"][0]["meaning"] = "something else".into());
    assert!(matches!(&error, MergeError::Columns { .. }), "{error}");
    let error = with(|json| json["run_id"] = "".into());
    assert!(matches!(&error, MergeError::NoIdentifier { dir } if dir.ends_with("other")), "{error}");
    assert!(matches!(merge(&[], &out), Err(MergeError::Nothing)));
    let error = merge(std::slice::from_ref(&first), &first).expect_err("refused");
    assert!(matches!(&error, MergeError::Overwrites { dir } if *dir == first), "{error}");
    assert!(matches!(merge(&[folder.path().join("none")], &out), Err(MergeError::Store(_))));
}

#[test]
fn a_row_of_an_unknown_run_is_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let dirs = [write(folder.path(), "a", "run-1", "m-1"), write(folder.path(), "b", "run-2", "m-2")];
    let out = folder.path().join("out");
    store::save_runs(&out, &merge(&dirs, &out).expect("merged")).expect("saved");
    edit(&out, |json| json["runs"][0]["run_id"] = "run-9".into());
    assert!(matches!(store::load_runs(&out), Err(StoreError::Mismatch { .. })));
}
