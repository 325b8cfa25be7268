//! Nonces of RFC 6979, section 3.2, with SHA-256.

use zeroize::Zeroizing;

use super::scalar::Scalar;
use crate::hash::hmac_sha256;

/// Octets of what may go into a nonce besides the key and the digest.
const EXTRA: usize = 32;

/// V, an octet, the secret scalar, the digest, and what is extra.
const MESSAGE: usize = 32 + 1 + 32 + 32 + EXTRA;

/// A nonce from 1 to below the order: a function of the secret, of the digest as a scalar, and of `extra`, which is up to
/// 32 octets (section 3.6: empty, or randomness). No number is more likely than another: one that is not below the order
/// is thrown away. `None` where the library fails.
pub(crate) fn nonce_of_digest(secret: &Scalar, digest: Scalar, extra: &[u8]) -> Option<Zeroizing<Scalar>> {
    let secret = Zeroizing::new(secret.to_octets());
    let mut value = Zeroizing::new([1; 32]);
    let mut key = Zeroizing::new([0; 32]);
    let mut message = Zeroizing::new([0; MESSAGE]);
    let length = MESSAGE - EXTRA + extra.len();
    message[33..65].copy_from_slice(&*secret);
    message[65..97].copy_from_slice(&digest.to_octets());
    message.get_mut(97..length)?.copy_from_slice(extra);
    for round in [0, 1] {
        message[..32].copy_from_slice(&*value);
        message[32] = round;
        key = hmac_sha256(&key, &message[..length])?;
        value = hmac_sha256(&key, &*value)?;
    }
    loop {
        value = hmac_sha256(&key, &*value)?;
        match Scalar::from_octets(&value) {
            Some(nonce) if nonce != Scalar::ZERO => return Some(Zeroizing::new(nonce)),
            // One in 2³².
            _ => {}
        }
        message[..32].copy_from_slice(&*value);
        message[32] = 0;
        key = hmac_sha256(&key, &message[..33])?;
        value = hmac_sha256(&key, &*value)?;
    }
}
