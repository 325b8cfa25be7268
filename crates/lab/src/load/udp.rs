//! The UDP sockets of a thread. They send and receive in batches.

use std::io;
use std::time::Duration;

use nonesuch_net::client::{Poller, UdpClientSocket};
use nonesuch_net::{BATCH, NetError, ReceiveBatch, SendBatch};

use super::encoder::QueryEncoder;
use super::pacer::{MAX_WAIT, Pacer, equal_share};
use super::slots::{QueryTimes, Slots};
use super::tcp_retry::TcpRetry;
use super::{LoadError, LoadOptions};

/// Minimum octets of a receive buffer. The system cuts longer responses; the generator needs only
/// their header.
const RECEIVE_SIZE_MIN: usize = 4096;

/// The UDP sockets of a thread, and their outstanding queries.
pub(super) struct UdpSockets {
    sockets: Vec<UdpClientSocket>,
    /// Outstanding queries of each socket.
    pub(super) slots: Vec<Slots>,
    /// Index of the socket for the next batch.
    next_socket: usize,
    ready: Poller,
    pub(super) outgoing: SendBatch,
    incoming: ReceiveBatch,
    /// Message ID and times of each query in the outgoing batch.
    pub(super) batch: Vec<(u16, QueryTimes)>,
    /// Repeats queries over TCP after truncated responses; `None` without `follow_truncated`.
    tcp_retry: Option<TcpRetry>,
}

impl UdpSockets {
    /// Opens the sockets of thread `thread`, for queries of at most `query_size` octets.
    pub(super) fn new(options: &LoadOptions, thread: usize, query_size: usize) -> Result<Self, NetError> {
        let count = options.sockets;
        let connect = |socket| match options.sources {
            None => UdpClientSocket::connect(options.server, MAX_WAIT),
            Some(sources) => {
                let source = sources.address(thread * count + socket, options.threads * count);
                UdpClientSocket::connect_from(source, options.server, MAX_WAIT)
            }
        };
        let sockets = (0..count).map(connect).collect::<Result<Vec<_>, _>>()?;
        let window = equal_share(options.outstanding as u64, thread, options.threads);
        let slots = |socket| equal_share(window, socket, count) as usize;
        let tcp_retry = TcpRetry::new(options, thread);
        Ok(Self { tcp_retry, ..Self::of(sockets, slots, query_size, options.edns_size.into()) })
    }

    /// Takes open sockets, with a number of slots for each index of a socket, for queries of at
    /// most `query_size` octets. Longer responses than `response_size` octets are cut.
    pub(super) fn of(
        sockets: Vec<UdpClientSocket>,
        slots: impl Fn(usize) -> usize,
        query_size: usize,
        response_size: usize,
    ) -> Self {
        Self {
            slots: (0..sockets.len()).map(|socket| Slots::new(slots(socket))).collect(),
            sockets,
            next_socket: 0,
            ready: Poller::default(),
            outgoing: SendBatch::new(BATCH, query_size),
            incoming: ReceiveBatch::new(BATCH, RECEIVE_SIZE_MIN.max(response_size)),
            batch: Vec::with_capacity(BATCH),
            tcp_retry: None,
        }
    }

    /// Sends the queries that are due, at most one batch on each socket. The thread then receives
    /// responses before it sends more.
    pub(super) fn send_due(
        &mut self,
        pacer: &mut Pacer<'_>,
        encoder: &mut QueryEncoder,
        now: u64,
    ) -> Result<(), LoadError> {
        for _ in 0..self.sockets.len() {
            if !pacer.is_due(now) {
                break;
            }
            let socket = self.next_socket;
            self.next_socket = (socket + 1) % self.sockets.len();
            self.fill_batch(socket, pacer, encoder, now);
            if !self.batch.is_empty() {
                pacer.last_event = now;
                let is_scheduled = pacer.is_open_loop();
                self.send(socket, pacer, is_scheduled)?;
            }
        }
        Ok(())
    }

    /// Fills the batch for a socket with the queries that are due.
    fn fill_batch(&mut self, socket: usize, pacer: &mut Pacer<'_>, encoder: &mut QueryEncoder, now: u64) {
        self.batch.clear();
        let slots = &mut self.slots[socket];
        let free_window =
            self.tcp_retry.as_ref().map_or(usize::MAX, |tcp_retry| tcp_retry.free_window(pacer));
        for _ in 0..pacer.batch_size(slots.free_count().min(free_window)) {
            let Some((question, times)) = pacer.next_due(now) else { break };
            let Some(id) = slots.allocate(times) else { break };
            self.batch.push((id, times));
            self.outgoing.push_with(|slot| encoder.encode(id, question, socket, slot));
        }
        pacer.outstanding += self.batch.len();
    }

