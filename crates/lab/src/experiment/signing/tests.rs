//! The report of known figures.

use super::*;
use crate::data::DataTable;
use crate::experiment::method::Method;
use crate::experiment::results::{FORMAT, Record};
use crate::experiment::{
    Definition, DefinitionError, ParameterOverrides, Report, Results, RunError, RunOptions, run, store,
};
use crate::report::{Block, Chart, Section, Table};
use serde_json::Value;
use std::collections::BTreeMap;
use std::path::Path;

const P256: &str = "ECDSAP256SHA256";
const FALCON: &str = "FALCON512";
const RSA: &str = "RSASHA256/1280";

fn row(run: u32, job: Job, zone: &str, level: &'static str, algorithm: &str, cpu: f64) -> Row {
    let made = matches!(job, Job::Sign | Job::Resign);
    Row {
        run,
        job,
        zone: zone.to_owned(),
        level,
        algorithm: algorithm.to_owned(),
        denial: if algorithm.is_empty() { String::new() } else { "nsec3-opt-out".to_owned() },
        signatures: Some(1000),
        records: made.then_some(5000),
        octets: (made || job == Job::Transfer).then_some(if algorithm == FALCON {
            4_000_000
        } else {
            1_000_000
        }),
        messages: (job == Job::Transfer).then_some(9),
        wall_seconds: Some(cpu * 0.6),
        user_seconds: Some(cpu * 0.75),
        system_seconds: Some(cpu * 0.25),
        memory_kib: Some(2048),
        conditions: Conditions::default(),
    }
}

fn definition() -> Definition {
    Definition::find("pqc-signing", ParameterOverrides::default()).expect("built in")
}

fn findings() -> Findings {
    Findings::new(definition().presentation().columns())
}

fn sample_data() -> Findings {
    let mut findings = findings();
    let mut push = |row: Row| findings.push(&row).expect("a row");
    for zone in ["tld:50", "tld:1000"] {
        for run in 0..3 {
            // The second run is the median.
            let more = [0.0, 0.1, 0.2][run as usize];
            for (level, times) in [("x86-64-v3", 2.0), ("x86-64-v2", 20.0)] {
                push(row(run, Job::Sign, zone, level, P256, 0.9 + more));
                push(row(run, Job::Sign, zone, level, FALCON, times + more - 0.1));
                push(row(run, Job::Verify, zone, level, P256, 2.0));
                push(row(run, Job::Verify, zone, level, FALCON, 1.0));
            }
            push(row(run, Job::Sign, zone, "x86-64-v3", RSA, 4.0));
        }
    }
    push(row(0, Job::Serve, "tld:50", "x86-64-v3", "", 1.0));
    push(row(0, Job::Serve, "tld:50", "x86-64-v3", FALCON, 1.0));
    push(row(0, Job::Transfer, "tld:50", "", "", 1.0));
    push(row(0, Job::Transfer, "tld:50", "", FALCON, 1.0));
    push(row(0, Job::Resign, "tld:50", "x86-64-v3", FALCON, 0.2));
    findings
}

fn sample() -> Results {
    let zone = |name: &str, names: u64, changes: Value| {
        json!({
            "zone": name, "source": "generated", "origin": "zz.", "records": names * 3, "names": names,
            "delegations": names, "signed_delegations": names / 2, "octets": 300_000, "changes": changes,
        })
    };
    let level = |level: &str, kernel: &str| {
        let code = json!({
            "algorithm": P256, "operation": "sign", "library": "nonesuch", "kernel": kernel,
            "instruction_set": level, "batch": 64,
        });
        json!({ "level": level, "version": "", "environment": [], "implementations": [code] })
    };
    let algorithm = |name: &str, scheme: &str, experimental: Option<&str>| {
        json!({
            "algorithm": name, "scheme": scheme, "experimental": experimental,
            "post_quantum": experimental.is_some(), "addition": false, "signature_octets": 0,
        })
    };
    let changes = json!({
        "removed_records": 1, "added_records": 2, "removed_delegations": 0, "added_delegations": 1,
        "altered_delegations": 0,
    });
    let about = json!({
        "zones": [zone("tld:50", 50, changes), zone("tld:1000", 1000, Value::Null)],
        "levels": [level("x86-64-v3", "a kernel"), level("x86-64-v2", "another")],
        "algorithms": [
            algorithm(RSA, "RSA-1280", None),
            algorithm(P256, "ECDSA P-256", None),
            algorithm(FALCON, "Falcon-512", Some("it will change")),
        ],
        "cpu": null,
        "left_out": ["tld:1000, NSEC: RSA-1280 at x86-64-v3"],
        "seconds": 0.0,
    });
    let record = Record {
        format: FORMAT,
        experiment: definition(),
        run: crate::record::tests::sample("a-run", "a-machine"),
        about: BTreeMap::from([("zone-signing".to_owned(), about)]),
        notes: Vec::new(),
        seconds: None,
    };
    Results { record, data: sample_data().data }
}

fn charts(section: &Section) -> Vec<&Chart> {
    let mut found = Vec::new();
    for block in &section.blocks {
        if let Block::Charts(charts) = block {
            found.extend(charts);
        }
    }
    found
}

