//! Points of P-256, y² = x³ − 3x + b: affine, and in Jacobian coordinates (X/Z², Y/Z³), in which Z
//! = 0 represents the point at infinity. The encodings are those of SEC 1, section 2.3.
//!
//! The formulas are the textbook doubling for a = −3 (Guide to Elliptic Curve Cryptography,
//! algorithm 3.21), and additions from the Explicit-Formulas Database. The documentation of each
//! function states its special cases.

use subtle::{Choice, ConditionallySelectable};

use zeroize::{DefaultIsZeroes, Zeroizing};

use super::field::Field;
#[cfg(test)]
use crate::freed::octets_of;

/// The coefficient b.
pub(super) const COEFFICIENT_B: Field = Field::from_montgomery([
    0xd89c_df62_29c4_bddf,
    0xacf0_05cd_7884_3090,
    0xe5a2_20ab_f721_2ed6,
    0xdc30_061d_0487_4834,
]);

/// Length of a compressed point in octets.
pub(crate) const COMPRESSED_OCTETS: usize = 33;

/// First octet of a compressed point with an even y. It is one more if y is odd.
pub(crate) const EVEN_Y_PREFIX: u8 = 0x02;

/// A point other than infinity.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Affine {
    pub(super) x: Field,
    pub(super) y: Field,
}

impl DefaultIsZeroes for Affine {}

impl DefaultIsZeroes for Jacobian {}

/// Any point, including infinity.
#[derive(Clone, Copy, Default)]
#[cfg_attr(test, derive(Debug))]
pub(crate) struct Jacobian {
    pub(super) x: Field,
    pub(super) y: Field,
    pub(super) z: Field,
}

/// A point with the powers of Z that additions need.
#[derive(Clone, Copy, Default)]
pub(super) struct Cached {
    point: Jacobian,
    z2: Field,
    z3: Field,
}

impl Cached {
    pub(super) fn negate(&self) -> Self {
        Self { point: self.point.negate(), ..*self }
    }
}

/// The relation between two points to add.
enum AdditionCase {
    Different,
    Same,
    Opposite,
}

impl Affine {
    /// The base point.
    pub(crate) const BASE: Self = Self {
        x: Field::from_montgomery([
            0x79e7_30d4_18a9_143c,
            0x75ba_95fc_5fed_b601,
            0x79fb_732b_7762_2510,
            0x1890_5f76_a537_55c6,
        ]),
        y: Field::from_montgomery([
            0xddf2_5357_ce95_560a,
            0x8b4a_b8e4_ba19_e45c,
            0xd2e8_8688_dd21_f325,
            0x8571_ff18_2588_5d85,
        ]),
    };

    /// Represents the point at infinity in functions that document it. (0, 0) is not a point of the
    /// curve.
    pub(crate) const INFINITY: Self = Self { x: Field::ZERO, y: Field::ZERO };

    pub(crate) fn is_infinity(&self) -> bool {
        self.x.is_zero() && self.y.is_zero()
    }

    pub(crate) const fn x(&self) -> Field {
        self.x
    }

    /// Reads two coordinates of 32 octets. Returns `None` if they are not a point of the curve, or
    /// not below p.
    pub(crate) fn from_coordinates(octets: &[u8; 64]) -> Option<Self> {
        let (x, y) = octets.split_at(32);
        let x = Field::from_octets(x.try_into().ok()?)?;
        let y = Field::from_octets(y.try_into().ok()?)?;
        (y.square() == square_of_y(x)).then_some(Self { x, y })
    }

    /// Returns two coordinates of 32 octets.
    pub(crate) fn to_coordinates(self) -> [u8; 64] {
        let mut octets = [0; 64];
        octets[..32].copy_from_slice(&self.x.to_octets());
        octets[32..].copy_from_slice(&self.y.to_octets());
        octets
    }

    /// Reads a compressed point. Returns `None` if the octets are not a point, or if x is not below
    /// p.
    pub(crate) fn from_compressed(octets: &[u8; COMPRESSED_OCTETS]) -> Option<Self> {
        let (x, is_odd) = Self::split_compressed(octets)?;
        let root = square_of_y(x).square_root()?;
        // y = 0 does not occur on this curve, because its order is odd.
        let y = if root.is_odd() == is_odd { root } else { -root };
        Some(Self { x, y })
    }

