//! `nonesuch lab run pqc-signing`: small zones, each job once. No assertion depends on speed.

use crate::common;
use common::{Ended, done, folder, nonesuch, peers, run, snapshot, text};
use nonesuch_lab::peers::{Peer, Serving};
use nonesuch_testing::require_peer;
use serde_json::Value;
use std::fs;
use std::path::Path;
use std::process::Command;

/// Settings for a run of a few seconds.
const TINY: [&str; 12] = [
    "--set",
    "runs=1",
    "--set",
    "levels=native",
    "--set",
    "zones=tld:60,tld:200",
    "--set",
    "algorithms=ECDSAP256SHA256,FALCON512",
    "--set",
    "additions=ED25519",
    "--set",
    "minutes=0",
];

fn run_tiny(out: &Path, more: &[&str]) -> Ended {
    done([&["lab", "run", "pqc-signing", "--out", text(out)][..], &TINY, more].concat())
}

/// The summary lines of one job.
fn lines<'v>(document: &'v Value, job: &str) -> Vec<&'v Value> {
    let lines = document["summary"]["lines"].as_array().expect("lines");
    lines.iter().filter(|line| line["job"] == job).collect()
}

#[test]
fn whole_zones_are_signed_verified_served_and_transferred() {
    let folder = folder();
    let out = folder.path().join("out");
    let shown = run_tiny(&out, &["--json", "--seed", "3", "--now", "2026-03-01T12:00:00Z"]).stdout;
    let document: Value = serde_json::from_str(&shown).expect("JSON alone");
    // Three algorithms, three mechanisms, two zones.
    for job in ["sign", "verify"] {
        let lines = lines(&document, job);
        assert_eq!(lines.len(), 18, "{job}: {}", document["record"]["notes"]);
        for line in lines {
            assert!(line["cpu"]["median"].as_f64() > Some(0.0), "{line}");
            assert!(line["memory_kib"]["median"].as_f64() > Some(1000.0), "{line}");
            assert!(line["signatures"].as_u64() > Some(60), "{line}");
            assert!(line["cpu_times"].is_number() && line["wall_times"].is_number(), "{line}");
        }
    }
    let octets = |algorithm: &str| {
        let lines = lines(&document, "sign");
        let line = lines.iter().find(|line| {
            line["algorithm"] == algorithm && line["zone"] == "tld:200" && line["denial"] == "nsec"
        });
        line.and_then(|line| line["octets"].as_u64()).expect("octets")
    };
    assert!(octets("FALCON512") > 2 * octets("ECDSAP256SHA256"));
    // Their signatures have the same size; key tags and keys differ.
    assert!(octets("ED25519").abs_diff(octets("ECDSAP256SHA256")) < octets("ED25519") / 20);
    // Only the smaller of two zones is served: unsigned, and for each algorithm and mechanism.
    for job in ["serve", "transfer"] {
        assert_eq!(lines(&document, job).len(), 10, "{job}: {}", document["record"]["notes"]);
        assert!(lines(&document, job).iter().all(|line| line["zone"] == "tld:60"));
    }
    let about = &document["record"]["about"]["zone-signing"];
    let changed = |key: &str| about["zones"][0]["changes"][key].as_u64();
    assert!(changed("removed_records").zip(changed("added_records")).is_some_and(|(a, b)| a + b >= 2));
    assert_eq!(about["left_out"], serde_json::json!([]));

    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    for text in ["Figure 1", "Figure 2", "Figure 3", "20.3", "Falcon-512*"] {
        assert!(page.contains(text), "{text}");
    }
    fs::remove_file(out.join("report.html")).expect("removed");
    done(["lab", "report", text(&out)]);
    assert_eq!(fs::read_to_string(out.join("report.html")).expect("a page"), page);
}

#[test]
fn a_zone_file_of_ones_own_is_taken_without_its_signatures() {
    let folder = folder();
    let zone = folder.path().join("own,zone");
    let text_of = "@ 60 SOA ns h 1 2 3 4 5\n@ 60 NS ns\nns 60 A 192.0.2.1\n@ 60 DNSKEY 257 3 13 AAAA\na 60 NS ns\nb 60 NS ns\n";
    fs::write(&zone, text_of).expect("written");
    let out = folder.path().join("out");
    let arguments = ["--zone", text(&zone), "-o", "own.example.", "--json", "--set", "denial=nsec"];
    let document: Value = serde_json::from_str(&run_tiny(&out, &arguments).stdout).expect("JSON alone");
    let zones = &document["record"]["about"]["zone-signing"]["zones"];
    assert_eq!((&zones[0]["origin"], &zones[0]["records"]), (&"own.example.".into(), &5.into()));
    assert_eq!(lines(&document, "sign").len(), 3, "{}", document["record"]["notes"]);
    assert!(
        lines(&document, "sign").iter().all(|line| line["signatures"] == 8),
        "SOA, NS, A, DNSKEY, four NSEC"
    );
    let command = [
        "lab",
        "run",
        "pqc-signing",
        "--zone",
        "nothing-there",
        "--out",
        text(&out),
        "--set",
        "levels=native",
    ];
    let ended = run(&mut nonesuch(command));
    assert_eq!(ended.status, 2, "{}", ended.text());
    assert!(ended.stderr.contains("nothing-there"), "{}", ended.stderr);
}

