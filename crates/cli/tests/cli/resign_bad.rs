//! Incremental signing with faulty inputs: previous zones with faults, outputs that would overwrite
//! inputs, missing options.

use crate::common;
use common::{Ended, KEYS_ORIGIN, KEYS_ZONE, folder, generate_keys, nonesuch, run, snapshot, text};
use std::fs;
use std::path::Path;

const NOW: &str = "1750000000";
const CHANGES: &str = "+ new 60 IN A 192.0.2.7\n";

/// A directory with a zone, its keys, the signed zone, and a change set.
fn prepared(more: &[&str]) -> tempfile::TempDir {
    let folder = folder();
    let dir = folder.path();
    fs::write(dir.join("zone"), KEYS_ZONE).expect("written");
    fs::write(dir.join("changes"), CHANGES).expect("written");
    generate_keys(&dir.join("keys"), KEYS_ORIGIN, "ecdsap256sha256");
    sign(dir, &[&["zone", "-f", "old"], more].concat()).expect_done("the first signing");
    folder
}

fn sign(dir: &Path, arguments: &[&str]) -> Ended {
    let mut command = nonesuch(["zone", "sign", "-o", KEYS_ORIGIN, "--keys", "keys", "--now", NOW]);
    run(command.args(arguments).current_dir(dir))
}

/// Asserts that the verifier reports no faults.
#[track_caller]
fn assert_sound(dir: &Path, file: &str) {
    let path = dir.join(file);
    let ended = run(&mut nonesuch(["zone", "verify", text(&path), "-o", KEYS_ORIGIN, "--now", NOW]));
    assert_eq!(ended.status, 0, "{}", ended.stdout);
}

/// Changes the lines of the previous zone.
fn edit(dir: &Path, change: impl Fn(&str) -> Option<String>) {
    let old = fs::read_to_string(dir.join("old")).expect("the previous zone");
    let new: String = old.lines().filter_map(change).map(|line| line + "\n").collect();
    assert_ne!(old, new);
    fs::write(dir.join("old"), new).expect("written");
}

#[test]
fn zonemd_can_be_asked_for_with_changes() {
    let folder = prepared(&[]);
    let dir = folder.path();
    let again = ["--previous", "old", "--changes", "changes", "--zonemd", "sha384", "-f", "new"];
    sign(dir, &again).expect_done("changes");
    assert_sound(dir, "new");
    assert!(fs::read_to_string(dir.join("new")).expect("the zone").contains("\tZONEMD\t"));
}

#[test]
fn an_unsigned_previous_zone_is_signed_whole() {
    for mechanism in ["nsec", "nsec3", "nsec3-opt-out"] {
        let folder = prepared(&[]);
        let dir = folder.path();
        let again = ["--previous", "zone", "--changes", "changes", "--denial", mechanism, "-f", "new"];
        sign(dir, &again).expect_done(mechanism);
        assert_sound(dir, "new");
    }
}

#[test]
fn spoiled_signatures_are_not_handed_on_though_nothing_has_changed() {
    let folder = prepared(&[]);
    let dir = folder.path();
    // Changes the last octet of every signature.
    edit(dir, |line| {
        Some(if line.contains("\tRRSIG\t") {
            let other = if line.ends_with("AA==") { "AQ==" } else { "AA==" };
            format!("{}{other}", &line[..line.len() - 4])
        } else {
            line.to_owned()
        })
    });
    let ended = sign(dir, &["zone", "--previous", "old", "-f", "new"]);
    assert_eq!(ended.status, 2, "{}", ended.stdout);
    snapshot::check("zone sign", "previous zone with altered signatures", &ended.stderr);
    assert!(!dir.join("new").exists());
}

#[test]
fn a_previous_zone_with_faults_is_refused_where_it_is_to_be_verified() {
    for (case, lost) in [
        ("--verify-previous without signatures over A", "\tRRSIG\tA "),
        ("--verify-previous without NSEC", "\tNSEC\t"),
    ] {
        let folder = prepared(&[]);
        let dir = folder.path();
        edit(dir, |line| (!line.contains(lost) || line.starts_with("example.")).then(|| line.to_owned()));
        for input in [&["zone"][..], &["--changes", "changes"]] {
            let ended =
                sign(dir, &[input, &["--previous", "old", "--verify-previous", "-f", "new"]].concat());
            assert_eq!(ended.status, 2, "{}", ended.stdout);
            assert!(ended.stderr.contains("old: "), "{}", ended.stderr);
            snapshot::check("zone sign", case, &ended.stderr);
            assert!(!dir.join("new").exists());
        }
    }
}

#[test]
fn the_mechanism_is_that_of_the_previous_zone_unless_another_is_asked_for() {
    let folder = prepared(&["--denial", "nsec3-opt-out", "--nsec3-salt", "ab", "--nsec3-iterations", "2"]);
    let dir = folder.path();
    for input in [&["zone", "--serial", "increment"][..], &["--changes", "changes"]] {
        sign(dir, &[input, &["--previous", "old", "-f", "new"]].concat()).expect_done("again");
        let new = fs::read_to_string(dir.join("new")).expect("the zone");
        assert!(new.contains("NSEC3PARAM\t1 0 2 AB") && new.contains("NSEC3\t1 1 2 AB"), "{new}");
        assert_sound(dir, "new");
    }
    sign(dir, &["zone", "--previous", "old", "--denial", "nsec", "-f", "new"]).expect_done("nsec");
    assert!(!fs::read_to_string(dir.join("new")).expect("the zone").contains("NSEC3"));
}

#[test]
fn no_output_takes_the_place_of_an_input_or_of_another_output() {
    let folder = prepared(&[]);
    let dir = folder.path();
    let cases: [(&[&str], &str); 6] = [
        (&["zone", "--previous", "old", "-f", "new", "--changes-out", "zone"], "zone"),
        (&["zone", "--previous", "old", "-f", "new", "--changes-out", "old"], "old"),
        (&["zone", "--previous", "old", "-f", "new", "--changes-out", "new"], "new"),
        (&["--changes", "changes", "--previous", "old", "-f", "changes"], "changes"),
        (&["--changes", "changes", "--previous", "old", "-f", "new", "--changes-out", "changes"], "changes"),
        (&["zone", "--previous", "old", "-f", "-", "--changes-out", "-"], "-"),
    ];
    for (arguments, named) in cases {
        let before = ["zone", "old", "changes"].map(|file| fs::read(dir.join(file)).expect(file));
        let ended = sign(dir, arguments);
        assert_eq!(ended.status, 2, "{arguments:?}");
        assert!(ended.stderr.contains(named), "{}", ended.stderr);
        assert_eq!(before, ["zone", "old", "changes"].map(|file| fs::read(dir.join(file)).expect(file)));
        assert!(!dir.join("new").exists(), "{arguments:?}");
    }
}

#[test]
fn a_change_set_that_cannot_be_written_leaves_the_zone_as_it_was() {
    let folder = prepared(&[]);
    let dir = folder.path();
    let before = fs::read(dir.join("old")).expect("the zone");
    let again =
        ["--changes", "changes", "--previous", "old", "-f", "old", "--changes-out", "missing/changed"];
    let ended = sign(dir, &again);
    assert_eq!(ended.status, 2);
    assert!(ended.stderr.contains("missing"), "{}", ended.stderr);
    assert_eq!(fs::read(dir.join("old")).expect("the zone"), before);
    // The same changes are accepted when the file can be written.
    let again = ["--changes", "changes", "--previous", "old", "-f", "old", "--changes-out", "changed"];
    sign(dir, &again).expect_done("the second attempt");
    assert_sound(dir, "old");
}
