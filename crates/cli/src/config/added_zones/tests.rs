//! Tests of added zones: accepted and rejected changes, and the content of the file after them.

use super::*;
use std::os::unix::fs::symlink;

const MAIN: &str = "version = 1\nlisten = [\"127.0.0.1\"]\nstate-dir = \"state\"\nadded-zones-file = \"added.toml\"\n\
    [template.t]\nverify = \"none\"\n[zone.\"main.example.\"]\nfile = \"m\"\n";

/// A directory with the main file `c.toml`.
fn directory(text: &str) -> (tempfile::TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let main = directory.path().join("c.toml");
    fs::write(&main, text).unwrap();
    (directory, main)
}

fn apex(text: &str) -> Name {
    text.parse::<Name>().unwrap().view().to_canonical()
}

fn keys(text: &str) -> Table {
    text.parse().unwrap()
}

/// The error for a zone that is not accepted.
#[track_caller]
fn refused(main: &Path, zone: &str, text: &str) -> AddedZonesError {
    add(main, &apex(zone), keys(text)).unwrap_err()
}

/// Compares a message with the section `case` of the snapshot.
#[track_caller]
fn check_message(case: &str, message: &str) {
    crate::snapshot::check("ctl zone add", case, message);
}

fn zones(read: &LoadedConfiguration) -> Vec<String> {
    read.configuration.zones.iter().map(|zone| zone.apex.to_string()).collect()
}

#[test]
fn zones_are_written_and_read_again() {
    let (directory, main) = directory(MAIN);
    let file = directory.path().join("added.toml");
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
    assert_eq!(fs::metadata(&file).unwrap().permissions().mode() & 0o777, NEW_FILE_MODE);
    remove(&main, &apex("a.EXAMPLE.")).unwrap().write().unwrap();
    assert_eq!(zones(&load(&main).unwrap()), ["main.example.", ".", "b.example."]);
    for zone in [".", "b.example."] {
        remove(&main, &apex(zone)).unwrap().write().unwrap();
    }
    assert_eq!(zones(&load(&main).unwrap()), ["main.example."]);
}

