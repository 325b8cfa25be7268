//! Doublings and additions that depend on each other, for one or two points. With one point in each lane, the
//! processor would wait for each multiplication. Here, the four lanes of half a vector have the independent
//! products of the same operation: a doubling takes the time of three multiplications, an addition of four.
//!
//! A point is T = 2Y, X, Z, W = −3Z⁴ and α = 3X² + W (the modified Jacobian coordinates of Cohen, Miyaji and Ono,
//! ASIACRYPT 1998, with α). A doubling:
//!
//! 1. T², α², Z' = T·Z
//! 2. S = X·T², T⁴, Z'²; then X' = α² − 2·S
//! 3. α·(S − X'), W' = T⁴·W, X'²; then T' = 2·α·(S − X') − T⁴ and α' = 3·X'² + W'.
//!
//! The sum with the affine point (x, y), as in "madd-2007-bl" of the Explicit-Formulas Database:
//!
//! 1. x·Z², y·Z; then H = x·Z² − X
//! 2. I = (2H)², y·Z·Z², Z' = 2H·Z; then r = 2·y·Z³ − T
//! 3. J = H·I, V = X·I, r², Z'²; then X' = r² − J − 2·V
//! 4. r·(V − X'), T·J, Z'⁴, X'²; then T' = 2·r·(V − X') − 2·T·J, W' = −3·Z'⁴ and α' = 3·X'² + W'.
//!
//! As in [`super::point`], Z of a sum is 0 if its two points are equal or opposite, and stays 0. The time does not
//! depend on the numbers.

#![deny(unsafe_code)]

use super::field::{Fields, Sums};
use super::point::{AffinePoints, JacobianPoints};

/// Masks of one lane in both halves.
const LANE: [u8; 4] = [0x11, 0x22, 0x44, 0x88];

/// Orders of [`Fields::permute_halves`] that copy one lane to all lanes of its half.
const ALL_0: i32 = 0b00_00_00_00;
const ALL_1: i32 = 0b01_01_01_01;
const ALL_2: i32 = 0b10_10_10_10;
const ALL_3: i32 = 0b11_11_11_11;

/// Two points, one in each half of the vectors. All elements are below 1.1, except Z and Z² of the start, which are
/// below 2.
pub(super) struct Chain {
    /// T, α, T.
    left: Fields,
    /// T, α, Z.
    right: Fields,
    /// X in all lanes.
    x: Fields,
    /// W in lane 1.
    w: Fields,
    /// Z² in lane 2.
    z2: Fields,
}

/// Returns 3·a.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn triple(a: &Sums) -> Sums {
    a.add(a).add(a)
}

