//! The TLS handshake of a connection.

use std::future::poll_fn;
use std::io;
use std::net::{SocketAddr, TcpStream as BlockingStream};
use std::pin::pin;
use std::sync::atomic::Ordering::Relaxed;
use std::task::Poll;

use tokio::net::TcpStream;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{HandshakeKind, ServerConnection};
use tokio_rustls::server::TlsStream;

use super::counting_socket::CountingSocket;
use super::server_state::ConnectionGuard;
use super::table::{ConnectionCommand, EndReason};

/// Octets of memory that are charged for a TLS handshake, without the octets that the client has
/// sent: the state of the connection, keys, the messages of the server.
const HANDSHAKE_CHARGE_OCTETS: usize = 1 << 14;

/// A connection whose handshake is complete, without a runtime. Messages of the client may wait in
/// the session already.
#[derive(Debug)]
pub(crate) struct EstablishedTls {
    /// A socket that does not block.
    pub(crate) socket: BlockingStream,
    pub(crate) session: ServerConnection,
    pub(crate) peer: SocketAddr,
}

impl EstablishedTls {
    /// Removes the connection from the runtime.
    pub(super) fn new(stream: TlsStream<CountingSocket>, peer: SocketAddr) -> io::Result<Self> {
        let (socket, session) = stream.into_inner();
        Ok(Self { socket: socket.into_socket().into_std()?, session, peer })
    }
}

/// Performs the TLS handshake. A command ends it early.
///
/// # Errors
/// Returns the [`EndReason`] of the command, or [`EndReason::Orderly`] if the handshake fails.
pub(super) async fn perform_handshake(
    stream: TcpStream,
    guard: &ConnectionGuard,
    acceptor: TlsAcceptor,
) -> Result<Box<TlsStream<CountingSocket>>, EndReason> {
    guard.set_buffered(HANDSHAKE_CHARGE_OCTETS);
    let mut accept = pin!(acceptor.accept(CountingSocket::new(stream)));
    let handshake = poll_fn(|cx| match guard.entry.poll_command(cx.waker()) {
        Some(ConnectionCommand::End(end)) => Poll::Ready(Err(end)),
        Some(ConnectionCommand::Finish) => Poll::Ready(Err(EndReason::Orderly)),
        None => {
            let handshake = accept.as_mut().poll(cx).map(Ok);
            guard.set_buffered(
                HANDSHAKE_CHARGE_OCTETS + accept.get_ref().map_or(0, CountingSocket::undelivered),
            );
            handshake
        }
    });
    let counters = &guard.state.counters;
    match handshake.await? {
        Ok(mut stream) => {
            stream.get_mut().0.mark_delivered();
            counters.handshakes.fetch_add(1, Relaxed);
            let resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
            counters.resumed.fetch_add(u64::from(resumed), Relaxed);
            Ok(Box::new(stream))
        }
        Err(_) => {
            counters.handshakes_failed.fetch_add(1, Relaxed);
            Err(EndReason::Orderly)
        }
    }
}
