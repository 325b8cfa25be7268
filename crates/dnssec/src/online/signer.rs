//! The online signer of one thread of a server: a list of pending signatures and proofs, and a
//! cache.
//!
//! The server answers in two passes. The first pass builds responses. If the cache lacks signatures
//! or proofs for a response, the signer puts all of them on the list, and the response is deferred.
//! The server sends complete responses. Then the signer generates everything on the list of the
//! receive batch, with one `sign_batch` for each key and one `prove_batch`, which is faster than
//! single operations. The second pass builds the deferred responses again with the same code, so
//! only one code path builds responses. Signatures and proofs remain in the cache at least until
//! then.
//!
//! The cache key identifies the keys or the prover, and the input. The input of a proof is its
//! name. A generated record is identified by its octets. An RRset of the zone is identified by the
//! generation of the image, the number of its template, and the owner if it differs from that in
//! the zone.

use super::cache::{Cache, Hashes};
use super::counters::{Operation, SignerCounters};
use super::keys::OnlineKeys;
use super::period::SignaturePeriod;
use super::prover::Nsec5Prover;
use crate::denial::Mechanism;
use crate::keys::KeyPair;
use crate::rrsig::{Rrsig, push_signed_data};
use nonesuch_crypto::vrf::VRF_HASH_OCTETS;
use nonesuch_crypto::{SignError, sign_batch};
use nonesuch_proto::{Name, NameRef, Rtype, serial};
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Maximum number of signatures and proofs in one batch. Further ones are not generated, which
/// bounds the duration of a batch.
pub const MAX_PENDING: usize = 1024;

/// First octet of the cache key of signatures over an RRset.
const SIGNATURES_KIND: u8 = 1;
/// First octet of the cache key of a proof.
const PROOF_KIND: u8 = 2;

/// An RRset for signing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RrsetToSign {
    /// The owner for the signature, in upper or lower case, possibly a wildcard. The Labels field
    /// of the RRSIG follows from it.
    pub owner: Name,
    /// Type.
    pub rtype: Rtype,
    /// TTL, in seconds.
    pub ttl: u32,
    /// RDATA in canonical order (RFC 4034 §6.3). Empty if the RRset has too many records for a
    /// message; it is then not signed.
    pub rdatas: Vec<Vec<u8>>,
    /// The mechanism that generated the record; `None` for an RRset of the zone.
    pub generated_for: Option<Mechanism>,
}

/// A pending signature or proof.
#[derive(Debug)]
struct PendingOperation<T> {
    /// Identifier of the keys or the prover ([`OnlineKeys::id`], [`Nsec5Prover::id`]).
    signer_id: u64,
    /// Hash of `cache_key`.
    hash: u64,
    cache_key: Box<[u8]>,
    /// The RRset to sign, or the name to prove.
    input: T,
}

/// A position in the list of pending operations.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Checkpoint {
    rrsets: usize,
    names: usize,
}

impl Checkpoint {
    /// Number of pending operations up to this position.
    #[must_use]
    pub const fn pending_count(self) -> usize {
        self.rrsets + self.names
    }
}

/// The online signer of one thread.
#[derive(Debug)]
pub struct OnlineSigner {
    cache: Cache,
    /// The pending signatures.
    rrsets: Vec<PendingOperation<RrsetToSign>>,
    /// The pending proofs.
    names: Vec<PendingOperation<Name>>,
    /// The hashes of the cache keys of all pending operations.
    pending_hashes: Hashes,
    batch: u32,
    /// Whether responses are being built again. The second pass counts nothing.
    is_second_pass: bool,
    counters: Arc<SignerCounters>,
    /// Buffer for the cache key of the current lookup.
    cache_key: Vec<u8>,
}

impl OnlineSigner {
    /// Creates an online signer with a cache of at most `cache_bytes` bytes.
    #[must_use]
    pub fn new(cache_bytes: usize, counters: Arc<SignerCounters>) -> Self {
        Self {
            cache: Cache::new(cache_bytes),
            rrsets: Vec::new(),
            names: Vec::new(),
            pending_hashes: Hashes::default(),
            batch: 1,
            is_second_pass: false,
            counters,
            cache_key: Vec::new(),
        }
    }

    /// Whether this batch has capacity for one more operation.
    #[must_use]
    pub fn has_capacity(&self) -> bool {
        self.pending_count() < MAX_PENDING
    }

