//! The chain of trust: which keys validate the data of a zone, and which RRsets must be fetched first
//! (RFC 4035 §5, RFC 6840 appendix C). The chain is built from the trust anchor downwards, so that a
//! fetch never waits for another one of the chain.

use super::Resolver;
use crate::cache::{CachedAnswer, FailureCause, NegativeKind, Question};
use crate::record::{Rrset, Security};
use crate::task::{ErrorDetail, Outcome};
use crate::trust::ZoneTrust;
use nonesuch_dnssec::validate::{EntryPoints, InsecureReason, TrustedKeys};
use nonesuch_net::machine::Now;
use nonesuch_proto::message::Rcode;
use nonesuch_proto::{Class, Name, NameRef, Rtype};
use nonesuch_server::extended_errors::ExtendedError;
use std::sync::Arc;

/// No DNSKEY RRset can be had (RFC 8914 §4.10).
pub(super) const NO_DNSKEY: ExtendedError =
    ExtendedError { code: 9, text: "the zone has no DNSKEY RRset, or it cannot be fetched" };

/// The trust in the zone that data belong to.
#[derive(Debug)]
pub(super) enum Trust {
    /// The name is the apex of a secure zone with these keys.
    Secure(Arc<TrustedKeys>),
    /// The name is no zone cut: it is in a secure zone with these keys.
    Enclosed(Arc<TrustedKeys>),
    /// The name is outside the chain of trust: it is at or below this name, at which the chain ends.
    Insecure(InsecureReason, Name),
    /// This question must be resolved first.
    Needs(Question),
    /// The name is at or below a secure delegation, or a trust anchor, without a valid DNSKEY RRset; and the seconds
    /// for which this is cached.
    NoKeys(ErrorDetail, u32),
    /// The DS RRset of a name, or its absence, cannot be validated.
    Failed(ErrorDetail),
}

/// The knowledge about the DS RRset of a name.
pub(super) enum DsStatus {
    Secure(Rrset),
    Insecure,
    /// The name is no zone cut.
    NoCut,
    /// The name does not exist.
    NoName,
    Failed(ErrorDetail),
    Unknown,
}

/// A question of the chain of trust.
pub(super) const fn chain_question(name: Name, rtype: Rtype) -> Question {
    Question { name, rtype, class: Class::IN, checking_disabled: false }
}

impl Resolver {
    /// Whether responses are validated.
    pub(super) fn validates(&self) -> bool {
        self.shared.validates()
    }

    /// Whether the keys that the answer to a chain question gives are known.
    pub(super) fn knows_keys(&self, question: &Question, now: Now) -> bool {
        match self.shared.trust.get(question.name.view(), now) {
            Some(ZoneTrust::Secure(keys)) => question.rtype == Rtype::DNSKEY || keys.knows_nsec5_keys(),
            _ => false,
        }
    }

