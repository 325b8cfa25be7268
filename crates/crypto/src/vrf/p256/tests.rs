//! The examples of RFC 9381 from the inside, and every operation against aws-lc's, with random and with extreme inputs.

use aws_lc_rs::encoding::AsBigEndian;
use aws_lc_rs::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair};
use aws_lc_sys as lc;
use data_encoding::HEXLOWER;
use proptest::prelude::*;

use super::field::{Field, PRIME};
use super::*;
use crate::der;
use crate::rfc_tests::seeded;
use crate::vrf::limbs;
use crate::vrf::tests::examples;

/// The order of the curve.
const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

#[test]
fn the_inside_of_the_examples() {
    for example in examples(ALGORITHM) {
        let key = Private::from_secret(&example.octets("secret")).unwrap();
        assert_eq!(key.compressed.as_slice(), example.octets("public"));
        let (point, h) = hash_to_curve(&key.compressed, &example.octets("alpha")).unwrap();
        assert_eq!(h.as_slice(), example.octets("H"));
        let nonce = nonce(&key.scalar, &h).unwrap();
        assert_eq!(nonce.to_octets().as_slice(), example.octets("k"));
        let combs = Comb::prepare_all(&[point]);
        let encoded = Jacobian::encode_all(&[multiply_base(&nonce), combs[0].multiply(&nonce)]);
        assert_eq!(encoded[0].as_slice(), example.octets("U"));
        assert_eq!(encoded[1].as_slice(), example.octets("V"));
        let public = Public::parse(key.public_key()).unwrap();
        let proof = Proof::parse(&example.octets("pi")).unwrap();
        assert_eq!(public.commitments(&point, &proof), [encoded[0], encoded[1]]);
        let hash = hash_point(&example.octets("pi")[..COMPRESSED]);
        assert_eq!(hash.as_slice(), example.octets("beta"));
    }
}

/// RFC 6979, appendix A.2.5: the nonce of a signature over "sample" is made of SHA-256("sample").
#[test]
fn rfc6979_appendix_a_2_5() {
    let octets = |text: &str| -> [u8; 32] { HEXLOWER.decode(text.as_bytes()).unwrap().try_into().unwrap() };
    let secret = octets("c9afa9d845ba75166b5c215767b1d6934e50c3db36e89b127b8a622b120f6721");
    let secret = Scalar::from_octets(&secret).unwrap();
    let expected = octets("a6e3c57dd01abe90086538398355dd4c3b17aa873382b0f24d6129493d8aad60");
    // `nonce` takes the octets of a point, and hashes whatever they are.
    let mut message = [0; COMPRESSED];
    message[..6].copy_from_slice(b"sample");
    assert_ne!(nonce(&secret, &message).unwrap().to_octets(), expected);
    assert_eq!(nonce_of_digest(&secret, &sha256(b"sample")).unwrap().to_octets(), expected);
}

/// Calls of aws-lc that tests compare with.
struct Library {
    group: *const lc::EC_GROUP,
}

#[allow(unsafe_code)]
impl Library {
    fn new() -> Self {
        // SAFETY: returns a constant of the library.
        Self { group: unsafe { lc::EC_GROUP_new_by_curve_name(lc::NID_X9_62_prime256v1) } }
    }

    fn number(octets: &[u8]) -> *mut lc::BIGNUM {
        // SAFETY: one slice; a null third argument has the library allocate.
        unsafe { lc::BN_bin2bn(octets.as_ptr(), octets.len(), std::ptr::null_mut()) }
    }

