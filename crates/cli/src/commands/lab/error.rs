//! Errors of `nonesuch lab`.

use crate::files::FileError;
use nonesuch_lab::experiment::{DefinitionError, PresentationError, RunError, StoreError};
use nonesuch_lab::measure::{CountError, EchoError, ExamineError, FollowError};

/// Why an experiment fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Definition(#[from] DefinitionError),
    Experiment(#[from] RunError),
    Results(#[from] StoreError),
    Report(#[from] PresentationError),
    Orders(#[from] FollowError),
    Examine(#[from] ExamineError),
    Echo(#[from] EchoError),
    Measurement(#[from] CountError),
}
