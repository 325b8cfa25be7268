//! The client of a zone check: queries many servers, each at a bounded rate, and remembers the responses.
//!
//! Several items need the same response. It is requested once, and the evidence of each item has the
//! exchange.

use crate::check::{CheckClient, Evidence, Exchange, Query, QueryFault, Response, Transport};
use nonesuch_proto::message::flags;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of queries of a check, attempts not counted.
const QUERIES_MAX: usize = 4000;
/// Number of queries without any response after which a server counts as silent.
const SILENT_AFTER: u32 = 2;

/// Why a query has no response.
#[derive(Clone, Debug, thiserror::Error)]
#[non_exhaustive]
pub enum NoAnswer {
    /// The query failed.
    #[error("{0}")]
    Fault(Arc<QueryFault>),
    /// Earlier queries over this transport had no response.
    #[error("no response to earlier queries over {0}")]
    Silent(&'static str),
    /// The check has sent its maximum number of queries.
    #[error("the check has sent its maximum of {QUERIES_MAX} queries")]
    TooManyQueries,
}

/// A query to a server, as the key of its response: its octets with ID 0.
type Key = (SocketAddr, Transport, Vec<u8>);

/// The exchanges of a query, and its response.
#[derive(Debug)]
struct Entry {
    exchanges: Vec<Exchange>,
    result: Result<Response, NoAnswer>,
}

/// How often a server responded, and when it may get the next query.
#[derive(Debug, Default)]
struct Pace {
    next_at: Option<Instant>,
    has_answered: [bool; 2],
    failures: [u32; 2],
}

/// The client.
#[derive(Debug)]
pub(super) struct ZoneClient {
    timeout: Duration,
    attempts: u32,
    rate: f64,
    sent: usize,
    entries: HashMap<Key, Entry>,
    paces: HashMap<SocketAddr, Pace>,
}

impl ZoneClient {
    pub(super) fn new(timeout: Duration, attempts: u32, rate: f64) -> Self {
        Self { timeout, attempts, rate, sent: 0, entries: HashMap::new(), paces: HashMap::new() }
    }

    /// Number of queries sent so far.
    pub(super) const fn sent(&self) -> usize {
        self.sent
    }

    /// Sends a query over UDP, and over TCP if the response is truncated (RFC 7766 §5).
    pub(super) fn ask(
        &mut self,
        evidence: &mut Evidence,
        server: SocketAddr,
        query: &Query,
    ) -> Result<Response, NoAnswer> {
        let response = self.ask_over(evidence, server, query, Transport::Udp)?;
        if response.has(flags::TC) {
            return self.ask_over(evidence, server, query, Transport::Tcp);
        }
        Ok(response)
    }

    /// Sends a query over this transport, unless its response is known.
    pub(super) fn ask_over(
        &mut self,
        evidence: &mut Evidence,
        server: SocketAddr,
        query: &Query,
        transport: Transport,
    ) -> Result<Response, NoAnswer> {
        let key = (server, transport, query.to_octets(0));
        if let Some(entry) = self.entries.get(&key) {
            entry.exchanges.iter().for_each(|exchange| evidence.push(exchange.clone()));
            return entry.result.clone();
        }
        let mut own = Evidence::default();
        let result = self.send(&mut own, server, query, transport);
        own.exchanges.iter().for_each(|exchange| evidence.push(exchange.clone()));
        self.entries.insert(key, Entry { exchanges: own.exchanges, result: result.clone() });
        result
    }

    fn send(
        &mut self,
        evidence: &mut Evidence,
        server: SocketAddr,
        query: &Query,
        transport: Transport,
    ) -> Result<Response, NoAnswer> {
        let kind = usize::from(transport == Transport::Tcp);
        let pace = self.paces.entry(server).or_default();
        if !pace.has_answered[kind] && pace.failures[kind] >= SILENT_AFTER {
            return Err(NoAnswer::Silent(transport.name()));
        }
        if self.sent >= QUERIES_MAX {
            return Err(NoAnswer::TooManyQueries);
        }
        self.sent += 1;
        wait_for_turn(pace, server, self.rate);
        let client = CheckClient { server, timeout: self.timeout, attempts: self.attempts };
        let result = client.ask_over(evidence, query, transport);
        match &result {
            Ok(_) | Err(QueryFault::Malformed(_)) => pace.has_answered[kind] = true,
            Err(_) => pace.failures[kind] += 1,
        }
        result.map_err(|fault| NoAnswer::Fault(Arc::new(fault)))
    }

    /// Sends octets over TCP, at the rate of the server, and returns the octets of the first message.
    pub(super) fn send_over_tcp(
        &mut self,
        evidence: &mut Evidence,
        server: SocketAddr,
        octets: &[u8],
    ) -> Result<Vec<u8>, NoAnswer> {
        if self.sent >= QUERIES_MAX {
            return Err(NoAnswer::TooManyQueries);
        }
        self.sent += 1;
        wait_for_turn(self.paces.entry(server).or_default(), server, self.rate);
        let client = CheckClient { server, timeout: self.timeout, attempts: 1 };
        client.send(evidence, octets, Transport::Tcp).map_err(|fault| NoAnswer::Fault(Arc::new(fault)))
    }
}

/// Waits until the rate permits the next query to the server.
fn wait_for_turn(pace: &mut Pace, server: SocketAddr, rate: f64) {
    if server.ip().is_loopback() {
        return;
    }
    let now = Instant::now();
    let at = pace.next_at.map_or(now, |next| next.max(now));
    thread::sleep(at - now);
    let interval = Duration::try_from_secs_f64(1.0 / rate).unwrap_or(Duration::from_secs(1));
    pace.next_at = Some(at + interval.min(Duration::from_secs(60)));
}
