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
    /// Where the TSIG record begins, which is the last one (RFC 8945 §5.1).
    pub tsig: Option<usize>,
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
        let form = Malformed::Form(header);
        // RFC 9619 §4: a query has one question; it has nothing in the answer section.
        if header.counts[0] != 1 || header.counts[1] != 0 {
            return Err(form);
        }
        let name_length = measure_name(&message[HEADER..]).ok_or(form)?;
        let end = HEADER + name_length + 4;
        let question = message.get(HEADER..end).ok_or(form)?;
        let [a, b, c, d] = question[name_length..] else { return Err(form) };
        let (qtype, class) = (Rtype(u16::from_be_bytes([a, b])), Class(u16::from_be_bytes([c, d])));
        let mut rest = &message[end..];
        // RFC 1995 §3: the authority section of an IXFR query has the SOA record that the sender has; others have nothing there.
        match (header.counts[2], qtype) {
            (0, _) => {}
            (1, Rtype::IXFR) => rest = skip_record(rest).ok_or(form)?,
            _ => return Err(form),
        }
        let (mut opt, mut tsig) = (None, None);
        for left in (0..header.counts[3]).rev() {
            let at = message.len() - rest.len();
            let (is_tsig, behind) = read_additional(rest, &mut opt).ok_or(form)?;
            rest = behind;
            // RFC 8945 §5.1: TSIG is the last record.
            if is_tsig && left > 0 {
                return Err(form);
            }
            tsig = is_tsig.then_some(at);
        }
        if !rest.is_empty() {
            return Err(form);
        }
        Ok(Self { header, question, name_length, qtype, class, opt, tsig })
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

/// What stands behind the record in front of `octets`.
fn skip_record(octets: &[u8]) -> Option<&[u8]> {
    let owner = measure_owner(octets)?;
    let length = octets.get(owner + 8..)?.first_chunk()?;
    octets.get(owner + 10 + usize::from(u16::from_be_bytes(*length))..)
}

/// Reads one record of the additional section; OPT is read here. Tells whether it is TSIG, and what stands behind it.
fn read_additional<'q>(octets: &'q [u8], opt: &mut Option<Opt<'q>>) -> Option<(bool, &'q [u8])> {
    let owner = measure_owner(octets)?;
    let fixed = octets.get(owner..owner + 10)?;
    let [t, u, c, d, e, f, g, h, l, m] = *fixed else { return None };
    let end = owner + 10 + usize::from(u16::from_be_bytes([l, m]));
    let rdata = octets.get(owner + 10..end)?;
    let rtype = Rtype(u16::from_be_bytes([t, u]));
    if rtype == Rtype::OPT {
        // RFC 6891 §6.1.1: at most one OPT record, owned by the root.
        if opt.is_some() || owner != 1 {
            return None;
        }
        let ttl = u32::from_be_bytes([e, f, g, h]);
        *opt = Some(Opt::from_parts(u16::from_be_bytes([c, d]), ttl, rdata)?);
    }
    Some((rtype == Rtype::TSIG, octets.get(end..)?))
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
