//! The report finds the counts of the generated snapshots.

use super::{CsvRow, done, folder, number, report, table, text};
use serde_json::Value;
use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

/// Domains of the default test: with daily snapshots for ten years, a million rows.
const DOMAINS: &str = "330";

type Key = (String, String);

/// Returns the rows of a table by source and date.
fn by_snapshot(out: &Path, name: &str) -> BTreeMap<Key, Vec<CsvRow>> {
    let mut rows: BTreeMap<Key, Vec<CsvRow>> = BTreeMap::new();
    for row in table(out, name) {
        rows.entry((row["source"].clone(), row["date"].clone())).or_default().push(row);
    }
    rows
}

/// Returns the counts of the rows of a snapshot, by the cell of a column.
fn counts(rows: Option<&Vec<CsvRow>>, by: &str, column: &str) -> BTreeMap<String, u64> {
    let mut counts = BTreeMap::new();
    for row in rows.into_iter().flatten() {
        *counts.entry(row[by].clone()).or_default() += number(row, column);
    }
    counts.retain(|_, count| *count > 0);
    counts
}

/// Returns the counts of an object of the truth.
fn expected(truth: &Value) -> BTreeMap<String, u64> {
    let object = truth.as_object().expect("an object");
    object.iter().map(|(name, count)| (name.clone(), count.as_u64().expect("a count"))).collect()
}

/// Asserts that the tables of a report have the counts of the truth; returns the number of compared snapshots.
fn compare(snapshots: &Path, out: &Path) -> usize {
    let truth = fs::read(snapshots.join("truth.json")).expect("the truth");
    let truth: Value = serde_json::from_slice(&truth).expect("JSON");
    let tables: BTreeMap<&str, _> = ["status", "algorithms", "denial", "nsec3", "operators", "ranks"]
        .map(|name| (name, by_snapshot(out, name)))
        .into();
    let truths = truth["snapshots"].as_array().expect("snapshots");
    for snapshot in truths {
        let key: Key =
            ["source", "date"].map(|name| snapshot[name].as_str().expect("a text").to_owned()).into();
        let [status] = &tables["status"][&key][..] else { panic!("{key:?}") };
        for column in ["domains", "signed", "dnskey_without_ds", "unsigned", "unknown"] {
            assert_eq!(Some(number(status, column)), snapshot[column].as_u64(), "{key:?} {column}");
        }
        let known = number(status, "domains") - number(status, "unknown");
        let share: f64 = status["signed_share"].parse().expect("a share");
        assert!((share - number(status, "signed") as f64 / known as f64).abs() < 1e-15, "{key:?}");
        let found = |table: &str, by: &str, column: &str| counts(tables[table].get(&key), by, column);
        assert_eq!(found("algorithms", "algorithm", "domains"), expected(&snapshot["algorithms"]), "{key:?}");
        assert_eq!(found("denial", "denial", "domains"), expected(&snapshot["denial"]), "{key:?}");
        assert_eq!(found("nsec3", "iterations", "domains"), expected(&snapshot["iterations"]), "{key:?}");
        let opt_out = found("nsec3", "opt_out", "domains").get("true").copied().unwrap_or(0);
        assert_eq!(Some(opt_out), snapshot["opt_out"].as_u64(), "{key:?}");
        let mut operators = found("operators", "operator", "signed");
        operators.remove("(others)");
        assert_eq!(operators, expected(&snapshot["operators"]), "{key:?}");
        compare_ranks(snapshot, tables["ranks"].get(&key));
    }
    truths.len()
}

fn compare_ranks(snapshot: &Value, rows: Option<&Vec<CsvRow>>) {
    let classes = snapshot["ranks"].as_object().expect("an object");
    assert_eq!(rows.map_or(0, Vec::len), classes.len());
    for row in rows.into_iter().flatten() {
        let expected = serde_json::json!([number(row, "domains"), number(row, "signed")]);
        assert_eq!(classes[&row["rank_up_to"]], expected);
    }
}

