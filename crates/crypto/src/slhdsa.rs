//! SLH-DSA-SHA2-128s keys (FIPS 205). A public key has 32 octets, a signature 7856 octets, a
//! private key 64 octets. As ML-DSA in DNSSEC, this is the pure variant with an empty context
//! (FIPS 205, algorithm 22).
//!
//! Signatures are deterministic unless the key is hedged: the deterministic variant uses PK.seed in
//! place of randomness (FIPS 205, section 9.2).
//!
//! Signing computes about two million hashes, verifying about two thousand.

use fips205::slh_dsa_sha2_128s::{self as scheme, PK_LEN, SIG_LEN, SK_LEN};
use fips205::traits::{KeyGen as _, SerDes as _, Signer as _};
use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, GenerationParameters};
use crate::bind_format::{PRIVATE_KEY, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};
use crate::implementation::Implementation;
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};
use crate::system_random::SystemRandom;
use crate::wipe::wiping_stack;

/// Length of each of the seeds SK.seed, SK.prf and PK.seed, in octets.
const SEED_OCTETS: usize = 16;
/// Bits of the encoded public key.
const KEY_BITS: u32 = PK_LEN as u32 * 8;
/// Context of signatures.
const CONTEXT: &[u8] = b"";
/// Size of the working set of the library's functions, in bytes: a few copies of a signature and
/// states of hash functions.
const STACK_BYTES: usize = 64 * 1024;

/// Returns the code that signs and verifies. The library computes nothing but hashes.
pub(crate) fn implementation() -> Implementation {
    Implementation::sha_if_available("fips205")
}

/// The decoded key is boxed, so that only one copy exists to wipe. Both forms are wiped on drop.
struct Private {
    key: Box<scheme::PrivateKey>,
    encoded: Zeroizing<Vec<u8>>,
    hedged: bool,
}

/// Generates a key from random seeds.
pub(crate) fn generate(parameters: GenerationParameters) -> SignerResult {
    let seeds = parameters.random_seed(3 * SEED_OCTETS)?;
    let key = wiping_stack::<STACK_BYTES, _>(|| {
        let (parts, _) = seeds.as_chunks::<SEED_OCTETS>();
        let [sk_seed, sk_prf, pk_seed] = parts else { return None };
        let (_, key) = scheme::KG::keygen_from_seed(sk_seed, sk_prf, pk_seed);
        let encoded = Zeroizing::new(key.clone().into_bytes());
        Some((Box::new(key), Zeroizing::new(encoded.to_vec())))
    });
    let (key, encoded) = key.ok_or(KeyError::Generation(parameters.algorithm))?;
    Ok(Box::new(Private { key, encoded, hedged: false }))
}

/// Reads the private key of FIPS 205, section 9.1, from a private key file: SK.seed, SK.prf,
/// PK.seed and PK.root. The library computes PK.root from the seeds and compares it.
pub(crate) fn read_private(file: &PrivateFile<'_>) -> SignerResult {
    let encoded = file.private_key(SK_LEN)?;
    let key = wiping_stack::<STACK_BYTES, _>(|| {
        let octets = encoded.as_slice().try_into().ok()?;
        scheme::PrivateKey::try_from_bytes(octets).map(Box::new).ok()
    });
    let key = key.ok_or_else(|| KeyError::InvalidPrivateKey(file.algorithm()))?;
    Ok(Box::new(Private { key, encoded, hedged: false }))
}

impl Signer for Private {
    fn public_key(&self) -> &[u8] {
        &self.encoded[SK_LEN - PK_LEN..]
    }

    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn signature_octets(&self) -> usize {
        SIG_LEN
    }

    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError> {
        let mut random = SystemRandom::default();
        let signature = wiping_stack::<STACK_BYTES, _>(|| {
            self.key.try_sign_with_rng(&mut random, message, CONTEXT, self.hedged)
        });
        match signature {
            Ok(signature) if !random.failed => {
                out.extend_from_slice(&signature);
                Ok(())
            }
            _ => Err(SignError::Library),
        }
    }

    fn hedge(&mut self) {
        self.hedged = true;
    }

    fn fields(&self) -> Vec<(&'static str, &[u8])> {
        vec![(PRIVATE_KEY, &self.encoded)]
    }
}

/// Parses a public key. Any octets of the right length are a public key.
pub(crate) fn parse_public(algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    let length = KeyError::PublicKeyLength { algorithm, expected: PK_LEN, found: key.len() };
    let key = key.try_into().map_err(|_| length)?;
    let key = scheme::PublicKey::try_from_bytes(key).map_err(|_| KeyError::MalformedPublicKey(algorithm))?;
    Ok(Box::new(key))
}

