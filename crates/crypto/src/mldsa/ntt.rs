//! Polynomials, and the number-theoretic transform (FIPS 204, section 7.5, algorithms 41 and 42).
//!
//! A polynomial has 32 rows of eight coefficients. In the first five of the eight layers of the transform,
//! each butterfly combines two rows. In the last three layers it would combine lanes of one row. Before
//! these layers, each of the four blocks of eight rows is therefore transposed, and stays so: the rows of
//! a transformed polynomial are those of the transposed blocks ([`to_transformed_order`]).

use super::arithmetic::{Arithmetic, Factor, LANES, Q, Row, add, subtract};

/// Number of coefficients of a polynomial.
pub(super) const COEFFICIENTS: usize = 256;
const ROWS: usize = COEFFICIENTS / LANES;

/// A polynomial, or its transform.
#[derive(Clone)]
#[repr(align(64))]
pub(super) struct Polynomial {
    /// The coefficients: coefficient 8i + j is lane j of row i.
    pub(super) rows: [Row; ROWS],
}

impl Polynomial {
    pub(super) const ZERO: Self = Self { rows: [[0; LANES]; ROWS] };

    /// Returns the coefficients in order.
    pub(super) fn coefficients_mut(&mut self) -> &mut [i32] {
        self.rows.as_flattened_mut()
    }
}

/// Number of layers that combine rows.
const ROW_LAYERS: usize = 5;
const BLOCKS: usize = ROWS / LANES;

/// The factors of the layers, for one direction. In FIPS 204, group g of layer l has the factor `zetas[2^l + g]`.
struct Factors {
    /// Those of the layers that combine rows; the index is that in `zetas`. Index 0 is not used.
    rows: [Factor; 1 << ROW_LAYERS],
    /// Those of the last three layers, for each block: one, two and four factors for the groups of a
    /// lane. Lane i of block b belongs to the group 8b + i of the sixth layer.
    lanes: [[Factor; 7]; BLOCKS],
}

static FORWARD: Factors = Factors::new(false);
static INVERSE: Factors = Factors::new(true);

impl Factors {
    const fn new(is_inverse: bool) -> Self {
        let mut factors =
            Self { rows: [Factor::new(0); 1 << ROW_LAYERS], lanes: [[Factor::new(0); 7]; BLOCKS] };
        let mut index = 0;
        while index < 1 << ROW_LAYERS {
            factors.rows[index] = Factor::new(zeta(index, is_inverse));
            index += 1;
        }
        let mut position = 0;
        while position < BLOCKS * LANES * 7 {
            let (group, number) = (position / 7, position % 7);
            // The layer of the sub-groups: 0, 1, 1, 2, 2, 2, 2.
            let layer = (number + 1).ilog2() as usize;
            let index = ((32 + group) << layer) + number + 1 - (1 << layer);
            let factor = Factor::new(zeta(index, is_inverse));
            let lanes = &mut factors.lanes[group / LANES][number];
            lanes.value[group % LANES] = factor.value[0];
            lanes.quotient[group % LANES] = factor.quotient[0];
            position += 1;
        }
        factors
    }
}

/// Returns `zetas[index]` of FIPS 204, appendix B: ζ^BitRev8(index) mod q with ζ = 1753; or its inverse.
const fn zeta(index: usize, is_inverse: bool) -> i64 {
    let exponent = (index as u8).reverse_bits() as u32;
    // ζ is a root of unity of order 512.
    let mut exponent = if is_inverse { 512 - exponent } else { exponent };
    let (mut power, mut square) = (1, 1753);
    while exponent > 0 {
        if exponent % 2 == 1 {
            power = power * square % Q as i64;
        }
        square = square * square % Q as i64;
        exponent /= 2;
    }
    power
}

/// Transforms a polynomial (algorithm 41). Adds at most 8q to the absolute values of the coefficients.
#[inline(always)]
pub(super) fn forward<A: Arithmetic>(arithmetic: A, polynomial: &mut Polynomial) {
    let butterfly = |first: &mut Row, second: &mut Row, factor: &Factor| {
        let product = arithmetic.multiply(second, factor);
        *second = subtract(first, &product);
        *first = add(first, &product);
    };
    for layer in 0..ROW_LAYERS {
        let factors = &FORWARD.rows[1 << layer..];
        for_each_pair(&mut polynomial.rows, ROWS >> layer, factors, butterfly);
    }
    let (blocks, _) = polynomial.rows.as_chunks_mut::<LANES>();
    for (block, factors) in blocks.iter_mut().zip(&FORWARD.lanes) {
        arithmetic.transpose(block);
        for_each_pair(block, 8, &factors[..1], butterfly);
        for_each_pair(block, 4, &factors[1..3], butterfly);
        for_each_pair(block, 2, &factors[3..], butterfly);
    }
}

