//! One question that is being resolved. Clients and other tasks wait for its outcome.

mod table;

pub(crate) use table::TaskTable;

use crate::budget::Budget;
use crate::cache::{Failure, Question};
use crate::client::WaitingClient;
use crate::delegation::Delegation;
use crate::record::{Rrset, Security};
use crate::validation::{Checking, ServerResponse};
use nonesuch_dnssec::validate::TrustedKeys;
use nonesuch_net::machine::ExchangeId;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_server::extended_errors::{ExtendedError, ExtendedErrorRef};
use std::borrow::Cow;
use std::net::SocketAddr;
use std::sync::Arc;

/// Number of attempts at one server for one question.
pub(crate) const ATTEMPTS_PER_SERVER: u8 = 3;
/// Queries with one more label each, before the remaining labels are divided over the remaining
/// queries (RFC 9156 §2.3, MINIMISE_ONE_LAB).
const MINIMISE_ONE_LABEL: usize = 4;
/// Maximum number of queries with a part of the name (RFC 9156 §2.3, MAX_MINIMISE_COUNT).
const MINIMISED_QUERIES_MAX: usize = 10;

/// Identifies a task. It does not refer to a later task in the same place.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct TaskId {
    index: u32,
    generation: u32,
}

/// The extended error of an outcome (RFC 8914).
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct ErrorDetail {
    pub(crate) code: u16,
    pub(crate) text: Cow<'static, str>,
}

impl From<ExtendedError> for ErrorDetail {
    fn from(error: ExtendedError) -> Self {
        Self { code: error.code, text: Cow::Borrowed(error.text) }
    }
}

impl From<Failure> for ErrorDetail {
    /// The extended error for a failure from the cache is that of the first reply: it is more specific than "Cached
    /// Error" (RFC 8914 §4.14).
    fn from(failure: Failure) -> Self {
        Self { code: failure.code, text: failure.text.into() }
    }
}

impl ErrorDetail {
    pub(crate) fn as_ref(&self) -> ExtendedErrorRef<'_> {
        ExtendedErrorRef { code: self.code, text: &self.text }
    }
}

/// The validated keys of a zone.
#[derive(Clone, Debug)]
pub(crate) struct ValidatedKeys(pub(crate) Arc<TrustedKeys>);

impl PartialEq for ValidatedKeys {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for ValidatedKeys {}

/// The result of a task.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Outcome {
    pub(crate) rcode: Rcode,
    /// The aliases, and the RRset of the question.
    pub(crate) answer: Vec<Rrset>,
    /// The SOA RRset of a negative answer, and the records of a denial or of a wildcard answer.
    pub(crate) authority: Vec<Rrset>,
    pub(crate) error: Option<ErrorDetail>,
    /// Whether the budget of the task was the reason. Another client may have more luck.
    pub(crate) is_over_budget: bool,
    /// Whether it is the proof that the name is an unsigned delegation.
    pub(crate) is_unsigned_delegation: bool,
    /// The keys of the zone whose DNSKEY RRset was validated.
    pub(crate) keys: Option<ValidatedKeys>,
    /// Whether the last name has neither an answer nor a denial: some servers of unsigned zones deny
    /// without records.
    pub(crate) is_unproved: bool,
}

impl Outcome {
    /// NOERROR without records.
    pub(crate) const EMPTY: Self = Self {
        rcode: Rcode::NOERROR,
        answer: Vec::new(),
        authority: Vec::new(),
        error: None,
        is_over_budget: false,
        is_unsigned_delegation: false,
        keys: None,
        is_unproved: false,
    };

    /// A failure, with its extended error.
    pub(crate) fn failure(error: impl Into<ErrorDetail>, is_over_budget: bool) -> Self {
        Self { rcode: Rcode::SERVFAIL, error: Some(error.into()), is_over_budget, ..Self::EMPTY }
    }

    /// Whether all data are secure (RFC 4035 §3.2.3).
    pub(crate) fn is_secure(&self) -> bool {
        let mut all = self.answer.iter().chain(&self.authority).peekable();
        self.rcode != Rcode::SERVFAIL
            && !self.is_unproved
            && all.peek().is_some()
            && all.all(|rrset| rrset.security == Security::Secure)
    }
}

/// Who waits for a task.
#[derive(Debug)]
pub(crate) enum Waiter {
    Client(WaitingClient),
    /// The trust anchors of the zone of which the task fetches the DNSKEY RRset (RFC 5011).
    Anchor,
    /// The check whether the zone with this negative trust anchor validates again (RFC 7646).
    Recheck(Name),
    /// A task that needs the addresses of a nameserver, or the root servers. The task that started
    /// this one paid for it.
    Task {
        id: TaskId,
        is_starter: bool,
    },
}

