//! The public map: 64 quadratic polynomials in 81 variables, and its evaluation (MAYO round 2:
//! `MAYO.ExpandPK` and `MAYO.Verify`).

use super::field::{SETS, Vector, decode};
use super::hash::{KeyStream, LibraryFailed};
use super::kernel::Scalars;
use super::whip::whip;
use super::wiped::Wiped;

/// Variables: the parameter n.
pub(super) const N: usize = 81;
/// Oil variables, the last ones: the parameter o.
pub(super) const O: usize = 17;
/// Vinegar variables, the first ones: n − o.
pub(super) const V: usize = N - O;

/// Octets of the seed that P1 and P2 are made of.
pub(super) const PUBLIC_SEED_OCTETS: usize = 16;
/// Coefficients of one polynomial between vinegar variables: P1 is an upper triangle.
const P1_ENTRIES: usize = V * (V + 1) / 2;
/// Coefficients between a vinegar and an oil variable.
const P2_ENTRIES: usize = V * O;
/// Coefficients between oil variables.
pub(super) const P3_ENTRIES: usize = O * (O + 1) / 2;
/// Octets of a public key: the seed and P3.
pub(super) const PUBLIC_KEY_OCTETS: usize = PUBLIC_SEED_OCTETS + 32 * P3_ENTRIES;

/// The upper triangle of the 64 matrices, an element of all of them in each entry. Takes 106,272 octets.
pub(super) struct PublicMap {
    /// Row after row, each from the diagonal on.
    entries: Vec<Vector>,
}

/// Where a row begins: row 0 has N entries, each further one has one less.
const fn row_start(row: usize) -> usize {
    row * (2 * N + 1 - row) / 2
}

impl PublicMap {
    /// P1 and P2 of a seed, and zero for P3.
    ///
    /// # Errors
    /// Where the library has no memory.
    pub(super) fn expand(seed: &[u8; PUBLIC_SEED_OCTETS]) -> Result<Self, LibraryFailed> {
        let mut stream = KeyStream::new(seed)?;
        // P1 comes whole before P2, and both in the order of rows.
        let mut entries = vec![[0; 4]; P1_ENTRIES + P2_ENTRIES + P3_ENTRIES];
        let mut piece = [[0; 32]; V];
        for part in [|row: usize| 0..V - row, |row: usize| V - row..N - row] {
            for row in 0..V {
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

    /// The map of a public key.
    ///
    /// # Errors
    /// Where the library has no memory.
    pub(super) fn parse(key: &[u8; PUBLIC_KEY_OCTETS]) -> Result<Self, LibraryFailed> {
        let Some((seed, third)) = key.split_first_chunk() else {
            unreachable!("the key is longer than its seed")
        };
        let mut map = Self::expand(seed)?;
        for (entry, octets) in map.third_mut().iter_mut().zip(third.as_chunks().0) {
            *entry = decode(octets);
        }
        Ok(map)
    }

    /// P3, which is the end of the triangle.
    pub(super) fn third_mut(&mut self) -> &mut [Vector] {
        &mut self.entries[P1_ENTRIES + P2_ENTRIES..]
    }

    /// The entries of a row from the diagonal on.
    #[inline(always)]
    pub(super) fn row(&self, row: usize) -> &[Vector] {
        &self.entries[row_start(row)..][..N - row]
    }

    /// The value of the whipped map at the vectors of the sets, of whose variables the first `count` are not zero.
    /// Takes the same time whatever they are.
    pub(super) fn evaluate(&self, scalars: &Scalars, count: usize) -> Vector {
        let mut products = Wiped::<{ SETS * N }>::zero();
        for row in 0..count {
            let sums = scalars.combine(row, &self.row(row)[..count - row]);
            for (set, sum) in sums.into_iter().enumerate() {
                products[set * N + row] = sum;
            }
        }
        let squares: [_; SETS] = std::array::from_fn(|set| scalars.combine(0, &products[set * N..][..count]));
        whip(&squares)
    }
}
