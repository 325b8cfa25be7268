//! The one operation that MAYO spends its time in: vectors times scalars, summed up, for four sets of scalars at once
//! (k = 4 in MAYO-2). There is a portable form, and there are those for SSSE3 and AVX2, chosen at run time.

#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
use super::avx2::Avx2;
use super::field::{Four, M, SETS, Vector};
use super::portable;
use super::solve::{self, Solution, System};
#[cfg(target_arch = "x86_64")]
use super::ssse3::Ssse3;
use super::wiped::WipedVec;

/// A set of instructions that this machine has.
#[derive(Clone, Copy)]
pub(super) enum Kernel {
    /// Words of 64 bits.
    Portable,
    /// SSSE3, of x86-64-v2 and above.
    #[cfg(target_arch = "x86_64")]
    Ssse3(Ssse3),
    /// AVX2, of x86-64-v3 and above.
    #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
    Avx2(Avx2),
}

impl Kernel {
    /// The fastest one of this machine.
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

    /// All that this machine has.
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

    /// A name for test output.
    #[cfg(test)]
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Portable => "portable",
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(_) => "SSSE3",
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Self::Avx2(_) => "AVX2",
        }
    }

    /// As [`solve::solve`].
    pub(super) fn solve(self, system: &mut System) -> Option<Solution> {
        match self {
            Self::Portable => solve::solve(system),
            // Of use to it are bitwise operations alone, which SSE2 has and every x86-64.
            #[cfg(target_arch = "x86_64")]
            Self::Ssse3(_) => solve::solve(system),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Self::Avx2(avx2) => avx2.solve(system),
        }
    }
}

/// Sets of scalars in the form that a kernel works with, wiped when dropped.
pub(super) struct Scalars {
    kernel: Kernel,
    prepared: WipedVec,
}

impl Scalars {
    /// Prepares scalars, as many for each set. Neither this nor [`Scalars::combine`] branches or looks up by them.
    pub(super) fn prepare(kernel: Kernel, scalars: &[Four]) -> Self {
        let prepared = match kernel {
            Kernel::Portable => portable::masks(scalars),
            #[cfg(target_arch = "x86_64")]
            _ => super::tables::tables(scalars),
        };
        Self { kernel, prepared }
    }

    /// The sum of the vectors, each times its scalar, for each set. The first vector belongs to scalar `from`.
    ///
    /// # Panics
    /// Where there are fewer scalars than that.
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

/// The scalars at `index` of four vectors.
pub(super) fn transpose(vectors: &[[u8; M / 2]; SETS], index: usize) -> Four {
    std::array::from_fn(|set| super::field::nibble(&vectors[set], index))
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::field::{add, scale};
    use super::*;

    /// What [`Scalars::combine`] has to return, element by element.
    fn expected(scalars: &[Four], vectors: &[Vector]) -> [Vector; SETS] {
        std::array::from_fn(|set| {
            scalars
                .iter()
                .zip(vectors)
                .fold([0; 4], |sum, (four, vector)| add(&sum, &vector.map(|word| scale(word, four[set]))))
        })
    }

    proptest! {
        #![proptest_config(crate::rfc_tests::seeded(21))]

        #[test]
        fn all_kernels_combine_alike(
            items in proptest::collection::vec((any::<Vector>(), any::<Four>()), 0..90),
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
                prop_assert_eq!(found, expected, "{}", kernel.name());
            }
        }
    }
}