/// A question that is being resolved.
#[derive(Debug)]
pub(crate) struct Task {
    /// The question of class IN, in lower case. Equal questions share a task.
    pub(crate) question: Question,
    /// Number of tasks above this one: 0 for the question of a client.
    pub(crate) depth: u8,
    pub(crate) budget: Budget,
    pub(crate) waiters: Vec<Waiter>,
    /// Tasks that this one waits for.
    pub(crate) children: Vec<TaskId>,
    /// The aliases so far.
    pub(crate) aliases: Vec<Rrset>,
    /// The RRsets that prove aliases which were expanded from wildcards.
    pub(crate) alias_proofs: Vec<Rrset>,
    /// The name after the aliases.
    pub(crate) name: Name,
    /// The zone whose servers are asked; `None` before it is known.
    pub(crate) delegation: Option<Delegation>,
    pub(crate) minimisation: Minimisation,
    pub(crate) exchange: Option<ExchangeId>,
    /// Servers of the delegation that were asked this question, with the number of attempts.
    pub(crate) attempts: Vec<(SocketAddr, u8)>,
    /// A doubtful response for the name, for the case that there is no better one.
    pub(crate) spare: Option<Box<ServerResponse>>,
    /// Addresses of this nameserver in referrals, for tasks that look for its address: the zone
    /// itself may have a wrong address, or none.
    pub(crate) glue: Vec<Rrset>,
    /// Whether the servers of a parent zone were asked again, because those of a cached delegation
    /// failed.
    pub(crate) asked_parent_again: bool,
    /// Whether the servers of the forward zone have failed, and the name is resolved from the root.
    pub(crate) skips_forwarders: bool,
    /// The most specific reason for a failure so far.
    pub(crate) failure: Option<ErrorDetail>,
    /// Whether the task waits for the same question in another worker.
    pub(crate) waits_for_worker: bool,
    /// Whether the cache had nothing for the question just before the task began.
    pub(crate) missed_cache: bool,
    /// The response that is being validated.
    pub(crate) checking: Option<Box<Checking>>,
    /// Whether the task waits for the verification of signatures at the end of a turn.
    pub(crate) waits_for_turn: bool,
    /// Number of bogus responses to the question.
    pub(crate) bogus_responses: u8,
    /// The reason for which the last of them is bogus.
    pub(crate) bogus: Option<ErrorDetail>,
    /// Whether the answer proves that the name is an unsigned delegation.
    pub(crate) is_unsigned_delegation: bool,
    /// The keys of the zone whose DNSKEY RRset was validated.
    pub(crate) keys: Option<ValidatedKeys>,
    /// Whether the task validates the DNSKEY or NSEC5KEY RRset of a zone again, for which the RRset must be
    /// fetched, although the cache may have it. A DS RRset, and an RRset that is not validated, are fetched in
    /// any case.
    pub(crate) fetches_keys: bool,
    /// The client network that pays for the signatures, as a hash.
    pub(crate) network: u64,
    /// The agent to which a failure is reported: that of the server that responded last (RFC 9567).
    pub(crate) agent: Option<Name>,
    /// Whether the question is a report, which is sent over TCP.
    pub(crate) is_report: bool,
}

impl Task {
    pub(crate) fn new(question: Question, depth: u8, budget: Budget) -> Self {
        Self {
            name: question.name.clone(),
            question,
            depth,
            budget,
            waiters: Vec::new(),
            children: Vec::new(),
            aliases: Vec::new(),
            alias_proofs: Vec::new(),
            delegation: None,
            minimisation: Minimisation::OFF,
            exchange: None,
            attempts: Vec::new(),
            spare: None,
            glue: Vec::new(),
            asked_parent_again: false,
            skips_forwarders: false,
            failure: None,
            waits_for_worker: false,
            missed_cache: false,
            checking: None,
            waits_for_turn: false,
            bogus_responses: 0,
            bogus: None,
            is_unsigned_delegation: false,
            keys: None,
            fetches_keys: false,
            network: 0,
            agent: None,
            is_report: false,
        }
    }

    /// Follows an alias. `rrsets` are its CNAME RRset, and the DNAME RRset that implies it.
    pub(crate) fn follow_alias(&mut self, rrsets: Vec<Rrset>, proofs: Vec<Rrset>, target: Name) {
        self.aliases.extend(rrsets);
        self.alias_proofs = join_proofs(std::mem::take(&mut self.alias_proofs), proofs);
        self.name = target;
        self.spare = None;
        (self.bogus, self.bogus_responses) = (None, 0);
        self.asked_parent_again = false;
        self.skips_forwarders = false;
        self.leave_delegation();
    }

    /// Whether an alias leads back to a name of the chain.
    pub(crate) fn is_alias_loop(&self, target: &Name) -> bool {
        self.aliases.iter().any(|rrset| rrset.rtype == Rtype::CNAME && rrset.owner == *target)
    }

    /// Begins with the servers of a zone.
    pub(crate) fn enter_delegation(&mut self, delegation: Delegation, minimises: bool) {
        self.minimisation = if minimises && !delegation.is_forwarder() {
            Minimisation::begin(self.name.view(), delegation.zone.view())
        } else {
            Minimisation::OFF
        };
        self.delegation = Some(delegation);
        self.attempts.clear();
        self.agent = None;
    }

