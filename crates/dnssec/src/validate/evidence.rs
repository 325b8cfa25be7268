//! Selects the records of a response that deny existence, and determines their denial mechanism.

use super::budget::Budget;
use super::claim::{Claim, Denial};
use super::keys::TrustedKeys;
use super::reason::{BogusReason, Refusal};
use super::rrsets::Rrset;
use super::signature::Numbers;
use crate::denial::nsec::validate::{Nsec, NsecRecords};
use crate::denial::nsec3::validate::{Nsec3Record, Nsec3Records};
use crate::denial::nsec5::validate::{Nsec5Record, Nsec5Records};
use nonesuch_proto::{NameRef, Rtype};

/// The verified denial records of the authority section.
#[derive(Debug)]
pub(super) struct Evidence<'m> {
    records: DenialRecords<'m>,
    /// The reason of the first record that was ignored.
    passed_over: Option<BogusReason>,
}

#[derive(Debug)]
enum DenialRecords<'m> {
    None,
    Nsec(NsecRecords<'m>),
    Nsec3(Nsec3Records<'m>),
    Nsec5(Nsec5Records<'m>),
}

/// Denial records while they are collected.
#[derive(Debug, Default)]
pub(super) struct Collection<'m> {
    nsec: Vec<Nsec<'m>>,
    nsec3: Vec<Nsec3Record<'m>>,
    nsec5: Vec<Nsec5Record<'m>>,
    proofs: Vec<(NameRef<'m>, &'m [u8])>,
    passed_over: Option<BogusReason>,
}

/// A well-formed record with a signature that is not verified yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Candidate<'m> {
    Nsec(Nsec<'m>),
    Nsec3(Nsec3Record<'m>),
    Nsec5(Nsec5Record<'m>),
}

impl<'m> Candidate<'m> {
    /// Reads an RRset of NSEC, NSEC3 or NSEC5. Returns an error if it is not one well-formed chain
    /// record.
    pub(super) fn read(rrset: &Rrset<'m>, apex: NameRef<'_>) -> Result<Self, BogusReason> {
        let &[rdata] = rrset.rdatas.as_slice() else { return Err(BogusReason::SeveralDenials(rrset.rtype)) };
        match rrset.rtype {
            Rtype::NSEC => Nsec::read(rrset.owner, rdata, apex).map(Self::Nsec),
            Rtype::NSEC3 => Nsec3Record::read(rrset.owner, rdata, apex).map(Self::Nsec3),
            _ => Nsec5Record::read(rrset.owner, rdata, apex).map(Self::Nsec5),
        }
    }

    /// Returns the algorithm numbers that the signature over the record may have.
    pub(super) const fn numbers(&self) -> Numbers {
        match self {
            Self::Nsec5(_) => Numbers::Aliases,
            Self::Nsec(_) | Self::Nsec3(_) => Numbers::Any,
        }
    }
}

impl<'m> Collection<'m> {
    pub(super) fn add(&mut self, candidate: Candidate<'m>) {
        match candidate {
            Candidate::Nsec(record) => self.nsec.push(record),
            Candidate::Nsec3(record) => self.nsec3.push(record),
            Candidate::Nsec5(record) => self.nsec5.push(record),
        }
    }

    pub(super) fn add_proofs(&mut self, rrset: &Rrset<'m>) {
        self.proofs.extend(rrset.rdatas.iter().map(|rdata| (rrset.owner, *rdata)));
    }

    pub(super) fn pass_over(&mut self, reason: BogusReason) {
        if self.passed_over.is_none() {
            self.passed_over = Some(reason);
        }
    }

    /// Combines the records. They must have the same mechanism and, for NSEC3, the same parameters.
    pub(super) fn finish(self, apex: NameRef<'m>) -> Result<Evidence<'m>, BogusReason> {
        let Self { nsec, nsec3, nsec5, proofs, passed_over } = self;
        let records = match (nsec.is_empty(), nsec3.is_empty(), nsec5.is_empty()) {
            (true, true, true) => DenialRecords::None,
            (false, true, true) => DenialRecords::Nsec(NsecRecords::new(nsec)),
            (true, false, true) => DenialRecords::Nsec3(Nsec3Records::new(apex, nsec3)?),
            (true, true, false) => DenialRecords::Nsec5(Nsec5Records::new(apex, nsec5, proofs)),
            _ => return Err(BogusReason::MixedDenial),
        };
        Ok(Evidence { records, passed_over })
    }
}

impl Evidence<'_> {
    /// Returns the names with a verified NSEC5PROOF record.
    pub(super) fn proved_names(&self) -> Vec<NameRef<'_>> {
        match &self.records {
            DenialRecords::Nsec5(records) => records.proved_names().collect(),
            DenialRecords::None | DenialRecords::Nsec(_) | DenialRecords::Nsec3(_) => Vec::new(),
        }
    }

    /// Checks that the records prove `claim`. If the proof is incomplete and a record was ignored,
    /// the error is the reason for which the record was ignored.
    pub(super) fn deny(
        &mut self,
        claim: Claim<'_>,
        keys: &TrustedKeys,
        budget: &mut Budget,
    ) -> Result<Denial, Refusal> {
        let outcome = match &mut self.records {
            DenialRecords::None => Err(BogusReason::NoDenial.into()),
            DenialRecords::Nsec(records) => records.deny(claim).map_err(Refusal::from),
            DenialRecords::Nsec3(records) => records.deny(claim, budget),
            DenialRecords::Nsec5(records) => records.deny(claim, keys.nsec5_keys()?, budget),
        };
        outcome.map_err(|refusal| match (refusal, &self.passed_over) {
            (Refusal::Bogus(reason), Some(passed_over)) if reason.is_missing() => {
                Refusal::Bogus(passed_over.clone())
            }
            (refusal, _) => refusal,
        })
    }
}
