//! Validates the responses of a task before they are used (RFC 4035 §5).
//!
//! A response waits for the keys of its zone, then for the end of the turn, in which the signatures of
//! many responses are verified together (`verification`).

use super::Resolver;
use super::chain::NO_DNSKEY;
use super::iterate::{NoFetch, Step};
use super::keys::{Keys, dnskey_rrset};
use crate::cache::{FailureCause, Question};
use crate::record::{Rrset, Security};
use crate::response::{Content, Reading};
use crate::task::{ErrorDetail, Outcome, TaskId, ValidatedKeys};
use crate::trust::ZoneTrust;
use crate::validation::{Checking, KeySet, ServerResponse};
use nonesuch_dnssec::validate::{
    self, BogusReason, IndeterminateReason, InsecureReason, Limit, PendingValidation, SecurityStatus,
    TrustedKeys, Validation, Work,
};
use nonesuch_net::machine::Now;
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_server::extended_errors::ExtendedError;
use std::net::SocketAddr;
use std::sync::Arc;

/// Number of questions about the chain of trust that are resolved for one response. An IPv6 address
/// has 32 labels in `ip6.arpa`.
const FETCHES_MAX: usize = 48;
/// Number of servers whose bogus responses to a question are replaced by those of others.
const BOGUS_RESPONSES_MAX: u8 = 3;
/// The questions about the chain of trust depend on each other, or cannot be resolved now.
pub(super) const NO_CHAIN: ExtendedError =
    ExtendedError { code: 5, text: "the chain of trust cannot be built" };
/// The response proves something else than its content.
const MISMATCH: ExtendedError = ExtendedError { code: 6, text: "the proof does not fit the answer" };
/// The zone has many signatures that do not verify.
const COSTLY: ExtendedError = ExtendedError { code: 6, text: "many signatures of the zone do not verify" };
/// Octets of the text of an extended error, without the name of the record.
const TEXT_MAX: usize = 200;

impl Resolver {
    /// Whether the response to the current question of a task must be validated. Responses to
    /// minimised questions are only used to find the next zone: of these, only the DS RRset of a
    /// referral, or its absence, is validated.
    pub(super) fn must_check(&self, id: TaskId, reading: &Reading) -> bool {
        let Some(task) = self.tasks.get(id) else { return false };
        let is_used = task.minimisation.labels.is_none() || matches!(reading.content, Content::Referral(_));
        // Signatures are not signed themselves.
        let has_signatures = task.question.rtype != Rtype::RRSIG
            || !matches!(reading.content, Content::Answer(_))
            || !reading.aliases.is_empty();
        is_used && has_signatures && self.validates() && !task.question.checking_disabled
    }

    /// Whether all responses to the question of a task must be validated. Signatures are not signed themselves.
    pub(super) fn uses_only_validated(&self, id: TaskId) -> bool {
        let question = self.tasks.get(id).map(|task| &task.question);
        let is_validated =
            |question: &Question| !question.checking_disabled && question.rtype != Rtype::RRSIG;
        self.validates() && question.is_some_and(is_validated)
    }

    /// Begins the validation of a response.
    pub(super) fn begin_check(&mut self, id: TaskId, mut received: ServerResponse) {
        if is_referral(&received.reading) && !received.reading.aliases.is_empty() {
            // Only the aliases are used; the target is queried.
            received.reading.content = Content::Alias;
        }
        if let Some(task) = self.tasks.get_mut(id) {
            task.checking = Some(Box::new(Checking::new(received)));
        }
    }

    /// Continues the validation of a response, until signatures must be verified.
    pub(super) fn check(&mut self, id: TaskId, mut checking: Box<Checking>, now: Now) -> Step {
        match self.keys_of(&checking, now) {
            Keys::Trusted(keys, key_set) => {
                let ServerResponse { name, rtype, message, .. } = &checking.received;
                let question = validate::Question { name: name.view(), rtype: *rtype };
                let pending = PendingValidation::new(question, Arc::clone(message), keys, now.unix as u32);
                checking.pending = Some(Box::new(pending));
                checking.key_set = key_set;
                self.queue_verification(id, checking);
                Step::Wait
            }
            Keys::Insecure(reason, cut) => {
                self.trace.insecure(&checking, &cut, reason);
                self.use_insecure(id, checking.received, reason, &cut, now)
            }
            Keys::Needs(question) => self.fetch(id, checking, question, now),
            Keys::Failed(error) => self.fail_chain(id, checking, error, now),
        }
    }