    /// a·B + b·P, compressed; a zero octet for infinity. (Both are left to leak: this is a test.)
    fn multiply(&self, a: Option<&[u8; 32]>, p: Option<&[u8; COMPRESSED]>, b: Option<&[u8; 32]>) -> Vec<u8> {
        let null = std::ptr::null_mut;
        // SAFETY: every pointer was returned by the library just before and lives; null is allowed for what is absent; the
        // output has room for the longest form of a point.
        unsafe {
            let result = lc::EC_POINT_new(self.group);
            let point = p.map_or(std::ptr::null_mut(), |octets| {
                let point = lc::EC_POINT_new(self.group);
                let read = lc::EC_POINT_oct2point(self.group, point, octets.as_ptr(), octets.len(), null());
                assert_eq!(read, 1);
                point
            });
            let [a, b] =
                [a, b].map(|scalar| scalar.map_or(std::ptr::null_mut(), |octets| Self::number(octets)));
            assert_eq!(lc::EC_POINT_mul(self.group, result, a, point, b, null()), 1);
            let mut out = vec![0; 65];
            let form = lc::point_conversion_form_t::POINT_CONVERSION_COMPRESSED;
            let length =
                lc::EC_POINT_point2oct(self.group, result, form, out.as_mut_ptr(), out.len(), null());
            out.truncate(length);
            out
        }
    }

    /// Whether the library takes these octets for a point.
    fn is_point(&self, octets: &[u8]) -> bool {
        let null = std::ptr::null_mut;
        // SAFETY: as above.
        unsafe {
            let point = lc::EC_POINT_new(self.group);
            lc::EC_POINT_oct2point(self.group, point, octets.as_ptr(), octets.len(), null()) == 1
        }
    }

    /// a·b modulo p or the order.
    fn product(a: &[u8; 32], b: &[u8; 32], modulus: &[u8; 32]) -> [u8; 32] {
        let mut out = [0; 32];
        // SAFETY: as above; the output has the 32 octets that are written.
        unsafe {
            let context = lc::BN_CTX_new();
            let result = lc::BN_new();
            let [a, b, modulus] = [a, b, modulus].map(|number| Self::number(number));
            assert_eq!(lc::BN_mod_mul(result, a, b, modulus, context), 1);
            assert_eq!(lc::BN_bn2bin_padded(out.as_mut_ptr(), out.len(), result), 1);
        }
        out
    }
}

/// 0, 1, 2, 2²⁵⁶ − 1, and what is around p, the order, their halves, and single bits and runs of bits.
fn extremes() -> Vec<[u8; 32]> {
    let mut all = vec![[0; 32], [0xff; 32], limbs::to_octets(&PRIME), ORDER];
    for number in [limbs::to_octets(&PRIME), ORDER, [0; 32]] {
        for distance in 1..=3 {
            let low = number[31];
            let mut below = number;
            let mut above = number;
            below[31] = low.wrapping_sub(distance);
            above[31] = low.wrapping_add(distance);
            all.extend([below, above]);
        }
    }
    for bit in (0..256).step_by(7) {
        let (mut single, mut run) = ([0; 32], [0; 32]);
        single[31 - bit / 8] = 1 << (bit % 8);
        run[31 - bit / 8..].fill(0xff);
        all.extend([single, run]);
    }
    all
}

fn octets() -> impl Strategy<Value = [u8; 32]> {
    prop_oneof![3 => any::<[u8; 32]>(), 1 => proptest::sample::select(extremes())]
}

fn scalars() -> impl Strategy<Value = Scalar> {
    octets().prop_map(|octets| Scalar::from_octets_reduced(&octets)).prop_filter("0", |s| *s != Scalar::ZERO)
}

fn encode(point: Jacobian) -> Vec<u8> {
    Jacobian::encode_all(&[point])[0].as_slice().to_vec()
}

/// A point with a random logarithm.
fn point_of(seed: &Scalar) -> Affine {
    Jacobian::normalize_all(&[multiply_base(seed)])[0]
}

fn field_of(octets: &[u8; 32]) -> Field {
    // Numbers from p on are not read; their lower half is.
    Field::from_octets(octets).unwrap_or_else(|| {
        let mut small = *octets;
        small[..16].fill(0);
        Field::from_octets(&small).unwrap()
    })
}

