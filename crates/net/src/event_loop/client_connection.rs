//! A connection of a client: reads queries, and writes replies in the order in which they are ready
//! (RFC 7766 section 6.2.1.1).

use super::buffer::{Input, Output};
use super::client_stream::ClientStream;
use super::queries::{Origin, Queries};
use super::slots::Key;
use crate::error::Transport;
use crate::framing::TooLong;
use crate::machine::{ClientQuery, Event, Machine, Now};
use crate::sys::Interest;
use crate::tcp::TcpOptions;
use crate::tcp::table::{ConnectionEntry, EndReason, Phase};
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::rc::Rc;
use std::task::Waker;

/// Maximum octets of one read.
const READ_SIZE: usize = 1 << 14;
/// Maximum octets of replies that wait for the peer. Above it, no further query is read. Otherwise,
/// the server would collect replies for a peer that does not read.
const OUTPUT_MAX: usize = 1 << 15;
/// Octets that a peer must acknowledge within the write timeout.
const PROGRESS_OCTETS: u64 = 1 << 14;

/// A connection of a client.
pub(super) struct ClientConnection {
    stream: ClientStream,
    peer: SocketAddr,
    /// Identifier in the connection table.
    pub(super) id: u64,
    pub(super) entry: Rc<ConnectionEntry>,
    /// Adds the connection to the list of those with a command.
    pub(super) waker: Waker,
    input: Input,
    output: Output,
    /// Number of queries without a reply.
    in_flight: usize,
    /// Octets of replies that the transport has accepted since the start of the connection.
    accepted_octets: u64,
    /// The value of [`progress`](Self::progress) when the time of the table entry was last
    /// restarted.
    last_progress: u64,
    has_peer_closed: bool,
    /// Why the connection ends after the replies are sent. If it is set, nothing more is read.
    pending_end: Option<EndReason>,
    /// Whether a complete message has arrived since the start of the connection.
    has_message: bool,
    /// Whether a complete message has arrived since the table entry was last updated.
    has_new_message: bool,
    /// What the loop watches the connection for.
    pub(super) interest: Interest,
    /// Whether it waits for its turn to be read.
    pub(super) is_queued: bool,
    /// Whether it has new replies.
    pub(super) has_replies: bool,
}

impl ClientConnection {
    pub(super) fn new(
        stream: ClientStream,
        peer: SocketAddr,
        id: u64,
        entry: Rc<ConnectionEntry>,
        waker: Waker,
    ) -> Self {
        Self {
            stream,
            peer,
            id,
            entry,
            waker,
            input: Input::default(),
            output: Output::default(),
            in_flight: 0,
            accepted_octets: 0,
            last_progress: 0,
            has_peer_closed: false,
            pending_end: None,
            has_message: false,
            has_new_message: false,
            interest: Interest::READS,
            is_queued: false,
            has_replies: false,
        }
    }

    pub(super) const fn transport(&self) -> Transport {
        self.stream.transport()
    }

    /// Whether another query may be read.
    pub(super) fn has_room(&self, options: &TcpOptions) -> bool {
        self.output.unwritten() < OUTPUT_MAX
            && self.in_flight < options.in_flight_max
            && self.pending_end.is_none()
    }

    /// Whether a query has arrived that can be passed to the machine.
    pub(super) fn has_query(&self, options: &TcpOptions) -> bool {
        self.has_room(options) && self.input.has_message()
    }

    /// Ends the connection for this reason after its replies are sent.
    pub(super) fn end_after_replies(&mut self, end: EndReason) {
        self.pending_end = self.pending_end.or(Some(end));
    }

    /// Reads once, if no complete message was read before.
    pub(super) fn read(&mut self, options: &TcpOptions, buffer: &mut [u8]) -> Result<(), EndReason> {
        if self.has_peer_closed || !self.has_room(options) || self.input.has_message() {
            return Ok(());
        }
        let length = buffer.len().min(READ_SIZE);
        let buffer = buffer.get_mut(..length).unwrap_or_default();
        let has_closed = self.stream.read(buffer, &mut self.input).map_err(|_| EndReason::Broken)?;
        self.has_peer_closed |= has_closed;
        Ok(())
    }

    /// Returns the cost of the last read, in queries.
    pub(super) fn take_read_cost(&mut self) -> usize {
        self.stream.take_read_cost()
    }

