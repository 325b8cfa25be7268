//! Messages (RFC 1035 §4): the header, the question, and a parser for all records of a received
//! message.

use crate::edns;
use crate::name::{NameError, push_from_message};
use crate::rdata;
use crate::{Class, Name, Rtype};
use std::fmt;

/// Length of the header in octets.
pub const HEADER: usize = 12;

/// Flag bits of the second 16-bit word of the header.
pub mod flags {
    /// Response.
    pub const QR: u16 = 0x8000;
    /// Authoritative answer.
    pub const AA: u16 = 0x0400;
    /// Truncated.
    pub const TC: u16 = 0x0200;
    /// Recursion desired.
    pub const RD: u16 = 0x0100;
    /// Recursion available.
    pub const RA: u16 = 0x0080;
    /// Authentic data (RFC 4035 §3.1.6).
    pub const AD: u16 = 0x0020;
    /// Checking disabled (RFC 4035 §3.1.6).
    pub const CD: u16 = 0x0010;
    /// Mask of the opcode bits.
    pub const OPCODE: u16 = 0x7800;
}

/// Opcodes (RFC 1035 §4.1.1).
pub mod opcode {
    /// A standard query.
    pub const QUERY: u8 = 0;
    /// NOTIFY (RFC 1996).
    pub const NOTIFY: u8 = 4;
    /// UPDATE (RFC 2136).
    pub const UPDATE: u8 = 5;
}

/// A response code. Values above 15 need an OPT record, which has the upper bits (RFC 6891 §6.1.3).
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct Rcode(pub u16);

#[allow(missing_docs)] // mnemonics of the IANA registry
impl Rcode {
    pub const NOERROR: Self = Self(0);
    pub const FORMERR: Self = Self(1);
    pub const SERVFAIL: Self = Self(2);
    pub const NXDOMAIN: Self = Self(3);
    pub const NOTIMP: Self = Self(4);
    pub const REFUSED: Self = Self(5);
    pub const YXDOMAIN: Self = Self(6);
    pub const NOTAUTH: Self = Self(9);
    pub const BADVERS: Self = Self(16);
    pub const BADCOOKIE: Self = Self(23);
}

impl fmt::Display for Rcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            0 => f.pad("NOERROR"),
            1 => f.pad("FORMERR"),
            2 => f.pad("SERVFAIL"),
            3 => f.pad("NXDOMAIN"),
            4 => f.pad("NOTIMP"),
            5 => f.pad("REFUSED"),
            6 => f.pad("YXDOMAIN"),
            9 => f.pad("NOTAUTH"),
            16 => f.pad("BADVERS"),
            23 => f.pad("BADCOOKIE"),
            number => f.pad(&format!("RCODE{number}")),
        }
    }
}

/// The header of a message.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Header {
    /// Query identifier.
    pub id: u16,
    /// Flags, opcode and the low four bits of the response code.
    pub flags: u16,
    /// Numbers of questions, answer records, authority records and additional records.
    pub counts: [u16; 4],
}

impl Header {
    /// Reads the header. Returns `None` if `message` has fewer than 12 octets.
    #[must_use]
    pub fn read(message: &[u8]) -> Option<Self> {
        let octets: &[u8; HEADER] = message.get(..HEADER)?.try_into().ok()?;
        let u16_at = |at: usize| u16::from_be_bytes([octets[at], octets[at + 1]]);
        Some(Self { id: u16_at(0), flags: u16_at(2), counts: [u16_at(4), u16_at(6), u16_at(8), u16_at(10)] })
    }

    /// Returns the opcode, 0 to 15.
    #[must_use]
    pub const fn opcode(self) -> u8 {
        ((self.flags & flags::OPCODE) >> 11) as u8
    }

    /// Returns the low four bits of the response code.
    #[must_use]
    pub const fn rcode(self) -> Rcode {
        Rcode(self.flags & 0x0f)
    }

