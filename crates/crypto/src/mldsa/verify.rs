//! Verification of signatures: ML-DSA.Verify and ML-DSA.Verify_internal (FIPS 204, algorithms 3 and 8), pure,
//! with an empty context.

use super::challenge::sample_in_ball;
use super::commitment::{COMMITMENT_OCTETS, Inputs};
use super::expanded::ExpandedKey;
use super::kernel::Kernel;
use super::signature::{HASH_OCTETS, Parts};
use crate::hash::{LibraryFailed, shake256};

/// Returns whether a signature over `message` is valid.
///
/// # Errors
/// If the library has no memory for the state of SHAKE.
pub(super) fn verify(
    kernel: Kernel,
    key: &ExpandedKey,
    message: &[u8],
    signature: &[u8],
) -> Result<bool, LibraryFailed> {
    let Some(Parts { hash, response, hints }) = Parts::decode(signature) else {
        return Ok(false);
    };
    let challenge = sample_in_ball(hash)?;
    let inputs = Inputs { key, response, challenge: &challenge, hints: &hints };
    let Some(commitment) = kernel.reconstruct(&inputs) else {
        return Ok(false);
    };
    let mut input = [0; 64 + COMMITMENT_OCTETS];
    let (representative, encoded) = input.split_at_mut(64);
    representative.copy_from_slice(&key.represent(message)?);
    encoded.copy_from_slice(&commitment);
    let mut expected = [0; HASH_OCTETS];
    shake256(&input, &mut expected)?;
    Ok(expected == *hash)
}
