//! The examples of RFC 9381 with intermediate values, and rejected input: encodings of points and
//! scalars that the standards do not allow, and keys of small order.

use proptest::prelude::*;

use super::field::Field;
use super::*;
use crate::freed::{assert_wiped, memory_freed_by};
use crate::vrf::tests::examples;

const SUITES: [Suite; 2] = [Suite::TryAndIncrement, Suite::Elligator];

/// The eight points of small order in canonical form, of order 1, 2, 4, 4, 8, 8, 8, 8 (RFC 9381,
/// section 5.6.1).
pub(in crate::vrf) fn small_order() -> [EdwardsPoint; 8] {
    curve25519_dalek::constants::EIGHT_TORSION
}

#[test]
fn intermediate_values_of_the_examples() {
    for suite in SUITES {
        for example in examples(suite.algorithm()) {
            let key = Private::from_secret(suite, &example.octets("secret")).unwrap();
            assert_eq!(key.public_key.as_slice(), example.octets("public"));
            let point = hash_to_curve(suite, &key.public_key, &example.octets("alpha")).unwrap();
            let h = point.compress();
            assert_eq!(h.0.as_slice(), example.octets("H"));
            let nonce = key.nonce(&h.0);
            assert_eq!(nonce.as_bytes().as_slice(), example.octets("k"));
            let (u, v) = (EdwardsPoint::mul_base(&nonce), point * *nonce);
            assert_eq!(u.compress().0.as_slice(), example.octets("U"));
            assert_eq!(v.compress().0.as_slice(), example.octets("V"));
            let public = Public::parse(suite, &key.public_key).unwrap();
            let proof = Proof::parse(&example.octets("pi")).unwrap();
            assert_eq!(public.commitments(&point, &proof), [u, v]);
            let full = hash_point(suite, &proof.gamma.mul_by_cofactor().compress().0);
            assert_eq!(full.as_slice(), example.octets("beta"));
        }
    }
}

#[test]
fn keys_of_small_order_are_rejected() {
    for suite in SUITES {
        for point in small_order() {
            let expected = match point.is_identity() {
                true => VrfKeyError::NeutralElement(suite.algorithm()),
                false => VrfKeyError::SmallOrder(suite.algorithm()),
            };
            assert_eq!(Public::parse(suite, &point.compress().0).err(), Some(expected));
        }
    }
}

/// The 19 numbers from p to 2²⁵⁵ − 1, and a sign bit for x = 0.
#[test]
fn encodings_that_rfc8032_forbids_are_rejected() {
    let mut largest = [0xff; 32];
    for low in 0xed..=0xff {
        largest[0] = low;
        for sign in [0x7f, 0xff] {
            largest[31] = sign;
            assert!(decode(&largest).is_none());
            if CompressedEdwardsY(largest).decompress().is_some() {
                let refused = Some(VrfKeyError::NotCanonical(SUITES[0].algorithm()));
                assert_eq!(Public::parse(SUITES[0], &largest).err(), refused);
            }
        }
    }
    for point in [small_order()[0], small_order()[4]] {
        let mut signed = point.compress().0;
        assert!(decode(&signed).is_some());
        signed[31] |= 0x80;
        assert!(CompressedEdwardsY(signed).decompress().is_some(), "the library takes it");
        assert!(decode(&signed).is_none());
        assert!(Public::parse(SUITES[0], &signed).is_err());
    }
    largest[0] = 0xeb;
    assert!(is_canonical(&largest), "p - 2");
}

#[test]
fn keys_off_the_curve_and_of_other_lengths_are_rejected() {
    for suite in SUITES {
        let algorithm = suite.algorithm();
        let mut octets = [0; 32];
        // No point has y = 2.
        octets[0] = 2;
        assert_eq!(Public::parse(suite, &octets).err(), Some(VrfKeyError::NotOnCurve(algorithm)));
        for found in [0, 31, 33, 64] {
            let error = VrfKeyError::PublicKeyLength { algorithm, expected: 32, found };
            assert_eq!(Public::parse(suite, &vec![1; found]).err(), Some(error));
            let invalid = VrfKeyError::InvalidPrivateKey(algorithm);
            assert_eq!(Private::from_secret(suite, &vec![1; found]).err(), Some(invalid));
        }
    }
}

