//! The emulsifier maps of MAYO ("whipping"): vectors as polynomials in GF(16)\[z\]/f(z), multiplied
//! by powers of z and added (MAYO round 2: the matrices E of `MAYO.Sign` and `MAYO.Verify`).
//!
//! The matrices E of the specification are multiplications by z⁰, z¹ and so on. Element `i` of a
//! vector is the coefficient of zⁱ. f(z) = z⁶⁴ + x³ z³ + x z² + x³.

use super::field::{SETS, Vector, times_x};

/// The power of z for each pair of sets. The pairs are counted with the first set ascending and the
/// second set descending.
const POWERS: [[u32; SETS]; SETS] = [[3, 2, 1, 0], [2, 6, 5, 4], [1, 5, 8, 7], [0, 4, 7, 9]];

/// An unreduced sum of polynomials, each multiplied by a power of z. It has one word more than a
/// vector.
struct Sum([u64; 5]);

impl Sum {
    /// Adds `vector` times z to the power `power`, at most 9.
    #[inline(always)]
    fn add(&mut self, vector: &Vector, power: u32) {
        let shift = 4 * power;
        let mut carry = 0;
        for (sum, word) in self.0.iter_mut().zip(vector) {
            *sum ^= (word << shift) | carry;
            // In two steps, because a shift by 64 bits is not allowed.
            carry = (word >> 1) >> (63 - shift);
        }
        self.0[4] ^= carry;
    }

    /// Returns the remainder modulo f: z⁶⁴ = x³ + x z² + x³ z³.
    #[inline(always)]
    fn reduce(&self) -> Vector {
        let [low, second, third, fourth, high] = self.0;
        let twice = times_x(high);
        let eightfold = times_x(times_x(twice));
        // At most nine powers are above 63, so no bit is lost.
        [low ^ eightfold ^ (twice << 8) ^ (eightfold << 12), second, third, fourth]
    }
}

/// Returns the value of the whipped map. `products[i][j]` is the product of the vectors of the sets
/// `i` and `j` with the matrices between them.
pub(super) fn whip(products: &[[Vector; SETS]; SETS]) -> Vector {
    let mut sum = Sum([0; 5]);
    for (row, powers) in products.iter().zip(&POWERS) {
        for (product, &power) in row.iter().zip(powers) {
            sum.add(product, power);
        }
    }
    sum.reduce()
}

/// Returns the coefficients of the unknown `column` of each set in the linear system. `products[i]`
/// is the product of the vinegar variables of set `i` with column `column` of the matrices L.
#[inline(always)]
pub(super) fn whip_linear(products: &[Vector; SETS]) -> [Vector; SETS] {
    POWERS.map(|powers| {
        let mut sum = Sum([0; 5]);
        for (product, power) in products.iter().zip(powers) {
            sum.add(product, power);
        }
        sum.reduce()
    })
}

#[cfg(test)]
mod tests {
    use super::super::field::{add, scale};
    use super::*;

    /// Returns `vector` times z, by the definition of f.
    fn times_z(vector: &Vector) -> Vector {
        let top = (vector[3] >> 60) as u8;
        let shifted: Vector = std::array::from_fn(|index| {
            (vector[index] << 4) | if index == 0 { 0 } else { vector[index - 1] >> 60 }
        });
        add(&shifted, &[scale(0x8208, top), 0, 0, 0])
    }

    #[test]
    fn powers_follow_the_order_of_the_specification() {
        let pairs = (0..SETS).flat_map(|first| (first..SETS).rev().map(move |second| (first, second)));
        for (power, (first, second)) in (0..).zip(pairs) {
            assert_eq!((POWERS[first][second], POWERS[second][first]), (power, power));
        }
    }

    #[test]
    fn sums_are_those_of_single_steps() {
        let vector = |seed: u64| {
            std::array::from_fn(|index| (seed + index as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15))
        };
        let products: [[Vector; SETS]; SETS] = std::array::from_fn(|row| {
            std::array::from_fn(|column| vector(16 * row as u64 + 4 * column as u64))
        });
        let shifted = |vector: &Vector, power: u32| (0..power).fold(*vector, |vector, _| times_z(&vector));
        let mut expected = [0; 4];
        for row in 0..SETS {
            for column in 0..SETS {
                expected = add(&expected, &shifted(&products[row][column], POWERS[row][column]));
            }
        }
        assert_eq!(whip(&products), expected);
        for (set, found) in whip_linear(&products[0]).iter().enumerate() {
            let sum = (0..SETS)
                .fold([0; 4], |sum, other| add(&sum, &shifted(&products[0][other], POWERS[set][other])));
            assert_eq!(*found, sum);
        }
    }
}
