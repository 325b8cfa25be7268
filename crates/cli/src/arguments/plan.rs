//! Arguments of `plan`, the resolver cost model.

mod fit;
mod predict;
mod record;

pub(crate) use fit::{PlanFitArguments, PlanOutputArguments, RecordingArgument};
pub(crate) use predict::{PlanPredictArguments, RatesArgument};
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
    /// Fit the cost model to recordings of resolvers, and test whether it holds.
    ///
    /// Fits f1: R = r·Q + β1, f2: R_s = α_s·R + β2, f3: S = s·R_s + β3, f4: S_v = α_v·S + β4 and their
    /// composition f: S_v = a·Q + b. Q: queries to authoritative servers; R: responses; R_s: responses
    /// with signatures; S: signatures in them; S_v: verified signatures. Prints the parameters with
    /// 95 % confidence intervals, tests of the residuals, and the four criteria: several resolvers,
    /// stable over time, several client populations, predictions of held-out windows.
    Fit(PlanFitArguments),
    /// Predict what a resolver needs to verify signatures of other algorithms.
    ///
    /// Scenario 1: all signed zones change the algorithm. Scenario 2: all zones are signed, popular
    /// domains first. Without a recording, predicts for the resolver of the published study (150
    /// verified signatures a second), or for the load that the options give.
    Predict(Box<PlanPredictArguments>),
}
