//! A driver of state machines in virtual time, on a virtual network.
//!
//! [`Simulator`] has the role that `nonesuch_net` has in a server: it passes events to one or several
//! [`Machine`]s and executes their outputs. Time is virtual: it moves to the next event as soon as
//! all machines have processed the current one. A [`Network`] answers the queries of the machines,
//! and a [`Path`] delays, loses, duplicates and changes messages. All random numbers come from one
//! seed, so a run with the same seed, machines and network gives the same [`Trace`].

mod clock;
mod fault;
mod network;
mod options;
mod queue;
#[cfg(test)]
mod tests;
mod trace;
mod turn;

pub use fault::Fault;
pub use network::{Delivery, Network, Reaction, ServerQuery};
pub use options::{Options, Path};
pub use trace::{DiscardReason, Loss, Trace, TraceEntry, TraceEvent};

use clock::Clock;
use nonesuch_net::Transport;
use nonesuch_net::machine::{ClientToken, ExchangeId, Machine, Now, SendFailure};
use queue::{Queue, Scheduled};
use rand::SeedableRng as _;
use rand_chacha::ChaCha8Rng;
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::time::Duration;

/// The end of virtual time. Later events never happen, so that instants do not overflow.
const END_OF_TIME: Duration = Duration::from_secs(1 << 34);

/// The reply to a client query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reply {
    /// Time of the reply since the start of the simulation.
    pub at: Duration,
    /// The message; `None` if the machine dropped the query.
    pub message: Option<Vec<u8>>,
}

/// A client query.
#[derive(Clone, Debug)]
struct Client {
    worker: usize,
    /// Time of the query since the start of the simulation.
    asked: Duration,
    /// Whether the machine has the query.
    is_asked: bool,
    reply: Option<Reply>,
}

/// An open exchange.
#[derive(Clone, Copy, Debug)]
struct Exchange {
    server: SocketAddr,
    transport: Transport,
}

/// A machine and its exchanges.
struct Worker<'m> {
    machine: Box<dyn Machine + 'm>,
    /// Open exchanges, and `None` for those that have ended.
    exchanges: BTreeMap<ExchangeId, Option<Exchange>>,
    open: usize,
}

/// Numbers of messages, over the whole simulation.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Statistics {
    /// Queries that machines sent to servers.
    pub sent: u64,
    /// Octets of these queries.
    pub sent_octets: u64,
    /// Messages of servers that machines received.
    pub received: u64,
    /// Octets of these messages.
    pub received_octets: u64,
    /// The maximum number of open exchanges of one worker.
    pub open_maximum: usize,
    /// Turns of all workers.
    pub turns: u64,
}

/// Why [`Simulator::run_until`] returned.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunEnd {
    /// The condition is true.
    Condition,
    /// The time limit was reached.
    TimeLimit,
    /// No event and no timeout is left.
    Idle,
}

/// The driver. `N` answers the queries of the machines.
pub struct Simulator<'m, N> {
    network: N,
    workers: Vec<Worker<'m>>,
    options: Options,
    clock: Clock,
    queue: Queue,
    random: ChaCha8Rng,
    clients: BTreeMap<ClientToken, Client>,
    statistics: Statistics,
    trace: Trace,
}

impl<'m, N: Network> Simulator<'m, N> {
    /// Returns a simulator with one worker for each machine, at the time zero.
    #[must_use]
    pub fn new(options: Options, machines: Vec<Box<dyn Machine + 'm>>, network: N) -> Self {
        let worker = |machine| Worker { machine, exchanges: BTreeMap::new(), open: 0 };
        Self {
            network,
            workers: machines.into_iter().map(worker).collect(),
            clock: Clock::new(options.start, options.unix),
            queue: Queue::default(),
            random: ChaCha8Rng::seed_from_u64(options.seed),
            clients: BTreeMap::new(),
            statistics: Statistics::default(),
            trace: Trace::new(options.trace_limit),
            options,
        }
    }

    /// Schedules a client query for the time `at` since the start of the simulation, or for the
    /// current time if `at` is in the past. Returns the token of the query.
    pub fn query_at(
        &mut self,
        at: Duration,
        worker: usize,
        client: SocketAddr,
        transport: Transport,
        message: Vec<u8>,
    ) -> ClientToken {
        let asked = at.max(self.clock.offset());
        let token = ClientToken(self.clients.len() as u64 + 1);
        self.clients.insert(token, Client { worker, asked, is_asked: false, reply: None });
        self.queue.push(asked, Scheduled::Query { worker, token, client, transport, message });
        token
    }

    /// Schedules a change of UNIX time by `seconds`. Monotonic time does not change.
    pub fn set_clock_at(&mut self, at: Duration, seconds: i64) {
        self.queue.push(at.max(self.clock.offset()), Scheduled::ClockChange { seconds });
    }

    /// Schedules a message of a server for an exchange, for the current time. It is not subject to
    /// the faults of the path.
    pub fn inject(&mut self, worker: usize, exchange: ExchangeId, from: SocketAddr, message: Vec<u8>) {
        self.queue.push(self.clock.offset(), Scheduled::Response { worker, exchange, from, message });
    }

