//! Verifies many Ed25519 signatures of one key (RFC 8032, section 5.1.7). It evaluates the equation
//! of the single check for each signature, but without doublings: it looks up multiples of the base
//! point and of the key in tables, and adds them.
//!
//! # Why this accepts exactly the signatures that the single check accepts
//! The single check (aws-lc, `ed25519_verify_internal`) accepts a signature R ‖ S of a key A if S <
//! L and the octets of R are the encoding of \[S\]B − \[k\]A, with k = SHA-512(R ‖ A ‖ message) mod
//! L. It never decodes R. Therefore it rejects an R that is not canonical and an R with a component
//! of small order, because neither equals the encoding of that point.
//!
//! This module computes the same point, encodes it, and compares the octets. Only the order of the
//! additions differs. The addition law of this curve is complete (−1 is a square and d is not), so
//! it has no exceptional cases.
//!
//! [`KeyTable::new`] detects keys for which the results could differ: keys whose encoding is not
//! canonical, and keys with a component of small order (for these, \[k\]A is not determined by k
//! mod L). The single check verifies the signatures of these keys.
//!
//! # Why not the usual batch equation
//! The usual batch equation, one random linear combination of all signatures, decodes R. If R =
//! \[S\]B − \[k\]A + T with T of small order, T vanishes from the equation with a probability of
//! 1/2 to 1/8, or always if the equation is multiplied by the cofactor. Therefore each R would need
//! a test for small order. Such a test costs three exponentiations in the field, and the decoding
//! of R costs another one. Together this is about 1,000 multiplications, while the 80 additions in
//! this module take 560.
//!
//! For the same reason, the batch function of `ed25519-dalek` is not used. A test contains a
//! signature that this function accepts and the single check rejects.
//!
//! With the table of a key, this module is three times as fast as the single check. The table pays
//! off from about 14 signatures of one key on. The module needs no randomness. A bad signature
//! causes no search: the work for each signature is always the same.
//!
//! # Time
//! All inputs are public. This module does not run in constant time.

use std::sync::LazyLock;

use aws_lc_rs::digest;
use crrl::field::GF25519 as Field;
use curve25519_dalek::Scalar;

/// Length of a point, and of a scalar, in octets.
const POINT_OCTETS: usize = 32;

/// Bits of a scalar. Scalars are below L < 2^253, and the signed digits need one more bit for the
/// carry.
const SCALAR_BITS: usize = 254;

/// Bits of a digit of S. The table of the base point has 37 windows of 65 points and 225 KiB. It
/// exists once in a process.
const BASE_WINDOW_BITS: usize = 7;

/// Bits of a digit of k. The table of a key has 43 windows of 33 points and 133 KiB.
const KEY_WINDOW_BITS: usize = 6;

/// Maximum number of digits of a scalar, with windows of at least four bits.
const MAX_DIGITS: usize = SCALAR_BITS.div_ceil(4);

/// Maximum number of signatures whose points are encoded with one common inversion.
pub(crate) const MAX_GROUP: usize = 64;

/// L, the order of the base point, little-endian.
const ORDER: [u8; POINT_OCTETS] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The encoding of the base point: y = 4/5, x even.
const BASE_ENCODING: [u8; POINT_OCTETS] = {
    let mut octets = [0x66; POINT_OCTETS];
    octets[0] = 0x58;
    octets
};

/// 2d, with d = -121665/121666.
static TWICE_D: LazyLock<Field> =
    LazyLock::new(|| (Field::from_i32(-121_665) / Field::from_u32(121_666)).mul2());

/// Table of multiples of the base point.
static BASE_TABLE: LazyLock<Table<BASE_WINDOW_BITS>> = LazyLock::new(|| {
    // Decoding the base point always succeeds. If it failed, the table would cause all signatures
    // to be rejected.
    Table::new(Point::decode(&BASE_ENCODING).unwrap_or(Point::ZERO))
});

/// A point in extended coordinates (Hisil, Wong, Carter, Dawson, ePrint 2008/522): x = X/Z, y =
/// Y/Z, xy = T/Z.
#[derive(Clone, Copy)]
struct Point {
    x: Field,
    y: Field,
    z: Field,
    t: Field,
}

/// A point of a table. To negate it, swap `difference_and_sum` and change the sign of `product`.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Entry {
    /// y − x and y + x.
    difference_and_sum: [Field; 2],
    /// 2dxy.
    product: Field,
}

