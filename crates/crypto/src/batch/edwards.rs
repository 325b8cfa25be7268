//! Many Ed25519 signatures of one key (RFC 8032, section 5.1.7), each by the equation of the single check, without
//! a doubling: multiples of the base point and of the key are looked up, and only added.
//!
//! # Why this accepts exactly what the single check accepts
//! The single check (aws-lc, `ed25519_verify_internal`) takes a signature R ‖ S of a key A where S < L, and the octets
//! of R are the encoding of \[S\]B - \[k\]A, with k = SHA-512(R ‖ A ‖ message) mod L. It never decodes R. So R that is not
//! canonical, and R with a part of small order, are refused because no encoding of that point is equal to them.
//! Here the same point is calculated, encoded, and compared octet by octet; the only liberty taken is the order of
//! additions, and the addition law of this curve is complete (-1 is a square and d is none), so that it has no
//! exceptional cases. Keys that could leave a doubt, which are those whose encoding is not canonical and those with a
//! part of small order (\[k\]A is then not determined by k mod L), are told by [`KeyTable::new`], and left to the
//! single check.
//!
//! The usual batch equation, one random combination of all signatures, is not used: it decodes R, and since R = \[S\]B -
//! \[k\]A + T with T of small order disappears from it with a probability of 1/2 to 1/8, or always where it is multiplied by
//! the cofactor, each R needs a test of its own on small order. Such a test costs three exponentiations in the
//! field, and the decoding another one: about 1,000 multiplications, where the 80 additions here take 560. So the batch
//! function of `ed25519-dalek` is not used either; a test shows a signature that it accepts and the single check refuses.
//! From about 14 signatures of one key on, this is three times as fast as the single check, and takes no randomness. Nothing has
//! to be searched for when a signature is bad either: the work for one signature is always the same.
//!
//! Everything is public: nothing here takes constant time.

use std::sync::LazyLock;

use aws_lc_rs::digest;
use crrl::field::GF25519 as Field;
use curve25519_dalek::Scalar;

/// Octets of a point, and of a scalar.
const OCTETS: usize = 32;

/// Bits of the scalars: they are below L < 2^253, and the signed digits carry into one bit more.
const SCALAR_BITS: usize = 254;

/// Bits of a digit of S: the table of the base point, 37 windows of 65 points, has 225 KiB, once in a process.
const BASE_WINDOW: usize = 7;

/// Bits of a digit of k: the table of a key, 43 windows of 33 points, has 133 KiB.
const KEY_WINDOW: usize = 6;

/// The most digits that a scalar has, with windows of four bits or more.
const DIGITS: usize = SCALAR_BITS.div_ceil(4);

/// Signatures whose points are encoded with a common inversion.
pub(crate) const GROUP: usize = 64;

/// L, the order of the base point, little-endian.
const ORDER: [u8; OCTETS] = [
    0xed, 0xd3, 0xf5, 0x5c, 0x1a, 0x63, 0x12, 0x58, 0xd6, 0x9c, 0xf7, 0xa2, 0xde, 0xf9, 0xde, 0x14, 0, 0, 0,
    0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x10,
];

/// The encoding of the base point: y = 4/5, x even.
const BASE: [u8; OCTETS] = {
    let mut octets = [0x66; OCTETS];
    octets[0] = 0x58;
    octets
};

/// 2d, where d = -121665/121666.
static TWICE_D: LazyLock<Field> =
    LazyLock::new(|| (Field::from_i32(-121_665) / Field::from_u32(121_666)).mul2());

/// Multiples of the base point.
static BASE_TABLE: LazyLock<Table<BASE_WINDOW>> = LazyLock::new(|| {
    // The base point is a point; were it none, all signatures would be refused.
    Table::new(Point::decode(&BASE).unwrap_or(Point::ZERO))
});

/// A point in extended coordinates (Hisil, Wong, Carter, Dawson, ePrint 2008/522): x = X/Z, y = Y/Z, xy = T/Z.
#[derive(Clone, Copy)]
struct Point {
    x: Field,
    y: Field,
    z: Field,
    t: Field,
}

/// A point of a table: y - x and y + x, and 2dxy. Negation swaps the first two and the sign of the third.
#[derive(Clone, Copy)]
#[repr(align(32))]
struct Entry {
    sums: [Field; 2],
    product: Field,
}

impl Point {
    /// The neutral element.
    const ZERO: Self = Self { x: Field::ZERO, y: Field::ONE, z: Field::ONE, t: Field::ZERO };

