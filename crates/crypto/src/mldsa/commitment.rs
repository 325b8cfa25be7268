//! The commitment that a signature must have been made for: w1Encode(UseHint(h, A·z − c·t1·2^d)) (FIPS 204,
//! algorithm 8, lines 9 and 10).

use super::arithmetic::{Arithmetic, LANES, Q, Row, row};
use super::expanded::ExpandedKey;
use super::ntt::{self, COEFFICIENTS, Polynomial};
use super::signature::{COLUMNS, Hints, RESPONSE_OCTETS, ROWS, decode_response};

/// γ2, half of the width of the ranges that UseHint and Decompose distinguish (FIPS 204, table 1).
const GAMMA2: i32 = (Q - 1) / 88;
/// Number of these ranges.
const RANGES: i32 = 44;
/// Octets of an encoded polynomial: 6 bits for each coefficient.
const POLYNOMIAL_OCTETS: usize = COEFFICIENTS * 6 / 8;

/// Length of an encoded commitment.
pub(super) const COMMITMENT_OCTETS: usize = ROWS * POLYNOMIAL_OCTETS;

/// An encoded commitment.
pub(super) type Commitment = [u8; COMMITMENT_OCTETS];

/// The values from which a commitment is computed.
pub(super) struct Inputs<'a> {
    /// The public key.
    pub(super) key: &'a ExpandedKey,
    /// The encoding of z in the signature.
    pub(super) response: &'a [u8; RESPONSE_OCTETS],
    /// The challenge c.
    pub(super) challenge: &'a Polynomial,
    /// The hints h.
    pub(super) hints: &'a Hints,
}

/// Returns the commitment, or `None` if a coefficient of z is too large.
#[inline(always)]
pub(super) fn reconstruct<A: Arithmetic>(arithmetic: A, inputs: &Inputs<'_>) -> Option<Commitment> {
    let response = decode_response(inputs.response)?;
    let mut factors: [Polynomial; COLUMNS + 1] = [const { Polynomial::ZERO }; COLUMNS + 1];
    factors[..COLUMNS].clone_from_slice(&response);
    factors[COLUMNS].clone_from(inputs.challenge);
    for factor in &mut factors {
        ntt::forward(arithmetic, factor);
    }
    let mut commitment = [0; COMMITMENT_OCTETS];
    let (encoded, _) = commitment.as_chunks_mut::<POLYNOMIAL_OCTETS>();
    for ((columns, hints), encoded) in inputs.key.rows().iter().zip(inputs.hints).zip(encoded) {
        let mut product = multiply(arithmetic, columns, &factors);
        ntt::inverse(arithmetic, &mut product);
        use_hints(&product, hints, encoded);
    }
    Some(commitment)
}

/// Returns the product of a row of the matrix and a vector, all transformed. The product is divided by R.
#[inline(always)]
fn multiply<A: Arithmetic>(
    arithmetic: A,
    columns: &[Polynomial; COLUMNS + 1],
    factors: &[Polynomial; COLUMNS + 1],
) -> Polynomial {
    let mut product = Polynomial::ZERO;
    for (index, row) in product.rows.iter_mut().enumerate() {
        // The entries of the key are below q, and the others below 9q. 5·9·q² is less than q·2^31.
        let left = columns.each_ref().map(|polynomial| &polynomial.rows[index]);
        let right = factors.each_ref().map(|polynomial| &polynomial.rows[index]);
        *row = arithmetic.sum_of_products(left, right);
    }
    product
}

/// Writes the encoding of a polynomial with the hints applied: UseHint (algorithm 40) and SimpleBitPack
/// (algorithm 16) with 6 bits for each coefficient.
#[inline(always)]
fn use_hints(polynomial: &Polynomial, hints: &[u8; COEFFICIENTS], encoded: &mut [u8; POLYNOMIAL_OCTETS]) {
    let (hints, _) = hints.as_chunks::<LANES>();
    let (encoded, _) = encoded.as_chunks_mut::<6>();
    for ((row, hints), encoded) in polynomial.rows.iter().zip(hints).zip(encoded) {
        *encoded = pack(use_hint(row, hints));
    }
}

/// UseHint for eight coefficients. A hint is 0 or 1.
#[inline(always)]
fn use_hint(coefficients: &Row, hints: &[u8; LANES]) -> Row {
    row(|lane| {
        let coefficient = coefficients[lane];
        let coefficient = coefficient + if coefficient < 0 { Q } else { 0 };
        // Decompose (algorithm 36): the number of the range of 2·γ2 values, and the offset from its middle. The
        // last range is that of the values from q − γ2 on, and belongs to range 0.
        let range = (coefficient + GAMMA2 - 1) as u32 / (2 * GAMMA2) as u32;
        let range = range as i32;
        let offset = coefficient - range * (2 * GAMMA2);
        let range = if range == RANGES { 0 } else { range };
        let hint = i32::from(hints[lane]);
        let range = range + if offset > 0 { hint } else { -hint };
        if range < 0 {
            RANGES - 1
        } else if range == RANGES {
            0
        } else {
            range
        }
    })
}

/// Packs eight values of 6 bits.
#[inline(always)]
fn pack(values: Row) -> [u8; 6] {
    // Two values of 6 bits become one of 12 bits, two of these one of 24 bits, and two of these the result.
    let octets = u64::from_le_bytes(values.map(|value| value as u8));
    let pairs = (octets & 0x003f_003f_003f_003f) | ((octets & 0x3f00_3f00_3f00_3f00) >> 2);
    let quadruples = (pairs & 0x0fff_0000_0fff) | ((pairs & 0x0fff_0000_0fff_0000) >> 4);
    let all = (quadruples & 0x00ff_ffff) | ((quadruples & 0x00ff_ffff_0000_0000) >> 8);
    std::array::from_fn(|index| all.to_le_bytes()[index])
}

#[cfg(test)]
mod tests {
    use super::*;

    /// UseHint as in FIPS 204, algorithms 36 and 40, with the remainder `mod±`.
    fn expected(coefficient: i32, hint: u8) -> i32 {
        let mut offset = coefficient % (2 * GAMMA2);
        if offset > GAMMA2 {
            offset -= 2 * GAMMA2;
        }
        let mut range = (coefficient - offset) / (2 * GAMMA2);
        if coefficient - offset == Q - 1 {
            (range, offset) = (0, offset - 1);
        }
        match (hint, offset > 0) {
            (0, _) => range,
            (_, true) => (range + 1).rem_euclid(RANGES),
            (_, false) => (range - 1).rem_euclid(RANGES),
        }
    }

    #[test]
    fn hints_of_all_coefficients() {
        for first in (1 - Q..Q).step_by(LANES) {
            let coefficients = row(|lane| (first + lane as i32).min(Q - 1));
            for hint in [0, 1] {
                let found = use_hint(&coefficients, &[hint; LANES]);
                assert_eq!(found, row(|lane| expected(coefficients[lane].rem_euclid(Q), hint)), "{first}");
            }
        }
    }

    #[test]
    fn packed_values_are_in_the_order_of_their_bits() {
        let values = [43, 0, 1, 2, 42, 21, 63, 32];
        let packed = pack(values);
        for (index, value) in values.into_iter().enumerate() {
            for bit in 0..6 {
                let at = 6 * index + bit;
                assert_eq!(packed[at / 8] >> (at % 8) & 1, (value >> bit & 1) as u8, "{index} {bit}");
            }
        }
    }
}
