//! Batch and single check give the same results: for honest signatures, for Wycheproof's
//! signatures, and for signatures that are constructed to make the results differ.

use curve25519_dalek::constants::{ED25519_BASEPOINT_POINT, EIGHT_TORSION};
use curve25519_dalek::edwards::{CompressedEdwardsY, EdwardsPoint};
use proptest::prelude::*;

use super::*;
use crate::{Algorithm, BadSignature, PrivateKey, PublicKey, VerifyItem, verify_batch};

/// Number of items for which a batch builds the table of the key.
const LARGE_BATCH: usize = 40;

fn scalar(seed: u64) -> Scalar {
    let digest = digest::digest(&digest::SHA512, &seed.to_be_bytes());
    Scalar::from_bytes_mod_order_wide(digest.as_ref().try_into().unwrap())
}

fn challenge(r: &[u8], key: &[u8], message: &[u8]) -> Scalar {
    let digest = digest::digest(&digest::SHA512, &[r, key, message].concat());
    Scalar::from_bytes_mod_order_wide(digest.as_ref().try_into().unwrap())
}

/// Computes S such that \[S\]B = R + \[k\]A up to a point of small order, for any octets that
/// represent R and A.
fn sign(secret: Scalar, key: &[u8], nonce: Scalar, r: &[u8], message: &[u8]) -> Vec<u8> {
    let s = nonce + challenge(r, key, message) * secret;
    [r, s.as_bytes()].concat()
}

/// Returns all 14 encodings of points of small order, including those with y + p and those with the
/// sign bit for x = 0.
fn small_order_encodings() -> Vec<[u8; POINT_OCTETS]> {
    let mut all: Vec<_> = EIGHT_TORSION.iter().map(|point| point.compress().to_bytes()).collect();
    let mut prime = [0xff; POINT_OCTETS];
    (prime[0], prime[POINT_OCTETS - 1]) = (0xed, 0x7f);
    // y = 0 as p, and y = 1 as p + 1: adding 1 to the lowest octet of p does not carry.
    let (zero, mut one) = (prime, prime);
    one[0] += 1;
    let negative = |mut octets: [u8; POINT_OCTETS]| {
        octets[POINT_OCTETS - 1] |= 0x80;
        octets
    };
    all.extend([zero, negative(zero), one, negative(one)]);
    let (identity, two) = (EdwardsPoint::default(), EIGHT_TORSION[4]);
    all.extend([identity, two].map(|point| negative(point.compress().to_bytes())));
    all
}

/// Checks that items of one key have the same results in a batch and singly. Returns how many are
/// good.
fn compare(field: &[u8], signed: &[(Vec<u8>, Vec<u8>)]) -> usize {
    // Some keys are already rejected here, whatever the signature.
    let Ok(key) = PublicKey::parse(Algorithm::ED25519, field) else { return 0 };
    let items: Vec<_> = signed
        .iter()
        .map(|(message, signature)| VerifyItem { key: &key, message, signature })
        .cycle()
        .take(signed.len().max(LARGE_BATCH))
        .collect();
    let single: Vec<_> = items.iter().map(|item| key.verify(item.message, item.signature)).collect();
    let mut outcome = Vec::new();
    verify_batch(&items, &mut outcome);
    assert_eq!(outcome, single, "key {field:02x?}");
    single.iter().take(signed.len()).filter(|result| result.is_ok()).count()
}

#[test]
fn the_small_order_encodings_are_fourteen() {
    let mut all = small_order_encodings();
    for octets in &all {
        let decoded = CompressedEdwardsY(*octets).decompress();
        assert!(decoded.is_none_or(|point| point.is_small_order()), "{octets:02x?}");
    }
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), 14);
}

#[test]
fn tables_hold_multiples() {
    let point = Point::decode(&BASE_ENCODING).unwrap();
    let table = Table::<KEY_WINDOW_BITS>::new(point);
    let numbers = (0..50).map(scalar).chain([Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(32_u8)]);
    for number in numbers {
        let expected = (ED25519_BASEPOINT_POINT * number).compress().to_bytes();
        for found in [
            table.add_multiple(Point::ZERO, number.as_bytes()),
            BASE_TABLE.add_multiple(Point::ZERO, number.as_bytes()),
        ] {
            let inverse = Field::ONE / found.z;
            assert_eq!(encode(found.x * inverse, found.y * inverse), expected);
        }
    }
}

