//! A primary that does not answer, in the log, `nonesuch ctl` and the metrics.

use crate::common;
use crate::common::transferring;
use common::configured::{Configured, plain_zone, write_beside};
use common::{folder, snapshot};
use serde_json::Value;
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use transferring::{free_port, start_at, start_with};

const ZONE: &str = "plain.example.";

/// Number of lines of the event `name` about the zone in a JSON log, with this level.
fn count(server: &Configured, level: &str, name: &str) -> usize {
    let log = server.logged();
    let lines = log.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    let is_event = |line: &Value| line["level"] == level && line["event"] == name && line["zone"] == ZONE;
    lines.filter(is_event).count()
}

/// The value of a sample of the metrics.
fn metric(port: u16, sample: &str) -> Option<f64> {
    let mut stream = TcpStream::connect(("127.0.0.1", port)).expect("connected");
    stream.write_all(b"GET /metrics HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n").expect("sent");
    let mut text = String::new();
    stream.read_to_string(&mut text).expect("an answer");
    let line = text.lines().find(|line| line.starts_with(sample))?;
    line.rsplit(' ').next()?.parse().ok()
}

#[test]
fn a_primary_that_does_not_answer_is_shown_everywhere_until_it_answers_again() {
    let (home, theirs) = (folder(), folder());
    let dir = theirs.path();
    write_beside(&dir.join("plain"), &plain_zone(ZONE, 1));
    let (port, metrics) = (free_port(), free_port());
    let of_primary = format!("[zone.\"{ZONE}\"]\nfile = \"plain\"\ntransfer = [\"127.0.0.1\"]\n");
    let primary = start_at(dir, port, &of_primary);
    let times: String = [("refresh", 1), ("retry", 1), ("expire", 3)]
        .map(|(time, seconds)| format!("{time}-min = \"{seconds}s\"\n{time}-max = \"{seconds}s\"\n"))
        .concat();
    let server = start_with(
        home.path(),
        free_port(),
        &format!("metrics-listen = \"127.0.0.1:{metrics}\"\n"),
        &format!(
            "[log]\nformat = \"json\"\n\
             [zone.\"{ZONE}\"]\nprimaries = [\"127.0.0.1:{port}\"]\n{times}"
        ),
    );
    server.wait_for(ZONE, 1);
    let status = || server.ctl_json(&["zone", "status", ZONE])[0].clone();
    server.wait_until("a refresh", || status()["refresh_state"] == "refreshed");
    assert_eq!(status()["failing_primaries"], Value::Array(Vec::new()));
    let left =
        metric(metrics, "nonesuch_zone_time_to_expiry_seconds{zone=\"plain.example.\"}").expect("a gauge");
    assert!((1.0..=3.0).contains(&left), "{left}");
    for name in ["refreshed", "next_refresh"] {
        let sample = format!("nonesuch_zone_{name}_timestamp_seconds{{zone=\"plain.example.\"}}");
        server.wait_until("a time", || metric(metrics, &sample).is_some_and(|time| time > 1.7e9));
    }
    primary.kill();
    server.wait_until("a failure", || status()["refresh_state"] == "failing");
    let failing = status()["failing_primaries"][0].clone();
    assert_eq!(failing["address"], format!("127.0.0.1:{port}"));
    assert!(failing["since"].as_u64().is_some_and(|since| since > 1_700_000_000), "{failing}");
    assert!(failing["error"].as_str().is_some_and(|error| !error.is_empty()), "{failing}");
    let whole = server.ctl_json(&["status"])["refresh_failures"].clone();
    let first = &whole["zones"][0];
    assert_eq!(
        (&whole["count"], &first["zone"], &first["since"]),
        (&1.into(), &ZONE.into(), &failing["since"])
    );
    let shown = server.ctl(&["status"]).expect_done("status").stdout;
    let is_failure =
        |line: &&str| line.starts_with("refresh failing: ") && line.contains(&format!("127.0.0.1:{port}"));
    // Further times and the error follow.
    let line = shown.lines().find(is_failure).and_then(|line| line.split_once(" since 20"));
    snapshot::check("ctl", "status, a refresh fails", line.unwrap_or_else(|| panic!("{shown}")).0);
    server.wait_until("expiry", || status()["refresh_state"] == "expired");
    for (level, name) in
        [("warn", "soa-query-failed"), ("warn", "refresh-overdue"), ("error", "zone-expired")]
    {
        assert_eq!(count(&server, level, name), 1, "{name}: {}", server.logged());
    }
    assert_eq!(metric(metrics, "nonesuch_zone_time_to_expiry_seconds{zone=\"plain.example.\"}"), Some(0.0));
    let _primary = start_at(dir, port, &of_primary);
    server.ctl(&["zone", "refresh", ZONE]).expect_done("refresh");
    server.wait_until("a refresh", || status()["refresh_state"] == "refreshed");
    assert_eq!(count(&server, "info", "primary-answers-again"), 1, "{}", server.logged());
    assert_eq!(server.ctl_json(&["status"])["refresh_failures"]["count"], 0);
}
