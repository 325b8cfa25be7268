//! Atomic files: an output is written to a temporary file in the same directory, which is renamed
//! to the output path when it is complete.
//!
//! A process holds a lock (flock) on its temporary file while it writes. The system releases the
//! lock when the process ends for any reason. Therefore a temporary file without a lock is
//! abandoned, and the next process that writes to the directory removes it.

use std::ffi::OsStr;
use std::fs::{self, File, Permissions, TryLockError};
use std::io;
use std::os::unix::fs::{MetadataExt as _, OpenOptionsExt as _, PermissionsExt as _};
use std::path::Path;
use tempfile::NamedTempFile;

/// Prefix and suffix of the names of temporary files; random letters and digits are between them.
const PREFIX_AND_SUFFIX: [&str; 2] = [".nonesuch-", ".part"];
/// Maximum attempts to create a file that no other process removes as abandoned.
const MAX_ATTEMPTS: usize = 100;

/// Creates a temporary file with the permissions `mode` in `directory`, and removes abandoned ones
/// there. The file is removed on drop unless it is persisted.
///
/// # Errors
/// The file cannot be created, or other processes removed each of [`MAX_ATTEMPTS`] files.
pub(crate) fn create(directory: &Path, mode: u32) -> io::Result<NamedTempFile> {
    remove_abandoned(directory);
    let [prefix, suffix] = PREFIX_AND_SUFFIX;
    let mut builder = tempfile::Builder::new();
    builder.prefix(prefix).suffix(suffix).permissions(Permissions::from_mode(mode));
    for _ in 0..MAX_ATTEMPTS {
        let file = builder.tempfile_in(directory)?;
        match file.as_file().try_lock() {
            // Another process may have removed the file between its creation and its lock.
            Ok(()) if file.as_file().metadata()?.nlink() == 0 => {}
            Err(TryLockError::WouldBlock) => {}
            // If the file system does not support locks, no process can lock a temporary file in
            // order to remove it.
            Ok(()) | Err(TryLockError::Error(_)) => return Ok(file),
        }
    }
    Err(io::ErrorKind::ResourceBusy.into())
}

/// Removes the files that killed processes left in `directory`. Ignores files that cannot be
/// removed.
fn remove_abandoned(directory: &Path) {
    let Ok(entries) = fs::read_dir(directory) else { return };
    for entry in entries.flatten().filter(|entry| is_atomic_name(&entry.file_name())) {
        // Fails if the file belongs to another user, or if another process has removed it.
        let _ = remove_unlocked(&entry.path());
    }
}

/// Whether `name` is the name of a temporary file of this module.
fn is_atomic_name(name: &OsStr) -> bool {
    let [prefix, suffix] = PREFIX_AND_SUFFIX;
    let middle = name.to_str().and_then(|name| name.strip_prefix(prefix)?.strip_suffix(suffix));
    middle
        .is_some_and(|middle| !middle.is_empty() && middle.bytes().all(|octet| octet.is_ascii_alphanumeric()))
}

/// Removes a file that is not locked. The lock is held until the file is removed, so that no other
/// process can lock it and continue to write.
fn remove_unlocked(path: &Path) -> io::Result<()> {
    // A symbolic link or a pipe cannot be one of these files, and opening a pipe would block.
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

    fn names(directory: &Path) -> Vec<String> {
        let entries = fs::read_dir(directory).expect("a directory").map(|entry| entry.expect("an entry"));
        let mut names: Vec<String> =
            entries.map(|entry| entry.file_name().to_string_lossy().into_owned()).collect();
        names.sort();
        names
    }

    #[test]
    fn abandoned_files_are_removed_and_locked_files_stay() {
        let directory = tempfile::tempdir().expect("a directory");
        let directory = directory.path();
        let others = [".nonesuch-.part", ".nonesuch-a-b.part", ".nonesuch-notes", "nonesuch-ab12Cd.part"];
        for name in others.iter().chain(&[".nonesuch-ab12Cd.part", ".nonesuch-x.part"]) {
            fs::write(directory.join(name), "left").expect("written");
        }
        std::os::unix::fs::symlink("nowhere", directory.join(".nonesuch-link.part")).expect("a link");
        let first = create(directory, 0o600).expect("made");
        let second = create(directory, 0o644).expect("made");
        let mut expected: Vec<String> = others.iter().map(|name| (*name).to_owned()).collect();
        expected.push(".nonesuch-link.part".to_owned());
        for file in [&first, &second] {
            expected.push(file.path().file_name().expect("a name").to_string_lossy().into_owned());
        }
        expected.sort();
        assert_eq!(names(directory), expected);
        assert_eq!(first.as_file().metadata().expect("metadata").permissions().mode() & 0o777, 0o600);
        first.persist(directory.join("whole")).expect("persisted");
        drop(second);
        assert_eq!(names(directory).len(), others.len() + 2);
    }
}
