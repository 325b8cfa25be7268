//! Responses of servers, and their absence.

use super::Resolver;
use super::iterate::{SendError, over_budget};
use crate::cache::{NegativeKind, Rank, Source};
use crate::delegation::Delegation;
use crate::exchange::{Exchange, Received, WRONG_RESPONSES_MAX, facts};
use crate::lookup::add_cached_addresses;
use crate::record::{Rrset, Security};
use crate::response::{Asked, Content, Reading, Unusable, read_response};
use crate::servers::{Next, Repeat, ResponseFacts};
use crate::task::TaskId;
use crate::validation::{ServerResponse, is_expanded, wildcard_of};
use nonesuch_net::Transport;
use nonesuch_net::machine::{ExchangeId, Now, SendFailure};
use nonesuch_proto::message::{Message, Rcode, flags};
use nonesuch_proto::{Class, Name, Rtype};
use nonesuch_server::extended_errors::ExtendedError;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

/// No server of the zone answered, or can be reached (RFC 8914 §4.23).
const NO_REACHABLE_AUTHORITY: ExtendedError = ExtendedError { code: 22, text: "" };
/// The resolver cannot send its query (RFC 8914 §4.24).
const NETWORK_ERROR: ExtendedError = ExtendedError { code: 23, text: "" };
/// The servers of the zone are not authoritative for it (RFC 8914 §4.23).
const LAME: ExtendedError = ExtendedError { code: 22, text: "a server is not authoritative for its zone" };
/// The servers of the zone answer with an error (RFC 8914 §4.24).
const SERVER_ERROR: ExtendedError = ExtendedError { code: 23, text: "a server responded with an error" };

impl Resolver {
    /// Processes a message of a server.
    pub(super) fn handle_response(&mut self, id: ExchangeId, octets: &[u8], now: Now) {
        let Some((_, exchange)) = self.exchanges.get_mut(&id) else { return };
        let received = exchange.receive(octets);
        if received == Received::NotTheResponse {
            exchange.wrong_responses += 1;
            if exchange.wrong_responses >= WRONG_RESPONSES_MAX
                && exchange.attempt.transport == Transport::Udp
                && let Some((task, exchange)) = self.end_exchange(id)
            {
                self.send_again(task, exchange.attempt.server, Transport::Tcp, None, now);
            }
            return;
        }
        let Some((id, exchange)) = self.end_exchange(id) else { return };
        let Some(task) = self.tasks.get_mut(id) else { return };
        if let Err(limit) = task.budget.take_octets(octets.len()) {
            return self.finish(id, &over_budget(limit), now);
        }
        let server = exchange.attempt.server;
        match received {
            Received::NotTheResponse => {}
            Received::OtherCase => self.send_again(id, server, Transport::Tcp, None, now),
            Received::Malformed => {
                task.failure = Some(SERVER_ERROR.into());
                task.exclude(server);
                self.ready.push_back(id);
            }
            Received::Truncated(rcode) => {
                self.model.count_truncated(octets.len());
                let facts = ResponseFacts { rcode, has_opt: false, cookie: None, octets: octets.len() };
                let next = self.shared.servers.answered(exchange.attempt, &facts, now);
                let repeat = if let Next::Repeat(repeat) = next { Some(repeat) } else { None };
                self.send_again(id, server, Transport::Tcp, repeat, now);
            }
            Received::Response(message) => {
                self.model.count_response(&message, octets.len());
                self.handle_message(id, exchange, message, octets.len(), now);
            }
        }
    }

    /// Processes the response of an exchange that has ended, a message of `octets` octets.
    fn handle_message(&mut self, id: TaskId, exchange: Exchange, message: Message, octets: usize, now: Now) {
        let changes_case = exchange.changes_case(&message);
        self.note_agent(id, &message);
        let Exchange { attempt, name, rtype, .. } = exchange;
        let (server, transport) = (attempt.server, attempt.transport);
        if changes_case {
            self.shared.servers.mark_changes_case(server, now);
        }
        let is_truncated = message.header.flags & flags::TC != 0;
        match self.shared.servers.answered(attempt, &facts(&message, octets), now) {
            Next::Repeat(repeat) => self.send_again(id, server, transport, Some(repeat), now),
            Next::Use if is_truncated && transport == Transport::Udp => {
                self.send_again(id, server, Transport::Tcp, None, now);
            }
            // RFC 2181 §9: a truncated response over TCP cannot be completed.
            Next::Use if is_truncated => {
                if let Some(task) = self.tasks.get_mut(id) {
                    task.failure = Some(SERVER_ERROR.into());
                    task.exclude(server);
                }
                self.ready.push_back(id);
            }
            Next::Use => {
                self.process(id, server, &name, rtype, message, now);
                self.ready.push_back(id);
            }
        }
    }

