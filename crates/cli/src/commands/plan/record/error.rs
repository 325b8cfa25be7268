//! Errors of `nonesuch plan record`.

use crate::commands::ctl;
use crate::files::FileError;
use crate::trust_anchors::TrustAnchorsError;
use nonesuch_lab::capture::CaptureError;
use nonesuch_lab::cost_model::{RecordingError, TotalsError};
use std::io;
use std::path::PathBuf;

/// Why nothing more is recorded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum RecordError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Capture(#[from] CaptureError),
    #[error(transparent)]
    Totals(#[from] TotalsError),
    #[error(transparent)]
    Control(#[from] ctl::Failure),
    #[error(transparent)]
    Anchor(#[from] TrustAnchorsError),
    #[error("{}: cannot listen: {source}: name a socket in a directory that you may write to", path.display())]
    Listen { path: PathBuf, source: io::Error },
    #[error("{}: another process listens on the socket: end it, or name another socket", path.display())]
    SocketInUse { path: PathBuf },
    #[error(
        "{}: nothing was recorded: the input has {others} other messages, but none between the resolver and a \
        server: name its addresses with --resolver, and the ports of servers with --port",
        path.display()
    )]
    NothingOfResolver { path: PathBuf, others: u64 },
    #[error("cannot start: {0}: raise the limits on threads and open files")]
    Start(io::Error),
}

impl RecordError {
    /// Whether the system is the cause.
    pub(crate) const fn is_caused_by_system(&self) -> bool {
        matches!(self, Self::Start(_))
    }
}
