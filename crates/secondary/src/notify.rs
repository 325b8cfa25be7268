//! NOTIFY (RFC 1996): messages of primaries, and those that tell secondaries of a new version.
//!
//! [`handle`] answers a message and says what it tells; [`NotifyQueue`] decides what is sent when. Neither has I/O or a clock.

mod secondaries;
mod send_queue;
#[cfg(test)]
mod tests;

pub use secondaries::{LastNotify, LastQuery, LastTransfer, NotifyResult, Secondaries, SecondaryStatus};

pub use send_queue::{NotifyOutcome, NotifyQueue, NotifyReason, OutgoingNotify, SoaRecord};

use nonesuch_proto::message::{HEADER, Header, Rcode, flags, opcode, read_record};
use nonesuch_proto::{Class, MAX_NAME, Name, NameRef, Rtype};
use std::net::IpAddr;

/// A NOTIFY that was taken.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReceivedNotify {
    /// The zone, in lower case.
    pub apex: Name,
    /// The serial that the sender has, where it says so: a hint (RFC 1996 §3.7).
    pub serial: Option<u32>,
    /// Who sent it.
    pub sender: IpAddr,
}

/// What a server has to do with the zone of a NOTIFY.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NotifyRole {
    /// It does not serve it.
    NotServed,
    /// It is a primary of it, which nobody notifies.
    Primary,
    /// It is a secondary, and the sender may notify it, or may not.
    Secondary {
        /// Whether the sender is one of the primaries, or is allowed.
        allows: bool,
    },
}

/// Answers the NOTIFY `message` of `sender`: the whole response without TSIG is left in `out`, and what it tells is
/// returned where it is to be acted on. `ask` returns the standing of the zone, whose name it gets in lower case. `out` stays empty where no answer is sent.
pub fn handle(
    message: &[u8],
    sender: IpAddr,
    ask: impl FnOnce(NameRef<'_>) -> NotifyRole,
    out: &mut Vec<u8>,
) -> Option<ReceivedNotify> {
    out.clear();
    let header = Header::read(message)?;
    if header.flags & flags::QR != 0 || header.opcode() != opcode::NOTIFY {
        return None;
    }
    let Some(told) = read(message, header) else {
        respond(header, &[], Rcode::FORMERR, out);
        return None;
    };
    let (rcode, is_taken) = match ask(told.apex.view()) {
        NotifyRole::NotServed | NotifyRole::Primary => (Rcode::NOTAUTH, false),
        NotifyRole::Secondary { allows: false } => (Rcode::REFUSED, false),
        NotifyRole::Secondary { allows: true } => (Rcode::NOERROR, true),
    };
    respond(header, told.question, rcode, out);
    is_taken.then_some(ReceivedNotify { apex: told.apex, serial: told.serial, sender })
}

/// What a message says.
struct ParsedNotify<'m> {
    apex: Name,
    serial: Option<u32>,
    question: &'m [u8],
}

/// One question, for SOA (RFC 1996 §3.7 leaves room for other types; none was ever defined), and perhaps the SOA record.
fn read(message: &[u8], header: Header) -> Option<ParsedNotify<'_>> {
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
    let serial = if header.counts[1] > 0 { read_hint(message, end, name)? } else { None };
    // RFC 4343 §3: zones are looked up in lower case; the question is repeated as it came.
    Some(ParsedNotify { apex: name.to_canonical(), serial, question: &message[HEADER..end] })
}

/// The serial of the SOA record at `at`; the outer `None` where the record cannot be read.
fn read_hint(message: &[u8], at: usize, apex: NameRef<'_>) -> Option<Option<u32>> {
    let (mut owner, mut rdata) = (Vec::with_capacity(MAX_NAME), Vec::with_capacity(64));
    let (fixed, _) = read_record(message, at, &mut owner, &mut rdata).ok()?;
    let is_soa = fixed.rtype == Rtype::SOA && NameRef::from_checked(&owner) == apex;
    let numbers = rdata.len().checked_sub(20).and_then(|start| rdata[start..].first_chunk::<4>());
    Some(numbers.filter(|_| is_soa).map(|octets| u32::from_be_bytes(*octets)))
}

/// RFC 1996 §4.7: the request with QR set; the answer section is left out.
fn respond(header: Header, question: &[u8], rcode: Rcode, out: &mut Vec<u8>) {
    let aa = if rcode == Rcode::NOERROR { flags::AA } else { 0 };
    let response_flags = flags::QR | aa | header.flags & flags::OPCODE | rcode.0;
    let questions = u16::from(!question.is_empty());
    let header = Header { id: header.id, flags: response_flags, counts: [questions, 0, 0, 0] };
    out.extend_from_slice(&header.to_octets());
    out.extend_from_slice(question);
}
