//! Falcon-512 keys of round 3 of the NIST competition. A public key has 897 octets. A signature has
//! 666 octets: it is padded to constant length, and its first octet is 0x39. A private key has 1281
//! octets and contains f, g and F (Falcon specification v1.2, section 3.11). The public key is
//! derived from it.
//!
//! Signing samples with real numbers that depend on the key. On x86-64 (SSE2, or AVX2 if the
//! processor has it) and arm64, `fn-dsa` uses 64-bit floating-point instructions. These are
//! constant-time as far as the processor's additions, multiplications, divisions and square roots
//! are; the author of the library assumes this for these processors. On other machines, such as
//! 32-bit ARM, it uses integers in constant time, which is many times slower. The feature
//! `portable` disables AVX2.

mod basis;

use std::sync::{Mutex, PoisonError};

use fn_dsa_kgen::{KeyPairGenerator, KeyPairGenerator512};
use fn_dsa_sign::{DOMAIN_NONE, FN_DSA_LOGN_512, HASH_ID_ORIGINAL_FALCON, SigningKey, SigningKey512};
use fn_dsa_vrfy::{VerifyingKey, VerifyingKey512};
use zeroize::{Zeroize, Zeroizing};

use crate::algorithm::{Algorithm, GenerationParameters};
use crate::bind_format::{PRIVATE_KEY, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};
use crate::implementation::{Implementation, Operation};
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};
use crate::system_random::SystemRandom;
use crate::wipe::wiping_stack;

const PRIVATE_OCTETS: usize = fn_dsa_sign::sign_key_size(FN_DSA_LOGN_512);
const PUBLIC_OCTETS: usize = fn_dsa_sign::vrfy_key_size(FN_DSA_LOGN_512);
const SIGNATURE_OCTETS: usize = fn_dsa_sign::signature_size(FN_DSA_LOGN_512);
/// Bits of the encoded public key. The degree, 512, is not a length.
const KEY_BITS: u32 = PUBLIC_OCTETS as u32 * 8;
/// Stack size for decoding, in bytes: a decoded private key has 59 kB, and the library passes it by
/// value.
const DECODE_STACK_BYTES: usize = 256 * 1024;
/// Stack size for signing, in bytes: states of hash functions and a few numbers. The large buffers
/// are in the decoded key.
const SIGN_STACK_BYTES: usize = 16 * 1024;

/// Returns the code that performs an operation; see [`crate::implementation()`]. The library signs
/// with vector instructions of every processor of x86-64 and arm64, or with AVX2. It verifies with
/// AVX2, or without vectors.
pub(crate) fn implementation(operation: Operation, _batch: usize) -> Implementation {
    let library = "fn-dsa";
    let baseline = match operation {
        Operation::Generate if cfg!(target_arch = "x86_64") => Implementation::vectors(library, "SSE2"),
        Operation::Generate if cfg!(target_arch = "aarch64") => Implementation::vectors(library, "NEON"),
        _ => Implementation::portable(library),
    };
    baseline.or_avx2()
}

/// A private key. Signing needs exclusive access to a decoded key with its buffers. The number of
/// decoded keys is the maximum number of simultaneous signing operations so far.
struct Private {
    encoded: Zeroizing<Vec<u8>>,
    public: Vec<u8>,
    /// Decoded keys that no thread uses. They are wiped on drop.
    idle_keys: Mutex<Vec<Box<SigningKey512>>>,
}

impl Private {
    /// Calls `work` with a decoded key. If `work` panics, the decoded key is dropped.
    fn with_key<T>(&self, work: impl FnOnce(&mut SigningKey512) -> T) -> Result<T, SignError> {
        let idle_key = self.idle_keys.lock().unwrap_or_else(PoisonError::into_inner).pop();
        let mut key = idle_key.or_else(|| decode(&self.encoded)).ok_or(SignError::Library)?;
        let result = work(&mut key);
        self.idle_keys.lock().unwrap_or_else(PoisonError::into_inner).push(key);
        Ok(result)
    }
}

fn decode(encoded: &[u8]) -> Option<Box<SigningKey512>> {
    wiping_stack::<DECODE_STACK_BYTES, _>(|| SigningKey512::decode(encoded).map(Box::new))
}

