//! The UDP sockets of a thread. They send and receive in batches.

use std::io;
use std::time::Duration;

use nonesuch_net::client::{ReadySockets, UdpClientSocket};
use nonesuch_net::{BATCH, NetError, ReceiveBatch, SendBatch};

use super::follow::Follow;
use super::frame::Frame;
use super::pacer::{MAX_WAIT, Pacer, share};
use super::slots::{Slots, Times};
use super::{LoadError, LoadOptions};

/// Minimum octets of a receive buffer. Responses that are longer than the buffer are cut, but their
/// header is complete.
const RESPONSE_SIZE: usize = 4096;

/// Sockets, and their outstanding queries.
pub(super) struct Datagrams {
    sockets: Vec<UdpClientSocket>,
    /// Outstanding queries of each socket.
    slots: Vec<Slots>,
    /// Index of the socket for the next batch.
    next_socket: usize,
    ready: ReadySockets,
    outgoing: SendBatch,
    incoming: ReceiveBatch,
    /// Message ID and times of each query in the outgoing batch.
    batch: Vec<(u16, Times)>,
    /// Repeats queries over TCP; `None` if truncated responses are not followed.
    follow: Option<Follow>,
}

impl Datagrams {
    /// Opens the sockets of thread `index`, for queries of at most `query_size` octets.
    pub(super) fn new(options: &LoadOptions, index: usize, query_size: usize) -> Result<Self, NetError> {
        let count = options.sockets;
        let connect = |socket| match options.sources {
            None => UdpClientSocket::connect(options.server, MAX_WAIT),
            Some(sources) => {
                let source = sources.address(index * count + socket, options.threads * count);
                UdpClientSocket::connect_from(source, options.server, MAX_WAIT)
            }
        };
        let sockets = (0..count).map(connect).collect::<Result<Vec<_>, _>>()?;
        let window = share(options.outstanding as u64, index, options.threads);
        Ok(Self {
            sockets,
            slots: (0..count).map(|socket| Slots::new(share(window, socket, count) as usize)).collect(),
            next_socket: 0,
            ready: ReadySockets::default(),
            outgoing: SendBatch::new(BATCH, query_size),
            incoming: ReceiveBatch::new(BATCH, RESPONSE_SIZE.max(options.edns_size.into())),
            batch: Vec::with_capacity(BATCH),
            follow: Follow::new(options, index),
        })
    }

    /// Sends the queries that are due, at most one batch on each socket. The thread then receives
    /// responses before it sends more.
    pub(super) fn send_due(
        &mut self,
        pacer: &mut Pacer<'_>,
        frame: &mut Frame,
        now: u64,
    ) -> Result<(), LoadError> {
        for _ in 0..self.sockets.len() {
            if !pacer.is_due(now) {
                break;
            }
            let place = self.next_socket;
            self.next_socket = (place + 1) % self.sockets.len();
            self.fill_batch(place, pacer, frame, now);
            if !self.batch.is_empty() {
                pacer.last_event = now;
                self.send(place, pacer)?;
            }
        }
        Ok(())
    }

    /// Fills the batch for a socket with the queries that are due.
    fn fill_batch(&mut self, place: usize, pacer: &mut Pacer<'_>, frame: &mut Frame, now: u64) {
        self.batch.clear();
        let slots = &mut self.slots[place];
        let room = self.follow.as_ref().map_or(usize::MAX, |follow| follow.room(pacer));
        for _ in 0..pacer.batch_size(slots.free_count().min(room)) {
            let Some((question, times)) = pacer.next_due(now) else { break };
            let Some(id) = slots.take(times) else { break };
            self.batch.push((id, times));
            self.outgoing.push_with(|slot| frame.write(id, question, place, slot));
        }
        pacer.outstanding += self.batch.len();
    }

    /// Sends the batch. If the system rejects a query, its slot is freed.
    fn send(&mut self, place: usize, pacer: &mut Pacer<'_>) -> Result<(), LoadError> {
        let scheduled = pacer.is_open_loop();
        while self.outgoing.pending() > 0 {
            let first = self.batch.len() - self.outgoing.pending();
            match self.sockets[place].send(&mut self.outgoing) {
                Ok(sent) => {
                    for (_, times) in &self.batch[first..first + sent] {
                        pacer.tally.count_sent(*times, scheduled);
                    }
                }
                Err(error) => {
                    if pacer.handle_io_error(error)? {
                        pacer.outstanding -=
                            usize::from(self.slots[place].release(self.batch[first].0).is_some());
                        self.outgoing.skip_first();
                    }
                }
            }
        }
        Ok(())
    }

