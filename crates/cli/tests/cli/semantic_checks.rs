//! Semantic checks: zones with known problems in named-checkzone, kzonecheck and `zone verify`,
//! truncated lists, `--strict`, `serve --check`, reloads.

use crate::common;
use common::configured::{Configured, configure, plain_zone, write_beside};
use common::{Ended, done, events, folder, generate_key, is_installed, nonesuch, run, snapshot, text};
use serde_json::Value;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

const HEAD: &str =
    "$ORIGIN example.\n$TTL 3600\n@ SOA ns1 host 7 7200 3600 1209600 3600\n@ NS ns1\nns1 A 192.0.2.1\n";

/// A problem and its expected messages.
struct Planted {
    records: &'static str,
    /// Part of a line of named-checkzone; empty if it does not report the problem.
    named: &'static str,
    /// Part of a line of kzonecheck; empty if it does not report the problem.
    knot: &'static str,
    /// Owner, type and kind of this program's finding; the owner in its error.
    ours: &'static str,
}

const fn row(records: &'static str, named: &'static str, knot: &'static str, ours: &'static str) -> Planted {
    Planted { records, named, knot, ours }
}

/// Problems that do not prevent the zone from being loaded.
const PLANTED: &[Planted] = &[
    row(
        "mx1 MX 1 gone",
        "mx1.example/MX 'gone.example' has no address records",
        "",
        "mx1.example. MX target-has-no-address",
    ),
    row(
        "mx2 MX 1 alias\nalias CNAME ns1",
        "mx2.example/MX 'alias.example' is a CNAME",
        "",
        "mx2.example. MX target-is-alias",
    ),
    row(
        "mx3 MX 1 a.tree\ntree DNAME other.",
        "mx3.example/MX 'a.tree.example' is below a DNAME",
        "",
        "mx3.example. MX target-below-dname",
    ),
    row("mx4 MX 1 192.0.2.7", "'192.0.2.7': MX is an address", "", "mx4.example. MX target-is-address"),
    row(
        "srv1 SRV 0 0 1 gone",
        "srv1.example/SRV 'gone.example' has no address records",
        "",
        "srv1.example. SRV target-has-no-address",
    ),
    row(
        "srv2 SRV 0 0 1 alias",
        "srv2.example/SRV 'alias.example' is a CNAME",
        "",
        "srv2.example. SRV target-is-alias",
    ),
    row(
        "srv3 SRV 0 0 1 a.tree",
        "srv3.example/SRV 'a.tree.example' is below a DNAME",
        "",
        "srv3.example. SRV target-below-dname",
    ),
    row(
        "ns2 NS gone",
        "ns2.example/NS 'gone.example' has no address records",
        "[ns2.example.] missing glue",
        "ns2.example. NS target-has-no-address",
    ),
    row(
        "ns3 NS alias",
        "ns3.example/NS 'alias.example' is a CNAME",
        "[ns3.example.] missing glue",
        "ns3.example. NS target-is-alias",
    ),
    row(
        "ns4 NS a.tree",
        "ns4.example/NS 'a.tree.example' is below a DNAME",
        "[ns4.example.] missing glue",
        "ns4.example. NS target-below-dname",
    ),
    row(
        "ns5 NS 192.0.2.7",
        "NS record '192.0.2.7' appears to be an address",
        "[ns5.example.] missing glue",
        "ns5.example. NS target-is-address",
    ),
    row(
        "cut1 NS ns.cut1",
        "cut1.example/NS 'ns.cut1.example' has no REQUIRED GLUE",
        "[cut1.example.] missing glue",
        "cut1.example. NS missing-glue",
    ),
    row(
        "under2 DNAME other.\nx.under2 TXT x",
        "",
        "[under2.example.] child record",
        "x.under2.example. TXT below-dname",
    ),
    row(
        "both NS ns.other.\nboth DNAME other.",
        "",
        "[both.example.] NS record exists beside DNAME",
        "both.example. DNAME dname-beside-ns",
    ),
    row("cut2 NS ns.other.\nx.cut2 TXT x", "", "", "x.cut2.example. TXT below-cut"),
    row("cut3 NS ns.other.\nx.cut3 A 192.0.2.1", "", "", "x.cut3.example. A unused-glue"),
    row(
        "a_b A 192.0.2.1",
        "a_b.example: bad owner name (check-names)",
        "",
        "a_b.example. A owner-not-hostname",
    ),
    row(
        "mx5 MX 1 b_c.other.",
        "b_c.other: bad name (check-names)",
        "",
        "mx5.example. MX target-not-hostname",
    ),
    row(
        "a.*.w TXT x",
        "'a.*.w.example' contains an non-terminal wildcard",
        "",
        "a.*.w.example. TXT internal-wildcard",
    ),
    row(
        "ds1 NS ns.other.\nds1 DS 1 8 77 0000",
        "",
        "[ds1.example.] invalid algorithm in DS",
        "ds1.example. DS unknown-digest-type",
    ),
];

