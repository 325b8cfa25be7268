//! TCP and TLS server: length-prefixed messages (RFC 1035 section 4.2.2; RFC 7858 section 3.3),
//! several for each connection and pipelined (RFC 7766 sections 6.2.1 and 6.2.1.1).
//!
//! One thread serves all connections of a listener. Each state of a connection has a time limit. A
//! connection holds buffers only while a message is in progress. The number of connections is
//! limited, in total and for each client. So is the total size of their buffers. If the limit of
//! connections is reached, a waiting connection is closed for a new one (RFC 7766 section 6.2.3).
//! Connections without a complete query so far are closed first, then those that have waited
//! longest.
//!
//! The progress of a peer that reads responses is the number of octets that it has acknowledged.
//! Streams have two separate limits: the time in which the peer acknowledges 16 KiB, and the total
//! time.
//!
//! A waiting connection takes 1.2 KB of memory over TCP and 9 KB over TLS, not counting the
//! system's socket. A TLS handshake takes 7 KB and the octets that the client has sent in it, at
//! most 64 KiB. A connection to a peer that does not read takes 32 KiB plus one response, and over
//! TLS additionally up to 64 KiB of records. Waiting connections do not count towards the limit of
//! memory ([`TcpOptions::memory_max`]). The example `idle_connections` measures these values.

use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::thread::{self, JoinHandle};

use socket2::SockRef;
use tokio::runtime::{Builder, Runtime};
use tokio::sync::watch;
use tokio::task::LocalSet;

use crate::error::{NetError, Transport};
use crate::handler::Handler;
use crate::sys;
use crate::tls::IdentitySlot;
use counters::Counters;
use handshake::EstablishedTls;
use server_state::ServerState;
use service::{Answering, Handshaking, Service};

pub(crate) mod accept;
mod connection;
mod counters;
pub(crate) mod counting_socket;
pub(crate) mod handshake;
mod options;
mod server_state;
mod service;
pub(crate) mod table;
mod transport;

pub use counters::{TcpCounters, TcpStatistics};
pub use options::{ExemptClients, TcpOptions};

/// Name of the thread of a TCP server.
const TCP_THREAD: &str = "tcp";
/// Name of the thread of a TLS server.
const TLS_THREAD: &str = "tls";
/// Name of the thread of a server that only performs handshakes.
const HANDSHAKE_THREAD: &str = "handshakes";
/// Maximum octets of a connection that wait unsent in the system. Without this limit, a peer that
/// does not read could fill the system's memory instead of the server's.
const UNSENT_OCTETS_MAX: u32 = 1 << 15;
/// Receive buffer of a connection in the system, in octets; queries are short.
const RECEIVE_BUFFER_SIZE: usize = 1 << 15;

/// A running TCP or TLS server. Dropping it stops the server.
#[derive(Debug)]
pub struct TcpServer {
    stop: watch::Sender<bool>,
    name: &'static str,
    thread: Option<JoinHandle<()>>,
    statistics: TcpStatistics,
}

impl TcpServer {
    /// The counters of the server.
    #[must_use]
    pub fn statistics(&self) -> TcpStatistics {
        self.statistics.clone()
    }

    /// Requests the server to stop, without waiting.
    pub fn begin_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Stops the server and waits for it. The server accepts and reads nothing more. It still sends
    /// the current answers, which takes at most the write timeout for each 16 KiB, and the finish
    /// timeout in total. Streams end immediately.
    ///
    /// # Errors
    /// [`NetError::Panicked`] if the thread of the server has panicked.
    pub fn stop(mut self) -> Result<(), NetError> {
        self.stop_and_join()
    }

    fn stop_and_join(&mut self) -> Result<(), NetError> {
        self.begin_stop();
        let joined = self.thread.take().map_or(Ok(()), JoinHandle::join);
        joined.map_err(|_| NetError::Panicked { name: self.name.to_owned() })
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        // Only `stop` reports a panic.
        let _ = self.stop_and_join();
    }
}

