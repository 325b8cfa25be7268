//! The state machine of one worker.

mod aggressive;
mod anchors;
mod chain;
mod iterate;
mod keys;
mod receive;
mod recheck;
mod report;
mod validate;
mod verification;

use crate::budget::Budget;
use crate::cache::{Cache, Claim, Question};
use crate::client::{Admission, Clients, WaitingClient};
use crate::exchange::Exchange;
use crate::hasher::BuildFastHasher;
use crate::lookup::{Found, look_up};
use crate::model::ModelCounters;
use crate::options::ResolverOptions;
use crate::shared::{Settings, Shared};
use crate::task::{ErrorDetail, Outcome, Task, TaskId, TaskTable, Waiter, insecure_error, join_proofs};
use crate::trace::{Trace, TraceStep};
use nonesuch_dnssec::validate::ValidSignatures;
use nonesuch_net::machine::{ClientQuery, Event, ExchangeId, Machine, Now, Output};
use nonesuch_proto::Rtype;
use nonesuch_proto::message::Rcode;
use nonesuch_server::extended_errors::ExtendedError;
use rand::{RngCore, SeedableRng};
use rand_chacha::ChaCha12Rng;
use recheck::Rechecks;
use report::Reports;
use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap, VecDeque};
use std::sync::Arc;
use std::time::Instant;
use verification::{HASH_BLOCK_NANOSECONDS, TURN_NANOSECONDS, VALID_SIGNATURES, VerificationQueue};

/// The resolver of one worker thread.
#[derive(Debug)]
pub struct Resolver {
    shared: Arc<Shared>,
    /// The settings in use. [`Event::Wake`] replaces them by the current ones.
    settings: Arc<Settings>,
    /// The number of the worker.
    worker: usize,
    /// Message IDs, letter case and the choice of servers.
    random: ChaCha12Rng,
    clients: Clients,
    model: Arc<ModelCounters>,
    tasks: TaskTable,
    exchanges: HashMap<ExchangeId, (TaskId, Exchange), BuildFastHasher>,
    next_exchange: u64,
    /// Times at which an exchange or a task ends. Those of earlier ends are still in the heap.
    timers: BinaryHeap<Reverse<(Instant, Timer)>>,
    outputs: VecDeque<Output>,
    /// Tasks that can continue.
    ready: VecDeque<TaskId>,
    valid_signatures: ValidSignatures,
    /// Validations that continue at the end of the turn.
    verifications: VerificationQueue,
    /// The time of the last turn, in which tasks that can continue, or validations, were left.
    turn: Option<Instant>,
    /// When priming failed (RFC 8109); the hints are used then.
    priming_failed_at: Option<Instant>,
    /// When the next query for the keys of a trust anchor may be due (RFC 5011).
    anchor_timer: Option<Instant>,
    /// Checks whether zones with a negative trust anchor validate again.
    rechecks: Rechecks,
    reports: Reports,
    trace: Trace,
}

/// Number of tasks for each client query that is permitted.
const TASKS_PER_QUERY: usize = 4;
/// The worker has too many tasks.
const BUSY: ExtendedError = ExtendedError { code: 0, text: "too many queries in progress, try again later" };

/// What ends at a time.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Timer {
    Exchange(ExchangeId),
    Task(TaskId),
    Anchors,
    NegativeAnchors,
}

impl Resolver {
    /// Records from now on how responses are validated.
    pub fn start_trace(&mut self) {
        self.trace.start();
    }

    /// Returns the steps that were recorded since the last call.
    pub fn take_trace(&mut self) -> Vec<TraceStep> {
        self.trace.take()
    }

