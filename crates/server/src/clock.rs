//! Reads the time of day. No other module does; pure functions take the time as a parameter.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::{SystemTime, UNIX_EPOCH};

/// Returns the seconds since 1970, or 0 if the clock is before 1970. Peers reject signatures with
/// such a time.
#[must_use]
pub fn seconds_now() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |elapsed| elapsed.as_secs())
}

/// Returns the milliseconds since 1970, or 0 if the clock is before 1970.
#[must_use]
pub fn milliseconds_since_1970() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default().as_millis() as u64
}

/// If the time goes back by more than this many seconds, the clock was set back. The clocks that
/// threads read differ by less.
const SET_BACK: u64 = 60;

/// Whether the clock was set back since it was `before`. Both times are in seconds.
#[must_use]
pub const fn is_set_back(now: u64, before: u64) -> bool {
    before.saturating_sub(now) > SET_BACK
}

/// Log throttle for an event that clients can cause at will: at most one line per second.
#[derive(Debug, Default)]
pub struct LogInterval {
    /// The second of the last line, and the number of suppressed lines since.
    said: AtomicU64,
    unsaid: AtomicU64,
}

impl LogInterval {
    /// Returns a throttle that has permitted no line yet.
    #[must_use]
    pub const fn new() -> Self {
        Self { said: AtomicU64::new(0), unsaid: AtomicU64::new(0) }
    }

    /// Returns whether a line may be logged at `now`, in seconds: `Some` has the number of
    /// suppressed lines before it.
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
