//! Tests of added zones: accepted and rejected changes, and the content of the file after them.

use super::*;
use std::os::unix::fs::symlink;

const MAIN: &str = "version = 1\nlisten = [\"127.0.0.1\"]\nstate-dir = \"state\"\nadded-zones-file = \"added.toml\"\n\
    [template.t]\nverify = \"none\"\n[zone.\"main.example.\"]\nfile = \"m\"\n";

/// A directory with the main file `c.toml`.
fn folder(text: &str) -> (tempfile::TempDir, PathBuf) {
    let folder = tempfile::tempdir().unwrap();
    let main = folder.path().join("c.toml");
    fs::write(&main, text).unwrap();
    (folder, main)
}

fn apex(text: &str) -> Name {
    text.parse::<Name>().unwrap().view().to_canonical()
}

fn keys(text: &str) -> Table {
    text.parse().unwrap()
}

/// The error without the directory name; empty if the zone is accepted.
fn said(main: &Path, zone: &str, text: &str) -> String {
    let folder = format!("{}/", main.parent().unwrap().display());
    add(main, &apex(zone), keys(text))
        .err()
        .map_or_else(String::new, |error| error.to_string().replace(&folder, ""))
}

fn zones(read: &LoadedConfiguration) -> Vec<String> {
    read.configuration.zones.iter().map(|zone| zone.apex.to_string()).collect()
}

#[test]
fn zones_are_written_and_read_again() {
    let (folder, main) = folder(MAIN);
    let file = folder.path().join("added.toml");
    assert_eq!(zones(&load(&main).unwrap()), ["main.example."], "no file yet");
    for (zone, text) in [
        ("A.example", "file = \"/srv/a\"\ntemplate = \"t\""),
        (
            "b.example.",
            "primaries = [\"192.0.2.1\", \"[2001:db8::1]:5300\"]\ntransfer-records-max = 10\nrefresh-min = \"5m\"",
        ),
        (".", "file = \"root zone\""),
    ] {
        let change = add(&main, &apex(zone), keys(text)).unwrap();
        assert!(change.zone(&apex(zone)).is_some());
        // `add` does not write the file; `write` does.
        assert!(!zones(&load(&main).unwrap()).contains(&apex(zone).to_string()));
        change.write().unwrap();
    }
    assert_eq!(zones(&load(&main).unwrap()), ["main.example.", ".", "a.example.", "b.example."]);
    let text = fs::read_to_string(&file).unwrap();
    assert!(text.starts_with("# Written by `nonesuch ctl zone add`"), "{text}");
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, MODE);
    remove(&main, &apex("a.EXAMPLE.")).unwrap().write().unwrap();
    assert_eq!(zones(&load(&main).unwrap()), ["main.example.", ".", "b.example."]);
    for zone in [".", "b.example."] {
        remove(&main, &apex(zone)).unwrap().write().unwrap();
    }
    assert_eq!(zones(&load(&main).unwrap()), ["main.example."]);
}

#[test]
fn what_was_written_by_hand_stays() {
    let (folder, main) = folder(MAIN);
    let (file, real) = (folder.path().join("added.toml"), folder.path().join("real.toml"));
    fs::write(&real, "zone = { \"B.example\" = { file = \"b\" } } # mine\n").unwrap();
    fs::set_permissions(&real, fs::Permissions::from_mode(0o600)).unwrap();
    symlink("real.toml", &file).unwrap();
    add(&main, &apex("a.example."), keys("file = \"a\"\ntemplate = \"t\"")).unwrap().write().unwrap();
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
    assert_eq!(fs::metadata(&real).unwrap().permissions().mode() & 0o777, 0o600);
    assert_eq!(zones(&load(&main).unwrap()), ["main.example.", "b.example.", "a.example."]);
    // The name in the file has another spelling than the name in the request.
    remove(&main, &apex("b.example.")).unwrap().write().unwrap();
    assert_eq!(zones(&load(&main).unwrap()), ["main.example.", "a.example."]);
}

/// A rename would replace the link, and the operator's file would never contain the zone.
#[test]
fn a_link_to_nothing_is_not_replaced() {
    let (folder, main) = folder(MAIN);
    let file = folder.path().join("added.toml");
    symlink("gone/real.toml", &file).unwrap();
    let found = said(&main, "a.example.", "file = \"a\"");
    assert!(found.starts_with("added.toml: a symbolic link whose target cannot be found: "), "{found}");
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
}

/// After the rename, synchronization of the directory may fail.
#[test]
fn a_change_that_is_in_the_file_is_applied_whatever_failed_then() {
    let (folder, main) = folder(MAIN);
    let change = add(&main, &apex("a.example."), keys("file = \"a\"")).unwrap();
    let file = folder.path().join("added.toml");
    let failed = || {
        let source = io::Error::from(io::ErrorKind::StorageFull);
        Err(FileError::Write { path: file.clone(), source })
    };
    assert!(matches!(change.settle("new", failed()), Err(AddedError::Write(_))), "no file");
    fs::write(&file, "old").unwrap();
    assert!(matches!(change.settle("new", failed()), Err(AddedError::Write(_))));
    fs::write(&file, "new").unwrap();
    change.settle("new", failed()).unwrap();
}

