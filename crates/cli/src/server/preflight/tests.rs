//! Tests of the checks before a start.

use super::*;
use crate::access::stranger;
use crate::config::{self, parse};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Compares messages with the section `case` of the snapshot.
#[track_caller]
fn check_messages(case: &str, found: &str) {
    crate::snapshot::check("serve configuration", case, found);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn faults_that_prevent_a_start_are_reported_with_their_key() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    let text = "version = 1\nuser = \"nobody-of-this-name\"\ncontrol-socket = \"none/control\"\ncontrol-group = \"no-such-group\"\n\
                cpus = [0, 4095]\nstate-dir = \"open\"\n[dnstap]\nfile = \"gone/tap\"\n";
    fs::create_dir(directory.path().join("open")).unwrap();
    set_mode(&directory.path().join("open"), 0o777);
    let read = parse(&path, text).unwrap();
    let mut found: Vec<String> =
        check_start(&read.configuration, &read.sources).iter().map(ToString::to_string).collect();
    let place = path.display();
    for expected in [
        format!("{place}:2:8: user: \"nobody-of-this-name\" "),
        format!("{place}:3:18: control-socket: "),
        format!("{place}:4:17: control-group: \"no-such-group\" "),
        format!("{place}:5:8: cpus: "),
        format!("{place}:6:13: state-dir: "),
        format!("{place}:8:8: dnstap.file: "),
    ] {
        assert!(found.iter().any(|found| found.starts_with(&expected)), "{expected}\n{found:#?}");
    }
    assert_eq!(found.len(), 6, "{found:#?}");
    assert!(found.iter().any(|found| found.contains(" cpus: ") && found.contains(" 4095")), "{found:#?}");
    // The message about CPUs ends with the number of the last usable CPU of this machine.
    let is_digit = |character: char| character.is_ascii_digit();
    found.iter_mut().for_each(|found| found.truncate(found.trim_end_matches(is_digit).len()));
    found.sort();
    check_messages("configuration that does not start", &found.join("\n"));
}

#[test]
fn files_that_a_reload_could_not_read_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let dir = fs::canonicalize(directory.path()).unwrap();
    set_mode(&dir, 0o755);
    let path = dir.join("c.toml");
    fs::write(dir.join("s"), "c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch").unwrap();
    let text = "version = 1\n[key.k]\nsecret-file = \"s\"\n[zone.a]\nfile = \"a\"\n[zone.b]\nfile = \"keys\"\n\
                denial = \"compact\"\nkeys = \"keys\"\n[zone.c]\nfile = \"c.toml\"\n[zone.d]\nfile = \"in/d\"\n";
    fs::write(&path, text).unwrap();
    for inner in ["keys", "in"] {
        fs::create_dir(dir.join(inner)).unwrap();
        set_mode(&dir.join(inner), 0o700);
    }
    fs::write(dir.join("in/d"), "").unwrap();
    set_mode(&path, 0o644);
    set_mode(&dir.join("s"), 0o600);
    let read = parse(&path, text).unwrap();
    let faults = check_file_access(&read.configuration, &read.sources, &stranger());
    let zone = |name: &str| Effect::Zone(name.parse().unwrap());
    let expected = [
        ("c.toml:3:15: key.k.secret-file: ", Effect::Reload),
        ("c.toml:5:8: zone.a.file: ", zone("a.")),
        ("c.toml:7:8: zone.b.file: ", zone("b.")),
        ("c.toml:9:8: zone.b.keys: ", zone("b.")),
        ("c.toml:13:8: zone.d.file: ", zone("d.")),
    ];
    assert_eq!(faults.len(), expected.len(), "{faults:#?}");
    let mut messages = String::new();
    for (fault, (place, effect)) in faults.iter().zip(&expected) {
        let message = fault.problem.to_string();
        assert!(message.contains(place) && fault.effect == *effect, "{place} {fault:?}");
        messages += &format!("{message}; {effect}\n");
    }
    check_messages("files that the user may not read", &messages.replace(&dir.display().to_string(), "DIR"));
    // Every user may read all files.
    set_mode(&dir.join("s"), 0o644);
    assert!(unreadable_at_reload(&read.sources, &stranger()).is_empty());
    set_mode(&path, 0o600);
    assert_eq!(unreadable_at_reload(&read.sources, &stranger()).len(), 1, "the configuration itself");
    assert!(unreadable_at_reload(&read.sources, &FileUser::current()).is_empty());
}

#[test]
fn included_files_that_the_user_cannot_read_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("c.toml");
    fs::create_dir(directory.path().join("d")).unwrap();
    fs::write(&path, "version = 1\nlisten = [\"127.0.0.1\"]\ninclude = [\"d/*.toml\"]\n").unwrap();
    let modes = [("", 0o755), ("c.toml", 0o644), ("d", 0o755), ("d/a.toml", 0o644), ("d/b.toml", 0o640)];
    for (name, mode) in modes {
        let path = directory.path().join(name);
        if !path.exists() {
            fs::write(&path, "").unwrap();
        }
        set_mode(&path, mode);
    }
    let read = config::load(&path).unwrap();
    let place = format!("{}/", directory.path().display());
    let messages = || -> Vec<String> {
        let found = unreadable_at_reload(&read.sources, &stranger());
        found.iter().map(|problem| problem.to_string().replace(&place, "")).collect()
    };
    let found = messages();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(
        found[0].starts_with("c.toml:3:12: include: d/b.toml: ") && found[0].contains("stranger"),
        "{found:?}"
    );
    check_messages("included file that the user may not read", &found[0]);
    // A directory that cannot be listed, with files that can be read.
    set_mode(&directory.path().join("d/b.toml"), 0o644);
    assert!(messages().is_empty());
    set_mode(&directory.path().join("d"), 0o751);
    let found = messages();
    assert_eq!(found.len(), 1, "{found:?}");
    assert!(found[0].starts_with("c.toml:3:12: include: d: ") && found[0].contains("stranger"), "{found:?}");
    check_messages("included directory that the user may not read", &found[0]);
}
