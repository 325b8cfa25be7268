//! Parses the parts of a query that the response depends on (RFC 1035 §4, RFC 6891 §6).

use nonesuch_proto::edns::Opt;
use nonesuch_proto::message::{HEADER, Header, flags, opcode};
use nonesuch_proto::{Class, MAX_LABEL, MAX_NAME, NameRef, Rtype};

/// A well-formed query.
#[derive(Clone, Copy, Debug)]
pub struct Query<'q> {
    /// The header of the query.
    pub header: Header,
    /// The question as received: name, type, class.
    pub question: &'q [u8],
    /// Octets of the query name, at the start of `question`.
    pub name_length: usize,
    /// The query type.
    pub qtype: Rtype,
    /// The query class.
    pub class: Class,
    /// The OPT record, if there is one.
    pub opt: Option<Opt<'q>>,
    /// Offset in the message of the TSIG record, which is the last record (RFC 8945 §5.1); `None`:
    /// the query is not signed.
    pub tsig_offset: Option<usize>,
}

/// Why a message is not a query that can be answered, which determines the response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum QueryFault {
    /// The message is a response or has no complete header: do not respond.
    Ignore,
    /// The opcode is not QUERY: NOTIMP.
    Opcode(Header),
    /// The message is malformed: FORMERR.
    Malformed(Header),
}

impl<'q> Query<'q> {
    /// Parses the header, the question, the OPT record and the TSIG record of `message`.
    ///
    /// # Errors
    /// Returns why the message is not a valid query.
    pub fn parse(message: &'q [u8]) -> Result<Self, QueryFault> {
        let header = Header::read(message).ok_or(QueryFault::Ignore)?;
        // The server never responds to a response; otherwise two servers could respond to each
        // other forever.
        if header.flags & flags::QR != 0 {
            return Err(QueryFault::Ignore);
        }
        if header.opcode() != opcode::QUERY {
            return Err(QueryFault::Opcode(header));
        }
        let form = QueryFault::Malformed(header);
        // RFC 9619 §4: a query has one question. Its answer section is empty.
        if header.counts[0] != 1 || header.counts[1] != 0 {
            return Err(form);
        }
        let name_length = measure_name(&message[HEADER..]).ok_or(form)?;
        let end = HEADER + name_length + 4;
        let question = message.get(HEADER..end).ok_or(form)?;
        let [a, b, c, d] = question[name_length..] else { return Err(form) };
        let (qtype, class) = (Rtype(u16::from_be_bytes([a, b])), Class(u16::from_be_bytes([c, d])));
        let mut rest = &message[end..];
        // RFC 1995 §3: the authority section of an IXFR query contains the SOA record of the
        // client. For other types this section is empty.
        match (header.counts[2], qtype) {
            (0, _) => {}
            (1, Rtype::IXFR) => rest = skip_record(rest).ok_or(form)?,
            _ => return Err(form),
        }
        let (mut opt, mut tsig_offset) = (None, None);
        let mut remaining = header.counts[3];
        while remaining > 0 {
            remaining -= 1;
            let (is_tsig, after) = read_additional(rest, &mut opt).ok_or(form)?;
            if is_tsig {
                // RFC 8945 §5.1: TSIG is the last record.
                if remaining > 0 {
                    return Err(form);
                }
                tsig_offset = Some(message.len() - rest.len());
            }
            rest = after;
        }
        if !rest.is_empty() {
            return Err(form);
        }
        Ok(Self { header, question, name_length, qtype, class, opt, tsig_offset })
    }

    /// The query name as received.
    #[must_use]
    pub fn name(&self) -> NameRef<'q> {
        NameRef::from_wire_unchecked(&self.question[..self.name_length])
    }

    /// Returns the query name in lower case. The name is written to `buffer`.
    #[inline]
    pub fn lower_name<'r>(&self, buffer: &'r mut [u8; MAX_NAME]) -> NameRef<'r> {
        let name = &self.question[..self.name_length];
        let lowered = &mut buffer[..name.len()];
        let words = lowered.as_chunks_mut().0.iter_mut().zip(name.as_chunks().0);
        words.for_each(|(lowered, word)| *lowered = to_lower(*word));
        // The last eight octets, which may overlap the words above. A name shorter than eight
        // octets is converted octet by octet.
        match (lowered.last_chunk_mut(), name.last_chunk()) {
            (Some(lowered), Some(word)) => *lowered = to_lower(*word),
            _ => lowered
                .iter_mut()
                .zip(name)
                .for_each(|(lowered, octet)| *lowered = octet.to_ascii_lowercase()),
        }
        NameRef::from_wire_unchecked(lowered)
    }
}

/// Converts eight octets to lower case together. Label lengths are less than all letters, so they
/// do not change.
#[inline]
const fn to_lower(octets: [u8; 8]) -> [u8; 8] {
    const ONES: u64 = 0x0101_0101_0101_0101;
    const HIGH: u64 = 0x80 * ONES;
    let word = u64::from_ne_bytes(octets);
    let low_bits = word & !HIGH;
    // The high bit of each octet is set if the octet is at least A, or after Z.
    let at_least_a = low_bits + (0x80 - b'A' as u64) * ONES;
    let above_z = low_bits + (0x7f - b'Z' as u64) * ONES;
    let upper_case_bits = (at_least_a ^ above_z) & !word & HIGH;
    // The shift converts 0x80 to 0x20, the bit that distinguishes lower case from upper case.
    (word | upper_case_bits >> 2).to_ne_bytes()
}

