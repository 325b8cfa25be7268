//! Queue of SOA queries or transfers, with a limit for all jobs and a limit for each primary.

use std::collections::{BTreeMap, VecDeque};
use std::net::SocketAddr;

/// Jobs of one kind, each for a primary. A number identifies a job.
#[derive(Debug)]
pub(super) struct JobQueue {
    /// Maximum number of running jobs.
    running_max: usize,
    /// Maximum number of running jobs of one primary.
    running_per_primary_max: usize,
    /// Number of running jobs.
    running: usize,
    primaries: BTreeMap<SocketAddr, Jobs>,
    /// The primary of the last job. The search for the next job begins after it.
    last_primary: Option<SocketAddr>,
}

#[derive(Debug, Default)]
struct Jobs {
    waiting: VecDeque<u64>,
    running: usize,
}

impl JobQueue {
    pub(super) fn new(running_max: usize, running_per_primary_max: usize) -> Self {
        Self {
            running_max: running_max.max(1),
            running_per_primary_max: running_per_primary_max.max(1),
            running: 0,
            primaries: BTreeMap::new(),
            last_primary: None,
        }
    }

    pub(super) fn push(&mut self, primary: SocketAddr, job: u64) {
        self.primaries.entry(primary).or_default().waiting.push_back(job);
    }

    /// Returns the next job that the limits permit. [`JobQueue::release`] frees its slot.
    pub(super) fn pop(&mut self) -> Option<(SocketAddr, u64)> {
        if self.running >= self.running_max {
            return None;
        }
        let can_start = |jobs: &Jobs| !jobs.waiting.is_empty() && jobs.running < self.running_per_primary_max;
        let is_after_last =
            |address: &SocketAddr| self.last_primary.is_none_or(|last_primary| *address > last_primary);
        let mut after_last =
            self.primaries.iter().filter(|(address, jobs)| can_start(jobs) && is_after_last(address));
        let mut from_start = self.primaries.iter().filter(|(_, jobs)| can_start(jobs));
        let address = *after_last.next().or_else(|| from_start.next())?.0;
        let jobs = self.primaries.get_mut(&address)?;
        let job = jobs.waiting.pop_front()?;
        jobs.running += 1;
        self.running += 1;
        self.last_primary = Some(address);
        Some((address, job))
    }

    /// Frees the slot of a job of this primary.
    pub(super) fn release(&mut self, primary: SocketAddr) {
        let Some(jobs) = self.primaries.get_mut(&primary) else { return };
        jobs.running = jobs.running.saturating_sub(1);
        self.running = self.running.saturating_sub(1);
        if jobs.running == 0 && jobs.waiting.is_empty() {
            self.primaries.remove(&primary);
        }
    }

    /// Removes a waiting job. Returns whether the job was waiting.
    pub(super) fn remove_waiting(&mut self, job: u64) -> bool {
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
        let mut queue = JobQueue::new(3, 2);
        for job in 0..4 {
            queue.push(address(1), job);
        }
        queue.push(address(2), 10);
        queue.push(address(2), 11);
        let jobs: Vec<u64> = std::iter::from_fn(|| queue.pop()).map(|(_, job)| job).collect();
        assert_eq!(jobs, [0, 10, 1]);
        queue.release(address(2));
        assert_eq!(queue.pop(), Some((address(2), 11)));
        queue.release(address(2));
        // The first primary uses both of its slots.
        assert_eq!(queue.pop(), None);
        queue.release(address(1));
        assert_eq!(queue.pop(), Some((address(1), 2)));
        assert!(queue.remove_waiting(3) && !queue.remove_waiting(3));
        for _ in 0..2 {
            queue.release(address(1));
        }
        assert!(queue.primaries.is_empty() && queue.running == 0);
    }
}
