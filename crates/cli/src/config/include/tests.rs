//! Tests of included files: matching, permitted content and reported faults.

use super::*;
use crate::config::{LoadedConfiguration, Problem, Problems, load};
use std::os::unix::fs::symlink;

const HEAD: &str = "version = 1\nlisten = [\"127.0.0.1\"]\n";

/// A directory with these files; a slash in a name creates subdirectories.
fn directory(files: &[(&str, &str)]) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    for (name, text) in files {
        let path = directory.path().join(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    directory
}

/// Reads `c.toml`, which contains `HEAD` and `text`.
fn read(directory: &tempfile::TempDir, text: &str) -> Result<LoadedConfiguration, Problems> {
    let path = directory.path().join("c.toml");
    fs::write(&path, format!("{HEAD}{text}")).unwrap();
    load(&path)
}

/// The problems, without the name of the directory.
fn problems(directory: &tempfile::TempDir, text: &str) -> Vec<String> {
    let Problems(found) = read(directory, text).unwrap_err();
    without(directory, &found)
}

/// Compares messages with the section `case` of the snapshot.
#[track_caller]
fn check_messages(case: &str, found: &[String]) {
    crate::snapshot::check("serve configuration", case, &found.join("\n"));
}

fn without(directory: &tempfile::TempDir, found: &[Problem]) -> Vec<String> {
    let place = format!("{}/", directory.path().display());
    found.iter().map(|problem| problem.to_string().replace(&place, "")).collect()
}

fn characters(text: &str) -> Vec<char> {
    text.chars().collect()
}

#[test]
fn wildcards_match_as_in_a_shell() {
    for (pattern, name, expected) in [
        ("*.toml", "a.toml", true),
        ("*.toml", ".toml", true),
        ("*.toml", "a.toml~", false),
        ("?.toml", "é.toml", true),
        ("?.toml", "ab.toml", false),
        ("a*b*c", "a-b-b-c", true),
        ("a*b*c", "a-b-b-", false),
        ("*", "", true),
        ("", "", true),
        ("**", "x", true),
        ("a?", "a", false),
    ] {
        assert_eq!(matches_pattern(&characters(name), &characters(pattern)), expected, "{pattern} {name}");
    }
    // The work is limited for every pattern.
    assert!(!matches_pattern(&characters(&"a".repeat(255)), &characters(&("*a".repeat(100) + "b"))));
}

#[test]
fn included_files_are_read_in_order_and_paths_are_relative_to_each_file() {
    let directory = directory(&[
        ("zones.d/b.toml", "[zone.\"b.\"]\nfile = \"b.zone\"\n"),
        ("zones.d/a.toml", "[zone.\"a.\"]\ntemplate = \"t\"\ntransfer = [\"key:k\"]\n"),
        ("zones.d/.hidden.toml", "no TOML"),
        ("zones.d/a.toml~", "no TOML"),
        ("more/t.toml", "[template.t]\nfile = \"{zone}.zone\"\n"),
        ("keys.toml", "[key.k]\nsecret = \"c2VjcmV0IG9mIHRoaXJ0eS10d28gb2N0ZXRzIGxvbmch\"\n"),
    ]);
    let read =
        read(&directory, "include = [\"zones.d/*.toml\", \"keys.toml\", \"none/?.toml\", \"more/*\"]\n")
            .unwrap();
    let zones: Vec<String> = read.configuration.zones.iter().map(|zone| zone.apex.to_string()).collect();
    assert_eq!(zones, ["a.", "b."]);
    let files: Vec<&Path> = read.sources.files.iter().map(|file| file.path.as_path()).collect();
    // A path is relative to the file that contains it: the path from a template is relative to the
    // file of the template.
    for expected in ["zones.d/b.zone", "more/a.zone", "keys.toml", "zones.d"] {
        assert!(files.contains(&directory.path().join(expected).as_path()), "{expected} {files:?}");
    }
    let warned = without(&directory, &read.warnings);
    let warned: Vec<String> =
        warned.into_iter().filter(|text| text.starts_with("c.toml:3:43: include: none: ")).collect();
    assert_eq!(warned.len(), 1, "{warned:?}");
    check_messages("include from a missing directory", &warned);
}

#[test]
fn problems_name_the_included_file() {
    let directory = directory(&[
        (
            "d/a.toml",
            "[zone.\"a.\"]\nfile = \"z\"\n[key.k]\nsecret = \"c2VjcmV0\"\n[template.t]\nverify = \"full\"\n",
        ),
        (
            "d/b.toml",
            "workers = 7\n[zone.\"A\"]\nfile = \"z\"\n[key.K]\nsecret = \"c2VjcmV0\"\n[template.t]\nverify = \"ful\"\n",
        ),
        (
            "d/c.toml",
            "version = 1\ninclude = []\ncolour = 1\n[limits]\nslip = 1\n[zone.\"c.\"]\nlistne = 1\nfile = \"z\"\ntransfer = [\"key:none\"]\n",
        ),
    ]);
    let found = problems(&directory, "include = [\"d/*.toml\"]\n[zone.\"a\"]\nfile = \"other\"\n");
    let expected = [
        "d/a.toml:1:7: zone.\"a.\": ",
        "d/b.toml:1:1: workers: ",
        "d/b.toml:2:7: zone.\"A\": ",
        "d/b.toml:4:6: key: ",
        "d/b.toml:6:11: template.t: ",
        "d/b.toml:7:10: template.t.verify: \"ful\" ",
        "d/c.toml:1:1: version: ",
        "d/c.toml:2:1: include: ",
        "d/c.toml:3:1: colour: ",
        "d/c.toml:4:2: limits: ",
        "d/c.toml:7:1: zone.\"c.\".listne: ",
        "d/c.toml:9:12: zone.\"c.\".transfer: ",
    ];
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(&expected) {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
    check_messages("faults in included files", &found);
}

#[test]
fn faults_of_include_are_reported_at_its_location() {
    let directory = directory(&[("d/a.toml", ""), ("bad.toml", "[zone"), ("binary.toml", "\u{0}")]);
    fs::write(directory.path().join("binary.toml"), [0xff, 0xfe]).unwrap();
    fs::create_dir(directory.path().join("sub")).unwrap();
    symlink("a.toml", directory.path().join("d/link.toml")).unwrap();
    nix::unistd::mkfifo(&directory.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    for (list, expected) in [
        ("\"none.toml\"", "c.toml:3:12: include: none.toml: "),
        ("\"*.toml\"", "c.toml:3:12: include: c.toml: "),
        ("\"sub\"", "c.toml:3:12: include: sub: "),
        ("\"pipe\"", "c.toml:3:12: include: pipe: "),
        ("\"binary.toml\"", "c.toml:3:12: include: binary.toml: "),
        ("\"?/a.toml\"", "c.toml:3:12: include: ?/a.toml: "),
        ("\"d/a.toml\", \"d/*\"", "c.toml:3:24: include: d/link.toml: "),
        ("7", "c.toml:3:12: include: 7 "),
    ] {
        let found = problems(&directory, &format!("include = [{list}]\n"));
        let message = found.iter().find(|found| found.starts_with(expected));
        let message = message.unwrap_or_else(|| panic!("{list}: {expected}\n{found:#?}"));
        check_messages(&format!("include = [{list}]"), std::slice::from_ref(message));
    }
    // The parser of TOML words this message.
    let found = problems(&directory, "include = [\"bad.toml\"]\n");
    assert!(found.iter().any(|found| found.starts_with("bad.toml:1:")), "{found:#?}");
    let found = problems(&directory, "include = \"d/*.toml\"\n");
    assert!(found[0].starts_with("c.toml:3:11: include: \"d/*.toml\" "), "{found:?}");
    check_messages("include that is not a list", &found[..1]);
}

#[test]
fn faults_of_a_template_are_reported_once_for_its_own_file() {
    let directory = directory(&[
        (
            "t.toml",
            "[template.f]\ntransfer = [\"key:nope.\"]\nallow-query = [\"key:none.\"]\n\
             also-notify = [\"192.0.2.1:0\", \"192.0.2.2 tls:ns.example\"]\njournal-size = \"1MiB\"\n\
             retry-min = \"2h\"\nretry-max = \"1h\"\nmember-template = \"gone\"\n",
        ),
        (
            "z.toml",
            "[zone.\"a.\"]\ntemplate = \"f\"\nfile = \"a\"\n[zone.\"b.\"]\ntemplate = \"f\"\nfile = \"b\"\n\
             transfer = [\"key:nobody.\"]\n[zone.\"c.\"]\ntemplate = \"f\"\nfile = \"c\"\ncatalog = \"consumer\"\n\
             [zone.\"d.\"]\ntemplate = \"f\"\nfile = \"c\"\ncatalog = \"consumer\"\n",
        ),
    ]);
    let expected = [
        "t.toml:2:12: template.f.transfer: ",
        "t.toml:3:15: template.f.allow-query: ",
        "t.toml:4:15: template.f.also-notify: 192.0.2.1:0: ",
        "t.toml:4:15: template.f.also-notify: ",
        "t.toml:5:16: template.f.journal-size: ",
        "t.toml:6:13: template.f.retry-min: ",
        "t.toml:8:19: template.f.member-template: ",
        "z.toml:7:12: zone.\"b.\".transfer: ",
    ];
    let found = problems(&directory, "include = [\"t.toml\", \"z.toml\"]\n");
    assert_eq!(found.len(), expected.len(), "{found:#?}");
    for (found, expected) in found.iter().zip(expected) {
        assert!(found.starts_with(expected), "{found}\n{expected}");
    }
    check_messages("faults of a template", &found);
}