impl Verifier for scheme::PublicKey {
    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        let signature = signature.try_into().map_err(|_| BadSignature)?;
        match fips205::traits::Verifier::verify(self, message, signature, CONTEXT) {
            true => Ok(()),
            false => Err(BadSignature),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::LazyLock;

    use data_encoding::{BASE64, HEXUPPER};
    use proptest::prelude::*;

    use super::*;
    use crate::{PrivateKey, PublicKey};

    const ALGORITHM: Algorithm = Algorithm::SLHDSA128S;

    /// Private keys of the ACVP samples of NIST, `SLH-DSA-keyGen-FIPS205`, parameter set
    /// SLH-DSA-SHA2-128s. The last 16 octets are computed from the others.
    const ACVP_KEYS: [&str; 2] = [
        "2F896D61D9CD9038CA303394FADAA22A24AC5EC1D86A989CA2196C3C8632419C\
         1A05A42FE300E87B16AEE116CB2E236358E2C3E62632C9DE03D08A535A0EB7E7",
        "173D04C938C1C36BF289C3C022D04B1463AE23C41AA546DA589774AC20B745C4\
         0D794777914C99766827F0F09CA972BE0162C10219D422ADBA1359E6AA65299C",
    ];

    fn file(octets: &[u8]) -> String {
        let key = BASE64.encode(octets);
        format!("Private-key-format: v1.3\nAlgorithm: 248 (SLHDSA128S)\nPrivateKey: {key}\n")
    }

    fn sample(number: usize) -> Vec<u8> {
        HEXUPPER.decode(ACVP_KEYS[number].as_bytes()).unwrap()
    }

    fn sign(key: &PrivateKey) -> Vec<u8> {
        let mut signature = Vec::new();
        key.sign(b"message", &mut signature).unwrap();
        signature
    }

    /// A public key and its signature of `message`, because signing takes long.
    static SIGNED: LazyLock<(Vec<u8>, Vec<u8>)> = LazyLock::new(|| {
        let key = PrivateKey::from_bind(&file(&sample(0))).unwrap();
        (key.public_key().to_vec(), sign(&key))
    });

    #[test]
    fn keys_of_acvp_are_read_and_damaged_ones_rejected() {
        for number in 0..ACVP_KEYS.len() {
            let octets = sample(number);
            let key = PrivateKey::from_bind(&file(&octets)).unwrap();
            assert_eq!(key.public_key(), &octets[32..]);
            // SK.prf, from octet 16, has no influence on the public key.
            for damaged in [0, 15, 32, 47, 48, 63] {
                let mut octets = octets.clone();
                octets[damaged] ^= 1;
                let error = PrivateKey::from_bind(&file(&octets)).err();
                assert_eq!(error, Some(KeyError::InvalidPrivateKey(ALGORITHM)), "octet {damaged}");
            }
        }
    }

    #[test]
    fn keys_of_other_lengths_are_rejected() {
        for found in [0, 32, 48, 63, 65] {
            let error = PrivateKey::from_bind(&file(&vec![7; found])).err();
            assert_eq!(error, Some(KeyError::PrivateKeyLength { algorithm: ALGORITHM, expected: 64, found }));
        }
        for found in [0, 31, 33, 64] {
            let error = PublicKey::parse(ALGORITHM, &vec![7; found]).err();
            assert_eq!(error, Some(KeyError::PublicKeyLength { algorithm: ALGORITHM, expected: 32, found }));
        }
    }

    #[test]
    fn a_message_has_one_signature_unless_hedged() {
        let (public, first) = &*SIGNED;
        let public = PublicKey::parse(ALGORITHM, public).unwrap();
        let mut key = PrivateKey::from_bind(&file(&sample(0))).unwrap();
        assert_eq!(sign(&key), *first);
        key.hedge();
        let hedged = sign(&key);
        assert_ne!(hedged, *first);
        assert_eq!(public.verify(b"message", &hedged), Ok(()));
    }

    proptest! {
        #![proptest_config(ProptestConfig { cases: 128, ..crate::rfc_tests::seeded_config(31) })]

        #[test]
        fn any_flipped_bit_is_rejected(position in any::<prop::sample::Index>()) {
            let flip = |octets: &[u8]| {
                let mut octets = octets.to_vec();
                let bit = position.index(octets.len() * 8);
                octets[bit / 8] ^= 1 << (bit % 8);
                octets
            };
            let (public, signature) = &*SIGNED;
            let key = PublicKey::parse(ALGORITHM, public).unwrap();
            prop_assert_eq!(key.verify(b"message", signature), Ok(()));
            prop_assert_eq!(key.verify(b"message", &flip(signature)), Err(BadSignature));
            prop_assert_eq!(key.verify(&flip(b"message"), signature), Err(BadSignature));
            let other = PublicKey::parse(ALGORITHM, &flip(public)).unwrap();
            prop_assert_eq!(other.verify(b"message", signature), Err(BadSignature));
        }

        #[test]
        fn keys_and_signatures_of_any_octets_do_not_panic(
            key in proptest::collection::vec(any::<u8>(), PK_LEN),
            signature in proptest::collection::vec(any::<u8>(), SIG_LEN),
            cut in any::<prop::sample::Index>(),
        ) {
            let key = PublicKey::parse(ALGORITHM, &key).unwrap();
            prop_assert_eq!(key.verify(b"message", &signature), Err(BadSignature));
            prop_assert_eq!(key.verify(b"message", &signature[..cut.index(SIG_LEN)]), Err(BadSignature));
        }
    }
}
