//! RSA-FDH-VRF-SHA256 (RFC 9381, section 4, suite 0x01) with moduli of 2048 bits: the VRF of the first NSEC5
//! construction.
//!
//! Only one who made the key honestly is bound to one hash for each input. Nobody can see in a public key whether its
//! exponent has a common factor with (p − 1)(q − 1); if it has, some inputs have several proofs (RFC 9381, section 7.1.1).
//! Private keys of that kind are refused; the elliptic curve suites do not know this weakness.

use zeroize::Zeroizing;

use super::error::{BadProof, ProveError, VrfKeyError};
use super::{VRF_HASH_OCTETS, VrfAlgorithm};
use crate::der::{self, RsaNumbers};
use crate::hash::sha256;
use crate::rsa_ffi::Rsa;

const SUITE: u8 = 0x01;

/// Bits of a modulus.
const BITS: u16 = 2048;

/// Octets of a modulus, and of a proof.
pub(super) const PROOF: usize = BITS as usize / 8;

/// Bits of the longest public exponent; work with it is bounded by that.
const EXPONENT_BITS: u32 = u64::BITS;

const ALGORITHM: VrfAlgorithm = VrfAlgorithm::RSA_FDH_SHA256;

pub(super) struct Private {
    key: Rsa,
    secret: Zeroizing<Vec<u8>>,
    public_key: Vec<u8>,
    salt: Vec<u8>,
}

pub(super) struct Public {
    key: Rsa,
    octets: Vec<u8>,
    salt: Vec<u8>,
}

impl Private {
    /// Makes a key with public exponent 65537.
    pub(super) fn generate() -> Result<Self, VrfKeyError> {
        let failed = VrfKeyError::Generation(ALGORITHM);
        let key = Rsa::generate(BITS).ok_or_else(|| failed.clone())?;
        let octets = key.private_der().ok_or(failed)?;
        Self::from_secret(&octets)
    }

    /// Reads an `RSAPrivateKey` (RFC 8017, appendix A.1.2). The library checks that its numbers belong together, and
    /// with that that e has an inverse modulo p − 1 and q − 1.
    pub(super) fn from_secret(octets: &[u8]) -> Result<Self, VrfKeyError> {
        Self::load(octets, BITS)
    }

    fn load(octets: &[u8], modulus_bits: u16) -> Result<Self, VrfKeyError> {
        let invalid = VrfKeyError::InvalidPrivateKey(ALGORITHM);
        let numbers: RsaNumbers = der::read_rsa_private_key(octets).ok_or_else(|| invalid.clone())?;
        let [modulus, exponent, private_exponent, ..] = &numbers;
        check_numbers(modulus, exponent, modulus_bits)?;
        // The library's check passes a longer one, which it then refuses to work with.
        if private_exponent.len() > modulus.len() {
            return Err(invalid);
        }
        // A zero there would have the library leave out its precautions.
        if numbers.iter().any(|number| number.is_empty()) {
            return Err(invalid);
        }
        let key = Rsa::from_private_der(octets).ok_or_else(|| invalid.clone())?;
        let secret = key.private_der().ok_or(invalid)?;
        Ok(Self { key, secret, public_key: join(exponent, modulus), salt: salt(modulus) })
    }

    /// The key as an `RSAPrivateKey`.
    pub(super) fn secret(&self) -> Zeroizing<Vec<u8>> {
        self.secret.clone()
    }

    pub(super) fn public_key(&self) -> &[u8] {
        &self.public_key
    }

    /// Appends a proof to `proofs` and its hash to `hashes` (RFC 9381, section 4.1). On error, both are as before.
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
    /// Parses a public key in the form of RFC 3110.
    pub(super) fn parse(octets: &[u8]) -> Result<Self, VrfKeyError> {
        Self::load(octets, BITS)
    }

    fn load(octets: &[u8], modulus_bits: u16) -> Result<Self, VrfKeyError> {
        let (exponent, modulus) = split(octets)?;
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
        // Refuses a proof of another length, and one from the modulus on, which would be another form of a smaller one.
        if !self.key.public_operation(proof, &mut encoded) || encoded != encode(&self.salt, alpha) {
            return Err(BadProof);
        }
        Ok(hash(proof))
    }
}

