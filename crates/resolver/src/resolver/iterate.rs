//! The steps of a task: cache, delegation, server, query (RFC 1034 §5.3.3).

use super::{Resolver, Timer};
use crate::budget::LimitReached;
use crate::cache::{Claim, FailureCause, Question, Rank};
use crate::delegation::{Delegation, ServerSource};
use crate::exchange::{Exchange, random_case};
use crate::lookup::{Found, closest_delegation, look_up, look_up_name};
use crate::record::Rrset;
use crate::servers::{NoServer, Purpose, QueryKind, Repeat};
use crate::task::{ErrorDetail, Outcome, Task, TaskId, Waiter};
use crate::zones::{ZoneRuleKind, ZoneRules};
use nonesuch_net::Transport;
use nonesuch_net::machine::{ExchangeId, Now, Output, Upstream};
use nonesuch_proto::message::{Rcode, flags};
use nonesuch_proto::{Class, Name, Rtype};
use nonesuch_server::acl::DNS_PORT;
use nonesuch_server::extended_errors::ExtendedError;
use rand::RngCore;
use std::cmp::Reverse;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

/// The aliases lead back to a name of the chain.
const ALIAS_LOOP: ExtendedError = ExtendedError { code: 0, text: "the aliases are a loop" };
/// Time after failed priming in which the hints are used without another attempt.
const PRIMING_PAUSE: Duration = Duration::from_secs(60);
/// Time of a step of a task, in ns, without its hashes; and the part of each label of its name.
const STEP_NANOSECONDS: u64 = 2_000;
const LABEL_NANOSECONDS: u64 = 1_000;

/// What a task does next.
pub(super) enum Step {
    /// Another step.
    Continue,
    /// It waits for a response, or for another task.
    Wait,
    /// It has its outcome.
    Finish(Outcome),
}

impl Resolver {
    /// Continues a task until it waits or ends.
    /// Returns an estimate of the time that this takes without hashes, in ns: a name with many labels needs many
    /// searches in the cache.
    pub(super) fn step(&mut self, id: TaskId, now: Now) -> u64 {
        let mut spent = 0;
        loop {
            let labels = self.tasks.get(id).map_or(0, |task| task.name.view().label_count());
            spent += STEP_NANOSECONDS + labels as u64 * LABEL_NANOSECONDS;
            match self.next_step(id, now) {
                Step::Continue => {}
                Step::Wait => return spent,
                Step::Finish(outcome) => {
                    self.finish(id, &outcome, now);
                    return spent;
                }
            }
        }
    }

    fn next_step(&mut self, id: TaskId, now: Now) -> Step {
        let Some(task) = self.tasks.get(id) else { return Step::Wait };
        let is_waiting = task.exchange.is_some()
            || !task.children.is_empty()
            || task.waits_for_worker
            || task.waits_for_turn;
        if is_waiting {
            return Step::Wait;
        }
        if task.checking.is_some()
            && let Some(checking) = self.tasks.get_mut(id).and_then(|task| task.checking.take())
        {
            return self.check(id, checking, now);
        }
        let Some(task) = self.tasks.get(id) else { return Step::Wait };
        if task.delegation.is_some() {
            return self.ask_server(id, now);
        }
        match self.use_cache(id, now) {
            Some(step) => step,
            None => self.choose_delegation(id, now),
        }
    }

    /// Uses what the cache has for the current name of the task.
    fn use_cache(&mut self, id: TaskId, now: Now) -> Option<Step> {
        let task = self.tasks.get(id)?;
        let question = task.question_of_name();
        // The keys of a trust anchor are the current keys of the servers (RFC 5011).
        let needs_keys = task.fetches_keys
            && (question.checking_disabled
                || question.rtype == Rtype::DS
                || !self.knows_keys(&question, now));
        let task = self.tasks.get_mut(id)?;
        // A new task of a client missed the cache just now. Meanwhile, another worker may have resolved
        // the question.
        let is_new = std::mem::take(&mut task.missed_cache);
        let look_up = if is_new { look_up_name } else { look_up };
        let Some(found) = look_up(&self.shared.cache, &question, now) else {
            return self.use_denials(id, &question, now);
        };
        match found {
            // It does not have the time for which the keys are trusted.
            Found::Answer(..) if needs_keys => None,
            Found::Answer(rrsets, proofs) => Some(Step::Finish(task.outcome(Rcode::NOERROR, rrsets, proofs))),
            Found::Negative(rcode, proofs, is_unsigned_delegation) => {
                task.is_unsigned_delegation = is_unsigned_delegation;
                Some(Step::Finish(task.outcome(rcode, Vec::new(), proofs)))
            }
            Found::Failure(failure) => {
                Some(Step::Finish(Outcome::failure(ErrorDetail::from(failure), false)))
            }
            Found::Alias(rrsets, proofs, target) => Some(use_alias(task, rrsets, proofs, target)),
        }
    }

