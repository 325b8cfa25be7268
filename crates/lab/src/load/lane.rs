//! One TCP or TLS connection at a time, which is opened again after its end.

use std::io;
use std::net::IpAddr;

use nonesuch_net::client::StreamClientSocket;
use nonesuch_net::{ClientError, ClientPhase, Transport};

use super::frame::Frame;
use super::framing::{self, Framing};
use super::pacer::{Pacer, share};
use super::slots::{Slots, Times};
use super::{LoadError, LoadOptions, Sources};

/// Time before a connection is opened again that failed or that the server closed early, in ns.
const RETRY_AFTER: u64 = 10_000_000;

/// One connection at a time, and its outstanding queries.
pub(super) struct Lane {
    /// Index of the lane.
    place: usize,
    /// Whether the queries were answered with TC over UDP.
    is_follow: bool,
    pub(super) socket: Option<StreamClientSocket>,
    /// Local address; `None`: the system selects it.
    source: Option<IpAddr>,
    pub(super) slots: Slots,
    /// Queries that are not sent completely yet: the octets from `sent` on wait.
    output: Vec<u8>,
    sent: usize,
    framing: Framing,
    /// Number of queries on the current connection.
    queries: u64,
    /// Whether the current connection has received a response.
    is_useful: bool,
    /// Time before which no connection is opened, in ns since the start of the run.
    open_from: u64,
}

impl Lane {
    /// Creates lane `place` of thread `index`.
    pub(super) fn new(options: &LoadOptions, index: usize, place: usize) -> Self {
        let count = options.connections;
        let window = share(options.outstanding as u64, index, options.threads);
        let source = |sources: Sources| sources.address(index * count + place, options.threads * count);
        Self {
            place,
            is_follow: options.follow_truncated,
            socket: None,
            source: options.sources.map(source),
            slots: Slots::new(share(window, place, count) as usize),
            output: Vec::new(),
            sent: 0,
            framing: Framing::default(),
            queries: 0,
            is_useful: false,
            open_from: 0,
        }
    }

    pub(super) const fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Returns the number of queries that can be added. While a connection accepts no more octets,
    /// none is added, which limits the output to one batch.
    pub(super) fn room(&self, queries_max: u64, now: u64) -> usize {
        if self.has_output() || (self.socket.is_none() && now < self.open_from) {
            return 0;
        }
        let left = usize::try_from(queries_max - self.queries).unwrap_or(usize::MAX);
        self.slots.free_count().min(left)
    }

    /// Begins to open a connection, if there is none. Returns whether there is one.
    pub(super) fn open(&mut self, pacer: &mut Pacer<'_>, now: u64) -> Result<bool, LoadError> {
        if self.socket.is_none() {
            let options = pacer.options;
            let tls = options.tls.as_ref().filter(|_| options.transport == Transport::Tls);
            match StreamClientSocket::connect(self.source, options.server, tls) {
                Ok(socket) => {
                    self.socket = Some(socket);
                    pacer.tally.connections += 1;
                }
                Err(error) => self.fail(error, ClientPhase::Connect, pacer, now)?,
            }
        }
        Ok(self.socket.is_some())
    }

    /// Adds at most `count` queries to the output, if they are due.
    pub(super) fn fill(&mut self, count: usize, pacer: &mut Pacer<'_>, frame: &mut Frame, now: u64) {
        let scheduled = pacer.is_open_loop();
        for _ in 0..count {
            let Some((question, times)) = pacer.next_due(now) else { break };
            let Some(id) = self.slots.take(times) else { break };
            framing::push(&mut self.output, frame.size(), |slot| frame.write(id, question, self.place, slot));
            pacer.tally.count_sent(times, scheduled);
            pacer.outstanding += 1;
            self.queries += 1;
        }
        pacer.last_event = now;
    }

