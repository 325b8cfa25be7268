//! Multiplications by secret scalars in eight lanes, in constant time: the combs and the table of the base point of
//! [`super::super::multiply`], whose opening tells why no addition but the last few meets equal points, and how that shows.
//!
//! A scalar's 260 digits are split into five vectors of 52, as a field element is: the teeth of a comb, each in a vector of
//! its own. All entries of a table are read for every digit, and a mask takes the one that is wanted; of the base point's table,
//! which is the same in all lanes, an instruction chooses among registers.

#![deny(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_add_epi64, _mm512_and_si512, _mm512_or_si512, _mm512_permutex2var_epi64,
    _mm512_set1_epi64, _mm512_setzero_si512, _mm512_slli_epi64, _mm512_sllv_epi64, _mm512_srai_epi64,
    _mm512_srlv_epi64, _mm512_sub_epi64, _mm512_xor_si512,
};
use std::sync::OnceLock;

use super::field::{Fields, LANES, LIMBS, WIDTH, load, split};
use super::point::{CachedPoints, Pairs, Points, normalize_all};
use crate::p256::multiply::{ENTRIES, SPACING, TEETH, base_table};
use crate::p256::point::Affine;
use crate::p256::scalar::Scalar;

/// The digits of eight scalars: vector j has digits 52·j to 52·j + 51.
#[derive(Clone, Copy)]
pub(super) struct Digits(Fields);

impl Digits {
    /// Recodes eight scalars.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn new(scalars: &[Scalar; LANES]) -> Self {
        let mut words = [[0; LANES]; 4];
        for (lane, scalar) in scalars.iter().enumerate() {
            for (words, word) in words.iter_mut().zip(scalar.recode().0) {
                words[lane] = word;
            }
        }
        Self(split([load(&words[0]), load(&words[1]), load(&words[2]), load(&words[3])]))
    }

    /// The digits of eight numbers of 128 bits, odd ones: of the greater one where they are even. 130 digits, the others mean
    /// nothing.
    ///
    /// As in [`Scalar::recode`], they are the bits of (number + 2¹³⁰ − 1)/2.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn of_short(numbers: &[u128; LANES]) -> Self {
        let mut words = [[0; LANES]; 2];
        for (lane, number) in numbers.iter().enumerate() {
            (words[0][lane], words[1][lane]) = ((number >> 1) as u64, (number >> 65) as u64);
        }
        Self(split([load(&words[0]), load(&words[1]), set(1 << 1), _mm512_setzero_si512()]))
    }

    /// The digits of one column of a comb.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn teeth(&self, column: usize) -> __m512i {
        let (shift, one) = (set(column), set(1));
        let mut teeth = _mm512_setzero_si512();
        for (j, digits) in self.0.0.iter().enumerate() {
            let bit = _mm512_and_si512(_mm512_srlv_epi64(*digits, shift), one);
            teeth = _mm512_or_si512(teeth, _mm512_sllv_epi64(bit, set(j)));
        }
        teeth
    }

    /// The digits of one window of five.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn window(&self, window: usize) -> __m512i {
        let (limb, bit) = (window * TEETH / WIDTH as usize, window * TEETH % WIDTH as usize);
        let low = _mm512_srlv_epi64(self.0.0[limb], set(bit));
        let next = if limb + 1 < LIMBS { self.0.0[limb + 1] } else { _mm512_setzero_si512() };
        // Beyond what is left of the limb; with more than that, nothing of `next` is within the window.
        let high = _mm512_sllv_epi64(next, set(WIDTH as usize - bit));
        _mm512_and_si512(_mm512_or_si512(low, high), set(2 * ENTRIES - 1))
    }
}

#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn set(number: usize) -> __m512i {
    _mm512_set1_epi64(number as i64)
}

/// Splits digits into entries and masks of those that are to be negated.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn split_sign(digits: __m512i) -> (__m512i, __m512i) {
    // The last tooth is the sign: the fifth bit, brought to the top and spread.
    let positive = _mm512_srai_epi64::<63>(_mm512_slli_epi64::<59>(digits));
    let negative = _mm512_xor_si512(positive, set(usize::MAX));
    (_mm512_and_si512(_mm512_xor_si512(digits, negative), set(ENTRIES - 1)), negative)
}

/// Multiples of eight points: a table of each lane's own.
pub(super) type Entries = [Pairs; ENTRIES];

/// A table for each of several vectors.
pub(super) struct Tables(Vec<Pairs>);

