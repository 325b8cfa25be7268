//! What workshops have done: numbers that operators look at, readable from any thread.

use crate::denial::Mechanism;
use nonesuch_crypto::Algorithm;
use nonesuch_crypto::vrf::VrfAlgorithm;
use std::collections::BTreeMap;
use std::fmt;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};

/// A kind of private-key operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Operation {
    /// A signature over an RRset of the zone.
    SignData(Algorithm),
    /// A signature over a record made for a denial.
    SignDenial(Mechanism, Algorithm),
    /// An NSEC5 proof.
    Prove(VrfAlgorithm),
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

/// The counters of one workshop.
#[derive(Debug, Default)]
#[repr(align(128))]
pub struct Counters {
    pub(super) signature_hits: AtomicU64,
    pub(super) signature_misses: AtomicU64,
    pub(super) proof_hits: AtomicU64,
    pub(super) proof_misses: AtomicU64,
    pub(super) proofs_stored: AtomicU64,
    pub(super) batches: AtomicU64,
    pub(super) refused: AtomicU64,
    pub(super) failed: AtomicU64,
    pub(super) octets: AtomicU64,
    operations: Mutex<BTreeMap<Operation, u64>>,
}

impl Counters {
    /// Counts operations; a few times for each batch.
    pub(super) fn count(&self, operation: Operation, times: u64) {
        let mut operations = self.operations.lock().unwrap_or_else(PoisonError::into_inner);
        *operations.entry(operation).or_default() += times;
    }

    /// The numbers as they are now.
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
        }
    }

    /// The sums over the counters of several workshops.
    #[must_use]
    pub fn sum(counters: &[Arc<Self>]) -> OnlineCounters {
        counters.iter().map(|counters| counters.read()).fold(OnlineCounters::default(), OnlineCounters::add)
    }
}

/// What workshops have done since they were set up.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OnlineCounters {
    /// Signatures asked for that were in the cache.
    pub signature_hits: u64,
    /// Signatures asked for that had to be made.
    pub signature_misses: u64,
    /// NSEC5 proofs asked for that were in the cache.
    pub proof_hits: u64,
    /// NSEC5 proofs asked for that had to be made.
    pub proof_misses: u64,
    /// NSEC5 proofs asked for that were stored beside the zone.
    pub proofs_stored: u64,
    /// Times that what was wanted was made, all of it together.
    pub batches: u64,
    /// What was wanted and not made, since the batch was full.
    pub refused: u64,
    /// What the library failed to make.
    pub failed: u64,
    /// Octets that the caches take.
    pub cache_octets: u64,
    /// Private-key operations by kind.
    pub operations: BTreeMap<Operation, u64>,
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
        for (operation, times) in other.operations {
            *self.operations.entry(operation).or_default() += times;
        }
        self
    }

    /// Private-key operations of all kinds.
    #[must_use]
    pub fn operation_count(&self) -> u64 {
        self.operations.values().sum()
    }
}
