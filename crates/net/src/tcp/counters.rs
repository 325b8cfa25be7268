//! Counters of a TCP or TLS server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// The live counters. Only the thread of the server writes them. [`TcpCounters`] describes them.
#[derive(Debug, Default)]
pub(super) struct Counters {
    pub(super) accepted: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) refused_client: AtomicU64,
    pub(super) evicted: AtomicU64,
    pub(super) timed_out: AtomicU64,
    pub(super) broken: AtomicU64,
    pub(super) handshakes: AtomicU64,
    pub(super) resumed: AtomicU64,
    pub(super) handshakes_failed: AtomicU64,
    pub(super) open: AtomicU64,
    pub(super) messages_in: AtomicU64,
    pub(super) messages_out: AtomicU64,
    pub(super) streams: AtomicU64,
}

/// Counters of a server since its start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TcpCounters {
    /// Number of connections accepted from the system, including those closed immediately.
    pub accepted: u64,
    /// Number of connections closed immediately because the limit of connections was reached
    /// and no other connection could be closed.
    pub refused: u64,
    /// Number of connections closed immediately because their client had reached its limit.
    pub refused_client: u64,
    /// Number of connections closed to make room for others, or because the buffers exceeded their
    /// limit.
    pub evicted: u64,
    /// Number of connections closed because their peer was idle, or wrote or read too slowly.
    pub timed_out: u64,
    /// Number of connections closed by an error: a reset, an end within a message, a length of 0, a
    /// message or answer that was too long, a stream that could not continue.
    pub broken: u64,
    /// Number of completed TLS handshakes.
    pub handshakes: u64,
    /// Number of these handshakes that resumed an earlier session.
    pub resumed: u64,
    /// Number of failed TLS handshakes. Handshakes that took too long count as timed out.
    pub handshakes_failed: u64,
    /// Number of open connections.
    pub open: u64,
    /// Number of complete messages received.
    pub messages_in: u64,
    /// Number of messages sent.
    pub messages_out: u64,
    /// Number of streams started.
    pub streams: u64,
}

impl std::iter::Sum for TcpCounters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), |a, b| Self {
            accepted: a.accepted + b.accepted,
            refused: a.refused + b.refused,
            refused_client: a.refused_client + b.refused_client,
            evicted: a.evicted + b.evicted,
            timed_out: a.timed_out + b.timed_out,
            broken: a.broken + b.broken,
            handshakes: a.handshakes + b.handshakes,
            resumed: a.resumed + b.resumed,
            handshakes_failed: a.handshakes_failed + b.handshakes_failed,
            open: a.open + b.open,
            messages_in: a.messages_in + b.messages_in,
            messages_out: a.messages_out + b.messages_out,
            streams: a.streams + b.streams,
        })
    }
}

/// Read access to the counters of a server, from any thread, even after the server has stopped.
#[derive(Debug, Clone)]
pub struct TcpStatistics {
    pub(super) counters: Arc<Counters>,
}

impl TcpStatistics {
    /// Returns the current counters.
    #[must_use]
    pub fn total(&self) -> TcpCounters {
        let counters = &*self.counters;
        TcpCounters {
            accepted: counters.accepted.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            refused_client: counters.refused_client.load(Relaxed),
            evicted: counters.evicted.load(Relaxed),
            timed_out: counters.timed_out.load(Relaxed),
            broken: counters.broken.load(Relaxed),
            handshakes: counters.handshakes.load(Relaxed),
            resumed: counters.resumed.load(Relaxed),
            handshakes_failed: counters.handshakes_failed.load(Relaxed),
            open: counters.open.load(Relaxed),
            messages_in: counters.messages_in.load(Relaxed),
            messages_out: counters.messages_out.load(Relaxed),
            streams: counters.streams.load(Relaxed),
        }
    }
}
