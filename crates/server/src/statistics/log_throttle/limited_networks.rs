//! The networks with rate-limited responses. The log reports when rate limiting of a network starts
//! and ends.
//!
//! The caller passes only a sample of the rate-limited responses
//! ([`ThreadStatistics::may_log_limited`](crate::statistics::ThreadStatistics::may_log_limited)),
//! because a flood consists only of such responses. The number of tracked networks is bounded.

use crate::clock::{LogInterval, is_set_back};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Maximum number of tracked networks.
const NETWORKS_MAX: usize = 256;
/// Rate limiting of a network has ended after this many seconds without a rate-limited response.
const QUIET_SECONDS: u64 = 30;

/// A network: its first address and its prefix length in bits.
type Network = (IpAddr, u8);

/// The networks with rate-limited responses.
#[derive(Debug, Default)]
pub(in crate::statistics) struct LimitedNetworks {
    episodes: Mutex<Vec<Episode>>,
    /// The common limit for lines about starts and ends.
    interval: LogInterval,
}

/// A time of rate limiting for one network. Times are in seconds since 1970.
#[derive(Debug)]
struct Episode {
    network: Network,
    start: u64,
    /// Time of the last rate-limited response.
    last_limited: u64,
    /// Whether the start was logged. The end is logged only in this case.
    is_start_logged: bool,
}

impl Episode {
    /// Whether rate limiting has ended, or the clock was set back.
    const fn has_ended(&self, now: u64) -> bool {
        now.saturating_sub(self.last_limited) >= QUIET_SECONDS || is_set_back(now, self.last_limited)
    }
}

impl LimitedNetworks {
    /// Records that a response to `network` was rate limited at `now`, in seconds since 1970. If
    /// the caller must log the start, returns the number of other tracked networks.
    ///
    /// If the previous episode of the network has ended and its end is not logged yet, the response
    /// continues this episode. So each logged start has one logged end.
    pub(in crate::statistics) fn record(&self, network: Network, now: u64) -> Option<usize> {
        let mut episodes = match self.episodes.try_lock() {
            Ok(episodes) => episodes,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A thread that answers queries does not wait for another thread. The next response
            // tries again.
            Err(TryLockError::WouldBlock) => return None,
        };
        let others = episodes.iter().filter(|episode| episode.network != network).count();
        if !episodes.iter().any(|episode| episode.network == network) {
            if others >= NETWORKS_MAX {
                return None;
            }
            episodes.push(Episode { network, start: now, last_limited: now, is_start_logged: false });
        }
        let episode = episodes.iter_mut().find(|episode| episode.network == network)?;
        episode.last_limited = now;
        if episode.is_start_logged || self.interval.may_log(now).is_none() {
            return None;
        }
        episode.is_start_logged = true;
        Some(others)
    }

    /// Returns a network whose rate limiting has ended, and the duration of the rate limiting in
    /// seconds, if a line may be logged at `now`. The caller logs it, and calls this every second.
    pub(in crate::statistics) fn take_ended(&self, now: u64) -> Option<(Network, u64)> {
        let mut episodes = self.episodes.lock().unwrap_or_else(PoisonError::into_inner);
        episodes.retain(|episode| episode.is_start_logged || !episode.has_ended(now));
        let index = episodes.iter().position(|episode| episode.has_ended(now))?;
        self.interval.may_log(now)?;
        let Episode { network, start, last_limited, .. } = episodes.swap_remove(index);
        Some((network, last_limited.saturating_sub(start)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::Ipv4Addr;

    fn network(number: u32) -> Network {
        (IpAddr::V4(Ipv4Addr::from_bits(number << 8)), 24)
    }

    #[test]
    fn start_and_end_are_logged_once() {
        let limited = LimitedNetworks::default();
        assert_eq!(limited.record(network(1), 100), Some(0));
        assert_eq!((100..110).filter_map(|now| limited.record(network(1), now)).count(), 0);
        assert_eq!(limited.take_ended(109 + QUIET_SECONDS - 1), None);
        assert_eq!(limited.take_ended(109 + QUIET_SECONDS), Some((network(1), 9)));
        assert_eq!(limited.take_ended(109 + QUIET_SECONDS + 1), None);
        assert_eq!(limited.record(network(1), 200), Some(0), "another time");
    }

    #[test]
    fn setting_the_clock_back_ends_later_episodes() {
        let limited = LimitedNetworks::default();
        assert_eq!(limited.record(network(1), 100_000), Some(0));
        assert_eq!(limited.take_ended(99_999), None, "threads differ by a second");
        assert_eq!(limited.take_ended(500), Some((network(1), 0)));
        assert_eq!(limited.record(network(1), 501), Some(0));
    }

    #[test]
    fn many_networks_cause_one_line_per_second_and_bounded_work() {
        let limited = LimitedNetworks::default();
        let mut lines = 0;
        for now in 0..10 {
            lines += (0..1000).filter(|number| limited.record(network(*number), now).is_some()).count();
            lines += usize::from(limited.take_ended(now).is_some());
        }
        assert_eq!(lines, 9, "second 0 counts as the previous second");
        assert_eq!(limited.episodes.lock().unwrap().len(), NETWORKS_MAX);
        // Networks without a logged start end silently; the others are logged one by one.
        let ends: Vec<bool> = (50..70).map(|now| limited.take_ended(now).is_some()).collect();
        assert_eq!(ends.iter().filter(|logged| **logged).count(), 9, "{ends:?}");
        assert!(limited.episodes.lock().unwrap().is_empty());
    }
}
