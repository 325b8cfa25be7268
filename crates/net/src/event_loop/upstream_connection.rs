//! A connection to a server, with pipelined queries (RFC 7766 section 6.2.1.1). Responses arrive in
//! any order; each belongs to the query with its message ID.

use super::buffer::{Input, Output};
use crate::client::StreamClientSocket;
use crate::framing::TooLong;
use crate::machine::ExchangeId;
use crate::sys::{Interest, Readiness};
use std::collections::HashMap;
use std::io;
use std::net::SocketAddr;
use std::os::fd::{AsFd, BorrowedFd};
use std::time::{Duration, Instant};

/// The server sent a message that answers no query, or wrong framing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Violation;

/// A message of a server, with its exchange, or with `None` if the exchange has ended.
type Response<'m> = (Option<ExchangeId>, &'m [u8]);

/// A query on a connection.
#[derive(Debug)]
struct Pending {
    /// `None`: the exchange has ended without a response, which may still arrive. Until then, its ID
    /// is in use, so that the response is not taken for that of another query.
    exchange: Option<ExchangeId>,
    sent_at: Instant,
    is_answered: bool,
}

/// A connection to a server.
pub(super) struct UpstreamConnection {
    socket: StreamClientSocket,
    pub(super) server: SocketAddr,
    /// Whether the connection is established.
    is_open: bool,
    input: Input,
    output: Output,
    /// The queries by message ID.
    pending: HashMap<u16, Pending>,
    /// Number of exchanges that have not ended.
    active: usize,
    /// When the last exchange ended.
    pub(super) idle_since: Instant,
    last_received_at: Option<Instant>,
    /// Whether an exchange ended before the server sent anything after its query. The connection may
    /// be dead, so no further query is sent over it.
    is_suspect: bool,
    /// What the loop watches the connection for.
    pub(super) interest: Interest,
}

impl UpstreamConnection {
    /// Begins to open a connection.
    pub(super) fn open(server: SocketAddr, now: Instant) -> io::Result<Self> {
        Ok(Self {
            socket: StreamClientSocket::connect(None, server, None)?,
            server,
            is_open: false,
            input: Input::default(),
            output: Output::default(),
            pending: HashMap::new(),
            active: 0,
            idle_since: now,
            last_received_at: None,
            is_suspect: false,
            // It becomes writable when it is open.
            interest: Interest { reads: true, writes: true },
        })
    }

    /// Whether a query with this message ID can be sent.
    pub(super) fn accepts(&self, id: u16, pipeline_max: usize) -> bool {
        !self.is_suspect && self.pending.len() < pipeline_max && !self.pending.contains_key(&id)
    }

    /// Adds a query, which [`flush`](Self::flush) sends.
    pub(super) fn push(
        &mut self,
        exchange: ExchangeId,
        id: u16,
        message: &[u8],
        now: Instant,
    ) -> Result<(), TooLong> {
        self.output.push(message)?;
        let pending = Pending { exchange: Some(exchange), sent_at: now, is_answered: false };
        self.pending.insert(id, pending);
        self.active += 1;
        Ok(())
    }

    /// Ends the exchange with this message ID.
    pub(super) fn end_exchange(&mut self, id: u16, now: Instant) {
        let Some(pending) = self.pending.get_mut(&id) else { return };
        if pending.exchange.take().is_none() {
            return;
        }
        if pending.is_answered {
            self.pending.remove(&id);
        } else {
            self.is_suspect |= self.last_received_at.is_none_or(|at| at < pending.sent_at);
        }
        self.active -= 1;
        self.idle_since = now;
    }

    /// Whether no exchange uses the connection.
    pub(super) const fn is_unused(&self) -> bool {
        self.active == 0
    }

    /// Whether the connection is to be closed.
    pub(super) fn has_finished(&self, idle_timeout: Duration, now: Instant) -> bool {
        let is_idle = now.saturating_duration_since(self.idle_since) >= idle_timeout;
        self.is_unused() && (is_idle || self.is_suspect || !self.is_open)
    }

    /// The exchanges that have not ended.
    pub(super) fn exchanges(&self) -> impl Iterator<Item = ExchangeId> {
        self.pending.values().filter_map(|pending| pending.exchange)
    }

    /// Receives and sends what `readiness` permits. Received messages are then available from
    /// [`next_response`](Self::next_response).
    ///
    /// # Errors
    /// The connection has ended.
    pub(super) fn progress(
        &mut self,
        readiness: Readiness,
        buffer: &mut [u8],
        now: Instant,
    ) -> io::Result<()> {
        self.is_open |= readiness.is_writable && !readiness.has_ended;
        if readiness.is_readable || readiness.has_ended {
            self.receive(readiness, buffer, now)?;
        }
        self.flush()
    }

    /// Receives once. After an error of the connection, this reports it.
    fn receive(&mut self, readiness: Readiness, buffer: &mut [u8], now: Instant) -> io::Result<()> {
        match self.socket.receive(buffer) {
            Ok(0) => Err(io::ErrorKind::UnexpectedEof.into()),
            Ok(octets) => {
                self.is_open = true;
                self.last_received_at = Some(now);
                self.input.push(buffer.get(..octets).unwrap_or_default());
                Ok(())
            }
            Err(error) if error.kind() == io::ErrorKind::Interrupted => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock && !readiness.has_ended => Ok(()),
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::ErrorKind::UnexpectedEof.into())
            }
            Err(error) => Err(error),
        }
    }

    /// Sends what the system accepts, if the connection is open.
    pub(super) fn flush(&mut self) -> io::Result<()> {
        if self.is_open {
            self.output.write(|octets| self.socket.send(octets))?;
        }
        Ok(())
    }

    /// Removes and returns the next received message.
    ///
    /// # Errors
    /// The message answers no query. A server sends one message for each query, so the connection
    /// cannot be trusted.
    pub(super) fn next_response(&mut self) -> Result<Option<Response<'_>>, Violation> {
        let Some(message) = self.input.next_message() else { return Ok(None) };
        let (id, _) = message.split_first_chunk().ok_or(Violation)?;
        let id = u16::from_be_bytes(*id);
        let pending = self.pending.get_mut(&id).filter(|pending| !pending.is_answered).ok_or(Violation)?;
        pending.is_answered = true;
        let exchange = pending.exchange;
        if exchange.is_none() {
            self.pending.remove(&id);
        }
        Ok(Some((exchange, message)))
    }

    /// Frees unused memory.
    pub(super) fn trim(&mut self) {
        self.input.trim();
    }

    /// What the loop must watch the connection for.
    pub(super) fn wanted_interest(&self) -> Interest {
        Interest { reads: true, writes: !self.is_open || self.output.unwritten() > 0 }
    }
}

impl AsFd for UpstreamConnection {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