/// Candidates of small order are skipped: eight times such a point is the neutral element.
#[test]
fn inputs_are_never_of_small_order() {
    for point in small_order() {
        assert!(decode_and_clear_cofactor(&point.compress().0).is_none());
        let mixed = point + curve25519_dalek::constants::ED25519_BASEPOINT_POINT;
        let cleared = decode_and_clear_cofactor(&mixed.compress().0).unwrap();
        assert_eq!(Point::encode_all(&[cleared])[0], mixed.mul_by_cofactor().compress().0);
    }
}

/// s + order is the same scalar in other octets.
#[test]
fn s_from_the_order_on_is_rejected() {
    /// 2²⁵² + 27742317777372353535851937790883648493, little-endian.
    const ORDER: [u8; 32] = [
        0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0,
        0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
    ];
    for suite in SUITES {
        let key = Private::from_secret(suite, &[3; 32]).unwrap();
        let public = Public::parse(suite, &key.public_key).unwrap();
        let (mut proof, mut hashes) = (Vec::new(), Vec::new());
        key.prove_batch(&[b"name"], &mut proof, &mut hashes).unwrap();
        assert_eq!(public.verify(b"name", &proof), Ok(hashes[0]));
        let mut carry = 0;
        for (octet, order) in proof[PROOF_OCTETS - 32..].iter_mut().zip(ORDER) {
            let sum = u16::from(*octet) + u16::from(order) + carry;
            *octet = sum as u8;
            carry = sum >> 8;
        }
        let reduced = Scalar::from_bytes_mod_order(proof[PROOF_OCTETS - 32..].try_into().unwrap());
        assert_ne!(reduced.as_bytes().as_slice(), &proof[PROOF_OCTETS - 32..]);
        assert_eq!(public.verify(b"name", &proof), Err(BadProof));
        assert_eq!(proof_to_hash(suite, &proof), Err(BadProof));
    }
}

proptest! {
    #![proptest_config(crate::rfc_tests::seeded_config(36))]

    /// Octets that are accepted as a point or as a proof are written as the same octets.
    #[test]
    fn points_and_proofs_have_one_form(octets in any::<[u8; 32]>(), challenge in any::<u128>(), s in any::<[u8; 32]>()) {
        let Some(gamma) = decode(&octets) else { return Ok(()) };
        prop_assert_eq!(gamma.compress().0, octets);
        let proof = [&octets[..], &challenge.to_le_bytes(), &s].concat();
        if let Some(read) = Proof::parse(&proof) {
            let challenge = &read.challenge.as_bytes()[..CHALLENGE_OCTETS];
            prop_assert_eq!([read.gamma.compress().as_bytes(), challenge, read.s.as_bytes()].concat(), proof);
        }
    }
}

fn scalars() -> impl Strategy<Value = Scalar> {
    let extremes = [Scalar::ZERO, Scalar::ONE, -Scalar::ONE, Scalar::from(2_u8), Scalar::from(u128::MAX)];
    prop_oneof![
        3 => any::<[u8; 32]>().prop_map(Scalar::from_bytes_mod_order),
        1 => proptest::sample::select(extremes.to_vec()),
    ]
}

