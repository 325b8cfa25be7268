//! The trailer of a response: its OPT record (RFC 6891) and its TSIG record (RFC 8945), which
//! follow all other records. The module also writes responses that consist only of a header.

use crate::extended_errors::ExtendedErrorRef;
use crate::query::Query;
use crate::reply_options::{ReplyOptions, ReplySettings};
use nonesuch_net::Transport;
use nonesuch_proto::edns::{self, OPT_OCTETS};
use nonesuch_proto::message::{Header, Rcode, flags};

/// Largest message over TCP (RFC 1035 §4.2.2).
const TCP_MESSAGE_OCTETS: usize = 65_535;
/// Largest UDP message without EDNS (RFC 1035 §4.2.1).
const PLAIN_UDP_OCTETS: usize = 512;

/// The trailer of one response: the OPT record if the query has one, and the size of the TSIG
/// record.
#[derive(Clone, Copy, Debug)]
pub struct Trailer<'s> {
    /// The options in the OPT record.
    pub reply: ReplyOptions,
    /// The contents of these options.
    pub settings: &'s ReplySettings,
    /// Octets of the TSIG record that follows OPT; 0: the response has no TSIG record.
    pub tsig_octets: usize,
}

impl Trailer<'static> {
    /// A trailer without options and without TSIG.
    pub const PLAIN: Self =
        Self { reply: ReplyOptions::NONE, settings: &ReplySettings::NONE, tsig_octets: 0 };
}

impl Trailer<'_> {
    /// Maximum size of the response to `query`, in octets.
    #[inline]
    #[must_use]
    pub fn max_message_octets(&self, query: &Query<'_>, transport: Transport) -> usize {
        if transport == Transport::Udp { self.max_datagram_octets(query) } else { TCP_MESSAGE_OCTETS }
    }

    /// Maximum size of a response to `query` over UDP, in octets: the client's payload size, at
    /// most `max_udp_size`. It is 512 octets if the query has no OPT record.
    #[inline]
    #[must_use]
    pub fn max_datagram_octets(&self, query: &Query<'_>) -> usize {
        query.opt.map_or(PLAIN_UDP_OCTETS, |opt| usize::from(opt.payload.min(self.settings.max_udp_size)))
    }

    /// Returns the size of the trailer without optional options, in octets. The records of the
    /// response must leave this much room.
    #[inline]
    #[must_use]
    pub fn required_octets(&self, query: &Query<'_>) -> usize {
        let opt =
            if query.opt.is_some() { OPT_OCTETS + self.reply.required_octets(self.settings) } else { 0 };
        opt + self.tsig_octets
    }

    /// Appends the OPT record with the upper bits of `rcode`, with `flags`, and with `error` if
    /// there is room. `limit` is the maximum size of the whole response, in octets.
    #[inline]
    pub fn push_opt(
        &self,
        rcode: Rcode,
        flags: u16,
        error: Option<ExtendedErrorRef<'_>>,
        limit: usize,
        out: &mut Vec<u8>,
    ) {
        edns::push_opt(self.settings.max_udp_size, (rcode.0 >> 4) as u8, flags, out);
        self.reply.push(self.settings, error, limit, self.tsig_octets, out);
    }
}

/// Appends the header of a response without sections. It copies the ID, the opcode and the RD flag
/// of `header`, the header of the query. Only the lower four bits of `rcode` are written.
pub fn push_header_only(header: Header, rcode: Rcode, out: &mut Vec<u8>) {
    let copied = header.flags & (flags::OPCODE | flags::RD);
    // The upper bits of a response code are in OPT (RFC 6891 §6.1.3).
    let header = Header { id: header.id, flags: flags::QR | copied | rcode.0 & 0x0f, counts: [0; 4] };
    out.extend_from_slice(&header.to_octets());
}
