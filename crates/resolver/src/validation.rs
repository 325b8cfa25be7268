//! The validation of one response in a task: which zone it is from, and what of the response is used
//! afterwards (RFC 4035 §5).

use crate::cache::Question;
use crate::record::{Rrset, Security};
use crate::response::{Content, Reading, alias_target};
use crate::task::Outcome;
use nonesuch_dnssec::rrsig::Rrsig;
use nonesuch_dnssec::validate::{
    InsecureReason, PendingValidation, ProvedAnswer, RrsetOutcome, RrsetStatus, Validation,
};
use nonesuch_proto::message::{Message, Section};
use nonesuch_proto::{Name, NameRef, Rtype};
use std::collections::HashMap;
use std::net::SocketAddr;
use std::sync::Arc;

/// Number of RRsets of a response that are searched one by one.
const RRSETS_WITHOUT_INDEX: usize = 64;

/// A response to the current question of a task.
#[derive(Clone, Debug)]
pub(crate) struct ServerResponse {
    pub(crate) server: SocketAddr,
    /// The zone whose server responded. Its delegation may be forged.
    pub(crate) zone: Name,
    /// The name and the type that were asked. The name is in lower case.
    pub(crate) name: Name,
    pub(crate) rtype: Rtype,
    pub(crate) message: Arc<Message>,
    pub(crate) reading: Reading,
}

/// The state of the validation of a response.
#[derive(Debug)]
pub(crate) struct Checking {
    pub(crate) received: ServerResponse,
    /// Questions about DS and DNSKEY RRsets that were resolved for it, with their outcomes.
    pub(crate) fetched: Vec<(Question, Outcome)>,
    /// The validation, when the keys are known.
    pub(crate) pending: Option<Box<PendingValidation>>,
    /// What else is to be done with a DNSKEY RRset; `None` for all other responses.
    pub(crate) key_set: Option<KeySet>,
}

/// The properties of the entry points that a DNSKEY RRset is validated with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct KeySet {
    /// Whether only signatures of post-quantum algorithms count.
    pub(crate) requires_post_quantum: bool,
    /// Seconds for which the entry points are valid.
    pub(crate) ttl: u32,
}

impl Checking {
    pub(crate) const fn new(received: ServerResponse) -> Self {
        Self { received, fetched: Vec::new(), pending: None, key_set: None }
    }
}

impl Reading {
    /// Returns the zone that signed the records of the response, as its signatures name it: a zone at or
    /// above `name`. `None` if the response is not signed.
    pub(crate) fn signer<'r>(&'r self, name: NameRef<'_>, rtype: Rtype) -> Option<NameRef<'r>> {
        let answers = if let Content::Answer(found) = &self.content { found.as_slice() } else { &[] };
        let all = self.aliases.iter().chain(answers).chain(&self.proofs);
        let signatures = all.flat_map(|rrset| rrset.signatures.iter());
        let signers = signatures.filter_map(|rdata| Rrsig::parse(rdata).map(|fields| fields.signer));
        let cut = match &self.content {
            Content::Referral(ns) => Some(ns.owner.view()),
            // The parent has the DS RRset of a zone.
            _ => (rtype == Rtype::DS && !name.is_root()).then_some(name),
        };
        signers.into_iter().find(|signer| match cut {
            Some(cut) => cut.is_below(*signer),
            None => name.is_at_or_below(*signer),
        })
    }

    /// Marks all records that answer the question as insecure.
    pub(crate) fn set_insecure(&mut self) {
        self.answers_mut().for_each(|rrset| rrset.security = Security::Insecure);
    }

    /// Sets the reason for which the insecure records are insecure, for clients.
    pub(crate) fn set_insecure_reason(&mut self, reason: InsecureReason) {
        let reason = reason.extended_error().map(|_| reason);
        let insecure = self.answers_mut().filter(|rrset| rrset.security == Security::Insecure);
        insecure.for_each(|rrset| rrset.insecure = reason);
    }

    /// The records that answer the question.
    fn answers_mut(&mut self) -> impl Iterator<Item = &mut Rrset> {
        let answers =
            if let Content::Answer(found) = &mut self.content { found.as_mut_slice() } else { &mut [] };
        self.aliases.iter_mut().chain(answers).chain(&mut self.proofs)
    }

