//! Writes replies to clients.

use crate::cache::EncodedRrset;
use crate::record::{Rrset, Security};
use crate::task::{ErrorDetail, Outcome};
use nonesuch_dnssec::denial::type_bitmap;
use nonesuch_net::Transport;
use nonesuch_proto::edns;
use nonesuch_proto::message::{HEADER, Header, Rcode, flags};
use nonesuch_proto::{NameRef, Rtype, bitmap, rdata};
use nonesuch_server::compress::Compressor;
use nonesuch_server::extended_errors::{ExtendedError, ExtendedErrorRef};
use nonesuch_server::query::Query;
use nonesuch_server::reply_options::{ReplyOptions, ReplySettings};
use nonesuch_server::trailer::Trailer;

/// The parts of a reply that depend on the client, not on the outcome.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ReplyContext<'a> {
    pub(crate) query: &'a Query<'a>,
    pub(crate) transport: Transport,
    pub(crate) options: ReplyOptions,
    pub(crate) settings: &'a ReplySettings,
}

/// Writes replies. Its table of names is allocated once.
#[derive(Debug)]
pub(crate) struct ReplyWriter {
    compressor: Compressor,
}

impl ReplyWriter {
    pub(crate) fn new() -> Self {
        Self { compressor: Compressor::new() }
    }

    /// Writes the reply with this outcome. If it does not fit, the reply is truncated: it has TC and
    /// no records.
    pub(crate) fn write(&mut self, context: ReplyContext<'_>, outcome: &Outcome) -> Vec<u8> {
        let trailer = trailer(context);
        let limit = trailer.max_message_octets(context.query, context.transport);
        let room = limit.saturating_sub(trailer.required_octets(context.query));
        let name = context.query.name();
        let dnssec_ok = context.query.opt.is_some_and(|opt| opt.dnssec_ok());
        let mut counts = [1, 0, 0, 0];
        let authority = outcome.authority.iter().filter(|rrset| dnssec_ok || rrset.rtype == Rtype::SOA);
        let uses_only_question =
            |rrset: &Rrset| rrset.owner.view() == name && !rdata::has_compressed_names(rrset.rtype);
        let needs_compressor = !outcome.answer.iter().chain(authority.clone()).all(uses_only_question);
        let mut message = self.start(context, needs_compressor);
        let is_complete =
            self.push_rrsets(&outcome.answer, name, dnssec_ok, room, &mut counts[1], &mut message)
                && self.push_rrsets(authority, name, dnssec_ok, room, &mut counts[2], &mut message);
        let mut reply_flags = reply_flags(context.query.header);
        if requests_ad(context.query) && outcome.is_secure() {
            reply_flags |= flags::AD;
        }
        if !is_complete {
            message.truncate(HEADER + context.query.question.len());
            counts = [1, 0, 0, 0];
            // RFC 4035 §3.2.3: the reply has none of the data.
            reply_flags = reply_flags & !flags::AD | flags::TC;
        }
        let error = outcome.error.as_ref().map(ErrorDetail::as_ref);
        let is_compact = is_compact_denial(outcome);
        let rcode = reply_rcode(context.query, outcome.rcode, is_compact);
        let rcode = finish(context, &trailer, rcode, (error, is_compact), limit, &mut counts, &mut message);
        let header = Header { id: context.query.header.id, flags: reply_flags | rcode, counts };
        message[..HEADER].copy_from_slice(&header.to_octets());
        message
    }

    /// Writes the reply that has one RRset of the query name, as it is in the cache. Returns `None` if it
    /// does not fit, or the RRset has names that may be compressed: then [`write`](Self::write) writes it.
    pub(crate) fn write_rrset(
        context: ReplyContext<'_>,
        ttl: u32,
        rrset: EncodedRrset<'_>,
    ) -> Option<Vec<u8>> {
        let query = context.query;
        if rdata::has_compressed_names(query.qtype) {
            return None;
        }
        let trailer = trailer(context);
        let limit = trailer.max_message_octets(query, context.transport);
        let room = limit.saturating_sub(trailer.required_octets(query));
        let (mut message, mut counts) = (start(context), [1, 0, 0, 0]);
        let signatures = if query.opt.is_some_and(|opt| opt.dnssec_ok()) { rrset.signatures } else { &[] };
        for (rtype, records) in [(query.qtype, rrset.records), (Rtype::RRSIG, signatures)] {
            push_encoded_records(rtype, ttl, records, &mut counts[1], &mut message)?;
        }
        if message.len() > room {
            return None;
        }
        let mut reply_flags = reply_flags(query.header);
        if requests_ad(query) && rrset.security == Security::Secure {
            reply_flags |= flags::AD;
        }
        finish(context, &trailer, Rcode::NOERROR, (None, false), limit, &mut counts, &mut message);
        let header = Header { id: query.header.id, flags: reply_flags, counts };
        message[..HEADER].copy_from_slice(&header.to_octets());
        Some(message)
    }

    /// Begins a message with room for the header, and with the question. Without the compressor, no
    /// other names follow.
    fn start(&mut self, context: ReplyContext<'_>, needs_compressor: bool) -> Vec<u8> {
        let mut message = start(context);
        self.compressor.clear();
        if !needs_compressor {
            return message;
        }
        message.truncate(HEADER);
        self.compressor.push_name(context.query.name(), &mut message);
        message.extend_from_slice(&context.query.question[context.query.name_length..]);
        message
    }

