//! Truncated responses over UDP, whose queries are repeated over TCP (RFC 7766 §5).

use std::collections::VecDeque;

use super::connections::Connections;
use super::frame::Frame;
use super::inspector::question;
use super::pacer::{Pacer, share};
use super::slots::Times;
use super::tally::TC;
use super::{LoadError, LoadOptions};

/// Length of the header of a message in octets.
const HEADER: usize = 12;

/// Queries with truncated responses, and the connections over which they are repeated.
pub(super) struct Follow {
    pub(super) connections: Connections,
    /// Times and questions of queries that wait for a connection. Their number is less than
    /// `window`.
    waiting: VecDeque<(Times, Vec<u8>)>,
    /// Maximum number of outstanding queries of the thread, over UDP and TCP together.
    window: usize,
}

impl Follow {
    /// Creates the connections of thread `index`, if truncated responses are followed. They are
    /// opened at the first truncated response.
    pub(super) fn new(options: &LoadOptions, index: usize) -> Option<Self> {
        options.follow_truncated.then(|| Self {
            connections: Connections::new(options, index),
            waiting: VecDeque::new(),
            window: share(options.outstanding as u64, index, options.threads) as usize,
        })
    }

    /// Returns how many further queries may be outstanding.
    pub(super) fn room(&self, pacer: &Pacer<'_>) -> usize {
        self.window.saturating_sub(pacer.outstanding)
    }

    /// Takes a response over UDP. Returns whether its query is repeated over TCP. `times` are those
    /// of the query, which is then outstanding again.
    pub(super) fn take(&mut self, pacer: &mut Pacer<'_>, times: Times, now: u64, message: &[u8]) -> bool {
        let is_truncated = message.get(2).is_some_and(|flags| flags & TC != 0);
        let asked = message.get(HEADER..).filter(|_| is_truncated).and_then(question);
        let Some(asked) = asked else { return false };
        pacer.tally.count_truncated(times, message);
        pacer.outstanding += 1;
        self.waiting.push_back((Times { due: times.due, sent: now }, asked.to_vec()));
        true
    }

    /// Repeats the waiting queries, as far as the connections have room.
    pub(super) fn send(
        &mut self,
        pacer: &mut Pacer<'_>,
        frame: &mut Frame,
        now: u64,
    ) -> Result<(), LoadError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.connections.send_again(&mut self.waiting, pacer, frame, now)
    }

    /// Counts queries as lost after the timeout.
    pub(super) fn expire(&mut self, pacer: &mut Pacer<'_>, now: u64) {
        while self.waiting.front().is_some_and(|(times, _)| pacer.is_expired(*times, now)) {
            if let Some((times, _)) = self.waiting.pop_front() {
                pacer.tally.count_lost(times);
                pacer.outstanding -= 1;
            }
        }
        self.connections.expire(pacer, now);
    }
}
