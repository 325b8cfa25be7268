//! State of the connections of one listener. One thread serves a listener.

use super::counters::Counters;
use super::options::TcpOptions;
use super::table::{ConnectionEntry, ConnectionTable, EndReason, Phase, Refusal};
use std::cell::RefCell;
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The limits, the counters and the table of the connections of one listener.
pub(super) struct ServerState {
    pub(super) options: TcpOptions,
    pub(super) counters: Arc<Counters>,
    pub(super) table: RefCell<ConnectionTable>,
}

impl ServerState {
    pub(super) fn new(options: TcpOptions, counters: Arc<Counters>) -> Self {
        Self { options, counters, table: RefCell::default() }
    }

    /// Adds a new connection, which begins in `phase`, to the table. Returns `None` if the
    /// connection is refused and must be closed.
    pub(super) fn register(self: &Rc<Self>, peer: SocketAddr, phase: Phase) -> Option<ConnectionGuard> {
        let counters = &self.counters;
        counters.accepted.fetch_add(1, Relaxed);
        let inserted = self.table.borrow_mut().insert(peer, phase, &self.options);
        match inserted {
            Ok((id, entry, evicted)) => {
                counters.evicted.fetch_add(u64::from(evicted), Relaxed);
                counters.open.fetch_add(1, Relaxed);
                Some(ConnectionGuard { id, entry, state: Rc::clone(self) })
            }
            Err(refusal) => {
                let counter = match refusal {
                    Refusal::ConnectionLimit => &counters.refused,
                    Refusal::ClientLimit => &counters.refused_client,
                };
                counter.fetch_add(1, Relaxed);
                None
            }
        }
    }

    /// Counts the end of a connection. An orderly end has no counter.
    pub(super) fn count_end(&self, end: EndReason) {
        match end {
            // The code that evicts a connection counts it.
            EndReason::Orderly | EndReason::Evicted => {}
            EndReason::TimedOut => _ = self.counters.timed_out.fetch_add(1, Relaxed),
            EndReason::Broken => _ = self.counters.broken.fetch_add(1, Relaxed),
        }
    }

    /// Ends the connections that have exceeded a time limit, and wakes the connections that write.
    /// The accept loop calls it at regular intervals while there are connections. Returns the
    /// current idle timeout.
    pub(super) fn sweep(&self) -> Duration {
        let mut table = self.table.borrow_mut();
        let idle = self.options.idle_timeout_at(table.len());
        table.sweep(&self.options, idle);
        idle
    }
}

/// The table entry of a connection, for the task that serves it. Dropping the guard removes the
/// entry.
pub(super) struct ConnectionGuard {
    pub(super) id: u64,
    pub(super) entry: Rc<ConnectionEntry>,
    pub(super) state: Rc<ServerState>,
}

impl ConnectionGuard {
    /// Records that the buffers of this connection occupy `octets` octets, and evicts connections
    /// if all buffers exceed the limit.
    pub(super) fn set_buffered(&self, octets: usize) {
        if self.entry.buffered.get() != octets {
            let evicted = self.state.table.borrow_mut().set_buffered(self.id, octets, &self.state.options);
            self.state.counters.evicted.fetch_add(evicted as u64, Relaxed);
        }
    }
}

impl Drop for ConnectionGuard {
    fn drop(&mut self) {
        self.state.table.borrow_mut().remove(self.id);
        self.state.counters.open.fetch_sub(1, Relaxed);
    }
}
