//! MAYO-2 keys of round 2 of NIST's call for additional signatures (`https://pqmayo.org`,
//! specification of round 2). A public key has 4912 octets, a signature 186 octets, a private seed
//! 24 octets.
//!
//! Signatures are deterministic unless the key is hedged: `MAYO.Sign` lets the signer choose
//! whether R is all zero or random. Only the salt depends on R.
//!
//! No attack that breaks MAYO-2 is known. However, round 2 is weaker than claimed (about 113 bits,
//! ePrint 2025/1143) and will change.

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
#[allow(unsafe_code)]
mod avx2;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
mod avx2_solve;
mod field;
mod hash;
mod kernel;
#[cfg(test)]
mod known_answers;
mod map;
mod portable;
mod scheme;
mod solve;
#[cfg(target_arch = "x86_64")]
#[allow(unsafe_code)]
mod ssse3;
#[cfg(target_arch = "x86_64")]
mod tables;
mod whip;
mod wiped;

use aws_lc_rs::rand;
use zeroize::Zeroizing;

use self::kernel::Kernel;
use self::map::PUBLIC_KEY_OCTETS;
use self::scheme::{PublicKey, SALT_OCTETS, SEED_OCTETS, SIGNATURE_OCTETS, SecretKey};
use crate::algorithm::{Algorithm, GenerationParameters};
use crate::batch::LazyTable;
use crate::bind_format::{PRIVATE_KEY, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};
use crate::implementation::Implementation;
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};
use crate::wipe::wiping_stack;

/// Maximum stack usage of signing, in bytes: the system of equations and some vectors of the map.
const STACK_BYTES: usize = 32 * 1024;

/// Length of the public key in bits. MAYO has no modulus or curve with a length that could serve as
/// the length of the key, and its field has only 16 elements.
const KEY_BITS: u32 = 8 * PUBLIC_KEY_OCTETS as u32;

/// Returns the code that signs and verifies.
pub(crate) fn implementation() -> Implementation {
    Kernel::detect().implementation()
}

struct Private {
    key: SecretKey,
    hedged: bool,
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
    let key = wiping_stack::<STACK_BYTES, _>(|| SecretKey::derive(Kernel::detect(), seed));
    let key = key.map_err(|_| KeyError::Generation(algorithm))?;
    Ok(Box::new(Private { key, hedged: false }))
}

impl Private {
    fn random(&self) -> Result<[u8; SALT_OCTETS], SignError> {
        let mut random = [0; SALT_OCTETS];
        if self.hedged {
            rand::fill(&mut random).map_err(|_| SignError::Library)?;
        }
        Ok(random)
    }
}

impl Signer for Private {
    fn public_key(&self) -> &[u8] {
        self.key.public_octets()
    }

    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn signature_octets(&self) -> usize {
        SIGNATURE_OCTETS
    }

    /// Verifies each signature before it returns it: a signature that results from a fault could
    /// reveal the private key.
    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError> {
        let random = self.random()?;
        let signature = wiping_stack::<STACK_BYTES, _>(|| self.key.sign(message, &random));
        let signature = signature.ok().flatten().ok_or(SignError::Library)?;
        if self.key.public().verify(message, &signature) != Ok(true) {
            return Err(SignError::Library);
        }
        out.extend_from_slice(&signature);
        Ok(())
    }

    fn hedge(&mut self) {
        self.hedged = true;
    }

    fn fields(&self) -> Vec<(&'static str, &[u8])> {
        vec![(PRIVATE_KEY, self.key.seed())]
    }
}

/// A public key. A key that verifies one signature, as a KSK does in a resolver, is not stored in its expanded
/// form.
struct Public {
    octets: Box<[u8; PUBLIC_KEY_OCTETS]>,
    expanded: LazyTable<PublicKey>,
}

impl Public {
    fn new(octets: &[u8; PUBLIC_KEY_OCTETS]) -> Self {
        Self { octets: Box::new(*octets), expanded: LazyTable::new() }
    }

    fn expand(&self) -> Option<PublicKey> {
        PublicKey::parse(Kernel::detect(), &self.octets).ok()
    }
}

/// Parses a public key. Any octets of the right length are a public key.
pub(crate) fn parse_public(algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    let length = KeyError::PublicKeyLength { algorithm, expected: PUBLIC_KEY_OCTETS, found: key.len() };
    Ok(Box::new(Public::new(key.try_into().map_err(|_| length)?)))
}

impl Verifier for Public {
    fn memory_octets(&self) -> usize {
        let expanded = if self.expanded.is_built() { PublicKey::OCTETS } else { 0 };
        PUBLIC_KEY_OCTETS + expanded
    }

    fn without_table(&self) -> Option<Box<dyn Verifier>> {
        self.expanded.is_built().then(|| Box::new(Self::new(&self.octets)) as Box<dyn Verifier>)
    }

    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let signature = signature.try_into().map_err(|_| BadSignature)?;
        let outcome = match self.expanded.table(1, 2, || self.expand()) {
            Some(key) => key.verify(message, signature),
            None => self.expand().ok_or(BadSignature)?.verify(message, signature),
        };
        if outcome == Ok(true) { Ok(()) } else { Err(BadSignature) }
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;
    use proptest::prelude::*;

