//! Counters of the workers.

use crate::error::Transport;
use crate::tcp::{TcpCounters, TcpStatistics};
use crate::udp::UdpCounters;
use std::sync::{Arc, Mutex, PoisonError};

/// The counters of one worker, or of all workers, since the start.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct EventLoopCounters {
    /// Datagrams from and to clients. Its system calls are those that receive queries and send
    /// replies.
    pub udp: UdpCounters,
    /// Connections of clients.
    pub tcp: TcpCounters,
    /// Connections of clients over TLS, with their handshakes.
    pub tls: TcpCounters,
    /// Exchanges with servers.
    pub upstream: UpstreamCounters,
    /// Number of turns of the loops.
    pub turns: u64,
    /// Number of [`Event::Wake`](crate::machine::Event::Wake) events.
    pub wakes: u64,
    /// Number of datagrams of clients discarded because too many queries had no reply yet.
    pub discarded_queries: u64,
    /// Number of replies discarded because the connection of the client had ended, or because the
    /// token was unknown.
    pub discarded_replies: u64,
    /// Number of failed waits for events.
    pub wait_errors: u64,
}

/// Counters of exchanges with servers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct UpstreamCounters {
    /// Number of datagrams sent.
    pub datagrams_out: u64,
    /// Number of datagrams received from the server of an exchange.
    pub datagrams_in: u64,
    /// Number of datagrams discarded because they came from another address.
    pub foreign_datagrams: u64,
    /// Number of open UDP sockets.
    pub open_sockets: u64,
    /// Number of connections opened.
    pub connections_opened: u64,
    /// Number of queries sent over a connection that was open already.
    pub connections_reused: u64,
    /// Number of open connections.
    pub open_connections: u64,
    /// Number of messages passed to connections.
    pub messages_out: u64,
    /// Number of messages received over connections.
    pub messages_in: u64,
    /// Number of connections closed because the server sent a message that answers no query, or
    /// wrong framing.
    pub broken_connections: u64,
    /// Number of exchanges that failed because the server did not serve.
    pub refused: u64,
    /// Number of exchanges that failed because there was no route.
    pub unreachable: u64,
    /// Number of exchanges that failed for lack of a local resource.
    pub local_failures: u64,
}

impl UpstreamCounters {
    fn add(self, other: Self) -> Self {
        Self {
            datagrams_out: self.datagrams_out + other.datagrams_out,
            datagrams_in: self.datagrams_in + other.datagrams_in,
            foreign_datagrams: self.foreign_datagrams + other.foreign_datagrams,
            open_sockets: self.open_sockets + other.open_sockets,
            connections_opened: self.connections_opened + other.connections_opened,
            connections_reused: self.connections_reused + other.connections_reused,
            open_connections: self.open_connections + other.open_connections,
            messages_out: self.messages_out + other.messages_out,
            messages_in: self.messages_in + other.messages_in,
            broken_connections: self.broken_connections + other.broken_connections,
            refused: self.refused + other.refused,
            unreachable: self.unreachable + other.unreachable,
            local_failures: self.local_failures + other.local_failures,
        }
    }
}

impl EventLoopCounters {
    /// The counters of connections over a transport.
    pub(super) fn connections(&mut self, transport: Transport) -> &mut TcpCounters {
        if transport == Transport::Tls { &mut self.tls } else { &mut self.tcp }
    }

    fn add(self, other: Self) -> Self {
        Self {
            udp: [self.udp, other.udp].into_iter().sum(),
            tcp: [self.tcp, other.tcp].into_iter().sum(),
            tls: [self.tls, other.tls].into_iter().sum(),
            upstream: self.upstream.add(other.upstream),
            turns: self.turns + other.turns,
            wakes: self.wakes + other.wakes,
            discarded_queries: self.discarded_queries + other.discarded_queries,
            discarded_replies: self.discarded_replies + other.discarded_replies,
            wait_errors: self.wait_errors + other.wait_errors,
        }
    }
}

impl std::iter::Sum for EventLoopCounters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

/// The counters that a worker has published. A worker counts without synchronization, and publishes
/// at the end of each turn. The alignment keeps those of several workers in separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
pub(super) struct PublishedCounters(Mutex<EventLoopCounters>);

impl PublishedCounters {
    pub(super) fn publish(&self, counters: EventLoopCounters) {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner) = counters;
    }

    fn read(&self) -> EventLoopCounters {
        *self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Read access to the counters of a server's workers, from any thread, even after the server has
/// stopped.
#[derive(Clone, Debug)]
pub struct EventLoopStatistics {
    pub(super) workers: Arc<[PublishedCounters]>,
    /// The counters of handshakes.
    pub(super) handshakes: Vec<TcpStatistics>,
}

impl EventLoopStatistics {
    /// Returns the sums over all workers, as of the last turn of each.
    #[must_use]
    pub fn total(&self) -> EventLoopCounters {
        let mut total: EventLoopCounters = self.workers.iter().map(PublishedCounters::read).sum();
        let handshakes = self.handshakes.iter().map(TcpStatistics::total);
        total.tls = handshakes.chain([total.tls]).sum();
        total
    }
}
