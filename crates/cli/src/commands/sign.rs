//! `nonesuch zone sign`: signs a complete zone, a new version of a signed zone, or only its key
//! set.

mod error;
mod full;
mod incremental;
mod key_set;
mod options;
mod outcome;
mod previous;
mod proofs;
mod write;

pub(crate) use error::Failure;

use crate::arguments::SignArguments;
use crate::files::{is_missing, is_same_path};
use crate::outcome::CommandOutcome;

pub(crate) fn run(arguments: &SignArguments) -> Result<CommandOutcome, Failure> {
    if arguments.only_keys {
        return key_set::run(arguments);
    }
    let arguments = &without_missing_previous(arguments)?;
    let is_from_scratch = arguments.resign.previous.is_none() && !arguments.resign.compiled;
    match arguments.file.as_deref().filter(|_| is_from_scratch) {
        Some(file) => full::run(arguments, file),
        None => incremental::run(arguments),
    }
}

/// Removes the previous zone from the arguments if it is the output file and does not exist yet, as
/// in the first run of a command that is repeated.
fn without_missing_previous(arguments: &SignArguments) -> Result<SignArguments, Failure> {
    let mut arguments = arguments.clone();
    let resign = &mut arguments.resign;
    let Some(path) = resign.previous.as_ref().filter(|path| is_missing(path)) else { return Ok(arguments) };
    // Another missing file is a typing error or a lost file. If the zone were signed from scratch,
    // it could get a serial that was already published.
    let is_first = arguments.output.as_ref().is_some_and(|output| is_same_path(path, output));
    if !is_first || resign.changes.is_some() {
        return Err(Failure::NoPreviousZone { path: path.clone() });
    }
    tracing::info!(name: "previous-zone-missing", "{}: no previous signed zone: signing from scratch", path.display());
    if let Some(changes_out) = resign.changes_out.take() {
        tracing::warn!(name: "changes-not-written", "{}: not written: no previous signed zone", changes_out.display());
    }
    resign.previous = None;
    Ok(arguments)
}
