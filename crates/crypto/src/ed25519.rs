//! Ed25519 keys (RFC 8080, RFC 8032): a public key of 32 octets, a signature of 64 octets, a
//! private seed of 32 octets.

use aws_lc_rs::signature::{self, Ed25519KeyPair, KeyPair, ParsedPublicKey};
use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, GenerationParameters};
use crate::batch::edwards::{self, KeyTable};
use crate::batch::{LazyTable, SignedMessage};
use crate::bind_format::{PRIVATE_KEY, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};
use crate::implementation::{Implementation, Operation};
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};

const SEED_OCTETS: usize = 32;
const PUBLIC_OCTETS: usize = 32;
const SIGNATURE_OCTETS: usize = 64;
const KEY_BITS: u32 = 256;

/// Number of signatures from which a table of the key is built. The cost of the table equals its
/// savings on about 14 signatures.
const MIN_SIGNATURES_FOR_TABLE: usize = 24;

/// Returns the code that performs an operation; see [`crate::implementation()`].
pub(crate) fn implementation(operation: Operation, batch: usize) -> Implementation {
    match operation {
        Operation::Verify if batch >= MIN_SIGNATURES_FOR_TABLE => Implementation::portable("nonesuch + crrl"),
        _ => Implementation::AWS_LC,
    }
}

struct Private {
    pair: Ed25519KeyPair,
    seed: Zeroizing<Vec<u8>>,
}

/// Generates a key from a random seed.
pub(crate) fn generate(parameters: GenerationParameters) -> SignerResult {
    from_seed(parameters.algorithm, parameters.random_seed(SEED_OCTETS)?)
}

/// Reads the seed from a private key file.
pub(crate) fn read_private(file: &PrivateFile<'_>) -> SignerResult {
    from_seed(file.algorithm(), file.private_key(SEED_OCTETS)?)
}

fn from_seed(algorithm: Algorithm, seed: Zeroizing<Vec<u8>>) -> SignerResult {
    let invalid = KeyError::InvalidPrivateKey(algorithm);
    // The unchecked function is sufficient: the file has no public key to compare with, so the
    // public key is derived from the seed.
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).map_err(|_| invalid)?;
    Ok(Box::new(Private { pair, seed }))
}

impl Signer for Private {
    fn public_key(&self) -> &[u8] {
        self.pair.public_key().as_ref()
    }

    fn bits(&self) -> u32 {
        KEY_BITS
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

/// Octets of the table of a key ([`KeyTable`]).
const TABLE_OCTETS: usize = 133 << 10;

struct Public {
    key: ParsedPublicKey,
    octets: [u8; PUBLIC_OCTETS],
    table: LazyTable<KeyTable>,
}

/// Parses a public key. The verification checks whether the key is a point of the curve: if it is
/// not, every signature is invalid.
pub(crate) fn parse_public(algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    // The library would also accept other encodings, which it distinguishes by their length.
    let octets: [u8; PUBLIC_OCTETS] = key.try_into().map_err(|_| KeyError::PublicKeyLength {
        algorithm,
        expected: PUBLIC_OCTETS,
        found: key.len(),
    })?;
    let key = ParsedPublicKey::new(&signature::ED25519, key).map_err(|_| KeyError::NotOnCurve(algorithm))?;
    Ok(Box::new(Public { key, octets, table: LazyTable::new() }))
}

impl Verifier for Public {
    fn without_table(&self) -> Option<Box<dyn Verifier>> {
        let (key, octets, table) = (self.key.clone(), self.octets, LazyTable::new());
        self.table.is_built().then(|| Box::new(Self { key, octets, table }) as Box<dyn Verifier>)
    }

    fn memory_octets(&self) -> usize {
        512 + if self.table.is_built() { TABLE_OCTETS } else { 0 }
    }

    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.key.verify_sig(message, signature).map_err(|_| BadSignature)
    }

    fn verify_batch(&self, signed: &[SignedMessage<'_>], outcome: &mut Vec<Result<(), BadSignature>>) {
        let Some(table) =
            self.table.table(signed.len(), MIN_SIGNATURES_FOR_TABLE, || KeyTable::new(&self.octets))
        else {
            outcome.extend(signed.iter().map(|(message, signature)| self.verify(message, signature)));
            return;
        };
        for group in signed.chunks(edwards::MAX_GROUP) {
            let are_valid = table.verify(group);
            // If the table rejects a signature, the single check decides.
            let result = |(is_valid, (message, signature)): (&bool, &SignedMessage<'_>)| match is_valid {
                true => Ok(()),
                false => self.verify(message, signature),
            };
            outcome.extend(are_valid.iter().zip(group).map(result));
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::PublicKey;

    #[test]
    fn other_lengths_are_rejected() {
        for found in [0, 31, 33, 44] {
            let algorithm = Algorithm::ED25519;
            let error = PublicKey::parse(algorithm, &vec![0x30; found]).err();
            assert_eq!(error, Some(KeyError::PublicKeyLength { algorithm, expected: 32, found }));
        }
    }
}
