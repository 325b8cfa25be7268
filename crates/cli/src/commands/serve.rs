//! `nonesuch serve`: the zones of a configuration, or one file. Both are the same server, of a configuration that was read or was
//! made of the arguments.

use super::{serve_check, serve_configured, serve_file};
use crate::Outcome;
use crate::arguments::ServeArguments;
use crate::error::Failure;
use nonesuch_net::keep_little_free_memory;

pub(crate) fn run(arguments: &ServeArguments) -> Result<Outcome, Failure> {
    keep_little_free_memory();
    match (&arguments.config, arguments.check) {
        (Some(path), Some(scope)) => serve_check::run(path, scope, arguments.json),
        (Some(path), None) => serve_configured::run(path, arguments.json),
        (None, Some(_)) => Err(Failure::CheckWithoutConfiguration),
        (None, None) => serve_file::run(arguments),
    }
}
