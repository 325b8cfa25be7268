//! Verifies the NSEC5 proofs of a response, at once or later in a batch.

use super::budget::Budget;
use super::error::ValidationError;
use super::keys::ProofKey;
use super::reason::BogusReason;
use crate::denial::nsec5::Hash;
use nonesuch_crypto::vrf::BadProof;
use nonesuch_proto::{NameRef, Rtype};

/// A proof to verify.
#[derive(Clone, Debug)]
pub(super) struct ProofJob {
    pub(super) key: ProofKey,
    /// The name in canonical form.
    pub(super) name: Vec<u8>,
    pub(super) proof: Vec<u8>,
}

impl ProofJob {
    fn is(&self, tag: u16, name: &[u8], proof: &[u8]) -> bool {
        self.key.tag == tag && self.name == name && self.proof == proof
    }
}

/// The hashes in the proofs of a response, and the proofs that are not verified yet. Both have at
/// most [`proofs_per_response`](super::ValidationLimits::proofs_per_response) elements.
#[derive(Clone, Debug, Default)]
pub(crate) struct ProofVerdicts {
    known: Vec<(ProofJob, Result<Hash, BadProof>)>,
    jobs: Vec<ProofJob>,
}

impl ProofVerdicts {
    /// The proofs without a verdict.
    pub(super) fn jobs(&self) -> &[ProofJob] {
        &self.jobs
    }

    /// Sets the verdicts on all proofs without one, in order. A proof without a result is bad.
    pub(super) fn set(&mut self, results: impl Iterator<Item = Result<Hash, BadProof>>) {
        let results = results.chain(std::iter::repeat_n(Err(BadProof), self.jobs.len()));
        self.known.extend(self.jobs.drain(..).zip(results));
    }
}

/// The hash in a proof with the tag of its key; or the reason why the proof is unusable.
pub(crate) type ProofResult = Result<(u16, Hash), BogusReason>;

/// What the verification of proofs needs.
#[derive(Debug)]
pub(crate) struct ProofVerifier<'a> {
    /// The keys of the zone.
    pub(crate) keys: &'a [ProofKey],
    /// `None`: proofs are verified at once.
    pub(crate) verdicts: Option<&'a mut ProofVerdicts>,
    pub(crate) budget: &'a mut Budget,
}

impl ProofVerifier<'_> {
    /// Verifies a proof; returns the key tag and the hash. The inner error is the reason why the
    /// proof is unusable; the outer error ends or interrupts the validation.
    pub(crate) fn verify(&mut self, name: NameRef<'_>, rdata: &[u8]) -> Result<ProofResult, ValidationError> {
        let Some((tag, proof)) = rdata.split_first_chunk() else {
            return Ok(Err(BogusReason::MalformedDenial(Rtype::NSEC5PROOF)));
        };
        let tag = u16::from_be_bytes(*tag);
        let Some(key) = self.keys.iter().find(|key| key.tag == tag) else {
            return Ok(Err(BogusReason::UnknownProofKey(tag)));
        };
        let mut canonical = Vec::with_capacity(name.len());
        name.push_canonical(&mut canonical);
        let verdict = match &mut self.verdicts {
            None => {
                self.budget.take_proof(&key.public)?;
                key.public.verify(&canonical, proof)
            }
            Some(verdicts) => find_or_record(verdicts, key, canonical, proof, self.budget)?,
        };
        Ok(verdict.map(|hash| (tag, hash)).map_err(|_| BogusReason::BadProof(name.to_name())))
    }
}

/// Returns the verdict on a proof.
///
/// # Errors
/// [`ValidationError::Pending`] if the proof is not verified yet. The proof is then recorded, unless it exceeds
/// the budget: in that case the verdicts on the recorded ones come first.
fn find_or_record(
    verdicts: &mut ProofVerdicts,
    key: &ProofKey,
    name: Vec<u8>,
    proof: &[u8],
    budget: &mut Budget,
) -> Result<Result<Hash, BadProof>, ValidationError> {
    if let Some((_, verdict)) = verdicts.known.iter().find(|(job, _)| job.is(key.tag, &name, proof)) {
        return Ok(*verdict);
    }
    if verdicts.jobs.iter().any(|job| job.is(key.tag, &name, proof)) {
        return Err(ValidationError::Pending);
    }
    match budget.take_proof(&key.public) {
        Ok(()) => verdicts.jobs.push(ProofJob { key: key.clone(), name, proof: proof.to_vec() }),
        Err(_) if !verdicts.jobs.is_empty() => {}
        Err(limit) => return Err(limit.into()),
    }
    Err(ValidationError::Pending)
}
