//! ML-DSA-44 keys (FIPS 204; draft-westerbaan-dnssec-mldsa). A public key has 1312 octets, a
//! signature 2420 octets, a private seed 32 octets. DNSSEC uses pure ML-DSA with an empty context.
//!
//! Two libraries are used, each where it is faster. `libcrux-ml-dsa` signs. It takes the randomness
//! as an argument, which allows deterministic signatures (FIPS 204, section 3.4). The interface of
//! aws-lc does not offer these; without them, neither the example of the draft nor identical output
//! for the same zone would be possible. aws-lc verifies.
//!
//! Both libraries select their kernel at run time. The feature `portable` restricts libcrux to its
//! portable kernel. The environment variable `OPENSSL_ia32cap` masks the selection of aws-lc.

use aws_lc_rs::rand;
use aws_lc_rs::signature::{ML_DSA_44, ParsedPublicKey};
use libcrux_ml_dsa::ml_dsa_44::MLDSA44SigningKey;
use zeroize::{Zeroize, Zeroizing};

#[cfg(not(feature = "portable"))]
use libcrux_ml_dsa::ml_dsa_44 as kernel;
#[cfg(feature = "portable")]
use libcrux_ml_dsa::ml_dsa_44::portable as kernel;

use crate::algorithm::{Algorithm, GenerationParameters};
use crate::bind_format::{PRIVATE_KEY, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};
use crate::implementation::{Implementation, Operation};
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};
use crate::wipe::wiping_stack;

const SEED_OCTETS: usize = 32;
const PUBLIC_OCTETS: usize = 1312;
const SIGNATURE_OCTETS: usize = 2420;
/// Bits of the encoded public key. The parameter set, 44, is not a length.
const KEY_BITS: u32 = PUBLIC_OCTETS as u32 * 8;
/// Length of the randomness of a signature in octets. Zeros make the signature deterministic (FIPS
/// 204, algorithm 2).
const RANDOMNESS_OCTETS: usize = 32;
/// Size of the working set of the library's functions, in bytes: a matrix of 16 polynomials of 1024
/// bytes, and about ten vectors of 4 polynomials.
const STACK_BYTES: usize = 128 * 1024;

/// Returns the code that performs an operation; see [`crate::implementation()`].
pub(crate) fn implementation(operation: Operation, _batch: usize) -> Implementation {
    let library = "libcrux-ml-dsa";
    match operation {
        Operation::Generate if cfg!(all(target_arch = "aarch64", not(feature = "portable"))) => {
            Implementation::vectors(library, "NEON")
        }
        Operation::Generate => Implementation::portable(library).or_avx2(),
        Operation::Verify => Implementation::AWS_LC,
    }
}

/// Boxed, so that only one copy exists to wipe, however often the owner moves.
struct Private {
    key: Box<MLDSA44SigningKey>,
    public: Vec<u8>,
    seed: Zeroizing<Vec<u8>>,
    hedged: bool,
}

impl Drop for Private {
    fn drop(&mut self) {
        self.key.as_mut_slice().zeroize();
    }
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
    // The file has no public key to compare with; the public key is derived from the seed (FIPS
    // 204, algorithm 6).
    let expanded = wiping_stack::<STACK_BYTES, _>(|| {
        let pair = kernel::generate_key_pair(seed.as_slice().try_into().ok()?);
        Some((Box::new(pair.signing_key), pair.verification_key.as_slice().to_vec()))
    });
    let (key, public) = expanded.ok_or(KeyError::InvalidPrivateKey(algorithm))?;
    Ok(Box::new(Private { key, public, seed, hedged: false }))
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
        let mut randomness = [0; RANDOMNESS_OCTETS];
        if self.hedged {
            rand::fill(&mut randomness).map_err(|_| SignError::Library)?;
        }
        // The library gives up after 814 rounds of rejection sampling. About one round in 4
        // succeeds.
        let signature = wiping_stack::<STACK_BYTES, _>(|| kernel::sign(&self.key, message, b"", randomness));
        out.extend_from_slice(signature.map_err(|_| SignError::Library)?.as_slice());
        Ok(())
    }

    fn hedge(&mut self) {
        self.hedged = true;
    }

    fn fields(&self) -> Vec<(&'static str, &[u8])> {
        vec![(PRIVATE_KEY, &self.seed)]
    }
}

struct Public(ParsedPublicKey);

/// Parses a public key. Any octets of the right length are a public key (FIPS 204, algorithm 23).
pub(crate) fn parse_public(algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    // The library would also accept a SubjectPublicKeyInfo, which it distinguishes by its length.
    if key.len() != PUBLIC_OCTETS {
        return Err(KeyError::PublicKeyLength { algorithm, expected: PUBLIC_OCTETS, found: key.len() });
    }
    let parsed =
        ParsedPublicKey::new(&ML_DSA_44, key).map_err(|_| KeyError::MalformedPublicKey(algorithm))?;
    Ok(Box::new(Public(parsed)))
}

