//! `nonesuch adoption`: runs the program `nonesuch-adoption`, which is in a workspace of its own, because its query
//! engine takes minutes to compile.

use crate::arguments::AdoptionArguments;
use crate::outcome::CommandOutcome;
use nonesuch_lab::peers::find_program;
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::Command;

/// File name of the program.
const PROGRAM: &str = "nonesuch-adoption";

/// Why `nonesuch adoption` fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error(
        "the program {PROGRAM} is neither in the directory of nonesuch nor in PATH: build it in the source tree with \
         `just adoption`, or with `cargo build --release --manifest-path adoption/Cargo.toml --target-dir target`"
    )]
    Missing,
    #[error("cannot run {}: {source}", path.display())]
    Run { path: PathBuf, source: io::Error },
}

/// Replaces this process with the program. Returns only if this fails.
pub(crate) fn run(arguments: &AdoptionArguments) -> Result<CommandOutcome, Failure> {
    let path = beside().or_else(|| find_program(PROGRAM)).ok_or(Failure::Missing)?;
    let source = Command::new(&path).args(&arguments.arguments).exec();
    Err(Failure::Run { path, source })
}

/// Returns the program in the directory of this one, if it exists.
fn beside() -> Option<PathBuf> {
    let path = std::env::current_exe().ok()?.with_file_name(PROGRAM);
    path.is_file().then_some(path)
}
