//! Follows the aliases from the question name to an answer, a referral or a denial (RFC 1034
//! §5.3.3, RFC 4035 §5, RFC 6672 §5.3).

mod aliases;
mod unanswered;

use super::Context;
use super::budget::Budget;
use super::claim::Claim;
use super::error::ValidationError;
use super::evidence::Evidence;
use super::keys::TrustedKeys;
use super::outcome::{Alias, ProvedAnswer, Question, RrsetOutcome, RrsetStatus};
use super::reason::{BogusReason, IndeterminateReason, InsecureReason};
use super::rrsets::Rrsets;
use super::signature::{self, AllowedAlgorithms, ValidSignature, Verification};
use crate::rrsig::Rrsig;
use nonesuch_proto::message::{Rcode, Record, Section};
use nonesuch_proto::{Name, NameRef, Rtype};

/// The result for one name of the chain of aliases.
enum NameOutcome {
    /// The chain ends here.
    Done(ProvedAnswer),
    /// The chain continues with the target of this alias.
    Alias(Alias),
}

/// The results of a walk so far. An interrupted walk continues with them.
#[derive(Clone, Debug)]
pub(super) struct Progress {
    /// The name of the chain of aliases that is checked.
    name: Name,
    /// The status of each RRset so far, by index.
    statuses: Vec<RrsetStatus>,
    /// The valid signature over each Secure RRset, by index. For a synthesised CNAME RRset, this is
    /// the signature over the DNAME RRset; for a proven NSEC5PROOF RRset, the signature over the
    /// Secure NSEC5 RRset with the lowest TTL. Its `ttl` is limited to the TTL of the RRset itself.
    valid_signatures: Vec<Option<ValidSignature>>,
    aliases: Vec<Alias>,
    /// The first reason for which the answer is only Insecure.
    insecure_reason: Option<InsecureReason>,
    /// As in [`Validation`](super::Validation).
    is_unsigned_delegation: bool,
    /// Number of unusable NSEC5 proofs for the names before `name`.
    unusable_proofs: u32,
}

impl Progress {
    /// The progress before the first step.
    pub(super) fn new(question: Question<'_>) -> Self {
        Self {
            name: question.name.to_name(),
            statuses: Vec::new(),
            valid_signatures: Vec::new(),
            aliases: Vec::new(),
            insecure_reason: None,
            is_unsigned_delegation: false,
            unusable_proofs: 0,
        }
    }
}

/// The state of the validation of one response.
pub(super) struct Walk<'v> {
    question: Question<'v>,
    rcode: Rcode,
    keys: &'v TrustedKeys,
    now: u32,
    verification: Verification<'v>,
    budget: &'v mut Budget,
    rrsets: Rrsets<'v>,
    /// The verified denial records; `None` until the first claim is checked.
    evidence: Option<Evidence<'v>>,
    progress: Progress,
}

impl<'v> Walk<'v> {
    pub(super) fn new(
        (question, response, keys, now): Context<'v>,
        mut progress: Progress,
        verification: Verification<'v>,
        budget: &'v mut Budget,
    ) -> Self {
        let rrsets = Rrsets::from_message(response);
        let count = rrsets.list().len();
        progress.statuses.resize(count, RrsetStatus::Unused);
        progress.valid_signatures.resize(count, None);
        let (rcode, evidence) = (response.rcode(), None);
        Self { question, rcode, keys, now, verification, budget, rrsets, evidence, progress }
    }

    /// As in [`Validation`](super::Validation).
    pub(super) const fn is_unsigned_delegation(&self) -> bool {
        self.progress.is_unsigned_delegation
    }

    /// Returns the results so far, for another walk that continues.
    pub(super) fn into_progress(mut self) -> Progress {
        self.mark_proved_names();
        self.progress
    }

    /// Follows aliases until an answer, a referral or a denial is proved.
    pub(super) fn run(&mut self) -> Result<ProvedAnswer, ValidationError> {
        loop {
            let name = self.progress.name.clone();
            match self.check_name(&name)? {
                NameOutcome::Done(proved) => return self.check_rcode(proved),
                NameOutcome::Alias(alias) => {
                    self.budget.take_alias()?;
                    self.progress.name = alias.target.clone();
                    self.progress.unusable_proofs = self
                        .evidence
                        .as_ref()
                        .map_or(self.progress.unusable_proofs, Evidence::unusable_proofs);
                    self.progress.aliases.push(alias);
                }
            }
        }
    }

