//! Truncated responses over UDP, whose queries are repeated over TCP (RFC 7766 §5).

use std::collections::VecDeque;

use super::connections::Connections;
use super::encoder::QueryEncoder;
use super::inspector::leading_question;
use super::pacer::{Pacer, equal_share};
use super::slots::QueryTimes;
use super::tally::TC;
use super::{LoadError, LoadOptions};

/// Length of the header of a message in octets.
const HEADER_SIZE: usize = 12;

/// Queries with truncated responses, and the connections over which they are repeated.
pub(super) struct TcpRetry {
    pub(super) connections: Connections,
    /// Times and questions of queries that wait for a connection: fewer than `window`.
    waiting: VecDeque<(QueryTimes, Vec<u8>)>,
    /// Maximum number of outstanding queries of the thread, over UDP and TCP together.
    window: usize,
}

impl TcpRetry {
    /// Creates the connections of thread `thread`, which are opened at the first truncated
    /// response. Returns `None` if the options do not require to repeat queries over TCP.
    pub(super) fn new(options: &LoadOptions, thread: usize) -> Option<Self> {
        options.follow_truncated.then(|| Self {
            connections: Connections::new(options, thread),
            waiting: VecDeque::new(),
            window: equal_share(options.outstanding as u64, thread, options.threads) as usize,
        })
    }

    /// Returns how many further queries may be outstanding.
    pub(super) fn free_window(&self, pacer: &Pacer<'_>) -> usize {
        self.window.saturating_sub(pacer.outstanding)
    }

    /// Queues the query of a response over UDP for TCP if the response is truncated, counts it as
    /// outstanding again, and returns true. Returns false for other responses, which the caller
    /// counts. `times` are those of the query; its timeout starts again at `now`.
    pub(super) fn queue_if_truncated(
        &mut self,
        pacer: &mut Pacer<'_>,
        times: QueryTimes,
        now: u64,
        message: &[u8],
    ) -> bool {
        let is_truncated = message.get(2).is_some_and(|flags| flags & TC != 0);
        let question = message.get(HEADER_SIZE..).filter(|_| is_truncated).and_then(leading_question);
        let Some(question) = question else { return false };
        pacer.tally.count_truncated(times, message);
        pacer.outstanding += 1;
        self.waiting.push_back((QueryTimes { due: times.due, sent: now }, question.to_vec()));
        true
    }

    /// Sends the waiting queries over TCP, as many as the connections have free slots for.
    pub(super) fn send_waiting(
        &mut self,
        pacer: &mut Pacer<'_>,
        encoder: &mut QueryEncoder,
        now: u64,
    ) -> Result<(), LoadError> {
        if self.waiting.is_empty() {
            return Ok(());
        }
        self.connections.send_retries(&mut self.waiting, pacer, encoder, now)
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
