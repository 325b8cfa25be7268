//! Reading a query (RFC 1035 §4, RFC 6891 §6), as far as the answer depends on it.

use nonesuch_proto::edns::Opt;
use nonesuch_proto::message::{HEADER, Header, flags};
use nonesuch_proto::{Class, MAX_LABEL, MAX_NAME, NameRef, Rtype};

/// A well-formed query.
#[derive(Clone, Copy, Debug)]
pub struct Query<'q> {
    /// The header.
    pub header: Header,
    /// The question as sent: name, type, class.
    pub question: &'q [u8],
    /// Octets of the question name.
    pub name_length: usize,
    /// Type asked for.
    pub qtype: Rtype,
    /// Class asked for.
    pub class: Class,
    /// The OPT record, where there is one.
    pub opt: Option<Opt<'q>>,
}

/// What is to be done with octets that are no answerable query.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Malformed {
    /// Say nothing: a response, or no whole header.
    Ignore,
    /// An opcode other than QUERY: NOTIMP.
    Opcode(Header),
    /// FORMERR.
    Form(Header),
}

impl<'q> Query<'q> {
    /// Reads `message`.
    pub fn parse(message: &'q [u8]) -> Result<Self, Malformed> {
        let header = Header::read(message).ok_or(Malformed::Ignore)?;
        // A response is never answered, or two servers could answer each other for ever.
        if header.flags & flags::QR != 0 {
            return Err(Malformed::Ignore);
        }
        if header.opcode() != 0 {
            return Err(Malformed::Opcode(header));
        }
        // RFC 9619 §4: a query has one question; it has nothing in the answer and authority sections.
        if header.counts[0] != 1 || header.counts[1] != 0 || header.counts[2] != 0 {
            return Err(Malformed::Form(header));
        }
        let form = Malformed::Form(header);
        let name_length = measure_name(&message[HEADER..]).ok_or(form)?;
        let end = HEADER + name_length + 4;
        let question = message.get(HEADER..end).ok_or(form)?;
        let [a, b, c, d] = question[name_length..] else { return Err(form) };
        let mut rest = &message[end..];
        let mut opt = None;
        for _ in 0..header.counts[3] {
            rest = read_additional(rest, &mut opt).ok_or(form)?;
        }
        if !rest.is_empty() {
            return Err(form);
        }
        let (qtype, class) = (Rtype(u16::from_be_bytes([a, b])), Class(u16::from_be_bytes([c, d])));
        Ok(Self { header, question, name_length, qtype, class, opt })
    }

    /// The question name as sent.
    #[must_use]
    pub fn name(&self) -> NameRef<'q> {
        NameRef::from_checked(&self.question[..self.name_length])
    }
}

/// Octets of the name in front of `octets`; a question name is not compressed.
fn measure_name(octets: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        let length = usize::from(*octets.get(at)?);
        if length > MAX_LABEL {
            return None;
        }
        at += 1 + length;
        if length == 0 {
            return (at <= MAX_NAME).then_some(at);
        }
    }
}

/// Reads one record of the additional section; only OPT means anything here.
fn read_additional<'q>(octets: &'q [u8], opt: &mut Option<Opt<'q>>) -> Option<&'q [u8]> {
    let owner = measure_owner(octets)?;
    let fixed = octets.get(owner..owner + 10)?;
    let [t, u, c, d, e, f, g, h, l, m] = *fixed else { return None };
    let end = owner + 10 + usize::from(u16::from_be_bytes([l, m]));
    let rdata = octets.get(owner + 10..end)?;
    if u16::from_be_bytes([t, u]) == Rtype::OPT.0 {
        // RFC 6891 §6.1.1: at most one OPT record, owned by the root.
        if opt.is_some() || owner != 1 {
            return None;
        }
        let ttl = u32::from_be_bytes([e, f, g, h]);
        *opt = Some(Opt::from_parts(u16::from_be_bytes([c, d]), ttl, rdata)?);
    }
    octets.get(end..)
}

/// Octets of an owner name, which may end in a compression pointer.
fn measure_owner(octets: &[u8]) -> Option<usize> {
    let mut at = 0;
    loop {
        match *octets.get(at)? {
            0 => return Some(at + 1),
            length @ 1..=63 => at += 1 + usize::from(length),
            192..=255 => return Some(at + 2),
            _ => return None,
        }
    }
}
