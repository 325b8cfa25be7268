use ::rand::{Rng, SeedableRng};
use data_encoding::BASE64;
use proptest::prelude::*;
use rand_chacha::ChaCha8Rng;

use super::challenge::sample_in_ball;
use super::commitment::Inputs;
use super::signature::{Parts, decode_response};
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
        assert_eq!(error, Some(KeyError::PublicKeyLength { algorithm: ALGORITHM, expected: 1312, found }));
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
        key in proptest::collection::vec(any::<u8>(), PUBLIC_KEY_OCTETS),
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

const HINTS_AT: usize = SIGNATURE_OCTETS - 84;

/// Checks that aws-lc and each kernel decide the same about a signature, and returns the decision.
fn is_valid(key: &PrivateKey, message: &[u8], signature: &[u8]) -> bool {
    let octets = key.public_key().try_into().unwrap();
    let library = ParsedPublicKey::new(&ML_DSA_44, key.public_key()).unwrap();
    let expected = library.verify_sig(message, signature).is_ok();
    for kernel in Kernel::all() {
        let expanded = ExpandedKey::expand(kernel, octets).unwrap();
        let found = verify(kernel, &expanded, message, signature);
        assert_eq!(found, Ok(expected), "{:?}", kernel);
    }
    expected
}

#[test]
fn aws_lc_and_all_kernels_agree_on_mutated_signatures() {
    let mut random = ChaCha8Rng::seed_from_u64(204);
    for number in 0..12_u8 {
        let key = PrivateKey::from_bind(&key_text(&[number; 32])).unwrap();
        for length in [0, 1, 69, 70, 120, 3000] {
            let message: Vec<u8> = (0..length).map(|_| random.random()).collect();
            let signature = sign(&key, &message);
            assert!(is_valid(&key, &message, &signature));
            for region in [0..32, 32..HINTS_AT, HINTS_AT..SIGNATURE_OCTETS] {
                for _ in 0..16 {
                    let mut mutated = signature.clone();
                    mutated[random.random_range(region.clone())] ^= random.random_range(1..=255_u8);
                    assert!(!is_valid(&key, &message, &mutated));
                }
            }
        }
    }
}

/// Replaces the encoded hints of a valid signature.
fn with_hints(change: impl FnOnce(&mut [u8; 84])) -> bool {
    let key = PrivateKey::from_bind(&key_text(&[3; 32])).unwrap();
    let mut signature = sign(&key, b"message");
    change(signature.last_chunk_mut().unwrap());
    is_valid(&key, b"message", &signature)
}

#[test]
fn hints_have_one_encoding() {
    assert!(with_hints(|_| ()));
    assert!(!with_hints(|hints| hints.swap(0, 1)));
    assert!(!with_hints(|hints| hints[1] = hints[0]));
    assert!(!with_hints(|hints| hints[usize::from(hints[83])] = 1));
    assert!(!with_hints(|hints| hints[79] = 255));
    for polynomial in 80..84 {
        for end in 0..=255 {
            with_hints(|hints| hints[polynomial] = end);
        }
    }
}

/// The positions, with numbers of hints up to each polynomial.
fn decode(positions: &[u8], ends: [u8; 4]) -> Option<Vec<(usize, usize)>> {
    let mut signature = [0; SIGNATURE_OCTETS];
    signature[HINTS_AT..][..positions.len()].copy_from_slice(positions);
    signature[SIGNATURE_OCTETS - 4..].copy_from_slice(&ends);
    let hints = Parts::decode(&signature)?.hints;
    let set = |polynomial: usize| {
        (0..256).filter(move |at| hints[polynomial][*at] == 1).map(move |at| (polynomial, at))
    };
    Some((0..4).flat_map(set).collect())
}

#[test]
fn hint_encodings_at_the_limits() {
    assert_eq!(decode(&[], [0; 4]), Some(vec![]));
    assert_eq!(decode(&[0, 255, 0], [2, 2, 3, 3]), Some(vec![(0, 0), (0, 255), (2, 0)]));
    let ascending: Vec<u8> = (0..80).collect();
    assert_eq!(decode(&ascending, [80; 4]).unwrap().len(), 80);
    assert_eq!(decode(&ascending, [79, 80, 80, 80]).unwrap().last(), Some(&(1, 79)));
    for (positions, ends) in [
        (&ascending[..], [81; 4]),
        (&ascending, [80, 80, 80, 81]),
        (&ascending, [80, 79, 80, 80]),
        (&ascending, [79; 4]),
        (&[1, 0], [2; 4]),
        (&[1, 1], [2; 4]),
        (&[0, 1], [1; 4]),
        (&[], [255, 0, 0, 0]),
        (&[5], [1, 1, 1, 0]),
    ] {
        assert_eq!(decode(positions, ends), None, "{positions:?} {ends:?}");
    }
}

