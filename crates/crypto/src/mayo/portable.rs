//! Multiplication of vectors by scalars in words of 64 bits, on any machine.

use super::field::{self, FourScalars, SETS, Vector};
use super::wiped::WipedVec;

/// Returns the masks of the bits of secret scalars: first all of the first set, then all of the
/// second set, and so on.
pub(super) fn masks(scalars: &[FourScalars]) -> WipedVec {
    let mut masks = WipedVec::zero(SETS * scalars.len());
    if !scalars.is_empty() {
        for (set, masks) in masks.chunks_exact_mut(scalars.len()).enumerate() {
            for (mask, four) in masks.iter_mut().zip(scalars) {
                *mask = field::masks(four[set]);
            }
        }
    }
    masks
}

/// Returns the sum of the vectors, each multiplied by its scalar. `masks` are those of [`masks`].
/// The first vector belongs to the scalar `from`.
pub(super) fn combine(masks: &[Vector], from: usize, vectors: &[Vector]) -> [Vector; SETS] {
    let count = masks.len() / SETS;
    std::array::from_fn(|set| combine_set(&masks[set * count..][..count][from..][..vectors.len()], vectors))
}

/// Processes one set: it computes a sum for each bit of the scalars without multiplications, and
/// multiplies each sum once at the end.
fn combine_set(masks: &[Vector], vectors: &[Vector]) -> Vector {
    let mut sums = [[0; 4]; 4];
    for (masks, vector) in masks.iter().zip(vectors) {
        for (sum, mask) in sums.iter_mut().zip(masks) {
            for (sum, word) in sum.iter_mut().zip(vector) {
                *sum ^= word & mask;
            }
        }
    }
    sum_bit_products(&sums)
}

/// Returns the sum of `sums`, each multiplied by the power of x with its index as exponent.
#[inline(always)]
fn sum_bit_products(sums: &[Vector; 4]) -> Vector {
    std::array::from_fn(|index| {
        (0..3).rev().fold(sums[3][index], |sum, exponent| field::times_x(sum) ^ sums[exponent][index])
    })
}
