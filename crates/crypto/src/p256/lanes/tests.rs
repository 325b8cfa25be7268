//! Compares every operation of the lanes with the portable code, with random and with extreme
//! numbers in every lane.

use std::sync::Once;

use proptest::prelude::*;
use zeroize::Zeroize as _;

use super::chain::Chain;
use super::comb::{Digits, Repeated, Tables, multiply, multiply_base};
use super::field::{Fields, LANES, LIMBS, Words};
use super::point::{AffinePoints, JacobianPoints, normalize_all};
use super::*;
use crate::freed::{assert_wiped, memory_freed_by, octets_of};
use crate::limbs;
use crate::p256::engine::Engine;
use crate::p256::field::PRIME;
use crate::p256::multiply::{Comb, multiply_base as multiply_base_scalar, multiply_complete};
use crate::p256::point::Jacobian;
use crate::p256::table::LaneTable;
use crate::rfc_tests::seeded_config;

/// Returns the proof for the instructions. If the processor does not have them, returns `None` and
/// records a skip once.
fn detect_ifma() -> Option<Ifma> {
    static RECORD_ONCE: Once = Once::new();
    let ifma = Ifma::detect();
    if ifma.is_none() {
        RECORD_ONCE
            .call_once(|| nonesuch_testing::record_skip("p256::lanes, as the processor has no AVX-512 IFMA"));
    }
    ifma
}

/// Elements at the bounds of limbs: 0, 1, 2, p − 1, p − 2, ones up to each limb, and the neighbours
/// of these numbers; as numbers and as Montgomery forms.
fn extremes() -> Vec<Field> {
    let mut numbers = vec![[0; 4], [1, 0, 0, 0], [2, 0, 0, 0]];
    numbers.push([PRIME[0] - 1, PRIME[1], PRIME[2], PRIME[3]]);
    numbers.push([PRIME[0] - 2, PRIME[1], PRIME[2], PRIME[3]]);
    for bit in [32, 44, 51, 52, 53, 64, 96, 104, 128, 156, 192, 207, 208, 209, 224, 250, 255] {
        let mut power = [0_u64; 4];
        power[bit / 64] = 1 << (bit % 64);
        let less = limbs::subtract(&power, &[1, 0, 0, 0]).0;
        numbers.extend([power, less]);
    }
    let forms = numbers.iter().map(|words| Field::from_montgomery(*words));
    let plain = numbers.iter().filter_map(|words| Field::from_octets(&limbs::to_octets(words)));
    forms.chain(plain).collect()
}

fn fields() -> impl Strategy<Value = Field> {
    let random = any::<[u8; 32]>().prop_map(|mut octets| {
        octets[0] &= 0x7f;
        Field::from_octets(&octets).unwrap()
    });
    prop_oneof![2 => random, 1 => proptest::sample::select(extremes())]
}

fn eight_fields() -> impl Strategy<Value = [Field; LANES]> {
    proptest::array::uniform8(fields())
}

fn scalar(octets: &[u8; 32]) -> Scalar {
    let scalar = Scalar::from_octets_reduced(octets);
    if scalar == Scalar::ZERO { Scalar::from_short(1) } else { scalar }
}

fn scalars() -> impl Strategy<Value = Scalar> {
    let small = (1_u128..40).prop_map(Scalar::from_short);
    let greatest = (1_u128..40).prop_map(|small| Scalar::from_short(small).negate());
    let power = (0_usize..256).prop_map(|bit| {
        let mut octets = [0; 32];
        octets[31 - bit / 8] = 1 << (bit % 8);
        scalar(&octets)
    });
    prop_oneof![4 => any::<[u8; 32]>().prop_map(|octets| scalar(&octets)), 1 => small, 1 => greatest, 1 => power]
}

fn point_with_logarithm(logarithm: &Scalar) -> Affine {
    Jacobian::normalize_all(&[multiply_base_scalar(logarithm)])[0]
}

/// The results of each operation on eight pairs of elements.
#[derive(Debug, PartialEq)]
struct LaneResults {
    product: [Field; LANES],
    square: [Field; LANES],
    sum: [Field; LANES],
    difference: [Field; LANES],
    products: [Field; LANES],
    triple: [Field; LANES],
    shifted: [Field; LANES],
    twice_more: [Field; LANES],
    both_less: [Field; LANES],
    negated: [Field; LANES],
    inverse: [Field; LANES],
    zero: [bool; LANES],
    odd: [bool; LANES],
}

