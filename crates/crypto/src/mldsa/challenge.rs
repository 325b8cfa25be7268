//! The challenge c of a signature: SampleInBall (FIPS 204, algorithm 29).

use super::ntt::{COEFFICIENTS, Polynomial};
use super::signature::{HASH_OCTETS, TAU};
use crate::hash::{LibraryFailed, shake256};

/// Octets of a block of SHAKE256.
const BLOCK_OCTETS: usize = 136;

/// Returns the polynomial with 39 coefficients ±1 that a hash of a commitment determines.
///
/// # Errors
/// If the library has no memory for the state of SHAKE256.
pub(super) fn sample_in_ball(hash: &[u8; HASH_OCTETS]) -> Result<Polynomial, LibraryFailed> {
    let mut octets = vec![0; BLOCK_OCTETS];
    loop {
        shake256(hash, &mut octets)?;
        if let Some(challenge) = sample_from(&octets) {
            return Ok(challenge);
        }
        // The start of a longer output is the same.
        octets.resize(octets.len() + BLOCK_OCTETS, 0);
    }
}

/// Returns the polynomial, or `None` if more octets are needed.
fn sample_from(octets: &[u8]) -> Option<Polynomial> {
    let (signs, positions) = octets.split_first_chunk()?;
    let mut signs = u64::from_le_bytes(*signs);
    let mut positions = positions.iter().map(|octet| usize::from(*octet));
    let mut challenge = Polynomial::ZERO;
    let coefficients = challenge.coefficients_mut();
    for index in COEFFICIENTS - TAU..COEFFICIENTS {
        let position = positions.find(|position| *position <= index)?;
        coefficients[index] = coefficients[position];
        coefficients[position] = if signs & 1 == 0 { 1 } else { -1 };
        signs >>= 1;
    }
    Some(challenge)
}
