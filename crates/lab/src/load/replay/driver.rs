//! The loop of a replay: sends each query when it is due, and receives responses in between.

use super::queries::ReplayQueries;
use super::spread::loopback_addresses;
use super::{LoadError, LoadOptions, ReplaySpeed};
use crate::load::slots::{SLOTS_MAX, Slots, Times};
use crate::load::tally::Tally;
use crate::process;
use nonesuch_net::client::{ReadySockets, UdpClientSocket};
use nonesuch_net::{BATCH, NetError, ReceiveBatch, SendBatch, pin_current_thread};
use nonesuch_proto::message::{Header, flags};
use std::io;
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Octets of a receive buffer. Longer responses are truncated, but their header is complete.
const RESPONSE_SIZE: usize = 4096;
/// Maximum time to wait for a response before the loop checks the clock.
const MAX_WAIT: Duration = Duration::from_millis(5);
/// Time before a due query during which the loop polls, because the system wakes a sleeping thread
/// late.
const POLL_BEFORE_DUE: Duration = Duration::from_micros(120);
/// Number of slots of all sockets together, and minimum for each socket.
const SLOTS_TOTAL: usize = 1 << 19;
const SLOTS_MIN: usize = 128;
/// Interval between searches for lost queries.
const EXPIRE_INTERVAL: Duration = Duration::from_millis(5);

const fn ns(duration: Duration) -> u64 {
    duration.as_nanos() as u64
}

/// The state of a replay.
pub(super) struct Driver<'a> {
    options: &'a LoadOptions,
    queries: &'a ReplayQueries,
    speed: ReplaySpeed,
    /// Number of queries to send.
    total: usize,
    /// Index of the next query.
    next: usize,
    sockets: Vec<UdpClientSocket>,
    /// Outstanding queries of each socket.
    slots: Vec<Slots>,
    outstanding: usize,
    outgoing: SendBatch,
    /// Message ID and times of each query in the outgoing batch.
    batch: Vec<(u16, Times)>,
    incoming: ReceiveBatch,
    ready: ReadySockets,
    origin: Instant,
    last_expiry: u64,
    may_spin: bool,
    /// Whether any response has arrived.
    answered: bool,
    tally: Tally,
}