#[test]
fn a_report_of_a_million_rows_has_the_generated_counts() {
    let folder = folder();
    let (snapshots, out) = (folder.path().join("snapshots"), folder.path().join("report"));
    done(&["generate", "--out", text(&snapshots), "--domains", DOMAINS]);
    let json = report(&snapshots, &out);
    assert!(json["input"]["rows"].as_u64().expect("rows") >= 1_000_000, "{}", json["input"]);
    for fault in ["skipped", "gaps", "unknown_algorithms"] {
        assert_eq!(json["input"][fault], serde_json::json!([]), "{fault}");
    }
    // Each first day of a month and the last day, for six sources.
    assert_eq!(compare(&snapshots, &out), 121 * 6);
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    for part in ["Signed domains", "ECDSAP256SHA256", "cdn.example", "RFC 9276", "rank 1 to 1,000"] {
        assert!(page.contains(part), "{part}");
    }
}

/// What the model says must be visible in the shares, whatever the counts are.
#[test]
fn the_report_shows_the_events_of_the_model() {
    let folder = folder();
    let (snapshots, out) = (folder.path().join("snapshots"), folder.path().join("report"));
    done(&["generate", "--out", text(&snapshots), "--domains", "20000", "--every", "365"]);
    report(&snapshots, &out);
    let algorithms = by_snapshot(&out, "algorithms");
    let share = |source: &str, date: &str, number: &str| {
        let rows = algorithms.get(&(source.to_owned(), date.to_owned()));
        let row = rows.into_iter().flatten().find(|row| row["algorithm"] == number);
        row.map_or(0.0, |row| row["share"].parse::<f64>().expect("a share"))
    };
    let [first, last] = ["2015-01-01", "2024-12-29"];
    // ECDSA: none at the start, more than half of .com at the end.
    assert!(share("com", first, "13") == 0.0 && share("com", last, "13") > 0.5);
    // The early adopters of .nl and .se migrate late and completely.
    assert!(share("nl", first, "8") > 0.8 && share("nl", last, "13") > 0.8);
    assert!(
        share("se", first, "5") > 0.8
            && share("se", "2017-12-31", "5") > 0.8
            && share("se", last, "5") < 0.01
    );
    // Popular domains are signed more often.
    let ranks = table(&out, "ranks");
    let signed = |class: &str| -> f64 {
        let row = ranks.iter().find(|row| row["date"] == last && row["rank_up_to"] == class);
        row.expect("a class")["signed_share"].parse().expect("a share")
    };
    assert!(signed("100000") > signed("1000000"));
}

#[test]
fn the_same_seed_generates_the_same_files_on_any_number_of_threads() {
    let folder = folder();
    let generate = |name: &str, more: &[&str]| {
        let out = folder.path().join(name);
        let arguments =
            ["generate", "--out", text(&out), "--domains", "200", "--every", "30", "--to", "2016-12-31"];
        done(&[&arguments[..], more].concat());
        let mut paths: Vec<PathBuf> =
            fs::read_dir(&out).expect("files").map(|entry| entry.expect("a file").path()).collect();
        paths.sort();
        paths.into_iter().map(|path| fs::read(path).expect("a file")).collect::<Vec<_>>()
    };
    let one = generate("one", &["--threads", "1"]);
    assert!(one == generate("three", &["--threads", "3"]));
    assert!(one != generate("other", &["--seed", "2"]));
}

/// For `just adoption-large`: the directory of snapshots and report is in an environment variable.
#[test]
#[ignore = "compares the report in NONESUCH_ADOPTION_REPORT"]
fn a_given_report_has_the_generated_counts() {
    let folder = PathBuf::from(std::env::var_os("NONESUCH_ADOPTION_REPORT").expect("a directory"));
    println!(
        "{} snapshots have the generated counts",
        compare(&folder.join("snapshots"), &folder.join("report"))
    );
}
