//! `nonesuch plan fit` and `plan predict`: figures of document 000, simulated recordings, and input that
//! is refused.

use crate::common;
use common::{Ended, done, folder, nonesuch, run, snapshot, text};
use nonesuch_lab::cost_model::{
    CountedDomain, DomainCounter, Noise, RecordingSetup, RecordingWriter, Simulation, Window,
};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};

/// Writes the recording of a simulation to a directory.
fn recorded(folder: &Path, simulation: &Simulation) -> PathBuf {
    let directory = folder.join(&simulation.name);
    let recording = simulation.recording();
    let domains = recording.domains.iter().map(|domain| CountedDomain {
        domain: domain.domain.clone(),
        count: domain.queries,
        uncertainty: 0,
        signed: domain.signed,
    });
    write(&directory, recording.windows.clone(), domains.collect());
    directory
}

fn write(directory: &Path, windows: Vec<Window>, domains: Vec<CountedDomain>) {
    let setup = RecordingSetup {
        name: None,
        source: "a simulation".to_owned(),
        verified_by: nonesuch_lab::cost_model::VerificationSource::Counters,
        window: windows.first().map_or(1_000_000, |window| window.length),
    };
    let mut writer = RecordingWriter::open(directory, &setup).expect("a recording");
    for window in windows {
        assert!(writer.push(window).expect("written"));
    }
    writer.flush(Some(&DomainCounter::restored(domains))).expect("written");
}

fn json(arguments: &[&str]) -> Value {
    let output = done([&["plan"], arguments, &["--json"]].concat()).stdout;
    serde_json::from_str(&output).expect("JSON")
}

fn refused(arguments: &[&str]) -> Ended {
    let ended = run(&mut nonesuch([&["plan"], arguments].concat()));
    assert_eq!(ended.status, 2, "{}", ended.text());
    ended
}

/// The numbers of an object, by their path: `/model/windows`.
#[track_caller]
fn number(value: &Value, path: &str) -> f64 {
    value.pointer(path).and_then(Value::as_f64).unwrap_or_else(|| panic!("no number {path}: {value}"))
}

#[test]
fn the_shares_of_a_core_are_those_of_document_000() {
    for arguments in [
        &["predict", "--rates", "published"][..],
        &["predict", "--validations", "150", "--rates", "published"],
    ] {
        let found = json(arguments);
        let needs = found["resolvers"][0]["today"]["requirements"].as_array().expect("requirements");
        let shares: Vec<f64> = needs.iter().map(|need| number(need, "/core_share") * 100.0).collect();
        // P-384, P-256 of OpenSSL 1.0.1 and 1.0.2, Ed25519, Ed448, as the document rounds them.
        let printed = [(12.0, 0), (4.0, 0), (1.5, 1), (1.1, 1), (3.1, 1)];
        assert_eq!(shares.len(), printed.len());
        for (share, (expected, decimals)) in shares.iter().zip(printed) {
            assert_eq!(format!("{share:.decimals$}"), format!("{expected:.decimals$}"));
        }
        assert_eq!(found["home_router"]["keeps_up"], true);
    }
}

#[test]
fn parameters_that_the_document_does_not_have_are_labelled_assumed() {
    let found = json(&["predict", "--rates", "published", "--cache-hit-rate", "0.6"]);
    let sources = |path: &str| -> Vec<(String, String)> {
        let inputs = found.pointer(path).and_then(Value::as_array).expect("inputs");
        let text = |value: &Value| value.as_str().expect("a text").to_owned();
        inputs.iter().map(|input| (text(&input["name"]), text(&input["provenance"]))).collect()
    };
    let source = |path: &str, start: &str| {
        let found = sources(path).into_iter().find(|(name, _)| name.starts_with(start));
        found.unwrap_or_else(|| panic!("no {start}")).1
    };
    assert_eq!(source("/resolvers/0/inputs", "S_v"), "document");
    assert_eq!(source("/resolvers/0/inputs", "Q"), "assumed");
    let router = |start| source("/home_router/inputs", start);
    assert_eq!([router("simultaneous"), router("client queries"), router("ECDSA")], ["document"; 3]);
    assert_eq!(
        [router("share of client"), router("queries for each"), router("a:")],
        ["given", "assumed", "assumed"]
    );
    let output = done(["plan", "predict", "--rates", "published"]).stdout;
    assert!(output.contains("1,800  assumed") && output.contains("35.0  document 000"), "{output}");
}

