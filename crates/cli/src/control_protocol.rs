//! The messages of the control socket: requests of `nonesuch ctl` and other programs, and the
//! responses of the server. A message is a line of JSON.
//!
//! `docs/control-protocol.md` lists them with all their members; a test compares it with these
//! types.
//!
//! A server may add members to responses without a new [`VERSION`], and a client ignores members
//! that it does not know. The server rejects a request with an unknown member, because the member
//! may restrict the request.

mod status;
#[cfg(test)]
mod tests;

pub(crate) use status::{
    Activity, CacheStatus, CostModelSecond, CostModelStatus, ManagedKeyStatus, NegativeAnchorStatus, Refresh,
    RefreshFailure, RefreshFailures, RefusedConfiguration, ResolverStatus, Secondary, ServerStatus,
    TransferIn, TransferOut, UpstreamStatus, ValidationStatus, ZoneReport, addresses_text,
};

use nonesuch_authoritative::service::{ReloadReport, ServingState};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The version of the protocol; the server sends it in [`ServerStatus`].
pub(crate) const VERSION: u32 = 1;

/// A request of a client.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    // With braces, so that unknown members are rejected: `{"command": "purge", "zone": …}` must not
    // purge all zones.
    Status {},
    Reload {
        #[serde(skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
    },
    ZoneStatus {
        #[serde(skip_serializing_if = "Option::is_none")]
        zone: Option<String>,
    },
    ZoneRefresh {
        zone: String,
    },
    ZoneRetransfer {
        zone: String,
    },
    ZoneNotify {
        zone: String,
    },
    /// Keys and values of the `zone` table in a configuration.
    ZoneAdd {
        zone: String,
        settings: toml::Table,
    },
    ZoneRemove {
        zone: String,
    },
    ZonePurge {
        zone: String,
    },
    ZoneExport {
        zone: String,
    },
    /// `lifetime`: seconds, at most a week.
    NegativeAnchorAdd {
        zone: String,
        lifetime: u64,
        recheck: bool,
    },
    NegativeAnchorRemove {
        zone: String,
    },
    NegativeAnchorList {},
    CacheFlush {
        #[serde(skip_serializing_if = "Option::is_none")]
        name: Option<String>,
    },
    Purge {},
    Stop {},
}

/// A line of a response. The last one is [`Line::Done`] or [`Line::Error`].
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(crate) enum Line {
    /// The result, in the type of the command.
    Done(Value),
    /// Why the request failed.
    Error(String),
    /// The [activities](Activity) of the server, possibly none; sent each second during a request.
    Working(Value),
    /// A part of a zone file.
    Text(String),
    /// A [`ZoneReport`].
    #[serde(untagged)]
    Zone(Value),
}

impl Line {
    pub(crate) fn done(response: &impl Serialize) -> Self {
        Self::Done(to_value(response))
    }

    pub(crate) fn zone(report: &ZoneReport) -> Self {
        Self::Zone(to_value(report))
    }

    pub(crate) fn working(activities: &[Activity]) -> Self {
        Self::Working(to_value(&activities))
    }
}

fn to_value(message: &impl Serialize) -> Value {
    // Serialization of structs with numbers, texts and lists does not fail.
    serde_json::to_value(message).unwrap_or_default()
}

/// Converts a response to `T`; `None` if the response has another type.
pub(crate) fn parse_response<T: DeserializeOwned>(response: &Value) -> Option<T> {
    T::deserialize(response).ok()
}

/// The result of `reload` for all zones.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadResult {
    #[serde(flatten)]
    pub(crate) report: ReloadReport,
    /// Settings that take effect at the next start.
    pub(crate) needs_restart: Vec<String>,
}

/// The result of `reload` in a resolver.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ResolverReload {
    /// Settings that take effect at the next start.
    pub(crate) needs_restart: Vec<String>,
}

/// The result of `cache-flush`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct CacheFlushed {
    /// The name at and below which the data were removed.
    pub(crate) name: String,
    /// Number of removed entries.
    pub(crate) entries: u64,
}

/// The result of `reload` for one zone.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ZoneReloaded {
    /// A zone with a file.
    Loaded {
        zone: String,
        /// Whether there is a new version.
        updated: bool,
        warnings: Vec<String>,
    },
    /// A zone with primaries.
    RefreshStarted(RefreshStarted),
}

/// The server started to query the primaries of a zone: the result of `zone-refresh`,
/// `zone-retransfer` and, for a zone with primaries, `reload`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct RefreshStarted {
    pub(crate) zone: String,
    /// Always true; distinguishes this result from the other results with a zone.
    #[serde(rename = "asked")]
    pub(crate) is_started: bool,
}

/// The result of `zone-notify`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneNotified {
    pub(crate) zone: String,
    pub(crate) serial: Option<u32>,
    /// The addresses to which the server sends NOTIFY.
    pub(crate) servers: Vec<String>,
}

/// The state of the zone that `zone-add` added.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneAdded {
    pub(crate) zone: String,
    pub(crate) state: ServingState,
    pub(crate) serial: Option<u32>,
    /// Why the zone is not served; `None` if it is served or waits for its first transfer.
    pub(crate) error: Option<String>,
    pub(crate) warnings: Vec<String>,
}

/// The zone that `zone-remove` removed, or whose negative trust anchor `negative-anchor-remove` removed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneRemoved {
    pub(crate) zone: String,
}

/// The zone whose stored files `zone-purge` removed: its stored version, journal and timers.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZonePurged {
    pub(crate) zone: String,
    /// Always true. If the server removes nothing, the response is [`Line::Error`].
    pub(crate) purged: bool,
}

/// The result of `purge`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PurgeResult {
    /// The zones whose stored files were removed, as the names of the files spell them: without the
    /// final dot, and `@` for the root.
    pub(crate) purged: Vec<String>,
}

/// The result of `zone-export`; the lines [`Line::Text`] before it contain the zone.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneExported {
    pub(crate) zone: String,
    pub(crate) serial: Option<u32>,
    pub(crate) records: u64,
}