fn bits(mask: u8) -> [bool; LANES] {
    std::array::from_fn(|lane| mask >> lane & 1 == 1)
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn results_in_lanes(a: &[Field; LANES], b: &[Field; LANES]) -> LaneResults {
    let (a, b) = (Fields::from_fields(a), Fields::from_fields(b));
    LaneResults {
        product: a.multiply(&b).to_fields(),
        square: a.square().to_fields(),
        sum: a.add(&b).to_fields(),
        difference: a.subtract::<2>(&b).to_fields(),
        products: Fields::sum_of_products(&a, &b, &a, &a).to_fields(),
        triple: a.triple().to_fields(),
        shifted: a.subtract_shifted::<2, 6>(&b).to_fields(),
        twice_more: a.add_twice_reduced(&b).to_fields(),
        both_less: a.subtract_both_reduced(&b, &a).to_fields(),
        negated: a.negate().to_fields(),
        inverse: power::invert(&a).to_fields(),
        zero: bits(a.are_zero()),
        odd: bits(a.are_odd()),
    }
}

fn results_one_by_one(a: &[Field; LANES], b: &[Field; LANES]) -> LaneResults {
    let each = |operation: &dyn Fn(Field, Field) -> Field| -> [Field; LANES] {
        std::array::from_fn(|lane| operation(a[lane], b[lane]))
    };
    LaneResults {
        product: each(&|a, b| a * b),
        square: each(&|a, _| a.square()),
        sum: each(&|a, b| a + b),
        difference: each(&|a, b| a - b),
        products: each(&|a, b| a * b + a * a),
        triple: each(&|a, _| a.double() + a),
        shifted: each(&|a, b| a - b.double().double()),
        twice_more: each(&|a, b| a + b.double()),
        both_less: each(&|a, b| a - b - a.double()),
        negated: each(&|a, _| -a),
        inverse: each(&|a, _| a.invert()),
        zero: a.map(|a| a.is_zero()),
        odd: a.map(Field::is_odd),
    }
}

/// Products of numbers at the bounds that the comments allow, with full limbs.
#[target_feature(enable = "avx512f,avx512ifma")]
fn products_at_bounds() -> [[Field; LANES]; 4] {
    const FULL: u64 = (1 << 52) - 1;
    // 2²⁶⁰ − 1, slightly more than 16·p, is the largest number in five limbs. The other number is
    // 2²⁵⁹ − 1.
    let greatest = Fields::splat(&[FULL; LIMBS]);
    let half = Fields::splat(&[FULL, FULL, FULL, FULL, FULL >> 1]);
    [
        greatest.multiply(&Fields::one()).to_fields(),
        half.multiply(&half).to_fields(),
        half.square().to_fields(),
        Fields::sum_of_products(&half, &half, &half, &half).to_fields(),
    ]
}

#[test]
fn full_limbs_are_multiplied() {
    let Some(_) = detect_ifma() else { return };
    // SAFETY: the processor has the instructions.
    let found = unsafe { products_at_bounds() };
    // The value that a number represents is the number divided by 2²⁶⁰.
    let one_unit = (0..260).fold(Field::ONE, |power, _| power.double()).invert();
    let square = (Field::ONE.halve() - one_unit).square();
    let expected = [Field::ONE - one_unit, square, square, square.double()];
    assert_eq!(found, expected.map(|field| [field; LANES]));
}

proptest! {
    #![proptest_config(seeded_config(41))]

    #[test]
    fn the_field_is_that_of_the_scalar_code(a in eight_fields(), b in eight_fields()) {
        let Some(ifma) = detect_ifma() else { return Ok(()) };
        // SAFETY: the processor has the instructions.
        prop_assert_eq!(unsafe { results_in_lanes(&a, &b) }, results_one_by_one(&a, &b));
        let ys = ifma.even_ys(&a);
        for (x, y) in a.iter().zip(ys) {
            let mut octets = [2; 33];
            octets[1..].copy_from_slice(&x.to_octets());
            prop_assert_eq!(y.map(|y| Affine { x: *x, y }), Affine::from_compressed(&octets));
        }
    }

    #[test]
    fn rows_become_columns(rows in any::<[Words; LANES]>()) {
        let Some(_) = detect_ifma() else { return Ok(()) };
        // SAFETY: the processor has the instructions.
        let columns = unsafe { table::transpose_rows(&rows) };
        for (i, row) in rows.iter().enumerate() {
            for (j, word) in row.iter().enumerate() {
                prop_assert_eq!(*word, columns[j][i]);
            }
        }
    }
}

/// Returns 2·P, P + Q, P + Q with cached powers of Z, whether each of them is infinity, and 2·∞ +
/// Q.
#[target_feature(enable = "avx512f,avx512ifma")]
fn sums(p: &[Affine; LANES], q: &[Affine; LANES]) -> Vec<([Affine; LANES], u8)> {
    let (p, q) = (AffinePoints::from_affine(p), AffinePoints::from_affine(q));
    // 2·P − P is P with a Z other than 1.
    let minus_p = p.negate_lanes(0xff);
    let start = p.to_points().double().add_different(&minus_p);
    let other = q.to_points().double().add_different(&q.negate_lanes(0xff));
    let infinity = JacobianPoints { z: Fields::zero(), ..start };
    let all = [
        start.double(),
        start.add_different(&q),
        start.add_cached(&other.cache()),
        infinity.double().add_different(&q),
        start.negate().add_different(&q),
    ];
    let (pairs, infinities) = normalize_all(&all, &mut Vec::new());
    let mut found = Vec::new();
    for (pairs, infinite) in pairs.iter().zip(infinities) {
        found.push((pairs.to_affine(), infinite));
    }
    found
}

/// Returns 2ⁿ·P, 2ⁿ·P + Q, 2ⁿ·P + 2·Q, and the double of the last, each for two pairs of points.
#[target_feature(enable = "avx512f,avx512ifma")]
fn chains(pairs: &[[Affine; 2]; 2], times: usize) -> Vec<([Affine; LANES], u8)> {
    let lanes = |index: usize| {
        let mut lanes = [pairs[0][index]; LANES];
        lanes[LANES / 2..].fill(pairs[1][index]);
        AffinePoints::from_affine(&lanes)
    };
    let [p, q] = [lanes(0), lanes(1)];
    // 2·P − P is P with a Z other than 1.
    let start = p.to_points().double().add_different(&p.negate_lanes(0xff));
    let doubled = Chain::new(&start).double_times(times);
    let sum = doubled.add_different(&q);
    let second = sum.add_different(&q);
    let all = [doubled.to_points(), sum.to_points(), second.to_points(), second.double_times(1).to_points()];
    let (points, infinities) = normalize_all(&all, &mut Vec::new());
    let mut found = Vec::new();
    for (points, infinite) in points.iter().zip(infinities) {
        found.push((points.to_affine(), infinite));
    }
    found
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..seeded_config(44) })]

    #[test]
    fn chains_are_those_of_the_scalar_code(
        pairs in proptest::array::uniform2(proptest::array::uniform2(scalars())), times in 0_usize..60,
    ) {
        let Some(_) = detect_ifma() else { return Ok(()) };
        let pairs = pairs.each_ref().map(|pair| pair.each_ref().map(point_with_logarithm));
        // SAFETY: the processor has the instructions.
        let found = unsafe { chains(&pairs, times) };
        for lane in 0..LANES {
            let [p, q] = &pairs[lane / 4];
            let doubled = Jacobian::from(*p).double_times(times);
            let (sum, second) = (doubled.add_affine(q), doubled.add_affine(q).add_affine(q));
            for ((points, infinite), expected) in found.iter().zip([doubled, sum, second, second.double()]) {
                // Small scalars can lead to equal points, which the lanes do not support.
                if infinite >> lane & 1 == 0 {
                    prop_assert_eq!(points[lane], Jacobian::normalize_all(&[expected])[0]);
                }
            }
            prop_assert_eq!(found[0].1, 0);
        }
    }
}

