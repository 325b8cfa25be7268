//! A fast hash for tables whose keys no client chooses.

use std::hash::{BuildHasherDefault, Hasher};

/// Odd, and without a pattern: the golden ratio.
const FACTOR: u64 = 0x9e37_79b9_7f4a_7c15;

/// Builds [`FastHasher`]s.
pub(crate) type BuildFastHasher = BuildHasherDefault<FastHasher>;

/// Hashes identifiers that the resolver gives, and names of the configuration. Without a secret key,
/// an attacker who inserts keys could make them share one place in a table. A client only looks keys
/// up, and cannot.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct FastHasher(u64);

impl Hasher for FastHasher {
    fn finish(&self) -> u64 {
        self.0
    }

    fn write(&mut self, octets: &[u8]) {
        let (words, rest) = octets.as_chunks();
        words.iter().for_each(|word| self.write_u64(u64::from_le_bytes(*word)));
        let mut word = [0; 8];
        word[..rest.len()].copy_from_slice(rest);
        self.write_u64(u64::from_le_bytes(word));
    }

    fn write_u64(&mut self, number: u64) {
        let product = u128::from(self.0 ^ number) * u128::from(FACTOR);
        self.0 = (product >> 64) as u64 ^ product as u64;
    }

    fn write_usize(&mut self, number: usize) {
        self.write_u64(number as u64);
    }
}
