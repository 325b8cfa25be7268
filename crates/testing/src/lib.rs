//! What tests of all crates share: programs and public data that may be missing.
//!
//! A skip is never silent: it is said, and recorded for CI in the file that `NONESUCH_SKIPS` names. `.ci/run` counts the
//! skips and fails on one that `.ci/skips` does not list.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Ends the test, or the function that returns an `Option`, where one of these programs is not installed; records that.
#[macro_export]
macro_rules! require_peer {
    ($($program:expr),+ $(,)?) => {
        if $(!$crate::installed($program))||+ {
            return Default::default();
        }
    };
}

/// Says that the present test, or a part of it, is skipped, and records `reason` and the test's name.
///
/// # Panics
/// If the file that `NONESUCH_SKIPS` names cannot be written.
pub fn skip(reason: &str) {
    eprintln!("skipped: {reason}");
    let Some(file) = std::env::var_os("NONESUCH_SKIPS") else {
        return;
    };
    let line = format!("{reason}\t{}\n", std::thread::current().name().unwrap_or("?"));
    let opened = OpenOptions::new().create(true).append(true).open(file);
    opened
        .and_then(|mut file| file.write_all(line.as_bytes()))
        .expect("NONESUCH_SKIPS names a file that can be written");
}

/// Whether `program` is in `PATH`; records a skip where it is not.
#[must_use]
pub fn installed(program: &str) -> bool {
    find(program, &[]).is_some()
}

/// The path of `program`, in `PATH` or where servers are; records a skip where there is none.
#[must_use]
pub fn locate(program: &str) -> Option<PathBuf> {
    find(program, &["/usr/sbin", "/usr/local/sbin"])
}

fn find(program: &str, more: &[&str]) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders = std::env::split_paths(&path).chain(more.iter().map(PathBuf::from));
    let found = folders.map(|folder| folder.join(program)).find(|path| path.is_file());
    if found.is_none() {
        skip(&format!("{program} is not installed"));
    }
    found
}

/// A file or folder of the public data, below `NONESUCH_DATA`; records a skip where that is not set.
#[must_use]
pub fn data(file: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("NONESUCH_DATA");
    if folder.is_none() {
        skip("NONESUCH_DATA is not set");
    }
    folder.map(|folder| Path::new(&folder).join(file))
}
