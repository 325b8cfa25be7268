//! Helpers for the tests of all crates: programs and public data that may be missing.
//!
//! Every skip is printed to standard error. If the environment variable `NONESUCH_SKIPS` names a
//! file, the skip is also recorded there for CI. `.ci/run` counts the skips and fails if
//! `.ci/skips` does not list one of them.

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Returns the default value from the calling function if one of these programs is not installed,
/// and records a skip. This ends a test, or a function that returns an `Option`.
#[macro_export]
macro_rules! require_peer {
    ($($program:expr),+ $(,)?) => {
        if $(!$crate::installed($program))||+ {
            return Default::default();
        }
    };
}

/// Prints that the current test, or a part of it, is skipped, and records `reason` and the name of
/// the test.
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

/// Returns whether `program` is in `PATH`, and records a skip if it is not.
#[must_use]
pub fn installed(program: &str) -> bool {
    find(program, &[]).is_some()
}

/// Returns the path of `program` in `PATH`, `/usr/sbin` or `/usr/local/sbin`. If it is in none of
/// them, records a skip and returns `None`.
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

/// Returns the path of a file or directory of the public data, in the directory `NONESUCH_DATA`. If
/// this variable is not set, records a skip and returns `None`.
#[must_use]
pub fn data(file: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("NONESUCH_DATA");
    if folder.is_none() {
        skip("NONESUCH_DATA is not set");
    }
    folder.map(|folder| Path::new(&folder).join(file))
}
