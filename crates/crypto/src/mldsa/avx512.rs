//! The permutation `Keccak-f[1600]` (FIPS 202, section 3.3) of four states at once, with AVX-512: a register has a
//! word of each state. The loops count with constant bounds: the compiler unrolls them, and keeps the words in
//! registers.

use std::arch::x86_64::{
    __m256i, _mm256_loadu_si256, _mm256_rolv_epi64, _mm256_set1_epi64x, _mm256_storeu_si256,
    _mm256_ternarylogic_epi64, _mm256_xor_si256,
};

/// Words of a state.
pub(super) const WORDS: usize = 25;

/// Four states: the word (x, y) of FIPS 202 has the index x + 5y.
pub(super) type FourStates = [[u64; 4]; WORDS];

/// The constants of ι (FIPS 202, section 3.2.5).
const ROUND_CONSTANTS: [u64; 24] = [
    0x0000_0000_0000_0001,
    0x0000_0000_0000_8082,
    0x8000_0000_0000_808a,
    0x8000_0000_8000_8000,
    0x0000_0000_0000_808b,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8009,
    0x0000_0000_0000_008a,
    0x0000_0000_0000_0088,
    0x0000_0000_8000_8009,
    0x0000_0000_8000_000a,
    0x0000_0000_8000_808b,
    0x8000_0000_0000_008b,
    0x8000_0000_0000_8089,
    0x8000_0000_0000_8003,
    0x8000_0000_0000_8002,
    0x8000_0000_0000_0080,
    0x0000_0000_0000_800a,
    0x8000_0000_8000_000a,
    0x8000_0000_8000_8081,
    0x8000_0000_0000_8080,
    0x0000_0000_8000_0001,
    0x8000_0000_8000_8008,
];

/// The rotations of ρ (FIPS 202, table 2), modulo 64.
const ROTATIONS: [i64; WORDS] =
    [0, 1, 62, 28, 27, 36, 44, 6, 55, 20, 3, 10, 43, 25, 39, 41, 45, 15, 21, 8, 18, 2, 61, 56, 14];

/// Proof that this machine has AVX-512 with registers of 256 bits.
#[derive(Clone, Copy)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Returns the proof if the processor has both instruction sets.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vl")).then_some(Self(()))
    }

    /// Permutes each state.
    pub(super) fn permute(self, states: &mut FourStates) {
        // SAFETY: a value of this type exists only if the processor has AVX-512F and AVX-512VL.
        unsafe { permute(states) }
    }
}

#[target_feature(enable = "avx512f,avx512vl")]
fn permute(states: &mut FourStates) {
    let mut words = states.each_ref().map(|words| {
        // SAFETY: the pointer refers to 32 bytes, and the instruction requires no alignment.
        unsafe { _mm256_loadu_si256(words.as_ptr().cast()) }
    });
    for constant in ROUND_CONSTANTS {
        words = chi(rho_and_pi(theta(words)));
        words[0] = _mm256_xor_si256(words[0], _mm256_set1_epi64x(constant as i64));
    }
    for (states, words) in states.iter_mut().zip(words) {
        // SAFETY: the pointer refers to 32 bytes that are borrowed exclusively, and the instruction
        // requires no alignment.
        unsafe { _mm256_storeu_si256(states.as_mut_ptr().cast(), words) };
    }
}

/// Adds to each word the parities of two columns (section 3.2.1).
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn theta(mut words: [__m256i; WORDS]) -> [__m256i; WORDS] {
    let mut parities = [words[0]; 5];
    for x in 0..5 {
        let three = exclusive_or(words[x], words[x + 5], words[x + 10]);
        parities[x] = exclusive_or(three, words[x + 15], words[x + 20]);
    }
    for x in 0..5 {
        let next = _mm256_rolv_epi64(parities[(x + 1) % 5], _mm256_set1_epi64x(1));
        for y in 0..5 {
            words[x + 5 * y] = exclusive_or(words[x + 5 * y], parities[(x + 4) % 5], next);
        }
    }
    words
}

#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn exclusive_or(a: __m256i, b: __m256i, c: __m256i) -> __m256i {
    _mm256_ternarylogic_epi64::<0b1001_0110>(a, b, c)
}

/// Rotates each word, and moves word (x, y) to (y, 2x + 3y) (sections 3.2.2 and 3.2.3).
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn rho_and_pi(words: [__m256i; WORDS]) -> [__m256i; WORDS] {
    let mut moved = words;
    for x in 0..5 {
        for y in 0..5 {
            let rotation = _mm256_set1_epi64x(ROTATIONS[x + 5 * y]);
            moved[y + 5 * ((2 * x + 3 * y) % 5)] = _mm256_rolv_epi64(words[x + 5 * y], rotation);
        }
    }
    moved
}

/// Combines each word with the next two of its row: a ⊕ (¬b ∧ c) (section 3.2.4).
#[inline]
#[target_feature(enable = "avx512f,avx512vl")]
fn chi(words: [__m256i; WORDS]) -> [__m256i; WORDS] {
    let mut combined = words;
    for y in 0..5 {
        for x in 0..5 {
            let (next, second) = (words[(x + 1) % 5 + 5 * y], words[(x + 2) % 5 + 5 * y]);
            combined[x + 5 * y] = _mm256_ternarylogic_epi64::<0b1101_0010>(words[x + 5 * y], next, second);
        }
    }
    combined
}