fn tables(section: &Section) -> Vec<&Table> {
    section
        .blocks
        .iter()
        .filter_map(|block| if let Block::Table(table) = block { Some(table) } else { None })
        .collect()
}

/// Returns the first section with a table that has a column with this title.
fn section_with<'r>(report: &'r Report, column: &str) -> &'r Section {
    let has_column = |table: &Table| table.columns.iter().any(|own| own.title == column);
    report.sections.iter().find(|section| tables(section).into_iter().any(has_column)).expect("a section")
}

#[test]
fn ratios_are_of_medians_of_the_same_zone_mechanism_and_level() {
    let summary = sample().report().expect("a report").summary;
    let line = |job: &str, zone: &str, level: &str, algorithm: &str| {
        let of = |line: &&Value| {
            line["job"] == job
                && line["zone"] == zone
                && line["level"] == level
                && line["algorithm"] == algorithm
        };
        summary["lines"].as_array().expect("lines").iter().find(of).expect("a line")
    };
    let sign = |level: &str, algorithm: &str| line("sign", "tld:1000", level, algorithm);
    let near = |value: &Value, wanted: f64| value.as_f64().is_some_and(|value| (value - wanted).abs() < 1e-9);
    assert!(near(&sign("x86-64-v3", FALCON)["cpu_times"], 2.0));
    assert!(near(&sign("x86-64-v2", FALCON)["cpu_times"], 20.0));
    assert!(
        near(&sign("x86-64-v3", P256)["cpu_times"], 1.0)
            && near(&sign("x86-64-v3", FALCON)["wall_times"], 2.0)
    );
    assert_eq!(sign("x86-64-v3", P256)["cpu"]["count"], 3);
    assert!(line("serve", "tld:50", "x86-64-v3", "")["cpu_times"].is_null());
}

#[test]
fn the_three_figures_are_the_studys() {
    let report = sample().report().expect("a report");
    let section =
        |title: &str| report.sections.iter().find(|section| section.title.starts_with(title)).expect("there");
    let signing = charts(section("Figure 1"));
    // The larger zone is first, the lower level on the left. P-256 is the reference line, not a
    // bar.
    let titles: Vec<&str> = signing.iter().map(|chart| chart.title.as_str()).collect();
    assert_eq!(titles[0], "Signing, like tld, 1,000 delegations: x86-64-v2");
    assert_eq!((titles.len(), titles[1].ends_with("x86-64-v3"), titles[2].contains("50")), (4, true, true));
    assert_eq!(signing[1].groups, ["RSA-1280", "Falcon-512* (PQC)"]);
    assert_eq!(signing[0].groups, ["Falcon-512* (PQC)"]);
    assert!(signing.iter().all(|chart| chart.reference.as_ref().is_some_and(|line| line.value == 1.0)));
    assert!(signing.iter().all(|chart| chart.scale() == signing[0].scale()), "they share their axis");
    let bar = signing[0].series[0].bars[0].expect("a bar");
    assert!(
        (bar.value - 20.0).abs() < 1e-9
            && bar.spread.is_some_and(|(least, most)| least < 20.0 && most > 20.0)
    );
    assert_eq!(charts(section("Figure 2"))[0].groups, ["Falcon-512* (PQC)"]);
    let sizes = charts(section("Figure 3"));
    assert_eq!(sizes[0].groups, ["RSA-1280", "ECDSA P-256", "Falcon-512* (PQC)"]);
    assert!(sizes[0].reference.as_ref().is_some_and(|line| line.name == "unsigned" && line.value == 0.3));
    assert_eq!(sizes[0].series[0].bars[2].map(|bar| bar.value), Some(4.0));
}

#[test]
fn published_figures_stand_beside() {
    let report = sample().report().expect("a report");
    // The measured and the published ratio at each level, and the ratio of the sizes.
    for part in ["Falcon-512*: ", " 20.0 ", " 20.3)", " 2.00 ", " 2.1)", " 4.0."] {
        assert!(report.lead.contains(part), "{part}: {}", report.lead);
    }
    let tables = tables(section_with(&report, "published"));
    let first = &tables[0].rows[0];
    assert_eq!(first[..5], ["Falcon-512*", "x86-64-v2", "20.3", "like tld, 1,000 delegations", "20.0"]);
    let size = tables[1].rows.iter().find(|row| row[0] == "Falcon-512*").expect("a row");
    assert_eq!((size[1].as_str(), size[3].as_str()), ("4.01", "4.00"));
    let finding = &tables[2].rows[0];
    assert_eq!((finding[1].as_str(), finding[3].as_str()), ("Falcon-512* / RSA-1280", "0.50"));
}

