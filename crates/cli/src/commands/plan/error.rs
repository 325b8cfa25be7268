//! Errors of `nonesuch plan`.

use super::record::RecordError;
use crate::files::FileError;
use nonesuch_lab::cost_model::{FitError, PredictError, RankingError, RatesError, RecordingError};
use nonesuch_lab::record;
use nonesuch_lab::report::PageError;

/// Why a command of the cost model fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Recording(#[from] RecordingError),
    Fit(#[from] FitError),
    Rates(#[from] RatesError),
    Ranking(#[from] RankingError),
    Predict(#[from] PredictError),
    Page(#[from] PageError),
    RunRecord(#[from] record::RecordError),
    Record(#[from] RecordError),
}

impl Failure {
    /// Whether the system is the cause.
    pub(crate) const fn is_caused_by_system(&self) -> bool {
        matches!(self, Self::Record(failure) if failure.is_caused_by_system())
    }
}
