//! `nonesuch resolve`: resolves names for clients until it is stopped.

use crate::arguments::ResolveArguments;
use crate::outcome::CommandOutcome;
use crate::server::resolver::{self, ResolveError};

pub(crate) fn run(arguments: &ResolveArguments) -> Result<CommandOutcome, ResolveError> {
    resolver::run(arguments)
}
