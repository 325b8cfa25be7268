//! Batch and single check give the same results: for honest signatures, for Wycheproof's
//! signatures, and for signatures that are constructed to meet the special cases.

use data_encoding::BASE64;
use proptest::prelude::*;

use super::*;
use crate::p256::{Jacobian, ORDER, multiply_base, with_portable_arithmetic};
use crate::{Algorithm, BadSignature, PrivateKey, PublicKey, VerifyItem, verify_batch};

/// Number of items for which a batch builds the table of the key.
const LARGE_BATCH: usize = 40;

const ALGORITHM: Algorithm = Algorithm::ECDSAP256SHA256;

fn scalar(seed: u64) -> Scalar {
    Scalar::from_octets_reduced(&sha256(&seed.to_be_bytes()))
}

fn digest(message: &[u8]) -> Scalar {
    Scalar::from_octets_reduced(&sha256(message))
}

fn invert(a: Scalar) -> Scalar {
    let mut forms = [MontgomeryScalar::new(a)];
    MontgomeryScalar::invert_all(&mut forms);
    forms[0].multiply_plain(Scalar::from_short(1))
}

fn private(scalar: Scalar) -> PrivateKey {
    let scalar = BASE64.encode(&scalar.to_octets());
    PrivateKey::from_bind(&format!("Private-key-format: v1.3\nAlgorithm: 13\nPrivateKey: {scalar}\n"))
        .unwrap()
}

fn signature(r: Scalar, s: Scalar) -> Vec<u8> {
    [r.to_octets(), s.to_octets()].concat()
}

/// Checks that items of one key have the same results singly, in a batch, and with only the tables,
/// with the fastest arithmetic and with the portable code. Returns how many are good.
fn compare(field: &[u8], signed: &[(Vec<u8>, Vec<u8>)]) -> usize {
    let key = PublicKey::parse(ALGORITHM, field).unwrap();
    let pairs: Vec<(&[u8], &[u8])> =
        signed.iter().map(|(message, signature)| (message.as_slice(), signature.as_slice())).collect();
    let single: Vec<bool> =
        pairs.iter().map(|(message, signature)| key.verify(message, signature).is_ok()).collect();
    let table = || KeyTable::new(field.try_into().unwrap()).unwrap();
    for table in [table(), with_portable_arithmetic(table)] {
        assert_eq!(table.verify(&pairs), single, "key {field:02x?}");
        for (pair, single) in pairs.iter().zip(&single) {
            assert_eq!(table.verify(std::slice::from_ref(pair)), [*single], "{pair:02x?}");
        }
    }
    // As if each signature had a key of its own. A result is that of the single check.
    let is_same = |found: &[Option<bool>]| {
        assert!(found.iter().zip(&single).all(|(found, single)| found.is_none_or(|found| found == *single)));
        assert!(
            found.iter().zip(&single).all(|(found, single)| found.is_some() || !single),
            "good: {found:?}"
        );
    };
    let coordinates: &Coordinates = field.try_into().unwrap();
    let each: Vec<_> = pairs.iter().map(|pair| (coordinates, *pair)).collect();
    is_same(&verify_each(&each));
    is_same(&with_portable_arithmetic(|| verify_each(&each)));
    if let Some(table) = lane_table(coordinates) {
        let with_table: Vec<_> = pairs.iter().map(|pair| (&table, *pair)).collect();
        is_same(&verify_by_tables(&with_table));
    }
    let keys: Vec<_> = pairs.iter().map(|_| PublicKey::parse(ALGORITHM, field).unwrap()).collect();
    let items =
        pairs.iter().zip(&keys).map(|((message, signature), key)| VerifyItem { key, message, signature });
    let mut outcome = Vec::new();
    verify_batch(&items.collect::<Vec<_>>(), &mut outcome);
    assert!(outcome.iter().map(Result::is_ok).eq(single.iter().copied()));
    let items: Vec<_> =
        pairs.iter().map(|(message, signature)| VerifyItem { key: &key, message, signature }).collect();
    let items: Vec<_> = items.iter().cycle().take(pairs.len().max(LARGE_BATCH)).copied().collect();
    let mut outcome = Vec::new();
    verify_batch(&items, &mut outcome);
    assert!(outcome.iter().map(Result::is_ok).eq(single.iter().cycle().take(items.len()).copied()));
    single.iter().filter(|good| **good).count()
}

