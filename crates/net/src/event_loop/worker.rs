//! One worker: its loop. Each iteration is a turn: the events of clients go to the machine, and its
//! outputs are executed; then those of servers and due timeouts, and its outputs again.

use super::client_connections::ClientConnections;
use super::client_listeners::{ACCEPTS_PER_TURN, ClientListeners};
use super::client_sockets::ClientSockets;
use super::client_stream::ClientStream;
use super::context::Context;
use super::counters::EventLoopStatistics;
use super::exchanges::Exchanges;
use super::mailbox::Mailbox;
use super::options::EventLoopOptions;
use super::queries::{Origin, Queries};
use super::source::Source;
use super::upstream_connections::UpstreamConnections;
use super::upstream_sockets::UpstreamSockets;
use crate::heartbeat::Heartbeat;
use crate::machine::{ClientToken, Event, Machine, Now, Output};
use crate::sys::{Epoll, Interest, Readiness};
use crate::udp::ERROR_PAUSE;
use std::io;
use std::net::{TcpListener, UdpSocket};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Maximum number of sockets and connections that are served in a turn. After this number, queries of clients are
/// received: many responses of slow validations must not delay answers from the cache.
const EVENTS_PER_TURN: usize = 32;

/// What the thread that starts a worker prepares for it.
pub(super) struct WorkerSetup {
    pub(super) index: usize,
    pub(super) options: EventLoopOptions,
    /// The mailboxes of all workers.
    pub(super) mailboxes: Arc<[Mailbox]>,
    pub(super) statistics: EventLoopStatistics,
    pub(super) heartbeat: Heartbeat,
    epoll: Epoll,
    sockets: Vec<UdpSocket>,
    listeners: Vec<TcpListener>,
}

impl WorkerSetup {
    /// Watches the mailbox and the sockets, which do not block.
    pub(super) fn new(
        index: usize,
        options: EventLoopOptions,
        mailboxes: Arc<[Mailbox]>,
        statistics: EventLoopStatistics,
        heartbeat: Heartbeat,
        (sockets, listeners): (Vec<UdpSocket>, Vec<TcpListener>),
    ) -> io::Result<Self> {
        let epoll = Epoll::new(EVENTS_PER_TURN)?;
        if let Some(mailbox) = mailboxes.get(index) {
            epoll.add(mailbox, Source::Mailbox.to_bits(), Interest::READS)?;
        }
        for (index, socket) in sockets.iter().enumerate() {
            epoll.add(socket, Source::ClientSocket(index).to_bits(), Interest::READS)?;
        }
        ClientListeners::watch(&listeners, &epoll)?;
        Ok(Self { index, options, mailboxes, statistics, heartbeat, epoll, sockets, listeners })
    }
}

/// A worker.
pub(super) struct Worker<M> {
    index: usize,
    machine: M,
    context: Context,
    queries: Queries,
    exchanges: Exchanges,
    sockets: ClientSockets,
    listeners: ClientListeners,
    connections: ClientConnections,
    mailboxes: Arc<[Mailbox]>,
    statistics: EventLoopStatistics,
    heartbeat: Heartbeat,
    finish_timeout: Duration,
    /// The time at which the worker ends, even if queries have no reply; `None` if it is not
    /// stopping.
    stop_deadline: Option<Instant>,
}

impl<M: Machine> Worker<M> {
    pub(super) fn new(setup: WorkerSetup, machine: M) -> Self {
        let options = setup.options;
        let upstream = options.upstream;
        let sockets = UpstreamSockets::new(upstream.sockets_max, upstream.ports.clone());
        Self {
            index: setup.index,
            machine,
            context: Context::new(setup.epoll),
            queries: Queries::new(options.queries_max),
            exchanges: Exchanges::new(sockets, UpstreamConnections::new(upstream)),
            sockets: ClientSockets::new(setup.sockets),
            listeners: ClientListeners::new(setup.listeners),
            finish_timeout: options.tcp.finish_timeout,
            connections: ClientConnections::new(options.tcp),
            mailboxes: setup.mailboxes,
            statistics: setup.statistics,
            heartbeat: setup.heartbeat,
            stop_deadline: None,
        }
    }

    /// Runs until the worker has stopped.
    pub(super) fn run(mut self) {
        let mut now = read_clock();
        // The machine may have outputs and timeouts already.
        self.execute_outputs(now);
        while !self.has_stopped(now.instant) {
            self.heartbeat.report();
            let limit = self.wait_limit(Instant::now());
            if self.context.epoll.wait(limit).is_err() {
                self.context.counters.wait_errors += 1;
                thread::sleep(ERROR_PAUSE);
            }
            now = read_clock();
            self.turn(now);
        }
    }

    fn turn(&mut self, now: Now) {
        self.context.counters.turns += 1;
        let events = self.handle_events(|source| !source.is_upstream(), now);
        if events == EVENTS_PER_TURN && self.stop_deadline.is_none() {
            self.sockets.mark_all_ready();
        }
        let Self { machine, context, queries, .. } = self;
        self.sockets.receive(queries, context, machine, now);
        self.connections.read(queries, context, machine, now);
        // Replies that are known already do not wait for the work of the turn.
        self.execute_outputs(now);
        self.handle_events(Source::is_upstream, now);
        let Self { machine, context, .. } = self;
        self.exchanges.report_failures(context, machine, now);
        if machine.poll_timeout().is_some_and(|at| at <= now.instant) {
            machine.handle_timeout(now);
        }
        machine.end_turn(now);
        self.execute_outputs(now);
        self.check_time_limits(now.instant);
        let published = self.statistics.workers.get(self.index);
        published.into_iter().for_each(|published| published.publish(self.context.counters));
    }

