//! Positions of the parts of a message in wire form (RFC 1035 §4.1), for changes in place.

use nonesuch_proto::message::{HEADER, Header};
use nonesuch_proto::{Name, Rtype};
use std::ops::Range;

/// Octets after a name: type and class of a question, and the fixed fields of a record.
const QUESTION_FIELDS: usize = 4;
const RECORD_FIELDS: usize = 10;

/// A record of a message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct RecordPlace {
    pub(super) rtype: Rtype,
    pub(super) rdata: Range<usize>,
}

/// The positions of names and RDATA.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Layout {
    /// Offsets of the names of questions and the owners of records.
    pub(super) names: Vec<usize>,
    pub(super) records: Vec<RecordPlace>,
    /// End of the last record.
    pub(super) end: usize,
}

impl Layout {
    /// Finds the parts of a message. Returns `None` if it is malformed outside RDATA.
    pub(super) fn of(message: &[u8]) -> Option<Self> {
        let counts = Header::read(message)?.counts;
        let mut layout = Self { end: HEADER, ..Self::default() };
        for _ in 0..counts[0] {
            layout.end = layout.name(message)? + QUESTION_FIELDS;
        }
        for _ in 0..counts[1..].iter().map(|count| u32::from(*count)).sum() {
            let fields = layout.name(message)?;
            let word = |at: usize| Some(u16::from_be_bytes(*message.get(at..)?.first_chunk()?));
            let start = fields + RECORD_FIELDS;
            layout.end = start + usize::from(word(fields + 8)?);
            layout.records.push(RecordPlace { rtype: Rtype(word(fields)?), rdata: start..layout.end });
        }
        (layout.end <= message.len()).then_some(layout)
    }

    /// Adds the name at the end, and returns the offset after it.
    fn name(&mut self, message: &[u8]) -> Option<usize> {
        self.names.push(self.end);
        Some(Name::from_message(message, self.end).ok()?.1)
    }
}