    /// Returns the header in wire form.
    #[must_use]
    pub fn to_octets(self) -> [u8; HEADER] {
        let mut out = [0; HEADER];
        let words = [self.id, self.flags, self.counts[0], self.counts[1], self.counts[2], self.counts[3]];
        for (field, word) in out.chunks_exact_mut(2).zip(words) {
            field.copy_from_slice(&word.to_be_bytes());
        }
        out
    }
}

/// The reason why a message cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum MessageError {
    /// The message ends before the number of records that the header announces.
    #[error("the message is incomplete: it ends before the last record that its header announces")]
    Truncated,
    /// A name is malformed.
    #[error("{0}")]
    Name(#[from] NameError),
    /// RDATA is malformed for its type.
    #[error("the RDATA of a {0} record is malformed")]
    Rdata(Rtype),
    /// Octets follow the last record.
    #[error("the message has extra octets after the last record")]
    TrailingOctets,
}

/// The section that contains a record.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub enum Section {
    /// Answer section.
    Answer,
    /// Authority section.
    Authority,
    /// Additional section.
    Additional,
}

/// A record of a received message, with uncompressed names.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Record {
    /// The section that contains the record.
    pub section: Section,
    /// Owner name.
    pub owner: Name,
    /// Type.
    pub rtype: Rtype,
    /// Class, or the payload size for OPT.
    pub class: Class,
    /// Time to live, or the extended flags for OPT.
    pub ttl: u32,
    /// RDATA with uncompressed names.
    pub rdata: Vec<u8>,
}

/// A question of a message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Question {
    /// The name.
    pub name: Name,
    /// The type.
    pub rtype: Rtype,
    /// The class.
    pub class: Class,
}

/// A received message.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Message {
    /// The header.
    pub header: Header,
    /// The questions.
    pub questions: Vec<Question>,
    /// The records of all three sections, in the order of the message.
    pub records: Vec<Record>,
}

/// Octets of the shortest record: the owner name of one octet, and the fixed fields.
const RECORD_OCTETS_MIN: usize = 11;

impl Message {
    /// Reads a complete message. For each type in [`rdata::TYPES`], it checks the format of the
    /// RDATA.
    ///
    /// # Errors
    /// If the message ends early, a name or RDATA is malformed, or octets follow the last record.
    pub fn parse(octets: &[u8]) -> Result<Self, MessageError> {
        let header = Header::read(octets).ok_or(MessageError::Truncated)?;
        let mut at = HEADER;
        let mut questions = Vec::new();
        for _ in 0..header.counts[0] {
            let (name, end) = Name::from_message(octets, at)?;
            let (rtype, class) = (read_u16(octets, end)?, read_u16(octets, end + 2)?);
            questions.push(Question { name, rtype: Rtype(rtype), class: Class(class) });
            at = end + 4;
        }
        // The counts may be false.
        let count: usize = header.counts[1..].iter().map(|count| usize::from(*count)).sum();
        let mut records = Vec::with_capacity(count.min(octets.len() / RECORD_OCTETS_MIN));
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        for (section, count) in sections.into_iter().zip(&header.counts[1..]) {
            for _ in 0..*count {
                let (record, end) = parse_record(octets, at, section)?;
                records.push(record);
                at = end;
            }
        }
        if at != octets.len() {
            return Err(MessageError::TrailingOctets);
        }
        Ok(Self { header, questions, records })
    }

    /// Returns the message in wire form without compression. The counts in the header are those of
    /// `questions` and `records`, not those of `self.header`.
    #[must_use]
    pub fn to_octets(&self) -> Vec<u8> {
        let in_section = |section| self.records.iter().filter(move |record| record.section == section);
        let sections = [Section::Answer, Section::Authority, Section::Additional];
        let counts = sections.map(|section| in_section(section).count() as u16);
        let counts = [self.questions.len() as u16, counts[0], counts[1], counts[2]];
        let mut out = Header { counts, ..self.header }.to_octets().to_vec();
        for question in &self.questions {
            out.extend_from_slice(question.name.wire());
            out.extend_from_slice(&question.rtype.0.to_be_bytes());
            out.extend_from_slice(&question.class.0.to_be_bytes());
        }
        for record in sections.into_iter().flat_map(in_section) {
            out.extend_from_slice(record.owner.wire());
            out.extend_from_slice(&record.rtype.0.to_be_bytes());
            out.extend_from_slice(&record.class.0.to_be_bytes());
            out.extend_from_slice(&record.ttl.to_be_bytes());
            out.extend_from_slice(&(record.rdata.len() as u16).to_be_bytes());
            out.extend_from_slice(&record.rdata);
        }
        out
    }

