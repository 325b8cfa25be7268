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
    #[error("the configuration is rejected:\n{0}")]
    Configuration(#[from] Problems),
    #[error("cannot start a thread: {0}: raise the limits on threads and open files")]
    Thread(io::Error),
    #[error(
        "{}: cannot connect to the server: {source}; check that it runs and that you may open the \
            socket, or name another with --socket",
        path.display()
    )]
    Unreachable { path: PathBuf, source: io::Error },
    #[error(
        "{}: no message from the server for {seconds} s; it may still carry out the request: see its \
            log, or wait longer with --timeout",
        path.display()
    )]
    Timeout { path: PathBuf, seconds: u64 },
    #[error(
        "{}: the server closed the connection before the end of its response, as it does when it stops: \
            see its log",
        path.display()
    )]
    ConnectionClosed { path: PathBuf },
    #[error("{}: the response is not from a server of this version", path.display())]
    UnexpectedResponse { path: PathBuf },
    #[error("{}: control-socket is not set: set it and restart the server, or name the socket of the \
        server with --socket", path.display())]
    NoControlSocket { path: PathBuf },
    /// Ends the writing of an export that the server refused. Never printed: the refusal of the
    /// server is printed instead.
    #[error("the server does not export zone {zone}")]
    NotExported { zone: Name },
}

impl Failure {
    /// Whether the system is the cause.
    pub(crate) const fn is_caused_by_system(&self) -> bool {
        matches!(self, Self::Thread(_))
    }
}
