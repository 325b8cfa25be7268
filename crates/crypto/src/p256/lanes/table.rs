//! Tables of multiples of a point for public scalars, as in [`super::super::table`]. Each lane
//! looks up its own entry.

#![deny(unsafe_code)]

use std::arch::x86_64::{
    __m512i, _mm512_setzero_si512, _mm512_shuffle_i64x2, _mm512_unpackhi_epi64, _mm512_unpacklo_epi64,
};

use super::comb::push_odd_multiples;
use super::field::{LANES, Words, load, split, store};
use super::point::{AffinePoints, JacobianPoints, normalize_all, to_affine_all};
use crate::p256::point::Affine;
use crate::p256::windows::{ENTRIES_PER_WINDOW, WINDOWS};

/// The entries of a table, in the Montgomery form of the lanes. An entry has 64 bytes, four words
/// of x and four words of y, so that one load reads it.
pub(crate) struct PackedTable(Vec<Words>);

/// Builds the table of a point P from the points 2⁸ʷ·P, one for each window w. It processes eight
/// windows at a time.
#[target_feature(enable = "avx512f,avx512ifma")]
pub(super) fn pack_multiples(powers: &[Affine]) -> PackedTable {
    let mut packed = vec![[0; LANES]; powers.len() * ENTRIES_PER_WINDOW];
    let mut sums = Vec::with_capacity(ENTRIES_PER_WINDOW);
    for (powers, packed) in
        powers.as_chunks().0.iter().zip(packed.chunks_exact_mut(LANES * ENTRIES_PER_WINDOW))
    {
        sums.clear();
        push_odd_multiples(&AffinePoints::from_affine(powers), ENTRIES_PER_WINDOW, &mut sums);
        let (entries, _) = normalize_all(&sums, &mut Vec::new());
        for (index, entry) in entries.iter().enumerate() {
            let ([x0, x1, x2, x3], [y0, y1, y2, y3]) = (entry.x.to_words(), entry.y.to_words());
            for (window, row) in transpose([x0, x1, x2, x3, y0, y1, y2, y3]).into_iter().enumerate() {
                packed[window * ENTRIES_PER_WINDOW + index] = store(row);
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