    /// Sends the batch. If the system rejects a query, its slot is freed. `is_scheduled` states whether
    /// queries have scheduled send times.
    pub(super) fn send(
        &mut self,
        socket: usize,
        pacer: &mut Pacer<'_>,
        is_scheduled: bool,
    ) -> Result<(), LoadError> {
        while self.outgoing.pending() > 0 {
            let first = self.batch.len() - self.outgoing.pending();
            match self.sockets[socket].send(&mut self.outgoing) {
                Ok(sent) => {
                    for (_, times) in &self.batch[first..first + sent] {
                        pacer.tally.count_sent(*times, is_scheduled);
                    }
                }
                Err(error) => {
                    if pacer.handle_io_error(error)? {
                        pacer.outstanding -=
                            usize::from(self.slots[socket].release(self.batch[first].0).is_some());
                        self.outgoing.skip_first();
                    }
                }
            }
        }
        Ok(())
    }

    /// Receives the available responses. Waits for responses as long as no query is due or can be
    /// sent. Returns the current time.
    pub(super) fn receive(
        &mut self,
        pacer: &mut Pacer<'_>,
        encoder: &mut QueryEncoder,
        now: u64,
    ) -> Result<u64, LoadError> {
        let has_free_window =
            self.tcp_retry.as_ref().is_none_or(|tcp_retry| tcp_retry.free_window(pacer) > 0);
        let has_free_slot = has_free_window && self.slots.iter().any(|slots| slots.free_count() > 0);
        let wait = pacer.wait_time(now, has_free_slot);
        let last_received = std::mem::take(&mut pacer.last_received);
        match wait {
            None if pacer.outstanding == 0 => return Ok(pacer.clock()),
            None => {}
            Some(_) => pacer.nap_if_quiet(last_received),
        }
        if self.sockets.len() > 1 || self.tcp_retry.is_some() {
            return self.receive_ready(pacer, encoder, wait.unwrap_or_default());
        }
        let result = match wait {
            None => self.sockets[0].receive_now(&mut self.incoming),
            // In a closed loop, wait in the receive call itself, which saves a system call.
            Some(_) if !pacer.is_open_loop() => self.sockets[0].receive(&mut self.incoming),
            Some(limit) => {
                self.wait_for_responses(limit).and_then(|()| self.sockets[0].receive_now(&mut self.incoming))
            }
        };
        self.count_received(0, pacer, encoder, result)
    }

    /// Waits at most `limit`, and receives from the sockets and connections that are ready. Returns
    /// the current time.
    pub(super) fn receive_ready(
        &mut self,
        pacer: &mut Pacer<'_>,
        encoder: &mut QueryEncoder,
        limit: Duration,
    ) -> Result<u64, LoadError> {
        self.wait_for_responses(limit)
            .map_err(|source| LoadError::Exchange { server: pacer.options.server, source })?;
        let mut now = pacer.clock();
        let ready = std::mem::take(&mut self.ready);
        for index in ready.indexes() {
            if let Some(socket) = self.sockets.get(index) {
                let result = socket.receive_now(&mut self.incoming);
                now = self.count_received(index, pacer, encoder, result)?;
            } else if let Some(tcp_retry) = &mut self.tcp_retry {
                now = tcp_retry.connections.receive_at(index - self.sockets.len(), pacer, encoder, now)?;
            }
        }
        self.ready = ready;
        if let Some(tcp_retry) = &mut self.tcp_retry {
            tcp_retry.send_waiting(pacer, encoder, now)?;
        }
        Ok(now)
    }

    /// Waits until a socket or connection has a response, or `limit` is over.
    fn wait_for_responses(&mut self, limit: Duration) -> io::Result<()> {
        let streams = self.tcp_retry.iter_mut().flat_map(|tcp_retry| tcp_retry.connections.streams());
        self.ready.wait(&self.sockets, streams, limit)
    }

    /// Counts the responses of a receive call on a socket. Returns the current time.
    fn count_received(
        &mut self,
        socket: usize,
        pacer: &mut Pacer<'_>,
        encoder: &mut QueryEncoder,
        result: io::Result<usize>,
    ) -> Result<u64, LoadError> {
        let now = pacer.clock();
        match result {
            Ok(found) => {
                pacer.is_drained &= found < BATCH;
                pacer.last_received += found;
                pacer.last_event = now;
                self.count_answers(socket, pacer, encoder, now);
            }
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {}
            Err(error) => {
                // Responses may follow the error in the queue.
                pacer.is_drained = false;
                let _ = pacer.handle_io_error(error)?;
            }
        }
        Ok(now)
    }

    /// Counts the received datagrams of a socket.
    fn count_answers(&mut self, socket: usize, pacer: &mut Pacer<'_>, encoder: &mut QueryEncoder, now: u64) {
        let slots = &mut self.slots[socket];
        for message in self.incoming.messages() {
            let Some(times) = pacer.match_response(slots, message, now) else { continue };
            let is_queued = self
                .tcp_retry
                .as_mut()
                .is_some_and(|tcp_retry| tcp_retry.queue_if_truncated(pacer, times, now, message));
            if !is_queued {
                pacer.count_answer(socket, times, now, message, encoder);
            }
        }
    }

    /// Counts queries as lost after the timeout.
    pub(super) fn expire(&mut self, pacer: &mut Pacer<'_>, now: u64) {
        for slots in &mut self.slots {
            pacer.expire(slots, now);
        }
        if let Some(tcp_retry) = &mut self.tcp_retry {
            tcp_retry.expire(pacer, now);
        }
    }
}
