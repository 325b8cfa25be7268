//! A TCP or TLS connection that is opened again after its end.

use std::io;
use std::net::IpAddr;

use nonesuch_net::client::StreamClientSocket;
use nonesuch_net::{ClientError, ClientPhase, Transport};

use super::encoder::QueryEncoder;
use super::length_prefix::{self, MessageSplitter};
use super::pacer::{Pacer, equal_share};
use super::slots::{QueryTimes, Slots};
use super::{LoadError, LoadOptions, SourcePrefix};

/// Delay before a new connection replaces one that failed or that the server closed early, in ns.
const REOPEN_DELAY_NS: u64 = 10_000_000;

/// A connection that is opened again after its end, and its outstanding queries.
pub(super) struct ReopenedConnection {
    /// Index among the connections of the thread.
    index: usize,
    /// Whether the queries are repeated after truncated responses over UDP.
    retries_truncated: bool,
    /// The current connection; `None` before it is opened and after its end.
    pub(super) socket: Option<StreamClientSocket>,
    /// Local address; `None`: the system selects it.
    source: Option<IpAddr>,
    pub(super) slots: Slots,
    /// The encoded queries that are not sent completely. The octets from `sent` on still have to be
    /// sent.
    output: Vec<u8>,
    sent: usize,
    splitter: MessageSplitter,
    /// Number of queries on the current connection.
    queries: u64,
    /// Whether the current connection has received any octets.
    has_received: bool,
    /// Time before which no connection is opened, in ns since the start of the run.
    open_from: u64,
}

impl ReopenedConnection {
    /// Creates connection `index` of thread `thread`. It is not opened yet.
    pub(super) fn new(options: &LoadOptions, thread: usize, index: usize) -> Self {
        let count = options.connections;
        let window = equal_share(options.outstanding as u64, thread, options.threads);
        let source = |sources: SourcePrefix| sources.address(thread * count + index, options.threads * count);
        Self {
            index,
            retries_truncated: options.follow_truncated,
            socket: None,
            source: options.sources.map(source),
            slots: Slots::new(equal_share(window, index, count) as usize),
            output: Vec::new(),
            sent: 0,
            splitter: MessageSplitter::default(),
            queries: 0,
            has_received: false,
            open_from: 0,
        }
    }

    pub(super) const fn has_output(&self) -> bool {
        self.sent < self.output.len()
    }

    /// Returns the number of queries that [`fill`](Self::fill) can add. It is 0 while octets wait
    /// to be sent, so that the output never has more than one batch, and during the delay after a
    /// failure. `queries_max` is the maximum number of queries on one connection.
    pub(super) fn free_slots(&self, queries_max: u64, now: u64) -> usize {
        if self.has_output() || (self.socket.is_none() && now < self.open_from) {
            return 0;
        }
        let until_close = usize::try_from(queries_max - self.queries).unwrap_or(usize::MAX);
        self.slots.free_count().min(until_close)
    }

    /// Starts to open a connection unless it is open. Returns false if that fails; the failure is
    /// then counted. An error before the first response of the load is returned.
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

    /// Adds the queries that are due to the output, at most `count`.
    pub(super) fn fill(&mut self, count: usize, pacer: &mut Pacer<'_>, encoder: &mut QueryEncoder, now: u64) {
        let scheduled = pacer.is_open_loop();
        for _ in 0..count {
            let Some((question, times)) = pacer.next_due(now) else { break };
            let Some(id) = self.slots.allocate(times) else { break };
            length_prefix::push_message(&mut self.output, encoder.max_query_size(), |slot| {
                encoder.encode(id, question, self.index, slot)
            });
            pacer.tally.count_sent(times, scheduled);
            pacer.outstanding += 1;
            self.queries += 1;
        }
        pacer.last_event = now;
    }

    /// Adds queries that had truncated responses over UDP to the output, with their times and
    /// questions. There must be a free slot for each of them.
    pub(super) fn fill_with_retries(
        &mut self,
        queries: impl Iterator<Item = (QueryTimes, Vec<u8>)>,
        encoder: &QueryEncoder,
    ) {
        for (times, question) in queries {
            let Some(id) = self.slots.allocate(times) else { break };
            length_prefix::push_message(&mut self.output, encoder.max_query_size(), |slot| {
                encoder.encode_without_label(id, &question, slot)
            });
            self.queries += 1;
        }
    }

    /// Sends the octets of the output that the connection accepts now.
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
        encoder: &mut QueryEncoder,
    ) -> Result<u64, LoadError> {
        let mut now = pacer.clock();
        while let Some(socket) = &mut self.socket {
            let found = socket.receive(buffer);
            now = pacer.clock();
            match found {
                Ok(0) => self.fail(io::ErrorKind::UnexpectedEof.into(), ClientPhase::Receive, pacer, now)?,
                Ok(octets) => {
                    self.count_answers(&buffer[..octets], pacer, encoder, now);
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

    fn count_answers(&mut self, octets: &[u8], pacer: &mut Pacer<'_>, encoder: &mut QueryEncoder, now: u64) {
        self.has_received = true;
        pacer.last_event = now;
        let (index, retries_truncated, slots) = (self.index, self.retries_truncated, &mut self.slots);
        self.splitter.split(octets, |message| {
            pacer.last_received += 1;
            if let Some(times) = pacer.match_response(slots, message, now) {
                if retries_truncated {
                    pacer.tally.count_followed(times, message);
                }
                pacer.count_answer(index, times, now, message, encoder);
            }
        });
    }

    /// Closes the connection if it has carried `queries_max` queries, and all are answered or lost.
    pub(super) fn close_if_used_up(&mut self, queries_max: u64) {
        if self.queries >= queries_max && self.slots.outstanding() == 0 {
            self.close();
        }
    }

    fn close(&mut self) {
        self.socket = None;
        self.output.clear();
        self.sent = 0;
        self.splitter = MessageSplitter::default();
        self.queries = 0;
        self.has_received = false;
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
            _ if is_closed || pacer.has_response => {}
            io::ErrorKind::ConnectionRefused => return Err(LoadError::NotListening { server, transport }),
            _ => return Err(ClientError::from_io(server, transport, phase, error).into()),
        }
        let is_early = self.slots.outstanding() > 0 || !self.has_received;
        if is_early {
            pacer.tally.connections_failed += 1;
            self.open_from = now + REOPEN_DELAY_NS;
        }
        pacer.count_lost_before(&mut self.slots, u64::MAX);
        self.close();
        Ok(())
    }
}
