//! Validates recorded responses from trust anchors, without queries: the chain of trust is built from
//! the responses for DNSKEY, DS and NSEC5KEY and from the referrals among them (RFC 4035 §5).
//!
//! [`RecordedResponses::add`] takes all responses, in any order; then
//! [`RecordedResponses::validate`] validates each of them. It has no I/O and no clock.

mod chain;
mod outcome;
#[cfg(test)]
mod tests;

pub use outcome::{ChainFault, RecordedResult, RecordedValidation};

use crate::trust_anchors::TrustAnchors;
use chain::{Cut, ZoneState};
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::validate::{
    AlgorithmPolicy, BogusReason, Budget, IndeterminateReason, ProvedAnswer, Question, SecurityStatus,
    TrustedKeys, Validation, ValidationLimits, validate,
};
use nonesuch_proto::message::{self, Message, Rcode, Record, Section};
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use std::collections::HashMap;
use std::sync::Arc;

/// Maximum number of responses to one question of the chain of trust. Further ones are ignored.
const RESPONSES_PER_QUESTION: usize = 64;

/// Recorded responses and the chain of trust that they prove.
#[derive(Debug)]
pub struct RecordedResponses {
    anchors: TrustAnchors,
    policy: AlgorithmPolicy,
    limits: ValidationLimits,
    /// Seconds since 1970 modulo 2^32 (RFC 4034 §3.1.5).
    now: u32,
    /// The responses for DNSKEY, DS and NSEC5KEY, and as responses for DS the referrals, by name in lower
    /// case and type.
    responses: HashMap<(Name, Rtype), Vec<Arc<Message>>>,
    zones: HashMap<Name, ZoneState>,
    cuts: HashMap<Name, Cut>,
}

impl RecordedResponses {
    /// Creates an empty recording. `now` is in seconds since 1970 modulo 2^32.
    #[must_use]
    pub fn new(anchors: TrustAnchors, now: u32) -> Self {
        Self {
            anchors,
            policy: AlgorithmPolicy::ALL,
            limits: ValidationLimits::default(),
            now,
            responses: HashMap::new(),
            zones: HashMap::new(),
            cuts: HashMap::new(),
        }
    }

    /// Adds a response, which [`validate`](Self::validate) uses if it is part of a chain of trust.
    pub fn add(&mut self, question: Question<'_>, message: &Arc<Message>) {
        if matches!(question.rtype, Rtype::DNSKEY | Rtype::DS | Rtype::NSEC5KEY) {
            self.add_as(question.name, question.rtype, message);
        }
        if let Some(child) = referred_child(question, message) {
            self.add_as(child, Rtype::DS, message);
        }
    }

    fn add_as(&mut self, name: NameRef<'_>, rtype: Rtype, message: &Arc<Message>) {
        let known = self.responses.entry((name.to_canonical(), rtype)).or_default();
        // Equal records with another response code or question may prove something else.
        let is_known = |other: &Arc<Message>| {
            other.header.flags == message.header.flags
                && other.questions == message.questions
                && other.records == message.records
        };
        let is_new = || !known.iter().any(is_known);
        if known.len() < RESPONSES_PER_QUESTION && is_new() {
            known.push(Arc::clone(message));
            // The chain of trust is built again.
            self.zones.clear();
            self.cuts.clear();
        }
    }

    /// Validates a response. Its work is limited by [`ValidationLimits`]; the responses of the chain of
    /// trust are validated once each, with these limits.
    #[must_use]
    pub fn validate(&mut self, question: Question<'_>, message: &Arc<Message>) -> RecordedValidation {
        let mut budget = Budget::new(self.limits);
        let before = budget.spent();
        let mut validation = self.validate_part(question, message, &mut budget);
        while let Some((target, part)) = continuation(&validation, question.rtype, message) {
            // Each part takes an alias from the budget, so this ends.
            let next = Question { name: target.view(), rtype: question.rtype };
            let rest = self.validate_part(next, &part, &mut budget);
            validation = validation.followed_by(rest);
        }
        RecordedValidation { work: budget.spent().since(before), ..validation }
    }

