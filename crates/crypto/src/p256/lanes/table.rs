//! Tables of multiples of a point for public scalars, as in [`super::super::table`]. Each lane
//! looks up its own entry: in one table for all lanes, or in a smaller table of its own.

#![deny(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

use super::comb::{Digits, multiply_base, push_odd_multiples, split_sign};
use super::field::{LANES, Words, load, split, store};
use super::point::{AffinePoints, JacobianPoints, normalize_all, to_affine_all};
use super::verify;
use crate::p256::multiply::COMB_ENTRIES;
use crate::p256::point::Affine;
use crate::p256::scalar::Scalar;
use crate::p256::windows::{ENTRIES_PER_WINDOW, WINDOWS};

/// The entries of a table, in the Montgomery form of the lanes. An entry has 64 bytes, four words
/// of x and four words of y, so that one load reads it.
pub(crate) struct PackedTable(Vec<Words>);

/// Builds the table of a point P from the points 2⁸ʷ·P, or 2⁵ʷ·P, one for each window w. `entries` is the
/// number of odd multiples for each window. It processes eight windows at a time.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn pack_multiples(powers: &[Affine], entries: usize) -> PackedTable {
    let mut sums = Vec::with_capacity(powers.len().div_ceil(LANES) * entries);
    for powers in powers.chunks(LANES) {
        // Lanes without a window repeat the last one.
        let powers = std::array::from_fn(|lane| powers[lane.min(powers.len() - 1)]);
        push_odd_multiples(&AffinePoints::from_affine(&powers), entries, &mut sums);
    }
    let (multiples, _) = normalize_all(&sums, &mut Vec::new());
    let mut packed = vec![[0; LANES]; powers.len() * entries];
    for (index, multiple) in multiples.iter().enumerate() {
        let (first, entry) = (index / entries * LANES, index % entries);
        let ([x0, x1, x2, x3], [y0, y1, y2, y3]) = (multiple.x.to_words(), multiple.y.to_words());
        for (lane, row) in transpose([x0, x1, x2, x3, y0, y1, y2, y3]).into_iter().enumerate() {
            if let Some(place) = packed.get_mut((first + lane) * entries + entry) {
                *place = store(row);
            }
        }
    }
    PackedTable(packed)
}

/// Transposes rows to columns.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn transpose(r: [__m512i; LANES]) -> [__m512i; LANES] {
    // Pairs of two rows: first the even columns, then the odd columns.
    let (a, b) = (_mm512_unpacklo_epi64(r[0], r[1]), _mm512_unpackhi_epi64(r[0], r[1]));
    let (c, d) = (_mm512_unpacklo_epi64(r[2], r[3]), _mm512_unpackhi_epi64(r[2], r[3]));
    let (e, f) = (_mm512_unpacklo_epi64(r[4], r[5]), _mm512_unpackhi_epi64(r[4], r[5]));
    let (g, h) = (_mm512_unpacklo_epi64(r[6], r[7]), _mm512_unpackhi_epi64(r[6], r[7]));
    // 0x88 selects the first and third pair of each operand, 0xdd the second and fourth pair.
    let (ac04, ac26) = (_mm512_shuffle_i64x2::<0x88>(a, c), _mm512_shuffle_i64x2::<0xdd>(a, c));
    let (bd15, bd37) = (_mm512_shuffle_i64x2::<0x88>(b, d), _mm512_shuffle_i64x2::<0xdd>(b, d));
    let (eg04, eg26) = (_mm512_shuffle_i64x2::<0x88>(e, g), _mm512_shuffle_i64x2::<0xdd>(e, g));
    let (fh15, fh37) = (_mm512_shuffle_i64x2::<0x88>(f, h), _mm512_shuffle_i64x2::<0xdd>(f, h));
    [
        _mm512_shuffle_i64x2::<0x88>(ac04, eg04),
        _mm512_shuffle_i64x2::<0x88>(bd15, fh15),
        _mm512_shuffle_i64x2::<0x88>(ac26, eg26),
        _mm512_shuffle_i64x2::<0x88>(bd37, fh37),
        _mm512_shuffle_i64x2::<0xdd>(ac04, eg04),
        _mm512_shuffle_i64x2::<0xdd>(bd15, fh15),
        _mm512_shuffle_i64x2::<0xdd>(ac26, eg26),
        _mm512_shuffle_i64x2::<0xdd>(bd37, fh37),
    ]
}

