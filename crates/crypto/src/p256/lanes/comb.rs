//! Multiplications by secret scalars in eight lanes, in constant time. The method is that of
//! [`super::super::multiply`]; that module defines digit, tooth, column and window, and explains
//! when a sum is wrong and how the code detects this.
//!
//! A digit is +1 or −1, stored as one bit: 1 for +1, 0 for −1. A scalar has 260 digits. They are
//! split into five vectors of 52 digits, like the limbs of a field element, so that each vector has
//! the digits of one tooth of a comb. For each column or window, the code reads all entries of the
//! table, and a mask selects one of them. The table of the base point is the same in all lanes; for
//! it, an instruction selects the entry of each lane from registers.

#![deny(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_or_si512, _mm512_permutex2var_epi64,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_sllv_epi64, _mm512_srai_epi64,
    _mm512_srlv_epi64, _mm512_sub_epi64, _mm512_xor_si512,
};
use std::sync::OnceLock;

use zeroize::{Zeroize, Zeroizing};

use super::chain::Chain;
use super::field::{Fields, LANES, LIMB_BITS, LIMBS, load, split};
use super::point::{AffinePoints, CachedPoints, JacobianPoints, normalize_all};
use crate::p256::multiply::{COLUMNS, COMB_ENTRIES, TEETH, base_table};
use crate::p256::point::Affine;
use crate::p256::scalar::Scalar;

/// Mask of the bits of one column or window.
const WINDOW_MASK: usize = (1 << TEETH) - 1;

/// Mask of the index of an entry, in the bits of one column or window.
const ENTRY_MASK: usize = COMB_ENTRIES - 1;

/// Distance from the highest bit of a column or window to the highest bit of a word.
const SIGN_SHIFT: u32 = u64::BITS - TEETH as u32;

/// The digits of eight scalars. Vector j has the digits 52·j to 52·j + 51. If the scalars are
/// secret, the caller must wipe the digits.
#[derive(Clone, Copy)]
pub(super) struct Digits(Fields);

impl Zeroize for Digits {
    fn zeroize(&mut self) {
        self.0.zeroize();
    }
}

impl Digits {
    /// Recodes one scalar in each lane (see [`Scalar::recode`]). A bit that is set is the digit +1.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn new(scalars: &[Scalar; LANES]) -> Self {
        let mut words = Zeroizing::new([[0_u64; LANES]; 4]);
        for (lane, scalar) in scalars.iter().enumerate() {
            let recoded = Zeroizing::new(scalar.recode());
            let Scalar(limbs) = &*recoded;
            for (row, limb) in words.iter_mut().zip(limbs) {
                row[lane] = *limb;
            }
        }
        Self(split([load(&words[0]), load(&words[1]), load(&words[2]), load(&words[3])]))
    }

    /// Returns the digits of eight numbers of 128 bits. If a number is even, they are the digits of
    /// the next odd number. Only the first 130 digits are meaningful.
    ///
    /// As in [`Scalar::recode`], they are the bits of (number + 2¹³⁰ − 1)/2.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn from_short(numbers: &[u128; LANES]) -> Self {
        let mut words = [[0; LANES]; 2];
        for (lane, number) in numbers.iter().enumerate() {
            (words[0][lane], words[1][lane]) = ((number >> 1) as u64, (number >> 65) as u64);
        }
        Self(split([load(&words[0]), load(&words[1]), set(1 << 1), _mm512_setzero_si512()]))
    }

    /// Returns the digits of one column of a comb.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn column_digits(&self, column: usize) -> __m512i {
        let (shift, one) = (set(column), set(1));
        let mut column_digits = _mm512_setzero_si512();
        for (j, digits) in self.0.0.iter().enumerate() {
            let bit = _mm512_and_si512(_mm512_srlv_epi64(*digits, shift), one);
            column_digits = _mm512_or_si512(column_digits, _mm512_sllv_epi64(bit, set(j)));
        }
        column_digits
    }

    /// Returns the digits of one window. A window has [`TEETH`] digits, as many as a column, so
    /// that both select from tables of the same size.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn window_digits(&self, window: usize) -> __m512i {
        let (limb, bit) = (window * TEETH / LIMB_BITS as usize, window * TEETH % LIMB_BITS as usize);
        let low = _mm512_srlv_epi64(self.0.0[limb], set(bit));
        let next = if limb + 1 < LIMBS { self.0.0[limb + 1] } else { _mm512_setzero_si512() };
        // If at least five bits of the limb remain, the bits of `next` are shifted above the
        // window, and the mask removes them.
        let high = _mm512_sllv_epi64(next, set(LIMB_BITS as usize - bit));
        _mm512_and_si512(_mm512_or_si512(low, high), set(WINDOW_MASK))
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn set(number: usize) -> __m512i {
    _mm512_set1_epi64(number as i64)
}

