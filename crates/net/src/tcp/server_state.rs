//! What the connections of one server share.

use super::counters::Counters;
use super::options::TcpOptions;
use super::table::{ConnectionEntry, ConnectionTable, End};
use crate::handler::Handler;
use std::cell::{Cell, RefCell};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;

/// The idle timeout is said in steps of this (RFC 7828 section 3.1).
const IDLE_STEP_MS: u128 = 100;

/// What the tasks of one server share, all on one thread.
pub(super) struct ServerState<H> {
    pub(super) options: TcpOptions,
    pub(super) counters: Arc<Counters>,
    pub(super) table: RefCell<ConnectionTable>,
    /// The handler and the buffer that it answers into. Never borrowed while a task waits.
    pub(super) handler: RefCell<(H, Vec<u8>)>,
    /// What is read goes here first.
    pub(super) scratch: RefCell<Vec<u8>>,
    /// The idle timeout that the handler was told, in steps.
    pub(super) idle_steps: Cell<u128>,
}

impl<H> ServerState<H> {
    pub(super) fn new(options: TcpOptions, counters: Arc<Counters>, handler: H) -> Self {
        Self {
            options,
            counters,
            table: RefCell::default(),
            handler: RefCell::new((handler, Vec::with_capacity(1 << 16))),
            scratch: RefCell::default(),
            idle_steps: Cell::new(u128::MAX),
        }
    }

    pub(super) fn count(&self, end: End) {
        match end {
            // Those that make room are counted by who makes them.
            End::Orderly | End::Evicted => {}
            End::TimedOut => _ = self.counters.timed_out.fetch_add(1, Relaxed),
            End::Broken => _ = self.counters.broken.fetch_add(1, Relaxed),
        }
    }
}

impl<H> ServerState<H>
where
    H: Handler,
{
    /// Ends the connections that have taken too long.
    pub(super) fn sweep(&self) {
        let mut table = self.table.borrow_mut();
        let idle = self.options.idle_timeout_at(table.len());
        table.sweep(&self.options, idle);
        self.tell_idle_timeout(idle);
    }

    pub(super) fn tell_idle_timeout(&self, idle: Duration) {
        let steps = idle.as_millis() / IDLE_STEP_MS;
        if self.idle_steps.replace(steps) != steps {
            self.handler.borrow_mut().0.set_idle_timeout(idle);
        }
    }
}

/// A connection's place in the table, which is given back when it ends, however it does.
pub(super) struct ConnectionSlot<H> {
    pub(super) id: u64,
    pub(super) place: Rc<ConnectionEntry>,
    pub(super) shared: Rc<ServerState<H>>,
}

impl<H> ConnectionSlot<H> {
    /// Notes the octets of the connection's buffers.
    pub(super) fn hold(&self, octets: usize) {
        if self.place.held.get() != octets {
            let evicted = self.shared.table.borrow_mut().hold(self.id, octets, &self.shared.options);
            self.shared.counters.evicted.fetch_add(evicted as u64, Relaxed);
        }
    }
}

impl<H> Drop for ConnectionSlot<H> {
    fn drop(&mut self) {
        self.shared.table.borrow_mut().leave(self.id);
        self.shared.counters.open.fetch_sub(1, Relaxed);
    }
}
