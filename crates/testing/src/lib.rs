//! Helpers for the tests of all crates: programs and public data that may be missing, and a browser.
//!
//! Every skip is printed to standard error. If the environment variable `NONESUCH_SKIPS` names a
//! file, the skip is also recorded there for CI. `.ci/run` counts the skips and fails if
//! `.ci/skips` does not list one of them.

mod browser;

pub use browser::Browser;

use std::fs::OpenOptions;
use std::io::Write as _;
use std::path::{Path, PathBuf};

/// Returns the default value from the calling function if one of these programs is not installed,
/// and records a skip. This ends a test, or a function that returns an `Option`.
#[macro_export]
macro_rules! require_peer {
    ($($program:expr),+ $(,)?) => {
        if $(!$crate::is_installed($program))||+ {
            return Default::default();
        }
    };
}

/// Prints that the current test, or a part of it, is skipped, and records `reason` and the name of
/// the test. The caller then returns: this function does not end the test.
///
/// # Panics
/// If the file that `NONESUCH_SKIPS` names cannot be written.
pub fn record_skip(reason: &str) {
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
pub fn is_installed(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let found = std::env::split_paths(&path).any(|directory| directory.join(program).is_file());
    if !found {
        record_skip(&format!("{program} is not installed"));
    }
    found
}

/// Returns the path of a file or directory of the public data, in the directory `NONESUCH_DATA`. If
/// this variable is not set, records a skip and returns `None`.
#[must_use]
pub fn public_data(file: &str) -> Option<PathBuf> {
    let directory = std::env::var_os("NONESUCH_DATA");
    if directory.is_none() {
        record_skip("NONESUCH_DATA is not set");
    }
    directory.map(|directory| Path::new(&directory).join(file))
}