    /// Receives the available responses. Waits for responses if no query can be sent in the
    /// meantime. Returns the current time.
    pub(super) fn receive(
        &mut self,
        pacer: &mut Pacer<'_>,
        frame: &mut Frame,
        now: u64,
    ) -> Result<u64, LoadError> {
        let is_allowed = self.follow.as_ref().is_none_or(|follow| follow.room(pacer) > 0);
        let has_room = is_allowed && self.slots.iter().any(|slots| slots.free_count() > 0);
        let wait = pacer.wait(now, has_room);
        let last_received = std::mem::take(&mut pacer.last_received);
        match wait {
            None if pacer.outstanding == 0 => return Ok(pacer.clock()),
            None => {}
            Some(_) => pacer.nap(last_received),
        }
        if self.sockets.len() > 1 || self.follow.is_some() {
            return self.receive_ready(pacer, frame, wait.unwrap_or_default());
        }
        let result = match wait {
            None => self.sockets[0].receive_now(&mut self.incoming),
            // In a closed loop, wait in the receive call itself, which saves a system call.
            Some(_) if !pacer.is_open_loop() => self.sockets[0].receive(&mut self.incoming),
            Some(limit) => {
                self.wait_all(limit).and_then(|()| self.sockets[0].receive_now(&mut self.incoming))
            }
        };
        self.count_received(0, pacer, frame, result)
    }

    /// Waits at most `limit`, and receives from the sockets and connections that are ready. Returns
    /// the current time.
    fn receive_ready(
        &mut self,
        pacer: &mut Pacer<'_>,
        frame: &mut Frame,
        limit: Duration,
    ) -> Result<u64, LoadError> {
        self.wait_all(limit)
            .map_err(|source| LoadError::Exchange { server: pacer.options.server, source })?;
        let mut now = pacer.clock();
        let ready = std::mem::take(&mut self.ready);
        for place in ready.indexes() {
            if let Some(socket) = self.sockets.get(place) {
                let result = socket.receive_now(&mut self.incoming);
                now = self.count_received(place, pacer, frame, result)?;
            } else if let Some(follow) = &mut self.follow {
                now = follow.connections.receive_at(place - self.sockets.len(), pacer, frame, now)?;
            }
        }
        self.ready = ready;
        if let Some(follow) = &mut self.follow {
            follow.send(pacer, frame, now)?;
        }
        Ok(now)
    }

    /// Waits until a socket has a response, at most `limit`.
    fn wait_all(&mut self, limit: Duration) -> io::Result<()> {
        let streams = self.follow.iter_mut().flat_map(|follow| follow.connections.streams());
        self.ready.wait(&self.sockets, streams, limit)
    }

    /// Counts the responses of a receive call on a socket. Returns the current time.
    fn count_received(
        &mut self,
        place: usize,
        pacer: &mut Pacer<'_>,
        frame: &mut Frame,
        result: io::Result<usize>,
    ) -> Result<u64, LoadError> {
        let now = pacer.clock();
        match result {
            Ok(found) => {
                pacer.is_drained &= found < BATCH;
                pacer.last_received += found;
                pacer.last_event = now;
                self.count_answers(place, pacer, frame, now);
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
    fn count_answers(&mut self, place: usize, pacer: &mut Pacer<'_>, frame: &mut Frame, now: u64) {
        let slots = &mut self.slots[place];
        for message in self.incoming.messages() {
            let Some(times) = pacer.match_response(slots, message, now) else { continue };
            let is_followed =
                self.follow.as_mut().is_some_and(|follow| follow.take(pacer, times, now, message));
            if !is_followed {
                pacer.count_answer(place, times, now, message, frame);
            }
        }
    }

    /// Counts queries as lost after the timeout.
    pub(super) fn expire(&mut self, pacer: &mut Pacer<'_>, now: u64) {
        for slots in &mut self.slots {
            pacer.expire(slots, now);
        }
        if let Some(follow) = &mut self.follow {
            follow.expire(pacer, now);
        }
    }
}
