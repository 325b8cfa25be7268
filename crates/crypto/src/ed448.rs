//! Ed448 keys (RFC 8080, RFC 8032): a public key of 57 octets, a signature of 114 octets, a private
//! seed of 57 octets. DNSSEC uses pure Ed448 with an empty context (RFC 8080, section 4).

use std::hint::black_box;

use crrl::ed448;
use zeroize::Zeroizing;

use crate::algorithm::{Algorithm, GenerationParameters};
use crate::bind_format::{PRIVATE_KEY, PrivateFile};
use crate::error::{BadSignature, KeyError, SignError};
use crate::key::{Signer, SignerResult, Verifier, VerifierResult};
use crate::wipe::wiping_stack;

const SEED_OCTETS: usize = 57;
const PUBLIC_OCTETS: usize = 57;
const SIGNATURE_OCTETS: usize = 114;
/// Bits of the encoded key, as key tools report it. The field has 448 bits.
const KEY_BITS: u32 = 456;
/// More stack, in bytes, than the library's functions use with private keys: a few key structures
/// of 300 octets, the state of a hash function, and tables of 16 points.
const STACK_BYTES: usize = 16 * 1024;

/// Boxed, so that only one copy exists to wipe, however often the owner moves.
struct Private {
    key: Box<ed448::PrivateKey>,
    seed: Zeroizing<Vec<u8>>,
}

impl Drop for Private {
    fn drop(&mut self) {
        // The library has no function that wipes a key, so another key overwrites it. `black_box`
        // makes the compiler assume that this key is read, so that it does not remove the write.
        *self.key = ed448::PrivateKey::from_seed(&[0; SEED_OCTETS]);
        black_box(&self.key);
    }
}

/// Generates a key from a random seed.
pub(crate) fn generate(parameters: GenerationParameters) -> SignerResult {
    from_seed(parameters.random_seed(SEED_OCTETS)?)
}

/// Reads the seed from a private key file.
pub(crate) fn read_private(file: &PrivateFile<'_>) -> SignerResult {
    // `private_key` checks the length: the library would panic on other lengths.
    from_seed(file.private_key(SEED_OCTETS)?)
}

fn from_seed(seed: Zeroizing<Vec<u8>>) -> SignerResult {
    // The file has no public key to compare with; the public key is derived from the seed.
    let key = wiping_stack::<STACK_BYTES, _>(|| Box::new(ed448::PrivateKey::from_seed(&seed)));
    Ok(Box::new(Private { key, seed }))
}

impl Signer for Private {
    fn public_key(&self) -> &[u8] {
        &self.key.public_key.encoded
    }

    fn bits(&self) -> u32 {
        KEY_BITS
    }

    fn signature_octets(&self) -> usize {
        SIGNATURE_OCTETS
    }

    fn sign(&self, message: &[u8], out: &mut Vec<u8>) -> Result<(), SignError> {
        out.extend_from_slice(&wiping_stack::<STACK_BYTES, _>(|| self.key.sign_raw(message)));
        Ok(())
    }

    fn fields(&self) -> Vec<(&'static str, &[u8])> {
        vec![(PRIVATE_KEY, &self.seed)]
    }
}

struct Public(ed448::PublicKey);

/// Parses a public key, with the checks of RFC 8032, section 5.2.3. It rejects a y-coordinate of p
/// or above, a y-coordinate that no point has, and an x-coordinate of 0 with the sign bit set.
///
/// It accepts points of small order, as the RFC does. Anyone can sign with such a key, but only for
/// the zone of the owner who published it. A validator that rejected such keys would differ from
/// other validators.
pub(crate) fn parse_public(algorithm: Algorithm, key: &[u8]) -> VerifierResult {
    if key.len() != PUBLIC_OCTETS {
        return Err(KeyError::PublicKeyLength { algorithm, expected: PUBLIC_OCTETS, found: key.len() });
    }
    let key = ed448::PublicKey::decode(key).ok_or(KeyError::NotOnCurve(algorithm))?;
    Ok(Box::new(Public(key)))
}

impl Verifier for Public {
    fn bits(&self) -> u32 {
        KEY_BITS
    }

    /// RFC 8032, section 5.2.7: R must be the canonical encoding of a point, and S must be below
    /// the order of the group. Then the equation is checked with the cofactor, 4SB = 4R + 4kA,
    /// which the RFC calls sufficient.
    ///
    /// The RFC also allows the check without the cofactor. It only differs for keys and points R
    /// with a component of small order. Signers that follow the RFC never produce these, and an
    /// attacker cannot produce them for the key of another signer.
    fn verify(&self, message: &[u8], signature: &[u8]) -> Result<(), BadSignature> {
        if self.0.verify_raw(signature, message) { Ok(()) } else { Err(BadSignature) }
    }
}

#[cfg(test)]
mod tests {
    use data_encoding::{BASE64, HEXLOWER};
    use proptest::prelude::*;

    use super::*;
    use crate::{PrivateKey, PublicKey};

    const ALGORITHM: Algorithm = Algorithm::ED448;

    fn key_text(seed: &[u8]) -> String {
        format!("Private-key-format: v1.3\nAlgorithm: 16 (ED448)\nPrivateKey: {}\n", BASE64.encode(seed))
    }

