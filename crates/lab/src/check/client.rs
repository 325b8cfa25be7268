//! The client of the checks: writes queries with any flags and options, and records every exchange.

use super::{Evidence, Exchange, Transport};
use crate::query::{QueryFault, over_tcp, over_udp, random_id};
use nonesuch_proto::message::{Message, flags, push_query};
use nonesuch_proto::{Name, Rtype, edns};
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// A query.
#[derive(Clone, Debug)]
pub struct Query {
    /// The queried name, in this case.
    pub name: Name,
    /// The queried type.
    pub rtype: Rtype,
    /// Flags of the header: RD, AD, CD, Z.
    pub flags: u16,
    /// UDP payload size of the OPT record; `None`: no OPT record.
    pub payload: Option<u16>,
    /// Flags of the OPT record: DO, CO.
    pub edns_flags: u16,
    /// EDNS version.
    pub version: u8,
    /// EDNS options: code and data.
    pub options: Vec<(u16, Vec<u8>)>,
}

impl Query {
    /// A query without flags, with an OPT record of payload size 1232 and DO set.
    #[must_use]
    pub const fn new(name: Name, rtype: Rtype) -> Self {
        Self {
            name,
            rtype,
            flags: 0,
            payload: Some(1232),
            edns_flags: edns::DO,
            version: 0,
            options: Vec::new(),
        }
    }

    /// The query with these flags of the header in addition.
    #[must_use]
    pub const fn with_flags(mut self, added: u16) -> Self {
        self.flags |= added;
        self
    }

    /// The query with this UDP payload size.
    #[must_use]
    pub const fn with_payload(mut self, payload: u16) -> Self {
        self.payload = Some(payload);
        self
    }

    /// The query without DO.
    #[must_use]
    pub const fn without_do(mut self) -> Self {
        self.edns_flags &= !edns::DO;
        self
    }

    /// The query without an OPT record.
    #[must_use]
    pub fn without_edns(mut self) -> Self {
        self.payload = None;
        self
    }

    /// The wire form with this ID.
    #[must_use]
    pub fn to_octets(&self, id: u16) -> Vec<u8> {
        let mut query = Vec::with_capacity(300);
        push_query(&self.name, self.rtype, id, self.flags, &mut query);
        if let Some(payload) = self.payload {
            let start = query.len();
            edns::push_opt(payload, 0, self.edns_flags, &mut query);
            // The version follows the extended RCODE in the TTL field (RFC 6891 §6.1.3).
            query[start + 6] = self.version;
            for (code, data) in &self.options {
                edns::push_option(*code, &[data], &mut query);
            }
            edns::set_options_length(start, &mut query);
            // ARCOUNT: the OPT record.
            query[11] = 1;
        }
        query
    }
}

/// A response.
#[derive(Clone, Debug)]
pub struct Response {
    /// Its octets.
    pub octets: Vec<u8>,
    /// Its contents.
    pub message: Message,
}

impl Response {
    /// Whether all these flags of the header are set.
    #[must_use]
    pub const fn has(&self, wanted: u16) -> bool {
        self.message.header.flags & wanted == wanted
    }
}

/// Sends the queries of a check to one server.
#[derive(Clone, Debug)]
pub struct CheckClient {
    /// The server.
    pub server: SocketAddr,
    /// Time limit for each response.
    pub timeout: Duration,
    /// Number of attempts of a query over UDP, at least 1: a datagram may be lost.
    pub attempts: u32,
}

impl CheckClient {
    /// Sends a query over UDP, and over TCP if the response is truncated (RFC 7766 §5).
    ///
    /// # Errors
    /// No response, or none that can be parsed.
    pub fn ask(&self, evidence: &mut Evidence, query: &Query) -> Result<Response, QueryFault> {
        let response = self.ask_over(evidence, query, Transport::Udp)?;
        if response.has(flags::TC) { self.ask_over(evidence, query, Transport::Tcp) } else { Ok(response) }
    }

    /// Sends a query over this transport.
    ///
    /// # Errors
    /// No response, or none that can be parsed.
    pub fn ask_over(
        &self,
        evidence: &mut Evidence,
        query: &Query,
        transport: Transport,
    ) -> Result<Response, QueryFault> {
        let attempts = if transport == Transport::Udp { self.attempts } else { 1 };
        let mut attempt = 1;
        let octets = loop {
            match self.send(evidence, &query.to_octets(random_id()?), transport) {
                Err(QueryFault::TimedOut(_)) if attempt < attempts => attempt += 1,
                result => break result?,
            }
        };
        Ok(Response { message: Message::parse(&octets)?, octets })
    }

    /// Sends octets over this transport, and returns the octets of the message that answers them.
    ///
    /// # Errors
    /// No response.
    pub fn send(
        &self,
        evidence: &mut Evidence,
        query: &[u8],
        transport: Transport,
    ) -> Result<Vec<u8>, QueryFault> {
        let started_at = Instant::now();
        let deadline = started_at + self.timeout;
        let result = match transport {
            Transport::Udp => over_udp(self.server, query, deadline),
            Transport::Tcp => over_tcp(self.server, query, deadline),
        };
        let (reply, returned) = match result {
            Ok(octets) => (Ok(octets.clone()), Ok(octets)),
            Err(fault) => (Err(fault.to_string()), Err(fault)),
        };
        evidence.push(Exchange {
            sender: "check",
            server: self.server,
            transport,
            query: query.to_vec(),
            reply,
            elapsed: started_at.elapsed(),
        });
        returned
    }
}
