//! The multiplications by public scalars for the verification of proofs, and of signatures of
//! different keys: sums of multiples of two points, one of which is in each lane another one. The
//! multiplications share the doublings (Straus).

#![deny(unsafe_code)]

use super::chain::Chain;
use super::comb::{Digits, Entries, Tables, multiply_base, select_entries};
use super::field::{Fields, LANES, Words};
use super::point::{AffinePoints, JacobianPoints, normalize_all, to_affine_all};
use crate::p256::point::{Affine, Jacobian};
use crate::p256::scalar::Scalar;
use crate::p256::statement::Statement;

/// Number of windows of a scalar, which has 260 digits.
const WINDOWS: usize = 52;

/// Number of windows of a challenge of 128 bits, which has 130 digits.
const SHORT_WINDOWS: usize = 26;

/// Bits of a window.
const WINDOW_BITS: usize = 5;

/// Maximum number of statements for which one vector has both sums of each statement.
const FEW: usize = LANES / 2;

/// Up to eight statements, one in each lane. Unused lanes repeat the last statement.
struct StatementVector {
    minus_key: AffinePoints,
    h: AffinePoints,
    minus_gamma: AffinePoints,
    s: Digits,
    challenge: Digits,
    /// Mask of the lanes with an even challenge. Digits represent odd numbers, so in these lanes
    /// they represent the challenge plus one.
    even: u8,
}

/// Returns s·B − c·Y and s·H − c·Γ for each statement with its key Y. A result is `None` if two
/// intermediate sums are equal or opposite.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn commitments(statements: &[Statement]) -> Vec<Option<[Affine; 2]>> {
    if let [statement] = statements {
        return vec![commitments_of_one(statement)];
    }
    if statements.len() <= FEW {
        return few_commitments(statements);
    }
    let mut vectors = Vec::new();
    for statements in statements.chunks(LANES) {
        vectors.push(StatementVector::new(statements));
    }
    // One table of the key is enough if all statements have the same key.
    let has_one_key = statements.windows(2).all(|pair| pair[0].key == pair[1].key);
    let key_tables = if has_one_key { 1 } else { vectors.len() };
    let mut points: Vec<AffinePoints> = vectors[..key_tables].iter().map(|vector| vector.minus_key).collect();
    points.extend(vectors.iter().flat_map(|vector| [vector.h, vector.minus_gamma]));
    let tables = Tables::odd_multiples(&points);
    let (key_tables, statement_tables) = tables.tables().split_at(key_tables);
    let mut sums = Vec::with_capacity(2 * vectors.len());
    let vectors = vectors.iter().zip(statement_tables.as_chunks().0).zip(key_tables.iter().cycle());
    for ((vector, [h_table, gamma_table]), key_table) in vectors {
        sums.push(vector.commitment_to_base(key_table));
        sums.push(vector.commitment_to_input(h_table, gamma_table));
    }
    let (sums, infinities) = normalize_all(&sums, &mut Vec::new());
    let mut commitments = Vec::with_capacity(statements.len());
    let sums = sums.as_chunks().0.iter().zip(infinities.as_chunks().0);
    for (([u, v], [u_infinities, v_infinities]), statements) in sums.zip(statements.chunks(LANES)) {
        let (u, v, infinite) = (u.to_affine(), v.to_affine(), u_infinities | v_infinities);
        commitments.extend(
            (0..statements.len()).map(|lane| (infinite >> lane & 1 == 0).then_some([u[lane], v[lane]])),
        );
    }
    commitments
}

/// Like [`commitments`], for one statement: each half of the lanes computes one of its sums.
#[target_feature(enable = "avx512f,avx512ifma")]
fn commitments_of_one(statement: &Statement) -> Option<[Affine; 2]> {
    let to_base = Statement { h: Affine::BASE, gamma: statement.key, ..*statement };
    let vector = StatementVector::new(&[[to_base; LANES / 2], [*statement; LANES / 2]].concat());
    // The tables of all four points are built in one vector.
    let mut points = [Affine::BASE; LANES];
    points[..4].copy_from_slice(&[to_base.h, statement.h, to_base.gamma.negate(), statement.gamma.negate()]);
    let tables = Tables::odd_multiples(&[AffinePoints::from_affine(&points)]);
    let table = |order: Words| tables.tables()[0].map(|entry| entry.permute(&order));
    let [h_table, gamma_table] = [table([0, 0, 0, 0, 1, 1, 1, 1]), table([2, 2, 2, 2, 3, 3, 3, 3])];
    let sum = vector.commitment_in_halves(&h_table, &gamma_table);
    let sums = to_affine_all(&[sum], LANES);
    Some([sums[0]?, sums[LANES / 2]?])
}

/// Like [`commitments`], for at most [`FEW`] statements. Two lanes compute the sums of a statement:
/// s·B − c·Y is s·H − c·Γ for the points B and Y.
#[target_feature(enable = "avx512f,avx512ifma")]
fn few_commitments(statements: &[Statement]) -> Vec<Option<[Affine; 2]>> {
    let both = |statement: &Statement| {
        [Statement { h: Affine::BASE, gamma: statement.key, ..*statement }, *statement]
    };
    let lanes: Vec<Statement> = statements.iter().flat_map(both).collect();
    if lanes.is_empty() {
        return Vec::new();
    }
    let vector = StatementVector::new(&lanes);
    let tables = Tables::odd_multiples(&[vector.h, vector.minus_gamma]);
    let [h_table, gamma_table] = &tables.tables().as_chunks().0[0];
    let sum = vector.commitment_to_input(h_table, gamma_table);
    let sums = to_affine_all(&[sum], lanes.len());
    sums.as_chunks().0.iter().map(|[u, v]| Some([(*u)?, (*v)?])).collect()
}

