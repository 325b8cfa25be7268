//! Errors of requests at the control socket.

use crate::config::added_zones::AddedError;
use crate::server::reload::ReloadError;
use nonesuch_authoritative::service::{PurgeError, VersionError};
use nonesuch_proto::{Name, NameError};
use nonesuch_zone::LoadError;

/// Why a request failed. The text becomes the member `error` of the response.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum ControlError {
    #[error("no request: {0}")]
    Request(serde_json::Error),
    #[error("the request has more than {most} bytes")]
    RequestTooLong {
        most: u64,
    },
    #[error("too many ask at once: ask again when others have their answers")]
    TooManyConnections,
    #[error("{text:?} is no domain name: {source}")]
    Name {
        text: String,
        source: NameError,
    },
    #[error("there is no zone {0} here: `nonesuch ctl zone status` lists those that are")]
    NoZone(Name),
    #[error("zone {0} has no primaries: `nonesuch ctl reload {0}` reads its file again")]
    NoPrimaries(Name),
    #[error("zone {0} has no secondaries to notify: name them in also-notify")]
    NoSecondaries(Name),
    #[error("zone {0} is not served: `nonesuch ctl zone status {0}` shows why")]
    NotServed(Name),
    #[error(
        "zone {0}: no version of it is kept: there is none yet, or no state-dir; its records are in its file"
    )]
    NotStored(Name),
    #[error("zone {apex}: {source}")]
    Stored {
        apex: Name,
        source: LoadError,
    },
    #[error("zone {apex}: {source}")]
    Refused {
        apex: Name,
        source: VersionError,
    },
    #[error(
        "the server has no configuration that zones could be added to: start it with `nonesuch serve --config FILE`"
    )]
    NoConfiguration,
    Added(#[from] AddedError),
    Purge(#[from] PurgeError),
    Reload(#[from] ReloadError),
}
