//! `nonesuch lab`: output files, printed output and rejected arguments. No assertion depends on
//! speed.

use crate::common;
use common::{done, folder, nonesuch, run, snapshot};
use nonesuch_lab::peers::Peer;
use nonesuch_net::namespace::NetworkNamespace;
use nonesuch_testing::{record_skip, require_peer};
use serde_json::Value;
use std::fs;
use std::io::Write as _;
use std::path::Path;
use std::process::Stdio;

/// Settings for a run of a fraction of a second.
const TINY: [&str; 10] = [
    "--set",
    "iterations=2",
    "--set",
    "seconds=0.01",
    "--set",
    "algorithms=ED25519,RSASHA256/1024,ECDSAP256SHA256",
    "--set",
    "levels=native",
    "--set",
    "openssl-iterations=0",
];

/// Runs the benchmark with output to `out`.
fn run_tiny(out: &Path, more: &[&str]) -> common::Ended {
    let out = out.to_str().expect("a path of UTF-8");
    done([&["lab", "run", "verification-benchmark", "--out", out][..], &TINY, more].concat())
}

/// Runs an experiment with these parameters and output to `out`. Returns the lines of its summary.
fn lines_of(experiment: &str, out: &Path, settings: &[&str]) -> Vec<Value> {
    let mut arguments = vec!["lab", "run", experiment, "--json", "--out", out.to_str().expect("UTF-8")];
    arguments.extend(settings.iter().flat_map(|setting| ["--set", setting]));
    let printed: Value = serde_json::from_str(&done(arguments).stdout).expect("JSON");
    printed["summary"]["lines"].as_array().expect("lines").clone()
}

/// Runs a command in `folder`; expects status 2 and one line on standard error, as in the section
/// `case` of the snapshot of the command. Returns the line.
#[track_caller]
fn refused(folder: &Path, arguments: &[&str], case: &str) -> String {
    let ended = run(nonesuch(arguments).current_dir(folder));
    assert_eq!(ended.status, 2, "{arguments:?}: {}", ended.text());
    assert_eq!(ended.stdout, "", "{arguments:?}");
    assert_eq!(ended.stderr.lines().count(), 1, "{arguments:?}: {}", ended.stderr);
    snapshot::check(&arguments[..2].join(" "), case, &ended.stderr);
    ended.stderr
}

#[test]
fn a_run_leaves_all_files_and_its_report_can_be_made_again() {
    let folder = folder();
    let out = folder.path().join("results");
    let shown = run_tiny(&out, &["--now", "2026-03-01T12:00:00Z", "--seed", "5"]).stdout;
    assert!(shown.contains("ECDSA P-256") && shown.contains("results.parquet"), "{shown}");
    let mut names: Vec<_> = fs::read_dir(&out)
        .expect("a directory")
        .map(|entry| entry.expect("an entry").file_name().into_string().expect("UTF-8"))
        .collect();
    names.sort();
    assert_eq!(names, ["report.html", "results.csv", "results.json", "results.parquet", "runs.csv"]);

    let record: Value =
        serde_json::from_slice(&fs::read(out.join("results.json")).expect("a record")).expect("JSON");
    assert_eq!(record["date"], "2026-03-01T12:00:00Z");
    assert_eq!((&record["seed"], &record["experiment"]["parameters"]["iterations"]), (&5.into(), &2.into()));
    // Three algorithms with both operations, a batch that is verified, and a batch with both
    // operations, twice.
    assert_eq!(record["rows"], 18);
    let csv = fs::read_to_string(out.join("results.csv")).expect("a table");
    assert_eq!(csv.lines().count(), 19);
    assert!(fs::read(out.join("results.parquet")).expect("a file").starts_with(b"PAR1"));

    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    fs::remove_file(out.join("report.html")).expect("removed");
    done(["lab", "report", out.to_str().expect("UTF-8")]);
    assert_eq!(fs::read_to_string(out.join("report.html")).expect("a page"), page);
}