proptest! {
    #![proptest_config(seeded(31))]

    #[test]
    fn the_field_is_a_field(a in octets(), b in octets(), c in octets()) {
        let [a, b, c] = [a, b, c].map(|octets| field_of(&octets));
        let [octets_a, octets_b] = [a, b].map(Field::to_octets);
        let product = Library::product(&octets_a, &octets_b, &limbs::to_octets(&PRIME));
        prop_assert_eq!((a * b).to_octets(), product);
        prop_assert_eq!(a.square(), a * a);
        prop_assert_eq!(a + b, b + a);
        prop_assert_eq!((a + b) * c, a * c + b * c);
        prop_assert_eq!(a - b, a + -b);
        prop_assert_eq!((a - b) + b, a);
        prop_assert_eq!(a.double(), a + a);
        prop_assert_eq!(a.halve().double(), a);
        prop_assert_eq!(Field::from_octets(&a.to_octets()), Some(a));
        prop_assert_eq!(a.is_odd(), a.to_octets()[31] & 1 == 1);
        let inverse = a.invert();
        prop_assert_eq!(a * inverse, if a.is_zero() { Field::ZERO } else { Field::ONE });
        let root = a.square().square_root();
        prop_assert!(root == Some(a) || root == Some(-a));
        // −1 is no square modulo p, as p is 3 modulo 4.
        prop_assert_eq!((-a.square()).square_root().is_some(), a.is_zero());
        let mut all = [a, b, Field::ZERO, c];
        Field::invert_all(&mut all);
        prop_assert_eq!(all, [inverse, b.invert(), Field::ZERO, c.invert()]);
    }

    #[test]
    fn scalars_multiply_and_add(a in octets(), b in octets(), short in any::<u128>()) {
        let [x, y] = [a, b].map(|octets| Scalar::from_octets_reduced(&octets));
        prop_assert_eq!(x.multiply(y).to_octets(), Library::product(&a, &b, &ORDER));
        prop_assert_eq!(x.add(x.negate()), Scalar::ZERO);
        prop_assert_eq!(x.add(y), y.add(x));
        let two = Scalar::from_short(2);
        prop_assert_eq!(x.add(x), x.multiply(two));
        let mut octets = [0; 32];
        octets[16..].copy_from_slice(&short.to_be_bytes());
        prop_assert_eq!(Scalar::from_short(short).to_octets(), octets);
        // The digits of a recoded scalar sum to it.
        let digits = x.recode();
        let all = (0..scalar::DIGITS).rev().fold(Scalar::ZERO, |sum, place| {
            let digit = if digits.bit(place) == 1 { Scalar::from_short(1) } else { Scalar::from_short(1).negate() };
            sum.add(sum).add(digit)
        });
        prop_assert_eq!(all, x);
    }

    #[test]
    fn multiplications_are_those_of_the_library(
        seed in scalars(), a in scalars(), b in scalars(), other in scalars(), short in any::<u128>(),
    ) {
        let library = Library::new();
        let (p, q) = (point_of(&seed), point_of(&other));
        let [p_octets, q_octets] = [p, q].map(Affine::to_compressed);
        let [a_octets, b_octets] = [a, b].map(Scalar::to_octets);
        prop_assert_eq!(encode(multiply_base(&a)), library.multiply(Some(&a_octets), None, None));
        let expected = library.multiply(None, Some(&p_octets), Some(&a_octets));
        let combs = Comb::prepare_all(&[q, p]);
        prop_assert_eq!(&encode(combs[1].multiply(&a)), &expected);
        prop_assert_eq!(encode(multiply::multiply_complete(&p, &a)), expected);
        let expected = library.multiply(None, Some(&q_octets), Some(&b_octets));
        prop_assert_eq!(encode(combs[0].multiply(&b)), expected);
        // a·B + b·P, with and without doubling back on itself.
        let sum = multiply_base_public(combs[1].multiply(&b), &a);
        prop_assert_eq!(encode(sum), library.multiply(Some(&a_octets), Some(&p_octets), Some(&b_octets)));
        let mut long = [0; 32];
        long[16..].copy_from_slice(&short.to_be_bytes());
        let product = ShortTable::prepare(&p).multiply(short);
        prop_assert_eq!(encode(product), library.multiply(None, Some(&p_octets), Some(&long)));
        // a·P + b·Q where the library knows Q = other·B.
        let b_other = b.multiply(other).to_octets();
        let double = double_multiply_public(&a, &p, &b, &q);
        prop_assert_eq!(encode(double), library.multiply(Some(&b_other), Some(&p_octets), Some(&a_octets)));
    }

    #[test]
    fn points_are_read_as_the_library_reads_them(first in 0_u8..8, x in octets(), y in octets()) {
        let library = Library::new();
        let mut compressed = [first; COMPRESSED];
        compressed[1..].copy_from_slice(&x);
        let read = Affine::from_compressed(&compressed);
        prop_assert_eq!(read.is_some(), library.is_point(&compressed));
        if let Some(point) = read {
            prop_assert_eq!(point.to_compressed(), compressed);
            let mut coordinates = point.to_coordinates();
            prop_assert_eq!(Affine::from_coordinates(&coordinates), Some(point));
            coordinates[40] ^= 1;
            prop_assert_eq!(Affine::from_coordinates(&coordinates), None);
            coordinates[32..].copy_from_slice(&y);
            let full = [&[4][..], &coordinates].concat();
            prop_assert_eq!(Affine::from_coordinates(&coordinates).is_some(), library.is_point(&full));
        }
    }
}

