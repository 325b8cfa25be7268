//! Why the answer of a primary cannot be used.

use nonesuch_proto::message::{MessageError, Rcode};
use nonesuch_proto::{Class, NameError, Rtype};
use nonesuch_zone::ZoneFault;

/// Why the answer of a primary cannot be used: each is for the primary's side to mend, but the bounds.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum InboundError {
    /// A message cannot be read.
    #[error("a message of the primary is malformed: {0}")]
    Message(#[from] MessageError),
    /// A message is not the answer to the question.
    #[error("a message is not the answer to the question: {0}")]
    WrongResponse(&'static str),
    /// The primary refuses, or fails.
    #[error("the primary answers {0}{remedy}", remedy = rcode_remedy(*.0))]
    Rcode(Rcode),
    /// The answer does not begin with the SOA record of the zone.
    #[error("the answer does not begin with the zone's SOA record: is the primary one of this zone?")]
    NoSoaFirst,
    /// A record of another class, or of a type that no zone holds.
    #[error("the answer has a record of type {rtype} and class {class}, which is no data of a zone")]
    NoZoneData {
        /// The type.
        rtype: Rtype,
        /// The class.
        class: Class,
    },
    /// The last SOA record is not the first one.
    #[error("the zone changed under the transfer, from serial {first} to {last}: it is asked for again")]
    Changed {
        /// Serial of the first record.
        first: u32,
        /// Serial of the last record.
        last: u32,
    },
    /// The steps of an incremental transfer do not follow on each other.
    #[error("the primary's steps are out of order: a step from serial {from} is followed by serial {to}")]
    Order {
        /// Serial in front.
        from: u32,
        /// Serial behind.
        to: u32,
    },
    /// Records follow the end.
    #[error("records follow the end of the transfer")]
    RecordsAfterEnd,
    /// The records are no zone, or no version of one.
    #[error("{0}")]
    Zone(ZoneFault),
    /// The answer ended too soon.
    #[error("the answer ended after {records} records, before the last one")]
    Truncated {
        /// Records read.
        records: u64,
    },
    /// More records than are allowed.
    #[error(
        "the transfer has more than {records} records: raise the zone's transfer-records-max where that is right"
    )]
    TooManyRecords {
        /// The limit.
        records: u64,
    },
    /// More octets than are allowed.
    #[error(
        "the transfer has more than {octets} octets: raise the zone's transfer-size-max where that is right"
    )]
    TooLarge {
        /// The limit.
        octets: u64,
    },
    /// An incremental transfer has more octets than are allowed.
    #[error("the incremental transfer needs more than {octets} octets: transferring the whole zone instead")]
    StepsTooLarge {
        /// The limit.
        octets: u64,
    },
    /// An incremental transfer has more steps than are allowed.
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

    /// Whether the whole zone may be had where the steps to it could not: the primary is there and answers, but not to IXFR,
    /// or not well.
    #[must_use]
    pub const fn may_be_had_whole(&self) -> bool {
        !matches!(self, Self::TooManyRecords { .. } | Self::TooLarge { .. } | Self::Truncated { .. })
    }
}

/// What to do about an error that a primary answers with.
const fn rcode_remedy(rcode: Rcode) -> &'static str {
    match rcode {
        Rcode::REFUSED => ": allow this server's address or TSIG key to transfer the zone there",
        Rcode(9) => ": it does not serve the zone, or does not take the TSIG key",
        Rcode::SERVFAIL => ": it has not loaded the zone",
        _ => "",
    }
}
