//! Positions of the parts of a message in wire form (RFC 1035 §4.1), for changes in place.

use nonesuch_proto::message::{HEADER, Header};
use nonesuch_proto::{Name, Rtype};
use std::ops::Range;

/// Size of type and class of a question in octets.
const QUESTION_FIELDS_SIZE: usize = 4;
/// Size of type, class, TTL and RDATA length of a record in octets.
const RECORD_FIELDS_SIZE: usize = 10;

/// Type of a record, and range of its RDATA in the message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordPosition {
    pub(super) rtype: Rtype,
    pub(super) rdata: Range<usize>,
}

/// The positions of names and RDATA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct MessageLayout {
    /// Offsets of the names of questions and the owners of records.
    pub(super) names: Vec<usize>,
    pub(super) records: Vec<RecordPosition>,
    /// End of the last record.
    pub(super) end: usize,
}

impl MessageLayout {
    /// Finds the parts of a message. Returns `None` if it is malformed outside RDATA.
    pub(super) fn parse(message: &[u8]) -> Option<Self> {
        let counts = Header::read(message)?.counts;
        let mut layout = Self { end: HEADER, ..Self::default() };
        for _ in 0..counts[0] {
            layout.end = layout.push_name(message)? + QUESTION_FIELDS_SIZE;
        }
        for _ in 0..counts[1..].iter().map(|count| u32::from(*count)).sum() {
            let fields = layout.push_name(message)?;
            let u16_at = |at: usize| Some(u16::from_be_bytes(*message.get(at..)?.first_chunk()?));
            let start = fields + RECORD_FIELDS_SIZE;
            layout.end = start + usize::from(u16_at(fields + 8)?);
            layout.records.push(RecordPosition { rtype: Rtype(u16_at(fields)?), rdata: start..layout.end });
        }
        (layout.end <= message.len()).then_some(layout)
    }

    /// Adds the name at offset `end`, and returns the offset after it. Returns `None` if it is
    /// malformed.
    fn push_name(&mut self, message: &[u8]) -> Option<usize> {
        self.names.push(self.end);
        Some(Name::from_message(message, self.end).ok()?.1)
    }
}
