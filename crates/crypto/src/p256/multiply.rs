//! Multiplications of points of P-256 by scalars. They run in constant time if the scalar is secret
//! ([`Comb`], [`multiply_base`]), and are faster if all values are public ([`ShortTable`],
//! [`multiply_base_public`], [`double_multiply_public`]).
//!
//! Secret scalars are written in digits that are never zero. Therefore every scalar needs the same
//! additions, and no addition meets infinity. The incomplete addition formula is wrong only if its
//! two operands are equal or opposite; then Z becomes 0 and stays 0. Because x·P is never infinity
//! for x ≠ 0 and P of prime order, Z = 0 at the end proves that this case occurred. It occurs for a
//! few scalars in 2²⁵⁶; the product is then computed with another method.

use std::hint::black_box;
use std::sync::OnceLock;

use subtle::Choice;
use zeroize::Zeroizing;

use super::field::Field;
use super::point::{Affine, Cached, Jacobian};
use super::scalar::{RECODED_DIGITS, Scalar};
use super::sum::sum_different;

/// Number of digits that one addition processes. A [`Comb`] splits the digits of a scalar into five
/// rows (teeth) of 52 digits; one addition processes a column, the digits at the same position of
/// all rows. With the table of the base point, one addition processes a window of five consecutive
/// digits.
pub(super) const TEETH: usize = 5;

/// Number of columns of a [`Comb`], and number of windows of the table of the base point.
pub(super) const COLUMNS: usize = RECODED_DIGITS / TEETH;

/// Number of entries of the table of a [`Comb`], and of a window of the table of the base point.
/// The digit of the last tooth is only a sign.
pub(super) const COMB_ENTRIES: usize = 1 << (TEETH - 1);

/// Sums of multiples of one point, one for each combination of signs.
type CombTable = [Affine; COMB_ENTRIES];

/// A point prepared for several multiplications by secret scalars. These share 208 of the 260
/// doublings.
///
/// Entry e is 2²⁰⁸·P + Σ ±2⁵²ʲ·P for j below 4, with + if bit j of e is set.
pub(crate) struct Comb {
    table: CombTable,
    point: Affine,
}

impl Comb {
    /// Prepares each of the points, with one inversion for all of them.
    pub(crate) fn prepare_all(points: &[Affine]) -> Vec<Self> {
        let entries: Vec<Jacobian> = points.iter().flat_map(sums_of_teeth).collect();
        let entries = Jacobian::normalize_all(&entries);
        let comb = |(point, entries): (&Affine, &[Affine])| {
            let mut table = CombTable::default();
            table.copy_from_slice(entries);
            Self { table, point: *point }
        };
        points.iter().zip(entries.chunks_exact(COMB_ENTRIES)).map(comb).collect()
    }

    /// Returns scalar·P, in constant time. The scalar must not be 0.
    pub(crate) fn multiply(&self, scalar: &Scalar) -> Jacobian {
        let product = self.multiply_without_fallback(scalar);
        if product.is_infinity() { multiply_complete(&self.point, scalar) } else { product }
    }

    /// Like [`Comb::multiply`], but returns infinity for the few scalars that need another method.
    pub(super) fn multiply_without_fallback(&self, scalar: &Scalar) -> Jacobian {
        let digits = Zeroizing::new(scalar.recode());
        let mut sum = Jacobian::from(select_entry(&self.table, column_digits(&digits, COLUMNS - 1)));
        for column in (0..COLUMNS - 1).rev() {
            sum = sum.double().add_different(&select_entry(&self.table, column_digits(&digits, column)));
        }
        sum
    }
}

/// Returns the entries of the table of a comb.
fn sums_of_teeth(point: &Affine) -> [Jacobian; COMB_ENTRIES] {
    // `tooth` starts as the point and advances by 52 digits in each round.
    let mut tooth = Jacobian::from(*point);
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
    sums
}

/// Returns the digits of one column, with the last tooth as the highest bit.
#[inline(always)]
fn column_digits(digits: &Scalar, column: usize) -> u64 {
    (0..TEETH).map(|j| digits.bit(column + j * COLUMNS) << j).fold(0, |all, bit| all | bit)
}

/// Returns the digits of one window, with the last digit as the highest bit.
#[inline(always)]
pub(super) fn window_digits(digits: &Scalar, window: usize) -> u64 {
    (0..TEETH).map(|j| digits.bit(window * TEETH + j) << j).fold(0, |all, bit| all | bit)
}

/// Splits digits into the index of an entry, and 1 if the entry must be negated or else 0.
#[inline(always)]
pub(super) fn split_sign(digits: u64) -> (u64, u64) {
    let negative = (digits >> (TEETH - 1)) ^ 1;
    ((digits ^ negative.wrapping_neg()) & (COMB_ENTRIES as u64 - 1), negative)
}

