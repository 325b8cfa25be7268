//! The online signer of one thread of a server: a list of pending signatures and proofs, and a
//! cache.
//!
//! The server answers in two passes. The first pass builds responses. If the cache lacks signatures
//! or proofs for a response, the signer puts all of them on the list, and the response is deferred.
//! The server sends complete responses. Then the signer generates everything on the list of the
//! receive batch, with one `sign_each` and one `prove_batch` for all its zones, which is faster than
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
use nonesuch_crypto::vrf::{VRF_HASH_OCTETS, VrfProof, VrfProveItem, prove_batch};
use nonesuch_crypto::{SignError, SignItem, sign_each};
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

    /// Generates the pending signatures and proofs of the zones of the batch, and begins the second
    /// pass. If the cryptographic library fails, the failure is counted, and the second pass does not
    /// find the result. Operations of other zones are removed from the list.
    pub fn generate_pending(&mut self, zones: &[ZoneSigner<'_>], now: u32) {
        self.is_second_pass = true;
        if !self.has_pending() {
            return;
        }
        self.counters.batches.fetch_add(1, Relaxed);
        self.pending_hashes.clear();
        self.sign(zones, now);
        self.prove(zones);
        self.counters.cache_bytes.store(self.cache.bytes() as u64, Relaxed);
    }

    fn sign(&mut self, zones: &[ZoneSigner<'_>], now: u32) {
        let keys_of = |id| zones.iter().filter_map(|zone| zone.keys).find(|keys| keys.id() == id);
        let operations: Vec<(PendingOperation<RrsetToSign>, &OnlineKeys, SignaturePeriod)> =
            std::mem::take(&mut self.rrsets)
                .into_iter()
                .filter_map(|operation| {
                    let keys = keys_of(operation.signer_id)?;
                    let period = SignaturePeriod::at(now, operation.input.ttl, keys.validity());
                    Some((operation, keys, period))
                })
                .collect();
        let jobs: Vec<(usize, SigningJob<'_>)> = operations
            .iter()
            .enumerate()
            // An RRset without records has too many records for a message (`RrsetToSign::rdatas`)
            // and is not signed.
            .filter(|(_, (operation, ..))| !operation.input.rdatas.is_empty())
            .flat_map(|(index, (operation, keys, period))| {
                let (rrset, zone) = (&operation.input, keys.zone().view());
                let signers = keys.signers(rrset.owner.view(), rrset.rtype).iter();
                let SignaturePeriod { inception, expiration, .. } = *period;
                signers.map(move |key| {
                    (index, SigningJob { pair: keys.pair(*key), zone, rrset, inception, expiration })
                })
            })
            .collect();
        let mut values: Vec<Option<Vec<u8>>> = operations.iter().map(|_| Some(Vec::new())).collect();
        for ((index, job), rdata) in jobs.iter().zip(sign_rrsets(jobs.iter().map(|(_, job)| job))) {
            let Ok(rdata) = rdata else {
                self.counters.failed.fetch_add(1, Relaxed);
                values[*index] = None;
                continue;
            };
            self.counters.count(Operation::signing(job.rrset.generated_for, job.pair.algorithm()), 1);
            if let Some(value) = &mut values[*index] {
                value.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
                value.extend_from_slice(&rdata);
            }
        }
        for ((operation, _, period), value) in operations.into_iter().zip(values) {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                let PendingOperation { hash, cache_key, .. } = operation;
                self.cache.insert(hash, cache_key, value.into(), period.stale_from, self.batch);
            }
        }
    }

    fn prove(&mut self, zones: &[ZoneSigner<'_>]) {
        let prover_of = |id| zones.iter().filter_map(|zone| zone.prover).find(|prover| prover.id() == id);
        let operations: Vec<(PendingOperation<Name>, &Nsec5Prover)> = std::mem::take(&mut self.names)
            .into_iter()
            .filter_map(|operation| prover_of(operation.signer_id).map(|prover| (operation, prover)))
            .collect();
        let items: Vec<VrfProveItem<'_>> = operations
            .iter()
            .map(|(operation, prover)| VrfProveItem { key: prover.key(), input: operation.input.wire() })
            .collect();
        let proofs = prove_batch(&items);
        for ((operation, prover), proof) in operations.into_iter().zip(proofs) {
            let Ok(VrfProof { octets, hash }) = proof else {
                self.counters.failed.fetch_add(1, Relaxed);
                continue;
            };
            self.counters.count(Operation::Prove(prover.key().algorithm()), 1);
            let value: Box<[u8]> = [hash.as_slice(), &octets].concat().into();
            self.cache.insert(operation.hash, operation.cache_key, value, 0, self.batch);
        }
    }
}

/// What generates the signatures and proofs of a zone.
#[derive(Clone, Copy, Debug)]
pub struct ZoneSigner<'z> {
    /// The keys of a zone that is signed online.
    pub keys: Option<&'z OnlineKeys>,
    /// The prover of a zone with NSEC5.
    pub prover: Option<&'z Nsec5Prover>,
}

/// Input of one signature.
pub(super) struct SigningJob<'r> {
    pub(super) pair: &'r KeyPair,
    pub(super) zone: NameRef<'r>,
    pub(super) rrset: &'r RrsetToSign,
    pub(super) inception: u32,
    pub(super) expiration: u32,
}

/// Returns the RDATA of one RRSIG record for each job, or an error if the cryptographic library
/// fails.
pub(super) fn sign_rrsets<'r>(
    jobs: impl IntoIterator<Item = &'r SigningJob<'r>>,
) -> Vec<Result<Vec<u8>, SignError>> {
    let unsigned = jobs.into_iter().map(|SigningJob { pair, zone, rrset, inception, expiration }| {
        let fields = Rrsig {
            covered: rrset.rtype,
            algorithm: pair.algorithm(),
            labels: rrset.owner.view().rrsig_labels(),
            original_ttl: rrset.ttl,
            expiration: *expiration,
            inception: *inception,
            tag: pair.tag(),
            signer: *zone,
            signature: &[],
        };
        let mut message = Vec::new();
        push_signed_data(&fields, rrset.owner.view(), rrset.rdatas.iter().map(Vec::as_slice), &mut message);
        let mut rdata = Vec::with_capacity(fields.fields_len() + pair.private().signature_octets());
        fields.push_fields(&mut rdata);
        (pair.private(), message, rdata)
    });
    let unsigned: Vec<_> = unsigned.collect();
    let items: Vec<SignItem<'_>> =
        unsigned.iter().map(|(key, message, _)| SignItem { key, message }).collect();
    let signatures = sign_each(&items);
    let signed = unsigned.into_iter().zip(signatures).map(|((.., mut rdata), signature)| {
        rdata.extend_from_slice(&signature?);
        Ok(rdata)
    });
    signed.collect()
}
