//! Follows the aliases from the question name to an answer, a referral or a denial (RFC 1034
//! §5.3.3, RFC 4035 §5, RFC 6672 §5.3).

use super::Context;
use super::budget::Budget;
use super::claim::{Claim, DenialKind, ProvedClaim};
use super::evidence::{Candidate, DenialCollector, Evidence};
use super::keys::TrustedKeys;
use super::outcome::{Alias, ProvedAnswer, Question, RrsetOutcome, RrsetStatus};
use super::reason::{BogusReason, IndeterminateReason, InsecureReason, ValidationError};
use super::rrsets::{Rrset, Rrsets};
use super::signature::{self, AllowedAlgorithms, ValidSignature, Verification};
use crate::rrsig::Rrsig;
use nonesuch_proto::message::{Rcode, Record, Section};
use nonesuch_proto::{MAX_NAME, Name, NameRef, Rtype};

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

    /// Verifies a CNAME RRset and returns the alias.
    fn follow_cname(&mut self, index: usize) -> Result<Alias, ValidationError> {
        self.verify_expandable(index)?;
        let name = self.rrsets.get(index).owner.to_name();
        Ok(Alias { name, target: self.alias_target(index)?.to_name(), by_dname: false })
    }

    /// Returns the target of an RRset of aliases, which must have exactly one record.
    fn alias_target(&self, index: usize) -> Result<NameRef<'v>, BogusReason> {
        let rrset = self.rrsets.get(index);
        let &[rdata] = rrset.rdatas.as_slice() else {
            return Err(BogusReason::SeveralAliases(rrset.owner.to_name()));
        };
        NameRef::from_wire(rdata).map_err(|_| BogusReason::MalformedAlias(rrset.owner.to_name()))
    }

    /// Returns the index of the nearest DNAME RRset above `name` in the answer section.
    fn find_dname(&self, name: NameRef<'_>) -> Option<usize> {
        let mut ancestor = name.parent();
        while let Some(owner) = ancestor.filter(|owner| owner.len() >= self.keys.apex().len()) {
            if let Some(index) = self.rrsets.find(Section::Answer, owner, Rtype::DNAME) {
                return Some(index);
            }
            ancestor = owner.parent();
        }
        None
    }

    /// Follows the DNAME RRset at index `dname`. If the response has a CNAME RRset for `name`, at
    /// index `cname`, it must equal the record that the validator synthesises; such a record is not
    /// signed (RFC 6672 §5.3.1).
    fn follow_dname(
        &mut self,
        name: &Name,
        dname: usize,
        cname: Option<usize>,
    ) -> Result<NameOutcome, ValidationError> {
        self.verify_unexpanded(dname)?;
        let owner = self.rrsets.get(dname).owner;
        let prefix = &name.wire()[..name.wire().len() - owner.len()];
        let target = self.alias_target(dname)?;
        if prefix.len() + target.len() > MAX_NAME {
            return Ok(NameOutcome::Done(ProvedAnswer::DnameTooLong));
        }
        let synthesised = [prefix, target.wire()].concat();
        let synthesised = NameRef::from_wire_unchecked(&synthesised).to_name();
        if let Some(index) = cname {
            if self.alias_target(index)? != synthesised.view() {
                return Err(self.mark_bogus(index, BogusReason::ForgedAlias(name.clone())));
            }
            self.progress.statuses[index] = RrsetStatus::Synthesised;
            // The DNAME record proves the CNAME record and therefore limits the time for which it
            // may be cached.
            let ttl = self.rrsets.get(index).ttl;
            self.progress.valid_signatures[index] = self.progress.valid_signatures[dname]
                .map(|valid| ValidSignature { ttl: valid.ttl.min(ttl), ..valid });
        }
        if self.question.rtype == Rtype::CNAME {
            // The synthesised record is the answer. If the response does not have it, the resolver
            // can synthesise it.
            let proved = if cname.is_some() {
                ProvedAnswer::Answer
            } else {
                ProvedAnswer::Alias { target: synthesised }
            };
            return Ok(NameOutcome::Done(proved));
        }
        Ok(NameOutcome::Alias(Alias { name: name.clone(), target: synthesised, by_dname: true }))
    }

    /// Handles the end of the chain of aliases: the response has neither an answer nor an alias for
    /// `name`, which is in the zone.
    ///
    /// Without an SOA RRset, NS records at a zone cut are a referral, and an alias has an
    /// unanswered target. Every other response is a denial. NXDOMAIN is always a denial. YXDOMAIN
    /// is an error here, because a DNAME substitution that is too long ends the chain earlier.
    fn check_unanswered(&mut self, name: &Name) -> Result<NameOutcome, ValidationError> {
        let soa = self.rrsets.find(Section::Authority, self.keys.apex(), Rtype::SOA);
        match self.rcode {
            Rcode::YXDOMAIN => return Err(BogusReason::RcodeNotProved(Rcode::YXDOMAIN).into()),
            Rcode::NXDOMAIN => {
                // As in `is_answered_by_child`: the child zone denies the name.
                let is_child_soa = |rrset: &Rrset<'_>| {
                    rrset.section == Section::Authority
                        && rrset.rtype == Rtype::SOA
                        && self.is_child_zone(rrset.owner, name.view())
                };
                if !self.progress.aliases.is_empty() && self.rrsets.list().iter().any(is_child_soa) {
                    return Ok(NameOutcome::Done(ProvedAnswer::Alias { target: name.clone() }));
                }
            }
            _ => {
                if let Some(ns_index) = self.find_referral(name.view()).filter(|_| soa.is_none()) {
                    return self.check_referral(ns_index).map(NameOutcome::Done);
                }
                if !self.progress.aliases.is_empty() && soa.is_none() {
                    return Ok(NameOutcome::Done(ProvedAnswer::Alias { target: name.clone() }));
                }
            }
        }
        if let Some(index) = soa {
            let verified = self.verify_unexpanded(index);
            if verified == Err(ValidationError::Pending) {
                self.record(|walk| drop(walk.collect_evidence()));
            }
            verified?;
        }
        let claim = match self.rcode {
            Rcode::NXDOMAIN => Claim::NxDomain(name.view()),
            _ => Claim::NoData(name.view(), self.question.rtype),
        };
        let kind = self.check_claim(claim)?.kind;
        if self.question.rtype == Rtype::DS && kind != DenialKind::NxDomain {
            let proved = self.check_claim(Claim::NoDs(name.view()));
            if matches!(proved, Err(ValidationError::Pending)) {
                return Err(ValidationError::Pending);
            }
            self.progress.is_unsigned_delegation = proved.is_ok();
        }
        Ok(NameOutcome::Done(match kind {
            DenialKind::NxDomain => ProvedAnswer::NxDomain,
            DenialKind::WildcardNoData => ProvedAnswer::WildcardNoData,
            DenialKind::NoData | DenialKind::WildcardExpansion | DenialKind::NoDs => ProvedAnswer::NoData,
        }))
    }

    /// Returns the index of the NS RRset of a referral for `name`. Its owner, the zone cut, is
    /// below the apex and at or above `name`. For DS, the zone cut must be above `name`, because
    /// the parent answers for DS at the zone cut (RFC 4035 §3.1.4.1).
    fn find_referral(&self, name: NameRef<'_>) -> Option<usize> {
        let is_ds = self.question.rtype == Rtype::DS;
        let mut ancestor = if is_ds { name.parent() } else { Some(name) };
        while let Some(owner) = ancestor.filter(|owner| owner.len() > self.keys.apex().len()) {
            if let Some(index) = self.rrsets.find(Section::Authority, owner, Rtype::NS) {
                return Some(index);
            }
            ancestor = owner.parent();
        }
        None
    }

    /// Checks the referral with the NS RRset at index `ns_index`. RFC 4035 §5.2: a referral has a
    /// DS RRset, or a proof that no DS RRset exists.
    fn check_referral(&mut self, ns_index: usize) -> Result<ProvedAnswer, ValidationError> {
        let cut = self.rrsets.get(ns_index).owner;
        let has_ds = match self.rrsets.find(Section::Authority, cut, Rtype::DS) {
            Some(index) => {
                self.verify_unexpanded(index)?;
                true
            }
            None => {
                self.check_claim(Claim::NoDs(cut))?;
                self.progress.insecure_reason.get_or_insert(InsecureReason::UnsignedDelegation);
                self.progress.is_unsigned_delegation = true;
                false
            }
        };
        self.progress.statuses[ns_index] = RrsetStatus::Unsigned;
        Ok(ProvedAnswer::Referral { child: cut.to_name(), has_ds })
    }

    /// Checks that the denial records of the response prove `claim`.
    fn check_claim(&mut self, claim: Claim<'_>) -> Result<ProvedClaim, ValidationError> {
        if self.evidence.is_none() {
            self.evidence = Some(self.collect_evidence()?);
        }
        let Some(evidence) = &mut self.evidence else { return Err(BogusReason::NoDenial.into()) };
        let verdicts = self.verification.proof_verdicts();
        let proved = evidence.check_claim(claim, self.keys, verdicts, self.budget)?;
        if let Some(insecure_reason) = proved.insecure_reason {
            self.progress.insecure_reason.get_or_insert(insecure_reason);
        }
        Ok(proved)
    }

    /// Verifies all denial records of the authority section. It ignores records that are malformed
    /// or not Secure.
    fn collect_evidence(&mut self) -> Result<Evidence<'v>, ValidationError> {
        let apex = self.keys.apex();
        let (mut collector, mut is_pending) = (DenialCollector::default(), false);
        self.check_nsec3_count()?;
        for index in 0..self.progress.statuses.len() {
            let rrset = self.rrsets.get(index);
            if rrset.section != Section::Authority {
                continue;
            }
            let candidate = match rrset.rtype {
                Rtype::NSEC | Rtype::NSEC3 | Rtype::NSEC5 => Candidate::read(rrset, apex),
                Rtype::NSEC5PROOF => {
                    collector.add_proofs(rrset);
                    continue;
                }
                _ => continue,
            };
            let verified = match candidate {
                Ok(candidate) => {
                    self.verify_unexpanded_with(index, candidate.allowed_algorithms()).map(|_| candidate)
                }
                Err(reason) => Err(self.mark_bogus(index, reason)),
            };
            match verified {
                Ok(candidate) => collector.add(candidate),
                Err(ValidationError::Bogus(reason)) => collector.note_ignored(reason),
                Err(ValidationError::Pending) => is_pending = true,
                // The verdicts come first, as without a batch.
                Err(_) if is_pending => break,
                Err(error) => return Err(error),
            }
        }
        if is_pending {
            return Err(ValidationError::Pending);
        }
        Ok(collector.finish(apex, self.progress.unusable_proofs)?)
    }

    fn check_nsec3_count(&self) -> Result<(), BogusReason> {
        let is_nsec3 = |rtype, section| rtype == Rtype::NSEC3 && section == Section::Authority;
        let all = self.rrsets.list().iter().filter(|rrset| is_nsec3(rrset.rtype, rrset.section));
        let count = all.map(|rrset| rrset.rdatas.len()).sum();
        if count > self.budget.limits().nsec3_records {
            Err(BogusReason::TooManyNsec3(count))
        } else {
            Ok(())
        }
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