/// Equal and opposite points lead to Z = 0, which stays, and other lanes are not affected.
#[test]
fn chains_report_special_cases() {
    let Some(_) = detect_ifma() else { return };
    let point = |factor: u128| point_with_logarithm(&Scalar::from_short(factor));
    for other in [point(8), point(8).negate()] {
        // 2³·P for P = B is the other point in the first half.
        let pairs = [[point(1), other], [point(3), point(5)]];
        // SAFETY: the processor has the instructions.
        let found = unsafe { chains(&pairs, 3) };
        assert_eq!(found.iter().map(|(_, infinite)| *infinite).collect::<Vec<_>>(), [0, 0x0f, 0x0f, 0x0f]);
        assert_eq!(found[1].0[7], point(29));
        assert_eq!(found[3].0[4], point(68));
    }
}

/// Some lanes meet equal points, opposite points or infinity. These lanes are
/// reported, and do not affect other lanes.
#[test]
fn lanes_with_special_cases_are_reported() {
    let Some(_) = detect_ifma() else { return };
    let factors = [1_u128, 2, 3, 5, 8, 9, 1 << 70, 77];
    let p = factors.map(|factor| point_with_logarithm(&Scalar::from_short(factor)));
    for shift in 0..LANES {
        // In one lane q = p, in another q = −p.
        let mut q = p;
        q.rotate_left(3);
        q[shift] = p[shift];
        q[(shift + 1) % LANES] = p[(shift + 1) % LANES].negate();
        // SAFETY: the processor has the instructions.
        let found = unsafe { sums(&p, &q) };
        let special = 1 << shift | 1 << ((shift + 1) % LANES);
        assert_eq!(
            found.iter().map(|(_, infinite)| *infinite).collect::<Vec<_>>(),
            [0, special, special, 0xff, special]
        );
        for lane in 0..LANES {
            let expect = |jacobian: Jacobian| Jacobian::normalize_all(&[jacobian])[0];
            assert_eq!(found[0].0[lane], expect(Jacobian::from(p[lane]).double()));
            if special >> lane & 1 == 0 {
                let sum = expect(Jacobian::from(p[lane]).add_affine(&q[lane]));
                assert_eq!([found[1].0[lane], found[2].0[lane]], [sum; 2]);
                assert_eq!(found[4].0[lane], expect(Jacobian::from(p[lane].negate()).add_affine(&q[lane])));
            }
        }
    }
}