    /// Sends the question of a task to the same server again.
    fn send_again(
        &mut self,
        id: TaskId,
        server: SocketAddr,
        transport: Transport,
        repeat: Option<Repeat>,
        now: Now,
    ) {
        match self.send(id, server, transport, repeat, now) {
            Ok(()) => {}
            Err(SendError::Server) => self.ready.push_back(id),
            Err(SendError::Limit(limit)) => self.finish(id, &over_budget(limit), now),
        }
    }

    /// The server did not respond in time.
    pub(super) fn handle_exchange_timeout(&mut self, id: ExchangeId, now: Now) {
        let Some((task, exchange)) = self.end_exchange(id) else { return };
        self.shared.servers.timed_out(exchange.attempt, now);
        self.fail_attempt(task, NO_REACHABLE_AUTHORITY);
    }

    /// The driver reports that an exchange failed.
    pub(super) fn handle_failure(&mut self, id: ExchangeId, failure: SendFailure, now: Now) {
        let Some((task_id, exchange)) = self.end_exchange(id) else { return };
        let (server, can_use_udp) = (exchange.attempt.server, exchange.attempt.can_use_udp());
        self.shared.servers.failed(exchange.attempt, failure, now);
        let is_local = failure == SendFailure::Local;
        if let Some(task) = self.tasks.get_mut(task_id).filter(|_| !is_local && !can_use_udp) {
            task.exclude(server);
        }
        self.fail_attempt(task_id, if is_local { NETWORK_ERROR } else { NO_REACHABLE_AUTHORITY });
    }

    fn fail_attempt(&mut self, id: TaskId, error: ExtendedError) {
        if let Some(task) = self.tasks.get_mut(id) {
            task.failure.get_or_insert_with(|| error.into());
        }
        self.ready.push_back(id);
    }

    /// Processes the response to the current question of a task.
    fn process(
        &mut self,
        id: TaskId,
        server: SocketAddr,
        name: &Name,
        rtype: Rtype,
        message: Message,
        now: Now,
    ) {
        let Some(delegation) = self.tasks.get(id).and_then(|task| task.delegation.as_ref()) else { return };
        let (zone, is_forwarder) = (delegation.zone.clone(), delegation.is_forwarder());
        let name = name.view().to_canonical();
        let asked = Asked { name: name.view(), rtype, zone: zone.view(), is_forwarder };
        match read_response(asked, &message) {
            Ok(reading) => {
                let is_doubtful = reading.is_doubtful;
                let message = Arc::new(message);
                let received = ServerResponse { server, zone, name, rtype, message, reading };
                match is_doubtful {
                    true => self.keep_spare(id, received, now),
                    false => self.receive(id, received, now),
                }
            }
            Err(unusable) => self.handle_unusable(id, server, &zone, unusable, now),
        }
    }

    /// Uses a response, after its validation if this is necessary.
    pub(super) fn receive(&mut self, id: TaskId, received: ServerResponse, now: Now) {
        if self.must_check(id, &received.reading) {
            self.begin_check(id, received);
        } else {
            self.use_reading(id, &received.name, received.reading, now);
        }
    }

