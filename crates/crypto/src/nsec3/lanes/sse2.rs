//! Four messages at a time, with SSE2, which every x86-64 processor has.

use std::arch::x86_64::{
    __m128i, _mm_add_epi32, _mm_and_si128, _mm_loadu_si128, _mm_or_si128, _mm_set1_epi32, _mm_slli_epi32,
    _mm_srli_epi32, _mm_storeu_si128, _mm_xor_si128,
};

use super::rounds::{define_compress, round, rounds};
use super::{BLOCK_WORDS, HASH_WORDS, NSEC3_LANES, Words};
use crate::nsec3::SHA1_INITIAL_STATE;

/// Words of a vector.
const WIDTH: usize = 4;

/// Hashes messages of one block each.
pub(super) fn compress(message: &[Words; BLOCK_WORDS], hashes: &mut [Words; HASH_WORDS]) {
    // SAFETY: every x86-64 processor has SSE2.
    unsafe { compress_vectors(message, hashes) }
}

define_compress!("sse2", 4);

#[inline]
#[target_feature(enable = "sse2")]
fn splat(word: u32) -> __m128i {
    _mm_set1_epi32(word.cast_signed())
}

#[inline]
#[target_feature(enable = "sse2")]
fn load(words: &Words, lane: usize) -> __m128i {
    let four: &[u32] = &words[lane..lane + WIDTH];
    // SAFETY: the pointer refers to 16 bytes, and the instruction requires no alignment.
    unsafe { _mm_loadu_si128(four.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn store(vector: __m128i, words: &mut Words, lane: usize) {
    let four: &mut [u32] = &mut words[lane..lane + WIDTH];
    // SAFETY: the pointer refers to 16 bytes that are borrowed exclusively, and the instruction
    // requires no alignment.
    unsafe { _mm_storeu_si128(four.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "sse2")]
fn add(a: __m128i, b: __m128i) -> __m128i {
    _mm_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "sse2")]
fn xor(a: __m128i, b: __m128i) -> __m128i {
    _mm_xor_si128(a, b)
}

#[inline]
#[target_feature(enable = "sse2")]
fn rotate_1(a: __m128i) -> __m128i {
    _mm_or_si128(_mm_slli_epi32::<1>(a), _mm_srli_epi32::<31>(a))
}

#[inline]
#[target_feature(enable = "sse2")]
fn rotate_5(a: __m128i) -> __m128i {
    _mm_or_si128(_mm_slli_epi32::<5>(a), _mm_srli_epi32::<27>(a))
}

#[inline]
#[target_feature(enable = "sse2")]
fn rotate_30(a: __m128i) -> __m128i {
    _mm_or_si128(_mm_slli_epi32::<30>(a), _mm_srli_epi32::<2>(a))
}

/// The bit of `c` where that of `b` is one, otherwise that of `d`.
#[inline]
#[target_feature(enable = "sse2")]
fn choose(b: __m128i, c: __m128i, d: __m128i) -> __m128i {
    xor(d, _mm_and_si128(b, xor(c, d)))
}

#[inline]
#[target_feature(enable = "sse2")]
fn parity(b: __m128i, c: __m128i, d: __m128i) -> __m128i {
    xor(xor(b, c), d)
}

#[inline]
#[target_feature(enable = "sse2")]
fn majority(b: __m128i, c: __m128i, d: __m128i) -> __m128i {
    _mm_or_si128(_mm_and_si128(b, c), _mm_and_si128(d, _mm_or_si128(b, c)))
}
