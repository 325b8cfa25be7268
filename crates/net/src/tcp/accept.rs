//! Accepts connections: assigns table entries, performs TLS handshakes, and ends connections that
//! exceed a time limit.

use std::future::poll_fn;
use std::io;
use std::net::SocketAddr;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::sync::atomic::Ordering::Relaxed;
use std::task::{Context, Poll};
use std::time::Duration;

use socket2::SockRef;
use tokio::io::AsyncWrite;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, sleep_until};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::{HandshakeKind, ProtocolVersion};
use tokio_rustls::server::TlsStream;

use super::connection::{Connection, ConnectionIo};
use super::counting_socket::CountingSocket;
use super::options::TcpOptions;
use super::server_state::{ConnectionGuard, ServerState};
use super::table::{ConnectionCommand, EndReason, Phase, Refusal};
use crate::handler::{Handler, TlsSession};
use crate::heartbeat::Heartbeat;
use crate::sys;
use crate::tls::IdentitySlot;

/// Pause after the system could not accept a connection for lack of resources. Without the pause,
/// the loop would use a whole CPU.
pub(crate) const ACCEPT_PAUSE: Duration = Duration::from_millis(50);
/// Number of sweeps (checks of the time limits of all connections) within the shortest time limit.
const SWEEPS_PER_LIMIT: u32 = 8;
/// Maximum interval between sweeps.
const SWEEP_MAX: Duration = Duration::from_millis(500);
/// Minimum interval between sweeps.
const SWEEP_MIN: Duration = Duration::from_millis(1);
/// Maximum octets that wait unsent in the system for the peer of a stream. The limit for other
/// peers is [`UNSENT_OCTETS_MAX`](super::UNSENT_OCTETS_MAX).
const STREAM_UNSENT_OCTETS_MAX: u32 = 1 << 18;

/// Octets of memory that are charged for a TLS handshake, without the octets that the client has
/// sent: the state of the connection, keys, the messages of the server.
const HANDSHAKE_CHARGE_OCTETS: usize = 1 << 14;

impl ConnectionIo for TcpStream {
    fn permit_more_unsent(&self) {
        // If the system rejects the option, the stream is only slower.
        let _ = SockRef::from(self).set_tcp_notsent_lowat(STREAM_UNSENT_OCTETS_MAX);
    }

    fn acknowledged_octets(&self) -> Option<u64> {
        sys::acknowledged_octets(self)
    }

    fn signal_end(&mut self, _: &mut Context<'_>) {}
}

/// Boxed, because a connection in its handshake must not reserve memory for the later state.
impl ConnectionIo for Box<TlsStream<CountingSocket>> {
    fn permit_more_unsent(&self) {
        self.get_ref().0.socket().permit_more_unsent();
    }

    fn acknowledged_octets(&self) -> Option<u64> {
        self.get_ref().0.socket().acknowledged_octets()
    }

    /// The incomplete record of the client, and the records that wait to be sent. The state of the
    /// session is not included, because the number of connections limits it.
    fn buffered(&mut self) -> usize {
        let (socket, session) = self.as_mut().get_mut();
        // There are no new packets; the call only returns the state.
        let unsent = session.process_new_packets().map_or(0, |state| state.tls_bytes_to_write());
        unsent + socket.undelivered()
    }

    fn mark_delivered(&mut self) {
        self.as_mut().get_mut().0.mark_delivered();
    }

    fn session(&self) -> Option<TlsSession> {
        let session = self.get_ref().1;
        Some(TlsSession {
            is_tls13: session.protocol_version() == Some(ProtocolVersion::TLSv1_3),
            // The server negotiates no other protocol.
            is_dot: session.alpn_protocol().is_some(),
        })
    }

