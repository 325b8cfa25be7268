//! Errors in the response of a primary.

use nonesuch_proto::message::{MessageError, Rcode};
use nonesuch_proto::{Class, NameError, Rtype};
use nonesuch_zone::ZoneFault;

/// Why the response of a primary cannot be used. The cause is at the primary, except for exceeded
/// limits.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboundError {
    /// A message is malformed.
    #[error("the primary sent a malformed message: {0}")]
    Message(#[from] MessageError),
    /// A message is not the response to the query.
    #[error("the primary sent a message that does not match the query: {0}")]
    WrongResponse(&'static str),
    /// The primary responded with an error.
    #[error("the primary responded with {0}{remedy}", remedy = rcode_remedy(*.0))]
    Rcode(Rcode),
    /// The response does not begin with the SOA record of the zone.
    #[error(
        "the response does not begin with the zone's SOA record: check that the configured primary serves the zone"
    )]
    NoSoaFirst,
    /// A record has another class, or a type that is not zone data.
    #[error("the response has a record of type {rtype} and class {class}, which is not zone data")]
    NoZoneData {
        /// The type of the record.
        rtype: Rtype,
        /// The class of the record.
        class: Class,
    },
    /// The last SOA record differs from the first one.
    #[error("the zone changed during the transfer, from serial {first} to {last}: it is transferred again")]
    Changed {
        /// Serial of the first SOA record.
        first: u32,
        /// Serial of the last SOA record.
        last: u32,
    },
    /// The steps of an incremental transfer are not consecutive.
    #[error("the incremental transfer is out of order: serial {to} follows serial {from}")]
    Order {
        /// The serial before the step.
        from: u32,
        /// The serial after the step.
        to: u32,
    },
    /// Records follow the end of the transfer.
    #[error("records follow the end of the transfer")]
    RecordsAfterEnd,
    /// The records do not form a zone, or a version of a zone.
    #[error("{0}")]
    Zone(ZoneFault),
    /// The response ended before the last record.
    #[error("the response ended after {records} records, before the last record")]
    Truncated {
        /// Number of records read.
        records: u64,
    },
    /// The transfer exceeds the limit of records.
    #[error(
        "the transfer has more than {records} records: increase the zone's transfer-records-max if appropriate"
    )]
    TooManyRecords {
        /// The limit.
        records: u64,
    },
    /// The transfer exceeds the limit of octets.
    #[error(
        "the transfer has more than {octets} octets: increase the zone's transfer-size-max if appropriate"
    )]
    TooLarge {
        /// The limit.
        octets: u64,
    },
    /// The incremental transfer exceeds the limit of octets.
    #[error("the incremental transfer needs more than {octets} octets: transferring the whole zone instead")]
    StepsTooLarge {
        /// The limit.
        octets: u64,
    },
    /// The incremental transfer exceeds the limit of steps.
    #[error("the incremental transfer has more than {steps} steps: transferring the whole zone instead")]
    TooManySteps {
        /// The limit.
        steps: u64,
    },
}

impl InboundError {
    pub(super) const fn from_name(error: NameError) -> Self {
        Self::Message(MessageError::Name(error))
    }

    /// Whether a transfer of the whole zone may succeed after this error of an incremental
    /// transfer. This holds if the primary responds, but does not support IXFR or responds to it
    /// incorrectly.
    #[must_use]
    pub const fn may_succeed_as_axfr(&self) -> bool {
        !matches!(self, Self::TooManyRecords { .. } | Self::TooLarge { .. } | Self::Truncated { .. })
    }
}

/// Returns advice for an error response code of a primary.
const fn rcode_remedy(rcode: Rcode) -> &'static str {
    match rcode {
        Rcode::REFUSED => ": permit transfers to this server's address or TSIG key on the primary",
        Rcode(9) => ": it does not serve the zone, or does not accept the TSIG key",
        Rcode::SERVFAIL => ": it has not loaded the zone",
        _ => "",
    }
}
