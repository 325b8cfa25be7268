//! `nonesuch ctl`, signals and the control socket of a running server.

mod common;

use common::configured::{Configured, ask, configure, plain_zone, write_beside};
use common::{folder, nonesuch, run, text};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::time::Duration;

const TWO: &str = "[zone.\"a.example.\"]\nfile = \"a\"\n[zone.\"b.example.\"]\nfile = \"b\"\n";

fn two_zones(dir: &Path) -> Configured {
    write_beside(&dir.join("a"), &plain_zone("a.example.", 1));
    write_beside(&dir.join("b"), &plain_zone("b.example.", 1));
    Configured::start(&configure(dir, TWO))
}

#[test]
fn status_and_zones_are_told_to_people_and_programs() {
    let folder = folder();
    let server = two_zones(folder.path());
    assert_eq!(
        (&server.ready["serving"], &server.ready["failed"]),
        (&2.into(), &0.into()),
        "{}",
        server.ready
    );
    let status = server.ctl_json(&["status"]);
    assert_eq!((&status["serving"], &status["failed"]), (&2.into(), &0.into()), "{status}");
    assert_eq!(status["listen"][0], server.address.to_string());
    let told = server.ctl(&["status"]).expect_done("status").stdout;
    assert!(told.contains("zones: 2 served, 0 waiting, 0 expired, 0 failed"), "{told}");
    let zones = server.ctl_json(&["zone", "status"]);
    assert_eq!((&zones[0]["zone"], &zones[0]["serial"]), (&"a.example.".into(), &1.into()), "{zones}");
    let told = server.ctl(&["zone", "status"]).expect_done("zone status").stdout;
    assert!(told.lines().count() == 3 && told.contains("a.example.  serving  1"), "{told}");
    let told = server.ctl(&["zone", "status", "B.example"]).expect_done("zone status").stdout;
    assert!(told.contains("served              unsigned") && told.contains("verified"), "{told}");
    let ended = server.ctl(&["zone", "status", "c.example."]);
    assert!(ended.status == 1 && ended.stderr.contains("there is no zone c.example."), "{}", ended.text());
    let ended = server.ctl(&["zone", "refresh", "a.example."]);
    assert!(ended.status == 1 && ended.stderr.contains("no primaries"), "{}", ended.text());
}

#[test]
fn one_zone_or_all_are_reloaded() {
    let folder = folder();
    let dir = folder.path();
    let server = two_zones(dir);
    assert!(server.ctl(&["reload", "a.example."]).expect_done("reload").stdout.contains("unchanged"));
    write_beside(&dir.join("a"), &plain_zone("a.example.", 2));
    write_beside(&dir.join("b"), &plain_zone("b.example.", 2));
    assert!(server.ctl(&["reload", "a.example."]).expect_done("reload").stdout.contains("loaded and served"));
    assert_eq!((server.serial("a.example."), server.serial("b.example.")), (Some(2), Some(1)));
    let told = server.ctl(&["reload"]).expect_done("reload").stdout;
    assert!(told.contains("0 added, 0 removed, 1 updated, 0 refused, 1 unchanged"), "{told}");
    assert_eq!(server.serial("b.example."), Some(2));
    let status = server.ctl_json(&["status"]);
    assert_eq!(status["last_reload"]["updated"][0], "b.example.", "{status}");
    // By signal.
    write_beside(&dir.join("b"), &plain_zone("b.example.", 3));
    server.signal("-HUP");
    server.wait_for("b.example.", 3);
}

#[test]
fn the_server_stops_when_told() {
    let folder = folder();
    let mut server = two_zones(folder.path());
    server.ctl(&["stop"]).expect_done("stop");
    assert_eq!(server.wait(), 0);
    assert!(!folder.path().join("control").exists(), "the socket goes with the server");
    let mut server = Configured::start(&folder.path().join("c.toml"));
    server.signal("-TERM");
    assert_eq!(server.wait(), 0);
}

#[test]
fn the_socket_is_the_owners_and_one_servers() {
    let folder = folder();
    let server = two_zones(folder.path());
    let socket = folder.path().join("control");
    assert_eq!(fs::metadata(&socket).expect("a socket").permissions().mode() & 0o777, 0o600);
    let ended = run(&mut nonesuch(["serve", "--config", text(&server.configuration)]));
    assert!(
        ended.status == 2 && ended.stderr.contains("a server answers at this control socket"),
        "{}",
        ended.text()
    );
    server.kill();
    assert!(socket.exists(), "who is killed leaves it");
    let server = Configured::start(&folder.path().join("c.toml"));
    assert_eq!(server.serial("a.example."), Some(1));
}