/// Keys whose multiples meet those of the base point: small scalars, powers of two, and their
/// negations. With such a key, a fraction of the signatures has two terms that are equal or
/// opposite.
#[test]
fn terms_that_meet_are_added_by_their_own_rules() {
    let small = [1_u128, 2, 3, 5, 127, 255, 256, 1 << 16, 1 << 120].map(Scalar::from_short);
    for secret in small.into_iter().flat_map(|secret| [secret, secret.negate()]) {
        let key = private(secret);
        let mut signed = Vec::new();
        for number in 0..48_u8 {
            let mut signature = Vec::new();
            key.sign(&[number], &mut signature).unwrap();
            signed.push((vec![number], signature.clone()));
            signed.push((vec![number, number], signature));
        }
        assert_eq!(compare(key.public_key(), &signed), 48);
    }
}

/// u₁·B + u₂·Q is infinity if e + r·d is zero. Such a signature is invalid for every s.
#[test]
fn infinity_is_rejected() {
    for secret in [Scalar::from_short(1), Scalar::from_short(1).negate(), scalar(1), scalar(2)] {
        let key = private(secret);
        let mut signed = Vec::new();
        for number in 0..20_u8 {
            let r = digest(&[number]).negate().multiply(invert(secret));
            signed.push((vec![number], signature(r, scalar(u64::from(number)))));
            signed.push((vec![number], signature(r, r)));
        }
        let mut good = Vec::new();
        key.sign(b"good", &mut good).unwrap();
        signed.push((b"good".to_vec(), good));
        assert_eq!(compare(key.public_key(), &signed), 1);
    }
}

/// Returns the points with the smallest x, and those with the smallest x from the order on. Both
/// have a small r.
fn points_of_small_r() -> Vec<(Affine, Scalar)> {
    let mut all = Vec::new();
    for small in 1..60_u8 {
        let r = Scalar::from_short(u128::from(small));
        let mut above = [2; 33];
        above[1..].copy_from_slice(&ORDER);
        // The last octet of the order is 0x51, so the addition does not carry.
        above[32] += small;
        let mut below = [2; 33];
        below[1..].copy_from_slice(&r.to_octets());
        all.extend([below, above].iter().filter_map(Affine::from_compressed).map(|point| (point, r)));
    }
    all
}

/// Returns Q such that `message` has the signature r, s: s/r·R − e/r·B.
fn key_for(message: &[u8], point: Affine, r: Scalar, s: Scalar) -> [u8; 64] {
    let inverse = invert(r);
    let base = Jacobian::normalize_all(&[multiply_base(&digest(message).negate().multiply(inverse))])[0];
    let one = Scalar::from_short(1);
    let sum = crate::p256::double_multiply_public(&s.multiply(inverse), &point, &one, &base);
    Jacobian::normalize_all(&[sum])[0].to_coordinates()
}

#[test]
fn r_is_compared_modulo_the_order() {
    let points = points_of_small_r();
    let above = points.iter().filter(|(point, _)| point.x().to_octets()[..4] == [0xff; 4]).count();
    assert!(above > 10 && points.len() - above > 10, "{above} of {}", points.len());
    for (index, (point, r)) in points.into_iter().enumerate() {
        let (message, s) = ([index as u8], scalar(index as u64));
        let key = key_for(&message, point, r, s);
        // r + n is the same number modulo n. It fits into 32 octets, and is rejected.
        let mut high = ORDER;
        high[31] += r.to_octets()[31];
        let signed = [
            signature(r, s),
            signature(r, s.negate()),
            signature(r.add(Scalar::from_short(1)), s),
            [high, s.to_octets()].concat(),
        ]
        .map(|signature| (message.to_vec(), signature));
        // −R has the same x, and therefore the signature with −s is valid too.
        assert_eq!(compare(&key, &signed), 2);
    }
}

#[test]
fn r_and_s_out_of_range_are_rejected() {
    let key = private(scalar(3));
    let mut good = Vec::new();
    key.sign(b"message", &mut good).unwrap();
    let mut below = ORDER;
    below[31] -= 1;
    let mut above = ORDER;
    above[31] += 1;
    let mut signed = vec![(b"message".to_vec(), good.clone())];
    for number in [[0; 32], ORDER, below, above, [0xff; 32], Scalar::from_short(1).to_octets()] {
        for offset in [0, 32] {
            let mut bad = good.clone();
            bad[offset..offset + 32].copy_from_slice(&number);
            signed.push((b"message".to_vec(), bad));
        }
        signed.push((b"message".to_vec(), [number, number].concat()));
    }
    assert_eq!(compare(key.public_key(), &signed), 1);
}