/// Splits the digits of a column or window into the index of an entry, and a mask whose bits are
/// all set if the entry must be negated.
///
/// The highest of the five digits is the sign. A table has entries only for the sign +. For the
/// sign −, the entry with the other four digits inverted is negated.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn split_sign(digits: __m512i) -> (__m512i, __m512i) {
    // Copies the sign to all bits of the word.
    let positive = _mm512_srai_epi64::<63>(_mm512_slli_epi64::<SIGN_SHIFT>(digits));
    let negative = _mm512_xor_si512(positive, set(usize::MAX));
    (_mm512_and_si512(_mm512_xor_si512(digits, negative), set(ENTRY_MASK)), negative)
}

/// The tables of eight points, one in each lane. Each table has multiples of its point.
pub(super) type Entries = [AffinePoints; COMB_ENTRIES];

/// Which lanes of a vector have the same point.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Repeated {
    /// Each lane can have another point.
    Never,
    /// Lanes 0 to 3 have one point, and lanes 4 to 7 one point.
    InHalves,
}

/// The tables of several vectors of points: [`Entries`] for each vector, one after the other.
///
/// Normalisation ignores the masks of infinity, because no entry is infinity: each addition that
/// builds a table adds two multiples of a point of prime order, by factors whose absolute values
/// differ and are below 2²¹⁰.
pub(super) struct Tables(Vec<AffinePoints>);

impl Tables {
    /// Builds a comb of each point, for several multiplications by secret scalars.
    /// [`super::super::multiply::Comb`] describes the entries. The number of distinct points of each vector
    /// is stated, because [`Repeated::InHalves`] takes less time.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn combs(vectors: &[(AffinePoints, Repeated)]) -> Self {
        let mut sums = Vec::with_capacity(vectors.len() * COMB_ENTRIES);
        for (points, repeated) in vectors {
            push_sums_of_teeth(points.to_points(), *repeated, &mut sums);
        }
        Self(normalize_all(&sums, &mut Vec::new()).0)
    }

    /// Builds tables of odd multiples for windows: entry e is (2e + 1)·P.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn odd_multiples(points: &[AffinePoints]) -> Self {
        let mut sums = Vec::with_capacity(points.len() * COMB_ENTRIES);
        for points in points {
            push_odd_multiples(points, COMB_ENTRIES, &mut sums);
        }
        Self(normalize_all(&sums, &mut Vec::new()).0)
    }

    /// Returns the tables of each vector of points, in order.
    pub(super) fn tables(&self) -> &[Entries] {
        self.0.as_chunks().0
    }
}

/// Returns scalar·P in each lane, for the points P of the combs. A lane with Z = 0 has no valid
/// result; the caller computes it with the portable code.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply(comb: &Entries, digits: &Digits) -> JacobianPoints {
    let mut sum = select_entries(comb, digits.column_digits(COLUMNS - 1)).to_points();
    for column in (0..COLUMNS - 1).rev() {
        sum = sum.double().add_different(&select_entries(comb, digits.column_digits(column)));
    }
    sum
}

/// Returns the point for the digits of each lane. The function reads every entry completely. The
/// masks are numbers, not mask registers of instructions, because a processor may skip a read that
/// all lanes of a mask register exclude. `black_box`, as in [`super::super::multiply`], is not
/// needed: each lane selects its own entry, so a read of one entry cannot replace the loop.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn select_entries(table: &Entries, digits: __m512i) -> AffinePoints {
    let (wanted, negative) = split_sign(digits);
    let mut found = AffinePoints { x: Fields::zero(), y: Fields::zero() };
    let mut index = _mm512_setzero_si512();
    for entry in table {
        // The XOR is 0 only for the selected entry, and only 0 − 1 is negative. The shift copies
        // the sign to all bits of the mask.
        let difference = _mm512_sub_epi64(_mm512_xor_si512(index, wanted), set(1));
        let mask = _mm512_srai_epi64::<63>(difference);
        found.x = found.x.merge(&entry.x, mask);
        found.y = found.y.merge(&entry.y, mask);
        index = _mm512_add_epi64(index, set(1));
    }
    found.negate_by_bits(negative)
}