impl PackedTable {
    /// Returns the term of window `window` for each lane: the point to add for the scalar with
    /// these recoded octets.
    #[inline]
    #[target_feature(enable = "avx512f,avx512ifma")]
    fn terms(&self, window: usize, octets: &[[u8; WINDOWS]; LANES]) -> AffinePoints {
        let entries = &self.0[window * ENTRIES_PER_WINDOW..][..ENTRIES_PER_WINDOW];
        let mut rows = [_mm512_setzero_si512(); LANES];
        let mut negative = 0;
        for (lane, row) in rows.iter_mut().enumerate() {
            // Octet v stands for 2v − 255: the upper half of the values are odd multiples, the
            // lower half their negations.
            let octet = octets[lane][window];
            let sign = octet >> 7 ^ 1;
            negative |= sign << lane;
            *row =
                load(&entries[usize::from((octet ^ sign.wrapping_neg()) & (ENTRIES_PER_WINDOW as u8 - 1))]);
        }
        let [x0, x1, x2, x3, y0, y1, y2, y3] = transpose(rows);
        AffinePoints { x: split([x0, x1, x2, x3]), y: split([y0, y1, y2, y3]) }.negate_lanes(negative)
    }
}

/// Returns a·P + b·Q for each pair of scalars and the points P and Q of the tables. A result is
/// `None` if two intermediate sums are equal or opposite.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply_both(tables: [&PackedTable; 2], octets: &[[[u8; WINDOWS]; 2]]) -> Vec<Option<Affine>> {
    let mut sums: Vec<JacobianPoints> = Vec::with_capacity(octets.len().div_ceil(LANES));
    for octets in octets.chunks(LANES) {
        // The octet 0 is a valid digit, so unused lanes compute a point too.
        let mut lanes = [[[0; WINDOWS]; LANES]; 2];
        for (lane, [first, second]) in octets.iter().enumerate() {
            (lanes[0][lane], lanes[1][lane]) = (*first, *second);
        }
        let mut sum = tables[0].terms(0, &lanes[0]).to_points();
        for window in 1..WINDOWS {
            sum = sum.add_different(&tables[0].terms(window, &lanes[0]));
        }
        for window in 0..WINDOWS {
            sum = sum.add_different(&tables[1].terms(window, &lanes[1]));
        }
        sums.push(sum);
    }
    to_affine_all(&sums, octets.len())
}

/// Returns the term of a window of five bits for each lane, from the lane's table.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn terms_of_lanes(tables: &[&PackedTable; LANES], window: usize, digits: &Digits) -> AffinePoints {
    let (entries, negative) = split_sign(digits.window_digits(window));
    let mut rows = [_mm512_setzero_si512(); LANES];
    for ((row, table), entry) in rows.iter_mut().zip(tables).zip(store(entries)) {
        *row = load(&table.0[window * COMB_ENTRIES + entry as usize]);
    }
    let [x0, x1, x2, x3, y0, y1, y2, y3] = transpose(rows);
    AffinePoints { x: split([x0, x1, x2, x3]), y: split([y0, y1, y2, y3]) }.negate_by_bits(negative)
}

/// Returns a·B + b·Q for each pair of scalars and the point Q of its table, which has windows of five bits.
/// A result is `None` if two intermediate sums are equal or opposite.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply_by_tables(tables: &[&PackedTable], pairs: &[(Scalar, Scalar)]) -> Vec<Option<Affine>> {
    let mut sums = Vec::with_capacity(pairs.len().div_ceil(LANES));
    for (tables, pairs) in tables.chunks(LANES).zip(pairs.chunks(LANES)) {
        // Lanes without a pair compute a point too.
        let tables = std::array::from_fn(|lane| tables[lane.min(tables.len() - 1)]);
        let (mut a, mut b) = ([Scalar::ZERO; LANES], [Scalar::ZERO; LANES]);
        for (lane, pair) in pairs.iter().enumerate() {
            (a[lane], b[lane]) = *pair;
        }
        let [a, b] = [Digits::new(&a), Digits::new(&b)];
        let mut sum = terms_of_lanes(&tables, 0, &b).to_points();
        for window in 1..verify::WINDOWS {
            sum = sum.add_different(&terms_of_lanes(&tables, window, &b));
        }
        sums.push(multiply_base(Some(sum), &a));
    }
    to_affine_all(&sums, pairs.len())
}

#[cfg(test)]
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn transpose_rows(rows: &[Words; LANES]) -> [Words; LANES] {
    let mut vectors = [_mm512_setzero_si512(); LANES];
    for (vector, row) in vectors.iter_mut().zip(rows) {
        *vector = load(row);
    }
    let columns = transpose(vectors);
    let mut words = [[0; LANES]; LANES];
    for (words, column) in words.iter_mut().zip(columns) {
        *words = store(column);
    }
    words
}
