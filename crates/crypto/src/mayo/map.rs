//! The public map: 64 quadratic polynomials in 81 variables, and its evaluation (MAYO round 2:
//! `MAYO.ExpandPK` and `MAYO.Verify`).

use super::field::{SETS, Vector, decode};
use super::hash::KeyStream;
use super::kernel::Scalars;
use super::whip::whip;
use super::wiped::WipedArray;
use crate::hash::LibraryFailed;

/// Number of variables: the parameter n.
pub(super) const VARIABLES: usize = 81;
/// Number of oil variables, which are the last ones: the parameter o.
pub(super) const OIL_VARIABLES: usize = 17;
/// Number of vinegar variables, which are the first ones: n − o.
pub(super) const VINEGAR_VARIABLES: usize = VARIABLES - OIL_VARIABLES;

/// Length of the seed of P1 and P2 in octets.
pub(super) const PUBLIC_SEED_OCTETS: usize = 16;
/// Number of coefficients of one polynomial between vinegar variables. P1 is an upper triangle.
const P1_ENTRIES: usize = VINEGAR_VARIABLES * (VINEGAR_VARIABLES + 1) / 2;
/// Number of coefficients between a vinegar and an oil variable.
const P2_ENTRIES: usize = VINEGAR_VARIABLES * OIL_VARIABLES;
/// Number of coefficients between oil variables.
pub(super) const P3_ENTRIES: usize = OIL_VARIABLES * (OIL_VARIABLES + 1) / 2;
/// Length of a public key in octets: the seed and P3.
pub(super) const PUBLIC_KEY_OCTETS: usize = PUBLIC_SEED_OCTETS + 32 * P3_ENTRIES;

/// The upper triangle of the 64 matrices. Each entry has one element of every matrix. It has
/// 106,272 bytes.
pub(super) struct PublicMap {
    /// The rows in order, each from the diagonal on.
    entries: Vec<Vector>,
}

/// Returns the index at which a row begins. Row 0 has `VARIABLES` entries, and each further row has
/// one entry less.
const fn row_start(row: usize) -> usize {
    row * (2 * VARIABLES + 1 - row) / 2
}

impl PublicMap {
    /// Expands P1 and P2 from a seed. P3 is zero.
    ///
    /// # Errors
    /// If the library has no memory.
    pub(super) fn expand(seed: &[u8; PUBLIC_SEED_OCTETS]) -> Result<Self, LibraryFailed> {
        let mut stream = KeyStream::new(seed)?;
        // P1 comes before P2 in the stream, and both are in the order of rows.
        let mut entries = vec![[0; 4]; P1_ENTRIES + P2_ENTRIES + P3_ENTRIES];
        let mut piece = [[0; 32]; VINEGAR_VARIABLES];
        for part in
            [|row: usize| 0..VINEGAR_VARIABLES - row, |row: usize| VINEGAR_VARIABLES - row..VARIABLES - row]
        {
            for row in 0..VINEGAR_VARIABLES {
                let range = part(row);
                stream.next(&mut piece[..range.len()])?;
                let start = row_start(row);
                for (entry, octets) in entries[start + range.start..start + range.end].iter_mut().zip(&piece)
                {
                    *entry = decode(octets);
                }
            }
        }
        Ok(Self { entries })
    }

    /// Expands the map of a public key.
    ///
    /// # Errors
    /// If the library has no memory.
    pub(super) fn parse(key: &[u8; PUBLIC_KEY_OCTETS]) -> Result<Self, LibraryFailed> {
        let Some((seed, p3)) = key.split_first_chunk() else {
            unreachable!("the key is longer than its seed")
        };
        let mut map = Self::expand(seed)?;
        for (entry, octets) in map.p3_mut().iter_mut().zip(p3.as_chunks().0) {
            *entry = decode(octets);
        }
        Ok(map)
    }

    /// Returns P3, which is the end of the triangle.
    pub(super) fn p3_mut(&mut self) -> &mut [Vector] {
        &mut self.entries[P1_ENTRIES + P2_ENTRIES..]
    }

    /// Returns the entries of a row from the diagonal on.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[Vector] {
        &self.entries[row_start(row)..][..VARIABLES - row]
    }

    /// Returns the value of the whipped map at the vectors of the sets. Only the first `count`
    /// variables of each vector are nonzero. The time does not depend on their values.
    pub(super) fn evaluate(&self, scalars: &Scalars, count: usize) -> Vector {
        let mut products = WipedArray::<{ SETS * VARIABLES }>::zero();
        for row in 0..count {
            let sums = scalars.combine(row, &self.row(row)[..count - row]);
            for (set, sum) in sums.into_iter().enumerate() {
                products[set * VARIABLES + row] = sum;
            }
        }
        let squares: [_; SETS] =
            std::array::from_fn(|set| scalars.combine(0, &products[set * VARIABLES..][..count]));
        whip(&squares)
    }
}