    /// Forgets the servers of the zone.
    pub(crate) fn leave_delegation(&mut self) {
        self.delegation = None;
        self.attempts.clear();
    }

    /// The question of the client about the current name: that of the client, or the target of an alias.
    pub(crate) fn question_of_name(&self) -> Question {
        Question { name: self.name.clone(), ..self.question.clone() }
    }

    /// The name and the type to ask the servers now.
    pub(crate) fn current_question(&self) -> (Name, Rtype) {
        match self.minimisation.labels {
            // RFC 9156 §2.1: type A, which servers answer most reliably.
            Some(labels) => (self.name.view().suffix(labels).to_name(), Rtype::A),
            None => (self.name.clone(), self.question.rtype),
        }
    }

    /// Continues with more labels of the name.
    pub(crate) fn ask_more_labels(&mut self) {
        self.minimisation = self.minimisation.next(self.name.view());
        self.attempts.clear();
    }

    /// Asks the whole name.
    pub(crate) fn ask_whole_name(&mut self) {
        self.minimisation = Minimisation::OFF;
        self.attempts.clear();
    }

    /// Counts an attempt at a server.
    pub(crate) fn count_attempt(&mut self, server: SocketAddr) {
        match self.attempts.iter_mut().find(|(known, _)| *known == server) {
            Some((_, count)) => *count = count.saturating_add(1),
            None => self.attempts.push((server, 1)),
        }
    }

    /// Does not ask a server again for this question.
    pub(crate) fn exclude(&mut self, server: SocketAddr) {
        self.attempts.retain(|(known, _)| *known != server);
        self.attempts.push((server, ATTEMPTS_PER_SERVER));
    }

    /// Completes the outcome with the aliases.
    pub(crate) fn outcome(&mut self, rcode: Rcode, answer: Vec<Rrset>, authority: Vec<Rrset>) -> Outcome {
        let mut all: Vec<Rrset> = Vec::new();
        for rrset in std::mem::take(&mut self.aliases) {
            // Several aliases of a chain can follow from one DNAME RRset.
            let is_repeated = rrset.rtype == Rtype::DNAME
                && all.iter().any(|known| known.rtype == Rtype::DNAME && known.owner == rrset.owner);
            if !is_repeated {
                all.push(rrset);
            }
        }
        let is_unproved = answer.is_empty() && authority.is_empty();
        all.extend(answer);
        let authority = join_proofs(std::mem::take(&mut self.alias_proofs), authority);
        let (error, is_unsigned_delegation) = (insecure_error(&all, &authority), self.is_unsigned_delegation);
        let (is_over_budget, keys) = (false, self.keys.take());
        Outcome {
            rcode,
            answer: all,
            authority,
            error,
            is_over_budget,
            is_unsigned_delegation,
            keys,
            is_unproved,
        }
    }
}

/// Returns the extended error for an answer that is insecure.
pub(crate) fn insecure_error(answer: &[Rrset], authority: &[Rrset]) -> Option<ErrorDetail> {
    let reason = answer.iter().chain(authority).find_map(|rrset| rrset.insecure)?;
    Some(ErrorDetail { code: reason.extended_error()?, text: reason.to_string().into() })
}

/// Appends the RRsets of another proof, without RRsets that are there already.
pub(crate) fn join_proofs(mut proofs: Vec<Rrset>, others: Vec<Rrset>) -> Vec<Rrset> {
    if proofs.is_empty() {
        return others;
    }
    for other in others {
        if !proofs.iter().any(|known| known.rtype == other.rtype && known.owner == other.owner) {
            proofs.push(other);
        }
    }
    proofs
}

/// The part of the name that is sent to the servers of a zone (QNAME minimisation, RFC 9156).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Minimisation {
    /// Number of labels to ask; `None`: the whole name, and its type.
    pub(crate) labels: Option<usize>,
    /// Queries with a part of the name so far.
    queries: usize,
}

impl Minimisation {
    pub(crate) const OFF: Self = Self { labels: None, queries: 0 };

    /// Begins with one label more than the zone.
    fn begin(name: NameRef<'_>, zone: NameRef<'_>) -> Self {
        Self { labels: None, queries: 0 }.with_labels(name, zone.label_count() + 1)
    }

    fn with_labels(self, name: NameRef<'_>, labels: usize) -> Self {
        let is_part = labels < name.label_count() && self.queries < MINIMISED_QUERIES_MAX;
        Self { labels: is_part.then_some(labels), queries: self.queries }
    }

    /// Continues with more labels, after the servers answered that there is no zone cut.
    pub(crate) fn next(self, name: NameRef<'_>) -> Self {
        let Some(labels) = self.labels else { return self };
        let queries = self.queries + 1;
        let remaining = name.label_count() - labels;
        let step = if queries < MINIMISE_ONE_LABEL {
            1
        } else {
            remaining.div_ceil((MINIMISED_QUERIES_MAX - queries.min(MINIMISED_QUERIES_MAX - 1)).max(1))
        };
        Self { labels: Some(labels), queries }.with_labels(name, labels + step)
    }
}

#[cfg(test)]
mod tests;