/// The server's user may write to the file. Therefore nothing in it may cause root to read a
/// secret.
#[test]
fn the_file_of_added_zones_has_zones_alone() {
    let (folder, main) = folder(MAIN);
    fs::write(
        folder.path().join("added.toml"),
        "[template.u]\n[key.k]\nsecret-file = \"/etc/shadow\"\n[zone.a]\nfile = \"a\"\n",
    )
    .unwrap();
    let Problems(found) = load(&main).unwrap_err();
    let places: Vec<(usize, &str)> = found
        .iter()
        .filter(|problem| problem.message.starts_with("added-zones-file may contain only zones"))
        .map(|problem| (problem.place.line, problem.place.key.as_str()))
        .collect();
    assert_eq!(places, [(1, "template"), (2, "key")], "{found:?}");
    let found = said(&main, "b.example.", "file = \"b\"");
    assert!(found.contains("added.toml:2:2: key: "), "{found}");
}

#[test]
fn the_reader_of_configurations_decides_what_is_added() {
    let (folder, main) = folder(MAIN);
    let add_there = |zone: &str, text: &str| said(&main, zone, text);
    assert_eq!(add_there("a.example.", "file = \"a\""), "");
    for (zone, text, expected) in [
        (
            "a.example.",
            "fiel = \"a\"",
            "ctl zone add: zone.\"a.example.\".fiel: unknown key; did you mean file?",
        ),
        (
            "a.example.",
            "file = 5",
            "ctl zone add: zone.\"a.example.\".file: 5 is not a string: write it in quotation marks",
        ),
        (
            "a.example.",
            "primaries = \"192.0.2.1\"",
            "ctl zone add: zone.\"a.example.\".primaries: \"192.0.2.1\" is not a list",
        ),
        ("a.example.", "file = \"a\"\nprimaries = [\"192.0.2.1\"]", "primaries: file is set too"),
        (
            "a.example.",
            "file = \"a\"\ntemplate = \"none\"",
            "the template \"none\" does not exist: name one of t",
        ),
        ("a.example.", "primaries = [\"192.0.2.1 key:none.\"]", "the key none. does not exist"),
        ("a.example.", "verify = \"none\"", "ctl zone add: zone.\"a.example.\".file: missing"),
        ("a.example.", "file = \"state/zones/a\"", "is in the directory of the server's stored versions"),
        ("main.EXAMPLE.", "file = \"a\"", "zone main.example. is configured at c.toml:7:7: change it there"),
        (
            "cat.",
            "catalog = \"producer\"\ntransfer = [\"any\"]",
            "zone cat.: catalogs and zones with catalog-zone cannot be added: configure them in c.toml",
        ),
    ] {
        let found = add_there(zone, text);
        assert!(found.contains(expected), "{text}: {found}");
    }
    add(&main, &apex("a.example."), keys("file = \"a\"")).unwrap().write().unwrap();
    let found = add_there("a.example.", "file = \"b\"");
    assert!(
        found.contains("zone a.example. is already configured at added.toml:3:7: `nonesuch ctl zone remove"),
        "{found}"
    );
    let found = remove(&main, &apex("main.example.")).unwrap_err().to_string();
    assert!(found.contains("c.toml:7:7: change it there, then run `nonesuch ctl reload`"), "{found}");
    assert!(matches!(remove(&main, &apex("none.")), Err(AddedError::Unknown { .. })));
    // Faults elsewhere are reported with their locations, and nothing is written.
    let before = fs::read(folder.path().join("added.toml")).unwrap();
    fs::write(&main, MAIN.replace("[template.t]", "[template.t]\nfiel = 1")).unwrap();
    for found in
        [add_there("b.example.", "file = \"b\""), remove(&main, &apex("a.example.")).unwrap_err().to_string()]
    {
        assert!(found.contains("c.toml:6:1: template.t.fiel: unknown key"), "{found}");
    }
    assert_eq!(fs::read(folder.path().join("added.toml")).unwrap(), before);
}

#[test]
fn a_configuration_without_the_file_names_the_key() {
    let (_folder, main) = folder("version = 1\n");
    assert_eq!(
        said(&main, "a.example.", "file = \"a\""),
        "no file for zones that are added while the server runs: set added-zones-file = \"PATH\" in c.toml and reload"
    );
}

#[test]
fn the_file_of_added_zones_is_included_once() {
    let text =
        MAIN.replace("listen", "include = [\"*.toml\"]\nlisten").replace("\"added.toml", "\"d/added.toml");
    let (folder, main) = folder(&text);
    fs::create_dir(folder.path().join("d")).unwrap();
    // The pattern also matches the main file.
    assert!(load(&main).unwrap_err().to_string().contains("the file includes itself"));
    fs::write(&main, text.replace("\"*.toml\"", "\"d/*.toml\"")).unwrap();
    add(&main, &apex("a.example."), keys("file = \"a\"")).unwrap().write().unwrap();
    let found = load(&main).unwrap_err().to_string();
    assert!(found.contains("added-zones-file: ") && found.contains("is already included"), "{found}");
}

/// A file above the maximum size is rejected before anything is written.
#[test]
fn the_file_of_added_zones_is_bounded() {
    let (folder, main) = folder(MAIN);
    let text = format!("file = \"{}\"", "x".repeat(MOST_BYTES));
    assert!(matches!(add(&main, &apex("a.example."), keys(&text)), Err(AddedError::TooLong { .. })));
    assert!(!folder.path().join("added.toml").exists());
}