    /// Adds queries with the given times and questions to the output.
    pub(super) fn fill_again(&mut self, queries: impl Iterator<Item = (Times, Vec<u8>)>, frame: &Frame) {
        for (times, question) in queries {
            let Some(id) = self.slots.take(times) else { break };
            framing::push(&mut self.output, frame.size(), |slot| frame.write_again(id, &question, slot));
            self.queries += 1;
        }
    }

    /// Sends the waiting octets, as far as the connection accepts them.
    pub(super) fn flush(&mut self, pacer: &mut Pacer<'_>, now: u64) -> Result<(), LoadError> {
        let Some(socket) = &mut self.socket else { return Ok(()) };
        while self.sent < self.output.len() {
            match socket.send(&self.output[self.sent..]) {
                Ok(count) => self.sent += count,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return self.fail(error, ClientPhase::Send, pacer, now),
            }
        }
        self.output.clear();
        self.sent = 0;
        match socket.flush() {
            Ok(()) => Ok(()),
            Err(error) => self.fail(error, ClientPhase::Send, pacer, now),
        }
    }

    /// Receives and counts the available responses. Returns the current time.
    pub(super) fn receive(
        &mut self,
        buffer: &mut [u8],
        pacer: &mut Pacer<'_>,
        frame: &mut Frame,
    ) -> Result<u64, LoadError> {
        let mut now = pacer.clock();
        while let Some(socket) = &mut self.socket {
            let found = socket.receive(buffer);
            now = pacer.clock();
            match found {
                Ok(0) => self.fail(io::ErrorKind::UnexpectedEof.into(), ClientPhase::Receive, pacer, now)?,
                Ok(octets) => {
                    self.count_answers(&buffer[..octets], pacer, frame, now);
                    if octets < buffer.len() {
                        break;
                    }
                }
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => break,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => self.fail(error, ClientPhase::Receive, pacer, now)?,
            }
        }
        Ok(now)
    }

    fn count_answers(&mut self, octets: &[u8], pacer: &mut Pacer<'_>, frame: &mut Frame, now: u64) {
        self.is_useful = true;
        pacer.last_event = now;
        let (place, is_follow, slots) = (self.place, self.is_follow, &mut self.slots);
        self.framing.split(octets, |message| {
            pacer.last_received += 1;
            if let Some(times) = pacer.match_response(slots, message, now) {
                if is_follow {
                    pacer.tally.count_followed(times, message);
                }
                pacer.count_answer(place, times, now, message, frame);
            }
        });
    }

    /// Closes the connection if all its queries are sent and answered or lost.
    pub(super) fn close_if_used_up(&mut self, queries_max: u64) {
        if self.queries >= queries_max && self.slots.outstanding() == 0 {
            self.close();
        }
    }

    fn close(&mut self) {
        self.socket = None;
        self.output.clear();
        self.sent = 0;
        self.framing = Framing::default();
        self.queries = 0;
        self.is_useful = false;
    }

    /// Handles the end of the connection by the server or by an error. Its outstanding queries are
    /// lost. A server may close connections at any time (RFC 7766 §6.2.4), but an error before the
    /// first response of the load ends the load.
    fn fail(
        &mut self,
        error: io::Error,
        phase: ClientPhase,
        pacer: &mut Pacer<'_>,
        now: u64,
    ) -> Result<(), LoadError> {
        let is_closed = matches!(
            error.kind(),
            io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe
        );
        let (server, transport) = (pacer.options.server, pacer.options.transport);
        match error.kind() {
            _ if is_closed || pacer.answered => {}
            io::ErrorKind::ConnectionRefused => return Err(LoadError::NotListening { server, transport }),
            _ => return Err(ClientError::from_io(server, transport, phase, error).into()),
        }
        let is_early = self.slots.outstanding() > 0 || !self.is_useful;
        if is_early {
            pacer.tally.connections_failed += 1;
            self.open_from = now + RETRY_AFTER;
        }
        pacer.give_up_before(&mut self.slots, u64::MAX);
        self.close();
        Ok(())
    }
}
