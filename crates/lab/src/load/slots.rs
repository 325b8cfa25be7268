//! The outstanding queries of one socket, indexed by message ID.
//!
//! Each outstanding query has a slot. The low bits of its message ID are the index of the slot. The
//! other bits are the generation of the slot, which changes with each use. Thus a late response
//! does not match a newer query in the same slot.

use std::collections::VecDeque;

/// Maximum number of slots. Two bits of the ID remain for the generation.
pub(super) const SLOTS_MAX: usize = 1 << 14;

/// Due time and send time of a query, in ns since the start of the run.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) struct QueryTimes {
    /// Due time, from which the latency is measured.
    pub(super) due: u64,
    /// Send time, from which the timeout is measured.
    pub(super) sent: u64,
}

/// Place for one outstanding query.
#[derive(Debug, Clone, Copy, Default)]
struct Slot {
    times: QueryTimes,
    in_use: bool,
    generation: u16,
    /// The last lost query in this slot, or `None` if it has lost no query. The slot skips the
    /// generation of this query until it loses another query. Thus even a very late response to the
    /// lost query does not match another query.
    lost: Option<LostQuery>,
}

/// A query without a response before the timeout.
#[derive(Debug, Clone, Copy)]
struct LostQuery {
    generation: u16,
    times: QueryTimes,
    /// Whether a response has arrived after the timeout.
    is_answered: bool,
}

/// The slots of one socket or connection.
#[derive(Debug)]
pub(super) struct Slots {
    slots: Vec<Slot>,
    /// Free slots. The slot that has been free longest is first, so that a generation repeats as
    /// late as possible.
    free: VecDeque<u16>,
    /// Number of bits of an ID that are the index of a slot: 0 for one slot, at most 14.
    index_bits: u32,
}

impl Slots {
    /// Creates `count` slots, limited to the range from 1 to [`SLOTS_MAX`].
    pub(super) fn new(count: usize) -> Self {
        let count = count.clamp(1, SLOTS_MAX);
        Self {
            slots: vec![Slot::default(); count],
            free: (0..count as u16).collect(),
            index_bits: count.next_power_of_two().trailing_zeros(),
        }
    }

    /// Returns the number of free slots.
    pub(super) fn free_count(&self) -> usize {
        self.free.len()
    }

    /// Returns the number of outstanding queries.
    pub(super) fn outstanding(&self) -> usize {
        self.slots.len() - self.free.len()
    }

    /// Allocates a slot for a query and returns the message ID, or `None` if all slots are in use.
    pub(super) fn allocate(&mut self, times: QueryTimes) -> Option<u16> {
        let index = self.free.pop_front()?;
        let mask = u16::MAX >> self.index_bits;
        let slot = &mut self.slots[usize::from(index)];
        let next = |generation: u16| generation.wrapping_add(1) & mask;
        slot.generation = next(slot.generation);
        if slot.lost.is_some_and(|lost| lost.generation == slot.generation) {
            slot.generation = next(slot.generation);
        }
        (slot.times, slot.in_use) = (times, true);
        Some(slot.generation << self.index_bits | index)
    }

    /// Splits a message ID into the index of its slot and the generation.
    const fn split_id(&self, id: u16) -> (u16, u16) {
        (id & !(u16::MAX << self.index_bits), id >> self.index_bits)
    }

    /// Frees the slot of the query with this ID and returns the times of the query. Returns `None`
    /// if no outstanding query has this ID.
    pub(super) fn release(&mut self, id: u16) -> Option<QueryTimes> {
        let (index, generation) = self.split_id(id);
        let slot = self.slots.get_mut(usize::from(index))?;
        if slot.generation != generation || !slot.in_use {
            return None;
        }
        slot.in_use = false;
        self.free.push_back(index);
        Some(slot.times)
    }

    /// Returns the times of the lost query with this ID at its first late response. Returns `None`
    /// if no query with this ID was lost, if its slot has lost another query since then, or at
    /// further responses.
    pub(super) fn match_late(&mut self, id: u16) -> Option<QueryTimes> {
        let (index, generation) = self.split_id(id);
        let lost = self.slots.get_mut(usize::from(index))?.lost.as_mut()?;
        if lost.generation != generation || lost.is_answered {
            return None;
        }
        lost.is_answered = true;
        Some(lost.times)
    }

