//! The examples of RFC 9381, and properties of every VRF in the table.

use data_encoding::HEXLOWER;
use proptest::prelude::*;
use proptest::test_runner::TestRunner;
use serde_json::Value;

use super::*;
use crate::freed::{assert_wiped, memory_freed_by};
use crate::rfc_tests::seeded_config;

/// Returns the examples of RFC 9381 for one algorithm, and checks their number.
pub(super) fn examples(algorithm: VrfAlgorithm) -> Vec<Example> {
    let read: Value = serde_json::from_str(include_str!("../../tests/vrf-vectors.json")).unwrap();
    let vectors = read["vectors"].as_array().unwrap().iter();
    let examples: Vec<Example> =
        vectors.filter(|vector| vector["algorithm"] == algorithm.0).cloned().map(Example).collect();
    assert_eq!(examples.len(), 3);
    examples
}

/// One example: octets by name.
pub(super) struct Example(Value);

impl Example {
    pub(super) fn octets(&self, name: &str) -> Vec<u8> {
        HEXLOWER.decode(self.0[name].as_str().unwrap().as_bytes()).unwrap()
    }

    pub(super) fn bits(&self) -> u16 {
        u16::try_from(self.0["bits"].as_u64().unwrap()).unwrap()
    }
}

/// Returns a key of each algorithm, the same in every run.
pub(super) fn keys() -> Vec<(VrfPrivateKey, VrfPublicKey)> {
    let make = |entry: &VrfAlgorithmEntry| {
        let secret = &[0x42; 32];
        let private = match entry.secret {
            SecretForm::RsaPrivateKey => VrfPrivateKey::from_secret(entry.algorithm, &rsa_secret()),
            _ => VrfPrivateKey::from_secret(entry.algorithm, secret),
        };
        let private = private.unwrap();
        let public = VrfPublicKey::parse(entry.algorithm, private.public_key()).unwrap();
        (private, public)
    };
    VRF_ALGORITHMS.iter().map(make).collect()
}

/// The key of 2048 bits in RFC 9381, appendix A.
pub(super) fn rsa_secret() -> Vec<u8> {
    examples(VrfAlgorithm::RSA_FDH_SHA256)[0].octets("secret")
}

fn prove(key: &VrfPrivateKey, alpha: &[u8]) -> (Vec<u8>, [u8; VRF_HASH_OCTETS]) {
    let mut proof = Vec::new();
    let hash = key.prove(alpha, &mut proof).unwrap();
    (proof, hash)
}

/// The ten examples with keys that the table supports, through the public interface. The tests of
/// the RSA module cover longer moduli, and those of each curve cover the parts of a proof.
#[test]
fn rfc9381_appendices_a_and_b() {
    let mut checked = 0;
    for entry in &VRF_ALGORITHMS {
        for example in examples(entry.algorithm) {
            let Ok(key) = VrfPrivateKey::from_secret(entry.algorithm, &example.octets("secret")) else {
                assert!(example.bits() > 2048);
                continue;
            };
            let alpha = example.octets("alpha");
            let (proof, hash) = prove(&key, &alpha);
            assert_eq!(HEXLOWER.encode(&proof), HEXLOWER.encode(&example.octets("pi")));
            assert_eq!(hash, example.octets("beta")[..VRF_HASH_OCTETS]);
            let public = VrfPublicKey::parse(entry.algorithm, key.public_key()).unwrap();
            assert_eq!(public.verify(&alpha, &proof), Ok(hash));
            assert_eq!(proof_to_hash(entry.algorithm, &proof), Ok(hash));
            checked += 1;
        }
    }
    assert_eq!(checked, 10);
}

/// Changes one bit.
fn flip(octets: &[u8], position: prop::sample::Index) -> Vec<u8> {
    let mut octets = octets.to_vec();
    let bit = position.index(octets.len() * 8);
    octets[bit / 8] ^= 1 << (bit % 8);
    octets
}

#[test]
fn proofs_verify_and_flipped_bits_do_not() {
    let keys = keys();
    let inputs = (proptest::collection::vec(any::<u8>(), 1..300), any::<prop::sample::Index>());
    let config = ProptestConfig { cases: 64, ..seeded_config(33) };
    let outcome = TestRunner::new(config).run(&inputs, |(alpha, position)| {
        for (private, public) in &keys {
            let (proof, hash) = prove(private, &alpha);
            prop_assert_eq!(proof.len(), private.entry.proof_octets);
            prop_assert_eq!(public.verify(&alpha, &proof), Ok(hash));
            prop_assert_eq!(proof_to_hash(public.algorithm(), &proof), Ok(hash));
            prop_assert_eq!(public.verify(&alpha, &flip(&proof, position)), Err(BadProof));
            prop_assert_eq!(public.verify(&flip(&alpha, position), &proof), Err(BadProof));
            prop_assert_eq!(public.verify(&alpha[1..], &proof), Err(BadProof));
            prop_assert_eq!(public.verify(&alpha, &proof[1..]), Err(BadProof));
            prop_assert_eq!(public.verify(&alpha, &[&proof[..], &[0]].concat()), Err(BadProof));
            // The result is another key, or not a key.
            if let Ok(other) = VrfPublicKey::parse(public.algorithm(), &flip(private.public_key(), position))
            {
                prop_assert_eq!(other.verify(&alpha, &proof), Err(BadProof));
            }
        }
        Ok(())
    });
    outcome.unwrap();
}

