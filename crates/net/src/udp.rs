//! UDP server: plain threads, each with its own socket, that receive and send datagrams in batches.
//!
//! A worker receives all waiting datagrams in one system call. The handler answers each datagram
//! into a buffer, which is reused for the next batch. The worker sends the responses in one call.
//! With higher load, the batches grow and each datagram needs fewer system calls; [`UdpCounters`]
//! shows this.
//!
//! Deferred answers are generated together, after the worker has sent the other answers of the
//! batch.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{NetError, Transport};
use crate::handler::{Answer, Handler, trim_response_buffer};
use crate::heartbeat::{Heartbeat, Heartbeats};
use crate::sys::{self, BATCH, ReceiveBatch, ReplyBatch, SendOutcome, Wait};

/// Maximum length of a datagram that a worker accepts, in octets. Longer datagrams are dropped and
/// counted.
pub const QUERY_MAX: usize = 4096;
/// Capacity of a response buffer without growth, in octets.
pub const RESPONSE_CAPACITY: usize = 4096;

/// Maximum wait of a worker for a datagram or for room to send, before it checks whether to stop.
/// Stopping the server wakes the worker earlier.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// Pause after a receive error of the system. Without the pause, a permanent error would use a
/// whole CPU.
pub(crate) const ERROR_PAUSE: Duration = Duration::from_millis(1);

/// Options of the workers of [`serve`].
#[derive(Debug, Clone, Default)]
pub struct UdpOptions {
    /// The CPUs of the workers: worker `i` runs on `cpus[i % cpus.len()]`. Empty: on any CPU.
    pub cpus: Vec<usize>,
    /// Receives the heartbeats of the workers. The default discards them.
    pub heartbeats: Heartbeats,
}

/// The counters of one worker since its start. The alignment keeps them in separate cache lines.
#[derive(Debug, Default)]
#[repr(align(128))]
struct WorkerCounters {
    datagrams_in: AtomicU64,
    datagrams_out: AtomicU64,
    system_calls: AtomicU64,
    oversized: AtomicU64,
    receive_errors: AtomicU64,
    send_errors: AtomicU64,
}

impl WorkerCounters {
    fn count_receive(&self, datagrams: usize) {
        self.datagrams_in.fetch_add(datagrams as u64, Relaxed);
        self.system_calls.fetch_add(1, Relaxed);
    }

    fn count_send(&self, outcome: SendOutcome) {
        self.datagrams_out.fetch_add(outcome.sent, Relaxed);
        self.system_calls.fetch_add(outcome.calls, Relaxed);
        if outcome.failed > 0 {
            self.send_errors.fetch_add(outcome.failed, Relaxed);
        }
    }

    fn read(&self) -> UdpCounters {
        UdpCounters {
            datagrams_in: self.datagrams_in.load(Relaxed),
            datagrams_out: self.datagrams_out.load(Relaxed),
            system_calls: self.system_calls.load(Relaxed),
            oversized: self.oversized.load(Relaxed),
            receive_errors: self.receive_errors.load(Relaxed),
            send_errors: self.send_errors.load(Relaxed),
        }
    }
}

/// The counters of one worker, or of all workers, since the start.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct UdpCounters {
    /// Number of datagrams received, including dropped ones.
    pub datagrams_in: u64,
    /// Number of datagrams sent.
    pub datagrams_out: u64,
    /// Number of system calls to receive and to send.
    pub system_calls: u64,
    /// Number of datagrams dropped because they were longer than [`QUERY_MAX`] or had no sender
    /// address.
    pub oversized: u64,
    /// Number of failed receive calls. A timeout or a signal is not a failure.
    pub receive_errors: u64,
    /// Number of responses that the system did not send.
    pub send_errors: u64,
}

impl UdpCounters {
    /// Counts the messages and calls of `outcome`.
    pub(crate) fn count_send(&mut self, outcome: SendOutcome) {
        self.datagrams_out += outcome.sent;
        self.system_calls += outcome.calls;
        self.send_errors += outcome.failed;
    }

    fn add(self, other: Self) -> Self {
        Self {
            datagrams_in: self.datagrams_in + other.datagrams_in,
            datagrams_out: self.datagrams_out + other.datagrams_out,
            system_calls: self.system_calls + other.system_calls,
            oversized: self.oversized + other.oversized,
            receive_errors: self.receive_errors + other.receive_errors,
            send_errors: self.send_errors + other.send_errors,
        }
    }
}

impl std::iter::Sum for UdpCounters {
    fn sum<I: Iterator<Item = Self>>(all: I) -> Self {
        all.fold(Self::default(), Self::add)
    }
}

