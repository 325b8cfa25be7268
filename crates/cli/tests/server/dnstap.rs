//! dnstap of a running server, read by other programs.
#![allow(unreachable_pub)] // shared test functions are public

use crate::common;
use crate::common::watched;
use common::{folder, is_installed, run, text};
use nonesuch_testing::require_peer;
use std::fs;
use std::path::Path;
use std::process::Command;
use watched::{Watched, wait_until};

/// The lines that dnstap-ldns prints for a file.
fn read(file: &Path) -> Vec<String> {
    let output = run(Command::new("dnstap-ldns").args(["-q", "-r", text(file)])).expect_done("dnstap-ldns");
    output.stdout.lines().map(str::to_owned).collect()
}

/// Asserts that queries and responses of ten questions over UDP and one over TCP are present.
fn check(lines: &[String]) {
    let count =
        |words: &[&str]| lines.iter().filter(|line| words.iter().all(|word| line.contains(word))).count();
    assert_eq!(count(&[" AQ ", " UDP ", "127.0.0.1"]), 10, "{lines:?}");
    assert_eq!(count(&[" AR ", " UDP ", "\"ns.watched.example.\" IN A"]), 10, "{lines:?}");
    assert_eq!((count(&[" AQ ", " TCP "]), count(&[" AR ", " TCP ", "IN SOA"])), (1, 1), "{lines:?}");
    assert_eq!(lines.len(), 22, "{lines:?}");
}

fn ask_some(server: &Watched) {
    for _ in 0..10 {
        server.ask("ns.watched.example.", 1);
    }
    server.ask_over_tcp("watched.example.", 6);
}

#[test]
fn dnstap_ldns_reads_the_file_of_a_server() {
    require_peer!("dnstap-ldns");
    let folder = folder();
    let server = Watched::start(folder.path(), "", "[dnstap]\nfile = \"tapped\"\nidentity = \"ns1\"");
    ask_some(&server);
    server.stop();
    let file = folder.path().join("tapped");
    check(&read(&file));
    let long =
        run(Command::new("dnstap-ldns").args(["-y", "-r", text(&file)])).expect_done("dnstap-ldns").stdout;
    assert!(long.contains("identity: \"ns1\"") && long.contains("version: \"nonesuch"), "{long}");
}

#[test]
fn fstrm_capture_collects_from_a_server() {
    if !["fstrm_capture", "dnstap-ldns"].into_iter().all(is_installed) {
        return;
    }
    let folder = folder();
    let (socket, file) = (folder.path().join("socket"), folder.path().join("collected"));
    let mut collector = Command::new("fstrm_capture");
    collector.args(["-t", "protobuf:dnstap.Dnstap", "-u", text(&socket), "-w", text(&file)]);
    let mut collector = collector.spawn().expect("it starts");
    wait_until("the collector's socket", || socket.exists().then_some(()));
    let server = Watched::start(folder.path(), "", "[dnstap]\nsocket = \"socket\"");
    ask_some(&server);
    // Queued frames are written when the server ends.
    server.stop();
    let asked = Command::new("kill").args(["-TERM", &collector.id().to_string()]).status();
    assert!(asked.expect("kill").success());
    collector.wait().expect("it ends");
    assert!(fs::metadata(&file).is_ok_and(|metadata| metadata.len() > 0));
    check(&read(&file));
}

#[test]
fn a_collector_that_is_not_there_keeps_nobody_from_answering() {
    let folder = folder();
    let server = Watched::start(folder.path(), "", "[dnstap]\nsocket = \"nobody\"");
    ask_some(&server);
    wait_until("a warning", || (!server.events("dnstap-failed", &[]).is_empty()).then_some(()));
    server.stop();
}
