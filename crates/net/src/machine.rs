//! The interface between a state machine without I/O that serves clients and queries servers, such
//! as a resolver, and its driver. The driver owns sockets and the clock. In tests, a simulator is the
//! driver.

use crate::Transport;
use std::net::SocketAddr;
use std::time::Instant;

/// The time of an event.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Now {
    /// Monotonic time, for TTLs and timeouts. A set clock does not change it.
    pub instant: Instant,
    /// Seconds since 1970, for RRSIG records and cookies.
    pub unix: u64,
}

/// Identifies a client query. The driver chooses it; it is unique among the queries that were not
/// answered yet.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ClientToken(pub u64);

/// Identifies a query to a server. A machine does not use an identifier twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ExchangeId(pub u64);

/// A message from a client.
#[derive(Clone, Copy, Debug)]
pub struct ClientQuery<'m> {
    /// The identifier for the reply.
    pub token: ClientToken,
    /// The address of the client.
    pub client: SocketAddr,
    /// The transport of the message, and of its reply.
    pub transport: Transport,
    /// The message.
    pub message: &'m [u8],
}

/// A state machine that answers clients, possibly after queries to servers.
///
/// The driver works in turns. In a turn it passes all events that it has, and all timeouts that are
/// due, then calls [`end_turn`](Self::end_turn) once, and executes all outputs. It may execute outputs
/// between events too.
pub trait Machine {
    /// Processes an event.
    fn handle_event(&mut self, event: Event<'_>, now: Now);

    /// Processes timeouts that are due: called at the time that
    /// [`poll_timeout`](Self::poll_timeout) returned, or later.
    fn handle_timeout(&mut self, now: Now);

    /// Completes work that is cheaper for several events together. Called once in each turn.
    fn end_turn(&mut self, _now: Now) {}

    /// Returns the next output; `None` if there is none at present.
    fn poll_output(&mut self) -> Option<Output>;

    /// Returns the time of the next timeout; `None` without timeouts.
    fn poll_timeout(&mut self) -> Option<Instant>;
}

/// An event.
#[derive(Clone, Copy, Debug)]
pub enum Event<'m> {
    /// A client sent a message. One [`Output::Reply`] or [`Output::Drop`] with its token follows, at
    /// once or later.
    Query(ClientQuery<'m>),
    /// The server of this exchange sent a message. For UDP, the driver received it on the socket of
    /// the exchange, from the address of the server. The machine checks every other property.
    Response(ExchangeId, &'m [u8]),
    /// The exchange failed: the driver expects no message any more.
    Failed(ExchangeId, SendFailure),
    /// Another worker finished a task, for which this worker waits ([`Output::Wake`]), or the data
    /// that the workers share changed
    /// ([`EventLoopServer::wake`](crate::event_loop::EventLoopServer::wake)).
    Wake,
}

/// Why an exchange failed before its timeout.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SendFailure {
    /// The host is reachable and does not serve: connection refused or reset, or closed before the
    /// response.
    Refused,
    /// No route: the network or the host is unreachable.
    Unreachable,
    /// The driver lacks a resource, such as a free socket. It says nothing about the server.
    Local,
}

/// A query to a server.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Upstream {
    /// The identifier of the exchange.
    pub exchange: ExchangeId,
    /// The address of the server.
    pub server: SocketAddr,
    /// [`Transport::Udp`]: the driver sends the message from a random port. [`Transport::Tcp`]:
    /// the driver sends it over an open connection to the server, or opens one.
    pub transport: Transport,
    /// The message. Its ID is unpredictable; over TCP, the driver may have several messages with the
    /// same ID on one connection only if it opens another connection.
    pub message: Vec<u8>,
}

/// An output.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Output {
    /// Send a query to a server.
    Send(Upstream),
    /// The exchange has ended. Messages of the server are not passed any more.
    Close(ExchangeId),
    /// Send the reply to a client.
    Reply(ClientToken, Vec<u8>),
    /// There is no reply to this client query: the message is malformed, or the client is not
    /// permitted.
    Drop(ClientToken),
    /// Pass [`Event::Wake`] to these workers, given by their numbers.
    Wake(Vec<usize>),
}