/// Like [`PLANTED`], but each in a separate zone, because named-checkzone reports nothing else
/// together with them.
const ALONE: &[Planted] = &[
    row(
        "@ NS gone",
        "NS 'gone.example' has no address records",
        "[example.] missing glue",
        "example. NS target-has-no-address",
    ),
    row(
        "@ NS alias\nalias CNAME ns1",
        "NS 'alias.example' is a CNAME",
        "[example.] missing glue",
        "example. NS target-is-alias",
    ),
    row(
        "@ NS a.tree\ntree DNAME other.",
        "NS 'a.tree.example' is below a DNAME",
        "[example.] missing glue",
        "example. NS target-below-dname",
    ),
    row(
        "ds2 NS ns.other.\nds2 DS 1 8 2 0000",
        "unexpected end of input",
        "[ds2.example.] invalid digest length in DS",
        "ds2.example. DS digest-length",
    ),
    row(
        "@ CDS 1 8 1 0000000000000000000000000000000000000000",
        "CDS/CDNSKEY consistency",
        "",
        "example. CDS one-of-cds-and-cdnskey",
    ),
];

/// Inputs that this program rejects.
const REFUSED: &[Planted] = &[
    row(
        "x CNAME a.\nx A 192.0.2.1",
        "CNAME and other data",
        "another record exists beside CNAME",
        "x.example.",
    ),
    row("x CNAME a.\nx CNAME b.", "multiple RRs of singleton type", "multiple CNAME records", "x.example."),
    row("x DNAME a.\nx DNAME b.", "multiple RRs of singleton type", "multiple DNAME records", "x.example."),
    row("x.other. A 192.0.2.1", "ignoring out-of-zone data", "", "x.other."),
    row("x SOA . . 1 1 1 1 1", "SOA record not at top of zone", "", "x.example."),
];

/// Lines of the checkers that report no problem of the zone.
const CONTEXT: [&str; 12] = [
    // The problem is already reported for the address.
    "'192.0.2.7.example' has no address records",
    "loaded serial",
    "OK",
    "not loaded due to errors",
    "loading from master file",
    "Error summary:",
    "Serious semantic error",
    "failed to run semantic checks",
    "error: failed",
    // The counts of each kind.
    "\t",
    "file does not end with newline",
    "near eol",
];

fn named(file: &Path) -> Option<Ended> {
    // Names outside the zone are not looked up.
    let mut command = Command::new("named-checkzone");
    is_installed("named-checkzone").then(|| run(command.args(["-i", "local", "example."]).arg(file)))
}

fn knot(file: &Path) -> Option<Ended> {
    let mut command = Command::new("kzonecheck");
    is_installed("kzonecheck").then(|| run(command.args(["-o", "example."]).arg(file)))
}

/// Owner, type and kind of this program's findings.
fn ours(file: &Path) -> Vec<String> {
    let ended = run(&mut nonesuch(["zone", "verify", "--json", "-o", "example.", text(file)]));
    let report: Value = serde_json::from_str(&ended.stdout).unwrap_or_else(|_| panic!("{}", ended.text()));
    let word = |finding: &Value, key: &str| finding[key].as_str().expect("a text").to_owned();
    let line = |finding: &Value| {
        format!("{} {} {}", word(finding, "owner"), word(finding, "type"), word(finding, "kind"))
    };
    report["findings"].as_array().expect("a list").iter().map(line).collect()
}

fn plant(folder: &Path, rows: &[Planted]) -> PathBuf {
    let records: String = rows.iter().map(|row| format!("{}\n", row.records)).collect();
    let file = folder.join("planted");
    fs::write(&file, format!("{HEAD}{records}")).expect("written");
    file
}

/// The checker reports the expected message for each problem, and no other problem.
#[track_caller]
fn expect_words(rows: &[Planted], said: &Ended, words: impl Fn(&Planted) -> &'static str) {
    let said = said.text();
    let wanted: Vec<&str> = rows.iter().map(words).filter(|words| !words.is_empty()).collect();
    for words in &wanted {
        assert!(said.contains(words), "{words}: {said}");
    }
    let known = |line: &str| wanted.iter().chain(&CONTEXT).any(|words| line.contains(words));
    let unknown: Vec<&str> = said.lines().filter(|line| !line.is_empty() && !known(line)).collect();
    assert_eq!(unknown, [""; 0], "a problem that no row has: {said}");
}

