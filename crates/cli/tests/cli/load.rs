//! `nonesuch load`, the echo server and `lab run echo-floor`. No assertion depends on speed.

use crate::common;
use common::{done, folder, nonesuch, prepared, run, serve, snapshot, text};
use serde_json::Value;
use std::ffi::OsStr;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::SocketAddr;
use std::os::unix::ffi::OsStrExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};

/// An echo server. It ends with the test.
pub(crate) struct Echo {
    child: Child,
    pub(crate) address: SocketAddr,
}

impl Echo {
    pub(crate) fn start(octets: &str) -> Self {
        let mut command = nonesuch(["lab", "echo", "--octets", octets]);
        let mut child = command.stdout(Stdio::piped()).spawn().expect("started");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("its output")).read_line(&mut line).expect("a line");
        assert!(line.starts_with("ready: "), "{line}");
        let address = line.split_whitespace().find_map(|word| word.parse().ok()).expect("an address");
        Self { child, address }
    }
}

impl Drop for Echo {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn queries(folder: &Path, list: &str) -> String {
    let path = folder.join("queries");
    fs::write(&path, list).expect("written");
    text(&path).to_owned()
}

fn json(arguments: &[&str]) -> Value {
    serde_json::from_str(&done(arguments).stdout).expect("JSON alone")
}

#[test]
fn an_open_loop_reports_what_was_asked_and_what_came() {
    let folder = folder();
    let (echo, queries) = (Echo::start("200"), queries(folder.path(), "a.example. A\nb.example. AAAA\n"));
    let (server, pid) = (echo.address.to_string(), echo.child.id().to_string());
    let load = ["load", "--server", &server, "--queries", &queries, "--seconds", "0.2", "--dnssec"];
    let open =
        ["--rate", "1000", "--arrivals", "poisson", "--seed", "7", "--warm-up", "0.1", "--sockets", "3"];
    let report = json(&[&load[..], &open, &["--server-pid", &pid, "--json"]].concat());
    let sent = report["sent"].as_u64().expect("a count");
    // Mean 200, standard deviation 14.
    assert!((100..300).contains(&sent), "{report}");
    assert_eq!(
        (&report["received"], &report["lost"], &report["unsent"]),
        (&sent.into(), &0.into(), &0.into())
    );
    assert_eq!((&report["arrivals"], &report["rate"]), (&"poisson".into(), &1000.0.into()));
    assert_eq!(report["response_octets_mean"], 200.0);
    let histogram = report["latency_histogram_ns"].as_array().expect("a list");
    assert_eq!(histogram.iter().filter_map(|bucket| bucket[1].as_u64()).sum::<u64>(), sent);
    assert!(report["server_resident_kib"].as_u64() > Some(0));
    // The same seed gives the same schedule.
    let again = json(&[&load[..], &open, &["--sleep", "--json"]].concat());
    assert_eq!(again["sent"], sent);
}

#[test]
fn text_says_what_json_says() {
    let folder = folder();
    let (echo, queries) = (Echo::start("60"), queries(folder.path(), "a.example. A\n"));
    let server = echo.address.to_string();
    let load = ["load", "--server", &server, "--queries", &queries, "--limit", "50"];
    let closed = done(load).stdout;
    assert!(closed.starts_with("queries    50 sent, 50 answered, 0 late, 0 lost"), "{closed}");
    assert!(
        closed.contains("NOERROR 50") && closed.contains("max 60") && closed.contains("p99.99"),
        "{closed}"
    );
    assert!(!closed.contains("lateness"), "{closed}");
    let unknown = "% of all CPUs (including a server on this machine: set --server-pid)";
    let other_cpu = |text: &str| text.lines().find(|line| line.starts_with("other CPU  ")).map(str::to_owned);
    // A short load may have no tick of the system's clock, and then no share.
    assert!(other_cpu(&closed).is_none_or(|line| line.ends_with(unknown)), "{closed}");
    let pid = echo.child.id().to_string();
    let known = done([&load[..], &["--rate", "250", "--server-pid", &pid]].concat()).stdout;
    assert!(other_cpu(&known).is_some_and(|line| line.ends_with("% of all CPUs")), "{known}");
    assert!(known.contains("\nlimited by "), "{known}");
    let open = done([&load[..], &["--rate", "2000"]].concat()).stdout;
    // The rate is computed from fifty intervals of half a millisecond, not from the 49 between the
    // first and the last query.
    let rate = open.lines().find_map(|line| line.strip_prefix("rate       ")).expect("a rate");
    let rate: f64 = rate.split(' ').next().and_then(|rate| rate.parse().ok()).expect("a number");
    assert!(rate <= 2000.0, "{open}");
    assert!(open.contains("lateness   min") && open.contains("of 2000 queries/s"), "{open}");
}

#[test]
fn the_record_has_arguments_that_are_not_utf_8() {
    let folder = folder();
    let echo = Echo::start("60");
    let queries = folder.path().join(OsStr::from_bytes(b"queries-\xff"));
    fs::write(&queries, "a.example. A\n").expect("written");
    let server = echo.address.to_string();
    let mut load = nonesuch(["load", "--server", &server, "--limit", "10", "--json", "--queries"]);
    let ended = run(load.arg(&queries)).expect_done("a load");
    let report: Value = serde_json::from_str(&ended.stdout).expect("JSON alone");
    let command = report["record"]["command"].as_str().expect("a command line");
    assert!(command.ends_with("queries-\u{fffd}"), "{command}");
}

#[test]
fn intervals_are_printed_before_the_report() {
    let folder = folder();
    let (echo, queries) = (Echo::start("60"), queries(folder.path(), "a.example. A\n"));
    let server = echo.address.to_string();
    let load = ["load", "--server", &server, "--queries", &queries, "--rate", "1000"];
    let printed = done([&load[..], &["--seconds", "0.35", "--interval", "0.1", "--json"]].concat()).stdout;
    let lines: Vec<Value> =
        printed.lines().map(|line| serde_json::from_str(line).expect("a line of JSON")).collect();
    let (report, intervals) = lines.split_last().expect("lines");
    assert_eq!(report["sent"], 350);
    assert!(intervals.len() >= 3 && intervals[0]["interval"]["end"] == 0.1, "{printed}");
    let text = done([&load[..], &["--seconds", "0.35", "--interval", "0.1"]].concat()).stdout;
    assert!(text.starts_with("     0.1 s ") && text.contains("\nqueries    350 sent"), "{text}");
}

#[test]
fn random_names_are_denied_by_a_real_server() {
    let folder = prepared();
    let server = serve(&folder.path().join("zone"), &["-o", common::KEYS_ORIGIN]);
    let queries = queries(folder.path(), "keys.example. A\n");
    let address = server.address.to_string();
    let load = ["load", "--server", &address, "--queries", &queries, "--limit", "200", "--json"];
    assert_eq!(json(&load)["rcodes"], serde_json::json!({ "NOERROR": 200 }));
    let random = [&load[..], &["--random-prefix"]].concat();
    assert_eq!(json(&random)["rcodes"], serde_json::json!({ "NXDOMAIN": 200 }));
}

/// Signs the zone in `folder`. Returns the signed zone and the file with its DNSKEY record.
fn signed(folder: &Path) -> (PathBuf, PathBuf) {
    let keys = common::made(folder, "keys");
    let generate = ["key", "generate", common::KEYS_ORIGIN, "-a", "ecdsap256sha256", "--csk", "--dir"];
    let base = done([&generate[..], &[text(&keys)]].concat()).stdout;
    let (zone, signed) = (folder.join("zone"), folder.join("signed"));
    let sign = ["zone", "sign", text(&zone), "-o", common::KEYS_ORIGIN, "--keys", text(&keys)];
    done([&sign[..], &["-f", text(&signed)]].concat());
    (signed, keys.join(format!("{}.key", base.trim())))
}

#[test]
fn responses_of_a_signed_zone_are_validated_over_each_transport() {
    let folder = prepared();
    let (signed, anchor) = signed(folder.path());
    let server = serve(&signed, &[]);
    let address = server.address.to_string();
    let load = ["load", "--server", &address, "--zone", text(&signed), "--denied-share", "50", "--do"];
    let validate = ["--validate", "30", "--anchor", text(&anchor), "--limit", "300", "--json"];
    let transports: [(&[&str], &str); 3] = [
        (&["--nsid", "--cookie", "--cd"], "udp"),
        (&["--tcp", "--connections", "2", "--queries-per-connection", "50"], "tcp"),
        (&["--edns-size", "512", "--follow-truncated", "--random-label"], "udp"),
    ];
    for (more, transport) in transports {
        let report = json(&[&load[..], &validate, more].concat());
        assert_eq!((&report["received"], &report["transport"]), (&300.into(), &transport.into()), "{report}");
        let counts = &report["validation"];
        let secure = counts["secure"].as_u64().expect("a count");
        let insecure = counts["insecure"].as_u64().expect("a count");
        assert_eq!((secure + insecure, &counts["bogus"]), (30, &0.into()), "{report}");
        assert!(secure > 0 && counts["first_reason"].is_null(), "{report}");
        assert!(report["rcodes"]["NXDOMAIN"].as_u64() > Some(0), "{report}");
    }
}

#[test]
fn a_bogus_response_ends_with_status_1() {
    let folder = prepared();
    let (signed, anchor) = signed(folder.path());
    let tampered = fs::read_to_string(&signed).expect("read").replace("192.0.2.1", "192.0.2.9");
    fs::write(&signed, tampered).expect("written");
    let server = serve(&signed, &["--verify", "structural"]);
    let queries = queries(folder.path(), "ns.keys.example. A\n");
    let address = server.address.to_string();
    let load = ["load", "--server", &address, "--queries", &queries, "--do", "--limit", "20"];
    let validate = ["--validate", "5", "--anchor", text(&anchor)];
    let ended = run(&mut nonesuch([&load[..], &validate].concat()));
    assert_eq!(ended.status, 1, "{}", ended.text());
    assert!(ended.stdout.contains("0 secure, 0 insecure, 5 bogus, 0 indeterminate"), "{}", ended.stdout);
    // Signatures of the keys have expired.
    let late = run(&mut nonesuch([&load[..], &validate, &["--now", "20991231000000"]].concat()));
    assert_eq!(late.status, 2, "{}", late.text());
    assert!(late.stderr.contains("keys.example.") && late.stdout.is_empty(), "{}", late.text());
}

#[test]
fn senseless_options_are_refused_by_name() {
    let folder = folder();
    let queries = queries(folder.path(), "a.example. A\n");
    let load = ["load", "--server", "127.0.0.1:1", "--queries", &queries];
    for (more, option) in [
        (&["--rate", "0"][..], "--rate"),
        (&["--arrivals", "poisson"], "--rate"),
        (&["--rate", "10", "--arrivals", "bursts"], "--arrivals"),
        (&["--edns-option", "10:0"], "--edns-option"),
        (&["--edns-size", "0", "--edns-option", "10:00"], "--edns-option"),
        (&["--sockets", "0"], "--sockets"),
        (&["--tcp", "--connections", "0"], "--connections"),
        (&["--zipf", "11"], "--zipf"),
        (&["--validate", "5"], "--anchor"),
        (&["--ramp", "--ramp-loss", "100"], "--ramp-loss"),
        (&["--ramp", "--rate", "0.5"], "--rate"),
        (&["--outstanding", "3", "--sockets", "4"], "--outstanding"),
        (&["--timeout=-1"], "--timeout"),
        (&["--warm-up", "NaN"], "--warm-up"),
        (&["--server-pid", "4194999"], "--server-pid"),
    ] {
        let ended = run(&mut nonesuch([&load[..], more].concat()));
        assert_eq!(ended.status, 2, "{more:?}: {}", ended.text());
        assert!(ended.stderr.contains(option), "{more:?}: {}", ended.stderr);
        snapshot::check("load", &more.join(" "), &ended.stderr);
    }
    let ended = run(&mut nonesuch(["load", "--server", "127.0.0.1:1", "--queries", "none"]));
    assert_eq!(ended.status, 2);
    snapshot::check("load", "missing query list", &ended.stderr);
    let ended = run(&mut nonesuch(["lab", "echo", "--listen", "0.0.0.0:0"]));
    assert_eq!(ended.status, 2);
    snapshot::check("lab echo", "address that is not a loopback address", &ended.stderr);
}

#[test]
fn the_echo_floor_is_measured_beside_our_server() {
    let folder = folder();
    let out = folder.path().join("out");
    let set =
        ["rounds=2", "seconds=0.2", "names=50", "octets=[160, 400]", "denial=nsec,nsec3", "queries=denied"];
    let mut arguments = vec!["lab", "run", "echo-floor", "--json", "--out", text(&out)];
    set.iter().for_each(|set| arguments.extend(["--set", set]));
    let printed = json(&arguments);
    let lines = printed["summary"]["lines"].as_array().expect("lines");
    // Two sizes and, for each mechanism, the server and its echo floor.
    assert_eq!(lines.len(), 6, "{printed}");
    let of = |server: &str, denial: &str| {
        let is = |line: &&Value| line["server"] == server && line["denial"] == denial;
        lines.iter().find(is).unwrap_or_else(|| panic!("no {server} {denial}: {printed}"))
    };
    for denial in ["nsec", "nsec3"] {
        let (ours, floor) = (of("nonesuch", denial), of("echo", denial));
        let octets = |line: &Value| line["response_octets"].as_f64().expect("a size");
        assert!((octets(ours) - octets(floor)).abs() <= 0.05 * octets(ours), "{printed}");
        assert_eq!(ours["cpu_us"]["count"], 2);
        assert!(floor["times_floor"].is_null());
    }
    let csv = fs::read_to_string(out.join("results.csv")).expect("a table");
    assert_eq!(csv.lines().count(), 1 + 2 * 6);
    let page = fs::read_to_string(out.join("report.html")).expect("a page");
    fs::remove_file(out.join("report.html")).expect("removed");
    done(["lab", "report", text(&out)]);
    assert_eq!(fs::read_to_string(out.join("report.html")).expect("a page"), page);
}