/// Returns the point to add for these digits. It reads every entry, because the digits are secret.
#[inline(always)]
fn select_entry(table: &CombTable, digits: u64) -> Affine {
    let (entry, negative) = split_sign(digits);
    // `black_box` hides the index from the compiler, so that it does not replace the loop by a read
    // of one entry.
    let entry = black_box(entry);
    let mut found = Affine::default();
    for (index, candidate) in (0_u64..).zip(table) {
        // All bits are set for the selected entry, because only 0 − 1 borrows.
        let mask = (index ^ entry).wrapping_sub(1) >> 63;
        found.merge(candidate, mask.wrapping_neg());
    }
    found.negate_if(Choice::from(negative as u8))
}

/// Returns the table of the base point B: in window w, entry e is 2⁵ʷ·(2⁴·B + Σ ±2ʲ·B), with signs
/// as in [`Comb`]. It has 53 kB and is built at first use.
pub(super) fn base_table() -> &'static [CombTable; COLUMNS] {
    static TABLE: OnceLock<Box<[CombTable; COLUMNS]>> = OnceLock::new();
    TABLE.get_or_init(|| {
        let mut sums = Vec::with_capacity(COLUMNS * COMB_ENTRIES);
        let mut power = Jacobian::from(Affine::BASE);
        for _ in 0..COLUMNS {
            // Entry e is the odd multiple 2e + 1.
            let twice = power.double().cache();
            let mut multiple = power;
            for _ in 0..COMB_ENTRIES {
                sums.push(multiple);
                multiple = multiple.add(&twice);
            }
            power = power.double_times(TEETH);
        }
        let sums = Jacobian::normalize_all(&sums);
        let mut tables = Box::new([CombTable::default(); COLUMNS]);
        for (table, sums) in tables.iter_mut().zip(sums.chunks_exact(COMB_ENTRIES)) {
            table.copy_from_slice(sums);
        }
        tables
    })
}

/// Returns scalar·B for the base point B, in constant time. The scalar must not be 0.
pub(crate) fn multiply_base(scalar: &Scalar) -> Jacobian {
    let product = multiply_base_without_fallback(scalar);
    if product.is_infinity() { multiply_complete(&Affine::BASE, scalar) } else { product }
}

/// Like [`multiply_base`], but returns infinity for the few scalars that need another method.
pub(super) fn multiply_base_without_fallback(scalar: &Scalar) -> Jacobian {
    let digits = Zeroizing::new(scalar.recode());
    let table = base_table();
    let mut sum = Jacobian::from(select_entry(&table[0], window_digits(&digits, 0)));
    for (index, table) in table.iter().enumerate().skip(1) {
        sum = sum.add_different(&select_entry(table, window_digits(&digits, index)));
    }
    sum
}

/// Reusable work buffers of [`multiply_base_all`]. They are wiped on drop.
#[derive(Default)]
pub(crate) struct SecretWorkspace {
    terms: Zeroizing<Vec<Affine>>,
    products: Zeroizing<Vec<Field>>,
}

#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
impl SecretWorkspace {
    /// Takes points that the lanes computed, so that they are wiped like those of
    /// [`multiply_base_all`]. Returns the stored points.
    pub(super) fn store_points(&mut self, points: Vec<Affine>) -> &[Affine] {
        self.terms = Zeroizing::new(points);
        &self.terms
    }
}

/// Returns scalar·B for each of the scalars, in constant time. The additions share their
/// inversions, which is faster than [`multiply_base`] for many scalars.
///
/// Returns `None` if two intermediate sums are equal or opposite, as for the scalar 0 and a few
/// scalars in 2²⁵⁶. The caller must then use another method.
pub(crate) fn multiply_base_all<'w>(
    scalars: &[Scalar],
    workspace: &'w mut SecretWorkspace,
) -> Option<&'w [Affine]> {
    let SecretWorkspace { terms, products } = workspace;
    // Reserve the maximum capacity: copies that a growing vector leaves in freed memory are not
    // wiped.
    terms.clear();
    terms.reserve(scalars.len() * COLUMNS);
    products.clear();
    products.reserve(scalars.len() * COLUMNS / 2);
    let digits: Zeroizing<Vec<Scalar>> =
        Zeroizing::new(scalars.iter().map(|scalar| scalar.recode()).collect());
    for (index, table) in base_table().iter().enumerate() {
        terms.extend(digits.iter().map(|digits| select_entry(table, window_digits(digits, index))));
    }
    sum_different(terms, scalars.len(), products).then(|| &terms[..scalars.len()])
}

