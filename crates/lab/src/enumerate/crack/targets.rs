//! The hashes to be found: a bit map for a fast check, and a set.

use super::super::collect::Hash;
use super::search::Sieve;
use std::collections::HashSet;

/// Number of bits in the map for each hash, at least: of the other hashes, one in this number passes
/// the fast check.
const BITS_PER_HASH: usize = 256;
/// Minimum and maximum of the logarithm of the number of bits in the map: 8 KiB and 16 MiB.
const MAP_BITS: [u32; 2] = [16, 27];

/// The hashes to be found.
#[derive(Debug)]
pub(super) struct Targets {
    hashes: HashSet<Hash>,
    map: Vec<u64>,
    shift: u32,
}

impl Targets {
    pub(super) fn new(hashes: &[Hash]) -> Self {
        let [least, most] = MAP_BITS;
        let bits = (hashes.len() * BITS_PER_HASH).max(1).next_power_of_two().ilog2().clamp(least, most);
        let mut map = vec![0_u64; 1 << (bits - 6)];
        let shift = 32 - bits;
        for hash in hashes {
            let entry = u32::from_be_bytes([hash[0], hash[1], hash[2], hash[3]]) >> shift;
            map[(entry >> 6) as usize] |= 1 << (entry & 63);
        }
        Self { hashes: hashes.iter().copied().collect(), map, shift }
    }
}

impl Sieve for Targets {
    #[inline]
    fn may_match(&self, first_word: u32) -> bool {
        let entry = first_word >> self.shift;
        self.map[(entry >> 6) as usize] >> (entry & 63) & 1 == 1
    }

    fn matches(&self, hash: &Hash) -> bool {
        self.hashes.contains(hash)
    }
}