    /// Creates the resolver of the worker with this number. `seed` must be unpredictable: message
    /// IDs follow from it.
    #[must_use]
    pub fn new(shared: Arc<Shared>, worker: usize, seed: [u8; 32]) -> Self {
        let mut random = ChaCha12Rng::from_seed(seed);
        let mut key = [0; 16];
        random.fill_bytes(&mut key);
        let anchors_managed_at = shared.register_worker(worker);
        let mut resolver = Self {
            settings: shared.settings.load_full(),
            clients: Clients::new(&shared.statistics),
            model: shared.model.worker(),
            shared,
            worker,
            valid_signatures: ValidSignatures::new(VALID_SIGNATURES, &key),
            random,
            tasks: TaskTable::default(),
            exchanges: HashMap::default(),
            next_exchange: 0,
            timers: BinaryHeap::new(),
            outputs: VecDeque::new(),
            ready: VecDeque::new(),
            verifications: VerificationQueue::default(),
            turn: None,
            priming_failed_at: None,
            anchor_timer: None,
            rechecks: Rechecks::default(),
            reports: Reports::default(),
            trace: Trace::default(),
        };
        if let Some(now) = anchors_managed_at {
            resolver.schedule_anchor_queries(now);
        }
        resolver.schedule_rechecks(resolver.shared.started);
        resolver
    }

    /// Number of questions that are being resolved.
    #[must_use]
    pub fn task_count(&self) -> usize {
        self.tasks.len()
    }

    fn handle_query(&mut self, received: ClientQuery<'_>, now: Now) {
        let token = received.token;
        let Self { shared, settings, clients, .. } = self;
        let cached = |question: &Question| cached_outcome(&shared.cache, &settings.options, question, now);
        match clients.admit(settings, (shared.cookies.as_ref(), &shared.cache), received, now, cached) {
            Admission::Drop => self.outputs.push_back(Output::Drop(token)),
            Admission::Reply(reply) => self.outputs.push_back(Output::Reply(token, reply)),
            Admission::Resolve(question, client) => self.resolve(question, client, now),
        }
    }

    /// Lets a client wait for a task with its question, which the cache cannot answer.
    fn resolve(&mut self, question: Question, client: WaitingClient, now: Now) {
        if let Some(task) = self.tasks.find(&question).and_then(|id| self.tasks.get_mut(id)) {
            // The number of clients is bounded by the driver, which has a token for each.
            task.waiters.push(Waiter::Client(client));
            return;
        }
        if self.is_full() {
            self.reply(&client, &Outcome::failure(BUSY, true), now);
            return;
        }
        let budget = Budget::new(self.settings.options.limits, now.instant);
        let network = client.network;
        let id = self.start_task(question, (0, network), budget, vec![Waiter::Client(client)]);
        if let Some(task) = self.tasks.get_mut(id) {
            task.missed_cache = !task.waits_for_worker;
        }
    }

    /// Whether no further task may start.
    fn is_full(&self) -> bool {
        // Each client query may have a task, and each of these some address fetches.
        self.tasks.len() >= TASKS_PER_QUERY * self.settings.options.clients.queries as usize
    }

    fn reply(&mut self, client: &WaitingClient, outcome: &Outcome, now: Now) {
        let reply = self.clients.reply(client, &self.settings, outcome, now);
        self.outputs.push_back(Output::Reply(client.token, reply));
    }

    /// Starts a task, or waits for a worker that already resolves the same question.
    fn start_task(
        &mut self,
        question: Question,
        (depth, network): (u8, u64),
        budget: Budget,
        waiters: Vec<Waiter>,
    ) -> TaskId {
        let claim = self.shared.cache.claim(&question, self.worker);
        let mut task = Task::new(question, depth, budget);
        (task.waiters, task.network) = (waiters, network);
        task.waits_for_worker = claim == Claim::Waiting;
        let deadline = task.budget.deadline();
        let id = self.tasks.insert(task);
        self.timers.push(Reverse((deadline, Timer::Task(id))));
        self.ready.push_back(id);
        id
    }

