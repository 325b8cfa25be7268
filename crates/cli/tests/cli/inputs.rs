//! Inputs and progress display: standard input, invalid inputs, invalid values, progress on a
//! terminal.

use crate::common;
use common::{
    Ended, KEYS_ORIGIN, KEYS_ZONE, done, generate_key, generate_keys, nonesuch, prepared, run, run_on, text,
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

/// Expects status 2 and one line that contains all of `says`.
#[track_caller]
fn refused(ended: &Ended, says: &[&str]) {
    assert_eq!((ended.status, ended.stdout.as_str()), (2, ""), "{}", ended.text());
    for words in says {
        assert!(ended.stderr.contains(words), "wanted {words:?}, got {}", ended.stderr);
    }
    assert_eq!(ended.stderr.lines().count(), 1, "{}", ended.stderr);
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
    assert!(
        verified.stdout.starts_with("standard input: zone keys.example.: verified"),
        "{}",
        verified.stdout
    );
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

    refused(&on(&zone, &["zone", "diff", "-", "-"]), &["standard input can be read only once"]);
    refused(&on(&zone, &[&again[..], &["--previous", "-", "-"]].concat()), &["only once: name files"]);
    refused(&on(&dir.join("changes"), &["zone", "stat", "-"]), &["standard input:1:1: "]);
    assert!(!dir.join("-").exists() && !dir.join("-.signed").exists());
}

#[test]
fn files_without_a_zone_are_told_with_the_remedy_by_every_command() {
    let folder = with_keys();
    let dir = folder.path();
    fs::write(dir.join("empty"), "").expect("written");
    let commands: [&[&str]; 8] = [
        &["zone", "sign"],
        &["zone", "verify"],
        &["zone", "stat"],
        &["zone", "compile"],
        &["zone", "diff", "zone"],
        &["zone", "sign", "--keys", "keys", "zone", "-f", "out", "--previous"],
        &["serve"],
        &["compare", "--out", "compared"],
    ];
    for command in commands {
        for (file, says) in [
            ("empty", "empty: the file has no records: name the zone file"),
            ("keys", "keys: cannot be read: Is a directory (os error 21): name a file in it"),
            ("none", "none: cannot be read: No such file or directory (os error 2): correct the path"),
        ] {
            let arguments = [command, &[file, "-o", KEYS_ORIGIN]].concat();
            refused(&run(nonesuch(&arguments).current_dir(dir)), &[says]);
        }
    }
}

#[test]
fn a_salt_with_half_an_octet_is_told_as_that() {
    let folder = with_keys();
    let salted = |salt: &str| sign(folder.path(), &["--denial", "nsec3", "--nsec3-salt", salt, "zone"]);
    refused(&salted("abc"), &["the salt 'abc' has an odd number of digits", "add or remove a digit"]);
    refused(&salted("xyz"), &["the salt 'xyz' is not hexadecimal digits"]);
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
        let says = format!("{count} NSEC3 iterations: resolvers may treat the zone as insecure");
        assert!(stderr.contains(&says) && stderr.contains("RFC 9276"), "{stderr}");
    }
    refused(&with("501"), &["501 NSEC3 iterations: at most 500"]);
    let nsec = ["--denial", "nsec", "-f", "-", "zone"];
    assert_eq!(sign(folder.path(), &nsec).expect_done("nsec").stderr, "");
}

/// If the serial advances although that of the zone file does not, this is logged only at level
/// info.
#[test]
fn the_serial_that_moves_on_is_no_warning() {
    let folder = with_keys();
    let dir = folder.path();
    sign(dir, &["zone", "-f", "signed"]).expect_done("the first signing");
    fs::write(dir.join("changed"), format!("{KEYS_ZONE}new A 192.0.2.7\n")).expect("written");
    let again = ["--previous", "signed", "changed", "-f", "again"];
    let ended = sign(dir, &again).expect_done("again");
    assert_eq!(ended.stderr, "");
    assert!(ended.stdout.contains(": serial 2,"), "{}", ended.stdout);
    let told = sign(dir, &[&again[..], &["-v"]].concat()).expect_done("again").stderr;
    assert!(told.contains("INFO serial 1 (keep) does not come after 1"), "{told}");
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
        assert_eq!(
            said.stdout,
            "; keys.example. is unsigned in both versions: no DNSSEC records to compare\n"
        );
        assert_eq!(diff(new, &["only", "--changes"]).expect_done("zone diff").stdout, "");
    }
    assert_eq!(diff("zone", &["summary"]).stdout, "; keys.example. is the same\n");
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
