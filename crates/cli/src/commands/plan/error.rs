//! Errors of `nonesuch plan`.

use crate::files::FileError;
use nonesuch_lab::cost_model::{FitError, PageError, PredictError, RankingError, RatesError, RecordingError};
use nonesuch_lab::record::RecordError;

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
    Record(#[from] RecordError),
}