fn judge(folder: &Path, rows: &[Planted]) {
    let file = plant(folder, rows);
    if let Some(said) = named(&file) {
        expect_words(rows, &said, |row| row.named);
    }
    if let Some(said) = knot(&file) {
        expect_words(rows, &said, |row| row.knot);
    }
}

#[test]
fn what_the_peers_find_in_planted_zones_is_found() {
    let folder = folder();
    judge(folder.path(), PLANTED);
    let found = ours(&plant(folder.path(), PLANTED));
    for row in PLANTED {
        assert!(found.iter().any(|finding| finding == row.ours), "{}: {found:?}", row.ours);
    }
    for row in ALONE {
        let row = std::slice::from_ref(row);
        judge(folder.path(), row);
        let found = ours(&plant(folder.path(), row));
        assert!(found.iter().any(|finding| finding == row[0].ours), "{}: {found:?}", row[0].ours);
    }
    assert_eq!(ours(&plant(folder.path(), &[])), [""; 0], "a sound zone");
}

#[test]
fn what_the_peers_find_in_no_zone_keeps_it_from_being_read() {
    let folder = folder();
    for row in REFUSED {
        let rows = std::slice::from_ref(row);
        let file = plant(folder.path(), rows);
        for (judge, words) in [(named(&file), row.named), (knot(&file), row.knot)] {
            assert!(judge.is_none_or(|said| said.text().contains(words)), "{words}");
        }
        let ended = run(&mut nonesuch(["zone", "verify", "-o", "example.", text(&file)]));
        assert_eq!(ended.status, 2, "{}", ended.text());
        assert!(ended.stderr.contains(row.ours), "{}: {}", row.ours, ended.stderr);
        let case = format!("zone with {}", row.records.replace('\n', " and "));
        snapshot::check("zone verify", &case, &ended.stderr);
    }
}

/// A signed zone with 30 delegations, all without glue.
fn signed(folder: &Path) -> PathBuf {
    let cuts: String = (10..40).map(|number| format!("d{number} NS ns.d{number}\n")).collect();
    let (unsigned, keys, signed) = (folder.join("unsigned"), folder.join("keys"), folder.join("signed"));
    fs::write(&unsigned, format!("{HEAD}{cuts}")).expect("written");
    generate_key(&keys, "example.", "ed25519", &["--csk"]);
    done(["zone", "sign", text(&unsigned), "-o", "example.", "--keys", text(&keys), "-f", text(&signed)]);
    signed
}

/// The output, with only the faults and warnings of `d10` among those of the delegations.
fn of_one_delegation(output: &str) -> String {
    let is_other = |line: &str| {
        let is_of_delegation = line.starts_with("fault: d") || line.starts_with("warning: d");
        is_of_delegation && !line.contains(": d10.example. ")
    };
    output.lines().filter(|line| !is_other(line)).flat_map(|line| [line, "\n"]).collect()
}

#[test]
fn lists_end_at_twenty_of_each_kind_unless_all_are_asked_for() {
    let folder = folder();
    let file = signed(folder.path());
    // Removes the signatures over the NSEC records of 30 names.
    let zone = fs::read_to_string(&file).expect("a zone");
    let is_cut_off = |line: &&str| line.starts_with('d') && line.contains("\tRRSIG\tNSEC ");
    let rest: String =
        zone.lines().filter(|line| !is_cut_off(line)).map(|line| format!("{line}\n")).collect();
    fs::write(&file, rest).expect("written");
    let verify = |more: &[&str]| run(&mut nonesuch([&["zone", "verify", text(&file)], more].concat()));
    let lines = |said: &str, start: &str| said.lines().filter(|line| line.starts_with(start)).count();
    for (case, more, listed) in
        [("30 faults and 30 findings", &[][..], 20), ("30 faults and 30 findings, --all", &["--all"], 30)]
    {
        let ended = verify(more);
        assert_eq!(ended.status, 1, "{}", ended.text());
        let said = &ended.stdout;
        assert_eq!((lines(said, "fault: d"), lines(said, "warning: d")), (listed, listed), "{said}");
        assert_eq!(lines(said, "note: "), usize::from(listed == 20), "{said}");
        snapshot::check("zone verify", case, &of_one_delegation(said));
        let report: Value =
            serde_json::from_str(&verify(&[more, &["--json"]].concat()).stdout).expect("JSON");
        let listed = |key: &str| report[key].as_array().map(Vec::len);
        assert_eq!(
            (listed("faults"), listed("findings")),
            (Some(lines(said, "fault")), Some(lines(said, "warning")))
        );
        assert_eq!((&report["fault_count"], &report["finding_count"]), (&30.into(), &30.into()));
        assert_eq!(report["finding_counts"]["missing-glue"], 30);
        assert_eq!(report["findings"][0]["target"], "ns.d10.example.");
    }
    let ended = run(&mut nonesuch(["zone", "compile", text(&file)]));
    assert_eq!((ended.status, lines(&ended.stdout, "fault: ")), (1, 20), "{}", ended.text());
    snapshot::check("zone compile", "30 faults", &of_one_delegation(&ended.stdout));
}

