//! The TCP or TLS connections of a thread: pipelined queries with length prefixes (RFC 7766
//! §6.2.1.1 and §8, RFC 7858 §3.3).

use std::collections::VecDeque;

use nonesuch_net::BATCH;
use nonesuch_net::client::{PolledStream, Poller};

use super::connection::ReopenedConnection;
use super::encoder::QueryEncoder;
use super::pacer::Pacer;
use super::slots::QueryTimes;
use super::{LoadError, LoadOptions};

/// Octets that one receive call takes from a connection.
const RECEIVE_SIZE: usize = 1 << 16;

/// The connections of a thread, which take turns in sending.
pub(super) struct Connections {
    connections: Vec<ReopenedConnection>,
    /// Index of the connection for the next batch.
    next: usize,
    /// Maximum number of queries on a connection.
    queries_max: u64,
    ready: Poller,
    /// Indexes of the connections that the last call of `streams` returned, in this order.
    polled: Vec<usize>,
    buffer: Vec<u8>,
}

impl Connections {
    /// Creates the connections of thread `thread`. They are opened when queries are due.
    pub(super) fn new(options: &LoadOptions, thread: usize) -> Self {
        let count = options.connections;
        Self {
            connections: (0..count).map(|index| ReopenedConnection::new(options, thread, index)).collect(),
            next: 0,
            queries_max: if options.queries_per_connection == 0 {
                u64::MAX
            } else {
                options.queries_per_connection
            },
            ready: Poller::default(),
            polled: Vec::with_capacity(count),
            buffer: vec![0; RECEIVE_SIZE],
        }
    }

    /// Sends the queries that are due, at most one batch on each connection.
    pub(super) fn send_due(
        &mut self,
        pacer: &mut Pacer<'_>,
        encoder: &mut QueryEncoder,
        now: u64,
    ) -> Result<(), LoadError> {
        for _ in 0..self.connections.len() {
            if !pacer.is_due(now) {
                break;
            }
            let index = self.next;
            self.next = (index + 1) % self.connections.len();
            let connection = &mut self.connections[index];
            let count = pacer.batch_size(connection.free_slots(self.queries_max, now));
            if count > 0 && connection.open(pacer, now)? {
                connection.fill(count, pacer, encoder, now);
                connection.flush(pacer, now)?;
            }
        }
        Ok(())
    }

    /// Sends waiting queries whose responses over UDP were truncated, as many as the connections
    /// have free slots for. Removes them from `waiting`.
    pub(super) fn send_retries(
        &mut self,
        waiting: &mut VecDeque<(QueryTimes, Vec<u8>)>,
        pacer: &mut Pacer<'_>,
        encoder: &QueryEncoder,
        now: u64,
    ) -> Result<(), LoadError> {
        for _ in 0..self.connections.len() {
            if waiting.is_empty() {
                break;
            }
            let index = self.next;
            self.next = (index + 1) % self.connections.len();
            let connection = &mut self.connections[index];
            let count = connection.free_slots(self.queries_max, now).min(waiting.len()).min(BATCH);
            if count > 0 && connection.open(pacer, now)? {
                connection.fill_with_retries(waiting.drain(..count), encoder);
                connection.flush(pacer, now)?;
            }
        }
        Ok(())
    }

    /// Receives the available responses, and waits for them as
    /// [`UdpSockets::receive`](super::udp::UdpSockets::receive) does. Returns the current time.
    pub(super) fn receive(
        &mut self,
        pacer: &mut Pacer<'_>,
        encoder: &mut QueryEncoder,
        now: u64,
    ) -> Result<u64, LoadError> {
        let has_free_slot =
            self.connections.iter().any(|connection| connection.free_slots(self.queries_max, now) > 0);
        let wait = pacer.wait_time(now, has_free_slot);
        let last_received = std::mem::take(&mut pacer.last_received);
        match wait {
            None if pacer.outstanding == 0 => return Ok(pacer.clock()),
            None => {}
            Some(_) => pacer.nap_if_quiet(last_received),
        }
        let mut ready = std::mem::take(&mut self.ready);
        ready
            .wait([], self.streams(), wait.unwrap_or_default())
            .map_err(|source| LoadError::Exchange { server: pacer.options.server, source })?;
        let mut now = pacer.clock();
        for index in ready.indexes() {
            now = self.receive_at(index, pacer, encoder, now)?;
        }
        self.ready = ready;
        Ok(now)
    }

    /// Returns the open connections, and whether they have octets to send.
    pub(super) fn streams(&mut self) -> impl Iterator<Item = PolledStream<'_>> {
        self.polled.clear();
        let open = (0..).zip(&self.connections).filter(|(_, connection)| connection.socket.is_some());
        self.polled.extend(open.map(|(index, _)| index));
        self.connections.iter().filter_map(|connection| {
            let stream = connection.socket.as_ref()?;
            let has_output = connection.has_output() || stream.has_unsent();
            Some(PolledStream { stream, has_output })
        })
    }

    /// Sends to and receives from the connection that [`streams`](Self::streams) returned at
    /// position `index`. Returns the current time.
    pub(super) fn receive_at(
        &mut self,
        index: usize,
        pacer: &mut Pacer<'_>,
        encoder: &mut QueryEncoder,
        now: u64,
    ) -> Result<u64, LoadError> {
        let Some(connection) = self.polled.get(index).and_then(|index| self.connections.get_mut(*index))
        else {
            return Ok(now);
        };
        connection.flush(pacer, now)?;
        let now = connection.receive(&mut self.buffer, pacer, encoder)?;
        connection.close_if_used_up(self.queries_max);
        Ok(now)
    }

    /// Counts queries as lost after the timeout.
    pub(super) fn expire(&mut self, pacer: &mut Pacer<'_>, now: u64) {
        for connection in &mut self.connections {
            pacer.expire(&mut connection.slots, now);
            connection.close_if_used_up(self.queries_max);
        }
    }
}
