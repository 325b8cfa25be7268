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
    /// A signature over a record that this mechanism generated, or, for `None`, over an RRset of
    /// the zone.
    pub(super) fn signing(made_for: Option<Mechanism>, algorithm: Algorithm) -> Self {
        made_for.map_or(Self::SignData(algorithm), |mechanism| Self::SignDenial(mechanism, algorithm))
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

/// Cache hits and misses for each kind of operation. The array has fixed indexes, because each
/// response counts several times.
#[derive(Debug)]
struct Lookups(Box<[[AtomicU64; 2]]>);

impl Default for Lookups {
    fn default() -> Self {
        let places = (1 + MECHANISMS.len()) * ALGORITHMS.len() + VRF_ALGORITHMS.len();
        Self((0..places).map(|_| <[AtomicU64; 2]>::default()).collect())
    }
}

impl Lookups {
    /// The index for signatures by the algorithm in this row of [`ALGORITHMS`].
    fn signature_place(made_for: Option<Mechanism>, row: usize) -> usize {
        made_for.map_or(0, |mechanism| 1 + mechanism as usize) * ALGORITHMS.len() + row
    }

    /// The index for proofs by the VRF in this row of [`VRF_ALGORITHMS`].
    fn proof_place(row: usize) -> usize {
        (1 + MECHANISMS.len()) * ALGORITHMS.len() + row
    }

    fn count(&self, place: usize, found: bool) {
        if let Some(counters) = self.0.get(place) {
            counters[usize::from(!found)].fetch_add(1, Relaxed);
        }
    }

    /// All kinds of operations with their indexes.
    fn places() -> impl Iterator<Item = (Operation, usize)> {
        let made_for = std::iter::once(None).chain(MECHANISMS.iter().map(|entry| Some(entry.mechanism)));
        let signatures = made_for.flat_map(|made_for| {
            ALGORITHMS.iter().enumerate().map(move |(row, entry)| {
                let operation = Operation::signing(made_for, entry.algorithm);
                (operation, Self::signature_place(made_for, row))
            })
        });
        let proofs = VRF_ALGORITHMS.iter().enumerate();
        signatures
            .chain(proofs.map(|(row, entry)| (Operation::Prove(entry.algorithm), Self::proof_place(row))))
    }

    /// The numbers of hits, or of misses, above zero.
    fn read(&self, found: bool) -> BTreeMap<Operation, u64> {
        let times = |place: usize| self.0[place][usize::from(!found)].load(Relaxed);
        let all = Self::places().map(|(operation, place)| (operation, times(place)));
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
    pub(super) refused: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) octets: AtomicU64,
    lookups: Lookups,
    operations: Mutex<BTreeMap<Operation, u64>>,
}

impl SignerCounters {
    /// Counts a lookup of signatures by the algorithm in this row of [`ALGORITHMS`].
    pub(super) fn count_signature(&self, made_for: Option<Mechanism>, row: usize, found: bool) {
        let counter = if found { &self.signature_hits } else { &self.signature_misses };
        counter.fetch_add(1, Relaxed);
        self.lookups.count(Lookups::signature_place(made_for, row), found);
    }

    /// Counts a lookup of a proof by the VRF in this row of [`VRF_ALGORITHMS`].
    pub(super) fn count_proof(&self, row: usize, found: bool) {
        let counter = if found { &self.proof_hits } else { &self.proof_misses };
        counter.fetch_add(1, Relaxed);
        self.lookups.count(Lookups::proof_place(row), found);
    }

    /// Counts operations. Called a few times for each batch, so a lock is acceptable.
    pub(super) fn count(&self, operation: Operation, times: u64) {
        let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        *operations.entry(operation).or_default() += times;
    }

    /// The present values.
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
            refused: self.refused.load(Relaxed),
            failed: self.failed.load(Relaxed),
            cache_octets: self.octets.load(Relaxed),
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
    /// Signature lookups that found the signatures in the cache.
    pub signature_hits: u64,
    /// Signature lookups that did not find valid signatures in the cache.
    pub signature_misses: u64,
    /// NSEC5 proof lookups that found the proof in the cache.
    pub proof_hits: u64,
    /// NSEC5 proof lookups that did not find the proof in the cache.
    pub proof_misses: u64,
    /// NSEC5 proof lookups that found the proof among the proofs stored with the zone.
    pub proofs_stored: u64,
    /// Number of batches of online work.
    pub batches: u64,
    /// Requested signatures and proofs that were not generated, because the batch was full.
    pub refused: u64,
    /// Signatures and proofs that the cryptographic library failed to generate.
    pub failed: u64,
    /// Memory of the caches in bytes.
    pub cache_octets: u64,
    /// Number of private-key operations of each kind.
    pub operations: BTreeMap<Operation, u64>,
    /// Cache hits for each kind of operation. With keys of several algorithms, a hit counts for the
    /// algorithm of the first key that signs data.
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
        self.refused += other.refused;
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