#[test]
fn what_was_left_out_is_told_and_data_alone_make_the_page() {
    let results = sample();
    let report = results.report().expect("a report");
    assert!(report.text.contains("--set minutes=0"), "{}", report.text);
    assert!(report.text.contains("Falcon-512*"), "{}", report.text);
    let directory = tempfile::tempdir().expect("a directory");
    store::save(directory.path(), &results).expect("saved");
    let loaded = store::load(directory.path()).expect("loaded");
    let loaded = loaded.first();
    assert_eq!(*loaded, results);
    let page = loaded.page().expect("a page");
    assert_eq!(page, results.page().expect("a page"));
    for text in [
        "tld:1000, NSEC: RSA-1280 at x86-64-v3",
        "Falcon-512* is experimental: it will change.",
        "11924",
        "20.3",
    ] {
        assert!(page.contains(text), "{text}");
    }
    let code = tables(section_with(&report, "kernel"));
    let code = code
        .iter()
        .find(|table| table.columns.get(4).is_some_and(|column| column.title == "kernel"))
        .expect("a table");
    assert_eq!(code.rows[1], ["x86-64-v2", "ECDSA P-256", "sign", "nonesuch", "another", "x86-64-v2", "64"]);
    let resigned = tables(section_with(&report, "changed"));
    assert_eq!(resigned[0].rows[0][4..7], ["zone files", "2.00", "0.200"]);
    let served = tables(section_with(&report, "messages"));
    let names: Vec<&str> = served[0].rows.iter().map(|row| row[2].as_str()).collect();
    assert_eq!(names, ["unsigned", "Falcon-512*"]);
}

#[test]
fn a_report_of_no_rows_and_a_record_of_two_methods_are_no_panic() {
    let mut results = sample();
    results.data = findings().data;
    assert!(results.page().is_ok());
    results.data = DataTable::new(definition().presentation().columns()[..3].to_vec());
    assert!(results.page().is_err());
    let other = Definition::find("verification-benchmark", ParameterOverrides::default()).expect("built in");
    let results =
        Results { record: Record { experiment: other, ..results.record }, data: sample_data().data };
    assert!(results.page().is_err());
}

#[test]
fn the_page_speaks_of_the_levels_that_were_measured_and_marks_what_is_experimental() {
    let mut results = sample();
    // The text above the charts of signing, and their titles.
    let signing = |results: &Results| {
        let report = results.report().expect("a report");
        let section = report.sections.iter().find(|section| section.title.starts_with("Figure 1"));
        let section = section.expect("there");
        let Block::Paragraph(text) = &section.blocks[0] else { panic!("no text") };
        let titles: Vec<String> = charts(section).iter().map(|chart| chart.title.clone()).collect();
        (text.clone(), titles)
    };
    let (text, titles) = signing(&results);
    assert!(text.contains("left") && text.contains("right") && titles.len() == 4, "{text}");
    let about = results.record.about.get_mut("zone-signing").expect("of the method");
    about["levels"].as_array_mut().expect("levels").truncate(1);
    about["seconds"] = json!(7.14);
    let (text, titles) = signing(&results);
    assert!(text.contains("x86-64-v3") && !text.contains("left"), "{text}");
    assert!(titles.len() == 2 && titles.iter().all(|title| title.ends_with("x86-64-v3")), "{titles:?}");
    let html = results.page().expect("a page");
    assert!(html.contains("<dd>7.14 s</dd>"));
    assert!(results.report().expect("a report").lead.contains("Falcon-512*: "));
    // Also in the published table.
    assert!(html.contains("<td>Falcon-512*</td>") && !html.contains("<td>Falcon-512</td>"));
}

#[test]
fn nothing_to_measure_is_told_before_anything_is_made() {
    let with = |set: &[(&str, &str)]| {
        let set: Vec<(String, String)> =
            set.iter().map(|(key, value)| ((*key).into(), (*value).into())).collect();
        Definition::find("pqc-signing", ParameterOverrides { full: false, set: &set })
    };
    let nothing = with(&[("algorithms", "[]"), ("additions", "[]"), ("levels", "native")]).expect("sound");
    let options = RunOptions {
        seed: 1,
        now: 0,
        command: String::new(),
        commit: "abc",
        levels_chosen: false,
        program: Path::new("/bin/false"),
        progress: &|_| {},
    };
    let error = run(&nothing, &options).expect_err("refused");
    assert!(matches!(error, RunError::Nothing { .. }), "{error}");
    // The last element: names and values that the message contains.
    for (key, value, words) in [
        ("zones", "tld:0", "'tld:0' KIND:NAMES"),
        ("denial", "nsec4", "nsec3-opt-out"),
        ("minutes", "-1", "-1 0"),
        ("served", "some", "`some`"),
        ("change-share", "0.9", "0.9 0 0.5"),
    ] {
        let error = with(&[(key, value)]).expect_err(value);
        let DefinitionError::Set { key: parameter, value: given, message } = &error else {
            panic!("{error}")
        };
        assert_eq!((parameter.as_str(), given.as_str()), (key, value));
        assert!(words.split(' ').all(|word| message.contains(word)), "wanted {words}, got {error}");
    }
    let Ok(Definition { method: Method::ZoneSigning(full), .. }) =
        Definition::find("pqc-signing", ParameterOverrides { full: true, set: &[] })
    else {
        panic!("another method")
    };
    assert_eq!((full.runs.value(), full.limit(), full.choices().len()), (16, None, 7));
}