impl Verifier for Public {
    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        self.0.verify_sig(message, signature).map_err(|_| BadSignature)
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::BASE64;
    use proptest::prelude::*;

    use super::*;
    use crate::{PrivateKey, PublicKey};

    const ALGORITHM: Algorithm = Algorithm::MLDSA44;

    fn key_text(seed: &[u8]) -> String {
        format!("Private-key-format: v1.3\nAlgorithm: 18 (MLDSA44)\nPrivateKey: {}\n", BASE64.encode(seed))
    }

    fn sign(key: &PrivateKey, message: &[u8]) -> Vec<u8> {
        let mut signature = Vec::new();
        key.sign(message, &mut signature).unwrap();
        signature
    }

    #[test]
    fn other_lengths_are_rejected() {
        // 1334 octets are a SubjectPublicKeyInfo, 2560 octets the expanded private key, and 64
        // octets a seed in hexadecimal.
        for found in [0, 32, 1311, 1313, 1334] {
            let error = PublicKey::parse(ALGORITHM, &vec![0x30; found]).err();
            assert_eq!(
                error,
                Some(KeyError::PublicKeyLength { algorithm: ALGORITHM, expected: 1312, found })
            );
        }
        for found in [0, 31, 33, 64, 2560] {
            let error = PrivateKey::from_bind(&key_text(&vec![7; found])).err();
            assert_eq!(error, Some(KeyError::PrivateKeyLength { algorithm: ALGORITHM, expected: 32, found }));
        }
    }

    #[test]
    fn a_message_has_one_signature_unless_hedged() {
        let mut key = PrivateKey::from_bind(&key_text(&[7; 32])).unwrap();
        let public = PublicKey::parse(ALGORITHM, key.public_key()).unwrap();
        let first = sign(&key, b"message");
        assert_eq!(sign(&key, b"message"), first);
        key.hedge();
        let hedged = [sign(&key, b"message"), sign(&key, b"message")];
        assert!(hedged[0] != hedged[1] && hedged[0] != first);
        for signature in hedged {
            assert_eq!(public.verify(b"message", &signature), Ok(()));
        }
    }

    /// The two libraries derive the same key. The kernel selected at run time generates the same
    /// signatures as the portable kernel.
    #[test]
    fn libraries_and_kernels_agree() {
        for number in 0..20 {
            let seed = [number; SEED_OCTETS];
            let key = PrivateKey::from_bind(&key_text(&seed)).unwrap();
            let signing = &aws_lc_rs::signature::ML_DSA_44_SIGNING;
            let pair = aws_lc_rs::signature::PqdsaKeyPair::from_seed(signing, &seed).unwrap();
            assert_eq!(aws_lc_rs::signature::KeyPair::public_key(&pair).as_ref(), key.public_key());
            let public = PublicKey::parse(ALGORITHM, key.public_key()).unwrap();
            let mut theirs = vec![0; SIGNATURE_OCTETS];
            pair.sign(b"message", &mut theirs).unwrap();
            assert_eq!(public.verify(b"message", &theirs), Ok(()));

            use libcrux_ml_dsa::ml_dsa_44::portable;
            let pair = portable::generate_key_pair(seed);
            assert_eq!(pair.verification_key.as_slice(), key.public_key());
            let theirs = portable::sign(&pair.signing_key, b"message", b"", [0; 32]).unwrap();
            assert_eq!(theirs.as_slice(), sign(&key, b"message"));
        }
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(12))]

        #[test]
        fn keys_and_signatures_of_any_octets_do_not_panic(
            key in proptest::collection::vec(any::<u8>(), PUBLIC_OCTETS),
            signature in proptest::collection::vec(any::<u8>(), SIGNATURE_OCTETS),
            cut in any::<prop::sample::Index>(),
        ) {
            let key = PublicKey::parse(ALGORITHM, &key).unwrap();
            prop_assert_eq!(key.verify(b"message", &signature), Err(BadSignature));
            let cut = cut.index(SIGNATURE_OCTETS);
            prop_assert_eq!(key.verify(b"message", &signature[..cut]), Err(BadSignature));
            // Without hints. The hints are the only part of a signature in which nearly all octets
            // are an invalid encoding.
            let signature = [&signature[..SIGNATURE_OCTETS - 84], &[0; 84]].concat();
            prop_assert_eq!(key.verify(b"message", &signature), Err(BadSignature));
        }
    }
}
