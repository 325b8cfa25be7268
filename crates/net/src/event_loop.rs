//! Driver of a [`Machine`]: plain threads, each with its own machine and one loop, that serve
//! clients over UDP, TCP and TLS and query servers over UDP and TCP.
//!
//! [`udp`](crate::udp) and [`tcp`](crate::tcp) answer a message at once. Here, a query of a client
//! has a token, and the machine replies by token at any later time, usually after responses of
//! servers. The driver decides nothing: it sends what the machine says, to whom the machine says.
//!
//! A turn of a loop handles a bounded number of events: at most 64 datagrams of clients, 64 queries
//! from connections, and 32 sockets and connections. Queries of clients are first, and replies that the
//! machine knows at once are sent. Then the loop handles the responses of servers, calls
//! [`end_turn`](Machine::end_turn), executes all outputs, and sends the other replies together.
//! Nothing in a turn waits for a peer.
//!
//! - An exchange over UDP has a socket with a random port, connected to the server (RFC 5452 section
//!   9.2), that serves at most eight exchanges, one after another within 100 ms. Datagrams from other
//!   addresses are discarded.
//! - An exchange over TCP uses an open connection to the server if there is one (RFC 7766 section
//!   6.2.1). Responses are matched by message ID. A connection with a message that answers no query
//!   is closed. A message ID is used once at a time on a connection; if necessary, another
//!   connection is opened.
//! - An exchange lasts until [`Output::Close`](crate::machine::Output::Close) or
//!   [`Event::Failed`](crate::machine::Event::Failed), also after a response. So the machine must
//!   close every exchange that has not failed, and may wait for another response after a wrong one
//!   (over UDP). The driver has no time limit for exchanges. Outputs are executed at the end of a
//!   turn, so events of an exchange may still follow in the turn in which the machine ends it.
//! - A connection that ends fails its exchanges with
//!   [`SendFailure::Refused`](crate::machine::SendFailure::Refused), even if the server closes an
//!   idle connection while a query is sent.
//!
//! A TLS handshake costs a hundred times the work of a cached answer. So each TLS listener has a
//! thread that performs its handshakes and passes the connections to the workers in turn. A worker
//! takes at most 16 of them in a turn, and encrypts and decrypts their messages.
//!
//! Numbers of queries, exchanges, sockets and connections, and the buffers of connections, are
//! bounded ([`EventLoopOptions`]). A reply to a client whose connection has ended is discarded.

use std::cell::Cell;
use std::io;
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::sync::{Arc, mpsc};
use std::thread::{self, JoinHandle};

use crate::bind::Listeners;
use crate::error::{NetError, Transport};
use crate::machine::Machine;
use crate::sys;
use crate::tcp::{TcpOptions, TcpServer, prepare_listener, serve_handshakes};
use crate::tls::IdentitySlot;
use counters::PublishedCounters;
use mailbox::Mailbox;
use worker::{Worker, WorkerSetup};

mod buffer;
mod client_connection;
mod client_connections;
mod client_listeners;
mod client_sockets;
mod client_stream;
mod context;
mod counters;
mod exchanges;
mod mailbox;
mod options;
mod queries;
mod slots;
mod source;
mod upstream_connection;
mod upstream_connections;
mod upstream_sockets;
mod worker;

pub use counters::{EventLoopCounters, EventLoopStatistics, UpstreamCounters};
pub use options::{EventLoopOptions, UpstreamOptions};

/// A running server. Dropping it stops the server.
#[derive(Debug)]
pub struct EventLoopServer {
    mailboxes: Arc<[Mailbox]>,
    workers: Vec<RunningWorker>,
    /// The threads that perform TLS handshakes.
    handshakes: Vec<TcpServer>,
    statistics: EventLoopStatistics,
}

#[derive(Debug)]
struct RunningWorker {
    name: String,
    thread: Option<JoinHandle<()>>,
}

impl EventLoopServer {
    /// The counters of the workers.
    #[must_use]
    pub fn statistics(&self) -> EventLoopStatistics {
        self.statistics.clone()
    }

    /// Passes [`Event::Wake`](crate::machine::Event::Wake) to the machine of each worker.
    pub fn wake(&self) {
        self.mailboxes.iter().for_each(Mailbox::wake);
    }

