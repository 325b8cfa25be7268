//! The operation that takes most of the time of MAYO: the sum of vectors multiplied by scalars, for
//! four sets of scalars at once. MAYO-2 has four sets because its parameter k is 4. The operation
//! has a portable implementation and implementations for SSSE3 and AVX2, selected at run time.

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
use super::avx2::Avx2;
use super::field::{EQUATIONS, FourScalars, SETS, Vector};
use super::portable;
use super::solve::{self, Solution, System};
#[cfg(target_arch = "x86_64")]
use super::ssse3::Ssse3;
use super::wiped::WipedVec;
use crate::implementation::Implementation;

/// An instruction set that this machine has.
#[derive(Clone, Copy)]
pub(super) enum Kernel {
    /// Portable code with words of 64 bits.
    Portable,
    /// SSSE3, which x86-64-v2 and higher levels have.
    #[cfg(target_arch = "x86_64")]
    Ssse3(Ssse3),
    /// AVX2, which x86-64-v3 and higher levels have.
    #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
    Avx2(Avx2),
}

impl Kernel {
    /// Returns the fastest kernel of this machine.
    pub(super) fn detect() -> Self {
        #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
        if let Some(avx2) = Avx2::detect() {
            return Self::Avx2(avx2);
        }
        #[cfg(target_arch = "x86_64")]
        if let Some(ssse3) = Ssse3::detect() {
            return Self::Ssse3(ssse3);
        }
        Self::Portable
    }

    /// Returns all kernels of this machine.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        [
            Some(Self::Portable),
            #[cfg(target_arch = "x86_64")]
            Ssse3::detect().map(Self::Ssse3),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Avx2::detect().map(Self::Avx2),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// Returns the description of the kernel.
    pub(super) fn implementation(self) -> Implementation {
        match self {
            Self::Portable => Implementation::portable("nonesuch"),
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(_) => Implementation::vectors("nonesuch", "SSSE3"),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Self::Avx2(_) => Implementation::vectors("nonesuch", "AVX2"),
        }
    }

    /// Solves a system; see [`solve::solve`].
    pub(super) fn solve(self, system: &mut System) -> Option<Solution> {
        match self {
            Self::Portable => solve::solve(system),
            // The portable code is sufficient: only bitwise operations help here, and every x86-64
            // processor has them with SSE2.
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(_) => solve::solve(system),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Self::Avx2(avx2) => avx2.solve(system),
        }
    }
}

/// Sets of scalars in the format of a kernel. They are wiped on drop.
pub(super) struct Scalars {
    kernel: Kernel,
    prepared: WipedVec,
}

impl Scalars {
    /// Prepares scalars; all sets have the same number of scalars. Neither this function nor
    /// [`Scalars::combine`] has branches or look-up addresses that depend on the scalars.
    pub(super) fn prepare(kernel: Kernel, scalars: &[FourScalars]) -> Self {
        let prepared = match kernel {
            Kernel::Portable => portable::masks(scalars),
            #[cfg(target_arch = "x86_64")]
            _ => super::tables::tables(scalars),
        };
        Self { kernel, prepared }
    }

    /// Returns the sum of the vectors, each multiplied by its scalar, for each set. The first
    /// vector belongs to the scalar `from`.
    ///
    /// # Panics
    /// If there are fewer scalars than vectors from `from` on.
    #[inline]
    pub(super) fn combine(&self, from: usize, vectors: &[Vector]) -> [Vector; SETS] {
        match self.kernel {
            Kernel::Portable => portable::combine(&self.prepared, from, vectors),
            #[cfg(target_arch = "x86_64")]
            Kernel::Ssse3(ssse3) => ssse3.combine(&self.prepared[from..][..vectors.len()], vectors),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Kernel::Avx2(avx2) => avx2.combine(&self.prepared[from..][..vectors.len()], vectors),
        }
    }
}

/// Returns the scalars at `index` of four vectors.
pub(super) fn transpose(vectors: &[[u8; EQUATIONS / 2]; SETS], index: usize) -> FourScalars {
    std::array::from_fn(|set| super::field::nibble(&vectors[set], index))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::field::{add, scale};
    use super::*;

    /// Computes the expected result of [`Scalars::combine`] element by element.
    fn expected(scalars: &[FourScalars], vectors: &[Vector]) -> [Vector; SETS] {
        std::array::from_fn(|set| {
            scalars
                .iter()
                .zip(vectors)
                .fold([0; 4], |sum, (four, vector)| add(&sum, &vector.map(|word| scale(word, four[set]))))
        })
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded_config(21))]

        #[test]
        fn all_kernels_combine_alike(
            items in proptest::collection::vec((any::<Vector>(), any::<FourScalars>()), 0..90),
            from in any::<prop::sample::Index>(),
            end in any::<prop::sample::Index>(),
        ) {
            let (vectors, scalars): (Vec<_>, Vec<_>) =
                items.into_iter().map(|(vector, four)| (vector, four.map(|scalar| scalar % 16))).unzip();
            let from = from.index(scalars.len() + 1);
            let end = from + end.index(scalars.len() - from + 1);
            let expected = expected(&scalars[from..end], &vectors[from..end]);
            for kernel in Kernel::all() {
                let found = Scalars::prepare(kernel, &scalars).combine(from, &vectors[from..end]);
                prop_assert_eq!(found, expected, "{:?}", kernel.implementation());
            }
        }
    }
}