    /// Passes at most `limit` queries to the machine. Returns their number.
    pub(super) fn pass_queries<M: Machine>(
        &mut self,
        key: Key,
        limit: usize,
        options: &TcpOptions,
        queries: &mut Queries,
        machine: &mut M,
        now: Now,
    ) -> usize {
        let mut passed = 0;
        while passed < limit && self.has_room(options) && queries.has_room() {
            let Some(message) = self.input.next_message() else { break };
            // An empty message has not even a header, so the framing of the peer is wrong.
            if message.is_empty() || message.len() > options.message_max {
                self.pending_end = Some(EndReason::Broken);
                break;
            }
            let Some(token) = queries.insert(Origin::Connection(key)) else { break };
            (self.has_message, self.has_new_message) = (true, true);
            self.in_flight += 1;
            passed += 1;
            let query = ClientQuery { token, client: self.peer, transport: self.stream.transport(), message };
            machine.handle_event(Event::Query(query), now);
        }
        if self.input.announced_length().is_some_and(|length| length > options.message_max) {
            self.end_after_replies(EndReason::Broken);
        }
        self.input.trim();
        passed
    }

    /// Adds the reply to a query, which [`write`](Self::write) writes.
    ///
    /// # Errors
    /// The reply is too long.
    pub(super) fn push_reply(&mut self, reply: &[u8]) -> Result<(), TooLong> {
        self.in_flight = self.in_flight.saturating_sub(1);
        self.output.push(reply)
    }

    /// Records that there is no reply to a query.
    pub(super) fn drop_query(&mut self) {
        self.in_flight = self.in_flight.saturating_sub(1);
    }

    /// Writes as many octets as the transport accepts. Returns the number of messages written.
    pub(super) fn write(&mut self) -> Result<u64, EndReason> {
        let written = self.output.write(|octets| {
            let octets = self.stream.write(octets)?;
            self.accepted_octets += octets as u64;
            Ok(octets)
        });
        written.and_then(|messages| self.stream.flush().map(|()| messages)).map_err(|_| EndReason::Broken)
    }

    /// Whether the system must accept octets.
    fn is_writing(&self) -> bool {
        self.output.unwritten() > 0 || self.stream.has_unsent()
    }

    /// Announces to the peer that the end of the connection is intended.
    pub(super) fn signal_end(&mut self) {
        self.stream.signal_end();
    }

    /// Why the connection ends now, if it does: there is nothing to send, and no reply is expected.
    pub(super) fn end(&self) -> Option<EndReason> {
        if self.is_writing() || self.in_flight > 0 {
            return None;
        }
        if self.pending_end.is_some() {
            return self.pending_end;
        }
        // The rest of the input is an incomplete message.
        let end = if self.input.is_empty() { EndReason::Orderly } else { EndReason::Broken };
        (self.has_peer_closed && !self.input.has_message()).then_some(end)
    }

    /// What the loop must watch the connection for.
    pub(super) fn wanted_interest(&self, options: &TcpOptions) -> Interest {
        Interest {
            reads: !self.has_peer_closed && self.has_room(options) && !self.input.has_message(),
            writes: self.is_writing(),
        }
    }

    /// Octets in the buffers.
    pub(super) fn buffered(&self) -> usize {
        self.input.capacity() + self.output.capacity() + self.stream.buffered()
    }

    /// Records the phase of the connection and its start time in the table.
    pub(super) fn update_entry(&mut self) {
        let phase = match () {
            () if self.is_writing() => Phase::Writing,
            () if !self.has_message => Phase::FirstMessage,
            () if self.is_within_message() => Phase::Message,
            () if self.in_flight > 0 || !self.input.is_empty() => Phase::Answering,
            () => Phase::Idle,
        };
        let progress = if phase == Phase::Writing { self.progress() } else { 0 };
        // Only complete messages, or a fixed amount of acknowledged replies, extend the time limit.
        // Otherwise, a peer could prolong the connection octet by octet.
        let has_progressed = match phase {
            Phase::Writing => progress >= self.last_progress + PROGRESS_OCTETS,
            _ => self.has_new_message,
        };
        if has_progressed || self.entry.phase.get() != phase {
            self.entry.begin_phase(phase);
            self.last_progress = progress;
        }
        self.has_new_message = false;
    }

    /// Whether a part of a message was read and the rest is expected.
    fn is_within_message(&self) -> bool {
        !self.input.is_empty() && !self.input.has_message() && self.pending_end.is_none()
    }

    /// Octets that the peer has acknowledged, or, if the system does not count them, octets that the
    /// transport has accepted.
    fn progress(&self) -> u64 {
        self.stream.acknowledged_octets().unwrap_or(self.accepted_octets)
    }
}

impl AsFd for ClientConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.stream.as_fd()
    }
}
