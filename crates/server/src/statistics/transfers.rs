//! Zone transfers and NOTIFY: rare enough for counters that all threads share.

use std::collections::BTreeMap;
use std::sync::{Mutex, PoisonError};

/// Whence and whither.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Direction {
    /// From a primary to us.
    In,
    /// From us to a secondary.
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

/// What is transferred.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferKind {
    /// The whole zone (RFC 5936).
    Axfr,
    /// What changed (RFC 1995).
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

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum TransferResult {
    /// The zone was taken over.
    Done,
    /// There was nothing newer.
    UpToDate,
    /// The peer, or we, said no.
    Refused,
    /// It broke off, or brought what could not be used.
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
    /// It was acknowledged.
    Accepted,
    /// It was answered with an error.
    Refused,
    /// No attempt was answered.
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

/// Transfers and NOTIFY so far.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TransferTotals {
    /// Transfers by direction, kind and how they ended.
    pub ended: BTreeMap<(Direction, TransferKind, TransferResult), u64>,
    /// Messages of transfers, by direction.
    pub messages: BTreeMap<Direction, u64>,
    /// Octets of these messages, by direction.
    pub octets: BTreeMap<Direction, u64>,
    /// Requests for transfers to others that were refused, by reason.
    pub refusals: BTreeMap<&'static str, u64>,
    /// NOTIFY messages by direction (in: to us) and result.
    pub notifies: BTreeMap<(Direction, NotifyCount), u64>,
}

impl TransferTotals {
    /// Adds transfers that were counted elsewhere.
    pub fn add(&mut self, direction: Direction, kind: TransferKind, result: TransferResult, times: u64) {
        if times > 0 {
            *self.ended.entry((direction, kind, result)).or_default() += times;
        }
    }

    /// Adds NOTIFY messages that were counted elsewhere.
    pub fn add_notifies(&mut self, direction: Direction, result: NotifyCount, times: u64) {
        if times > 0 {
            *self.notifies.entry((direction, result)).or_default() += times;
        }
    }
}

impl TransferCounters {
    /// Counts a transfer at its end.
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

    /// Counts why a request for a transfer to another was refused.
    pub fn refuse(&self, reason: &'static str) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *sum.refusals.entry(reason).or_default() += 1;
    }

    /// Counts a NOTIFY that was received or sent.
    pub fn notify(&self, direction: Direction, result: NotifyCount) {
        let mut sum = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        sum.add_notifies(direction, result, 1);
    }

    pub(super) fn read(&self) -> TransferTotals {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}
