//! The end of the chain of aliases without an answer: a referral or a denial (RFC 4035 §5.2 and §5.4).

use super::{NameOutcome, Walk};
use crate::validate::claim::{Claim, DenialKind, ProvedClaim};
use crate::validate::error::ValidationError;
use crate::validate::evidence::{Candidate, DenialCollector, Evidence};
use crate::validate::outcome::{ProvedAnswer, RrsetStatus};
use crate::validate::reason::{BogusReason, InsecureReason};
use crate::validate::rrsets::Rrset;
use nonesuch_proto::message::{Rcode, Section};
use nonesuch_proto::{Name, NameRef, Rtype};

impl<'v> Walk<'v> {
    /// Handles the end of the chain of aliases: the response has neither an answer nor an alias for
    /// `name`, which is in the zone.
    ///
    /// Without an SOA RRset, NS records at a zone cut are a referral, and an alias has an
    /// unanswered target. Every other response is a denial. NXDOMAIN is always a denial. YXDOMAIN
    /// is an error here, because a DNAME substitution that is too long ends the chain earlier.
    pub(super) fn check_unanswered(&mut self, name: &Name) -> Result<NameOutcome, ValidationError> {
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
    pub(super) fn check_claim(&mut self, claim: Claim<'_>) -> Result<ProvedClaim, ValidationError> {
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
    pub(super) fn collect_evidence(&mut self) -> Result<Evidence<'v>, ValidationError> {
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
}
