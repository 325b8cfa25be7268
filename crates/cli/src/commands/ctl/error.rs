//! Errors of `nonesuch ctl`.

use crate::config::Problems;
use crate::files::FileError;
use nonesuch_proto::Name;
use std::io;
use std::path::PathBuf;

/// Why a request to a running server fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum Failure {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("the configuration is refused:\n{0}")]
    Configuration(#[from] Problems),
    #[error("no thread could be started: {0}: raise the limits on threads and open files")]
    Thread(io::Error),
    #[error(
        "{}: no server answers there: {source}; is it running, and may you open the socket? --socket names another",
        path.display()
    )]
    Unreachable { path: PathBuf, source: io::Error },
    #[error(
        "{}: the server has given no sign of life for {seconds} s, and what was asked may still be carried out: look at its log, or wait \
         longer with --timeout",
        path.display()
    )]
    Silent { path: PathBuf, seconds: u64 },
    #[error(
        "{}: the server ended the connection before its answer was whole, as it does when it stops: its log says why",
        path.display()
    )]
    Ended { path: PathBuf },
    #[error("{}: what answers there is no server of this version", path.display())]
    Answer { path: PathBuf },
    #[error("{}: names no control-socket: add one, and start the server again, or name the one that it has with --socket", path.display())]
    NoControlSocket { path: PathBuf },
    #[error("the server does not export zone {zone}")]
    NotExported { zone: Name },
}

impl Failure {
    /// Whether the system is the cause.
    pub(crate) const fn is_of_system(&self) -> bool {
        matches!(self, Self::Thread(_))
    }
}