/// Multiplications that meet every special case of an addition on their way.
#[test]
fn public_multiplications_know_every_case() {
    let one = Scalar::from_short(1);
    let p = point_of(&Scalar::from_short(77));
    let library = Library::new();
    for a in 0..40 {
        for b in 0..20_u128 {
            let (a, b) = (Scalar::from_short(a), Scalar::from_short(b));
            for b in [b, b.negate()] {
                // a·P + b·P, which is infinity where b = −a; and the same with P and −P.
                let sum = a.add(b).multiply(Scalar::from_short(77));
                let expected = library.multiply(Some(&sum.to_octets()), None, None);
                assert_eq!(encode(double_multiply_public(&a, &p, &b, &p)), expected);
                let opposite = double_multiply_public(&a, &p, &b.negate(), &p.negate());
                assert_eq!(encode(opposite), expected);
                // a·B + b·B, where the second comes first.
                let start = match b == Scalar::ZERO {
                    true => Jacobian::INFINITY,
                    false => multiply_base(&b),
                };
                let sum = a.add(b).to_octets();
                assert_eq!(encode(multiply_base_public(start, &a)), library.multiply(Some(&sum), None, None));
            }
        }
    }
    assert_eq!(encode(Jacobian::INFINITY), [0]);
    assert_eq!(encode(ShortTable::prepare(&p).multiply(0)), [0]);
    assert_eq!(encode(multiply_base(&one)), Affine::BASE.to_compressed());
}

/// In constant time, the formula for different points meets two that are the same where the scalar is twice an entry of the
/// table: the last addition is then one of equal points. The other way serves these.
#[test]
fn scalars_that_the_fast_ways_do_not_serve() {
    let p = point_of(&Scalar::from_short(78));
    let comb = &Comb::prepare_all(&[p])[0];
    let library = Library::new();
    let power = |exponent: usize| (0..exponent).fold(Scalar::from_short(1), |power, _| power.add(power));
    let signed = |place: usize, bits: u32| match bits >> place & 1 {
        1 => power(52 * place),
        _ => power(52 * place).negate(),
    };
    let mut rescued = 0;
    let mut check = |scalar: Scalar| {
        let octets = scalar.to_octets();
        let expected = library.multiply(None, Some(&p.to_compressed()), Some(&octets));
        assert_eq!(encode(comb.multiply(&scalar)), expected);
        assert_eq!(encode(multiply_base(&scalar)), library.multiply(Some(&octets), None, None));
        rescued += u32::from(comb.multiply_without_rescue(&scalar).is_infinity());
    };
    for bits in 0..32 {
        let entry = (0..5).map(|place| signed(place, bits)).fold(Scalar::ZERO, Scalar::add);
        check(entry.add(entry));
    }
    assert!(rescued > 0);
    // Likewise for the table of the base point. Of the last window only the first bit is not always 0: it is worth −31 or
    // −29 times 2²⁵⁵.
    let meets_itself = power(256).multiply(Scalar::from_short(29)).negate();
    assert!(multiply::multiply_base_without_rescue(&meets_itself).is_infinity());
    let octets = meets_itself.to_octets();
    assert_eq!(encode(multiply_base(&meets_itself)), library.multiply(Some(&octets), None, None));
}

