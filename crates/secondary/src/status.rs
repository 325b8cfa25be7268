//! The status of secondary zones, and counters over all zones.

use nonesuch_proto::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The current activity for a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// No activity; the zone waits for the next round.
    Idle,
    /// An SOA query to a primary is queued or active.
    Probing,
    /// A transfer is queued.
    Waiting,
    /// A transfer is active.
    Transferring,
    /// The received version is being verified and published.
    Publishing,
}

/// The kind of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// The whole zone.
    Axfr,
    /// The changes since a serial.
    Ixfr,
}

impl fmt::Display for TransferKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            Self::Axfr => "AXFR",
            Self::Ixfr => "IXFR",
        })
    }
}

/// The refresh state of a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefreshState {
    /// No version has been transferred yet, and no round has failed.
    Pending,
    /// The last finished round found a primary with the local version.
    Refreshed,
    /// The last finished round failed. If there is a local version, the server serves it.
    Failing,
    /// No round succeeded within the expire time.
    Expired,
}

impl RefreshState {
    /// The state as one word.
    #[must_use]
    pub const fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Refreshed => "refreshed",
            Self::Failing => "failing",
            Self::Expired => "expired",
        }
    }
}

/// A failing primary. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingPrimary {
    /// The address of the primary.
    pub address: SocketAddr,
    /// Time of the first failure since its last success.
    pub since: u64,
    /// The last error.
    pub error: String,
}

/// The progress of a transfer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferProgress {
    /// The requested kind of transfer.
    pub kind: TransferKind,
    /// Octets received.
    pub octets: u64,
    /// Records received.
    pub records: u64,
    /// Start of the transfer, in seconds since 1970.
    pub since: u64,
}

/// The status of a secondary zone. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneStatus {
    /// The apex of the zone.
    pub apex: Name,
    /// The refresh state.
    pub state: RefreshState,
    /// The failing primaries.
    pub failing: Vec<FailingPrimary>,
    /// The current activity.
    pub phase: Phase,
    /// Serial of the local version.
    pub serial: Option<u32>,
    /// The primary that is being queried, or the last one that answered.
    pub primary: String,
    /// Time at which a primary last confirmed the local version.
    pub refreshed: Option<u64>,
    /// Time of the next round; `None` during a round.
    pub next: Option<u64>,
    /// Time at which the zone expires or expired.
    pub expires: Option<u64>,
    /// Whether the zone has expired.
    pub is_expired: bool,
    /// Number of failed rounds since the last successful one.
    pub failures: u32,
    /// The last error, until the next success.
    pub last_error: Option<String>,
    /// Serial of a rejected version, which is not transferred again before the serial changes.
    pub rejected: Option<u32>,
    /// Primaries with an older version than the local one; one sentence for each.
    pub outdated_primaries: Vec<String>,
    /// The active transfer.
    pub transfer: Option<TransferProgress>,
}

/// Counters over all zones.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Number of whole zones published.
    pub axfr: u64,
    /// Number of incremental transfers published.
    pub ixfr: u64,
    /// Number of transfers that found no newer version.
    pub up_to_date: u64,
    /// Number of failed transfers.
    pub failed: u64,
    /// Number of rejected versions.
    pub refused: u64,
    /// Number of zones that expired.
    pub expired: u64,
    /// Number of messages of transfers.
    pub messages: u64,
    /// Octets of transfers.
    pub octets: u64,
    /// Number of NOTIFY messages that were processed.
    pub notified: u64,
    /// Number of NOTIFY messages that secondaries acknowledged.
    pub acknowledged: u64,
    /// Number of NOTIFY messages that secondaries refused.
    pub notify_refused: u64,
    /// Number of NOTIFY messages without a response after all attempts.
    pub notify_unanswered: u64,
    /// How many of the transfers in `up_to_date`, `failed` and `refused` were incremental.
    pub ixfr_outcomes: IxfrOutcomes,
}

/// Numbers of incremental transfers that published nothing, by result.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IxfrOutcomes {
    /// No newer version was found.
    pub up_to_date: u64,
    /// The transfer failed.
    pub failed: u64,
    /// The version was rejected.
    pub refused: u64,
}

/// The progress of a transfer; its task writes the values.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) octets: AtomicU64,
    pub(super) records: AtomicU64,
    /// Set when all data has been received.
    pub(super) is_publishing: std::sync::atomic::AtomicBool,
}

impl Progress {
    pub(super) fn read(&self, kind: TransferKind, since: u64) -> TransferProgress {
        TransferProgress {
            kind,
            octets: self.octets.load(Relaxed),
            records: self.records.load(Relaxed),
            since,
        }
    }
}

/// An active transfer.
#[derive(Clone, Debug)]
pub(super) struct TransferSnapshot {
    pub(super) progress: Arc<Progress>,
    pub(super) kind: TransferKind,
    /// Start in seconds since 1970.
    pub(super) since: u64,
}

/// The status of a zone. The progress of a transfer is read when the status is requested.
#[derive(Debug)]
pub(super) struct ZoneSnapshot {
    pub(super) status: ZoneStatus,
    pub(super) transfer: Option<TransferSnapshot>,
}

impl ZoneSnapshot {
    pub(super) fn status(&self) -> ZoneStatus {
        let mut status = self.status.clone();
        if let Some(TransferSnapshot { progress, kind, since }) = &self.transfer {
            status.transfer = Some(progress.read(*kind, *since));
            if progress.is_publishing.load(Relaxed) {
                status.phase = Phase::Publishing;
            }
        }
        status
    }
}

/// The state that the transfer thread publishes for status requests.
#[derive(Debug, Default)]
pub(super) struct StatusSnapshot {
    pub(super) zones: BTreeMap<Name, ZoneSnapshot>,
    pub(super) counts: Counts,
}