/// The hash of a proof, which is not verified (RFC 9381, section 4.2).
pub(super) fn proof_to_hash(proof: &[u8]) -> Result<[u8; VRF_HASH_OCTETS], BadProof> {
    if proof.len() != PROOF {
        return Err(BadProof);
    }
    Ok(hash(proof))
}

fn hash(proof: &[u8]) -> [u8; VRF_HASH_OCTETS] {
    sha256(&[&[SUITE, 0x02], proof].concat())
}

/// MGF_salt: the length of the modulus in four octets, and the modulus.
fn salt(modulus: &[u8]) -> Vec<u8> {
    [&(modulus.len() as u32).to_be_bytes(), modulus].concat()
}

/// Octets of the modulus that a salt was made of.
fn modulus_octets(salt: &[u8]) -> usize {
    salt.len().saturating_sub(4)
}

/// The full domain hash: MGF1 of RFC 8017, appendix B.2.1, with SHA-256, to one octet less than the modulus has. The octet
/// in front is 0, so that the number is below the modulus.
fn encode(salt: &[u8], alpha: &[u8]) -> Vec<u8> {
    let mut message = [&[SUITE, 0x01], salt, alpha, &[0; 4]].concat();
    let counter = message.len() - 4;
    let mut encoded = vec![0; modulus_octets(salt)];
    for (count, place) in (0_u32..).zip(encoded[1..].chunks_mut(32)) {
        message[counter..].copy_from_slice(&count.to_be_bytes());
        place.copy_from_slice(&sha256(&message)[..place.len()]);
    }
    encoded
}

/// The modulus in a public key field, without leading zeros; `None` if it is missing or 0. Less strict than [`split`]: other
/// programs may accept forms of a DNSKEY that RFC 3110, section 2, does not allow.
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

/// Splits a public key field into exponent and modulus (RFC 3110, section 2), which have no leading zeros.
fn split(key: &[u8]) -> Result<(&[u8], &[u8]), VrfKeyError> {
    let (length, rest) = match *key {
        [0, high, low, ref rest @ ..] => (usize::from(u16::from_be_bytes([high, low])), rest),
        [0, ..] | [] => return Err(VrfKeyError::MalformedRsa),
        [length, ref rest @ ..] => (usize::from(length), rest),
    };
    // One length has one form, so that one key has one field: the long form is for more than 255 octets.
    if key[0] == 0 && length <= 255 {
        return Err(VrfKeyError::MalformedRsa);
    }
    let (exponent, modulus) = rest.split_at_checked(length).ok_or(VrfKeyError::MalformedRsa)?;
    if modulus.first().is_none_or(|first| *first == 0) || (exponent.len() > 1 && exponent[0] == 0) {
        return Err(VrfKeyError::MalformedRsa);
    }
    Ok((exponent, modulus))
}

/// The public key field; the exponent has less than 256 octets.
fn join(exponent: &[u8], modulus: &[u8]) -> Vec<u8> {
    [&[exponent.len() as u8], exponent, modulus].concat()
}

/// Bits of a big-endian number without leading zeros.
fn bits(number: &[u8]) -> u32 {
    let first = number.first().map_or(0, |first| first.leading_zeros());
    u32::try_from(number.len()).unwrap_or(u32::MAX / 8).saturating_mul(8) - first
}

fn check_numbers(modulus: &[u8], exponent: &[u8], modulus_bits: u16) -> Result<(), VrfKeyError> {
    let found = bits(modulus);
    if found != u32::from(modulus_bits) {
        return Err(VrfKeyError::ModulusBits { bits: found });
    }
    let is_odd = |number: &[u8]| number.last().is_some_and(|last| last & 1 == 1);
    if !is_odd(exponent) || exponent == [1] || bits(exponent) > EXPONENT_BITS {
        return Err(VrfKeyError::Exponent);
    }
    if !is_odd(modulus) {
        return Err(VrfKeyError::MalformedRsa);
    }
    Ok(())
}

#[cfg(test)]
mod tests;
