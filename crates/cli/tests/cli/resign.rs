//! Incremental signing: `zone sign --previous` with zone files, compiled zones and change sets.

use crate::common;
use common::resign::{self, DAY, NOW, command, sign, without_signatures};
use common::{Ended, KEYS_ORIGIN, MECHANISMS, done, generate_keys, is_installed, run, snapshot, text};
use std::fs;
use std::path::Path;
use std::process::Command;

/// The directory, with a KSK and a ZSK in `keys`.
fn prepared() -> tempfile::TempDir {
    let folder = resign::prepared();
    generate_keys(&folder.path().join("keys"), KEYS_ORIGIN, "ecdsap256sha256");
    folder
}

#[track_caller]
fn verify(dir: &Path, days: u32, file: &str) {
    let now = (NOW + days * DAY).to_string();
    let path = dir.join(file);
    done(["zone", "verify", text(&path), "-o", KEYS_ORIGIN, "--now", &now]);
}

#[test]
fn both_ways_make_the_zone_that_signing_makes_and_keep_what_has_not_changed() {
    for mechanism in MECHANISMS {
        let folder = prepared();
        let dir = folder.path();
        let first = sign(dir, 0, mechanism, &["-f", "old.signed", "zone"]);
        sign(dir, 0, mechanism, &["--compiled", "-f", "old.image", "zone"]);
        let again = ["--previous", "old.signed", "-f", "new.signed", "zone.new", "--changes-out", "changed"];
        let second = sign(dir, 1, mechanism, &again);
        assert_eq!(second["serial"], 2);
        assert!(second["signatures"].as_u64() < first["signatures"].as_u64(), "{second}");
        assert!(second["signatures_kept"].as_u64() > Some(2), "{second}");
        verify(dir, 1, "new.signed");

        sign(dir, 1, mechanism, &["--serial", "increment", "-f", "whole.signed", "zone.new"]);
        assert_eq!(without_signatures(dir, "new.signed"), without_signatures(dir, "whole.signed"));

        let changes = ["--previous", "old.image", "--changes", "changes", "--compiled", "-f", "new.image"];
        let third = sign(dir, 1, mechanism, &changes);
        assert!(third["names_planned"].as_u64().is_some(), "{third}");
        verify(dir, 1, "new.image");
        let changes = ["--previous", "old.image", "--changes", "changes", "-f", "mended.signed"];
        sign(dir, 1, mechanism, &changes);
        assert_eq!(without_signatures(dir, "mended.signed"), without_signatures(dir, "new.signed"));

        // Reused records are unchanged, octet by octet.
        let old = fs::read_to_string(dir.join("old.signed")).expect("a zone file");
        let new = fs::read_to_string(dir.join("new.signed")).expect("a zone file");
        let is_kept = |line: &&str| line.contains("\tRRSIG\t") && old.contains(*line);
        assert_eq!(second["signatures_kept"].as_u64(), Some(new.lines().filter(is_kept).count() as u64));
        let changed = fs::read_to_string(dir.join("changed")).expect("a change set");
        for line in changed.lines() {
            let (sign, record) = line.split_at(2);
            assert_eq!(new.contains(record), sign == "+ ", "{line}");
            assert_eq!(old.contains(record), sign == "- ", "{line}");
        }
    }
}

#[test]
fn nothing_is_written_where_nothing_is_to_be_done() {
    let folder = prepared();
    let dir = folder.path();
    sign(dir, 0, "nsec3", &["-f", "signed", "zone"]);
    let before = fs::metadata(dir.join("signed")).expect("a file").modified().expect("a time");
    let again = ["--previous", "signed", "-f", "signed", "zone", "--changes-out", "changed"];
    let outcome = sign(dir, 1, "nsec3", &again);
    assert_eq!((&outcome["unchanged"], &outcome["serial"]), (&true.into(), &1.into()));
    assert_eq!(fs::metadata(dir.join("signed")).expect("a file").modified().expect("a time"), before);
    assert_eq!(fs::read(dir.join("changed")).expect("a file"), b"");
    // Written to another path, it is the same zone.
    sign(dir, 1, "nsec3", &["--previous", "signed", "-f", "copy", "zone"]);
    assert_eq!(fs::read(dir.join("copy")).expect("a file"), fs::read(dir.join("signed")).expect("a file"));
    // Near the end of their validity, all signatures are replaced.
    let outcome = sign(dir, 11, "nsec3", &again);
    assert_eq!((&outcome["unchanged"], &outcome["signatures_kept"]), (&false.into(), &0.into()));
    let outcome =
        sign(dir, 12, "nsec3", &["--refresh", "86400", "--previous", "signed", "-f", "signed", "zone"]);
    assert_eq!(outcome["unchanged"], true);
}