/// Returns the commands `duckdb` in the manual, from the line after `DIR` is replaced by `dir`.
fn manual_queries(dir: &Path) -> Vec<String> {
    let manual = include_str!("../../../../docs/laboratory.md");
    let queries = manual.lines().filter_map(|line| line.strip_prefix("    duckdb -c \""));
    let dir = dir.to_str().expect("UTF-8");
    queries.map(|query| query.trim_end_matches('"').replace("DIR/", &format!("{dir}/"))).collect()
}

#[test]
fn runs_of_two_machines_are_merged_and_the_queries_of_the_manual_work() {
    let folder = folder();
    let [one, two, out] = ["one", "two", "merged"].map(|name| folder.path().join(name));
    let ids = [&one, &two].map(|dir| {
        let printed: Value = serde_json::from_str(&run_tiny(dir, &["--json"]).stdout).expect("JSON");
        assert_eq!(printed["record"]["machine"]["id"].as_str().map(str::len), Some(32));
        printed["record"]["run_id"].as_str().expect("an identifier").to_owned()
    });
    let [first, second, merged] = [&one, &two, &out].map(|dir| dir.to_str().expect("UTF-8"));
    let shown = done(["lab", "merge", first, second, first, "--out", merged]).stdout;
    assert!(ids.iter().all(|id| shown.contains(&id[..8])), "{shown}");
    let csv = fs::read_to_string(out.join("results.csv")).expect("a table");
    assert_eq!(csv.lines().count(), 37);
    assert!(ids.iter().all(|id| csv.matches(id.as_str()).count() == 18));
    done(["lab", "report", merged]);
    let queries = manual_queries(&out);
    assert!(queries.len() >= 3, "{queries:?}");
    require_peer!("duckdb");
    for query in queries {
        let ended =
            std::process::Command::new("duckdb").args(["-csv", "-c", &query]).output().expect("started");
        let printed = String::from_utf8_lossy(&ended.stdout).into_owned();
        assert!(ended.status.success(), "{query}: {}", String::from_utf8_lossy(&ended.stderr));
        assert!(printed.lines().count() > 1, "{query}: {printed}");
    }
}

#[test]
fn the_overview_of_several_results_can_be_made_again() {
    let folder = folder();
    run_tiny(&folder.path().join("verification-benchmark"), &[]);
    let dir = folder.path().to_str().expect("UTF-8");
    let shown = done(["lab", "report", dir]).stdout;
    assert!(
        shown.contains("P-256 against RSA-2048") && shown.contains("! pqc-signing: No results"),
        "{shown}"
    );
    let page = fs::read_to_string(folder.path().join("report/index.html")).expect("a page");
    assert!(page.contains("../verification-benchmark/report.html"), "{page}");
    let printed: Value = serde_json::from_str(&done(["lab", "report", dir, "--json"]).stdout).expect("JSON");
    let experiments = printed["experiments"].as_array().expect("experiments");
    let benchmark = experiments.iter().find(|one| one["report"]["name"] == "verification-benchmark");
    let benchmark = benchmark.expect("the experiment");
    assert!(
        benchmark["problem"] == "" && benchmark["duration"].as_str().is_some_and(|text| text.ends_with(" s"))
    );
    let claims = printed["documents"][0]["claims"].as_array().expect("claims");
    // The tiny run verifies P-256 and Ed25519, but not P-384.
    assert_eq!(
        (claims[0]["verdict"] != "not-measured", &claims[2]["verdict"]),
        (true, &"not-measured".into())
    );
    let markdown = done(["lab", "report", dir, "--markdown"]).stdout;
    assert!(markdown.starts_with("## ") && markdown.contains("```text"), "{markdown}");
}