    /// Number of pending operations.
    #[must_use]
    pub fn pending_count(&self) -> usize {
        self.rrsets.len() + self.names.len()
    }

    /// Returns the end of the list, for [`rollback`](OnlineSigner::rollback).
    #[must_use]
    pub fn checkpoint(&self) -> Checkpoint {
        Checkpoint { rrsets: self.rrsets.len(), names: self.names.len() }
    }

    /// Removes the operations that were added to the list since `checkpoint`.
    pub fn rollback(&mut self, checkpoint: Checkpoint) {
        let rrsets =
            self.rrsets.drain(checkpoint.rrsets.min(self.rrsets.len())..).map(|operation| operation.hash);
        let names =
            self.names.drain(checkpoint.names.min(self.names.len())..).map(|operation| operation.hash);
        for hash in rrsets.chain(names) {
            self.pending_hashes.remove(&hash);
        }
    }

    /// Begins a batch with its first pass.
    pub fn begin_batch(&mut self) {
        self.is_second_pass = false;
        // Operations that the previous batch could not do must not be done with the keys of another
        // zone.
        self.rrsets.clear();
        self.names.clear();
        self.pending_hashes.clear();
        self.batch = self.batch.wrapping_add(1);
    }

    /// Whether the list has any operation.
    #[must_use]
    pub const fn has_pending(&self) -> bool {
        !(self.rrsets.is_empty() && self.names.is_empty())
    }

    /// Returns the RRSIG records of an RRset, one for each key that signs it: for each record, the
    /// length of its RDATA in two octets and the RDATA. `None` if the cache lacks valid ones; the
    /// RRset from `rrset` is then on the list if the batch has capacity.
    ///
    /// `identity` identifies the RRset in the cache: its octets, or octets that differ for each
    /// RRset. `generated_for` selects the counter and must equal [`RrsetToSign::generated_for`].
    pub fn signatures(
        &mut self,
        keys: &OnlineKeys,
        generated_for: Option<Mechanism>,
        identity: &[&[u8]],
        now: u32,
        rrset: impl FnOnce() -> RrsetToSign,
    ) -> Option<&[u8]> {
        self.cache_key.clear();
        self.cache_key.push(SIGNATURES_KIND);
        self.cache_key.extend_from_slice(&keys.id().to_be_bytes());
        identity.iter().for_each(|part| self.cache_key.extend_from_slice(part));
        let hash = self.cache.hash(&self.cache_key);
        let found = self.is_fresh(hash, now);
        if !self.is_second_pass {
            self.counters.count_signature(generated_for, keys.algorithm_row(), found);
        }
        if found {
            return self.cache.peek(hash);
        }
        if self.try_reserve(hash) {
            self.rrsets.push(PendingOperation {
                signer_id: keys.id(),
                hash,
                cache_key: self.cache_key.as_slice().into(),
                input: rrset(),
            });
        }
        None
    }

    /// Returns the VRF hash of `name`, which must be in lower case, with the key of `prover`: from
    /// a stored proof or from the cache. `None` if both lack it; the name is then on the list if
    /// the batch has capacity.
    pub fn hash_of(&mut self, prover: &Nsec5Prover, name: NameRef<'_>) -> Option<[u8; VRF_HASH_OCTETS]> {
        let stored = prover.stored(name);
        if stored.is_some() {
            if !self.is_second_pass {
                self.counters.proofs_stored.fetch_add(1, Relaxed);
            }
            return stored.map(|(hash, _)| *hash);
        }
        let hash = self.proof_key(prover, name);
        // A proof does not expire, so the cached time is irrelevant.
        let found = self
            .cache
            .find(hash, &self.cache_key, self.batch)
            .and_then(|(value, _)| value.first_chunk().copied());
        if !self.is_second_pass {
            self.counters.count_proof(prover.algorithm_row(), found.is_some());
        }
        if found.is_none() && self.try_reserve(hash) {
            self.names.push(PendingOperation {
                signer_id: prover.id(),
                hash,
                cache_key: self.cache_key.as_slice().into(),
                input: name.to_name(),
            });
        }
        found
    }

