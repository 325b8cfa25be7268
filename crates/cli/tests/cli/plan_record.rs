//! `nonesuch plan record` with captures: counts, the estimate, faults of inputs.

use crate::common::{Ended, done, folder, nonesuch, run, snapshot, text};
use nonesuch_lab::capture::{CaptureFormat, CaptureWriter, CapturedMessage, MessageKind, Transport};
use nonesuch_lab::cost_model::{Recording, VerificationSource};
use nonesuch_lab::tree::{AnchorForm, Description, Tree, ZoneDescription};
use nonesuch_proto::message::push_query;
use nonesuch_proto::{Name, Rtype};
use serde_json::Value;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};

const NOW: u32 = 1_767_225_600;
const RESOLVER: &str = "192.0.2.1";

/// A directory with a capture of a resolver with an empty cache, and the trust anchor of its tree.
struct Captured {
    folder: tempfile::TempDir,
    pcap: PathBuf,
    anchor: PathBuf,
}

/// The resolver asks for two names of a signed zone, and for its keys, each a second after
/// the other.
fn captured() -> Captured {
    let zones = vec![
        ZoneDescription::new("."),
        ZoneDescription::new("example."),
        ZoneDescription { names: 2, ..ZoneDescription::new("z.example.") },
    ];
    let tree = Tree::build(&Description { zones, ..Description::default() }, 1, NOW).expect("a tree");
    let folder = folder();
    let (pcap, anchor) = (folder.path().join("resolver.pcap"), folder.path().join("anchor.ds"));
    fs::write(&anchor, tree.anchors(AnchorForm::Ds)).expect("written");
    let mut writer =
        CaptureWriter::new(fs::File::create(&pcap).expect("a file"), CaptureFormat::Pcap).expect("written");
    let client = SocketAddr::new(RESOLVER.parse().expect("an address"), 4711);
    for (second, (zone, name, rtype)) in [
        (0, "host0.z.example.", Rtype::A),
        (0, ".", Rtype::DNSKEY),
        (1, "host0.z.example.", Rtype::A),
        (1, "example.", Rtype::DNSKEY),
        (2, "host0.z.example.", Rtype::A),
        (2, "z.example.", Rtype::DNSKEY),
        (2, "host1.z.example.", Rtype::A),
    ]
    .into_iter()
    .enumerate()
    {
        let name: Name = name.parse().expect("a name");
        let mut query = Vec::new();
        push_query(&name, rtype, 0, 0, &mut query);
        let response = tree.zones[zone].respond(name.view(), rtype).to_octets();
        let server = SocketAddr::from((tree.zones[zone].server, 53));
        for (is_response, octets) in [(false, query), (true, response)] {
            let time_ns =
                (u64::from(NOW) + second as u64) * 1_000_000_000 + u64::from(is_response) * 1_000_000;
            let message = CapturedMessage {
                time_ns,
                client,
                server,
                transport: Transport::Udp,
                is_response,
                kind: MessageKind::Auth,
                octets,
            };
            assert!(writer.write(&message).expect("written"));
        }
    }
    writer.finish().expect("written");
    Captured { folder, pcap, anchor }
}

impl Captured {
    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn record(&self, out: &str, more: &[&str]) -> Ended {
        let out = self.path(out);
        let arguments = [
            "plan",
            "record",
            "--pcap",
            text(&self.pcap),
            "--resolver",
            RESOLVER,
            "--out",
            text(&out),
            "--json",
        ];
        run(&mut nonesuch([&arguments, more].concat()))
    }
}

fn recorded(ended: &Ended) -> Value {
    assert_eq!(ended.status, 0, "{}", ended.text());
    let last = ended.stdout.lines().last().expect("a line");
    serde_json::from_str::<Value>(last).expect("JSON")["recorded"].clone()
}

fn windows(out: &Path) -> Vec<u64> {
    Recording::read(out).expect("a recording").windows.iter().map(|window| window.queries).collect()
}

#[test]
fn a_capture_is_recorded_with_an_estimate() {
    let captured = captured();
    let ended =
        captured.record("out", &["--anchor", text(&captured.anchor), "--window", "5", "--name", "test"]);
    let sums = recorded(&ended);
    let counts =
        ["queries", "responses", "signed_responses", "tcp_queries", "truncated"].map(|name| &sums[name]);
    assert_eq!(counts.map(|count| count.as_u64().expect("a number")), [7, 7, 7, 0, 0], "{sums}");
    // Three DNSKEY RRsets, two DS RRsets and two addresses.
    assert_eq!(
        (sums["verified"].as_u64(), sums["verified_by"].as_str()),
        (Some(7), Some("estimated")),
        "{sums}"
    );
    let recording = Recording::read(&captured.path("out")).expect("a recording");
    assert_eq!((recording.name.as_str(), recording.verified_by), ("test", VerificationSource::Estimated));
    let queries: Vec<u64> = recording.windows.iter().map(|window| window.queries).collect();
    assert_eq!(queries, [5, 2]);
    assert!(recording.windows.iter().all(|window| window.response_octets.is_some_and(|octets| octets > 0)));
    let domains: Vec<(String, u64)> =
        recording.domains.iter().map(|row| (row.domain.to_string(), row.queries)).collect();
    assert_eq!(domains, [("z.example.".to_owned(), 3), (".".to_owned(), 2), ("example.".to_owned(), 2)]);
    assert!(
        captured.path("out/windows-000001.parquet").exists() && captured.path("out/domains.parquet").exists()
    );
    assert!(!ended.stderr.contains("warning"), "{}", ended.stderr);
}

