//! Heartbeats: each server loop reports that it is running. A supervisor detects a loop that hangs
//! by its missing reports.
//!
//! A loop registers once, reports in each iteration, and waits for no event longer than
//! [`Heartbeat::pause`]. A report is one store to memory that only this loop writes.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

/// Maximum wait of a loop without a supervisor.
const UNWATCHED_PAUSE: Duration = Duration::from_secs(3600);

/// The loops of a process. Clones share the same loops.
#[derive(Clone, Debug, Default)]
pub struct Heartbeats {
    limit: Option<Duration>,
    state: Arc<Mutex<State>>,
}

#[derive(Debug, Default)]
struct State {
    loops: Vec<Watched>,
    /// Time of the last check.
    checked: Option<Instant>,
}

#[derive(Debug)]
struct Watched {
    name: String,
    /// Number of reports so far; dropped when the loop has ended regularly.
    reports: Weak<AtomicU64>,
    /// The number of reports at the last change, and the time of this change.
    seen: u64,
    since: Instant,
}

impl Heartbeats {
    /// Expects a report of each loop within `limit`. The default expects none.
    #[must_use]
    pub fn new(limit: Duration) -> Self {
        let state = State { checked: Some(Instant::now()), ..State::default() };
        Self { limit: Some(limit), state: Arc::new(Mutex::new(state)) }
    }

    /// Adds a loop. The loop must report until the returned value is dropped.
    #[must_use]
    pub fn register(&self, name: &str) -> Heartbeat {
        let reports = Arc::new(AtomicU64::new(0));
        if self.limit.is_some() {
            let watched = Watched {
                name: name.to_owned(),
                reports: Arc::downgrade(&reports),
                seen: 0,
                since: Instant::now(),
            };
            self.lock().loops.push(watched);
        }
        Heartbeat { reports, pause: self.limit.map_or(UNWATCHED_PAUSE, |limit| limit / 2) }
    }

    /// Returns the names of the loops that have not reported within the limit. The caller calls
    /// this every half of the limit, because only this function detects reports. If a call is later
    /// than three quarters of the limit, the time before it does not count: the whole process was
    /// stopped (SIGSTOP, a paused virtual machine). The loops then have until the next call to
    /// report.
    #[must_use]
    pub fn silent(&self, now: Instant) -> Vec<String> {
        let mut silent = Vec::new();
        let state = &mut *self.lock();
        let elapsed = state.checked.map_or(Duration::ZERO, |checked| now.saturating_duration_since(checked));
        let is_late = self.limit.is_some_and(|limit| elapsed > limit / 4 * 3);
        let standstill = if is_late { elapsed } else { Duration::ZERO };
        state.checked = Some(now);
        state.loops.retain_mut(|watched| {
            let Some(reports) = watched.reports.upgrade() else { return false };
            watched.since += standstill;
            let reports = reports.load(Relaxed);
            if reports != watched.seen {
                (watched.seen, watched.since) = (reports, now);
            } else if self.limit.is_some_and(|limit| now.saturating_duration_since(watched.since) >= limit) {
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
    pause: Duration,
}

impl Heartbeat {
    /// Reports that the loop is running.
    pub fn report(&self) {
        // No other thread writes this value.
        self.reports.store(self.reports.load(Relaxed).wrapping_add(1), Relaxed);
    }

    /// The maximum time that the loop may wait before it reports again: half of the limit.
    #[must_use]
    pub const fn pause(&self) -> Duration {
        self.pause
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
        assert_eq!(one.pause(), limit / 2);
        let began = Instant::now();
        one.report();
        assert!(heartbeats.silent(began).is_empty());
        other.report();
        let mut checks = 0;
        let mut check = || {
            checks += 1;
            heartbeats.silent(began + limit / 2 * checks)
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
        assert!(heartbeats.silent(began).is_empty());
        assert!(heartbeats.silent(began + limit / 2).is_empty());
        let woken = began + limit * 10;
        assert!(heartbeats.silent(woken).is_empty());
        sound.report();
        assert_eq!(heartbeats.silent(woken + limit / 2), ["hung"]);
        // A loop that hung before the stop still hangs.
        let woken = woken + limit * 10;
        assert_eq!(heartbeats.silent(woken), ["hung"]);
        sound.report();
        assert_eq!(heartbeats.silent(woken + limit / 2), ["hung"]);
    }

    #[test]
    fn without_a_supervisor_nothing_is_kept() {
        let heartbeats = Heartbeats::default();
        let heartbeat = heartbeats.register("one");
        assert_eq!(heartbeat.pause(), UNWATCHED_PAUSE);
        assert!(heartbeats.silent(Instant::now() + UNWATCHED_PAUSE * 2).is_empty());
        assert!(heartbeats.lock().loops.is_empty());
    }
}