/// Expects an error that names all of `named`: files with lines, records, options.
#[track_caller]
fn refused(dir: &Path, case: &str, arguments: &[&str], named: &[&str]) {
    let Ended { status, stdout, stderr } = run(&mut command(dir, 1, "nsec", arguments));
    assert_eq!((status, stdout.as_str()), (2, ""), "{stderr}");
    for name in named {
        assert!(stderr.contains(name), "{arguments:?}: wanted {name:?}, got {stderr}");
    }
    // The parser of the command line adds the usage.
    let message = stderr.split("\n\nUsage: ").next().unwrap_or_default();
    snapshot::check("zone sign", case, message);
    assert!(!dir.join("out").exists());
}

#[test]
fn what_does_not_fit_is_named() {
    let folder = prepared();
    let dir = folder.path();
    sign(dir, 0, "nsec", &["-f", "old", "zone"]);
    fs::write(dir.join("twice"), "\n+ ns 60 IN A 192.0.2.1\n").expect("written");
    fs::write(dir.join("gone"), "- x 60 IN A 192.0.2.1\n").expect("written");
    fs::write(dir.join("malformed"), "+ ns 60 IN A 192.0.2\n").expect("written");
    fs::write(dir.join("other"), "$TTL 60\nother. SOA a b 1 2 3 4 5\nother. NS a.\n").expect("written");
    let changes = |file: &'static str| ["--previous", "old", "-f", "out", "--changes", file];
    refused(
        dir,
        "change set that adds an existing record",
        &changes("twice"),
        &["twice:2: ", "'ns.keys.example. 60 IN A 192.0.2.1'"],
    );
    refused(
        dir,
        "change set that removes a missing record",
        &changes("gone"),
        &["gone:1: ", "'x.keys.example. 60 IN A 192.0.2.1'"],
    );
    refused(dir, "change set with a malformed address", &changes("malformed"), &["malformed:1:14: A: "]);
    refused(dir, "change set that does not exist", &changes("absent"), &["absent: "]);
    refused(
        dir,
        "previous zone with another apex",
        &["--previous", "other", "-f", "out", "zone"],
        &["keys.example."],
    );
    refused(
        dir,
        "refresh window longer than the validity period",
        &["--previous", "old", "-f", "out", "--refresh", "2000000", "zone"],
        &["2000000 s"],
    );
    refused(dir, "--changes without --previous", &["--changes", "changes", "-f", "out"], &["--previous"]);
    refused(dir, "--changes without --output", &["--previous", "old", "--changes", "changes"], &["--output"]);
    refused(
        dir,
        "--changes with a zone file",
        &["--previous", "old", "--changes", "changes", "-f", "out", "zone"],
        &["--changes"],
    );
    // A modified signature of the previous zone is found immediately if each signature is verified.
    let old = fs::read_to_string(dir.join("old")).expect("a zone file");
    let spoil = |line: &str| {
        let (head, signature) = line.rsplit_once(' ').expect("fields");
        let other = if signature.starts_with('A') { "B" } else { "A" };
        format!("{head} {other}{}\n", &signature[1..])
    };
    let spoiled = old.lines().map(|line| match line.contains("*.w.") && line.contains("\tRRSIG\tTXT") {
        true => spoil(line),
        false => format!("{line}\n"),
    });
    fs::write(dir.join("spoiled"), spoiled.collect::<String>()).expect("written");
    refused(
        dir,
        "--verify-previous with an altered signature",
        &["--previous", "spoiled", "--verify-previous", "-f", "out", "zone.new"],
        &["spoiled: ", "1 fault", "*.w.keys.example. TXT"],
    );
}

#[test]
fn peers_accept_what_is_mended() {
    for mechanism in MECHANISMS {
        let folder = prepared();
        let dir = folder.path();
        sign(dir, 0, mechanism, &["-f", "old", "zone"]);
        sign(dir, 1, mechanism, &["--previous", "old", "--changes", "changes", "-f", "new"]);
        if is_installed("ldns-verify-zone") {
            let at = "20250616150640";
            run(Command::new("ldns-verify-zone").args(["-t", at]).arg(dir.join("new")))
                .expect_done("ldns-verify-zone");
        }
        if is_installed("kzonecheck") {
            let time = (NOW + DAY).to_string();
            let mut command = Command::new("kzonecheck");
            command.args(["-o", KEYS_ORIGIN, "-t", &time, "-d", "on"]).arg(dir.join("new"));
            run(&mut command).expect_done("kzonecheck");
        }
    }
}
