//! The expanded form of a public key: the values that are the same in each verification. They take much longer
//! to compute than the rest of a verification.

use super::arithmetic::Q;
use super::kernel::Kernel;
use super::ntt::{self, COEFFICIENTS, Polynomial};
use super::seeds::{self, BLOCK_OCTETS};
use super::signature::{COLUMNS, ROWS};
use crate::hash::{LibraryFailed, shake128, shake256};

/// Length of ρ, the common part of the seeds of the matrix A, in octets.
const RHO_OCTETS: usize = 32;
/// Length of tr, the hash of the public key, in octets.
const KEY_HASH_OCTETS: usize = 64;
/// Octets of an encoded polynomial of t1: 10 bits for each coefficient.
const POLYNOMIAL_OCTETS: usize = COEFFICIENTS * 10 / 8;
/// Length of a public key in octets.
pub(super) const PUBLIC_KEY_OCTETS: usize = RHO_OCTETS + ROWS * POLYNOMIAL_OCTETS;
/// Number of bits of t that a public key omits: d (FIPS 204, table 1).
const DROPPED_BITS: u32 = 13;

/// A public key in expanded form.
pub(super) struct ExpandedKey {
    /// tr, the hash of the public key.
    hash: [u8; KEY_HASH_OCTETS],
    /// For each row, the polynomials of A, and −t1·2^d. All are transformed.
    rows: [[Polynomial; COLUMNS + 1]; ROWS],
}

impl ExpandedKey {
    /// Expands a public key (FIPS 204, algorithm 8, lines 1, 5 and 6).
    ///
    /// # Errors
    /// If the library has no memory for the state of SHAKE.
    pub(super) fn expand(kernel: Kernel, octets: &[u8; PUBLIC_KEY_OCTETS]) -> Result<Self, LibraryFailed> {
        let mut key = Self {
            hash: [0; KEY_HASH_OCTETS],
            rows: [const { [const { Polynomial::ZERO }; COLUMNS + 1] }; ROWS],
        };
        shake256(octets, &mut key.hash)?;
        let (rho, encoded) = octets.split_at(RHO_OCTETS);
        let (encoded, _) = encoded.as_chunks::<POLYNOMIAL_OCTETS>();
        for ((row, polynomials), encoded) in (0..).zip(&mut key.rows).zip(encoded) {
            sample_row(rho, row, &mut polynomials[..COLUMNS])?;
            let last = &mut polynomials[COLUMNS];
            decode_negated(encoded, last);
            kernel.forward(last);
            last.coefficients_mut().iter_mut().for_each(|coefficient| *coefficient %= Q);
        }
        Ok(key)
    }

    /// Returns the representative μ of a message: pure ML-DSA with an empty context (algorithm 3, line 5;
    /// algorithm 8, line 7).
    ///
    /// # Errors
    /// If the library has no memory for the state of SHAKE.
    pub(super) fn represent(&self, message: &[u8]) -> Result<[u8; 64], LibraryFailed> {
        let mut representative = [0; 64];
        shake256(&[&self.hash[..], &[0, 0], message].concat(), &mut representative)?;
        Ok(representative)
    }

    /// Returns the polynomials of each row: those of A, and −t1·2^d.
    pub(super) fn rows(&self) -> &[[Polynomial; COLUMNS + 1]; ROWS] {
        &self.rows
    }
}

/// Samples the polynomials of a row of A (ExpandA, algorithm 32).
fn sample_row(rho: &[u8], row: u8, polynomials: &mut [Polynomial]) -> Result<(), LibraryFailed> {
    let mut seeds = [[0; seeds::SEED_OCTETS]; COLUMNS];
    for (column, seed) in (0..).zip(&mut seeds) {
        seed[..RHO_OCTETS].copy_from_slice(rho);
        seed[RHO_OCTETS..].copy_from_slice(&[column, row]);
    }
    let outputs = seeds::expand(&seeds)?;
    for ((seed, output), polynomial) in seeds.iter().zip(&outputs).zip(polynomials) {
        sample_uniform(seed, output, polynomial)?;
        ntt::to_transformed_order(polynomial);
    }
    Ok(())
}

/// Samples a transformed polynomial in the order of FIPS 204 (RejNTTPoly, algorithm 30). `start` is the start of
/// the output of SHAKE128.
fn sample_uniform(seed: &[u8], start: &[u8], polynomial: &mut Polynomial) -> Result<(), LibraryFailed> {
    let mut length = start.len();
    let mut is_complete = fill_uniform(start, polynomial.coefficients_mut());
    // The start is too short in about one of a million cases.
    while !is_complete {
        length += BLOCK_OCTETS;
        let mut longer = vec![0; length];
        shake128(seed, &mut longer)?;
        is_complete = fill_uniform(&longer, polynomial.coefficients_mut());
    }
    Ok(())
}

/// Sets each coefficient to the next 23 bits that are below q (CoeffFromThreeBytes, algorithm 14). Returns
/// whether there are enough octets.
fn fill_uniform(octets: &[u8], coefficients: &mut [i32]) -> bool {
    let (groups, _) = octets.as_chunks::<3>();
    let mut candidates = groups
        .iter()
        .map(|group| i32::from_le_bytes([group[0], group[1], group[2] & 0x7f, 0]))
        .filter(|candidate| *candidate < Q);
    coefficients.iter_mut().all(|coefficient| candidates.next().map(|next| *coefficient = next).is_some())
}

/// Decodes a polynomial of t1 (SimpleBitUnpack, algorithm 18), multiplied by −2^d.
fn decode_negated(encoded: &[u8; POLYNOMIAL_OCTETS], polynomial: &mut Polynomial) {
    let (groups, _) = encoded.as_chunks::<5>();
    let (coefficients, _) = polynomial.coefficients_mut().as_chunks_mut::<4>();
    for (coefficients, group) in coefficients.iter_mut().zip(groups) {
        let bits = u64::from_le_bytes([group[0], group[1], group[2], group[3], group[4], 0, 0, 0]);
        *coefficients =
            std::array::from_fn(|index| -(((bits >> (10 * index)) & 0x3ff) as i32) << DROPPED_BITS);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The result does not depend on the length of the start.
    #[test]
    fn a_start_that_is_too_short_is_continued() {
        let mut octets = [0; 5 * BLOCK_OCTETS];
        shake128(b"seed", &mut octets).unwrap();
        let [mut expected, mut found] = [Polynomial::ZERO, Polynomial::ZERO];
        assert!(fill_uniform(&octets, expected.coefficients_mut()));
        assert!(!fill_uniform(&octets[..BLOCK_OCTETS], found.coefficients_mut()));
        sample_uniform(b"seed", &octets[..BLOCK_OCTETS], &mut found).unwrap();
        assert_eq!(found.rows, expected.rows);
    }
}
