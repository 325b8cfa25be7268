//! Bad input is named, and skipped or rejected.

use super::{adoption, done, folder, number, rejected, report, table, text};
use datafusion::arrow::array::{
    ArrayRef, BooleanArray, Date32Array, Int32Array, Int64Array, RecordBatch, StringArray, new_null_array,
};
use datafusion::arrow::datatypes::{DataType, Field, Schema};
use datafusion::parquet::arrow::ArrowWriter;
use serde_json::Value;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// A day: 2020-01-01.
const DAY: i32 = 18_262;

/// A row: source, day, domain, and algorithms of the DNSKEY and DS records.
type TestRow<'a> = (&'a str, Option<i32>, &'a str, &'a str, &'a str);

/// Returns the columns of rows, in the order of the documentation.
fn columns(rows: &[TestRow<'_>]) -> Vec<(&'static str, ArrayRef)> {
    let texts = |text: fn(&TestRow<'_>) -> String| -> ArrayRef {
        Arc::new(StringArray::from_iter_values(rows.iter().map(text)))
    };
    let nulls = |kind: &DataType| new_null_array(kind, rows.len());
    vec![
        ("source", texts(|row| row.0.to_owned())),
        ("date", Arc::new(Date32Array::from_iter(rows.iter().map(|row| row.1)))),
        ("domain", texts(|row| row.2.to_owned())),
        ("dnskey_algorithms", texts(|row| row.3.to_owned())),
        ("ds_algorithms", texts(|row| row.4.to_owned())),
        ("ds_digests", texts(|row| if row.4.is_empty() { String::new() } else { "2".to_owned() })),
        ("operator", nulls(&DataType::Utf8)),
        ("denial", nulls(&DataType::Utf8)),
        ("nsec3_iterations", nulls(&DataType::Int32)),
        ("nsec3_salt", nulls(&DataType::Utf8)),
        ("nsec3_opt_out", nulls(&DataType::Boolean)),
        ("rank", nulls(&DataType::Int32)),
    ]
}

fn write(path: &Path, columns: Vec<(&'static str, ArrayRef)>) {
    let fields = columns.iter().map(|(name, column)| Field::new(*name, column.data_type().clone(), true));
    let schema = Arc::new(Schema::new(fields.collect::<Vec<_>>()));
    let columns = columns.into_iter().map(|(_, column)| column).collect();
    let batch = RecordBatch::try_new(Arc::clone(&schema), columns).expect("a batch");
    let mut writer =
        ArrowWriter::try_new(File::create(path).expect("a file"), schema, None).expect("a writer");
    writer.write(&batch).expect("written");
    writer.close().expect("closed");
}

fn write_rows(directory: &Path, name: &str, rows: &[TestRow<'_>]) -> PathBuf {
    fs::create_dir_all(directory).expect("a directory");
    let path = directory.join(name);
    write(&path, columns(rows));
    path
}

/// Rows of a snapshot without faults.
fn good(day: i32) -> [TestRow<'static>; 3] {
    [
        ("com", Some(day), "a.com", "13", "13"),
        ("com", Some(day), "b.com", "8", ""),
        ("com", Some(day), "c.com", "", ""),
    ]
}

/// Returns the reasons of skipped snapshots.
fn skipped(json: &Value) -> Vec<(String, String)> {
    let skipped = json["input"]["skipped"].as_array().expect("a list");
    let text = |snapshot: &Value, name: &str| snapshot[name].as_str().expect("a text").to_owned();
    skipped.iter().map(|snapshot| (text(snapshot, "date"), text(snapshot, "reason"))).collect()
}

/// Returns domains and signed domains of each snapshot.
fn status(out: &Path) -> Vec<(String, u64, u64)> {
    let rows = table(out, "status");
    rows.iter().map(|row| (row["date"].clone(), number(row, "domains"), number(row, "signed"))).collect()
}

#[test]
fn files_that_cannot_be_used_are_all_named() {
    let folder = folder();
    let input = folder.path().join("in");
    let good_file = write_rows(&input, "good.parquet", &good(DAY));
    let octets = fs::read(&good_file).expect("a file");
    fs::write(input.join("cut.parquet"), &octets[..octets.len() / 2]).expect("written");
    fs::write(input.join("end.parquet"), &octets[octets.len() / 2..]).expect("written");
    fs::write(input.join("text.parquet"), "no Parquet").expect("written");
    fs::write(input.join("empty.parquet"), "").expect("written");
    let mut few = columns(&good(DAY));
    few.retain(|(name, _)| !["rank", "operator"].contains(name));
    write(&input.join("few.parquet"), few);
    let mut wrong = columns(&good(DAY));
    wrong[11].1 = Arc::new(Int64Array::from(vec![1, 2, 3]));
    write(&input.join("wrong.parquet"), wrong);
    write_rows(&input, "null.parquet", &[("com", None, "a.com", "", "")]);
    let error = rejected(&["report", text(&input), "--out", text(&folder.path().join("out"))]);
    for part in [
        "cut.parquet: is not a Parquet file, or is cut",
        "end.parquet: is",
        "text.parquet: is not a Parquet file",
        "empty.parquet: is not a Parquet file",
        "few.parquet: the columns operator, rank are missing",
        "wrong.parquet: the column rank has the type Int64, not Int32",
        "null.parquet: row 1 has no date",
    ] {
        assert!(error.contains(part), "{part}: {error}");
    }
    assert!(!error.contains("good.parquet"), "{error}");
}

/// Every octet of a small file is damaged in turn. The report is rejected, or has no other counts than
/// the damaged rows have; it never ends with a panic.
#[test]
fn damaged_files_never_cause_a_panic() {
    let folder = folder();
    let good_file = write_rows(&folder.path().join("good"), "good.parquet", &good(DAY));
    let octets = fs::read(&good_file).expect("a file");
    let (damaged, out) = (folder.path().join("damaged.parquet"), folder.path().join("out"));
    for place in (0..octets.len()).step_by(octets.len() / 40) {
        let mut copy = octets.clone();
        copy[place] ^= 0x55;
        fs::write(&damaged, copy).expect("written");
        let ended = adoption(&["report", text(&damaged), "--out", text(&out)]);
        assert!([0, 2].contains(&ended.status), "octet {place}: {}", ended.stderr);
        assert!(
            ended.status == 0 || ended.stderr.contains("nonesuch: error: "),
            "octet {place}: {}",
            ended.stderr
        );
    }
}

#[test]
fn snapshots_with_invalid_rows_are_skipped_with_the_reason() {
    let folder = folder();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    write_rows(&input, "1.parquet", &good(DAY));
    let mut invalid = good(DAY + 1);
    invalid[1].3 = "8,x";
    invalid[2].2 = "C.com";
    write_rows(&input, "2.parquet", &invalid);
    write_rows(&input, "3.parquet", &good(DAY + 2));
    let json = report(&input, &out);
    let [(date, reason)] = &skipped(&json)[..] else { panic!("{json}") };
    assert_eq!(date, "2020-01-02");
    for part in
        ["2 invalid or repeated rows", "row 2, domain \"b.com\"", "\"8,x\"", "row 3, domain \"C.com\""]
    {
        assert!(reason.contains(part), "{part}: {reason}");
    }
    assert_eq!(status(&out), [("2020-01-01".to_owned(), 3, 1), ("2020-01-03".to_owned(), 3, 1)]);
    assert!(fs::read_to_string(out.join("report.html")).expect("a page").contains("snapshot skipped"));
}

#[test]
fn repeated_domains_are_found_in_any_order_and_in_several_files() {
    let folder = folder();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    let [a, b, c] = good(DAY);
    let on = |day: i32, row: TestRow<'static>| (row.0, Some(day), row.2, row.3, row.4);
    // In order, with one domain twice.
    write_rows(&input, "1.parquet", &[a, b, b, c]);
    // Not in order, with one domain twice.
    write_rows(&input, "2.parquet", &[a, b, a].map(|row| on(DAY + 1, row)));
    // Not in order, each domain once.
    write_rows(&input, "3.parquet", &[c, a, b].map(|row| on(DAY + 2, row)));
    // In two files, each domain once, and with one domain in both.
    write_rows(&input, "4.parquet", &[on(DAY + 3, a), on(DAY + 4, a)]);
    write_rows(&input, "5.parquet", &[on(DAY + 3, b), on(DAY + 4, a)]);
    let json = report(&input, &out);
    let skipped = skipped(&json);
    let dates: Vec<&str> = skipped.iter().map(|(date, _)| date.as_str()).collect();
    assert_eq!(dates, ["2020-01-01", "2020-01-02", "2020-01-05"], "{skipped:?}");
    assert!(skipped[0].1.contains("more than once"), "{skipped:?}");
    assert!(skipped[1].1.contains("1 domains are more than once, such as \"a.com\""), "{skipped:?}");
    assert_eq!(status(&out), [("2020-01-03".to_owned(), 3, 1), ("2020-01-04".to_owned(), 2, 1)]);
}

#[test]
fn a_report_without_a_valid_snapshot_is_rejected() {
    let folder = folder();
    let [a, ..] = good(DAY);
    let file = write_rows(folder.path(), "1.parquet", &[a, a]);
    let error = rejected(&["report", text(&file), "--out", text(&folder.path().join("out"))]);
    assert!(
        error.contains("com on 2020-01-01: snapshot skipped") && error.contains("no snapshot is left"),
        "{error}"
    );
    assert!(!folder.path().join("out/report.html").exists());
}

/// Regression: the skipped snapshots were one nested expression, whose depth is limited by the stack.
#[test]
fn thousands_of_snapshots_can_be_skipped() {
    let folder = folder();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    let day = |place: i32| ("com", Some(DAY + place), "a.com", if place == 1500 { "13" } else { "x" }, "13");
    let rows: Vec<TestRow<'_>> = (0..5000).map(day).collect();
    write_rows(&input, "1.parquet", &rows);
    let json = report(&input, &out);
    assert_eq!(skipped(&json).len(), 4999);
    assert_eq!(status(&out), [("2024-02-09".to_owned(), 1, 1)]);
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("4979 further skipped snapshots"));
}

#[test]
fn gaps_in_the_days_are_named() {
    let folder = folder();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    for day in [0, 1, 2, 5, 6] {
        write_rows(&input, &format!("{day}.parquet"), &good(DAY + day));
    }
    let json = report(&input, &out);
    let expected = serde_json::json!([
        { "source": "com", "after": "2020-01-03", "before": "2020-01-06", "usual_days": 1 }
    ]);
    assert_eq!(json["input"]["gaps"], expected);
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("gap: no snapshot between 2020-01-03 and 2020-01-06"));
    // The line of the chart has two parts.
    let path =
        page.split("class=\"line\" d=\"").nth(1).and_then(|rest| rest.split('"').next()).expect("a line");
    assert_eq!(path.matches('M').count(), 2, "{path}");
}

#[test]
fn unknown_algorithms_are_named_and_counted_under_their_number() {
    let folder = folder();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    let mut rows = good(DAY);
    rows[0].3 = "13,200";
    rows[0].4 = "200";
    write_rows(&input, "1.parquet", &rows);
    let json = report(&input, &out);
    let expected = serde_json::json!([
        { "number": 200, "source": "com", "date": "2020-01-01", "domains": 1 }
    ]);
    assert_eq!(json["input"]["unknown_algorithms"], expected);
    let numbers: Vec<u64> = table(&out, "algorithms").iter().map(|row| number(row, "algorithm")).collect();
    assert_eq!(numbers, [13, 200]);
    assert!(fs::read_to_string(out.join("report.html")).expect("a page").contains("unknown (200)"));
}

/// Parquet has the same text type for these columns, whatever the types of the program that wrote them.
#[test]
fn files_of_other_programs_are_read() {
    let folder = folder();
    let (input, out) = (folder.path().join("in"), folder.path().join("out"));
    fs::create_dir(&input).expect("a directory");
    let mut columns = columns(&good(DAY));
    columns.reverse();
    columns.push(("colour", Arc::new(BooleanArray::from(vec![true; 3]))));
    for (_, column) in &mut columns {
        if column.data_type() == &DataType::Utf8 {
            let kind = DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8));
            *column = datafusion::arrow::compute::cast(column, &kind).expect("a dictionary");
        }
    }
    columns.push(("unused", Arc::new(Int32Array::from(vec![1; 3]))));
    write(&input.join("1.parquet"), columns);
    report(&input, &out);
    assert_eq!(status(&out), [("2020-01-01".to_owned(), 3, 1)]);
}

