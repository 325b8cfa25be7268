//! Answering over TCP: messages with a length before them (RFC 1035 section 4.2.2), several to a connection
//! and pipelined (RFC 7766 sections 6.2.1 and 6.2.1.1).
//!
//! One thread serves all connections. Each connection is bounded in time (idle, and while its peer reads slowly)
//! and in memory (one message and one block of answers), and their number is bounded: when all are taken, the
//! one that has waited longest for a message makes room for a new one (RFC 7766 section 6.2.3).

use std::cell::{Cell, RefCell};
use std::collections::HashMap;
use std::io;
use std::net::{SocketAddr, TcpListener};
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use tokio::runtime::{Builder, Runtime};
use tokio::sync::{Notify, watch};
use tokio::task::{JoinSet, LocalSet};
use tokio::time::Instant;

use crate::error::{NetError, Transport};
use crate::handler::Handler;

mod connection;

/// The name of the server's thread.
const THREAD: &str = "tcp";
/// A pause after the system refused a connection for want of resources, so that it does not take a whole CPU.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How [`serve`] bounds its connections.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct TcpOptions {
    /// How long a connection may take to bring its next whole message. Default 10 s.
    pub idle_timeout: Duration,
    /// How long a peer may take to accept a block of answers. Default 5 s.
    pub write_timeout: Duration,
    /// How many connections are open at most. Default 512.
    pub connections_max: usize,
}

impl Default for TcpOptions {
    fn default() -> Self {
        Self {
            idle_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(5),
            connections_max: 512,
        }
    }
}

impl TcpOptions {
    /// The defaults.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the idle timeout.
    #[must_use]
    pub fn idle_timeout(mut self, limit: Duration) -> Self {
        self.idle_timeout = limit;
        self
    }

    /// Sets the write timeout.
    #[must_use]
    pub fn write_timeout(mut self, limit: Duration) -> Self {
        self.write_timeout = limit;
        self
    }

    /// Sets the number of connections; 0 is taken as 1.
    #[must_use]
    pub fn connections_max(mut self, connections: usize) -> Self {
        self.connections_max = connections.max(1);
        self
    }
}

#[derive(Debug, Default)]
struct Counters {
    accepted: AtomicU64,
    refused: AtomicU64,
    evicted: AtomicU64,
    timed_out: AtomicU64,
    broken: AtomicU64,
    messages_in: AtomicU64,
    messages_out: AtomicU64,
}

/// What a TCP server has done since it started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct TcpCounters {
    /// Connections accepted.
    pub accepted: u64,
    /// Connections closed at once because all others were busy with answers.
    pub refused: u64,
    /// Waiting connections closed to make room.
    pub evicted: u64,
    /// Connections closed because their peer was idle, or wrote or read too slowly.
    pub timed_out: u64,
    /// Connections closed by an error: reset, ended within a message, a length of 0, an answer too long.
    pub broken: u64,
    /// Whole messages received.
    pub messages_in: u64,
    /// Answers sent.
    pub messages_out: u64,
}

/// Reads a server's counters, from any thread, also after the server has stopped.
#[derive(Debug, Clone)]
pub struct TcpStatistics {
    counters: Arc<Counters>,
}

impl TcpStatistics {
    /// The counters as they are now.
    #[must_use]
    pub fn total(&self) -> TcpCounters {
        let counters = &*self.counters;
        TcpCounters {
            accepted: counters.accepted.load(Relaxed),
            refused: counters.refused.load(Relaxed),
            evicted: counters.evicted.load(Relaxed),
            timed_out: counters.timed_out.load(Relaxed),
            broken: counters.broken.load(Relaxed),
            messages_in: counters.messages_in.load(Relaxed),
            messages_out: counters.messages_out.load(Relaxed),
        }
    }
}

/// A running TCP server. Dropping it stops it.
#[derive(Debug)]
pub struct TcpServer {
    stop: watch::Sender<bool>,
    thread: Option<JoinHandle<()>>,
    statistics: TcpStatistics,
}

impl TcpServer {
    /// What the server has done.
    #[must_use]
    pub fn statistics(&self) -> TcpStatistics {
        self.statistics.clone()
    }

    /// Stops the server and waits for it: nothing more is accepted or read; answers that are being sent are
    /// sent, which takes at most the write timeout.
    ///
    /// # Errors
    /// [`NetError::Panicked`] when the server had ended by a panic.
    pub fn stop(mut self) -> Result<(), NetError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), NetError> {
        self.stop.send_replace(true);
        let joined = self.thread.take().map_or(Ok(()), JoinHandle::join);
        joined.map_err(|_| NetError::Panicked { name: THREAD.to_owned() })
    }
}