/// Read access to the counters of a server's workers, from any thread, even after the server has
/// stopped.
#[derive(Debug, Clone)]
pub struct UdpStatistics {
    workers: Arc<[WorkerCounters]>,
}

impl UdpStatistics {
    /// Returns the sums over all workers.
    #[must_use]
    pub fn total(&self) -> UdpCounters {
        self.workers.iter().map(WorkerCounters::read).sum()
    }
}

/// A running UDP server. Dropping it stops the server.
#[derive(Debug)]
pub struct UdpServer {
    stop: Arc<AtomicBool>,
    workers: Vec<RunningWorker>,
    statistics: UdpStatistics,
}

#[derive(Debug)]
struct RunningWorker {
    name: String,
    /// The worker owns its socket. If the worker ends, the kernel distributes its datagrams over
    /// the other workers.
    socket: Weak<UdpSocket>,
    thread: Option<JoinHandle<()>>,
}

impl UdpServer {
    /// The counters of the workers.
    #[must_use]
    pub fn statistics(&self) -> UdpStatistics {
        self.statistics.clone()
    }

    /// Stops the workers and waits for them. The answers of current batches are still sent.
    ///
    /// # Errors
    /// [`NetError::Panicked`] if a worker ended by a panic of its handler.
    pub fn stop(mut self) -> Result<(), NetError> {
        self.stop_and_join()
    }

    fn stop_and_join(&mut self) -> Result<(), NetError> {
        self.stop.store(true, Relaxed);
        self.workers
            .iter()
            .filter_map(|worker| worker.socket.upgrade())
            .for_each(|socket| sys::wake_receiver(&*socket));
        let mut result = Ok(());
        for worker in &mut self.workers {
            let joined = worker.thread.take().map_or(Ok(()), JoinHandle::join);
            if joined.is_err() {
                result = Err(NetError::Panicked { name: worker.name.clone() });
            }
        }
        result
    }
}

impl Drop for UdpServer {
    fn drop(&mut self) {
        // Only `stop` reports the panic of a worker.
        let _ = self.stop_and_join();
    }
}

/// Starts one worker for each of `sockets`, which come from [`bind`](crate::bind()).
///
/// Each worker calls `make_handler` with its number, from 0. This returns its handler: a
/// [`Handler`], or a closure. The closure gets a datagram, its sender and an empty buffer, and
/// returns whether the buffer contains a response to send.
///
/// # Errors
/// Fails if `sockets` is empty, if an option of a socket cannot be set, or if a thread cannot be
/// started or pinned. Workers that have already started are stopped.
pub fn serve<M, H>(
    sockets: Vec<UdpSocket>,
    options: &UdpOptions,
    make_handler: M,
) -> Result<UdpServer, NetError>
where
    M: Fn(usize) -> H + Send + Sync + 'static,
    H: Handler,
{
    if sockets.is_empty() {
        return Err(NetError::NoWorkers);
    }
    let statistics = UdpStatistics { workers: sockets.iter().map(|_| WorkerCounters::default()).collect() };
    let mut server = UdpServer { stop: Arc::default(), workers: Vec::new(), statistics };
    let make_handler = Arc::new(make_handler);
    for (index, socket) in sockets.into_iter().enumerate() {
        let worker = start_worker(&server, index, socket, options, Arc::clone(&make_handler))?;
        server.workers.push(worker);
    }
    Ok(server)
}

fn start_worker<M, H>(
    server: &UdpServer,
    index: usize,
    socket: UdpSocket,
    options: &UdpOptions,
    make_handler: Arc<M>,
) -> Result<RunningWorker, NetError>
where
    M: Fn(usize) -> H + Send + Sync + 'static,
    H: Handler,
{
    let name = format!("udp-{index}");
    let heartbeat = options.heartbeats.register(&name);
    let local_address = prepare_socket(&socket, heartbeat.max_wait().min(POLL_INTERVAL))?;
    let socket = Arc::new(socket);
    let weak = Arc::downgrade(&socket);
    let stop = Arc::clone(&server.stop);
    let workers = Arc::clone(&server.statistics.workers);
    let cpu = options.cpus.get(index % options.cpus.len().max(1)).copied();
    let (started, wait_started) = std::sync::mpsc::sync_channel(1);
    let body = move || {
        let pinned = cpu.map_or(Ok(()), sys::pin_current_thread);
        let is_pinned = pinned.is_ok();
        // Sending cannot fail, because the starting thread waits for this message.
        let _ = started.send(pinned);
        if is_pinned {
            let handler = make_handler(index);
            Worker::new(&socket, &workers[index], local_address).run(&stop, &heartbeat, handler);
        }
    };
    let thread = thread::Builder::new()
        .name(name.clone())
        .spawn(body)
        .map_err(|source| NetError::Start { name: name.clone(), source })?;
    let running = RunningWorker { name, socket: weak, thread: Some(thread) };
    match (wait_started.recv(), cpu) {
        (Ok(Err(source)), Some(cpu)) => Err(NetError::Pin { cpu, source }),
        _ => Ok(running),
    }
}

