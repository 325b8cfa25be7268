//! Errors of requests at the control socket.

use crate::config::added_zones::AddedZonesError;
use crate::server::reload::ReloadError;
use crate::server::resolver::reload::ResolverReloadError;
use nonesuch_authoritative::service::{PurgeError, VersionError};
use nonesuch_proto::{Name, NameError};
use nonesuch_resolver::TooManyNegativeAnchors;
use nonesuch_zone::LoadError;

/// Why a request failed. The message becomes the member `error` of the response.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum ControlError {
    #[error("invalid request: {0}")]
    Request(serde_json::Error),
    #[error("the request is longer than the maximum of {max} bytes")]
    RequestTooLong {
        max: u64,
    },
    #[error("too many connections to the control socket: try again later")]
    TooManyConnections,
    #[error("{text:?} is not a domain name: {source}")]
    Name {
        text: String,
        source: NameError,
    },
    #[error("zone {0} is not configured: `nonesuch ctl zone status` lists the configured zones")]
    NoZone(Name),
    #[error("zone {0} has no primaries: `nonesuch ctl reload {0}` reloads its file")]
    NoPrimaries(Name),
    #[error("zone {0} has no secondaries to notify: name them in also-notify")]
    NoSecondaries(Name),
    #[error("zone {0} is not served: `nonesuch ctl zone status {0}` shows why")]
    NotServed(Name),
    #[error(
        "zone {0}: no stored version: none was published yet, or state-dir is not set; the records are \
            in the zone file"
    )]
    NotStored(Name),
    #[error("zone {apex}: {source}")]
    StoredVersion {
        apex: Name,
        source: LoadError,
    },
    #[error("zone {apex}: {source}")]
    VersionRejected {
        apex: Name,
        source: VersionError,
    },
    #[error("the server has no configuration to add zones to: start it with `nonesuch serve --config FILE`")]
    NoConfiguration,
    #[error("a resolver has no zones: it executes only status, reload, negative-anchor, cache and stop")]
    NotForResolver,
    #[error("only a resolver has a cache and negative trust anchors")]
    OnlyForResolver,
    #[error("lifetime is not allowed: write a number of seconds from 1 to {max}")]
    NegativeAnchorLifetime {
        max: u64,
    },
    #[error("there is no negative trust anchor {0}: `nonesuch ctl negative-anchor list` lists them")]
    NoNegativeAnchor(Name),
    NegativeAnchor(#[from] TooManyNegativeAnchors),
    ResolverReload(#[from] ResolverReloadError),
    AddedZones(#[from] AddedZonesError),
    Purge(#[from] PurgeError),
    Reload(#[from] ReloadError),
}
