//! Errors of `nonesuch lab`.

use crate::files::FileError;
use nonesuch_lab::capture::{CaptureError, CopyError, KeyError};
use nonesuch_lab::experiment::{DefinitionError, MergeError, PresentationError, RunError, StoreError};
use nonesuch_lab::measure::{CountError, EchoError, ExamineError, FollowError};
use nonesuch_lab::tree::TreeError;
use std::path::PathBuf;

/// Why a command of the laboratory fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Definition(#[from] DefinitionError),
    Experiment(#[from] RunError),
    #[error("these experiments failed: {0}")]
    Experiments(String),
    Results(#[from] StoreError),
    Merge(#[from] MergeError),
    Report(#[from] PresentationError),
    Follow(#[from] FollowError),
    Examine(#[from] ExamineError),
    Echo(#[from] EchoError),
    Measurement(#[from] CountError),
    Tree(#[from] TreeError),
    #[error("{}: {source}", path.display())]
    Description {
        /// The file.
        path: PathBuf,
        /// The fault of the description.
        source: TreeError,
    },
    Capture(#[from] CaptureError),
    Copy(#[from] CopyError),
    AnonymisationKey(#[from] KeyError),
    CaptureFormat(#[from] CaptureFormatError),
}

/// The format of a capture is unknown.
#[derive(Debug, thiserror::Error)]
#[error("{}: unknown format: name an output file with the suffix .pcap or .dnstap, or list the queries with \
    --queries", path.display())]
pub(crate) struct CaptureFormatError {
    pub(crate) path: PathBuf,
}