/// Returns a polynomial from its transform (algorithm 42), multiplied by R.
#[inline(always)]
pub(super) fn inverse<A: Arithmetic>(arithmetic: A, polynomial: &mut Polynomial) {
    // R / 256: each layer doubles the coefficients, whose absolute values stay below 256·q < 2^31.
    const SCALE: Factor = Factor::new((1 << 24) % Q as i64);
    let butterfly = |first: &mut Row, second: &mut Row, factor: &Factor| {
        let difference = subtract(first, second);
        *first = add(first, second);
        *second = arithmetic.multiply(&difference, factor);
    };
    let (blocks, _) = polynomial.rows.as_chunks_mut::<LANES>();
    for (block, factors) in blocks.iter_mut().zip(&INVERSE.lanes) {
        for_each_pair(block, 2, &factors[3..], butterfly);
        for_each_pair(block, 4, &factors[1..3], butterfly);
        for_each_pair(block, 8, &factors[..1], butterfly);
        arithmetic.transpose(block);
    }
    for layer in (0..ROW_LAYERS).rev() {
        let factors = &INVERSE.rows[1 << layer..];
        for_each_pair(&mut polynomial.rows, ROWS >> layer, factors, butterfly);
    }
    for row in &mut polynomial.rows {
        *row = arithmetic.multiply(row, &SCALE);
    }
}

/// Splits the rows into groups of `group` rows, and calls `butterfly` for each pair of a row in the first
/// half of a group and the corresponding row in the second half, with the factor of the group.
#[inline(always)]
fn for_each_pair(
    rows: &mut [Row],
    group: usize,
    factors: &[Factor],
    butterfly: impl Fn(&mut Row, &mut Row, &Factor),
) {
    for (rows, factor) in rows.chunks_exact_mut(group).zip(factors) {
        let (first, second) = rows.split_at_mut(group / 2);
        for (first, second) in first.iter_mut().zip(second) {
            butterfly(first, second, factor);
        }
    }
}

/// Reorders coefficients in the order of FIPS 204 as [`forward`] does.
pub(super) fn to_transformed_order(polynomial: &mut Polynomial) {
    let (blocks, _) = polynomial.rows.as_chunks_mut::<LANES>();
    for block in blocks {
        super::arithmetic::Portable.transpose(block);
    }
}

#[cfg(test)]
mod tests {
    use super::super::kernel::Kernel;
    use super::*;

    fn example() -> Polynomial {
        let mut polynomial = Polynomial::ZERO;
        for (index, coefficient) in (0..).zip(polynomial.coefficients_mut()) {
            *coefficient = (index * 7919 % 262_143) - 131_071;
        }
        polynomial
    }

    /// The definition: element i of the transform is the value of the polynomial at ζ^(2·BitRev8(i) + 1) (FIPS
    /// 204, section 7.5).
    fn evaluate(polynomial: &mut Polynomial, index: usize) -> i64 {
        let root = zeta(index, false).pow(2) % i64::from(Q) * 1753 % i64::from(Q);
        let coefficients = polynomial.coefficients_mut().iter().rev();
        coefficients.fold(0, |value, coefficient| (value * root + i64::from(*coefficient)) % i64::from(Q))
    }

    #[test]
    fn the_transform_evaluates_the_polynomial() {
        let mut expected = Polynomial::ZERO;
        for (index, coefficient) in expected.coefficients_mut().iter_mut().enumerate() {
            *coefficient = evaluate(&mut example(), index) as i32;
        }
        to_transformed_order(&mut expected);
        for kernel in Kernel::all() {
            let mut found = example();
            kernel.forward(&mut found);
            for (found, expected) in found.coefficients_mut().iter().zip(expected.coefficients_mut()) {
                assert_eq!((*found - *expected) % Q, 0, "{:?}", kernel);
            }
        }
    }

    #[test]
    fn the_inverse_transform_multiplies_by_r() {
        let (mut before, mut polynomial) = (example(), example());
        forward(super::super::arithmetic::Portable, &mut polynomial);
        polynomial.coefficients_mut().iter_mut().for_each(|coefficient| *coefficient %= Q);
        inverse(super::super::arithmetic::Portable, &mut polynomial);
        for (found, before) in polynomial.coefficients_mut().iter().zip(before.coefficients_mut()) {
            assert_eq!((i64::from(*found) - (i64::from(*before) << 32)) % i64::from(Q), 0);
        }
    }
}