/// Generates a key.
pub(crate) fn generate(parameters: GenerationParameters) -> SignerResult {
    parameters.require_no_bits()?;
    let mut encoded = Zeroizing::new(vec![0; PRIVATE_OCTETS]);
    let mut public = vec![0; PUBLIC_OCTETS];
    let mut random = SystemRandom::default();
    wiping_stack::<DECODE_STACK_BYTES, _>(|| {
        KeyPairGenerator512::default().keygen(FN_DSA_LOGN_512, &mut random, &mut encoded, &mut public);
    });
    match decode(&encoded) {
        Some(key) if !random.failed => {
            Ok(Box::new(Private { encoded, public, idle_keys: Mutex::new(vec![key]) }))
        }
        _ => Err(KeyError::Generation(parameters.algorithm)),
    }
}

/// Reads the encoded key from a private key file.
pub(crate) fn read_private(file: &PrivateFile<'_>) -> SignerResult {
    let invalid = KeyError::InvalidPrivateKey(file.algorithm());
    let encoded = file.private_key(PRIVATE_OCTETS)?;
    let Some(key) = decode(&encoded) else { return Err(invalid) };
    let mut public = vec![0; PUBLIC_OCTETS];
    key.to_verifying_key(&mut public);
    if !basis::is_valid_basis(&encoded, &public) {
        return Err(invalid);
    }
    Ok(Box::new(Private { encoded, public, idle_keys: Mutex::new(vec![key]) }))
}

/// Writes a signature over `message` to `signature`, which has [`SIGNATURE_OCTETS`] octets.
fn sign_with(
    key: &mut SigningKey512,
    mut random: SystemRandom,
    message: &[u8],
    signature: &mut [u8],
) -> Result<(), SignError> {
    wiping_stack::<SIGN_STACK_BYTES, _>(|| {
        key.sign(&mut random, &DOMAIN_NONE, &HASH_ID_ORIGINAL_FALCON, message, signature);
    });
    if random.failed {
        // The signature was generated without randomness, and would therefore reveal information
        // about the key.
        signature.zeroize();
        return Err(SignError::Library);
    }
    Ok(())
}

impl Signer for Private {
    fn public_key(&self) -> &[u8] {
        &self.public
    }

    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn signature_octets(&self) -> usize {
        SIGNATURE_OCTETS
    }

    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError> {
        self.sign_batch(&[message], out)
    }

    fn sign_batch(&self, messages: &[&[u8]], out: &mut Vec<u8>) -> Result<(), SignError> {
        let before = out.len();
        out.resize(before + messages.len() * SIGNATURE_OCTETS, 0);
        let signatures = out[before..].chunks_exact_mut(SIGNATURE_OCTETS);
        let signed = self.with_key(|key| {
            let mut pairs = messages.iter().zip(signatures);
            pairs.try_for_each(|(message, out)| sign_with(key, SystemRandom::default(), message, out))
        });
        signed.flatten().inspect_err(|_| out.truncate(before))
    }

    fn fields(&self) -> Vec<(&'static str, &[u8])> {
        vec![(PRIVATE_KEY, &self.encoded)]
    }
}

struct Public(VerifyingKey512);

/// Parses a public key: the first octet, 0x09, and 512 coefficients of 14 bits below 12289.
pub(crate) fn parse_public(algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    if key.len() != PUBLIC_OCTETS {
        return Err(KeyError::PublicKeyLength { algorithm, expected: PUBLIC_OCTETS, found: key.len() });
    }
    let key = VerifyingKey512::decode(key).ok_or(KeyError::MalformedPublicKey(algorithm))?;
    Ok(Box::new(Public(key)))
}

impl Verifier for Public {
    fn bits(&self) -> u32 {
        KEY_BITS
    }

    /// The library only accepts the padded form: 666 octets, with zeros after the last coefficient.
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let is_valid = self.0.verify(signature, &DOMAIN_NONE, &HASH_ID_ORIGINAL_FALCON, message);
        if is_valid { Ok(()) } else { Err(BadSignature) }
    }
}

#[cfg(test)]
mod tests;