/// Directories with other files let each experiment fail at once.
#[test]
fn a_run_of_all_experiments_that_fail_leaves_the_overview_with_the_reasons() {
    let folder = folder();
    let listed: Value = serde_json::from_str(&done(["lab", "list", "--json"]).stdout).expect("JSON");
    let names = listed["experiments"].as_array().expect("experiments").iter();
    let names: Vec<&str> = names.filter_map(|one| one["name"].as_str()).collect();
    assert!(names.len() > 10);
    for name in &names {
        let dir = folder.path().join("nonesuch-lab").join(name);
        fs::create_dir_all(&dir).expect("a directory");
        fs::write(dir.join("results.json"), "{}").expect("written");
    }
    let ended = run(nonesuch(["lab", "run", "all", "--quick"]).current_dir(folder.path()));
    assert_eq!(ended.status, 2, "{}", ended.text());
    assert!(ended.stdout.contains("nonesuch-lab/report/index.html written"), "{}", ended.stdout);
    let page = fs::read_to_string(folder.path().join("nonesuch-lab/report/index.html")).expect("a page");
    assert_eq!(page.matches("The run failed: nonesuch-lab/").count(), page.matches("--overwrite.").count());
    assert!(page.matches("The run failed: nonesuch-lab/").count() >= names.len());
    let out = folder.path().join("other");
    fs::rename(folder.path().join("nonesuch-lab"), &out).expect("renamed");
    let again = run(nonesuch(["lab", "run", "all", "--out", "other"]).current_dir(folder.path()));
    assert!(again.stdout.contains("other/report/index.html written"), "{}", again.text());
}

#[test]
fn json_has_the_record_and_a_summary() {
    let folder = folder();
    let ended = run_tiny(&folder.path().join("out"), &["--json", "--cpu", "none"]);
    let printed: Value = serde_json::from_str(&ended.stdout).expect("JSON alone");
    assert_eq!(printed["record"]["experiment"]["parameters"]["cpu"], "none");
    let lines = printed["summary"]["lines"].as_array().expect("lines");
    assert_eq!(lines.len(), 9);
    assert!(
        lines
            .iter()
            .all(|line| line["per_second"]["count"] == 2 && line["per_second"]["mean"].as_f64() > Some(0.0))
    );
    let ratios = printed["summary"]["ratios"].as_array().expect("ratios");
    assert!(
        ratios.iter().any(|ratio| ratio["scheme"] == "ECDSA P-256" && ratio["times_slower"][0].is_number())
    );
}

/// Sizes are exact, so that their relations do not depend on the machine.
#[test]
fn loads_compare_two_algorithms_and_compose_a_transition_to_nsec5() {
    let folder = folder();
    let out = folder.path().join("out");
    let settings = [
        "zones=sld:20",
        "seconds=0.05",
        "rounds=1",
        "samples=4",
        "outstanding=4",
        "queries=denied,SOA",
        "algorithms=ED25519,ED25519+ECDSAP256SHA256",
        "payloads=[512,1232]",
    ];
    let lines = lines_of("algorithm-rollover", &out, &settings);
    // The unsigned zone, NSEC3 with one and with two algorithms, NSEC5, and both.
    assert_eq!(lines.len(), 5 * 2 * 2);
    let line = |server: &str, denial: &str, scheme: &str, queries: &str, payload: u64| {
        let is_it = |line: &&Value| {
            line["server"] == server
                && line["denial"] == denial
                && line["scheme"] == scheme
                && line["queries"] == queries
                && line["payload"] == payload
        };
        lines.iter().find(is_it).unwrap_or_else(|| panic!("no line for {server} {denial} {scheme} {queries}"))
    };
    let octets = |line: &Value| line["octets"]["median"].as_f64().expect("octets");
    let both = "Ed25519 + ECDSA P-256";
    // Two RRSIG records: 18 octets of fields and the signer `example.`, 64 of the signature, and 12
    // of a record with a compressed owner.
    let rrsig = (18 + 9 + 64 + 12) as f64;
    let soa = octets(line("nonesuch", "nsec3", "Ed25519", "SOA", 1232));
    assert_eq!(octets(line("nonesuch", "nsec3", both, "SOA", 1232)), soa + rrsig);
    assert_eq!(octets(line("composed", "nsec3+nsec5", "Ed25519", "SOA", 1232)), soa + rrsig);
    let denied = |server, denial| octets(line(server, denial, "Ed25519", "denied", 1232));
    let (nsec3, nsec5) = (denied("nonesuch", "nsec3"), denied("nonesuch", "nsec5"));
    let composed = denied("composed", "nsec3+nsec5");
    assert!(nsec3.max(nsec5) < composed && composed < nsec3 + nsec5, "{nsec3} {nsec5} {composed}");
    // All responses exceed 512 octets. A truncated response has about the size of the query.
    let small = line("nonesuch", "nsec3", both, "denied", 512);
    assert_eq!(small["truncated_share"]["median"], 1.0);
    let factor = small["amplification"]["median"].as_f64().expect("a factor");
    assert!((0.8..1.2).contains(&factor), "{factor}");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("Ed25519 + ECDSA P-256") && page.contains("NSEC3 and NSEC5, composed"));
}

