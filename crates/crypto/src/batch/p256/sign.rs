//! Many ECDSA signatures by one key on P-256 (FIPS 186-4, section 6.4), which share the inversions of their nonces and of
//! the points' coordinates.
//!
//! # Nonces
//! Each is that of RFC 6979 with 32 fresh random octets as additional input (section 3.6): a hash of the key, the message and
//! the randomness. Should the randomness fail or repeat, nonces are those of the RFC, of which no two messages have the
//! same; and as long as it does not, a fault that is induced while one message is signed twice does not meet the same nonce
//! twice, from which the key could be calculated.
//!
//! # Time
//! What is done does not depend on the key and the nonces, and no address does. What it shows is where two sums of a
//! multiplication are equal, which happens for a few nonces in 2²⁵⁶; the single signature then takes over.

use zeroize::Zeroizing;

use crate::hash::sha256;
use crate::p256::{Affine, Engine, Scalar, ScalarForm, SecretWorkspace, nonce_of_digest};

/// Octets of randomness for each nonce.
const RANDOM: usize = 32;

/// Signatures that are worked on together: their points have 208 KiB.
pub(crate) const GROUP: usize = 64;

/// Octets of a signature: r and s.
const OCTETS: usize = 64;

/// A private key, for signing in batches. The scalar is wiped when it is dropped.
pub(crate) struct BatchKey(Zeroizing<Scalar>);

impl BatchKey {
    /// Takes the scalar, 32 octets, big-endian. `None` where it is not from 1 to below the order.
    pub(crate) fn new(octets: &[u8]) -> Option<Self> {
        let scalar = Zeroizing::new(Scalar::from_octets(octets.try_into().ok()?)?);
        (*scalar != Scalar::ZERO).then_some(Self(scalar))
    }

    /// Appends a signature for each of up to [`GROUP`] messages, with randomness of the system. `None`, with `out` as before, where the library fails or the
    /// single signature has to take over.
    pub(crate) fn sign(
        &self,
        messages: &[&[u8]],
        workspace: &mut SecretWorkspace,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let mut random = Zeroizing::new([0; GROUP * RANDOM]);
        let random = random.get_mut(..messages.len() * RANDOM)?;
        getrandom::fill(random).ok()?;
        let extra: Vec<&[u8]> = random.chunks_exact(RANDOM).collect();
        self.sign_with(messages, &extra, workspace, out)
    }

    /// As [`BatchKey::sign`], with the additional input of each nonce.
    fn sign_with(
        &self,
        messages: &[&[u8]],
        extra: &[&[u8]],
        workspace: &mut SecretWorkspace,
        out: &mut Vec<u8>,
    ) -> Option<()> {
        let digest = |message: &&[u8]| Scalar::from_octets_reduced(&sha256(message));
        let digests: Vec<Scalar> = messages.iter().map(digest).collect();
        let mut nonces = Zeroizing::new(Vec::with_capacity(messages.len()));
        for (digest, extra) in digests.iter().zip(extra) {
            nonces.push(*nonce_of_digest(&self.0, *digest, extra)?);
        }
        let points = Engine::detect().multiply_base_all(&nonces, workspace)?;
        let mut inverses: Zeroizing<Vec<ScalarForm>> =
            Zeroizing::new(nonces.iter().map(|nonce| ScalarForm::new(*nonce)).collect());
        ScalarForm::invert_all(&mut inverses);
        let parts: Vec<[Scalar; 2]> = digests
            .iter()
            .zip(points)
            .zip(&*inverses)
            .map(|((digest, point), inverse)| self.finish(*digest, point, inverse))
            .collect::<Option<_>>()?;
        out.reserve(parts.len() * OCTETS);
        out.extend(parts.iter().flatten().flat_map(|part| part.to_octets()));
        Some(())
    }

    /// r and s of one signature: x of the nonce's point modulo the order, and (e + r·d)/k. `None` where one is 0, which
    /// happens for a few nonces in 2²⁵⁶.
    fn finish(&self, digest: Scalar, point: &Affine, inverse: &ScalarForm) -> Option<[Scalar; 2]> {
        let r = Scalar::from_octets_reduced(&point.x().to_octets());
        let sum = Zeroizing::new(digest.add(self.0.multiply(r)));
        let s = inverse.multiply_plain(*sum);
        (r != Scalar::ZERO && s != Scalar::ZERO).then_some([r, s])
    }
}

#[cfg(test)]
mod tests;
