//! The code for the polynomial arithmetic of a verification, selected at run time.

use super::arithmetic::Portable;
#[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
use super::avx2::Avx2;
use super::commitment::{self, Commitment, Inputs};
use super::ntt::{self, Polynomial};

/// An instruction set that this machine has.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kernel {
    /// Code without vector instructions of its own.
    Portable,
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
        Self::Portable
    }

    /// Returns all kernels of this machine.
    #[cfg(test)]
    pub(super) fn all() -> Vec<Self> {
        [
            Some(Self::Portable),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Avx2::detect().map(Self::Avx2),
        ]
        .into_iter()
        .flatten()
        .collect()
    }

    /// See [`commitment::reconstruct`].
    pub(super) fn reconstruct(self, inputs: &Inputs<'_>) -> Option<Commitment> {
        match self {
            Self::Portable => commitment::reconstruct(Portable, inputs),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Self::Avx2(avx2) => avx2.reconstruct(inputs),
        }
    }

    /// See [`ntt::forward`].
    pub(super) fn forward(self, polynomial: &mut Polynomial) {
        match self {
            Self::Portable => ntt::forward(Portable, polynomial),
            #[cfg(all(target_arch = "x86_64", not(feature = "portable")))]
            Self::Avx2(avx2) => avx2.forward(polynomial),
        }
    }
}
