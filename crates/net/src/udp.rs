//! Answering datagrams: plain threads, each with its own socket, that receive and send in batches.
//!
//! A worker receives what has arrived in one system call, has the handler answer each datagram into a buffer
//! that is kept for the next batch, and sends the answers in one call. The busier it is, the larger its batches
//! grow and the fewer system calls a datagram costs; [`UdpCounters`] tells.
//!
//! Answers that the handler puts off are made together, when those that were ready have been sent.

use std::io;
use std::net::{SocketAddr, UdpSocket};
use std::os::fd::AsFd;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Weak};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use crate::error::{NetError, Transport};
use crate::handler::{Answer, Handler, trim};
use crate::heartbeat::{Heartbeat, Heartbeats};
use crate::sys::{self, BATCH, ReceiveBatch, Replies, SendOutcome, Wait};

/// The longest datagram that a worker accepts, octets; longer ones are dropped and counted.
pub const QUERY_MAX: usize = 4096;
/// What a response buffer has room for without growing, octets.
pub const RESPONSE_CAPACITY: usize = 4096;

/// How long a worker waits for a datagram or for room to send before it looks whether it is to stop. Stopping
/// wakes it sooner.
const POLL_INTERVAL: Duration = Duration::from_millis(200);
/// A pause after the system failed to receive, so that an error that lasts does not take a whole CPU.
const ERROR_PAUSE: Duration = Duration::from_millis(1);

/// How [`serve`] runs its workers.
#[derive(Debug, Clone, Default)]
pub struct UdpOptions {
    /// The CPUs to pin workers to: worker `i` runs on `cpus[i % cpus.len()]`. Empty: on any.
    pub cpus: Vec<usize>,
    /// Where each worker's loop reports. By default nowhere.
    pub heartbeats: Heartbeats,
}

/// What one worker has done since it started. In a cache line of its own.
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

/// What a worker, or all of them, have done since they started.
#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
pub struct UdpCounters {
    /// Datagrams received, also those that were dropped.
    pub datagrams_in: u64,
    /// Datagrams sent.
    pub datagrams_out: u64,
    /// System calls made to receive and to send.
    pub system_calls: u64,
    /// Datagrams dropped because they were longer than [`QUERY_MAX`] or told no sender.
    pub oversized: u64,
    /// Receive calls that failed, apart from those that found nothing.
    pub receive_errors: u64,
    /// Answers that the system refused to send.
    pub send_errors: u64,
}

impl UdpCounters {
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

/// Reads the counters of a server's workers, from any thread, also after the server has stopped.
#[derive(Debug, Clone)]
pub struct UdpStatistics {
    workers: Arc<[WorkerCounters]>,
}

impl UdpStatistics {
    /// The sums over all workers.
    #[must_use]
    pub fn total(&self) -> UdpCounters {
        self.workers.iter().map(WorkerCounters::read).sum()
    }
}

/// A running UDP server. Dropping it stops it.
#[derive(Debug)]
pub struct UdpServer {
    stop: Arc<AtomicBool>,
    workers: Vec<RunningWorker>,
    statistics: UdpStatistics,
}

#[derive(Debug)]
struct RunningWorker {
    name: String,
    /// The worker owns its socket: should it end, the kernel spreads its share over the others.
    socket: Weak<UdpSocket>,
    thread: Option<JoinHandle<()>>,
}

impl UdpServer {
    /// What the workers have done.
    #[must_use]
    pub fn statistics(&self) -> UdpStatistics {
        self.statistics.clone()
    }

    /// Stops the workers and waits for them; batches that are being answered are sent.
    ///
    /// # Errors
    /// [`NetError::Panicked`] when a worker had ended by a panic of its handler.
    pub fn stop(mut self) -> Result<(), NetError> {
        self.end()
    }

    fn end(&mut self) -> Result<(), NetError> {
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
        // Who wants to know of a worker's panic calls `stop`.
        let _ = self.end();
    }
}

/// Starts one worker for each of `sockets`, which come from [`bind`](crate::bind()).
///
/// In each worker, `make_handler(worker)` makes its handler: a [`Handler`], or a closure that is given a datagram, its
/// sender and an empty buffer, and returns whether the buffer holds an answer to send.
///
/// # Errors
/// When a thread cannot be started or pinned; workers already started are stopped.
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
    let local_address = prepare_socket(&socket, heartbeat.pause().min(POLL_INTERVAL))?;
    let socket = Arc::new(socket);
    let weak = Arc::downgrade(&socket);
    let stop = Arc::clone(&server.stop);
    let workers = Arc::clone(&server.statistics.workers);
    let cpu = options.cpus.get(index % options.cpus.len().max(1)).copied();
    let (started, wait_started) = std::sync::mpsc::sync_channel(1);
    let body = move || {
        let pinned = cpu.map_or(Ok(()), sys::pin_current_thread);
        let go = pinned.is_ok();
        // The starter waits for this message, so it is there to take it.
        let _ = started.send(pinned);
        if go {
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

/// Has calls wait no longer than `interval`; returns whether the local address of each datagram matters, since the socket has many.
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

/// One thread's socket and buffers.
struct Worker<'a> {
    socket: &'a UdpSocket,
    counters: &'a WorkerCounters,
    received: ReceiveBatch,
    responses: Vec<Vec<u8>>,
    answered: Vec<usize>,
    deferred: Vec<usize>,
    replies: Replies,
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
            replies: Replies::new(BATCH),
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
        handler.begin();
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
        handler.end();
        if !self.deferred.is_empty() {
            self.answer_again(handler);
        }
        self.responses.iter_mut().take(datagrams).for_each(trim);
    }

    /// Answers what was put off. What was ready has been sent: it does not wait for what is made.
    fn answer_again(&mut self, handler: &mut impl Handler) {
        handler.make();
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
        handler.end();
    }

    fn send(&mut self) {
        if !self.answered.is_empty() {
            let socket = self.socket.as_fd();
            let outcome = self.replies.send(socket, &mut self.received, &self.answered, &self.responses);
            self.counters.count_send(outcome);
        }
    }

    /// Counts a failed receive call. Neither a timeout nor a signal is a failure.
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