    /// Returns the trust in the zone whose apex may be `target`. `fetched`: the outcomes of the
    /// questions that were resolved for the same response.
    pub(super) fn trust_of(&self, target: NameRef<'_>, fetched: &[(Question, Outcome)], now: Now) -> Trust {
        let validation = &self.settings.options.validation;
        let Some(anchor) = validation.anchors.closest(target) else {
            return Trust::Insecure(InsecureReason::NoTrustAnchor, Name::root());
        };
        let anchor_labels = anchor.apex.view().label_count();
        if let Some(negative) = validation.negative_anchor(target, anchor_labels, now.unix) {
            return Trust::Insecure(InsecureReason::NegativeTrustAnchor, negative.name.clone());
        }
        let mut base = None;
        for labels in (anchor_labels..=target.label_count()).rev() {
            let zone = target.suffix(labels);
            // The NSEC5 keys are fetched after the others.
            let fetched_keys = fetched.iter().rev().find_map(|(question, outcome)| {
                let keys = outcome.keys.as_ref().filter(|_| question.name.view() == zone)?;
                Some(ZoneTrust::Secure(Arc::clone(&keys.0)))
            });
            match fetched_keys.or_else(|| self.shared.trust.get(zone, now)) {
                // A trust anchor makes its zone secure, whatever the parent proves (RFC 6840 appendix C).
                Some(ZoneTrust::Insecure(InsecureReason::UnsignedDelegation)) if labels == anchor_labels => {}
                Some(ZoneTrust::Secure(keys)) if labels == target.label_count() => {
                    return Trust::Secure(keys);
                }
                Some(ZoneTrust::Secure(keys)) => {
                    base = Some((labels, keys));
                    break;
                }
                Some(ZoneTrust::Insecure(reason)) => return Trust::Insecure(reason, zone.to_name()),
                None => {}
            }
        }
        let first_unknown = base.as_ref().map_or(anchor_labels, |(labels, _)| *labels) + 1;
        for labels in (first_unknown..=target.label_count()).rev() {
            let name = target.suffix(labels);
            match self.ds_status(name, fetched, now) {
                DsStatus::Secure(ds) => match self.check_ds(name, &ds, now) {
                    Ok(()) => return self.needs_keys(name, fetched, now),
                    Err(reason) => return Trust::Insecure(reason, name.to_name()),
                },
                DsStatus::Insecure => return unsigned_delegation(name),
                _ => {}
            }
        }
        match base {
            Some((labels, keys)) => self.next_link(target, labels, keys, fetched, now),
            None => self.needs_keys(anchor.apex.view(), fetched, now),
        }
    }

    /// Returns the first question about the names from the secure zone with `labels` labels down to
    /// `target` whose answer is not known.
    fn next_link(
        &self,
        target: NameRef<'_>,
        labels: usize,
        secure: Arc<TrustedKeys>,
        fetched: &[(Question, Outcome)],
        now: Now,
    ) -> Trust {
        for labels in labels + 1..=target.label_count() {
            let name = target.suffix(labels);
            match self.ds_status(name, fetched, now) {
                DsStatus::NoCut => {}
                DsStatus::NoName => break,
                DsStatus::Failed(error) => return Trust::Failed(error),
                DsStatus::Insecure => return unsigned_delegation(name),
                // The caller found it already.
                DsStatus::Secure(_) => return self.needs_keys(name, fetched, now),
                DsStatus::Unknown => return Trust::Needs(chain_question(name.to_name(), Rtype::DS)),
            }
        }
        Trust::Enclosed(secure)
    }

    /// The keys of a zone must be fetched, unless this failed.
    fn needs_keys(&self, zone: NameRef<'_>, fetched: &[(Question, Outcome)], now: Now) -> Trust {
        let question = chain_question(zone.to_name(), Rtype::DNSKEY);
        if let Some((_, outcome)) = fetched.iter().find(|(known, _)| *known == question) {
            return Trust::NoKeys(outcome.error.clone().unwrap_or_else(|| NO_DNSKEY.into()), 0);
        }
        match self.shared.cache.failure(&question, now) {
            Some(failure) if failure.cause == FailureCause::Validation => {
                let ttl = failure.ttl;
                Trust::NoKeys(failure.into(), ttl)
            }
            _ => Trust::Needs(question),
        }
    }

    /// Returns the cached failure (RFC 9520) to validate the DNSKEY RRset of the zone `delegated`, or of a zone
    /// below it, if the data of `target` cannot be validated without this RRset, whatever the servers of
    /// `delegated` respond; and the seconds that remain of it.
    pub(super) fn known_failure(
        &self,
        delegated: NameRef<'_>,
        target: NameRef<'_>,
        now: Now,
    ) -> Option<(ErrorDetail, u32)> {
        let keys = chain_question(delegated.to_name(), Rtype::DNSKEY);
        let failure = self.shared.cache.failure(&keys, now)?;
        if failure.cause != FailureCause::Validation {
            return None;
        }
        // The DS RRset may have changed since the failure, and names below may have keys or be insecure.
        match self.trust_of(target, &[], now) {
            // It may be another zone whose keys failed.
            Trust::NoKeys(error, ttl) => Some((error, ttl.min(failure.ttl))),
            _ => None,
        }
    }

