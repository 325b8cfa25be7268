//! Builds a response: sections, record counts, truncation and the OPT record.

use nonesuch_net::Transport;
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Header, Rcode, flags};
use nonesuch_proto::{NameRef, Rtype};
use nonesuch_server::extended_errors::ExtendedError;
use nonesuch_server::query::Query;
use nonesuch_server::trailer::Trailer;
use nonesuch_zone::image::{OwnerForm, Position, QUESTION_POINTER, Template, push_record_fields};

/// The state of a response to which [`Response::rewind`] returns.
#[derive(Clone, Copy)]
pub(crate) struct Checkpoint {
    /// Length of the message, in octets.
    pub(crate) end: usize,
    counts: [u16; 3],
}

/// A response under construction.
pub(crate) struct Response<'o> {
    out: &'o mut Vec<u8>,
    /// Number of answer, authority and additional records so far.
    counts: [u16; 3],
    /// Length of the query name in octets.
    name_length: usize,
    /// Maximum length of the message up to the end of the records, in octets, without OPT and TSIG.
    /// It becomes 0 when a required RRset does not fit; the response is then truncated.
    records_limit: usize,
    /// Maximum length of the message, in octets.
    max_octets: usize,
    /// The OPT and TSIG records at the end of the message.
    trailer: &'o Trailer<'o>,
    has_opt: bool,
    /// Flags of the OPT record.
    opt_flags: u16,
    pub(crate) dnssec_ok: bool,
    pub(crate) authoritative: bool,
    pub(crate) rcode: Rcode,
    extended_error: Option<ExtendedError>,
}

/// A section of the response. Sections are filled in this order.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Section {
    Answer = 0,
    Authority = 1,
    Additional = 2,
}

impl<'o> Response<'o> {
    /// Clears `out` and begins the response to `query` in it.
    pub(crate) fn begin(
        query: &Query<'_>,
        transport: Transport,
        trailer: &'o Trailer<'o>,
        out: &'o mut Vec<u8>,
    ) -> Self {
        out.clear();
        out.extend_from_slice(&[0; HEADER]);
        out.extend_from_slice(query.question);
        let max_octets = trailer.max_message_octets(query, transport);
        Self {
            out,
            counts: [0; 3],
            name_length: query.name_length,
            records_limit: max_octets.saturating_sub(trailer.required_octets(query)),
            max_octets,
            trailer,
            has_opt: query.opt.is_some(),
            // RFC 3225 §3: DO is copied. All flags without a definition are zero (RFC 6891 §6.1.4).
            opt_flags: query.opt.map_or(0, |opt| opt.flags & edns::DO),
            dnssec_ok: query.opt.is_some_and(|opt| opt.dnssec_ok()),
            authoritative: false,
            rcode: Rcode::NOERROR,
            extended_error: None,
        }
    }

    /// Returns the offset at which the next record will begin.
    pub(crate) const fn next_offset(&self) -> usize {
        self.out.len()
    }

    /// Returns the message so far.
    pub(crate) fn octets(&self) -> &[u8] {
        self.out
    }

    pub(crate) const fn has_answer(&self) -> bool {
        self.counts[0] > 0
    }

    /// Sets the CO flag in the OPT record: the server restores NXDOMAIN in compact denial (RFC 9824
    /// §5.1).
    pub(crate) const fn set_compact_ok(&mut self) {
        self.opt_flags |= edns::CO;
    }

    /// Attaches an extended error (RFC 8914). It is sent only if the query has an OPT record.
    pub(crate) const fn set_extended_error(&mut self, error: ExtendedError) {
        self.extended_error = Some(error);
    }

    /// Returns a pointer to the last `octets` octets of the query name.
    pub(crate) const fn suffix_pointer(&self, octets: usize) -> OwnerForm {
        OwnerForm::At(QUESTION_POINTER + (self.name_length - octets) as u16)
    }

    /// Returns the number of octets that further records may occupy.
    const fn remaining_octets(&self) -> usize {
        self.records_limit.saturating_sub(self.out.len())
    }

    /// Adds an RRset. If the query has the DO flag, also adds its signatures. If the RRset does not
    /// fit, it is omitted together with all later ones, and the response is truncated.
    pub(crate) fn add(&mut self, section: Section, template: Template<'_>, owner: OwnerForm) {
        if !self.append(section, template, owner) {
            self.records_limit = 0;
        }
    }

    /// Appends an RRset unless it is larger than the remaining room. Returns whether it was
    /// appended. The RRset may end beyond the limit. This function is the only place that copies
    /// templates, so that the compiler inlines the copy.
    fn append(&mut self, section: Section, template: Template<'_>, owner: OwnerForm) -> bool {
        let position = Position { question_octets: self.name_length, owner };
        let Some(count) = template.append(position, self.dnssec_ok, self.remaining_octets(), self.out) else {
            return false;
        };
        self.counts[section as usize] += count;
        true
    }

    /// Adds only the signatures of an RRset, with the same limits as [`add`](Self::add).
    pub(crate) fn add_signatures(&mut self, template: Template<'_>, owner: OwnerForm) {
        let position = Position { question_octets: self.name_length, owner };
        match template.append_signatures(position, self.remaining_octets(), self.out) {
            Some(count) => self.counts[0] += count,
            None => self.records_limit = 0,
        }
    }