proptest! {
    #![proptest_config(crate::rfc_tests::seeded_config(37))]

    /// The multiplications of this crate give the same results as those of the library, for random
    /// and extreme scalars and points of every order.
    #[test]
    fn multiplications_are_those_of_the_library(
        seed in scalars(), a in scalars(), b in scalars(), small in 0_usize..8,
    ) {
        let p = EdwardsPoint::mul_base(&seed) + small_order()[small];
        let octets = p.compress().0;
        let ours = Point::decode(&octets).unwrap();
        let comb = Comb::prepare(&ours);
        let points = [ours, comb.multiply(&a), comb.multiply(&b), multiply_base(&a), ours.multiply_by_cofactor()];
        // A scalar is only defined modulo the order of B, so the component of small order is
        // multiplied by a different factor.
        let eight = Scalar::from(8_u8);
        let cleared = Comb::prepare(&ours.multiply_by_cofactor()).multiply(&a);
        let expected = [p, EdwardsPoint::mul_base(&a), p.mul_by_cofactor(), p * eight * a];
        let encoded = Point::encode_all(&points);
        prop_assert_eq!(encoded[0], expected[0].compress().0);
        if small == 0 {
            prop_assert_eq!(encoded[1], (p * a).compress().0);
            prop_assert_eq!(encoded[2], (p * b).compress().0);
        }
        prop_assert_eq!(encoded[3], expected[1].compress().0);
        prop_assert_eq!(encoded[4], expected[2].compress().0);
        prop_assert_eq!(Point::encode_all(&[cleared])[0], expected[3].compress().0);
    }

    #[test]
    fn inputs_are_hashed_alike_for_proofs_and_verification(seed in any::<[u8; 32]>(), alpha in any::<Vec<u8>>()) {
        for suite in SUITES {
            let key = Private::from_secret(suite, &seed).unwrap();
            let (point, octets) = key.hash_to_curve_all(&[&alpha]).unwrap()[0];
            let expected = hash_to_curve(suite, &key.public_key, &alpha).unwrap();
            prop_assert_eq!(octets, expected.compress().0);
            prop_assert_eq!(Point::encode_all(&[point])[0], octets);
        }
    }

    #[test]
    fn points_are_read_as_the_library_reads_them(octets in any::<[u8; 32]>()) {
        let octets = if is_canonical(&octets) { octets } else { return Ok(()) };
        prop_assert_eq!(Point::decode(&octets).is_some(), CompressedEdwardsY(octets).decompress().is_some());
    }

    /// Numbers around 2²⁵⁶, p and 2p, where carries and borrows run through all limbs.
    #[test]
    fn the_field_is_a_field(
        a in numbers(), b in numbers(), c in numbers(),
    ) {
        let [a, b, c] = [a, b, c].map(Field::from_limbs);
        let same = |x: Field, y: Field| x.to_octets() == y.to_octets();
        prop_assert!(same((a + b) * c, a * c + b * c));
        prop_assert!(same((a - b) * c, a * c - b * c));
        prop_assert!(same((a - b) + b, a));
        prop_assert!(same(a - b, -(b - a)));
        prop_assert!(same(a.square(), a * a));
        prop_assert!(same((a * b) * c, a * (b * c)));
        prop_assert!(same(a.double(), a + a));
        let inverse = a.invert();
        let is_zero = same(a, Field::ZERO);
        let expected = if is_zero { Field::ZERO } else { Field::ONE };
        prop_assert!(same(a * inverse, expected));
        prop_assert!(same(Field::from_octets(&a.to_octets()), a));
        prop_assert!(is_canonical(&a.to_octets()));
        if let Some(root) = Field::square_root_of_ratio(a * b.square(), a) {
            prop_assert!(is_zero || same(root, b) || same(root, -b));
        } else {
            prop_assert!(false, "a square has a root");
        }
    }
}

fn numbers() -> impl Strategy<Value = [u64; 4]> {
    let limb = || prop_oneof![2 => any::<u64>(), 1 => Just(u64::MAX), 1 => Just(0), 1 => 0_u64..80, 1 => (u64::MAX - 80)..=u64::MAX];
    let top = prop_oneof![1 => limb(), 1 => Just(u64::MAX), 1 => Just(u64::MAX >> 1)];
    [limb().boxed(), limb().boxed(), limb().boxed(), top.boxed()]
}

/// The projective coordinates of a secret multiple reveal bits of its scalar.
#[test]
fn proving_wipes_its_secrets() {
    for suite in SUITES {
        let key = Private::from_secret(suite, &[0x42; SECRET_OCTETS]).unwrap();
        let alphas: [&[u8]; 3] = [b"a", b"b", b"c"];
        let mut secrets = vec![
            ("the seed".to_owned(), key.seed.to_vec()),
            ("the private scalar".to_owned(), key.scalar.as_bytes().to_vec()),
            ("the prefix of nonces".to_owned(), key.prefix.to_vec()),
        ];
        for (point, h) in key.hash_to_curve_all(&alphas).unwrap() {
            let nonce = key.nonce(&h);
            secrets.push(("a nonce".to_owned(), nonce.as_bytes().to_vec()));
            let comb = Comb::prepare(&point);
            let gamma = comb.multiply(&key.scalar);
            for product in [gamma, multiply_base(&nonce), comb.multiply(&nonce), gamma.multiply_by_cofactor()]
            {
                secrets.extend(product.secrets());
            }
        }
        for count in [1, alphas.len()] {
            let prove = || {
                let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
                key.prove_batch(&alphas[..count], &mut proofs, &mut hashes).unwrap();
            };
            assert_wiped(&memory_freed_by(prove), &secrets);
        }
    }
}
