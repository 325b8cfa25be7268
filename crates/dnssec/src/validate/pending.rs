//! Validation whose signatures and NSEC5 proofs are verified in batches: those of many responses
//! together.

use super::budget::{Budget, Failures, Work};
use super::keys::{KeyDigest, TrustedKeys, ZoneKey};
use super::outcome::{Question, Validation};
use super::proofs::{ProofJob, ProofVerdicts};
use super::signature::Verification;
use super::walk::Progress;
use super::{check_preconditions, conclude};
use nonesuch_crypto::vrf::{self, BadProof, VrfAlgorithm, VrfVerifyItem, hash_of_valid_proof};
use nonesuch_crypto::{Algorithm, PublicKey, VerifyItem, verify_batch};
use nonesuch_proto::message::Message;
use nonesuch_proto::{Name, Rtype};
use siphasher::sip128::{Hasher128, SipHasher13};
use std::hash::Hasher;
use std::sync::Arc;

/// Identifies a verification in a response: the index of the RRset, of the signature of the RRset,
/// and of the key among those with the tag and algorithm of the signature.
pub(super) type JobId = (usize, usize, usize);

/// A signature to verify.
#[derive(Clone, Debug)]
pub(super) struct Job {
    id: JobId,
    key: PublicKey,
    /// The digest of the DNSKEY record.
    key_digest: KeyDigest,
    message: Vec<u8>,
    signature: Vec<u8>,
    /// The work for the signature so far, if this verification fails too.
    failures: Failures,
    /// Whether no other key has the tag of the signature.
    is_last: bool,
}

impl Job {
    pub(super) fn new(
        id: JobId,
        key: &ZoneKey,
        message: Vec<u8>,
        signature: &[u8],
        (failures, is_last): (Failures, bool),
    ) -> Self {
        let (key, key_digest) = (key.public.clone(), key.digest);
        Self { id, key, key_digest, message, signature: signature.to_vec(), failures, is_last }
    }
}

/// The verdicts on the signatures and proofs of a response, and the verifications without a verdict.
#[derive(Clone, Debug, Default)]
pub(super) struct Verdicts {
    known: Vec<(JobId, bool)>,
    jobs: Vec<Job>,
    pub(super) proofs: ProofVerdicts,
}

impl Verdicts {
    /// Returns whether the signature is valid; `None` without a verdict.
    pub(super) fn get(&self, id: JobId) -> Option<bool> {
        self.known.iter().find(|(known, _)| *known == id).map(|(_, is_valid)| *is_valid)
    }

    /// Whether the verification has been recorded.
    pub(super) fn is_recorded(&self, id: JobId) -> bool {
        self.jobs.iter().any(|job| job.id == id)
    }

    /// Number of signatures without a verdict.
    pub(super) const fn recorded(&self) -> usize {
        self.jobs.len()
    }

    /// The cost of these signatures if none of them verifies.
    pub(super) fn recorded_cost(&self) -> u32 {
        self.jobs.iter().map(|job| job.failures.cost).sum()
    }

    /// Records a verification. Its work has been deducted from the budget.
    pub(super) fn record(&mut self, job: Job) {
        self.jobs.push(job);
    }
}

/// A validation that is interrupted for the verification of signatures and NSEC5 proofs.
/// [`verify_jobs`] verifies those of many of them together. The result is that of
/// [`validate`](super::validate). The work is the same too if all of them are valid and the response has
/// only the proofs that it needs. If not, some may be verified that `validate` does not reach; the
/// limits hold nevertheless.
#[derive(Clone, Debug)]
pub struct PendingValidation {
    name: Name,
    rtype: Rtype,
    response: Arc<Message>,
    keys: Arc<TrustedKeys>,
    now: u32,
    /// `None` before the first step.
    progress: Option<Progress>,
    verdicts: Verdicts,
    /// Signatures that did not verify, and that are not counted in the budget yet.
    uncounted: Failures,
    work: Work,
}

impl PendingValidation {
    /// Prepares the validation of a response; the arguments are those of
    /// [`validate`](super::validate).
    #[must_use]
    pub fn new(question: Question<'_>, response: Arc<Message>, keys: Arc<TrustedKeys>, now: u32) -> Self {
        Self {
            name: question.name.to_name(),
            rtype: question.rtype,
            response,
            keys,
            now,
            progress: None,
            verdicts: Verdicts::default(),
            uncounted: Failures::default(),
            work: Work::default(),
        }
    }

