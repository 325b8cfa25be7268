//! The messages of the control socket: requests of `nonesuch ctl` and of programs, and the responses of the server. A message is a
//! line of JSON.
//!
//! `docs/control-protocol.md` lists them with all their members; a test holds it to these types.
//!
//! Under one [`VERSION`] members of responses may be added, and a client ignores those that it does not know. A request with a
//! member that the server does not know is refused: the client means something that would not be done.

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

/// The version of the protocol, which [`ServerStatus`] has.
pub(crate) const VERSION: u32 = 1;

/// What a client asks of the server.
#[derive(Debug, Serialize, Deserialize)]
#[serde(tag = "command", rename_all = "kebab-case", deny_unknown_fields)]
pub(crate) enum Request {
    // With braces, so that members that they do not have are refused: `{"command": "purge", "zone": …}` means no purge of all.
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
    /// Keys and values as in the zone's table of a configuration.
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
    /// What was done, as the type of the command has it.
    Done(Value),
    /// Why nothing was done.
    Error(String),
    /// The [activities](Activity) of the server, each second while a request is carried out.
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
    // Structs of numbers, texts and lists: that does not fail.
    serde_json::to_value(message).unwrap_or_default()
}

/// Reads a response; `None` where it is another one.
pub(crate) fn read<T: DeserializeOwned>(response: &Value) -> Option<T> {
    T::deserialize(response).ok()
}

/// What `reload` did with all zones.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ReloadResult {
    #[serde(flatten)]
    pub(crate) report: ReloadReport,
    /// Settings that take effect at the next start.
    pub(crate) needs_restart: Vec<String>,
}

/// What `reload` did with one zone.
#[derive(Debug, Serialize, Deserialize)]
#[serde(untagged)]
pub(crate) enum ZoneReloaded {
    /// It has a file.
    Loaded {
        zone: String,
        /// Whether there is a new version.
        updated: bool,
        warnings: Vec<String>,
    },
    /// It has primaries.
    Asked(ZoneAsked),
}

/// The primaries of a zone are asked: `zone-refresh`, `zone-retransfer`, `reload`.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneAsked {
    pub(crate) zone: String,
    pub(crate) asked: bool,
}

/// What `zone-notify` did.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneNotified {
    pub(crate) zone: String,
    pub(crate) serial: Option<u32>,
    /// Addresses of the secondaries.
    pub(crate) servers: Vec<String>,
}

/// How the zone stands that `zone-add` has added.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneAdded {
    pub(crate) zone: String,
    pub(crate) state: ServingState,
    pub(crate) serial: Option<u32>,
    /// Why it is not served.
    pub(crate) error: Option<String>,
    pub(crate) warnings: Vec<String>,
}

/// The zone that `zone-remove` has removed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneRemoved {
    pub(crate) zone: String,
}

/// The zone whose stored version `zone-purge` has removed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZonePurged {
    pub(crate) zone: String,
    pub(crate) purged: bool,
}

/// The zones whose stored versions `purge` has removed.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct PurgeResult {
    pub(crate) purged: Vec<String>,
}

/// The zone that `zone-export` has sent.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct ZoneExported {
    pub(crate) zone: String,
    pub(crate) serial: Option<u32>,
    pub(crate) records: u64,
}
