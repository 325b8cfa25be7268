//! Collects the verified denial records of a response, determines their denial mechanism, and
//! checks with them what the response claims not to exist.

use super::budget::Budget;
use super::claim::{Claim, ProvedClaim};
use super::error::ValidationError;
use super::keys::TrustedKeys;
use super::proofs::{ProofVerdicts, ProofVerifier};
use super::reason::BogusReason;
use super::rrsets::Rrset;
use super::signature::AllowedAlgorithms;
use crate::denial::nsec::validate::{Nsec, NsecRecords};
use crate::denial::nsec3::validate::{Nsec3Record, Nsec3Records};
use crate::denial::nsec5::validate::{Nsec5Record, Nsec5Records};
use nonesuch_proto::{NameRef, Rtype};

/// The verified denial records of the authority section.
#[derive(Debug)]
pub(super) struct Evidence<'m> {
    records: DenialRecords<'m>,
    /// Why the first ignored record was ignored; `None` if no record was ignored.
    first_ignored: Option<BogusReason>,
}

/// The records of the only mechanism in the response.
#[derive(Debug)]
enum DenialRecords<'m> {
    /// The response has no usable denial record.
    None,
    Nsec(NsecRecords<'m>),
    Nsec3(Nsec3Records<'m>),
    Nsec5(Nsec5Records<'m>),
}

/// Collects the denial records of the authority section one by one.
#[derive(Debug, Default)]
pub(super) struct DenialCollector<'m> {
    nsec: Vec<Nsec<'m>>,
    nsec3: Vec<Nsec3Record<'m>>,
    nsec5: Vec<Nsec5Record<'m>>,
    /// Owner and RDATA of each NSEC5PROOF record. They have no signatures: [`Nsec5Records`]
    /// verifies a proof with the VRF key when a claim needs it.
    proofs: Vec<(NameRef<'m>, &'m [u8])>,
    /// As in [`Evidence`].
    first_ignored: Option<BogusReason>,
}

/// A well-formed denial record whose signature is not verified yet.
#[derive(Clone, Copy, Debug)]
pub(super) enum Candidate<'m> {
    Nsec(Nsec<'m>),
    Nsec3(Nsec3Record<'m>),
    Nsec5(Nsec5Record<'m>),
}

impl<'m> Candidate<'m> {
    /// Reads an RRset of type NSEC, NSEC3 or NSEC5 of the zone at `apex`.
    ///
    /// # Errors
    /// If the RRset has several records, or its record is malformed or unsuitable for a denial.
    pub(super) fn read(rrset: &Rrset<'m>, apex: NameRef<'_>) -> Result<Self, BogusReason> {
        let &[rdata] = rrset.rdatas.as_slice() else { return Err(BogusReason::SeveralDenials(rrset.rtype)) };
        Self::read_record(rrset.rtype, rrset.owner, rdata, apex)
    }

    /// Reads a record of type NSEC, NSEC3 or NSEC5 of the zone at `apex`.
    ///
    /// # Errors
    /// If the record is malformed or unsuitable for a denial.
    pub(super) fn read_record(
        rtype: Rtype,
        owner: NameRef<'m>,
        rdata: &'m [u8],
        apex: NameRef<'_>,
    ) -> Result<Self, BogusReason> {
        match rtype {
            Rtype::NSEC => Nsec::read(owner, rdata, apex).map(Self::Nsec),
            Rtype::NSEC3 => Nsec3Record::read(owner, rdata, apex).map(Self::Nsec3),
            _ => Nsec5Record::read(owner, rdata, apex).map(Self::Nsec5),
        }
    }

    /// Returns the algorithm numbers that the signature over the record may have.
    pub(super) const fn allowed_algorithms(&self) -> AllowedAlgorithms {
        match self {
            Self::Nsec5(_) => AllowedAlgorithms::AliasNumbers,
            Self::Nsec(_) | Self::Nsec3(_) => AllowedAlgorithms::Any,
        }
    }
}

impl<'m> DenialCollector<'m> {
    /// Adds a record. The caller has verified its signature.
    pub(super) fn add(&mut self, candidate: Candidate<'m>) {
        match candidate {
            Candidate::Nsec(record) => self.nsec.push(record),
            Candidate::Nsec3(record) => self.nsec3.push(record),
            Candidate::Nsec5(record) => self.nsec5.push(record),
        }
    }

    /// Adds the records of an NSEC5PROOF RRset, unverified.
    pub(super) fn add_proofs(&mut self, rrset: &Rrset<'m>) {
        self.proofs.extend(rrset.rdatas.iter().map(|rdata| (rrset.owner, *rdata)));
    }

    /// Stores the reason if this is the first ignored record.
    pub(super) fn note_ignored(&mut self, reason: BogusReason) {
        if self.first_ignored.is_none() {
            self.first_ignored = Some(reason);
        }
    }

    /// Combines the records of the zone at `apex`. `unusable_proofs`: the number of NSEC5 proofs that
    /// earlier steps of the validation found unusable.
    ///
    /// # Errors
    /// If the records have different mechanisms, other than NSEC3 and NSEC5, or, for NSEC3, different
    /// parameters.
    pub(super) fn finish(self, apex: NameRef<'m>, unusable_proofs: u32) -> Result<Evidence<'m>, BogusReason> {
        let Self { nsec, nsec3, nsec5, proofs, first_ignored } = self;
        let records = match (nsec.is_empty(), nsec3.is_empty(), nsec5.is_empty()) {
            (true, true, true) => DenialRecords::None,
            (false, true, true) => DenialRecords::Nsec(NsecRecords::new(nsec)),
            // In a conservative transition to NSEC5 (ePrint 2017/099 §9.1), a response has the records
            // of both. Each proves the denial; NSEC3 needs no VRF proofs.
            (true, false, _) => DenialRecords::Nsec3(Nsec3Records::new(apex, nsec3)?),
            (true, true, false) => {
                DenialRecords::Nsec5(Nsec5Records::new(apex, nsec5, proofs, unusable_proofs))
            }
            _ => return Err(BogusReason::MixedDenial),
        };
        Ok(Evidence { records, first_ignored })
    }
}

impl Evidence<'_> {
    /// Number of unusable NSEC5 proofs so far.
    pub(super) const fn unusable_proofs(&self) -> u32 {
        match &self.records {
            DenialRecords::Nsec5(records) => records.unusable_proofs(),
            DenialRecords::None | DenialRecords::Nsec(_) | DenialRecords::Nsec3(_) => 0,
        }
    }

    /// Returns the names with a verified NSEC5PROOF record.
    pub(super) fn proved_names(&self) -> Vec<NameRef<'_>> {
        match &self.records {
            DenialRecords::Nsec5(records) => records.proved_names().collect(),
            DenialRecords::None | DenialRecords::Nsec(_) | DenialRecords::Nsec3(_) => Vec::new(),
        }
    }

    /// Checks that the records prove `claim`.
    ///
    /// # Errors
    /// [`ValidationError::Bogus`] if they do not prove it. If a record is missing and another one
    /// was ignored, the reason is that of the ignored record, because it may be the missing one.
    /// [`ValidationError::Indeterminate`] if the work exceeds `budget`. [`ValidationError::Pending`] if
    /// a proof must be verified first.
    pub(super) fn check_claim(
        &mut self,
        claim: Claim<'_>,
        keys: &TrustedKeys,
        verdicts: Option<&mut ProofVerdicts>,
        budget: &mut Budget,
    ) -> Result<ProvedClaim, ValidationError> {
        let outcome = match &mut self.records {
            DenialRecords::None => Err(BogusReason::NoDenial.into()),
            DenialRecords::Nsec(records) => records.check_claim(claim).map_err(ValidationError::from),
            DenialRecords::Nsec3(records) => records.check_claim(claim, budget),
            DenialRecords::Nsec5(records) => {
                records.check_claim(claim, &mut ProofVerifier { keys: keys.nsec5_keys()?, verdicts, budget })
            }
        };
        outcome.map_err(|error| match (error, &self.first_ignored) {
            (ValidationError::Bogus(reason), Some(first_ignored)) if reason.is_missing_record() => {
                ValidationError::Bogus(first_ignored.clone())
            }
            (error, _) => error,
        })
    }
}
