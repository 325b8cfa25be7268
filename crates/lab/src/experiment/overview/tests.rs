//! The overview from small stored results, and with results that are missing, damaged or old.

use super::*;
use crate::data::DataTable;
use crate::experiment::results::FORMAT;
use crate::experiment::verification::tests::sample;
use crate::experiment::{ParameterOverrides, built_in};
use crate::record::measurement_columns;
use serde_json::{Value, json};
use std::collections::HashSet;

fn experiments() -> Vec<Definition> {
    built_in(ParameterOverrides::default()).expect("sound")
}

/// Results of the experiment `name`. Columns that a row does not state are missing.
fn results(name: &str, rows: &[Value]) -> Results {
    let experiment = Definition::find(name, ParameterOverrides::default()).expect("built in");
    let columns = [experiment.presentation().columns(), measurement_columns()].concat();
    let empty = columns.iter().map(|column| (column.name.clone(), Value::Null));
    let empty: serde_json::Map<String, Value> = empty.collect();
    let mut data = DataTable::new(columns);
    for row in rows {
        let mut cells = empty.clone();
        cells.extend(row.as_object().expect("an object").clone());
        data.push_row(&cells).expect("a row");
    }
    let about = json!({ "version": "Nonesuch 0.1" });
    let record = Record {
        format: FORMAT,
        about: BTreeMap::from([(experiment.method.name().to_owned(), about)]),
        experiment,
        run: crate::record::tests::sample("a-run", "a-machine"),
        notes: Vec::new(),
        seconds: Some(60.0),
    };
    Results { record, data }
}

/// A load of one second with queries for names that do not exist.
fn load_row(server: &str, denial: &str, received: u64) -> Value {
    json!({
        "round": 0, "server": server, "zone": "sld:1000", "scheme": "ECDSA P-256", "denial": denial, "iterations": 0,
        "queries": "label", "rate": 64_000.0, "payload": 1232, "sent": 64_000, "received": received, "late": 0,
        "lost": 0, "unsent": 0, "seconds": 1.0, "user_us": 20.0, "system_us": 10.0,
    })
}

/// A directory with the results of two experiments.
fn stored() -> tempfile::TempDir {
    let dir = tempfile::tempdir().expect("a directory");
    store::save(&dir.path().join("verification-benchmark"), &sample()).expect("saved");
    let rows = [load_row("nonesuch", "nsec5", 30_000), load_row("powerdns", "white-lies", 16_000)];
    let throughput = results("nsec5-throughput", &rows);
    store::save(&dir.path().join("nsec5-throughput"), &throughput).expect("saved");
    dir
}

fn claim_of<'o>(overview: &'o Overview, document: &str, name: &str) -> &'o ClaimPart {
    let document = overview.page.documents.iter().find(|part| part.id == document).expect("a document");
    document.claims.iter().find(|claim| claim.name == name).expect("a claim")
}

fn experiment_of<'o>(overview: &'o Overview, name: &str) -> &'o ExperimentPart {
    overview.page.experiments.iter().find(|part| part.report.name == name).expect("an experiment")
}

#[test]
fn the_documents_and_their_claims_are_sound() {
    let form: Form = toml::from_str(TEXT).expect("sound");
    assert_eq!((form.document.len(), form.document.len()), (5, FORM.document.len()));
    let mut names = HashSet::new();
    for document in &form.document {
        let id = &document.publication;
        assert!(published::publication(id).is_some(), "{id}");
        assert!(document.question.ends_with('?'), "{id}");
        assert!((3..=12).contains(&document.claim.len()), "{id}: {}", document.claim.len());
        for claim in &document.claim {
            assert!(names.insert((id, &claim.name)), "{id}: two claims {}", claim.name);
            assert!(claim.text.ends_with('.') && !claim.place.is_empty(), "{id}: {}", claim.name);
            let published = claim.published().unwrap_or_else(|error| panic!("{id}, {}: {error}", claim.name));
            assert!(!published.is_empty() && !published.contains('–'), "{id}, {}: {published}", claim.name);
        }
    }
}

