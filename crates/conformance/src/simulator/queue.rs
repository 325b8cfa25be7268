//! The queue of future events, in the order of time. Events at the same time keep the order in
//! which they were scheduled.

use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientToken, ExchangeId, SendFailure};
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// A future event.
#[derive(Clone, Debug)]
pub(super) enum Scheduled {
    /// A client sends a query to a worker.
    Query { worker: usize, token: ClientToken, client: SocketAddr, transport: Transport, message: Vec<u8> },
    /// The query of an exchange arrives at the server.
    Arrival {
        worker: usize,
        exchange: ExchangeId,
        server: SocketAddr,
        transport: Transport,
        message: Vec<u8>,
    },
    /// A message arrives for an exchange.
    Response { worker: usize, exchange: ExchangeId, from: SocketAddr, message: Vec<u8> },
    /// An exchange fails.
    Failure { worker: usize, exchange: ExchangeId, failure: SendFailure },
    /// Another worker wakes a worker.
    Wake { worker: usize },
    /// UNIX time is set.
    ClockChange { seconds: i64 },
}

/// The queue.
#[derive(Debug, Default)]
pub(super) struct Queue {
    /// Events by their time and a sequence number.
    events: BTreeMap<(Duration, u64), Scheduled>,
    sequence: u64,
}

impl Queue {
    /// Schedules an event for the time `at`.
    pub(super) fn push(&mut self, at: Duration, event: Scheduled) {
        self.events.insert((at, self.sequence), event);
        self.sequence += 1;
    }

    /// Returns the time of the first event.
    pub(super) fn next_time(&self) -> Option<Duration> {
        self.events.first_key_value().map(|((at, _), _)| *at)
    }

    /// Removes and returns the first event, if its time is `now` or earlier.
    pub(super) fn pop_due(&mut self, now: Duration) -> Option<Scheduled> {
        self.events.first_entry().filter(|entry| entry.key().0 <= now).map(|entry| entry.remove())
    }
}
