//! Counters of the online signers, readable from any thread.

use crate::denial::{MECHANISMS, Mechanism};
use nonesuch_crypto::vrf::{VRF_ALGORITHMS, VrfAlgorithm};
use nonesuch_crypto::{ALGORITHMS, Algorithm};
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A kind of private-key operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A signature over an RRset of the zone.
    SignData(Algorithm),
    /// A signature over a record that was generated for a denial.
    SignDenial(Mechanism, Algorithm),
    /// An NSEC5 proof.
    Prove(VrfAlgorithm),
}

impl Operation {
    /// The operation that signs a record that the mechanism `generated_for` generated. For `None`,
    /// the operation that signs an RRset of the zone.
    pub(super) fn signing(generated_for: Option<Mechanism>, algorithm: Algorithm) -> Self {
        generated_for.map_or(Self::SignData(algorithm), |mechanism| Self::SignDenial(mechanism, algorithm))
    }
}

impl fmt::Display for Operation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SignData(algorithm) => write!(f, "data {algorithm}"),
            Self::SignDenial(mechanism, algorithm) => write!(f, "{mechanism} {algorithm}"),
            Self::Prove(algorithm) => write!(f, "nsec5 {algorithm}"),
        }
    }
}

/// Cache hits and misses, in this order, for each kind of operation. A response can need several
/// lookups; atomic counters at fixed indexes need neither a lock nor a search.
#[derive(Debug)]
struct Lookups(Box<[[AtomicU64; 2]]>);

impl Default for Lookups {
    fn default() -> Self {
        let count = (1 + MECHANISMS.len()) * ALGORITHMS.len() + VRF_ALGORITHMS.len();
        Self((0..count).map(|_| <[AtomicU64; 2]>::default()).collect())
    }
}

impl Lookups {
    /// The index for signatures by the algorithm in this row of [`ALGORITHMS`].
    fn signature_index(generated_for: Option<Mechanism>, row: usize) -> usize {
        generated_for.map_or(0, |mechanism| 1 + mechanism as usize) * ALGORITHMS.len() + row
    }

    /// The index for proofs by the VRF in this row of [`VRF_ALGORITHMS`].
    fn proof_index(row: usize) -> usize {
        (1 + MECHANISMS.len()) * ALGORITHMS.len() + row
    }

    fn count(&self, index: usize, is_hit: bool) {
        if let Some(counters) = self.0.get(index) {
            counters[usize::from(!is_hit)].fetch_add(1, Relaxed);
        }
    }

    /// All kinds of operations with their indexes.
    fn indexes() -> impl Iterator<Item = (Operation, usize)> {
        let generated_for = std::iter::once(None).chain(MECHANISMS.iter().map(|entry| Some(entry.mechanism)));
        let signatures = generated_for.flat_map(|generated_for| {
            ALGORITHMS.iter().enumerate().map(move |(row, entry)| {
                let operation = Operation::signing(generated_for, entry.algorithm);
                (operation, Self::signature_index(generated_for, row))
            })
        });
        let proofs = VRF_ALGORITHMS.iter().enumerate();
        signatures
            .chain(proofs.map(|(row, entry)| (Operation::Prove(entry.algorithm), Self::proof_index(row))))
    }

    /// The numbers of hits, or of misses, above zero.
    fn read(&self, is_hit: bool) -> BTreeMap<Operation, u64> {
        let times = |index: usize| self.0[index][usize::from(!is_hit)].load(Relaxed);
        let all = Self::indexes().map(|(operation, index)| (operation, times(index)));
        all.filter(|(_, times)| *times > 0).collect()
    }
}

/// The counters of one [`OnlineSigner`](super::OnlineSigner).
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct SignerCounters {
    signature_hits: AtomicU64,
    signature_misses: AtomicU64,
    proof_hits: AtomicU64,
    proof_misses: AtomicU64,
    pub(super) proofs_stored: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) rejected: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) cache_bytes: AtomicU64,
    lookups: Lookups,
    operations: Mutex<BTreeMap<Operation, u64>>,
}

