//! Points of edwards25519 in extended coordinates (x = X/Z, y = Y/Z, xy = T/Z), and their
//! multiplication by secret scalars in constant time. The formulas are complete on this curve: no
//! point is a special case (Hisil, Wong, Carter, Dawson, "Twisted Edwards Curves Revisited",
//! sections 3.1 and 3.3).
//!
//! The multiplication of the library prepares its point again for each scalar. A proof multiplies
//! one point twice: with this module, both multiplications share four fifths of the doublings.

use std::hint::black_box;
use std::sync::OnceLock;

use curve25519_dalek::scalar::Scalar;
use zeroize::{DefaultIsZeroes, Zeroizing};

use super::field::Field;
#[cfg(test)]
use crate::freed::octets_of;

/// Number of signed digits of a scalar.
const RECODED_DIGITS: usize = TEETH * COLUMNS;

/// Number of digits that one addition processes. A [`Comb`] splits the digits of a scalar into five
/// rows (teeth) of 51 digits; one addition processes the digits at the same position of all rows.
/// With the table of the base point, one addition processes a window of five consecutive digits.
const TEETH: usize = 5;

/// Number of columns of a [`Comb`], and number of windows of the table of the base point.
const COLUMNS: usize = 51;

/// Number of entries of the table of a [`Comb`], and of a window of the table of the base point.
/// The digit of the last tooth is only a sign.
const COMB_ENTRIES: usize = 1 << (TEETH - 1);

/// A point.
#[derive(Clone, Copy, Default)]
#[cfg_attr(test, derive(Debug))]
pub(super) struct Point {
    x: Field,
    y: Field,
    z: Field,
    t: Field,
}

impl DefaultIsZeroes for Point {}

/// A point in the form that additions use: Y + X, Y − X, 2Z, 2dT.
#[derive(Clone, Copy, Default)]
struct Cached {
    sum: Field,
    difference: Field,
    z2: Field,
    t2d: Field,
}

type Table = [Cached; COMB_ENTRIES];

impl Point {
    /// Decodes a point from its canonical octets. Returns `None` if they are not a point (RFC 8032,
    /// section 5.1.3).
    pub(super) fn decode(octets: &[u8; 32]) -> Option<Self> {
        let y = Field::from_octets(octets);
        let y2 = y.square();
        let root = Field::square_root_of_ratio(y2 - Field::ONE, y2 * Field::D + Field::ONE)?;
        let x = if root.to_octets()[0] & 1 == octets[31] >> 7 { root } else { -root };
        Some(Self { x, y, z: Field::ONE, t: x * y })
    }

    /// Encodes all points with one inversion for all of them. The inverses are wiped, because Z of
    /// a secret multiple reveals bits of the scalar (Naccache, Smart, Stern, "Projective
    /// Coordinates Leak").
    pub(super) fn encode_all(points: &[Self]) -> Vec<[u8; 32]> {
        let mut inverses: Zeroizing<Vec<Field>> =
            Zeroizing::new(points.iter().map(|point| point.z).collect());
        Field::invert_all(&mut inverses);
        let encode = |(point, inverse): (&Self, &Field)| {
            let mut octets = (point.y * *inverse).to_octets();
            octets[31] |= (point.x * *inverse).to_octets()[0] << 7;
            octets
        };
        points.iter().zip(&*inverses).map(encode).collect()
    }

    /// Returns the coordinates of a secret multiple and the inverse of Z, which must all be wiped.
    #[cfg(test)]
    pub(super) fn secrets(&self) -> Vec<(String, Vec<u8>)> {
        let named = [("X", self.x), ("Y", self.y), ("Z", self.z), ("T", self.t), ("1/Z", self.z.invert())];
        named.map(|(name, field)| (name.to_owned(), octets_of(&field))).to_vec()
    }

    /// Returns whether this is the neutral element. For public points.
    pub(super) fn is_neutral(&self) -> bool {
        self.x.is_same(Field::ZERO) && self.y.is_same(self.z)
    }