    /// Marks the NSEC5PROOF RRsets with a verified proof as Proven. They have no signatures, and
    /// their TTL is limited to the lowest TTL of the Secure NSEC5 RRsets.
    fn mark_proved_names(&mut self) {
        let proved = self.evidence.as_ref().map(Evidence::proved_names).unwrap_or_default();
        let is_secure = |index: &usize| self.progress.statuses[*index] == RrsetStatus::Secure;
        let nsec5 =
            (0..self.progress.statuses.len()).filter(|index| self.rrsets.get(*index).rtype == Rtype::NSEC5);
        let lowest = nsec5
            .filter(is_secure)
            .filter_map(|index| self.progress.valid_signatures[index])
            .min_by_key(|valid| valid.ttl);
        for name in proved {
            let Some(index) = self.rrsets.find(Section::Authority, name, Rtype::NSEC5PROOF) else { continue };
            let ttl = self.rrsets.get(index).ttl;
            self.progress.statuses[index] = RrsetStatus::Proven;
            self.progress.valid_signatures[index] =
                lowest.map(|valid| ValidSignature { ttl: valid.ttl.min(ttl), ..valid });
        }
    }

    /// Returns the aliases, the reason for which the answer is only Insecure, and the result for
    /// each RRset.
    pub(super) fn finish(mut self) -> (Vec<Alias>, Option<InsecureReason>, Vec<RrsetOutcome>) {
        self.mark_proved_names();
        let Progress { statuses, valid_signatures, aliases, insecure_reason, .. } = self.progress;
        let list = self.rrsets.list().iter().zip(statuses).zip(valid_signatures);
        let outcomes = list.map(|((rrset, status), valid)| RrsetOutcome {
            section: rrset.section,
            owner: rrset.owner.to_name(),
            rtype: rrset.rtype,
            status,
            ttl: valid.map_or(rrset.ttl, |valid| valid.ttl),
        });
        (aliases, insecure_reason, outcomes.collect())
    }

    /// Checks the response code, which is not signed. A proof of NXDOMAIN or of a too long DNAME
    /// substitution, and an answer that ends with an alias, are accepted with each of NOERROR,
    /// NXDOMAIN and YXDOMAIN (after an alias, the response code applies to a name that this
    /// response does not answer, RFC 6604 §2). All other answers need NOERROR.
    fn check_rcode(&self, proved: ProvedAnswer) -> Result<ProvedAnswer, ValidationError> {
        let is_accepted = match proved {
            ProvedAnswer::Alias { .. } | ProvedAnswer::NxDomain | ProvedAnswer::DnameTooLong => true,
            _ => self.rcode == Rcode::NOERROR,
        };
        if is_accepted { Ok(proved) } else { Err(BogusReason::RcodeNotProved(self.rcode).into()) }
    }

    /// Verifies what the response has for `name`: an answer, an alias, a referral or a denial.
    fn check_name(&mut self, name: &Name) -> Result<NameOutcome, ValidationError> {
        let is_repeated = self.progress.aliases.iter().any(|alias| alias.name == *name);
        if is_repeated || !name.view().is_at_or_below(self.keys.apex()) {
            return Ok(NameOutcome::Done(ProvedAnswer::Alias { target: name.clone() }));
        }
        if !self.progress.aliases.is_empty() && self.is_answered_by_child(name.view()) {
            return Ok(NameOutcome::Done(ProvedAnswer::Alias { target: name.clone() }));
        }
        let answers = self.find_answers(name.view());
        if !answers.is_empty() {
            return self.verify_answers(&answers).map(NameOutcome::Done);
        }
        if self.question.rtype == Rtype::RRSIG
            && self.rrsets.has_lone_signatures(Section::Answer, name.view())
        {
            return Err(IndeterminateReason::RrsigQuestion.into());
        }
        let cname = self.rrsets.find(Section::Answer, name.view(), Rtype::CNAME);
        if let Some(index) = cname.filter(|index| !self.rrsets.get(*index).signatures.is_empty()) {
            return self.follow_cname(index).map(NameOutcome::Alias);
        }
        if let Some(dname) = self.find_dname(name.view()) {
            return self.follow_dname(name, dname, cname);
        }
        // The CNAME record is unsigned, and no DNAME record can have synthesised it. The
        // verification fails, because the record is not signed.
        if let Some(index) = cname {
            return self.follow_cname(index).map(NameOutcome::Alias);
        }
        self.check_unanswered(name)
    }

    /// Whether the answer for `name`, the target of an alias, is signed by a child zone: a server
    /// of both zones follows the alias into the child zone (RFC 1034 §4.3.2). The keys of this zone
    /// cannot prove these records, so a resolver must query the target again. If an attacker forged
    /// these signatures, the resolver only queries once more.
    fn is_answered_by_child(&self, name: NameRef<'_>) -> bool {
        let is_by_child = |record: &&Record| {
            Rrsig::parse(&record.rdata).is_some_and(|fields| self.is_child_zone(fields.signer, name))
        };
        self.rrsets.list().iter().any(|rrset| {
            let is_dname = rrset.rtype == Rtype::DNAME && name.is_at_or_below(rrset.owner);
            rrset.section == Section::Answer
                && (rrset.owner == name || is_dname)
                && !rrset.signatures.is_empty()
                && rrset.signatures.iter().all(is_by_child)
        })
    }