#[test]
fn what_is_no_request_is_refused() {
    let folder = folder();
    let server = two_zones(folder.path());
    let socket = folder.path().join("control");
    let long = "x".repeat(10_000);
    for request in [
        "",
        "status",
        "{}",
        "{\"command\":\"fly\"}",
        "{\"command\":\"reload\",\"zone\":7}",
        "[[[[",
        &long,
        "{\"command\":\"zone-status\",\"zone\":\"a..b\"}",
        "{\"command\":\"zone-refresh\",\"zone\":\"nowhere.\"}",
    ] {
        let mut stream = UnixStream::connect(&socket).expect("connected");
        // The server may have seen enough before all is written.
        let _ = stream.write_all(format!("{request}\n").as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(
            answer.is_empty() && request.len() > 4096 || answer.contains("\"error\""),
            "{request}: {answer}"
        );
    }
    // Those who connect and say nothing keep nobody out.
    let idle: Vec<UnixStream> = (0..8).map(|_| UnixStream::connect(&socket).expect("connected")).collect();
    assert_eq!(server.ctl_json(&["status"])["serving"], 2);
    drop(idle);
}

#[test]
fn systemd_is_told() {
    let folder = folder();
    let dir = folder.path();
    write_beside(&dir.join("a"), &plain_zone("a.example.", 1));
    let path = configure(dir, "[zone.\"a.example.\"]\nfile = \"a\"\n");
    let notify = UnixDatagram::bind(dir.join("notify")).expect("a socket");
    notify.set_read_timeout(Some(Duration::from_secs(20))).expect("a limit");
    let mut child = nonesuch(["serve", "--config", text(&path)])
        .env("NOTIFY_SOCKET", dir.join("notify"))
        .env("WATCHDOG_USEC", "200000")
        .stdout(std::process::Stdio::null())
        .stderr(std::process::Stdio::null())
        .spawn()
        .expect("nonesuch starts");
    let wait_for = |wanted: &str| {
        let mut octets = [0; 1024];
        loop {
            let length = notify.recv(&mut octets).unwrap_or_else(|error| panic!("{wanted}: {error}"));
            let told = String::from_utf8_lossy(&octets[..length]).into_owned();
            if told.contains(wanted) {
                return told;
            }
        }
    };
    assert!(wait_for("READY=1").contains("STATUS=1 zones served"));
    wait_for("WATCHDOG=1");
    let id = child.id().to_string();
    let signal = |signal: &str| {
        assert!(std::process::Command::new("kill").args([signal, &id]).status().expect("kill").success());
    };
    signal("-HUP");
    assert!(wait_for("RELOADING=1").contains("MONOTONIC_USEC="));
    wait_for("READY=1");
    signal("-TERM");
    wait_for("STOPPING=1");
    assert!(child.wait().expect("ended").success());
}

#[test]
fn a_zone_that_cannot_be_loaded_is_answered_with_servfail_and_named() {
    let folder = folder();
    let dir = folder.path();
    write_beside(&dir.join("a"), &plain_zone("a.example.", 1));
    write_beside(&dir.join("b"), "@ SOA this is no zone\n");
    let server = Configured::start(&configure(dir, TWO));
    assert_eq!(
        (&server.ready["serving"], &server.ready["failed"]),
        (&1.into(), &1.into()),
        "{}",
        server.ready
    );
    assert_eq!(server.serial("a.example."), Some(1));
    assert_eq!(ask(server.address, "x.b.example.", Rtype::A).rcode(), Rcode::SERVFAIL);
    assert_eq!(ask(server.address, "x.c.example.", Rtype::A).rcode(), Rcode::REFUSED);
    let zones = server.ctl_json(&["zone", "status", "b.example."]);
    assert_eq!(zones[0]["state"], "failed", "{zones}");
    assert!(zones[0]["error"].as_str().is_some_and(|error| error.contains("/b:1:")), "{zones}");
    assert!(server.logged().contains("zone b.example.: refused, it is not served"), "{}", server.logged());
    write_beside(&dir.join("b"), &plain_zone("b.example.", 4));
    server.ctl(&["reload"]).expect_done("reload");
    assert_eq!(server.serial("b.example."), Some(4));
}
