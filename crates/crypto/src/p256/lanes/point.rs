//! Eight points in parallel, with the coordinates and formulas of [`super::super::point`]. If a
//! formula adds two products, both share one reduction.
//!
//! All functions keep these bounds (see [`super::field`]): X is below 1.1, Y is below 2.8 and Z is
//! below 2. For affine points, x is below 1.1, and y, which may be negated, is below 2.

#![deny(unsafe_code)]

use std::arch::x86_64::{__m512i, __mmask8};

use zeroize::Zeroize;

use super::field::{Fields, LANES};
use super::power::invert;
use crate::p256::field::Field;
use crate::p256::point::{Affine, B};

/// Eight affine points.
#[derive(Clone, Copy)]
pub(super) struct Pairs {
    pub(super) x: Fields,
    pub(super) y: Fields,
}

/// Eight points in Jacobian coordinates.
#[derive(Clone, Copy)]
pub(super) struct Points {
    pub(super) x: Fields,
    pub(super) y: Fields,
    pub(super) z: Fields,
}

/// Eight points with the powers of Z that additions need; the powers are below 1.3.
#[derive(Clone, Copy)]
pub(super) struct CachedPoints {
    points: Points,
    z2: Fields,
    z3: Fields,
}

impl Zeroize for Points {
    fn zeroize(&mut self) {
        self.x.zeroize();
        self.y.zeroize();
        self.z.zeroize();
    }
}

impl Pairs {
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

    /// Returns −P where all bits of the mask are set, and P where none is set. For secrets.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn negate_where(&self, mask: __m512i) -> Self {
        let negated = Fields::zero().subtract::<2>(&self.y);
        Self { x: self.x, y: self.y.choose(&negated, mask) }
    }

    /// Returns −P in the lanes of the mask, and P in the other lanes.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn negate_in(&self, mask: __mmask8) -> Self {
        let negated = Fields::zero().subtract::<2>(&self.y);
        Self { x: self.x, y: self.y.select(&negated, mask) }
    }

    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn to_points(self) -> Points {
        Points { x: self.x, y: self.y, z: Fields::one() }
    }
}

impl Points {
    /// Returns the doubled points, including infinity.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn double(&self) -> Self {
        let delta = self.z.square();
        let gamma = self.y.square();
        // Negated, like 4XY² and 4Y², so that the sum of products has no subtraction.
        let alpha = delta.subtract::<2>(&self.x).multiply(&self.x.add(&delta)).triple();
        let gamma4 = Fields::zero().subtract_shifted::<2, 6>(&gamma);
        let beta4 = self.x.multiply(&gamma4);
        let x = alpha.square().add_twice_reduced(&beta4);
        let y = Fields::sum_of_products(&alpha, &beta4.add(&x), &gamma4, &gamma.shift::<1>());
        Self { x, y, z: self.y.shift::<1>().multiply(&self.z) }
    }

    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn double_times(mut self, times: usize) -> Self {
        for _ in 0..times {
            self = self.double();
        }
        self
    }

    /// Returns the sums with affine points. If the points are equal or opposite, or this point is
    /// infinity, Z of the result is 0, whatever the actual sum. Once Z is 0, it stays 0 in every
    /// further doubling or addition.
    #[inline(never)]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn add_different(&self, other: &Pairs) -> Self {
        let z2 = self.z.square();
        let h = other.x.multiply(&z2).subtract::<2>(&self.x);
        let r = other.y.multiply(&z2.multiply(&self.z)).subtract::<3>(&self.y);
        finish_addition(&self.x, &self.y, &h, &r, self.z.multiply(&h))
    }

    /// Like [`Points::add_different`], for cached points.
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
}

/// The common part of additions. `u1` (below 1.1) and `s1` (below 2.8) are the coordinates of the
/// first point, `h` (below 3.2) and `r` (below 4.2) are the differences to the coordinates of the
/// second point, and `z` is Z of the sum.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn finish_addition(u1: &Fields, s1: &Fields, h: &Fields, r: &Fields, z: Fields) -> Points {
    let h2 = h.square();
    let h3 = h2.multiply(h);
    let v = u1.multiply(&h2);
    let x = r.square().subtract_both_reduced(&h3, &v);
    let minus_h3 = Fields::zero().subtract::<2>(&h3);
    let y = Fields::sum_of_products(r, &v.subtract::<2>(&x), s1, &minus_h3);
    Points { x, y, z }
}

/// Converts points to affine form with one inversion for all of them. Also returns, for each
/// vector, the lanes with infinity; their coordinates are undefined. `products` is a work buffer,
/// which contains secrets if the points are secret.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn normalize_all(points: &[Points], products: &mut Vec<Fields>) -> (Vec<Pairs>, Vec<__mmask8>) {
    let one = Fields::one();
    let mut product = one;
    let (mut pairs, mut infinities) = (Vec::with_capacity(points.len()), Vec::with_capacity(points.len()));
    products.clear();
    products.reserve(points.len());
    for point in points {
        let infinite = point.z.are_zero();
        products.push(product);
        product = product.multiply(&point.z.select(&one, infinite));
        pairs.push(Pairs { x: point.x, y: point.y });
        infinities.push(infinite);
    }
    let mut inverse = invert(&product);
    for (place, point) in points.iter().enumerate().rev() {
        let inverse_z = inverse.multiply(&products[place]);
        inverse = inverse.multiply(&point.z.select(&one, infinities[place]));
        let square = inverse_z.square();
        pairs[place].x = point.x.multiply(&square);
        pairs[place].y = point.y.multiply(&square.multiply(&inverse_z));
    }
    (pairs, infinities)
}

/// Returns x³ − 3x + b, below 2. x must be below 1.2.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn right_side(x: &Fields) -> Fields {
    let coefficients = [Field::ONE.double() + Field::ONE; LANES];
    let square = x.square().subtract::<2>(&Fields::from_fields(&coefficients));
    Fields::sum_of_products(&square, x, &Fields::from_fields(&[B; LANES]), &Fields::one())
}
