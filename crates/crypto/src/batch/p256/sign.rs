//! Signs many messages with ECDSA keys on P-256 (FIPS 186-4, section 6.4). The signatures share the
//! inversions of their nonces and of the coordinates of their points, whatever their keys are.
//!
//! # Nonces
//! Each nonce is that of RFC 6979 with 32 fresh random octets as additional input (section 3.6): a
//! hash of the key, the message and the random octets. If the randomness fails or repeats, the
//! nonces are still those of the RFC, which differ for different messages. With working randomness,
//! a fault that is induced while one message is signed twice does not meet the same nonce twice.
//! From two such signatures, the key could be calculated.
//!
//! # Time
//! Neither the sequence of operations nor any memory address depends on the key or the nonces. The
//! only exception is a multiplication in which two sums are equal, which happens for a few nonces
//! in 2²⁵⁶; the caller then uses the single signature.

use zeroize::Zeroizing;

use crate::hash::sha256;
use crate::p256::{Affine, Engine, MontgomeryScalar, Scalar, SecretWorkspace, nonce_of_digest};

/// Length of the random octets for each nonce.
const RANDOM_OCTETS: usize = 32;

/// Number of signatures that are processed together. Their points have 208 KiB.
pub(crate) const MAX_GROUP: usize = 64;

/// Length of a signature in octets: r and s.
const SIGNATURE_OCTETS: usize = 64;

/// A private key for signing in batches. The scalar is wiped on drop.
pub(crate) struct BatchKey(Zeroizing<Scalar>);

impl BatchKey {
    /// Reads the scalar from 32 big-endian octets. Returns `None` if it is 0 or not below the
    /// order.
    pub(crate) fn new(octets: &[u8]) -> Option<Self> {
        let scalar = Zeroizing::new(Scalar::from_octets(octets.try_into().ok()?)?);
        (*scalar != Scalar::ZERO).then_some(Self(scalar))
    }

    /// Returns r and s of one signature: the x-coordinate of the nonce's point modulo the order,
    /// and (e + r·d)/k. Returns `None` if one of them is 0, which happens for a few nonces in 2²⁵⁶.
    fn finish(&self, digest: Scalar, point: &Affine, inverse: &MontgomeryScalar) -> Option<[Scalar; 2]> {
        let r = Scalar::from_octets_reduced(&point.x().to_octets());
        let sum = Zeroizing::new(digest.add(self.0.multiply(r)));
        let s = inverse.multiply_plain(*sum);
        (r != Scalar::ZERO && s != Scalar::ZERO).then_some([r, s])
    }
}

/// A key and the message to sign with it.
pub(crate) type KeyedMessage<'a> = (&'a BatchKey, &'a [u8]);

/// Appends a signature for each of up to [`MAX_GROUP`] messages, with randomness of the operating
/// system. Returns `None` and leaves `out` unchanged if the library fails or the caller must use the
/// single signature.
pub(crate) fn sign(
    messages: &[KeyedMessage<'_>],
    workspace: &mut SecretWorkspace,
    out: &mut Vec<u8>,
) -> Option<()> {
    let mut random = Zeroizing::new([0; MAX_GROUP * RANDOM_OCTETS]);
    let random = random.get_mut(..messages.len() * RANDOM_OCTETS)?;
    getrandom::fill(random).ok()?;
    let extra: Vec<&[u8]> = random.chunks_exact(RANDOM_OCTETS).collect();
    sign_with(messages, &extra, workspace, out)
}

/// Like [`sign`], with the given additional input for each nonce.
fn sign_with(
    messages: &[KeyedMessage<'_>],
    extra: &[&[u8]],
    workspace: &mut SecretWorkspace,
    out: &mut Vec<u8>,
) -> Option<()> {
    let digest = |(_, message): &KeyedMessage<'_>| Scalar::from_octets_reduced(&sha256(message));
    let digests: Vec<Scalar> = messages.iter().map(digest).collect();
    let mut nonces = Zeroizing::new(Vec::with_capacity(messages.len()));
    for (((key, _), digest), extra) in messages.iter().zip(&digests).zip(extra) {
        nonces.push(*nonce_of_digest(&key.0, *digest, extra)?);
    }
    let points = Engine::detect().multiply_base_all(&nonces, workspace)?;
    let mut inverses: Zeroizing<Vec<MontgomeryScalar>> =
        Zeroizing::new(nonces.iter().map(|nonce| MontgomeryScalar::new(*nonce)).collect());
    MontgomeryScalar::invert_all(&mut inverses);
    let parts: Vec<[Scalar; 2]> = messages
        .iter()
        .zip(&digests)
        .zip(points.iter().zip(&*inverses))
        .map(|(((key, _), digest), (point, inverse))| key.finish(*digest, point, inverse))
        .collect::<Option<_>>()?;
    out.reserve(parts.len() * SIGNATURE_OCTETS);
    out.extend(parts.iter().flatten().flat_map(|part| part.to_octets()));
    Some(())
}

#[cfg(test)]
mod tests;
