//! The UDP sockets of a thread. They send and receive in batches.

use std::io;
use std::time::Duration;

use nonesuch_net::client::{ReadySockets, UdpClientSocket};
use nonesuch_net::{BATCH, NetError, ReceiveBatch, SendBatch};

use super::frame::Frame;
use super::pacer::{MAX_WAIT, Pacer, share};
use super::slots::{Slots, Times};
use super::{LoadError, LoadOptions};

/// Octets of a receive buffer. Longer responses are truncated, but their header is complete. The
/// payload size in EDNS is usually smaller.
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
            incoming: ReceiveBatch::new(BATCH, RESPONSE_SIZE),
            batch: Vec::with_capacity(BATCH),
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
        for _ in 0..pacer.batch_size(slots.free_count()) {
            let Some((question, times)) = pacer.next_due(now) else { break };
            let Some(id) = slots.take(times) else { break };
            self.batch.push((id, times));
            self.outgoing.push_with(|slot| frame.write(id, question, slot));
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
    pub(super) fn receive(&mut self, pacer: &mut Pacer<'_>, now: u64) -> Result<u64, LoadError> {
        let has_room = self.slots.iter().any(|slots| slots.free_count() > 0);
        let wait = pacer.wait(now, has_room);
        let last_received = std::mem::take(&mut pacer.last_received);
        match wait {
            None if pacer.outstanding == 0 => return Ok(pacer.clock()),
            None => {}
            Some(_) => pacer.nap(last_received),
        }
        if self.sockets.len() == 1 {
            let result = match wait {
                None => self.sockets[0].receive_now(&mut self.incoming),
                // In a closed loop, wait in the receive call itself, which saves a system call.
                Some(_) if !pacer.is_open_loop() => self.sockets[0].receive(&mut self.incoming),
                Some(limit) => {
                    self.wait_all(limit).and_then(|()| self.sockets[0].receive_now(&mut self.incoming))
                }
            };
            return self.count_received(0, pacer, result);
        }
        self.wait_all(wait.unwrap_or_default())
            .map_err(|source| LoadError::Exchange { server: pacer.options.server, source })?;
        let mut now = pacer.clock();
        let ready = std::mem::take(&mut self.ready);
        for place in ready.places() {
            let result = self.sockets[place].receive_now(&mut self.incoming);
            now = self.count_received(place, pacer, result)?;
        }
        self.ready = ready;
        Ok(now)
    }

    /// Waits until a socket has a response, at most `limit`.
    fn wait_all(&mut self, limit: Duration) -> io::Result<()> {
        self.ready.wait(&self.sockets, [], limit)
    }

    /// Counts the responses of a receive call on a socket. Returns the current time.
    fn count_received(
        &mut self,
        place: usize,
        pacer: &mut Pacer<'_>,
        result: io::Result<usize>,
    ) -> Result<u64, LoadError> {
        let now = pacer.clock();
        match result {
            Ok(found) => {
                pacer.is_drained &= found < BATCH;
                pacer.last_received += found;
                pacer.last_event = now;
                self.count_answers(place, pacer, now);
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
    fn count_answers(&mut self, place: usize, pacer: &mut Pacer<'_>, now: u64) {
        let slots = &mut self.slots[place];
        for message in self.incoming.messages() {
            if let Some(times) = pacer.match_response(slots, message, now) {
                pacer.tally.count_answer(times, now, message);
            }
        }
    }

    /// Counts queries as lost after the timeout.
    pub(super) fn expire(&mut self, pacer: &mut Pacer<'_>, now: u64) {
        for slots in &mut self.slots {
            pacer.expire(slots, now);
        }
    }
}
