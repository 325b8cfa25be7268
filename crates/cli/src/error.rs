//! Errors of commands, and the exit status.

use crate::commands::{
    adoption, check, compare, compile, ctl, diff, enumerate, generate, key, lab, load, plan, proxy, query,
    sign, validate, verify,
};
use crate::files::{FileError, OutputError};
use crate::server;
use crate::zones::ZoneError;
use std::error::Error;

/// Why a command fails. Each command has its own error type.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum CommandError {
    Adoption(#[from] adoption::Failure),
    Check(#[from] check::Failure),
    Compare(#[from] compare::Failure),
    Compile(#[from] compile::Failure),
    Control(#[from] ctl::Failure),
    Diff(#[from] diff::Failure),
    Enumerate(#[from] enumerate::Failure),
    File(#[from] FileError),
    Generate(#[from] generate::Failure),
    Key(#[from] key::Failure),
    Lab(#[from] lab::Failure),
    Load(#[from] load::Failure),
    Plan(#[from] plan::Failure),
    Proxy(#[from] proxy::Failure),
    Query(#[from] query::QueryError),
    Resolve(#[from] server::resolver::ResolveError),
    Server(#[from] server::ServerError),
    Sign(#[from] sign::Failure),
    Validate(#[from] validate::Failure),
    Verify(#[from] verify::Failure),
    Zone(#[from] ZoneError),
}

impl CommandError {
    /// The exit status:
    ///
    /// - 0: the reader of the output has closed it, which is not an error
    /// - 1: the command ran and its answer is negative
    /// - 2: all other errors
    /// - 3: the system prevents the start of a server, or of the thread that sends a control
    ///   request
    pub(crate) fn exit_status(&self) -> u8 {
        match self {
            failure if is_reader_gone(failure) => 0,
            Self::Server(failure) if failure.is_negative() => 1,
            Self::Server(failure) if failure.is_caused_by_system() => 3,
            Self::Resolve(failure) if failure.is_caused_by_system() => 3,
            Self::Control(failure) if failure.is_caused_by_system() => 3,
            Self::Plan(failure) if failure.is_caused_by_system() => 3,
            _ => 2,
        }
    }
}

/// Whether the reader of standard output has closed it.
fn is_reader_gone(failure: &CommandError) -> bool {
    let mut cause: Option<&(dyn Error + 'static)> = Some(failure);
    while let Some(error) = cause {
        if let Some(output) = error.downcast_ref::<OutputError>() {
            return output.is_broken_pipe();
        }
        cause = error.source();
    }
    false
}