/// Limits the wait of socket calls to `interval`. Returns whether the local address of each
/// datagram is needed, because the socket is bound to all addresses.
fn prepare_socket(socket: &UdpSocket, interval: Duration) -> Result<bool, NetError> {
    let unknown = SocketAddr::from(([0, 0, 0, 0], 0));
    let address = socket.local_addr().map_err(|source| NetError::open(unknown, Transport::Udp, source))?;
    let set = socket
        .set_nonblocking(false)
        .and_then(|()| socket.set_read_timeout(Some(interval)))
        .and_then(|()| socket.set_write_timeout(Some(interval)));
    set.map_err(|source| NetError::open(address, Transport::Udp, source))?;
    Ok(address.ip().is_unspecified())
}

/// The socket and the buffers of one thread.
struct Worker<'a> {
    socket: &'a UdpSocket,
    counters: &'a WorkerCounters,
    received: ReceiveBatch,
    /// The response to each datagram of the batch.
    responses: Vec<Vec<u8>>,
    /// Indexes of the datagrams with a response to send.
    answered: Vec<usize>,
    /// Indexes of the datagrams with a deferred answer.
    deferred: Vec<usize>,
    replies: ReplyBatch,
}

impl<'a> Worker<'a> {
    fn new(socket: &'a UdpSocket, counters: &'a WorkerCounters, local_address: bool) -> Self {
        Self {
            socket,
            counters,
            received: ReceiveBatch::with_peers(BATCH, QUERY_MAX, local_address),
            responses: (0..BATCH).map(|_| Vec::with_capacity(RESPONSE_CAPACITY)).collect(),
            answered: Vec::with_capacity(BATCH),
            deferred: Vec::new(),
            replies: ReplyBatch::new(BATCH),
        }
    }

    fn run(mut self, stop: &AtomicBool, heartbeat: &Heartbeat, mut handler: impl Handler) {
        loop {
            heartbeat.report();
            let received = self.received.receive(self.socket.as_fd(), Wait::ForOne);
            if stop.load(Relaxed) {
                return;
            }
            match received {
                Ok(datagrams) => {
                    self.counters.count_receive(datagrams);
                    self.answer(datagrams, &mut handler);
                }
                Err(error) => self.handle_error(&error),
            }
        }
    }

    fn answer(&mut self, datagrams: usize, handler: &mut impl Handler) {
        self.answered.clear();
        handler.begin_batch();
        for (index, response) in self.responses.iter_mut().enumerate().take(datagrams) {
            let Some((datagram, peer)) = self.received.datagram(index) else {
                self.counters.oversized.fetch_add(1, Relaxed);
                continue;
            };
            response.clear();
            match handler.answer(datagram, peer, response) {
                Answer::Ready => self.answered.push(index),
                Answer::Nothing | Answer::Stream => {}
                Answer::Deferred => self.deferred.push(index),
            }
        }
        self.send();
        handler.end_batch();
        if !self.deferred.is_empty() {
            self.answer_again(handler);
        }
        self.responses.iter_mut().take(datagrams).for_each(trim_response_buffer);
    }

    /// Answers the deferred messages. The other answers are already sent and do not wait.
    fn answer_again(&mut self, handler: &mut impl Handler) {
        handler.generate_deferred();
        self.answered.clear();
        for index in self.deferred.drain(..) {
            let Some((datagram, peer)) = self.received.datagram(index) else { continue };
            let response = &mut self.responses[index];
            response.clear();
            if handler.answer_again(datagram, peer, response) {
                self.answered.push(index);
            }
        }
        self.send();
        handler.end_batch();
    }

    fn send(&mut self) {
        if !self.answered.is_empty() {
            let socket = self.socket.as_fd();
            let outcome = self.replies.send(socket, &mut self.received, &self.answered, &self.responses);
            self.counters.count_send(outcome);
        }
    }

    /// Counts a failed receive call. A timeout or a signal is not a failure.
    fn handle_error(&self, error: &io::Error) {
        self.counters.system_calls.fetch_add(1, Relaxed);
        if !matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) {
            self.counters.receive_errors.fetch_add(1, Relaxed);
            thread::sleep(ERROR_PAUSE);
        }
    }
}

#[cfg(test)]
mod tests;