impl Point {
    /// The neutral element.
    const ZERO: Self = Self { x: Field::ZERO, y: Field::ONE, z: Field::ONE, t: Field::ZERO };

    /// Decodes a point (RFC 8032, section 5.1.3). Also returns `None` for encodings that are not
    /// canonical.
    fn decode(octets: &[u8; POINT_OCTETS]) -> Option<Self> {
        let (mut octets, sign) = (*octets, octets[POINT_OCTETS - 1] >> 7);
        octets[POINT_OCTETS - 1] &= 0x7f;
        let y = Field::decode(&octets)?;
        let square = y.square();
        let (x, found) = ((square - Field::ONE) / (square * TWICE_D.half() + Field::ONE)).sqrt();
        if found == 0 || (x.iszero() != 0 && sign == 1) {
            return None;
        }
        let x = if is_odd(x) == sign { x } else { -x };
        Some(Self { x, y, z: Field::ONE, t: x * y })
    }

    fn negate(self) -> Self {
        Self { x: -self.x, t: -self.t, ..self }
    }

    fn is_zero(&self) -> bool {
        self.x.iszero() != 0 && self.y.equals(self.z) != 0
    }

    /// Unified addition with 9 multiplications.
    fn add(&self, other: &Self) -> Self {
        let a = (self.y - self.x) * (other.y - other.x);
        let b = (self.y + self.x) * (other.y + other.x);
        let c = self.t * other.t * *TWICE_D;
        let d = self.z.mul2() * other.z;
        Self::finish_addition(a, b, c, d)
    }

    /// Unified addition of a table point or its negation, with 7 multiplications. It has no
    /// branches: the signs are random, and a branch misprediction would take as long as a
    /// multiplication.
    #[inline]
    fn add_entry(&self, entry: &Entry, negate: bool) -> Self {
        let [minus, plus] =
            [entry.difference_and_sum[usize::from(negate)], entry.difference_and_sum[usize::from(!negate)]];
        let product = self.t * entry.product;
        let product = Field::select(&product, &-product, u32::from(negate).wrapping_neg());
        Self::finish_addition((self.y - self.x) * minus, (self.y + self.x) * plus, product, self.z.mul2())
    }

    #[inline]
    fn finish_addition(a: Field, b: Field, c: Field, d: Field) -> Self {
        let (e, f, g, h) = (b - a, d - c, d + c, b + a);
        Self { x: e * f, y: g * h, z: f * g, t: e * h }
    }
}

/// Returns the lowest bit of the reduced number.
fn is_odd(number: Field) -> u8 {
    number.encode()[0] & 1
}

/// The points j · 2^(w · i) · P for each window i and each j from 0 to 2^(w - 1), where w is
/// `WINDOW_BITS`.
struct Table<const WINDOW_BITS: usize>(Vec<Entry>);

impl<const WINDOW_BITS: usize> Table<WINDOW_BITS> {
    const WINDOWS: usize = SCALAR_BITS.div_ceil(WINDOW_BITS);
    const POINTS: usize = (1 << (WINDOW_BITS - 1)) + 1;

    fn new(point: Point) -> Self {
        let mut points = Vec::with_capacity(Self::WINDOWS * Self::POINTS);
        let mut base = point;
        for _ in 0..Self::WINDOWS {
            let mut multiple = Point::ZERO;
            points.push(multiple);
            for _ in 1..Self::POINTS {
                multiple = multiple.add(&base);
                points.push(multiple);
            }
            // The last multiple is half of the base of the next window.
            base = multiple.add(&multiple);
        }
        let mut inverses: Vec<Field> = points.iter().map(|point| point.z).collect();
        Field::batch_invert(&mut inverses);
        let entry = |(point, inverse): (&Point, &Field)| {
            let (x, y) = (point.x * inverse, point.y * inverse);
            Entry { difference_and_sum: [y - x, y + x], product: x * y * *TWICE_D }
        };
        Self(points.iter().zip(&inverses).map(entry).collect())
    }

    /// Returns the sum of `point` and `scalar` times the point of the table. `scalar` is a
    /// little-endian number below 2^253.
    #[inline]
    fn add_multiple(&self, mut point: Point, scalar: &[u8; POINT_OCTETS]) -> Point {
        let digits = recode::<WINDOW_BITS>(scalar);
        for (digit, window) in digits.iter().zip(self.0.chunks_exact(Self::POINTS)) {
            point = point.add_entry(&window[usize::from(digit.unsigned_abs())], *digit < 0);
        }
        point
    }
}

