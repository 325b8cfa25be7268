//! State of a secondary zone that survives a restart. The [`ZoneStore`](super::ZoneStore) stores
//! it.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// The last time at which a primary confirmed the local version.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timers {
    /// Serial of the version.
    pub serial: u32,
    /// Time of the last confirmation, in seconds since 1970.
    pub refreshed: u64,
    /// Seconds until expiry at that time, if fewer than the SOA record sets.
    pub left: Option<u32>,
}

/// Serials of rejected versions, each with the address of the primary that sent it.
pub type RejectedSerials = Vec<(SocketAddr, u32)>;

/// Versions that were rejected as whole zones. They are not transferred again before the serial
/// changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RejectedVersions {
    /// A digest of the settings for verification. With other settings, a version may be accepted.
    pub judged_by: String,
    /// The rejected versions.
    pub serials: RejectedSerials,
}

/// The stored state of a secondary zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredState {
    /// The last refresh. `None`: the zone is refreshed immediately.
    pub timers: Option<Timers>,
    /// The rejected versions.
    pub rejected: Option<RejectedVersions>,
}