/// An unknown name is missing and no error, so that a claim with a misspelt name would silently not
/// be measured.
#[test]
fn each_expression_of_a_claim_uses_names_of_its_experiment() {
    let experiments = experiments();
    for claim in FORM.document.iter().flat_map(|document| &document.claim).filter(|claim| claim.is_bound()) {
        let (name, experiment) = (&claim.name, &claim.experiment);
        let definition = experiments.iter().find(|definition| definition.name == *experiment);
        let definition = definition.unwrap_or_else(|| panic!("{name}: unknown experiment {experiment}"));
        let scope = definition.presentation().empty_scope().expect("a scope");
        let unknown = claim.try_out(&scope).unwrap_or_else(|error| panic!("{name}: {error}"));
        assert!(unknown.is_empty(), "{name}: unknown names {unknown:?}");
        assert!(
            claim.is_complete(),
            "{name}: needs `measured`, `reason`, and both `agrees` and `rule` or none"
        );
        let found = claim.judge(&scope);
        assert_eq!(found.verdict, Verdict::NotMeasured, "{name} without rows: {found:?}");
        assert!(!found.reason.contains("cannot be computed"), "{name}: {}", found.reason);
    }
}

#[test]
fn claims_are_compared_with_stored_results() {
    let dir = stored();
    let overview = write(dir.path(), &experiments()).expect("written");
    let ratio = claim_of(&overview, "ecc-validation-slides", "P-256 against RSA-2048");
    assert_eq!((ratio.verdict, ratio.published.as_str()), ("agrees", "3.60 times slower"));
    assert!(ratio.measured.starts_with("4.00 times slower"), "{}", ratio.measured);
    let p384 = claim_of(&overview, "ecc-validation-slides", "P-384");
    assert_eq!((p384.verdict, p384.measured.as_str()), ("not-measured", ""));
    assert_eq!(p384.reason, "The results do not contain the figure.");
    let throughput = claim_of(&overview, "nsec5", "throughput");
    assert_eq!(throughput.verdict, "agrees", "{throughput:?}");
    assert!(throughput.measured.contains("30,000 and 16,000"), "{}", throughput.measured);
    let count = overview.page.documents[0].count;
    assert_eq!((count.all, count.agree, count.differ, count.not_measured), (10, 3, 0, 7));
    assert_eq!(overview.page.documents[0].reports.len(), 1, "one link for all claims of an experiment");
}

#[test]
fn the_page_has_all_claims_and_relative_links() {
    let dir = stored();
    write(dir.path(), &experiments()).expect("written");
    let html = fs::read_to_string(page_path(dir.path())).expect("a page");
    for document in &FORM.document {
        assert!(
            html.contains(&format!("<section id=\"{}\">", document.publication)),
            "{}",
            document.publication
        );
    }
    for part in [
        "<a href=\"../verification-benchmark/report.html\">verification-benchmark</a>",
        "<span class=\"verdict agrees\">✓ agrees</span>",
        "<span class=\"verdict not-measured\">– not measured</span>",
        "Left out: x86-64-v2.",
        "No results: the file pqc-signing/results.json does not exist.",
        "A CPU, usable CPUs: 2",
        "60.0 s",
    ] {
        assert!(html.contains(part), "{part}");
    }
    assert!(html.contains("script-src 'none'") && !html.contains("<script"));
    for address in html.split("href=\"").skip(1).map(|rest| rest.split('"').next().expect("an end")) {
        let target = dir.path().join("report").join(address);
        assert!(address.starts_with('#') || target.is_file(), "{address}");
    }
    // The same results are the same page.
    let json = write(dir.path(), &experiments()).expect("written").json();
    assert_eq!(fs::read_to_string(page_path(dir.path())).expect("a page"), html);
    assert_eq!(json["documents"].as_array().map(Vec::len), Some(5));
}

