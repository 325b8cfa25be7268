//! Answering over TCP and TLS: messages with a length before them (RFC 1035 section 4.2.2; RFC 7858 section 3.3), several to
//! a connection and pipelined (RFC 7766 sections 6.2.1 and 6.2.1.1).
//!
//! One thread serves all connections of a listener. Each connection is bounded in time, in every state that its peer can
//! leave it in, and holds buffers only while a message is under way; their number is bounded, in all and for each client,
//! and so are the octets that they hold together. When all places are taken, the connection that has waited longest makes
//! room for a new one (RFC 7766 section 6.2.3), those first that have asked nothing yet.
//!
//! The progress of a peer that takes answers is the number of octets that it has acknowledged. Streams have two limits of their own:
//! the time in which the peer acknowledges 16 KiB, and the time in all.
//!
//! A connection that waits takes 1.2 KB of memory over TCP and 9 KB over TLS, the system's socket aside; a TLS handshake takes 7 KB
//! and the octets that the client has sent in it, 64 KiB at most; a connection whose peer does not read takes 32 KiB, one answer, and over TLS
//! up to 64 KiB of records. All but connections that wait count in the limit for all. The example `idle_connections` measures it.

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
use crate::tls::IdentitySlot;
use counters::Counters;
use server_state::ServerState;

mod accept;
mod connection;
mod counters;
mod counting_socket;
mod options;
mod server_state;
mod table;

pub use counters::{TcpCounters, TcpStatistics};
pub use options::{ExemptClients, TcpOptions};

/// The names of the servers' threads.
const TCP_THREAD: &str = "tcp";
const TLS_THREAD: &str = "tls";
/// Octets that may wait in the system and not be on their way yet, for each connection: a peer that does not read does not
/// fill the system's memory in place of ours.
const UNSENT_MAX: u32 = 1 << 15;
/// Room in the system for octets that are not read yet, for each connection; queries are short.
const RECEIVE_BUFFER: usize = 1 << 15;
/// A running TCP server. Dropping it stops it.
#[derive(Debug)]
pub struct TcpServer {
    stop: watch::Sender<bool>,
    name: &'static str,
    thread: Option<JoinHandle<()>>,
    statistics: TcpStatistics,
}

impl TcpServer {
    /// What the server has done.
    #[must_use]
    pub fn statistics(&self) -> TcpStatistics {
        self.statistics.clone()
    }

    /// Has the server stop, without waiting for it.
    pub fn begin_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Stops the server and waits for it: nothing more is accepted or read; answers that are being sent are
    /// sent, which takes at most the write timeout for each share, and the finish timeout for all. Streams end where they are.
    ///
    /// # Errors
    /// [`NetError::Panicked`] when the server had ended by a panic.
    pub fn stop(mut self) -> Result<(), NetError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), NetError> {
        self.begin_stop();
        let joined = self.thread.take().map_or(Ok(()), JoinHandle::join);
        joined.map_err(|_| NetError::Panicked { name: self.name.to_owned() })
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        // Who wants to know of a panic calls `stop`.
        let _ = self.end();
    }
}

/// Serves the connections of `listener`, which comes from [`bind`](crate::bind()), on a thread of its own.
///
/// `make_handler` makes the handler in that thread: a [`Handler`], or a closure that is given a message without its length,
/// its sender and an empty buffer, and returns whether the buffer holds an answer to send. The length before the answer
/// is added here; an answer longer than 65,535 octets closes the connection. What one connection has sent is a batch;
/// answers that are put off come behind the others of it (RFC 7766 section 6.2.1.1).
///
/// # Errors
/// When the thread or its runtime cannot be started.
pub fn serve<M, H>(
    listener: TcpListener,
    options: &TcpOptions,
    make_handler: M,
) -> Result<TcpServer, NetError>
where
    M: FnOnce() -> H + Send + 'static,
    H: Handler + 'static,
{
    start(listener, None, options, make_handler)
}

/// As [`serve`], over TLS (RFC 7858): each connection takes the identity that is in `identity` when it comes.
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
    start(listener, Some(identity.clone()), options, make_handler)
}

fn start<M, H>(
    listener: TcpListener,
    identity: Option<IdentitySlot>,
    options: &TcpOptions,
    make_handler: M,
) -> Result<TcpServer, NetError>
where
    M: FnOnce() -> H + Send + 'static,
    H: Handler + 'static,
{
    let name = if identity.is_some() { TLS_THREAD } else { TCP_THREAD };
    let started = |source| NetError::Start { name: name.to_owned(), source };
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    let address = listener.local_addr().map_err(|source| NetError::open(unknown, Transport::Tcp, source))?;
    let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(started)?;
    let listener =
        register(&runtime, listener).map_err(|source| NetError::open(address, Transport::Tcp, source))?;
    let (stop, stopping) = watch::channel(false);
    let counters: Arc<Counters> = Arc::default();
    let statistics = TcpStatistics { counters: Arc::clone(&counters) };
    let options = options.clone();
    let heartbeat = options.heartbeats.register(name);
    let body = move || {
        let shared = Rc::new(ServerState::new(options, counters, make_handler()));
        let accepting = accept::accept_all(listener, identity, shared, &heartbeat, stopping);
        LocalSet::new().block_on(&runtime, accepting);
    };
    let thread = thread::Builder::new().name(name.to_owned()).spawn(body).map_err(started)?;
    Ok(TcpServer { stop, name, thread: Some(thread), statistics })
}

/// Prepares the listener, whose connections take over what is set here.
fn register(runtime: &Runtime, listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    let socket = SockRef::from(&listener);
    // Answers are collected before they are written: the system need not wait for more.
    socket.set_tcp_nodelay(true)?;
    socket.set_recv_buffer_size(RECEIVE_BUFFER)?;
    socket.set_tcp_notsent_lowat(UNSENT_MAX)?;
    let _context = runtime.enter();
    tokio::net::TcpListener::from_std(listener)
}

#[cfg(test)]
mod stream_tests;
#[cfg(test)]
mod tests;
#[cfg(test)]
mod tls_tests;