    /// Adds the RRSIG records over the RRset that begins at offset `start`, with the owner and TTL
    /// of this RRset. `signatures` contains their RDATA, each preceded by its length in two octets.
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

    /// Adds RRSIG records with `owner` as the encoded owner name. `signatures` has the form that
    /// [`add_signatures_over`](Self::add_signatures_over) describes.
    pub(crate) fn add_signature_records(
        &mut self,
        section: Section,
        owner: &[u8],
        ttl: u32,
        signatures: &[u8],
    ) {
        let mut rest = signatures;
        while let Some((length, after_length)) = rest.split_first_chunk() {
            let length = usize::from(u16::from_be_bytes(*length));
            let Some((rdata, after_rdata)) = after_length.split_at_checked(length) else { return };
            self.out.extend_from_slice(owner);
            push_record_fields(Rtype::RRSIG, ttl, rdata.len() as u16, self.out);
            self.out.extend_from_slice(rdata);
            self.counts[section as usize] += 1;
            rest = after_rdata;
        }
    }

    /// Adds one record and returns the offset at which it begins. With a `pointer`, its two octets
    /// encode the owner; otherwise `owner` is compressed against the query name.
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
        push_record_fields(rtype, ttl, rdata.iter().map(|part| part.len()).sum::<usize>() as u16, self.out);
        rdata.iter().for_each(|part| self.out.extend_from_slice(part));
        self.counts[section as usize] += 1;
        start
    }

    /// Appends `name`, compressed with a pointer to the longest suffix that it shares with the
    /// query name.
    fn push_name(&mut self, name: NameRef<'_>) {
        let query_name = self.out[HEADER..HEADER + self.name_length].to_vec();
        let query_name = NameRef::from_wire_unchecked(&query_name);
        let mut suffix = name;
        while !suffix.is_root() {
            if query_name.is_at_or_below(suffix) {
                let prefix_length = name.len() - suffix.len();
                let pointer = QUESTION_POINTER + (self.name_length - suffix.len()) as u16;
                self.out.extend_from_slice(&name.wire()[..prefix_length]);
                self.out.extend_from_slice(&pointer.to_be_bytes());
                return;
            }
            suffix = suffix.parent().unwrap_or(NameRef::ROOT);
        }
        self.out.extend_from_slice(name.wire());
    }

    /// Returns the current state, for [`rewind`](Self::rewind).
    pub(crate) const fn checkpoint(&self) -> Checkpoint {
        Checkpoint { end: self.out.len(), counts: self.counts }
    }

    /// Removes all records added since `checkpoint`.
    pub(crate) fn rewind(&mut self, checkpoint: Checkpoint) {
        self.out.truncate(checkpoint.end);
        self.counts = checkpoint.counts;
    }

    /// Adds to the answer section one record that `write` appends.
    pub(crate) fn add_record(&mut self, write: impl FnOnce(&mut Vec<u8>)) {
        write(self.out);
        self.counts[0] += 1;
    }

    /// Adds an RRset to the additional section if it fits. Returns whether it was added. With
    /// `written_out`, all names are written in full; this is necessary if the query name does not
    /// end with the names in the template.
    pub(crate) fn add_if_fits(&mut self, template: Template<'_>, written_out: bool) -> bool {
        let owner = if written_out { OwnerForm::WrittenOut } else { OwnerForm::AsRendered };
        let (end, count) = (self.out.len(), self.counts[2]);
        if !self.append(Section::Additional, template, owner) {
            return false;
        }
        if self.out.len() <= self.records_limit {
            return true;
        }
        self.out.truncate(end);
        self.counts[2] = count;
        false
    }

    /// Returns whether the response must be truncated, because its required records exceed the
    /// limit.
    pub(crate) const fn is_too_large(&self) -> bool {
        self.out.len() > self.records_limit
    }

    /// Completes the response: truncates it if necessary, appends the OPT record and writes the
    /// header.
    pub(crate) fn finish(&mut self, query: &Query<'_>, truncate: bool) {
        let mut header_flags = flags::QR | (query.header.flags & (flags::RD | flags::CD));
        if truncate || self.is_too_large() {
            // RFC 2181 §9, RFC 6891 §7: a truncated response contains the question and OPT.
            header_flags |= flags::TC;
            self.out.truncate(HEADER + query.question.len());
            self.counts = [0; 3];
        }
        if self.authoritative {
            header_flags |= flags::AA;
        }
        if self.has_opt {
            self.counts[2] += 1;
            self.trailer.push_opt(self.rcode, self.opt_flags, self.extended_error, self.max_octets, self.out);
        }
        // The upper bits of the response code are in the OPT record (RFC 6891 §6.1.3).
        header_flags |= self.rcode.0 & 0x0f;
        let [answers, authorities, additional] = self.counts;
        let counts = [1, answers, authorities, additional];
        let header = Header { id: query.header.id, flags: header_flags, counts };
        if let Some(header_octets) = self.out.first_chunk_mut() {
            *header_octets = header.to_octets();
        }
    }
}

/// Returns the length in octets of the owner name, which may end with a pointer, of the record at
/// the start of `octets`.
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