    use super::*;
    use crate::{PrivateKey, PublicKey as AnyPublicKey};

    fn derived(kernel: Kernel, seed: u8) -> SecretKey {
        SecretKey::derive(kernel, Zeroizing::new(vec![seed; SEED_OCTETS])).unwrap()
    }

    fn file(algorithm: Algorithm, dialect: &str, octets: usize) -> String {
        let seed = BASE64.encode(&vec![5; octets]);
        format!("Private-key-format: v1.3\nAlgorithm: {}\n{dialect}PrivateKey: {seed}\n", algorithm.0)
    }

    #[test]
    fn kernels_make_the_same_keys_and_signatures() {
        let keys: Vec<_> = Kernel::all().into_iter().map(|kernel| derived(kernel, 9)).collect();
        for number in 0..40_u8 {
            let random = [number; SALT_OCTETS];
            let expected = keys[0].sign(&[number; 50], &random).unwrap().unwrap();
            for key in &keys {
                assert_eq!(key.public_octets(), keys[0].public_octets());
                assert_eq!(key.sign(&[number; 50], &random), Ok(Some(expected)));
                assert_eq!(key.public().verify(&[number; 50], &expected), Ok(true));
            }
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 64, ..crate::rfc_tests::seeded_config(23) })]

        #[test]
        fn any_flipped_bit_is_rejected_by_every_kernel(
            message in proptest::collection::vec(any::<u8>(), 1..300),
            seed in any::<u8>(),
            position in any::<prop::sample::Index>(),
        ) {
            for kernel in Kernel::all() {
                let key = derived(kernel, seed);
                let signature = key.sign(&message, &[0; SALT_OCTETS]).unwrap().unwrap();
                prop_assert_eq!(key.public().verify(&message, &signature), Ok(true));
                let flip = |octets: &mut [u8]| {
                    let bit = position.index(octets.len() * 8);
                    octets[bit / 8] ^= 1 << (bit % 8);
                };
                let (mut other, mut forged) = (message.clone(), signature);
                flip(&mut other);
                flip(&mut forged);
                prop_assert_eq!(key.public().verify(&other, &signature), Ok(false));
                prop_assert_eq!(key.public().verify(&message, &forged), Ok(false));
                let mut octets: [u8; PUBLIC_KEY_OCTETS] = key.public_octets().try_into().unwrap();
                flip(&mut octets);
                let public = PublicKey::parse(kernel, &octets).unwrap();
                prop_assert_eq!(public.verify(&message, &signature), Ok(false));
            }
        }
    }

    #[test]
    fn signatures_are_deterministic_until_hedged() {
        let text = file(Algorithm::MAYO2, "Dialect: mayo2-round2\n", SEED_OCTETS);
        let mut key = PrivateKey::from_bind(&text).unwrap();
        let public = AnyPublicKey::parse(Algorithm::MAYO2, key.public_key()).unwrap();
        let sign = |key: &PrivateKey| {
            let mut signature = Vec::new();
            key.sign(b"message", &mut signature).unwrap();
            assert_eq!(public.verify(b"message", &signature), Ok(()));
            signature
        };
        assert_eq!(sign(&key), sign(&key));
        key.hedge();
        assert_ne!(sign(&key), sign(&key));
    }

    #[test]
    fn a_signature_that_does_not_verify_is_not_returned() {
        let mut key = derived(Kernel::detect(), 1);
        key.inject_fault();
        let key = Private { key, hedged: false };
        let mut out = vec![1, 2, 3];
        assert_eq!(key.sign(b"message", &mut out), Err(SignError::Library));
        assert_eq!(out, [1, 2, 3]);
    }

    #[test]
    fn keys_of_other_formats_are_rejected() {
        let algorithm = Algorithm::MAYO2;
        for found in [0, 16, PUBLIC_KEY_OCTETS - 1, PUBLIC_KEY_OCTETS + 1] {
            let error = AnyPublicKey::parse(algorithm, &vec![1; found]).err();
            assert_eq!(
                error,
                Some(KeyError::PublicKeyLength { algorithm, expected: PUBLIC_KEY_OCTETS, found })
            );
        }
        let read = |dialect: &str, octets| PrivateKey::from_bind(&file(algorithm, dialect, octets)).err();
        let ours = "Dialect: mayo2-round2\n";
        assert_eq!(read(ours, SEED_OCTETS), None);
        for octets in [0, SEED_OCTETS - 1, SEED_OCTETS + 1] {
            let error = KeyError::PrivateKeyLength { algorithm, expected: SEED_OCTETS, found: octets };
            assert_eq!(read(ours, octets), Some(error), "{octets}");
        }
        let dialect = KeyError::Dialect { algorithm, expected: "mayo2-round2" };
        assert_eq!(read("Dialect: mayo2-round1\n", SEED_OCTETS), Some(dialect));
        assert_eq!(read("", SEED_OCTETS), Some(KeyError::MissingField("Dialect")));
        assert_eq!(PrivateKey::generate(algorithm, Some(128)).err(), Some(KeyError::FixedBits(algorithm)));
    }
}