    /// Checks that a validator knows the algorithm and digest of a DS record. If not, remembers that the
    /// zone is insecure.
    fn check_ds(&self, zone: NameRef<'_>, ds: &Rrset, now: Now) -> Result<(), InsecureReason> {
        let validation = &self.settings.options.validation;
        let records: Vec<&[u8]> = ds.records.iter().collect();
        let entry_points = EntryPoints { ds: &records, dnskeys: &[] };
        let limits = &self.settings.options.limits.validation;
        entry_points.check(validation.policy, limits).inspect_err(|reason| {
            self.shared.trust.insert(zone, ZoneTrust::Insecure(*reason), ds.ttl, now);
        })
    }

    /// Returns the knowledge about the DS RRset of a name, from outcomes and from the cache.
    pub(super) fn ds_status(&self, name: NameRef<'_>, fetched: &[(Question, Outcome)], now: Now) -> DsStatus {
        if name.is_root() {
            return DsStatus::NoCut;
        }
        let question = chain_question(name.to_name(), Rtype::DS);
        if let Some((_, outcome)) = fetched.iter().find(|(known, _)| *known == question) {
            return status_of_outcome(name, outcome);
        }
        // The names above are looked up by themselves.
        match self.shared.cache.answer_of_name(&question, now) {
            Some(CachedAnswer::Rrset(cached)) => status_of_rrset(cached.rrset),
            Some(CachedAnswer::Alias(cached) | CachedAnswer::Dname(cached)) => no_cut(cached.rrset.security),
            Some(CachedAnswer::Negative(negative)) => {
                let security = negative.authority.iter().map(|rrset| rrset.security).min();
                match (security, negative.kind) {
                    _ if negative.is_unsigned_delegation => DsStatus::Insecure,
                    (Some(Security::Secure), NegativeKind::NxDomain) => DsStatus::NoName,
                    (security, _) => no_cut(security.unwrap_or_default()),
                }
            }
            Some(CachedAnswer::Failure(failure)) => DsStatus::Failed(failure.into()),
            None => DsStatus::Unknown,
        }
    }
}

fn unsigned_delegation(cut: NameRef<'_>) -> Trust {
    Trust::Insecure(InsecureReason::UnsignedDelegation, cut.to_name())
}

fn status_of_rrset(ds: Rrset) -> DsStatus {
    match ds.security {
        Security::Secure => DsStatus::Secure(ds),
        Security::Insecure => DsStatus::Insecure,
        Security::Unchecked => DsStatus::Unknown,
    }
}

/// The status of a name without DS RRset, from the security of the negative answer.
const fn no_cut(security: Security) -> DsStatus {
    match security {
        Security::Secure => DsStatus::NoCut,
        Security::Insecure => DsStatus::Insecure,
        Security::Unchecked => DsStatus::Unknown,
    }
}

pub(super) fn status_of_outcome(name: NameRef<'_>, outcome: &Outcome) -> DsStatus {
    let mut all = outcome.answer.iter().chain(&outcome.authority);
    if outcome.rcode == Rcode::SERVFAIL || all.any(|rrset| rrset.security == Security::Unchecked) {
        return DsStatus::Failed(outcome.error.clone().unwrap_or_else(|| NO_DNSKEY.into()));
    }
    let is_ds = |rrset: &&Rrset| rrset.rtype == Rtype::DS && rrset.owner.view() == name;
    if let Some(ds) = outcome.answer.iter().find(is_ds) {
        return status_of_rrset(ds.clone());
    }
    // An alias is not a zone cut, whatever its target is.
    if let Some(alias) = outcome.answer.first() {
        return no_cut(alias.security);
    }
    if outcome.is_unsigned_delegation {
        return DsStatus::Insecure;
    }
    match outcome.rcode {
        Rcode::NOERROR | Rcode::NXDOMAIN if !outcome.is_secure() => DsStatus::Insecure,
        Rcode::NOERROR => DsStatus::NoCut,
        Rcode::NXDOMAIN => DsStatus::NoName,
        _ => DsStatus::Failed(NO_DNSKEY.into()),
    }
}