    /// The proof for `name`, which must be in lower case; `None` if [`OnlineSigner::hash_of`] does
    /// not know its hash.
    pub fn proof_of<'w>(&'w mut self, prover: &'w Nsec5Prover, name: NameRef<'_>) -> Option<&'w [u8]> {
        if let Some((_, proof)) = prover.stored(name) {
            return Some(proof);
        }
        let hash = self.proof_key(prover, name);
        let is_cached = self.cache.find(hash, &self.cache_key, self.batch).is_some();
        let value = if is_cached { self.cache.peek(hash)? } else { return None };
        value.get(VRF_HASH_OCTETS..)
    }

    fn proof_key(&mut self, prover: &Nsec5Prover, name: NameRef<'_>) -> u64 {
        self.cache_key.clear();
        self.cache_key.push(PROOF_KIND);
        self.cache_key.extend_from_slice(&prover.id().to_be_bytes());
        self.cache_key.extend_from_slice(name.wire());
        self.cache.hash(&self.cache_key)
    }

    /// Whether the cache has an entry for the current key that need not be replaced. If the clock
    /// was set back, an entry may have an inception in the future; its signatures are not valid
    /// yet.
    fn is_fresh(&mut self, hash: u64, now: u32) -> bool {
        let Some((value, stale_from)) = self.cache.find(hash, &self.cache_key, self.batch) else {
            return false;
        };
        let inception = value.get(2..).and_then(Rrsig::parse).map_or(now, |rrsig| rrsig.inception);
        serial::is_before(now, stale_from) && !serial::is_before(now, inception)
    }

    /// Reserves a place on the list for the operation whose cache key has the hash `hash`. Returns
    /// `false` if the operation is on the list already, or the batch has no capacity.
    fn try_reserve(&mut self, hash: u64) -> bool {
        if self.pending_hashes.contains(&hash) {
            return false;
        }
        if !self.has_capacity() {
            self.counters.rejected.fetch_add(1, Relaxed);
            return false;
        }
        self.pending_hashes.insert(hash)
    }

    /// Generates the pending signatures of `keys` and the pending proofs of `prover`, and begins
    /// the second pass. The caller calls it once for each zone of the batch. If the cryptographic
    /// library fails, the failure is counted, and the second pass does not find the result.
    pub fn generate_pending(&mut self, keys: Option<&OnlineKeys>, prover: Option<&Nsec5Prover>, now: u32) {
        self.is_second_pass = true;
        if !self.has_pending() {
            return;
        }
        self.counters.batches.fetch_add(1, Relaxed);
        if let Some(keys) = keys {
            let operations = take_operations(keys.id(), &mut self.rrsets, &mut self.pending_hashes);
            self.sign(keys, operations, now);
        }
        if let Some(prover) = prover {
            let operations = take_operations(prover.id(), &mut self.names, &mut self.pending_hashes);
            self.prove(prover, operations);
        }
        self.counters.cache_bytes.store(self.cache.bytes() as u64, Relaxed);
    }

    fn sign(&mut self, keys: &OnlineKeys, operations: Vec<PendingOperation<RrsetToSign>>, now: u32) {
        let mut values: Vec<Option<Vec<u8>>> = operations.iter().map(|_| Some(Vec::new())).collect();
        let periods: Vec<SignaturePeriod> = operations
            .iter()
            .map(|operation| SignaturePeriod::at(now, operation.input.ttl, keys.validity()))
            .collect();
        for key_index in 0..keys.len() {
            let pair = keys.pair(key_index);
            // An RRset without records has too many records for a message (`RrsetToSign::rdatas`)
            // and is not signed.
            let is_signed_by_key = |operation: &PendingOperation<RrsetToSign>| {
                let signers = keys.signers(operation.input.owner.view(), operation.input.rtype);
                !operation.input.rdatas.is_empty() && signers.contains(&key_index)
            };
            let indexes: Vec<usize> =
                (0..operations.len()).filter(|index| is_signed_by_key(&operations[*index])).collect();
            if indexes.is_empty() {
                continue;
            }
            let job = |index: &usize| {
                let SignaturePeriod { inception, expiration, .. } = periods[*index];
                SigningJob { rrset: &operations[*index].input, inception, expiration }
            };
            let jobs: Vec<SigningJob<'_>> = indexes.iter().map(job).collect();
            let Ok(rdatas) = sign_rrsets(pair, keys.zone().view(), &jobs) else {
                self.counters.failed.fetch_add(indexes.len() as u64, Relaxed);
                indexes.iter().for_each(|index| values[*index] = None);
                continue;
            };
            for ((index, rdata), job) in indexes.iter().zip(rdatas).zip(&jobs) {
                let algorithm = pair.algorithm();
                self.counters.count(Operation::signing(job.rrset.generated_for, algorithm), 1);
                if let Some(value) = &mut values[*index] {
                    value.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
                    value.extend_from_slice(&rdata);
                }
            }
        }
        for ((operation, value), period) in operations.into_iter().zip(values).zip(periods) {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                self.cache.insert(
                    operation.hash,
                    operation.cache_key,
                    value.into(),
                    period.stale_from,
                    self.batch,
                );
            }
        }
    }

    fn prove(&mut self, prover: &Nsec5Prover, operations: Vec<PendingOperation<Name>>) {
        let names: Vec<&[u8]> = operations.iter().map(|operation| operation.input.wire()).collect();
        if names.is_empty() {
            return;
        }
        let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
        if prover.key().prove_batch(&names, &mut proofs, &mut hashes).is_err() {
            self.counters.failed.fetch_add(operations.len() as u64, Relaxed);
            return;
        }
        self.counters.count(Operation::Prove(prover.key().algorithm()), operations.len() as u64);
        let proof_octets = proofs.len() / operations.len();
        for ((operation, hash), proof) in
            operations.into_iter().zip(hashes).zip(proofs.chunks_exact(proof_octets))
        {
            let value: Box<[u8]> = [&hash, proof].concat().into();
            self.cache.insert(operation.hash, operation.cache_key, value, 0, self.batch);
        }
    }
}

