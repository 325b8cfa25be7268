//! What is going on, for whoever asks: of each zone, and in all.

use nonesuch_proto::Name;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// What is under way for a zone.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Nothing: the next round is to come.
    Idle,
    /// A primary is asked for its serial, or is about to be.
    Probing,
    /// A transfer waits for room.
    Waiting,
    /// A transfer is under way.
    Transferring,
    /// What was transferred is being verified and published.
    Publishing,
}

/// How a zone is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TransferKind {
    /// As a whole.
    Axfr,
    /// By steps.
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

/// How the refreshes of a zone go.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum RefreshState {
    /// No version was transferred yet, and no round has failed.
    Pending,
    /// The last round that ended found a primary with the held version.
    Refreshed,
    /// The last round that ended failed; a held version is served.
    Failing,
    /// No round succeeded within the time to expire.
    Expired,
}

impl RefreshState {
    /// The state in one word.
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

/// A primary that fails. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FailingPrimary {
    /// The primary.
    pub address: SocketAddr,
    /// When it failed first since its last success.
    pub since: u64,
    /// The last error.
    pub error: String,
}

/// How far a transfer is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TransferProgress {
    /// What was asked for.
    pub kind: TransferKind,
    /// Octets received.
    pub octets: u64,
    /// Records received.
    pub records: u64,
    /// When it began, in seconds since 1970.
    pub since: u64,
}

/// A secondary zone as it stands. Times are in seconds since 1970.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ZoneStatus {
    /// The zone.
    pub apex: Name,
    /// How its refreshes go.
    pub state: RefreshState,
    /// The primaries that fail.
    pub failing: Vec<FailingPrimary>,
    /// What is under way.
    pub phase: Phase,
    /// Serial of the version that is here.
    pub serial: Option<u32>,
    /// The primary that is being asked, or that was reached last.
    pub primary: String,
    /// When a primary last had that version.
    pub refreshed: Option<u64>,
    /// When the primaries are asked next.
    pub next: Option<u64>,
    /// When the zone expires or expired.
    pub expires: Option<u64>,
    /// Whether it has.
    pub is_expired: bool,
    /// Rounds that failed since the last one that did not.
    pub failures: u32,
    /// What went wrong last, until the next success.
    pub last_error: Option<String>,
    /// Serial of a version that was rejected: it is not transferred again before the serial changes.
    pub rejected: Option<u32>,
    /// Primaries whose version is before the one that is here, each in a sentence.
    pub outdated_primaries: Vec<String>,
    /// The transfer that is under way.
    pub transfer: Option<TransferProgress>,
}

/// What happened so far, all zones together.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Whole zones published.
    pub axfr: u64,
    /// Transfers by steps published.
    pub ixfr: u64,
    /// Transfers that found nothing newer.
    pub up_to_date: u64,
    /// Transfers that failed.
    pub failed: u64,
    /// Versions that were rejected.
    pub refused: u64,
    /// Zones that expired.
    pub expired: u64,
    /// Messages of transfers.
    pub messages: u64,
    /// Octets of transfers.
    pub octets: u64,
    /// NOTIFY messages acted on.
    pub notified: u64,
    /// NOTIFY messages acknowledged by secondaries.
    pub acknowledged: u64,
    /// NOTIFY messages that secondaries refused.
    pub notify_refused: u64,
    /// NOTIFY messages that secondaries answered in no attempt.
    pub notify_unanswered: u64,
    /// Of `up_to_date`, `failed` and `refused`: those by steps.
    pub by_steps: IxfrOutcomes,
}

/// Ends of transfers that published nothing.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct IxfrOutcomes {
    /// Nothing newer was found.
    pub up_to_date: u64,
    /// The transfer failed.
    pub failed: u64,
    /// The version was rejected.
    pub refused: u64,
}

/// How far a transfer is, written by its task.
#[derive(Debug, Default)]
pub(super) struct Progress {
    pub(super) octets: AtomicU64,
    pub(super) records: AtomicU64,
    /// Set once everything was received.
    pub(super) is_publishing: std::sync::atomic::AtomicBool,
}

impl Progress {
    pub(super) fn of(&self, kind: TransferKind, since: u64) -> TransferProgress {
        TransferProgress {
            kind,
            octets: self.octets.load(Relaxed),
            records: self.records.load(Relaxed),
            since,
        }
    }
}

/// A transfer under way.
#[derive(Clone, Debug)]
pub(super) struct TransferSnapshot {
    pub(super) progress: Arc<Progress>,
    pub(super) kind: TransferKind,
    /// Seconds since 1970 at its start.
    pub(super) since: u64,
}

/// A zone as it is shown: the progress of a transfer is read when somebody looks.
#[derive(Debug)]
pub(super) struct ZoneSnapshot {
    pub(super) status: ZoneStatus,
    pub(super) transfer: Option<TransferSnapshot>,
}

impl ZoneSnapshot {
    pub(super) fn status(&self) -> ZoneStatus {
        let mut status = self.status.clone();
        if let Some(TransferSnapshot { progress, kind, since }) = &self.transfer {
            status.transfer = Some(progress.of(*kind, *since));
            if progress.is_publishing.load(Relaxed) {
                status.phase = Phase::Publishing;
            }
        }
        status
    }
}

/// The state that the thread shows.
#[derive(Debug, Default)]
pub(super) struct StatusSnapshot {
    pub(super) zones: BTreeMap<Name, ZoneSnapshot>,
    pub(super) counts: Counts,
}