impl SignerCounters {
    /// Counts a cache lookup of signatures by the algorithm in this row of [`ALGORITHMS`].
    pub(super) fn count_signature(&self, generated_for: Option<Mechanism>, row: usize, is_hit: bool) {
        let counter = if is_hit { &self.signature_hits } else { &self.signature_misses };
        counter.fetch_add(1, Relaxed);
        self.lookups.count(Lookups::signature_index(generated_for, row), is_hit);
    }

    /// Counts a cache lookup of a proof by the VRF in this row of [`VRF_ALGORITHMS`].
    pub(super) fn count_proof(&self, row: usize, is_hit: bool) {
        let counter = if is_hit { &self.proof_hits } else { &self.proof_misses };
        counter.fetch_add(1, Relaxed);
        self.lookups.count(Lookups::proof_index(row), is_hit);
    }

    /// Adds `times` operations. Each batch needs only a few calls, so a lock is acceptable.
    pub(super) fn count(&self, operation: Operation, times: u64) {
        let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        *operations.entry(operation).or_default() += times;
    }

    /// The current values.
    #[must_use]
    pub fn read(&self) -> OnlineCounters {
        let operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner).clone();
        OnlineCounters {
            signature_hits: self.signature_hits.load(Relaxed),
            signature_misses: self.signature_misses.load(Relaxed),
            proof_hits: self.proof_hits.load(Relaxed),
            proof_misses: self.proof_misses.load(Relaxed),
            proofs_stored: self.proofs_stored.load(Relaxed),
            batches: self.batches.load(Relaxed),
            rejected: self.rejected.load(Relaxed),
            failed: self.failed.load(Relaxed),
            cache_octets: self.cache_bytes.load(Relaxed),
            operations,
            hits: self.lookups.read(true),
            misses: self.lookups.read(false),
        }
    }

    /// The sums of the counters of several signers.
    #[must_use]
    pub fn sum(counters: &[Arc<Self>]) -> OnlineCounters {
        counters.iter().map(|counters| counters.read()).fold(OnlineCounters::default(), OnlineCounters::add)
    }
}

/// The counts of one or more signers since their creation.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnlineCounters {
    /// Signature lookups that found valid signatures in the cache.
    pub signature_hits: u64,
    /// Signature lookups that did not find valid signatures in the cache.
    pub signature_misses: u64,
    /// Lookups of an NSEC5 proof that found it in the cache. Lookups that
    /// [`proofs_stored`](Self::proofs_stored) counts are neither hits nor misses.
    pub proof_hits: u64,
    /// Lookups of an NSEC5 proof that did not find it in the cache.
    pub proof_misses: u64,
    /// Lookups of an NSEC5 proof that found it among the proofs stored with the zone. The signer
    /// searches these before the cache.
    pub proofs_stored: u64,
    /// Number of batches of online work. The deferred answers of each zone in one receive batch are
    /// one batch.
    pub batches: u64,
    /// Requests for signatures and proofs that were rejected, because the batch was full.
    pub rejected: u64,
    /// Signatures and proofs that the cryptographic library failed to generate.
    pub failed: u64,
    /// Memory of the caches in bytes.
    pub cache_octets: u64,
    /// Number of private-key operations of each kind.
    pub operations: BTreeMap<Operation, u64>,
    /// Cache hits for each kind of operation, without proofs stored with the zone. With keys of
    /// several algorithms, a hit counts for the algorithm of the first key that signs data.
    pub hits: BTreeMap<Operation, u64>,
    /// Cache misses for each kind of operation, counted in the same way.
    pub misses: BTreeMap<Operation, u64>,
}

impl OnlineCounters {
    fn add(mut self, other: Self) -> Self {
        self.signature_hits += other.signature_hits;
        self.signature_misses += other.signature_misses;
        self.proof_hits += other.proof_hits;
        self.proof_misses += other.proof_misses;
        self.proofs_stored += other.proofs_stored;
        self.batches += other.batches;
        self.rejected += other.rejected;
        self.failed += other.failed;
        self.cache_octets += other.cache_octets;
        for (sums, times) in [
            (&mut self.operations, other.operations),
            (&mut self.hits, other.hits),
            (&mut self.misses, other.misses),
        ] {
            times.into_iter().for_each(|(operation, times)| *sums.entry(operation).or_default() += times);
        }
        self
    }
}
