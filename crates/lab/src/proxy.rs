//! A transparent DNS proxy (RFC 5625), as in a router: it forwards queries to one server.
//!
//! Messages stay unchanged, whatever their opcode, type, EDNS and TSIG (§4.1, §4.3, §4.4, §4.5), except
//! for the ID over UDP. UDP queries are forwarded over UDP, each with a random ID and from its own
//! socket, whose port the system chooses at random (§6.1, RFC 5452 §9.2). TCP queries are forwarded over
//! TCP (§4.4.1). There is no cache. Every table, buffer and wait is bounded.
//!
//! With [`Fault`]s, the proxy behaves like devices that violate these rules, so that checks of proxies
//! can be seen to fail.

mod cache;
mod fault;
mod message;
mod tcp;
mod udp;

pub use fault::{FAULTS, Fault, FaultEntry, UnknownFault};

use fault::Faults;
use nonesuch_net::{Listeners, NetError, bind};
use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

/// Time after which threads check whether to stop.
const TICK: Duration = Duration::from_millis(100);

/// Options of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyOptions {
    /// The address for clients, on UDP and TCP. Port 0 selects a free port.
    pub listen: SocketAddr,
    /// The server to which queries are forwarded.
    pub upstream: SocketAddr,
    /// The faults of the proxy.
    pub faults: Vec<Fault>,
    /// The address on the side of the provider, for [`Fault::OpenWan`].
    pub wan: Option<SocketAddr>,
    /// Maximum number of queries over UDP that wait for a response. Further queries are dropped.
    pub in_flight: usize,
    /// Maximum number of TCP connections of clients. Further connections are closed.
    pub connections: usize,
    /// Maximum wait for a response over UDP, for a connection to the server, and for the rest of a
    /// message over TCP.
    pub timeout: Duration,
    /// Maximum time without a message on a TCP connection.
    pub idle_timeout: Duration,
}

impl ProxyOptions {
    /// The default limits: 256 queries, 64 connections, 5 s, 10 s.
    #[must_use]
    pub const fn new(listen: SocketAddr, upstream: SocketAddr) -> Self {
        Self {
            listen,
            upstream,
            faults: Vec::new(),
            wan: None,
            in_flight: 256,
            connections: 64,
            timeout: Duration::from_secs(5),
            idle_timeout: Duration::from_secs(10),
        }
    }
}

/// Why a proxy does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyError {
    /// The address would include the side of the provider (RFC 5625 §6.2).
    #[error(
        "{0}: the proxy must not listen on all addresses (RFC 5625 section 6.2): name one address of the local network"
    )]
    AllAddresses(SocketAddr),
    /// The proxy would forward queries to itself.
    #[error("{0}: the proxy would forward queries to itself: name another server")]
    Itself(SocketAddr),
    /// The fault needs an address.
    #[error("the fault open-wan needs a second address to listen on: set --wan")]
    NoWan,
    /// Sockets cannot be opened.
    #[error(transparent)]
    Net(#[from] NetError),
    /// The system does not start a thread, or a socket option cannot be set.
    #[error("cannot start the proxy: {0}")]
    System(#[from] io::Error),
}

/// What a proxy has done since its start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProxyCounts {
    /// Queries over UDP that were forwarded.
    pub udp_queries: u64,
    /// Responses over UDP that were returned.
    pub udp_responses: u64,
    /// Datagrams of clients that are no queries, or for which the table was full.
    pub dropped: u64,
    /// Datagrams of the server that answer no query.
    pub unexpected: u64,
    /// Queries over UDP without a response in time.
    pub timed_out: u64,
    /// TCP connections of clients.
    pub connections: u64,
    /// TCP connections that were closed because of the limit.
    pub refused: u64,
}

/// The counters of a proxy.
#[derive(Debug, Default)]
struct Counters {
    udp_queries: AtomicU64,
    udp_responses: AtomicU64,
    dropped: AtomicU64,
    unexpected: AtomicU64,
    timed_out: AtomicU64,
    connections: AtomicU64,
    refused: AtomicU64,
}