    /// Requests the workers to stop, without waiting.
    pub fn begin_stop(&self) {
        self.handshakes.iter().for_each(TcpServer::begin_stop);
        self.mailboxes.iter().for_each(Mailbox::stop);
    }

    /// Stops the workers and waits for them. They accept and read nothing more. The machines go on
    /// until all queries that they have got are answered, at most for the finish timeout
    /// ([`TcpOptions::finish_timeout`](crate::tcp::TcpOptions::finish_timeout)).
    ///
    /// # Errors
    /// [`NetError::Panicked`] if a worker ended by a panic of its machine.
    pub fn stop(mut self) -> Result<(), NetError> {
        self.stop_and_join()
    }

    fn stop_and_join(&mut self) -> Result<(), NetError> {
        self.begin_stop();
        let mut result = Ok(());
        for worker in &mut self.workers {
            let joined = worker.thread.take().map_or(Ok(()), JoinHandle::join);
            if joined.is_err() {
                result = Err(NetError::Panicked { name: worker.name.clone() });
            }
        }
        self.handshakes.drain(..).map(TcpServer::stop).fold(result, Result::and)
    }
}

/// The sockets of the workers.
#[derive(Debug)]
pub struct EventLoopSockets {
    /// The sockets of addresses for UDP and TCP, which come from [`bind`](crate::bind()).
    pub plain: Vec<Listeners>,
    /// Listeners for TLS, which come from [`bind_tcp`](crate::bind_tcp), and the identity of each
    /// new connection.
    pub tls: Option<(Vec<TcpListener>, IdentitySlot)>,
    /// Number of workers. Each address in `plain` has as many UDP sockets.
    pub workers: usize,
}

impl EventLoopSockets {
    /// Sockets without TLS, with one worker for each UDP socket of an address.
    #[must_use]
    pub fn without_tls(plain: Vec<Listeners>) -> Self {
        let workers = plain.iter().map(|listeners| listeners.udp.len()).max().unwrap_or(0);
        Self { plain, tls: None, workers }
    }
}

impl Drop for EventLoopServer {
    fn drop(&mut self) {
        // Only `stop` reports the panic of a worker.
        let _ = self.stop_and_join();
    }
}

/// Starts the workers. Worker `i` has UDP socket `i` of each address. All workers accept connections
/// from all TCP listeners. The connections of the TLS listeners are passed to the workers in turn.
///
/// Each worker calls `make_machine` with its number, from 0. This returns its machine. The machine
/// stays in the thread of the worker.
///
/// # Errors
/// Fails if there is no worker, if an option of a socket cannot be set, or if a thread cannot be
/// started or pinned. Workers that have already started are stopped.
pub fn serve<F, M>(
    sockets: EventLoopSockets,
    options: &EventLoopOptions,
    make_machine: F,
) -> Result<EventLoopServer, NetError>
where
    F: Fn(usize) -> M + Send + Sync + 'static,
    M: Machine,
{
    let EventLoopSockets { plain, tls, workers } = sockets;
    let sockets = divide(plain, workers)?;
    let start_error = |source| NetError::Start { name: worker_name(0), source };
    let mailboxes = sockets.iter().map(|_| Mailbox::new()).collect::<io::Result<_>>().map_err(start_error)?;
    let workers = sockets.iter().map(|_| PublishedCounters::default()).collect();
    let statistics = EventLoopStatistics { workers, handshakes: Vec::new() };
    let mut server = EventLoopServer { mailboxes, workers: Vec::new(), handshakes: Vec::new(), statistics };
    let make_machine = Arc::new(make_machine);
    for (index, sockets) in sockets.into_iter().enumerate() {
        let worker = start_worker(&server, index, sockets, options, Arc::clone(&make_machine))?;
        server.workers.push(worker);
    }
    if let Some((listeners, identity)) = tls {
        for listener in listeners {
            start_handshakes(&mut server, listener, identity.clone(), options)?;
        }
    }
    Ok(server)
}