    /// Keeps a doubtful response, and continues with another server.
    fn keep_spare(&mut self, id: TaskId, received: ServerResponse, now: Now) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let ServerResponse { server, reading, .. } = &received;
        let server = *server;
        if task.minimisation.labels.is_some() {
            return task.ask_whole_name();
        }
        task.exclude(server);
        let Some(delegation) = &task.delegation else { return };
        let zone = self.shared.servers.zone_key(delegation.zone.view());
        self.shared.servers.mark_lame(server, zone, now);
        let is_better = |spare: &ServerResponse| {
            spare.reading.content == Content::NoData && reading.content != Content::NoData
        };
        if task.spare.as_deref().is_none_or(is_better) {
            task.spare = Some(Box::new(received));
        }
    }

    /// Continues after a response that does not help.
    fn handle_unusable(&mut self, id: TaskId, server: SocketAddr, zone: &Name, unusable: Unusable, now: Now) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        // RFC 9156 §3: some servers reject names that they do not serve themselves, instead of
        // answering for the names above them.
        if task.minimisation.labels.is_some() {
            task.ask_whole_name();
            return;
        }
        let failure = match unusable {
            Unusable::Lame | Unusable::Rcode(Rcode::REFUSED) => LAME,
            Unusable::Rcode(_) => SERVER_ERROR,
        };
        task.failure = Some(failure.into());
        task.exclude(server);
        if matches!(unusable, Unusable::Lame | Unusable::Rcode(Rcode::REFUSED)) {
            let zone = self.shared.servers.zone_key(zone.view());
            self.shared.servers.mark_lame(server, zone, now);
        }
    }

    /// Continues with a usable response to a question for `name`.
    pub(super) fn use_reading(&mut self, id: TaskId, name: &Name, mut reading: Reading, now: Now) {
        self.clamp_ttls(&mut reading);
        let Some(task) = self.tasks.get_mut(id) else { return };
        let within = task.delegation.as_ref().and_then(|delegation| delegation.expires);
        self.store(&reading, within, now);
        let Some(task) = self.tasks.get_mut(id) else { return };
        let is_minimised = task.minimisation.labels.is_some();
        if let Content::Referral(ns) = &reading.content {
            let expires = now.instant + Duration::from_secs(ns.ttl.into());
            let expires = within.map_or(expires, |within| within.min(expires));
            let mut delegation = Delegation::from_ns(ns, Some(expires));
            reading.glue.iter().for_each(|rrset| delegation.add_addresses(&rrset.owner, rrset));
            task.glue.extend(reading.glue.iter().filter(|rrset| rrset.owner == task.name).cloned());
            add_cached_addresses(&self.shared.cache, &mut delegation, now);
            let aliases = (reading.aliases, Vec::new());
            return self.enter_referral(id, aliases, &reading.target, delegation, now);
        }
        if is_minimised {
            // RFC 9156 §3: NXDOMAIN for a name above the name of the query may be wrong, because
            // some servers do not know empty non-terminals.
            if reading.content == Content::NxDomain {
                task.ask_whole_name();
            } else {
                task.ask_more_labels();
            }
            if reading.content == Content::NoData && reading.aliases.is_empty() {
                self.store_negative(name, Rtype::A, &reading, now);
            }
            return;
        }
        let rtype = task.question.rtype;
        match reading.content {
            Content::Answer(_) | Content::NoData | Content::NxDomain | Content::DnameTooLong => {
                self.finish_with(id, rtype, reading, now);
            }
            Content::Alias => {
                let is_proved = reading.aliases.iter().any(is_expanded);
                let proofs = if is_proved { reading.proofs } else { Vec::new() };
                self.follow_aliases(id, (reading.aliases, proofs), &reading.target, now);
            }
            Content::Referral(_) => {}
        }
    }

    /// Continues with the servers of a child zone.
    fn enter_referral(
        &mut self,
        id: TaskId,
        aliases: (Vec<Rrset>, Vec<Rrset>),
        target: &Name,
        delegation: Delegation,
        now: Now,
    ) {
        if !aliases.0.is_empty() {
            // The referral is for the target: begin with it, so that the cache is used for it too.
            return self.follow_aliases(id, aliases, target, now);
        }
        let minimises = self.settings.options.qname_minimisation;
        if let Some(task) = self.tasks.get_mut(id) {
            task.enter_delegation(delegation, minimises);
        }
    }

    /// Ends a task with a final response.
    fn finish_with(&mut self, id: TaskId, rtype: Rtype, reading: Reading, now: Now) {
        let Some(task) = self.tasks.get_mut(id) else { return };
        let aliases = reading.aliases.iter().filter(|rrset| rrset.rtype == Rtype::CNAME).count();
        if let Some(limit) = (0..aliases).find_map(|_| task.budget.take_alias().err()) {
            return self.finish(id, &over_budget(limit), now);
        }
        let rcode = match reading.content {
            Content::NxDomain => Rcode::NXDOMAIN,
            Content::DnameTooLong => Rcode::YXDOMAIN,
            _ => Rcode::NOERROR,
        };
        if matches!(reading.content, Content::NoData | Content::NxDomain) {
            if self.tasks.get(id).is_some_and(|task| task.is_unsigned_delegation) {
                let (cache, name) = (&self.shared.cache, reading.target.view());
                let _ = cache.insert_unsigned_delegation(name, Class::IN, &reading.proofs, now);
            } else {
                let target = reading.target.clone();
                self.store_negative(&target, rtype, &reading, now);
            }
        }
        let Some(task) = self.tasks.get_mut(id) else { return };
        task.aliases.extend(reading.aliases);
        let answer = if let Content::Answer(found) = reading.content { found } else { Vec::new() };
        let outcome = task.outcome(rcode, answer, reading.proofs);
        self.finish(id, &outcome, now);
    }

    /// Keeps all TTLs within the configured bounds.
    fn clamp_ttls(&self, reading: &mut Reading) {
        let bounds = self.settings.options.ttl;
        let content = match &mut reading.content {
            Content::Answer(found) => found.as_mut_slice(),
            Content::Referral(ns) => std::slice::from_mut(ns),
            _ => &mut [],
        };
        let all =
            reading.aliases.iter_mut().chain(&mut reading.proofs).chain(&mut reading.glue).chain(content);
        all.for_each(|rrset| {
            // No bound keeps secure data longer than their signatures permit (RFC 4035 §5.3.3).
            let is_secure = rrset.security == Security::Secure;
            rrset.ttl = if is_secure { rrset.ttl.min(bounds.max) } else { bounds.clamp(rrset.ttl) };
        });
    }

    /// Stores the RRsets of a response, except those of a negative answer. `within`: when the
    /// delegation that led to the server expires.
    fn store(&self, reading: &Reading, within: Option<Instant>, now: Now) {
        let cache = &self.shared.cache;
        let insert = |rrset: &Rrset, rank| {
            let within = within.filter(|_| rrset.rtype == Rtype::NS);
            let proofs = reading.proofs.iter().filter(|proof| proof.rtype != Rtype::SOA);
            let proofs: Vec<Rrset> = if is_expanded(rrset) { proofs.cloned().collect() } else { Vec::new() };
            // An RRset that is not stored is asked for again when it is needed.
            let _ = cache.insert_proved_rrset(rrset, &proofs, Source { rank, within }, now);
            if rrset.security == Security::Secure
                && let Some(owner) = wildcard_of(rrset)
            {
                // RFC 8198 §5.3: it answers for other names.
                let wildcard = Rrset { owner, ..rrset.clone() };
                let _ = cache.insert_rrset(&wildcard, Source { rank, within }, now);
            }
        };
        // RFC 2181 §5.4.1: only the data of the query name are authoritative in an answer.
        let first = if reading.is_authoritative { Rank::AnswerAa } else { Rank::Answer };
        let mut rank = first;
        let mut previous = None;
        let found = if let Content::Answer(found) = &reading.content { found.as_slice() } else { &[] };
        for rrset in reading.aliases.iter().chain(found) {
            // A CNAME RRset after a DNAME RRset follows from it.
            if (previous, rrset.rtype) != (Some(Rtype::DNAME), Rtype::CNAME) {
                insert(rrset, rank);
            }
            previous = Some(rrset.rtype);
            if rrset.rtype == Rtype::CNAME {
                rank = Rank::Answer;
            }
        }
        if let Content::Referral(ns) = &reading.content {
            insert(ns, Rank::Referral);
            let ds = reading.proofs.iter().filter(|rrset| rrset.rtype == Rtype::DS);
            ds.for_each(|rrset| insert(rrset, Rank::AuthorityAa));
        }
        reading.glue.iter().for_each(|rrset| insert(rrset, Rank::Additional));
    }

    /// Stores a negative answer. The cache does not store it without SOA record (RFC 2308 §5).
    fn store_negative(&self, name: &Name, rtype: Rtype, reading: &Reading, now: Now) {
        let is_nxdomain = reading.content == Content::NxDomain;
        let kind = if is_nxdomain { NegativeKind::NxDomain } else { NegativeKind::NoData(rtype) };
        let _ = self.shared.cache.insert_negative(name.view(), Class::IN, kind, &reading.proofs, now);
    }
}