    /// Reduces the reading to what the validation has proved, with the TTLs that the signatures permit
    /// (RFC 4035 §5.3.3). Returns `None` if the reading contradicts the proof.
    pub(crate) fn keep_proved(
        mut self,
        rtype: Rtype,
        validation: &Validation,
        security: Security,
    ) -> Option<Self> {
        let proved = validation.proved.as_ref()?;
        let has_answer = matches!(self.content, Content::Answer(_));
        match proved {
            ProvedAnswer::Answer | ProvedAnswer::WildcardAnswer if has_answer => {}
            ProvedAnswer::Referral { child, .. } if matches!(&self.content, Content::Referral(ns) if ns.owner == *child) =>
                {}
            ProvedAnswer::Referral { .. } if self.content == Content::Alias => {
                return self.keep_proved_aliases(validation);
            }
            ProvedAnswer::DnameTooLong if self.content == Content::DnameTooLong => {}
            ProvedAnswer::NoData | ProvedAnswer::WildcardNoData if !has_answer => {
                self.content = Content::NoData
            }
            ProvedAnswer::NxDomain if !has_answer => self.content = Content::NxDomain,
            // The records after the alias are from another zone.
            ProvedAnswer::Alias { target } if rtype != Rtype::CNAME => {
                self.keep_aliases(validation.aliases.len());
                self.target = target.view().to_canonical();
                self.content = Content::Alias;
            }
            ProvedAnswer::Alias { .. } if has_answer => {}
            _ => return None,
        }
        self.keep_secure(validation, security)
    }

    /// Reduces the reading to the aliases that the validation has proved, although the rest of the
    /// response is bogus. The target of the last one is queried then. Some servers add a denial from an
    /// earlier answer to an alias.
    pub(crate) fn keep_proved_aliases(mut self, validation: &Validation) -> Option<Self> {
        self.target = validation.aliases.last()?.target.view().to_canonical();
        self.keep_aliases(validation.aliases.len());
        self.content = Content::Alias;
        let security =
            if validation.insecure_reason.is_some() { Security::Insecure } else { Security::Secure };
        self.keep_secure(validation, security)
    }

    fn keep_secure(mut self, validation: &Validation, security: Security) -> Option<Self> {
        let outcomes = Outcomes::new(&validation.rrsets);
        let status = |rrset: &Rrset, section: Section| outcomes.find(rrset, section);
        let answers =
            if let Content::Answer(found) = &mut self.content { found.as_mut_slice() } else { &mut [] };
        // A CNAME RRset that follows from a DNAME RRset has the properties of this.
        let mut previous = (u32::MAX, security);
        for rrset in self.aliases.iter_mut().chain(answers) {
            match status(rrset, Section::Answer) {
                // A denial that is insecure because of opt-out leaves the RRsets before it secure.
                Some(outcome) if outcome.status == RrsetStatus::Secure => {
                    rrset.ttl = rrset.ttl.min(outcome.ttl);
                    rrset.security = if is_expanded(rrset) { security } else { Security::Secure };
                }
                Some(outcome) if outcome.status == RrsetStatus::Synthesised => {
                    (rrset.ttl, rrset.security) = (rrset.ttl.min(outcome.ttl), previous.1);
                }
                None if rrset.rtype == Rtype::CNAME => {
                    (rrset.ttl, rrset.security) = (rrset.ttl.min(previous.0), previous.1);
                }
                _ => return None,
            }
            previous = (rrset.ttl, rrset.security);
        }
        self.proofs.retain_mut(|rrset| match status(rrset, Section::Authority) {
            Some(outcome) if matches!(outcome.status, RrsetStatus::Secure | RrsetStatus::Proven) => {
                (rrset.ttl, rrset.security) = (rrset.ttl.min(outcome.ttl), security);
                true
            }
            _ => false,
        });
        Some(self)
    }

