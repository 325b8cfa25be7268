//! Compares every operation with aws-lc, with random and with extreme inputs.

use aws_lc_sys as lc;
use proptest::prelude::*;

use super::field::{Field, PRIME};
use super::multiply::*;
use super::*;
use crate::limbs;
use crate::rfc_tests::seeded_config;

/// The order of the curve.
pub(crate) const ORDER: [u8; 32] = [
    0xff, 0xff, 0xff, 0xff, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xbc, 0xe6, 0xfa,
    0xad, 0xa7, 0x17, 0x9e, 0x84, 0xf3, 0xb9, 0xca, 0xc2, 0xfc, 0x63, 0x25, 0x51,
];

/// Functions of aws-lc for comparison.
struct Library {
    group: *const lc::EC_GROUP,
}

#[allow(unsafe_code)]
impl Library {
    fn new() -> Self {
        // SAFETY: the call returns a constant of the library.
        Self { group: unsafe { lc::EC_GROUP_new_by_curve_name(lc::NID_X9_62_prime256v1) } }
    }

    fn number(octets: &[u8]) -> *mut lc::BIGNUM {
        // SAFETY: one slice. With a null third argument, the library allocates.
        unsafe { lc::BN_bin2bn(octets.as_ptr(), octets.len(), std::ptr::null_mut()) }
    }

