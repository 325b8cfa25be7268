//! Eight points in parallel, with the coordinates and formulas of [`super::super::point`]. If a
//! formula adds two products, both share one reduction.
//!
//! All functions keep these bounds (see [`super::field`]): X is below 1.1, Y is below 2.8 and Z is
//! below 2. For affine points, x is below 1.1, and y, which may be negated, is below 2.

#![deny(unsafe_code)]

use std::arch::x86_64::{__m512i, __mmask8};

use zeroize::Zeroize;

use super::field::{Fields, LANES, Words};
use super::power::invert;
use crate::p256::field::Field;
use crate::p256::point::{Affine, COEFFICIENT_B, Jacobian};

/// Eight affine points. They cannot represent infinity.
#[derive(Clone, Copy)]
pub(super) struct AffinePoints {
    pub(super) x: Fields,
    pub(super) y: Fields,
}

/// Eight points in Jacobian coordinates.
#[derive(Clone, Copy)]
pub(super) struct JacobianPoints {
    pub(super) x: Fields,
    pub(super) y: Fields,
    pub(super) z: Fields,
}

/// Eight points with the powers of Z that additions need; the powers are below 1.3.
#[derive(Clone, Copy)]
pub(super) struct CachedPoints {
    points: JacobianPoints,
    z2: Fields,
    z3: Fields,
}

impl Zeroize for JacobianPoints {
    fn zeroize(&mut self) {
        self.x.zeroize();
        self.y.zeroize();
        self.z.zeroize();
    }
}

impl AffinePoints {
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn from_affine(points: &[Affine; LANES]) -> Self {
        let (mut x, mut y) = ([Field::ZERO; LANES], [Field::ZERO; LANES]);
        for (lane, point) in points.iter().enumerate() {
            (x[lane], y[lane]) = (point.x, point.y);
        }
        Self { x: Fields::from_fields(&x), y: Fields::from_fields(&y) }
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn to_affine(self) -> [Affine; LANES] {
        let (x, y) = (self.x.to_fields(), self.y.to_fields());
        let mut points = [Affine::INFINITY; LANES];
        for (lane, point) in points.iter_mut().enumerate() {
            *point = Affine { x: x[lane], y: y[lane] };
        }
        points
    }

    /// As [`Fields::permute`].
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn permute(&self, order: &Words) -> Self {
        Self { x: self.x.permute(order), y: self.y.permute(order) }
    }

    /// Returns −P in the lanes whose mask has all 64 bits set, and P in the lanes whose mask is 0.
    /// The mask may be secret.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn negate_by_bits(&self, mask: __m512i) -> Self {
        let negated = Fields::zero().subtract::<2>(&self.y);
        Self { x: self.x, y: self.y.select_by_bits(&negated, mask) }
    }

    /// Returns −P in the lanes whose bit is set in the mask, and P in the other lanes. The mask
    /// must be public.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn negate_lanes(&self, mask: __mmask8) -> Self {
        let negated = Fields::zero().subtract::<2>(&self.y);
        Self { x: self.x, y: self.y.select_lanes(&negated, mask) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn to_points(self) -> JacobianPoints {
        JacobianPoints { x: self.x, y: self.y, z: Fields::one() }
    }
}

impl JacobianPoints {
    /// Returns the doubled points. A lane with infinity remains infinity.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn double(&self) -> Self {
        let z2 = self.z.square();
        let y2 = self.y.square();
        // With α = 3(X − Z²)(X + Z²), X of the double is α² − 8XY², and Y is α(4XY² − X') − 8Y⁴.
        // Three factors are negated, so that the sum of products has no subtraction.
        let minus_alpha = z2.subtract::<2>(&self.x).multiply(&self.x.add(&z2)).triple();
        let minus_4y2 = Fields::zero().subtract_shifted::<2, 6>(&y2);
        let minus_4xy2 = self.x.multiply(&minus_4y2);
        let x = minus_alpha.square().add_twice_reduced(&minus_4xy2);
        let y = Fields::sum_of_products(&minus_alpha, &minus_4xy2.add(&x), &minus_4y2, &y2.shift::<1>());
        Self { x, y, z: self.y.shift::<1>().multiply(&self.z) }
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn double_times(mut self, times: usize) -> Self {
        for _ in 0..times {
            self = self.double();
        }
        self
    }

    /// Returns the sums with affine points. Z of a sum is 0 if its two points are equal or
    /// opposite, or if this point is infinity; it does not mean that the actual sum is infinity.
    /// Once Z is 0, it stays 0 in every further doubling or addition.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add_different(&self, other: &AffinePoints) -> Self {
        let z2 = self.z.square();
        let h = other.x.multiply(&z2).subtract::<2>(&self.x);
        let r = other.y.multiply(&z2.multiply(&self.z)).subtract::<3>(&self.y);
        finish_addition(&self.x, &self.y, &h, &r, self.z.multiply(&h))
    }