/// Recodes a number below 2^253 to digits from -2^(w - 1) to 2^(w - 1) - 1, least significant
/// first, where w is `WINDOW_BITS`.
fn recode<const WINDOW_BITS: usize>(scalar: &[u8; POINT_OCTETS]) -> [i16; MAX_DIGITS] {
    let mut digits = [0; MAX_DIGITS];
    let mut carry = 0;
    for (index, digit) in digits.iter_mut().take(SCALAR_BITS.div_ceil(WINDOW_BITS)).enumerate() {
        let (octet, shift) = (index * WINDOW_BITS / 8, index * WINDOW_BITS % 8);
        let next = scalar.get(octet + 1).copied().unwrap_or(0);
        let pair = u16::from_le_bytes([scalar[octet], next]) >> shift;
        // The masked value is below 2^8 and the carry is at most one, so the sum fits into an i16.
        let value = (pair & ((1 << WINDOW_BITS) - 1)) as i16 + carry;
        carry = i16::from(value >= 1 << (WINDOW_BITS - 1));
        *digit = value - (carry << WINDOW_BITS);
    }
    digits
}

/// Table for fast verification of many signatures with one key. It has 133 KiB. Building it takes
/// as long as about ten single verifications.
pub(crate) struct KeyTable {
    key: [u8; POINT_OCTETS],
    /// Table of the negated key.
    table: Table<KEY_WINDOW_BITS>,
}

impl KeyTable {
    /// Builds the table of a public key. Returns `None` if the key is not the canonical encoding of
    /// a point, or has a component of small order. The single check must then verify the signatures
    /// of this key.
    pub(crate) fn new(key: &[u8; POINT_OCTETS]) -> Option<Self> {
        let point = Point::decode(key)?;
        let table = Table::new(point.negate());
        let is_prime_order = table.add_multiple(Point::ZERO, &ORDER).is_zero();
        is_prime_order.then_some(Self { key: *key, table })
    }

    /// Verifies up to [`MAX_GROUP`] pairs of message and signature. Returns whether each signature
    /// is valid, in order.
    pub(crate) fn verify(&self, signed: &[(&[u8], &[u8])]) -> [bool; MAX_GROUP] {
        let mut points = [Point::ZERO; MAX_GROUP];
        let mut are_valid = [false; MAX_GROUP];
        for ((point, is_valid), (message, signature)) in points.iter_mut().zip(&mut are_valid).zip(signed) {
            if let Some(expected) = self.expected_r(message, signature) {
                (*point, *is_valid) = (expected, true);
            }
        }
        let mut inverses = points.map(|point| point.z);
        // Invert only the coordinates of actual signatures.
        Field::batch_invert(&mut inverses[..signed.len().min(MAX_GROUP)]);
        for (index, (_, signature)) in signed.iter().enumerate().take(MAX_GROUP) {
            let (point, inverse) = (&points[index], inverses[index]);
            are_valid[index] &= signature.starts_with(&encode(point.x * inverse, point.y * inverse));
        }
        are_valid
    }

    /// Returns the point whose encoding R must be. Returns `None` if the signature has a wrong
    /// length, or if S is not below L.
    fn expected_r(&self, message: &[u8], signature: &[u8]) -> Option<Point> {
        let (r, s) = signature.split_first_chunk::<POINT_OCTETS>()?;
        let s: [u8; POINT_OCTETS] = s.try_into().ok()?;
        let s: Scalar = Option::from(Scalar::from_canonical_bytes(s))?;
        let mut hash = digest::Context::new(&digest::SHA512);
        hash.update(r);
        hash.update(&self.key);
        hash.update(message);
        let hash: [u8; 64] = hash.finish().as_ref().try_into().ok()?;
        let k = Scalar::from_bytes_mod_order_wide(&hash);
        let point = BASE_TABLE.add_multiple(Point::ZERO, s.as_bytes());
        Some(self.table.add_multiple(point, k.as_bytes()))
    }
}

/// Encodes a point (RFC 8032, section 5.1.2).
fn encode(x: Field, y: Field) -> [u8; POINT_OCTETS] {
    let mut octets = y.encode();
    octets[POINT_OCTETS - 1] |= is_odd(x) << 7;
    octets
}

#[cfg(test)]
mod tests;