#[test]
fn public_keys_are_those_of_the_library() {
    for scalar in [[1; 32], [0x7f; 32], [0xee; 32]] {
        let key = Private::from_secret(&scalar).unwrap();
        let der = der::write_ec_private_key(&scalar);
        let pair = EcdsaKeyPair::from_private_key_der(&ECDSA_P256_SHA256_FIXED_SIGNING, &der).unwrap();
        assert_eq!(pair.private_key().as_be_bytes().unwrap().as_ref(), &scalar);
        assert_eq!(&pair.public_key().as_ref()[1..], key.public_key());
        assert_eq!(*key.secret(), scalar);
    }
}

#[test]
fn scalars_out_of_range_are_no_keys() {
    let invalid = Some(VrfKeyError::InvalidPrivateKey(ALGORITHM));
    let mut below = ORDER;
    below[31] -= 1;
    assert!(Private::from_secret(&below).is_ok());
    let bad: [&[u8]; 6] = [&[], &[1; 31], &[1; 33], &[0; 32], &ORDER, &[0xff; 32]];
    for secret in bad {
        assert_eq!(Private::from_secret(secret).err(), invalid, "{secret:?}");
    }
}

#[test]
fn points_off_the_curve_and_coordinates_from_p_on_are_no_keys() {
    let off = Some(VrfKeyError::NotOnCurve(ALGORITHM));
    let good = Private::from_secret(&[9; 32]).unwrap();
    let mut octets = good.public_key;
    octets[63] ^= 1;
    assert_eq!(Public::parse(&octets).err(), off);
    assert_eq!(Public::parse(&[0; 64]).err(), off);
    assert_eq!(Public::parse(&[0xff; 64]).err(), off);
    for found in [0, 1, 32, 33, 63, 65, 96] {
        let error = VrfKeyError::PublicKeyLength { algorithm: ALGORITHM, expected: 64, found };
        assert_eq!(Public::parse(&vec![4; found]).err(), Some(error));
    }
    // x = 5 has a point; x = 5 + p is the same number in other octets.
    let mut compressed = [2; COMPRESSED];
    compressed[1..].fill(0);
    compressed[COMPRESSED - 1] = 5;
    let point = Affine::from_compressed(&compressed).unwrap();
    let mut coordinates = point.to_coordinates();
    assert!(Public::parse(&coordinates).is_ok());
    coordinates[..32].copy_from_slice(&limbs::to_octets(&[4, 1 << 32, 0, PRIME[3]]));
    assert_eq!(Public::parse(&coordinates).err(), off);
}

/// s + order is the same scalar in other octets, where it fits 32 of them.
#[test]
fn s_from_the_order_on_is_refused() {
    let key = Private::from_secret(&[3; 32]).unwrap();
    let public = Public::parse(key.public_key()).unwrap();
    let (mut proofs, mut hashes) = (Vec::new(), Vec::new());
    key.prove_batch(&[b"name"], &mut proofs, &mut hashes).unwrap();
    assert!(public.verify(b"name", &proofs).is_ok());
    for s in [ORDER, [0xff; 32]] {
        proofs[COMPRESSED + CHALLENGE..].copy_from_slice(&s);
        assert!(Proof::parse(&proofs).is_none());
        assert_eq!(public.verify(b"name", &proofs), Err(BadProof));
        assert_eq!(proof_to_hash(&proofs), Err(BadProof));
    }
    let mut below = ORDER;
    below[31] -= 1;
    proofs[COMPRESSED + CHALLENGE..].copy_from_slice(&below);
    assert!(Proof::parse(&proofs).is_some());
}
