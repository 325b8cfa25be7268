//! A client that sends one query at a time, at a bounded rate, and ends in bounded time whatever the
//! server does.

use super::StopReason;
use crate::query::{QueryFault, over_tcp, over_udp, random_id};
use nonesuch_proto::message::{Header, Message, flags, push_query};
use nonesuch_proto::{Class, NameRef, Rtype, bitmap, edns};
use std::net::SocketAddr;
use std::thread;
use std::time::{Duration, Instant};

/// EDNS payload size of the queries, in octets (RFC 9715 §3.1).
const PAYLOAD: u16 = 1232;
/// Maximum number of denial records of a response that a chain gets. A denial has up to three (RFC 5155 §7.2). The
/// limit keeps a server from filling the memory.
pub(super) const RECORDS_MAX: usize = 4;
/// Maximum number of types of a denial record that are kept.
const TYPES_MAX: usize = 64;

/// How queries are sent.
#[derive(Clone, Debug)]
pub struct ClientOptions {
    /// The server.
    pub server: SocketAddr,
    /// Maximum number of queries per second, above 0.
    pub rate: f64,
    /// Time limit for the response to one attempt.
    pub timeout: Duration,
    /// Number of attempts of a query, at least 1.
    pub attempts: u32,
    /// Maximum number of queries, attempts included.
    pub max_queries: u64,
    /// Maximum total time.
    pub time_limit: Duration,
    /// Whether all queries use TCP. Otherwise, truncated responses are requested again over TCP.
    pub tcp: bool,
}

/// The client, and its counters.
#[derive(Debug)]
pub(super) struct Client {
    options: ClientOptions,
    started_at: Instant,
    /// The earliest time of the next query.
    next_at: Instant,
    queries: u64,
}

impl Client {
    /// Starts the clock of the time limit.
    pub(super) fn new(options: &ClientOptions) -> Self {
        let now = Instant::now();
        Self { options: options.clone(), started_at: now, next_at: now, queries: 0 }
    }

    /// Number of queries sent so far, attempts included.
    pub(super) const fn queries(&self) -> u64 {
        self.queries
    }

    /// Time since the start.
    pub(super) fn elapsed(&self) -> Duration {
        self.started_at.elapsed()
    }

    /// The time at which the time limit ends.
    pub(super) fn end(&self) -> Instant {
        // A limit beyond the clock is no limit in practice: a century.
        let century = Duration::from_secs(100 * 365 * 86_400);
        self.started_at + self.options.time_limit.min(century)
    }

    /// Sends a query with DO set and waits for its response.
    ///
    /// # Errors
    /// [`StopReason::Queries`] or [`StopReason::Time`] if a limit is reached;
    /// [`StopReason::NoResponse`] if all attempts fail.
    pub(super) fn query(&mut self, name: NameRef<'_>, rtype: Rtype) -> Result<Message, StopReason> {
        let mut attempts = 0;
        loop {
            self.wait_for_turn()?;
            attempts += 1;
            match self.attempt(name, rtype) {
                Ok(message) => return Ok(message),
                Err(_) if attempts < self.options.attempts => {}
                Err(fault) => {
                    let server = self.options.server;
                    return Err(StopReason::NoResponse {
                        server,
                        name: name.to_name(),
                        rtype,
                        attempts,
                        fault,
                    });
                }
            }
        }
    }

    /// Waits until the rate permits the next query.
    fn wait_for_turn(&mut self) -> Result<(), StopReason> {
        if self.queries >= self.options.max_queries {
            return Err(StopReason::Queries(self.options.max_queries));
        }
        let now = Instant::now();
        let sent_at = now.max(self.next_at);
        if sent_at >= self.end() {
            return Err(StopReason::Time(self.options.time_limit));
        }
        thread::sleep(sent_at - now);
        let interval = Duration::try_from_secs_f64(1.0 / self.options.rate).unwrap_or(Duration::MAX);
        self.next_at = sent_at.checked_add(interval).unwrap_or_else(|| self.end());
        self.queries += 1;
        Ok(())
    }

    /// The end of the time for a response.
    fn deadline(&self) -> Instant {
        Instant::now().checked_add(self.options.timeout).unwrap_or_else(|| self.end())
    }

    fn attempt(&self, name: NameRef<'_>, rtype: Rtype) -> Result<Message, QueryFault> {
        let server = self.options.server;
        let query = encode(name, rtype)?;
        let deadline = self.deadline();
        let octets = if self.options.tcp {
            over_tcp(server, &query, deadline)?
        } else {
            let octets = over_udp(server, &query, deadline)?;
            let is_truncated = Header::read(&octets).is_some_and(|header| header.flags & flags::TC != 0);
            // RFC 7766 §5.
            if is_truncated { over_tcp(server, &query, self.deadline())? } else { octets }
        };
        Ok(Message::parse(&octets)?)
    }
}

/// The wire form of a query with a random ID and DO set.
fn encode(name: NameRef<'_>, rtype: Rtype) -> Result<Vec<u8>, QueryFault> {
    let mut query = Vec::with_capacity(300);
    push_query(&name.to_name(), rtype, random_id()?, 0, &mut query);
    edns::push_opt(PAYLOAD, 0, edns::DO, &mut query);
    // ARCOUNT: the OPT record.
    query[11] = 1;
    Ok(query)
}

/// The records of the zone at `apex` in a response that have this type, in any section.
pub(super) fn records_of<'m>(
    message: &'m Message,
    apex: NameRef<'m>,
    rtype: Rtype,
) -> impl Iterator<Item = (NameRef<'m>, &'m [u8])> {
    let is_wanted = move |record: &&nonesuch_proto::message::Record| {
        record.rtype == rtype && record.class == Class::IN && record.owner.view().is_at_or_below(apex)
    };
    message.records.iter().filter(is_wanted).map(|record| (record.owner.view(), record.rdata.as_slice()))
}

/// Returns the types of a bitmap, at most [`TYPES_MAX`]; none if it is not valid (RFC 4034 §4.1.2).
pub(super) fn types_of(map: &[u8]) -> Vec<Rtype> {
    let map = Some(map).filter(|map| bitmap::is_valid(map)).unwrap_or_default();
    bitmap::types(map).take(TYPES_MAX).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_proto::Name;

    /// The limit of denial records must not omit keys.
    #[test]
    fn all_records_of_a_type_are_returned() {
        let zone: Name = "example.".parse().expect("a name");
        let key = |octet| nonesuch_proto::message::Record {
            section: nonesuch_proto::message::Section::Answer,
            owner: zone.clone(),
            rtype: Rtype::DNSKEY,
            class: Class::IN,
            ttl: 60,
            rdata: vec![octet; 8],
        };
        let header = Header { id: 0, flags: flags::QR, counts: [0; 4] };
        let records: Vec<_> = (0..2 * RECORDS_MAX as u8).map(key).collect();
        let message = Message { header, questions: Vec::new(), records };
        assert_eq!(records_of(&message, zone.view(), Rtype::DNSKEY).count(), 2 * RECORDS_MAX);
    }

    #[test]
    fn types_are_bounded_and_those_of_an_invalid_bitmap_are_ignored() {
        // A, NS and SOA; then all types of two windows; then the same window twice.
        assert_eq!(types_of(&[0, 1, 0b0110_0010]), [Rtype::A, Rtype::NS, Rtype::SOA]);
        let window = |number: u8| [&[number, 32][..], &[0xff; 32]].concat();
        assert_eq!(types_of(&[window(0), window(1)].concat()).len(), TYPES_MAX);
        assert!(types_of(&[window(1), window(1)].concat()).is_empty());
    }
}
