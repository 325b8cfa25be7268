//! Heartbeats: each server loop reports that it is running. A supervisor detects a loop that hangs
//! by its missing reports.
//!
//! A loop registers once, reports in each iteration, and waits for no event longer than
//! [`Heartbeat::max_wait`]. A report is one store to memory that only this loop writes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Maximum wait of a loop without a supervisor.
const UNSUPERVISED_WAIT: Duration = Duration::from_secs(3600);

/// Registry of the loops of a process, in which each loop reports that it is running. Clones share
/// the same registry.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    /// Time within which each loop must report. `None`: there is no supervisor.
    limit: Option<Duration>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    loops: Vec<WatchedLoop>,
    /// Time of the last check.
    last_check: Option<Instant>,
}

#[derive(Debug)]
struct WatchedLoop {
    name: String,
    /// Number of reports so far. The loop owns the counter; it is gone after the loop has ended.
    reports: Weak<AtomicU64>,
    /// The number of reports that the last check found, and the time of the check that found it
    /// first.
    reports_seen: u64,
    last_change: Instant,
}

impl Heartbeats {
    /// Expects a report of each loop within `limit`. [`Heartbeats::default`] expects none.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        let state = State { last_check: Some(Instant::now()), ..State::default() };
        Self { limit: Some(limit), state: Arc::new(Mutex::new(state)) }
    }

    /// Adds a loop. The loop must report until the returned value is dropped.
    #[must_use]
    pub fn register(&self, name: &str) -> Heartbeat {
        let reports = Arc::new(AtomicU64::new(0));
        if self.limit.is_some() {
            let watched = WatchedLoop {
                name: name.to_owned(),
                reports: Arc::downgrade(&reports),
                reports_seen: 0,
                last_change: Instant::now(),
            };
            self.lock().loops.push(watched);
        }
        Heartbeat { reports, max_wait: self.limit.map_or(UNSUPERVISED_WAIT, |limit| limit / 2) }
    }

    /// Returns the names of the loops that have not reported within the limit. The supervisor must
    /// call this twice in each limit, because only this function reads the reports.
    ///
    /// If more than three quarters of the limit have passed since the last call, the whole process
    /// was probably stopped (SIGSTOP, a paused virtual machine). This time does not count as
    /// silence of a loop.
    #[must_use]
    pub fn overdue_loops(&self, now: Instant) -> Vec<String> {
        let mut silent = Vec::new();
        let state = &mut *self.lock();
        let elapsed =
            state.last_check.map_or(Duration::ZERO, |last_check| now.saturating_duration_since(last_check));
        let is_late = self.limit.is_some_and(|limit| elapsed > limit / 4 * 3);
        let stopped_for = if is_late { elapsed } else { Duration::ZERO };
        state.last_check = Some(now);
        state.loops.retain_mut(|watched| {
            let Some(reports) = watched.reports.upgrade() else { return false };
            watched.last_change += stopped_for;
            let reports = reports.load(Relaxed);
            if reports != watched.reports_seen {
                (watched.reports_seen, watched.last_change) = (reports, now);
            } else if self
                .limit
                .is_some_and(|limit| now.saturating_duration_since(watched.last_change) >= limit)
            {
                silent.push(watched.name.clone());
            }
            true
        });
        silent
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Number of reports of all loops so far.
    #[cfg(test)]
    pub(crate) fn reports(&self) -> u64 {
        self.lock().loops.iter().filter_map(|watched| Some(watched.reports.upgrade()?.load(Relaxed))).sum()
    }
}

/// The handle with which one loop reports.
#[derive(Debug)]
pub struct Heartbeat {
    reports: Arc<AtomicU64>,
    max_wait: Duration,
}

impl Heartbeat {
    /// Reports that the loop is running.
    pub fn report(&self) {
        // No other thread writes this value.
        self.reports.store(self.reports.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The maximum time that the loop may wait before it reports again: half of the limit.
    #[must_use]
    pub const fn max_wait(&self) -> Duration {
        self.max_wait
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_loop_that_does_not_report_is_named_until_it_does_or_ends() {
        let limit = Duration::from_secs(30);
        let heartbeats = Heartbeats::new(limit);
        let (one, other) = (heartbeats.register("one"), heartbeats.register("other"));
        assert_eq!(one.max_wait(), limit / 2);
        let began = Instant::now();
        one.report();
        assert!(heartbeats.overdue_loops(began).is_empty());
        other.report();
        let mut checks = 0;
        let mut check = || {
            checks += 1;
            heartbeats.overdue_loops(began + limit / 2 * checks)
        };
        assert!(check().is_empty());
        assert_eq!(check(), ["one"]);
        assert_eq!(check(), ["one", "other"]);
        one.report();
        drop(other);
        assert!(check().is_empty());
    }

    /// After the whole process was stopped (SIGSTOP, a paused virtual machine), the check may run
    /// before the loops.
    #[test]
    fn a_check_that_is_late_itself_gives_the_loops_until_the_next_one() {
        let limit = Duration::from_secs(30);
        let heartbeats = Heartbeats::new(limit);
        let (sound, hung) = (heartbeats.register("sound"), heartbeats.register("hung"));
        let began = Instant::now();
        [&sound, &hung].into_iter().for_each(Heartbeat::report);
        assert!(heartbeats.overdue_loops(began).is_empty());
        assert!(heartbeats.overdue_loops(began + limit / 2).is_empty());
        let woken = began + limit * 10;
        assert!(heartbeats.overdue_loops(woken).is_empty());
        sound.report();
        assert_eq!(heartbeats.overdue_loops(woken + limit / 2), ["hung"]);
        // A loop that hung before the stop still hangs.
        let woken = woken + limit * 10;
        assert_eq!(heartbeats.overdue_loops(woken), ["hung"]);
        sound.report();
        assert_eq!(heartbeats.overdue_loops(woken + limit / 2), ["hung"]);
    }

    #[test]
    fn without_a_supervisor_nothing_is_kept() {
        let heartbeats = Heartbeats::default();
        let heartbeat = heartbeats.register("one");
        assert_eq!(heartbeat.max_wait(), UNSUPERVISED_WAIT);
        assert!(heartbeats.overdue_loops(Instant::now() + UNSUPERVISED_WAIT * 2).is_empty());
        assert!(heartbeats.lock().loops.is_empty());
    }
}