    /// Follows the aliases of a response, whose target must be queried.
    pub(super) fn follow_aliases(
        &mut self,
        id: TaskId,
        (rrsets, proofs): (Vec<Rrset>, Vec<Rrset>),
        target: &Name,
        now: Now,
    ) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let count = rrsets.iter().filter(|rrset| rrset.rtype == Rtype::CNAME).count();
        let limit = (0..count).find_map(|_| task.budget.take_alias().err());
        if let Some(limit) = limit {
            self.finish(id, &over_budget(limit), now);
        } else if task.is_alias_loop(target) || is_in(&rrsets, target) {
            task.aliases.extend(rrsets);
            let outcome = alias_loop(task);
            self.finish(id, &outcome, now);
        } else {
            task.follow_alias(rrsets, proofs, target.view().to_canonical());
        }
    }

    /// Finds the servers to begin with.
    fn choose_delegation(&mut self, id: TaskId, now: Now) -> Step {
        let Some(task) = self.tasks.get(id) else { return Step::Wait };
        // A DS RRset is in the parent zone (RFC 4035 §3.1.4.1).
        let name = match task.name.view().parent() {
            Some(parent) if task.question.rtype == Rtype::DS => parent.to_name(),
            _ => task.name.clone(),
        };
        let cached = closest_delegation(&self.shared.cache, &self.settings.options, name.view(), now);
        let skips_forwarders = task.skips_forwarders;
        let configured = self.configured_delegation(&name);
        let configured = configured.filter(|configured| !(skips_forwarders && configured.is_forwarder()));
        let delegation = match configured {
            Some(configured)
                if configured.is_forwarder()
                    || !cached
                        .as_ref()
                        .is_some_and(|cached| cached.zone.view().is_below(configured.zone.view())) =>
            {
                configured
            }
            _ => match cached {
                Some(cached) => cached,
                None => match self.prime(id, now) {
                    Some(step) => return step,
                    None => self.hints_delegation(),
                },
            },
        };
        if self.uses_only_validated(id)
            && let Some((error, ttl)) = self.known_failure(delegation.zone.view(), name.view(), now)
        {
            return self.fail_as_zone(id, error, ttl, now);
        }
        let minimises = self.settings.options.qname_minimisation;
        if let Some(task) = self.tasks.get_mut(id) {
            task.enter_delegation(delegation, minimises);
        }
        Step::Continue
    }

    /// The forward zone or stub zone of a name.
    fn configured_delegation(&self, name: &Name) -> Option<Delegation> {
        let rule = self.settings.options.zones.closest(name.view())?;
        let source = match rule.kind {
            ZoneRuleKind::Forward { .. } => ServerSource::Forward,
            ZoneRuleKind::Stub => ServerSource::Stub,
        };
        let mut delegation = Delegation::configured(rule.apex.view(), source, rule.servers.clone());
        delegation.uses_tcp = rule.tcp;
        Some(delegation)
    }

    /// A question about servers. Their names and addresses are not validated: the data that come from
    /// the servers are.
    fn own_question(&self, name: Name, rtype: Rtype) -> Question {
        Question { name, rtype, class: Class::IN, checking_disabled: self.validates() }
    }

    fn hints_delegation(&self) -> Delegation {
        let addresses = self.settings.options.hints.addresses();
        let servers = addresses.map(|address| SocketAddr::new(address, DNS_PORT)).collect();
        Delegation::configured(Name::root().view(), ServerSource::Hints, servers)
    }

    /// Starts priming, or waits for it (RFC 8109). `None`: this task must use the hints.
    fn prime(&mut self, id: TaskId, now: Now) -> Option<Step> {
        let is_paused = self.priming_failed_at.is_some_and(|failed| now.instant < failed + PRIMING_PAUSE);
        let task = self.tasks.get(id)?;
        if is_paused || (task.name.view().is_root() && task.question.rtype == Rtype::NS) {
            return None;
        }
        let waits = self.wait_for(id, self.own_question(Name::root(), Rtype::NS), Fetch::Other, now);
        waits.is_ok().then_some(Step::Wait)
    }

    /// Makes the task wait for another one, which is started if it does not exist.
    ///
    /// # Errors
    /// The other one waits for this one, or cannot be started.
    fn wait_for(&mut self, id: TaskId, question: Question, fetch: Fetch, now: Now) -> Result<(), NoFetch> {
        if let Some(child) = self.tasks.find(&question) {
            if self.tasks.waits_for(child, id) {
                return Err(NoFetch::Cycle);
            }
            if let Some(task) = self.tasks.get_mut(child) {
                task.waiters.push(Waiter::Task { id, is_starter: false });
            }
            self.tasks.get_mut(id).expect("the caller has the task").children.push(child);
            return Ok(());
        }
        if self.is_full() {
            return Err(NoFetch::OverBudget);
        }
        let Some(task) = self.tasks.get_mut(id) else { return Err(NoFetch::OverBudget) };
        let budget = match &mut task.delegation {
            Some(delegation) if fetch == Fetch::Address => {
                task.budget.start_address_fetch(&mut delegation.fetches, now.instant)
            }
            _ => task.budget.start_fetch(now.instant),
        };
        let Ok(budget) = budget else { return Err(NoFetch::OverBudget) };
        let (depth, network) = (task.depth + 1, task.network);
        let waiter = Waiter::Task { id, is_starter: true };
        let child = self.start_task(question, (depth, network), budget, vec![waiter]);
        if let Some(task) = self.tasks.get_mut(child) {
            task.fetches_keys = fetch == Fetch::Chain;
        }
        self.tasks.get_mut(id).expect("the caller has the task").children.push(child);
        Ok(())
    }

    /// Makes the task wait for a question about the chain of trust.
    ///
    /// # Errors
    /// Those of [`wait_for`](Self::wait_for).
    pub(super) fn wait_for_chain(&mut self, id: TaskId, question: Question, now: Now) -> Result<(), NoFetch> {
        let is_key = matches!(question.rtype, Rtype::DNSKEY | Rtype::NSEC5KEY);
        self.wait_for(id, question, if is_key { Fetch::Chain } else { Fetch::Other }, now)
    }

    /// Claims the question of a task again that waited for another worker.
    pub(super) fn claim_again(&mut self, id: TaskId) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.waits_for_worker = self.shared.cache.claim(&task.question, self.worker) == Claim::Waiting;
        // A worker wakes for each end of a task of another one: tasks that still wait must not queue.
        if !task.waits_for_worker {
            self.ready.push_back(id);
        }
    }

    /// Leaves out queries with a part of the name whose answers are in the cache.
    fn skip_known_labels(&mut self, id: TaskId, now: Now) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        while task.minimisation.labels.is_some() {
            let (name, rtype) = task.current_question();
            let cache = &self.shared.cache;
            let is_known = cache.rrset(name.view(), rtype, Class::IN, Rank::CLIENT_MIN, now).is_some()
                || cache.negative(name.view(), rtype, Class::IN, now).is_some();
            if !is_known {
                return;
            }
            task.ask_more_labels();
        }
    }

    /// Sends a query to a server of the delegation, or looks for more servers.
    fn ask_server(&mut self, id: TaskId, now: Now) -> Step {
        self.skip_known_labels(id, now);
        let (shared, settings) = (Arc::clone(&self.shared), Arc::clone(&self.settings));
        let Some(task) = self.tasks.get(id) else { return Step::Wait };
        let Some(delegation) = &task.delegation else { return Step::Continue };
        let zone = delegation.zone.view();
        let mut candidates = delegation.addresses(|address| settings.options.may_query(zone, address));
        settings.options.families.keep_preferred(&mut candidates);
        // An agent must be able to trust the address of a report (RFC 9567 §6.3).
        let is_whole_report = task.is_report && task.minimisation.labels.is_none();
        let uses_tcp = delegation.uses_tcp || is_whole_report;
        let transport = if uses_tcp { Transport::Tcp } else { Transport::Udp };
        let kind = QueryKind::of(task.current_question().1);
        let purpose = Purpose { zone: shared.servers.zone_key(zone), kind, transport };
        let random = self.random.next_u64();
        match shared.servers.select(&candidates, &task.attempts, purpose, now, random) {
            Ok(server) => match self.send(id, server, transport, None, now) {
                Ok(()) => Step::Wait,
                Err(SendError::Server) => Step::Continue,
                Err(SendError::Limit(limit)) => Step::Finish(over_budget(limit)),
            },
            Err(reason) => self.find_addresses(id, reason, now),
        }
    }

    /// Sends the current question of the task, and counts the attempt.
    pub(super) fn send(
        &mut self,
        id: TaskId,
        server: SocketAddr,
        transport: Transport,
        repeat: Option<Repeat>,
        now: Now,
    ) -> Result<(), SendError> {
        let shared = Arc::clone(&self.shared);
        let Some(task) = self.tasks.get_mut(id) else { return Ok(()) };
        let Some(delegation) = &task.delegation else { return Ok(()) };
        let (name, rtype) = task.current_question();
        let zone = shared.servers.zone_key(delegation.zone.view());
        let is_recursive = delegation.is_forwarder();
        let purpose = Purpose { zone, kind: QueryKind::of(rtype), transport };
        let Ok(attempt) = shared.servers.begin(server, purpose, repeat, now) else {
            task.exclude(server);
            return Err(SendError::Server);
        };
        task.budget.take_query(now.instant).map_err(SendError::Limit)?;
        task.count_attempt(server);
        let has_random_case = self.settings.options.use_0x20 && attempt.copies_case;
        let name = if has_random_case { random_case(name.view(), &mut self.random) } else { name };
        let (transport, timeout) = (attempt.transport, attempt.timeout);
        self.model.count_query(transport);
        let message_id = self.random.next_u32() as u16;
        let exchange = Exchange { attempt, id: message_id, name, rtype, has_random_case, wrong_responses: 0 };
        // RFC 6840 §5.9: a resolver that validates requests the data of others, not their opinion.
        let checking_disabled =
            if task.question.checking_disabled || self.shared.validates() { flags::CD } else { 0 };
        let message = exchange.query(if is_recursive { flags::RD | checking_disabled } else { 0 });
        let exchange_id = ExchangeId(self.next_exchange);
        self.next_exchange += 1;
        task.exchange = Some(exchange_id);
        self.exchanges.insert(exchange_id, (id, exchange));
        self.timers.push(Reverse((now.instant + timeout, Timer::Exchange(exchange_id))));
        self.outputs.push_back(Output::Send(Upstream { exchange: exchange_id, server, transport, message }));
        Ok(())
    }

    /// Looks up the addresses of another nameserver. Without any, the task fails for `reason`.
    fn find_addresses(&mut self, id: TaskId, reason: NoServer, now: Now) -> Step {
        let start = self.random.next_u32() as usize;
        let types = self.settings.options.families.types();
        loop {
            let Some(task) = self.tasks.get_mut(id) else { return Step::Wait };
            let Some(delegation) = &mut task.delegation else { return Step::Continue };
            let Some((name, missing)) = delegation.next_unknown_nameserver(start, types) else {
                return self.fail(id, reason, now);
            };
            missing.iter().for_each(|rtype| delegation.set_looked_up(&name, *rtype));
            let mut is_waiting = false;
            for rtype in missing {
                let question = self.own_question(name.clone(), rtype);
                is_waiting |= self.wait_for(id, question, Fetch::Address, now).is_ok();
            }
            if is_waiting {
                return Step::Wait;
            }
        }
    }

    /// No server is left: tries what remains, then ends the task.
    fn fail(&mut self, id: TaskId, reason: NoServer, now: Now) -> Step {
        let Some(task) = self.tasks.get_mut(id) else { return Step::Wait };
        let Some(delegation) = &mut task.delegation else { return Step::Continue };
        if delegation.use_spare_addresses() {
            return Step::Continue;
        }
        if delegation.is_forwarder()
            && !task.skips_forwarders
            && falls_back(&self.settings.options.zones, &delegation.zone)
        {
            task.skips_forwarders = true;
            task.leave_delegation();
            return Step::Continue;
        }
        if delegation.is_cached && !task.asked_parent_again {
            let parent = delegation.zone.view().parent().map(|parent| parent.to_name());
            if let Some(parent) = parent {
                return self.ask_parent_again(id, &parent, now);
            }
        }
        if let Some(error) = task.bogus.take() {
            return self.fail_validation(id, error, now);
        }
        if let Some(spare) = task.spare.take() {
            self.receive(id, *spare, now);
            return Step::Continue;
        }
        if reason == NoServer::Busy {
            return Step::Finish(Outcome::failure(reason.extended_error(), true));
        }
        let error = task.failure.clone().unwrap_or_else(|| reason.extended_error().into());
        self.report(id, &error, now);
        let Some(task) = self.tasks.get(id) else { return Step::Wait };
        // The next client would wait as long (RFC 9520).
        let question = task.question_of_name();
        self.shared.cache.insert_failure(&question, FailureCause::Resolution, (error.code, &error.text), now);
        Step::Finish(Outcome::failure(error, false))
    }

    /// Asks the servers of a parent zone for the delegation again: its servers or their addresses may
    /// have changed since it was cached.
    pub(super) fn ask_parent_again(&mut self, id: TaskId, parent: &Name, now: Now) -> Step {
        let delegation = closest_delegation(&self.shared.cache, &self.settings.options, parent.view(), now);
        let delegation = delegation.unwrap_or_else(|| self.hints_delegation());
        let minimises = self.settings.options.qname_minimisation;
        if let Some(task) = self.tasks.get_mut(id) {
            task.asked_parent_again = true;
            task.enter_delegation(delegation, minimises);
        }
        Step::Continue
    }

    /// Ends a task whose time is over.
    pub(super) fn handle_task_timeout(&mut self, id: TaskId, now: Now) {
        let Some(task) = self.tasks.get(id) else { return };
        let failure = task.bogus.as_ref().or(task.failure.as_ref()).cloned();
        let error = failure.unwrap_or_else(|| LimitReached::Time.extended_error().into());
        self.finish(id, &Outcome::failure(error, true), now);
    }

    /// Remembers whether the root servers are known after the priming query.
    pub(super) fn end_priming(&mut self, now: Now) {
        let is_known =
            closest_delegation(&self.shared.cache, &self.settings.options, Name::root().view(), now)
                .is_some();
        self.priming_failed_at = (!is_known).then_some(now.instant);
    }
}

