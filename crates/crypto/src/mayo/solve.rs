//! Solves systems of linear equations over GF(16) in constant time (MAYO round 2: `SampleSolution`,
//! after its randomisation).
//!
//! The specification brings the system to echelon form with row operations. Its solution is zero
//! except in the pivot columns, which are the first independent columns. This module computes the
//! same solution with Gauss-Jordan elimination on columns. Each column is one [`Vector`]. Therefore
//! rows are never swapped, and the row of a pivot stays secret inside a mask.

use super::field::{self, Vector, add, first_nonzero, invert, scale, select};
use super::wiped::WipedArray;

/// Number of unknowns of the system: k × o.
pub(super) const UNKNOWNS: usize = 68;
/// The column of the right side.
pub(super) const RIGHT_SIDE: usize = UNKNOWNS;
/// Number of columns of a system. The last column is padding, because kernels process two columns
/// at a time.
const COLUMNS: usize = 70;

/// A system of 64 equations: the columns of the unknowns, then the right side.
pub(super) type System = WipedArray<COLUMNS>;

/// A solution of a system.
pub(super) type Solution = [u8; UNKNOWNS];

/// Returns a solution, or `None` if the rank is below 64. The contents of `system` are undefined
/// afterwards.
///
/// The time reveals only whether the rank is below 64. This is allowed, because the specification
/// then starts a new attempt.
pub(super) fn solve(system: &mut System) -> Option<Solution> {
    let mut used_rows = [0; 4];
    let mut pivots = WipedArray::zero();
    for column in 0..UNKNOWNS {
        let (done, rest) = system[..=RIGHT_SIDE].split_at_mut(column + 1);
        pivots[column] = first_nonzero(&done[column], &used_rows);
        used_rows = add(&used_rows, &pivots[column]);
        eliminate(&done[column], &pivots[column], rest);
    }
    read_solution(&system[RIGHT_SIDE], &used_rows, &pivots)
}

/// Reads the solution from the right side after the elimination: each pivot column has a one in its
/// row and zeros elsewhere. `used_rows` contains the rows of all `pivots`.
pub(super) fn read_solution(
    right: &Vector,
    used_rows: &Vector,
    pivots: &WipedArray<UNKNOWNS>,
) -> Option<Solution> {
    let full_rank = *used_rows == [u64::MAX; 4];
    full_rank.then(|| std::array::from_fn(|column| select(right, &pivots[column])))
}

/// Adds multiples of the `pivot` row to all other rows so that they become zero in this column, and
/// scales the pivot row so that it becomes one. Does nothing if `pivot` selects no row.
#[inline(always)]
fn eliminate(column: &Vector, pivot: &Vector, rest: &mut [Vector]) {
    let inverse = invert(select(column, pivot));
    // The factor of the pivot row for each row. In the pivot row, it is the inverse, because the
    // scaled row replaces the row.
    let factors: Vector = std::array::from_fn(|index| {
        (scale(column[index], inverse) & !pivot[index]) | (scale(field::ONES, inverse) & pivot[index])
    });
    let multiples = field::multiples(&factors);
    for vector in rest {
        let masks = field::masks(select(vector, pivot));
        for (index, word) in vector.iter_mut().enumerate() {
            *word = (*word & !pivot[index])
                ^ (multiples[0][index] & masks[0])
                ^ (multiples[1][index] & masks[1])
                ^ (multiples[2][index] & masks[2])
                ^ (multiples[3][index] & masks[3]);
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::field::EQUATIONS;
    use super::super::kernel::Kernel;
    use super::*;

    /// Solves the system by rows, with the echelon form of the specification.
    fn by_rows(system: &[Vector]) -> Option<Solution> {
        let product = |left: u8, right: u8| scale(u64::from(left), right) as u8;
        let element = |row: usize, column: usize| (system[column][row / 16] >> (4 * (row % 16))) as u8 & 15;
        let mut rows: Vec<Vec<u8>> =
            (0..EQUATIONS).map(|row| (0..=RIGHT_SIDE).map(|column| element(row, column)).collect()).collect();
        let mut pivots = Vec::new();
        for column in 0..UNKNOWNS {
            let top = pivots.len();
            let Some(found) = (top..EQUATIONS).find(|&row| rows[row][column] != 0) else { continue };
            rows.swap(top, found);
            let inverse = invert(rows[top][column]);
            rows[top].iter_mut().for_each(|value| *value = product(*value, inverse));
            let pivot = rows[top].clone();
            for row in &mut rows[top + 1..] {
                let factor = row[column];
                row.iter_mut().zip(&pivot).for_each(|(value, pivot)| *value ^= product(*pivot, factor));
            }
            pivots.push(column);
        }
        let mut solution = [0; UNKNOWNS];
        for (row, &pivot) in pivots.iter().enumerate().rev() {
            let sum = (pivot + 1..UNKNOWNS)
                .fold(0, |sum, column| sum ^ product(rows[row][column], solution[column]));
            solution[pivot] = rows[row][RIGHT_SIDE] ^ sum;
        }
        (pivots.len() == EQUATIONS).then_some(solution)
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(22))]

        /// Some columns depend on others: they are set to the sum of two columns.
        #[test]
        fn solutions_are_those_of_the_echelon_form(
            columns in proptest::collection::vec(any::<Vector>(), UNKNOWNS + 1),
            dependent in proptest::collection::vec((0..UNKNOWNS, 0..UNKNOWNS), 0..6),
        ) {
            let mut columns = columns;
            for &(to, from) in &dependent {
                columns[to] = add(&columns[from], &columns[(from + 1) % (UNKNOWNS)]);
            }
            let expected = by_rows(&columns);
            for kernel in Kernel::all() {
                let mut system = WipedArray::zero();
                system[..columns.len()].copy_from_slice(&columns);
                let found = kernel.solve(&mut system);
                prop_assert_eq!(found, expected, "{:?}", kernel.implementation());
            }
            if let Some(solution) = expected {
                let sum = solution.iter().zip(&columns).fold([0; 4], |sum, (&factor, column)| {
                    add(&sum, &column.map(|word| scale(word, factor)))
                });
                prop_assert_eq!(sum, columns[RIGHT_SIDE]);
            }
        }
    }

    /// Returns the identity, except for the last row, in which only the unknown 66 has a
    /// coefficient.
    fn nearly_identity(coefficient: u64) -> System {
        let mut system = WipedArray::zero();
        for row in 0..EQUATIONS - 1 {
            system[row][row / 16] = 1 << (4 * (row % 16));
        }
        system[66][3] = coefficient << 60;
        system[RIGHT_SIDE][3] = 7 << 60;
        system
    }

    #[test]
    fn a_system_without_full_rank_has_no_solution() {
        for kernel in Kernel::all() {
            assert_eq!(kernel.solve(&mut WipedArray::zero()), None);
            assert_eq!(kernel.solve(&mut nearly_identity(0)), None);
            let mut expected = [0; UNKNOWNS];
            expected[66] = 1;
            assert_eq!(kernel.solve(&mut nearly_identity(7)), Some(expected));
        }
    }
}
