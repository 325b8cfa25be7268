//! Errors of peers.

use std::io;
use std::net::SocketAddr;
use std::path::PathBuf;
use std::process::ExitStatus;

/// Reasons why a peer does not serve. `log` is the end of its output.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum PeerError {
    #[error("{peer}: not installed: {programs}; package: {package}")]
    Missing { peer: &'static str, programs: String, package: &'static str },
    #[error("{peer}: cannot {what}; docs/peers.md lists what each server can do")]
    Unsupported { peer: &'static str, what: &'static str },
    #[error("{what} \"{value}\": {reason}")]
    Setup { what: &'static str, value: String, reason: &'static str },
    #[error("{}: cannot be read: {source}", path.display())]
    Read { path: PathBuf, source: io::Error },
    #[error("the zone of a server cannot be read: {0}")]
    Zone(#[from] Box<nonesuch_zone::ReadError>),
    #[error("{}: cannot be written: {source}", path.display())]
    Write { path: PathBuf, source: io::Error },
    #[error("{}: not a public key file: {source}", path.display())]
    Key { path: PathBuf, source: nonesuch_dnssec::keys::KeyFileError },
    #[error("the system has no random numbers")]
    Random,
    #[error("no free port on {ip}: {source}")]
    Port { ip: std::net::Ipv4Addr, source: io::Error },
    #[error("cannot start {}: {source}", program.display())]
    Start { program: PathBuf, source: io::Error },
    #[error("{command} failed; output: {log}")]
    Step { command: String, log: String },
    #[error("{peer} ended before it answered ({status}); configuration and log are in {}; end of the log: {log}", folder.display())]
    Ended { peer: &'static str, status: ExitStatus, folder: PathBuf, log: String },
    #[error("{peer} did not answer at {address} within {seconds} s; configuration and log are in {}; end of the log: {log}", folder.display())]
    Silent { peer: &'static str, address: SocketAddr, seconds: u64, folder: PathBuf, log: String },
}

impl PeerError {
    /// Whether another process took the port between the choice of the port and the start.
    pub(super) fn is_port_taken(&self) -> bool {
        matches!(self, Self::Ended { log, .. } | Self::Silent { log, .. }
            if log.to_ascii_lowercase().contains("address already in use"))
    }
}
