//! Errors of a testbed.

use crate::cost_model::{FitError, RecordingError};
use crate::link::LinkError;
use crate::load::{LoadError, QueryListError};
use crate::measure::ServerError;
use crate::peers::PeerError;
use crate::tree::TreeError;
use nonesuch_net::namespace::NamespaceError;
use nonesuch_net::{NetError, TlsError};
use std::io;
use std::path::PathBuf;

/// Reasons why a testbed cannot be set up or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TestbedError {
    #[error("{0}; run this experiment as root, or with `unshare --map-root-user --user`")]
    Namespace(#[from] NamespaceError),
    #[error("{0}; run this experiment as root, or with `unshare --map-root-user --user`")]
    Link(#[from] LinkError),
    #[error(transparent)]
    Tree(#[from] TreeError),
    #[error("the tree has no signed root zone, but the resolver validates")]
    NoAnchor,
    #[error("{what}: {source}")]
    Server { what: String, source: ServerError },
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error(transparent)]
    Queries(QueryListError),
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("a client of the resolver: {0}")]
    Client(io::Error),
    #[error("the metrics of an authoritative server cannot be read: {0}")]
    Metrics(io::Error),
    #[error("the server of composed responses: {0}")]
    Composer(#[from] NetError),
    #[error("no certificate for DNS over TLS: {0}")]
    Certificate(String),
    #[error(transparent)]
    Tls(#[from] TlsError),
    #[error("{0} sends no dnstap messages to this recorder")]
    NoDnstap(&'static str),
    #[error("enumerate: {0}")]
    Enumerate(String),
    #[error("plan record: {0}")]
    Record(String),
    #[error(transparent)]
    Recording(#[from] RecordingError),
    #[error(transparent)]
    Fit(#[from] FitError),
    #[error("{0} cannot answer over TLS")]
    NoTls(&'static str),
}