    /// Returns the doubled point. T is not computed if another doubling follows.
    #[inline(always)]
    fn double_with(&self, with_t: bool) -> Self {
        let a = self.x.square();
        let b = self.y.square();
        let h = a + b;
        let e = h - (self.x + self.y).square();
        let g = a - b;
        let f = self.z.square().double() + g;
        let t = if with_t { e * h } else { Field::ZERO };
        Self { x: e * f, y: g * h, z: f * g, t }
    }

    #[inline(never)]
    fn double(&self) -> Self {
        self.double_with(true)
    }

    #[inline(never)]
    fn double_without_t(&self) -> Self {
        self.double_with(false)
    }

    /// Doubles the point this many times, at least once.
    fn double_times(&self, times: usize) -> Self {
        let mut point = *self;
        for _ in 1..times {
            point = point.double_without_t();
        }
        point.double()
    }

    /// Returns eight times the point.
    pub(super) fn multiply_by_cofactor(&self) -> Self {
        self.double_times(3)
    }

    #[inline(always)]
    fn add_with(&self, other: &Cached, with_t: bool) -> Self {
        let a = (self.y - self.x) * other.difference;
        let b = (self.y + self.x) * other.sum;
        let c = self.t * other.t2d;
        let d = self.z * other.z2;
        let (e, f, g, h) = (b - a, d - c, d + c, b + a);
        let t = if with_t { e * h } else { Field::ZERO };
        Self { x: e * f, y: g * h, z: f * g, t }
    }

    #[inline(never)]
    fn add(&self, other: &Cached) -> Self {
        self.add_with(other, true)
    }

    #[inline(never)]
    fn add_without_t(&self, other: &Cached) -> Self {
        self.add_with(other, false)
    }

    fn negate(&self) -> Self {
        Self { x: -self.x, t: -self.t, ..*self }
    }

    fn cache(&self) -> Cached {
        Cached {
            sum: self.y + self.x,
            difference: self.y - self.x,
            z2: self.z.double(),
            t2d: self.t * Field::TWICE_D,
        }
    }
}

impl Cached {
    /// Converts to a point: adds it to the neutral element.
    fn to_point(self) -> Point {
        let neutral = Point { x: Field::ZERO, y: Field::ONE, z: Field::ONE, t: Field::ZERO };
        neutral.add(&self)
    }

    #[inline(always)]
    fn negate_if(&self, mask: u64) -> Self {
        Self {
            sum: Field::select(&self.sum, &self.difference, mask),
            difference: Field::select(&self.difference, &self.sum, mask),
            z2: self.z2,
            t2d: Field::select(&self.t2d, &-self.t2d, mask),
        }
    }
}

/// The digits of a scalar, all nonzero. Digit i, with the weight 2ⁱ, is +1 if bit i is set and −1
/// if it is not (Hamburg, "Fast and compact elliptic-curve cryptography", section 3.3).
struct Digits(Zeroizing<[u8; 32]>);

impl Digits {
    /// Computes the digits. If b is the number with these bits, Σ 2ⁱ·(2bᵢ − 1) = 2b − (2²⁵⁵ − 1).
    /// Therefore b is (scalar + 2²⁵⁵ − 1)/2 modulo the order.
    fn new(scalar: &Scalar) -> Self {
        static CONSTANTS: OnceLock<(Scalar, Scalar)> = OnceLock::new();
        let (all_ones, half) = CONSTANTS.get_or_init(|| {
            let two = Scalar::from(2_u8);
            let power = (0..RECODED_DIGITS).fold(Scalar::ONE, |power, _| power * two);
            (power - Scalar::ONE, two.invert())
        });
        let sum = Zeroizing::new(scalar + all_ones);
        let recoded = Zeroizing::new(*sum * half);
        Self(Zeroizing::new(recoded.to_bytes()))
    }

    /// Returns the digits at `first` and at equal distances from there, with the last one as the
    /// highest bit.
    #[inline(always)]
    fn digits_at(&self, first: usize, distance: usize) -> u64 {
        let bit = |tooth: usize| {
            let at = first + tooth * distance;
            u64::from(self.0[at / 8] >> (at % 8) & 1) << tooth
        };
        (0..TEETH).map(bit).fold(0, |all, bit| all | bit)
    }
}

