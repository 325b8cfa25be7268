//! The metrics of a running server, and its log.
#![allow(unreachable_pub)] // shared test functions are public

use crate::common;
use crate::common::watched;
use common::{folder, is_installed, run_on, text};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::process::Command;
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use watched::{Watched, wait_until};

/// The address of the metrics, from the log.
fn metrics_address(server: &Watched) -> SocketAddr {
    wait_until("metrics in the log", || listening_address(server.events("metrics-listening", &[]).first()?))
}

/// The address in the line of the log.
pub fn listening_address(line: &str) -> Option<SocketAddr> {
    line.split_once("address=")?.1.split_whitespace().next()?.parse().ok()
}

/// The body of the response to `GET /metrics`.
pub fn scrape(address: SocketAddr, accept: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("a connection");
    stream.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let request = format!("GET /metrics HTTP/1.1\r\nHost: {address}\r\nAccept: {accept}\r\n\r\n");
    stream.write_all(request.as_bytes()).expect("sent");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).expect("an answer");
    let (head, body) = answer.split_once("\r\n\r\n").expect("a body");
    assert!(head.starts_with("HTTP/1.1 200 "), "{head}");
    body.to_owned()
}

pub fn value(text: &str, sample: &str) -> Option<f64> {
    text.lines().find_map(|line| line.strip_prefix(sample)?.strip_prefix(' ')?.parse().ok())
}

/// Media type of OpenMetrics.
pub const OPEN: &str = "application/openmetrics-text;version=1.0.0";

#[test]
fn a_server_counts_what_it_is_asked() {
    let folder = folder();
    let server = Watched::start(folder.path(), "metrics-listen = \"127.0.0.1:0\"", "[log]\nlevel = \"info\"");
    for _ in 0..3 {
        server.ask("ns.watched.example.", 1);
    }
    server.ask("none.watched.example.", 28);
    server.ask("elsewhere.example.", 65280);
    server.ask_over_tcp("watched.example.", 6);
    let address = metrics_address(&server);
    assert_open(address, 0.0);
    let open: Vec<TcpStream> =
        (0..3).map(|_| TcpStream::connect(server.address).expect("connected")).collect();
    assert_open(address, 3.0);
    drop(open);
    assert_open(address, 0.0);
    // A response is sent before it is counted as sent.
    let text = wait_until("six answers", || {
        let text = scrape(address, OPEN);
        let counted = |transport: &str| {
            value(&text, &format!("nonesuch_response_duration_seconds_count{{transport=\"{transport}\"}}"))
        };
        (counted("udp") == Some(5.0) && counted("tcp") == Some(1.0)).then_some(text)
    });
    for (sample, expected) in [
        ("nonesuch_queries_total{transport=\"udp\",type=\"A\"}", 3.0),
        ("nonesuch_queries_total{transport=\"udp\",type=\"AAAA\"}", 1.0),
        ("nonesuch_queries_total{transport=\"udp\",type=\"OTHER\"}", 1.0),
        ("nonesuch_queries_total{transport=\"tcp\",type=\"SOA\"}", 1.0),
        ("nonesuch_responses_total{transport=\"udp\",rcode=\"NOERROR\"}", 3.0),
        ("nonesuch_responses_total{transport=\"udp\",rcode=\"NXDOMAIN\"}", 1.0),
        ("nonesuch_responses_total{transport=\"udp\",rcode=\"REFUSED\"}", 1.0),
        ("nonesuch_dnssec_ok_queries_total{transport=\"udp\"}", 5.0),
        ("nonesuch_query_size_bytes_count{transport=\"udp\"}", 5.0),
        ("nonesuch_connections_total{transport=\"tcp\",outcome=\"accepted\"}", 4.0),
        ("nonesuch_zones{state=\"serving\"}", 1.0),
        ("nonesuch_zone_serial{zone=\"watched.example.\"}", 42.0),
        ("nonesuch_zone_is_served{zone=\"watched.example.\"}", 1.0),
        ("nonesuch_zone_records{zone=\"watched.example.\"}", 3.0),
    ] {
        assert_eq!(value(&text, sample), Some(expected), "{sample}\n{text}");
    }
    assert!(
        value(&text, "nonesuch_zone_age_seconds{zone=\"watched.example.\"}").is_some_and(|age| age < 60.0)
    );
    assert!(value(&text, "process_resident_memory_bytes").is_some_and(|octets| octets > 1e6), "{text}");
    assert!(value(&text, "process_open_fds").is_some_and(|files| files > 3.0), "{text}");
    let now = SystemTime::now().duration_since(UNIX_EPOCH).expect("after 1970").as_secs_f64();
    assert!(
        value(&text, "process_start_time_seconds").is_some_and(|start| (now - 60.0..=now).contains(&start))
    );
    server.stop();
}

