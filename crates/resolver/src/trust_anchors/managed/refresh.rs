//! The times of the queries for the DNSKEY RRset (RFC 5011 §2.3).

use super::rrset::SignatureTimes;

const HOUR: u64 = 3600;
const DAY: u64 = 86_400;
/// Maximum time between two queries.
const MAX_INTERVAL: u64 = 15 * DAY;

/// The time of the next query, and what it is computed from.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Refresh {
    /// The time of the next query, in seconds since 1970.
    pub(super) next: u64,
    /// The times of the last RRset that was accepted.
    pub(super) times: Option<SignatureTimes>,
}

impl Refresh {
    /// Returns a schedule of which the first query is due.
    pub(super) const fn new(now: u64) -> Self {
        Self { next: now, times: None }
    }

    /// Returns the time of the next query. If the clock was set back, it is limited.
    pub(super) fn next(&self, now: u64) -> u64 {
        self.next.min(now + MAX_INTERVAL)
    }

    pub(super) fn succeed(&mut self, times: SignatureTimes, now: u64) {
        let half = |seconds: u32| u64::from(seconds) / 2;
        let interval = MAX_INTERVAL.min(half(times.original_ttl)).min(half(times.expiration_interval));
        *self = Self { next: now + interval.max(HOUR), times: Some(times) };
    }

    pub(super) fn fail(&mut self, now: u64) {
        let tenth = |seconds: u32| u64::from(seconds) / 10;
        let interval = self
            .times
            .map_or(HOUR, |times| DAY.min(tenth(times.original_ttl)).min(tenth(times.expiration_interval)));
        self.next = now + interval.max(HOUR);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the time to the next query after success, and after a failure that follows.
    fn intervals(original_ttl: u32, expiration_interval: u32) -> (u64, u64) {
        let mut refresh = Refresh::new(0);
        refresh.succeed(SignatureTimes { original_ttl, expiration_interval }, 1000);
        let success = refresh.next(1000) - 1000;
        refresh.fail(5000);
        (success, refresh.next(5000) - 5000)
    }

    /// RFC 5011 §2.3; XF-072.
    #[test]
    fn the_interval_is_half_and_the_retry_a_tenth_of_ttl_or_expiration_within_bounds() {
        const WEEK: u32 = 7 * 86_400;
        assert_eq!(intervals(172_800, 2 * WEEK), (DAY, 17_280), "the TTL decides");
        assert_eq!(intervals(172_800, 36_000), (18_000, HOUR), "the expiration decides");
        assert_eq!(intervals(60, 60), (HOUR, HOUR), "at least an hour");
        assert_eq!(intervals(100 * WEEK, 100 * WEEK), (MAX_INTERVAL, DAY), "at most 15 days, and one day");
    }

    #[test]
    fn before_the_first_success_a_query_is_repeated_each_hour() {
        let mut refresh = Refresh::new(7);
        assert_eq!(refresh.next(7), 7);
        refresh.fail(7);
        assert_eq!(refresh.next(7), 7 + HOUR);
    }

    #[test]
    fn a_clock_that_is_set_back_does_not_delay_the_query_without_bound() {
        assert_eq!(Refresh::new(1 << 40).next(1000), 1000 + MAX_INTERVAL);
    }
}
