//! Sixteen messages at a time, with AVX-512.

use std::arch::x86_64::{
    __m512i, _mm512_add_epi32, _mm512_loadu_si512, _mm512_rol_epi32, _mm512_set1_epi32, _mm512_storeu_si512,
    _mm512_ternarylogic_epi32, _mm512_xor_si512,
};

use super::rounds::{define_compress, round, rounds};
use super::{BLOCK_WORDS, HASH_WORDS, NSEC3_LANES, Words};
use crate::nsec3::SHA1_INITIAL_STATE;

/// Proof that this machine has AVX-512F.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Avx512(());

impl Avx512 {
    /// Returns the proof if the processor has the instruction set.
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx512f").then_some(Self(()))
    }

    /// Hashes messages of one block each.
    pub(super) fn compress(self, message: &[Words; BLOCK_WORDS], hashes: &mut [Words; HASH_WORDS]) {
        // SAFETY: a value of this type exists only if the processor has AVX-512F.
        unsafe { compress_vectors(message, hashes) }
    }
}

define_compress!("avx512f", 16);

#[inline]
#[target_feature(enable = "avx512f")]
fn splat(word: u32) -> __m512i {
    _mm512_set1_epi32(word.cast_signed())
}

/// `lane` is 0: a vector has all lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn load(words: &Words, _lane: usize) -> __m512i {
    // SAFETY: the pointer refers to 64 bytes, and the instruction requires no alignment.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// `lane` is 0: a vector has all lanes.
#[inline]
#[target_feature(enable = "avx512f")]
fn store(vector: __m512i, words: &mut Words, _lane: usize) {
    // SAFETY: the pointer refers to 64 bytes that are borrowed exclusively, and the instruction
    // requires no alignment.
    unsafe { _mm512_storeu_si512(words.as_mut_ptr().cast(), vector) }
}

#[inline]
#[target_feature(enable = "avx512f")]
fn add(a: __m512i, b: __m512i) -> __m512i {
    _mm512_add_epi32(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn xor(a: __m512i, b: __m512i) -> __m512i {
    _mm512_xor_si512(a, b)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn rotate_1(a: __m512i) -> __m512i {
    _mm512_rol_epi32::<1>(a)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn rotate_5(a: __m512i) -> __m512i {
    _mm512_rol_epi32::<5>(a)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn rotate_30(a: __m512i) -> __m512i {
    _mm512_rol_epi32::<30>(a)
}

/// The bit of `c` where that of `b` is one, otherwise that of `d`.
#[inline]
#[target_feature(enable = "avx512f")]
fn choose(b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xca>(b, c, d)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn parity(b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0x96>(b, c, d)
}

#[inline]
#[target_feature(enable = "avx512f")]
fn majority(b: __m512i, c: __m512i, d: __m512i) -> __m512i {
    _mm512_ternarylogic_epi32::<0xe8>(b, c, d)
}
