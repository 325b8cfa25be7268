//! The one place where the time of day is read. Pure functions take it as a parameter.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Seconds since 1970; 0 before. Signatures of such a clock are taken by nobody.
#[must_use]
pub fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// Milliseconds since 1970; 0 before.
#[must_use]
pub fn milliseconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// Seconds before another time from which on the clock was set back: threads differ by less.
const SET_BACK: u64 = 60;

/// Whether the clock was set back since it was `before`, both in seconds.
#[must_use]
pub const fn is_set_back(now: u64, before: u64) -> bool {
    before.saturating_sub(now) > SET_BACK
}

/// What is logged once a second at most, since others can cause it at will.
#[derive(Debug, Default)]
pub struct LogInterval {
    /// The second of the last line, and how often there was none since.
    said: AtomicU64,
    unsaid: AtomicU64,
}

impl LogInterval {
    /// No line so far.
    #[must_use]
    pub const fn new() -> Self {
        Self { said: AtomicU64::new(0), unsaid: AtomicU64::new(0) }
    }

    /// Whether there may be a line at `now`, in seconds; tells how often there was none before it.
    pub fn may_log(&self, now: u64) -> Option<u64> {
        let said = self.said.load(Relaxed);
        let is_later = now > said || is_set_back(now, said);
        if is_later && self.said.compare_exchange(said, now, Relaxed, Relaxed).is_ok() {
            return Some(self.unsaid.swap(0, Relaxed));
        }
        self.unsaid.fetch_add(1, Relaxed);
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn one_line_a_second_tells_of_those_before() {
        let line = LogInterval::new();
        let said = [107, 107, 107, 108, 109, 109, 108, 7, 7].map(|now| line.may_log(now));
        assert_eq!(said, [Some(0), None, None, Some(2), Some(0), None, None, Some(2), None]);
    }
}
