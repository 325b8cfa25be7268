//! Lines of a query list from captured queries.

use nonesuch_proto::message::{HEADER, Header, flags, opcode};
use nonesuch_proto::{Class, Name, Rtype};

/// Returns the line of a query list for a query: the name and the type of its question, with a line
/// feed. Returns `None` for other messages, and for classes other than IN.
#[must_use]
pub fn question_line(message: &[u8]) -> Option<String> {
    let header = Header::read(message)?;
    if header.flags & flags::QR != 0 || header.opcode() != opcode::QUERY || header.counts[0] != 1 {
        return None;
    }
    let (name, end) = Name::from_message(message, HEADER).ok()?;
    let [a, b, c, d] = *message.get(end..)?.first_chunk()?;
    let (rtype, class) = (Rtype(u16::from_be_bytes([a, b])), Class(u16::from_be_bytes([c, d])));
    (class == Class::IN).then(|| format!("{name} {rtype}\n"))
}
