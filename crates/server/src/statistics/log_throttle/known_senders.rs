//! Log limits for senders that the configuration contains: one line per second for each sender, for
//! a bounded number of senders.

use crate::acl::Prefix;
use crate::clock::is_set_back;
use nonesuch_proto::Name;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError, TryLockError};

/// Maximum number of pairs of sender and error with a separate limit.
const MOST: usize = 4096;
/// Seconds without a logged line after which a sender is removed if the table is full.
const QUIET: u64 = 60;

/// Why a sender is known. The configuration bounds the number of values, however many addresses are
/// forged.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum KnownSender {
    /// The address of the sender matches this entry of an access list of the zone, or is the
    /// address of a primary or secondary of the zone.
    Entry(Prefix),
    /// The message names this TSIG key of the server.
    Key(Name),
}

/// The last line of each sender, by error and sender.
#[derive(Debug, Default)]
pub(super) struct KnownSenders {
    lines: Mutex<HashMap<(usize, KnownSender), Line>>,
}

#[derive(Debug, Default)]
struct Line {
    /// The second of the last line, and the number of suppressed lines since.
    said: u64,
    unsaid: u64,
}

impl KnownSenders {
    /// Whether a line about `sender` may be logged in the second `now`; `Some(Some(n))` has the
    /// number of suppressed lines before it. The outer `None`: there is no separate limit for the
    /// sender, because the table is full or locked.
    pub(super) fn may_log(&self, sender: (usize, KnownSender), now: u64) -> Option<Option<u64>> {
        let mut lines = match self.lines.try_lock() {
            Ok(lines) => lines,
            Err(TryLockError::Poisoned(poisoned)) => PoisonError::into_inner(poisoned),
            // A thread that answers queries does not wait for another thread.
            Err(TryLockError::WouldBlock) => return None,
        };
        if lines.len() >= MOST && !lines.contains_key(&sender) {
            lines.retain(|_, line| now.saturating_sub(line.said) < QUIET && !is_set_back(now, line.said));
            if lines.len() >= MOST {
                return None;
            }
        }
        let line = lines.entry(sender).or_default();
        if now > line.said || is_set_back(now, line.said) {
            line.said = now;
            return Some(Some(std::mem::take(&mut line.unsaid)));
        }
        line.unsaid += 1;
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
    fn each_sender_has_a_line_a_second_for_each_error() {
        let senders = KnownSenders::default();
        let key = KnownSender::Key("k.".parse().unwrap());
        for sender in [(0, entry(1)), (0, entry(2)), (1, entry(1)), (0, key)] {
            let said = [100, 100, 100, 101, 7].map(|now| senders.may_log(sender.clone(), now));
            assert_eq!(said, [Some(Some(0)), Some(None), Some(None), Some(Some(2)), Some(Some(0))]);
        }
    }

    #[test]
    fn the_number_of_senders_is_bounded_and_quiet_ones_make_room() {
        let senders = KnownSenders::default();
        let own =
            (0..MOST as u32 + 100).filter(|number| senders.may_log((0, entry(*number)), 1000).is_some());
        assert_eq!(own.count(), MOST);
        assert_eq!(senders.may_log((0, entry(u32::MAX)), 1000 + QUIET - 1), None);
        assert_eq!(senders.may_log((0, entry(u32::MAX)), 1000 + QUIET), Some(Some(0)));
    }
}
