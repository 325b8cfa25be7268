//! Powers in eight lanes: inverses and square roots. An exponentiation is a chain of squarings,
//! each of which depends on the previous one. Therefore several vectors are processed in parallel.

#![deny(unsafe_code)]

use super::field::{Fields, LANES};
use super::point::square_of_y;
use crate::p256::field::Field;

/// Maximum number of vectors whose roots are computed in parallel.
const PARALLEL_VECTORS: usize = 2;

/// Multiplies each vector of `left` by the corresponding vector of `right`.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn multiply<const N: usize>(mut left: [Fields; N], right: &[Fields; N]) -> [Fields; N] {
    for (left, right) in left.iter_mut().zip(right) {
        *left = left.multiply(right);
    }
    left
}

/// Squares each vector `times` times.
#[inline(never)]
#[target_feature(enable = "avx512f,avx512ifma")]
fn square_times<const N: usize>(mut all: [Fields; N], times: u32) -> [Fields; N] {
    for _ in 0..times {
        for each in &mut all {
            *each = each.square();
        }
    }
    all
}

/// Returns a to the powers 2³⁰ − 1 and 2³² − 1, which are the start of both exponentiations below.
#[target_feature(enable = "avx512f,avx512ifma")]
fn power_of_ones<const N: usize>(a: &[Fields; N]) -> [[Fields; N]; 2] {
    let x2 = multiply(square_times(*a, 1), a);
    let x4 = multiply(square_times(x2, 2), &x2);
    let x8 = multiply(square_times(x4, 4), &x4);
    let x16 = multiply(square_times(x8, 8), &x8);
    let x24 = multiply(square_times(x16, 8), &x8);
    let x28 = multiply(square_times(x24, 4), &x4);
    let x30 = multiply(square_times(x28, 2), &x2);
    [x30, multiply(square_times(x30, 2), &x2)]
}

/// Returns a⁻¹ as a to the power p − 2, and zero for zero. a must be below 2.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn invert(a: &Fields) -> Fields {
    let a = &[*a];
    let [x30, x32] = power_of_ones(a);
    let high = multiply(square_times(x32, 32), a);
    let middle = multiply(square_times(high, 128), &x32);
    let low = multiply(square_times(middle, 32), &x32);
    let [inverse] = multiply(square_times(multiply(square_times(low, 30), &x30), 2), a);
    inverse
}

/// Returns a to the power (p + 1)/4, which is a square root if a is a square. a must be below 2.
#[target_feature(enable = "avx512f,avx512ifma")]
fn root_candidates<const N: usize>(a: &[Fields; N]) -> [Fields; N] {
    let [_, x32] = power_of_ones(a);
    let high = multiply(square_times(x32, 32), a);
    square_times(multiply(square_times(high, 96), a), 94)
}

/// Returns the even y of the points with each x, or `None` if no point has this x.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn even_ys(xs: &[Field]) -> Vec<Option<Field>> {
    let mut ys = Vec::with_capacity(xs.len());
    for xs in xs.chunks(PARALLEL_VECTORS * LANES) {
        if xs.len() > LANES {
            push_even_ys::<PARALLEL_VECTORS>(xs, &mut ys);
        } else {
            push_even_ys::<1>(xs, &mut ys);
        }
    }
    ys
}

/// Like [`even_ys`], for up to `N` vectors.
#[target_feature(enable = "avx512f,avx512ifma")]
fn push_even_ys<const N: usize>(xs: &[Field], ys: &mut Vec<Option<Field>>) {
    let mut squares = [Fields::zero(); N];
    for (square, xs) in squares.iter_mut().zip(xs.chunks(LANES)) {
        let mut lanes = [Field::ZERO; LANES];
        lanes[..xs.len()].copy_from_slice(xs);
        *square = square_of_y(&Fields::from_fields(&lanes));
    }
    let roots = root_candidates(&squares);
    for ((square, root), xs) in squares.iter().zip(&roots).zip(xs.chunks(LANES)) {
        let fits = root.square().subtract::<2>(square).are_zero();
        let even = root.select_lanes(&root.negate(), root.are_odd()).to_fields();
        ys.extend((0..xs.len()).map(|lane| (fits >> lane & 1 == 1).then_some(even[lane])));
    }
}