    /// Ends a task: passes the outcome to all that wait for it.
    fn finish(&mut self, id: TaskId, outcome: &Outcome, now: Now) {
        let Some(mut task) = self.tasks.remove(id) else { return };
        if let Some(exchange) = task.exchange.take() {
            self.end_exchange(exchange);
        }
        let workers = self.shared.cache.release(&task.question, self.worker);
        if !workers.is_empty() {
            self.outputs.push_back(Output::Wake(workers));
        }
        if task.question.name.view().is_root() && task.question.rtype == Rtype::NS {
            self.end_priming(now);
        }
        let (limits, mut restarted) = (self.settings.options.limits, Vec::new());
        let Task { question, depth, network, budget, waiters, glue, .. } = *task;
        let mut budget = Some(budget);
        for waiter in waiters {
            match waiter {
                // The budget was that of the task that started this one, not of this client.
                Waiter::Client(client)
                    if outcome.is_over_budget && depth > 0 && now.instant < client.since + limits.time =>
                {
                    restarted.push(client);
                }
                Waiter::Client(client) => self.reply(&client, outcome, now),
                Waiter::Anchor => self.observe_anchor(&question.name, outcome, now),
                Waiter::Recheck(zone) => self.observe_recheck(&zone, question.rtype, outcome, now),
                Waiter::Task { id: parent_id, is_starter } => {
                    let Some(parent) = self.tasks.get_mut(parent_id) else { continue };
                    parent.children.retain(|child| *child != id);
                    if let Some(budget) = budget.take_if(|_| is_starter) {
                        parent.budget.refund(budget);
                    }
                    // The budget was that of another client.
                    let is_final = is_starter || !outcome.is_over_budget;
                    if let Some(checking) = parent.checking.as_mut().filter(|_| is_final) {
                        checking.fetched.push((question.clone(), outcome.clone()));
                    }
                    if let Some(delegation) = &mut parent.delegation {
                        outcome
                            .answer
                            .iter()
                            .for_each(|rrset| delegation.add_addresses(&question.name, rrset));
                        glue.iter().for_each(|rrset| delegation.add_spare_addresses(rrset));
                    }
                    self.ready.push_back(parent_id);
                }
            }
        }
        if let Some(since) = restarted.iter().map(|client| client.since).min() {
            let waiters = restarted.into_iter().map(Waiter::Client).collect();
            self.start_task(question, (0, network), Budget::new(limits, since), waiters);
        }
    }

    /// Lets tasks continue that can, until the time `left`, in ns, is spent. The time of a task is an
    /// estimate.
    fn run(&mut self, left: &mut u64, now: Now) {
        while *left > 0
            && let Some(id) = self.ready.pop_front()
        {
            let hash_blocks = self.model.hash_blocks();
            let spent = self.step(id, now);
            let hash_blocks = self.model.hash_blocks() - hash_blocks;
            *left = left.saturating_sub(spent + hash_blocks * HASH_BLOCK_NANOSECONDS);
        }
    }

    /// Forgets an exchange, whose socket the driver closes.
    fn end_exchange(&mut self, id: ExchangeId) -> Option<(TaskId, Exchange)> {
        let (task_id, exchange) = self.exchanges.remove(&id)?;
        self.outputs.push_back(Output::Close(id));
        if let Some(task) = self.tasks.get_mut(task_id) {
            task.exchange = None;
        }
        Some((task_id, exchange))
    }
}

/// Returns the outcome if the cache has all of it.
fn cached_outcome(
    cache: &Cache,
    options: &ResolverOptions,
    question: &Question,
    now: Now,
) -> Option<Outcome> {
    let mut question = question.clone();
    let (mut answer, mut proofs) = (Vec::new(), Vec::new());
    for _ in 0..=options.limits.aliases {
        let (rcode, authority) = match look_up(cache, &question, now)? {
            Found::Answer(rrsets, authority) if answer.is_empty() => {
                answer = rrsets;
                (Rcode::NOERROR, authority)
            }
            Found::Answer(rrsets, authority) => {
                answer.extend(rrsets);
                (Rcode::NOERROR, authority)
            }
            Found::Negative(rcode, authority, _) => (rcode, authority),
            Found::Failure(failure) => return Some(Outcome::failure(ErrorDetail::from(failure), false)),
            Found::Alias(rrsets, alias_proofs, target) => {
                answer.extend(rrsets);
                proofs.extend(alias_proofs);
                question.name = target;
                continue;
            }
        };
        let authority = join_proofs(proofs, authority);
        let error = insecure_error(&answer, &authority);
        return Some(Outcome { rcode, answer, authority, error, ..Outcome::EMPTY });
    }
    None
}