    /// Continues the validation. Returns `None` if signatures or proofs must be verified first
    /// ([`verify_jobs`]). The work is deducted from `budget`, once for each verification: when it is
    /// recorded.
    pub fn step(&mut self, budget: &mut Budget) -> Option<Validation> {
        let question = Question { name: self.name.view(), rtype: self.rtype };
        let before = budget.spent();
        budget.count_failures(std::mem::take(&mut self.uncounted));
        budget.charge_records(self.record_count());
        budget.continue_response(self.work.proofs);
        let progress = self.progress.take().unwrap_or_else(|| Progress::new(question));
        let preconditions = check_preconditions(question, &self.response, &self.keys);
        let verification = Verification::Deferred(&mut self.verdicts);
        let context = (question, &*self.response, &*self.keys, self.now);
        let ended = conclude(context, preconditions, progress, verification, budget);
        self.work = self.work.plus(budget.spent().since(before));
        match ended {
            Ok(validation) => Some(Validation { work: self.work, ..validation }),
            Err(progress) => {
                self.progress = Some(progress);
                None
            }
        }
    }

    /// The keys that validate the response.
    #[must_use]
    pub fn keys(&self) -> &TrustedKeys {
        &self.keys
    }

    /// Whether a signature of the response verifies with none of the keys of its key tag.
    #[must_use]
    pub const fn has_failures(&self) -> bool {
        self.work.signature_failures > 0
    }

    /// Number of records of the response.
    #[must_use]
    pub fn record_count(&self) -> usize {
        self.response.records.len()
    }

    /// Approximate time to verify the signatures and proofs that the next step needs, in ns, except those in
    /// `valid`.
    #[must_use]
    pub fn job_nanoseconds(&self, valid: &ValidSignatures) -> u64 {
        let signatures = self.verdicts.jobs.iter().filter(|job| !valid.contains(valid.hash(job)));
        let proofs = self.verdicts.proofs.jobs().iter().filter(|job| !valid.contains(valid.hash_proof(job)));
        let signatures = signatures.map(|job| job.key.verification_nanoseconds());
        let proofs = proofs.map(|job| job.key.public.verification_nanoseconds());
        signatures.chain(proofs).map(u64::from).sum()
    }

    /// Number of signatures and proofs to verify before the next step.
    #[cfg(test)]
    pub(crate) fn job_count(&self) -> usize {
        self.verdicts.recorded() + self.verdicts.proofs.jobs().len()
    }
}

/// What [`verify_jobs`] verifies.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum JobAlgorithm {
    /// A signature.
    Signature(Algorithm),
    /// An NSEC5 proof.
    Proof(VrfAlgorithm),
}

/// Added to the secret key for the hashes of proofs, so that no proof has the hash of a signature.
const PROOF_DOMAIN: u8 = 0x55;

/// Signatures and NSEC5 proofs that were valid: those of SOA and denial records, and the proofs of
/// closest enclosers, are in many responses. The table has a fixed size; a new one replaces the old one
/// with the same position.
#[derive(Clone)]
pub struct ValidSignatures {
    /// Hashes of the key, the signed data and the signature; or of the key, the name and the proof. The
    /// validity of a proof depends on nothing else: not on the zone or the time.
    hashes: Box<[u128]>,
    hasher: SipHasher13,
    proof_hasher: SipHasher13,
}

impl ValidSignatures {
    /// Returns an empty table with the next power of two of places, 16 octets each. `key`: secret random
    /// octets. The hash has 128 bits and a secret key, so no two signatures have the same.
    #[must_use]
    pub fn new(places: usize, key: &[u8; 16]) -> Self {
        let hashes = vec![0; places.next_power_of_two()].into();
        let proof_key = key.map(|octet| octet ^ PROOF_DOMAIN);
        let [hasher, proof_hasher] = [key, &proof_key].map(SipHasher13::new_with_key);
        Self { hashes, hasher, proof_hasher }
    }

    fn hash(&self, job: &Job) -> u128 {
        let mut hasher = self.hasher;
        hasher.write(&job.key_digest);
        hasher.write(&job.signature);
        hasher.write(&job.message);
        hasher.finish128().as_u128()
    }

    fn hash_proof(&self, job: &ProofJob) -> u128 {
        let mut hasher = self.proof_hasher;
        hasher.write(&job.key.digest);
        // All valid proofs of a key have the same length, so this separates proof and name.
        hasher.write(&job.proof);
        hasher.write(&job.name);
        hasher.finish128().as_u128()
    }

    fn contains(&self, hash: u128) -> bool {
        self.hashes[self.index(hash)] == hash
    }

