use data_encoding::BASE64;
use proptest::prelude::*;

use super::*;
use crate::{PrivateKey, PublicKey};

const ALGORITHM: Algorithm = Algorithm::FALCON512;

fn key_text(encoded: &[u8]) -> String {
    let encoded = BASE64.encode(encoded);
    format!(
        "Private-key-format: v1.3\nAlgorithm: 251 (FALCON512)\nDialect: falcon-round3-padded\nPrivateKey: {encoded}\n"
    )
}

/// Returns the octets of a new private key, and its public key.
fn new_key() -> (Vec<u8>, Vec<u8>) {
    let key = PrivateKey::generate(ALGORITHM, None).unwrap();
    let text = key.to_bind();
    let encoded = text.lines().find_map(|line| line.strip_prefix("PrivateKey: ")).unwrap();
    (BASE64.decode(encoded.as_bytes()).unwrap(), key.public_key().to_vec())
}

fn parse_error(encoded: &[u8]) -> Option<KeyError> {
    PrivateKey::from_bind(&key_text(encoded)).err()
}

/// Positions of f, g and F in an encoded private key.
const F: std::ops::Range<usize> = 1..385;
const G: std::ops::Range<usize> = 385..769;
const BIG_F: std::ops::Range<usize> = 769..1281;

#[test]
fn private_keys_are_read_and_give_the_same_public_key() {
    for _ in 0..4 {
        let (encoded, public) = new_key();
        assert_eq!((encoded.len(), encoded[0]), (1281, 0x59));
        assert_eq!((public.len(), public[0]), (897, 9));
        let key = PrivateKey::from_bind(&key_text(&encoded)).unwrap();
        assert_eq!(key.public_key(), public);
        assert_eq!(*key.to_bind(), key_text(&encoded));
    }
}

#[test]
fn other_lengths_are_rejected() {
    for found in [0, 896, 898, 1793] {
        let error = PublicKey::parse(ALGORITHM, &vec![9; found]).err();
        assert_eq!(error, Some(KeyError::PublicKeyLength { algorithm: ALGORITHM, expected: 897, found }));
    }
    for found in [0, 1, 1280, 1282, 2305] {
        let error = KeyError::PrivateKeyLength { algorithm: ALGORITHM, expected: 1281, found };
        assert_eq!(parse_error(&vec![0x59; found]), Some(error));
    }
}

#[test]
fn public_keys_in_another_encoding_are_rejected() {
    let (_, public) = new_key();
    // The first octets of Falcon-1024 and of a signature, then a coefficient of 2^14 - 1.
    for (position, octet) in [(0, 0x0a), (0, 0x39)] {
        let mut key = public.clone();
        key[position] = octet;
        assert_eq!(PublicKey::parse(ALGORITHM, &key).err(), Some(KeyError::MalformedPublicKey(ALGORITHM)));
    }
    let mut key = public;
    key[1..3].fill(0xff);
    assert_eq!(PublicKey::parse(ALGORITHM, &key).err(), Some(KeyError::MalformedPublicKey(ALGORITHM)));
}

#[test]
fn private_keys_whose_parts_do_not_belong_together_are_rejected() {
    let invalid = Some(KeyError::InvalidPrivateKey(ALGORITHM));
    let ((one, _), (other, _)) = (new_key(), new_key());
    for part in [F, G, BIG_F] {
        let mut mixed = one.clone();
        mixed[part.clone()].copy_from_slice(&other[part]);
        assert_eq!(parse_error(&mixed), invalid);
    }
    let mut header = one;
    header[0] = 0x5a;
    assert_eq!(parse_error(&header), invalid);
}