#[test]
fn mixed_traffic_has_the_shares_that_were_asked_for() {
    let folder = folder();
    let out = folder.path().join("out");
    let settings = [
        "zones=sld:50",
        "seconds=0.05",
        "rounds=2",
        "samples=4",
        "servers=nonesuch",
        "combinations=ECDSAP256SHA256 nsec3,ECDSAP256SHA256 nsec5",
        "queries=label:0,label:50,label:100",
    ];
    let lines = lines_of("nsec5-mixed", &out, &settings);
    assert_eq!(lines.len(), 2 * 3);
    for denial in ["nsec3", "nsec5"] {
        let line = |queries: &str| {
            let is_it = |line: &&Value| line["denial"] == denial && line["queries"] == queries;
            lines.iter().find(is_it).unwrap_or_else(|| panic!("no line for {denial} {queries}"))
        };
        let [none, half, all] = ["label:0", "label:50", "label:100"].map(line);
        assert_eq!((&none["rcode"], &all["rcode"]), (&"NOERROR".into(), &"NXDOMAIN".into()));
        let octets = |line: &Value| line["response_octets"].as_f64().expect("octets");
        // The share of the load is random: half of the queries, within a third.
        let share = (octets(half) - octets(none)) / (octets(all) - octets(none));
        assert!((0.33..0.67).contains(&share), "{denial}: {share}");
        assert_eq!(all["times"], 1.0, "{denial}");
        assert!(all["start_memory_mib"]["median"].as_f64() > Some(0.1), "{all}");
    }
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("throughput with 50 % denial"), "the comparison with the publication");
}

#[test]
fn online_signatures_of_a_load_are_counted() {
    let folder = folder();
    let out = folder.path().join("out");
    let settings = [
        "zones=sld:20",
        "seconds=0.05",
        "rounds=1",
        "samples=4",
        "rates=0",
        "servers=nonesuch",
        "combinations=ECDSAP256SHA256 compact,RSASHA256/3072 compact",
        "queries=label,SOA",
    ];
    let lines = lines_of("online-signing", &out, &settings);
    assert_eq!(lines.len(), 2 * 2);
    let line = |scheme: &str, queries: &str| {
        let is_it = |line: &&Value| line["scheme"] == scheme && line["queries"] == queries;
        lines.iter().find(is_it).unwrap_or_else(|| panic!("no line for {scheme} {queries}"))
    };
    // The only signature of the response is that of the SOA record: 384 and 64 octets.
    let octets = |scheme| line(scheme, "SOA")["response_octets"].as_f64().expect("octets");
    assert_eq!(octets("RSA-3072") - octets("ECDSA P-256"), 320.0);
    let count = |queries, what: &str| line("ECDSA P-256", queries)[what]["median"].as_f64().expect("a count");
    // A name that does not exist needs a new signature. The SOA record is in the cache.
    assert!(count("label", "online_operations") > 0.0 && count("label", "cache_hits") > 0.0, "{lines:?}");
    assert_eq!(count("label", "online_operations"), count("label", "cache_misses"), "{lines:?}");
    assert!(count("SOA", "cache_hits") > 0.0 && count("SOA", "cache_misses") == 0.0, "{lines:?}");
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    assert!(page.contains("CPU seconds in 30 s"), "the comparison with the publication");
}

#[test]
fn the_list_names_every_experiment_and_how_long_it_takes() {
    let text = done(["lab", "list"]).stdout;
    assert!(text.starts_with("verification-benchmark\n"), "{text}");
    assert!(text.contains(" with --full"), "{text}");
    let list: Value = serde_json::from_str(&done(["lab", "list", "--json"]).stdout).expect("JSON");
    let entry = &list["experiments"][0];
    assert!(entry["seconds"].as_f64() < entry["full_seconds"].as_f64(), "{entry}");
    assert_eq!(entry["method"], "verification-benchmark");
}

