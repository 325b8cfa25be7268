//! The TCP or TLS connections of a thread: pipelined queries with length prefixes (RFC 7766
//! §6.2.1.1 and §8, RFC 7858 §3.3).

use std::collections::VecDeque;

use nonesuch_net::BATCH;
use nonesuch_net::client::{ReadySockets, StreamClientSocket};

use super::frame::Frame;
use super::lane::Lane;
use super::pacer::Pacer;
use super::slots::Times;
use super::{LoadError, LoadOptions};

/// Octets that one receive call takes from a connection.
const RECEIVE_SIZE: usize = 1 << 16;

/// The connections of a thread.
pub(super) struct Connections {
    lanes: Vec<Lane>,
    /// Index of the lane for the next batch.
    next: usize,
    /// Maximum number of queries on a connection.
    queries_max: u64,
    ready: ReadySockets,
    /// Indexes of the lanes in the last call of `streams`.
    polled: Vec<usize>,
    buffer: Vec<u8>,
}

impl Connections {
    /// Creates the lanes of thread `index`. The connections are opened when queries are due.
    pub(super) fn new(options: &LoadOptions, index: usize) -> Self {
        let count = options.connections;
        Self {
            lanes: (0..count).map(|place| Lane::new(options, index, place)).collect(),
            next: 0,
            queries_max: if options.queries_per_connection == 0 {
                u64::MAX
            } else {
                options.queries_per_connection
            },
            ready: ReadySockets::default(),
            polled: Vec::with_capacity(count),
            buffer: vec![0; RECEIVE_SIZE],
        }
    }

    /// Sends the queries that are due, at most one batch on each connection.
    pub(super) fn send_due(
        &mut self,
        pacer: &mut Pacer<'_>,
        frame: &mut Frame,
        now: u64,
    ) -> Result<(), LoadError> {
        for _ in 0..self.lanes.len() {
            if !pacer.is_due(now) {
                break;
            }
            let place = self.next;
            self.next = (place + 1) % self.lanes.len();
            let lane = &mut self.lanes[place];
            let count = pacer.batch_size(lane.room(self.queries_max, now));
            if count > 0 && lane.open(pacer, now)? {
                lane.fill(count, pacer, frame, now);
                lane.flush(pacer, now)?;
            }
        }
        Ok(())
    }

    /// Sends queries again that were answered with TC over UDP, as far as there is room.
    pub(super) fn send_again(
        &mut self,
        waiting: &mut VecDeque<(Times, Vec<u8>)>,
        pacer: &mut Pacer<'_>,
        frame: &Frame,
        now: u64,
    ) -> Result<(), LoadError> {
        for _ in 0..self.lanes.len() {
            if waiting.is_empty() {
                break;
            }
            let place = self.next;
            self.next = (place + 1) % self.lanes.len();
            let lane = &mut self.lanes[place];
            let count = lane.room(self.queries_max, now).min(waiting.len()).min(BATCH);
            if count > 0 && lane.open(pacer, now)? {
                lane.fill_again(waiting.drain(..count), frame);
                lane.flush(pacer, now)?;
            }
        }
        Ok(())
    }

    /// Receives the available responses, and waits for them as
    /// [`Datagrams::receive`](super::udp::Datagrams::receive) does. Returns the current time.
    pub(super) fn receive(
        &mut self,
        pacer: &mut Pacer<'_>,
        frame: &mut Frame,
        now: u64,
    ) -> Result<u64, LoadError> {
        let has_room = self.lanes.iter().any(|lane| lane.room(self.queries_max, now) > 0);
        let wait = pacer.wait(now, has_room);
        let last_received = std::mem::take(&mut pacer.last_received);
        match wait {
            None if pacer.outstanding == 0 => return Ok(pacer.clock()),
            None => {}
            Some(_) => pacer.nap(last_received),
        }
        let mut ready = std::mem::take(&mut self.ready);
        ready
            .wait([], self.streams(), wait.unwrap_or_default())
            .map_err(|source| LoadError::Exchange { server: pacer.options.server, source })?;
        let mut now = pacer.clock();
        for index in ready.indexes() {
            now = self.receive_at(index, pacer, frame, now)?;
        }
        self.ready = ready;
        Ok(now)
    }

    /// Returns the open connections, and whether they have octets to send.
    pub(super) fn streams(&mut self) -> impl Iterator<Item = (&StreamClientSocket, bool)> {
        self.polled.clear();
        let places = (0..).zip(&self.lanes).filter(|(_, lane)| lane.socket.is_some());
        self.polled.extend(places.map(|(place, _)| place));
        self.lanes.iter().filter_map(|lane| {
            lane.socket.as_ref().map(|socket| (socket, lane.has_output() || socket.has_unsent()))
        })
    }

    /// Sends to and receives from connection `index` of the last call of
    /// [`streams`](Self::streams). Returns the current time.
    pub(super) fn receive_at(
        &mut self,
        index: usize,
        pacer: &mut Pacer<'_>,
        frame: &mut Frame,
        now: u64,
    ) -> Result<u64, LoadError> {
        let Some(lane) = self.polled.get(index).and_then(|place| self.lanes.get_mut(*place)) else {
            return Ok(now);
        };
        lane.flush(pacer, now)?;
        let now = lane.receive(&mut self.buffer, pacer, frame)?;
        lane.close_if_used_up(self.queries_max);
        Ok(now)
    }

    /// Counts queries as lost after the timeout.
    pub(super) fn expire(&mut self, pacer: &mut Pacer<'_>, now: u64) {
        for lane in &mut self.lanes {
            pacer.expire(&mut lane.slots, now);
            lane.close_if_used_up(self.queries_max);
        }
    }
}
