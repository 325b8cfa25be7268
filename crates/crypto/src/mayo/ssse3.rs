//! Multiplication of vectors by scalars with SSSE3, which every processor of level x86-64-v2 has.
//! It works like the AVX2 version, on 16 bytes at a time.

use std::arch::x86_64::{
    __m128i, _mm_and_si128, _mm_loadu_si128, _mm_or_si128, _mm_set1_epi8, _mm_setzero_si128,
    _mm_shuffle_epi8, _mm_slli_epi16, _mm_srli_epi16, _mm_storeu_si128, _mm_xor_si128,
};

use super::field::{SETS, Vector};

/// Proof that this machine has SSSE3.
#[derive(Clone, Copy)]
pub(super) struct Ssse3(());

impl Ssse3 {
    /// Returns the proof if the processor has SSSE3.
    pub(super) fn detect() -> Option<Self> {
        is_x86_feature_detected!("ssse3").then_some(Self(()))
    }

    /// Returns the sum of the vectors, each multiplied by its scalar. `tables` are those of
    /// [`super::tables`].
    #[inline]
    pub(super) fn combine(self, tables: &[Vector], vectors: &[Vector]) -> [Vector; SETS] {
        // SAFETY: a value of this type exists only if the processor has SSSE3.
        unsafe { combine(tables, vectors) }
    }
}

/// Loads the first and the last 16 bytes.
#[target_feature(enable = "ssse3")]
fn load(vector: &Vector) -> [__m128i; 2] {
    let halves = vector.as_ptr().cast::<__m128i>();
    // SAFETY: the pointers refer to the first and the last 16 of 32 bytes. No alignment is
    // required.
    unsafe { [_mm_loadu_si128(halves), _mm_loadu_si128(halves.add(1))] }
}

#[target_feature(enable = "ssse3")]
fn store(halves: [__m128i; 2]) -> Vector {
    let mut vector = [0; 4];
    let halves_out = vector.as_mut_ptr().cast::<__m128i>();
    // SAFETY: the pointers refer to the first and the last 16 of 32 bytes, which are borrowed
    // exclusively. No alignment is required.
    unsafe {
        _mm_storeu_si128(halves_out, halves[0]);
        _mm_storeu_si128(halves_out.add(1), halves[1]);
    }
    vector
}

#[target_feature(enable = "ssse3")]
fn combine(tables: &[Vector], vectors: &[Vector]) -> [Vector; SETS] {
    let lower_halves = _mm_set1_epi8(15);
    // For each pair of sets and each half of the vector, the products of the elements in the lower
    // and in the upper halves of bytes.
    let mut sums = [[[_mm_setzero_si128(); 2]; 2]; 2];
    for (tables, vector) in tables.iter().zip(vectors) {
        let tables = load(tables);
        for (half, octets) in load(vector).into_iter().enumerate() {
            let lower = _mm_and_si128(octets, lower_halves);
            let upper = _mm_and_si128(_mm_srli_epi16::<4>(octets), lower_halves);
            for (sums, table) in sums.iter_mut().zip(tables) {
                sums[half][0] = _mm_xor_si128(sums[half][0], _mm_shuffle_epi8(table, lower));
                sums[half][1] = _mm_xor_si128(sums[half][1], _mm_shuffle_epi8(table, upper));
            }
        }
    }
    let first = separate_halves(sums[0]);
    let second = separate_halves(sums[1]);
    [first[0], first[1], second[0], second[1]]
}

/// Returns the sums of a pair of sets.
#[target_feature(enable = "ssse3")]
fn separate_halves(sums: [[__m128i; 2]; 2]) -> [Vector; 2] {
    let low = separate(sums[0][0], sums[0][1]);
    let high = separate(sums[1][0], sums[1][1]);
    [store([low[0], high[0]]), store([low[1], high[1]])]
}

/// Returns the products of the first and of the second set of a pair, from the products of the
/// lower and the upper elements.
#[target_feature(enable = "ssse3")]
fn separate(lower: __m128i, upper: __m128i) -> [__m128i; 2] {
    let lower_halves = _mm_set1_epi8(15);
    let upper_halves = _mm_slli_epi16::<4>(lower_halves);
    let first = _mm_or_si128(
        _mm_and_si128(lower, lower_halves),
        _mm_slli_epi16::<4>(_mm_and_si128(upper, lower_halves)),
    );
    let second = _mm_or_si128(
        _mm_and_si128(_mm_srli_epi16::<4>(lower), lower_halves),
        _mm_and_si128(upper, upper_halves),
    );
    [first, second]
}