#[target_feature(enable = "avx512f,avx512ifma")]
fn products(points: &[Affine; LANES], scalars: &[Scalar; LANES]) -> [([Affine; LANES], u8); 2] {
    let digits = Digits::new(scalars);
    let combs = Tables::combs(&[(AffinePoints::from_affine(points), Repeated::Never)]);
    let products = [multiply(&combs.tables()[0], &digits), multiply_base(None, &digits)];
    let (pairs, infinities) = normalize_all(&products, &mut Vec::new());
    [(pairs[0].to_affine(), infinities[0]), (pairs[1].to_affine(), infinities[1])]
}

/// The scalars that the tests of the portable code use for this: the last addition has equal
/// points.
#[test]
fn scalars_for_which_the_lanes_fail() {
    let Some(ifma) = detect_ifma() else { return };
    let power = |exponent: usize| (0..exponent).fold(Scalar::from_short(1), |power, _| power.add(power));
    let signed = |index: usize, bits: u32| match bits >> index & 1 {
        1 => power(52 * index),
        _ => power(52 * index).negate(),
    };
    let twice_an_entry = |bits: u32| {
        let entry = (0..5).map(|index| signed(index, bits)).fold(Scalar::ZERO, Scalar::add);
        entry.add(entry)
    };
    let for_base = power(256).multiply(Scalar::from_short(29)).negate();
    let good = scalar(&[7; 32]);
    let point = point_with_logarithm(&Scalar::from_short(78));
    let comb = &Comb::prepare_all(&[point])[0];
    let is_not_served = |scalar: &Scalar| comb.multiply_without_fallback(scalar).is_infinity();
    let for_comb = (0..32).map(twice_an_entry).find(is_not_served).unwrap();
    let mut scalars = [good; LANES];
    (scalars[2], scalars[5]) = (for_comb, for_base);
    // SAFETY: the processor has the instructions.
    let [(_, comb_infinities), (_, base_results)] = unsafe { products(&[point; LANES], &scalars) };
    assert_eq!([comb_infinities, base_results], [1 << 2, 1 << 5]);
    let engine = Engine::Lanes(ifma);
    for [secret, nonce] in [[for_comb, good], [good, for_comb], [good, for_base], [for_base, for_comb]] {
        let expected = Engine::Portable.commit(&[point; 9], &[good; 9], &[nonce; 9]);
        assert_eq!(engine.commit(&[point; 9], &[good; 9], &[nonce; 9]), expected);
        let expected = Engine::Portable.commit(&[point], &[secret], &[nonce]);
        assert_eq!(engine.commit(&[point], &[secret], &[nonce]), expected);
    }
    assert!(ifma.multiply_base_all(&[good, for_base, good]).is_none());
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 24, ..seeded_config(42) })]

    #[test]
    fn secret_multiples_are_those_of_the_scalar_code(
        logarithms in proptest::array::uniform8(scalars()), scalars in proptest::array::uniform8(scalars()),
    ) {
        let Some(_) = detect_ifma() else { return Ok(()) };
        let points = logarithms.each_ref().map(point_with_logarithm);
        // SAFETY: the processor has the instructions.
        let [(comb_results, infinite), (base_results, infinite_base)] = unsafe { products(&points, &scalars) };
        prop_assert_eq!([infinite, infinite_base], [0, 0]);
        for lane in 0..LANES {
            let product = multiply_complete(&points[lane], &scalars[lane]);
            prop_assert_eq!(comb_results[lane], Jacobian::normalize_all(&[product])[0]);
            prop_assert_eq!(base_results[lane], point_with_logarithm(&scalars[lane]));
        }
    }
}