/// Waits until this number of connections over TCP is open.
#[track_caller]
fn assert_open(address: SocketAddr, connections: f64) {
    wait_until("open connections", || {
        let open = value(&scrape(address, OPEN), "nonesuch_open_connections{transport=\"tcp\"}");
        (open == Some(connections)).then_some(())
    });
}

#[test]
fn real_parsers_read_what_a_server_says() {
    let folder = folder();
    let server = Watched::start(folder.path(), "metrics-listen = \"127.0.0.1:0\"", "[log]\nlevel = \"info\"");
    server.ask("ns.watched.example.", 1);
    let address = metrics_address(&server);
    let file = folder.path().join("metrics");
    if is_installed("promtool") {
        fs::write(&file, scrape(address, "*/*")).expect("written");
        run_on(Command::new("promtool").args(["check", "metrics"]), &file).expect_done("promtool");
    }
    let parser = "import sys\nfrom prometheus_client.openmetrics.parser import text_string_to_metric_families as parse\n\
        families = {family.name: family.type for family in parse(sys.stdin.read())}\n\
        assert families['nonesuch_open_connections'] == 'gauge', families\n\
        print(len(families))";
    let has_parser = |python: &&&str| {
        let mut command = Command::new(python);
        command.args(["-c", "import prometheus_client.openmetrics.parser"]);
        command.output().is_ok_and(|output| output.status.success())
    };
    let Some(python) = ["python3", "/usr/bin/python3"].iter().find(has_parser) else {
        nonesuch_testing::record_skip("Python's prometheus_client is not installed");
        return;
    };
    fs::write(&file, scrape(address, OPEN)).expect("written");
    let parsed = run_on(Command::new(python).args(["-c", parser]), &file).expect_done("the parser");
    assert!(parsed.stdout.trim().parse::<usize>().is_ok_and(|families| families > 30), "{}", parsed.stdout);
    server.stop();
}

#[test]
fn without_an_address_nothing_is_listened_on_and_the_log_is_json_where_asked_for() {
    let folder = folder();
    let server = Watched::start(folder.path(), "", "[log]\nlevel = \"info\"\nformat = \"json\"");
    let log = server.log();
    let lines: Vec<serde_json::Value> = log
        .lines()
        .map(|line| serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}")))
        .collect();
    assert!(lines.iter().all(|line| line["event"] != "metrics-listening"), "{log}");
    assert!(lines.iter().all(|line| line["time"].is_string() && line["level"].is_string()), "{log}");
    assert!(lines.iter().any(|line| line["zone"] == "watched.example."), "{log}");
    server.stop();
}

#[test]
fn an_address_in_use_is_named_with_its_key() {
    let folder = folder();
    let taken = std::net::TcpListener::bind("127.0.0.1:0").expect("a listener");
    let address = taken.local_addr().expect("an address");
    let configuration = folder.path().join("configuration.toml");
    let written = format!("version = 1\nlisten = [\"127.0.0.1:0\"]\nmetrics-listen = \"{address}\"\n");
    fs::write(&configuration, written).expect("written");
    let ended = common::run(&mut common::nonesuch(["serve", "--config", text(&configuration)]));
    assert_eq!(ended.status, 3, "{}", ended.text());
    assert!(
        ended.stderr.contains(&address.to_string()) && ended.stderr.contains("metrics-listen"),
        "{}",
        ended.stderr
    );
}
