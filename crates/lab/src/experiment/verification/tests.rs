//! The benchmark from parameters to report: a small run, and the report of known figures.

use super::summary::{Line, columns, disturbance, lines};
use super::*;
use crate::experiment::data::{DataTable, Value};
use crate::experiment::level::Level;
use crate::experiment::published;
use crate::experiment::{
    About as AnyAbout, Choices, Definition, FORMAT, Method, Record, Results, RunError, RunOptions, Step, run,
    store,
};
use crate::machine::Machine;
use std::path::Path;
use std::sync::Mutex;

/// Two programs, three schemes that others are held against, two others, one of which is experimental.
pub(in crate::experiment) fn sample() -> Results {
    let definition = Definition::find("verification-benchmark", Choices::default()).expect("built in");
    let backend = |name: &str, version: &str| Backend {
        name: name.to_owned(),
        level: "native".to_owned(),
        version: version.to_owned(),
        ..Backend::default()
    };
    let facts = |subject: &str, scheme: &str, experimental: Option<&str>| SubjectFacts {
        subject: subject.to_owned(),
        scheme: scheme.to_owned(),
        library: "a library".to_owned(),
        library_version: "1.2".to_owned(),
        experimental: experimental.map(str::to_owned),
        key_octets: 32,
        signature_octets: 64,
    };
    let about = About {
        backends: vec![backend("nonesuch", "Nonesuch 0.1"), backend("openssl", "OpenSSL 3.0")],
        subjects: vec![
            facts("RSASHA256/1024", "RSA-1024", None),
            facts("MAYO2", "MAYO-2", Some("it will change")),
        ],
        message_octets: 105,
        cpu: Some(1),
        ..About::default()
    };
    let record = Record {
        format: FORMAT,
        experiment: definition,
        date: "2026-03-01T12:00:00Z".to_owned(),
        command: "nonesuch lab run verification-benchmark".to_owned(),
        seed: 1,
        machine: Machine { cpu: "A CPU".to_owned(), cpus: 2, optimised: true, ..Machine::default() },
        about: AnyAbout::VerificationBenchmark(about),
        notes: vec!["Left out: x86-64-v2.".to_owned()],
    };
    Results { record, data: sample_data() }
}

/// Operations in two seconds, of three iterations.
fn sample_data() -> DataTable {
    let rates = [
        ("nonesuch", "RSASHA256/1024", "RSA-1024", "verify", [200_000, 210_000, 190_000]),
        ("nonesuch", "RSASHA256/2048", "RSA-2048", "verify", [80_000, 80_000, 80_000]),
        ("nonesuch", "ECDSAP256SHA256", "ECDSA P-256", "verify", [20_000, 20_000, 16_000]),
        ("nonesuch", "ECDSAP256SHA256", "ECDSA P-256", "sign", [60_000, 60_000, 60_000]),
        ("nonesuch", "ED25519", "Ed25519", "verify", [25_000, 25_000, 25_000]),
        ("nonesuch", "MAYO2", "MAYO-2", "sign", [6_000, 6_000, 6_000]),
        ("openssl", "rsa1024", "RSA-1024", "verify", [230_000, 230_000, 230_000]),
        ("openssl", "ed25519", "Ed25519", "verify", [10_000, 10_000, 10_000]),
    ];
    let mut data = DataTable::new(columns());
    for iteration in 0..3_usize {
        for (backend, subject, scheme, operation, counts) in rates {
            let texts = [backend, "native", subject, scheme, "a library", operation].map(Value::text);
            let mut row = vec![Value::Integer(iteration as i64)];
            row.extend(texts);
            row.extend([Value::Integer(counts[iteration] * 2), Value::Number(2.0), Value::Number(1.99)]);
            row.extend([const { Value::Missing }; 3]);
            data.push(row).expect("a row");
        }
    }
    data
}

fn of(results: &Results) -> &About {
    let AnyAbout::VerificationBenchmark(about) = &results.record.about else { panic!("another method") };
    about
}

#[test]
fn lines_are_the_iterations_of_one_operation() {
    let results = sample();
    let lines = lines(of(&results), &results.data).expect("lines");
    assert_eq!(lines.len(), 8);
    let p256: &Line = lines.iter().find(|line| line.scheme == "ECDSA P-256").expect("a line");
    let statistics = p256.per_second;
    assert_eq!((statistics.count, statistics.median, statistics.least), (3, 20_000.0, 16_000.0));
    assert!((statistics.mean - 56_000.0 / 3.0).abs() < 1e-9);
    assert_eq!((lines[7].place, lines[7].subject.as_str()), (1, "ed25519"));
}

