//! Output of `zone sign`: it is complete or absent, and never replaces the input.

use crate::common;
use common::{KEYS_ORIGIN, MECHANISMS, done, folder, generate_keys, nonesuch, prepared, run, snapshot, text};
use std::fs;
use std::path::Path;

fn sign(folder: &Path, file: &Path, output: &Path) -> common::Ended {
    let arguments =
        ["zone", "sign", text(file), "-o", KEYS_ORIGIN, "--keys", text(folder), "-f", text(output)];
    run(&mut nonesuch(arguments))
}

#[test]
fn the_source_is_never_the_output() {
    let folder = prepared();
    generate_keys(folder.path(), KEYS_ORIGIN, "ed25519");
    let zone = folder.path().join("zone");
    let before = fs::read(&zone).expect("a zone");
    let link = folder.path().join("link");
    std::os::unix::fs::symlink(&zone, &link).expect("a link");
    let other_spelling = folder.path().join(".").join("zone");
    for (case, file, output) in [
        ("input file as output", &zone, &zone),
        ("input file with another spelling as output", &zone, &other_spelling),
        ("target of the input link as output", &link, &zone),
        ("link to the input file as output", &zone, &link),
    ] {
        let ended = sign(folder.path(), file, output);
        assert_eq!(ended.status, 2);
        snapshot::check("zone sign", case, &ended.text());
        assert_eq!(fs::read(&zone).expect("a zone"), before);
    }
    assert!(link.is_symlink());
}

#[test]
fn a_folder_that_is_missing_is_named() {
    let folder = prepared();
    generate_keys(folder.path(), KEYS_ORIGIN, "ed25519");
    let missing = folder.path().join("missing");
    let ended = sign(folder.path(), &folder.path().join("zone"), &missing.join("signed"));
    assert_eq!(ended.status, 2);
    assert!(ended.stderr.contains(&format!("{} ", missing.display())), "{}", ended.stderr);
    snapshot::check("zone sign", "output in a directory that does not exist", &ended.text());
    assert!(!missing.exists());
}

/// Several parts: standard output and a file get the same octets. A failure leaves no new file, and
/// the old file stays.
#[test]
fn standard_output_and_a_file_get_the_same_zone_and_failures_leave_the_old_one() {
    let folder = folder();
    let (zone, signed) = (folder.path().join("zone"), folder.path().join("signed"));
    done(["zone", "generate", "--names", "3000", "-o", KEYS_ORIGIN, "-f", text(&zone)]);
    generate_keys(folder.path(), KEYS_ORIGIN, "ed25519");
    for mechanism in MECHANISMS {
        let arguments = |output| {
            let at = ["zone", "sign", text(&zone), "-o", KEYS_ORIGIN, "--keys", text(folder.path())];
            [&at[..], &["--now", "1750000000", "--denial", mechanism, "--zonemd", "sha384", "-f", output]]
                .concat()
        };
        let said = done(arguments(text(&signed))).stdout;
        let printed = done(arguments("-"));
        let written = fs::read_to_string(&signed).expect("a zone");
        assert!(printed.stdout == written && printed.stderr.is_empty());
        assert!(said.contains(&format!(" {} records,", written.lines().count())), "{said}");
        done(["zone", "verify", "--now", "1750000000", text(&signed)]);
    }
    let before = fs::read(&signed).expect("a zone");
    // Keys of another zone: rejected after everything is read.
    let others = folder.path().join("others");
    generate_keys(&others, "other.example.", "ed25519");
    let ended = sign(&others, &zone, &signed);
    assert_eq!(ended.status, 2);
    assert_eq!(fs::read(&signed).expect("a zone"), before);
    let full = sign(folder.path(), &zone, Path::new("/dev/full"));
    assert_eq!(full.status, 2);
    assert!(full.stderr.contains("/dev/full: "), "{}", full.stderr);
    snapshot::check("zone sign", "output to a full device", &full.stderr);
    let left =
        fs::read_dir(folder.path()).expect("a directory").map(|entry| entry.expect("an entry").file_name());
    assert!(left.into_iter().all(|name| !name.to_string_lossy().starts_with(".nonesuch-")));
}