#[test]
fn the_home_router_depends_on_the_cache_hit_rate() {
    let base = [
        "predict",
        "--rates",
        "published",
        "--validations",
        "900",
        "--queries",
        "1000",
        "--queries-per-miss",
        "1",
    ];
    let router = |rate: &str| json(&[&base[..], &["--cache-hit-rate", rate]].concat())["home_router"].clone();
    let (low, high) = (router("0.3"), router("0.4"));
    // 60 · 0.7 · 0.9 = 37.8, and 60 · 0.6 · 0.9 = 32.4 of 35 verifications.
    assert!((number(&low, "/validations") - 37.8).abs() < 1e-9 && low["keeps_up"] == false);
    assert!((number(&high, "/validations") - 32.4).abs() < 1e-9 && high["keeps_up"] == true);
}

#[test]
fn every_algorithm_is_measured_on_this_machine() {
    let found = json(&["predict", "--rates", "measured", "--seconds", "0.01"]);
    let rates = found["rates"].as_array().expect("rates");
    let schemes: Vec<&str> = rates.iter().filter_map(|rate| rate["scheme"].as_str()).collect();
    for scheme in [
        "RSA-2048",
        "ECDSA P-256",
        "ECDSA P-384",
        "Ed25519",
        "Ed448",
        "ML-DSA-44",
        "Falcon-512",
        "MAYO-2",
        "SLH-DSA-128s",
    ] {
        assert!(schemes.contains(&scheme), "{scheme}: {schemes:?}");
    }
    assert!(rates.iter().all(|rate| number(rate, "/per_second") > 0.0));
    assert!(rates.iter().any(|rate| rate["is_batch"] == true));
}

#[test]
fn the_true_parameters_are_in_the_intervals_of_a_fit() {
    let folder = folder();
    for (name, noise, method) in [
        ("independent", Noise::Independent, "least-squares"),
        ("correlated", Noise::Correlated { correlation: 0.5 }, "newey-west"),
    ] {
        let simulation = Simulation { name: name.to_owned(), noise, ..Simulation::default() };
        let found = json(&["fit", text(&recorded(folder.path(), &simulation))]);
        let model = &found["fits"][0]["model"];
        let (a, _) = simulation.composed();
        let estimates = (0..4)
            .map(|line| (format!("/lines/{line}/slope"), simulation.slopes[line]))
            .chain([("/composed/slope".to_owned(), a)]);
        for (path, truth) in estimates {
            let (low, high) = (number(model, &format!("{path}/low")), number(model, &format!("{path}/high")));
            assert!(low <= truth && truth <= high, "{name} {path}: {low} {high}");
        }
        assert_eq!(model["composed"]["intervals"]["method"], method);
    }
}

#[test]
fn the_method_of_intervals_can_be_chosen() {
    let folder = folder();
    let directory = recorded(folder.path(), &Simulation::default());
    let method = |more: &[&str]| {
        let found = json(&[&["fit", text(&directory)], more].concat());
        found["fits"][0]["model"]["lines"][0]["intervals"].clone()
    };
    assert_eq!(method(&["--intervals", "hac"])["lags"], 28);
    assert_eq!(method(&["--intervals", "hac:5"])["lags"], 5);
    assert_eq!(method(&["--intervals", "ols"])["method"], "least-squares");
}

#[test]
fn recordings_are_compared_under_the_names_of_their_arguments() {
    let folder = folder();
    let slopes = [0.97, 0.22, 1.4, 0.6];
    let other = Simulation { name: "second".to_owned(), slopes, seed: 2, ..Simulation::default() };
    let [first, second] =
        [Simulation::default(), other].map(|simulation| recorded(folder.path(), &simulation));
    let out = folder.path().join("out");
    let named = [format!("unbound/campus={}", text(&first)), format!("bind/campus={}", text(&second))];
    let output = done(["plan", "fit", &named[0], &named[1], "--out", text(&out)]).stdout;
    assert!(output.contains("2 recordings of 2 named resolver programs"), "{output}");
    assert!(output.contains("The worst case is bind, campus: second"), "{output}");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("unbound, campus: simulated") && page.contains("Criterion IV"));
    let written: Value =
        serde_json::from_slice(&fs::read(out.join("fit.json")).expect("written")).expect("JSON");
    assert_eq!(
        (written["worst_case"].as_u64(), &written["fits"][1]["resolver"]),
        (Some(1), &Value::from("bind"))
    );
    assert!(written["run"]["machine"]["cpus"].is_u64());
}