impl<'a> Driver<'a> {
    /// Opens the sockets.
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
            next: 0,
            slots: sockets.iter().map(|_| Slots::new(slots)).collect(),
            sockets,
            outstanding: 0,
            outgoing: SendBatch::new(BATCH, queries.longest()),
            batch: Vec::with_capacity(BATCH),
            incoming: ReceiveBatch::new(BATCH, RESPONSE_SIZE),
            ready: ReadySockets::default(),
            origin: Instant::now(),
            last_expiry: 0,
            may_spin: options.spin && thread::available_parallelism().is_ok_and(|count| count.get() > 1),
            answered: false,
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
        while self.next < self.total || self.outstanding > 0 {
            let now = self.clock();
            self.send_due(now)?;
            let is_drained = self.receive()?;
            // A response that waits in a socket is not lost.
            if is_drained {
                self.expire(now);
            }
        }
        let spent = before.zip(process::own_thread_cpu_time());
        self.tally.own_cpu = spent.map(|(before, after)| after.saturating_sub(before)).unwrap_or_default();
        Ok(self.tally)
    }

    /// Returns the time since the begin, in ns.
    fn clock(&self) -> u64 {
        ns(self.origin.elapsed())
    }

    /// Returns the due time of the next query, `None` after the last one. In a closed loop, it is due
    /// now.
    fn next_due(&self, now: u64) -> Option<u64> {
        let query = self.queries.query(self.next).filter(|_| self.next < self.total)?;
        Some(match self.speed {
            ReplaySpeed::Scaled(factor) => (query.after_ns as f64 / factor) as u64,
            ReplaySpeed::Max => now,
        })
    }

    /// Index of the socket of a client.
    const fn place(&self, client: usize) -> usize {
        client % self.sockets.len()
    }

    /// Whether the next query has room: it waits for a slot of its socket.
    fn has_room(&self) -> bool {
        let Some(query) = self.queries.query(self.next) else { return false };
        self.outstanding < self.options.outstanding && self.slots[self.place(query.client)].free_count() > 0
    }

    /// Sends the queries that are due, in order, at most one batch. Successive queries from one
    /// socket are sent in one call.
    fn send_due(&mut self, now: u64) -> Result<(), LoadError> {
        let mut sent = 0;
        while sent < BATCH {
            let Some(place) = self.fill_batch(now, BATCH - sent) else { break };
            sent += self.batch.len();
            self.send(place)?;
        }
        Ok(())
    }

    /// Fills the batch with due queries of one socket. Returns the index of the socket, `None` if no
    /// query is due or has room.
    fn fill_batch(&mut self, now: u64, maximum: usize) -> Option<usize> {
        self.batch.clear();
        let mut socket = None;
        while self.batch.len() < maximum && self.has_room() {
            let Some(due) = self.next_due(now).filter(|due| *due <= now) else { break };
            let Some(query) = self.queries.query(self.next) else { break };
            let place = self.place(query.client);
            if *socket.get_or_insert(place) != place {
                break;
            }
            let times = Times { due, sent: now };
            let Some(id) = self.slots[place].take(times) else { break };
            self.outgoing.push_with(|slot| {
                slot[..query.octets.len()].copy_from_slice(query.octets);
                slot[..2].copy_from_slice(&id.to_be_bytes());
                query.octets.len()
            });
            self.batch.push((id, times));
            self.next += 1;
        }
        self.outstanding += self.batch.len();
        socket
    }

    /// Sends the batch. If the system rejects a query, its slot is freed.
    fn send(&mut self, place: usize) -> Result<(), LoadError> {
        let is_scheduled = matches!(self.speed, ReplaySpeed::Scaled(_));
        while self.outgoing.pending() > 0 {
            let first = self.batch.len() - self.outgoing.pending();
            match self.sockets[place].send(&mut self.outgoing) {
                Ok(sent) => {
                    for (_, times) in &self.batch[first..first + sent] {
                        self.tally.count_sent(*times, is_scheduled);
                    }
                }
                Err(error) => {
                    if self.handle_io_error(error)? {
                        let freed = self.slots[place].release(self.batch[first].0);
                        self.outstanding -= usize::from(freed.is_some());
                        self.outgoing.skip_first();
                    }
                }
            }
        }
        Ok(())
    }

    /// Handles an error of sending or receiving. An error before the first response ends the replay;
    /// later errors are counted. Returns whether the error concerns the current message.
    fn handle_io_error(&mut self, source: io::Error) -> Result<bool, LoadError> {
        let (server, kind) = (self.options.server, source.kind());
        match kind {
            io::ErrorKind::Interrupted => return Ok(false),
            io::ErrorKind::ConnectionRefused if !self.answered => {
                return Err(LoadError::NotListening { server, transport: nonesuch_net::Transport::Udp });
            }
            _ if !self.answered => return Err(LoadError::Exchange { server, source }),
            _ => self.tally.refused += 1,
        }
        Ok(kind != io::ErrorKind::ConnectionRefused)
    }

    /// Returns how long to wait for responses: until shortly before the next query is due.
    fn wait(&self) -> Duration {
        let now = self.clock();
        let Some(due) = self.next_due(now).filter(|_| self.has_room()) else { return MAX_WAIT };
        let until = Duration::from_nanos(due.saturating_sub(now));
        if !self.may_spin {
            return until.min(MAX_WAIT);
        }
        until.saturating_sub(POLL_BEFORE_DUE).min(MAX_WAIT)
    }

    /// Receives the available responses, one batch from each socket. Returns whether no more
    /// responses are available.
    fn receive(&mut self) -> Result<bool, LoadError> {
        let server = self.options.server;
        let wait = self.wait();
        let waited = self.ready.wait(&self.sockets, [], wait);
        waited.map_err(|source| LoadError::Exchange { server, source })?;
        let now = self.clock();
        let ready = std::mem::take(&mut self.ready);
        let mut is_drained = true;
        for place in ready.indexes() {
            match self.sockets[place].receive_now(&mut self.incoming) {
                Ok(found) => {
                    is_drained &= found < BATCH;
                    self.count_answers(place, now);
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

    fn count_answers(&mut self, place: usize, now: u64) {
        for message in self.incoming.messages() {
            let header = Header::read(message).filter(|header| header.flags & flags::QR != 0);
            let Some(header) = header else {
                self.tally.count_unexpected(now);
                continue;
            };
            if let Some(times) = self.slots[place].release(header.id) {
                self.answered = true;
                self.outstanding -= 1;
                self.tally.count_answer(times, now, message);
            } else if let Some(times) = self.slots[place].take_late(header.id) {
                self.answered = true;
                self.tally.count_late(times);
            } else {
                self.tally.count_unexpected(now);
            }
        }
    }

    /// Counts queries as lost after the timeout.
    fn expire(&mut self, now: u64) {
        if now.saturating_sub(self.last_expiry) < ns(EXPIRE_INTERVAL) {
            return;
        }
        self.last_expiry = now;
        let limit = now.saturating_sub(ns(self.options.timeout));
        for slots in self.slots.iter_mut().filter(|slots| slots.outstanding() > 0) {
            let before = slots.outstanding();
            slots.give_up_before(limit, |times| self.tally.count_lost(times));
            self.outstanding -= before - slots.outstanding();
        }
    }
}

/// Opens a socket for each client, up to the maximum number.
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
