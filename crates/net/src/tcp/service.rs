//! What a server does with the connections that it has accepted: it answers their messages
//! ([`Answering`]), or only performs their TLS handshakes ([`Handshaking`]).

use super::connection::Connection;
use super::handshake::{EstablishedTls, perform_handshake};
use super::server_state::ConnectionGuard;
use super::table::{EndReason, Phase};
use crate::handler::Handler;
use crate::tls::IdentitySlot;
use std::cell::{Cell, RefCell};
use std::net::SocketAddr;
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::time::Duration;
use tokio::net::TcpStream;

/// The unit of the idle timeout in the edns-tcp-keepalive option (RFC 7828 section 3.1).
const IDLE_TIMEOUT_UNIT_MS: u128 = 100;

/// What a server does with its connections.
pub(super) trait Service {
    /// The phase in which a connection begins.
    fn first_phase(&self) -> Phase;

    /// Serves a connection, and returns why it has ended.
    async fn serve(&self, stream: TcpStream, peer: SocketAddr, guard: ConnectionGuard) -> EndReason;

    /// Called with the current idle timeout, at the start and after each sweep.
    fn set_idle_timeout(&self, _timeout: Duration) {}
}

/// A handler, and the buffers that all connections share.
pub(super) struct HandlerState<H> {
    /// The handler and the buffer for its response. Never borrowed across an await point.
    pub(super) handler: RefCell<(H, Vec<u8>)>,
    pub(super) read_buffer: RefCell<Vec<u8>>,
}

/// Answers messages with a handler, over TLS if there is an identity.
pub(super) struct Answering<H> {
    shared: Rc<HandlerState<H>>,
    identity: Option<IdentitySlot>,
    /// The idle timeout that was last passed to the handler, in units of 100 ms. Initially
    /// `u128::MAX`: none was passed.
    announced_idle_units: Cell<u128>,
}

impl<H> Answering<H> {
    pub(super) fn new(handler: H, identity: Option<IdentitySlot>) -> Self {
        let handler = RefCell::new((handler, Vec::with_capacity(1 << 16)));
        let shared = Rc::new(HandlerState { handler, read_buffer: RefCell::default() });
        Self { shared, identity, announced_idle_units: Cell::new(u128::MAX) }
    }
}

impl<H: Handler> Service for Answering<H> {
    fn first_phase(&self) -> Phase {
        if self.identity.is_some() { Phase::Handshake } else { Phase::FirstMessage }
    }

    async fn serve(&self, stream: TcpStream, peer: SocketAddr, guard: ConnectionGuard) -> EndReason {
        let shared = Rc::clone(&self.shared);
        let Some(identity) = &self.identity else {
            return Connection::new(stream, peer, guard, shared).await;
        };
        match Box::pin(perform_handshake(stream, &guard, identity.acceptor())).await {
            Ok(stream) => {
                guard.entry.begin_phase(Phase::FirstMessage);
                Connection::new(stream, peer, guard, shared).await
            }
            Err(end) => end,
        }
    }

    /// Passes the idle timeout to the handler if its number of whole units of 100 ms is not that of
    /// the value that was passed last.
    fn set_idle_timeout(&self, timeout: Duration) {
        let units = timeout.as_millis() / IDLE_TIMEOUT_UNIT_MS;
        if self.announced_idle_units.replace(units) != units {
            self.shared.handler.borrow_mut().0.set_idle_timeout(timeout);
        }
    }
}

/// Performs TLS handshakes, and passes each connection to `deliver`, which returns whether it has
/// taken the connection.
pub(super) struct Handshaking<D> {
    pub(super) identity: IdentitySlot,
    pub(super) deliver: D,
}

impl<D: Fn(EstablishedTls) -> bool> Service for Handshaking<D> {
    fn first_phase(&self) -> Phase {
        Phase::Handshake
    }

    async fn serve(&self, stream: TcpStream, peer: SocketAddr, guard: ConnectionGuard) -> EndReason {
        let stream = match Box::pin(perform_handshake(stream, &guard, self.identity.acceptor())).await {
            Ok(stream) => stream,
            Err(end) => return end,
        };
        let Ok(established) = EstablishedTls::new(*stream, peer) else { return EndReason::Broken };
        if !(self.deliver)(established) {
            guard.state.counters.refused.fetch_add(1, Relaxed);
        }
        EndReason::Orderly
    }
}
