//! What the machine of a zone is told, and what it has done.

use super::timing::LocalSoa;

/// What happened.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A NOTIFY came.
    Notified {
        /// The serial that it names.
        serial: Option<u32>,
        /// The primary that it came from, where it is one.
        primary: Option<usize>,
    },
    /// Somebody wants the zone to be refreshed at once.
    Refresh,
    /// Somebody wants the whole zone to be transferred, whatever its serial.
    Retransfer,
    /// A version that was rejected may be accepted now: settings or keys have changed.
    Reconsider,
    /// The primary that was probed has a version.
    Serial {
        /// Its serial.
        serial: u32,
        /// Seconds that are left to the zone there, where it says so (RFC 7314).
        expire: Option<u32>,
    },
    /// The primary that was probed gave no answer that can be used.
    ProbeFailed,
    /// The transfer ended.
    Transferred {
        /// How.
        ended: InboundOutcome,
        /// Seconds that are left to the zone at the primary, where it says so (RFC 7314).
        expire: Option<u32>,
    },
}

/// How a transfer ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboundOutcome {
    /// The primary has no newer version than this one.
    UpToDate {
        /// Its serial.
        serial: u32,
    },
    /// This version is here now, and served.
    Published(LocalSoa),
    /// The steps cannot be had or do not fit, but the whole zone may.
    IxfrFailed,
    /// It failed.
    Failed,
    /// The version was transferred, and is not wanted from this primary any more.
    NoLongerWanted,
    /// The version was transferred, and was refused by whoever verifies it.
    Rejected {
        /// Its serial.
        serial: u32,
        /// How long that holds.
        verdict: RejectionPeriod,
    },
    /// The version was transferred, and this server could not publish it: neither the version nor the primary is to blame.
    PublishFailed {
        /// Its serial.
        serial: u32,
    },
}

/// How long the rejection of a version holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionPeriod {
    /// As long as the settings stay: verification would find the same.
    Final,
    /// It depends on the clock: verification may find otherwise after so many seconds.
    For {
        /// 0 where that depends on how the clock is set.
        seconds: u32,
    },
}

/// What is to be done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Ask this primary for its SOA record; ends in [`Event::Serial`] or [`Event::ProbeFailed`].
    Probe {
        /// The primary's place in the list.
        primary: usize,
    },
    /// Transfer from this primary; ends in [`Event::Transferred`].
    Transfer {
        /// The primary's place in the list.
        primary: usize,
        /// By steps from the version that is here, or the whole zone.
        by_steps: bool,
    },
    /// Stop serving the zone.
    Expire,
    /// Serve it again.
    Restore,
    /// Store when it was last refreshed.
    Store,
}