#[test]
fn signatures_without_a_chain_of_trust_are_named() {
    let captured = captured();
    // The trust anchors of the Internet.
    let ended = captured.record("out", &[]);
    let sums = recorded(&ended);
    assert_eq!((sums["signatures"].as_u64() > Some(0), sums["verified"].as_u64()), (true, Some(0)));
    assert!(ended.stderr.contains("not in the estimate"), "{}", ended.stderr);
}

#[test]
fn verified_signatures_come_from_the_file_of_the_library() {
    let captured = captured();
    let totals = captured.path("totals");
    let line = |second: u64, total: u64| format!("{} {total} 77\n", (u64::from(NOW) + second) * 1_000_000);
    fs::write(&totals, [line(0, 3), line(1, 4), line(2, 9), line(3, 9), line(4, 10), line(7, 20)].concat())
        .expect("written");
    let sums = recorded(&captured.record("out", &["--verified", text(&totals), "--window", "2"]));
    assert_eq!(
        (sums["verified"].as_u64(), sums["verified_by"].as_str()),
        (Some(14), Some("library")),
        "{sums}"
    );
    let verified: Vec<u64> = Recording::read(&captured.path("out"))
        .expect("a recording")
        .windows
        .iter()
        .map(|w| w.verified)
        .collect();
    assert_eq!(verified[..2], [6, 1]);
    // Without totals for the last windows.
    fs::write(&totals, [line(0, 3), line(1, 4), line(2, 9), line(3, 9)].concat()).expect("written");
    let ended = captured.record("short", &["--verified", text(&totals), "--window", "2"]);
    let sums = recorded(&ended);
    assert_eq!((sums["verified"].as_u64(), sums["gaps"]["no-totals"].as_u64()), (Some(6), Some(3)), "{sums}");
    fs::write(&totals, "log of something else\n").expect("written");
    let ended = captured.record("other", &["--verified", text(&totals)]);
    assert!(ended.status == 2 && ended.error().contains("line 1"), "{}", ended.text());
    let ended = captured.record("none", &["--verified", text(&captured.path("none"))]);
    assert!(ended.status == 2 && ended.error().contains("counting library"), "{}", ended.text());
}

#[test]
fn a_cut_capture_is_recorded_up_to_its_end_and_named() {
    let captured = captured();
    let octets = fs::read(&captured.pcap).expect("a file");
    fs::write(&captured.pcap, &octets[..octets.len() - 5]).expect("written");
    let ended = captured.record("out", &["--anchor", text(&captured.anchor)]);
    let sums = recorded(&ended);
    assert_eq!((sums["queries"].as_u64(), sums["responses"].as_u64()), (Some(7), Some(6)), "{sums}");
    assert!(ended.stderr.contains("it was cut"), "{}", ended.stderr);
    let text = fs::read_to_string(captured.path("out/recording.json")).expect("a file");
    assert!(text.contains("it was cut"), "{text}");
}

#[test]
fn a_recording_is_continued_only_with_later_windows_of_the_same_source() {
    let captured = captured();
    let anchor = ["--anchor", text(&captured.anchor), "--window", "5"];
    recorded(&captured.record("out", &anchor));
    let again = captured.record("out", &anchor);
    let sums = recorded(&again);
    assert_eq!((sums["windows"].as_u64(), &sums["gaps"]), (Some(0), &serde_json::json!({})), "{sums}");
    assert!(
        again.stderr.contains("older than the open windows, and were not counted (14)"),
        "{}",
        again.stderr
    );
    let domains = Recording::read(&captured.path("out")).expect("a recording").domains;
    assert_eq!(domains.iter().map(|row| row.queries).sum::<u64>(), 7);
    assert_eq!(windows(&captured.path("out")), [5, 2]);
    let other = captured.record("out", &["--window", "10"]);
    assert!(other.status == 2 && other.error().contains("window"), "{}", other.text());
    fs::create_dir(captured.path("occupied")).expect("a directory");
    fs::write(captured.path("occupied/thesis.tex"), "").expect("written");
    assert_eq!(captured.record("occupied", &anchor).status, 2);
}

#[test]
fn other_traffic_and_other_files_are_errors() {
    let captured = captured();
    let out = captured.path("out");
    let of = |pcap: &Path, resolver: &str| {
        let out = text(&out);
        run(&mut nonesuch(["plan", "record", "--pcap", text(pcap), "--resolver", resolver, "--out", out]))
    };
    let ended = of(&captured.pcap, "192.0.2.99");
    assert!(ended.status == 2 && ended.error().contains("--resolver"), "{}", ended.text());
    let ended = of(&captured.anchor, RESOLVER);
    assert!(ended.status == 2 && ended.error().contains("is not a capture"), "{}", ended.text());
}

#[test]
fn the_command_line_is_checked() {
    let folder = folder();
    let out = folder.path().join("out");
    let fails = |more: &[&str]| {
        let ended = run(&mut nonesuch([&["plan", "record", "--out", text(&out)], more].concat()));
        assert_eq!((ended.status, out.exists()), (2, false), "{more:?}: {}", ended.text());
    };
    fails(&[]);
    fails(&["--pcap", "x"]);
    fails(&["--control", "x", "--dnstap", "y"]);
    fails(&["--control", "x", "--verified", "y"]);
    fails(&["--control", "/nonexistent/socket"]);
    fails(&["--dnstap", "/nonexistent/socket"]);
    for window in ["0", "2h", "x"] {
        fails(&["--control", "x", "--window", window]);
    }
    snapshot::check("plan record", "help", &done(["plan", "record", "-h"]).stdout);
}