impl Drop for TcpServer {
    fn drop(&mut self) {
        // Who wants to know of a panic calls `stop`.
        let _ = self.end();
    }
}

/// Serves the connections of `listener`, which comes from [`bind`](crate::bind), on a thread of its own.
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
    let started = |source| NetError::Start { name: THREAD.to_owned(), source };
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    let address = listener.local_addr().map_err(|source| NetError::open(unknown, Transport::Tcp, source))?;
    let runtime = Builder::new_current_thread().enable_io().enable_time().build().map_err(started)?;
    let listener =
        register(&runtime, listener).map_err(|source| NetError::open(address, Transport::Tcp, source))?;
    let (stop, stopping) = watch::channel(false);
    let counters: Arc<Counters> = Arc::default();
    let statistics = TcpStatistics { counters: Arc::clone(&counters) };
    let options = options.clone();
    let body = move || {
        let shared = Rc::new(Shared {
            options,
            counters,
            stopping,
            table: RefCell::default(),
            handler: RefCell::new((make_handler(), Vec::with_capacity(1 << 16))),
        });
        LocalSet::new().block_on(&runtime, accept_all(listener, shared));
    };
    let thread = thread::Builder::new().name(THREAD.to_owned()).spawn(body).map_err(started)?;
    Ok(TcpServer { stop, thread: Some(thread), statistics })
}

fn register(runtime: &Runtime, listener: TcpListener) -> io::Result<tokio::net::TcpListener> {
    listener.set_nonblocking(true)?;
    let _context = runtime.enter();
    tokio::net::TcpListener::from_std(listener)
}

/// What the tasks of one server share, all on one thread.
struct Shared<H> {
    options: TcpOptions,
    counters: Arc<Counters>,
    stopping: watch::Receiver<bool>,
    table: RefCell<Table>,
    /// The handler and the buffer that it answers into. Never borrowed while a task waits.
    handler: RefCell<(H, Vec<u8>)>,
}

/// The open connections.
#[derive(Default)]
struct Table {
    next: u64,
    places: HashMap<u64, Rc<Place>>,
}

/// What the table knows of one connection.
struct Place {
    /// Since when it waits for its next message; nothing while it is sending answers.
    waiting_since: Cell<Option<Instant>>,
    /// Tells it to close.
    close: Notify,
}

impl Table {
    /// Takes a place for a new connection, at the cost of the one that has waited longest when all are taken;
    /// nothing when none is waiting. The second value is whether another had to go.
    fn enter(&mut self, places_max: usize) -> Option<(u64, Rc<Place>, bool)> {
        let full = self.places.len() >= places_max;
        if full {
            let waiting =
                self.places.iter().filter_map(|(&id, place)| Some((place.waiting_since.get()?, id)));
            let (_, id) = waiting.min()?;
            if let Some(place) = self.places.remove(&id) {
                place.close.notify_one();
            }
        }
        let id = self.next;
        self.next += 1;
        let place = Rc::new(Place { waiting_since: Cell::new(Some(Instant::now())), close: Notify::new() });
        self.places.insert(id, Rc::clone(&place));
        Some((id, place, full))
    }
}

async fn accept_all<H>(listener: tokio::net::TcpListener, shared: Rc<Shared<H>>)
where
    H: Handler + 'static,
{
    let mut stopping = shared.stopping.clone();
    let mut tasks = JoinSet::new();
    loop {
        let accepted = tokio::select! {
            biased;
            // A closed channel means that the server's owner is gone: stop as well.
            _ = stopping.wait_for(|&stop| stop) => break,
            Some(_) = tasks.join_next() => continue,
            accepted = listener.accept() => accepted,
        };
        match accepted {
            Ok((stream, peer)) => {
                shared.counters.accepted.fetch_add(1, Relaxed);
                let entered = shared.table.borrow_mut().enter(shared.options.connections_max);
                let Some((id, place, evicted)) = entered else {
                    shared.counters.refused.fetch_add(1, Relaxed);
                    continue;
                };
                shared.counters.evicted.fetch_add(u64::from(evicted), Relaxed);
                tasks.spawn_local(connection::serve(stream, peer, id, place, Rc::clone(&shared)));
            }
            Err(error) if passes(&error) => {}
            Err(_) => tokio::time::sleep(ACCEPT_PAUSE).await,
        }
    }
    drop(listener);
    while tasks.join_next().await.is_some() {}
}

/// Whether a failure to accept concerns one connection only.
fn passes(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::ConnectionAborted | io::ErrorKind::ConnectionReset | io::ErrorKind::Interrupted
    )
}

#[cfg(test)]
mod tests;
