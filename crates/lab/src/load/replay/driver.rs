//! The loop of a replay: sends each query when it is due, and receives responses in between.

use super::queries::ReplayQueries;
use super::spread::loopback_addresses;
use super::{LoadError, LoadOptions, ReplaySpeed};
use crate::load::slots::{QueryTimes, SLOTS_MAX, Slots};
use crate::load::tally::Tally;
use crate::process;
use nonesuch_net::client::{ReadySockets, UdpClientSocket};
use nonesuch_net::{BATCH, NetError, ReceiveBatch, SendBatch, pin_current_thread};
use nonesuch_proto::message::{Header, flags};
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Octets of a receive buffer. The system cuts longer responses; the replay needs only their
/// header.
const RECEIVE_SIZE: usize = 4096;
/// Maximum time to wait for a response before the loop checks the clock.
const MAX_WAIT: Duration = Duration::from_millis(5);
/// Time before a due query during which the loop polls, because the system wakes a sleeping thread
/// late.
const POLL_BEFORE_DUE: Duration = Duration::from_micros(120);
/// Number of slots of all sockets together.
const SLOTS_TOTAL: usize = 1 << 19;
/// Minimum number of slots of a socket.
const SLOTS_MIN: usize = 128;
/// Interval between searches for lost queries.
const EXPIRY_INTERVAL: Duration = Duration::from_millis(5);

const fn to_ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// The state of a replay.
pub(super) struct Driver<'a> {
    options: &'a LoadOptions,
    queries: &'a ReplayQueries,
    speed: ReplaySpeed,
    /// Number of queries to send.
    total: usize,
    /// Index of the next query to send.
    next_query: usize,
    sockets: Vec<UdpClientSocket>,
    /// Outstanding queries of each socket.
    slots: Vec<Slots>,
    /// Number of outstanding queries of all sockets.
    outstanding: usize,
    outgoing: SendBatch,
    /// Message ID and times of each query in the outgoing batch.
    batch: Vec<(u16, QueryTimes)>,
    incoming: ReceiveBatch,
    ready: ReadySockets,
    /// Start of the replay.
    origin: Instant,
    /// Time of the last search for lost queries, in ns since `origin`.
    last_expiry: u64,
    /// Whether the loop may poll: the options permit it, and there is more than one CPU.
    may_poll: bool,
    /// Whether any response has arrived.
    has_response: bool,
    tally: Tally,
}

impl<'a> Driver<'a> {
    /// Opens the sockets. The order of `queries` is the order of sending.
    pub(super) fn new(
        options: &'a LoadOptions,
        queries: &'a ReplayQueries,
        speed: ReplaySpeed,
    ) -> Result<Self, LoadError> {
        let sockets = open_sockets(options, queries)?;
        let slots = (SLOTS_TOTAL / sockets.len()).clamp(SLOTS_MIN, SLOTS_MAX).min(options.outstanding);
        let limit = options.limit.and_then(|limit| usize::try_from(limit).ok()).unwrap_or(usize::MAX);
        Ok(Self {
            options,
            queries,
            speed,
            total: queries.len().min(limit),
            next_query: 0,
            slots: sockets.iter().map(|_| Slots::new(slots)).collect(),
            sockets,
            outstanding: 0,
            outgoing: SendBatch::new(BATCH, queries.longest_query()),
            batch: Vec::with_capacity(BATCH),
            incoming: ReceiveBatch::new(BATCH, RECEIVE_SIZE),
            ready: ReadySockets::default(),
            origin: Instant::now(),
            last_expiry: 0,
            may_poll: options.may_poll && thread::available_parallelism().is_ok_and(|count| count.get() > 1),
            has_response: false,
            tally: Tally::new(0),
        })
    }