    /// Returns x of a compressed point and whether y is odd. It does not check that a point with
    /// this x exists.
    pub(super) fn split_compressed(octets: &[u8; COMPRESSED_OCTETS]) -> Option<(Field, bool)> {
        let (&first, x) = octets.split_first()?;
        let x = Field::from_octets(x.try_into().ok()?)?;
        (first & !1 == EVEN_Y_PREFIX).then_some((x, first & 1 == 1))
    }

    pub(crate) fn to_compressed(self) -> [u8; COMPRESSED_OCTETS] {
        let mut octets = [0; COMPRESSED_OCTETS];
        octets[0] = EVEN_Y_PREFIX | u8::from(self.y.is_odd());
        octets[1..].copy_from_slice(&self.x.to_octets());
        octets
    }

    pub(crate) fn negate(self) -> Self {
        Self { y: -self.y, ..self }
    }

    /// ORs the bits of another point that are in `mask` into this point. These bits must be 0
    /// before.
    #[inline(always)]
    pub(super) fn merge(&mut self, other: &Self, mask: u64) {
        self.x.merge(&other.x, mask);
        self.y.merge(&other.y, mask);
    }

    pub(super) fn negate_if(mut self, choice: Choice) -> Self {
        self.y = Field::conditional_select(&self.y, &-self.y, choice);
        self
    }
}

/// Returns y² of the points with this x: x³ − 3x + b.
fn square_of_y(x: Field) -> Field {
    (x.square() - (Field::ONE + Field::ONE + Field::ONE)) * x + COEFFICIENT_B
}

impl From<Affine> for Jacobian {
    fn from(point: Affine) -> Self {
        Self { x: point.x, y: point.y, z: Field::ONE }
    }
}

impl Jacobian {
    pub(crate) const INFINITY: Self = Self { x: Field::ONE, y: Field::ONE, z: Field::ZERO };

    pub(crate) fn is_infinity(&self) -> bool {
        self.z.is_zero()
    }

    /// Returns whether x of the point is this number. Infinity has no x.
    pub(crate) fn has_x(&self, x: Field) -> bool {
        !self.is_infinity() && self.x == x * self.z.square()
    }

    pub(crate) fn negate(self) -> Self {
        Self { y: -self.y, ..self }
    }

    /// Returns the doubled point, including infinity.
    #[inline(never)]
    pub(super) fn double(&self) -> Self {
        let delta = self.z.square();
        let product = (self.x - delta) * (self.x + delta);
        let alpha = product.double() + product;
        // 2Y, 4Y² and 4XY². 8Y⁴ is half of the square of 4Y².
        let y2 = self.y.double();
        let gamma4 = y2.square();
        let beta4 = self.x * gamma4;
        let x = alpha.square() - beta4.double();
        Self { x, y: alpha * (beta4 - x) - gamma4.square().halve(), z: y2 * self.z }
    }

    /// Doubles the point this many times.
    pub(super) fn double_times(mut self, times: usize) -> Self {
        for _ in 0..times {
            self = self.double();
        }
        self
    }

    /// Returns the sum with an affine point, in constant time. If the points are equal or opposite,
    /// or this point is infinity, Z of the result is 0, whatever the actual sum. Once Z is 0, it
    /// stays 0 in every further doubling or addition.
    #[inline(never)]
    pub(super) fn add_different(&self, other: &Affine) -> Self {
        let z2 = self.z.square();
        let h = other.x * z2 - self.x;
        let r = other.y * (z2 * self.z) - self.y;
        finish_addition(self.x, self.y, h, r, self.z * h)
    }

    /// Returns the sum with an affine point, for any two points. For public points: it branches on
    /// them.
    pub(super) fn add_affine(&self, other: &Affine) -> Self {
        if self.is_infinity() {
            return (*other).into();
        }
        let sum = self.add_different(other);
        if !sum.is_infinity() {
            return sum;
        }
        match self.relation(&(*other).into()) {
            AdditionCase::Different => sum,
            AdditionCase::Same => self.double(),
            AdditionCase::Opposite => Self::INFINITY,
        }
    }