/// A batch for keys of all algorithms, most of them on P-256, in mixed order: each item has the proof
/// of its own key.
#[test]
fn batches_of_many_keys_equal_single_proofs() {
    let p256 = |octet: u8| VrfPrivateKey::from_secret(VrfAlgorithm::P256_SHA256_TAI, &[octet; 32]).unwrap();
    let mut private: Vec<VrfPrivateKey> = (1..=9).map(p256).collect();
    private.extend(keys().into_iter().map(|(private, _)| private));
    let inputs: Vec<[u8; 1]> = (0..70).map(|number| [number / 2]).collect();
    let is_rsa = |item: &VrfProveItem<'_>| item.key.algorithm() == VrfAlgorithm::RSA_FDH_SHA256;
    let items = (0..70)
        .map(|number| VrfProveItem { key: &private[number * 5 % private.len()], input: &inputs[number] });
    // RSA is slow: one item is enough.
    let items: Vec<VrfProveItem<'_>> =
        items.enumerate().filter(|(at, item)| *at < 13 || !is_rsa(item)).map(|(_, item)| item).collect();
    for count in [0, 1, 2, 9, items.len()] {
        let expected: Vec<_> = items[..count]
            .iter()
            .map(|item| prove(item.key, item.input))
            .map(|(octets, hash)| Ok(VrfProof { octets, hash }))
            .collect();
        assert_eq!(prove_batch(&items[..count]), expected);
    }
}

/// Batches with about as many inputs as share their inversions. Some inputs occur twice.
#[test]
fn batches_equal_single_proofs() {
    for (private, _) in keys() {
        for count in [0, 1, 2, 31, 32, 33, 65] {
            // RSA is slow, and its inputs share no work.
            let count = if private.algorithm() == VrfAlgorithm::RSA_FDH_SHA256 { count / 16 } else { count };
            let alphas: Vec<Vec<u8>> =
                (0..count).map(|number| vec![number as u8 / 2; count - number]).collect();
            let alphas: Vec<&[u8]> = alphas.iter().map(Vec::as_slice).collect();
            let (mut proofs, mut hashes) = (vec![7], vec![[8; VRF_HASH_OCTETS]]);
            private.prove_batch(&alphas, &mut proofs, &mut hashes).unwrap();
            let mut expected = (vec![7], vec![[8; VRF_HASH_OCTETS]]);
            for alpha in alphas {
                let (proof, hash) = prove(&private, alpha);
                expected.0.extend(proof);
                expected.1.push(hash);
            }
            assert_eq!((proofs, hashes), expected);
        }
    }
}

/// Proofs of another implementation verify here and the reverse, for the suites on curves.
#[test]
fn another_implementation_agrees() {
    use vrf_rfc9381::ec::edwards25519::{elligator2, tai};
    use vrf_rfc9381::ec::p256::tai as p256;
    use vrf_rfc9381::{Proof, Prover, VRF, Verifier};

    fn compare<V: VRF>(vrf: &V, algorithm: VrfAlgorithm, secret: &[u8], alpha: &[u8], sec1: bool) {
        let ours = VrfPrivateKey::from_secret(algorithm, secret).unwrap();
        let public = VrfPublicKey::parse(algorithm, ours.public_key()).unwrap();
        let theirs = V::Prover::from_slice(secret).unwrap();
        let (proof, hash) = prove(&ours, alpha);
        let their_proof = theirs.prove(alpha).unwrap();
        assert_eq!(their_proof.encode_to_pi(), proof);
        assert_eq!(public.verify(alpha, &their_proof.encode_to_pi()), Ok(hash));
        let point = if sec1 { &[&[4], ours.public_key()].concat() } else { ours.public_key() };
        let verifier = V::Verifier::from_slice(point).unwrap();
        let verified = vrf.verify(&verifier, alpha, &proof).unwrap();
        assert_eq!(verified[..VRF_HASH_OCTETS], hash);
        assert!(vrf.verify(&verifier, b"other", &proof).is_err());
    }

    let config = ProptestConfig { cases: 24, ..seeded_config(34) };
    // Octets of at least 1, because 0 is not a valid scalar of P-256. One scalar in 2³² is above
    // its order.
    let inputs = (any::<[u8; 32]>().prop_map(|secret| secret.map(|octet| octet.max(1))), any::<Vec<u8>>());
    let outcome = TestRunner::new(config).run(&inputs, |(secret, alpha)| {
        let mut scalar = secret;
        scalar[0] &= 0x7f;
        compare(&p256::EcVrfP256Tai, VrfAlgorithm::P256_SHA256_TAI, &scalar, &alpha, true);
        compare(&tai::EdVrfEdwards25519Tai, VrfAlgorithm::EDWARDS25519_SHA512_TAI, &secret, &alpha, false);
        compare(
            &elligator2::EdVrfEdwards25519Ell2,
            VrfAlgorithm::EDWARDS25519_SHA512_ELL2,
            &secret,
            &alpha,
            false,
        );
        Ok(())
    });
    outcome.unwrap();
}