    /// Returns the extended response code: the code of the header with the upper bits from the OPT
    /// record, if the message has one (RFC 6891 §6.1.3).
    #[must_use]
    pub fn rcode(&self) -> Rcode {
        let upper = self.opt().map_or(0, |opt| (opt.ttl >> 24) as u16);
        Rcode(upper << 4 | self.header.rcode().0)
    }

    /// Returns the first OPT record.
    #[must_use]
    pub fn opt(&self) -> Option<&Record> {
        self.records.iter().find(|record| record.rtype == Rtype::OPT)
    }

    /// Returns code and text of the first extended DNS error (RFC 8914), as
    /// [`read_extended_error`](edns::read_extended_error) does. `None` if it does not exist or is malformed.
    #[must_use]
    pub fn extended_error(&self) -> Option<(u16, &[u8])> {
        let (_, data) =
            edns::Options::new(&self.opt()?.rdata).find(|(code, _)| *code == edns::EXTENDED_ERROR)?;
        edns::read_extended_error(data)
    }

    /// Returns the records of one section, without OPT records.
    pub fn section(&self, section: Section) -> impl Iterator<Item = &Record> {
        self.records.iter().filter(move |record| record.section == section && record.rtype != Rtype::OPT)
    }
}

fn read_u16(octets: &[u8], at: usize) -> Result<u16, MessageError> {
    match octets.get(at..at + 2) {
        Some(&[a, b]) => Ok(u16::from_be_bytes([a, b])),
        _ => Err(MessageError::Truncated),
    }
}

fn parse_record(octets: &[u8], at: usize, section: Section) -> Result<(Record, usize), MessageError> {
    let mut rdata = Vec::new();
    let (owner, after_owner) = Name::from_message(octets, at)?;
    let (FixedFields { rtype, class, ttl }, end) = read_after_owner(octets, after_owner, &mut rdata)?;
    Ok((Record { section, owner, rtype, class, ttl, rdata }, end))
}

/// The fixed-size fields between the owner and the RDATA of a record, without RDLENGTH.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FixedFields {
    /// Type.
    pub rtype: Rtype,
    /// Class.
    pub class: Class,
    /// Time to live.
    pub ttl: u32,
}

/// Reads the record at the offset `at` of a message. The owner in wire form replaces the contents
/// of `owner`, and the RDATA with uncompressed names replaces the contents of `rdata`. Returns the
/// fixed fields and the offset after the record.
///
/// This function is for messages with many records, such as those of a zone transfer. It does not
/// allocate once the buffers are large enough.
///
/// # Errors
/// If the message ends inside the record, or a name or the RDATA is malformed. The contents of the
/// buffers are then undefined.
pub fn read_record(
    octets: &[u8],
    at: usize,
    owner: &mut Vec<u8>,
    rdata: &mut Vec<u8>,
) -> Result<(FixedFields, usize), MessageError> {
    owner.clear();
    let after_owner = push_from_message(octets, at, owner)?;
    read_after_owner(octets, after_owner, rdata)
}

/// Reads the rest of a record, whose owner ends before the offset `at`. Returns the fixed fields
/// and the offset after the record.
fn read_after_owner(
    octets: &[u8],
    at: usize,
    rdata: &mut Vec<u8>,
) -> Result<(FixedFields, usize), MessageError> {
    let rtype = Rtype(read_u16(octets, at)?);
    let class = Class(read_u16(octets, at + 2)?);
    let ttl = u32::from(read_u16(octets, at + 4)?) << 16 | u32::from(read_u16(octets, at + 6)?);
    let start = at + 10;
    let end = start + usize::from(read_u16(octets, at + 8)?);
    if end > octets.len() {
        return Err(MessageError::Truncated);
    }
    rdata.clear();
    push_rdata(octets, rtype, start, end, rdata)?;
    Ok((FixedFields { rtype, class, ttl }, end))
}

