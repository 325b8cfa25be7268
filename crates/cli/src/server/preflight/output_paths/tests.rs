//! Tests of output path checks.

use super::*;
use crate::access::stranger;
use std::os::unix::fs::symlink;

/// Compares a message with the section `case` of the snapshot.
#[track_caller]
fn check_message(case: &str, found: &str) {
    crate::snapshot::check("serve configuration", case, found);
}

fn set_mode(path: &Path, mode: u32) {
    fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
}

#[test]
fn state_files_of_another_user_are_reported() {
    let directory = tempfile::tempdir().unwrap();
    set_mode(directory.path(), 0o755);
    let dir = directory.path().join("state");
    let (zones, lock) = (dir.join("zones"), dir.join("lock"));
    fs::create_dir_all(&zones).unwrap();
    let find_fault = || check_stored_zones(&dir, &stranger());
    let is = |path: &Path, effect: Effect| {
        let (message, found) = find_fault().unwrap();
        assert!(
            found == effect
                && message.starts_with(&format!("{}: ", path.display()))
                && message.contains(" stranger "),
            "{message} {found:?}"
        );
    };
    // Modes of the state directory, its `zones` directory and the lock file.
    let set = |modes: [u32; 3]| {
        for (path, mode) in [&dir, &zones, &lock].into_iter().zip(modes) {
            set_mode(path, mode);
        }
    };
    set_mode(&zones, 0o777);
    is(&dir, Effect::Start);
    fs::write(&lock, "").unwrap();
    set([0o755, 0o777, 0o666]);
    assert_eq!(find_fault(), None, "no file is created in the directory itself");
    set([0o777, 0o700, 0o666]);
    is(&zones, Effect::Start);
    set([0o777, 0o777, 0o644]);
    is(&lock, Effect::Start);
    set([0o777, 0o755, 0o666]);
    is(&zones, Effect::Storage);
    set([0o700, 0o777, 0o666]);
    is(&zones, Effect::Start);
}

/// The file is replaced next to the target of the link; the link stays.
#[test]
fn replacing_a_linked_file_needs_access_to_the_directory_of_its_target() {
    let directory = tempfile::tempdir().unwrap();
    set_mode(directory.path(), 0o755);
    let [open, closed] = ["open", "closed"].map(|name| directory.path().join(name));
    for (path, mode) in [(&open, 0o777), (&closed, 0o755)] {
        fs::create_dir(path).unwrap();
        set_mode(path, mode);
    }
    let (real, link) = (closed.join("real"), open.join("link"));
    symlink(&real, &link).unwrap();
    let found = check_can_replace(&link, &stranger()).unwrap();
    assert!(found.starts_with(&format!("{}: ", link.display())), "{found}");
    check_message("link whose target does not exist", &found);
    fs::write(&real, "").unwrap();
    let found = check_can_replace(&link, &stranger()).unwrap();
    let expected = format!(" {}: ", closed.display());
    assert!(found.contains(&expected) && found.contains(" stranger "), "{found}");
    check_message("added-zones-file that the user may not replace", &found);
    set_mode(&closed, 0o777);
    set_mode(&open, 0o755);
    assert_eq!(check_can_replace(&link, &stranger()), None);
}

#[test]
fn an_empty_dnstap_file_is_written_directly() {
    let directory = tempfile::tempdir().unwrap();
    set_mode(directory.path(), 0o755);
    let path = directory.path().join("tap");
    let find_fault = || check_dnstap(&path, &stranger());
    assert!(find_fault().is_some(), "it cannot be made");
    fs::write(&path, "").unwrap();
    set_mode(&path, 0o666);
    assert_eq!(find_fault(), None);
    set_mode(&path, 0o644);
    check_message("dnstap file that the user may not write to", &find_fault().unwrap());
    fs::write(&path, "frames").unwrap();
    set_mode(&path, 0o666);
    assert!(find_fault().is_some(), "it cannot be renamed");
    set_mode(directory.path(), 0o777);
    assert_eq!(find_fault(), None);
}
