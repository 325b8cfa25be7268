//! State that all connections of one listener share. One thread serves a listener.

use super::counters::Counters;
use super::options::TcpOptions;
use super::table::{ConnectionEntry, ConnectionTable, EndReason};
use crate::handler::Handler;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The unit of the idle timeout in the edns-tcp-keepalive option (RFC 7828 section 3.1).
const IDLE_TIMEOUT_UNIT_MS: u128 = 100;

/// State that all connections of one listener share. One thread serves a listener.
pub(super) struct ServerState<H> {
    pub(super) options: TcpOptions,
    pub(super) counters: Arc<Counters>,
    pub(super) table: RefCell<ConnectionTable>,
    /// The handler and the buffer for its response. Never borrowed across an await point.
    pub(super) handler: RefCell<(H, Vec<u8>)>,
    /// The read buffer, which all connections share.
    pub(super) read_buffer: RefCell<Vec<u8>>,
    /// The idle timeout that was last passed to the handler, in units of 100 ms. Initially
    /// `u128::MAX`: none was passed.
    announced_idle_units: Cell<u128>,
}

impl<H> ServerState<H> {
    pub(super) fn new(options: TcpOptions, counters: Arc<Counters>, handler: H) -> Self {
        Self {
            options,
            counters,
            table: RefCell::default(),
            handler: RefCell::new((handler, Vec::with_capacity(1 << 16))),
            read_buffer: RefCell::default(),
            announced_idle_units: Cell::new(u128::MAX),
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
}

impl<H> ServerState<H>
where
    H: Handler,
{
    /// Ends the connections that have exceeded a time limit, wakes the connections that write, and
    /// passes a changed idle timeout to the handler. The accept loop calls it at regular intervals
    /// while there are connections.
    pub(super) fn sweep(&self) {
        let mut table = self.table.borrow_mut();
        let idle = self.options.idle_timeout_at(table.len());
        table.sweep(&self.options, idle);
        self.announce_idle_timeout(idle);
    }

    /// Passes the idle timeout to the handler if its number of whole units of 100 ms is not that of
    /// the value that was passed last.
    pub(super) fn announce_idle_timeout(&self, idle: Duration) {
        let units = idle.as_millis() / IDLE_TIMEOUT_UNIT_MS;
        if self.announced_idle_units.replace(units) != units {
            self.handler.borrow_mut().0.set_idle_timeout(idle);
        }
    }
}

/// The table entry of a connection, for the task that serves it. Dropping the guard removes the
/// entry.
pub(super) struct ConnectionGuard<H> {
    pub(super) id: u64,
    pub(super) entry: Rc<ConnectionEntry>,
    pub(super) shared: Rc<ServerState<H>>,
}

impl<H> ConnectionGuard<H> {
    /// Records that the buffers of this connection occupy `octets` octets, and evicts connections
    /// if all buffers exceed the limit.
    pub(super) fn set_buffered(&self, octets: usize) {
        if self.entry.buffered.get() != octets {
            let evicted = self.shared.table.borrow_mut().set_buffered(self.id, octets, &self.shared.options);
            self.shared.counters.evicted.fetch_add(evicted as u64, Relaxed);
        }
    }
}

impl<H> Drop for ConnectionGuard<H> {
    fn drop(&mut self) {
        self.shared.table.borrow_mut().remove(self.id);
        self.shared.counters.open.fetch_sub(1, Relaxed);
    }
}
