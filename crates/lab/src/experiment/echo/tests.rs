//! From parameters to report: known figures, and rejected parameters.

use super::*;
use crate::experiment::method::Method;
use crate::experiment::results::{FORMAT, Record};
use crate::experiment::{
    Definition, DefinitionError, ParameterOverrides, Results, RunError, RunOptions, run as run_any, store,
};
use crate::measure::job::JobError;
use crate::report::Block;
use std::collections::BTreeMap;
use std::path::Path;

/// Three rounds of `nonesuch serve` with one worker and with two, of the echo server with the same
/// response size for one worker, and of echo servers with two fixed sizes.
fn sample() -> Results {
    let subject = |server, denied: bool, workers| Subject {
        server,
        denial: denied.then(|| "nsec".to_owned()),
        queries: denied.then_some(QueriedNames::Denied),
        workers,
    };
    let subjects = [
        (subject(ECHO, false, 1), 160.0, [3.0, 3.0, 3.0]),
        (subject(ECHO, false, 1), 400.0, [3.5, 3.5, 3.5]),
        (subject(SERVER, true, 1), 501.5, [4.4, 4.0, 5.0]),
        (subject(ECHO, true, 1), 502.0, [4.0, 2.0, 4.0]),
        (subject(SERVER, true, 2), 501.6, [4.4, 4.4, 4.4]),
    ];
    let experiment = Definition::find("echo-floor", ParameterOverrides::default()).expect("built in");
    let mut findings = Findings::new(experiment.presentation().columns());
    for round in 0..3_usize {
        for (subject, octets, cpu) in &subjects {
            let row = Row {
                round: round as u32,
                subject,
                query_octets: 45.0,
                // Response sizes for the same queries vary between rounds.
                response_octets: if subject.server == SERVER {
                    octets + round as f64 * 0.01
                } else {
                    *octets
                },
                sent: 200_000,
                received: 200_000,
                seconds: 1.0,
                user_us: Some(0.5),
                system_us: Some(cpu[round] - 0.5),
                load_us: None,
                conditions: Conditions::default(),
            };
            findings.push(&row).expect("a row");
        }
    }
    let about = json!({ "names": 1000, "algorithm": "ECDSAP256SHA256", "server_cpu": 1, "load_cpu": null });
    let record = Record {
        format: FORMAT,
        experiment,
        run: crate::record::tests::sample("a-run", "a-machine"),
        about: BTreeMap::from([("echo-floor".to_owned(), about)]),
        notes: vec!["Something was odd.".to_owned()],
        seconds: None,
    };
    Results { record, data: findings.data }
}

