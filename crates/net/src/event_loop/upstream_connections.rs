//! The connections to servers. A query uses an open connection to its server if there is one (RFC
//! 7766 section 6.2.1), and opens one otherwise. The state machine has the time limits of exchanges;
//! this module closes connections that no exchange uses.

use super::context::{Context, classify};
use super::options::UpstreamOptions;
use super::slots::{Key, Slots};
use super::source::Source;
use super::upstream_connection::UpstreamConnection;
use crate::machine::{Event, ExchangeId, Machine, Now, SendFailure};
use crate::sys::Readiness;
use std::collections::HashMap;
use std::net::SocketAddr;
use std::time::{Duration, Instant};

/// Number of checks for idle connections within the idle timeout.
const SWEEPS_PER_TIMEOUT: u32 = 4;
/// Minimum and maximum interval between these checks.
const SWEEP_BOUNDS: (Duration, Duration) = (Duration::from_millis(1), Duration::from_secs(1));

/// Where an exchange over TCP is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct TcpExchange {
    connection: Key,
    /// Message ID.
    id: u16,
}

/// The connections to servers. Their number is bounded, in total and for each server.
pub(super) struct UpstreamConnections {
    options: UpstreamOptions,
    connections: Slots<UpstreamConnection>,
    by_server: HashMap<SocketAddr, Vec<Key>>,
    /// Connections with queries that were added in this turn.
    unflushed: Vec<Key>,
    /// Time of the next check for idle connections; `None` if there are no connections.
    next_sweep: Option<Instant>,
}

impl UpstreamConnections {
    pub(super) fn new(options: UpstreamOptions) -> Self {
        Self {
            connections: Slots::new(options.connections_max),
            options,
            by_server: HashMap::new(),
            unflushed: Vec::new(),
            next_sweep: None,
        }
    }

    /// Time of the next call of [`sweep`](Self::sweep).
    pub(super) const fn next_sweep(&self) -> Option<Instant> {
        self.next_sweep
    }

    /// Adds a query to an open connection, or opens one. [`flush`](Self::flush) sends it.
    pub(super) fn send(
        &mut self,
        exchange: ExchangeId,
        server: SocketAddr,
        message: &[u8],
        context: &mut Context,
        now: Instant,
    ) -> Result<TcpExchange, SendFailure> {
        let (id, _) = message.split_first_chunk().ok_or(SendFailure::Local)?;
        let id = u16::from_be_bytes(*id);
        let key = match self.find(server, id) {
            Some(key) => {
                context.counters.upstream.connections_reused += 1;
                key
            }
            None => self.open(server, context, now)?,
        };
        let connection = self.connections.get_mut(key).ok_or(SendFailure::Local)?;
        if connection.push(exchange, id, message, now).is_err() {
            self.close_if_finished(key, context, now);
            return Err(SendFailure::Local);
        }
        context.counters.upstream.messages_out += 1;
        self.unflushed.push(key);
        Ok(TcpExchange { connection: key, id })
    }

    /// Returns a connection to `server` that can take a query with this message ID.
    fn find(&mut self, server: SocketAddr, id: u16) -> Option<Key> {
        let keys = self.by_server.get(&server)?;
        let pipeline_max = self.options.pipeline_max;
        keys.iter().copied().find(|&key| {
            self.connections.get_mut(key).is_some_and(|connection| connection.accepts(id, pipeline_max))
        })
    }

    fn open(&mut self, server: SocketAddr, context: &mut Context, now: Instant) -> Result<Key, SendFailure> {
        let count = self.by_server.get(&server).map_or(0, Vec::len);
        if count >= self.options.connections_per_server {
            return Err(SendFailure::Local);
        }
        if !self.connections.has_room() {
            self.close_unused(context)?;
        }
        let connection = UpstreamConnection::open(server, now).map_err(|error| classify(&error))?;
        let key = self.connections.insert(connection).ok_or(SendFailure::Local)?;
        self.by_server.entry(server).or_default().push(key);
        let source = Source::UpstreamConnection(key).to_bits();
        let connection = self.connections.get_mut(key).ok_or(SendFailure::Local)?;
        if context.epoll.add(&*connection, source, connection.interest).is_err() {
            self.close(key, SendFailure::Local, context);
            return Err(SendFailure::Local);
        }
        context.counters.upstream.connections_opened += 1;
        context.counters.upstream.open_connections = self.connections.len() as u64;
        let interval = self.sweep_interval();
        self.next_sweep.get_or_insert(now + interval);
        Ok(key)
    }