#[test]
fn a_page_without_results_is_a_page_too() {
    let dir = tempfile::tempdir().expect("a directory");
    let overview = write(dir.path(), &experiments()).expect("written");
    let count = overview.page.count();
    assert_eq!((count.agree, count.differ, count.not_measured), (0, 0, count.all));
    assert!(overview.page.run_facts.is_empty());
    assert!(overview.text().contains("! pqc-signing: No results"), "{}", overview.text());
}

#[test]
fn a_failed_experiment_is_named_until_it_has_later_results() {
    let dir = stored();
    let experiments = experiments();
    let failure = |now| Failure::new("verification-benchmark", now, &"a cable is loose");
    let both = |now| vec![failure(now), Failure::new("pqc-signing", now, &"no space")];
    // The results are of 2026-03-01T12:00:00Z.
    store_failures(dir.path(), &both(1_772_366_500)).expect("written");
    let overview = write(dir.path(), &experiments).expect("written");
    let known = experiment_of(&overview, "verification-benchmark");
    assert!(known.problem.contains("a cable is loose") && known.problem.contains("earlier run"), "{known:?}");
    assert!(known.report.address.ends_with("report.html") && known.answer.is_empty());
    assert!(experiment_of(&overview, "pqc-signing").problem.contains("no space"));
    let claim = claim_of(&overview, "ecc-validation-slides", "Ed25519");
    assert!(claim.verdict == "not-measured" && claim.reason.contains("a cable is loose"), "{claim:?}");
    assert_eq!(claim_of(&overview, "nsec5", "throughput").verdict, "agrees", "other claims remain");
    // All but nsec5-throughput.
    let count = format!("{} of {}", experiments.len() - 1, experiments.len());
    assert!(overview.page.notes[0].contains(&count), "{:?}", overview.page.notes);

    store_failures(dir.path(), &both(1_772_366_300)).expect("written");
    let overview = write(dir.path(), &experiments).expect("written");
    assert_eq!(experiment_of(&overview, "verification-benchmark").problem, "");
    assert_eq!(claim_of(&overview, "ecc-validation-slides", "Ed25519").verdict, "agrees");
}

#[test]
fn unusable_results_are_named_and_the_other_claims_remain() {
    let dir = stored();
    let benchmark = dir.path().join("verification-benchmark");
    store::save(&dir.path().join("nsec5-mixed"), &sample()).expect("saved");
    fs::write(benchmark.join(store::CSV_FILE), "a,b\r\n").expect("written");
    fs::write(dir.path().join("report.txt"), "").expect("written");
    let overview = write(dir.path(), &experiments()).expect("written");
    let problem = &experiment_of(&overview, "verification-benchmark").problem;
    assert!(problem.contains("cannot be read") && problem.contains(store::CSV_FILE), "{problem}");
    let problem = &experiment_of(&overview, "nsec5-mixed").problem;
    assert!(problem.contains("verification-benchmark"), "{problem}");
    assert_eq!(claim_of(&overview, "nsec5", "throughput").verdict, "agrees");
}

#[test]
fn results_of_several_machines_and_builds_are_noted() {
    let dir = stored();
    let mut other = results("nsec5-throughput", &[]);
    other.record.run.machine.id = "another".to_owned();
    other.record.run.commit = "v0.2.0".to_owned();
    store::save(&dir.path().join("nsec5-throughput"), &other).expect("saved");
    let notes = write(dir.path(), &experiments()).expect("written").page.notes.join("\n");
    assert!(notes.contains("2 machines") && notes.contains("v0.2.0"), "{notes}");
}

#[test]
fn a_directory_of_several_results_is_not_one_of_a_single_run() {
    let dir = stored();
    let experiments = experiments();
    assert!(is_collection(dir.path(), &experiments));
    assert!(!is_collection(&dir.path().join("nsec5-throughput"), &experiments));
    assert!(!is_collection(&dir.path().join("none"), &experiments));
    store::save(dir.path(), &sample()).expect("saved");
    assert!(!is_collection(dir.path(), &experiments), "results of its own take precedence");
}
