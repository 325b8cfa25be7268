//! `nonesuch plan`: the resolver cost model.

mod record;

use crate::arguments::PlanCommand;
use crate::outcome::CommandOutcome;
use record::RecordError;

/// Why a command of the cost model fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    Record(#[from] RecordError),
}

impl Failure {
    /// Whether the system is the cause.
    pub(crate) const fn is_caused_by_system(&self) -> bool {
        matches!(self, Self::Record(failure) if failure.is_caused_by_system())
    }
}

pub(crate) fn run(command: &PlanCommand) -> Result<CommandOutcome, Failure> {
    match command {
        PlanCommand::Record(arguments) => Ok(record::run(arguments)?),
    }
}
