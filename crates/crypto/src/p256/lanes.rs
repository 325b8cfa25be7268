//! Arithmetic on eight points of P-256 at a time with AVX-512 IFMA, which multiplies eight pairs of
//! numbers of 52 bits at once. It is for batches, which can fill the lanes; verifications with tables of
//! their keys fill them with the terms of one sum too. Each lane has the same
//! result as the portable code. A VRF proof takes a seventh of the time of the portable code; a
//! signature or its verification takes a third.
//!
//! Functions for secret scalars run in constant time, for the same reasons as in
//! [`super::multiply`]. If a sum meets the same point, the opposite point or infinity, Z becomes
//! zero and stays zero. Such lanes are reported, and the caller uses the portable code.
//!
//! The functions with these instructions may only be called on processors that have them.
//! [`Ifma::detect`] checks this once; all calls that need its result are safe. Of the modules
//! below, only `field` accesses memory through pointers.

mod chain;
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
use super::point::{Affine, Jacobian};
use super::scalar::Scalar;
use super::statement::Statement;

/// Proof that this machine has AVX-512F and AVX-512 IFMA.
#[derive(Clone, Copy)]
pub(crate) struct Ifma(());

impl Ifma {
    /// Returns the proof if the processor has both instruction sets.
    pub(super) fn detect() -> Option<Self> {
        let is_there = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512ifma");
        is_there.then_some(Self(()))
    }

    /// Returns the even y of the points with each x, or `None` if no point has this x. The time
    /// does not depend on the numbers.
    pub(super) fn even_ys(self, xs: &[Field]) -> Vec<Option<Field>> {
        // SAFETY: a value of this type exists only if the processor has AVX-512F and AVX-512 IFMA.
        unsafe { power::even_ys(xs) }
    }

    /// Returns secret·P, nonce·B and nonce·P for each point P, its secret and its nonce, in constant
    /// time. No scalar may be 0. Returns `None` if the caller must use the portable code.
    pub(super) fn commit(
        self,
        points: &[Affine],
        secrets: &[Scalar],
        nonces: &[Scalar],
    ) -> Option<Vec<[Affine; 3]>> {
        // SAFETY: see `even_ys`.
        unsafe { commit::commit(points, secrets, nonces) }
    }

    /// Returns scalar·B for each of the scalars, in constant time. Returns `None` if the caller
    /// must use the portable code.
    pub(super) fn multiply_base_all(self, scalars: &[Scalar]) -> Option<Vec<Affine>> {
        // SAFETY: see `even_ys`.
        unsafe { commit::multiply_base_all(scalars) }
    }

    /// Builds a table for [`Ifma::multiply_both`] from the points 2⁸ʷ·P of its windows w, or one for
    /// [`Ifma::multiply_by_tables`] from the points 2⁵ʷ·P. `entries` is the number of multiples for each
    /// window.
    pub(super) fn pack_multiples(self, powers: &[Affine], entries: usize) -> PackedTable {
        // SAFETY: see `even_ys`.
        unsafe { table::pack_multiples(powers, entries) }
    }

    /// Returns a·P + b·Q for each pair of scalars and the points P and Q of two tables. A result is `None` if
    /// two intermediate sums are equal or opposite. For public values.
    pub(super) fn multiply_both(
        self,
        tables: [&PackedTable; 2],
        pairs: &[(Scalar, Scalar)],
    ) -> Vec<Option<Jacobian>> {
        // SAFETY: see `even_ys`.
        unsafe { table::multiply_both(tables, pairs) }
    }

    /// Returns a·B + b·Q for each pair of scalars, the base point B of the table `base`, and the point Q of the
    /// pair's table. A result is `None` if two intermediate sums are equal or opposite. For public values.
    pub(super) fn multiply_by_tables(
        self,
        base: &PackedTable,
        tables: &[&PackedTable],
        pairs: &[(Scalar, Scalar)],
    ) -> Vec<Option<Jacobian>> {
        // SAFETY: see `even_ys`.
        unsafe { table::multiply_by_tables(base, tables, pairs) }
    }

    /// Returns a·B + b·Q for each pair of scalars and its point Q. A result is `None` if two
    /// intermediate sums are equal or opposite. For public values.
    pub(super) fn multiply_each(
        self,
        points: &[Affine],
        pairs: &[(Scalar, Scalar)],
    ) -> Vec<Option<Jacobian>> {
        // SAFETY: see `even_ys`.
        unsafe { verify::multiply_each(points, pairs) }
    }

    /// Returns s·B − c·Y and s·H − c·Γ for each statement with its key Y. A result is `None` if two
    /// intermediate sums are equal or opposite. For public values.
    pub(super) fn commitments(self, statements: &[Statement]) -> Vec<Option<[Affine; 2]>> {
        // SAFETY: see `even_ys`.
        unsafe { verify::commitments(statements) }
    }
}
