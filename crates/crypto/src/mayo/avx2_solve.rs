//! Solves systems of linear equations with AVX2, like [`super::solve`]: in constant time, by
//! columns, with one column in a register.
//!
//! Look-ups with secret indices are made in registers. A multiplication by a scalar uses a table of
//! its multiples, which is computed from logarithms: GF(16) without zero is a cyclic group that x
//! generates.
//!
//! This module uses no closures: functions that take closures, such as `map` of arrays, are
//! compiled without AVX2 and would not be inlined.

use std::arch::x86_64::{
    __m128i, __m256i, _mm_cvtsi32_si128, _mm256_adds_epu8, _mm256_and_si256, _mm256_andnot_si256,
    _mm256_cmpeq_epi8, _mm256_min_epu8, _mm256_movemask_epi8, _mm256_or_si256, _mm256_permute2x128_si256,
    _mm256_set1_epi8, _mm256_setzero_si256, _mm256_shuffle_epi8, _mm256_slli_epi16, _mm256_srl_epi16,
    _mm256_srli_epi16, _mm256_sub_epi8, _mm256_xor_si256,
};

use super::avx2::{load, store};
use super::field::{Vector, times_x};
use super::solve::{RIGHT_SIDE, Solution, System, UNKNOWNS, read_solution};
use super::wiped::WipedArray;

/// The logarithm of zero. It is so large that every sum with it is above 127; the look-up of such a
/// sum returns zero.
const LOGARITHM_OF_ZERO: u8 = 0xc0;

/// Powers of x with exponents below 15.
const POWERS: [u8; 16] = {
    let mut powers = [0; 16];
    powers[0] = 1;
    let mut exponent = 1;
    while exponent < 15 {
        powers[exponent] = times_x(powers[exponent - 1] as u64) as u8;
        exponent += 1;
    }
    powers
};

/// The logarithm of each element.
const LOGARITHMS: [u8; 16] = {
    let mut logarithms = [LOGARITHM_OF_ZERO; 16];
    let mut exponent = 0;
    while exponent < 15 {
        logarithms[POWERS[exponent] as usize] = exponent as u8;
        exponent += 1;
    }
    logarithms
};

/// The logarithm of the inverse of each element.
const LOGARITHMS_OF_INVERSES: [u8; 16] = {
    let mut logarithms = [LOGARITHM_OF_ZERO; 16];
    let mut element = 1;
    while element < 16 {
        logarithms[element] = (15 - LOGARITHMS[element]) % 15;
        element += 1;
    }
    logarithms
};

/// The powers and the logarithms, in both halves of a register.
static POWER_TABLE: Vector = twice(&POWERS);
static LOGARITHM_TABLE: Vector = twice(&LOGARITHMS);
static INVERSE_TABLE: Vector = twice(&LOGARITHMS_OF_INVERSES);

/// The index of each byte of a register.
static BYTE_INDICES: Vector =
    [0x0706_0504_0302_0100, 0x0f0e_0d0c_0b0a_0908, 0x1716_1514_1312_1110, 0x1f1e_1d1c_1b1a_1918];

/// Adding this to an index from 0 to 31, without carries between bytes, gives an index below 16 in
/// the half of the register that contains the indexed byte.
static HALF_OFFSETS: Vector = [0, 0, 0x1010_1010_1010_1010, 0x1010_1010_1010_1010];

/// Repeats 16 bytes in both halves of a register, whose words are little-endian.
const fn twice(octets: &[u8; 16]) -> Vector {
    let mut words = [0; 4];
    let mut byte_index = 0;
    while byte_index < 32 {
        words[byte_index / 8] |= (octets[byte_index % 16] as u64) << (8 * (byte_index % 8));
        byte_index += 1;
    }
    words
}

/// Returns 15 in each byte: the mask of the lower halves of bytes.
#[inline]
#[target_feature(enable = "avx2")]
fn lower_halves() -> __m256i {
    _mm256_set1_epi8(15)
}

/// The row of a pivot.
struct PivotRow {
    /// All ones at the element of this row.
    mask: __m256i,
    /// Index of the byte with the element, in each half of a register. A value above 127 means that
    /// the byte is not in this half.
    byte_index: __m256i,
    /// Number of bits by which to shift the byte to get the element.
    shift: __m128i,
}

/// Returns a bit for each byte that is zero.
#[target_feature(enable = "avx2")]
fn zeros(octets: __m256i) -> u32 {
    _mm256_movemask_epi8(_mm256_cmpeq_epi8(octets, _mm256_setzero_si256())) as u32
}

