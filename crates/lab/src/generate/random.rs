//! Seeded random numbers that are the same on every machine.
//!
//! All operations are integer arithmetic on fixed-width types. [`Streams`] provides a separate
//! ChaCha8 stream for each index, for example for the number of a name in the zone. Thus the random
//! values of one name can be generated again without those of other names. [`Permutation`] permutes
//! a range without storing it in memory.

use rand_chacha::ChaCha8Rng;
use rand_chacha::rand_core::{RngCore, SeedableRng};

/// Purpose of a family of streams. Streams for different purposes are independent.
#[derive(Clone, Copy)]
pub(super) enum Purpose {
    /// The apex of a zone.
    Apex = 1,
    /// The records of one name.
    Name = 2,
    /// The queries in a query file.
    Query = 3,
}

/// A family of independent streams, one for each index.
pub(super) struct Streams {
    key: [u8; 32],
}

impl Streams {
    /// Creates the family for `seed` and `purpose`.
    pub(super) fn new(seed: u64, purpose: Purpose) -> Self {
        let mut key = [0; 32];
        key[..8].copy_from_slice(&seed.to_le_bytes());
        key[8] = purpose as u8;
        Self { key }
    }

    /// Returns the stream of `index`, at its start.
    pub(super) fn stream(&self, index: u64) -> RandomStream {
        let mut rng = ChaCha8Rng::from_seed(self.key);
        rng.set_stream(index);
        RandomStream(rng)
    }
}

/// A stream of random numbers.
pub(super) struct RandomStream(ChaCha8Rng);

impl RandomStream {
    pub(super) fn next_u64(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a number below `bound`; 0 if `bound` is 0.
    pub(super) fn below(&mut self, bound: u32) -> u32 {
        ((u64::from(self.0.next_u32()) * u64::from(bound)) >> 32) as u32
    }

    /// Returns a number below `bound`, for bounds above 32 bits; 0 if `bound` is 0.
    pub(super) fn below_wide(&mut self, bound: u64) -> u64 {
        ((u128::from(self.0.next_u64()) * u128::from(bound)) >> 64) as u64
    }

    /// Returns `true` with a probability of `share` per mille.
    pub(super) fn per_mille(&mut self, share: u32) -> bool {
        self.below(1000) < share
    }

    pub(super) fn fill(&mut self, octets: &mut [u8]) {
        self.0.fill_bytes(octets);
    }

    /// Returns one of `choices`, according to the weights. `choices` must not be empty.
    pub(super) fn weighted<T: Copy>(&mut self, choices: &[(T, u32)]) -> T {
        pick_weighted(choices, |total| self.below(total))
    }

    /// Returns a rank below `count`; 0 if `count` is 0. The probability of rank r is approximately
    /// proportional to 1/(r+1) (Zipf's law with exponent 1): all complete octaves of r+1 (1, 2-3,
    /// 4-7, …) have the same probability, and the ranks within an octave are uniformly distributed.
    /// The last octave ends at `count`; each of its ranks has the probability that it has in the
    /// complete octave.
    pub(super) fn zipf(&mut self, count: u64) -> u64 {
        if count == 0 {
            return 0;
        }
        let octaves = 64 - count.leading_zeros();
        loop {
            let octave = 1_u64 << self.below(octaves);
            let rank = octave - 1 + self.below_wide(octave);
            if rank < count {
                return rank;
            }
        }
    }
}

/// Returns one of `choices`, according to the weights. `draw` receives the sum of all weights and
/// returns a number below it. `choices` must not be empty.
pub(super) fn pick_weighted<T: Copy>(choices: &[(T, u32)], draw: impl FnOnce(u32) -> u32) -> T {
    let mut point = draw(choices.iter().map(|(_, weight)| weight).sum());
    for &(choice, weight) in choices {
        if point < weight {
            return choice;
        }
        point -= weight;
    }
    choices[choices.len() - 1].0
}

/// Mixes 64 bits: one step of SplitMix64 from the state `value`.
pub(super) fn mix(value: u64) -> u64 {
    let mut z = value.wrapping_add(0x9E37_79B9_7F4A_7C15);
    z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    z ^ (z >> 31)
}

/// A keyed permutation of `0..size`: a Feistel network over the next power of two, which is applied
/// repeatedly until the result is in the range.
#[derive(Clone, Copy)]
pub(super) struct Permutation {
    size: u64,
    low_bits: u32,
    high_bits: u32,
    key: u64,
}

impl Permutation {
    const ROUNDS: u64 = 6;

    /// Creates the permutation of `0..size` for `key`. `size` is at least 1 and at most 2^62.
    pub(super) fn new(size: u64, key: u64) -> Self {
        let bits = (64 - size.saturating_sub(1).leading_zeros()).max(2);
        Self { size: size.max(1), low_bits: bits / 2, high_bits: bits - bits / 2, key: mix(key) }
    }

    /// Returns the image of `value`. `value` is below the size.
    pub(super) fn apply(&self, value: u64) -> u64 {
        let mut value = value;
        loop {
            value = self.feistel(value);
            if value < self.size {
                return value;
            }
        }
    }

    /// Applies the Feistel network once.
    fn feistel(&self, value: u64) -> u64 {
        let mut low = value & ((1 << self.low_bits) - 1);
        let mut high = value >> self.low_bits;
        for round in 0..Self::ROUNDS {
            if round % 2 == 0 {
                high ^= mix(self.key ^ (round << 58) ^ low) >> (64 - self.high_bits);
            } else {
                low ^= mix(self.key ^ (round << 58) ^ high) >> (64 - self.low_bits);
            }
        }
        (high << self.low_bits) | low
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_permutation_hits_every_value_once() {
        for size in [1, 2, 3, 4, 5, 17, 64, 1000, 4097] {
            for key in 0..4 {
                let permutation = Permutation::new(size, key);
                let mut seen: Vec<u64> = (0..size).map(|value| permutation.apply(value)).collect();
                seen.sort_unstable();
                assert!(seen.iter().copied().eq(0..size), "size {size}, key {key}");
            }
        }
    }

    #[test]
    fn a_stream_can_be_drawn_again_alone() {
        let streams = Streams::new(7, Purpose::Name);
        let first = streams.stream(41).next_u64();
        assert_ne!(first, streams.stream(42).next_u64());
        assert_eq!(first, streams.stream(41).next_u64());
        assert_ne!(first, Streams::new(7, Purpose::Query).stream(41).next_u64());
        assert_ne!(first, Streams::new(8, Purpose::Name).stream(41).next_u64());
    }

    #[test]
    fn zipf_stays_in_range_and_prefers_low_ranks() {
        let mut random = Streams::new(1, Purpose::Query).stream(0);
        let mut lowest_hundredth = 0;
        for _ in 0..10_000 {
            let rank = random.zipf(100_000);
            assert!(rank < 100_000);
            lowest_hundredth += u32::from(rank < 1000);
        }
        // ln(1000) / ln(100000) = 0.6
        assert!((5500..6500).contains(&lowest_hundredth), "{lowest_hundredth}");
        assert_eq!(random.zipf(1), 0);
    }

    #[test]
    fn zipf_without_ranks_ends() {
        assert_eq!(Streams::new(1, Purpose::Query).stream(0).zipf(0), 0);
    }

    #[test]
    fn weights_are_kept() {
        let mut random = Streams::new(1, Purpose::Query).stream(1);
        let heavy = (0..10_000).filter(|_| random.weighted(&[(true, 3), (false, 1)])).count();
        assert!((7300..7700).contains(&heavy), "{heavy}");
    }
}
