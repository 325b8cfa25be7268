//! The resolver cost model of document 000: how many signatures a resolver verifies, as a function of
//! the queries that it sends.
//!
//! [`Recording`] has the counts of a resolver for each window of time. [`TrafficRecorder`] counts
//! them from messages of a capture or of dnstap, and [`VerificationTotals`] adds the verified
//! signatures that the counting library (`tools/count-verifications`) has counted.
//!
//! [`fit()`] fits the model to recordings and examines whether it holds. [`predict()`] predicts what other algorithms need, and what
//! happens if all zones are signed.

mod columns;
mod distribution;
mod fit;
mod model;
mod predict;
mod record;
mod recording;
mod regression;
mod residuals;
mod simulate;
mod text;

pub use columns::{FitError, MIN_WINDOWS, Symbol};
pub use fit::{
    BiasTest, DistributionTest, Drift, Equality, FitOptions, Fits, HeldOut, LabelledRecording, RecordingFit,
    Slice, Stability, fit,
};
pub use model::{ComposedLine, Estimate, FittedLine, IntervalChoice, IntervalMethod, LineName, Model};
pub use predict::{
    AllSigned, CurvePoint, GivenLoad, GrowthPoint, HomeRouter, HomeRouterOptions, Input, Level,
    OctetPrediction, PredictError, PredictOptions, PredictedResolver, Prediction, Provenance, RankingError,
    Rate, RateSource, RatesError, Requirement, ResponseSizes, Scenario, Sizes, Volume, measured, predict,
    published, read_ranking, read_rates,
};
pub use record::{
    BoundedMap, CountedDomain, DomainCounter, Gap, GapReason, SpaceSaving, TimeSource, TotalsError,
    TrafficCounts, TrafficRecorder, VerificationTotals, Verified,
};
pub use recording::{
    DomainCounts, Recording, RecordingError, RecordingSetup, RecordingWriter, VerificationSource, Window,
    WindowFault,
};
pub use residuals::{ResidualTests, TestResult};
pub use simulate::{Noise, Simulation};

use crate::record::RunRecord;

/// A page cannot be rendered.
#[derive(Debug, thiserror::Error)]
#[error("cannot generate the page: {0:#}; this is a bug in nonesuch, please report it")]
pub struct PageError(#[from] minijinja::Error);

/// Returns the facts of machine and run for a page.
fn run_facts(record: &RunRecord) -> Vec<(String, String)> {
    let machine = &record.machine;
    [
        ("command", record.command.clone()),
        ("commit", record.commit.clone()),
        ("CPU", machine.cpu.clone()),
        ("CPUs", machine.cpus.to_string()),
        ("system", machine.system.clone()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .to_vec()
}
