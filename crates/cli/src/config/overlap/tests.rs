//! Tests of path resolution.

use super::*;
use crate::config::{Problems, parse};
use std::os::unix::fs::symlink;

#[test]
fn paths_are_resolved_as_far_as_they_exist() {
    let directory = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(directory.path()).unwrap();
    fs::create_dir(dir.join("a")).unwrap();
    symlink("a", dir.join("link")).unwrap();
    fs::write(dir.join("a/file"), "").unwrap();
    symlink("a/file", dir.join("other")).unwrap();
    let mut paths = ResolvedPaths::default();
    for (path, expected) in [
        ("a/file", "a/file"),
        ("link/file", "a/file"),
        ("link/none/x", "a/none/x"),
        ("link/none/../y", "a/y"),
        ("other", "a/file"),
        // A missing component is not a link.
        ("none/../link/./z", "link/z"),
        ("", ""),
    ] {
        // Twice: the second pass uses the cached directories.
        for _ in 0..2 {
            assert_eq!(paths.resolve(&dir.join(path)), dir.join(expected), "{path}");
        }
    }
}

#[test]
fn operator_files_in_the_directory_of_stored_zones_are_rejected() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    fs::create_dir_all(directory.path().join("state/zones/keys")).unwrap();
    symlink("state/zones", directory.path().join("link")).unwrap();
    fs::write(directory.path().join("state/zones/s"), "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch")
        .unwrap();
    fs::write(directory.path().join("state/zones/x"), "").unwrap();
    symlink("state/zones/x", directory.path().join("x")).unwrap();
    let text = "version = 1\nstate-dir = \"state\"\ntls-certificate = \"link/c.pem\"\ntls-key = \"k.pem\"\n[key.k]\n\
                secret-file = \"link/s\"\n[template.t]\nprimaries = [\"192.0.2.1\"]\nnsec5-keys = \"state/zones/{zone}\"\n[zone.a]\n\
                file = \"state/zones/a.zone\"\n[zone.b]\nfile = \"b\"\ndenial = \"compact\"\nkeys = \"state/../link/keys\"\n[zone.c]\n\
                file = \"x\"\n[zone.d]\nfile = \"state/d.zone\"\n[zone.e]\nfile = \"zones/e.zone\"\n";
    let Problems(found) = parse(&path, text).unwrap_err();
    let locations: Vec<(usize, &str)> =
        found.iter().map(|found| (found.location.line, found.location.key.as_str())).collect();
    let expected = [
        (3, "tls-certificate"),
        (6, "key.k.secret-file"),
        (9, "template.t.nsec5-keys"),
        (11, "zone.a.file"),
        (15, "zone.b.keys"),
        (17, "zone.c.file"),
    ];
    assert_eq!(locations, expected, "{found:#?}");
    let found: Vec<String> = found.iter().map(ToString::to_string).collect();
    crate::snapshot::check("serve configuration", "files in the directory of the server", &found.join("\n"));
}

#[test]
fn another_file_at_the_path_of_the_control_socket_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let text = "version = 1\ncontrol-socket = \"precious\"\n";
    let problem = |created: &str| {
        let Problems(found) = parse(&path, text).expect_err(created);
        let found = found[0].to_string();
        assert!(found.contains("c.toml:2:18: control-socket: "), "{found}");
        crate::snapshot::check("serve configuration", &format!("{created} at the control socket"), &found);
    };
    assert!(parse(&path, text).is_ok());
    let precious = directory.path().join("precious");
    fs::write(&precious, "precious").unwrap();
    problem("a file");
    fs::remove_file(&precious).unwrap();
    symlink("c.toml", &precious).unwrap();
    problem("a link");
    fs::remove_file(&precious).unwrap();
    let _listener = std::os::unix::net::UnixListener::bind(&precious).unwrap();
    assert!(parse(&path, text).is_ok());
}