    /// Returns the sum with a point, for any two points. For public points: it branches on them.
    pub(super) fn add(&self, other: &Cached) -> Self {
        if self.is_infinity() {
            return other.point;
        }
        if other.point.is_infinity() {
            return *self;
        }
        let sum = self.add_cached(other);
        if !sum.is_infinity() {
            return sum;
        }
        match self.relation(&other.point) {
            AdditionCase::Different => sum,
            AdditionCase::Same => self.double(),
            AdditionCase::Opposite => Self::INFINITY,
        }
    }

    #[inline(never)]
    fn add_cached(&self, other: &Cached) -> Self {
        let z2 = self.z.square();
        let u1 = self.x * other.z2;
        let s1 = self.y * other.z3;
        let h = other.point.x * z2 - u1;
        let r = other.point.y * (z2 * self.z) - s1;
        finish_addition(u1, s1, h, r, self.z * other.point.z * h)
    }

    /// Compares two points other than infinity.
    fn relation(&self, other: &Self) -> AdditionCase {
        let (z2, other_z2) = (self.z.square(), other.z.square());
        if self.x * other_z2 != other.x * z2 {
            return AdditionCase::Different;
        }
        if self.y * other_z2 * other.z == other.y * z2 * self.z {
            AdditionCase::Same
        } else {
            AdditionCase::Opposite
        }
    }

    pub(super) fn cache(self) -> Cached {
        let z2 = self.z.square();
        Cached { point: self, z2, z3: z2 * self.z }
    }

    /// Converts points to affine form with one inversion for all of them. Infinity becomes (0, 0),
    /// which is not a point of the curve.
    ///
    /// The inverses are wiped, because Z of a secret multiple reveals bits of the scalar (Naccache,
    /// Smart, Stern, "Projective Coordinates Leak"). The affine points are not wiped.
    pub(crate) fn normalize_all(points: &[Self]) -> Vec<Affine> {
        let mut inverses: Zeroizing<Vec<Field>> =
            Zeroizing::new(points.iter().map(|point| point.z).collect());
        Field::invert_all(&mut inverses);
        let affine = |(point, inverse): (&Self, &Field)| {
            let square = inverse.square();
            Affine { x: point.x * square, y: point.y * (square * *inverse) }
        };
        points.iter().zip(&*inverses).map(affine).collect()
    }

    /// Returns the coordinates of a secret multiple and the inverse of Z, which must all be wiped.
    #[cfg(test)]
    pub(crate) fn secrets(&self) -> Vec<(String, Vec<u8>)> {
        let named = [("X", self.x), ("Y", self.y), ("Z", self.z), ("1/Z", self.z.invert())];
        named.map(|(name, field)| (name.to_owned(), octets_of(&field))).to_vec()
    }

    /// Encodes points with one inversion for all of them: in compressed form, or as one zero octet
    /// for infinity.
    pub(crate) fn encode_all(points: &[Self]) -> Vec<EncodedPoint> {
        let affine = Self::normalize_all(points);
        points
            .iter()
            .zip(affine)
            .map(|(point, affine)| match point.is_infinity() {
                true => EncodedPoint { octets: [0; COMPRESSED_OCTETS], length: 1 },
                false => EncodedPoint { octets: affine.to_compressed(), length: COMPRESSED_OCTETS },
            })
            .collect()
    }
}

/// The common part of additions. `u1` and `s1` are the coordinates of the first point, `h` and `r`
/// are the differences to the coordinates of the second point, and `z` is Z of the sum.
#[inline(always)]
fn finish_addition(u1: Field, s1: Field, h: Field, r: Field, z: Field) -> Jacobian {
    let h2 = h.square();
    let h3 = h2 * h;
    let v = u1 * h2;
    let x = r.square() - h3 - v.double();
    Jacobian { x, y: r * (v - x) - s1 * h3, z }
}

/// An encoded point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct EncodedPoint {
    octets: [u8; COMPRESSED_OCTETS],
    length: usize,
}

impl EncodedPoint {
    pub(crate) fn as_slice(&self) -> &[u8] {
        &self.octets[..self.length]
    }
}

impl From<Affine> for EncodedPoint {
    fn from(point: Affine) -> Self {
        Self { octets: point.to_compressed(), length: COMPRESSED_OCTETS }
    }
}
