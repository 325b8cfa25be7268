//! Decoding of signatures (FIPS 204, algorithm 27): the hash of the commitment, the vector z, and the
//! hints. All is rejected that is not the encoding of a signature.

use super::ntt::{COEFFICIENTS, Polynomial};

/// Number of rows of the matrix A, and of polynomials of the commitment: k of FIPS 204, table 1.
pub(super) const ROWS: usize = 4;
/// Number of columns of the matrix A, and of polynomials of z: l.
pub(super) const COLUMNS: usize = 4;
/// Length of the hash of the commitment in octets: λ/4.
pub(super) const HASH_OCTETS: usize = 32;
/// Number of coefficients ±1 of the challenge: τ.
pub(super) const TAU: usize = 39;
/// Bound of the coefficients of the mask y, which z hides the private key with: γ1.
const GAMMA1: i32 = 1 << 17;
/// Coefficients of z must be below this bound: γ1 − β, where β = τ·η and η = 2.
const RESPONSE_BOUND: u32 = GAMMA1 as u32 - 2 * TAU as u32;
/// Maximum number of hints: ω.
const MAXIMUM_HINTS: usize = 80;

/// Octets of an encoded polynomial of z: 18 bits for each coefficient.
const POLYNOMIAL_OCTETS: usize = COEFFICIENTS * 18 / 8;
/// Octets of the encoded z.
pub(super) const RESPONSE_OCTETS: usize = COLUMNS * POLYNOMIAL_OCTETS;
/// Octets of the encoded hints: their positions, and the number of hints up to each polynomial.
const HINTS_OCTETS: usize = MAXIMUM_HINTS + ROWS;
/// Octets of a signature.
pub(super) const SIGNATURE_OCTETS: usize = HASH_OCTETS + RESPONSE_OCTETS + HINTS_OCTETS;

/// The hints: 1 for each coefficient with a hint, otherwise 0.
pub(super) type Hints = [[u8; COEFFICIENTS]; ROWS];

/// The parts of a signature.
pub(super) struct Parts<'a> {
    /// c̃, the hash of the commitment.
    pub(super) hash: &'a [u8; HASH_OCTETS],
    /// The encoded z; see [`decode_response`].
    pub(super) response: &'a [u8; RESPONSE_OCTETS],
    /// The hints h.
    pub(super) hints: Hints,
}

impl<'a> Parts<'a> {
    /// Splits a signature and decodes the hints. Returns `None` if the length or the hints are not valid.
    pub(super) fn decode(signature: &'a [u8]) -> Option<Self> {
        let (hash, rest) = signature.split_first_chunk()?;
        let (response, rest) = rest.split_first_chunk()?;
        Some(Self { hash, response, hints: decode_hints(rest.try_into().ok()?)? })
    }
}

/// Decodes the hints (HintBitUnpack, algorithm 21). A set of hints has one encoding, and all others are
/// rejected: the positions of each polynomial are in ascending order, and octets that are not used are zero.
fn decode_hints(encoded: &[u8; HINTS_OCTETS]) -> Option<Hints> {
    let (positions, ends) = encoded.split_at(MAXIMUM_HINTS);
    let mut hints = [[0; COEFFICIENTS]; ROWS];
    let mut start = 0;
    for (hints, end) in hints.iter_mut().zip(ends) {
        let end = usize::from(*end);
        // `None` if the end is before the start, or above the maximum.
        let positions = positions.get(start..end)?;
        if !positions.is_sorted_by(|first, second| first < second) {
            return None;
        }
        for position in positions {
            hints[usize::from(*position)] = 1;
        }
        start = end;
    }
    positions[start..].iter().all(|octet| *octet == 0).then_some(hints)
}

/// Decodes z (BitUnpack, algorithm 19). Returns `None` if a coefficient is γ1 − β or more in absolute value
/// (algorithm 8, line 13).
#[inline(always)]
pub(super) fn decode_response(encoded: &[u8; RESPONSE_OCTETS]) -> Option<[Polynomial; COLUMNS]> {
    let mut response = [const { Polynomial::ZERO }; COLUMNS];
    let (encoded, _) = encoded.as_chunks::<POLYNOMIAL_OCTETS>();
    let mut is_short = true;
    for (polynomial, encoded) in response.iter_mut().zip(encoded) {
        let (groups, _) = encoded.as_chunks::<9>();
        let (coefficients, _) = polynomial.coefficients_mut().as_chunks_mut::<4>();
        for (coefficients, group) in coefficients.iter_mut().zip(groups) {
            *coefficients = unpack(group).map(|value| GAMMA1 - value);
            is_short &= coefficients.iter().all(|coefficient| coefficient.unsigned_abs() < RESPONSE_BOUND);
        }
    }
    is_short.then_some(response)
}

/// Returns four values of 18 bits.
#[inline(always)]
fn unpack(group: &[u8; 9]) -> [i32; 4] {
    let word = |at: usize| i32::from_le_bytes([group[at], group[at + 1], group[at + 2], group[at + 3]]);
    [word(0), word(2) >> 2, word(4) >> 4, word(5) >> 14].map(|value| value & 0x3_ffff)
}
