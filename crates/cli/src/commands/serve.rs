//! `nonesuch serve`: serves the zones of a configuration, or one file. Both use the same server;
//! for one file, the configuration is created from the arguments.

use crate::arguments::{CheckScope, ServeArguments};
use crate::outcome::CommandOutcome;
use crate::server::startup::{file, from_config};
use crate::server::{ServerError, background, check};
use nonesuch_net::keep_little_free_memory;

/// Serves, starts a server in the background, or checks a configuration. `--strict` implies
/// `--check=zones`.
pub(crate) fn run(arguments: &ServeArguments) -> Result<CommandOutcome, ServerError> {
    if arguments.background {
        return background::run(arguments);
    }
    keep_little_free_memory();
    match (&arguments.config, arguments.check) {
        (Some(path), Some(_)) if arguments.strict => {
            check::run(path, CheckScope::Zones, true, arguments.json)
        }
        (Some(path), Some(scope)) => check::run(path, scope, false, arguments.json),
        (Some(path), None) => from_config::run(path, arguments.json),
        (None, Some(_)) => Err(ServerError::CheckWithoutConfiguration),
        (None, None) => file::run(arguments),
    }
}
