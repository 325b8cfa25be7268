//! Tables of multiples for kernels that look up elements with a byte shuffle. A table is in a
//! register, so that no address depends on a secret. Each byte of a table has the multiples of the
//! scalars of two sets, so that one look-up serves both sets.

use super::field::{FourScalars, times_x};
use super::wiped::WipedVec;

/// The lowest bit of every byte.
const LOWEST_BITS: u64 = 0x0101_0101_0101_0101;

/// Returns two tables of 16 bytes for each four scalars. In the first table, entry `i` has `i`
/// times the scalar of the first set in its lower half, and `i` times the scalar of the second set
/// in its upper half. The second table has the same for the third and the fourth set.
pub(super) fn tables(scalars: &[FourScalars]) -> WipedVec {
    let mut tables = WipedVec::zero(scalars.len());
    for (table, four) in tables.iter_mut().zip(scalars) {
        let (first, second) = (pair_table(four[0], four[1]), pair_table(four[2], four[3]));
        *table = [first[0], first[1], second[0], second[1]];
    }
    tables
}

/// Returns the table of two scalars, as two words.
#[inline(always)]
fn pair_table(lower: u8, upper: u8) -> [u64; 2] {
    let once = u64::from(lower | (upper << 4));
    let twice = times_x(once);
    let fourfold = times_x(twice);
    // Each constant has a 1 in each byte whose index has this bit set, so the product has a copy of
    // the factor in each of these bytes.
    let low = once.wrapping_mul(0x0100_0100_0100_0100)
        ^ twice.wrapping_mul(0x0101_0000_0101_0000)
        ^ fourfold.wrapping_mul(0x0101_0101_0000_0000);
    [low, low ^ times_x(fourfold).wrapping_mul(LOWEST_BITS)]
}

#[cfg(test)]
mod tests {
    use super::super::field::scale;
    use super::*;

    #[test]
    fn entries_are_multiples() {
        for four in [[0, 1, 2, 15], [7, 8, 9, 3], [12, 0, 5, 10]] {
            let table = tables(&[four])[0];
            let octets: Vec<u8> = table.iter().flat_map(|word| word.to_le_bytes()).collect();
            for (pair, entries) in four.chunks(2).zip(octets.chunks(16)) {
                for (factor, entry) in (0..16).zip(entries) {
                    let product = |scalar: u8| scale(u64::from(scalar), factor) as u8;
                    assert_eq!(*entry, product(pair[0]) | (product(pair[1]) << 4), "{pair:?} * {factor}");
                }
            }
        }
    }
}
