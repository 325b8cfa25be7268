//! The networks with rate-limited responses. The log reports the beginning and the end of rate
//! limiting.
//!
//! Only a sample of the rate-limited responses is examined, because a flood consists only of such
//! responses. The number of tracked networks is bounded.

use crate::clock::{LogInterval, is_set_back};
use std::net::IpAddr;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Maximum number of tracked networks.
const MOST: usize = 256;
/// Rate limiting has ended after this many seconds without a rate-limited response.
const QUIET: u64 = 30;

/// A network: its first address and its prefix length in bits.
type Network = (IpAddr, u8);

/// The networks with rate-limited responses.
#[derive(Debug, Default)]
pub(in crate::statistics) struct LimitedNetworks {
    episodes: Mutex<Vec<Episode>>,
    pace: LogInterval,
}

#[derive(Debug)]
struct Episode {
    network: Network,
    began: u64,
    last: u64,
    /// Whether the beginning was logged. Only then the end is logged.
    is_said: bool,
}

impl LimitedNetworks {
    /// Records that a response to `network` was rate limited in the second `now`. If the beginning
    /// should be logged, returns the number of other rate-limited networks.
    pub(in crate::statistics) fn begin(&self, network: Network, now: u64) -> Option<usize> {
        let mut episodes = match self.episodes.try_lock() {
            Ok(episodes) => episodes,
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            // A thread that answers queries does not wait for another thread. The next response
            // tries again.
            Err(TryLockError::WouldBlock) => return None,
        };
        let others = episodes.iter().filter(|episode| episode.network != network).count();
        if !episodes.iter().any(|episode| episode.network == network) {
            if others >= MOST {
                return None;
            }
            episodes.push(Episode { network, began: now, last: now, is_said: false });
        }
        let episode = episodes.iter_mut().find(|episode| episode.network == network)?;
        episode.last = now;
        if episode.is_said || self.pace.may_log(now).is_none() {
            return None;
        }
        episode.is_said = true;
        Some(others)
    }

    /// Returns a network whose rate limiting has ended and should be logged, and the duration in
    /// seconds. The caller calls this every second.
    pub(in crate::statistics) fn end(&self, now: u64) -> Option<(Network, u64)> {
        let mut episodes = self.episodes.lock().unwrap_or_else(PoisonError::into_inner);
        let is_over =
            |episode: &Episode| now.saturating_sub(episode.last) >= QUIET || is_set_back(now, episode.last);
        episodes.retain(|episode| episode.is_said || !is_over(episode));
        let place = episodes.iter().position(is_over)?;
        self.pace.may_log(now)?;
        let Episode { network, began, last, .. } = episodes.swap_remove(place);
        Some((network, last.saturating_sub(began)))
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
    fn beginning_and_end_are_told_once() {
        let limited = LimitedNetworks::default();
        assert_eq!(limited.begin(network(1), 100), Some(0));
        assert_eq!((100..110).filter_map(|now| limited.begin(network(1), now)).count(), 0);
        assert_eq!(limited.end(109 + QUIET - 1), None);
        assert_eq!(limited.end(109 + QUIET), Some((network(1), 9)));
        assert_eq!(limited.end(109 + QUIET + 1), None);
        assert_eq!(limited.begin(network(1), 200), Some(0), "another time");
    }

    #[test]
    fn a_clock_that_is_set_back_ends_what_it_has_not_seen() {
        let limited = LimitedNetworks::default();
        assert_eq!(limited.begin(network(1), 100_000), Some(0));
        assert_eq!(limited.end(99_999), None, "threads differ by a second");
        assert_eq!(limited.end(500), Some((network(1), 0)));
        assert_eq!(limited.begin(network(1), 501), Some(0));
    }

    #[test]
    fn many_networks_make_one_line_a_second_and_bounded_work() {
        let limited = LimitedNetworks::default();
        let mut lines = 0;
        for now in 0..10 {
            lines += (0..1000).filter(|number| limited.begin(network(*number), now).is_some()).count();
            lines += usize::from(limited.end(now).is_some());
        }
        assert_eq!(lines, 9, "second 0 counts as the previous second");
        assert_eq!(limited.episodes.lock().unwrap().len(), MOST);
        // Networks without a logged beginning end silently; the others are logged one by one.
        let ends: Vec<bool> = (50..70).map(|now| limited.end(now).is_some()).collect();
        assert_eq!(ends.iter().filter(|told| **told).count(), 9, "{ends:?}");
        assert!(limited.episodes.lock().unwrap().is_empty());
    }
}