#[test]
fn the_table_matches_the_keys() {
    const fn assert_shared<T: Send + Sync>() {}
    const { assert_shared::<VrfPrivateKey>() }
    const { assert_shared::<VrfPublicKey>() }
    for entry in &VRF_ALGORITHMS {
        let key = VrfPrivateKey::generate(entry.algorithm).unwrap();
        assert_eq!(key.public_key().len(), entry.public_key_octets.unwrap_or(260));
        let (proof, hash) = prove(&key, b"name");
        assert_eq!(proof.len(), entry.proof_octets);
        let public = VrfPublicKey::parse(entry.algorithm, key.public_key()).unwrap();
        assert_eq!(public.to_octets(), key.public_key());
        assert_eq!(public.clone().verify(b"name", &proof), Ok(hash));
        assert_eq!(entry.algorithm.to_string(), entry.mnemonic);
        assert_eq!(VrfAlgorithm::from_name(entry.name), Some(entry.algorithm));
        assert_eq!(VrfAlgorithm::from_name(&entry.name.to_uppercase()), Some(entry.algorithm));
        assert_eq!(VrfAlgorithm::from_name(&entry.algorithm.0.to_string()), Some(entry.algorithm));
        assert_ne!(key.public_key(), VrfPrivateKey::generate(entry.algorithm).unwrap().public_key());
    }
    assert_eq!(VrfAlgorithm::from_name("p384"), None);
    assert_eq!(VrfAlgorithm::from_name("0"), None);
}

#[test]
fn unknown_algorithms_are_named() {
    let unknown = Some(VrfKeyError::UnknownAlgorithm(VrfAlgorithm(99)));
    assert_eq!(VrfPublicKey::parse(VrfAlgorithm(99), &[0; 64]).err(), unknown);
    assert_eq!(VrfPrivateKey::generate(VrfAlgorithm(99)).err(), unknown);
    assert_eq!(VrfPrivateKey::from_secret(VrfAlgorithm(99), &[1; 32]).err(), unknown);
    assert_eq!(proof_to_hash(VrfAlgorithm(99), &[0; 80]), Err(BadProof));
    assert_eq!(VrfAlgorithm(99).to_string(), "99");
}

#[test]
fn debug_shows_no_secret() {
    for (private, public) in keys() {
        let mnemonic = private.entry.mnemonic;
        assert_eq!(format!("{private:?}"), format!("VrfPrivateKey {{ algorithm: {mnemonic:?}, .. }}"));
        assert_eq!(format!("{public:?}"), format!("VrfPublicKey {{ algorithm: {mnemonic:?}, .. }}"));
    }
}

#[test]
fn one_key_serves_many_threads() {
    for (private, public) in keys() {
        std::thread::scope(|scope| {
            for thread in 0..4_u8 {
                let (private, public) = (&private, &public);
                scope.spawn(move || {
                    let (proof, hash) = prove(private, &[thread]);
                    assert_eq!(public.verify(&[thread], &proof), Ok(hash));
                });
            }
        });
    }
}

proptest! {
    #![proptest_config(seeded_config(35))]

    #[test]
    fn any_octets_are_rejected_without_panic(
        number in prop_oneof![1_u8..=3, Just(128), any::<u8>()],
        key in proptest::collection::vec(any::<u8>(), 0..300),
        short in any::<[u8; 32]>(),
        proof in proptest::collection::vec(any::<u8>(), 78..84),
    ) {
        for key in [&key[..], &short] {
            if let Ok(public) = VrfPublicKey::parse(VrfAlgorithm(number), key) {
                prop_assert_eq!(public.to_octets(), key);
                prop_assert_eq!(public.verify(b"name", &proof), Err(BadProof));
            }
        }
        let _ = proof_to_hash(VrfAlgorithm(number), &proof);
    }
}

