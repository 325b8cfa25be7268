//! The connections of clients. The connection table decides which connections are accepted, and
//! which are closed for others or at a time limit.

use super::client_connection::ClientConnection;
use super::client_stream::ClientStream;
use super::context::Context;
use super::queries::Queries;
use super::slots::{Key, Slots};
use super::source::Source;
use crate::error::Transport;
use crate::machine::{Machine, Now};
use crate::sys::Readiness;
use crate::tcp::TcpOptions;
use crate::tcp::accept::sweep_interval;
use crate::tcp::table::{ConnectionCommand, ConnectionTable, EndReason, Phase, Refusal};
use std::collections::VecDeque;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Wake, Waker};
use std::time::Instant;

/// Maximum number of queries from connections in a turn. A connection that is read counts as at
/// least one.
const QUERIES_PER_TURN: usize = 64;
/// Maximum number of queries of one connection before others are read.
const QUERIES_PER_VISIT: usize = 16;

/// The connections with a command from the connection table. Each is listed at most once.
type Commanded = Arc<Mutex<Vec<Key>>>;

/// Adds a connection to the list of those with a command. The connection table calls it, in the
/// thread of the worker.
struct CommandWaker {
    key: Key,
    commanded: Commanded,
}

impl Wake for CommandWaker {
    fn wake(self: Arc<Self>) {
        self.commanded.lock().unwrap_or_else(PoisonError::into_inner).push(self.key);
    }
}

/// The connections of clients. Their number and their buffers are bounded.
pub(super) struct ClientConnections {
    options: TcpOptions,
    table: ConnectionTable,
    connections: Slots<ClientConnection>,
    commanded: Commanded,
    /// Connections to read, each at most once.
    queue: VecDeque<Key>,
    /// Connections with new replies or with room to write.
    unwritten: Vec<Key>,
    /// Time of the next check of time limits; `None` if there are no connections.
    next_sweep: Option<Instant>,
}

impl ClientConnections {
    pub(super) fn new(options: TcpOptions) -> Self {
        Self {
            table: ConnectionTable::default(),
            // A connection that the table has closed leaves before the next one is added.
            connections: Slots::new(options.connections_max),
            options,
            commanded: Commanded::default(),
            queue: VecDeque::new(),
            unwritten: Vec::new(),
            next_sweep: None,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.connections.is_empty()
    }

    /// Whether a connection waits to be read.
    pub(super) fn has_queued(&self) -> bool {
        !self.queue.is_empty()
    }

    /// Time of the next call of [`sweep`](Self::sweep).
    pub(super) const fn next_sweep(&self) -> Option<Instant> {
        self.next_sweep
    }

    /// Adds a connection, or closes it if a limit is reached.
    pub(super) fn add(
        &mut self,
        stream: ClientStream,
        peer: SocketAddr,
        context: &mut Context,
        now: Instant,
    ) {
        let transport = stream.transport();
        let counters = context.counters.connections(transport);
        let (id, entry, _) = match self.table.insert(peer, Phase::FirstMessage, &self.options) {
            Ok(inserted) => inserted,
            Err(Refusal::ConnectionLimit) => return counters.refused += 1,
            Err(Refusal::ClientLimit) => return counters.refused_client += 1,
        };
        self.execute_commands(context);
        let commanded = Arc::clone(&self.commanded);
        let key = self.connections.insert_with(|key| {
            let waker = Waker::from(Arc::new(CommandWaker { key, commanded }));
            ClientConnection::new(stream, peer, id, entry, waker)
        });
        let counters = context.counters.connections(transport);
        let Some((key, connection)) = key.and_then(|key| Some((key, self.connections.get_mut(key)?))) else {
            self.table.remove(id);
            return counters.refused += 1;
        };
        counters.open += 1;
        // Registers the waker. There is no command yet.
        let _ = connection.entry.poll_command(&connection.waker);
        let source = Source::ClientConnection(key).to_bits();
        if context.epoll.add(&*connection, source, connection.interest).is_err() {
            self.close(key, EndReason::Broken, context);
        } else if transport == Transport::Tls {
            // The session may have messages that no event of the socket announces.
            self.enqueue(key);
        }
        let interval = sweep_interval(&self.options);
        self.next_sweep.get_or_insert(now + interval);
    }

    /// Closes a connection to get a free file descriptor.
    pub(super) fn evict(&mut self, context: &mut Context) {
        self.table.evict(&self.options);
        self.execute_commands(context);
    }

    /// Schedules what a connection is ready for.
    pub(super) fn handle_ready(&mut self, key: Key, readiness: Readiness, context: &mut Context) {
        if readiness.has_ended {
            return self.close(key, EndReason::Broken, context);
        }
        if readiness.is_readable {
            self.enqueue(key);
        }
        if readiness.is_writable {
            self.schedule_write(key);
        }
    }

    fn enqueue(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key).filter(|connection| !connection.is_queued) {
            connection.is_queued = true;
            self.queue.push_back(key);
        }
    }

