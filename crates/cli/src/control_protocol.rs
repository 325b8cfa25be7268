//! The messages of the control socket: requests of `nonesuch ctl` and other programs, and the
//! responses of the server. A message is a line of JSON.
//!
//! `docs/control-protocol.md` lists them with all their members; a test compares it with these
//! types.
//!
//! Within one [`VERSION`], members may be added to responses, and a client ignores members that it
//! does not know. The server rejects a request with an unknown member, because it could not do what
//! the client requests.

mod status;
#[cfg(test)]
mod tests;

pub(crate) use status::{
    Activity, Refresh, RefreshFailure, RefreshFailures, RefusedConfiguration, Secondary, ServerStatus,
    TransferIn, TransferOut, ZoneReport,
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
    /// The [activities](Activity) of the server, sent each second during a request.
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

/// Reads a response; `None` if it has another type.
pub(crate) fn read<T: DeserializeOwned>(response: &Value) -> Option<T> {
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
    Asked(ZoneAsked),
}

/// A refresh of a zone was started: `zone-refresh`, `zone-retransfer`, `reload`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneAsked {
    pub(crate) zone: String,
    pub(crate) asked: bool,
}

/// The result of `zone-notify`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneNotified {
    pub(crate) zone: String,
    pub(crate) serial: Option<u32>,
    /// Addresses of the secondaries.
    pub(crate) servers: Vec<String>,
}

/// The state of the zone that `zone-add` added.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneAdded {
    pub(crate) zone: String,
    pub(crate) state: ServingState,
    pub(crate) serial: Option<u32>,
    /// Why it is not served.
    pub(crate) error: Option<String>,
    pub(crate) warnings: Vec<String>,
}

/// The zone that `zone-remove` removed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneRemoved {
    pub(crate) zone: String,
}

/// The zone that `zone-purge` removed the stored version of.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZonePurged {
    pub(crate) zone: String,
    pub(crate) purged: bool,
}

/// The zones that `purge` removed the stored versions of.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PurgeResult {
    pub(crate) purged: Vec<String>,
}

/// The zone that `zone-export` sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneExported {
    pub(crate) zone: String,
    pub(crate) serial: Option<u32>,
    pub(crate) records: u64,
}