#[test]
fn zones_that_the_operator_wrote_to_the_file_stay() {
    let (directory, main) = directory(MAIN);
    let (file, real) = (directory.path().join("added.toml"), directory.path().join("real.toml"));
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
fn a_link_without_target_is_not_replaced() {
    let (directory, main) = directory(MAIN);
    let file = directory.path().join("added.toml");
    symlink("gone/real.toml", &file).unwrap();
    let error = refused(&main, "a.example.", "file = \"a\"");
    assert!(matches!(&error, AddedZonesError::Link { path, .. } if *path == file), "{error}");
    assert!(fs::symlink_metadata(&file).unwrap().is_symlink());
}

/// After the rename, synchronization of the directory may fail.
#[test]
fn a_change_that_is_in_the_file_is_applied_despite_a_later_error() {
    let (directory, main) = directory(MAIN);
    let change = add(&main, &apex("a.example."), keys("file = \"a\"")).unwrap();
    let file = directory.path().join("added.toml");
    let failed = || {
        let source = io::Error::from(io::ErrorKind::StorageFull);
        Err(FileError::Write { path: file.clone(), source })
    };
    assert!(matches!(change.confirm_written("new", failed()), Err(AddedZonesError::Write(_))), "no file");
    fs::write(&file, "old").unwrap();
    assert!(matches!(change.confirm_written("new", failed()), Err(AddedZonesError::Write(_))));
    fs::write(&file, "new").unwrap();
    change.confirm_written("new", failed()).unwrap();
}

/// The server's user may write to the file. Therefore nothing in it may cause root to read a
/// secret.
#[test]
fn the_file_of_added_zones_may_contain_only_zones() {
    let (directory, main) = directory(MAIN);
    fs::write(
        directory.path().join("added.toml"),
        "[template.u]\n[key.k]\nsecret-file = \"/etc/shadow\"\n[zone.a]\nfile = \"a\"\n",
    )
    .unwrap();
    let Problems(found) = load(&main).unwrap_err();
    // The reader also reports faults of keys in these tables.
    let tables: Vec<&Problem> = found.iter().filter(|problem| !problem.location.key.contains('.')).collect();
    let locations: Vec<(usize, &str)> =
        tables.iter().map(|problem| (problem.location.line, problem.location.key.as_str())).collect();
    assert_eq!(locations, [(1, "template"), (2, "key")], "{found:?}");
    let messages: Vec<String> = tables.iter().map(ToString::to_string).collect();
    check_message("added-zones-file with other tables", &messages.join("\n"));
    let error = refused(&main, "b.example.", "file = \"b\"");
    assert!(matches!(error, AddedZonesError::ConfigurationRejected(_)), "{error}");
    assert!(error.to_string().contains("added.toml:2:2: key: "), "{error}");
}

#[test]
fn a_zone_that_the_configuration_reader_rejects_is_not_added() {
    let (directory, main) = directory(MAIN);
    assert!(add(&main, &apex("a.example."), keys("file = \"a\"")).is_ok());
    for (text, key) in [
        ("fiel = \"a\"", "fiel"),
        ("file = 5", "file"),
        ("primaries = \"192.0.2.1\"", "primaries"),
        ("file = \"a\"\nprimaries = [\"192.0.2.1\"]", "primaries"),
        ("file = \"a\"\ntemplate = \"none\"", "template"),
        ("primaries = [\"192.0.2.1 key:none.\"]", "primaries"),
        ("verify = \"none\"", "file"),
        ("file = \"state/zones/a\"", "file"),
    ] {
        let error = refused(&main, "a.example.", text);
        let AddedZonesError::ConfigurationRejected(Problems(found)) = &error else {
            panic!("{text}: {error:?}")
        };
        let expected = format!("ctl zone add: zone.\"a.example.\".{key}: ");
        assert!(found.iter().any(|problem| problem.to_string().starts_with(&expected)), "{text}: {error}");
        check_message(&text.replace('\n', " "), &error.to_string());
    }
    let is_elsewhere = |error: &AddedZonesError| {
        matches!(
            error,
            AddedZonesError::DeclaredElsewhere { apex: found, location }
                if *found == apex("main.example.") && *location.path == *main && (location.line, location.column) == (7, 7)
        )
    };
    let error = refused(&main, "main.EXAMPLE.", "file = \"a\"");
    assert!(is_elsewhere(&error), "{error:?}");
    let error = refused(&main, "cat.", "catalog = \"producer\"\ntransfer = [\"any\"]");
    assert!(
        matches!(&error, AddedZonesError::CatalogZone { apex: found, main: path } if *found == apex("cat.") && *path == main),
        "{error:?}"
    );
    add(&main, &apex("a.example."), keys("file = \"a\"")).unwrap().write().unwrap();
    let error = refused(&main, "a.example.", "file = \"b\"");
    let AddedZonesError::AlreadyAdded { apex: found, location } = &error else { panic!("{error:?}") };
    assert_eq!(*found, apex("a.example."));
    assert_eq!(
        (&*location.path, location.line, location.column),
        (&*directory.path().join("added.toml"), 3, 7)
    );
    let error = remove(&main, &apex("main.example.")).unwrap_err();
    assert!(is_elsewhere(&error), "{error:?}");
    assert!(matches!(remove(&main, &apex("none.")), Err(AddedZonesError::Unknown { .. })));
    // Faults elsewhere are reported with their locations, and nothing is written.
    let before = fs::read(directory.path().join("added.toml")).unwrap();
    fs::write(&main, MAIN.replace("[template.t]", "[template.t]\nfiel = 1")).unwrap();
    for error in
        [refused(&main, "b.example.", "file = \"b\""), remove(&main, &apex("a.example.")).unwrap_err()]
    {
        assert!(error.to_string().contains("c.toml:6:1: template.t.fiel: "), "{error}");
        check_message("fault elsewhere in the configuration", &error.to_string());
    }
    assert_eq!(fs::read(directory.path().join("added.toml")).unwrap(), before);
}

#[test]
fn the_error_without_a_file_of_added_zones_names_the_key() {
    let (_folder, main) = directory("version = 1\n");
    let error = refused(&main, "a.example.", "file = \"a\"");
    assert!(matches!(&error, AddedZonesError::NoFile { main: path } if *path == main), "{error:?}");
    assert!(error.to_string().contains("added-zones-file = \"PATH\""), "{error}");
}

#[test]
fn the_file_of_added_zones_is_included_once() {
    let text =
        MAIN.replace("listen", "include = [\"*.toml\"]\nlisten").replace("\"added.toml", "\"d/added.toml");
    let (directory, main) = directory(&text);
    fs::create_dir(directory.path().join("d")).unwrap();
    // The pattern also matches the main file.
    let found = load(&main).unwrap_err().to_string();
    assert!(found.contains(" include: ") && found.contains("/c.toml: "), "{found}");
    check_message("include of the main file", &found);
    fs::write(&main, text.replace("\"*.toml\"", "\"d/*.toml\"")).unwrap();
    add(&main, &apex("a.example."), keys("file = \"a\"")).unwrap().write().unwrap();
    let found = load(&main).unwrap_err().to_string();
    assert!(found.contains("added-zones-file: "), "{found}");
    check_message("added-zones-file that another pattern includes", &found);
}

/// A file above the maximum size is rejected before anything is written.
#[test]
fn the_size_of_the_file_of_added_zones_is_limited() {
    let (directory, main) = directory(MAIN);
    let text = format!("file = \"{}\"", "x".repeat(MAX_FILE_BYTES));
    assert!(matches!(add(&main, &apex("a.example."), keys(&text)), Err(AddedZonesError::TooLong { .. })));
    assert!(!directory.path().join("added.toml").exists());
}