/// Appends the RDATA in `octets[start..end]` to the empty buffer `out`, with all names
/// uncompressed. Returns an error if it is malformed for its type.
fn push_rdata(
    octets: &[u8],
    rtype: Rtype,
    start: usize,
    end: usize,
    out: &mut Vec<u8>,
) -> Result<(), MessageError> {
    let received = &octets[start..end];
    let fields = rdata::entry(rtype).map_or(&[][..], |entry| entry.fields);
    let has_names = fields.iter().any(|field| matches!(field, rdata::Field::Name { .. }));
    if rtype == Rtype::OPT || rdata::is_well_formed(rtype, received) {
        out.extend_from_slice(received);
        return Ok(());
    }
    if !has_names {
        return Err(MessageError::Rdata(rtype));
    }
    let mut at = start;
    for field in fields {
        if matches!(field, rdata::Field::Name { .. }) {
            // RFC 3597 §4: receivers may encounter compressed names also in types such as SRV and
            // RP. A compression pointer always points backwards.
            at = push_from_message(&octets[..end], at, out)?;
            continue;
        }
        let length = rdata::measure_field(*field, out, &octets[at.min(end)..end]);
        let length = length.ok_or(MessageError::Rdata(rtype))?;
        out.extend_from_slice(&octets[at..at + length]);
        at += length;
    }
    // RDATA with expanded names may exceed the maximum length of RDATA.
    if at == end && out.len() <= usize::from(u16::MAX) { Ok(()) } else { Err(MessageError::Rdata(rtype)) }
}

/// Appends a query with one question of class IN.
pub fn push_query(name: &Name, rtype: Rtype, id: u16, query_flags: u16, out: &mut Vec<u8>) {
    out.extend_from_slice(&Header { id, flags: query_flags, counts: [1, 0, 0, 0] }.to_octets());
    out.extend_from_slice(name.wire());
    out.extend_from_slice(&rtype.0.to_be_bytes());
    out.extend_from_slice(&Class::IN.0.to_be_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn compressed_names_are_written_out() {
        let mut octets = Vec::new();
        push_query(&"Example.com".parse().unwrap(), Rtype::MX, 7, flags::RD, &mut octets);
        octets[7] = 1;
        octets.extend_from_slice(b"\xc0\x0c\x00\x0f\x00\x01\x00\x00\x0e\x10\x00\x09\x00\x0a\x04mail\xc0\x0c");
        let message = Message::parse(&octets).unwrap();
        let record = &message.records[0];
        assert_eq!(record.owner.to_string(), "Example.com.");
        let mut text = Vec::new();
        rdata::push_text(record.rtype, &record.rdata, &mut text);
        assert_eq!(text, b"10 mail.Example.com.");
        let plain = message.to_octets();
        assert_eq!(plain.len(), octets.len() + (13 - 2) + (13 - 2));
        assert_eq!(Message::parse(&plain), Ok(message.clone()));
        octets.push(0);
        assert_eq!(Message::parse(&octets).unwrap_err(), MessageError::TrailingOctets);
        assert_eq!(Message::parse(&octets[..octets.len() - 3]).unwrap_err(), MessageError::Truncated);
    }

    proptest! {
        #[test]
        fn arbitrary_octets_never_panic(octets in proptest::collection::vec(any::<u8>(), 0..200)) {
            if let Ok(message) = Message::parse(&octets) {
                prop_assert_eq!(Message::parse(&message.to_octets()), Ok(message));
            }
        }

        #[test]
        fn header_round_trip(id: u16, flags: u16, counts: [u16; 4]) {
            let header = Header { id, flags, counts };
            prop_assert_eq!(Header::read(&header.to_octets()), Some(header));
        }
    }
}