    fn signal_end(&mut self, cx: &mut Context<'_>) {
        // The alert may be lost; the server does not wait for it.
        let _ = Pin::new(self).poll_shutdown(cx);
    }
}

/// Accepts connections until the server must stop. Then waits until the open connections have sent
/// their answers, at most for the finish timeout.
pub(super) async fn accept_all<H>(
    listener: TcpListener,
    identity: Option<IdentitySlot>,
    shared: Rc<ServerState<H>>,
    heartbeat: &Heartbeat,
    mut stopping: watch::Receiver<bool>,
) where
    H: Handler + 'static,
{
    let interval = sweep_interval(&shared.options);
    let mut next_sweep = Instant::now() + interval;
    let mut next_report = Instant::now();
    let mut tasks = JoinSet::new();
    shared.announce_idle_timeout(shared.options.idle_timeout);
    loop {
        let has_connections = !shared.table.borrow().is_empty();
        let accepted = tokio::select! {
            biased;
            // A closed channel means that the owner of the server was dropped, so stop in this case
            // too.
            _ = stopping.wait_for(|&stop| stop) => break,
            () = sleep_until(next_sweep), if has_connections => {
                shared.sweep();
                next_sweep = Instant::now() + interval;
                continue;
            }
            () = sleep_until(next_report) => {
                heartbeat.report();
                next_report = Instant::now() + heartbeat.max_wait();
                continue;
            }
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                if let Some(guard) = register_connection(&shared, peer, identity.is_some()) {
                    match &identity {
                        None => tasks.spawn_local(serve_plain(stream, peer, guard)),
                        Some(identity) => {
                            tasks.spawn_local(serve_tls(stream, peer, guard, identity.acceptor()))
                        }
                    };
                }
            }
            Err(error) if is_only_connection_error(&error) => {}
            Err(error) => {
                if is_out_of_descriptors(&error) && shared.table.borrow_mut().evict(&shared.options) {
                    shared.counters.evicted.fetch_add(1, Relaxed);
                }
                sleep(ACCEPT_PAUSE).await;
            }
        }
    }
    drop(listener);
    shared.table.borrow().finish_all();
    let deadline = Instant::now() + shared.options.finish_timeout;
    loop {
        tokio::select! {
            joined = tasks.join_next() => if joined.is_none() { break },
            () = sleep_until(deadline) => {
                tasks.shutdown().await;
                break;
            }
            () = sleep(interval) => {
                heartbeat.report();
                shared.sweep();
            }
        }
    }
}

/// Returns the interval between checks of the time limits of all connections.
pub(crate) fn sweep_interval(options: &TcpOptions) -> Duration {
    (options.shortest_timeout() / SWEEPS_PER_LIMIT).clamp(SWEEP_MIN, SWEEP_MAX)
}

/// Adds a new connection to the table. Returns `None` if the connection is refused and must be
/// closed.
fn register_connection<H>(
    shared: &Rc<ServerState<H>>,
    peer: SocketAddr,
    tls: bool,
) -> Option<ConnectionGuard<H>> {
    let counters = &shared.counters;
    counters.accepted.fetch_add(1, Relaxed);
    let phase = if tls { Phase::Handshake } else { Phase::FirstMessage };
    let inserted = shared.table.borrow_mut().insert(peer, phase, &shared.options);
    match inserted {
        Ok((id, entry, evicted)) => {
            counters.evicted.fetch_add(u64::from(evicted), Relaxed);
            counters.open.fetch_add(1, Relaxed);
            Some(ConnectionGuard { id, entry, shared: Rc::clone(shared) })
        }
        Err(refusal) => {
            let counter = match refusal {
                Refusal::ConnectionLimit => &counters.refused,
                Refusal::ClientLimit => &counters.refused_client,
            };
            counter.fetch_add(1, Relaxed);
            None
        }
    }
}

async fn serve_plain<H>(stream: TcpStream, peer: SocketAddr, guard: ConnectionGuard<H>)
where
    H: Handler,
{
    let shared = Rc::clone(&guard.shared);
    shared.count_end(Connection::new(stream, peer, guard).await);
}

async fn serve_tls<H>(stream: TcpStream, peer: SocketAddr, guard: ConnectionGuard<H>, acceptor: TlsAcceptor)
where
    H: Handler,
{
    let shared = Rc::clone(&guard.shared);
    match Box::pin(perform_handshake(stream, &guard, acceptor)).await {
        Ok(stream) => {
            guard.entry.begin_phase(Phase::FirstMessage);
            shared.count_end(Connection::new(stream, peer, guard).await);
        }
        Err(end) => shared.count_end(end),
    }
}

/// Performs the TLS handshake. A command ends it early.
///
/// # Errors
/// Returns the [`EndReason`] of the command, or [`EndReason::Orderly`] if the handshake fails.
async fn perform_handshake<H>(
    stream: TcpStream,
    guard: &ConnectionGuard<H>,
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
    let counters = &guard.shared.counters;
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

/// Whether an accept error concerns only the new connection, so that the next one can be accepted
/// immediately.
pub(crate) fn is_only_connection_error(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

/// Whether the process or the system has no free file descriptor.
pub(crate) fn is_out_of_descriptors(error: &io::Error) -> bool {
    matches!(error.raw_os_error(), Some(libc::EMFILE | libc::ENFILE))
}
