//! The virtual clock.

use nonesuch_net::machine::Now;
use std::time::{Duration, Instant};

/// Monotonic time, which begins at an arbitrary instant, and UNIX time, which can be set.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    start: Instant,
    offset: Duration,
    unix_start: u64,
    /// Sum of all changes of UNIX time, in seconds.
    unix_change: i64,
}

impl Clock {
    /// Returns a clock at the time zero, at the instant `start`, at which UNIX time is `unix`.
    pub(super) const fn new(start: Instant, unix: u64) -> Self {
        Self { start, offset: Duration::ZERO, unix_start: unix, unix_change: 0 }
    }

    /// Returns the time since the start.
    pub(super) const fn offset(&self) -> Duration {
        self.offset
    }

    /// Moves to the time `offset` since the start, unless this is in the past.
    pub(super) fn move_to(&mut self, offset: Duration) {
        self.offset = self.offset.max(offset);
    }

    /// Changes UNIX time.
    pub(super) const fn change_unix(&mut self, seconds: i64) {
        self.unix_change = self.unix_change.saturating_add(seconds);
    }

    /// Returns the time since the start of an instant; zero if the instant is before the start.
    pub(super) fn offset_of(&self, instant: Instant) -> Duration {
        instant.saturating_duration_since(self.start)
    }

    /// Returns the current time.
    pub(super) fn now(&self) -> Now {
        let unix = self.unix_start.saturating_add(self.offset.as_secs());
        Now { instant: self.start + self.offset, unix: unix.saturating_add_signed(self.unix_change) }
    }
}
