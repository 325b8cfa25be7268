//! Files that are there whole or not at all.

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::sync::atomic::{AtomicU32, Ordering};

static WRITTEN: AtomicU32 = AtomicU32::new(0);

/// Writes `octets` to `path`: to a file beside it first, which takes its place once it is on the disk. A file that
/// was at `path` stays as it was if that fails, and nothing half-written is left.
///
/// # Errors
/// What the system says.
pub fn write_atomically(path: &Path, octets: &[u8]) -> io::Result<()> {
    let Some(name) = path.file_name() else {
        return Err(io::Error::new(io::ErrorKind::InvalidInput, "the path names no file"));
    };
    let mut beside = std::ffi::OsString::from(".");
    beside.push(name);
    // Other writers, here and in other processes, have other names.
    beside.push(format!(".{}.{}", std::process::id(), WRITTEN.fetch_add(1, Ordering::Relaxed)));
    let beside = path.with_file_name(beside);
    let written = write_whole(&beside, octets).and_then(|()| fs::rename(&beside, path));
    written.inspect_err(|_| _ = fs::remove_file(&beside))
}

fn write_whole(path: &Path, octets: &[u8]) -> io::Result<()> {
    let mut file = File::create_new(path)?;
    file.write_all(octets)?;
    file.sync_all()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(folder: &Path) -> Vec<std::ffi::OsString> {
        let entries = fs::read_dir(folder).expect("a folder");
        entries.map(|entry| entry.expect("an entry").file_name()).collect()
    }

    #[test]
    fn a_file_is_written_and_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("out.json");
        write_atomically(&path, b"one").expect("written");
        write_atomically(&path, b"two").expect("replaced");
        assert_eq!(fs::read(&path).expect("is there"), b"two");
        assert_eq!(names(folder.path()), ["out.json"]);
    }

    #[test]
    fn nothing_is_left_where_the_file_cannot_take_its_place() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("taken");
        fs::create_dir(&path).expect("a folder");
        write_atomically(&path, b"one").expect_err("a folder is there");
        assert_eq!(names(folder.path()), ["taken"]);
        write_atomically(&folder.path().join("missing/out"), b"one").expect_err("no such folder");
        write_atomically(Path::new("/"), b"one").expect_err("no file name");
    }
}