    /// RFC 8032, section 7.4: the tests "Blank" and "1 octet".
    #[test]
    fn rfc8032_section_7_4() {
        let cases = [
            (
                "6c82a562cb808d10d632be89c8513ebf6c929f34ddfa8c9f63c9960ef6e348a3528c8a3fcc2f044e39a3fc5b94492f8f032e7549a20098f95b",
                "5fd7449b59b461fd2ce787ec616ad46a1da1342485a70e1f8a0ea75d80e96778edf124769b46c7061bd6783df1e50f6cd1fa1abeafe8256180",
                "",
                "533a37f6bbe457251f023c0d88f976ae2dfb504a843e34d2074fd823d41a591f2b233f034f628281f2fd7a22ddd47d7828c59bd0a21bfd3980ff0d2028d4b18a9df63e006c5d1c2d345b925d8dc00b4104852db99ac5c7cdda8530a113a0f4dbb61149f05a7363268c71d95808ff2e652600",
            ),
            (
                "c4eab05d357007c632f3dbb48489924d552b08fe0c353a0d4a1f00acda2c463afbea67c5e8d2877c5e3bc397a659949ef8021e954e0a12274e",
                "43ba28f430cdff456ae531545f7ecd0ac834a55d9358c0372bfa0c6c6798c0866aea01eb00742802b8438ea4cb82169c235160627b4c3a9480",
                "03",
                "26b8f91727bd62897af15e41eb43c377efb9c610d48f2335cb0bd0087810f4352541b143c4b981b7e18f62de8ccdf633fc1bf037ab7cd779805e0dbcc0aae1cbcee1afb2e027df36bc04dcecbf154336c19f0af7e0a6472905e799f1953d2a0ff3348ab21aa4adafd1d234441cf807c03a00",
            ),
        ];
        for (seed, public, message, signature) in cases {
            let octets = |text: &str| HEXLOWER.decode(text.as_bytes()).unwrap();
            let key = PrivateKey::from_bind(&key_text(&octets(seed))).unwrap();
            assert_eq!(HEXLOWER.encode(key.public_key()), public);
            let mut produced = Vec::new();
            key.sign(&octets(message), &mut produced).unwrap();
            assert_eq!(HEXLOWER.encode(&produced), signature);
        }
    }

    #[test]
    fn other_lengths_are_rejected() {
        for found in [0, 32, 56, 58, 69] {
            let error = PublicKey::parse(ALGORITHM, &vec![0; found]).err();
            assert_eq!(error, Some(KeyError::PublicKeyLength { algorithm: ALGORITHM, expected: 57, found }));
            let error = PrivateKey::from_bind(&key_text(&vec![7; found])).err();
            assert_eq!(error, Some(KeyError::PrivateKeyLength { algorithm: ALGORITHM, expected: 57, found }));
        }
    }

    #[test]
    fn octets_that_do_not_encode_a_point_are_rejected() {
        // y = 0 is a point. p is the other encoding of 0 in 448 bits, and is invalid. p = 2^448 -
        // 2^224 - 1.
        let zero = [0; 57];
        assert!(PublicKey::parse(ALGORITHM, &zero).is_ok());
        let mut p = [0xff; 57];
        p[28] = 0xfe;
        p[56] = 0;
        let mut beyond = zero;
        beyond[56] = 1;
        // y = 1 is the point with x = 0, which must not have the sign bit.
        let mut negative_zero = zero;
        (negative_zero[0], negative_zero[56]) = (1, 0x80);
        // No point has y = 2: (y^2 - 1) / (d y^2 - 1) is not a square.
        let mut no_point = zero;
        no_point[0] = 2;
        for key in [p, beyond, negative_zero, no_point] {
            assert_eq!(PublicKey::parse(ALGORITHM, &key).err(), Some(KeyError::NotOnCurve(ALGORITHM)));
        }
    }

    /// `parse_public` and `verify` accept keys of small order. With the neutral point as the key, R
    /// = [S]B is a valid signature over every message.
    #[test]
    fn keys_of_small_order_are_accepted_as_in_rfc8032() {
        let mut neutral = [0; 57];
        neutral[0] = 1;
        let key = PublicKey::parse(ALGORITHM, &neutral).unwrap();
        let signature = [&neutral[..], &[0; 57]].concat();
        assert_eq!(key.verify(b"any message", &signature), Ok(()));
    }

    #[test]
    fn the_same_scalar_plus_the_order_is_rejected() {
        let order = HEXLOWER
            .decode(b"f34458ab92c27823558fc58d72c26c219036d6ae49db4ec4e923ca7cffffffffffffffffffffffffffffffffffffffffffffffffffffff3f")
            .unwrap();
        let key = PrivateKey::from_bind(&key_text(&[9; 57])).unwrap();
        let public = PublicKey::parse(ALGORITHM, key.public_key()).unwrap();
        let mut signature = Vec::new();
        key.sign(b"message", &mut signature).unwrap();
        assert_eq!(public.verify(b"message", &signature), Ok(()));
        let mut carry = 0;
        for (octet, add) in signature[57..].iter_mut().zip(order) {
            let sum = u16::from(*octet) + u16::from(add) + carry;
            (*octet, carry) = (sum as u8, sum >> 8);
        }
        assert_eq!(public.verify(b"message", &signature), Err(BadSignature));
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(11))]

        #[test]
        fn keys_and_signatures_of_any_octets_do_not_panic(
            mut key in proptest::collection::vec(any::<u8>(), 57),
            signature in proptest::collection::vec(any::<u8>(), 0..130),
            scalar in proptest::collection::vec(any::<u8>(), 55),
        ) {
            // The last octet of a valid encoding only has the sign bit.
            key[56] &= 0x80;
            if let Ok(public) = PublicKey::parse(ALGORITHM, &key) {
                prop_assert_eq!(public.verify(b"message", &signature), Err(BadSignature));
                // A well-formed signature: R is a point, and S is below the order.
                let signature = [&key[..], &scalar, &[0, 0]].concat();
                prop_assert_eq!(public.verify(b"message", &signature), Err(BadSignature));
            }
        }
    }
}
