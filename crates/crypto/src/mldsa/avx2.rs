//! The operations of [`super::arithmetic`] with AVX2: a register has one row.

use std::arch::x86_64::{
    __m256i, _mm256_add_epi64, _mm256_blend_epi32, _mm256_loadu_si256, _mm256_mul_epi32, _mm256_mullo_epi32,
    _mm256_permute2x128_si256, _mm256_set1_epi32, _mm256_setzero_si256, _mm256_slli_epi64, _mm256_srli_epi64,
    _mm256_storeu_si256, _mm256_sub_epi32, _mm256_unpackhi_epi32, _mm256_unpackhi_epi64,
    _mm256_unpacklo_epi32, _mm256_unpacklo_epi64,
};

use super::arithmetic::{Arithmetic, Factor, LANES, Q, Q_INVERSE, Row};
use super::commitment::{self, Commitment, Inputs};
use super::ntt::{self, Polynomial};

/// Proof that this machine has AVX2.
#[derive(Clone, Copy, Debug)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Returns the proof if the processor has AVX2.
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("avx2").then_some(Self(()))
    }

    /// See [`commitment::reconstruct`].
    pub(super) fn reconstruct(self, inputs: &Inputs<'_>) -> Option<Commitment> {
        // SAFETY: a value of this type exists only if the processor has AVX2.
        unsafe { reconstruct(self, inputs) }
    }

    /// See [`ntt::forward`].
    pub(super) fn forward(self, polynomial: &mut Polynomial) {
        // SAFETY: a value of this type exists only if the processor has AVX2.
        unsafe { forward(self, polynomial) }
    }
}

#[target_feature(enable = "avx2")]
fn reconstruct(avx2: Avx2, inputs: &Inputs<'_>) -> Option<Commitment> {
    commitment::reconstruct(avx2, inputs)
}

#[target_feature(enable = "avx2")]
fn forward(avx2: Avx2, polynomial: &mut Polynomial) {
    ntt::forward(avx2, polynomial);
}

/// The functions are inlined where all code is compiled for AVX2.
impl Arithmetic for Avx2 {
    #[inline(always)]
    fn multiply(self, row: &Row, factor: &Factor) -> Row {
        // SAFETY: a value of this type exists only if the processor has AVX2.
        unsafe { multiply(row, factor) }
    }

    #[inline(always)]
    fn sum_of_products<const N: usize>(self, left: [&Row; N], right: [&Row; N]) -> Row {
        // SAFETY: a value of this type exists only if the processor has AVX2.
        unsafe { sum_of_products(left, right) }
    }

    #[inline(always)]
    fn transpose(self, rows: &mut [Row; LANES]) {
        // SAFETY: a value of this type exists only if the processor has AVX2.
        unsafe { transpose(rows) }
    }
}

#[inline]
#[target_feature(enable = "avx2")]
fn load(row: &Row) -> __m256i {
    // SAFETY: the pointer refers to 32 bytes, and the instruction requires no alignment.
    unsafe { _mm256_loadu_si256(row.as_ptr().cast()) }
}

#[inline]
#[target_feature(enable = "avx2")]
fn store(value: __m256i) -> Row {
    let mut row = [0; LANES];
    // SAFETY: the pointer refers to 32 bytes that are borrowed exclusively, and the instruction
    // requires no alignment.
    unsafe { _mm256_storeu_si256(row.as_mut_ptr().cast(), value) };
    row
}

/// Moves the odd lanes to the even lanes, which are the only ones that the multiplication uses.
#[inline]
#[target_feature(enable = "avx2")]
fn odd(value: __m256i) -> __m256i {
    _mm256_srli_epi64::<32>(value)
}

/// Subtracts the product of `quotient` and q from the sums in the even and the odd lanes, and returns the
/// upper halves of the differences. The lower halves are zero.
#[inline]
#[target_feature(enable = "avx2")]
fn reduce(even_sums: __m256i, odd_sums: __m256i, quotient: __m256i) -> Row {
    let q = _mm256_set1_epi32(Q);
    let even_lanes = _mm256_sub_epi32(even_sums, _mm256_mul_epi32(quotient, q));
    let odd_lanes = _mm256_sub_epi32(odd_sums, _mm256_mul_epi32(odd(quotient), q));
    store(_mm256_blend_epi32::<0b1010_1010>(odd(even_lanes), odd_lanes))
}

#[inline]
#[target_feature(enable = "avx2")]
fn multiply(row: &Row, factor: &Factor) -> Row {
    let (row, value) = (load(row), load(&factor.value));
    let quotient = _mm256_mullo_epi32(row, load(&factor.quotient));
    reduce(_mm256_mul_epi32(row, value), _mm256_mul_epi32(odd(row), odd(value)), quotient)
}

#[inline]
#[target_feature(enable = "avx2")]
fn sum_of_products<const N: usize>(left: [&Row; N], right: [&Row; N]) -> Row {
    let mut even_sums = _mm256_setzero_si256();
    let mut odd_sums = _mm256_setzero_si256();
    for (left, right) in left.into_iter().zip(right) {
        let (left, right) = (load(left), load(right));
        even_sums = _mm256_add_epi64(even_sums, _mm256_mul_epi32(left, right));
        odd_sums = _mm256_add_epi64(odd_sums, _mm256_mul_epi32(odd(left), odd(right)));
    }
    let lower_halves = _mm256_blend_epi32::<0b1010_1010>(even_sums, _mm256_slli_epi64::<32>(odd_sums));
    reduce(even_sums, odd_sums, _mm256_mullo_epi32(lower_halves, _mm256_set1_epi32(Q_INVERSE)))
}

/// Transposes pairs of lanes, then pairs of pairs, then halves.
#[inline]
#[target_feature(enable = "avx2")]
fn transpose(rows: &mut [Row; LANES]) {
    let mut pairs = [_mm256_setzero_si256(); LANES];
    for index in 0..4 {
        let (upper, lower) = (load(&rows[2 * index]), load(&rows[2 * index + 1]));
        pairs[2 * index] = _mm256_unpacklo_epi32(upper, lower);
        pairs[2 * index + 1] = _mm256_unpackhi_epi32(upper, lower);
    }
    let mut quadruples = [_mm256_setzero_si256(); LANES];
    for index in [0, 1, 4, 5] {
        let target = 2 * index - index / 4 * 4;
        quadruples[target] = _mm256_unpacklo_epi64(pairs[index], pairs[index + 2]);
        quadruples[target + 1] = _mm256_unpackhi_epi64(pairs[index], pairs[index + 2]);
    }
    for index in 0..4 {
        let (upper, lower) = (quadruples[index], quadruples[index + 4]);
        rows[index] = store(_mm256_permute2x128_si256::<0x20>(upper, lower));
        rows[index + 4] = store(_mm256_permute2x128_si256::<0x31>(upper, lower));
    }
}