/// DataFusion reads a path with these characters as a pattern, unless it is a URL.
#[test]
fn paths_may_have_characters_of_patterns_and_of_urls() {
    let folder = folder();
    let input = folder.path().join("a [b]*%20?#");
    write_rows(&input, "x [1] %41.parquet", &good(DAY));
    report(&input, &folder.path().join("out"));
    assert_eq!(status(&folder.path().join("out")).len(), 1);
}

#[test]
fn missing_input_and_invalid_arguments_are_rejected() {
    let folder = folder();
    let out = folder.path().join("out");
    let error = rejected(&["report", text(&folder.path().join("none")), "--out", text(&out)]);
    assert!(error.contains("cannot read"), "{error}");
    let error = rejected(&["report", text(folder.path()), "--out", text(&out)]);
    assert!(error.contains("there is no file *.parquet"), "{error}");
    let error = rejected(&["report", text(folder.path()), "--memory", "1MiB"]);
    assert!(error.contains("64 MiB"), "{error}");
    let error = rejected(&["generate", "--out", text(&out), "--from", "2020-01-02", "--to", "2020-01-01"]);
    assert!(error.contains("before its start"), "{error}");
    done(&["generate", "--out", text(&out), "--domains", "10", "--to", "2015-01-01"]);
    let error = rejected(&["generate", "--out", text(&out), "--domains", "10", "--to", "2015-01-01"]);
    assert!(error.contains("--force"), "{error}");
}
