//! The multiplications by public scalars for the verification of proofs: sums of multiples of two
//! points, one of which is the point of the input. The multiplications share the doublings
//! (Straus).

#![deny(unsafe_code)]

use super::comb::{Digits, Entries, Tables, multiply_base, select};
use super::field::{Fields, LANES};
use super::point::{Pairs, Points, normalize_all};
use crate::p256::point::Affine;
use crate::p256::scalar::Scalar;
use crate::p256::statement::Statement;

/// Number of windows of a scalar.
const WINDOWS: usize = 52;

/// Number of windows of a scalar of 128 bits.
const SHORT_WINDOWS: usize = 26;

/// Bits of a window.
const WIDTH: usize = 5;

/// The lanes of eight statements.
struct Lanes {
    minus_gamma: Pairs,
    s: Digits,
    challenge: Digits,
    /// The lanes with an even challenge. Digits represent odd numbers, so in these lanes they
    /// represent the challenge plus one.
    even: u8,
}

/// Returns s·B − c·Y and s·H − c·Γ for the key Y and each statement. A result is `None` if two
/// intermediate sums are equal or opposite.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn commitments(key: &Affine, statements: &[Statement]) -> Vec<Option<[Affine; 2]>> {
    let minus_key = Pairs::from_affine(&[key.negate(); LANES]);
    let (mut all, mut points) = (Vec::new(), vec![minus_key]);
    for statements in statements.chunks(LANES) {
        let at = |lane: usize| &statements[lane.min(statements.len() - 1)];
        let (mut h, mut gamma) = ([Affine::BASE; LANES], [Affine::BASE; LANES]);
        let (mut s, mut challenge, mut even) = ([Scalar::ZERO; LANES], [0; LANES], 0);
        for lane in 0..LANES {
            let statement = at(lane);
            (h[lane], gamma[lane]) = (statement.h, statement.gamma.negate());
            (s[lane], challenge[lane]) = (statement.s, statement.challenge);
            even |= u8::from(statement.challenge & 1 == 0) << lane;
        }
        let minus_gamma = Pairs::from_affine(&gamma);
        points.extend([Pairs::from_affine(&h), minus_gamma]);
        let (s, challenge) = (Digits::new(&s), Digits::of_short(&challenge));
        all.push(Lanes { minus_gamma, s, challenge, even });
    }
    let tables = Tables::odd_multiples(&points);
    // The first table is that of the key, followed by two tables for each vector of statements.
    let (of_key, of_statements) = (&tables.each()[0], tables.each()[1..].as_chunks().0);
    let mut sums = Vec::with_capacity(2 * all.len());
    for (lanes, [of_h, of_gamma]) in all.iter().zip(of_statements) {
        sums.push(lanes.with_key(&minus_key, of_key));
        sums.push(lanes.with_input(of_h, of_gamma));
    }
    let (sums, infinities) = normalize_all(&sums, &mut Vec::new());
    let mut pairs = Vec::with_capacity(statements.len());
    let sums = sums.as_chunks().0.iter().zip(infinities.as_chunks().0);
    for (([u, v], [of_u, of_v]), statements) in sums.zip(statements.chunks(LANES)) {
        let (u, v, infinite) = (u.to_affine(), v.to_affine(), of_u | of_v);
        pairs.extend(
            (0..statements.len()).map(|lane| (infinite >> lane & 1 == 0).then_some([u[lane], v[lane]])),
        );
    }
    pairs
}

impl Lanes {
    /// Returns s·B + c·(−Y).
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn with_key(&self, minus_key: &Pairs, of_key: &Entries) -> Points {
        let mut sum = select(of_key, self.challenge.window(SHORT_WINDOWS - 1)).to_points();
        for window in (0..SHORT_WINDOWS - 1).rev() {
            sum = sum.double_times(WIDTH).add_different(&select(of_key, self.challenge.window(window)));
        }
        let sum = self.even_out(&sum, minus_key);
        multiply_base(Some(sum), &self.s)
    }

    /// Returns s·H + c·(−Γ).
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn with_input(&self, of_h: &Entries, of_gamma: &Entries) -> Points {
        let mut sum = select(of_h, self.s.window(WINDOWS - 1)).to_points();
        for window in (0..WINDOWS - 1).rev() {
            sum = sum.double_times(WIDTH).add_different(&select(of_h, self.s.window(window)));
            if window < SHORT_WINDOWS {
                sum = sum.add_different(&select(of_gamma, self.challenge.window(window)));
            }
        }
        self.even_out(&sum, &self.minus_gamma)
    }

    /// Subtracts the point in the lanes with an even challenge.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn even_out(&self, sum: &Points, points: &Pairs) -> Points {
        let less = sum.add_different(&points.negate_in(0xff));
        let select = |sum: &Fields, less: &Fields| sum.select(less, self.even);
        Points { x: select(&sum.x, &less.x), y: select(&sum.y, &less.y), z: select(&sum.z, &less.z) }
    }
}
