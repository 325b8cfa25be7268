//! Atomic files: an output is written into a file beside it, which takes its place when it is whole.
//!
//! A run locks its file as long as it writes (flock), and the system removes the lock when the run ends, however it ends. So an
//! atomic file without a lock is abandoned: the next run that writes into the directory removes it.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use tempfile::NamedTempFile;

/// How the names of atomic files begin and end; letters and digits stand between.
const ENDS: [&str; 2] = [".nonesuch-", ".part"];
/// Attempts at a file that no other run takes for an abandoned one.
const ATTEMPTS: usize = 100;

/// Creates an atomic file of `mode` in `folder`, which is removed unless it is persisted, and removes abandoned ones there.
pub(crate) fn create(folder: &Path, mode: u32) -> io::Result<NamedTempFile> {
    remove_abandoned(folder);
    let [prefix, suffix] = ENDS;
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(suffix).permissions(Permissions::from_mode(mode));
    for _ in 0..ATTEMPTS {
        let file = builder.tempfile_in(folder)?;
        match file.as_file().try_lock() {
            // Between making and locking it, another run may have removed it.
            Ok(()) if file.as_file().metadata()?.nlink() == 0 => {}
            Err(TryLockError::WouldBlock) => {}
            // Where files cannot be locked, nobody finds one unlocked either.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Removes the files that killed runs abandoned in `folder`; a file that cannot be removed stays.
fn remove_abandoned(folder: &Path) {
    let Ok(entries) = fs::read_dir(folder) else { return };
    for entry in entries.flatten().filter(|entry| is_atomic_name(&entry.file_name())) {
        // Another user's file, or one that has gone meanwhile: not ours to remove.
        let _ = remove_unlocked(&entry.path());
    }
}

fn is_atomic_name(name: &OsStr) -> bool {
    let [prefix, suffix] = ENDS;
    let middle = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(suffix));
    middle
        .is_some_and(|middle| !middle.is_empty() && middle.bytes().all(|octet| octet.is_ascii_alphanumeric()))
}

/// The lock is held until the file is gone: nobody locks it in between and goes on writing.
fn remove_unlocked(path: &Path) -> io::Result<()> {
    // Neither a link nor a pipe, which would block, is one of ours.
    let flags = libc::O_NOFOLLOW | libc::O_NONBLOCK | libc::O_NOCTTY;
    let file = File::options().read(true).write(true).custom_flags(flags).open(path)?;
    if file.metadata()?.is_file() && file.try_lock().is_ok() {
        fs::remove_file(path)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<String> {
        let entries = fs::read_dir(folder).expect("a folder").map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn abandoned_files_are_removed_and_locked_files_stay() {
        let folder = tempfile::tempdir().expect("a folder");
        let folder = folder.path();
        let others = [".nonesuch-.part", ".nonesuch-a-b.part", ".nonesuch-notes", "nonesuch-ab12Cd.part"];
        for name in others.iter().chain(&[".nonesuch-ab12Cd.part", ".nonesuch-x.part"]) {
            fs::write(folder.join(name), "left").expect("written");
        }
        std::os::unix::fs::symlink("nowhere", folder.join(".nonesuch-link.part")).expect("a link");
        let first = create(folder, 0o600).expect("made");
        let second = create(folder, 0o644).expect("made");
        let mut expected: Vec<String> = others.iter().map(|name| (*name).to_owned()).collect();
        expected.push(".nonesuch-link.part".to_owned());
        for file in [&first, &second] {
            expected.push(file.path().file_name().expect("a name").to_string_lossy().into_owned());
        }
        expected.sort();
        assert_eq!(names(folder), expected);
        assert_eq!(first.as_file().metadata().expect("metadata").permissions().mode() & 0o777, 0o600);
        first.persist(folder.join("whole")).expect("persisted");
        drop(second);
        assert_eq!(names(folder).len(), others.len() + 2);
    }
}
