//! `nonesuch ctl`, signals and the control socket of a running server.

use crate::common;
use common::configured::{Configured, ask, configure, plain_zone, write_beside};
use common::{folder, nonesuch, run, snapshot, text};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use serde_json::{Value, json};
use std::fs;
use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::{UnixDatagram, UnixStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const TWO: &str = "[zone.\"a.example.\"]\nfile = \"a\"\n[zone.\"b.example.\"]\nfile = \"b\"\n";

/// Writes a zone that includes the file `slow` many times. Reading it takes minutes while `slow` is
/// full of comments.
fn write_slow(path: &Path, origin: &str, serial: u32) {
    fs::write(path.with_file_name("slow"), "; a remark\n".repeat(1 << 19)).expect("written");
    write_beside(path, &(plain_zone(origin, serial) + &"$INCLUDE slow\n".repeat(20_000)));
}

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
    let zones = told.lines().find(|line| line.starts_with("zones: ")).unwrap_or_else(|| panic!("{told}"));
    snapshot::check("ctl", "status: states of zones", zones);
    let zones = server.ctl_json(&["zone", "status"]);
    assert_eq!((&zones[0]["zone"], &zones[0]["serial"]), (&"a.example.".into(), &1.into()), "{zones}");
    let told = server.ctl(&["zone", "status"]).expect_done("zone status").stdout;
    assert!(told.lines().count() == 3 && told.contains("a.example.  serving  1"), "{told}");
    let told = server.ctl(&["zone", "status", "B.example"]).expect_done("zone status").stdout;
    assert!(told.contains("served              unsigned") && told.contains("verified"), "{told}");
    let ended = server.ctl(&["zone", "status", "c.example."]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    snapshot::check("ctl", "zone status: unknown zone", &ended.stderr);
    let ended = server.ctl(&["zone", "refresh", "a.example."]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    snapshot::check("ctl", "zone refresh: zone without primaries", &ended.stderr);
}

#[test]
fn one_zone_or_all_are_reloaded() {
    let folder = folder();
    let dir = folder.path();
    let server = two_zones(dir);
    let told = server.ctl(&["reload", "a.example."]).expect_done("reload").stdout;
    snapshot::check("ctl", "reload: unchanged zone", &told);
    write_beside(&dir.join("a"), &plain_zone("a.example.", 2));
    write_beside(&dir.join("b"), &plain_zone("b.example.", 2));
    let told = server.ctl(&["reload", "a.example."]).expect_done("reload").stdout;
    snapshot::check("ctl", "reload: changed zone", &told);
    assert_eq!((server.serial("a.example."), server.serial("b.example.")), (Some(2), Some(1)));
    let told = server.ctl(&["reload"]).expect_done("reload").stdout;
    snapshot::check("ctl", "reload: all zones, one changed", &told);
    assert_eq!(server.serial("b.example."), Some(2));
    let status = server.ctl_json(&["status"]);
    assert_eq!(status["last_reload"]["updated"][0], "b.example.", "{status}");
    // A rejected zone gives a negative outcome, also with JSON.
    write_beside(&dir.join("b"), "nonsense");
    for form in [&[][..], &["--json"]] {
        let ended = server.ctl(&[form, &["reload"]].concat());
        assert!(ended.status == 1 && ended.stdout.contains("b:1:1: "), "{}", ended.text());
    }
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
fn signals_and_commands_are_heard_while_zones_are_loaded() {
    for by_signal in [true, false] {
        let folder = folder();
        let dir = folder.path();
        write_slow(&dir.join("a"), "a.example.", 1);
        write_beside(&dir.join("b"), &plain_zone("b.example.", 1));
        let path = configure(dir, TWO);
        let mut child = nonesuch(["serve", "--config", text(&path)])
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .expect("nonesuch starts");
        let signal = |signal: &str| {
            let id = child.id().to_string();
            assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
        };
        let ctl = |command: &str| run(&mut nonesuch(["ctl", "--config", text(&path), command]));
        let end = Instant::now() + Duration::from_secs(20);
        while ctl("status").status != 0 {
            assert!(Instant::now() < end, "it does not answer");
            std::thread::sleep(Duration::from_millis(10));
        }
        ["-HUP", "-USR1", "-USR2"].into_iter().for_each(&signal);
        let told = run(&mut nonesuch(["ctl", "--config", text(&path), "--json", "status"]));
        let status: Value = serde_json::from_str(&told.expect_done("status").stdout).expect("JSON");
        assert_eq!((&status["failed"], &status["last_reload"]), (&0.into(), &Value::Null), "{status}");
        if by_signal {
            signal("-TERM");
        } else {
            ctl("stop").expect_done("stop");
        }
        let status = loop {
            if let Some(status) = child.try_wait().expect("a child") {
                break status;
            }
            assert!(Instant::now() < end, "it does not end");
            std::thread::sleep(Duration::from_millis(5));
        };
        assert_eq!(status.code(), Some(0));
    }
}

#[test]
fn the_socket_is_the_owners_and_one_servers() {
    let folder = folder();
    let server = two_zones(folder.path());
    let socket = folder.path().join("control");
    assert_eq!(fs::metadata(&socket).expect("a socket").permissions().mode() & 0o777, 0o600);
    let ended = run(&mut nonesuch(["serve", "--config", text(&server.configuration)]));
    assert_eq!(ended.status, 3, "{}", ended.text());
    let error = ended.stderr.lines().next_back().expect("an error");
    snapshot::check("serve", "start: another server uses the control socket", error);
    server.kill();
    assert!(socket.exists(), "who is killed leaves it");
    let server = Configured::start(&folder.path().join("c.toml"));
    assert_eq!(server.serial("a.example."), Some(1));
}

/// The server becomes a user who may not write to the socket's directory, so it cannot remove the
/// socket when it ends.
#[test]
fn a_socket_that_could_not_be_taken_away_is_in_nobodys_way() {
    const USER: &str = "nobody";
    let id = |option: &str| {
        let ended = Command::new("id").args([option, USER]).output().expect("id");
        String::from_utf8_lossy(&ended.stdout).trim().parse::<u32>().ok()
    };
    let is_root = fs::metadata("/proc/self").is_ok_and(|process| process.uid() == 0);
    let Some((user, group)) = id("-u").zip(id("-g")).filter(|_| is_root) else {
        nonesuch_testing::record_skip("only root may become another user");
        return;
    };
    let folder = folder();
    let dir = folder.path();
    fs::set_permissions(dir, fs::Permissions::from_mode(0o755)).expect("open");
    write_beside(&dir.join("a"), &plain_zone("a.example.", 1));
    let path = dir.join("c.toml");
    let head = common::configured::head(dir);
    std::os::unix::fs::chown(dir.join("state"), Some(user), Some(group)).expect("given away");
    write_beside(&path, &format!("{head}user = \"{USER}\"\n[zone.\"a.example.\"]\nfile = \"a\"\n"));
    for _ in 0..2 {
        let mut server = Configured::start(&path);
        assert_eq!(server.serial("a.example."), Some(1));
        server.ctl(&["status"]).expect_done("status");
        server.ctl(&["stop"]).expect_done("stop");
        assert_eq!(server.wait(), 0);
        assert!(dir.join("control").exists(), "its directory belongs to root");
    }
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
        // A request for one zone must not act on all zones or on the server.
        "{\"command\":\"purge\",\"zone\":\"gone.\"}",
        "{\"command\":\"stop\",\"zone\":\"a.example.\"}",
        "{\"command\":\"status\",\"zone\":\"a.example.\"}",
    ] {
        let mut stream = UnixStream::connect(&socket).expect("connected");
        // The server may respond before the complete request is written.
        let _ = stream.write_all(format!("{request}\n").as_bytes());
        let mut answer = String::new();
        let _ = stream.read_to_string(&mut answer);
        assert!(
            answer.is_empty() && request.len() > 4096 || answer.contains("\"error\""),
            "{request}: {answer}"
        );
    }
    // Idle connections do not block other clients.
    let connect = || UnixStream::connect(&socket).expect("connected");
    let mut idle: Vec<UnixStream> = (0..8).map(|_| connect()).collect();
    assert_eq!(server.ctl_json(&["status"])["serving"], 2);
    // Too many idle connections do, and other clients get an error.
    idle.extend((0..8).map(|_| connect()));
    let ended = server.ctl(&["status"]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    snapshot::check("ctl", "too many connections", &ended.stderr);
    drop(idle);
}

/// Another kind of file at the path of the socket stays unchanged.
#[test]
fn what_is_no_socket_is_not_taken_for_one() {
    let folder = folder();
    let dir = folder.path();
    write_beside(&dir.join("a"), &plain_zone("a.example.", 1));
    let path = configure(dir, "[zone.\"a.example.\"]\nfile = \"a\"\n");
    fs::write(dir.join("control"), "precious").expect("written");
    for (action, more) in [("start", &[][..]), ("check", &["--check"])] {
        let ended = run(&mut nonesuch([&["serve", "--config", text(&path)], more].concat()));
        assert_eq!(ended.status, 2, "{}", ended.text());
        let line = ended.stderr.lines().find(|line| line.contains(":5:18: control-socket: "));
        let line = line.unwrap_or_else(|| panic!("{}", ended.text()));
        snapshot::check("serve", &format!("{action}: control-socket is a regular file"), line);
        assert_eq!(fs::read_to_string(dir.join("control")).expect("a file"), "precious");
    }
}

#[test]
fn a_running_server_is_reached_whatever_became_of_its_configuration() {
    let folder = folder();
    let mut server = two_zones(folder.path());
    let path = server.configuration.clone();
    let broken =
        fs::read_to_string(&path).expect("a file") + "fiel = 7\n[key.k]\nsecret-file = \"nowhere\"\n[[[";
    write_beside(&path, &broken);
    assert_eq!(server.ctl_json(&["status"])["serving"], 2);
    let ended = server.ctl(&["reload"]);
    assert!(ended.status == 1 && ended.stderr.contains("c.toml:13:"), "{}", ended.text());
    write_beside(&path, "version = 1\n");
    let ended = server.ctl(&["status"]);
    assert!(ended.status == 2 && ended.stderr.contains("--socket"), "{}", ended.text());
    let socket = folder.path().join("control");
    run(&mut nonesuch(["ctl", "--socket", text(&socket), "stop"])).expect_done("stop");
    assert_eq!(server.wait(), 0);
}

#[test]
fn a_server_that_says_nothing_is_given_up_and_one_that_works_is_waited_for() {
    let folder = folder();
    let dir = folder.path();
    let silent = dir.join("silent");
    let _listener = std::os::unix::net::UnixListener::bind(&silent).expect("a socket");
    let begun = Instant::now();
    let ended = run(&mut nonesuch(["ctl", "--socket", text(&silent), "--timeout", "1", "status"]));
    assert_eq!(ended.status, 2, "{}", ended.text());
    snapshot::check("ctl", "no message from the server", &ended.stderr);
    assert!(begun.elapsed() < Duration::from_secs(15));
    // A response that ends within a line is not reported as a response of another version.
    let broken = dir.join("broken");
    let listener = std::os::unix::net::UnixListener::bind(&broken).expect("a socket");
    let answering = std::thread::spawn(move || {
        let (mut stream, _) = listener.accept().expect("a client");
        BufReader::new(&stream).read_line(&mut String::new()).expect("a request");
        stream.write_all(b"{\"text\":\"example. SOA\"}\n{\"te").expect("written");
    });
    let ended = run(&mut nonesuch(["ctl", "--socket", text(&broken), "zone", "export", "example."]));
    assert_eq!(ended.status, 2, "{}", ended.text());
    snapshot::check("ctl", "response without an end", &ended.stderr);
    answering.join().expect("answered");
    // Loading the zone takes longer than the timeout.
    let server = two_zones(dir);
    write_slow(&dir.join("a"), "a.example.", 2);
    let arguments = ["--config", text(&server.configuration), "--timeout", "2", "--json", "reload"];
    let mut reload =
        nonesuch(["ctl"]).args(arguments).stdout(Stdio::piped()).spawn().expect("nonesuch starts");
    let begun = Instant::now();
    server.wait_until("the end of its patience", || begun.elapsed() > Duration::from_secs(5));
    assert!(reload.try_wait().expect("a child").is_none(), "it has been given up");
    write_beside(&dir.join("slow"), "");
    let ended = reload.wait_with_output().expect("ended");
    let report: Value = serde_json::from_slice(&ended.stdout).expect("JSON");
    assert!(ended.status.success(), "{report}");
    assert_eq!((&report["updated"], &report["refused"]), (&json!(["a.example."]), &json!([])), "{report}");
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
        .stdout(Stdio::null())
        .stderr(Stdio::null())
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
    snapshot::check("serve", "start: notification of systemd", &wait_for("READY=1"));
    wait_for("WATCHDOG=1");
    let id = child.id().to_string();
    let signal = |signal: &str| {
        assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
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
    let line = server.wait_for_event("zone-not-served", &["zone=b.example."]);
    snapshot::check("serve", "log: zone file with a faulty SOA record", &line);
    write_beside(&dir.join("b"), &plain_zone("b.example.", 4));
    server.ctl(&["reload"]).expect_done("reload");
    assert_eq!(server.serial("b.example."), Some(4));
}

#[test]
fn what_is_no_regular_file_is_no_zone_file_and_nothing_waits_for_it() {
    let folder = folder();
    let dir = folder.path();
    let (zone, pipe) = (dir.join("a"), dir.join("pipe"));
    assert!(Command::new("mkfifo").arg(&zone).status().expect("mkfifo").success());
    write_beside(&dir.join("b"), &plain_zone("b.example.", 1));
    let server = Configured::start(&configure(dir, TWO));
    assert_eq!((&server.ready["serving"], &server.ready["failed"]), (&1.into(), &1.into()));
    let status = server.ctl_json(&["zone", "status", "a.example."]);
    let error = status[0]["error"].as_str().unwrap_or_else(|| panic!("{status}"));
    assert!(error.contains("/a: "), "{error}");
    snapshot::check("ctl", "zone status: zone file is a pipe", error);
    let checked = run(&mut nonesuch(["serve", "--config", text(&server.configuration), "--check=zones"]));
    assert_eq!(checked.status, 1, "{}", checked.text());
    snapshot::check("serve", "check: zone file is a pipe", &checked.stdout);
    write_beside(&zone, &plain_zone("a.example.", 2));
    server.ctl(&["reload"]).expect_done("reload");
    assert_eq!(server.serial("a.example."), Some(2));
    assert!(Command::new("mkfifo").arg(&pipe).status().expect("mkfifo").success());
    fs::rename(&pipe, &zone).expect("renamed");
    let ended = server.ctl(&["reload"]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    snapshot::check("ctl", "reload: zone file is a pipe", &ended.stdout);
    fs::remove_file(&zone).expect("removed");
    fs::create_dir(&zone).expect("a directory");
    let ended = server.ctl(&["reload", "a.example."]);
    assert_eq!(ended.status, 1, "{}", ended.text());
    snapshot::check("ctl", "reload: zone file is a directory", &ended.stderr);
    assert_eq!(server.serial("a.example."), Some(2), "the previous version stays");
}