#[test]
fn ratios_are_taken_round_by_round() {
    let summary = sample().report().expect("a report").summary;
    let lines = summary["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 5);
    assert_eq!((&lines[0]["response_octets"], &lines[1]["response_octets"]), (&json!(160.0), &json!(400.0)));
    let near = |found: &serde_json::Value, wanted: f64| {
        let found = found.as_f64().expect("a number");
        assert!((found - wanted).abs() < 1e-9, "{found} is not {wanted}");
    };
    let ours = &lines[2];
    for (end, expected) in [("median", 1.25), ("least", 1.1), ("most", 2.0)] {
        near(&ours["times_floor"][end], expected);
    }
    assert_eq!((&ours["cpu_us"]["median"], &ours["cpu_us"]["count"]), (&json!(4.4), &json!(3)));
    near(&ours["user_us"]["median"], 0.5);
    near(&ours["busy"]["median"], 0.88);
    assert!(ours["times_one_worker"].is_null() && lines[0]["times_floor"].is_null());
    near(&lines[4]["times_one_worker"]["median"], 1.0);
    near(&lines[4]["times_one_worker"]["most"], 1.1);
    assert!(lines[4]["times_floor"].is_null(), "its floor was not measured");
}

#[test]
fn the_report_has_every_line_and_the_notes() {
    let results = sample();
    let report = results.report().expect("a report");
    for part in [
        "160 octets",
        "NSEC, denied, 2 workers",
        "1.25 (1.10-2.00)",
        "1.00 (0.88-1.10)",
        "! Something was odd.",
    ] {
        assert!(report.text.contains(part), "{part} is not in\n{}", report.text);
    }
    assert!(report.lead.contains("1.25 to 1.25"), "{}", report.lead);
    let charts = report.sections.iter().flat_map(|section| &section.blocks).find_map(|block| match block {
        Block::Charts(charts) => Some(charts),
        _ => None,
    });
    // Bars of `nonesuch serve` and of the echo server.
    assert_eq!(charts.expect("charts")[0].series.len(), 2);
    assert_eq!(report.summary["lines"].as_array().map(Vec::len), Some(5));
    let page = results.page().expect("a page");
    for part in ["The echo floor", "NSEC, denied", "1,000 delegations", "Something was odd."] {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn results_are_kept_and_read_back() {
    let (directory, results) = (tempfile::tempdir().expect("a directory"), sample());
    store::save(directory.path(), &results).expect("saved");
    assert_eq!(*store::load(directory.path()).expect("loaded").first(), results);
}

#[test]
fn parameters_are_those_of_the_file_and_wrong_ones_are_refused() {
    let find =
        |set: &[(String, String)]| Definition::find("echo-floor", ParameterOverrides { full: false, set });
    let Method::EchoFloor(parameters) = find(&[]).expect("built in").method else { panic!("another method") };
    assert_eq!(parameters, Parameters::default());
    // The last element: names and values that the message contains.
    for (key, value, words) in [
        ("octets", "[11]", "11 12 4096"),
        ("workers", "[0]", "0 1 256"),
        ("queries", "some", "`some` `existing` `denied`"),
        ("denial", "nsec9", "nsec3-opt-out"),
        ("rounds", "0", "0 1 1000000"),
    ] {
        let set = [(key.to_owned(), value.to_owned())];
        let error = find(&set).expect_err("refused");
        let DefinitionError::Set { key: parameter, value: given, message } = &error else {
            panic!("{error}")
        };
        assert_eq!((parameter.as_str(), given.as_str()), (key, value));
        assert!(words.split(' ').all(|word| message.contains(word)), "wanted {words}, got {error}");
    }
}

#[test]
fn lists_of_numbers_are_set_as_words_are() {
    for octets in ["[160, 400]", "160,400", "160"] {
        let set = [("octets".to_owned(), octets.to_owned())];
        assert!(
            Definition::find("echo-floor", ParameterOverrides { full: false, set: &set }).is_ok(),
            "{octets}"
        );
    }
}

#[test]
fn nothing_to_measure_is_an_error() {
    let set = [("octets".to_owned(), "[]".to_owned()), ("queries".to_owned(), "[]".to_owned())];
    let definition =
        Definition::find("echo-floor", ParameterOverrides { full: false, set: &set }).expect("sound");
    let options = RunOptions {
        seed: 1,
        now: 0,
        command: String::new(),
        commit: "abc",
        program: Path::new("/nonexistent/nonesuch"),
        levels_chosen: false,
        progress: &|_| {},
    };
    assert!(matches!(run_any(&definition, &options), Err(RunError::Nothing { .. })));
    let set = [("denial".to_owned(), "nsec".to_owned())];
    let definition =
        Definition::find("echo-floor", ParameterOverrides { full: false, set: &set }).expect("sound");
    let error = run_any(&definition, &options).expect_err("there is no such program");
    assert!(
        matches!(&error, RunError::PrepareZone(PrepareZoneError::Failed(JobError::Run { program, .. })) if program == Path::new("/nonexistent/nonesuch")),
        "{error}"
    );
}

#[test]
fn durations_count_every_load() {
    let parameters = Parameters {
        rounds: Count::of(3),
        seconds: Seconds::of(0.9),
        names: Count::of(1),
        octets: [160, 160, 400].map(Octets::of).to_vec(),
        denial: vec![PresignedMechanism(Mechanism::Nsec)],
        workers: [1, 2].map(Workers::of).to_vec(),
        ..Parameters::default()
    };
    // Two kinds of queries, each with `nonesuch serve` and its echo server, and two fixed sizes;
    // two numbers of workers.
    assert!((parameters.duration().as_secs_f64() - 36.0).abs() < 0.1, "{:?}", parameters.duration());
}
