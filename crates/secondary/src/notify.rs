//! NOTIFY (RFC 1996): messages from primaries, and messages to secondaries about a new version.
//!
//! [`handle`] responds to a received message and parses it. [`NotifyQueue`] decides which message
//! is sent when. Both work without I/O and without a clock.

mod secondaries;
mod send_queue;
#[cfg(test)]
mod tests;

pub use secondaries::{
    LastNotify, LastQuery, LastTransfer, NotifyStatus, SecondaryStatus, SecondaryStatuses,
};

pub use send_queue::{NotifyAttemptResult, NotifyQueue, NotifyReason, OutgoingNotify, SoaRecord};

use nonesuch_proto::message::{HEADER, Header, Rcode, flags, opcode, read_record};
use nonesuch_proto::{Class, MAX_NAME, Name, NameRef, Rtype};
use std::net::IpAddr;

/// A NOTIFY that was accepted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedNotify {
    /// The apex of the zone, in lower case.
    pub apex: Name,
    /// The serial in the message, if it has one. It is only a hint (RFC 1996 §3.7).
    pub serial: Option<u32>,
    /// The address of the sender.
    pub sender: IpAddr,
}

/// The role of this server for the zone of a NOTIFY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyRole {
    /// The server does not serve the zone.
    NotServed,
    /// The server is a primary of the zone, so it does not accept NOTIFY.
    Primary,
    /// The server is a secondary of the zone.
    Secondary {
        /// Whether the sender is a primary or is permitted by configuration.
        is_sender_permitted: bool,
    },
}

/// Handles the NOTIFY `message` of `sender`. Writes the complete response without TSIG to `out`;
/// `out` stays empty if there is no response. Returns the content of the message if the server must
/// act on it. `role_of` returns the role for the zone; its argument is the apex in lower case.
pub fn handle(
    message: &[u8],
    sender: IpAddr,
    role_of: impl FnOnce(NameRef<'_>) -> NotifyRole,
    out: &mut Vec<u8>,
) -> Option<ReceivedNotify> {
    out.clear();
    let header = Header::read(message)?;
    if header.flags & flags::QR != 0 || header.opcode() != opcode::NOTIFY {
        return None;
    }
    let Some(parsed) = parse_notify(message, header) else {
        respond(header, &[], Rcode::FORMERR, out);
        return None;
    };
    let (rcode, is_accepted) = match role_of(parsed.apex.view()) {
        NotifyRole::NotServed | NotifyRole::Primary => (Rcode::NOTAUTH, false),
        NotifyRole::Secondary { is_sender_permitted: false } => (Rcode::REFUSED, false),
        NotifyRole::Secondary { is_sender_permitted: true } => (Rcode::NOERROR, true),
    };
    respond(header, parsed.question, rcode, out);
    is_accepted.then_some(ReceivedNotify { apex: parsed.apex, serial: parsed.serial, sender })
}

/// The content of a message.
struct ParsedNotify<'m> {
    apex: Name,
    serial: Option<u32>,
    question: &'m [u8],
}

/// Parses one question for SOA, and the optional SOA record. RFC 1996 §3.7 permits other types, but
/// none was ever defined.
fn parse_notify(message: &[u8], header: Header) -> Option<ParsedNotify<'_>> {
    if header.counts[0] != 1 {
        return None;
    }
    let (name, rest) = NameRef::split_from(&message[HEADER..]).ok()?;
    let (kind, _) = rest.split_first_chunk::<4>()?;
    let [a, b] = Rtype::SOA.0.to_be_bytes();
    let [c, d] = Class::IN.0.to_be_bytes();
    if *kind != [a, b, c, d] {
        return None;
    }
    let end = HEADER + name.len() + 4;
    let serial = if header.counts[1] > 0 { parse_serial(message, end, name)? } else { None };
    // RFC 4343 §3: the lookup of the zone uses lower case. The response repeats the question as
    // received.
    Some(ParsedNotify { apex: name.to_canonical(), serial, question: &message[HEADER..end] })
}

/// Returns the serial of the record at `offset` if it is the SOA record of `apex`, else
/// `Some(None)`. Returns `None` if the record cannot be read.
fn parse_serial(message: &[u8], offset: usize, apex: NameRef<'_>) -> Option<Option<u32>> {
    let (mut owner, mut rdata) = (Vec::with_capacity(MAX_NAME), Vec::with_capacity(64));
    let (fixed, _) = read_record(message, offset, &mut owner, &mut rdata).ok()?;
    let is_soa = fixed.rtype == Rtype::SOA && NameRef::from_wire_unchecked(&owner) == apex;
    let numbers = rdata.len().checked_sub(20).and_then(|start| rdata[start..].first_chunk::<4>());
    Some(numbers.filter(|_| is_soa).map(|octets| u32::from_be_bytes(*octets)))
}

/// RFC 1996 §4.7: the response is the request with QR set. The answer section is omitted.
fn respond(header: Header, question: &[u8], rcode: Rcode, out: &mut Vec<u8>) {
    let aa = if rcode == Rcode::NOERROR { flags::AA } else { 0 };
    let response_flags = flags::QR | aa | header.flags & flags::OPCODE | rcode.0;
    let questions = u16::from(!question.is_empty());
    let header = Header { id: header.id, flags: response_flags, counts: [questions, 0, 0, 0] };
    out.extend_from_slice(&header.to_octets());
    out.extend_from_slice(question);
}