    /// Frees the slots of all queries sent before `limit`, in ns since the start of the run: they
    /// are lost. Calls `lost` for each of these queries.
    pub(super) fn release_sent_before(&mut self, limit: u64, mut lost: impl FnMut(QueryTimes)) {
        if self.outstanding() == 0 {
            return;
        }
        for (index, slot) in self.slots.iter_mut().enumerate() {
            if slot.in_use && slot.times.sent < limit {
                slot.in_use = false;
                slot.lost =
                    Some(LostQuery { generation: slot.generation, times: slot.times, is_answered: false });
                self.free.push_back(index as u16);
                lost(slot.times);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashMap;

    fn at(sent: u64) -> QueryTimes {
        QueryTimes { due: sent / 2, sent }
    }

    fn give_up(slots: &mut Slots, limit: u64) -> u64 {
        let mut count = 0;
        slots.release_sent_before(limit, |times| {
            assert!(times.sent < limit && times == at(times.sent));
            count += 1;
        });
        count
    }

    #[test]
    fn a_late_answer_finds_no_query_whatever_comes_between() {
        for count in [1, 2, 100, SLOTS_MAX] {
            let mut slots = Slots::new(count);
            let late = slots.allocate(at(1)).expect("free");
            assert_eq!(give_up(&mut slots, 2), 1);
            for _ in 0..(3 * (1 << 16)) {
                let id = slots.allocate(at(3)).expect("free");
                assert_ne!(id, late);
                assert_eq!(slots.release(late), None);
                assert_eq!(slots.release(id), Some(at(3)));
            }
        }
    }

    #[test]
    fn a_late_answer_is_that_of_its_query_once() {
        for count in [1, 2, SLOTS_MAX] {
            let mut slots = Slots::new(count);
            let (late, other) = (slots.allocate(at(1)).expect("free"), !0);
            assert_eq!((slots.match_late(late), slots.match_late(other)), (None, None));
            assert_eq!(give_up(&mut slots, 2), 1);
            // The slot may be in use again.
            let next: Vec<u16> = (0..count).map(|_| slots.allocate(at(3)).expect("free")).collect();
            assert_eq!((slots.match_late(late), slots.match_late(late)), (Some(at(1)), None));
            assert!(next.iter().all(|id| slots.match_late(*id).is_none()));
            assert_eq!(slots.outstanding(), count);
        }
    }

    #[test]
    fn a_doubled_answer_counts_once() {
        let mut slots = Slots::new(1);
        let id = slots.allocate(at(5)).expect("free");
        assert_eq!(slots.release(id), Some(at(5)));
        assert_eq!(slots.release(id), None);
        assert_eq!(slots.allocate(at(6)).map(|next| next == id), Some(false));
    }

    #[test]
    fn there_are_as_many_slots_as_asked_for() {
        for count in [1, 3, 64, SLOTS_MAX] {
            let mut slots = Slots::new(count);
            let mut ids: Vec<u16> = std::iter::from_fn(|| slots.allocate(at(0))).collect();
            assert_eq!(slots.outstanding(), count);
            ids.sort_unstable();
            ids.dedup();
            assert_eq!(ids.len(), count);
        }
    }

    proptest! {
        #[test]
        fn agrees_with_a_map(count in 1usize..40, steps in proptest::collection::vec((0u8..3, any::<u16>()), 0..400)) {
            let mut slots = Slots::new(count);
            let mut model: HashMap<u16, u64> = HashMap::new();
            for (now, (step, id)) in steps.into_iter().enumerate() {
                let now = now as u64;
                match step {
                    0 => match slots.allocate(at(now)) {
                        Some(id) => prop_assert!(model.insert(id, now).is_none()),
                        None => prop_assert_eq!(model.len(), count),
                    },
                    1 => {
                        // Use an outstanding ID in half of the cases.
                        let known = model.keys().min().copied().filter(|_| id % 2 == 0);
                        let id = known.unwrap_or(id);
                        prop_assert_eq!(slots.release(id), model.remove(&id).map(at));
                    }
                    _ => {
                        let limit = now.saturating_sub(10);
                        let before = model.len();
                        model.retain(|_, sent_at| *sent_at >= limit);
                        prop_assert_eq!(give_up(&mut slots, limit), (before - model.len()) as u64);
                    }
                }
                prop_assert_eq!(slots.outstanding(), model.len());
            }
        }
    }
}
