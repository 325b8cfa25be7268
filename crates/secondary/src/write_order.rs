//! Orders writes of the same state by several threads: the write that was requested last wins.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The writes of one piece of state.
#[derive(Debug, Default)]
pub(super) struct WriteOrder {
    /// Number of writes requested so far.
    requested: AtomicU64,
    /// The number of the last finished write. Locked during a write.
    done: Mutex<u64>,
}

/// A requested write.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteTicket {
    order: Arc<WriteOrder>,
    /// The position of the write in the order of requests.
    number: u64,
}

impl WriteTicket {
    /// Returns a ticket that follows all tickets issued so far.
    pub(super) fn next(order: &Arc<WriteOrder>) -> Self {
        Self { order: Arc::clone(order), number: order.requested.fetch_add(1, Relaxed) + 1 }
    }

    /// Calls `write`, unless a write that was requested later is already done. Waits for an active
    /// write.
    pub(super) fn write_if_newest(&self, write: impl FnOnce()) {
        let mut done = self.order.done.lock().unwrap_or_else(PoisonError::into_inner);
        if self.number >= *done {
            *done = self.number;
            write();
        }
    }
}

/// The write orders for the state of one zone.
#[derive(Clone, Debug, Default)]
pub(super) struct StateWrites {
    pub(super) timers: Arc<WriteOrder>,
    pub(super) rejected: Arc<WriteOrder>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The writing threads may run in any order.
    #[test]
    fn of_two_writes_the_one_that_was_requested_last_stays() {
        let order = Arc::default();
        let [first, second, third] = [0; 3].map(|_| WriteTicket::next(&order));
        let mut stored = 0;
        second.write_if_newest(|| stored = 2);
        first.write_if_newest(|| stored = 1);
        assert_eq!(stored, 2);
        third.write_if_newest(|| stored = 3);
        second.write_if_newest(|| stored = 2);
        assert_eq!(stored, 3);
    }
}
