//! Errors that prevent the start of a server, and errors of `--check`.

use crate::config::Problems;
use crate::files::FileError;
use crate::metrics::MetricsError;
use crate::root::RootError;
use crate::server::control::socket::SocketError;
use crate::server::privileges::PrivilegeError;
use crate::server::settings::SettingsError;
use crate::server::startup::error::ZoneFileError;
use crate::zones::ReadZoneError;
use nonesuch_authoritative::service::StateError;
use nonesuch_net::NetError;
use nonesuch_server::dnstap::DnstapError;
use nonesuch_zone::LoadError;
use std::io;
use std::path::PathBuf;

/// Why a server does not start, or why a check of its configuration fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum ServerError {
    File(#[from] FileError),
    Load(#[from] LoadError),
    ReadZone(#[from] ReadZoneError),
    ZoneFile(#[from] ZoneFileError),
    #[error("the configuration is rejected:\n{0}")]
    Configuration(#[from] Problems),
    #[error("{}: this configuration would prevent the server from starting", path.display())]
    NotStartable {
        path: PathBuf,
    },
    #[error("{}: a running server would reject this configuration at a reload", path.display())]
    NotReloadable {
        path: PathBuf,
    },
    #[error("--check requires a configuration: name it with --config")]
    CheckWithoutConfiguration,
    Settings(#[from] SettingsError),
    Privilege(#[from] PrivilegeError),
    Root(#[from] RootError),
    #[error("cannot start the server in the background: {0}")]
    Background(io::Error),
    #[error(
        "the command that started this server in the background ended before the server was ready: \
            start the server again"
    )]
    Abandoned,
    #[error("the server was ended by signal {0} before it was ready")]
    Killed(i32),
    Bind(NetError),
    Net(#[from] NetError),
    State(#[from] StateError),
    Dnstap(#[from] DnstapError),
    Metrics(#[from] MetricsError),
    #[error("cannot start a thread: {0}: raise the limits on threads and open files")]
    Thread(io::Error),
    ControlSocket(#[from] SocketError),
}

impl ServerError {
    /// Whether the command ran and its answer is negative, because a zone does not verify.
    pub(crate) fn is_negative(&self) -> bool {
        matches!(self, Self::ZoneFile(error) if error.is_negative())
    }

    /// Whether the system prevented the start and a later attempt may succeed: an address does not
    /// exist yet, or another process still has the port or the directory.
    pub(crate) const fn is_caused_by_system(&self) -> bool {
        match self {
            Self::Bind(_)
            | Self::State(_)
            | Self::Dnstap(_)
            | Self::Metrics(_)
            | Self::Thread(_)
            | Self::Background(_)
            | Self::Abandoned
            | Self::Killed(_) => true,
            Self::ControlSocket(error) => error.is_caused_by_system(),
            _ => false,
        }
    }
}
