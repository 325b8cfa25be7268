//! Log limits for senders that the configuration contains: one line per second for each pair of
//! sender and error. The number of pairs is bounded.

use crate::acl::Prefix;
use crate::clock::is_set_back;
use nonesuch_proto::Name;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Maximum number of pairs of sender and error with a separate limit.
const ENTRIES_MAX: usize = 4096;
/// Seconds without a logged line after which a pair is removed if the table is full.
const QUIET_SECONDS: u64 = 60;

/// A sender that the configuration contains. The configuration bounds the number of values, however
/// many addresses are forged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KnownSender {
    /// The address of the sender matches this entry of an access list of the zone, or is the
    /// address of a primary or secondary of the zone.
    Entry(Prefix),
    /// The message names this TSIG key of the server.
    Key(Name),
}

/// The last line of each pair of error and sender. The number of an error is that of
/// [`error_index`](super::error_index).
#[derive(Debug, Default)]
pub(super) struct KnownSenders {
    lines: Mutex<HashMap<(usize, KnownSender), LastLine>>,
}

#[derive(Debug, Default)]
struct LastLine {
    /// The second of the last line; 0 before the first line.
    logged: u64,
    /// Number of suppressed lines since the last line.
    suppressed: u64,
}

impl KnownSenders {
    /// Decides whether a line about `sender`, a pair of error and sender, may be logged at `now`,
    /// in seconds since 1970:
    ///
    /// - `Some(Some(n))`: it may be logged, and `n` lines were suppressed since the last one.
    /// - `Some(None)`: it must not be logged.
    /// - `None`: there is no separate limit for the sender, because the table is full or locked.
    pub(super) fn may_log(&self, sender: (usize, KnownSender), now: u64) -> Option<Option<u64>> {
        let mut lines = match self.lines.try_lock() {
            Ok(lines) => lines,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            // A thread that answers queries does not wait for another thread.
            Err(TryLockError::WouldBlock) => return None,
        };
        if lines.len() >= ENTRIES_MAX && !lines.contains_key(&sender) {
            lines.retain(|_, line| {
                now.saturating_sub(line.logged) < QUIET_SECONDS && !is_set_back(now, line.logged)
            });
            if lines.len() >= ENTRIES_MAX {
                return None;
            }
        }
        let line = lines.entry(sender).or_default();
        if now > line.logged || is_set_back(now, line.logged) {
            line.logged = now;
            return Some(Some(std::mem::take(&mut line.suppressed)));
        }
        line.suppressed += 1;
        Some(None)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::net::{IpAddr, Ipv4Addr};

    fn entry(number: u32) -> KnownSender {
        KnownSender::Entry(Prefix::new(IpAddr::V4(Ipv4Addr::from_bits(number)), 32).unwrap())
    }

    #[test]
    fn each_sender_has_one_line_per_second_for_each_error() {
        let senders = KnownSenders::default();
        let key = KnownSender::Key("k.".parse().unwrap());
        for sender in [(0, entry(1)), (0, entry(2)), (1, entry(1)), (0, key)] {
            let logged = [100, 100, 100, 101, 7].map(|now| senders.may_log(sender.clone(), now));
            assert_eq!(logged, [Some(Some(0)), Some(None), Some(None), Some(Some(2)), Some(Some(0))]);
        }
    }

    #[test]
    fn the_number_of_senders_is_bounded_and_quiet_ones_are_removed() {
        let senders = KnownSenders::default();
        let own = (0..ENTRIES_MAX as u32 + 100)
            .filter(|number| senders.may_log((0, entry(*number)), 1000).is_some());
        assert_eq!(own.count(), ENTRIES_MAX);
        assert_eq!(senders.may_log((0, entry(u32::MAX)), 1000 + QUIET_SECONDS - 1), None);
        assert_eq!(senders.may_log((0, entry(u32::MAX)), 1000 + QUIET_SECONDS), Some(Some(0)));
    }
}