impl Tables {
    /// Combs for several multiplications by secret scalars: entries as [`super::super::multiply::Comb`] tells them.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn combs(points: &[Pairs]) -> Self {
        let mut sums = Vec::with_capacity(points.len() * ENTRIES);
        for points in points {
            push_sums_of_teeth(points.to_points(), &mut sums);
        }
        Self(normalize_all(&sums, &mut Vec::new()).0)
    }

    /// Odd multiples for windows: entry e holds (2e + 1)·P.
    #[target_feature(enable = "avx512f,avx512ifma")]
    pub(super) fn odd_multiples(points: &[Pairs]) -> Self {
        let mut sums = Vec::with_capacity(points.len() * ENTRIES);
        for points in points {
            push_odd_multiples(points, ENTRIES, &mut sums);
        }
        Self(normalize_all(&sums, &mut Vec::new()).0)
    }

    /// The table of each vector, in order.
    pub(super) fn each(&self) -> &[Entries] {
        self.0.as_chunks().0
    }
}

/// In each lane, scalar·P for the points of a comb. Z is 0 where another way must serve.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply(comb: &Entries, digits: &Digits) -> Points {
    let mut sum = select(comb, digits.teeth(SPACING - 1)).to_points();
    for column in (0..SPACING - 1).rev() {
        sum = sum.double().add_different(&select(comb, digits.teeth(column)));
    }
    sum
}

/// The points that belong to the digits. Every entry is read as a whole: the masks are numbers, not those of instructions, as a
/// processor need not read what all lanes of a mask leave out.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn select(table: &Entries, digits: __m512i) -> Pairs {
    let (wanted, negative) = split_sign(digits);
    let mut found = Pairs { x: Fields::zero(), y: Fields::zero() };
    let mut index = _mm512_setzero_si512();
    for entry in table {
        // All bits set where the entry is wanted: only 0 − 1 is negative.
        let less = _mm512_sub_epi64(_mm512_xor_si512(index, wanted), set(1));
        let mask = _mm512_srai_epi64::<63>(less);
        found.x = found.x.merge(&entry.x, mask);
        found.y = found.y.merge(&entry.y, mask);
        index = _mm512_add_epi64(index, set(1));
    }
    found.negate_where(negative)
}

/// Appends the odd multiples of points, `count` of each: P, 3·P, 5·P …
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn push_odd_multiples(points: &Pairs, count: usize, sums: &mut Vec<Points>) {
    let mut multiple = points.to_points();
    let twice = multiple.double().cache();
    sums.push(multiple);
    for _ in 1..count {
        multiple = multiple.add_cached(&twice);
        sums.push(multiple);
    }
}

/// Appends the entries of combs.
#[target_feature(enable = "avx512f,avx512ifma")]
fn push_sums_of_teeth(points: Points, sums: &mut Vec<Points>) {
    let mut tooth = points;
    let mut lowest = tooth.negate();
    let mut doubled: Vec<CachedPoints> = Vec::with_capacity(TEETH - 1);
    for j in 0..TEETH - 1 {
        let double = tooth.double();
        doubled.push(double.cache());
        tooth = double.double_times(SPACING - 1);
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

/// For one window the entries 0 to 7 of the base point's table, one in each lane, and those from 8 on.
type Window = [Pairs; 2];

/// The table of the base point, made when it is first used: 65 kB.
#[target_feature(enable = "avx512f,avx512ifma")]
fn base_windows() -> &'static [Window] {
    static TABLE: OnceLock<Vec<Window>> = OnceLock::new();
    if let Some(table) = TABLE.get() {
        return table;
    }
    let mut windows = Vec::with_capacity(SPACING);
    for table in base_table() {
        let mut halves = [[Affine::INFINITY; LANES]; 2];
        for (entry, point) in table.iter().enumerate() {
            halves[entry / LANES][entry % LANES] = *point;
        }
        windows.push([Pairs::from_affine(&halves[0]), Pairs::from_affine(&halves[1])]);
    }
    TABLE.get_or_init(|| windows)
}

/// The entry of each lane out of 16 that lie in two vectors.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn choose(window: &Window, entries: __m512i) -> Pairs {
    let mut found = window[0];
    for limb in 0..LIMBS {
        found.x.0[limb] = _mm512_permutex2var_epi64(window[0].x.0[limb], entries, window[1].x.0[limb]);
        found.y.0[limb] = _mm512_permutex2var_epi64(window[0].y.0[limb], entries, window[1].y.0[limb]);
    }
    found
}

/// In each lane, `start` + scalar·B for the base point B. Z is 0 where another way must serve.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply_base(start: Option<Points>, digits: &Digits) -> Points {
    let windows = base_windows();
    let select = |window: usize| {
        let (entries, negative) = split_sign(digits.window(window));
        choose(&windows[window], entries).negate_where(negative)
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
