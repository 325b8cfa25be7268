//! One query to one server: its message, and the checks that a message is its response (RFC 5452
//! §9.1).

use crate::response::is_response_to;
use crate::servers::{Attempt, ResponseFacts};
use nonesuch_net::Transport;
use nonesuch_proto::edns::{self, Opt};
use nonesuch_proto::message::{Header, Message, Rcode, flags, push_query};
use nonesuch_proto::{Name, NameRef, Rtype};
use rand::RngCore;

/// Number of messages that are not the response, after which the query is repeated over TCP: someone
/// guesses the ID (RFC 5452 §9.2).
pub(crate) const WRONG_RESPONSES_MAX: u8 = 16;

/// A query that waits for its response.
#[derive(Debug)]
pub(crate) struct Exchange {
    pub(crate) attempt: Attempt,
    pub(crate) id: u16,
    /// The name in the case in which it was sent.
    pub(crate) name: Name,
    pub(crate) rtype: Rtype,
    /// Whether the case of the name was chosen at random.
    pub(crate) has_random_case: bool,
    /// Number of messages that were not the response.
    pub(crate) wrong_responses: u8,
}

/// A message of the server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Received {
    /// It is not the response: it may be forged. The exchange goes on.
    NotTheResponse,
    /// It is the response, or forged: the case of the name differs.
    OtherCase,
    /// The response cannot be read.
    Malformed,
    /// The response is truncated, so that it cannot be read.
    Truncated(Rcode),
    /// The response, possibly with TC.
    Response(Message),
}

impl Exchange {
    /// Writes the query with these flags: RD for forwarders.
    pub(crate) fn query(&self, query_flags: u16) -> Vec<u8> {
        let mut message = Vec::with_capacity(128);
        push_query(&self.name, self.rtype, self.id, query_flags, &mut message);
        if let Some(payload) = self.attempt.payload {
            // The additional section has one record.
            message[11] = 1;
            let start = message.len();
            // The cache stores signatures with all data: other clients may request them.
            edns::push_opt(payload, 0, edns::DO, &mut message);
            if let Some(cookie) = &self.attempt.cookie {
                edns::push_option(edns::COOKIE, &[cookie.option_data()], &mut message);
                edns::set_options_length(start, &mut message);
            }
        }
        message
    }

    /// Decides what `octets` from the server are.
    pub(crate) fn receive(&self, octets: &[u8]) -> Received {
        let Some(header) = Header::read(octets) else { return Received::NotTheResponse };
        if header.id != self.id || header.flags & flags::QR == 0 {
            return Received::NotTheResponse;
        }
        let Ok(message) = Message::parse(octets) else {
            // A truncated message may end inside a record (RFC 2181 §9).
            let is_truncated = header.flags & flags::TC != 0 && self.attempt.transport == Transport::Udp;
            return if is_truncated { Received::Truncated(header.rcode()) } else { Received::Malformed };
        };
        // Servers that cannot read a query respond with the header alone.
        let lacks_question = message.questions.is_empty()
            && !matches!(message.rcode(), Rcode::NOERROR | Rcode::NXDOMAIN | Rcode::YXDOMAIN);
        if !lacks_question && !is_response_to(self.name.view(), self.rtype, &message) {
            return Received::NotTheResponse;
        }
        if !self.attempt.matches_cookie(cookie(&message)) {
            return Received::NotTheResponse;
        }
        let has_same_case = lacks_question || message.questions[0].name.wire() == self.name.wire();
        if self.has_random_case && !has_same_case && self.attempt.transport == Transport::Udp {
            return Received::OtherCase;
        }
        Received::Response(message)
    }

    /// Whether the response over TCP has another case of the name.
    pub(crate) fn changes_case(&self, message: &Message) -> bool {
        self.has_random_case
            && message.questions.first().is_some_and(|question| question.name.wire() != self.name.wire())
    }
}

/// Returns the data of the cookie option.
fn cookie(message: &Message) -> Option<&[u8]> {
    let opt = message.opt()?;
    Opt::from_parts(opt.class.0, opt.ttl, &opt.rdata)?.option(edns::COOKIE)
}

/// Returns the parts of a response of `octets` octets from which the table of servers learns.
pub(crate) fn facts(message: &Message, octets: usize) -> ResponseFacts<'_> {
    ResponseFacts {
        rcode: message.rcode(),
        has_opt: message.opt().is_some(),
        cookie: cookie(message),
        octets,
    }
}

/// Returns the name with random case of its letters (draft-vixie-dnsext-dns0x20).
pub(crate) fn random_case(name: NameRef<'_>, random: &mut impl RngCore) -> Name {
    let mut wire = name.wire().to_vec();
    let mut bits = [0; 32];
    random.fill_bytes(&mut bits);
    for (at, octet) in wire.iter_mut().enumerate() {
        // Length octets are below all letters.
        if octet.is_ascii_alphabetic() && bits[at / 8] >> (at % 8) & 1 == 1 {
            *octet ^= 0x20;
        }
    }
    NameRef::from_wire_unchecked(&wire).to_name()
}

#[cfg(test)]
mod tests;