/// Starts a thread that performs the handshakes of a TLS listener.
fn start_handshakes(
    server: &mut EventLoopServer,
    listener: TcpListener,
    identity: IdentitySlot,
    options: &EventLoopOptions,
) -> Result<(), NetError> {
    let limits = TcpOptions {
        connections_max: options.handshakes_max,
        heartbeats: options.heartbeats.clone(),
        ..options.tcp.clone()
    };
    let (mailboxes, next) = (Arc::clone(&server.mailboxes), Cell::new(0_usize));
    let handshakes = serve_handshakes(listener, identity, &limits, move |established| {
        let first = next.get() % mailboxes.len().max(1);
        next.set(first + 1);
        // If the mailbox of a worker is full, the next worker gets the connection.
        let (before, after) = mailboxes.split_at(first);
        let mut rejected = Some(established);
        for mailbox in after.iter().chain(before) {
            rejected = rejected.and_then(|established| mailbox.deliver(established));
        }
        rejected.is_none()
    })?;
    server.statistics.handshakes.push(handshakes.statistics());
    server.handshakes.push(handshakes);
    Ok(())
}

/// The sockets of one worker.
type WorkerSockets = (Vec<UdpSocket>, Vec<TcpListener>);

/// Prepares the sockets, and divides them among the workers.
fn divide(listeners: Vec<Listeners>, workers: usize) -> Result<Vec<WorkerSockets>, NetError> {
    if workers == 0 {
        return Err(NetError::NoWorkers);
    }
    let mut divided: Vec<WorkerSockets> = (0..workers).map(|_| WorkerSockets::default()).collect();
    for Listeners { udp, tcp, local_addr } in listeners {
        let udp_error = |source| NetError::open(local_addr, Transport::Udp, source);
        for (socket, (sockets, _)) in udp.into_iter().zip(&mut divided) {
            socket.set_nonblocking(true).map_err(udp_error)?;
            sockets.push(socket);
        }
        share_listener(tcp, local_addr, &mut divided)?;
    }
    Ok(divided)
}

/// Gives each worker a duplicate of a listener.
fn share_listener(
    listener: TcpListener,
    address: SocketAddr,
    workers: &mut [WorkerSockets],
) -> Result<(), NetError> {
    let error = |source| NetError::open(address, Transport::Tcp, source);
    prepare_listener(&listener).map_err(error)?;
    let Some(((_, first), others)) = workers.split_first_mut() else { return Ok(()) };
    for (_, listeners) in others {
        listeners.push(listener.try_clone().map_err(error)?);
    }
    first.push(listener);
    Ok(())
}

fn worker_name(index: usize) -> String {
    format!("loop-{index}")
}

fn start_worker<F, M>(
    server: &EventLoopServer,
    index: usize,
    sockets: WorkerSockets,
    options: &EventLoopOptions,
    make_machine: Arc<F>,
) -> Result<RunningWorker, NetError>
where
    F: Fn(usize) -> M + Send + Sync + 'static,
    M: Machine,
{
    let name = worker_name(index);
    let start_error = |source| NetError::Start { name: name.clone(), source };
    let heartbeat = options.heartbeats.register(&name);
    let (mailboxes, statistics) = (Arc::clone(&server.mailboxes), server.statistics());
    let setup = WorkerSetup::new(index, options.clone(), mailboxes, statistics, heartbeat, sockets);
    let setup = setup.map_err(start_error)?;
    let cpu = options.cpus.get(index % options.cpus.len().max(1)).copied();
    let (started, wait_started) = mpsc::sync_channel(1);
    let body = move || {
        let pinned = cpu.map_or(Ok(()), sys::pin_current_thread);
        let is_pinned = pinned.is_ok();
        // Sending cannot fail, because the starting thread waits for this message.
        let _ = started.send(pinned);
        if is_pinned {
            Worker::new(setup, make_machine(index)).run();
        }
    };
    let thread = thread::Builder::new().name(name.clone()).spawn(body).map_err(start_error)?;
    let running = RunningWorker { name, thread: Some(thread) };
    match (wait_started.recv(), cpu) {
        (Ok(Err(source)), Some(cpu)) => Err(NetError::Pin { cpu, source }),
        _ => Ok(running),
    }
}

#[cfg(test)]
mod tests;
