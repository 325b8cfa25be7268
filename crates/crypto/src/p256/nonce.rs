//! Nonces of RFC 6979, section 3.2, with SHA-256.

use zeroize::Zeroizing;

use super::scalar::Scalar;
use crate::hash::sha256;

/// Maximum length of the additional input of a nonce, in octets.
const MAX_EXTRA_OCTETS: usize = 32;

/// Maximum length of a message, in octets: V, one octet, the secret scalar, the digest, and the
/// additional input.
const MAX_MESSAGE_OCTETS: usize = 32 + 1 + 32 + 32 + MAX_EXTRA_OCTETS;

/// Block size of SHA-256 in octets.
const BLOCK_OCTETS: usize = 64;

/// Returns HMAC-SHA-256 (RFC 2104) of up to [`MAX_MESSAGE_OCTETS`] octets. The HMAC of the library
/// allocates its contexts on the heap, which takes longer than hashing such short messages.
fn hmac_sha256(key: &[u8; 32], message: &[u8]) -> Zeroizing<[u8; 32]> {
    let mut padded = Zeroizing::new([0x36; BLOCK_OCTETS + MAX_MESSAGE_OCTETS]);
    for (octet, key) in padded.iter_mut().zip(key) {
        *octet ^= key;
    }
    padded[BLOCK_OCTETS..][..message.len()].copy_from_slice(message);
    let inner = Zeroizing::new(sha256(&padded[..BLOCK_OCTETS + message.len()]));
    for octet in &mut padded[..BLOCK_OCTETS] {
        *octet ^= 0x36 ^ 0x5c;
    }
    padded[BLOCK_OCTETS..][..inner.len()].copy_from_slice(&*inner);
    Zeroizing::new(sha256(&padded[..BLOCK_OCTETS + inner.len()]))
}

/// Returns a nonce that is at least 1 and below the order. It is a function of the secret, of the
/// digest as a scalar, and of `extra`, which has up to 32 octets (section 3.6: empty, or
/// randomness). All nonces are equally likely, because candidates that are not below the order are
/// discarded. Returns `None` if `extra` is longer.
pub(crate) fn nonce_of_digest(secret: &Scalar, digest: Scalar, extra: &[u8]) -> Option<Zeroizing<Scalar>> {
    let secret = Zeroizing::new(secret.to_octets());
    let mut value = Zeroizing::new([1; 32]);
    let mut key = Zeroizing::new([0; 32]);
    let mut message = Zeroizing::new([0; MAX_MESSAGE_OCTETS]);
    let length = MAX_MESSAGE_OCTETS - MAX_EXTRA_OCTETS + extra.len();
    message[33..65].copy_from_slice(&*secret);
    message[65..97].copy_from_slice(&digest.to_octets());
    message.get_mut(97..length)?.copy_from_slice(extra);
    for round in [0, 1] {
        message[..32].copy_from_slice(&*value);
        message[32] = round;
        key = hmac_sha256(&key, &message[..length]);
        value = hmac_sha256(&key, &*value);
    }
    loop {
        value = hmac_sha256(&key, &*value);
        match Scalar::from_octets(&value) {
            Some(nonce) if nonce != Scalar::ZERO => return Some(Zeroizing::new(nonce)),
            // One candidate in 2³² is discarded.
            _ => {}
        }
        message[..32].copy_from_slice(&*value);
        message[32] = 0;
        key = hmac_sha256(&key, &message[..33]);
        value = hmac_sha256(&key, &*value);
    }
}
