//! A server of zones in a conservative transition to NSEC5 (ePrint 2017/099 §9.1): its responses
//! have the records of NSEC3 and of NSEC5.
//!
//! No server sends such responses. The composer sends each query to two servers with the two
//! versions of the zones, and joins their responses.

mod join;

use super::servers::UpstreamCounts;
use join::{join, server_failure, truncated, udp_limit};
use nonesuch_net::tcp::{self, TcpOptions, TcpServer};
use nonesuch_net::udp::{self, UdpOptions, UdpServer};
use nonesuch_net::{Listeners, NetError};
use std::io::{self, Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

/// Time limit for the response of a server.
const LIMIT: Duration = Duration::from_secs(5);
/// Number of attempts of a query to a server. A server may close an idle connection at the time of
/// the first one.
const ATTEMPTS: usize = 2;

/// What the composer has answered.
#[derive(Debug, Default)]
struct Counts {
    udp: AtomicU64,
    tcp: AtomicU64,
    truncated: AtomicU64,
    query_octets: AtomicU64,
    response_octets: AtomicU64,
}

/// A running composer. Dropping it stops it.
#[derive(Debug)]
pub(super) struct Composer {
    counts: Arc<Counts>,
    _udp: UdpServer,
    tcp: TcpServer,
}

impl Composer {
    /// Starts a composer with `listeners`. `servers` have the versions with NSEC3 and with NSEC5.
    pub(super) fn start(listeners: Listeners, servers: [SocketAddr; 2]) -> Result<Self, NetError> {
        let counts = Arc::new(Counts::default());
        let handler = |is_tcp: bool| {
            let counts = Arc::clone(&counts);
            move || {
                let (counts, mut versions) = (Arc::clone(&counts), servers.map(Version::new));
                move |query: &[u8], _: SocketAddr, out: &mut Vec<u8>| {
                    counts.count(answer(query, &mut versions, is_tcp, out), query, out, is_tcp)
                }
            }
        };
        let (of_udp, of_tcp) = (handler(false), handler(true));
        let udp = udp::serve(listeners.udp, &UdpOptions::default(), move |_| of_udp())?;
        let tcp = tcp::serve(listeners.tcp, &TcpOptions::default(), of_tcp)?;
        Ok(Self { counts, _udp: udp, tcp })
    }

    /// What it has answered since its start.
    pub(super) fn counts(&self) -> UpstreamCounts {
        let read = |count: &AtomicU64| Some(count.load(Relaxed));
        UpstreamCounts {
            upstream_udp: read(&self.counts.udp),
            upstream_tcp: read(&self.counts.tcp),
            upstream_truncated: read(&self.counts.truncated),
            upstream_connections: Some(self.tcp.statistics().total().accepted),
            upstream_query_octets: read(&self.counts.query_octets),
            upstream_response_octets: read(&self.counts.response_octets),
        }
    }
}

impl Counts {
    /// Counts an answered query, and returns whether there is an answer.
    fn count(&self, answered: Option<Answered>, query: &[u8], response: &[u8], is_tcp: bool) -> bool {
        let Some(answered) = answered else { return false };
        let queries = if is_tcp { &self.tcp } else { &self.udp };
        queries.fetch_add(1, Relaxed);
        self.truncated.fetch_add((answered == Answered::Truncated).into(), Relaxed);
        self.query_octets.fetch_add(query.len() as u64, Relaxed);
        self.response_octets.fetch_add(response.len() as u64, Relaxed);
        true
    }
}

/// Whether a response is complete.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Answered {
    Complete,
    Truncated,
}

/// Writes the joined response of the servers to `out`. `None`: the query gets no response.
fn answer(query: &[u8], versions: &mut [Version; 2], is_tcp: bool, out: &mut Vec<u8>) -> Option<Answered> {
    let Some(joined) = responses(query, versions).ok().and_then(|[old, new]| join(&old, &new).ok()) else {
        *out = server_failure(query)?;
        return Some(Answered::Complete);
    };
    if !is_tcp && joined.len() > udp_limit(query) {
        *out = truncated(&joined).ok()?;
        return Some(Answered::Truncated);
    }
    *out = joined;
    Some(Answered::Complete)
}

/// The responses of both servers.
fn responses(query: &[u8], versions: &mut [Version; 2]) -> io::Result<[Vec<u8>; 2]> {
    let [old, new] = versions;
    Ok([old.exchange(query)?, new.exchange(query)?])
}

/// A connection to the server of a version.
struct Version {
    server: SocketAddr,
    /// `None` before the first query and after an error.
    stream: Option<TcpStream>,
}

impl Version {
    const fn new(server: SocketAddr) -> Self {
        Self { server, stream: None }
    }

    /// Sends `query` over TCP, so that the response is complete, and returns the response.
    fn exchange(&mut self, query: &[u8]) -> io::Result<Vec<u8>> {
        let mut outcome = self.try_exchange(query);
        for _ in 1..ATTEMPTS {
            if outcome.is_ok() {
                break;
            }
            outcome = self.try_exchange(query);
        }
        outcome
    }

    fn try_exchange(&mut self, query: &[u8]) -> io::Result<Vec<u8>> {
        // After an error, a late response must not answer the next query.
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect()?,
        };
        // Messages of a server have at most 65,535 octets.
        let mut message = (query.len() as u16).to_be_bytes().to_vec();
        message.extend_from_slice(query);
        stream.write_all(&message)?;
        let mut length = [0; 2];
        stream.read_exact(&mut length)?;
        message.resize(usize::from(u16::from_be_bytes(length)), 0);
        stream.read_exact(&mut message)?;
        self.stream = Some(stream);
        Ok(message)
    }

    fn connect(&self) -> io::Result<TcpStream> {
        let stream = TcpStream::connect_timeout(&self.server, LIMIT)?;
        stream.set_nodelay(true)?;
        stream.set_read_timeout(Some(LIMIT))?;
        stream.set_write_timeout(Some(LIMIT))?;
        Ok(stream)
    }
}

#[cfg(test)]
mod tests;