    /// Sends and receives until each query is answered or lost, and returns the counters.
    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        if let Some(cpu) = self.options.cpus.as_ref().and_then(|cpus| cpus.first().copied()) {
            pin_current_thread(cpu).map_err(|source| NetError::Pin { cpu, source })?;
        }
        let before = process::own_thread_cpu_time();
        self.origin = Instant::now();
        while self.next_query < self.total || self.outstanding > 0 {
            let now = self.clock();
            self.send_due(now)?;
            let is_drained = self.receive()?;
            // A response that waits in a socket is not lost.
            if is_drained {
                self.expire(now);
            }
        }
        let spent = before.zip(process::own_thread_cpu_time());
        self.tally.thread_cpu = spent.map(|(before, after)| after.saturating_sub(before)).unwrap_or_default();
        Ok(self.tally)
    }

    /// Returns the current time, in ns since `origin`.
    fn clock(&self) -> u64 {
        to_ns(self.origin.elapsed())
    }

    /// Returns the due time of the next query, in ns since `origin`; `None` after the last one. In
    /// a closed loop, it is due at `now`.
    fn next_due_time(&self, now: u64) -> Option<u64> {
        let query = self.queries.query(self.next_query).filter(|_| self.next_query < self.total)?;
        Some(match self.speed {
            ReplaySpeed::Scaled(factor) => (query.after_ns as f64 / factor) as u64,
            ReplaySpeed::Max => now,
        })
    }

    /// Returns the index of the socket of a client.
    const fn socket_of(&self, client: usize) -> usize {
        client % self.sockets.len()
    }

    /// Whether the next query can be sent: the limit of outstanding queries is not reached, and its
    /// socket has a free slot. False after the last query.
    fn has_free_slot(&self) -> bool {
        let Some(query) = self.queries.query(self.next_query) else { return false };
        self.outstanding < self.options.outstanding
            && self.slots[self.socket_of(query.client)].free_count() > 0
    }

    /// Sends the queries that are due, in order, at most one batch. Successive queries from one
    /// socket are sent in one call.
    fn send_due(&mut self, now: u64) -> Result<(), LoadError> {
        let mut sent = 0;
        while sent < BATCH {
            let Some(socket) = self.fill_batch(now, BATCH - sent) else { break };
            sent += self.batch.len();
            self.send(socket)?;
        }
        Ok(())
    }

    /// Fills the batch with at most `maximum` due queries of one socket. Returns the index of the
    /// socket; `None` if no query is due or the next one has no free slot.
    fn fill_batch(&mut self, now: u64, maximum: usize) -> Option<usize> {
        self.batch.clear();
        let mut socket = None;
        while self.batch.len() < maximum && self.has_free_slot() {
            let Some(due) = self.next_due_time(now).filter(|due| *due <= now) else { break };
            let Some(query) = self.queries.query(self.next_query) else { break };
            let own_socket = self.socket_of(query.client);
            if *socket.get_or_insert(own_socket) != own_socket {
                break;
            }
            let times = QueryTimes { due, sent: now };
            let Some(id) = self.slots[own_socket].allocate(times) else { break };
            self.outgoing.push_with(|slot| {
                slot[..query.octets.len()].copy_from_slice(query.octets);
                slot[..2].copy_from_slice(&id.to_be_bytes());
                query.octets.len()
            });
            self.batch.push((id, times));
            self.next_query += 1;
        }
        self.outstanding += self.batch.len();
        socket
    }

    /// Sends the batch. If the system rejects a query, its slot is freed.
    fn send(&mut self, socket: usize) -> Result<(), LoadError> {
        let is_scheduled = matches!(self.speed, ReplaySpeed::Scaled(_));
        while self.outgoing.pending() > 0 {
            let first = self.batch.len() - self.outgoing.pending();
            match self.sockets[socket].send(&mut self.outgoing) {
                Ok(sent) => {
                    for (_, times) in &self.batch[first..first + sent] {
                        self.tally.count_sent(*times, is_scheduled);
                    }
                }
                Err(error) => {
                    if self.handle_io_error(error)? {
                        let freed = self.slots[socket].release(self.batch[first].0);
                        self.outstanding -= usize::from(freed.is_some());
                        self.outgoing.skip_first();
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles an error of sending or receiving. An error before the first response ends the
    /// replay; later errors are counted. Returns true if the system rejected the current message,
    /// which the caller then skips.
    fn handle_io_error(&mut self, source: io::Error) -> Result<bool, LoadError> {
        let (server, kind) = (self.options.server, source.kind());
        match kind {
            io::ErrorKind::Interrupted => return Ok(false),
            io::ErrorKind::ConnectionRefused if !self.has_response => {
                return Err(LoadError::NotListening { server, transport: nonesuch_net::Transport::Udp });
            }
            _ if !self.has_response => return Err(LoadError::Exchange { server, source }),
            _ => self.tally.refused += 1,
        }
        Ok(kind != io::ErrorKind::ConnectionRefused)
    }

    /// Returns how long to wait for responses: until shortly before the next query is due. If the
    /// next query has no free slot, or there is none, it is [`MAX_WAIT`].
    fn wait_time(&self) -> Duration {
        let now = self.clock();
        let Some(due) = self.next_due_time(now).filter(|_| self.has_free_slot()) else { return MAX_WAIT };
        let until_due = Duration::from_nanos(due.saturating_sub(now));
        if !self.may_poll {
            return until_due.min(MAX_WAIT);
        }
        until_due.saturating_sub(POLL_BEFORE_DUE).min(MAX_WAIT)
    }

    /// Receives the available responses, at most one batch from each socket. Returns true if the
    /// sockets are then empty.
    fn receive(&mut self) -> Result<bool, LoadError> {
        let server = self.options.server;
        let wait = self.wait_time();
        let waited = self.ready.wait(&self.sockets, [], wait);
        waited.map_err(|source| LoadError::Exchange { server, source })?;
        let now = self.clock();
        let ready = std::mem::take(&mut self.ready);
        let mut is_drained = true;
        for socket in ready.indexes() {
            match self.sockets[socket].receive_now(&mut self.incoming) {
                Ok(found) => {
                    is_drained &= found < BATCH;
                    self.count_answers(socket, now);
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
                Err(error) => {
                    is_drained = false;
                    let _ = self.handle_io_error(error)?;
                }
            }
        }
        self.ready = ready;
        Ok(is_drained)
    }

    fn count_answers(&mut self, socket: usize, now: u64) {
        for message in self.incoming.messages() {
            let header = Header::read(message).filter(|header| header.flags & flags::QR != 0);
            let Some(header) = header else {
                self.tally.count_unexpected(now);
                continue;
            };
            if let Some(times) = self.slots[socket].release(header.id) {
                self.has_response = true;
                self.outstanding -= 1;
                self.tally.count_answer(times, now, message);
            } else if let Some(times) = self.slots[socket].match_late(header.id) {
                self.has_response = true;
                self.tally.count_late(times);
            } else {
                self.tally.count_unexpected(now);
            }
        }
    }

    /// Counts queries as lost after the timeout.
    fn expire(&mut self, now: u64) {
        if now.saturating_sub(self.last_expiry) < to_ns(EXPIRY_INTERVAL) {
            return;
        }
        self.last_expiry = now;
        let limit = now.saturating_sub(to_ns(self.options.timeout));
        for slots in self.slots.iter_mut().filter(|slots| slots.outstanding() > 0) {
            let before = slots.outstanding();
            slots.release_sent_before(limit, |times| self.tally.count_lost(times));
            self.outstanding -= before - slots.outstanding();
        }
    }
}

/// Opens a socket for each client, up to the maximum number `options.sockets`. The documentation of
/// [`replay`](super) describes the source addresses.
fn open_sockets(options: &LoadOptions, queries: &ReplayQueries) -> Result<Vec<UdpClientSocket>, NetError> {
    let count = queries.clients().len().min(options.sockets);
    let connect = |source: IpAddr| UdpClientSocket::connect_from(source, options.server, MAX_WAIT);
    if let Some(sources) = options.sources {
        return (0..count).map(|index| connect(sources.address(index, count))).collect();
    }
    if options.server.is_ipv4() && options.server.ip().is_loopback() {
        return loopback_addresses(&queries.clients()[..count]).into_iter().map(connect).collect();
    }
    (0..count).map(|_| UdpClientSocket::connect(options.server, MAX_WAIT)).collect()
}