/// Every size of a batch: full vectors, the remainder, and a few items in half a vector.
#[test]
fn batches_of_every_size() {
    let Some(ifma) = detect_ifma() else { return };
    let engine = Engine::Lanes(ifma);
    let nonces: Vec<Scalar> = (0..40_u8).map(|seed| scalar(&crate::hash::sha256(&[seed]))).collect();
    // Each point has its own secret: the proofs of a batch may be those of many keys.
    let secrets: Vec<Scalar> = (0..40_u8).map(|seed| scalar(&crate::hash::sha256(&[seed, 1]))).collect();
    let points: Vec<Affine> = nonces
        .iter()
        .zip(&secrets)
        .map(|(nonce, secret)| point_with_logarithm(&nonce.multiply(*secret)))
        .collect();
    let expected = Engine::Portable.commit(&points, &secrets, &nonces);
    let compressed: Vec<_> = points.iter().map(|point| point.to_compressed()).collect();
    let statements: Vec<Statement> = (0..points.len())
        .map(|index| Statement {
            key: points[7],
            h: points[index],
            gamma: expected[index][0],
            s: nonces[index],
            challenge: u128::MAX / 41 * (index as u128 + 1),
        })
        .collect();
    let verified = Engine::Portable.commitments(&statements);
    assert!(verified.iter().all(Option::is_some));
    let with_keys: Vec<Statement> = statements
        .iter()
        .zip(points.iter().rev())
        .map(|(statement, key)| Statement { key: *key, ..*statement })
        .collect();
    let verified_with_keys = Engine::Portable.commitments(&with_keys);
    for size in 0..=points.len() {
        assert_eq!(engine.commit(&points[..size], &secrets[..size], &nonces[..size]), expected[..size]);
        let base_results: Vec<Affine> =
            expected[..size].iter().map(|[_, base_results, _]| *base_results).collect();
        assert_eq!(ifma.multiply_base_all(&nonces[..size]).unwrap(), base_results);
        assert_eq!(engine.commitments(&statements[..size]), verified[..size]);
        assert_eq!(engine.commitments(&with_keys[..size]), verified_with_keys[..size]);
        let read = engine.decompress(&compressed[..size]);
        assert!(read.into_iter().eq(points[..size].iter().map(|point| Some(*point))));
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 12, ..seeded_config(43) })]

    #[test]
    fn tables_of_lanes_have_the_multiples_of_the_scalar_code(
        lanes in proptest::collection::vec((scalars(), scalars(), scalars()), 1..20),
    ) {
        if detect_ifma().is_none() {
            return Ok(());
        }
        let points: Vec<Affine> = lanes.iter().map(|(logarithm, ..)| point_with_logarithm(logarithm)).collect();
        let tables: Vec<LaneTable> = points.iter().filter_map(LaneTable::new).collect();
        let pairs: Vec<_> = lanes.iter().map(|(_, a, b)| (*a, *b)).collect();
        let found = Engine::detect().multiply_by_tables(&tables.iter().collect::<Vec<_>>(), &pairs);
        prop_assert_eq!(found.len(), pairs.len());
        let affine = |points: Vec<Option<Jacobian>>| {
            points.into_iter().map(|point| Some(Jacobian::normalize_all(&[point?])[0])).collect::<Vec<_>>()
        };
        let expected = affine(Engine::Portable.multiply_each(&points, &pairs));
        for found in [found, Engine::detect().multiply_each(&points, &pairs)] {
            for (found, expected) in affine(found).into_iter().zip(&expected).filter(|(found, _)| found.is_some()) {
                prop_assert_eq!(found, *expected);
            }
        }
    }

    #[test]
    fn public_multiples_are_those_of_the_scalar_code(
        logarithms in proptest::array::uniform8((scalars(), scalars())),
        factors in proptest::array::uniform8((scalars(), prop_oneof![any::<u128>(), 0_u128..40])),
        keys in proptest::array::uniform8(scalars()),
        has_one_key: bool,
    ) {
        let Some(ifma) = detect_ifma() else { return Ok(()) };
        let statements: Vec<Statement> = logarithms
            .iter()
            .zip(&factors)
            .zip(&keys)
            .map(|(((h, gamma), (s, challenge)), key)| {
                let key = point_with_logarithm(if has_one_key { &keys[0] } else { key });
                let (h, gamma) = (point_with_logarithm(h), point_with_logarithm(gamma));
                Statement { key, h, gamma, s: *s, challenge: *challenge }
            })
            .collect();
        let expected = Engine::Portable.commitments(&statements);
        for (found, expected) in Engine::Lanes(ifma).commitments(&statements).iter().zip(&expected) {
            // Small scalars can lead to equal points, which the lanes do not support.
            prop_assert!(found.is_none() || found == expected);
        }
        let found = Engine::Lanes(ifma).commitments(&statements[..3]);
        prop_assert!(found.iter().zip(&expected).all(|(found, expected)| found.is_none() || found == expected));
    }
}