    /// The keys for a response cannot be had.
    fn fail_chain(&mut self, id: TaskId, checking: Box<Checking>, error: ErrorDetail, now: Now) -> Step {
        self.trace.without_keys(&checking, &error);
        if is_referral(&checking.received.reading) {
            return self.use_unproved_referral(id, checking.received, now);
        }
        // Another client may have a larger budget left.
        if checking.fetched.iter().any(|(_, outcome)| outcome.is_over_budget) {
            return Step::Finish(Outcome::failure(error, true));
        }
        self.fail_validation(id, error, now)
    }

    /// Resolves a question about the chain of trust.
    fn fetch(&mut self, id: TaskId, checking: Box<Checking>, question: Question, now: Now) -> Step {
        let is_known = checking.fetched.len() >= FETCHES_MAX
            || checking.fetched.iter().any(|(fetched, _)| *fetched == question);
        let rtype = question.rtype;
        let is_own = self.tasks.get(id).is_none_or(|task| task.question == question);
        if let Some(task) = self.tasks.get_mut(id) {
            task.checking = Some(checking);
        }
        let waits =
            if is_known || is_own { Err(NoFetch::Cycle) } else { self.wait_for_chain(id, question, now) };
        if waits.is_ok() {
            return Step::Wait;
        }
        let Some(checking) = self.tasks.get_mut(id).and_then(|task| task.checking.take()) else {
            return Step::Wait;
        };
        let error = self.tasks.get(id).and_then(|task| task.failure.clone());
        // The zone has a DS RRset, but no DNSKEY RRset that could prove the denial of its DNSKEY RRset.
        let otherwise = if is_own && rtype == Rtype::DNSKEY { NO_DNSKEY } else { NO_CHAIN };
        let error = error.unwrap_or_else(|| otherwise.into());
        if waits == Err(NoFetch::OverBudget) && !is_referral(&checking.received.reading) {
            // Another client may have a larger budget left.
            return Step::Finish(Outcome::failure(error, true));
        }
        self.fail_chain(id, checking, error, now)
    }

    /// Uses a response from outside the chain of trust.
    fn use_insecure(
        &mut self,
        id: TaskId,
        mut received: ServerResponse,
        reason: InsecureReason,
        cut: &Name,
        now: Now,
    ) -> Step {
        let validation = &self.settings.options.validation;
        // The targets of aliases may be in secure zones.
        received.reading.keep_while(|name| {
            name.is_at_or_below(cut.view()) && !validation.has_anchor_between(cut.view(), name)
        });
        received.reading.set_insecure();
        received.reading.set_insecure_reason(reason);
        self.use_reading(id, &received.name, received.reading, now);
        Step::Continue
    }

    /// Follows a referral whose DS RRset, or its absence, is not proved. The data of the child zone are
    /// validated nevertheless: its DS RRset is fetched then.
    fn use_unproved_referral(&mut self, id: TaskId, mut received: ServerResponse, now: Now) -> Step {
        received.reading.proofs.clear();
        self.use_reading(id, &received.name, received.reading, now);
        Step::Continue
    }

    /// Continues with the result of a validation.
    pub(super) fn use_validation(
        &mut self,
        id: TaskId,
        checking: Box<Checking>,
        validation: &Validation,
        now: Now,
    ) -> Step {
        self.trace.validated(&checking, validation);
        let Checking { received, key_set, pending, .. } = *checking;
        let security = match &validation.status {
            SecurityStatus::Secure => Security::Secure,
            SecurityStatus::Insecure(_) => Security::Insecure,
            _ => {
                let zone = pending.as_ref().map(|pending| pending.keys().apex());
                return self.use_unproved(id, (received, zone), validation, now);
            }
        };
        let ServerResponse { server, name, rtype, reading, .. } = received;
        let Some(mut reading) = reading.keep_proved(rtype, validation, security) else {
            return self.try_another_server(id, server, MISMATCH.into(), now);
        };
        if let SecurityStatus::Insecure(reason) = &validation.status {
            reading.set_insecure_reason(*reason);
        }
        let zone_keys = pending.as_ref().map(|pending| pending.keys());
        if security == Security::Secure
            && let Some(zone_keys) = zone_keys
            && let Some(task) = self.tasks.get_mut(id)
        {
            let budget = &mut task.budget.validation;
            let before = budget.spent().hash_blocks;
            self.shared.denials.insert(zone_keys, &reading.proofs, budget, now);
            self.model.count_denial_work(budget.spent().hash_blocks - before, 0);
        }
        let keys = match key_set {
            None if rtype == Rtype::NSEC5KEY => {
                zone_keys.and_then(|keys| self.remember_nsec5_keys(&name, &reading, validation, keys, now))
            }
            _ => self.remember_trust(&name, rtype, &reading, validation, key_set, now),
        };
        if let Some(task) = self.tasks.get_mut(id) {
            task.keys = keys;
            // A referral is about a name above the one in the question.
            let is_final = rtype == Rtype::DS && !is_referral(&reading);
            task.is_unsigned_delegation = is_final && validation.is_unsigned_delegation;
        }
        self.use_reading(id, &name, reading, now);
        Step::Continue
    }

