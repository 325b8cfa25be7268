//! `nonesuch plan`: the resolver cost model.

mod error;
mod fit;
mod predict;
mod record;
mod report;

pub(crate) use error::Failure;

use crate::arguments::PlanCommand;
use crate::outcome::CommandOutcome;

pub(crate) fn run(command: &PlanCommand) -> Result<CommandOutcome, Failure> {
    match command {
        PlanCommand::Record(arguments) => Ok(record::run(arguments)?),
        PlanCommand::Fit(arguments) => fit::run(arguments),
        PlanCommand::Predict(arguments) => predict::run(arguments),
    }
}
