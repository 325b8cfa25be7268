//! The order in which facts are stored that several threads store: of two writes, the one that was requested last stays.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The writes of one fact.
#[derive(Debug, Default)]
pub(super) struct WriteOrder {
    asked: AtomicU64,
    /// The last one that was done; held meanwhile.
    done: Mutex<u64>,
}

/// A write that was requested.
#[derive(Clone, Debug, Default)]
pub(super) struct WriteTicket {
    turns: Arc<WriteOrder>,
    number: u64,
}

impl WriteTicket {
    /// The one after all that were requested.
    pub(super) fn next(turns: &Arc<WriteOrder>) -> Self {
        Self { turns: Arc::clone(turns), number: turns.asked.fetch_add(1, Relaxed) + 1 }
    }

    /// Calls `write`, unless a later write was done.
    pub(super) fn write_if_newest(&self, write: impl FnOnce()) {
        let mut done = self.turns.done.lock().unwrap_or_else(PoisonError::into_inner);
        if self.number >= *done {
            *done = self.number;
            write();
        }
    }
}

/// The facts of one zone.
#[derive(Clone, Debug, Default)]
pub(super) struct StateWrites {
    pub(super) timers: Arc<WriteOrder>,
    pub(super) rejected: Arc<WriteOrder>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The threads that write may come in any order.
    #[test]
    fn of_two_writes_the_one_that_was_requested_last_stays() {
        let turns = Arc::default();
        let [first, second, third] = [0; 3].map(|_| WriteTicket::next(&turns));
        let mut stored = 0;
        second.write_if_newest(|| stored = 2);
        first.write_if_newest(|| stored = 1);
        assert_eq!(stored, 2);
        third.write_if_newest(|| stored = 3);
        second.write_if_newest(|| stored = 2);
        assert_eq!(stored, 3);
    }
}
