//! `nonesuch adoption`: finds the program nonesuch-adoption, and says how to build a missing one. The tests of
//! that program are in `adoption/tests/`.

use crate::common;
use common::{Ended, folder, nonesuch, run};
use std::fs::{self, Permissions};
use std::os::unix::fs::PermissionsExt as _;
use std::path::Path;

/// Runs a copy of the program under test in `folder`, so that nothing else is in its directory.
fn run_in(folder: &Path, path: &Path, arguments: &[&str]) -> Ended {
    let copy = folder.join("nonesuch");
    if !copy.exists() {
        let original = nonesuch([""]).get_program().to_owned();
        fs::hard_link(&original, &copy).or_else(|_| fs::copy(&original, &copy).map(drop)).expect("a copy");
    }
    let mut command = std::process::Command::new(copy);
    run(command.arg("adoption").args(arguments).env("PATH", path).env("HOME", path))
}

/// Writes a program that prints its name and arguments and exits with status 7.
fn write_program(folder: &Path, name: &str) {
    let path = folder.join("nonesuch-adoption");
    fs::write(&path, format!("#!/bin/sh\necho {name} \"$@\"\nexit 7\n")).expect("written");
    fs::set_permissions(&path, Permissions::from_mode(0o755)).expect("executable");
}

#[test]
fn a_missing_program_is_named_with_the_command_that_builds_it() {
    let (program, path) = (folder(), folder());
    let ended = run_in(program.path(), path.path(), &["report", "snapshots"]);
    assert_eq!(ended.status, 2, "{}", ended.text());
    assert!(
        ended.error().contains("nonesuch-adoption") && ended.error().contains("just adoption"),
        "{}",
        ended.text()
    );
}

#[test]
fn the_program_gets_all_arguments_and_its_status_is_that_of_the_command() {
    let (program, path) = (folder(), folder());
    write_program(path.path(), "in-path");
    let arguments = ["report", "a b", "--help", "-q", "--", "--json"];
    let ended = run_in(program.path(), path.path(), &arguments);
    assert_eq!((ended.status, ended.stdout.trim()), (7, "in-path report a b --help -q -- --json"));
    // The one in the directory of the program is used first.
    write_program(program.path(), "beside");
    let ended = run_in(program.path(), path.path(), &["--help"]);
    assert_eq!((ended.status, ended.stdout.trim()), (7, "beside --help"));
}

#[test]
fn a_program_that_cannot_run_is_named() {
    let (program, path) = (folder(), folder());
    let file = path.path().join("nonesuch-adoption");
    fs::write(&file, "").expect("written");
    fs::set_permissions(&file, Permissions::from_mode(0o644)).expect("not executable");
    let ended = run_in(program.path(), path.path(), &["report"]);
    assert_eq!(ended.status, 2, "{}", ended.text());
    assert!(ended.error().contains(&format!("cannot run {}", file.display())), "{}", ended.text());
}
