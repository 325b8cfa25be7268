//! `nonesuch adoption` from outside: generated snapshots with known counts, real root zones, and bad input.

mod bad_input;
mod import;
mod root_zones;
mod truth;

use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Exit status and output of the program.
struct Ended {
    status: i32,
    stdout: String,
    stderr: String,
}

/// Runs the program under test.
#[track_caller]
fn adoption(arguments: &[&str]) -> Ended {
    let output =
        Command::new(env!("CARGO_BIN_EXE_nonesuch-adoption")).args(arguments).output().expect("the program");
    let text = |octets: Vec<u8>| String::from_utf8(octets).expect("UTF-8");
    Ended {
        status: output.status.code().expect("a status"),
        stdout: text(output.stdout),
        stderr: text(output.stderr),
    }
}

/// Runs the program, which must succeed.
#[track_caller]
fn done(arguments: &[&str]) -> Ended {
    let ended = adoption(arguments);
    assert_eq!(ended.status, 0, "{}{}", ended.stdout, ended.stderr);
    ended
}

/// Runs the program, which must reject its input; returns the error message.
#[track_caller]
fn rejected(arguments: &[&str]) -> String {
    let ended = adoption(arguments);
    assert_eq!(ended.status, 2, "{}{}", ended.stdout, ended.stderr);
    ended.stderr
}

/// Reports on snapshots; returns report.json.
#[track_caller]
fn report(snapshots: &Path, out: &Path) -> Value {
    let output = done(&["report", text(snapshots), "--out", text(out), "--json"]).stdout;
    serde_json::from_str(&output).expect("JSON")
}

fn text(path: &Path) -> &str {
    path.to_str().expect("UTF-8")
}

fn folder() -> tempfile::TempDir {
    tempfile::tempdir().expect("a directory")
}

/// A row of a table: cells by column.
type CsvRow = BTreeMap<String, String>;

/// Returns the rows of a table of a report.
fn table(out: &Path, name: &str) -> Vec<CsvRow> {
    let path = out.join("tables").join(format!("{name}.csv"));
    let mut reader = csv::Reader::from_path(&path).expect("a table");
    reader.deserialize().map(|row| row.expect("a row")).collect()
}

/// Returns the cell as a number.
#[track_caller]
fn number(row: &CsvRow, column: &str) -> u64 {
    row[column].parse().unwrap_or_else(|_| panic!("{column}: {row:?}"))
}

/// Returns the public data, or `None` if it is missing; the test is then skipped, with this message.
fn public_data(file: &str) -> Option<std::path::PathBuf> {
    let path = std::env::var_os("NONESUCH_DATA").map(|folder| Path::new(&folder).join(file));
    let found = path.filter(|path| path.exists());
    if found.is_none() {
        println!("SKIPPED: NONESUCH_DATA has no {file}");
    }
    found
}

#[test]
fn the_queries_are_written_with_the_script_for_spark() {
    let out = folder();
    done(&["sql", "--out", text(out.path())]);
    let script = fs::read_to_string(out.path().join("spark.py")).expect("a script");
    assert!(script.contains("SparkSession") && out.path().join("sql/results/status.sql").exists());
}