/// Keys that the library accepts, because G is short, but that are not a valid basis. Signing with
/// them could run forever.
#[test]
fn private_keys_that_pass_modulo_q_alone_are_rejected() {
    let (encoded, _) = new_key();
    // F = 0, so G = 0; and F = f, so G = g. Both have the determinant 0.
    let mut zero = encoded.clone();
    zero[BIG_F].fill(0);
    let mut same = encoded.clone();
    let mut window = 0_u32;
    let mut window_bits = 0;
    let mut positions = BIG_F;
    for octet in &encoded[F] {
        window = window << 8 | u32::from(*octet);
        window_bits += 8;
        while window_bits >= 6 {
            window_bits -= 6;
            let coefficient = (window >> window_bits & 63) as u8;
            same[positions.next().unwrap()] =
                if coefficient >= 32 { coefficient | 0xc0 } else { coefficient };
        }
    }
    // f = 1 and the rest 0: fG − gF is 0, which is q modulo q.
    let mut trivial = vec![0; 1281];
    (trivial[0], trivial[1]) = (0x59, 0b0000_0100);
    for key in [zero, same, trivial] {
        assert!(decode(&key).is_some());
        assert_eq!(parse_error(&key), Some(KeyError::InvalidPrivateKey(ALGORITHM)));
    }
}

#[test]
fn another_dialect_is_rejected() {
    let (encoded, _) = new_key();
    let text = key_text(&encoded).replace("falcon-round3-padded", "fn-dsa");
    let expected = "falcon-round3-padded";
    let error = PrivateKey::from_bind(&text).err();
    assert_eq!(error, Some(KeyError::Dialect { algorithm: ALGORITHM, expected }));
}

#[test]
fn signatures_have_the_padded_form_and_differ() {
    let (encoded, public) = new_key();
    let key = PrivateKey::from_bind(&key_text(&encoded)).unwrap();
    let public = PublicKey::parse(ALGORITHM, &public).unwrap();
    let mut signatures = Vec::new();
    for _ in 0..16 {
        let mut signature = Vec::new();
        key.sign(b"message", &mut signature).unwrap();
        assert_eq!((signature.len(), signature[0]), (666, 0x39));
        assert_eq!(public.verify(b"message", &signature), Ok(()));
        // The first octet of the NIST interface, an undefined one, and the one of the constant-time
        // format.
        for header in [0x29, 0x49, 0x59] {
            let mut other = signature.clone();
            other[0] = header;
            assert_eq!(public.verify(b"message", &other), Err(BadSignature));
        }
        // Nonzero octets in the padding, and no padding.
        let mut padding = signature.clone();
        *padding.last_mut().unwrap() ^= 1;
        assert_eq!(public.verify(b"message", &padding), Err(BadSignature));
        let end = signature.iter().rposition(|octet| *octet != 0).unwrap();
        assert_eq!(public.verify(b"message", &signature[..=end]), Err(BadSignature));
        signatures.push(signature);
    }
    signatures.sort();
    signatures.dedup();
    assert_eq!(signatures.len(), 16);
}

#[test]
fn signatures_without_randomness_are_discarded() {
    let (encoded, _) = new_key();
    let mut key = decode(&encoded).unwrap();
    let mut signature = [7; SIGNATURE_OCTETS];
    assert_eq!(sign_with(&mut key, SystemRandom::default(), b"message", &mut signature), Ok(()));
    let failed = SystemRandom { failed: true, calls: 0 };
    assert_eq!(sign_with(&mut key, failed, b"message", &mut signature), Err(SignError::Library));
    assert_eq!(signature, [0; SIGNATURE_OCTETS]);
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, ..crate::rfc_tests::seeded_config(13) })]

    #[test]
    fn keys_and_signatures_of_any_octets_do_not_panic(
        coefficients in proptest::collection::vec(0_u16..12289, 512),
        mut signature in proptest::collection::vec(any::<u8>(), SIGNATURE_OCTETS),
        header in any::<bool>(),
    ) {
        let mut key = vec![9];
        for four in coefficients.chunks(4) {
            let bits = four.iter().fold(0_u64, |bits, value| bits << 14 | u64::from(*value));
            key.extend_from_slice(&bits.to_be_bytes()[1..]);
        }
        let key = PublicKey::parse(ALGORITHM, &key).unwrap();
        if header {
            signature[0] = 0x39;
        }
        prop_assert_eq!(key.verify(b"message", &signature), Err(BadSignature));
    }

    #[test]
    fn private_keys_of_any_octets_do_not_panic(
        mut octets in proptest::collection::vec(any::<u8>(), PRIVATE_OCTETS),
        zeros in 0..PRIVATE_OCTETS,
    ) {
        octets[0] = 0x59;
        octets[zeros.max(1)..].fill(0);
        prop_assert_eq!(parse_error(&octets), Some(KeyError::InvalidPrivateKey(ALGORITHM)));
    }
}
