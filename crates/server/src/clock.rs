//! Reads the time of day, and limits log lines by time. No other module of this crate reads the
//! time of day; pure functions take the time as a parameter.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the seconds since 1970, or 0 if the clock is before 1970. Other servers reject TSIG
/// records with the time 0.
#[must_use]
pub fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// Returns the milliseconds since 1970, or 0 if the clock is before 1970.
#[must_use]
pub fn milliseconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// If the time goes back by more than this many seconds, the clock was set back. A smaller
/// difference occurs between threads that have read the clock at different times.
const SET_BACK_SECONDS: u64 = 60;

/// Whether the clock was set back since it showed `before`. Both times are in seconds since 1970.
#[must_use]
pub const fn is_set_back(now: u64, before: u64) -> bool {
    before.saturating_sub(now) > SET_BACK_SECONDS
}

/// Log throttle for an event that clients can cause at will: at most one line per second.
#[derive(Debug, Default)]
pub struct LogInterval {
    /// The second of the last line; 0 before the first line.
    last_logged: AtomicU64,
    /// Number of suppressed lines since the last line.
    suppressed: AtomicU64,
}

impl LogInterval {
    /// Returns a throttle that has permitted no line yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { last_logged: AtomicU64::new(0), suppressed: AtomicU64::new(0) }
    }

    /// Returns the number of lines that were suppressed since the last line, if a line may be
    /// logged at `now`, in seconds since 1970. `None`: the caller must not log this line, which
    /// counts as suppressed.
    pub fn may_log(&self, now: u64) -> Option<u64> {
        let last_logged = self.last_logged.load(Relaxed);
        let is_later = now > last_logged || is_set_back(now, last_logged);
        if is_later && self.last_logged.compare_exchange(last_logged, now, Relaxed, Relaxed).is_ok() {
            return Some(self.suppressed.swap(0, Relaxed));
        }
        self.suppressed.fetch_add(1, Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_per_second_reports_the_suppressed_lines() {
        let line = LogInterval::new();
        let logged = [107, 107, 107, 108, 109, 109, 108, 7, 7].map(|now| line.may_log(now));
        assert_eq!(logged, [Some(0), None, None, Some(2), Some(0), None, None, Some(2), None]);
    }
}
