//! `nonesuch serve FILE` is equivalent to a server with a minimal configuration: it reloads, warns,
//! logs and ends in the same way. It stores nothing.

use crate::common;
use common::configured::{Configured, plain_zone, write_beside};
use common::{listing, nonesuch, run, run_on, snapshot, text};
use std::fs;
use std::io::{BufRead as _, BufReader, Write as _};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

const ZONE: &str = "example.";

/// Serves the file at `path` on an unused port.
fn serve(path: &Path, more: &[&str]) -> Configured {
    let arguments = [&["--listen", "127.0.0.1:0", "--workers", "1", text(path)], more].concat();
    Configured::start_with(&arguments, path, Stdio::null())
}

#[test]
fn a_hang_up_has_the_file_read_again_and_a_bad_one_refused() {
    let folder = common::folder();
    let file = folder.path().join("example");
    fs::write(&file, plain_zone(ZONE, 1)).expect("written");
    let server = serve(&file, &[]);
    assert_eq!((server.ready["zone"].as_str(), server.serial(ZONE)), (Some(ZONE), Some(1)));
    write_beside(&file, &plain_zone(ZONE, 2));
    server.signal("-HUP");
    server.wait_for(ZONE, 2);
    write_beside(&file, &plain_zone("other.", 3));
    server.signal("-HUP");
    let line = server.wait_for_event("zone-rejected", &["zone=example."]);
    snapshot::check("serve", "log: reload of a file with another zone", &line);
    assert_eq!(server.serial(ZONE), Some(2));
    write_beside(&file, &plain_zone(ZONE, 4));
    server.signal("-HUP");
    server.wait_for(ZONE, 4);
    // Other servers react to these signals; this server must not end.
    for signal in ["-USR1", "-USR2", "-ALRM"] {
        server.signal(signal);
    }
    assert_eq!(server.serial(ZONE), Some(4));
    let stopped = server.stop();
    assert!(stopped["datagrams_in"].as_u64() >= Some(4) && stopped["online"].is_null(), "{stopped}");
    assert_eq!(listing(folder.path()), ["example", "example.log"], "no files are stored");
}

/// With the option, the same lines as with a configuration.
#[test]
fn a_reload_is_logged_as_that_of_a_configuration() {
    let folder = common::folder();
    let file = folder.path().join("example");
    fs::write(&file, plain_zone(ZONE, 1)).expect("written");
    let server = serve(&file, &["-v"]);
    let line = server.wait_for_event("zone-published", &["zone=example.", "serial=1"]);
    snapshot::check("serve", "log: unsigned zone published", &line);
    server.signal("-HUP");
    let line = server.wait_for_event("zones-reloaded", &[]);
    // The fields contain the exact duration.
    let message = line.split(" event=").next().unwrap_or_default();
    snapshot::check("serve", "log: reload without a change", message);
}

#[test]
fn standard_input_cannot_be_read_again() {
    let folder = common::folder();
    let file = folder.path().join("example");
    fs::write(&file, plain_zone(ZONE, 1)).expect("written");
    let input = Stdio::from(fs::File::open(&file).expect("a file"));
    let server = Configured::start_with(&["--listen", "127.0.0.1:0", "-"], &file, input);
    server.signal("-HUP");
    let line = server.wait_for_event("zone-rejected", &["zone=example."]);
    snapshot::check("serve", "log: reload of a zone from standard input", &line);
    assert_eq!(server.serial(ZONE), Some(1));
    // A file that is not a zone is reported with the same name.
    fs::write(&file, "nonsense\n").expect("written");
    let ended = run_on(&mut nonesuch(["serve", "--listen", "127.0.0.1:0", "-"]), &file);
    assert!(ended.status == 2 && ended.stderr.contains("standard input:1:"), "{}", ended.text());
}

/// Tools may send these signals at any time. Signals that end a server also end it at this time.
#[test]
fn signals_that_come_while_the_zone_is_read_do_not_end_it() {
    for (last, text, status) in [(None, plain_zone(ZONE, 1), Some(0)), (Some("-TERM"), String::new(), None)] {
        let mut child = nonesuch(["serve", "--listen", "127.0.0.1:0", "-"])
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("nonesuch starts");
        let id = child.id().to_string();
        let signal = |signal: &str| {
            assert!(Command::new("kill").args([signal, &id]).status().expect("kill").success());
        };
        wait_until_taken(&id);
        ["-HUP", "-USR1", "-USR2", "-ALRM"].into_iter().chain(last).for_each(signal);
        let mut input = child.stdin.take().expect("piped");
        // A process that has ended does not read its input.
        let _ = input.write_all(text.as_bytes());
        if last.is_none() {
            drop(input);
            let mut ready = String::new();
            BufReader::new(child.stdout.as_mut().expect("piped")).read_line(&mut ready).expect("a line");
            assert!(ready.starts_with("ready: listening on 127.0.0.1:"), "{ready}");
            signal("-TERM");
        }
        assert_eq!(child.wait().expect("ended").code(), status);
    }
}

/// Waits until the process with this ID handles SIGHUP.
fn wait_until_taken(id: &str) {
    let end = Instant::now() + Duration::from_secs(20);
    let is_taken = || {
        let status = fs::read_to_string(format!("/proc/{id}/status")).expect("a process");
        let caught = status.lines().find_map(|line| line.strip_prefix("SigCgt:"));
        let caught = u64::from_str_radix(caught.expect("a line").trim(), 16).expect("a number");
        // The bit of signal 1; its handler is installed last.
        caught & 1 == 1
    };
    while !is_taken() {
        assert!(Instant::now() < end, "it takes no signal");
        std::thread::sleep(Duration::from_millis(5));
    }
}

/// Options that exclude each other, independently of the content of the file.
#[test]
fn options_that_do_not_go_together_are_refused() {
    let rejected = |options: &[&str], named: &str| {
        let ended = run(&mut nonesuch([&["serve", "zone"], options].concat()));
        assert!(ended.status == 2 && ended.stderr.contains(named), "{options:?}: {}", ended.text());
        ended.stderr
    };
    // An error of the argument parser.
    rejected(&["--denial", "compact", "--keys", "k", "--nsec5-keys", "n"], "--nsec5-keys");
    for (options, named) in [
        (&["--keys", "k"][..], "--keys"),
        (&["--denial", "nsec3", "--keys", "k"], "zone sign --denial nsec3"),
        (&["--check"], "--config"),
    ] {
        snapshot::check("serve", &format!("options {}", options.join(" ")), &rejected(options, named));
    }
}