/// Returns the sum for the digits. It reads every entry.
#[inline(always)]
fn select(table: &Table, digits: u64) -> Cached {
    let negative = ((digits >> (TEETH - 1)) ^ 1).wrapping_neg();
    // `black_box` hides the index from the compiler, so that it does not replace the loop by a read
    // of one entry.
    let entry = black_box((digits ^ negative) & (COMB_ENTRIES as u64 - 1));
    let mut found = Cached::default();
    for (index, candidate) in (0_u64..).zip(table) {
        // All bits are set for the selected entry, because only 0 − 1 borrows.
        let mask = ((index ^ entry).wrapping_sub(1) >> 63).wrapping_neg();
        found.sum.merge(&candidate.sum, mask);
        found.difference.merge(&candidate.difference, mask);
        found.z2.merge(&candidate.z2, mask);
        found.t2d.merge(&candidate.t2d, mask);
    }
    found.negate_if(negative)
}

/// A point prepared for several multiplications by secret scalars.
///
/// Entry e is 2²⁰⁴·P + Σ ±2⁵¹ʲ·P for j below 4, with + if bit j of e is set.
pub(super) struct Comb(Table);

impl Comb {
    pub(super) fn prepare(point: &Point) -> Self {
        // `tooth` starts as the point and advances by 51 digits in each round.
        let mut tooth = *point;
        let mut lowest = tooth.negate();
        let mut doubled = [Cached::default(); TEETH - 1];
        for (j, twice) in doubled.iter_mut().enumerate() {
            let double = tooth.double();
            *twice = double.cache();
            tooth = double.double_times(COLUMNS - 1);
            let next = if j + 1 < TEETH - 1 { tooth.negate() } else { tooth };
            lowest = lowest.add(&next.cache());
        }
        let mut sums = [lowest; COMB_ENTRIES];
        for (j, twice) in doubled.iter().enumerate() {
            for entry in 1 << j..2 << j {
                sums[entry] = sums[entry - (1 << j)].add(twice);
            }
        }
        Self(sums.map(|sum| sum.cache()))
    }

    /// Returns scalar·P, in constant time.
    pub(super) fn multiply(&self, scalar: &Scalar) -> Point {
        let digits = Digits::new(scalar);
        let mut sum = select(&self.0, digits.digits_at(COLUMNS - 1, COLUMNS)).to_point();
        for column in (1..COLUMNS - 1).rev() {
            sum = sum.double().add_without_t(&select(&self.0, digits.digits_at(column, COLUMNS)));
        }
        sum.double().add(&select(&self.0, digits.digits_at(0, COLUMNS)))
    }
}

/// Returns the table of the base point B: in window w, entry e is 2⁵ʷ·(2e + 1)·B. It has 104 kB and
/// is built at first use.
fn base_table() -> &'static [Table] {
    static TABLE: OnceLock<Vec<Table>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let base = Point::decode(curve25519_dalek::constants::ED25519_BASEPOINT_COMPRESSED.as_bytes());
        let Some(mut power) = base else { unreachable!("the base point of the standard") };
        let window = |_| {
            let twice = power.double().cache();
            let mut multiple = power;
            let table = std::array::from_fn(|_| {
                let cached = multiple.cache();
                multiple = multiple.add(&twice);
                cached
            });
            power = power.double_times(TEETH);
            table
        };
        (0..COLUMNS).map(window).collect()
    })
}

/// Returns scalar·B for the base point B, in constant time.
pub(super) fn multiply_base(scalar: &Scalar) -> Point {
    let digits = Digits::new(scalar);
    let neutral = Point { x: Field::ZERO, y: Field::ONE, z: Field::ONE, t: Field::ZERO };
    let add = |sum: Point, (window, table): (usize, &Table)| {
        sum.add(&select(table, digits.digits_at(window * TEETH, 1)))
    };
    base_table().iter().enumerate().fold(neutral, add)
}