/// A missing server is listed, with the package that has it.
#[test]
fn the_list_has_every_other_server_with_its_version() {
    let list: Value = serde_json::from_str(&done(["lab", "list", "--json"]).stdout).expect("JSON");
    let peers = list["peers"].as_array().expect("a list");
    let text = done(["lab", "list"]).stdout;
    assert_eq!(peers.len(), Peer::all().count());
    for peer in peers {
        let name = peer["name"].as_str().expect("a name");
        let line =
            text.lines().find(|line| line.trim_start().starts_with(&format!("{name} "))).expect("a line");
        match peer["version"].as_str().filter(|_| peer["missing"] == serde_json::json!([])) {
            Some(version) => assert!(line.ends_with(version), "{line}"),
            None => assert!(line.ends_with(peer["package"].as_str().expect("a package")), "{line}"),
        }
    }
}

#[test]
fn every_other_server_is_documented() {
    let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../../docs/peers.md");
    let documented = fs::read_to_string(path).expect("docs/peers.md");
    for info in Peer::all().map(Peer::info) {
        let row = documented.lines().find(|line| line.starts_with(&format!("| `{}` |", info.name)));
        let row = row.unwrap_or_else(|| panic!("docs/peers.md has no row for {}", info.name));
        let package = if info.name == "coredns" { "just coredns" } else { info.package };
        for part in info.programs.iter().chain([&package, &info.title, &info.role.name()]) {
            assert!(row.contains(part), "{part}: {row}");
        }
    }
}

#[test]
fn an_experiment_of_ones_own_is_run_and_its_faults_are_named_by_line() {
    let folder = folder();
    let text = "name = \"mine\"\ntitle = \"Mine\"\nquestion = \"How fast?\"\nmethod = \"verification-benchmark\"\n\
        [parameters]\niterations = 2\nseconds = 0.005\nalgorithms = [\"ED25519\"]\nopenssl-iterations = 0\n";
    fs::write(folder.path().join("mine.toml"), text).expect("written");
    for arguments in [&["lab", "run", "mine.toml"][..], &["lab", "run", "--experiment", "mine.toml"]] {
        run(nonesuch(arguments).current_dir(folder.path())).expect_done("an experiment of one's own");
    }
    let page = fs::read_to_string(folder.path().join("nonesuch-lab/mine/report.html")).expect("a page");
    assert!(page.contains("<h1>Mine</h1>") && page.contains("How fast?"));
    fs::write(folder.path().join("bad.toml"), text.replace("iterations = 2", "iterations = true"))
        .expect("written");
    let said = refused(folder.path(), &["lab", "run", "bad.toml"], "parameter of another type");
    assert!(said.contains("bad.toml:6:14: "), "{said}");
    refused(folder.path(), &["lab", "run", "--experiment", "none"], "missing experiment file");
    refused(folder.path(), &["lab", "run", "none"], "unknown experiment");
}

#[test]
fn bad_choices_are_refused_before_anything_is_measured() {
    let folder = folder();
    let bench = |more: &[&str], case: &str| {
        refused(folder.path(), &[&["lab", "run", "verification-benchmark"], more].concat(), case);
    };
    for option in
        [["--set", "nothing=1"], ["--set", "seconds=0"], ["--set", "algorithms=RSA"], ["--cpu", "first"]]
    {
        bench(&option, &option.join(" "));
    }
    let tiny: Vec<&str> = TINY.into_iter().chain(["--cpu", "100000"]).collect();
    bench(&tiny, "--cpu 100000");
    refused(folder.path(), &["lab", "report", "none"], "missing results");
}

#[test]
fn results_of_another_experiment_are_not_overwritten_unasked() {
    let folder = folder();
    let out = folder.path().join("out");
    run_tiny(&out, &[]);
    run_tiny(&out, &[]);
    let json = out.join("results.json");
    let text = fs::read_to_string(&json).expect("a record");
    fs::write(&json, text.replacen("\"name\": \"verification-benchmark\"", "\"name\": \"other\"", 1))
        .expect("written");
    let arguments = ["lab", "run", "verification-benchmark", "--out", "out"];
    refused(folder.path(), &arguments, "results of another experiment");
    run_tiny(&out, &["--overwrite"]);
}