    /// Returns a·B + b·P, compressed, or a zero octet for infinity. The objects leak, which is
    /// acceptable in a test.
    fn multiply(
        &self,
        a: Option<&[u8; 32]>,
        p: Option<&[u8; COMPRESSED_OCTETS]>,
        b: Option<&[u8; 32]>,
    ) -> Vec<u8> {
        let null = std::ptr::null_mut;
        // SAFETY: the library returned every pointer just before, and none is freed. Null is
        // allowed for absent arguments. The output has the size of the longest encoding of a point.
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

    /// Returns whether the library accepts these octets as a point.
    fn is_point(&self, octets: &[u8]) -> bool {
        let null = std::ptr::null_mut;
        // SAFETY: as in `multiply`.
        unsafe {
            let point = lc::EC_POINT_new(self.group);
            lc::EC_POINT_oct2point(self.group, point, octets.as_ptr(), octets.len(), null()) == 1
        }
    }

    /// Returns a·b modulo p or the order.
    fn product(a: &[u8; 32], b: &[u8; 32], modulus: &[u8; 32]) -> [u8; 32] {
        let mut out = [0; 32];
        // SAFETY: as in `multiply`. The output has the 32 octets that are written.
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

/// 0, 1, 2, 2²⁵⁶ − 1, the neighbours of p, of the order and of their halves, single bits and runs
/// of bits.
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

/// Returns the point with the logarithm `seed`.
fn point_with_logarithm(seed: &Scalar) -> Affine {
    Jacobian::normalize_all(&[multiply_base(seed)])[0]
}

fn field_from_octets(octets: &[u8; 32]) -> Field {
    // Numbers from p on are invalid; their lower half is used instead.
    Field::from_octets(octets).unwrap_or_else(|| {
        let mut small = *octets;
        small[..16].fill(0);
        Field::from_octets(&small).unwrap()
    })
}

proptest! {
    #![proptest_config(seeded_config(31))]

    #[test]
    fn the_field_is_a_field(a in octets(), b in octets(), c in octets()) {
        let [a, b, c] = [a, b, c].map(|octets| field_from_octets(&octets));
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
        // −1 is not a square modulo p, because p is 3 modulo 4.
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
        // The sum of the digits of a recoded scalar is the scalar.
        let digits = x.recode();
        let all = (0..scalar::RECODED_DIGITS).rev().fold(Scalar::ZERO, |sum, index| {
            let digit = if digits.bit(index) == 1 { Scalar::from_short(1) } else { Scalar::from_short(1).negate() };
            sum.add(sum).add(digit)
        });
        prop_assert_eq!(all, x);
    }

    #[test]
    fn multiplications_are_those_of_the_library(
        seed in scalars(), a in scalars(), b in scalars(), other in scalars(), short in any::<u128>(),
    ) {
        let library = Library::new();
        let (p, q) = (point_with_logarithm(&seed), point_with_logarithm(&other));
        let [p_octets, q_octets] = [p, q].map(Affine::to_compressed);
        let [a_octets, b_octets] = [a, b].map(Scalar::to_octets);
        prop_assert_eq!(encode(multiply_base(&a)), library.multiply(Some(&a_octets), None, None));
        let expected = library.multiply(None, Some(&p_octets), Some(&a_octets));
        let combs = Comb::prepare_all(&[q, p]);
        prop_assert_eq!(&encode(combs[1].multiply(&a)), &expected);
        prop_assert_eq!(encode(multiply_complete(&p, &a)), expected);
        let expected = library.multiply(None, Some(&q_octets), Some(&b_octets));
        prop_assert_eq!(encode(combs[0].multiply(&b)), expected);
        // a·B + b·P, with a comb for P.
        let sum = multiply_base_public(combs[1].multiply(&b), &a);
        prop_assert_eq!(encode(sum), library.multiply(Some(&a_octets), Some(&p_octets), Some(&b_octets)));
        let mut long = [0; 32];
        long[16..].copy_from_slice(&short.to_be_bytes());
        let product = ShortTable::prepare(&p).multiply(short);
        prop_assert_eq!(encode(product), library.multiply(None, Some(&p_octets), Some(&long)));
        // a·P + b·Q. The library computes it from Q = other·B.
        let b_other = b.multiply(other).to_octets();
        let double = double_multiply_public(&a, &p, &b, &q);
        prop_assert_eq!(encode(double), library.multiply(Some(&b_other), Some(&p_octets), Some(&a_octets)));
    }

    #[test]
    fn points_are_read_as_the_library_reads_them(first in 0_u8..8, x in octets(), y in octets()) {
        let library = Library::new();
        let mut compressed = [first; COMPRESSED_OCTETS];
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

/// Multiplications that meet every special case of an addition.
#[test]
fn public_multiplications_know_every_case() {
    let one = Scalar::from_short(1);
    let p = point_with_logarithm(&Scalar::from_short(77));
    let library = Library::new();
    for a in 0..40 {
        for b in 0..20_u128 {
            let (a, b) = (Scalar::from_short(a), Scalar::from_short(b));
            for b in [b, b.negate()] {
                // a·P + b·P, which is infinity if b = −a, and the same with P and −P.
                let sum = a.add(b).multiply(Scalar::from_short(77));
                let expected = library.multiply(Some(&sum.to_octets()), None, None);
                assert_eq!(encode(double_multiply_public(&a, &p, &b, &p)), expected);
                let opposite = double_multiply_public(&a, &p, &b.negate(), &p.negate());
                assert_eq!(encode(opposite), expected);
                // a·B + b·B, where b·B is the start of the sum.
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

/// In constant-time multiplications, the formula for different points meets equal points if the
/// scalar is twice an entry of the table: the last addition then has equal points. The other method
/// handles these scalars.
#[test]
fn scalars_for_which_the_fast_methods_fail() {
    let p = point_with_logarithm(&Scalar::from_short(78));
    let comb = &Comb::prepare_all(&[p])[0];
    let library = Library::new();
    let power = |exponent: usize| (0..exponent).fold(Scalar::from_short(1), |power, _| power.add(power));
    let signed = |index: usize, bits: u32| match bits >> index & 1 {
        1 => power(52 * index),
        _ => power(52 * index).negate(),
    };
    let mut rescued = 0;
    let mut check = |scalar: Scalar| {
        let octets = scalar.to_octets();
        let expected = library.multiply(None, Some(&p.to_compressed()), Some(&octets));
        assert_eq!(encode(comb.multiply(&scalar)), expected);
        assert_eq!(encode(multiply_base(&scalar)), library.multiply(Some(&octets), None, None));
        rescued += u32::from(comb.multiply_without_fallback(&scalar).is_infinity());
    };
    for bits in 0..32 {
        let entry = (0..5).map(|index| signed(index, bits)).fold(Scalar::ZERO, Scalar::add);
        check(entry.add(entry));
    }
    assert!(rescued > 0);
    // The same for the table of the base point. In the last window, only the first bit is not
    // always 0: its digits are worth −31 or −29 times 2²⁵⁵.
    let meets_itself = power(256).multiply(Scalar::from_short(29)).negate();
    assert!(multiply_base_without_fallback(&meets_itself).is_infinity());
    let octets = meets_itself.to_octets();
    assert_eq!(encode(multiply_base(&meets_itself)), library.multiply(Some(&octets), None, None));
}

proptest! {
    #![proptest_config(seeded_config(32))]

    #[test]
    fn inverses_and_products_in_montgomery_form(a in scalars(), b in scalars(), c in scalars()) {
        prop_assert_eq!(MontgomeryScalar::new(a).multiply_plain(b), a.multiply(b));
        let mut forms = [a, b, c].map(MontgomeryScalar::new);
        MontgomeryScalar::invert_all(&mut forms);
        for (inverse, scalar) in forms.iter().zip([a, b, c]) {
            prop_assert_eq!(inverse.multiply_plain(scalar), Scalar::from_short(1));
        }
    }

    #[test]
    fn octets_of_a_scalar_sum_to_it(a in octets()) {
        let a = Scalar::from_octets_reduced(&a);
        let radix = Scalar::from_short(256);
        let digit = |octet: u8| Scalar::from_short(2 * u128::from(octet)).add(Scalar::from_short(255).negate());
        let sum = a.recode_octets().iter().rev().fold(Scalar::ZERO, |sum, octet| sum.multiply(radix).add(digit(*octet)));
        prop_assert_eq!(sum, a);
    }

    /// Sums of terms that are often equal or opposite, so that infinity occurs as an intermediate
    /// sum.
    #[test]
    fn sums_of_any_points(terms in proptest::collection::vec(prop_oneof![-3_i8..=-1, 1_i8..=3], 1..120), count in 1_usize..7) {
        let base = |factor: i8| {
            let point = point_with_logarithm(&Scalar::from_short(u128::from(factor.unsigned_abs())));
            if factor < 0 { point.negate() } else { point }
        };
        let terms = &terms[..terms.len() / count * count];
        let mut points: Vec<Affine> = terms.iter().map(|factor| base(*factor)).collect();
        sum::sum_any(&mut points, count, &mut Vec::new());
        for (index, found) in points.iter().take(count).enumerate() {
            let sum: i32 = terms.iter().skip(index).step_by(count).map(|factor| i32::from(*factor)).sum();
            let size = Scalar::from_short(u128::from(sum.unsigned_abs()));
            let expected = match sum {
                0 => Affine::INFINITY,
                1.. => point_with_logarithm(&size),
                _ => point_with_logarithm(&size).negate(),
            };
            prop_assert_eq!(*found, expected);
        }
    }

    #[test]
    fn tables_multiply_as_the_library_does(seed in scalars(), pairs in proptest::collection::vec((octets(), octets()), 1..5)) {
        let library = Library::new();
        let point = point_with_logarithm(&seed);
        let pairs: Vec<_> =
            pairs.iter().map(|(a, b)| (Scalar::from_octets_reduced(a), Scalar::from_octets_reduced(b))).collect();
        let mut workspace = Workspace::default();
        let table = || Table::new(&point);
        for table in [table(), with_portable_arithmetic(table)] {
            let found = Jacobian::normalize_all(&multiply_both(&table, &pairs, &mut workspace));
            for ((a, b), found) in pairs.iter().zip(found) {
                let expected =
                    library.multiply(Some(&a.to_octets()), Some(&point.to_compressed()), Some(&b.to_octets()));
                let found = if found.is_infinity() { vec![0] } else { found.to_compressed().to_vec() };
                prop_assert_eq!(found, expected);
            }
        }
    }
}

#[test]
fn multiplications_that_share_inversions() {
    let library = Library::new();
    let mut workspace = SecretWorkspace::default();
    let good: Vec<Scalar> =
        extremes().iter().map(Scalar::from_octets_reduced).filter(|s| *s != Scalar::ZERO).collect();
    for scalars in [&good[..], &good[..1], &good[..7], &[]] {
        let points = multiply_base_all(scalars, &mut workspace).unwrap();
        assert_eq!(points.len(), scalars.len());
        for (scalar, point) in scalars.iter().zip(points) {
            assert_eq!(
                point.to_compressed().to_vec(),
                library.multiply(Some(&scalar.to_octets()), None, None)
            );
        }
    }
    // The last addition has opposite points.
    assert!(multiply_base_all(&[good[0], Scalar::ZERO, good[1]], &mut workspace).is_none());
}
