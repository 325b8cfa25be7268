//! Errors that prevent the start of a resolver.

use super::anchor_state::AnchorStateError;
use crate::config::Problems;
use crate::files::FileError;
use crate::hints::HintsFileError;
use crate::metrics::MetricsError;
use crate::root::RootError;
use crate::server::control::socket::SocketError;
use crate::server::privileges::PrivilegeError;
use crate::trust_anchors::TrustAnchorsError;
use nonesuch_net::NetError;
use nonesuch_resolver::local_names::UnknownLocalZone;
use nonesuch_resolver::options::OptionsError;
use std::io;

/// Why a resolver does not start.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum ResolveError {
    #[error("the configuration is rejected:\n{0}")]
    Configuration(#[from] Problems),
    #[error("a running resolver would reject this configuration at a reload:\n{0}")]
    NotReloadable(Problems),
    File(#[from] FileError),
    Hints(#[from] HintsFileError),
    TrustAnchors(#[from] TrustAnchorsError),
    AnchorState(#[from] AnchorStateError),
    Options(#[from] OptionsError),
    LocalNames(#[from] UnknownLocalZone),
    Root(#[from] RootError),
    Privilege(#[from] PrivilegeError),
    Bind(NetError),
    Net(#[from] NetError),
    Metrics(#[from] MetricsError),
    ControlSocket(#[from] SocketError),
    #[error("cannot generate random secrets: {0}")]
    Random(getrandom::Error),
    #[error("cannot start a thread: {0}: raise the limits on threads and open files")]
    Thread(io::Error),
}

impl ResolveError {
    /// Whether the system prevented the start and a later attempt may succeed.
    pub(crate) const fn is_caused_by_system(&self) -> bool {
        match self {
            Self::Bind(_) | Self::Metrics(_) | Self::Random(_) | Self::Thread(_) => true,
            Self::ControlSocket(error) => error.is_caused_by_system(),
            _ => false,
        }
    }
}