    /// Validates the part of a response that is in one zone.
    fn validate_part(
        &mut self,
        question: Question<'_>,
        message: &Arc<Message>,
        budget: &mut Budget,
    ) -> RecordedValidation {
        // Without keys, the result states whether the message answers the question at all.
        let no_keys = TrustedKeys::new(&Name::root(), [], &self.limits);
        let unanswered = validate(question, message, &no_keys, self.now, budget);
        if unanswered.status != SecurityStatus::Indeterminate(IndeterminateReason::NoKeys) {
            return RecordedValidation::new(None, RecordedResult::Validated(unanswered.into()));
        }
        let keys = match self.state_for(question, message) {
            ZoneState::Secure { keys, is_partial } => (keys, is_partial),
            ZoneState::Insecure(cut, reason) => {
                return RecordedValidation::new(None, RecordedResult::Insecure(cut, reason));
            }
            ZoneState::Broken(fault) => {
                return RecordedValidation::new(None, RecordedResult::Broken(fault));
            }
        };
        self.validate_with(question, message, keys, budget)
    }

    fn validate_with(
        &self,
        question: Question<'_>,
        message: &Message,
        (keys, is_partial): (Arc<TrustedKeys>, bool),
        budget: &mut Budget,
    ) -> RecordedValidation {
        let zone = keys.apex().to_name();
        let has_nsec5 = || message.section(Section::Authority).any(|record| record.rtype == Rtype::NSEC5);
        let lacks_nsec5_key = question.rtype != Rtype::NSEC5KEY
            && keys.may_use_nsec5()
            && !keys.knows_nsec5_keys()
            && !self.responses.contains_key(&(zone.clone(), Rtype::NSEC5KEY));
        let result = if lacks_nsec5_key && has_nsec5() {
            RecordedResult::Broken(ChainFault::missing(&zone, Rtype::NSEC5KEY))
        } else {
            let validation = validate(question, message, &keys, self.now, budget);
            match &validation.status {
                // The trust anchor usually names only one of the keys.
                SecurityStatus::Bogus(BogusReason::UnknownKey { .. }) if is_partial => {
                    RecordedResult::Broken(ChainFault::missing(&zone, Rtype::DNSKEY))
                }
                _ => RecordedResult::Validated(validation.into()),
            }
        };
        RecordedValidation::new(Some(zone), result)
    }

    /// Returns the keys for a response.
    fn state_for(&mut self, question: Question<'_>, message: &Arc<Message>) -> ZoneState {
        let Question { name, rtype } = question;
        if rtype == Rtype::DNSKEY && records_at(message, name, Rtype::DNSKEY).next().is_some() {
            let zone = name.to_canonical();
            if let Some(state) = self.entry_state(&zone, message) {
                return state;
            }
        }
        // RFC 4035 §2.4, RFC 4034 §5: the DS RRset belongs to the parent zone.
        let child = referred_child(question, message).or_else(|| (rtype == Rtype::DS).then_some(name));
        let lowest = child.map_or(name, |child| child.parent().unwrap_or(NameRef::ROOT));
        let Some(anchor) = self.anchors.closest(lowest).map(|anchor| anchor.apex.clone()) else {
            return ZoneState::Broken(ChainFault::NoAnchor { name: lowest.to_name() });
        };
        match signer(message, name, lowest, anchor.view()) {
            Some(signer) => self.descend(signer, lowest).0,
            None => match self.descend(anchor.view(), lowest) {
                (ZoneState::Secure { keys, .. }, Some(unknown))
                    if !names_zone(question, message, keys.apex()) =>
                {
                    let zone = keys.apex().to_name();
                    ZoneState::Broken(ChainFault::Unsigned { name: name.to_name(), rtype, zone, unknown })
                }
                (state, _) => state,
            },
        }
    }
}