/// Removes the operations of one signer or prover from the list and returns them; usually these are
/// all.
fn take_operations<T>(
    signer_id: u64,
    operations: &mut Vec<PendingOperation<T>>,
    pending_hashes: &mut Hashes,
) -> Vec<PendingOperation<T>> {
    let (taken, remaining) =
        std::mem::take(operations).into_iter().partition(|operation| operation.signer_id == signer_id);
    *operations = remaining;
    let taken: Vec<PendingOperation<T>> = taken;
    taken.iter().for_each(|operation| _ = pending_hashes.remove(&operation.hash));
    taken
}

/// Input of one signature.
pub(super) struct SigningJob<'r> {
    pub(super) rrset: &'r RrsetToSign,
    pub(super) inception: u32,
    pub(super) expiration: u32,
}

/// The RDATA of one RRSIG record by `pair` for each RRset of `zone`.
///
/// # Errors
/// If the cryptographic library fails.
pub(super) fn sign_rrsets(
    pair: &KeyPair,
    zone: NameRef<'_>,
    jobs: &[SigningJob<'_>],
) -> Result<Vec<Vec<u8>>, SignError> {
    let (algorithm, tag, octets) = (pair.algorithm(), pair.tag(), pair.private().signature_octets());
    let (mut messages, mut ends) = (Vec::new(), Vec::with_capacity(jobs.len()));
    let mut rdatas = Vec::with_capacity(jobs.len());
    for &SigningJob { rrset, inception, expiration } in jobs {
        let fields = Rrsig {
            covered: rrset.rtype,
            algorithm,
            labels: rrset.owner.view().rrsig_labels(),
            original_ttl: rrset.ttl,
            expiration,
            inception,
            tag,
            signer: zone,
            signature: &[],
        };
        let records = rrset.rdatas.iter().map(Vec::as_slice);
        push_signed_data(&fields, rrset.owner.view(), records, &mut messages);
        ends.push(messages.len());
        let mut rdata = Vec::with_capacity(fields.fields_len() + octets);
        fields.push_fields(&mut rdata);
        rdatas.push(rdata);
    }
    let starts = std::iter::once(0).chain(ends.iter().copied());
    let messages: Vec<&[u8]> = starts.zip(&ends).map(|(start, end)| &messages[start..*end]).collect();
    let mut signatures = Vec::new();
    sign_batch(pair.private(), &messages, &mut signatures)?;
    for (rdata, signature) in rdatas.iter_mut().zip(signatures.chunks_exact(octets)) {
        rdata.extend_from_slice(signature);
    }
    Ok(rdatas)
}
