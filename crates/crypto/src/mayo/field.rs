//! Arithmetic in GF(16) = GF(2)\[x\]/(x⁴ + x + 1), with sixteen elements in a word (MAYO round 2).
//!
//! All functions run in constant time: they have no branches and no look-ups that depend on values.

use std::hint::black_box;

/// Number of equations of the system, and of elements of a [`Vector`]: the parameter m.
pub(super) const EQUATIONS: usize = 64;

/// 64 elements of GF(16), one for each equation. Element `i` is in the bits from `4 * (i % 16)` of
/// word `i / 16`. In little-endian octets, this is the encoding of vectors in the specification.
pub(super) type Vector = [u64; 4];

/// Number of sets of scalars that are processed at once: the parameter k.
pub(super) const SETS: usize = 4;

/// Four scalars for one vector, one of each set. The values are below 16.
pub(super) type FourScalars = [u8; SETS];

/// The lowest bit of every element.
const LOWEST_BITS: u64 = 0x1111_1111_1111_1111;

/// The element 1, sixteen times.
pub(super) const ONES: u64 = LOWEST_BITS;

/// Reads a vector from its 32 octets.
pub(super) fn decode(octets: &[u8; 32]) -> Vector {
    let (words, _) = octets.as_chunks::<8>();
    std::array::from_fn(|index| u64::from_le_bytes(words[index]))
}

/// Returns the 32 octets of a vector.
pub(super) fn encode(vector: &Vector) -> [u8; 32] {
    let mut octets = [0; 32];
    for (chunk, word) in octets.as_chunks_mut::<8>().0.iter_mut().zip(vector) {
        *chunk = word.to_le_bytes();
    }
    octets
}

/// Multiplies every element by x.
#[inline(always)]
pub(super) const fn times_x(word: u64) -> u64 {
    let carry = (word >> 3) & LOWEST_BITS;
    // x⁴ = x + 1.
    ((word & !(LOWEST_BITS << 3)) << 1) ^ carry ^ (carry << 1)
}

/// Returns all ones if the bit `bit` is set, otherwise zero.
#[inline(always)]
const fn mask(element: u8, bit: u32) -> u64 {
    (((element >> bit) & 1) as u64).wrapping_neg()
}

/// Returns the masks of the four bits of an element, lowest first.
#[inline(always)]
pub(super) fn masks(element: u8) -> [u64; 4] {
    std::array::from_fn(|bit| mask(element, bit as u32))
}

/// Multiplies every element of `word` by `element`.
#[inline(always)]
pub(super) fn scale(word: u64, element: u8) -> u64 {
    let masks = masks(element);
    let (twice, fourfold) = (times_x(word), times_x(times_x(word)));
    (word & masks[0]) ^ (twice & masks[1]) ^ (fourfold & masks[2]) ^ (times_x(fourfold) & masks[3])
}

/// Returns a vector multiplied by 1, x, x² and x³.
#[inline(always)]
pub(super) fn multiples(vector: &Vector) -> [Vector; 4] {
    let twice = vector.map(times_x);
    let fourfold = twice.map(times_x);
    [*vector, twice, fourfold, fourfold.map(times_x)]
}

/// Returns the inverse of an element, and 0 for 0.
#[inline(always)]
pub(super) fn invert(element: u8) -> u8 {
    let product = |left: u8, right: u8| scale(u64::from(left), right) as u8;
    // a¹⁵ = 1, so the inverse is a¹⁴.
    let square = product(element, element);
    let fourth = product(square, square);
    product(product(square, fourth), product(fourth, fourth))
}

/// Returns the sum of two vectors.
#[inline(always)]
pub(super) fn add(left: &Vector, right: &Vector) -> Vector {
    std::array::from_fn(|index| left[index] ^ right[index])
}

/// Returns the element that `position` selects with all ones; `position` is zero elsewhere. Returns
/// 0 if `position` selects no element.
#[inline(always)]
pub(super) fn select(vector: &Vector, position: &Vector) -> u8 {
    let word = (vector[0] & position[0])
        ^ (vector[1] & position[1])
        ^ (vector[2] & position[2])
        ^ (vector[3] & position[3]);
    // At most one element remains. The highest element of the product is the sum of all elements,
    // without carries.
    (word.wrapping_mul(LOWEST_BITS) >> 60) as u8
}

/// Returns a mask that selects the first element of `vector` that is not zero and not in
/// `used_rows`: all ones at this element. The mask is zero if there is no such element.
#[inline(always)]
pub(super) fn first_nonzero(vector: &Vector, used_rows: &Vector) -> Vector {
    let mut not_yet_found = u64::MAX;
    std::array::from_fn(|index| {
        let word = vector[index] & !used_rows[index];
        let word = (word | (word >> 1) | (word >> 2) | (word >> 3)) & LOWEST_BITS & not_yet_found;
        let first = word & word.wrapping_neg();
        // Hides from the compiler that this is a mask for "element found", so that it does not
        // generate a branch.
        let found = black_box((word | word.wrapping_neg()) >> 63);
        not_yet_found &= found.wrapping_sub(1);
        first.wrapping_mul(15)
    })
}

/// Returns element `index` of a string of elements. The first element is in the lower half of an
/// octet.
#[inline(always)]
pub(super) const fn nibble(octets: &[u8], index: usize) -> u8 {
    (octets[index / 2] >> (4 * (index % 2))) & 15
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Schoolbook multiplication in GF(16).
    fn product(left: u8, right: u8) -> u8 {
        let mut sum = (0..4).filter(|bit| right >> bit & 1 == 1).fold(0, |sum, bit| sum ^ (left << bit));
        for bit in (4..8).rev() {
            if sum >> bit & 1 == 1 {
                sum ^= 0b1_0011 << (bit - 4);
            }
        }
        sum
    }

    #[test]
    fn products_are_those_of_the_schoolbook() {
        for left in 0..16_u8 {
            for right in 0..16_u8 {
                let expected = u64::from(product(left, right)) * LOWEST_BITS;
                assert_eq!(scale(u64::from(left) * LOWEST_BITS, right), expected, "{left} * {right}");
            }
        }
    }

    #[test]
    fn inverses_give_one() {
        assert_eq!(invert(0), 0);
        for element in 1..16 {
            assert_eq!(product(element, invert(element)), 1, "{element}");
        }
    }

    #[test]
    fn the_first_open_element_is_selected() {
        let mut vector = [0; 4];
        vector[1] = 0xb0;
        vector[3] = 0x7000_0000_0000_0005;
        let mut used_rows = [0; 4];
        for (word, bit, element) in [(1, 4, 0xb), (3, 0, 5), (3, 60, 7)] {
            let selected = first_nonzero(&vector, &used_rows);
            let mut expected = [0; 4];
            expected[word] = 15 << bit;
            assert_eq!(selected, expected);
            assert_eq!(select(&vector, &selected), element);
            used_rows = add(&used_rows, &selected);
        }
        assert_eq!(first_nonzero(&vector, &used_rows), [0; 4]);
        assert_eq!(select(&vector, &[0; 4]), 0);
    }

    #[test]
    fn octets_hold_the_first_element_in_the_lower_half() {
        let octets = std::array::from_fn(|index| (index as u8).wrapping_mul(37));
        let vector = decode(&octets);
        assert_eq!(encode(&vector), octets);
        for index in 0..EQUATIONS {
            assert_eq!((vector[index / 16] >> (4 * (index % 16))) as u8 & 15, nibble(&octets, index));
        }
    }
}