fn count(counter: &AtomicU64) {
    counter.fetch_add(1, Relaxed);
}

/// The data that the threads share.
#[derive(Debug)]
struct Shared {
    upstream: SocketAddr,
    faults: Faults,
    in_flight: usize,
    connections: usize,
    timeout: Duration,
    idle_timeout: Duration,
    counters: Counters,
    stop: AtomicBool,
}

impl Shared {
    fn is_stopped(&self) -> bool {
        self.stop.load(Relaxed)
    }
}

/// A running proxy. Dropping it stops it.
#[derive(Debug)]
pub struct Proxy {
    address: SocketAddr,
    shared: Arc<Shared>,
    threads: Vec<JoinHandle<()>>,
}

impl Proxy {
    /// Starts a proxy.
    ///
    /// # Errors
    /// The options are invalid, or sockets or threads cannot be started.
    pub fn start(options: &ProxyOptions) -> Result<Self, ProxyError> {
        let faults = Faults::new(&options.faults);
        if options.listen.ip().is_unspecified() {
            return Err(ProxyError::AllAddresses(options.listen));
        }
        // The system sends messages for the unspecified address to itself.
        if options.listen == options.upstream || options.upstream.ip().is_unspecified() {
            return Err(ProxyError::Itself(options.upstream));
        }
        let wan = match (faults.has(Fault::OpenWan), options.wan) {
            (false, _) => None,
            (true, Some(wan)) => Some(wan),
            (true, None) => return Err(ProxyError::NoWan),
        };
        let listeners = bind(options.listen, 1)?;
        let address = listeners.local_addr;
        let shared = Arc::new(Shared {
            upstream: options.upstream,
            faults,
            in_flight: options.in_flight.max(1),
            connections: options.connections.max(1),
            timeout: options.timeout,
            idle_timeout: options.idle_timeout,
            counters: Counters::default(),
            stop: AtomicBool::new(false),
        });
        let mut proxy = Self { address, shared, threads: Vec::new() };
        proxy.serve(listeners)?;
        if let Some(wan) = wan {
            proxy.serve(bind(wan, 1)?)?;
        }
        Ok(proxy)
    }

    /// Starts the threads of one address.
    fn serve(&mut self, listeners: Listeners) -> Result<(), ProxyError> {
        let Listeners { udp, tcp, .. } = listeners;
        for socket in udp {
            let relay = udp::Relay::new(socket, Arc::clone(&self.shared))?;
            self.threads
                .push(thread::Builder::new().name("proxy udp".to_owned()).spawn(move || relay.run())?);
        }
        // The listener is closed, so that the system refuses connections.
        if !self.shared.faults.has(Fault::NoTcp) {
            let acceptor = tcp::Acceptor::new(tcp, Arc::clone(&self.shared))?;
            self.threads
                .push(thread::Builder::new().name("proxy tcp".to_owned()).spawn(move || acceptor.run())?);
        }
        Ok(())
    }

    /// The address on which it listens, with the chosen port.
    #[must_use]
    pub const fn address(&self) -> SocketAddr {
        self.address
    }

    /// What it has done since its start.
    #[must_use]
    pub fn counts(&self) -> ProxyCounts {
        let counters = &self.shared.counters;
        let read = |counter: &AtomicU64| counter.load(Relaxed);
        ProxyCounts {
            udp_queries: read(&counters.udp_queries),
            udp_responses: read(&counters.udp_responses),
            dropped: read(&counters.dropped),
            unexpected: read(&counters.unexpected),
            timed_out: read(&counters.timed_out),
            connections: read(&counters.connections),
            refused: read(&counters.refused),
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.shared.stop.store(true, Relaxed);
        for thread in self.threads.drain(..) {
            // A panic was already reported on standard error.
            let _ = thread.join();
        }
    }
}

#[cfg(test)]
mod tests;