#[test]
fn the_probe_prints_one_document() {
    let arguments =
        ["lab", "measure", "--subjects", "ED25519,ED25519*8", "--iterations", "2", "--seconds", "0.002"];
    let document: Value = serde_json::from_str(&done(arguments).stdout).expect("JSON alone");
    assert_eq!(document["counts"].as_array().map(Vec::len), Some(6));
    assert_eq!(document["counts"][0]["subject"], "ED25519");
    let libraries = [0, 1].map(|place| &document["subjects"][place]["implementations"]["verify"]["library"]);
    assert_eq!(libraries, ["aws-lc", "nonesuch + crrl"]);
    assert_eq!(document["architecture"], std::env::consts::ARCH);
}

/// Another build is measured over a pipe. Here it is the same program with the name of the level's
/// program.
#[test]
fn levels_are_measured_by_programs_of_their_own() {
    let folder = folder();
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let set = [
        &["lab", "run", "verification-benchmark", "--out", out][..],
        &TINY,
        &["--set", "levels=native,x86-64-v2", "--json"],
    ]
    .concat();
    let ended = run(nonesuch(&set).env("NONESUCH_X86_64_V2", env!("CARGO_BIN_EXE_nonesuch")))
        .expect_done("two levels");
    let printed: Value = serde_json::from_str(&ended.stdout).expect("JSON alone");
    let backends =
        printed["record"]["about"]["verification-benchmark"]["backends"].as_array().expect("backends");
    if cfg!(target_arch = "x86_64") {
        assert_eq!(backends.len(), 2, "{}", printed["record"]["notes"]);
        assert_eq!(backends[1]["environment"][0][0], "OPENSSL_ia32cap");
        assert_eq!(printed["summary"]["lines"].as_array().map(Vec::len), Some(18));
    }
    // A program that does not speak the protocol is reported, and the command does not wait for it.
    let ended = run(nonesuch(&set).env("NONESUCH_X86_64_V2", "/bin/false"));
    assert_eq!(ended.status, 2, "{}", ended.text());
    snapshot::check("lab run", "program of a level that fails", &ended.stderr);
    let ended = run(nonesuch(&set).env("NONESUCH_X86_64_V2", "/bin/echo"));
    assert_eq!(ended.status, 2, "{}", ended.text());
    snapshot::check("lab run", "program of a level that is another program", &ended.stderr);
}

#[test]
fn openssl_is_timed_where_it_is_installed() {
    require_peer!("openssl");
    let folder = folder();
    let out = folder.path().join("out");
    let out = out.to_str().expect("UTF-8");
    let openssl = ["--set", "openssl-iterations=1", "--set", "algorithms=ED25519", "--json"];
    let ended = done([&["lab", "run", "verification-benchmark", "--out", out][..], &TINY, &openssl].concat());
    let printed: Value = serde_json::from_str(&ended.stdout).expect("JSON alone");
    let lines = printed["summary"]["lines"].as_array().expect("lines");
    let theirs: Vec<_> = lines.iter().filter(|line| line["backend"] == "openssl").collect();
    assert_eq!(theirs.len(), 2, "{}", printed["record"]["notes"]);
    assert!(theirs.iter().all(|line| line["subject"] == "ed25519" && line["scheme"] == "Ed25519"));
}