/// Returns the OPT record of a query that contains nothing else, not even a question (RFC 7873
/// §5.4).
#[must_use]
pub fn read_opt_alone(message: &[u8]) -> Option<Opt<'_>> {
    Header::read(message)
        .filter(|header| header.counts == [0, 0, 0, 1] && header.opcode() == opcode::QUERY)?;
    let mut opt = None;
    let (_, rest) = read_additional(&message[HEADER..], &mut opt)?;
    opt.filter(|_| rest.is_empty())
}

/// Returns the EDNS version of a message of any opcode; `None` if it has no OPT record. The message
/// must be well formed up to the OPT record. If the query has an OPT record, the response has one
/// too (RFC 6891 §6.1.1).
#[must_use]
pub fn edns_version(message: &[u8]) -> Option<u8> {
    let header = Header::read(message)?;
    let [questions, answers, authorities, additional] = header.counts.map(usize::from);
    let mut rest = &message[HEADER..];
    for _ in 0..questions {
        rest = measure_owner(rest).and_then(|name| rest.get(name + 4..))?;
    }
    for number in 0..answers + authorities + additional {
        let is_opt = rest.get(..3).is_some_and(|start| start == [0, 0, Rtype::OPT.0 as u8]);
        if is_opt && number >= answers + authorities {
            // The version follows the root label, type, class and the upper bits of the response
            // code (RFC 6891 §6.1.3).
            return rest.get(6).copied();
        }
        rest = skip_record(rest)?;
    }
    None
}

/// Returns the length of the name at the start of `octets`. A question name is not compressed.
fn measure_name(octets: &[u8]) -> Option<usize> {
    let mut offset = 0;
    loop {
        let length = usize::from(*octets.get(offset)?);
        if length > MAX_LABEL {
            return None;
        }
        offset += 1 + length;
        if length == 0 {
            return (offset <= MAX_NAME).then_some(offset);
        }
    }
}

/// Returns the octets after the record at the start of `octets`.
fn skip_record(octets: &[u8]) -> Option<&[u8]> {
    let owner = measure_owner(octets)?;
    let length = octets.get(owner + 8..)?.first_chunk()?;
    octets.get(owner + 10 + usize::from(u16::from_be_bytes(*length))..)
}

/// Reads one record of the additional section, and stores an OPT record in `opt`. Returns whether
/// the record is TSIG, and the octets after it.
// Every query with EDNS needs this function once, and rare messages use it elsewhere. Without the
// attribute, the compiler does not inline it in either place.
#[inline(always)]
fn read_additional<'q>(octets: &'q [u8], opt: &mut Option<Opt<'q>>) -> Option<(bool, &'q [u8])> {
    let owner = measure_owner(octets)?;
    let fixed = octets.get(owner..owner + 10)?;
    let [t, u, c, d, e, f, g, h, l, m] = *fixed else { return None };
    let end = owner + 10 + usize::from(u16::from_be_bytes([l, m]));
    let rdata = octets.get(owner + 10..end)?;
    let rtype = Rtype(u16::from_be_bytes([t, u]));
    if rtype == Rtype::OPT {
        // RFC 6891 §6.1.1: at most one OPT record, with the root as owner.
        if opt.is_some() || owner != 1 {
            return None;
        }
        let ttl = u32::from_be_bytes([e, f, g, h]);
        *opt = Some(Opt::from_parts(u16::from_be_bytes([c, d]), ttl, rdata)?);
    }
    Some((rtype == Rtype::TSIG, octets.get(end..)?))
}

/// Returns the length of an owner name, which may end in a compression pointer.
fn measure_owner(octets: &[u8]) -> Option<usize> {
    let mut offset = 0;
    loop {
        match *octets.get(offset)? {
            0 => return Some(offset + 1),
            length @ 1..=63 => offset += 1 + usize::from(length),
            192..=255 => return Some(offset + 2),
            _ => return None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn eight_octets_are_lowered_as_each_alone() {
        for octet in 0..=255u8 {
            for place in 0..8 {
                for beside in [0, b'A', b'z', 0x80, 0xff] {
                    let mut octets = [beside; 8];
                    octets[place] = octet;
                    assert_eq!(
                        to_lower(octets),
                        octets.map(|octet| octet.to_ascii_lowercase()),
                        "{octets:?}"
                    );
                }
            }
        }
    }

    #[test]
    fn names_of_every_length_are_lowered() {
        for length in 1..=MAX_NAME {
            let mut message = vec![0, 7, 1, 0, 0, 1, 0, 0, 0, 0, 0, 0];
            // Labels of up to 63 octets, then the root.
            let mut remaining = length - 1;
            while remaining > 0 {
                // A label of one more octet would leave room only for the root label.
                let label = (remaining - 1).min(63) - usize::from(remaining == 65);
                if label == 0 {
                    break;
                }
                message.push(label as u8);
                message.extend((0..label).map(|offset| b"AZaz@[`{-0\xc1\xdaMmQq"[offset % 16]));
                remaining -= 1 + label;
            }
            if remaining > 0 {
                continue;
            }
            message.extend_from_slice(&[0, 0, 1, 0, 1]);
            let query = Query::parse(&message).expect("a query");
            assert_eq!(query.name_length, length);
            let mut buffer = [0; MAX_NAME];
            let expected = query.name().wire().to_ascii_lowercase();
            assert_eq!(query.lower_name(&mut buffer).wire(), expected);
        }
    }
}
