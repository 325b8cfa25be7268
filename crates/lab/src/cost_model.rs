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
