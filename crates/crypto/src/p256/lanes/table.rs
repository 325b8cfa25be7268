//! Tables of multiples of a point for public scalars, as in [`super::super::table`]. Each lane
//! looks up its own entry: in one table for all lanes, or in a smaller table of its own.

#![deny(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

use super::comb::push_odd_multiples;
use super::field::{LANES, Words, load, split, store};
use super::point::{AffinePoints, normalize_all};
use crate::p256::multiply::{COLUMNS, COMB_ENTRIES, split_sign, window_digits};
use crate::p256::point::{Affine, Jacobian};
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

/// One term of a sum: an entry of a table, and 1 if it must be negated.
type Term<'t> = (&'t Words, u8);

/// Returns the terms of a·P + b·Q. The tables of P and Q have windows of eight bits.
fn terms_of_octets<'t>(tables: [&'t PackedTable; 2], (a, b): &(Scalar, Scalar)) -> [Term<'t>; 2 * WINDOWS] {
    let octets = [a.recode_octets(), b.recode_octets()];
    std::array::from_fn(|term| {
        let (point, window) = (term / WINDOWS, term % WINDOWS);
        // Octet v stands for 2v − 255: the upper half of the values are odd multiples, the lower half their
        // negations.
        let octet = octets[point][window];
        let negative = octet >> 7 ^ 1;
        let entry = usize::from((octet ^ negative.wrapping_neg()) & (ENTRIES_PER_WINDOW as u8 - 1));
        (&tables[point].0[window * ENTRIES_PER_WINDOW + entry], negative)
    })
}

/// Returns the terms of a·P + b·Q. The tables of P and Q have windows of five bits.
fn terms_of_digits<'t>(tables: [&'t PackedTable; 2], (a, b): &(Scalar, Scalar)) -> [Term<'t>; 2 * COLUMNS] {
    let digits = [a.recode(), b.recode()];
    std::array::from_fn(|term| {
        let (point, window) = (term / COLUMNS, term % COLUMNS);
        let (entry, negative) = split_sign(window_digits(&digits[point], window));
        (&tables[point].0[window * COMB_ENTRIES + entry as usize], negative as u8 & 1)
    })
}

/// Returns a·P + b·Q for each pair of scalars and the points P and Q of the tables, which have windows of eight
/// bits. A result is `None` if two intermediate sums are equal or opposite.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply_both(tables: [&PackedTable; 2], pairs: &[(Scalar, Scalar)]) -> Vec<Option<Jacobian>> {
    let mut products = Vec::with_capacity(pairs.len());
    for pairs in pairs.chunks(LANES) {
        let terms: Vec<_> = pairs.iter().map(|pair| terms_of_octets(tables, pair)).collect();
        products.extend(sum_terms(&terms));
    }
    products
}

/// Returns a·B + b·Q for each pair of scalars and the point Q of its table. `base` is the table of B. The
/// tables have windows of five bits. A result is `None` if two intermediate sums are equal or opposite.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn multiply_by_tables(
    base: &PackedTable,
    tables: &[&PackedTable],
    pairs: &[(Scalar, Scalar)],
) -> Vec<Option<Jacobian>> {
    let mut products = Vec::with_capacity(pairs.len());
    for (tables, pairs) in tables.chunks(LANES).zip(pairs.chunks(LANES)) {
        let items = tables.iter().zip(pairs);
        let terms: Vec<_> = items.map(|(table, pair)| terms_of_digits([base, table], pair)).collect();
        products.extend(sum_terms(&terms));
    }
    products
}

/// Returns the sum of the terms of each of up to eight items. A sum is `None` if two intermediate sums are equal
/// or opposite. `N` must be a multiple of eight.
///
/// If there are at most four items, two, four or eight lanes share the terms of each: each lane adds its part,
/// and then the lanes are added.
#[target_feature(enable = "avx512f,avx512ifma")]
fn sum_terms<const N: usize>(items: &[[Term<'_>; N]]) -> Vec<Option<Jacobian>> {
    let share = LANES / items.len().next_power_of_two();
    let mut sum = terms_of_row(items, share, 0).to_points();
    for row in 1..N / share {
        sum = sum.add_different(&terms_of_row(items, share, row));
    }
    let mut distance = share / 2;
    while distance > 0 {
        sum = sum.add_cached(&sum.swap_lanes(distance).cache());
        distance /= 2;
    }
    sum.to_jacobian().into_iter().step_by(share).take(items.len()).collect()
}

/// Returns the terms that the lanes add in row `row`: that of a lane is term `row`·`share` + (lane mod `share`)
/// of its item.
#[inline]
#[target_feature(enable = "avx512f,avx512ifma")]
fn terms_of_row<const N: usize>(items: &[[Term<'_>; N]], share: usize, row: usize) -> AffinePoints {
    let mut rows = [_mm512_setzero_si512(); LANES];
    let mut negative_lanes = 0;
    for (lane, vector) in rows.iter_mut().enumerate() {
        // Lanes without an item repeat the last one.
        let item = &items[(lane / share).min(items.len() - 1)];
        let (entry, negative) = item[row * share + lane % share];
        negative_lanes |= negative << lane;
        *vector = load(entry);
    }
    let [x0, x1, x2, x3, y0, y1, y2, y3] = transpose(rows);
    AffinePoints { x: split([x0, x1, x2, x3]), y: split([y0, y1, y2, y3]) }.negate_lanes(negative_lanes)
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
