//! Arguments of `plan`, the resolver cost model.

mod record;

pub(crate) use record::PlanRecordArguments;

use clap::Subcommand;

#[derive(Debug, Subcommand)]
pub(crate) enum PlanCommand {
    /// Record the work of a resolver in windows of time.
    ///
    /// Counts queries to servers, responses, signatures in them, and verified signatures, until the
    /// source ends, the duration is over, or SIGINT or SIGTERM arrives. A recording in the directory
    /// is continued.
    Record(Box<PlanRecordArguments>),
}