impl Chain {
    /// Takes the point of lanes 0 to 3, which must be equal, and that of lanes 4 to 7, which must be equal.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn new(points: &JacobianPoints) -> Self {
        let z2 = points.z.square();
        let w = Fields::zero().to_sums().subtract(&triple(&z2.square().to_sums())).reduce();
        let alpha = triple(&points.x.square().to_sums()).add(&w.to_sums()).reduce();
        let y = points.y.to_sums();
        let left = y.add(&y).reduce().select_lanes(&alpha, LANE[1]);
        Self { left, right: left.select_lanes(&points.z, LANE[2]), x: points.x, w, z2 }
    }

    /// Doubles both points.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn double(&self) -> Self {
        let first = self.left.multiply_to_sums(&self.right);
        let z = first.carry();
        let t2 = z.permute_halves::<ALL_0>().select_lanes(&z, LANE[2]);
        let second = self.x.select_lanes(&t2, LANE[1] | LANE[2]).multiply_to_sums(&t2);
        // Lane 0: S − X' = 3·S − α². The other lanes: X' = α² − 2·S.
        let (s, alpha2) = (second.permute_halves::<ALL_0>(), first.permute_halves::<ALL_1>());
        let twice_s = s.add(&s);
        let difference = s.subtract(&alpha2).add(&twice_s);
        let x = alpha2.subtract(&twice_s).select_lanes(&difference, LANE[0]).reduce();
        let alpha = self.left.permute_halves::<ALL_1>();
        let powers = second.carry();
        let left = x.select_lanes(&alpha, LANE[0]).select_lanes(&powers, LANE[1]);
        let third = left.multiply_to_sums(&x.select_lanes(&self.w, LANE[1]));
        let product = third.permute_halves::<ALL_0>();
        let t = product.add(&product).subtract(&second.permute_halves::<ALL_1>());
        let alpha = triple(&third.permute_halves::<ALL_2>()).add(&third);
        let left = t.select_lanes(&alpha, LANE[1]).reduce();
        Self {
            left,
            right: left.select_lanes(&z, LANE[2]),
            x: x.permute_halves::<ALL_2>(),
            w: third.carry(),
            z2: powers,
        }
    }

    /// Doubles both points several times.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn double_times(mut self, times: usize) -> Self {
        for _ in 0..times {
            self = self.double();
        }
        self
    }

    /// Adds an affine point to each of both points; the lanes of each half must be equal.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add_different(&self, other: &AffinePoints) -> Self {
        let (z, z2) = (self.right.permute_halves::<ALL_2>(), self.z2.permute_halves::<ALL_2>());
        let first = other.x.select_lanes(&other.y, LANE[1]).multiply_to_sums(&z2.select_lanes(&z, LANE[1]));
        // Lanes 0 and 2: 2H. Lane 3: H.
        let difference = first.permute_halves::<ALL_0>().subtract(&self.x.to_sums());
        let h = difference.add(&difference).select_lanes(&difference, LANE[3]).reduce();
        let left = h.select_lanes(&first.carry(), LANE[1]);
        let second = left.multiply_to_sums(&h.select_lanes(&z2, LANE[1]).select_lanes(&z, LANE[2]));
        let t = self.left.permute_halves::<ALL_0>();
        let s = second.permute_halves::<ALL_1>();
        let r = s.add(&s).subtract(&t.to_sums()).reduce();
        let carried = second.carry();
        let (i, z) = (carried.permute_halves::<ALL_0>(), carried.permute_halves::<ALL_2>());
        let right = r.select_lanes(&i, LANE[0] | LANE[1]).select_lanes(&z, LANE[3]);
        let left = right.select_lanes(&h.permute_halves::<ALL_3>(), LANE[0]).select_lanes(&self.x, LANE[1]);
        let third = left.multiply_to_sums(&right);
        // Lane 0: V − X' = 3·V + J − r². The other lanes: X' = r² − J − 2·V.
        let (j, v) = (third.permute_halves::<ALL_0>(), third.permute_halves::<ALL_1>());
        let rest = third.permute_halves::<ALL_2>().subtract(&j);
        let twice_v = v.add(&v);
        let x = rest.subtract(&twice_v).select_lanes(&twice_v.add(&v).subtract(&rest), LANE[0]).reduce();
        let carried = third.carry();
        let z2 = carried.permute_halves::<ALL_3>();
        let right = x.select_lanes(&carried.permute_halves::<ALL_0>(), LANE[1]).select_lanes(&z2, LANE[2]);
        let left = right.select_lanes(&r, LANE[0]).select_lanes(&t, LANE[1]);
        let fourth = left.multiply_to_sums(&right);
        let t = fourth.permute_halves::<ALL_0>().subtract(&fourth.permute_halves::<ALL_1>());
        let w = Fields::zero().to_sums().subtract(&triple(&fourth.permute_halves::<ALL_2>()));
        let alpha = triple(&fourth.permute_halves::<ALL_3>()).add(&w);
        let left = t.add(&t).select_lanes(&alpha, LANE[1]).reduce();
        Self {
            left,
            right: left.select_lanes(&z, LANE[2]),
            x: x.permute_halves::<ALL_3>(),
            w: w.reduce(),
            z2,
        }
    }

    /// Returns the points, each in the four lanes of its half. They are (4·X, 8·Y, 2·Z), which is the same point as
    /// (X, Y, Z).
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn to_points(&self) -> JacobianPoints {
        let x = self.x.to_sums();
        let t = self.left.permute_halves::<ALL_0>().to_sums();
        let z = self.right.permute_halves::<ALL_2>().to_sums();
        JacobianPoints {
            x: triple(&x).add(&x).reduce(),
            y: triple(&t).add(&t).reduce(),
            z: z.add(&z).reduce(),
        }
    }
}
