//! The order in which facts are stored that several threads store: of two writes, the one that was requested last stays.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// The writes of one fact.
#[derive(Debug, Default)]
pub(super) struct Turns {
    asked: AtomicU64,
    /// The last one that was done; held meanwhile.
    done: Mutex<u64>,
}

/// A write that was requested.
#[derive(Clone, Debug, Default)]
pub(super) struct Turn {
    turns: Arc<Turns>,
    number: u64,
}

impl Turn {
    /// The one after all that were requested.
    pub(super) fn next(turns: &Arc<Turns>) -> Self {
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
pub(super) struct FileTurns {
    pub(super) timers: Arc<Turns>,
    pub(super) rejected: Arc<Turns>,
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The threads that write may come in any order.
    #[test]
    fn of_two_writes_the_one_that_was_requested_last_stays() {
        let turns = Arc::default();
        let [first, second, third] = [0; 3].map(|_| Turn::next(&turns));
        let mut stored = 0;
        second.write_if_newest(|| stored = 2);
        first.write_if_newest(|| stored = 1);
        assert_eq!(stored, 2);
        third.write_if_newest(|| stored = 3);
        second.write_if_newest(|| stored = 2);
        assert_eq!(stored, 3);
    }
}