/// Returns scalar·P, computed bit by bit with additions that handle every case. For the few scalars
/// in 2²⁵⁶ that the faster methods cannot handle.
pub(super) fn multiply_complete(point: &Affine, scalar: &Scalar) -> Jacobian {
    let mut sum = Jacobian::INFINITY;
    for at in (0..256).rev() {
        sum = sum.double();
        if scalar.bit(at) == 1 {
            sum = sum.add_affine(point);
        }
    }
    sum
}

/// Returns `start` + scalar·B, for public values.
pub(crate) fn multiply_base_public(start: Jacobian, scalar: &Scalar) -> Jacobian {
    let digits = scalar.recode();
    let mut sum = start;
    for (index, table) in base_table().iter().enumerate() {
        let (entry, negative) = split_sign(window_digits(&digits, index));
        sum = sum.add_affine(&table[entry as usize].negate_if(Choice::from(negative as u8)));
    }
    sum
}

/// Number of bits of a short scalar that one addition of a [`ShortTable`] processes.
const SHORT_TEETH: usize = 4;

/// Number of columns of a [`ShortTable`], of which each has one bit of every tooth.
const SHORT_COLUMNS: usize = 128 / SHORT_TEETH;

/// A public point prepared for multiplications by public scalars of 128 bits. Entry e − 1 is Σ
/// 2³²ʲ·P over the bits j that are set in e.
pub(crate) struct ShortTable([Affine; (1 << SHORT_TEETH) - 1]);

impl ShortTable {
    pub(crate) fn prepare(point: &Affine) -> Self {
        let mut sums: Vec<Jacobian> = Vec::with_capacity((1 << SHORT_TEETH) - 1);
        let mut tooth = Jacobian::from(*point);
        for _ in 0..SHORT_TEETH {
            let known = sums.len();
            let cached = tooth.cache();
            sums.push(tooth);
            for index in 0..known {
                sums.push(sums[index].add(&cached));
            }
            tooth = tooth.double_times(SHORT_COLUMNS);
        }
        let mut table = [*point; (1 << SHORT_TEETH) - 1];
        table.copy_from_slice(&Jacobian::normalize_all(&sums));
        Self(table)
    }

    /// Returns scalar·P.
    pub(crate) fn multiply(&self, scalar: u128) -> Jacobian {
        let mut sum = Jacobian::INFINITY;
        for column in (0..SHORT_COLUMNS).rev() {
            sum = sum.double();
            let bit = |j: usize| ((scalar >> (column + j * SHORT_COLUMNS)) as usize & 1) << j;
            let entry: usize = (0..SHORT_TEETH).map(bit).sum();
            if let Some(point) = entry.checked_sub(1).map(|index| &self.0[index]) {
                sum = sum.add_affine(point);
            }
        }
        sum
    }
}

/// Width of the windows of [`double_multiply_public`], in bits.
const WINDOW_BITS: u32 = 5;

/// Odd multiples of a point: P, 3P, 5P … 15P.
type OddMultiples = [Cached; 1 << (WINDOW_BITS - 2)];

fn odd_multiples(point: &Affine) -> OddMultiples {
    let mut multiple = Jacobian::from(*point);
    let twice = multiple.double().cache();
    std::array::from_fn(|_| {
        let cached = multiple.cache();
        multiple = multiple.add(&twice);
        cached
    })
}

/// Returns the digits of a scalar in non-adjacent form. Each digit is 0, or odd with an absolute
/// value below 16 and followed by at least four zeros.
fn non_adjacent_form(scalar: &Scalar) -> [i8; 257] {
    let mut digits = [0; 257];
    let mut carry = 0;
    let mut at = 0;
    while at < digits.len() {
        if scalar.bit(at) == carry {
            at += 1;
            continue;
        }
        let bits = (0..WINDOW_BITS as usize).map(|bit| scalar.bit(at + bit) << bit).sum::<u64>() + carry;
        carry = bits >> (WINDOW_BITS - 1);
        digits[at] = (bits as i64 - ((carry as i64) << WINDOW_BITS)) as i8;
        at += WINDOW_BITS as usize;
    }
    digits
}

/// Returns a·P + b·Q for public values (Straus).
pub(crate) fn double_multiply_public(a: &Scalar, p: &Affine, b: &Scalar, q: &Affine) -> Jacobian {
    let (p, q) = (odd_multiples(p), odd_multiples(q));
    let (a, b) = (non_adjacent_form(a), non_adjacent_form(b));
    let mut sum = Jacobian::INFINITY;
    for at in (0..a.len()).rev() {
        if !sum.is_infinity() {
            sum = sum.double();
        }
        for (digit, multiples) in [(a[at], &p), (b[at], &q)] {
            if digit != 0 {
                let multiple = &multiples[usize::from(digit.unsigned_abs() / 2)];
                sum = if digit > 0 { sum.add(multiple) } else { sum.add(&multiple.negate()) };
            }
        }
    }
    sum
}
