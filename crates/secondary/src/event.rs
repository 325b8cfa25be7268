//! Input and output of the state machine of a zone.

use super::timing::LocalSoa;

/// An event for the machine.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// A NOTIFY arrived.
    Notified {
        /// The serial in the NOTIFY, if it has one.
        serial: Option<u32>,
        /// The index of the primary that sent it, if a primary did.
        primary: Option<usize>,
    },
    /// Refresh the zone now, on request of an operator or the server.
    Refresh,
    /// Transfer the whole zone now, whatever its serial.
    Retransfer,
    /// Settings or keys have changed: a rejected version may be accepted now.
    Reconsider,
    /// The primary answered the SOA query.
    Serial {
        /// The serial in the answer.
        serial: u32,
        /// The seconds until the zone expires at the primary, if it reports them (RFC 7314).
        expire: Option<u32>,
    },
    /// The primary gave no usable answer to the SOA query.
    ProbeFailed,
    /// The transfer ended.
    Transferred {
        /// The result of the transfer.
        outcome: InboundOutcome,
        /// The seconds until the zone expires at the primary, if it reports them (RFC 7314).
        expire: Option<u32>,
    },
}

/// The result of an incoming transfer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum InboundOutcome {
    /// The primary has no version that is newer than the local one.
    UpToDate {
        /// The serial of the primary.
        serial: u32,
    },
    /// The version is published; its serial and times.
    Published(LocalSoa),
    /// The incremental transfer failed; a transfer of the whole zone may succeed.
    IxfrFailed,
    /// The transfer failed.
    Failed,
    /// The version was transferred, but is not needed from this primary any more.
    NoLongerWanted,
    /// The version was transferred, and verification rejected it.
    Rejected {
        /// The serial of the version.
        serial: u32,
        /// The period of the rejection.
        verdict: RejectionPeriod,
    },
    /// The version was transferred, and this server could not publish it. The cause is neither the
    /// version nor the primary.
    PublishFailed {
        /// The serial of the version.
        serial: u32,
    },
}

/// The period for which a version with the same serial stays rejected.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RejectionPeriod {
    /// Until the settings change. Before that, verification would give the same result.
    Final,
    /// The result depends on the clock: verification may give another result after this time.
    For {
        /// The time in seconds; 0 if the result depends on how the clock is set.
        seconds: u32,
    },
}

/// An action for the caller.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Action {
    /// Query this primary for its SOA record. Ends with [`Event::Serial`] or
    /// [`Event::ProbeFailed`].
    Probe {
        /// The index of the primary in the list.
        primary: usize,
    },
    /// Transfer the zone from this primary. Ends with [`Event::Transferred`].
    Transfer {
        /// The index of the primary in the list.
        primary: usize,
        /// Whether to request IXFR from the local version instead of the whole zone.
        is_ixfr: bool,
    },
    /// Stop serving the zone, because it has expired.
    Expire,
    /// Serve the expired zone again.
    Restore,
    /// Store the time of the last refresh.
    Store,
}