#[test]
fn what_there_is_no_time_for_is_named() {
    let folder = folder();
    let out = folder.path().join("out");
    let shown = run_tiny(&out, &["--json", "--set", "minutes=0.000001"]);
    let document: Value = serde_json::from_str(&shown.stdout).expect("JSON alone");
    assert!(lines(&document, "sign").is_empty());
    let left_out = &document["record"]["about"]["zone-signing"]["left_out"];
    assert_eq!(left_out.as_array().map(Vec::len), Some(6), "{left_out}");
    assert_eq!(left_out[0], "tld:60, NSEC: ECDSA P-256 at native, Falcon-512 at native, Ed25519 at native");
}

/// A selected level must have its program. Of the default levels, one without a program is skipped;
/// if none has a program, the current program is measured.
#[test]
fn levels_without_a_program_are_refused_or_left_out_and_named() {
    if !cfg!(target_arch = "x86_64") {
        nonesuch_testing::record_skip("this is no x86-64 machine");
        return;
    }
    let folder = folder();
    let out = folder.path().join("out");
    let few = ["--set", "denial=nsec", "--set", "served=none", "--set", "zones=tld:60", "--json"];
    // Without the setting `levels`, the defaults of the experiment apply.
    let without_levels: Vec<&str> = TINY[..2].iter().chain(&TINY[4..]).copied().collect();
    let with = |levels: &[&str], program: &str| {
        let arguments =
            [&["lab", "run", "pqc-signing", "--out", text(&out)], &without_levels[..], &few, levels];
        let mut command = nonesuch(arguments.concat());
        run(command.env("NONESUCH_X86_64_V2", program).env("NONESUCH_X86_64_V3", "/bin/false"))
    };
    let told = |ended: Ended| -> (Vec<Value>, Value) {
        let document: Value = serde_json::from_str(&ended.expect_done("a run").stdout).expect("JSON alone");
        let levels = document["record"]["about"]["zone-signing"]["levels"].as_array().cloned();
        (levels.expect("levels"), document["record"]["notes"].clone())
    };
    let (found, notes) = told(with(&[], "/bin/false"));
    assert_eq!((found.len(), &found[0]["level"]), (1, &"native".into()), "{notes}");
    assert!(notes.to_string().contains("/bin/false: ended with exit status: 1"), "{notes}");
    let mut each = notes.as_array().expect("notes").iter().filter_map(Value::as_str);
    let note = each.find(|note| note.contains("level native")).expect("a note");
    snapshot::check("lab run", "note of default levels without programs", note);
    let chosen = ["--set", "levels=x86-64-v2", "--overwrite"];
    let refused = with(&chosen, "/bin/false");
    assert_eq!((refused.status, refused.stdout.as_str()), (2, ""), "{}", refused.text());
    assert!(refused.stderr.contains("/bin/false: ended with exit status: 1"), "{}", refused.stderr);
    // The directory of this program contains no program of a level.
    let refused = with(&chosen, "");
    assert!(
        refused.status == 2 && refused.stderr.contains("`tools/build-level x86-64-v2`"),
        "{}",
        refused.text()
    );
    // The path of the program depends on the build.
    let words = refused.stderr.split(' ').map(|word| match word.rsplit_once('/') {
        Some((_, name)) if word.starts_with('/') => name,
        _ => word,
    });
    let error = words.collect::<Vec<_>>().join(" ");
    snapshot::check("lab run", "selected level without a program", &error);
    let (found, _) = told(with(&chosen, env!("CARGO_BIN_EXE_nonesuch")));
    assert_eq!(
        (&found[0]["level"], &found[0]["environment"][0][0]),
        (&"x86-64-v2".into(), &"OPENSSL_ia32cap".into())
    );
}

/// The computed transfer size equals the size that servers send.
#[test]
fn a_computed_transfer_is_what_nsd_sends() {
    require_peer!("nsd", "dig");
    let folder = folder();
    let (unsigned, signed, keys) =
        (folder.path().join("unsigned"), folder.path().join("signed"), folder.path().join("keys"));
    done(["zone", "generate", "--names", "1000", "-o", "zz.", "-f", text(&unsigned)]);
    common::generate_keys(&keys, "zz.", "ecdsap256sha256");
    common::sign(&unsigned, "zz.", &keys, "nsec", &signed);
    let printed = done(["lab", "zone", text(&signed), "-o", "zz.", "--transfer"]).stdout;
    let ours: Value = serde_json::from_str(&printed).expect("JSON");
    let server = peers::start(Peer::Nsd, &peers::zone(folder.path(), "zz.", &signed, Serving::Presigned));
    let (ip, port) = (server.address.ip().to_string(), server.address.port().to_string());
    let mut dig = Command::new("dig");
    let shown = run(dig.args([&format!("@{ip}"), "-p", &port, "zz.", "AXFR"])).expect_done("dig").stdout;
    // ;; XFR size: 28562 records (messages 80, bytes 1293784)
    let line = shown.lines().find(|line| line.starts_with(";; XFR size: ")).expect("a size");
    let numbers: Vec<u64> =
        line.split(|c: char| !c.is_ascii_digit()).filter_map(|word| word.parse().ok()).collect();
    assert_eq!(ours["transfer"]["records"].as_u64(), Some(numbers[0]), "{line}");
    let octets = ours["transfer"]["octets"].as_u64().expect("octets");
    assert!(octets.abs_diff(numbers[2]) * 100 <= numbers[2] * 3, "{octets}, {line}");
}
