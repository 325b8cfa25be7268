//! The loop of a replay: sends each query when it is due, and receives responses in between.

use super::queries::ReplayQueries;
use super::spread::loopback_addresses;
use super::{LoadError, LoadOptions, ReplaySpeed};
use crate::load::encoder::QueryEncoder;
use crate::load::pacer::{MAX_WAIT, POLL_BEFORE_DUE, Pacer};
use crate::load::slots::{QueryTimes, SLOTS_MAX};
use crate::load::tally::Tally;
use crate::load::udp::UdpSockets;
use crate::process;
use nonesuch_net::client::UdpClientSocket;
use nonesuch_net::{BATCH, NetError, pin_current_thread};
use std::net::IpAddr;
use std::thread;
use std::time::{Duration, Instant};

/// Number of slots of all sockets together.
const SLOTS_TOTAL: usize = 1 << 19;
/// Minimum number of slots of a socket.
const SLOTS_MIN: usize = 128;

/// The state of a replay.
pub(super) struct Driver<'a> {
    /// Clock and counters; its schedule is not used.
    pacer: Pacer<'a>,
    /// Stores the server cookies of responses. The queries are sent as captured.
    encoder: QueryEncoder,
    sockets: UdpSockets,
    queries: &'a ReplayQueries,
    speed: ReplaySpeed,
    /// Number of queries to send.
    total: usize,
    /// Index of the next query to send.
    next_query: usize,
    /// Whether the loop may poll: the options permit it, and there is more than one CPU.
    may_poll: bool,
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
            pacer: Pacer::new(options, None, 0, Instant::now()),
            encoder: QueryEncoder::new(options, 0),
            sockets: UdpSockets::of(sockets, |_| slots, queries.longest_query(), 0),
            queries,
            speed,
            total: queries.len().min(limit),
            next_query: 0,
            may_poll: options.may_poll && thread::available_parallelism().is_ok_and(|count| count.get() > 1),
        })
    }

    /// Sends and receives until each query is answered or lost, and returns the counters.
    pub(super) fn run(mut self) -> Result<Tally, LoadError> {
        if let Some(cpu) = self.pacer.options.cpus.as_ref().and_then(|cpus| cpus.first().copied()) {
            pin_current_thread(cpu).map_err(|source| NetError::Pin { cpu, source })?;
        }
        let before = process::own_thread_cpu_time();
        self.pacer.tally = Tally::new(0);
        self.pacer.origin = Instant::now();
        while self.next_query < self.total || self.pacer.outstanding > 0 {
            let now = self.pacer.clock();
            self.send_due(now)?;
            self.pacer.is_drained = true;
            let wait = self.wait_time();
            self.sockets.receive_ready(&mut self.pacer, &mut self.encoder, wait)?;
            // A response that waits in a socket is not lost.
            if self.pacer.is_drained && self.pacer.start_expiry_if_due(now) {
                self.sockets.expire(&mut self.pacer, now);
            }
        }
        let spent = before.zip(process::own_thread_cpu_time());
        let mut tally = self.pacer.tally;
        tally.thread_cpu = spent.map(|(before, after)| after.saturating_sub(before)).unwrap_or_default();
        Ok(tally)
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
    fn socket_of(&self, client: usize) -> usize {
        client % self.sockets.slots.len()
    }

    /// Whether the next query can be sent: the limit of outstanding queries is not reached, and its
    /// socket has a free slot. False after the last query.
    fn has_free_slot(&self) -> bool {
        let Some(query) = self.queries.query(self.next_query) else { return false };
        self.pacer.outstanding < self.pacer.options.outstanding
            && self.sockets.slots[self.socket_of(query.client)].free_count() > 0
    }

    /// Sends the queries that are due, in order, at most one batch. Successive queries from one
    /// socket are sent in one call.
    fn send_due(&mut self, now: u64) -> Result<(), LoadError> {
        let is_scheduled = matches!(self.speed, ReplaySpeed::Scaled(_));
        let mut sent = 0;
        while sent < BATCH {
            let Some(socket) = self.fill_batch(now, BATCH - sent) else { break };
            sent += self.sockets.batch.len();
            self.sockets.send(socket, &mut self.pacer, is_scheduled)?;
        }
        Ok(())
    }

    /// Fills the batch with at most `maximum` due queries of one socket. Returns the index of the
    /// socket; `None` if no query is due or the next one has no free slot.
    fn fill_batch(&mut self, now: u64, maximum: usize) -> Option<usize> {
        self.sockets.batch.clear();
        let mut socket = None;
        while self.sockets.batch.len() < maximum && self.has_free_slot() {
            let Some(due) = self.next_due_time(now).filter(|due| *due <= now) else { break };
            let Some(query) = self.queries.query(self.next_query) else { break };
            let own_socket = self.socket_of(query.client);
            if *socket.get_or_insert(own_socket) != own_socket {
                break;
            }
            let times = QueryTimes { due, sent: now };
            let Some(id) = self.sockets.slots[own_socket].allocate(times) else { break };
            self.sockets.outgoing.push_with(|slot| {
                slot[..query.octets.len()].copy_from_slice(query.octets);
                slot[..2].copy_from_slice(&id.to_be_bytes());
                query.octets.len()
            });
            self.sockets.batch.push((id, times));
            self.next_query += 1;
        }
        self.pacer.outstanding += self.sockets.batch.len();
        socket
    }

    /// Returns how long to wait for responses: until shortly before the next query is due. Returns
    /// [`MAX_WAIT`] after the last query, and if the next query has no free slot.
    fn wait_time(&self) -> Duration {
        let now = self.pacer.clock();
        let Some(due) = self.next_due_time(now).filter(|_| self.has_free_slot()) else { return MAX_WAIT };
        let until_due = Duration::from_nanos(due.saturating_sub(now));
        if !self.may_poll {
            return until_due.min(MAX_WAIT);
        }
        until_due.saturating_sub(POLL_BEFORE_DUE).min(MAX_WAIT)
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
