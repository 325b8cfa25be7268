//! The round-trip time of a server, and the timeout from it (RFC 6298 §2).
//!
//! Every UDP query has its own port and ID, so a response belongs to one query, and every response is
//! a valid sample (compare RFC 6298 §3, Karn's algorithm).

use std::time::Duration;

/// Microseconds before the timeout of the first query to a server: as Unbound (`util/rtt.c`, 4 × 94
/// ms). Knot Resolver has 400 ms.
pub(super) const UNKNOWN_US: u32 = 376_000;
/// Lower bound of a timeout in microseconds. Unbound has 50 ms too; RFC 6298 §2.4 has a second,
/// because the sender shares the path with others. A resolver sends one datagram.
const TIMEOUT_MIN_US: u32 = 50_000;
/// Upper bound of a timeout in microseconds.
const TIMEOUT_MAX_US: u32 = 12_000_000;
/// Lower bound of the variance's part of a timeout in microseconds (RFC 6298 §2.3, clock
/// granularity G): servers that always answer in the same time are late now and then.
const VARIANCE_PART_MIN_US: u32 = 10_000;
/// Maximum number of times that a timeout is doubled. With more, a server that is back would be
/// noticed after the time of the client query.
const DOUBLINGS_MAX: u8 = 3;
/// Milliseconds after the last response for which the estimate holds.
pub(super) const EXPIRY_MS: u64 = 900_000;

/// An estimate of the round-trip time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) struct Rtt {
    smoothed_us: u32,
    variance_us: u32,
    /// Time of the last sample in milliseconds; `None` without a sample.
    measured_at: Option<u64>,
}

impl Rtt {
    /// Whether the server answered within the last 900 s.
    pub(super) fn is_known(&self, now: u64) -> bool {
        self.measured_at.is_some_and(|measured_at| now.saturating_sub(measured_at) < EXPIRY_MS)
    }

    /// Includes a sample (RFC 6298 §2.2, §2.3).
    pub(super) fn update(&mut self, sample: Duration, now: u64) {
        let sample = u32::try_from(sample.as_micros()).unwrap_or(u32::MAX).min(TIMEOUT_MAX_US);
        if self.is_known(now) {
            let difference = self.smoothed_us.abs_diff(sample);
            self.variance_us = self.variance_us - self.variance_us / 4 + difference / 4;
            self.smoothed_us = self.smoothed_us - self.smoothed_us / 8 + sample / 8;
        } else {
            self.smoothed_us = sample;
            self.variance_us = sample / 2;
        }
        self.measured_at = Some(now);
    }

    /// Returns the range in microseconds in which the next response is expected (RFC 6298 §2.3). For a
    /// server that has not answered, it starts at 0.
    pub(super) fn expected_us(&self, now: u64) -> (u32, u32) {
        if !self.is_known(now) {
            return (0, UNKNOWN_US);
        }
        let part = self.variance_us.saturating_mul(4).max(VARIANCE_PART_MIN_US);
        (self.smoothed_us, self.smoothed_us.saturating_add(part).min(TIMEOUT_MAX_US))
    }

    /// Returns the timeout (RFC 6298 §2.3, §2.4) after `silent` timeouts in succession (§5.5).
    pub(super) fn timeout(&self, silent: u8, now: u64) -> Duration {
        let (_, timeout) = self.expected_us(now);
        let timeout = u64::from(timeout.max(TIMEOUT_MIN_US)) << silent.min(DOUBLINGS_MAX);
        Duration::from_micros(timeout.min(TIMEOUT_MAX_US.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    #[test]
    fn the_first_sample_replaces_the_assumption() {
        let mut rtt = Rtt::default();
        assert_eq!((rtt.timeout(0, 0), rtt.is_known(0)), (ms(376), false));
        rtt.update(ms(100), 5);
        assert_eq!((rtt.smoothed_us, rtt.variance_us), (100_000, 50_000));
        assert_eq!(rtt.timeout(0, 5), ms(300));
        rtt.update(ms(140), 6);
        assert_eq!((rtt.smoothed_us, rtt.variance_us), (105_000, 47_500));
    }

    #[test]
    fn timeouts_have_bounds() {
        let mut rtt = Rtt::default();
        rtt.update(Duration::ZERO, 0);
        assert_eq!(rtt.timeout(0, 0), ms(50));
        let mut rtt = Rtt::default();
        rtt.update(Duration::MAX, 0);
        assert_eq!(rtt.timeout(0, 0), ms(12_000));
        assert_eq!(rtt.timeout(u8::MAX, 0), ms(12_000));
    }

    #[test]
    fn a_timeout_doubles_with_each_timeout_before_it_to_three_seconds_for_an_unknown_server() {
        let timeouts = [0, 1, 2, 3, 4, 200].map(|silent| Rtt::default().timeout(silent, 0));
        assert_eq!(timeouts, [376, 752, 1504, 3008, 3008, 3008].map(ms));
    }

    #[test]
    fn an_estimate_expires() {
        let mut rtt = Rtt::default();
        rtt.update(ms(10), 1000);
        assert!(rtt.is_known(1000 + EXPIRY_MS - 1) && !rtt.is_known(1000 + EXPIRY_MS));
        rtt.update(ms(300), 1000 + EXPIRY_MS);
        assert_eq!(rtt.smoothed_us, 300_000);
    }

    proptest! {
        #[test]
        fn the_estimate_approaches_constant_samples(before in 0..12_000u64, sample in 1..12_000u64) {
            let mut rtt = Rtt::default();
            rtt.update(ms(before), 0);
            (1..200).for_each(|now| rtt.update(ms(sample), now));
            prop_assert!(rtt.smoothed_us.abs_diff(sample as u32 * 1000) <= 10);
            prop_assert!(rtt.variance_us <= 10);
        }

        #[test]
        fn a_timeout_is_later_than_the_estimate_and_within_its_bounds(
            samples in proptest::collection::vec(0..20_000_000u64, 0..50),
            silent in 0..=255u8,
        ) {
            let mut rtt = Rtt::default();
            samples.iter().for_each(|sample| rtt.update(Duration::from_micros(*sample), 0));
            let timeout = rtt.timeout(silent, 0);
            prop_assert!((ms(50)..=ms(12_000)).contains(&timeout));
            let (low, high) = rtt.expected_us(0);
            prop_assert!(low <= high);
            prop_assert!(Duration::from_micros(high.into()) <= timeout);
        }
    }
}
