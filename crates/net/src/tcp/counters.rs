//! What a server of connections has done.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};

/// Counts what happens; written by the server's thread alone.
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

/// What a server has done since it started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TcpCounters {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed at once because all others were busy with answers.
    pub refused: u64,
    /// Connections closed at once because their client had as many as one may have.
    pub refused_client: u64,
    /// Connections closed to make room for others, or because too many octets waited.
    pub evicted: u64,
    /// Connections closed because their peer was idle, or wrote or read too slowly.
    pub timed_out: u64,
    /// Connections closed by an error: reset, ended within a message, a length of 0, a message or answer too long, a
    /// stream that could not be continued.
    pub broken: u64,
    /// TLS handshakes completed.
    pub handshakes: u64,
    /// Those of them that resumed an earlier session.
    pub resumed: u64,
    /// TLS handshakes that failed; those that took too long count as timed out.
    pub handshakes_failed: u64,
    /// Connections that are open.
    pub open: u64,
    /// Whole messages received.
    pub messages_in: u64,
    /// Messages sent.
    pub messages_out: u64,
    /// Streams begun.
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

/// Reads a server's counters, from any thread, also after the server has stopped.
#[derive(Debug, Clone)]
pub struct TcpStatistics {
    pub(super) counters: Arc<Counters>,
}

impl TcpStatistics {
    /// The counters as they are now.
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