/// Returns a·B + b·Q for each pair of scalars and its point Q. A result is `None` if two intermediate
/// sums are equal or opposite.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply_each(points: &[Affine], pairs: &[(Scalar, Scalar)]) -> Vec<Option<Jacobian>> {
    let (mut vectors, mut scalars) = (Vec::new(), Vec::new());
    for (points, pairs) in points.chunks(LANES).zip(pairs.chunks(LANES)) {
        let (mut q, mut a, mut b) = ([Affine::BASE; LANES], [Scalar::ZERO; LANES], [Scalar::ZERO; LANES]);
        for (lane, (point, pair)) in points.iter().zip(pairs).enumerate() {
            (q[lane], (a[lane], b[lane])) = (*point, *pair);
        }
        vectors.push(AffinePoints::from_affine(&q));
        scalars.push([Digits::new(&a), Digits::new(&b)]);
    }
    let tables = Tables::odd_multiples(&vectors);
    let mut products = Vec::with_capacity(vectors.len() * LANES);
    for (table, [a, b]) in tables.tables().iter().zip(&scalars) {
        let mut sum = select_entries(table, b.window_digits(WINDOWS - 1)).to_points();
        for window in (0..WINDOWS - 1).rev() {
            let entries = select_entries(table, b.window_digits(window));
            sum = sum.double_times(WINDOW_BITS).add_different(&entries);
        }
        products.extend(multiply_base(Some(sum), a).to_jacobian());
    }
    products.truncate(pairs.len());
    products
}

impl StatementVector {
    /// Takes at least one statement.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn new(statements: &[Statement]) -> Self {
        let [mut key, mut h, mut gamma] = [[Affine::BASE; LANES]; 3];
        let (mut s, mut challenge, mut even) = ([Scalar::ZERO; LANES], [0; LANES], 0);
        for lane in 0..LANES {
            let statement = &statements[lane.min(statements.len() - 1)];
            key[lane] = statement.key.negate();
            (h[lane], gamma[lane]) = (statement.h, statement.gamma.negate());
            (s[lane], challenge[lane]) = (statement.s, statement.challenge);
            even |= u8::from(statement.challenge & 1 == 0) << lane;
        }
        let [minus_key, h, minus_gamma] = [key, h, gamma].map(|points| AffinePoints::from_affine(&points));
        Self {
            minus_key,
            h,
            minus_gamma,
            s: Digits::new(&s),
            challenge: Digits::from_short(&challenge),
            even,
        }
    }

    /// Returns s·B + c·(−Y).
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn commitment_to_base(&self, key_table: &Entries) -> JacobianPoints {
        let mut sum = select_entries(key_table, self.challenge.window_digits(SHORT_WINDOWS - 1)).to_points();
        for window in (0..SHORT_WINDOWS - 1).rev() {
            sum = sum
                .double_times(WINDOW_BITS)
                .add_different(&select_entries(key_table, self.challenge.window_digits(window)));
        }
        let sum = self.subtract_in_even_lanes(&sum, &self.minus_key);
        multiply_base(Some(sum), &self.s)
    }

    /// Returns s·H + c·(−Γ).
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn commitment_to_input(&self, h_table: &Entries, gamma_table: &Entries) -> JacobianPoints {
        let mut sum = select_entries(h_table, self.s.window_digits(WINDOWS - 1)).to_points();
        for window in (0..WINDOWS - 1).rev() {
            sum = sum
                .double_times(WINDOW_BITS)
                .add_different(&select_entries(h_table, self.s.window_digits(window)));
            if window < SHORT_WINDOWS {
                sum = sum.add_different(&select_entries(gamma_table, self.challenge.window_digits(window)));
            }
        }
        self.subtract_in_even_lanes(&sum, &self.minus_gamma)
    }

    /// As [`StatementVector::commitment_to_input`], if the lanes of each half are equal.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn commitment_in_halves(&self, h_table: &Entries, gamma_table: &Entries) -> JacobianPoints {
        let mut sum = Chain::new(&select_entries(h_table, self.s.window_digits(WINDOWS - 1)).to_points());
        for window in (0..WINDOWS - 1).rev() {
            sum = sum
                .double_times(WINDOW_BITS)
                .add_different(&select_entries(h_table, self.s.window_digits(window)));
            if window < SHORT_WINDOWS {
                sum = sum.add_different(&select_entries(gamma_table, self.challenge.window_digits(window)));
            }
        }
        self.subtract_in_even_lanes(&sum.to_points(), &self.minus_gamma)
    }

    /// Subtracts the point in the lanes with an even challenge.
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn subtract_in_even_lanes(&self, sum: &JacobianPoints, points: &AffinePoints) -> JacobianPoints {
        let less = sum.add_different(&points.negate_lanes(0xff));
        let select = |sum: &Fields, less: &Fields| sum.select_lanes(less, self.even);
        JacobianPoints { x: select(&sum.x, &less.x), y: select(&sum.y, &less.y), z: select(&sum.z, &less.z) }
    }
}