#[test]
fn lengths_of_signatures() {
    let valid = [0; SIGNATURE_OCTETS];
    assert!(Parts::decode(&valid).is_some());
    for length in [0, 31, 32, HINTS_AT, SIGNATURE_OCTETS - 1] {
        assert!(Parts::decode(&valid[..length]).is_none());
    }
    assert!(Parts::decode(&[0; SIGNATURE_OCTETS + 1]).is_none());
}

#[test]
fn the_response_is_below_its_bound() {
    const BOUND: i32 = (1 << 17) - 78;
    let mut octets = [0; 2304];
    let mut encode = |at: usize, value: u32| {
        for bit in 0..18 {
            let (index, mask) = ((18 * at + bit) / 8, 1 << ((18 * at + bit) % 8));
            octets[index] = if value >> bit & 1 == 1 { octets[index] | mask } else { octets[index] & !mask };
        }
        decode_response(&octets).map(|polynomials| polynomials[at / 256].rows[at % 256 / 8][at % 8])
    };
    for at in 0..1024 {
        encode(at, 1 << 17);
    }
    for at in [0, 1, 2, 3, 4, 7, 255, 256, 511, 1020, 1023] {
        for value in [1 - BOUND, -1, 0, 1, 12_345, BOUND - 1] {
            assert_eq!(encode(at, ((1 << 17) - value) as u32), Some(value));
        }
        for value in [BOUND, 1 << 17, -BOUND, 1 - (1 << 17)] {
            assert_eq!(encode(at, ((1 << 17) - value) as u32), None);
        }
        encode(at, 1 << 17);
    }
}

/// Any octets, most of which no signer generates.
#[test]
fn kernels_reconstruct_the_same_commitment_from_any_values() {
    let mut random = ChaCha8Rng::seed_from_u64(44);
    let mut accepted = 0;
    for _ in 0..200 {
        let octets: [u8; PUBLIC_KEY_OCTETS] = std::array::from_fn(|_| random.random());
        // Coefficients that are too large occur in about half of the cases.
        let mut response: [u8; 2304] = std::array::from_fn(|_| random.random());
        if random.random() {
            response
                .as_chunks_mut::<9>()
                .0
                .iter_mut()
                .for_each(|group| *group = group.map(|octet| octet & 0x77));
        }
        let hints = [(); 4].map(|()| std::array::from_fn(|_| random.random_range(0..2)));
        let challenge = sample_in_ball(&random.random()).unwrap();
        let mut commitments = Kernel::all().into_iter().map(|kernel| {
            let key = ExpandedKey::expand(kernel, &octets).unwrap();
            kernel.reconstruct(&Inputs {
                key: &key,
                response: &response,
                challenge: &challenge,
                hints: &hints,
            })
        });
        let first = commitments.next().unwrap();
        accepted += usize::from(first.is_some());
        assert!(commitments.all(|commitment| commitment == first));
    }
    assert!((50..190).contains(&accepted), "{accepted}");
}

#[test]
fn a_key_is_expanded_for_its_second_signature() {
    let private = PrivateKey::from_bind(&key_text(&[9; 32])).unwrap();
    let public = PublicKey::parse(ALGORITHM, private.public_key()).unwrap();
    let signature = sign(&private, b"message");
    let before = public.memory_octets();
    assert_eq!(public.verify(b"message", &signature), Ok(()));
    assert_eq!((public.memory_octets(), public.verification_nanoseconds()), (before, 45_000));
    assert!(public.without_table().is_none());
    assert_eq!(public.verify(b"message", &signature), Ok(()));
    assert_eq!(public.memory_octets(), before + 20 * 1024 + 64);
    assert!(public.verification_nanoseconds() < 45_000);
    let without = public.without_table().unwrap();
    assert_eq!(without.memory_octets(), before);
    for _ in 0..2 {
        assert_eq!(without.verify(b"message", &signature), Ok(()));
        assert_eq!(without.verify(b"other", &signature), Err(BadSignature));
    }
}