    /// Like [`JacobianPoints::add_different`], for cached points. Z of a sum is also 0 if the
    /// cached point is infinity.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add_cached(&self, other: &CachedPoints) -> Self {
        let z2 = self.z.square();
        let u1 = self.x.multiply(&other.z2);
        let s1 = self.y.multiply(&other.z3);
        let h = other.points.x.multiply(&z2).subtract::<2>(&u1);
        let r = other.points.y.multiply(&z2.multiply(&self.z)).subtract::<2>(&s1);
        finish_addition(&u1, &s1, &h, &r, self.z.multiply(&other.points.z).multiply(&h))
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn cache(self) -> CachedPoints {
        let z2 = self.z.square();
        CachedPoints { points: self, z2, z3: z2.multiply(&self.z) }
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn negate(&self) -> Self {
        Self { x: self.x, y: self.y.negate(), z: self.z }
    }

    /// Swaps each lane with the lane at this distance, a power of two.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn swap_lanes(&self, distance: usize) -> Self {
        let order: Words = std::array::from_fn(|lane| (lane ^ distance) as u64);
        let swap = |fields: &Fields| fields.permute(&order);
        Self { x: swap(&self.x), y: swap(&self.y), z: swap(&self.z) }
    }

    /// Returns the points; `None` for those with Z = 0.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn to_jacobian(self) -> [Option<Jacobian>; LANES] {
        let (x, y, z) = (self.x.to_fields(), self.y.to_fields(), self.z.to_fields());
        std::array::from_fn(|lane| {
            (!z[lane].is_zero()).then_some(Jacobian { x: x[lane], y: y[lane], z: z[lane] })
        })
    }
}

/// Completes an addition. `u1` (below 1.1) and `s1` (below 2.8) are the coordinates of the
/// first point, `h` (below 3.2) and `r` (below 4.2) are the differences to the coordinates of the
/// second point, and `z` is Z of the sum.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn finish_addition(u1: &Fields, s1: &Fields, h: &Fields, r: &Fields, z: Fields) -> JacobianPoints {
    let h2 = h.square();
    let h3 = h2.multiply(h);
    let v = u1.multiply(&h2);
    let x = r.square().subtract_both_reduced(&h3, &v);
    let minus_h3 = Fields::zero().subtract::<2>(&h3);
    let y = Fields::sum_of_products(r, &v.subtract::<2>(&x), s1, &minus_h3);
    JacobianPoints { x, y, z }
}

/// Converts points to affine form with one inversion for all of them. Also returns, for each
/// vector, a mask of the lanes with infinity; the coordinates of these lanes are undefined.
///
/// The function overwrites `work`; its previous content does not matter. Afterwards it has, for
/// each vector, the product of the Z of all previous vectors. If the points are secret, these
/// products are secret too, and the caller must wipe them.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn normalize_all(
    points: &[JacobianPoints],
    work: &mut Vec<Fields>,
) -> (Vec<AffinePoints>, Vec<__mmask8>) {
    let one = Fields::one();
    let mut product = one;
    let (mut affine, mut infinities) = (Vec::with_capacity(points.len()), Vec::with_capacity(points.len()));
    work.clear();
    work.reserve(points.len());
    for point in points {
        let infinite = point.z.are_zero();
        work.push(product);
        product = product.multiply(&point.z.select_lanes(&one, infinite));
        affine.push(AffinePoints { x: point.x, y: point.y });
        infinities.push(infinite);
    }
    let mut inverse = invert(&product);
    for (index, point) in points.iter().enumerate().rev() {
        let inverse_z = inverse.multiply(&work[index]);
        inverse = inverse.multiply(&point.z.select_lanes(&one, infinities[index]));
        let inverse_z2 = inverse_z.square();
        affine[index].x = point.x.multiply(&inverse_z2);
        affine[index].y = point.y.multiply(&inverse_z2.multiply(&inverse_z));
    }
    (affine, infinities)
}

/// Returns the first `count` of the points in affine form; `None` for those with infinity.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn to_affine_all(points: &[JacobianPoints], count: usize) -> Vec<Option<Affine>> {
    let (points, infinities) = normalize_all(points, &mut Vec::new());
    let mut all = Vec::with_capacity(points.len() * LANES);
    for (points, infinite) in points.iter().zip(infinities) {
        let affine = points.to_affine();
        all.extend((0..LANES).map(|lane| (infinite >> lane & 1 == 0).then_some(affine[lane])));
    }
    all.truncate(count);
    all
}

/// Returns y² of the points with this x: x³ − 3x + b, below 2. x must be below 1.2.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn square_of_y(x: &Fields) -> Fields {
    let three = Field::ONE.double() + Field::ONE;
    let x2_minus_3 = x.square().subtract::<2>(&Fields::from_fields(&[three; LANES]));
    Fields::sum_of_products(&x2_minus_3, x, &Fields::from_fields(&[COEFFICIENT_B; LANES]), &Fields::one())
}
