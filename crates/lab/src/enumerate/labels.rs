//! Random labels, which no zone has by chance.

use rand::{RngCore as _, SeedableRng as _};
use rand_chacha::ChaCha20Rng;

/// The octets of random labels.
pub(super) const ALPHABET: &[u8; 36] = b"abcdefghijklmnopqrstuvwxyz0123456789";
/// Octets of a random label: 36^16 labels.
pub(super) const LABEL_OCTETS: usize = 16;

/// A sequence of random labels that depends only on its seed.
#[derive(Debug)]
pub(super) struct RandomLabels(ChaCha20Rng);

impl RandomLabels {
    pub(super) fn new(seed: u64) -> Self {
        Self(ChaCha20Rng::seed_from_u64(seed))
    }

    /// Returns the next label.
    pub(super) fn next(&mut self) -> Vec<u8> {
        self.octets(LABEL_OCTETS)
    }

    /// Returns `count` random letters and digits.
    pub(super) fn octets(&mut self, count: usize) -> Vec<u8> {
        let octet = |_| ALPHABET[((u64::from(self.0.next_u32()) * ALPHABET.len() as u64) >> 32) as usize];
        (0..count).map(octet).collect()
    }
}