    /// Whether `zone`, a zone name in the response, is below the apex of this zone and at or above
    /// `name`.
    fn is_child_zone(&self, zone: NameRef<'_>, name: NameRef<'_>) -> bool {
        zone.len() > self.keys.apex().len() && name.is_at_or_below(zone)
    }

    /// Returns the indices of the RRsets that answer the question for `name`. It omits a CNAME
    /// RRset without signatures, which may be synthesised from a DNAME record.
    fn find_answers(&self, name: NameRef<'_>) -> Vec<usize> {
        let is_answer = |index: &usize| {
            let rrset = self.rrsets.get(*index);
            rrset.rtype != Rtype::CNAME || !rrset.signatures.is_empty()
        };
        if self.question.rtype != Rtype::ANY {
            let index = self.rrsets.find(Section::Answer, name, self.question.rtype);
            return index.into_iter().filter(is_answer).collect();
        }
        // RFC 8482: a subset of the RRsets of the name is a complete answer.
        let at_name = |index: &usize| {
            let rrset = self.rrsets.get(*index);
            rrset.section == Section::Answer && rrset.owner == name
        };
        (0..self.progress.statuses.len()).filter(at_name).filter(is_answer).collect()
    }

    /// Records further signatures that the validation will need, so that one batch is enough.
    fn record(&mut self, work: impl FnOnce(&mut Self)) {
        let progress = self.progress.clone();
        work(self);
        self.progress = progress;
    }

    /// Verifies the RRsets that answer the question.
    fn verify_answers(&mut self, indexes: &[usize]) -> Result<ProvedAnswer, ValidationError> {
        let mut is_expanded = false;
        for index in indexes {
            let verified = self.verify_expandable(*index);
            if verified == Err(ValidationError::Pending) {
                self.record(|walk| {
                    for index in indexes {
                        let _ = walk.verify(*index, AllowedAlgorithms::Any);
                    }
                });
            }
            is_expanded |= verified?;
        }
        Ok(if is_expanded { ProvedAnswer::WildcardAnswer } else { ProvedAnswer::Answer })
    }

    /// Verifies an RRset. If it was expanded from a wildcard, also verifies the proof that no
    /// closer match exists (RFC 4035 §5.3.4). Returns whether it was expanded.
    fn verify_expandable(&mut self, index: usize) -> Result<bool, ValidationError> {
        let valid = self.verify(index, AllowedAlgorithms::Any)?;
        let owner = self.rrsets.get(index).owner;
        let is_expanded = valid.labels < owner.rrsig_labels();
        if is_expanded {
            self.check_claim(Claim::WildcardExpansion(owner, usize::from(valid.labels)))?;
        }
        Ok(is_expanded)
    }

    /// Verifies an RRset that must not be expanded from a wildcard; its signature may have any
    /// algorithm.
    fn verify_unexpanded(&mut self, index: usize) -> Result<(), ValidationError> {
        self.verify_unexpanded_with(index, AllowedAlgorithms::Any)
    }

    fn verify_unexpanded_with(
        &mut self,
        index: usize,
        allowed: AllowedAlgorithms,
    ) -> Result<(), ValidationError> {
        let valid = self.verify(index, allowed)?;
        let rrset = self.rrsets.get(index);
        let (owner, rtype) = (rrset.owner, rrset.rtype);
        if valid.labels == owner.rrsig_labels() {
            return Ok(());
        }
        Err(self.mark_bogus(index, BogusReason::ExpandedFromWildcard { owner: owner.to_name(), rtype }))
    }

    /// Verifies an RRset, unless it is already Secure. A stored result is returned without regard
    /// to `allowed`. An RRset that is Bogus is verified again, at the cost of the budget.
    fn verify(
        &mut self,
        index: usize,
        allowed: AllowedAlgorithms,
    ) -> Result<ValidSignature, ValidationError> {
        if let Some(valid) = self.progress.valid_signatures[index] {
            return Ok(valid);
        }
        let (rrset, keys) = ((index, self.rrsets.get(index)), (self.keys, self.now));
        let outcome = signature::verify(rrset, allowed, keys, &mut self.verification, self.budget);
        match outcome {
            Ok(valid) => {
                self.progress.statuses[index] = RrsetStatus::Secure;
                self.progress.valid_signatures[index] = Some(valid);
                Ok(valid)
            }
            Err(ValidationError::Bogus(reason)) => Err(self.mark_bogus(index, reason)),
            Err(error) => Err(error),
        }
    }

    /// Marks an RRset as Bogus, and returns the error for the caller.
    fn mark_bogus(&mut self, index: usize, reason: BogusReason) -> ValidationError {
        self.progress.statuses[index] = RrsetStatus::Bogus(reason.clone());
        ValidationError::Bogus(reason)
    }
}