/// When the controlling process ends, the probe process ends, too.
#[test]
fn a_followed_probe_ends_with_its_orders() {
    let mut child = nonesuch(["lab", "measure", "--follow"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .expect("started");
    child.stdin.take().expect("a pipe").write_all(b"nonsense\n").expect("written");
    let output = child.wait_with_output().expect("ended");
    assert_eq!(output.status.code(), Some(2));
    let said = String::from_utf8_lossy(&output.stderr);
    snapshot::check("lab measure", "line that is not a request", &said);
    let ended = run(&mut nonesuch(["lab", "measure", "--follow"]));
    assert_eq!((ended.status, ended.text()), (0, String::new()));
}

#[test]
fn programs_that_sign_and_verify_are_compared() {
    let folder = folder();
    let out = folder.path().join("out");
    let out = out.to_str().expect("a path of UTF-8");
    let sizes =
        ["--set", "names=50", "--set", "rounds=1", "--set", "denial=nsec3", "--set", "algorithms=ED25519"];
    done([&["lab", "run", "zone-programs", "--out", out][..], &sizes].concat());
    let csv = fs::read_to_string(Path::new(out).join("results.csv")).expect("a table");
    for program in ["nonesuch zone sign", "nonesuch zone verify"] {
        assert_eq!(csv.matches(&format!(",{program},Ed25519,nsec3,")).count(), 1, "{csv}");
    }
    let markdown = done(["lab", "report", out, "--markdown"]).stdout;
    assert!(markdown.starts_with("## Programs that sign and verify zones\n"), "{markdown}");
    assert!(markdown.contains("lab run zone-programs") && markdown.contains("```text\n"), "{markdown}");
}

#[test]
fn hostile_queries_cost_cpu_time_and_forged_answers_are_not_secure() {
    if NetworkNamespace::new().is_err() {
        return record_skip("network namespaces or TUN devices cannot be used");
    }
    let folder = folder();
    let settings = [
        "resolvers=nonesuch",
        "attacks=signatures-p256",
        "zones=2",
        "seconds=0.1",
        "rate=20",
        "outstanding=2",
        "others-rate=100",
    ];
    let lines = lines_of("validation-attacks", &folder.path().join("out"), &settings);
    let names: Vec<&str> = lines.iter().filter_map(|line| line["measurement"].as_str()).collect();
    assert_eq!(names, ["hit", "new-zone", "new-name", "repeated", "alone", "rate", "saturated"]);
    assert!(lines[..4].iter().all(|line| line["cpu_us"]["count"] == 1), "{lines:?}");
    let csv = fs::read_to_string(folder.path().join("out/results.csv")).expect("a table");
    let mut rows = csv.lines().map(|line| line.split(',').collect::<Vec<_>>());
    let titles = rows.next().expect("a line of titles");
    let place = |title: &str| titles.iter().position(|found| *found == title).expect(title);
    let [measurement, servfail, authenticated] = ["measurement", "servfail", "authenticated"].map(place);
    for row in rows.filter(|row| row[measurement] != "hit" && row[measurement] != "alone") {
        assert_ne!(row[servfail], "0", "{csv}");
        assert_eq!(row[authenticated], "0", "{csv}");
    }
}

#[test]
fn the_tables_of_nsec5_are_the_outcomes_of_attacks() {
    if NetworkNamespace::new().is_err() {
        return record_skip("network namespaces or TUN devices cannot be used");
    }
    let folder = folder();
    let out = folder.path().join("out");
    let lines = lines_of("properties", &out, &["hidden-names=5"]);
    let found: Vec<(&str, [bool; 4], f64)> = lines
        .iter()
        .map(|line| {
            let value = |column: &str| line[column]["median"].as_f64().expect("a number");
            let columns = ["online_operations", "outsider_forgeries", "thief_forgeries", "names_offline"];
            let mechanism = line["mechanism"].as_str().expect("a name");
            (mechanism, columns.map(|column| value(column) == 0.0), value("thief_names"))
        })
        .collect();
    // No online cryptography, weak and strong integrity, privacy; names of the stored zone.
    let expected = [
        ("unsigned", [true, false, false, true], 15.0),
        ("nsec", [true, true, true, false], 15.0),
        ("nsec3", [true, true, true, false], 15.0),
        ("minimal-nsec", [false, true, false, true], 15.0),
        ("compact", [false, true, false, true], 15.0),
        ("white-lies", [false, true, false, true], 15.0),
        ("nsec5", [false, true, true, true], 15.0),
    ];
    assert_eq!(found, expected);
    let page = fs::read_to_string(out.join("report.html")).expect("a report");
    assert!(page.contains("36 of 36 cells"), "{page}");
}