#[test]
fn ratio_tables_are_as_they_were_published() {
    let results = sample();
    let lines = lines(of(&results), &results.data).expect("lines");
    let ratios = ratios::ratios(of(&results), &[0, 1], &lines, Operation::Verify);
    let text = ratios::table(&ratios, published::table("ecc-validation-ratios"), &str::to_owned).to_text();
    let rows: Vec<Vec<&str>> = text
        .lines()
        .skip(3)
        .take_while(|line| !line.starts_with("Times slower"))
        .map(|line| line.split("  ").map(str::trim).filter(|cell| !cell.is_empty()).collect())
        .collect();
    let joined: Vec<String> = rows.iter().map(|row| row.join(" ")).collect();
    assert_eq!(
        joined,
        [
            "ECDSA P-256 here native a library 10.0 4.0 - -",
            "ECDSA P-256 published - OpenSSL 0.9.8zh 27.5 8.4 - -",
            "ECDSA P-256 published - OpenSSL 1.0.1f 26.0 7.9 - -",
            "ECDSA P-256 published - OpenSSL 1.0.2e 11.5 3.6 - -",
            "Ed25519 here native a library 8.0 3.2 0.80 -",
            "Ed25519 here native a library 23.0 - - -",
            "Ed25519 published - OpenSSL 1.0.2e (Donna) 7.9 2.5 0.7 0.1",
        ]
    );
    let signing = ratios::ratios(of(&results), &[0, 1], &lines, Operation::Sign);
    assert_eq!(signing.len(), 2);
    assert_eq!(signing[1].times_slower, [None, None, Some(10.0), None]);
}

#[test]
fn the_report_says_what_matters() {
    let results = sample();
    let report = results.report().expect("a report");
    assert_eq!(
        report.lead,
        "One core verifies 20,000 signatures of ECDSA P-256 a second and 80,000 of RSA-2048: ECDSA is 4.0 times slower \
         (published: 3.6 times, with OpenSSL 1.0.2e). Slowest to verify is ECDSA P-256 with 20,000 a second, 133 times \
         the 150 that a busy resolver was published to need."
    );
    let html = results.page().expect("a page").to_html();
    for part in [
        "MAYO-2 is experimental: it will change.",
        "Left out: x86-64-v2.",
        "CPU 1",
        "OpenSSL 3.0",
        "105 octets",
        "Verifications: times slower than RSA and ECDSA",
        "Signatures made: times slower than RSA and ECDSA",
        "The Performance Impact of Elliptic Curve Cryptography",
        "MAYO-2*",
        "cpu_seconds",
    ] {
        assert!(html.contains(part), "{part}");
    }
    // One program of ours: there are no levels to compare.
    assert!(!html.contains("Instruction levels</h2>"));
    assert!(report.text.contains("! Left out: x86-64-v2.\n"), "{}", report.text);
    assert!(report.text.contains("MAYO-2*"), "{}", report.text);
}

#[test]
fn levels_are_compared_where_there_are_two() {
    let mut results = sample();
    let AnyAbout::VerificationBenchmark(about) = &mut results.record.about else { panic!("another method") };
    about.backends.push(Backend {
        name: "nonesuch".to_owned(),
        level: "x86-64-v2".to_owned(),
        environment: vec![("MASK".to_owned(), "~1".to_owned())],
        ..Backend::default()
    });
    let names = ["nonesuch", "x86-64-v2", "ECDSAP256SHA256", "ECDSA P-256", "a library", "verify"];
    let mut row = vec![Value::Integer(0)];
    row.extend(names.map(Value::text));
    row.extend([Value::Integer(5_000), Value::Number(1.0), Value::Missing]);
    row.extend([const { Value::Missing }; 3]);
    results.data.push(row).expect("a row");
    let html = results.page().expect("a page").to_html();
    assert!(html.contains("Instruction levels</h2>") && html.contains("times slower than native"));
    // 20,000 a second by 5,000.
    assert!(html.contains("<td class=\"figure\">4.00</td>"), "{html}");
    assert!(html.contains("MASK=~1"));
}

#[test]
fn charts_show_ours_at_every_level_and_others_once() {
    let backend = |name: &str, level: &str| Backend {
        name: name.to_owned(),
        level: level.to_owned(),
        ..Backend::default()
    };
    let levels = ["native", "x86-64-v3", "x86-64-v2"];
    let backends = ["nonesuch", "openssl"].iter().flat_map(|name| levels.map(|level| backend(name, level)));
    let about = About { backends: backends.collect(), ..About::default() };
    assert_eq!(about.shown(), [0, 1, 2, 3]);
    let labels: Vec<String> = about.backends.iter().map(Backend::label).collect();
    assert_eq!(labels[3..], ["openssl", "openssl x86-64-v3", "openssl x86-64-v2"]);
}

#[test]
fn data_without_a_column_are_refused() {
    let mut results = sample();
    let columns = results.data.columns()[1..].to_vec();
    results.data = DataTable::new(columns);
    let error = results.page().expect_err("refused").to_string();
    assert_eq!(error, "the column iteration is missing or of another kind");
}

#[test]
fn an_empty_table_has_a_report() {
    let mut results = sample();
    results.data = DataTable::new(columns());
    assert!(results.page().expect("a page").to_html().contains("were counted, iteration by iteration"));
}

