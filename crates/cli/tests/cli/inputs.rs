//! Inputs and progress display: standard input, invalid inputs, invalid values, progress on a
//! terminal.

use crate::common;
use common::{
    Ended, KEYS_ORIGIN, KEYS_ZONE, done, events, generate_key, generate_keys, nonesuch, prepared, run,
    run_on, snapshot, text,
};
use nonesuch_testing::require_peer;
use std::fs;
use std::path::Path;
use std::process::Command;

const NOW: &str = "1750000000";

/// A directory with [`KEYS_ZONE`] as `zone` and its keys in `keys`.
fn with_keys() -> tempfile::TempDir {
    let folder = prepared();
    generate_keys(&folder.path().join("keys"), KEYS_ORIGIN, "ed25519");
    folder
}

fn sign(folder: &Path, more: &[&str]) -> Ended {
    let mut command = nonesuch(["zone", "sign", "-o", KEYS_ORIGIN, "--keys", "keys", "--now", NOW]);
    run(command.args(more).current_dir(folder))
}

/// Expects status 2 and one line on standard error, as in the section `case` of the snapshot of
/// `command`.
#[track_caller]
fn refused(command: &str, case: &str, ended: &Ended) {
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{}", ended.text());
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
    snapshot::check(command, case, &ended.stderr);
}

#[test]
fn a_dash_is_standard_input_for_every_command_that_takes_a_zone() {
    let folder = with_keys();
    let dir = folder.path();
    let zone = dir.join("zone");
    let on = |input: &Path, arguments: &[&str]| run_on(nonesuch(arguments).current_dir(dir), input);
    let signing = ["zone", "sign", "-o", KEYS_ORIGIN, "--keys", "keys", "--now", NOW];
    sign(dir, &["zone", "-f", "signed"]).expect_done("from a file");
    let signed = on(&zone, &[&signing[..], &["-"]].concat()).expect_done("zone sign -");
    assert_eq!(signed.stdout.into_bytes(), fs::read(dir.join("signed")).expect("a zone"));
    // $ORIGIN also gives the apex.
    fs::write(dir.join("whole"), format!("$ORIGIN {KEYS_ORIGIN}\n{KEYS_ZONE}")).expect("written");
    let signing = ["zone", "sign", "-", "--keys", "keys", "--now", NOW, "-f", "again"];
    on(&dir.join("whole"), &signing).expect_done("zone sign - -f");
    assert_eq!(fs::read(dir.join("again")).expect("a zone"), fs::read(dir.join("signed")).expect("a zone"));

    let signed = dir.join("signed");
    let verified = on(&signed, &["zone", "verify", "-", "--now", NOW]).expect_done("zone verify -");
    assert!(verified.stdout.starts_with("standard input: zone keys.example.: "), "{}", verified.stdout);
    snapshot::check("zone verify", "signed zone from standard input", &verified.stdout);
    let counted = on(&signed, &["zone", "stat", "-", "--now", NOW]).expect_done("zone stat -");
    assert_eq!(counted.stdout, done(["zone", "stat", text(&signed), "--now", NOW]).stdout);
    on(&signed, &["zone", "compile", "-", "--now", NOW, "-f", "image"]).expect_done("zone compile -");
    for sides in [["-", "signed"], ["signed", "-"]] {
        on(&dir.join("image"), &[&["zone", "diff"][..], &sides].concat()).expect_done("zone diff");
    }
    let again = ["zone", "sign", "--keys", "keys", "--now", NOW, "-f", "mended"];
    fs::write(dir.join("changes"), "+ new 60 IN A 192.0.2.7\n").expect("written");
    let by_changes = [&again[..], &["--previous", "signed", "--changes", "-"]].concat();
    on(&dir.join("changes"), &by_changes).expect_done("--changes -");
    assert!(fs::read_to_string(dir.join("mended")).expect("a zone").contains("new.keys.example."));
    let of_previous = [&again[..], &["--previous", "-", "whole"]].concat();
    on(&signed, &of_previous).expect_done("--previous -");

    let twice = on(&zone, &["zone", "diff", "-", "-"]);
    refused("zone diff", "standard input as both versions", &twice);
    let twice = on(&zone, &[&again[..], &["--previous", "-", "-"]].concat());
    refused("zone sign", "standard input as the zone and the previous version", &twice);
    let changes = on(&dir.join("changes"), &["zone", "stat", "-"]);
    assert!(changes.stderr.contains("standard input:1:1: "), "{}", changes.stderr);
    refused("zone stat", "change set as the zone", &changes);
    assert!(!dir.join("-").exists() && !dir.join("-.signed").exists());
}

