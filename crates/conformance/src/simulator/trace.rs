//! The record of all events of a simulation, to compare runs and to find the cause of a failure.

use crate::describe::Summary;
use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientToken, ExchangeId, SendFailure};
use std::collections::VecDeque;
use std::fmt;
use std::net::SocketAddr;
use std::time::Duration;

/// Events in the order of time. Its display has one line for each event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Trace {
    entries: VecDeque<TraceEntry>,
    limit: usize,
    removed: u64,
}

/// An event with its time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TraceEntry {
    /// Time since the start of the simulation.
    pub at: Duration,
    /// Number of the worker; `None` for events that belong to no worker.
    pub worker: Option<usize>,
    /// The event.
    pub event: TraceEvent,
}

/// An event.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TraceEvent {
    /// A client sent a query.
    Query(ClientToken, SocketAddr, Transport, Vec<u8>),
    /// The machine sent a query to a server.
    Send(ExchangeId, SocketAddr, Transport, Vec<u8>),
    /// The path lost a message.
    Lost(ExchangeId, Loss),
    /// The machine received a message.
    Response(ExchangeId, SocketAddr, Vec<u8>),
    /// The driver discarded a message.
    Discarded(ExchangeId, SocketAddr, DiscardReason),
    /// An exchange failed.
    Failed(ExchangeId, SendFailure),
    /// The machine closed an exchange.
    Closed(ExchangeId),
    /// The machine processed its timeouts.
    Timeout,
    /// Another worker woke the machine.
    Woken,
    /// The machine sent a reply.
    Reply(ClientToken, Vec<u8>),
    /// The machine dropped a query.
    Dropped(ClientToken),
    /// UNIX time was changed by a number of seconds.
    ClockChange(i64),
}

/// Which message was lost.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Loss {
    /// The query.
    Query,
    /// The response.
    Response,
}

/// Why the driver discarded a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DiscardReason {
    /// The exchange has ended.
    ExchangeEnded,
    /// The sender is not the server of the exchange.
    OtherSender,
}

impl Trace {
    /// Returns an empty trace with at most `limit` entries.
    pub(super) const fn new(limit: usize) -> Self {
        Self { entries: VecDeque::new(), limit, removed: 0 }
    }

    /// Appends an event.
    pub(super) fn push(&mut self, at: Duration, worker: Option<usize>, event: TraceEvent) {
        if self.entries.len() >= self.limit {
            self.removed += 1;
            if self.entries.pop_front().is_none() {
                return;
            }
        }
        self.entries.push_back(TraceEntry { at, worker, event });
    }

    /// Returns the events, the oldest first.
    pub fn entries(&self) -> impl Iterator<Item = &TraceEntry> {
        self.entries.iter()
    }

    /// Returns the number of events that were removed because of the limit.
    #[must_use]
    pub const fn removed(&self) -> u64 {
        self.removed
    }
}

impl fmt::Display for Trace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.removed > 0 {
            writeln!(f, "{} older events are missing", self.removed)?;
        }
        for entry in &self.entries {
            writeln!(f, "{entry}")?;
        }
        Ok(())
    }
}

impl fmt::Display for TraceEntry {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:>4}.{:06}", self.at.as_secs(), self.at.subsec_micros())?;
        match self.worker {
            Some(worker) => write!(f, " worker={worker} ")?,
            None => write!(f, " ")?,
        }
        write!(f, "{}", self.event)
    }
}

impl fmt::Display for TraceEvent {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Query(token, client, transport, message) => {
                write!(f, "query {} from {client} over {transport}: {}", token.0, Summary(message))
            }
            Self::Send(exchange, server, transport, message) => {
                write!(f, "send {} to {server} over {transport}: {}", exchange.0, Summary(message))
            }
            Self::Lost(exchange, Loss::Query) => write!(f, "lost query {}", exchange.0),
            Self::Lost(exchange, Loss::Response) => write!(f, "lost response {}", exchange.0),
            Self::Response(exchange, from, message) => {
                write!(f, "response {} from {from}: {}", exchange.0, Summary(message))
            }
            Self::Discarded(exchange, from, reason) => {
                write!(f, "discarded {} from {from}: {reason:?}", exchange.0)
            }
            Self::Failed(exchange, failure) => write!(f, "failed {}: {failure:?}", exchange.0),
            Self::Closed(exchange) => write!(f, "closed {}", exchange.0),
            Self::Timeout => write!(f, "timeout"),
            Self::Woken => write!(f, "woken"),
            Self::Reply(token, message) => write!(f, "reply {}: {}", token.0, Summary(message)),
            Self::Dropped(token) => write!(f, "dropped {}", token.0),
            Self::ClockChange(seconds) => write!(f, "clock changed by {seconds} s"),
        }
    }
}
