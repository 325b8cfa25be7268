//! Counts the queries in flight to each server, over all workers, in fixed memory and without locks.
//!
//! A server is counted in two counters, one in each row, which its hash selects; its count is the
//! lower one. So a count is never too low, and two servers affect each other only if they share both
//! counters, which nobody can arrange without the key of the hash. A server that is evicted from the
//! table keeps its count.

use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};

/// Number of counters in a row: 128 KiB in all. 100 servers at their limit affect another server
/// with a probability of 4 in 100,000.
const ROW: usize = 1 << 14;

/// The counters, shared by the slots.
#[derive(Clone)]
pub(super) struct InFlight(Arc<[AtomicU32]>);

impl InFlight {
    pub(super) fn new() -> Self {
        Self((0..2 * ROW).map(|_| AtomicU32::new(0)).collect())
    }

    /// Returns the counters of a server.
    fn pair(&self, hash: u64) -> [&AtomicU32; 2] {
        let index = |shift: u32| (hash >> shift) as usize & (ROW - 1);
        [&self.0[index(0)], &self.0[ROW + index(ROW.ilog2())]]
    }

    /// Returns the number of queries in flight to a server.
    pub(super) fn count(&self, hash: u64) -> u32 {
        let [first, second] = self.pair(hash);
        first.load(Relaxed).min(second.load(Relaxed))
    }

    /// Counts a query, if there are fewer than `limit`.
    pub(super) fn acquire(&self, hash: u64, limit: u32) -> Option<Slot> {
        let [first, second] = self.pair(hash);
        let count = first.fetch_add(1, Relaxed).min(second.fetch_add(1, Relaxed));
        // The slot subtracts what was added here, also if it is dropped at once.
        let slot = Slot { counters: self.clone(), hash };
        (count < limit).then_some(slot)
    }
}

/// A query in flight. Dropping it ends the count.
pub(super) struct Slot {
    counters: InFlight,
    hash: u64,
}

impl Drop for Slot {
    fn drop(&mut self) {
        for counter in self.counters.pair(self.hash) {
            counter.fetch_sub(1, Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::servers::address::mix;

    #[test]
    fn a_limit_holds_until_a_slot_is_dropped() {
        let in_flight = InFlight::new();
        let mut slots: Vec<Slot> = (0..10).map_while(|_| in_flight.acquire(77, 3)).collect();
        assert_eq!((slots.len(), in_flight.count(77)), (3, 3));
        slots.pop();
        assert!(in_flight.acquire(77, 3).is_some());
        drop(slots);
        assert_eq!(in_flight.count(77), 0);
        assert!(in_flight.acquire(77, 0).is_none());
    }

    #[test]
    fn servers_at_their_limit_rarely_affect_others() {
        let in_flight = InFlight::new();
        let slots: Vec<Slot> = (0..200).filter_map(|server| in_flight.acquire(mix(server), 1)).collect();
        assert_eq!(slots.len(), 200);
        let affected = (1000..101_000).filter(|server| in_flight.count(mix(*server)) > 0).count();
        assert!(affected < 100, "{affected}");
    }

    #[test]
    fn threads_together_stay_within_the_limit_and_leave_no_count() {
        let in_flight = InFlight::new();
        std::thread::scope(|scope| {
            for _ in 0..4 {
                scope.spawn(|| {
                    for _ in 0..10_000 {
                        let held = [(); 3].map(|()| in_flight.acquire(5, 6));
                        assert!(held.iter().flatten().count() <= 6);
                    }
                });
            }
        });
        assert!(in_flight.0.iter().all(|counter| counter.load(Relaxed) == 0));
    }
}