/// Returns the numbers of all algorithms for which the VRF key is the signing key with the public
/// key field `key`.
fn algorithms_that_sign(vrf: &VrfPrivateKey, key: &[u8]) -> Vec<u8> {
    let is_same = |number: &u8| vrf.algorithm().is_signing_key(vrf.public_key(), Algorithm(*number), key);
    (0..=u8::MAX).filter(is_same).collect()
}

#[test]
fn signing_keys_are_detected_for_every_number_of_their_algorithm() {
    let numbers = |algorithm| match algorithm {
        VrfAlgorithm::P256_SHA256_TAI => vec![13, 229],
        VrfAlgorithm::RSA_FDH_SHA256 => vec![5, 7, 8, 10, 228, 236],
        _ => vec![15, 231],
    };
    for (vrf, _) in keys() {
        assert_eq!(algorithms_that_sign(&vrf, vrf.public_key()), numbers(vrf.algorithm()), "{vrf:?}");
        let mut other = vrf.public_key().to_vec();
        other[17] ^= 1;
        for key in [&other, &other[..other.len() - 1], &[], &[0], &[200, 1]] {
            assert!(algorithms_that_sign(&vrf, key).is_empty(), "{vrf:?} {key:?}");
        }
    }
}

/// The public key fields of signing keys come from the other libraries.
#[test]
fn the_same_secret_makes_the_same_key() {
    for (number, vrf) in [(13, "p256"), (229, "p256"), (15, "ed25519"), (231, "ed25519-tai")] {
        let secret = data_encoding::BASE64.encode(&[0x42; 32]);
        let text = format!("Private-key-format: v1.3\nAlgorithm: {number} (X)\nPrivateKey: {secret}\n");
        let signing = crate::PrivateKey::from_bind(&text).unwrap();
        let vrf = VrfPrivateKey::from_secret(VrfAlgorithm::from_name(vrf).unwrap(), &[0x42; 32]).unwrap();
        assert!(algorithms_that_sign(&vrf, signing.public_key()).contains(&number));
        let other = crate::PrivateKey::generate(Algorithm(number), None).unwrap();
        assert!(algorithms_that_sign(&vrf, other.public_key()).is_empty());
    }
}

#[test]
fn a_negated_point_and_another_exponent_are_the_same_key() {
    for (vrf, _) in keys() {
        let field = vrf.public_key();
        let others: Vec<Vec<u8>> = match vrf.algorithm() {
            VrfAlgorithm::P256_SHA256_TAI => {
                let point = crate::p256::Affine::from_coordinates(field.try_into().unwrap()).unwrap();
                vec![point.negate().to_coordinates().to_vec()]
            }
            VrfAlgorithm::RSA_FDH_SHA256 => {
                let modulus = &field[4..];
                // Exponent 3, the length in its long form, and a leading zero.
                let fields: [&[&[u8]]; 3] =
                    [&[&[1, 3], modulus], &[&[0, 0, 1, 3], modulus], &[&[1, 3, 0], modulus]];
                fields.iter().map(|parts| parts.concat()).collect()
            }
            _ => {
                let mut negated = field.to_vec();
                negated[31] ^= 0x80;
                vec![negated]
            }
        };
        for other in others {
            assert_eq!(
                algorithms_that_sign(&vrf, &other),
                algorithms_that_sign(&vrf, field),
                "{vrf:?} {other:?}"
            );
        }
    }
}

/// A moved key leaves no copy behind. The key is taken out of a vector that grew.
#[test]
fn private_keys_are_wiped_when_read_moved_and_dropped() {
    for (key, _) in keys() {
        let (text, secret) = (key.to_text(), key.secret());
        let part = &secret[..secret.len().min(48)];
        let secrets = match key.entry.secret {
            // The first numbers of an RSA key are public.
            SecretForm::RsaPrivateKey => vec![("the end".to_owned(), secret[secret.len() - 48..].to_vec())],
            SecretForm::Scalar | SecretForm::Seed => {
                let mut words: Vec<u8> = part.to_vec();
                words.reverse();
                vec![("the secret".to_owned(), part.to_vec()), ("the secret in words".to_owned(), words)]
            }
        };
        let work = || {
            let mut keys = Vec::new();
            for _ in 0..5 {
                keys.push(VrfPrivateKey::from_text(&text).unwrap());
            }
            let last = keys.pop().unwrap();
            last.prove(b"name", &mut Vec::new()).unwrap();
            (last.to_text(), last.secret())
        };
        assert_wiped(&memory_freed_by(work), &secrets);
        assert_wiped(&memory_freed_by(|| key), &secrets);
    }
}
