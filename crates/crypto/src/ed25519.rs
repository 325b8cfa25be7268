//! Ed25519 keys (RFC 8080, RFC 8032): a public key of 32 octets, a signature of 64, a private seed of 32.

use aws_lc_rs::rand;
use aws_lc_rs::signature::{self, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, Generation};
use crate::bind_format::{PRIVATE_KEY, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};

const SEED_OCTETS: usize = 32;
const SIGNATURE_OCTETS: usize = 64;
const BITS: u32 = 256;

struct Private {
    pair: Ed25519KeyPair,
    seed: Zeroizing<Vec<u8>>,
}

/// Makes a key from a random seed.
pub(crate) fn generate(wanted: Generation) -> SignerResult {
    if wanted.bits.is_some() {
        return Err(KeyError::FixedBits(wanted.algorithm));
    }
    let mut seed = Zeroizing::new(vec![0; SEED_OCTETS]);
    rand::fill(&mut seed).map_err(|_| KeyError::Generation(wanted.algorithm))?;
    private(wanted.algorithm, seed)
}

/// Reads the seed of a private key file.
pub(crate) fn read_private(file: &PrivateFile<'_>) -> SignerResult {
    private(file.algorithm(), file.octets(PRIVATE_KEY)?)
}

fn private(algorithm: Algorithm, seed: Zeroizing<Vec<u8>>) -> SignerResult {
    let invalid = KeyError::InvalidPrivateKey(algorithm);
    if seed.len() != SEED_OCTETS {
        return Err(invalid);
    }
    // The file has no public key to compare with: it is derived from the seed.
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| invalid)?;
    Ok(Box::new(Private { pair, seed }))
}

impl Signer for Private {
    fn public_key(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    fn bits(&self) -> u32 {
        BITS
    }

    fn signature_octets(&self) -> usize {
        SIGNATURE_OCTETS
    }

    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError> {
        let signature = self.pair.try_sign(message).map_err(|_| SignError::Library)?;
        out.extend_from_slice(signature.as_ref());
        Ok(())
    }

    fn fields(&self) -> Vec<(&'static str, &[u8])> {
        vec![(PRIVATE_KEY, &self.seed)]
    }
}

struct Public(ParsedPublicKey);

/// Parses a public key. That it is a point of the curve is seen when it verifies: no signature fits one that is not.
pub(crate) fn parse_public(algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    let expected = signature::ED25519_PUBLIC_KEY_LEN;
    // The library would take other encodings, told apart by their length, too.
    if key.len() != expected {
        return Err(KeyError::PublicKeyLength { algorithm, expected, found: key.len() });
    }
    let parsed =
        ParsedPublicKey::new(&signature::ED25519, key).map_err(|_| KeyError::NotOnCurve(algorithm))?;
    Ok(Box::new(Public(parsed)))
}

impl Verifier for Public {
    fn bits(&self) -> u32 {
        BITS
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.0.verify_sig(message, signature).map_err(|_| BadSignature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PublicKey;

    #[test]
    fn other_lengths_are_refused() {
        for found in [0, 31, 33, 44] {
            let algorithm = Algorithm::ED25519;
            let error = PublicKey::parse(algorithm, &vec![0x30; found]).err();
            assert_eq!(error, Some(KeyError::PublicKeyLength { algorithm, expected: 32, found }));
        }
    }
}
