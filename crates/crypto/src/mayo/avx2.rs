//! Multiplication of vectors by scalars with AVX2. A byte shuffle looks up 32 elements at once in a
//! table of [`super::tables`].

use std::arch::x86_64::{
    __m128i, __m256i, _mm_loadu_si128, _mm256_and_si256, _mm256_broadcastsi128_si256, _mm256_loadu_si256,
    _mm256_or_si256, _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16,
    _mm256_srli_epi16, _mm256_storeu_si256, _mm256_xor_si256,
};

use super::avx2_solve;
use super::field::{SETS, Vector};
use super::solve::{Solution, System};

/// Proof that this machine has AVX2, and BMI1, which every processor with AVX2 has.
#[derive(Clone, Copy)]
pub(super) struct Avx2(());

impl Avx2 {
    /// Returns the proof if the processor has both instruction sets.
    pub(super) fn detect() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1")).then_some(Self(()))
    }

    /// Returns the sum of the vectors, each multiplied by its scalar. `tables` are those of
    /// [`super::tables`].
    #[inline]
    pub(super) fn combine(self, tables: &[Vector], vectors: &[Vector]) -> [Vector; SETS] {
        // SAFETY: a value of this type exists only if the processor has AVX2 and BMI1.
        unsafe { combine(tables, vectors) }
    }

    /// Solves a system; see [`super::solve::solve`].
    pub(super) fn solve(self, system: &mut System) -> Option<Solution> {
        // SAFETY: a value of this type exists only if the processor has AVX2 and BMI1.
        unsafe { avx2_solve::solve(system) }
    }
}

#[target_feature(enable = "avx2")]
pub(super) fn load(vector: &Vector) -> __m256i {
    // SAFETY: the pointer refers to 32 bytes, and the instruction requires no alignment.
    unsafe { _mm256_loadu_si256(vector.as_ptr().cast()) }
}

#[target_feature(enable = "avx2")]
pub(super) fn store(value: __m256i) -> Vector {
    let mut vector = [0; 4];
    // SAFETY: the pointer refers to 32 bytes that are borrowed exclusively, and the instruction
    // requires no alignment.
    unsafe { _mm256_storeu_si256(vector.as_mut_ptr().cast(), value) };
    vector
}

/// Loads the table of the first pair of sets and that of the second pair, each into both halves of
/// a register.
#[target_feature(enable = "avx2")]
fn load_tables(tables: &Vector) -> [__m256i; 2] {
    let halves = tables.as_ptr().cast::<__m128i>();
    // SAFETY: the pointers refer to the first and the last 16 of 32 bytes. No alignment is
    // required.
    let (first, second) = unsafe { (_mm_loadu_si128(halves), _mm_loadu_si128(halves.add(1))) };
    [_mm256_broadcastsi128_si256(first), _mm256_broadcastsi128_si256(second)]
}

#[target_feature(enable = "avx2")]
fn combine(tables: &[Vector], vectors: &[Vector]) -> [Vector; SETS] {
    let lower_halves = _mm256_set1_epi8(15);
    // For each pair of sets, the products of the elements in the lower and in the upper halves of
    // bytes.
    let mut sums = [[_mm256_setzero_si256(); 2]; 2];
    for (tables, vector) in tables.iter().zip(vectors) {
        let vector = load(vector);
        let lower = _mm256_and_si256(vector, lower_halves);
        let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(vector), lower_halves);
        for (sums, table) in sums.iter_mut().zip(load_tables(tables)) {
            sums[0] = _mm256_xor_si256(sums[0], _mm256_shuffle_epi8(table, lower));
            sums[1] = _mm256_xor_si256(sums[1], _mm256_shuffle_epi8(table, upper));
        }
    }
    let first = separate(sums[0][0], sums[0][1]);
    let second = separate(sums[1][0], sums[1][1]);
    [first[0], first[1], second[0], second[1]]
}

/// Returns the products of the first and of the second set of a pair, from the products of the
/// lower and the upper elements.
#[target_feature(enable = "avx2")]
fn separate(lower: __m256i, upper: __m256i) -> [Vector; 2] {
    let lower_halves = _mm256_set1_epi8(15);
    let upper_halves = _mm256_slli_epi16::<4>(lower_halves);
    let first = _mm256_or_si256(
        _mm256_and_si256(lower, lower_halves),
        _mm256_slli_epi16::<4>(_mm256_and_si256(upper, lower_halves)),
    );
    let second = _mm256_or_si256(
        _mm256_and_si256(_mm256_srli_epi16::<4>(lower), lower_halves),
        _mm256_and_si256(upper, upper_halves),
    );
    [store(first), store(second)]
}