    fn schedule_write(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key).filter(|connection| !connection.has_replies) {
            connection.has_replies = true;
            self.unwritten.push(key);
        }
    }

    /// Reads connections, and passes their queries to the machine, up to the limit for a turn.
    pub(super) fn read<M: Machine>(
        &mut self,
        queries: &mut Queries,
        context: &mut Context,
        machine: &mut M,
        now: Now,
    ) {
        let mut left = QUERIES_PER_TURN;
        for _ in 0..self.queue.len() {
            // Without room for queries, connections are still read, up to a complete message. So the
            // next wait does not report them at once.
            if left == 0 {
                break;
            }
            let Some(key) = self.queue.pop_front() else { break };
            let Some(connection) = self.connections.get_mut(key) else { continue };
            connection.is_queued = false;
            let read = connection.read(&self.options, &mut context.buffer);
            let cost = connection.take_read_cost();
            if let Err(end) = read {
                left = left.saturating_sub(cost);
                self.close(key, end, context);
                continue;
            }
            let limit = left.min(QUERIES_PER_VISIT);
            let passed = connection.pass_queries(key, limit, &self.options, queries, machine, now);
            let counters = context.counters.connections(connection.transport());
            counters.messages_in += passed as u64;
            left = left.saturating_sub(passed.max(cost));
            self.settle(key, context);
        }
        self.execute_commands(context);
    }

    /// Adds a reply, which [`write`](Self::write) writes. Returns whether the connection still
    /// exists.
    pub(super) fn push_reply(&mut self, key: Key, reply: &[u8], context: &mut Context) -> bool {
        let Some(connection) = self.connections.get_mut(key) else { return false };
        match connection.push_reply(reply) {
            Ok(()) => self.schedule_write(key),
            Err(_) => self.close(key, EndReason::Broken, context),
        }
        true
    }

    /// Records that there is no reply to a query.
    pub(super) fn drop_query(&mut self, key: Key) {
        if let Some(connection) = self.connections.get_mut(key) {
            connection.drop_query();
            self.schedule_write(key);
        }
    }

    /// Writes the replies of this turn.
    pub(super) fn write(&mut self, context: &mut Context) {
        for key in std::mem::take(&mut self.unwritten) {
            let Some(connection) = self.connections.get_mut(key) else { continue };
            connection.has_replies = false;
            match connection.write() {
                Ok(messages) => {
                    context.counters.connections(connection.transport()).messages_out += messages;
                    self.settle(key, context);
                }
                Err(end) => self.close(key, end, context),
            }
        }
        self.execute_commands(context);
    }

    /// Follows a change of a connection: closes it if it has ended, and otherwise updates its table
    /// entry and what it is watched for.
    fn settle(&mut self, key: Key, context: &mut Context) {
        let Some(connection) = self.connections.get_mut(key) else { return };
        if let Some(end) = connection.end() {
            return self.close(key, end, context);
        }
        connection.update_entry();
        let buffered = connection.buffered();
        if connection.entry.buffered.get() != buffered {
            self.table.set_buffered(connection.id, buffered, &self.options);
        }
        let interest = connection.wanted_interest(&self.options);
        let source = Source::ClientConnection(key).to_bits();
        if interest != connection.interest {
            connection.interest = interest;
            if context.epoll.modify(&*connection, source, interest).is_err() {
                return self.close(key, EndReason::Broken, context);
            }
        }
        if connection.has_query(&self.options) {
            self.enqueue(key);
        }
    }

    /// Executes the commands of the connection table.
    fn execute_commands(&mut self, context: &mut Context) {
        loop {
            let commanded =
                std::mem::take(&mut *self.commanded.lock().unwrap_or_else(PoisonError::into_inner));
            if commanded.is_empty() {
                return;
            }
            for key in commanded {
                let Some(connection) = self.connections.get_mut(key) else { continue };
                match connection.entry.poll_command(&connection.waker) {
                    Some(ConnectionCommand::End(end)) => self.close(key, end, context),
                    Some(ConnectionCommand::Finish) => {
                        connection.end_after_replies(EndReason::Orderly);
                        self.settle(key, context);
                    }
                    // The check of time limits needs the progress of a peer.
                    None => self.settle(key, context),
                }
            }
        }
    }

    /// Closes the connections that have exceeded a time limit.
    pub(super) fn sweep(&mut self, context: &mut Context, now: Instant) {
        if self.next_sweep.is_none_or(|at| at > now) {
            return;
        }
        self.table.sweep(&self.options, self.options.idle_timeout_at(self.table.len()));
        self.execute_commands(context);
        self.next_sweep = (!self.is_empty()).then(|| now + sweep_interval(&self.options));
    }

    /// Ends all connections after they have sent the replies to their queries.
    pub(super) fn finish(&mut self, context: &mut Context) {
        self.table.finish_all();
        self.execute_commands(context);
    }

    fn close(&mut self, key: Key, end: EndReason, context: &mut Context) {
        let Some(mut connection) = self.connections.remove(key) else { return };
        self.table.remove(connection.id);
        let counters = context.counters.connections(connection.transport());
        counters.open -= 1;
        match end {
            EndReason::Orderly => {}
            EndReason::Evicted => counters.evicted += 1,
            EndReason::TimedOut => counters.timed_out += 1,
            EndReason::Broken => counters.broken += 1,
        }
        if end != EndReason::Broken {
            connection.signal_end();
        }
    }
}
