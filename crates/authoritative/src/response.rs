//! Building a response: sections, counts, truncation, OPT.

use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Header, Rcode, flags};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::query::Query;
use nonesuch_server::trailer::{Trailer, Transport};
use nonesuch_zone::image::{OwnerForm, Position, TO_QUESTION, Template, push_fixed};

/// A place in a response to go back to.
#[derive(Clone, Copy)]
pub(crate) struct Checkpoint {
    pub(crate) end: usize,
    counts: [u16; 3],
}

/// A response under construction.
pub(crate) struct Response<'o> {
    out: &'o mut Vec<u8>,
    /// Answer, authority and additional records so far.
    counts: [u16; 3],
    /// Octets of the question name.
    question: usize,
    /// Octets that the records may fill, without OPT and TSIG. 0 once an RRset that the response must have
    /// was left out for want of room: the response is truncated then.
    limit: usize,
    /// Octets that the message may have.
    size: usize,
    trailer: &'o Trailer<'o>,
    has_opt: bool,
    /// Flags of the OPT record.
    opt_flags: u16,
    pub(crate) dnssec_ok: bool,
    pub(crate) authoritative: bool,
    pub(crate) rcode: Rcode,
    extended_error: Option<ExtendedError>,
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
    pub(crate) fn begin(
        query: &Query<'_>,
        transport: Transport,
        trailer: &'o Trailer<'o>,
        out: &'o mut Vec<u8>,
    ) -> Self {
        out.clear();
        out.extend_from_slice(&[0; HEADER]);
        out.extend_from_slice(query.question);
        let size = trailer.message_octets(query, transport);
        Self {
            out,
            counts: [0; 3],
            question: query.name_length,
            limit: size.saturating_sub(trailer.room(query)),
            size,
            trailer,
            has_opt: query.opt.is_some(),
            // RFC 3225 §3: DO is copied; the other flags are zero until they are defined (RFC 6891 §6.1.4).
            opt_flags: query.opt.map_or(0, |opt| opt.flags & edns::DO),
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

    /// Says in OPT that the response code is that of a compact answer restored (RFC 9824 §5.1).
    pub(crate) const fn set_compact_ok(&mut self) {
        self.opt_flags |= edns::CO;
    }

    /// Attaches an extended error (RFC 8914), where the query had EDNS.
    pub(crate) const fn set_extended_error(&mut self, error: ExtendedError) {
        self.extended_error = Some(error);
    }

    /// A pointer to the last `octets` of the question name.
    pub(crate) const fn suffix_pointer(&self, octets: usize) -> OwnerForm {
        OwnerForm::At(TO_QUESTION + (self.question - octets) as u16)
    }

    /// Octets that further records may take.
    const fn room(&self) -> usize {
        self.limit.saturating_sub(self.out.len())
    }

    /// Adds an RRset, with its signatures where the query takes them. One that does not fit is left out, and all that come
    /// after it: the response is truncated then.
    pub(crate) fn add(&mut self, section: Section, template: Template<'_>, owner: OwnerForm) {
        if !self.append(section, template, owner) {
            self.limit = 0;
        }
    }

    /// Appends an RRset unless it is larger than the room for it; returns whether it did. The one place where templates are
    /// copied, so that the copying is inlined. The end of the last RRset may be beyond the limit.
    fn append(&mut self, section: Section, template: Template<'_>, owner: OwnerForm) -> bool {
        let position = Position { question: self.question, owner };
        let Some(count) = template.append(position, self.dnssec_ok, self.room(), self.out) else {
            return false;
        };
        self.counts[section as usize] += count;
        true
    }

    /// Adds only the signatures of an RRset, as [`add`](Self::add) does the RRset.
    pub(crate) fn add_signatures(&mut self, template: Template<'_>, owner: OwnerForm) {
        let position = Position { question: self.question, owner };
        match template.append_signatures(position, self.room(), self.out) {
            Some(count) => self.counts[0] += count,
            None => self.limit = 0,
        }
    }

    /// Adds the RRSIG records over the RRset that begins at `start`, with its owner and TTL. `signatures` is their RDATA, each
    /// behind its length in two octets.
    pub(crate) fn add_signatures_over(&mut self, section: Section, start: usize, signatures: &[u8]) {
        let length = owner_length(&self.out[start..]);
        let ttl = self.out.get(start + length + 4..).and_then(<[u8]>::first_chunk);
        let ttl = ttl.map_or(0, |octets| u32::from_be_bytes(*octets));
        let owner = match u16::try_from(start).ok().filter(|start| *start < 0x4000 && length > 2) {
            Some(start) => (0xc000 | start).to_be_bytes().to_vec(),
            None => self.out[start..start + length].to_vec(),
        };
        self.add_signature_records(section, &owner, ttl, signatures);
    }

    /// Adds RRSIG records whose owner is written as `owner`.
    pub(crate) fn add_signature_records(
        &mut self,
        section: Section,
        owner: &[u8],
        ttl: u32,
        signatures: &[u8],
    ) {
        let mut rest = signatures;
        while let Some((length, tail)) = rest.split_first_chunk() {
            let Some((rdata, tail)) = tail.split_at_checked(usize::from(u16::from_be_bytes(*length))) else {
                return;
            };
            self.out.extend_from_slice(owner);
            push_fixed(Rtype::RRSIG, ttl, rdata.len() as u16, self.out);
            self.out.extend_from_slice(rdata);
            self.counts[section as usize] += 1;
            rest = tail;
        }
    }

    /// Adds one record, its owner as short as pointers into the question name make it, or the two octets of `pointer`; returns
    /// where it begins.
    pub(crate) fn add_generated(
        &mut self,
        section: Section,
        owner: NameRef<'_>,
        pointer: Option<u16>,
        rtype: Rtype,
        ttl: u32,
        rdata: &[&[u8]],
    ) -> usize {
        let start = self.out.len();
        match pointer {
            Some(pointer) => self.out.extend_from_slice(&pointer.to_be_bytes()),
            None => self.push_name(owner),
        }
        push_fixed(rtype, ttl, rdata.iter().map(|part| part.len()).sum::<usize>() as u16, self.out);
        rdata.iter().for_each(|part| self.out.extend_from_slice(part));
        self.counts[section as usize] += 1;
        start
    }

    /// Appends `name`, ending in a pointer to the longest suffix of the question name that it shares.
    fn push_name(&mut self, name: NameRef<'_>) {
        let question = self.out[HEADER..HEADER + self.question].to_vec();
        let question = NameRef::from_checked(&question);
        let mut suffix = name;
        while !suffix.is_root() {
            if question.is_at_or_below(suffix) {
                let front = name.len() - suffix.len();
                let at = TO_QUESTION + (self.question - suffix.len()) as u16;
                self.out.extend_from_slice(&name.wire()[..front]);
                self.out.extend_from_slice(&at.to_be_bytes());
                return;
            }
            suffix = suffix.parent().unwrap_or(NameRef::ROOT);
        }
        self.out.extend_from_slice(name.wire());
    }

    /// Where the response is, to go back to.
    pub(crate) const fn mark(&self) -> Checkpoint {
        Checkpoint { end: self.out.len(), counts: self.counts }
    }

    /// Takes back what was added since `mark`.
    pub(crate) fn rewind(&mut self, mark: Checkpoint) {
        self.out.truncate(mark.end);
        self.counts = mark.counts;
    }

    /// Adds one record to the answer section that `write` appends.
    pub(crate) fn add_record(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.out);
        self.counts[0] += 1;
    }

    /// Adds an RRset to the additional section if it fits; returns whether it did. `written_out`: with all names written out, where
    /// the template's pointers lead nowhere.
    pub(crate) fn add_if_fits(&mut self, template: Template<'_>, written_out: bool) -> bool {
        let owner = if written_out { OwnerForm::WrittenOut } else { OwnerForm::AsRendered };
        let (end, count) = (self.out.len(), self.counts[2]);
        if !self.append(Section::Additional, template, owner) {
            return false;
        }
        if self.out.len() <= self.limit {
            return true;
        }
        self.out.truncate(end);
        self.counts[2] = count;
        false
    }

    /// Whether the response is to be truncated: what it must have is larger than it may be.
    pub(crate) const fn is_too_large(&self) -> bool {
        self.out.len() > self.limit
    }

    /// Ends the response: truncates it where needed, appends OPT, writes the header.
    pub(crate) fn finish(&mut self, query: &Query<'_>, truncate: bool) {
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
            self.counts[2] += 1;
            self.trailer.push_opt(self.rcode, self.opt_flags, self.extended_error, self.size, self.out);
        }
        word |= self.rcode.0 & 0x0f;
        let [answers, authorities, additional] = self.counts;
        let counts = [1, answers, authorities, additional];
        let header = Header { id: query.header.id, flags: word, counts };
        if let Some(front) = self.out.first_chunk_mut() {
            *front = header.to_octets();
        }
    }
}

/// Octets of the owner name, which may end in a pointer, of the record at the front of `octets`.
fn owner_length(octets: &[u8]) -> usize {
    let mut at = 0;
    loop {
        match octets.get(at) {
            None | Some(0) => return at + 1,
            Some(0xc0..) => return at + 2,
            Some(length) => at += 1 + usize::from(*length),
        }
    }
}
