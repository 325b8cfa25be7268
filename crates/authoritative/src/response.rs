//! Building a response: sections, counts, truncation, OPT.

use crate::Query;
use nonesuch_proto::edns::{self, OPT_OCTETS};
use nonesuch_proto::message::{HEADER, Rcode, flags};
use nonesuch_zone::image::{Owner, Position, TO_QUESTION, Template};

/// UDP payload size that we announce and keep to: fits every path (RFC 9715 §3, RFC 6891 §6.2.5).
pub(crate) const UDP_PAYLOAD: u16 = 1232;
/// Largest message over TCP (RFC 1035 §4.2.2).
const TCP_MESSAGE: usize = 65_535;
/// Largest UDP message without EDNS (RFC 1035 §4.2.1).
const PLAIN_UDP: usize = 512;
/// Options: code 15 (RFC 8914 §2).
const EXTENDED_ERROR: u16 = 15;

/// How the query came.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Transport {
    /// UDP: responses are limited by the sender's payload size.
    Udp,
    /// TCP and what runs over it.
    Tcp,
}

/// A response under construction.
pub(crate) struct Response<'o> {
    out: &'o mut Vec<u8>,
    /// Answer, authority and additional records so far.
    counts: [u16; 3],
    /// Octets of the question name.
    question: usize,
    /// Octets that the records may fill, OPT not included.
    limit: usize,
    has_opt: bool,
    pub(crate) dnssec_ok: bool,
    pub(crate) authoritative: bool,
    pub(crate) rcode: Rcode,
    extended_error: Option<u16>,
}

/// A section that records are put into, in this order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Answer = 0,
    Authority = 1,
    Additional = 2,
}

impl<'o> Response<'o> {
    /// Begins the response to `query` in `out`, which is emptied.
    pub(crate) fn begin(query: &Query<'_>, transport: Transport, out: &'o mut Vec<u8>) -> Self {
        out.clear();
        out.extend_from_slice(&[0; HEADER]);
        out.extend_from_slice(query.question);
        let payload = query.opt.map_or(PLAIN_UDP, |opt| usize::from(opt.payload.min(UDP_PAYLOAD)));
        let size = if transport == Transport::Tcp { TCP_MESSAGE } else { payload };
        let reserved = if query.opt.is_some() { OPT_OCTETS } else { 0 };
        Self {
            out,
            counts: [0; 3],
            question: query.name_length,
            limit: size - reserved,
            has_opt: query.opt.is_some(),
            dnssec_ok: query.opt.is_some_and(|opt| opt.dnssec_ok()),
            authoritative: false,
            rcode: Rcode::NOERROR,
            extended_error: None,
        }
    }

    /// Where the next record will begin.
    pub(crate) const fn end(&self) -> usize {
        self.out.len()
    }

    /// The response so far.
    pub(crate) fn octets(&self) -> &[u8] {
        self.out
    }

    pub(crate) const fn has_answer(&self) -> bool {
        self.counts[0] > 0
    }

    /// Attaches an extended error (RFC 8914), where the query had EDNS.
    pub(crate) const fn set_extended_error(&mut self, code: u16) {
        self.extended_error = Some(code);
    }

    /// A pointer to the last `octets` of the question name.
    pub(crate) const fn suffix_pointer(&self, octets: usize) -> Owner {
        Owner::At(TO_QUESTION + (self.question - octets) as u16)
    }

    /// Adds an RRset, with its signatures where the query takes them.
    pub(crate) fn add(&mut self, section: Section, template: Template<'_>, owner: Owner) {
        let position = Position { question: self.question, owner };
        self.counts[section as usize] += template.append(position, self.dnssec_ok, self.out);
    }

    /// Adds an RRset with all names written out; for templates whose pointers lead nowhere here.
    pub(crate) fn add_written_out(&mut self, section: Section, template: Template<'_>) {
        self.counts[section as usize] +=
            template.append_written_out(Owner::WrittenOut, self.dnssec_ok, self.out);
    }

    /// Adds only the signatures of an RRset.
    pub(crate) fn add_signatures(&mut self, template: Template<'_>, owner: Owner) {
        let position = Position { question: self.question, owner };
        self.counts[0] += template.append_signatures(position, self.out);
    }

    /// Adds one record to the answer section that `write` appends.
    pub(crate) fn add_record(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.out);
        self.counts[0] += 1;
    }

    /// Adds an RRset to the additional section if it fits; tells whether it did.
    pub(crate) fn add_if_fits(&mut self, template: Template<'_>, written_out: bool) -> bool {
        let (end, count) = (self.out.len(), self.counts[2]);
        if written_out {
            self.add_written_out(Section::Additional, template);
        } else {
            self.add(Section::Additional, template, Owner::AsRendered);
        }
        if self.out.len() <= self.limit {
            return true;
        }
        self.out.truncate(end);
        self.counts[2] = count;
        false
    }

    /// Whether answer and authority are larger than the response may be.
    pub(crate) const fn is_too_large(&self) -> bool {
        self.out.len() > self.limit
    }

    /// Ends the response: truncates it where needed, appends OPT, writes the header.
    pub(crate) fn finish(mut self, query: &Query<'_>, truncate: bool) {
        let mut word = flags::QR | (query.header.flags & (flags::RD | flags::CD));
        if truncate || self.is_too_large() {
            // RFC 2181 §9, RFC 6891 §7: what is left is the question and OPT.
            word |= flags::TC;
            self.out.truncate(HEADER + query.question.len());
            self.counts = [0; 3];
        }
        if self.authoritative {
            word |= flags::AA;
        }
        if self.has_opt {
            self.push_opt();
        }
        word |= self.rcode.0 & 0x0f;
        let header = &mut self.out[..HEADER];
        header[..2].copy_from_slice(&query.header.id.to_be_bytes());
        header[2..4].copy_from_slice(&word.to_be_bytes());
        header[4..6].copy_from_slice(&1u16.to_be_bytes());
        for (slot, count) in header[6..].chunks_exact_mut(2).zip(self.counts) {
            slot.copy_from_slice(&count.to_be_bytes());
        }
    }

    fn push_opt(&mut self) {
        // RFC 3225 §3: DO is copied; the other flags are zero until they are defined (RFC 6891 §6.1.4).
        let opt_flags = if self.dnssec_ok { edns::DO } else { 0 };
        edns::push_opt(UDP_PAYLOAD, (self.rcode.0 >> 4) as u8, opt_flags, self.out);
        self.counts[2] += 1;
        if let Some(code) = self.extended_error {
            let length_at = self.out.len() - 2;
            self.out[length_at..].copy_from_slice(&6u16.to_be_bytes());
            self.out.extend_from_slice(&EXTENDED_ERROR.to_be_bytes());
            self.out.extend_from_slice(&2u16.to_be_bytes());
            self.out.extend_from_slice(&code.to_be_bytes());
        }
    }
}