#[test]
fn warnings_of_reading_end_at_twenty_of_each_kind() {
    let folder = folder();
    let file = folder.path().join("zone");
    let sets: String =
        (0..30).map(|number| format!("m{number} 60 A 192.0.2.1\nm{number} 90 A 192.0.2.2\n")).collect();
    fs::write(&file, format!("{HEAD}{sets}")).expect("written");
    let ended = run(&mut nonesuch(["zone", "stat", "-o", "example.", text(&file)])).expect_done("zone stat");
    assert_eq!(events(&ended.stderr, "zone-warning", &[]).len(), 20, "{}", ended.stderr);
    assert_eq!(events(&ended.stderr, "zone-warnings-omitted", &[]).len(), 1, "{}", ended.stderr);
    snapshot::check("zone stat", "30 RRsets with different TTLs", &ended.stderr);
}

#[test]
fn findings_are_warnings_and_with_strict_faults() {
    let folder = folder();
    let file = signed(folder.path());
    let verify = |more: &[&str]| run(&mut nonesuch([&["zone", "verify", text(&file)], more].concat()));
    let ended = verify(&[]);
    assert_eq!(ended.status, 0, "{}", ended.text());
    assert!(ended.stdout.contains("warning: d10.example. NS: "), "{}", ended.stdout);
    snapshot::check("zone verify", "30 findings", &of_one_delegation(&ended.stdout));
    let ended = verify(&["--strict"]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    assert!(ended.stdout.contains("fault: d10.example. NS: "), "{}", ended.stdout);
    snapshot::check("zone verify", "30 findings, --strict", &of_one_delegation(&ended.stdout));
    let ended = verify(&["--strict", "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((ended.status, &report["verified"], &report["strict"]), (1, &false.into(), &true.into()));
}

/// Different TTLs and a missing NS RRset are faults of the verification; the semantic checks do not
/// report them again.
#[test]
fn verify_reports_nothing_twice() {
    let folder = folder();
    let file = folder.path().join("zone");
    fs::write(&file, "@ 60 SOA ns h 7 7200 3600 1209600 60\nx 60 A 192.0.2.1\nx 90 A 192.0.2.2\n")
        .expect("written");
    let ended = run(&mut nonesuch(["zone", "verify", "-o", "example.", text(&file)]));
    assert_eq!(ended.status, 1, "{}", ended.text());
    for place in ["x.example. A: ", "example. NS: "] {
        let start = format!("fault: {place}");
        let count = ended.stdout.lines().filter(|line| line.starts_with(&start)).count();
        assert_eq!(count, 1, "{place}: {}", ended.text());
    }
    snapshot::check("zone verify", "different TTLs and no NS record", &ended.text());
}

fn last_line(text: &str) -> &str {
    text.lines().last().unwrap_or_default()
}

#[test]
fn a_check_of_zones_lists_findings_and_strict_makes_faults_of_them() {
    let folder = folder();
    let dir = folder.path();
    let glueless = format!("{HEAD}d NS ns.d\n");
    fs::write(dir.join("text"), &glueless).expect("written");
    fs::write(dir.join("compiled.text"), glueless.replace("example.\n", "other.example.\n"))
        .expect("written");
    let compiled = run(nonesuch(["zone", "compile", "compiled.text", "-f", "compiled"]).current_dir(dir));
    let compiled = compiled.expect_done("zone compile");
    assert_eq!(events(&compiled.stderr, "zone-warning", &[]).len(), 2, "{}", compiled.stderr);
    snapshot::check("zone compile", "missing glue", &compiled.stderr);
    write_beside(&dir.join("sound"), &plain_zone("sound.example.", 1));
    let zones = "[zone.\"example.\"]\nfile = \"text\"\n[zone.\"other.example.\"]\nfile = \"compiled\"\n\
        [zone.\"sound.example.\"]\nfile = \"sound\"\n";
    let configuration = configure(dir, zones);
    let check = |more: &[&str]| {
        let arguments = [&["serve", "--config", text(&configuration)], more].concat();
        run(&mut nonesuch(arguments))
    };
    let ended = check(&["--check=zones"]);
    assert_eq!(ended.status, 0, "{}", ended.text());
    snapshot::check("serve", "--check with findings", last_line(&ended.stdout));
    for zone in ["example.", "other.example."] {
        let warnings = events(&ended.stderr, "zone-warning", &[&format!("zone={zone}")]);
        assert_eq!(warnings.len(), 2, "{}", ended.stderr);
        snapshot::check("serve", &format!("--check with findings in {zone}"), &warnings.join("\n"));
    }
    let ended = check(&["--check=zones", "--strict"]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    let fault = ended.stdout.lines().find(|line| line.starts_with("fault: zone example.: "));
    let fault = fault.unwrap_or_else(|| panic!("{}", ended.stdout));
    let said = format!("{fault}\n{}", last_line(&ended.stdout));
    snapshot::check("serve", "--check --strict with findings", &said);
    let ended = check(&["--check", "--strict", "--json"]);
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON");
    assert_eq!((ended.status, report["faults"].as_array().map(Vec::len)), (1, Some(2)), "{report}");
    assert_eq!(report["faults"][0]["effect"], "findings");
    assert_eq!(report["warnings"].as_array().map(Vec::len), Some(4), "{report}");
    let ended = run(&mut nonesuch(["serve", "--strict", text(&dir.join("text"))]));
    assert_eq!(ended.status, 2, "{}", ended.text());
}

#[test]
fn a_reload_logs_findings_in_bounds_and_a_serial_that_stays() {
    let folder = folder();
    let dir = folder.path();
    let file = dir.join("zone");
    write_beside(&file, &plain_zone("example.", 7));
    let server = Configured::start(&configure(dir, "[zone.\"example.\"]\nfile = \"zone\"\n"));
    assert_eq!(server.events("zone-warning", &["zone=example."]), [""; 0]);
    let cuts: String = (0..2000).map(|number| format!("d{number} 60 NS ns.d{number}\n")).collect();
    write_beside(&file, &format!("{}{cuts}", plain_zone("example.", 7)));
    server.ctl(&["reload"]).expect_done("reload");
    // One about the serial; of the semantic checks, the summary and three findings.
    server.wait_for_event("zones-reloaded", &[]);
    let warnings = server.events("zone-warning", &["zone=example."]);
    assert_eq!(warnings.len(), 5, "{}", server.logged());
    snapshot::check("serve", "reload with findings and the same serial", &warnings.join("\n"));
    let status = server.ctl(&["zone", "status", "example.", "--json"]).expect_done("status").stdout;
    assert!(status.contains("\"findings\":2000"), "{status}");
    write_beside(&file, &plain_zone("example.", 6));
    server.ctl(&["reload"]).expect_done("reload");
    let warning = server.wait_for_event("zone-warning", &["zone=example.", "serial=6"]);
    snapshot::check("serve", "reload with a lower serial", &warning);
}

/// A check compares the files with the stored versions of the server.
#[test]
fn a_check_warns_of_a_serial_that_does_not_advance() {
    let folder = folder();
    let dir = folder.path();
    let file = dir.join("zone");
    write_beside(&file, &plain_zone("example.", 7));
    let configuration = configure(dir, "[zone.\"example.\"]\nfile = \"zone\"\n");
    let server = Configured::start(&configuration);
    server.wait_for("example.", 7);
    server.stop();
    let check = || {
        let ended = run(&mut nonesuch(["serve", "--config", text(&configuration), "--check=zones"]));
        let log = ended.expect_done("the check").stderr;
        events(&log, "zone-warning", &["zone=example."]).join("\n")
    };
    assert_eq!(check(), "");
    write_beside(&file, &format!("{}more 60 A 192.0.2.9\n", plain_zone("example.", 7)));
    snapshot::check("serve", "--check with the same serial", &check());
    write_beside(&file, &plain_zone("example.", 6));
    snapshot::check("serve", "--check with a lower serial", &check());
    write_beside(&file, &plain_zone("example.", 8));
    assert_eq!(check(), "");
}
