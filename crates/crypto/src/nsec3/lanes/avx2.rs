//! Eight messages at a time, with AVX2.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi32, _mm256_and_si256, _mm256_loadu_si256, _mm256_or_si256, _mm256_set1_epi32,
    _mm256_slli_epi32, _mm256_srli_epi32, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::rounds::{define_compress, round, rounds};
use super::{BLOCK_WORDS, HASH_WORDS, NSEC3_LANES, Words};
use crate::nsec3::SHA1_INITIAL_STATE;

/// Words of a vector.
const WIDTH: usize = 8;

/// Proof that this machine has AVX2.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Returns the proof if the processor has the instruction set.
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// Hashes messages of one block each.
    pub(super) fn compress(self, message: &[Words; BLOCK_WORDS], hashes: &mut [Words; HASH_WORDS]) {
        // SAFETY: a value of this type exists only if the processor has AVX2.
        unsafe { compress_vectors(message, hashes) }
    }
}

define_compress!("avx2", 8);

#[inline]
#[target_feature(enable = "avx2")]
fn splat(word: u32) -> __m256i {
    _mm256_set1_epi32(word.cast_signed())
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(words: &Words, lane: usize) -> __m256i {
    let eight: &[u32] = &words[lane..lane + WIDTH];
    // SAFETY: the pointer refers to 32 bytes, and the instruction requires no alignment.
    unsafe { _mm256_loadu_si256(eight.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(vector: __m256i, words: &mut Words, lane: usize) {
    let eight: &mut [u32] = &mut words[lane..lane + WIDTH];
    // SAFETY: the pointer refers to 32 bytes that are borrowed exclusively, and the instruction
    // requires no alignment.
    unsafe { _mm256_storeu_si256(eight.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn add(a: __m256i, b: __m256i) -> __m256i {
    _mm256_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn xor(a: __m256i, b: __m256i) -> __m256i {
    _mm256_xor_si256(a, b)
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_1(a: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_slli_epi32::<1>(a), _mm256_srli_epi32::<31>(a))
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_5(a: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_slli_epi32::<5>(a), _mm256_srli_epi32::<27>(a))
}

#[inline]
#[target_feature(enable = "avx2")]
fn rotate_30(a: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_slli_epi32::<30>(a), _mm256_srli_epi32::<2>(a))
}

/// The bit of `c` where that of `b` is one, otherwise that of `d`.
#[inline]
#[target_feature(enable = "avx2")]
fn choose(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    xor(d, _mm256_and_si256(b, xor(c, d)))
}

#[inline]
#[target_feature(enable = "avx2")]
fn parity(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    xor(xor(b, c), d)
}

#[inline]
#[target_feature(enable = "avx2")]
fn majority(b: __m256i, c: __m256i, d: __m256i) -> __m256i {
    _mm256_or_si256(_mm256_and_si256(b, c), _mm256_and_si256(d, _mm256_or_si256(b, c)))
}