/// Follows an alias of the cache.
pub(super) fn use_alias(task: &mut Task, rrsets: Vec<Rrset>, proofs: Vec<Rrset>, target: Name) -> Step {
    if let Err(limit) = task.budget.take_alias() {
        return Step::Finish(over_budget(limit));
    }
    if task.is_alias_loop(&target) || is_in(&rrsets, &target) {
        task.aliases.extend(rrsets);
        return Step::Finish(alias_loop(task));
    }
    task.follow_alias(rrsets, proofs, target);
    Step::Continue
}

/// Whether the names of a forward zone are resolved from the root if its servers fail.
fn falls_back(zones: &ZoneRules, zone: &Name) -> bool {
    zones.closest(zone.view()).is_some_and(|rule| rule.kind == ZoneRuleKind::Forward { first: true })
}

/// Whether one of these aliases is of the name.
fn is_in(aliases: &[Rrset], name: &Name) -> bool {
    aliases.iter().any(|rrset| rrset.rtype == Rtype::CNAME && rrset.owner == *name)
}

/// Returns the outcome of a task whose aliases are a loop: an error (RFC 1034 §3.6.2), with the
/// aliases.
fn alias_loop(task: &mut Task) -> Outcome {
    let outcome = task.outcome(Rcode::SERVFAIL, Vec::new(), Vec::new());
    Outcome { error: Some(ALIAS_LOOP.into()), ..outcome }
}

/// Why a query is not sent.
pub(super) enum SendError {
    /// The server cannot be asked now: select another one.
    Server,
    /// The budget is spent.
    Limit(LimitReached),
}

/// What a task fetches for itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Fetch {
    /// An address of a nameserver.
    Address,
    /// The keys of a zone in the chain of trust.
    Chain,
    Other,
}

/// Why a task does not wait for another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum NoFetch {
    /// The other one waits for this one.
    Cycle,
    /// The budget of the client query is spent, or the worker has too many tasks.
    OverBudget,
}

/// The outcome of a task whose budget is spent.
pub(super) fn over_budget(limit: LimitReached) -> Outcome {
    Outcome::failure(limit.extended_error(), true)
}