    /// Wakes all workers at the current time, as a program does after a change of the options.
    pub fn wake_all(&mut self) {
        (0..self.workers.len()).for_each(|worker| {
            self.queue.push(self.clock.offset(), Scheduled::Wake { worker });
        });
    }

    /// Schedules the failure of an exchange for the current time.
    pub fn inject_failure(&mut self, worker: usize, exchange: ExchangeId, failure: SendFailure) {
        self.queue.push(self.clock.offset(), Scheduled::Failure { worker, exchange, failure });
    }

    /// Runs until `condition` is true, nothing is left to do, or the next event is later than
    /// `limit`. At the time limit, the time is `limit`.
    ///
    /// # Errors
    /// If a machine violates the interface, does not come to an end, or leaves a client unanswered
    /// for longer than [`Options::patience`].
    pub fn run_until(
        &mut self,
        limit: Duration,
        mut condition: impl FnMut(&Self) -> bool,
    ) -> Result<RunEnd, Fault> {
        loop {
            if condition(self) {
                return Ok(RunEnd::Condition);
            }
            let Some(at) = self.next_time() else { return Ok(RunEnd::Idle) };
            if at > limit {
                self.clock.move_to(limit);
                return Ok(RunEnd::TimeLimit);
            }
            self.clock.move_to(at);
            self.check_patience()?;
            self.run_turns()?;
        }
    }

    /// Runs until each client query has its reply, including queries that are scheduled for later.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until), and [`Fault::Hang`] if nothing is left to do and a client
    /// has no reply.
    pub fn run_until_answered(&mut self) -> Result<(), Fault> {
        self.run_until(Duration::MAX, |simulator| simulator.unanswered().next().is_none())?;
        let unanswered: Vec<ClientToken> = self.unanswered().collect();
        if unanswered.is_empty() { Ok(()) } else { Err(Fault::Hang { unanswered, at: self.time() }) }
    }

    /// Runs until `duration` after the current time, at most until 544 years after the start. The time
    /// is then exactly this time, even if nothing is left to do.
    ///
    /// # Errors
    /// As [`run_until`](Self::run_until).
    pub fn run_for(&mut self, duration: Duration) -> Result<(), Fault> {
        let end = self.time().saturating_add(duration).min(END_OF_TIME);
        self.run_until(end, |_| false)?;
        self.clock.move_to(end);
        Ok(())
    }

    /// Returns the time since the start of the simulation.
    #[must_use]
    pub const fn time(&self) -> Duration {
        self.clock.offset()
    }

    /// Returns the time as machines get it.
    #[must_use]
    pub fn now(&self) -> Now {
        self.clock.now()
    }

    /// Returns the reply to a client query, if there is one yet.
    #[must_use]
    pub fn reply(&self, token: ClientToken) -> Option<&Reply> {
        self.clients.get(&token).and_then(|client| client.reply.as_ref())
    }

    /// Returns the client queries without a reply, including those that are scheduled for later.
    pub fn unanswered(&self) -> impl Iterator<Item = ClientToken> {
        self.clients.iter().filter(|(_, client)| client.reply.is_none()).map(|(token, _)| *token)
    }

    /// Returns the number of open exchanges of all workers. It is zero if all machines are idle and
    /// have closed what they opened.
    #[must_use]
    pub fn open_exchanges(&self) -> usize {
        self.workers.iter().map(|worker| worker.open).sum()
    }

    /// Returns the numbers of messages.
    #[must_use]
    pub const fn statistics(&self) -> Statistics {
        self.statistics
    }

    /// Returns the events until now.
    #[must_use]
    pub const fn trace(&self) -> &Trace {
        &self.trace
    }

    /// Returns the network.
    #[must_use]
    pub const fn network(&self) -> &N {
        &self.network
    }

    /// Returns the network, to change it.
    #[must_use]
    pub const fn network_mut(&mut self) -> &mut N {
        &mut self.network
    }

    /// Returns the time of the next event or timeout, not before the current time.
    fn next_time(&mut self) -> Option<Duration> {
        let event = self.queue.next_time();
        let clock = &self.clock;
        let timeouts = self.workers.iter_mut().filter_map(|worker| worker.machine.poll_timeout());
        let times = timeouts.map(|instant| clock.offset_of(instant)).chain(event);
        let next = times.min().filter(|time| *time <= END_OF_TIME);
        next.map(|time| time.max(self.clock.offset()))
    }

    fn check_patience(&self) -> Result<(), Fault> {
        let now = self.clock.offset();
        let waits = |client: &Client| {
            client.reply.is_none() && client.is_asked && now - client.asked > self.options.patience
        };
        let late: Vec<ClientToken> =
            self.clients.iter().filter(|(_, client)| waits(client)).map(|(token, _)| *token).collect();
        if late.is_empty() { Ok(()) } else { Err(Fault::Hang { unanswered: late, at: now }) }
    }
}
