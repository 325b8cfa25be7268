//! From parameters to report: known figures, and what is refused.

use super::rows::{ECHO, Row, SERVER, Subject, columns};
use super::summary::lines;
use super::*;
use crate::experiment::data::DataTable;
use crate::experiment::{
    About as AnyAbout, Choices, Definition, FORMAT, Method, Record, Results, RunError, RunOptions,
    run as run_any, store,
};
use crate::machine::Machine;
use std::path::Path;

/// Three rounds of our server with one worker and with two, their floors, and an echo of a size of its own.
fn sample() -> Results {
    let denied = Some(("nsec", Kind::Denied));
    let subjects = [
        (Subject::new(ECHO, None, 1), 160.0, [3.0, 3.0, 3.0]),
        (Subject::new(ECHO, None, 1), 400.0, [3.5, 3.5, 3.5]),
        (Subject::new(SERVER, denied, 1), 501.5, [4.4, 4.0, 5.0]),
        (Subject::new(ECHO, denied, 1), 502.0, [4.0, 2.0, 4.0]),
        (Subject::new(SERVER, denied, 2), 501.6, [4.4, 4.4, 4.4]),
    ];
    let mut data = DataTable::new(columns());
    for round in 0..3_usize {
        for (subject, octets, cpu) in &subjects {
            let row = Row {
                round: round as u32,
                subject: subject.clone(),
                query_octets: 45.0,
                // Answers to the same queries are not the same in each round.
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
            };
            data.push(row.cells()).expect("a row");
        }
    }
    let about = About {
        names: 1000,
        algorithm: "ECDSAP256SHA256".to_owned(),
        server_cpu: Some(1),
        ..About::default()
    };
    let record = Record {
        format: FORMAT,
        experiment: Definition::find("echo-floor", Choices::default()).expect("built in"),
        date: "2026-03-01T12:00:00Z".to_owned(),
        command: "nonesuch lab run echo-floor".to_owned(),
        seed: 1,
        machine: Machine { cpu: "A CPU".to_owned(), cpus: 2, optimised: true, ..Machine::default() },
        about: AnyAbout::EchoFloor(about),
        notes: vec!["Something was odd.".to_owned()],
    };
    Results { record, data }
}

#[test]
fn ratios_are_taken_round_by_round() {
    let lines = lines(&sample().data).expect("lines");
    assert_eq!(lines.len(), 5);
    assert_eq!((lines[0].response_octets, lines[1].response_octets), (160.0, 400.0));
    let ours = &lines[2];
    let times = ours.times_floor.expect("has a floor");
    for (found, expected) in [(times.median, 1.25), (times.least, 1.1), (times.most, 2.0)] {
        assert!((found - expected).abs() < 1e-9, "{found} is not {expected}");
    }
    let cpu = ours.cpu_us.expect("measured");
    assert_eq!((cpu.median, cpu.count, ours.user_us.expect("measured").median), (4.4, 3, 0.5));
    assert!((ours.busy.expect("measured").median - 0.88).abs() < 1e-9);
    assert!(ours.times_one_worker.is_none() && lines[0].times_floor.is_none());
    let two = lines[4].times_one_worker.expect("there is one worker to compare with");
    assert!((two.median - 1.0).abs() < 1e-9 && (two.most - 1.1).abs() < 1e-9, "{two:?}");
    assert!(lines[4].times_floor.is_none(), "its floor was not measured");
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
    assert!(report.lead.contains("1.25 to 1.25 times"), "{}", report.lead);
    assert_eq!(report.summary["lines"].as_array().map(Vec::len), Some(5));
    let page = results.page().expect("a page").to_html();
    for part in
        ["The echo floor", "echo of the same size", "NSEC, denied", "1,000 delegations", "Something was odd."]
    {
        assert!(page.contains(part), "{part}");
    }
}

#[test]
fn results_are_kept_and_read_back() {
    let (folder, results) = (tempfile::tempdir().expect("a folder"), sample());
    store::save(folder.path(), &results).expect("saved");
    assert_eq!(store::load(folder.path()).expect("loaded"), results);
}

#[test]
fn parameters_are_those_of_the_file_and_wrong_ones_are_refused() {
    let find = |set: &[(String, String)]| Definition::find("echo-floor", Choices { full: false, set });
    let Method::EchoFloor(parameters) = find(&[]).expect("built in").method else { panic!("another method") };
    assert_eq!(parameters, Parameters::default());
    for (key, value, says) in [
        ("octets", "[11]", "11 is not from 12 to 4096 octets"),
        ("workers", "[0]", "0 is not from 1 to 256 workers"),
        ("queries", "some", "unknown variant `some`, expected `existing` or `denied`"),
        ("denial", "nsec9", "nsec9"),
        ("rounds", "0", "0 is not from 1 to"),
    ] {
        let set = [(key.to_owned(), value.to_owned())];
        let error = find(&set).expect_err("refused").to_string();
        assert!(error.contains(says), "{key}={value}: {error}");
    }
}

#[test]
fn lists_of_numbers_are_set_as_words_are() {
    for octets in ["[160, 400]", "160,400", "160"] {
        let set = [("octets".to_owned(), octets.to_owned())];
        assert!(Definition::find("echo-floor", Choices { full: false, set: &set }).is_ok(), "{octets}");
    }
}

#[test]
fn nothing_to_measure_is_an_error() {
    let set = [("octets".to_owned(), "[]".to_owned()), ("queries".to_owned(), "[]".to_owned())];
    let definition = Definition::find("echo-floor", Choices { full: false, set: &set }).expect("sound");
    let options = RunOptions {
        seed: 1,
        now: 0,
        command: String::new(),
        program: Path::new("/nonexistent/nonesuch"),
        levels_chosen: false,
        progress: &|_| {},
    };
    assert!(matches!(run_any(&definition, &options), Err(RunError::Nothing { .. })));
    let set = [("denial".to_owned(), "nsec".to_owned())];
    let definition = Definition::find("echo-floor", Choices { full: false, set: &set }).expect("sound");
    let error = run_any(&definition, &options).expect_err("there is no such program").to_string();
    assert!(error.starts_with("/nonexistent/nonesuch: "), "{error}");
}