#[test]
fn decoding_accepts_only_canonical_points() {
    let mut decoded_points = 0;
    for seed in 0..200 {
        let octets = *scalar(seed).as_bytes();
        let expected = CompressedEdwardsY(octets).decompress();
        let found = Point::decode(&octets).map(|point| encode(point.x, point.y));
        assert_eq!(found, expected.map(|point| point.compress().to_bytes()));
        decoded_points += usize::from(found.is_some());
    }
    assert!((60..140).contains(&decoded_points), "{decoded_points} of 200 are points");
    let canonical = EIGHT_TORSION.map(|point| point.compress().to_bytes());
    for octets in small_order_encodings() {
        assert_eq!(Point::decode(&octets).is_some(), canonical.contains(&octets), "{octets:02x?}");
    }
}

/// Keys and nonces with every pair of components of small order. S is valid except for these
/// components.
#[test]
fn parts_of_small_order_make_no_difference() {
    let (secret, nonce) = (scalar(1), scalar(2));
    let mut accepted = [0; 2];
    for (index, key_torsion) in EIGHT_TORSION.iter().enumerate() {
        let key = (ED25519_BASEPOINT_POINT * secret + key_torsion).compress().to_bytes();
        assert_eq!(KeyTable::new(&key).is_some(), index == 0, "only a key of prime order has a table");
        let mut signed = Vec::new();
        for r_torsion in EIGHT_TORSION {
            let r = (ED25519_BASEPOINT_POINT * nonce + r_torsion).compress().to_bytes();
            for number in 0..32_u8 {
                let message = vec![number; 3];
                let signature = sign(secret, &key, nonce, &r, &message);
                signed.push((message, signature));
            }
        }
        accepted[usize::from(index > 0)] += compare(&key, &signed);
    }
    // If the key has no component of small order, R must not have one.
    assert_eq!(accepted[0], 32);
    // If the key has one, R must have the same component as −[k]A. This is true for about one in
    // eight.
    assert!((150..300).contains(&accepted[1]), "{accepted:?}");
}

/// Two bad signatures of one batch whose components of small order cancel. The equation of a batch
/// may accept them.
#[test]
fn parts_that_cancel_are_rejected() {
    let (secret, nonce) = (scalar(3), scalar(4));
    let key = (ED25519_BASEPOINT_POINT * secret).compress().to_bytes();
    let mut signed = Vec::new();
    for r_torsion in EIGHT_TORSION {
        for r in
            [r_torsion, -r_torsion].map(|part| (ED25519_BASEPOINT_POINT * nonce + part).compress().to_bytes())
        {
            signed.push((r[..9].to_vec(), sign(secret, &key, nonce, &r, &r[..9])));
        }
    }
    // The neutral element, twice.
    assert_eq!(compare(&key, &signed), 2);
}

/// The usual equation accepts signatures that the single check rejects for some messages. Therefore
/// it is not used.
#[test]
fn the_usual_equation_differs() {
    let (secret, nonce) = (scalar(8), scalar(9));
    let key = (ED25519_BASEPOINT_POINT * secret).compress().to_bytes();
    // A component of order 2.
    let r = (ED25519_BASEPOINT_POINT * nonce + EIGHT_TORSION[4]).compress().to_bytes();
    let usual_key = ed25519_dalek::VerifyingKey::from_bytes(&key).unwrap();
    let mut signed = Vec::new();
    let mut accepted = 0;
    for number in 0..40_u8 {
        let signature = sign(secret, &key, nonce, &r, &[number]);
        let usual = ed25519_dalek::Signature::from_slice(&signature).unwrap();
        accepted += usize::from(ed25519_dalek::verify_batch(&[&[number]], &[usual], &[usual_key]).is_ok());
        signed.push((vec![number], signature));
    }
    assert_eq!(compare(&key, &signed), 0);
    println!("the_usual_equation_differs: it accepts {accepted} of 40");
    assert!((5..35).contains(&accepted), "{accepted}");
}

#[test]
fn small_order_keys_and_nonces_make_no_difference() {
    let encodings = small_order_encodings();
    let secret = scalar(5);
    let honest = (ED25519_BASEPOINT_POINT * secret).compress().to_bytes();
    let mut accepted = 0;
    for key in encodings.iter().chain([&honest]) {
        let secret = if *key == honest { secret } else { Scalar::ZERO };
        let mut signed = Vec::new();
        for r in &encodings {
            for number in 0..16_u8 {
                signed.push((vec![number], sign(secret, key, Scalar::ZERO, r, &[number])));
            }
        }
        accepted += compare(key, &signed);
    }
    // With a key of small order, anyone can sign. Neither RFC 8032 nor the single check excludes
    // such keys.
    assert!(accepted > 100, "{accepted}");
}