/// Chooses a row that is not in `used_rows` and whose element in `column` is not zero. The mask is
/// empty if no such row exists.
#[target_feature(enable = "avx2,bmi1")]
fn choose_row(column: __m256i, used_rows: __m256i) -> PivotRow {
    let candidates = _mm256_andnot_si256(used_rows, column);
    let lower = zeros(_mm256_and_si256(candidates, lower_halves()));
    let upper = zeros(_mm256_andnot_si256(lower_halves(), candidates));
    // 64 if there is no such row. With BMI1, this is one instruction without a branch.
    let found = (!(u64::from(lower) | (u64::from(upper) << 32))).trailing_zeros();
    let shift = 4 * ((found / 32) & 1);
    let byte_index = _mm256_set1_epi8(((found & 31) | ((found & 64) << 1)) as i8);
    let octet = _mm256_cmpeq_epi8(byte_index, load(&BYTE_INDICES));
    PivotRow {
        mask: _mm256_and_si256(octet, _mm256_set1_epi8((15 << shift) as u8 as i8)),
        // An index above 15 belongs to the other half; the addition makes it larger than 127.
        byte_index: _mm256_adds_epu8(
            _mm256_xor_si256(byte_index, load(&HALF_OFFSETS)),
            _mm256_set1_epi8(0x70),
        ),
        shift: _mm_cvtsi32_si128(shift as i32),
    }
}

/// Returns the elements of two columns in a row. Each element fills all bytes of one half of the
/// register.
#[target_feature(enable = "avx2")]
fn elements(columns: [__m256i; 2], row: &PivotRow) -> __m256i {
    let first = _mm256_shuffle_epi8(columns[0], row.byte_index);
    let second = _mm256_shuffle_epi8(columns[1], row.byte_index);
    // In each register, one half is zero.
    let octets = _mm256_or_si256(
        _mm256_permute2x128_si256::<0x20>(first, second),
        _mm256_permute2x128_si256::<0x31>(first, second),
    );
    _mm256_and_si256(_mm256_srl_epi16(octets, row.shift), lower_halves())
}

/// Returns the multiples of the elements with these logarithms, which fill all bytes of each half.
/// Byte `i` of the result is `i` times the element.
#[target_feature(enable = "avx2")]
fn multiples(logarithms: __m256i) -> __m256i {
    let sum = _mm256_adds_epu8(logarithms, load(&LOGARITHM_TABLE));
    // x¹⁵ = 1: the exponent is the minimum of the sum and the sum minus 15, which wraps around if
    // it would be negative.
    let exponent = _mm256_min_epu8(sum, _mm256_sub_epi8(sum, _mm256_set1_epi8(15)));
    _mm256_shuffle_epi8(load(&POWER_TABLE), exponent)
}

/// Returns the factors of the pivot row for all rows, in the lower and upper halves of bytes.
#[target_feature(enable = "avx2")]
fn row_factors(column: __m256i, row: &PivotRow) -> [__m256i; 2] {
    let element = elements([column, column], row);
    let table = multiples(_mm256_shuffle_epi8(load(&INVERSE_TABLE), element));
    // In the pivot row, the column counts as one, so that the factor is the inverse: the row is
    // scaled instead of cleared.
    let column = _mm256_or_si256(
        _mm256_andnot_si256(row.mask, column),
        _mm256_and_si256(row.mask, _mm256_set1_epi8(0x11)),
    );
    let lower = _mm256_and_si256(column, lower_halves());
    let upper = _mm256_and_si256(_mm256_srli_epi16::<4>(column), lower_halves());
    [_mm256_shuffle_epi8(table, lower), _mm256_shuffle_epi8(table, upper)]
}

/// Returns a column after the elimination. `table` has the multiples of its element in the pivot
/// row.
#[target_feature(enable = "avx2")]
fn eliminate(column: __m256i, table: __m256i, factors: [__m256i; 2], row: &PivotRow) -> __m256i {
    let lower = _mm256_shuffle_epi8(table, factors[0]);
    let upper = _mm256_shuffle_epi8(table, factors[1]);
    let multiple = _mm256_xor_si256(lower, _mm256_slli_epi16::<4>(upper));
    _mm256_xor_si256(_mm256_andnot_si256(row.mask, column), multiple)
}

/// Solves a system; see [`super::solve::solve`].
#[target_feature(enable = "avx2,bmi1")]
pub(super) fn solve(system: &mut System) -> Option<Solution> {
    let mut used_rows = _mm256_setzero_si256();
    let mut pivots = WipedArray::<UNKNOWNS>::zero();
    let (pairs, _) = system.as_chunks_mut::<2>();
    for column in 0..UNKNOWNS {
        let pivot_column = load(&pairs[column / 2][column % 2]);
        let row = choose_row(pivot_column, used_rows);
        used_rows = _mm256_or_si256(used_rows, row.mask);
        pivots[column] = store(row.mask);
        let factors = row_factors(pivot_column, &row);
        // The first pair may include the pivot column, which is not used again.
        for pair in &mut pairs[column.div_ceil(2)..] {
            let columns = [load(&pair[0]), load(&pair[1])];
            let logarithms = _mm256_shuffle_epi8(load(&LOGARITHM_TABLE), elements(columns, &row));
            let tables = multiples(logarithms);
            let first = _mm256_permute2x128_si256::<0x00>(tables, tables);
            let second = _mm256_permute2x128_si256::<0x11>(tables, tables);
            pair[0] = store(eliminate(columns[0], first, factors, &row));
            pair[1] = store(eliminate(columns[1], second, factors, &row));
        }
    }
    read_solution(&system[RIGHT_SIDE], &store(used_rows), &pivots)
}