    /// Handles the events of the last wait whose source is selected. Returns the number of all events.
    fn handle_events(&mut self, is_selected: impl Fn(Source) -> bool, now: Now) -> usize {
        let mut events = 0;
        while events < EVENTS_PER_TURN
            && let Some(readiness) = self.context.epoll.readiness(events)
        {
            if let Some(source) = Source::from_bits(readiness.source).filter(|source| is_selected(*source)) {
                self.handle_ready(source, readiness, now);
            }
            events += 1;
        }
        events
    }

    fn handle_ready(&mut self, source: Source, readiness: Readiness, now: Now) {
        let Self { machine, context, .. } = self;
        match source {
            Source::Mailbox => self.read_mailbox(now),
            Source::ClientSocket(index) => self.sockets.mark_ready(index),
            Source::Listener(index) => self.accept(index, now.instant),
            Source::ClientConnection(key) => self.connections.handle_ready(key, readiness, context),
            Source::UpstreamSocket(key) => self.exchanges.sockets.receive(key, context, machine, now),
            Source::UpstreamConnection(key) => {
                self.exchanges.connections.handle_ready(key, readiness, context, machine, now);
            }
        }
    }

    fn read_mailbox(&mut self, now: Now) {
        let Some(mailbox) = self.mailboxes.get(self.index) else { return };
        if mailbox.take_wake() {
            self.context.counters.wakes += 1;
            self.machine.handle_event(Event::Wake, now);
        }
        if mailbox.is_stopped() && self.stop_deadline.is_none() {
            self.stop_deadline = Some(now.instant + self.finish_timeout);
            self.sockets.stop_receiving(&self.context);
            self.listeners.close(&self.context.epoll);
            self.connections.finish(&mut self.context);
        }
        for established in mailbox.take_connections(ACCEPTS_PER_TURN) {
            let peer = established.peer;
            if self.stop_deadline.is_none() {
                self.connections.add(ClientStream::tls(established), peer, &mut self.context, now.instant);
            }
        }
    }

    fn accept(&mut self, index: usize, now: Instant) {
        let accepted = self.listeners.accept(index, &self.context.epoll, now);
        for (socket, peer) in accepted.connections {
            self.context.counters.tcp.accepted += 1;
            self.connections.add(ClientStream::Plain(socket), peer, &mut self.context, now);
        }
        if accepted.is_out_of_descriptors {
            self.connections.evict(&mut self.context);
        }
    }

    /// Executes the outputs of the machine. Replies and queries over connections are collected and
    /// then sent together.
    fn execute_outputs(&mut self, now: Now) {
        while let Some(output) = self.machine.poll_output() {
            match output {
                Output::Send(upstream) => self.exchanges.send(&upstream, &mut self.context, now.instant),
                Output::Close(exchange) => self.exchanges.close(exchange, &mut self.context, now.instant),
                Output::Reply(token, reply) => self.reply(token, Some(reply)),
                Output::Drop(token) => self.reply(token, None),
                Output::Wake(workers) => {
                    let mailboxes = workers.into_iter().filter_map(|worker| self.mailboxes.get(worker));
                    mailboxes.for_each(Mailbox::wake);
                }
            }
        }
        self.exchanges.connections.flush(&mut self.context);
        self.sockets.send(&mut self.context);
        self.connections.write(&mut self.context);
    }

    /// Ends a query, with or without a reply.
    fn reply(&mut self, token: ClientToken, reply: Option<Vec<u8>>) {
        let is_sent = match (self.queries.remove(token), reply) {
            (None, _) => false,
            (Some(Origin::Datagram { socket, address }), Some(reply)) => {
                self.sockets.push_reply(socket, address, reply);
                true
            }
            (Some(Origin::Datagram { .. }), None) => true,
            (Some(Origin::Connection(key)), Some(reply)) => {
                self.connections.push_reply(key, &reply, &mut self.context)
            }
            (Some(Origin::Connection(key)), None) => {
                self.connections.drop_query(key);
                true
            }
        };
        self.context.counters.discarded_replies += u64::from(!is_sent);
    }

    fn check_time_limits(&mut self, now: Instant) {
        self.listeners.resume(&self.context.epoll, now);
        self.connections.sweep(&mut self.context, now);
        self.exchanges.connections.sweep(&mut self.context, now);
    }

    /// Maximum time to wait for events.
    fn wait_limit(&mut self, now: Instant) -> Duration {
        let has_work =
            !self.context.failures.is_empty() || (self.connections.has_queued() && self.queries.has_room());
        if has_work {
            return Duration::ZERO;
        }
        let times = [
            self.machine.poll_timeout(),
            self.connections.next_sweep(),
            self.exchanges.connections.next_sweep(),
            self.listeners.paused_until(),
            self.stop_deadline,
        ];
        let next = times.into_iter().flatten().min();
        let limit = next.map_or(Duration::MAX, |at| at.saturating_duration_since(now));
        limit.min(self.heartbeat.max_wait())
    }

    /// Whether the worker must stop, and all clients have their replies or the time for them is
    /// over.
    fn has_stopped(&self, now: Instant) -> bool {
        let Some(deadline) = self.stop_deadline else { return false };
        now >= deadline || (self.queries.is_empty() && self.connections.is_empty())
    }
}

fn read_clock() -> Now {
    let unix = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs());
    Now { instant: Instant::now(), unix }
}
