//! What is on the other side of the network: servers.

use nonesuch_net::Transport;
use nonesuch_net::machine::{ExchangeId, Now, SendFailure};
use std::net::SocketAddr;
use std::time::Duration;

/// A query that arrived at a server.
#[derive(Clone, Copy, Debug)]
pub struct ServerQuery<'m> {
    /// Number of the worker that sent the query.
    pub worker: usize,
    /// The exchange of the query.
    pub exchange: ExchangeId,
    /// The address of the server.
    pub server: SocketAddr,
    /// The transport of the query, and of the response.
    pub transport: Transport,
    /// The message.
    pub message: &'m [u8],
}

/// What a server does with a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reaction {
    /// The server sends messages; without a message, it does not answer.
    Messages(Vec<Delivery>),
    /// The query fails: nothing serves at this address, or there is no route to it.
    Failure(SendFailure),
}

impl Reaction {
    /// The server does not answer.
    pub const SILENCE: Self = Self::Messages(Vec::new());

    /// The server sends one message at once.
    #[must_use]
    pub fn answer(from: SocketAddr, message: Vec<u8>) -> Self {
        Self::Messages(vec![Delivery { delay: Duration::ZERO, from, message }])
    }
}

/// A message of a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delivery {
    /// Time that the server takes. The delay of the path is added.
    pub delay: Duration,
    /// The sender. Over UDP, the driver discards a message of another sender than the server that
    /// was asked. A forged sender is the address of this server.
    pub from: SocketAddr,
    /// The message.
    pub message: Vec<u8>,
}

/// The servers that machines query. A closure can be a network.
pub trait Network {
    /// Processes a query that arrived at a server at the time `now`.
    fn handle_query(&mut self, query: &ServerQuery<'_>, now: Now) -> Reaction;

    /// A machine closed an exchange.
    fn handle_close(&mut self, _worker: usize, _exchange: ExchangeId) {}
}

impl<F: FnMut(&ServerQuery<'_>, Now) -> Reaction> Network for F {
    fn handle_query(&mut self, query: &ServerQuery<'_>, now: Now) -> Reaction {
        self(query, now)
    }
}