/// Appends `count` odd multiples of the points: P, 3·P, 5·P and so on.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn push_odd_multiples(points: &AffinePoints, count: usize, sums: &mut Vec<JacobianPoints>) {
    let mut multiple = points.to_points();
    let twice = multiple.double().cache();
    sums.push(multiple);
    for _ in 1..count {
        multiple = multiple.add_cached(&twice);
        sums.push(multiple);
    }
}

/// Appends the entries of a comb of each point P, as [`super::super::multiply::Comb`] describes
/// them. Entry 0 has the sign − for each 2⁵²ʲ·P with j below 4. The addition of 2·2⁵²ʲ·P changes
/// this sign to +.
#[target_feature(enable = "avx512f,avx512ifma")]
fn push_sums_of_teeth(points: JacobianPoints, repeated: Repeated, sums: &mut Vec<JacobianPoints>) {
    let mut tooth = points;
    let mut lowest = tooth.negate();
    let mut doubled: Vec<CachedPoints> = Vec::with_capacity(TEETH - 1);
    for j in 0..TEETH - 1 {
        let double = tooth.double();
        doubled.push(double.cache());
        tooth = match repeated {
            Repeated::Never => double.double_times(COLUMNS - 1),
            Repeated::InHalves => Chain::new(&double).double_times(COLUMNS - 1).to_points(),
        };
        let next = if j + 1 < TEETH - 1 { tooth.negate() } else { tooth };
        lowest = lowest.add_cached(&next.cache());
    }
    let first = sums.len();
    sums.push(lowest);
    for (j, twice) in doubled.iter().enumerate() {
        for entry in 0..1 << j {
            sums.push(sums[first + entry].add_cached(twice));
        }
    }
}

/// The entries of one window of the table of the base point: the entries 0 to 7, one in each lane,
/// and those from 8 on.
type Window = [AffinePoints; 2];

/// Returns the table of the base point, built at first use. It has about 67 kB.
#[target_feature(enable = "avx512f,avx512ifma")]
fn base_windows() -> &'static [Window] {
    static TABLE: OnceLock<Vec<Window>> = OnceLock::new();
    if let Some(table) = TABLE.get() {
        return table;
    }
    let mut windows = Vec::with_capacity(COLUMNS);
    for table in base_table() {
        let mut halves = [[Affine::INFINITY; LANES]; 2];
        for (entry, point) in table.iter().enumerate() {
            halves[entry / LANES][entry % LANES] = *point;
        }
        windows.push([AffinePoints::from_affine(&halves[0]), AffinePoints::from_affine(&halves[1])]);
    }
    TABLE.get_or_init(|| windows)
}

/// Returns one of the 16 entries of the window for each lane.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn select_base_entries(window: &Window, entries: __m512i) -> AffinePoints {
    let mut found = window[0];
    for limb in 0..LIMBS {
        found.x.0[limb] = _mm512_permutex2var_epi64(window[0].x.0[limb], entries, window[1].x.0[limb]);
        found.y.0[limb] = _mm512_permutex2var_epi64(window[0].y.0[limb], entries, window[1].y.0[limb]);
    }
    found
}

/// Returns `start` + scalar·B in each lane, for the base point B. A lane with Z = 0 has no valid
/// result; the caller computes it with the portable code.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply_base(start: Option<JacobianPoints>, digits: &Digits) -> JacobianPoints {
    let windows = base_windows();
    let select = |window: usize| {
        let (entries, negative) = split_sign(digits.window_digits(window));
        select_base_entries(&windows[window], entries).negate_by_bits(negative)
    };
    let mut sum = match start {
        Some(start) => start.add_different(&select(0)),
        None => select(0).to_points(),
    };
    for window in 1..windows.len() {
        sum = sum.add_different(&select(window));
    }
    sum
}
