//! Errors of `nonesuch compare`.

use crate::files::FileError;
use crate::zones::ReadZoneError;
use nonesuch_lab::experiment::compare::{CompareError, SubjectError};

/// Why a comparison fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Zone(#[from] ReadZoneError),
    #[error(
        "{mechanism} cannot be compared: it needs a key on the server, and the servers of a comparison \
            have none; leave it out"
    )]
    NotCompared {
        mechanism: &'static str,
    },
    Compare(#[from] CompareError),
    Subject(#[from] SubjectError),
}
