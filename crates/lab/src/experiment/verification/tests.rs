//! The benchmark from parameters to report: a small run, and the report of known figures.

use super::*;
use crate::conditions::{Conditions, Limit};
use crate::data::DataTable;
use crate::experiment::method::Method;
use crate::experiment::parameters::{Count, Seconds};
use crate::experiment::results::{FORMAT, Record};
use crate::experiment::{Definition, ParameterOverrides, PresentationError, Results, Step, run, store};
use crate::measure::level::Level;
use crate::measure::probe::{CountResult, ImplementationInfo};
use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

fn definition() -> Definition {
    Definition::find("verification-benchmark", ParameterOverrides::default()).expect("built in")
}

fn findings() -> Findings {
    let run = crate::record::tests::sample("a-run", "a-machine");
    Findings::new(definition().presentation().columns()).of_run(&run)
}

/// Two programs, three schemes that are bases of ratios, and two others, one of which is
/// experimental.
pub(crate) fn sample() -> Results {
    let backend = |name: &str, version: &str| json!({ "name": name, "level": "native", "version": version, "environment": [], "compiled_for": [] });
    let subject_info = |subject: &str, scheme: &str, experimental: Option<&str>| {
        json!({
            "subject": subject, "scheme": scheme, "library": "a library", "library_version": "1.2",
            "experimental": experimental, "key_octets": 32, "signature_octets": 64,
        })
    };
    let about = json!({
        "backends": [backend("nonesuch", "Nonesuch 0.1"), backend("openssl", "OpenSSL 3.0")],
        "subjects": [
            subject_info("RSASHA256/1024", "RSA-1024", None),
            subject_info("MAYO2", "MAYO-2", Some("it will change")),
        ],
        "message_octets": 105,
        "cpu": 1,
    });
    let record = Record {
        format: FORMAT,
        experiment: definition(),
        run: crate::record::tests::sample("a-run", "a-machine"),
        about: BTreeMap::from([("verification-benchmark".to_owned(), about)]),
        notes: vec!["Left out: x86-64-v2.".to_owned()],
        seconds: None,
    };
    Results { record, data: sample_data().data }
}

/// Numbers of operations in two seconds, for three iterations.
fn sample_data() -> Findings {
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
    let mut findings = findings();
    for iteration in 0..3_usize {
        for (backend, subject, scheme, operation, counts) in rates {
            let counted =
                CountResult { operations: counts[iteration] * 2, seconds: 2.0, cpu_seconds: Some(1.99) };
            let operation = operation.parse().expect("an operation");
            let row = row(backend, "native", [subject, scheme], iteration as u32, operation, &counted);
            findings.push(&row).expect("a row");
        }
    }
    findings
}

fn row(
    backend: &'static str,
    level: &str,
    [subject, scheme]: [&str; 2],
    iteration: u32,
    operation: Operation,
    counted: &CountResult,
) -> Row {
    let code = ImplementationInfo {
        library: "a library".to_owned(),
        kernel: "a kernel".to_owned(),
        instruction_set: "a set".to_owned(),
        batch: Some(1),
    };
    let measured = MeasurementRow {
        backend,
        level: level.to_owned(),
        subject: subject.to_owned(),
        scheme: scheme.to_owned(),
        code,
        operation: operation.name(),
        operations: counted.operations,
        seconds: Some(counted.seconds),
        cpu_seconds: counted.cpu_seconds,
        conditions: Conditions {
            others_cpu: Some(0.01),
            limited_by: Limit::of_program(counted.cpu_seconds, counted.seconds),
        },
        ..MeasurementRow::default()
    };
    Row { iteration: Some(iteration), measured }
}

fn of(results: &Results) -> &serde_json::Value {
    &results.record.about["verification-benchmark"]
}

