//! Queue of SOA queries or transfers, with a limit for all jobs and a limit for each primary.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Jobs of one kind, each for a primary. A number identifies a job.
#[derive(Debug)]
pub(super) struct Queue {
    most: usize,
    most_each: usize,
    running: usize,
    primaries: BTreeMap<SocketAddr, Jobs>,
    /// The primary of the last job. The search for the next job begins after it.
    last: Option<SocketAddr>,
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<u64>,
    running: usize,
}

impl Queue {
    pub(super) fn new(most: usize, most_each: usize) -> Self {
        Self {
            most: most.max(1),
            most_each: most_each.max(1),
            running: 0,
            primaries: BTreeMap::new(),
            last: None,
        }
    }

    pub(super) fn push(&mut self, primary: SocketAddr, job: u64) {
        self.primaries.entry(primary).or_default().waiting.push_back(job);
    }

    /// Returns the next job that the limits permit. [`Queue::end`] frees its slot.
    pub(super) fn pop(&mut self) -> Option<(SocketAddr, u64)> {
        if self.running >= self.most {
            return None;
        }
        let has_room = |jobs: &Jobs| !jobs.waiting.is_empty() && jobs.running < self.most_each;
        let behind = |address: &SocketAddr| self.last.is_none_or(|last| *address > last);
        let mut found = self.primaries.iter().filter(|(address, jobs)| has_room(jobs) && behind(address));
        let mut from_the_front = self.primaries.iter().filter(|(_, jobs)| has_room(jobs));
        let address = *found.next().or_else(|| from_the_front.next())?.0;
        let jobs = self.primaries.get_mut(&address)?;
        let job = jobs.waiting.pop_front()?;
        jobs.running += 1;
        self.running += 1;
        self.last = Some(address);
        Some((address, job))
    }

    /// Frees the slot of a job of this primary.
    pub(super) fn end(&mut self, primary: SocketAddr) {
        let Some(jobs) = self.primaries.get_mut(&primary) else { return };
        jobs.running = jobs.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        if jobs.running == 0 && jobs.waiting.is_empty() {
            self.primaries.remove(&primary);
        }
    }

    /// Removes a waiting job. Returns whether the job was waiting.
    pub(super) fn withdraw(&mut self, job: u64) -> bool {
        let mut is_found = false;
        self.primaries.retain(|_, jobs| {
            let before = jobs.waiting.len();
            jobs.waiting.retain(|other| *other != job);
            is_found |= jobs.waiting.len() < before;
            jobs.running > 0 || !jobs.waiting.is_empty()
        });
        is_found
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn address(port: u16) -> SocketAddr {
        SocketAddr::from(([192, 0, 2, 1], port))
    }

    #[test]
    fn limits_hold_and_primaries_take_turns() {
        let mut queue = Queue::new(3, 2);
        for job in 0..4 {
            queue.push(address(1), job);
        }
        queue.push(address(2), 10);
        queue.push(address(2), 11);
        let jobs: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|(_, job)| job).collect();
        assert_eq!(jobs, [0, 10, 1]);
        queue.end(address(2));
        assert_eq!(queue.pop(), Some((address(2), 11)));
        queue.end(address(2));
        // The first primary uses both of its slots.
        assert_eq!(queue.pop(), None);
        queue.end(address(1));
        assert_eq!(queue.pop(), Some((address(1), 2)));
        assert!(queue.withdraw(3) && !queue.withdraw(3));
        for _ in 0..2 {
            queue.end(address(1));
        }
        assert!(queue.primaries.is_empty() && queue.running == 0);
    }
}