    fn insert(&mut self, hash: u128) {
        let index = self.index(hash);
        self.hashes[index] = hash;
    }

    const fn index(&self, hash: u128) -> usize {
        hash as usize & (self.hashes.len() - 1)
    }
}

impl std::fmt::Debug for ValidSignatures {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("ValidSignatures").field("places", &self.hashes.len()).finish_non_exhaustive()
    }
}

/// Verifies the recorded signatures of all these validations in one batch ([`verify_batch`]), and the
/// recorded proofs in another one ([`vrf::verify_batch`]), except jobs with a hash in `valid`. Calls
/// `count` for each verified signature and proof, with the approximate time of a verification in ns.
pub fn verify_jobs<'p>(
    validations: impl IntoIterator<Item = &'p mut PendingValidation>,
    valid: &mut ValidSignatures,
    mut count: impl FnMut(JobAlgorithm, u32),
) {
    let mut validations: Vec<&mut PendingValidation> = validations.into_iter().collect();
    verify_signatures(&mut validations, valid, &mut count);
    verify_proofs(&mut validations, valid, &mut count);
}

fn verify_signatures(
    validations: &mut [&mut PendingValidation],
    valid: &mut ValidSignatures,
    count: &mut impl FnMut(JobAlgorithm, u32),
) {
    let jobs = validations.iter().flat_map(|validation| &validation.verdicts.jobs);
    let jobs: Vec<(u128, &Job)> = jobs.map(|job| (valid.hash(job), job)).collect();
    let is_known: Vec<bool> = jobs.iter().map(|(hash, _)| valid.contains(*hash)).collect();
    let unknown = jobs.iter().zip(&is_known).filter(|(_, is_known)| !**is_known);
    let items: Vec<VerifyItem<'_>> = unknown
        .map(|((_, Job { key, message, signature, .. }), _)| VerifyItem { key, message, signature })
        .collect();
    for VerifyItem { key, .. } in &items {
        count(JobAlgorithm::Signature(key.algorithm()), key.verification_nanoseconds());
    }
    let mut results = Vec::new();
    verify_batch(&items, &mut results);
    let hashes: Vec<u128> = jobs.iter().map(|(hash, _)| *hash).collect();
    let (mut results, mut known) = (results.into_iter(), hashes.into_iter().zip(is_known));
    for validation in validations {
        for job in std::mem::take(&mut validation.verdicts.jobs) {
            let Some((hash, is_known)) = known.next() else { return };
            let is_valid = is_known || results.next().is_some_and(|result| result.is_ok());
            if is_valid {
                valid.insert(hash);
            }
            if !is_valid && job.is_last {
                validation.uncounted.add(job.failures);
            }
            validation.verdicts.known.push((job.id, is_valid));
        }
    }
}

fn verify_proofs(
    validations: &mut [&mut PendingValidation],
    valid: &mut ValidSignatures,
    count: &mut impl FnMut(JobAlgorithm, u32),
) {
    let jobs = validations.iter().flat_map(|validation| validation.verdicts.proofs.jobs());
    let jobs: Vec<(u128, &ProofJob)> = jobs.map(|job| (valid.hash_proof(job), job)).collect();
    let known: Vec<bool> = jobs.iter().map(|(hash, _)| valid.contains(*hash)).collect();
    let unknown = jobs.iter().zip(&known).filter(|(_, is_known)| !**is_known);
    let items: Vec<VrfVerifyItem<'_>> = unknown
        .map(|((_, ProofJob { key, name, proof }), _)| VrfVerifyItem { key: &key.public, input: name, proof })
        .collect();
    for VrfVerifyItem { key, .. } in &items {
        count(JobAlgorithm::Proof(key.algorithm()), key.verification_nanoseconds());
    }
    let mut results = Vec::new();
    vrf::verify_batch(&items, &mut results);
    let mut results = results.into_iter();
    let mut verdicts = Vec::with_capacity(jobs.len());
    for ((hash, job), is_known) in jobs.into_iter().zip(known) {
        let verdict = if is_known {
            hash_of_valid_proof(job.key.public.algorithm(), &job.proof)
        } else {
            results.next().unwrap_or(Err(BadProof))
        };
        if verdict.is_ok() {
            valid.insert(hash);
        }
        verdicts.push(verdict);
    }
    let mut verdicts = verdicts.into_iter();
    for validation in validations {
        let proofs = &mut validation.verdicts.proofs;
        proofs.set(verdicts.by_ref().take(proofs.jobs().len()));
    }
}