    /// Keeps the aliases up to the first target that `is_kept` rejects. The target is queried then.
    pub(crate) fn keep_while(&mut self, is_kept: impl Fn(NameRef<'_>) -> bool) {
        let cnames = self.aliases.iter().filter(|rrset| rrset.rtype == Rtype::CNAME);
        let targets: Vec<Option<Name>> = cnames.map(alias_target).collect();
        let is_rejected =
            |target: &Option<Name>| target.as_ref().is_none_or(|target| !is_kept(target.view()));
        let Some(last) = targets.iter().position(is_rejected) else { return };
        self.keep_aliases(last + 1);
        if let Some(Some(target)) = targets.into_iter().nth(last) {
            self.target = target.view().to_canonical();
            self.content = Content::Alias;
            self.proofs.clear();
        }
    }

    /// Keeps the RRsets of the first `steps` aliases.
    fn keep_aliases(&mut self, steps: usize) {
        let cnames = self.aliases.iter().enumerate().filter(|(_, rrset)| rrset.rtype == Rtype::CNAME);
        let end = cnames.map(|(index, _)| index + 1).take(steps).last().unwrap_or(0);
        self.aliases.truncate(end);
    }
}

/// The results of a validation.
struct Outcomes<'v> {
    all: &'v [RrsetOutcome],
    /// Their positions, if they are many: the search must not take long.
    index: Option<HashMap<(Section, Rtype, NameRef<'v>), &'v RrsetOutcome>>,
}

impl<'v> Outcomes<'v> {
    fn new(all: &'v [RrsetOutcome]) -> Self {
        let entry =
            |outcome: &'v RrsetOutcome| ((outcome.section, outcome.rtype, outcome.owner.view()), outcome);
        let index = (all.len() > RRSETS_WITHOUT_INDEX).then(|| all.iter().map(entry).collect());
        Self { all, index }
    }

    fn find(&self, rrset: &Rrset, section: Section) -> Option<&'v RrsetOutcome> {
        if let Some(index) = &self.index {
            let index: &HashMap<(Section, Rtype, NameRef<'_>), _> = index;
            return index.get(&(section, rrset.rtype, rrset.owner.view())).copied();
        }
        let is_same = |outcome: &&RrsetOutcome| {
            outcome.section == section && outcome.rtype == rrset.rtype && outcome.owner == rrset.owner
        };
        self.all.iter().find(is_same)
    }
}

/// Whether the signatures say that an RRset was expanded from a wildcard (RFC 4034 §3.1.3). Then it is
/// not complete without the proof that no closer match exists.
pub(crate) fn is_expanded(rrset: &Rrset) -> bool {
    expanded_labels(rrset).is_some()
}

/// Returns the wildcard from which the signatures say that an RRset was expanded.
pub(crate) fn wildcard_of(rrset: &Rrset) -> Option<Name> {
    Name::prepend(b"*", rrset.owner.view().suffix(expanded_labels(rrset)?)).ok()
}

/// The number of labels below which the wildcard is.
fn expanded_labels(rrset: &Rrset) -> Option<usize> {
    let labels = rrset.signatures.iter().filter_map(|rdata| rdata.get(3)).min()?;
    (*labels < rrset.owner.view().rrsig_labels()).then_some(usize::from(*labels))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::{name, rrset};
    use nonesuch_dnssec::validate::RrsetStatus;

    /// A response of 64 KiB may have thousands of RRsets: the search for each of them must not visit all others.
    #[test]
    fn the_results_of_many_rrsets_have_an_index() {
        for count in [1, RRSETS_WITHOUT_INDEX, RRSETS_WITHOUT_INDEX + 1, 2000] {
            let outcome = |number: usize| RrsetOutcome {
                section: Section::Authority,
                owner: name(&format!("n{number}.example.")),
                rtype: Rtype::A,
                status: RrsetStatus::Secure,
                ttl: number as u32,
            };
            let all: Vec<RrsetOutcome> = (0..count).map(outcome).collect();
            let outcomes = Outcomes::new(&all);
            assert_eq!(outcomes.index.is_some(), count > RRSETS_WITHOUT_INDEX, "{count}");
            for known in &all {
                let found = |rtype: &str, section| {
                    let owner = known.owner.to_string().to_ascii_uppercase();
                    let rrset = rrset(&[&format!("{owner} 60 {rtype}")]);
                    outcomes.find(&rrset, section).map(|outcome| outcome.ttl)
                };
                assert_eq!(found("A 192.0.2.1", Section::Authority), Some(known.ttl));
                assert_eq!(found("A 192.0.2.1", Section::Answer), None);
                assert_eq!(found("NS a.example.", Section::Authority), None);
            }
        }
    }
}