/// Returns the child zone of a referral (RFC 1034 §4.3.2): the owner of the NS records in the authority
/// section of a response without answer and without SOA record.
fn referred_child<'m>(question: Question<'_>, message: &'m Message) -> Option<NameRef<'m>> {
    let has = |section, rtype| message.section(section).any(|record: &Record| record.rtype == rtype);
    let has_answer = message.section(Section::Answer).next().is_some();
    if message.rcode() != Rcode::NOERROR || has_answer || has(Section::Authority, Rtype::SOA) {
        return None;
    }
    let ns = message.section(Section::Authority).find(|record| record.rtype == Rtype::NS)?;
    let owner = ns.owner.view();
    let is_above = question.name.is_at_or_below(owner) && !owner.is_root();
    // The response for the NS or DS RRset of the zone itself is no referral to it.
    let is_own = question.name == owner && question.rtype == Rtype::DS;
    (is_above && !is_own).then_some(owner)
}

/// Returns the RDATA of the records in the answer section.
fn records_at<'m>(message: &'m Message, owner: NameRef<'m>, rtype: Rtype) -> impl Iterator<Item = &'m [u8]> {
    let is_asked = move |record: &&Record| {
        (record.rtype, record.class) == (rtype, Class::IN) && record.owner.view() == owner
    };
    message.section(Section::Answer).filter(is_asked).map(|record| record.rdata.as_slice())
}

/// Returns the signer of the records for `name`: the deepest one at or above `lowest` that is not above
/// the trust anchor, if possible of records at `name`.
fn signer<'m>(
    message: &'m Message,
    name: NameRef<'_>,
    lowest: NameRef<'_>,
    anchor: NameRef<'_>,
) -> Option<NameRef<'m>> {
    let signatures = message.records.iter().filter(|record| record.rtype == Rtype::RRSIG);
    let signatures = signatures.filter(|record| record.section != Section::Additional);
    let signers = signatures.filter_map(|record| Some((record, Rrsig::parse(&record.rdata)?.signer)));
    let possible =
        signers.filter(|(_, signer)| lowest.is_at_or_below(*signer) && signer.is_at_or_below(anchor));
    let best = possible.max_by_key(|(record, signer)| (record.owner.view() == name, signer.label_count()));
    best.map(|(_, signer)| signer)
}

/// Whether an unsigned response claims to be data of the zone: its question is for the apex, or the
/// authority section has the SOA or NS RRset of the zone.
fn names_zone(question: Question<'_>, message: &Message, zone: NameRef<'_>) -> bool {
    let is_apex_record =
        |record: &Record| matches!(record.rtype, Rtype::SOA | Rtype::NS) && record.owner.view() == zone;
    let is_apex = question.rtype != Rtype::DS && question.name == zone;
    is_apex || message.section(Section::Authority).any(is_apex_record)
}

/// Returns the target of the last alias, and the message as a response for it, if the message continues
/// in another zone (RFC 1034 §4.3.2 step 3a: the server continues with the canonical name).
fn continuation(
    validated: &RecordedValidation,
    rtype: Rtype,
    message: &Message,
) -> Option<(Name, Arc<Message>)> {
    let RecordedResult::Validated(validation) = &validated.result else { return None };
    let Validation { proved: Some(ProvedAnswer::Alias { target }), aliases, .. } = &**validation else {
        return None;
    };
    let zone = validated.zone.as_ref()?.view();
    let is_denied = |record: &Record| {
        record.rtype == Rtype::SOA
            && record.owner.view() != zone
            && target.view().is_at_or_below(record.owner.view())
    };
    let is_answered = message
        .section(Section::Answer)
        .any(|record| record.owner == *target && record.rtype != Rtype::RRSIG);
    let is_loop = aliases.iter().any(|alias| alias.name == *target);
    let continues = is_answered || message.section(Section::Authority).any(is_denied);
    if is_loop || !continues {
        return None;
    }
    let questions = vec![message::Question { name: target.clone(), rtype, class: Class::IN }];
    Some((target.clone(), Arc::new(Message { questions, ..message.clone() })))
}
