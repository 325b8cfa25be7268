//! RSA-FDH-VRF-SHA256 (RFC 9381, section 4, suite 0x01) with moduli of 2048 bits: the VRF of the
//! first NSEC5 construction.
//!
//! Each input has only one hash if the key was generated honestly. A public key does not show
//! whether its exponent has a common factor with (p − 1)(q − 1). If it has, some inputs have
//! several proofs (RFC 9381, section 7.1.1). Private keys of that kind are rejected. The elliptic
//! curve suites do not have this weakness.

use zeroize::Zeroizing;

use super::error::{BadProof, ProveError, VrfKeyError};
use super::{VRF_HASH_OCTETS, VrfAlgorithm};
use crate::der::{self, RsaNumbers};
use crate::hash::sha256;
use crate::rsa_ffi::Rsa;

const SUITE: u8 = 0x01;

/// Length of a modulus in bits.
const MODULUS_BITS: u16 = 2048;

/// Length of a modulus, and of a proof, in octets.
pub(super) const PROOF_OCTETS: usize = MODULUS_BITS as usize / 8;

/// Maximum length of the public exponent in bits. It limits the work with the exponent.
const MAX_EXPONENT_BITS: u32 = u64::BITS;

const ALGORITHM: VrfAlgorithm = VrfAlgorithm::RSA_FDH_SHA256;

pub(super) struct Private {
    key: Rsa,
    /// The key as an `RSAPrivateKey`.
    secret: Zeroizing<Vec<u8>>,
    public_key: Vec<u8>,
    /// `MGF_salt`; see [`salt`].
    salt: Vec<u8>,
}

pub(super) struct Public {
    key: Rsa,
    /// The public key field.
    octets: Vec<u8>,
    /// `MGF_salt`; see [`salt`].
    salt: Vec<u8>,
}

impl Private {
    /// Generates a key with the public exponent 65537.
    pub(super) fn generate() -> Result<Self, VrfKeyError> {
        let failed = VrfKeyError::Generation(ALGORITHM);
        let key = Rsa::generate(MODULUS_BITS).ok_or_else(|| failed.clone())?;
        let octets = key.private_der().ok_or(failed)?;
        Self::from_secret(&octets)
    }

    /// Reads an `RSAPrivateKey` (RFC 8017, appendix A.1.2). The library checks that its numbers are
    /// consistent. This implies that e has an inverse modulo p − 1 and q − 1.
    pub(super) fn from_secret(octets: &[u8]) -> Result<Self, VrfKeyError> {
        Self::load(octets, MODULUS_BITS)
    }

    fn load(octets: &[u8], modulus_bits: u16) -> Result<Self, VrfKeyError> {
        let invalid = VrfKeyError::InvalidPrivateKey(ALGORITHM);
        let numbers: RsaNumbers = der::read_rsa_private_key(octets).ok_or_else(|| invalid.clone())?;
        let [modulus, exponent, private_exponent, ..] = &numbers;
        check_numbers(modulus, exponent, modulus_bits)?;
        // The check of the library accepts a private exponent that is longer than the modulus, but
        // the library then fails to use it.
        if private_exponent.len() > modulus.len() {
            return Err(invalid);
        }
        // If one of the numbers were zero, the library would skip its protections.
        if numbers.iter().any(|number| number.is_empty()) {
            return Err(invalid);
        }
        let key = Rsa::from_private_der(octets).ok_or_else(|| invalid.clone())?;
        let secret = key.private_der().ok_or(invalid)?;
        Ok(Self { key, secret, public_key: encode_public_key(exponent, modulus), salt: salt(modulus) })
    }

    /// Returns the key as an `RSAPrivateKey`.
    pub(super) fn secret(&self) -> Zeroizing<Vec<u8>> {
        self.secret.clone()
    }

    pub(super) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Appends a proof to `proofs` and its hash to `hashes` (RFC 9381, section 4.1). If it fails,
    /// both are unchanged.
    pub(super) fn prove(
        &self,
        alpha: &[u8],
        proofs: &mut Vec<u8>,
        hashes: &mut Vec<[u8; VRF_HASH_OCTETS]>,
    ) -> Result<(), ProveError> {
        let mut proof = vec![0; modulus_octets(&self.salt)];
        if !self.key.private_operation(&encode(&self.salt, alpha), &mut proof) {
            return Err(ProveError::Library);
        }
        proofs.extend_from_slice(&proof);
        hashes.push(hash(&proof));
        Ok(())
    }
}

impl Public {
    /// Parses a public key in the format of RFC 3110.
    pub(super) fn parse(octets: &[u8]) -> Result<Self, VrfKeyError> {
        Self::load(octets, MODULUS_BITS)
    }

    fn load(octets: &[u8], modulus_bits: u16) -> Result<Self, VrfKeyError> {
        let (exponent, modulus) = parse_public_key(octets)?;
        check_numbers(modulus, exponent, modulus_bits)?;
        let key = Rsa::from_public(modulus, exponent).ok_or(VrfKeyError::MalformedRsa)?;
        Ok(Self { key, octets: octets.to_vec(), salt: salt(modulus) })
    }

