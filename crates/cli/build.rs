//! Passes the commit of the program to the crate, for the records of the laboratory.

use std::path::Path;
use std::process::Command;

/// Files and directories whose change makes the commit dirty, relative to this crate.
const SOURCES: [&str; 5] =
    ["..", "../../Cargo.toml", "../../Cargo.lock", "../../.cargo", "../../experiments"];

fn main() {
    println!("cargo::rerun-if-changed=build.rs");
    let commit = git(&["describe", "--always", "--dirty", "--tags", "--abbrev=12"]);
    println!("cargo::rustc-env=NONESUCH_COMMIT={}", commit.as_deref().unwrap_or("unknown"));
    // A commit or checkout changes the log of HEAD. A change of any source makes the tree dirty.
    let log = git(&["rev-parse", "--git-path", "logs/HEAD"]);
    for path in log.iter().map(String::as_str).chain(SOURCES) {
        // Cargo runs this program each time if a named file does not exist.
        if Path::new(path).exists() {
            println!("cargo::rerun-if-changed={path}");
        }
    }
}

/// Returns the output of git in the directory of this crate. Returns `None` outside of the
/// project's repository.
fn git(arguments: &[&str]) -> Option<String> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR"));
    let run = |arguments: &[&str]| {
        let output = Command::new("git").arg("-C").arg(directory).args(arguments).output().ok()?;
        let text = String::from_utf8(output.stdout).ok()?.trim().to_owned();
        (output.status.success() && !text.is_empty()).then_some(text)
    };
    // A copy of the sources inside another repository does not have that repository's commit.
    let top = run(&["rev-parse", "--show-toplevel"])?;
    let workspace = directory.parent()?.parent()?.canonicalize().ok()?;
    if Path::new(&top).canonicalize().ok()? != workspace {
        return None;
    }
    run(arguments)
}