#[test]
fn a_prediction_from_a_recording_has_both_scenarios_and_sizes() {
    let folder = folder();
    let directory = recorded(folder.path(), &Simulation::default());
    let rates = folder.path().join("rates.toml");
    fs::write(&rates, "[[rate]]\nname = 'small device'\nalgorithm = 'MLDSA44'\nper-second = 900\n")
        .expect("written");
    let ranking = folder.path().join("ranking.csv");
    fs::write(&ranking, "1,d2.example\n2,d1.example\n").expect("written");
    let out = folder.path().join("out");
    let sources = format!("published,{}", text(&rates));
    let arguments = ["predict", text(&directory), "--rates", &sources, "--cores", "8", "--out", text(&out)];
    let found = json(&arguments);
    let resolver = &found["resolvers"][0];
    let all = &resolver["all_signed"];
    let (today, later) =
        (number(resolver, "/today/validations/mean"), number(all, "/scenario/validations/mean"));
    assert!(later > 3.0 * today, "{today} {later}");
    let device = &all["scenario"]["requirements"][5];
    let ratio = number(device, "/max_queries_all_cores") / number(device, "/max_queries");
    assert!((7.9..8.2).contains(&ratio), "{ratio}");
    let sizes = resolver["octets"].as_array().expect("octets");
    let of =
        |scheme: &str| sizes.iter().find(|row| row["scheme"] == scheme).unwrap_or_else(|| panic!("{scheme}"));
    assert!(number(of("ML-DSA-44"), "/all_signed/tcp_share") > 0.99);
    assert!(number(of("ECDSA P-256"), "/all_signed/tcp_share") < 0.01);
    let growth = |more: &[&str]| {
        let found = json(&[&arguments[..], more].concat());
        number(&found, "/resolvers/0/all_signed/growth/1/signed_share")
    };
    // d1 has twice as many queries as d2.
    assert!(growth(&[]) > growth(&["--ranking", text(&ranking)]));
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(
        page.contains("small device")
            && page.contains("Highest Q of one core")
            && out.join("predict.json").exists()
    );
}

#[test]
fn input_that_cannot_be_used_is_refused() {
    let folder = folder();
    let short = Simulation { name: "short".to_owned(), windows: 12, ..Simulation::default() };
    let short = recorded(folder.path(), &short);
    let constant = folder.path().join("constant");
    let windows = Simulation::default().recording().windows;
    let same = windows.into_iter().map(|window| Window { queries: 60_000, ..window });
    write(&constant, same.collect(), Vec::new());
    let rates = folder.path().join("rates.toml");
    fs::write(&rates, "[[rate]]\nname = 'x'\nalgorithm = 'ED25519'\nper-second = 0\n").expect("written");
    let missing = folder.path().join("missing");
    let cases: [(&str, &[&str]); 10] = [
        ("too few windows", &["fit", text(&short)]),
        ("constant Q", &["fit", text(&constant)]),
        ("constant Q of a prediction", &["predict", text(&constant), "--rates", "published"]),
        ("no recording", &["fit", text(&missing)]),
        ("a rate of 0", &["predict", "--rates", text(&rates)]),
        ("no file of rates", &["predict", "--rates", text(&missing)]),
        ("a load and a recording", &["predict", text(&short), "--validations", "150"]),
        ("no number", &["predict", "--validations", "NaN"]),
        ("an unknown method of intervals", &["fit", text(&short), "--intervals", "ols:5"]),
        ("a share above 1", &["predict", "--signed-share", "1.5"]),
    ];
    for (case, arguments) in cases {
        snapshot::check("plan", case, refused(arguments).error());
    }
}