/// Signatures of three keys in each batch: the results stay the same when the keys get their tables.
#[test]
fn keys_that_verify_often_get_tables_for_lanes() {
    let private = [1, 2, 3].map(|seed| private(scalar(seed)));
    let keys = private.each_ref().map(|key| PublicKey::parse(ALGORITHM, key.public_key()).unwrap());
    let octets = || keys.iter().map(PublicKey::memory_octets).sum::<usize>();
    let before = octets();
    for round in 0..12_u8 {
        let signed: Vec<_> = (0..6_u8)
            .map(|number| {
                let mut signature = Vec::new();
                private[usize::from(number % 3)].sign(&[round, number], &mut signature).unwrap();
                // One signature of each batch is invalid, at another place in each.
                signature[40] ^= u8::from(number == round % 6);
                ([round, number], signature)
            })
            .collect();
        let items = signed.iter().zip(keys.iter().cycle());
        let items: Vec<_> =
            items.map(|((message, signature), key)| VerifyItem { key, message, signature }).collect();
        let mut outcome = Vec::new();
        verify_batch(&items, &mut outcome);
        let bad: Vec<usize> = (0..6).filter(|index| outcome[*index].is_err()).collect();
        assert_eq!(bad, [usize::from(round % 6)]);
    }
    let has_lanes = Engine::detect().min_signatures_without_table().is_some();
    assert_eq!(octets() > before, has_lanes);
    let without: usize =
        keys.iter().filter_map(PublicKey::without_table).map(|key| key.memory_octets()).sum();
    assert_eq!(without, if has_lanes { before } else { 0 });
}

/// The digest is reduced modulo the order. No message with a digest of zero, or with one that is
/// not below the order, is known, so this test passes factors directly.
#[test]
fn factors_of_zero_and_one_are_factors() {
    let table = || KeyTable::new(private(scalar(4)).public_key().try_into().unwrap()).unwrap();
    let numbers = [Scalar::ZERO, Scalar::from_short(1), Scalar::from_short(1).negate(), scalar(5)];
    let pairs: Vec<_> = numbers.iter().flat_map(|a| numbers.iter().map(|b| (*a, *b))).collect();
    let mut workspace = Workspace::default();
    for table in [table(), with_portable_arithmetic(table)] {
        let points = multiply_both(&table.0, &pairs, &mut workspace);
        for ((a, b), point) in pairs.iter().zip(Jacobian::normalize_all(&points)) {
            let logarithm = a.add(b.multiply(scalar(4)));
            assert_eq!(point.is_infinity(), logarithm == Scalar::ZERO);
            if logarithm != Scalar::ZERO {
                assert_eq!(point, Jacobian::normalize_all(&[multiply_base(&logarithm)])[0]);
            }
        }
    }
}

#[test]
fn every_length_of_a_signature_is_checked() {
    let key = private(scalar(6));
    let mut good = Vec::new();
    key.sign(b"message", &mut good).unwrap();
    good.extend_from_slice(&[0; 64]);
    let signed: Vec<_> = (0..128).map(|length| (b"message".to_vec(), good[..length].to_vec())).collect();
    assert_eq!(compare(key.public_key(), &signed), 1);
}

#[test]
fn points_off_the_curve_have_no_table() {
    let mut octets: [u8; 64] = private(scalar(7)).public_key().try_into().unwrap();
    assert!(KeyTable::new(&octets).is_some());
    octets[63] ^= 1;
    assert!(KeyTable::new(&octets).is_none());
    assert!(KeyTable::new(&[0; 64]).is_none());
    assert!(KeyTable::new(&[0xff; 64]).is_none());
}

/// The public test data: all cases of one key together, and each case alone.
#[test]
fn wycheproof_agrees() {
    let path = "wycheproof/testvectors_v1/ecdsa_secp256r1_sha256_p1363_test.json";
    let Some(path) = nonesuch_testing::public_data(path) else { return };
    let file: serde_json::Value = serde_json::from_slice(&std::fs::read(path).unwrap()).unwrap();
    let octets = |value: &serde_json::Value| {
        data_encoding::HEXLOWER_PERMISSIVE.decode(value.as_str().unwrap().as_bytes()).unwrap()
    };
    let mut cases = 0;
    for group in file["testGroups"].as_array().unwrap() {
        let key = octets(&group["publicKey"]["uncompressed"]);
        let tests = group["tests"].as_array().unwrap();
        assert!(tests.iter().all(|test| test["result"] != "acceptable"));
        let signed: Vec<_> = tests.iter().map(|test| (octets(&test["msg"]), octets(&test["sig"]))).collect();
        let valid = tests.iter().filter(|test| test["result"] == "valid").count();
        assert_eq!(compare(&key[1..], &signed), valid);
        cases += tests.len();
    }
    assert_eq!(cases, file["numberOfTests"]);
    println!("wycheproof_agrees: {cases} cases");
}

proptest! {
    #![proptest_config(crate::rfc_tests::seeded_config(8))]

    #[test]
    fn batches_of_any_size_equal_single_checks(
        seed in any::<u64>(),
        bad in proptest::collection::vec(any::<Option<prop::sample::Index>>(), 24..200),
    ) {
        let private = private(scalar(seed));
        let key = PublicKey::parse(ALGORITHM, private.public_key()).unwrap();
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