#[test]
fn s_must_be_below_the_order() {
    let (secret, nonce) = (scalar(6), scalar(7));
    let key = (ED25519_BASEPOINT_POINT * secret).compress().to_bytes();
    let r = (ED25519_BASEPOINT_POINT * nonce).compress().to_bytes();
    let good = sign(secret, &key, nonce, &r, b"message");
    let mut signed = vec![(b"message".to_vec(), good.clone())];
    // S + L gives the same multiple of the base point.
    let mut above = good.clone();
    let mut carry = 0;
    for (octet, order) in above[POINT_OCTETS..].iter_mut().zip(ORDER) {
        let sum = u16::from(*octet) + u16::from(order) + carry;
        (*octet, carry) = (sum as u8, sum >> 8);
    }
    assert_eq!(carry, 0);
    signed.push((b"message".to_vec(), above));
    for bit in 0..8 {
        let mut high = good.clone();
        high[63] |= 1 << bit;
        // The highest bits of a good S may already be set.
        signed.extend((high != good).then(|| (b"message".to_vec(), high)));
    }
    let order = [&r[..], &ORDER].concat();
    signed.push((b"message".to_vec(), order));
    assert_eq!(compare(&key, &signed), 1);
}

/// The public test data: all cases of one key together, and each case alone, repeated until the
/// batch is large.
#[test]
fn wycheproof_agrees() {
    let Some(path) = nonesuch_testing::public_data("wycheproof/testvectors_v1/ed25519_test.json") else {
        return;
    };
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let octets = |value: &serde_json::Value| {
        data_encoding::HEXLOWER_PERMISSIVE.decode(value.as_str().unwrap().as_bytes()).unwrap()
    };
    let mut cases = 0;
    for group in file["testGroups"].as_array().unwrap() {
        let key = octets(&group["publicKey"]["pk"]);
        let tests = group["tests"].as_array().unwrap();
        let signed: Vec<_> = tests.iter().map(|test| (octets(&test["msg"]), octets(&test["sig"]))).collect();
        let valid = |test: &&serde_json::Value| test["result"] == "valid";
        assert!(tests.iter().all(|test| test["result"] != "acceptable"));
        assert_eq!(compare(&key, &signed), tests.iter().filter(valid).count());
        for (test, signed) in tests.iter().zip(&signed) {
            let good = compare(&key, std::slice::from_ref(signed));
            assert_eq!(good == 1, valid(&test), "case {}", test["tcId"]);
            cases += 1;
        }
    }
    assert_eq!(cases, file["numberOfTests"]);
    println!("wycheproof_agrees: {cases} cases");
}

#[test]
fn every_length_of_a_signature_is_checked() {
    let key = PrivateKey::generate(Algorithm::ED25519, None).unwrap();
    let mut good = Vec::new();
    key.sign(b"message", &mut good).unwrap();
    good.extend_from_slice(&[0; 64]);
    let signed: Vec<_> = (0..128).map(|length| (b"message".to_vec(), good[..length].to_vec())).collect();
    assert_eq!(compare(key.public_key(), &signed), 1);
}

proptest! {
    #![proptest_config(crate::rfc_tests::seeded_config(7))]

    #[test]
    fn batches_of_any_size_equal_single_checks(
        seed in any::<u64>(),
        bad in proptest::collection::vec(any::<Option<prop::sample::Index>>(), 24..200),
    ) {
        let seed = data_encoding::BASE64.encode(scalar(seed).as_bytes());
        let text = format!("Private-key-format: v1.3\nAlgorithm: 15\nPrivateKey: {seed}\n");
        let private = PrivateKey::from_bind(&text).unwrap();
        let key = PublicKey::parse(Algorithm::ED25519, private.public_key()).unwrap();
        let mut signed = Vec::new();
        for (index, bad) in bad.iter().enumerate() {
            let (message, mut signature) = (vec![index as u8; index], Vec::new());
            private.sign(&message, &mut signature).unwrap();
            if let Some(bit) = bad.map(|index| index.index(512)) {
                signature[bit / 8] ^= 1 << (bit % 8);
            }
            signed.push((message, signature));
        }
        let items: Vec<_> =
            signed.iter().map(|(message, signature)| VerifyItem { key: &key, message, signature }).collect();
        let mut outcome = Vec::new();
        verify_batch(&items, &mut outcome);
        let expected: Vec<_> =
            bad.iter().map(|bad| if bad.is_some() { Err(BadSignature) } else { Ok(()) }).collect();
        prop_assert_eq!(outcome, expected);
    }
}