    /// Appends RRsets, with their signatures if the client requests them. Returns `false` as soon
    /// as the message exceeds `room`.
    fn push_rrsets<'r>(
        &mut self,
        rrsets: impl IntoIterator<Item = &'r Rrset>,
        name: NameRef<'_>,
        dnssec_ok: bool,
        room: usize,
        count: &mut u16,
        message: &mut Vec<u8>,
    ) -> bool {
        for rrset in rrsets {
            // The owner of most answers is the query name.
            if rrset.owner.view() == name {
                self.compressor.begin_owner_at(HEADER);
            } else {
                self.compressor.end_owner();
            }
            let signatures = rrset.signatures.iter().filter(|_| dnssec_ok);
            let records = rrset.records.iter().map(|rdata| (rrset.rtype, rdata));
            for (rtype, rdata) in records.chain(signatures.map(|rdata| (Rtype::RRSIG, rdata))) {
                self.compressor.push_record(rrset.owner.view(), rtype, rrset.ttl, rdata, message);
                *count += 1;
                if message.len() > room {
                    return false;
                }
            }
        }
        true
    }
}

/// Appends records of the query name. `records`: their RDATA, each with its length in two octets before it.
fn push_encoded_records(
    rtype: Rtype,
    ttl: u32,
    mut records: &[u8],
    count: &mut u16,
    message: &mut Vec<u8>,
) -> Option<()> {
    // RFC 1035 §4.1.4: a pointer to the name of the question, which is after the header.
    let mut fixed = [0xc0, HEADER as u8, 0, 0, 0, 1, 0, 0, 0, 0];
    fixed[2..4].copy_from_slice(&rtype.0.to_be_bytes());
    fixed[6..].copy_from_slice(&ttl.to_be_bytes());
    while let Some((length, rest)) = records.split_first_chunk::<2>() {
        let octets = usize::from(u16::from_be_bytes(*length));
        rest.get(..octets)?;
        message.extend_from_slice(&fixed);
        message.extend_from_slice(&records[..2 + octets]);
        records = &rest[octets..];
        *count += 1;
    }
    Some(())
}

/// Returns a reply without records.
pub(crate) fn write_empty(context: ReplyContext<'_>, rcode: Rcode, error: Option<ExtendedError>) -> Vec<u8> {
    let trailer = trailer(context);
    let limit = trailer.max_message_octets(context.query, context.transport);
    let (mut message, mut counts) = (start(context), [1, 0, 0, 0]);
    let low = finish(context, &trailer, rcode, (error, false), limit, &mut counts, &mut message);
    let flags = reply_flags(context.query.header) | low;
    let header = Header { id: context.query.header.id, flags, counts };
    message[..HEADER].copy_from_slice(&header.to_octets());
    message
}

const fn trailer(context: ReplyContext<'_>) -> Trailer<'_> {
    Trailer { reply: context.options, settings: context.settings, tsig_octets: 0 }
}

/// Begins a message with room for the header, and with the question.
fn start(context: ReplyContext<'_>) -> Vec<u8> {
    let mut message = Vec::with_capacity(512);
    message.extend_from_slice(&[0; HEADER]);
    message.extend_from_slice(context.query.question);
    message
}

/// Appends the OPT record if the query has one. Returns the lower bits of the response code.
fn finish(
    context: ReplyContext<'_>,
    trailer: &Trailer<'_>,
    rcode: Rcode,
    (error, is_compact): (Option<ExtendedErrorRef<'_>>, bool),
    limit: usize,
    counts: &mut [u16; 4],
    message: &mut Vec<u8>,
) -> u16 {
    if let Some(opt) = context.query.opt {
        // RFC 3225 §3: the response copies DO.
        // RFC 9824 §5.1: it also copies CO if it denies a name compactly.
        let copied = if is_compact { edns::DO | edns::CO } else { edns::DO };
        trailer.push_opt(rcode, opt.flags & copied, error, limit, message);
        counts[3] += 1;
    }
    rcode.0 & 0x0f
}

/// Whether a client understands the AD flag (RFC 6840 §5.7, §5.8). A client that sets CD validates
/// itself.
fn requests_ad(query: &Query<'_>) -> bool {
    let dnssec_ok = query.opt.is_some_and(|opt| opt.dnssec_ok());
    (dnssec_ok || query.header.flags & flags::AD != 0) && query.header.flags & flags::CD == 0
}

/// Returns the response code for a client. RFC 9824 §4 and §5: a client that validates itself needs
/// NOERROR with a compact denial, unless it sets the CO flag.
fn reply_rcode(query: &Query<'_>, rcode: Rcode, is_compact: bool) -> Rcode {
    let needs_noerror = query.opt.is_some_and(|opt| opt.dnssec_ok() && opt.flags & edns::CO == 0);
    if is_compact && needs_noerror { Rcode::NOERROR } else { rcode }
}

/// Whether the outcome is that a name does not exist, with a compact denial as its proof.
fn is_compact_denial(outcome: &Outcome) -> bool {
    let has_nxname = |rdata: &[u8]| {
        type_bitmap(Rtype::NSEC, rdata).is_some_and(|map| bitmap::contains(map, Rtype::NXNAME))
    };
    let is_compact = |rrset: &Rrset| rrset.rtype == Rtype::NSEC && rrset.records.iter().any(has_nxname);
    outcome.rcode == Rcode::NXDOMAIN && outcome.authority.iter().any(is_compact)
}

/// The flags of a reply, without the response code (RFC 1035 §4.1.1, RFC 4035 §3.2.2).
const fn reply_flags(header: Header) -> u16 {
    flags::QR | flags::RA | header.flags & (flags::OPCODE | flags::RD | flags::CD)
}