    /// Decodes a point (RFC 8032, section 5.1.3). `None` also for encodings that are not canonical.
    fn decode(octets: &[u8; OCTETS]) -> Option<Self> {
        let (mut octets, sign) = (*octets, octets[OCTETS - 1] >> 7);
        octets[OCTETS - 1] &= 0x7f;
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

    /// Unified addition, 9 multiplications.
    fn add(&self, other: &Self) -> Self {
        let a = (self.y - self.x) * (other.y - other.x);
        let b = (self.y + self.x) * (other.y + other.x);
        let c = self.t * other.t * *TWICE_D;
        let d = self.z.mul2() * other.z;
        Self::complete(a, b, c, d)
    }

    /// Unified addition of a point of a table, or of its negation, 7 multiplications. Without a branch: signs are
    /// random, and a wrong guess would cost as much as a multiplication.
    #[inline]
    fn add_entry(&self, entry: &Entry, negate: bool) -> Self {
        let [minus, plus] = [entry.sums[usize::from(negate)], entry.sums[usize::from(!negate)]];
        let product = self.t * entry.product;
        let product = Field::select(&product, &-product, u32::from(negate).wrapping_neg());
        Self::complete((self.y - self.x) * minus, (self.y + self.x) * plus, product, self.z.mul2())
    }

    #[inline]
    fn complete(a: Field, b: Field, c: Field, d: Field) -> Self {
        let (e, f, g, h) = (b - a, d - c, d + c, b + a);
        Self { x: e * f, y: g * h, z: f * g, t: e * h }
    }
}

/// Whether a number, reduced, is odd.
fn is_odd(number: Field) -> u8 {
    number.encode()[0] & 1
}

/// j · 2^(`WINDOW` · i) · P for each window i and each j from 0 to 2^(`WINDOW` - 1).
struct Table<const WINDOW: usize>(Vec<Entry>);

impl<const WINDOW: usize> Table<WINDOW> {
    const WINDOWS: usize = SCALAR_BITS.div_ceil(WINDOW);
    const POINTS: usize = (1 << (WINDOW - 1)) + 1;

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
            // The last one is half of the next window's base.
            base = multiple.add(&multiple);
        }
        let mut inverses: Vec<Field> = points.iter().map(|point| point.z).collect();
        Field::batch_invert(&mut inverses);
        let entry = |(point, inverse): (&Point, &Field)| {
            let (x, y) = (point.x * inverse, point.y * inverse);
            Entry { sums: [y - x, y + x], product: x * y * *TWICE_D }
        };
        Self(points.iter().zip(&inverses).map(entry).collect())
    }

    /// `point` and the multiple of the table's point by `scalar`, a little-endian number below 2^253.
    #[inline]
    fn add_multiple(&self, mut point: Point, scalar: &[u8; OCTETS]) -> Point {
        let digits = recode::<WINDOW>(scalar);
        for (digit, window) in digits.iter().zip(self.0.chunks_exact(Self::POINTS)) {
            point = point.add_entry(&window[usize::from(digit.unsigned_abs())], *digit < 0);
        }
        point
    }
}

/// Digits from -2^(`WINDOW` - 1) to 2^(`WINDOW` - 1) - 1, the least significant first, of a number below 2^253.
fn recode<const WINDOW: usize>(scalar: &[u8; OCTETS]) -> [i16; DIGITS] {
    let mut digits = [0; DIGITS];
    let mut carry = 0;
    for (place, digit) in digits.iter_mut().take(SCALAR_BITS.div_ceil(WINDOW)).enumerate() {
        let (octet, shift) = (place * WINDOW / 8, place * WINDOW % 8);
        let next = scalar.get(octet + 1).copied().unwrap_or(0);
        let pair = u16::from_le_bytes([scalar[octet], next]) >> shift;
        // Below 2^8, and one more.
        let value = (pair & ((1 << WINDOW) - 1)) as i16 + carry;
        carry = i16::from(value >= 1 << (WINDOW - 1));
        *digit = value - (carry << WINDOW);
    }
    digits
}

/// What makes many verifications with one key fast. It has 133 KiB, and takes the time of about ten single
/// verifications to make.
pub(crate) struct KeyTable {
    key: [u8; OCTETS],
    /// Of the negated key.
    table: Table<KEY_WINDOW>,
}

impl KeyTable {
    /// Prepares a public key. `None` where it is no point in canonical form, or has a part of small order: then the
    /// single check alone decides.
    pub(crate) fn new(key: &[u8; OCTETS]) -> Option<Self> {
        let point = Point::decode(key)?;
        let table = Table::new(point.negate());
        let is_prime_order = table.add_multiple(Point::ZERO, &ORDER).is_zero();
        is_prime_order.then_some(Self { key: *key, table })
    }

    /// Whether each signature fits its message, for up to [`GROUP`] pairs of message and signature, in order.
    pub(crate) fn verify(&self, signed: &[(&[u8], &[u8])]) -> [bool; GROUP] {
        let mut points = [Point::ZERO; GROUP];
        let mut fits = [false; GROUP];
        for ((point, fits), (message, signature)) in points.iter_mut().zip(&mut fits).zip(signed) {
            if let Some(expected) = self.expect(message, signature) {
                (*point, *fits) = (expected, true);
            }
        }
        let mut inverses = points.map(|point| point.z);
        // Only those of signatures that there are.
        Field::batch_invert(&mut inverses[..signed.len().min(GROUP)]);
        for (place, (_, signature)) in signed.iter().enumerate().take(GROUP) {
            let (point, inverse) = (&points[place], inverses[place]);
            fits[place] &= signature.starts_with(&encode(point.x * inverse, point.y * inverse));
        }
        fits
    }

    /// The point that R must be the encoding of; `None` where the signature has another length, or S is not below L.
    fn expect(&self, message: &[u8], signature: &[u8]) -> Option<Point> {
        let (r, s) = signature.split_first_chunk::<OCTETS>()?;
        let s: [u8; OCTETS] = s.try_into().ok()?;
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

/// The encoding of a point (RFC 8032, section 5.1.2).
fn encode(x: Field, y: Field) -> [u8; OCTETS] {
    let mut octets = y.encode();
    octets[OCTETS - 1] |= is_odd(x) << 7;
    octets
}

#[cfg(test)]
mod tests;
