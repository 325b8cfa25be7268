//! Merging of runs: rows, records, duplicates and errors.

use super::super::verification::tests::sample;
use super::*;
use crate::record::tests::sample as sample_run;
use std::fs::{self, File};
use std::os::unix::fs::symlink;
use std::process::Command;

/// Writes results of a run on a machine to the directory `name`.
fn write(folder: &Path, name: &str, run_id: &str, machine_id: &str) -> PathBuf {
    write_times(folder, name, [run_id, machine_id], 1)
}

/// As [`write`], with `factor` times as many operations.
fn write_times(folder: &Path, name: &str, [run_id, machine_id]: [&str; 2], factor: i64) -> PathBuf {
    let mut results = sample();
    results.record.run = sample_run(run_id, machine_id);
    let mut data = DataTable::new(results.data.columns().to_vec());
    for row in results.data.rows() {
        let cells = row.iter().zip(results.data.columns()).map(|(cell, column)| match column.name.as_str() {
            "run_id" => run_id.into(),
            "machine_id" => machine_id.into(),
            "operations" => (factor * cell.as_i64().expect("a number")).into(),
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
    let loaded = store::load(&out).expect("loaded");
    assert_eq!(loaded, merged);
    let rows = sample().data.rows().len();
    assert_eq!(loaded.data().expect("rows").rows().len(), 3 * rows);
    assert!(loaded.results().all(|results| results.data.rows().len() == rows));
    let table = fs::read_to_string(out.join(store::RUNS_FILE)).expect("a table");
    assert_eq!(table.lines().count(), 4);
    // Merged results can be merged again.
    let again = merge(&[out, write(folder.path(), "e", "run-4", "m-3")], &folder.path().join("more"));
    assert_eq!(ids(&again.expect("merged")), ["run-1", "run-3", "run-2", "run-4"]);
}

#[test]
fn results_are_replaced_only_by_results_with_the_same_runs() {
    let folder = tempfile::tempdir().expect("a directory");
    let dirs = ["a", "b", "c"].map(|name| write(folder.path(), name, &format!("run-{name}"), "m-1"));
    let out = folder.path().join("out");
    let of = |dirs: &[PathBuf]| merge(dirs, &folder.path().join("none")).expect("merged");
    store::save_runs(&out, &of(&dirs[..2])).expect("saved");
    let occupant = |dir: &Path, dirs: &[PathBuf]| match store::check_free_for_runs(dir, &of(dirs), false) {
        Err(StoreError::Occupied { dir: occupied, what }) if occupied == dir => what,
        other => panic!("{other:?}"),
    };
    assert!(store::check_free_for_runs(&out, &of(&dirs), false).is_ok());
    assert_eq!(occupant(&out, &dirs[1..]), "merged results with other runs");
    assert!(store::check_free_for_runs(&out, &of(&dirs[1..]), true).is_ok());
    assert_eq!(occupant(&dirs[0], &dirs), "the results of a single run");
    // A record of another version of the format is not replaced either.
    edit(&dirs[2], |json| json["format"] = 9.into());
    assert_eq!(occupant(&dirs[2], &dirs[..2]), "the results of a single run");
    // A run does not replace merged results.
    let name = &of(&dirs[..2]).first().record.experiment.name.clone();
    let refused = store::check_free(&out, name, false);
    assert!(
        matches!(&refused, Err(StoreError::Occupied { what, .. }) if what.contains("merged")),
        "{refused:?}"
    );
    assert!(store::check_free(&out, name, true).is_ok() && store::check_free(&dirs[0], name, false).is_ok());
}

#[test]
fn the_report_shows_machines_side_by_side() {
    let folder = tempfile::tempdir().expect("a directory");
    let second = write_times(folder.path(), "b", ["run-2", "m-2"], 2);
    let dirs = [write(folder.path(), "a", "run-1", "m-1"), second];
    let merged = merge(&dirs, &folder.path().join("out")).expect("merged");
    let report = merged.report().expect("a report");
    let line = report.text.lines().find(|line| line.contains("MAYO2")).expect("a line");
    let figures: Vec<&str> = line.split_ascii_whitespace().rev().take(2).collect();
    assert_eq!(figures, ["12,000", "6,000"], "{}", report.text);
    assert!(report.text.contains("Operations per second, median."), "{}", report.text);
    assert!(
        report.text.contains("A CPU (m-2), 2026-03-01T12:00:00Z: Left out: x86-64-v2."),
        "{}",
        report.text
    );
    for part in ["A CPU (m-1)", "A CPU (m-2)", "(run-1)", "(run-2)"] {
        assert!(report.text.contains(part), "{part}: {}", report.text);
    }
    assert!(report.summary["run-2"]["lines"].is_array());
    let page = merged.page().expect("a page");
    assert!(page.contains("Runs: 2; machines: 2. The first run: ") && page.contains("A CPU (m-2)"), "{page}");
    assert_eq!(page.matches(">The data</h2>").count(), 1);
    assert!(!page.contains("different parameters") && !page.contains("different commits"));
    // The common last section does not state the rows of one run.
    assert!(!page.contains("number of rows"), "{page}");
}

#[test]
fn differences_of_the_runs_are_noted() {
    let noted = |change: fn(&mut serde_json::Value), expected: &str| {
        let folder = tempfile::tempdir().expect("a directory");
        let dirs = [write(folder.path(), "a", "run-1", "m-1"), write(folder.path(), "b", "run-2", "m-2")];
        edit(&dirs[1], change);
        let merged = merge(&dirs, &folder.path().join("out")).expect("merged");
        assert!(merged.page().expect("a page").contains(expected), "{expected}");
        let text = merged.report().expect("a report").text;
        assert!(text.contains(expected), "{expected}: {text}");
        assert!(merged.notes()[0].contains(expected), "{:?}", merged.notes());
    };
    noted(|json| json["experiment"]["parameters"]["seconds"] = 0.5.into(), "different parameters");
    let commits = "different commits or builds: v0.1.0-3-gabc, v0.1.0-4-gdef.";
    noted(|json| json["commit"] = "v0.1.0-4-gdef".into(), commits);
    let builds = "v0.1.0-3-gabc, v0.1.0-3-gabc (with debug assertions).";
    noted(|json| json["machine"]["optimised"] = false.into(), builds);
}

#[test]
fn derived_values_with_a_title_are_compared() {
    let lines = |ratio: f64| {
        let median =
            serde_json::json!({ "name": "a", "times": { "median": 2.0 }, "ratio": ratio, "none": null });
        BTreeMap::from([(vec!["a".to_owned()], Value::from(minijinja::value::Serde(&median)))])
    };
    let runs = [lines(0.5), BTreeMap::new(), lines(4.0)];
    let row = |name| row(&["a".to_owned()], name, &runs);
    assert_eq!(row("ratio").expect("a row"), ["a", "0.500", "–", "4.00"]);
    assert_eq!(row("times").expect("a row"), ["a", "2.00", "–", "2.00"]);
    assert_eq!((row("none"), row("missing")), (None, None));
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
    let error = with(|json| {
        json["experiment"]["method"] = "echo-floor".into();
        json["experiment"]["parameters"] = serde_json::json!({});
    });
    assert!(matches!(&error, MergeError::Method { found: "echo-floor", .. }), "{error}");
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

/// Returns the error of merging the results in `good` with a copy of them after `damage`.
fn fault(good: &Path, damage: impl FnOnce(&Path)) -> MergeError {
    let folder = tempfile::tempdir().expect("a directory");
    let copy = folder.path().join("b");
    fs::create_dir(&copy).expect("a directory");
    for name in [store::JSON_FILE, store::CSV_FILE] {
        fs::copy(good.join(name), copy.join(name)).expect("copied");
    }
    damage(&copy);
    let error = merge(&[good.to_owned(), copy], &folder.path().join("out")).expect_err("damaged");
    // The error names the file and what to do, in a text of limited length.
    let text = error.to_string();
    assert!(text.contains("/b/results."), "{text}");
    assert!(
        ["name the", "run the experiment again", "merge only"].iter().any(|remedy| text.contains(remedy))
    );
    assert!(text.len() < 2000 && !text.contains('\u{1b}'), "{text}");
    error
}

#[test]
fn files_that_would_block_or_fill_the_memory_are_not_read() {
    let folder = tempfile::tempdir().expect("a directory");
    let good = write(folder.path(), "a", "run-1", "m-1");
    for name in [store::JSON_FILE, store::CSV_FILE] {
        let replace = |with: fn(&Path)| {
            fault(&good, |dir| {
                fs::remove_file(dir.join(name)).expect("removed");
                with(&dir.join(name));
            })
        };
        let kinds = [
            replace(|path| assert!(Command::new("mkfifo").arg(path).status().expect("started").success())),
            replace(|path| symlink("/dev/zero", path).expect("linked")),
            replace(|path| symlink(path, path).expect("linked")),
            replace(|path| fs::create_dir(path).expect("created")),
            // A file without blocks.
            replace(|path| File::create(path).and_then(|file| file.set_len(1 << 40)).expect("created")),
            replace(|_| ()),
        ]
        .map(|error| match error {
            MergeError::Store(StoreError::Read { source, .. }) => source.kind(),
            other => panic!("{other}"),
        });
        use std::io::ErrorKind::{FileTooLarge, InvalidInput, NotFound};
        assert_eq!(kinds[0..2], [InvalidInput; 2]);
        assert_eq!(format!("{:?}", kinds[2]), "FilesystemLoop");
        assert_eq!(kinds[3..], [InvalidInput, FileTooLarge, NotFound]);
    }
}

#[test]
fn damaged_tables_are_named_with_the_line() {
    let folder = tempfile::tempdir().expect("a directory");
    let good = write(folder.path(), "a", "run-1", "m-1");
    let with = |change: fn(&str) -> String| {
        fault(&good, |dir| {
            let path = dir.join(store::CSV_FILE);
            let text = fs::read_to_string(&path).expect("a table");
            fs::write(&path, change(&text)).expect("written");
        })
    };
    let errors = [
        with(|text| text.replacen("400000", "NaN", 1)),
        with(|text| text.replacen("400000", &format!("\u{1b}[2J{}", "9".repeat(1_000_000)), 1)),
        with(|text| text.replacen(",400000", &",".repeat(1_000_000), 1)),
        with(|text| text.replacen('\n', &",x".repeat(1_000_000), 1)),
        with(|text| text.replacen("400000", "\"", 1)),
        with(|_| String::new()),
    ];
    for error in errors {
        assert!(matches!(error, MergeError::Store(StoreError::Csv { .. })), "{error}");
    }
    let error = fault(&good, |dir| fs::write(dir.join(store::CSV_FILE), [0xff; 100]).expect("written"));
    assert!(matches!(error, MergeError::Store(StoreError::Csv { .. })), "{error}");
}

#[test]
fn damaged_records_are_errors() {
    let folder = tempfile::tempdir().expect("a directory");
    let good = write(folder.path(), "a", "run-1", "m-1");
    let with = |change: fn(&mut serde_json::Value)| fault(&good, |dir| edit(dir, change));
    let column =
        |number: u32| serde_json::json!({ "name": format!("c{number}"), "kind": "text", "meaning": "x" });
    let error = fault(&good, |dir| edit(dir, |json| json["columns"] = (0..100_000).map(column).collect()));
    assert!(matches!(error, MergeError::Store(StoreError::TooMany { what: "columns", .. })), "{error}");
    let nested = "[".repeat(1_000_000);
    let error = fault(&good, |dir| fs::write(dir.join(store::JSON_FILE), nested).expect("written"));
    assert!(matches!(error, MergeError::Store(StoreError::Record { .. })), "{error}");
    let error = with(|json| json["columns"][0]["name"] = "\u{1b}[2J".repeat(100_000).into());
    assert!(matches!(error, MergeError::Store(StoreError::Csv { .. })), "{error}");
    for change in [
        |json: &mut serde_json::Value| json["rows"] = (-1).into(),
        |json: &mut serde_json::Value| json["machine"] = "a machine".into(),
        |json: &mut serde_json::Value| json["experiment"]["method"] = "none".into(),
        |json: &mut serde_json::Value| *json = serde_json::Value::Null,
    ] {
        let error = with(change);
        assert!(matches!(error, MergeError::Store(StoreError::Record { .. })), "{error}");
    }
    let error = with(|json| json["format"] = 2.into());
    assert!(matches!(error, MergeError::Store(StoreError::Format { found: 2, .. })), "{error}");
}

#[test]
fn one_run_with_two_results_is_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let dirs = [write(folder.path(), "a", "run-1", "m-1"), write(folder.path(), "b", "run-1", "m-1")];
    let out = folder.path().join("out");
    assert_eq!(ids(&merge(&dirs, &out).expect("merged")), ["run-1"]);
    edit(&dirs[1], |json| json["seed"] = 77.into());
    let error = merge(&dirs, &out).expect_err("refused");
    assert!(matches!(&error, MergeError::Conflict { run_id, .. } if run_id == "run-1"), "{error}");
    // Merged results with two records of one run.
    let second = write(folder.path(), "c", "run-2", "m-1");
    store::save_runs(&out, &merge(&[dirs[0].clone(), second], &out).expect("merged")).expect("saved");
    edit(&out, |json| json["runs"][0]["run_id"] = "run-2".into());
    assert!(matches!(store::load(&out), Err(StoreError::Mismatch { .. })));
    edit(&out, |json| json["runs"] = vec![json["runs"][0].clone(); 1001].into());
    assert!(matches!(store::load(&out), Err(StoreError::TooMany { what: "runs", .. })));
}

#[test]
fn a_row_of_an_unknown_run_is_refused() {
    let folder = tempfile::tempdir().expect("a directory");
    let dirs = [write(folder.path(), "a", "run-1", "m-1"), write(folder.path(), "b", "run-2", "m-2")];
    let out = folder.path().join("out");
    store::save_runs(&out, &merge(&dirs, &out).expect("merged")).expect("saved");
    edit(&out, |json| json["runs"][0]["run_id"] = "run-9".into());
    assert!(matches!(store::load(&out), Err(StoreError::Mismatch { .. })));
}
