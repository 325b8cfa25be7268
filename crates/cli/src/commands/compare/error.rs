//! Errors of `nonesuch compare`.

use crate::files::FileError;
use crate::zones::ReadZoneError;
use nonesuch_lab::experiment::compare::{CompareError, ComparedZoneError};

/// Why a comparison fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Zone(#[from] ReadZoneError),
    Compare(#[from] CompareError),
    ComparedZone(#[from] ComparedZoneError),
}