#[test]
fn files_without_a_zone_are_told_with_the_remedy_by_every_command() {
    let folder = with_keys();
    let dir = folder.path();
    fs::write(dir.join("empty"), "").expect("written");
    let commands: [(&str, &[&str], &str); 8] = [
        ("zone sign", &[], "the zone"),
        ("zone verify", &[], "the zone"),
        ("zone stat", &[], "the zone"),
        ("zone compile", &[], "the zone"),
        ("zone diff", &["zone"], "the new version"),
        ("zone sign", &["--keys", "keys", "zone", "-f", "out", "--previous"], "the previous version"),
        ("serve", &[], "the zone"),
        ("compare", &["--out", "compared"], "the zone"),
    ];
    for (command, more, role) in commands {
        for (file, kind) in [("empty", "empty file"), ("keys", "directory"), ("none", "missing file")] {
            let words: Vec<&str> = command.split(' ').collect();
            let arguments = [&words[..], more, &[file, "-o", KEYS_ORIGIN]].concat();
            let ended = run(nonesuch(&arguments).current_dir(dir));
            assert!(ended.stderr.contains(&format!("{file}: ")), "{arguments:?}: {}", ended.stderr);
            refused(command, &format!("{kind} as {role}"), &ended);
        }
    }
}

#[test]
fn a_salt_with_half_an_octet_is_told_as_that() {
    let folder = with_keys();
    let salted = |salt: &str| sign(folder.path(), &["--denial", "nsec3", "--nsec3-salt", salt, "zone"]);
    refused("zone sign", "NSEC3 salt with half an octet", &salted("abc"));
    refused("zone sign", "NSEC3 salt with other characters than hexadecimal digits", &salted("xyz"));
}

#[test]
fn iterations_above_none_are_warned_of() {
    let folder = with_keys();
    let with = |count: &str| {
        let arguments = ["--denial", "nsec3", "--nsec3-iterations", count, "-f", "-", "zone"];
        sign(folder.path(), &arguments)
    };
    assert_eq!(with("0").expect_done("none").stderr, "");
    for count in ["1", "500"] {
        let stderr = with(count).expect_done(count).stderr;
        assert_eq!(events(&stderr, "nsec3-iterations", &[]).len(), 1, "{stderr}");
        snapshot::check("zone sign", &format!("{count} NSEC3 iterations"), &stderr);
    }
    refused("zone sign", "501 NSEC3 iterations", &with("501"));
    let nsec = ["--denial", "nsec", "-f", "-", "zone"];
    assert_eq!(sign(folder.path(), &nsec).expect_done("nsec").stderr, "");
}

/// If the serial advances although that of the zone file does not, the operator must know.
#[test]
fn a_serial_other_than_that_of_the_zone_file_is_warned_of() {
    let folder = with_keys();
    let dir = folder.path();
    sign(dir, &["zone", "-f", "signed"]).expect_done("the first signing");
    fs::write(dir.join("changed"), format!("{KEYS_ZONE}new A 192.0.2.7\n")).expect("written");
    let again = ["--previous", "signed", "changed", "-f", "again"];
    let ended = sign(dir, &again).expect_done("again");
    assert!(ended.stdout.contains(": serial 2,"), "{}", ended.stdout);
    let lines = events(&ended.stderr, "sign-warning", &[]);
    assert!(lines.len() == 1 && lines[0].contains(" WARN "), "{}", ended.stderr);
    snapshot::check("zone sign", "changed zone file with the serial of the previous version", lines[0]);
}