#[test]
fn other_programs_on_the_processor_are_told() {
    let table = |cpu: f64| {
        let mut data = DataTable::new(columns());
        let mut row = vec![Value::Integer(0)];
        row.extend(["nonesuch", "native", "x", "x", "x", "verify"].map(Value::text));
        row.extend([Value::Integer(1), Value::Number(10.0), Value::Number(cpu)]);
        row.extend([const { Value::Missing }; 3]);
        data.push(row).expect("a row");
        data
    };
    assert_eq!(disturbance(&table(9.9)), None);
    let note = disturbance(&table(7.5)).expect("a note");
    assert!(note.starts_with("Other programs had the processor for 25 % of the time"), "{note}");
    assert_eq!(disturbance(&DataTable::new(columns())), None);
}

/// Runs with tiny settings; the steps that were told.
fn run_tiny(set: &[(&str, &str)]) -> (Result<Results, RunError>, Vec<String>) {
    let defaults =
        [("iterations", "2"), ("seconds", "0.0005"), ("levels", "native"), ("openssl-iterations", "0")];
    let pairs = defaults.iter().chain(set).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let set: Vec<(String, String)> = pairs.collect();
    let definition =
        Definition::find("verification-benchmark", Choices { full: false, set: &set }).expect("good");
    let steps = Mutex::new(Vec::new());
    let progress = |step: Step<'_>| {
        assert!(step.index <= step.steps);
        steps.lock().expect("a lock").push(step.what.to_owned());
    };
    let outcome = run(
        &definition,
        &RunOptions {
            seed: 1,
            now: 1_772_366_400,
            command: "test".to_owned(),
            levels_chosen: false,
            program: Path::new("/nowhere/nonesuch"),
            progress: &progress,
        },
    );
    (outcome, steps.into_inner().expect("a lock"))
}

#[test]
fn a_run_goes_over_all_in_turn_and_is_kept() {
    let (outcome, steps) = run_tiny(&[("algorithms", "ED25519,RSASHA256/1024"), ("batch", "4")]);
    let results = outcome.expect("results");
    let once = ["ED25519", "ED25519", "ED25519*4", "RSASHA256/1024", "RSASHA256/1024"];
    assert_eq!(steps, [&["making keys"][..], &once, &once].concat());
    assert_eq!(results.data.rows().len(), 10);
    assert_eq!(results.record.date, "2026-03-01T12:00:00Z");
    let folder = tempfile::tempdir().expect("a folder");
    store::save(folder.path(), &results).expect("saved");
    assert_eq!(store::load(folder.path()).expect("loaded"), results);
}

#[test]
fn what_is_missing_is_left_out_by_name() {
    let (outcome, _) =
        run_tiny(&[("algorithms", "ED25519"), ("levels", "native,x86-64-v2"), ("cpu", "none")]);
    let results = outcome.expect("results");
    let left_out = |note: &&String| note.starts_with("Left out: x86-64-v2: ");
    assert_eq!(results.record.notes.iter().filter(left_out).count(), 1, "{:?}", results.record.notes);
    assert_eq!(of(&results).cpu, None);
    let (outcome, _) = run_tiny(&[("algorithms", "ED25519"), ("levels", "x86-64-v2")]);
    let error = outcome.expect_err("nothing to measure").to_string();
    assert!(error.starts_with("nothing is left to measure: Left out: x86-64-v2: "), "{error}");
}

#[test]
fn what_is_named_twice_is_measured_once() {
    let (outcome, _) = run_tiny(&[
        ("algorithms", "ED448,15,ED25519"),
        ("levels", "native,native"),
        ("operations", "sign,sign"),
        ("batch", "0"),
    ]);
    let results = outcome.expect("results");
    let ed25519 = results.data.rows().iter().filter(|row| row[3].as_text() == Some("ED25519"));
    assert_eq!((ed25519.count(), of(&results).backends.len()), (2, 1));
    let error = run_tiny(&[("operations", "[]")]).0.expect_err("nothing to measure").to_string();
    assert!(error.contains("name at least one operation"), "{error}");
}

#[test]
fn a_cpu_that_is_not_there_is_refused_with_the_remedy() {
    let (outcome, _) = run_tiny(&[("cpu", "100000")]);
    let error = outcome.expect_err("no such CPU").to_string();
    assert!(error.starts_with("cannot keep to CPU 100000: ") && error.contains("--cpu"), "{error}");
}

#[test]
fn parameters_have_their_defaults_in_the_file() {
    let definition = Definition::find("verification-benchmark", Choices::default()).expect("built in");
    let Method::VerificationBenchmark(parameters) = definition.method else { panic!("another method") };
    assert_eq!(parameters.levels, [Level::Native, Level::X86_64V3, Level::X86_64V2]);
    assert_eq!(Parameters { levels: vec![Level::Native], ..parameters }, Parameters::default());
}