    /// Continues with a response that is Bogus or Indeterminate.
    fn use_unproved(
        &mut self,
        id: TaskId,
        (received, zone): (ServerResponse, Option<NameRef<'_>>),
        validation: &Validation,
        now: Now,
    ) -> Step {
        if is_referral(&received.reading) {
            return self.use_unproved_referral(id, received, now);
        }
        if let SecurityStatus::Indeterminate(IndeterminateReason::Limit(limit)) = &validation.status {
            return self.end_at_limit(id, *limit, (validation.work, zone), now);
        }
        let ServerResponse { server, name, rtype, mut reading, .. } = received;
        // Signatures are not signed.
        let is_rrsig = validation.status == SecurityStatus::Indeterminate(IndeterminateReason::RrsigQuestion);
        if !validation.aliases.is_empty() {
            if let Some(aliases) = reading.keep_proved_aliases(validation) {
                self.use_reading(id, &name, aliases, now);
                return Step::Continue;
            }
        } else if is_rrsig {
            reading.set_insecure();
            self.use_reading(id, &name, reading, now);
            return Step::Continue;
        }
        let error = match &validation.status {
            SecurityStatus::Bogus(reason) => bogus_detail(&name, rtype, reason),
            SecurityStatus::Indeterminate(reason) => ErrorDetail { code: 6, text: reason.to_string().into() },
            SecurityStatus::Secure | SecurityStatus::Insecure(_) => MISMATCH.into(),
        };
        self.try_another_server(id, server, error, now)
    }

    /// Continues after a response with a signature that does not verify, of a zone with many of them.
    pub(super) fn use_costly(&mut self, id: TaskId, received: ServerResponse, now: Now) -> Step {
        if is_referral(&received.reading) {
            return self.use_unproved_referral(id, received, now);
        }
        self.try_another_server(id, received.server, COSTLY.into(), now)
    }

    /// Ends a task whose validation exceeds a limit. If the work of the task before the response was the
    /// reason, this is not cached, because another client may have a larger budget left. But if the response
    /// is the reason, the failure is cached (RFC 9520): otherwise each query for a hostile zone would cost
    /// the same again. So it is if the signatures of an earlier response to the question or of many records
    /// of the zone do not verify. `work`: that for this response.
    fn end_at_limit(
        &mut self,
        id: TaskId,
        limit: Limit,
        (work, zone): (Work, Option<NameRef<'_>>),
        now: Now,
    ) -> Step {
        let text = format!("validation exceeds the limit for {limit}").into();
        let error = ErrorDetail { code: 0, text };
        let Some(task) = self.tasks.get(id) else { return Step::Wait };
        let all = &self.settings.options.limits.validation;
        let is_costly = || zone.is_some_and(|zone| self.shared.cache.is_costly_zone(zone, now));
        let is_hostile = limit == Limit::SignatureFailures && (task.bogus.is_some() || is_costly());
        if is_hostile || task.budget.validation.is_due_to_response(limit, work, all) {
            let error = task.bogus.clone().unwrap_or(error);
            return self.fail_validation(id, error, now);
        }
        Step::Finish(Outcome::failure(error, true))
    }

    /// Remembers the keys or the insecurity of a zone that a validated response proves. Returns the keys of a DNSKEY
    /// RRset.
    fn remember_trust(
        &self,
        name: &Name,
        rtype: Rtype,
        reading: &Reading,
        validation: &Validation,
        key_set: Option<KeySet>,
        now: Now,
    ) -> Option<ValidatedKeys> {
        let trust = &self.shared.trust;
        // As for RRsets: a zone that is insecure now may be signed later.
        let ttl = ttl_of(reading).min(self.settings.options.ttl.max);
        if validation.is_unsigned_delegation {
            // `keep_proved` has compared it with the proved zone cut. After an alias, the denial is for its
            // target.
            let cut = if let Content::Referral(ns) = &reading.content { &ns.owner } else { &reading.target };
            let reason = ZoneTrust::Insecure(InsecureReason::UnsignedDelegation);
            trust.insert(cut.view(), reason, ttl, now);
        }
        let (key_set, rrset) = key_set.zip(dnskey_rrset(reading))?;
        if validation.status != SecurityStatus::Secure || rrset.owner != *name || rrset.rtype != rtype {
            return None;
        }
        let keys = self.zone_keys(name, rrset.records.iter(), key_set.requires_post_quantum);
        trust.insert(name.view(), ZoneTrust::Secure(Arc::clone(&keys)), ttl.min(key_set.ttl), now);
        Some(ValidatedKeys(keys))
    }

    /// Adds a validated NSEC5KEY RRset to the keys of its zone, `keys`, which have validated it. Returns all.
    fn remember_nsec5_keys(
        &self,
        zone: &Name,
        reading: &Reading,
        validation: &Validation,
        keys: &TrustedKeys,
        now: Now,
    ) -> Option<ValidatedKeys> {
        let rrset = nsec5key_rrset(reading)?;
        if validation.status != SecurityStatus::Secure || rrset.owner != *zone {
            return None;
        }
        let mut keys = keys.clone();
        keys.set_nsec5_keys(rrset.records.iter(), &self.settings.options.limits.validation);
        let keys = Arc::new(keys);
        self.shared.trust.replace_keys(zone.view(), Arc::clone(&keys), ttl_of(reading), now);
        Some(ValidatedKeys(keys))
    }

    /// Another server of the zone may have a valid response.
    fn try_another_server(&mut self, id: TaskId, server: SocketAddr, error: ErrorDetail, now: Now) -> Step {
        let Some(task) = self.tasks.get_mut(id) else { return Step::Wait };
        task.bogus_responses += 1;
        task.bogus = Some(error.clone());
        task.exclude(server);
        if task.bogus_responses < BOGUS_RESPONSES_MAX && task.delegation.is_some() {
            return Step::Continue;
        }
        // A forged referral may have led to the servers.
        let delegation = task.delegation.as_ref().filter(|delegation| delegation.is_cached);
        let parent = delegation.and_then(|delegation| delegation.zone.view().parent()).map(NameRef::to_name);
        match parent {
            Some(parent) if !task.asked_parent_again => {
                task.bogus_responses = BOGUS_RESPONSES_MAX - 1;
                self.ask_parent_again(id, &parent, now)
            }
            _ => self.fail_validation(id, error, now),
        }
    }

    /// Ends a task whose response is bogus. The failure is cached (RFC 9520), but not for clients that
    /// validate themselves.
    pub(super) fn fail_validation(&mut self, id: TaskId, error: ErrorDetail, now: Now) -> Step {
        self.report(id, &error, now);
        let Some(task) = self.tasks.get(id) else { return Step::Wait };
        let question = task.question_of_name();
        self.shared.cache.insert_failure(&question, FailureCause::Validation, (error.code, &error.text), now);
        Step::Finish(Outcome::failure(error, false))
    }

    /// Ends a task without a query, because the keys of the zone of its name failed, which is cached for `ttl` more
    /// seconds.
    pub(super) fn fail_as_zone(&self, id: TaskId, error: ErrorDetail, ttl: u32, now: Now) -> Step {
        let Some(task) = self.tasks.get(id) else { return Step::Wait };
        let question = task.question_of_name();
        self.shared.cache.insert_implied_failure(&question, (error.code, &error.text), ttl, now);
        Step::Finish(Outcome::failure(error, false))
    }
}

fn is_referral(reading: &Reading) -> bool {
    matches!(reading.content, Content::Referral(_))
}

fn nsec5key_rrset(reading: &Reading) -> Option<&Rrset> {
    super::keys::answer_rrset(reading, Rtype::NSEC5KEY)
}

/// The lowest TTL of the records that answer.
fn ttl_of(reading: &Reading) -> u32 {
    let answers = if let Content::Answer(found) = &reading.content { found.as_slice() } else { &[] };
    let all = reading.aliases.iter().chain(answers).chain(&reading.proofs);
    all.map(|rrset| rrset.ttl).min().unwrap_or(0)
}

/// The extended error for a bogus answer: it names the record and the reason.
pub(super) fn bogus_detail(name: &Name, rtype: Rtype, reason: &BogusReason) -> ErrorDetail {
    let mut text = format!("{name} {rtype}: {reason}");
    let end = (0..=TEXT_MAX.min(text.len())).rev().find(|end| text.is_char_boundary(*end)).unwrap_or(0);
    text.truncate(end);
    ErrorDetail { code: reason.extended_error(), text: text.into() }
}