/// The projective coordinates of a secret multiple reveal bits of its scalar.
#[test]
fn multiplying_wipes_its_secrets() {
    let Some(ifma) = detect_ifma() else { return };
    let secret = scalar(&[0x42; 32]);
    let nonces: Vec<Scalar> = (1..=11_u8).map(|octet| scalar(&[octet; 32])).collect();
    let points: Vec<Jacobian> = nonces.iter().map(multiply_base_scalar).collect();
    let points = Jacobian::normalize_all(&points);
    for count in [1, 3, nonces.len()] {
        let (points, nonces, private) = (&points[..count], &nonces[..count], &vec![secret; count]);
        // SAFETY: `Ifma::detect` confirmed that the processor has the instructions.
        let products = unsafe { commit::products(points, private, nonces) };
        let mut secrets = vec![("the private scalar".to_owned(), octets_of(&secret))];
        for (name, coordinate) in
            products.iter().flat_map(|points| [("X", points.x), ("Y", points.y), ("Z", points.z)])
        {
            secrets.push((name.to_owned(), octets_of(&coordinate)));
        }
        assert_wiped(&memory_freed_by(|| ifma.commit(points, private, nonces)), &secrets);
    }
}

#[test]
fn digits_can_be_wiped() {
    let Some(_) = detect_ifma() else { return };
    // SAFETY: `Ifma::detect` confirmed that the processor has the instructions.
    let mut digits = unsafe { Digits::new(&[scalar(&[0x42; 32]); LANES]) };
    assert!(octets_of(&digits).iter().any(|octet| *octet != 0));
    digits.zeroize();
    assert!(octets_of(&digits).iter().all(|octet| *octet == 0));
}
