//! Eight points of P-256 at a time with AVX-512 IFMA, which multiplies eight pairs of numbers of 52 bits at once: for batches,
//! where the lanes have something to do. Each lane does what the scalar code does, and has the same result. A VRF proof takes
//! a seventh of the scalar code's time, a signature or its verification a third.
//!
//! What is for secret scalars takes constant time, by the same reasoning as in [`super::multiply`]. Where a sum meets the
//! same or the opposite point, or infinity, Z becomes zero and stays it: such lanes are told, and the caller takes the scalar code.
//!
//! The instructions are written as functions that only processors with them may be called with; that they are is checked once, in
//! [`Ifma::detect`], and what follows from there is safe. Of the modules below only `field` touches memory by pointers.

mod comb;
mod commit;
mod field;
mod point;
mod power;
mod table;
#[cfg(test)]
mod tests;
mod verify;

pub(super) use self::table::PackedTable;
use super::field::Field;
use super::point::Affine;
use super::scalar::Scalar;
use super::statement::Statement;

/// Proof that this machine has AVX-512F and AVX-512 IFMA.
#[derive(Clone, Copy)]
pub(crate) struct Ifma(());

impl Ifma {
    /// Asks the processor.
    pub(super) fn detect() -> Option<Self> {
        let is_there = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
        is_there.then_some(Self(()))
    }

    /// For each x, the even y of the points that have it; `None` where there are none. The time tells nothing of the numbers.
    pub(super) fn even_ys(self, xs: &[Field]) -> Vec<Option<Field>> {
        // SAFETY: a value of this type is made only where the processor has AVX-512F and AVX-512 IFMA.
        unsafe { power::even_ys(xs) }
    }

    /// secret·P, nonce·B and nonce·P for each point P and its nonce, in constant time. No scalar is 0. `None` where another way
    /// must serve.
    pub(super) fn commit(
        self,
        points: &[Affine],
        secret: &Scalar,
        nonces: &[Scalar],
    ) -> Option<Vec<[Affine; 3]>> {
        // SAFETY: as above.
        unsafe { commit::commit(points, secret, nonces) }
    }

    /// scalar·B for each of the scalars, in constant time; `None` where another way must serve.
    pub(super) fn multiply_base_all(self, scalars: &[Scalar]) -> Option<Vec<Affine>> {
        // SAFETY: as above.
        unsafe { commit::multiply_base_all(scalars) }
    }

    /// A table for [`Ifma::multiply_both`], made of the points 2⁸ʷ·P of its windows w.
    pub(super) fn pack_multiples(self, powers: &[Affine]) -> PackedTable {
        // SAFETY: as above.
        unsafe { table::pack_multiples(powers) }
    }

    /// a·P + b·Q for each pair of scalars, whose octets these are (see [`Scalar::recode_octets`]), and the points P and Q of two
    /// tables. `None` where two sums on the way are equal or opposite. For public values.
    pub(super) fn multiply_both(
        self,
        tables: [&PackedTable; 2],
        octets: &[[[u8; 32]; 2]],
    ) -> Vec<Option<Affine>> {
        // SAFETY: as above.
        unsafe { table::multiply_both(tables, octets) }
    }

    /// s·B − c·Y and s·H − c·Γ for the key Y and each statement. `None` where two sums on the way are equal or opposite. For
    /// public values.
    pub(super) fn commitments(self, key: &Affine, statements: &[Statement]) -> Vec<Option<[Affine; 2]>> {
        // SAFETY: as above.
        unsafe { verify::commitments(key, statements) }
    }
}
