//! Counters of zone transfers and NOTIFY. These events are rare, so all threads share one set of
//! counters.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Direction of a transfer or NOTIFY.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From a primary to this server.
    In,
    /// From this server to a secondary.
    Out,
}

impl Direction {
    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::In => "in",
            Self::Out => "out",
        }
    }
}

/// The kind of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferKind {
    /// The complete zone (RFC 5936).
    Axfr,
    /// The changes since a serial (RFC 1995).
    Ixfr,
}

impl TransferKind {
    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Axfr => "axfr",
            Self::Ixfr => "ixfr",
        }
    }
}

/// The result of a transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferResult {
    /// The transfer completed.
    Done,
    /// The receiver already had the latest version.
    UpToDate,
    /// One side refused the transfer.
    Refused,
    /// The transfer was interrupted, or its data was not usable.
    Failed,
}

impl TransferResult {
    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Done => "done",
            Self::UpToDate => "up_to_date",
            Self::Refused => "refused",
            Self::Failed => "failed",
        }
    }
}

/// The result of a NOTIFY that was received or sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum NotifyCount {
    /// The receiver acknowledged the NOTIFY.
    Accepted,
    /// The receiver responded with an error.
    Refused,
    /// The receiver responded to no attempt.
    Unanswered,
}

impl NotifyCount {
    /// The name in metrics.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Accepted => "accepted",
            Self::Refused => "refused",
            Self::Unanswered => "unanswered",
        }
    }
}

/// Counts transfers and NOTIFY, from any thread.
#[derive(Debug, Default)]
pub struct TransferCounters(Mutex<TransferTotals>);

/// Totals of transfers and NOTIFY.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferTotals {
    /// Transfers by direction, kind and result.
    pub ended: BTreeMap<(Direction, TransferKind, TransferResult), u64>,
    /// Messages of transfers, by direction.
    pub messages: BTreeMap<Direction, u64>,
    /// Octets of these messages, by direction.
    pub octets: BTreeMap<Direction, u64>,
    /// Transfer requests of other servers that this server refused, by reason.
    pub refusals: BTreeMap<&'static str, u64>,
    /// NOTIFY messages by direction (`In`: to this server) and result.
    pub notifies: BTreeMap<(Direction, NotifyCount), u64>,
}

impl TransferTotals {
    /// Adds transfers that another component counted.
    pub fn add(&mut self, direction: Direction, kind: TransferKind, result: TransferResult, count: u64) {
        if count > 0 {
            *self.ended.entry((direction, kind, result)).or_default() += count;
        }
    }

    /// Adds NOTIFY messages that another component counted.
    pub fn add_notifies(&mut self, direction: Direction, result: NotifyCount, count: u64) {
        if count > 0 {
            *self.notifies.entry((direction, result)).or_default() += count;
        }
    }
}

impl TransferCounters {
    /// Counts a finished transfer.
    pub fn record(
        &self,
        direction: Direction,
        kind: TransferKind,
        result: TransferResult,
        messages: u64,
        octets: u64,
    ) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add(direction, kind, result, 1);
        *sum.messages.entry(direction).or_default() += messages;
        *sum.octets.entry(direction).or_default() += octets;
    }

    /// Counts a refused transfer request of another server, by `reason`.
    pub fn count_refusal(&self, reason: &'static str) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *sum.refusals.entry(reason).or_default() += 1;
    }

    /// Counts a NOTIFY that was received or sent.
    pub fn count_notify(&self, direction: Direction, result: NotifyCount) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add_notifies(direction, result, 1);
    }

    pub(super) fn read(&self) -> TransferTotals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