#[test]
fn lines_are_the_iterations_of_one_operation() {
    let summary = sample().report().expect("a report").summary;
    let lines = summary["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 8);
    let p256 = &lines.iter().find(|line| line["scheme"] == "ECDSA P-256").expect("a line")["per_second"];
    assert_eq!(
        (&p256["count"], &p256["median"], &p256["least"]),
        (&json!(3), &json!(20_000.0), &json!(16_000.0))
    );
    assert!(p256["mean"].as_f64().is_some_and(|mean| (mean - 56_000.0 / 3.0).abs() < 1e-9));
    assert_eq!((&lines[7]["backend"], &lines[7]["subject"]), (&json!("openssl"), &json!("ed25519")));
}

#[test]
fn ratio_tables_are_as_they_were_published() {
    let report = sample().report().expect("a report");
    let tables = report.sections.iter().flat_map(|section| &section.blocks).filter_map(|block| match block {
        crate::report::Block::Table(table) => Some(table),
        _ => None,
    });
    let mut ratios = tables.filter(|table| table.columns.iter().any(|column| column.title == "P-384"));
    let joined: Vec<String> =
        ratios.next().expect("of verification").rows.iter().map(|row| row.join(" ")).collect();
    assert_eq!(
        joined,
        [
            "ECDSA P-256 this run native a library 10.0 4.0 - -",
            "ECDSA P-256 published - OpenSSL 0.9.8zh 27.5 8.4 - -",
            "ECDSA P-256 published - OpenSSL 1.0.1f 26.0 7.9 - -",
            "ECDSA P-256 published - OpenSSL 1.0.2e 11.5 3.6 - -",
            "Ed25519 this run native a library 8.0 3.2 0.80 -",
            "Ed25519 this run native a library 23.0 - - -",
            "Ed25519 published - OpenSSL 1.0.2e (Donna) 7.9 2.5 0.7 0.1",
        ]
    );
    assert_eq!(ratios.next().map(|table| table.rows.len()), Some(2), "of signing");
    let all = report.summary["ratios"].as_array().expect("ratios");
    let mayo = all.iter().find(|ratio| ratio["scheme"] == "MAYO-2").expect("a ratio");
    assert_eq!(mayo["times_slower"], json!([null, null, 10.0, null]));
}

#[test]
fn the_report_says_what_matters() {
    let results = sample();
    let report = results.report().expect("a report");
    // Rates and their ratio, the published ratio, and the slowest scheme with its rate and the
    // published need of a resolver.
    let mut rest = report.lead.as_str();
    for part in [
        "20,000",
        "ECDSA P-256",
        "80,000",
        "RSA-2048",
        " 4.0 ",
        " 3.6 ",
        "OpenSSL 1.0.2e",
        "ECDSA P-256",
        "20,000",
        " 133 ",
        " 150 ",
    ] {
        let (_, after) = rest.split_once(part).unwrap_or_else(|| panic!("{part}: {}", report.lead));
        rest = after;
    }
    let html = results.page().expect("a page");
    for part in [
        "MAYO-2 is experimental: it will change.",
        "Left out: x86-64-v2.",
        "CPU 1",
        "OpenSSL 3.0",
        "105 octets",
        "The Performance Impact of Elliptic Curve Cryptography",
        "MAYO-2*",
        "cpu_seconds",
    ] {
        assert!(html.contains(part), "{part}");
    }
    // There is only one level, so the report does not compare levels.
    assert!(!html.contains("Instruction levels</h2>"));
    assert!(report.text.contains("! Left out: x86-64-v2.\n"), "{}", report.text);
    assert!(report.text.contains("MAYO-2*"), "{}", report.text);
}

#[test]
fn levels_are_compared_where_there_are_two() {
    let mut results = sample();
    let about = results.record.about.get_mut("verification-benchmark").expect("of the method");
    about["backends"].as_array_mut().expect("backends").push(json!({
        "name": "nonesuch", "level": "x86-64-v2", "version": "", "environment": [["MASK", "~1"]], "compiled_for": [],
    }));
    let counted = CountResult { operations: 5_000, seconds: 1.0, cpu_seconds: None };
    let names = ["ECDSAP256SHA256", "ECDSA P-256"];
    let row = row("nonesuch", "x86-64-v2", names, 0, Operation::Verify, &counted);
    let mut more = findings();
    more.push(&row).expect("a row");
    results.data.push(more.data.rows()[0].clone()).expect("a row");
    let html = results.page().expect("a page");
    assert!(html.contains("Instruction levels</h2>") && html.contains("times slower than native"));
    // 20,000 per second divided by 5,000 per second.
    assert!(html.contains("<td class=\"figure\">4.00</td>"), "{html}");
    assert!(html.contains("MASK=~1"));
}

#[test]
fn charts_show_ours_at_every_level_and_others_once() {
    let mut results = sample();
    let levels = ["native", "x86-64-v3", "x86-64-v2"];
    let backends = ["nonesuch", "openssl"].iter().flat_map(|name| {
        levels.map(|level| {
            json!({ "name": name, "level": level, "version": "1", "environment": [], "compiled_for": [] })
        })
    });
    let about = results.record.about.get_mut("verification-benchmark").expect("of the method");
    about["backends"] = backends.collect();
    let report = results.report().expect("a report");
    let programs: Vec<&str> =
        report.facts.iter().filter_map(|(word, _)| word.strip_prefix("Program, ")).collect();
    assert_eq!(programs, ["native", "x86-64-v3", "x86-64-v2", "openssl"]);
    let html = results.page().expect("a page");
    assert!(html.contains("<dt>openssl x86-64-v2</dt>"), "the method names all");
}

#[test]
fn data_without_a_column_are_refused() {
    let mut results = sample();
    let columns = results.data.columns()[1..].to_vec();
    results.data = DataTable::new(columns);
    let error = results.page().expect_err("refused");
    assert!(matches!(&error, PresentationError::Column(name) if name == "iteration"), "{error}");
}

#[test]
fn an_empty_table_has_a_report() {
    let mut results = sample();
    results.data = findings().data;
    assert!(results.page().is_ok());
    let lead = results.report().expect("a report").lead;
    assert!(!lead.is_empty() && !lead.contains(char::is_numeric), "{lead}");
}

/// Runs the benchmark with short durations. Returns the results and the descriptions of the steps.
fn run_tiny(set: &[(&str, &str)]) -> (Result<Results, RunError>, Vec<String>) {
    let defaults =
        [("iterations", "2"), ("seconds", "0.0005"), ("levels", "native"), ("openssl-iterations", "0")];
    let pairs = defaults.iter().chain(set).map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let set: Vec<(String, String)> = pairs.collect();
    let definition =
        Definition::find("verification-benchmark", ParameterOverrides { full: false, set: &set })
            .expect("good");
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
            commit: "abc",
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
    assert_eq!(steps, [&["generating keys"][..], &once, &once].concat());
    assert_eq!(results.data.rows().len(), 10);
    assert_eq!(results.record.run.date, "2026-03-01T12:00:00Z");
    let directory = tempfile::tempdir().expect("a directory");
    store::save(directory.path(), &results).expect("saved");
    assert_eq!(*store::load(directory.path()).expect("loaded").first(), results);
}

#[test]
fn what_is_missing_is_left_out_by_name() {
    let (outcome, _) =
        run_tiny(&[("algorithms", "ED25519"), ("levels", "native,x86-64-v2"), ("cpu", "none")]);
    let results = outcome.expect("results");
    let left_out = |note: &&String| note.contains("x86-64-v2: ");
    assert_eq!(results.record.notes.iter().filter(left_out).count(), 1, "{:?}", results.record.notes);
    let levels: Vec<_> = of(&results)["backends"]
        .as_array()
        .expect("programs")
        .iter()
        .map(|backend| &backend["level"])
        .collect();
    assert_eq!(levels, ["native"]);
    assert!(of(&results)["cpu"].is_null());
    let (outcome, _) = run_tiny(&[("algorithms", "ED25519"), ("levels", "x86-64-v2")]);
    let error = outcome.expect_err("nothing to measure");
    assert!(matches!(&error, RunError::Nothing { reason } if reason.contains("x86-64-v2: ")), "{error}");
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
    let ed25519 = results.data.rows().iter().filter(|row| row[3].as_str() == Some("ED25519"));
    assert_eq!((ed25519.count(), of(&results)["backends"].as_array().map(Vec::len)), (2, Some(1)));
    let error = run_tiny(&[("operations", "[]")]).0.expect_err("nothing to measure");
    assert!(matches!(&error, RunError::Nothing { reason } if reason.contains("operation")), "{error}");
}

#[test]
fn a_cpu_that_is_not_there_is_refused_with_the_remedy() {
    let (outcome, _) = run_tiny(&[("cpu", "100000")]);
    let error = outcome.expect_err("no such CPU");
    assert!(matches!(error, RunError::Pin { cpu: 100_000, .. }), "{error}");
    assert!(error.to_string().contains("--cpu"), "{error}");
}

#[test]
fn parameters_have_their_defaults_in_the_file() {
    let definition =
        Definition::find("verification-benchmark", ParameterOverrides::default()).expect("built in");
    let Method::VerificationBenchmark(parameters) = definition.method else { panic!("another method") };
    assert_eq!(parameters.levels, [Level::Native, Level::X86_64V3, Level::X86_64V2]);
    assert_eq!(Parameters { levels: vec![Level::Native], ..parameters }, Parameters::default());
}

#[test]
fn durations_count_all_that_is_done() {
    let choose = |names: &[&str]| names.iter().map(|name| name.parse().expect("a choice")).collect();
    let parameters = Parameters {
        iterations: Count::of(5),
        seconds: Seconds::of(2.0),
        algorithms: choose(&["ED25519", "RSASHA256/2048", "MAYO2", "vrf-p256", "vrf-rsa"]),
        levels: vec![Level::Native, Level::X86_64V2],
        openssl_iterations: 3,
        openssl_seconds: Count::of(1),
        ..Parameters::default()
    };
    // Five subjects with two operations, a batch with two and one with one; two schemes of
    // `openssl`.
    assert_eq!(parameters.duration(), Duration::from_secs(13 * 2 * 5 * 2 + 2 * 2 * 2 * 3));
}

#[test]
fn counts_of_foreign_processors_stand_in_the_report() {
    let directory = tempfile::tempdir().expect("a directory");
    let path = directory.path().join("foreign.json");
    std::fs::write(&path, foreign::tests::fixture()).expect("written");
    let mut results = sample();
    let before = results.report().expect("a report").text;
    let mut findings = sample_data();
    let info = add_foreign(&path, &mut findings).expect("sound");
    results.data = findings.data;
    let about = results.record.about.get_mut("verification-benchmark").expect("of the method");
    about["foreign"] = json!(info);
    // Instruction counts do not change the text for the terminal, which only contains times.
    assert_eq!(results.report().expect("a report").text, before);
    store::save(directory.path(), &results).expect("saved");
    let loaded = store::load(directory.path()).expect("loaded");
    let loaded = loaded.first();
    assert_eq!(*loaded, results);
    let report = loaded.report().expect("a report");
    let section =
        report.sections.iter().find(|section| section.title == "Foreign processors").expect("there");
    let crate::report::Block::Table(table) = &section.blocks[1] else { panic!("no table") };
    let heads: Vec<&str> = table.columns.iter().map(|column| column.title.as_str()).collect();
    assert_eq!(
        heads,
        ["Instructions per verification", "program", "x86-64-v3", "arm64", "mips64el", "arm64", "mips64el"]
    );
    assert_eq!(
        table.rows,
        [
            ["ED25519", "nonesuch", "480", "581", "–", "1.21", "–"],
            ["ED25519", "openssl", "1,529", "–", "1,785", "–", "1.17"],
        ]
    );
    assert!(loaded.page().expect("a page").contains("model of mips64el"));
}
