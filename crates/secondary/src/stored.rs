//! Facts about a secondary zone that outlive a restart. The [`Host`](super::ZoneStore) stores them.

use serde::{Deserialize, Serialize};
use std::net::SocketAddr;

/// When a primary last had the version that is held.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Timers {
    /// Serial of the version.
    pub serial: u32,
    /// When it was last found to be the newest, in seconds since 1970.
    pub refreshed: u64,
    /// Seconds that were left to the zone then, where they were less than its SOA record says.
    pub left: Option<u32>,
}

/// Serials of versions that were rejected, each with the address of the primary that sent it.
pub type RejectedSerials = Vec<(SocketAddr, u32)>;

/// Versions that were rejected as a whole: none of them is transferred again before its serial changes.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub struct RejectedVersions {
    /// A digest of the settings that versions are verified by: under other settings a version may be accepted.
    pub judged_by: String,
    /// The versions.
    pub serials: RejectedSerials,
}

/// All that is stored of a secondary zone.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StoredState {
    /// When it was refreshed. `None`: it is refreshed at once.
    pub timers: Option<Timers>,
    /// The versions that were rejected.
    pub rejected: Option<RejectedVersions>,
}
