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
//! The cache key of a signature over an RRset of the zone is the number of its template and the
//! generation of the image. The cache key of a signature over a generated record is its octets, and
//! that of a proof is the name.

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

/// First octet of a cache key: the kind of the entry.
const SIGNATURES: u8 = 1;
const PROOF: u8 = 2;

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
    /// RDATA in canonical order (RFC 4034 §6.3).
    pub rdatas: Vec<Vec<u8>>,
    /// The mechanism that generated the record; `None` for an RRset of the zone.
    pub generated_for: Option<Mechanism>,
}

/// A pending signature or proof: what generates it, its cache key, and its input.
#[derive(Debug)]
struct PendingOperation<T> {
    /// Identifier of the keys or the prover.
    maker: u64,
    hash: u64,
    key: Box<[u8]>,
    what: T,
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
    rrsets: Vec<PendingOperation<RrsetToSign>>,
    names: Vec<PendingOperation<Name>>,
    listed: Hashes,
    batch: u32,
    /// Whether responses are being built again. The second pass counts nothing.
    is_second_pass: bool,
    counters: Arc<SignerCounters>,
    key: Vec<u8>,
}

impl OnlineSigner {
    /// An online signer with a cache of at most `octets` bytes.
    #[must_use]
    pub fn new(octets: usize, counters: Arc<SignerCounters>) -> Self {
        Self {
            cache: Cache::new(octets),
            rrsets: Vec::new(),
            names: Vec::new(),
            listed: Hashes::default(),
            batch: 1,
            is_second_pass: false,
            counters,
            key: Vec::new(),
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

    /// The end of the list, for [`rollback`](OnlineSigner::rollback).
    #[must_use]
    pub fn mark(&self) -> Checkpoint {
        Checkpoint { rrsets: self.rrsets.len(), names: self.names.len() }
    }

    /// Removes the operations that were added to the list since `mark`.
    pub fn rollback(&mut self, mark: Checkpoint) {
        let rrsets = self.rrsets.drain(mark.rrsets.min(self.rrsets.len())..).map(|want| want.hash);
        let names = self.names.drain(mark.names.min(self.names.len())..).map(|want| want.hash);
        for hash in rrsets.chain(names) {
            self.listed.remove(&hash);
        }
    }

    /// Begins a batch with its first pass.
    pub fn begin(&mut self) {
        self.is_second_pass = false;
        // Operations that the previous batch could not do must not be done with the keys of another
        // zone.
        self.rrsets.clear();
        self.names.clear();
        self.listed.clear();
        self.batch = self.batch.wrapping_add(1);
    }

    /// Whether the list has any operation.
    #[must_use]
    pub const fn has_pending(&self) -> bool {
        !(self.rrsets.is_empty() && self.names.is_empty())
    }

    /// The RRSIG records of an RRset, one for each key that signs it: for each record, the length
    /// of its RDATA in two octets and the RDATA. `None` if the cache lacks them; the RRset from
    /// `rrset` is then on the list, if the batch has capacity. `identity` identifies the RRset: its
    /// octets or a substitute. `generated_for` selects the counter and must equal
    /// [`RrsetToSign::generated_for`].
    pub fn signatures(
        &mut self,
        keys: &OnlineKeys,
        generated_for: Option<Mechanism>,
        identity: &[&[u8]],
        now: u32,
        rrset: impl FnOnce() -> RrsetToSign,
    ) -> Option<&[u8]> {
        self.key.clear();
        self.key.push(SIGNATURES);
        self.key.extend_from_slice(&keys.id().to_be_bytes());
        identity.iter().for_each(|part| self.key.extend_from_slice(part));
        let hash = self.cache.hash(&self.key);
        let found = self.is_fresh(hash, now);
        if !self.is_second_pass {
            self.counters.count_signature(generated_for, keys.algorithm_row(), found);
        }
        if found {
            return self.cache.peek(hash);
        }
        if self.may_list(hash) {
            self.rrsets.push(PendingOperation {
                maker: keys.id(),
                hash,
                key: self.key.as_slice().into(),
                what: rrset(),
            });
        }
        None
    }

    /// The hash of `prover` for `name`, which must be in lower case: from a stored proof or from
    /// the cache. `None` if both lack it; the name is then on the list, if the batch has capacity.
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
        let found =
            self.cache.find(hash, &self.key, self.batch).and_then(|(value, _)| value.first_chunk().copied());
        if !self.is_second_pass {
            self.counters.count_proof(prover.algorithm_row(), found.is_some());
        }
        if found.is_none() && self.may_list(hash) {
            self.names.push(PendingOperation {
                maker: prover.id(),
                hash,
                key: self.key.as_slice().into(),
                what: name.to_name(),
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
        let is_there = self.cache.find(hash, &self.key, self.batch).is_some();
        let value = if is_there { self.cache.peek(hash)? } else { return None };
        value.get(VRF_HASH_OCTETS..)
    }

    fn proof_key(&mut self, prover: &Nsec5Prover, name: NameRef<'_>) -> u64 {
        self.key.clear();
        self.key.push(PROOF);
        self.key.extend_from_slice(&prover.id().to_be_bytes());
        self.key.extend_from_slice(name.wire());
        self.cache.hash(&self.key)
    }

    /// Whether the cache has an entry for the current key that need not be replaced. If the clock
    /// was set back, an entry may have an inception in the future; its signatures are not valid
    /// yet.
    fn is_fresh(&mut self, hash: u64, now: u32) -> bool {
        let Some((value, stale_from)) = self.cache.find(hash, &self.key, self.batch) else { return false };
        let inception = value.get(2..).and_then(Rrsig::parse).map_or(now, |rrsig| rrsig.inception);
        serial::is_before(now, stale_from) && !serial::is_before(now, inception)
    }

    /// Whether to add the operation with `hash` to the list: it is not on the list yet, and the
    /// batch has capacity.
    fn may_list(&mut self, hash: u64) -> bool {
        if self.listed.contains(&hash) {
            return false;
        }
        if !self.has_capacity() {
            self.counters.refused.fetch_add(1, Relaxed);
            return false;
        }
        self.listed.insert(hash)
    }

    /// Generates all pending operations for `keys` and for `prover`, and begins the second pass. If
    /// the cryptographic library fails, the failure is counted and the result is missing.
    pub fn make_pending(&mut self, keys: Option<&OnlineKeys>, prover: Option<&Nsec5Prover>, now: u32) {
        self.is_second_pass = true;
        if !self.has_pending() {
            return;
        }
        self.counters.batches.fetch_add(1, Relaxed);
        if let Some(keys) = keys {
            let wants = take_of(keys.id(), &mut self.rrsets, &mut self.listed);
            self.sign(keys, wants, now);
        }
        if let Some(prover) = prover {
            let wants = take_of(prover.id(), &mut self.names, &mut self.listed);
            self.prove(prover, wants);
        }
        self.counters.octets.store(self.cache.octets() as u64, Relaxed);
    }

    fn sign(&mut self, keys: &OnlineKeys, wants: Vec<PendingOperation<RrsetToSign>>, now: u32) {
        let mut values: Vec<Option<Vec<u8>>> = wants.iter().map(|_| Some(Vec::new())).collect();
        let periods: Vec<SignaturePeriod> =
            wants.iter().map(|want| SignaturePeriod::at(now, want.what.ttl, keys.validity())).collect();
        for index in 0..keys.len() {
            let pair = keys.pair(index);
            // If an RRset has too many records for a message, the list has it without records; it
            // is not signed.
            let of_key = |want: &PendingOperation<RrsetToSign>| {
                let signers = keys.signers(want.what.owner.view(), want.what.rtype);
                !want.what.rdatas.is_empty() && signers.contains(&index)
            };
            let places: Vec<usize> = (0..wants.len()).filter(|place| of_key(&wants[*place])).collect();
            if places.is_empty() {
                continue;
            }
            let job = |place: &usize| {
                let SignaturePeriod { inception, expiration, .. } = periods[*place];
                SigningJob { rrset: &wants[*place].what, inception, expiration }
            };
            let jobs: Vec<SigningJob<'_>> = places.iter().map(job).collect();
            let Ok(rdatas) = sign_rrsets(pair, keys.zone().view(), &jobs) else {
                self.counters.failed.fetch_add(places.len() as u64, Relaxed);
                places.iter().for_each(|place| values[*place] = None);
                continue;
            };
            for ((place, rdata), job) in places.iter().zip(rdatas).zip(&jobs) {
                let algorithm = pair.algorithm();
                self.counters.count(Operation::signing(job.rrset.generated_for, algorithm), 1);
                if let Some(value) = &mut values[*place] {
                    value.extend_from_slice(&(rdata.len() as u16).to_be_bytes());
                    value.extend_from_slice(&rdata);
                }
            }
        }
        for ((want, value), period) in wants.into_iter().zip(values).zip(periods) {
            if let Some(value) = value.filter(|value| !value.is_empty()) {
                self.cache.insert(want.hash, want.key, value.into(), period.stale_from, self.batch);
            }
        }
    }

    fn prove(&mut self, prover: &Nsec5Prover, wants: Vec<PendingOperation<Name>>) {
        let names: Vec<&[u8]> = wants.iter().map(|want| want.what.wire()).collect();
        if names.is_empty() {
            return;
        }
        let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
        if prover.key().prove_batch(&names, &mut proofs, &mut hashes).is_err() {
            self.counters.failed.fetch_add(wants.len() as u64, Relaxed);
            return;
        }
        self.counters.count(Operation::Prove(prover.key().algorithm()), wants.len() as u64);
        let octets = proofs.len() / wants.len();
        for ((want, hash), proof) in wants.into_iter().zip(hashes).zip(proofs.chunks_exact(octets)) {
            let value: Box<[u8]> = [&hash, proof].concat().into();
            self.cache.insert(want.hash, want.key, value, 0, self.batch);
        }
    }
}

/// Removes the operations of one maker from the list and returns them; usually these are all.
fn take_of<T>(
    maker: u64,
    wants: &mut Vec<PendingOperation<T>>,
    listed: &mut Hashes,
) -> Vec<PendingOperation<T>> {
    let (taken, left) = std::mem::take(wants).into_iter().partition(|want| want.maker == maker);
    *wants = left;
    let taken: Vec<PendingOperation<T>> = taken;
    taken.iter().for_each(|want| _ = listed.remove(&want.hash));
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