    /// Closes the connection that has been unused for the longest time.
    fn close_unused(&mut self, context: &mut Context) -> Result<(), SendFailure> {
        let unused = self.connections.iter().filter(|(_, connection)| connection.is_unused());
        let (oldest, _) =
            unused.min_by_key(|(_, connection)| connection.idle_since).ok_or(SendFailure::Local)?;
        self.close(oldest, SendFailure::Local, context);
        Ok(())
    }

    /// Ends an exchange. Its connection stays open for others, unless it may be dead.
    pub(super) fn end_exchange(&mut self, place: TcpExchange, context: &mut Context, now: Instant) {
        if let Some(connection) = self.connections.get_mut(place.connection) {
            connection.end_exchange(place.id, now);
            self.close_if_finished(place.connection, context, now);
        }
    }

    /// Sends the queries that were added in this turn.
    pub(super) fn flush(&mut self, context: &mut Context) {
        for key in std::mem::take(&mut self.unflushed) {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            match connection.flush() {
                Ok(()) => self.update_interest(key, context),
                Err(error) => self.close(key, classify(&error), context),
            }
        }
    }

    /// Receives, sends, and passes responses to the machine.
    pub(super) fn handle_ready<M: Machine>(
        &mut self,
        key: Key,
        readiness: Readiness,
        context: &mut Context,
        machine: &mut M,
        now: Now,
    ) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let result = connection.progress(readiness, &mut context.buffer, now.instant);
        // The connection may have ended after the last responses.
        loop {
            match connection.next_response() {
                Ok(Some((exchange, message))) => {
                    context.counters.upstream.messages_in += 1;
                    if let Some(exchange) = exchange {
                        machine.handle_event(Event::Response(exchange, message), now);
                    }
                }
                Ok(None) => break,
                Err(_) => {
                    context.counters.upstream.broken_connections += 1;
                    return self.close(key, SendFailure::Refused, context);
                }
            }
        }
        connection.trim();
        match result {
            Ok(()) => self.update_interest(key, context),
            Err(error) => self.close(key, classify(&error), context),
        }
    }

    fn update_interest(&mut self, key: Key, context: &mut Context) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        let interest = connection.wanted_interest();
        if interest != connection.interest {
            connection.interest = interest;
            let source = Source::UpstreamConnection(key).to_bits();
            if context.epoll.modify(&*connection, source, interest).is_err() {
                self.close(key, SendFailure::Local, context);
            }
        }
    }

    /// Closes connections that are idle.
    pub(super) fn sweep(&mut self, context: &mut Context, now: Instant) {
        if self.next_sweep.is_none_or(|at| at > now) {
            return;
        }
        let idle_timeout = self.options.idle_timeout;
        let finished = self.connections.iter().filter(|(_, it)| it.has_finished(idle_timeout, now));
        let finished: Vec<Key> = finished.map(|(key, _)| key).collect();
        for key in finished {
            self.close(key, SendFailure::Refused, context);
        }
        self.next_sweep = (!self.connections.is_empty()).then(|| now + self.sweep_interval());
    }

    fn sweep_interval(&self) -> Duration {
        let (min, max) = SWEEP_BOUNDS;
        (self.options.idle_timeout / SWEEPS_PER_TIMEOUT).clamp(min, max)
    }

    fn close_if_finished(&mut self, key: Key, context: &mut Context, now: Instant) {
        let idle_timeout = self.options.idle_timeout;
        if self.connections.get_mut(key).is_some_and(|it| it.has_finished(idle_timeout, now)) {
            self.close(key, SendFailure::Refused, context);
        }
    }

    /// Closes a connection. Its exchanges fail.
    fn close(&mut self, key: Key, failure: SendFailure, context: &mut Context) {
        let Some(connection) = self.connections.remove(key) else { return };
        if let Some(keys) = self.by_server.get_mut(&connection.server) {
            keys.retain(|other| *other != key);
            if keys.is_empty() {
                self.by_server.remove(&connection.server);
            }
        }
        connection.exchanges().for_each(|exchange| context.fail(exchange, failure));
        context.counters.upstream.open_connections = self.connections.len() as u64;
    }
}