    pub(super) fn octets(&self) -> &[u8] {
        &self.octets
    }

    /// Verifies a proof and returns its hash (RFC 9381, section 4.3).
    pub(super) fn verify(&self, alpha: &[u8], proof: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
        let mut encoded = vec![0; modulus_octets(&self.salt)];
        // `public_operation` rejects a proof with another length, and a proof that is not below the
        // modulus, which would be a second encoding of a smaller proof.
        if !self.key.public_operation(proof, &mut encoded) || encoded != encode(&self.salt, alpha) {
            return Err(BadProof);
        }
        Ok(hash(proof))
    }
}

/// Returns the hash of a proof without verifying it (RFC 9381, section 4.2).
pub(super) fn proof_to_hash(proof: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    if proof.len() != PROOF_OCTETS {
        return Err(BadProof);
    }
    Ok(hash(proof))
}

fn hash(proof: &[u8]) -> [u8; VRF_HASH_OCTETS] {
    sha256(&[&[SUITE, 0x02], proof].concat())
}

/// Returns `MGF_salt` (RFC 9381, section 4): the length of the modulus in four octets, and the
/// modulus.
fn salt(modulus: &[u8]) -> Vec<u8> {
    [&(modulus.len() as u32).to_be_bytes(), modulus].concat()
}

/// Returns the length of the modulus in a salt, in octets.
fn modulus_octets(salt: &[u8]) -> usize {
    salt.len().saturating_sub(4)
}

/// Returns the full domain hash: MGF1 of RFC 8017, appendix B.2.1, with SHA-256, with one octet
/// less than the modulus. The first octet is 0, so that the number is below the modulus.
fn encode(salt: &[u8], alpha: &[u8]) -> Vec<u8> {
    let mut message = [&[SUITE, 0x01], salt, alpha, &[0; 4]].concat();
    let counter = message.len() - 4;
    let mut encoded = vec![0; modulus_octets(salt)];
    for (count, chunk) in (0_u32..).zip(encoded[1..].chunks_mut(32)) {
        message[counter..].copy_from_slice(&count.to_be_bytes());
        chunk.copy_from_slice(&sha256(&message)[..chunk.len()]);
    }
    encoded
}

/// Returns the modulus in a public key field, without leading zeros, or `None` if it is missing or
/// zero. This is less strict than [`parse_public_key`], because other programs may accept forms of
/// a DNSKEY that RFC 3110, section 2, does not allow.
pub(super) fn modulus(key: &[u8]) -> Option<Vec<u8>> {
    let (length, rest) = match *key {
        [0, high, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high, low])), rest),
        [length, ref rest @ ..] => (usize::from(length), rest),
        [] => return None,
    };
    let modulus = rest.get(length..)?;
    let zeros = modulus.iter().take_while(|octet| **octet == 0).count();
    (zeros < modulus.len()).then(|| modulus[zeros..].to_vec())
}

/// Splits a public key field into exponent and modulus (RFC 3110, section 2). Neither may have
/// leading zeros.
fn parse_public_key(key: &[u8]) -> Result<(&[u8], &[u8]), VrfKeyError> {
    let (length, rest) = match *key {
        [0, high, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high, low])), rest),
        [0, ..] | [] => return Err(VrfKeyError::MalformedRsa),
        [length, ref rest @ ..] => (usize::from(length), rest),
    };
    // Each length has only one encoding, so that each key has only one field. The long form is for
    // more than 255 octets.
    if key[0] == 0 && length <= 255 {
        return Err(VrfKeyError::MalformedRsa);
    }
    let (exponent, modulus) = rest.split_at_checked(length).ok_or(VrfKeyError::MalformedRsa)?;
    if modulus.first().is_none_or(|first| *first == 0) || (exponent.len() > 1 && exponent[0] == 0) {
        return Err(VrfKeyError::MalformedRsa);
    }
    Ok((exponent, modulus))
}

/// Returns the public key field. The exponent must have less than 256 octets.
fn encode_public_key(exponent: &[u8], modulus: &[u8]) -> Vec<u8> {
    [&[exponent.len() as u8], exponent, modulus].concat()
}

/// Returns the length of a big-endian number without leading zeros, in bits.
fn bit_length(number: &[u8]) -> u32 {
    let first = number.first().map_or(0, |first| first.leading_zeros());
    u32::try_from(number.len()).unwrap_or(u32::MAX / 8).saturating_mul(8) - first
}

fn check_numbers(modulus: &[u8], exponent: &[u8], modulus_bits: u16) -> Result<(), VrfKeyError> {
    let found = bit_length(modulus);
    if found != u32::from(modulus_bits) {
        return Err(VrfKeyError::ModulusBits { bits: found });
    }
    let is_odd = |number: &[u8]| number.last().is_some_and(|last| last & 1 == 1);
    if !is_odd(exponent) || exponent == [1] || bit_length(exponent) > MAX_EXPONENT_BITS {
        return Err(VrfKeyError::Exponent);
    }
    if !is_odd(modulus) {
        return Err(VrfKeyError::MalformedRsa);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