#[test]
fn of_unsigned_zones_there_is_nothing_of_dnssec_to_compare() {
    let folder = with_keys();
    let dir = folder.path();
    sign(dir, &["zone", "-f", "signed"]).expect_done("signed");
    fs::write(dir.join("other"), format!("{KEYS_ZONE}new A 192.0.2.7\n")).expect("written");
    let diff = |new: &str, more: &[&str]| {
        let arguments = [&["zone", "diff", "zone", new, "-o", KEYS_ORIGIN, "--dnssec"], more].concat();
        run(nonesuch(arguments).current_dir(dir))
    };
    for new in ["zone", "other"] {
        let said = diff(new, &["only"]).expect_done("zone diff");
        snapshot::check("zone diff", "DNSSEC of two unsigned versions", &said.stdout);
        assert_eq!(diff(new, &["only", "--changes"]).expect_done("zone diff").stdout, "");
    }
    let same = diff("zone", &["summary"]).expect_done("zone diff");
    snapshot::check("zone diff", "summary of two equal unsigned versions", &same.stdout);
    assert_eq!(diff("signed", &["only"]).status, 1);
}

/// The output of a run on a separate terminal.
fn on_terminal(dir: &Path, arguments: &str) -> String {
    let line = format!("stty cols 120; exec {} {arguments}", env!("CARGO_BIN_EXE_nonesuch"));
    let mut command = Command::new("script");
    run(command.args(["-qec", &line, "/dev/null"]).current_dir(dir)).expect_done(arguments).stdout
}

/// The phases follow each other, each with its own rate.
#[track_caller]
fn assert_phases(shown: &str, phases: &[&str]) {
    let mut rest = shown;
    for phase in phases {
        let place = rest.find(phase).unwrap_or_else(|| panic!("{phase:?} is not shown in time: {shown:?}"));
        rest = &rest[place..];
    }
}

#[test]
#[ignore = "`just judge`: many seconds of RSA/4096"]
fn a_terminal_shows_proving_and_signing_each_by_itself() {
    require_peer!("script", "stty");
    let folder = prepared();
    let dir = folder.path();
    let zone = dir.join("names");
    // Rates are shown once per second. With keys of this length, the fastest machine needs more
    // than a second.
    done(["zone", "generate", "--names", "2000", "-o", KEYS_ORIGIN, "-f", text(&zone)]);
    generate_key(&dir.join("keys"), KEYS_ORIGIN, "rsasha256", &["--nsec5", "--csk", "--bits", "4096"]);
    let signing = "zone sign --keys keys --denial";
    let shown = on_terminal(dir, &format!("{signing} nsec5 -f old names"));
    assert_phases(&shown, &["reading names", "proving", "signing", "signatures/s", "proofs generated"]);
    let proving = &shown[..shown.find("signing").expect("signing")];
    assert!(!proving.contains("signatures/s"), "{shown:?}");
    // Incremental signing shows progress, too, from two zone files and to a compiled zone.
    let shown = on_terminal(dir, &format!("{signing} nsec3 --compiled -f image names"));
    assert_phases(&shown, &["reading names", "signing", "signatures/s", "signatures generated"]);
    let again = format!("{signing} nsec --previous old --verify-previous -f new names");
    assert_phases(
        &on_terminal(dir, &again),
        &["reading old", "verifying", "reading names", "signing", "signatures generated"],
    );
    fs::write(dir.join("changes"), "+ new 60 IN A 192.0.2.7\n").expect("written");
    let again = "zone sign --keys keys --previous image --changes changes -f new";
    assert_phases(&on_terminal(dir, again), &["reading image", "signing", "signatures generated"]);
}