impl Machine for Resolver {
    fn handle_event(&mut self, event: Event<'_>, now: Now) {
        match event {
            Event::Query(received) => self.handle_query(received, now),
            Event::Response(exchange, octets) => self.handle_response(exchange, octets, now),
            Event::Failed(exchange, failure) => self.handle_failure(exchange, failure, now),
            Event::Wake => {
                let settings = self.shared.settings.load_full();
                if !Arc::ptr_eq(&settings, &self.settings) {
                    self.settings = settings;
                    // There may be new zones with trust anchors, or negative trust anchors.
                    self.schedule_anchor_queries(now);
                    self.schedule_rechecks(now);
                }
                for id in self.tasks.waiting_for_worker() {
                    self.claim_again(id);
                }
            }
        }
    }

    fn handle_timeout(&mut self, now: Now) {
        while let Some(Reverse((due, timer))) = self.timers.peek().copied()
            && due <= now.instant
        {
            self.timers.pop();
            match timer {
                Timer::Exchange(id) => self.handle_exchange_timeout(id, now),
                Timer::Task(id) => self.handle_task_timeout(id, now),
                Timer::Anchors if self.anchor_timer == Some(due) => self.query_anchors(now),
                Timer::NegativeAnchors if self.rechecks.timer == Some(due) => self.handle_recheck_timer(now),
                Timer::Anchors | Timer::NegativeAnchors => {}
            }
        }
    }

    fn end_turn(&mut self, now: Now) {
        // Answers from the cache leave nothing to do.
        if self.ready.is_empty() && self.verifications.is_empty() {
            self.turn = None;
            return;
        }
        let mut left = TURN_NANOSECONDS;
        self.run(&mut left, now);
        self.verify_queued(&mut left, now);
        let has_work = !self.ready.is_empty() || !self.verifications.is_empty();
        self.turn = has_work.then_some(now.instant);
    }

    fn poll_output(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    fn poll_timeout(&mut self) -> Option<Instant> {
        // The next turn begins at once.
        if self.turn.is_some() {
            return self.turn;
        }
        // Timers of exchanges and tasks that ended earlier are dropped here: a driver would wake up
        // for them.
        while let Some(Reverse((due, timer))) = self.timers.peek().copied() {
            let is_current = match timer {
                Timer::Exchange(id) => self.exchanges.contains_key(&id),
                Timer::Task(id) => self.tasks.get(id).is_some(),
                Timer::Anchors => self.anchor_timer == Some(due),
                Timer::NegativeAnchors => self.rechecks.timer == Some(due),
            };
            if is_current {
                return Some(due);
            }
            self.timers.pop();
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hints::Hints;
    use crate::testing::{name, now};
    use nonesuch_net::Transport;
    use nonesuch_net::machine::ClientToken;
    use nonesuch_proto::message::{flags, push_query};
    use std::net::{Ipv4Addr, SocketAddr};

    /// Another worker wakes this one for each of its tasks that ends.
    #[test]
    fn tasks_that_still_wait_for_another_worker_do_not_queue() {
        let now = now();
        let hints = Hints::new([(name("ns.root."), Ipv4Addr::new(192, 0, 2, 1).into())]).expect("hints");
        let options = ResolverOptions { hints, ..ResolverOptions::default() };
        let shared = Arc::new(Shared::new(options, [7; 16], &[7; 32], now).expect("local names"));
        let mut message = Vec::new();
        push_query(&name("host.example."), Rtype::A, 7, flags::RD, &mut message);
        let client = SocketAddr::from((Ipv4Addr::LOCALHOST, 4000));
        let workers: Vec<Resolver> = (0..2)
            .map(|worker| {
                let mut worker = Resolver::new(Arc::clone(&shared), worker, [7; 32]);
                let (token, transport) = (ClientToken(1), Transport::Udp);
                let query = ClientQuery { token, client, transport, message: &message };
                worker.handle_event(Event::Query(query), now);
                worker.end_turn(now);
                (0..3).for_each(|_| worker.handle_event(Event::Wake, now));
                worker
            })
            .collect();
        let waiting: Vec<usize> =
            workers.iter().map(|worker| worker.tasks.waiting_for_worker().len()).collect();
        assert_eq!(waiting, [0, 1]);
        assert!(workers.iter().all(|worker| worker.ready.is_empty()));
    }
}