/// Serves the connections of `listener`, which comes from [`bind`](crate::bind()), in a new thread.
///
/// The thread calls `make_handler` once. This returns the handler: a [`Handler`], or a closure. The
/// closure gets a message without its length prefix, its sender and an empty buffer, and returns
/// whether the buffer contains a response to send. The server adds the length prefix. A response
/// longer than 65,535 octets closes the connection. The messages that one connection has sent so
/// far form a batch. Deferred answers follow the other answers of the batch (RFC 7766 section
/// 6.2.1.1).
///
/// # Errors
/// [`NetError::Start`] if the thread or its runtime cannot be started, or an error of the socket if
/// the options of `listener` cannot be set.
pub fn serve<M, H>(
    listener: TcpListener,
    options: &TcpOptions,
    make_handler: M,
) -> Result<TcpServer, NetError>
where
    M: FnOnce() -> H + Send + 'static,
    H: Handler + 'static,
{
    start(TCP_THREAD, listener, options, move || Answering::new(make_handler(), None))
}

/// As [`serve`], over TLS (RFC 7858). Each new connection uses the current identity in `identity`.
///
/// # Errors
/// As [`serve`].
pub fn serve_tls<M, H>(
    listener: TcpListener,
    identity: &IdentitySlot,
    options: &TcpOptions,
    make_handler: M,
) -> Result<TcpServer, NetError>
where
    M: FnOnce() -> H + Send + 'static,
    H: Handler + 'static,
{
    let identity = identity.clone();
    start(TLS_THREAD, listener, options, move || Answering::new(make_handler(), Some(identity)))
}

/// Performs the TLS handshakes of the connections of `listener` in a new thread, and passes each
/// connection to `deliver`, which returns whether it has taken the connection. Others are closed
/// and count as refused. The thread gives way to the threads that answer messages. Of the limits, those of handshakes and of connections apply, to the
/// handshakes in progress.
///
/// # Errors
/// As [`serve`].
pub(crate) fn serve_handshakes<D>(
    listener: TcpListener,
    identity: IdentitySlot,
    options: &TcpOptions,
    deliver: D,
) -> Result<TcpServer, NetError>
where
    D: Fn(EstablishedTls) -> bool + Send + 'static,
{
    start(HANDSHAKE_THREAD, listener, options, move || {
        sys::lower_thread_priority();
        Handshaking { identity, deliver }
    })
}

fn start<M, S>(
    name: &'static str,
    listener: TcpListener,
    options: &TcpOptions,
    make_service: M,
) -> Result<TcpServer, NetError>
where
    M: FnOnce() -> S + Send + 'static,
    S: Service + 'static,
{
    let start_error = |source| NetError::Start { name: name.to_owned(), source };
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    let address = listener.local_addr().map_err(|source| NetError::open(unknown, Transport::Tcp, source))?;
    let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(start_error)?;
    let listener =
        register(&runtime, listener).map_err(|source| NetError::open(address, Transport::Tcp, source))?;
    let (stop, stopping) = watch::channel(false);
    let counters: Arc<Counters> = Arc::default();
    let statistics = TcpStatistics { counters: Arc::clone(&counters) };
    let options = options.clone();
    let heartbeat = options.heartbeats.register(name);
    let body = move || {
        let state = Rc::new(ServerState::new(options, counters));
        let accepting = accept::accept_all(listener, state, Rc::new(make_service()), &heartbeat, stopping);
        LocalSet::new().block_on(&runtime, accepting);
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body).map_err(start_error)?;
    Ok(TcpServer { stop, name, thread: Some(thread), statistics })
}

/// Sets the options of a listener. Its connections inherit them, except that they block.
pub(crate) fn prepare_listener(listener: &TcpListener) -> io::Result<()> {
    listener.set_nonblocking(true)?;
    let socket = SockRef::from(listener);
    // The server collects answers before it writes them, so the system need not delay them.
    socket.set_tcp_nodelay(true)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER_SIZE)?;
    socket.set_tcp_notsent_lowat(UNSENT_OCTETS_MAX)
}

/// Registers the listener with the runtime.
fn register(runtime: &Runtime, listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    prepare_listener(&listener)?;
    let _context = runtime.enter();
    tokio::net::TcpListener::from_std(listener)
}

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
