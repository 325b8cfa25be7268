//! Selects the arithmetic for batches: portable code for any machine, or eight lanes if the
//! processor has AVX-512 IFMA ([`super::lanes`]). Both have the same results, octet for octet.

use std::cell::Cell;

use zeroize::Zeroizing;

#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
use super::field::Field;
#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
use super::lanes::Ifma;
use super::multiply::{Comb, SecretWorkspace, double_multiply_public, multiply_base, multiply_base_all};
use super::point::{Affine, COMPRESSED_OCTETS, Jacobian};
use super::scalar::Scalar;
use super::statement::Statement;
use super::table::LaneTable;
use crate::implementation::Implementation;

/// The arithmetic for batches.
#[derive(Clone, Copy)]
pub(crate) enum Engine {
    /// One number at a time, in words of 64 bits.
    Portable,
    /// Eight numbers at a time.
    #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
    Lanes(Ifma),
}

thread_local! {
    /// Whether this thread is inside [`with_portable_arithmetic`].
    static IS_PORTABLE_FORCED: Cell<bool> = const { Cell::new(false) };
}

/// Calls `work` with the portable code in this thread, whatever the processor has. For comparisons
/// in tests and measurements.
pub fn with_portable_arithmetic<T>(work: impl FnOnce() -> T) -> T {
    struct Restore(bool);
    impl Drop for Restore {
        fn drop(&mut self) {
            IS_PORTABLE_FORCED.set(self.0);
        }
    }
    let _restore = Restore(IS_PORTABLE_FORCED.replace(true));
    work()
}

impl Engine {
    /// Returns the faster arithmetic that this machine has.
    pub(crate) fn detect() -> Self {
        #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
        if !IS_PORTABLE_FORCED.get()
            && let Some(ifma) = Ifma::detect()
        {
            return Self::Lanes(ifma);
        }
        Self::Portable
    }

    /// Returns the description of the arithmetic.
    pub(crate) const fn implementation(self) -> Implementation {
        let library = "nonesuch";
        match self {
            Self::Portable => Implementation::portable(library),
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(_) => {
                Implementation { library, kernel: "eight lanes", instruction_set: "AVX-512 IFMA" }
            }
        }
    }

    /// Returns the number of candidates to try at a time if `wanted` points are needed and each
    /// candidate is a point with a probability of one half.
    pub(crate) const fn candidates(self, wanted: usize) -> usize {
        match self {
            Self::Portable => wanted,
            // Two vectors cost less than twice the cost of one.
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(_) => wanted.next_multiple_of(if wanted <= 2 { 8 } else { 16 }),
        }
    }

    /// Returns the number of signatures from which on a batch is faster than single signatures.
    pub(crate) const fn min_signing_batch(self) -> usize {
        match self {
            Self::Portable => 16,
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(_) => 3,
        }
    }

    /// Returns the number of signatures of one key from which on a [`Table`](super::Table) of the
    /// key is worthwhile. The cost of the table equals its savings on about 25 signatures. With
    /// lanes it is about 40, because the lanes are faster than the single check without a table too.
    pub(crate) const fn min_signatures_for_table(self) -> usize {
        match self {
            Self::Portable => 32,
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(_) => 40,
        }
    }

    /// Returns the number of signatures of one key from which on a [`LaneTable`] of the key is worthwhile, if
    /// they are verified alone or together with signatures of other keys. The cost of the table equals its savings
    /// on 4 single signatures, or on about 17 of full batches.
    pub(crate) const fn min_signatures_for_lane_table(self) -> usize {
        8
    }

    /// Returns whether the processor has the lanes.
    pub(crate) const fn has_lanes(self) -> bool {
        !matches!(self, Self::Portable)
    }

    /// Returns the number of signatures from which on a batch without tables of keys is faster than
    /// single checks; `None` if it never is.
    pub(crate) const fn min_signatures_without_table(self) -> Option<usize> {
        match self {
            Self::Portable => None,
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(_) => Some(3),
        }
    }

    /// Returns a·B + b·Q for each pair of scalars and the point Q of its table. A result is `None` if the caller
    /// must use another method. For public values.
    pub(crate) fn multiply_by_tables(
        self,
        tables: &[&LaneTable],
        pairs: &[(Scalar, Scalar)],
    ) -> Vec<Option<Jacobian>> {
        match self {
            Self::Portable => vec![None; tables.len().min(pairs.len())],
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(ifma) => {
                let tables: Vec<_> = tables.iter().map(|table| &table.entries).collect();
                ifma.multiply_by_tables(LaneTable::base(ifma), &tables, pairs)
            }
        }
    }

    /// Returns a·B + b·Q for each pair of scalars and its point Q. A result is `None` if the caller
    /// must use another method. For public values.
    pub(crate) fn multiply_each(
        self,
        points: &[Affine],
        pairs: &[(Scalar, Scalar)],
    ) -> Vec<Option<Jacobian>> {
        match self {
            Self::Portable => {
                let products = points.iter().zip(pairs);
                products.map(|(q, (a, b))| Some(double_multiply_public(a, &Affine::BASE, b, q))).collect()
            }
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(ifma) => ifma.multiply_each(points, pairs),
        }
    }

    /// Decompresses points, like [`Affine::from_compressed`].
    pub(crate) fn decompress(self, octets: &[[u8; COMPRESSED_OCTETS]]) -> Vec<Option<Affine>> {
        match self {
            Self::Portable => octets.iter().map(Affine::from_compressed).collect(),
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(ifma) => {
                let parts: Vec<Option<(Field, bool)>> = octets.iter().map(Affine::split_compressed).collect();
                let xs: Vec<Field> = parts.iter().flatten().map(|(x, _)| *x).collect();
                let mut ys = ifma.even_ys(&xs).into_iter();
                let mut point = |(x, is_odd): (Field, bool)| {
                    let y = ys.next()??;
                    Some(Affine { x, y: if is_odd { -y } else { y } })
                };
                parts.into_iter().map(|parts| parts.and_then(&mut point)).collect()
            }
        }
    }

    /// Returns secret·P, nonce·B and nonce·P for each point P, its secret and its nonce, in constant
    /// time: Γ, U and V of a proof, with the base point B. No scalar may be 0.
    pub(crate) fn commit(self, points: &[Affine], secrets: &[Scalar], nonces: &[Scalar]) -> Vec<[Affine; 3]> {
        #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
        if let Self::Lanes(ifma) = self
            && let Some(products) = ifma.commit(points, secrets, nonces)
        {
            return products;
        }
        let mut products = Zeroizing::new(Vec::with_capacity(3 * points.len()));
        for ((comb, secret), nonce) in Comb::prepare_all(points).iter().zip(secrets).zip(nonces) {
            products.extend([comb.multiply(secret), multiply_base(nonce), comb.multiply(nonce)]);
        }
        Jacobian::normalize_all(&products).as_chunks().0.to_vec()
    }

    /// Returns scalar·B for each of the scalars, in constant time. Returns `None` if two
    /// intermediate sums are equal or opposite; the caller must then use another method.
    pub(crate) fn multiply_base_all<'w>(
        self,
        scalars: &[Scalar],
        workspace: &'w mut SecretWorkspace,
    ) -> Option<&'w [Affine]> {
        match self {
            Self::Portable => multiply_base_all(scalars, workspace),
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(ifma) => Some(workspace.store_points(ifma.multiply_base_all(scalars)?)),
        }
    }

    /// Returns s·B − c·Y and s·H − c·Γ, the points U and V of RFC 9381, section 5.3, for each
    /// statement. A result is `None` if one of the points is infinity, or if the caller
    /// must use another method. For public values.
    pub(crate) fn commitments(self, statements: &[Statement]) -> Vec<Option<[Affine; 2]>> {
        match self {
            Self::Portable => statements.iter().map(Statement::commitments).collect(),
            #[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
            Self::Lanes(ifma) => ifma.commitments(statements),
        }
    }
}

impl Statement {
    /// Like [`Engine::commitments`], for one statement.
    fn commitments(&self) -> Option<[Affine; 2]> {
        let challenge = Scalar::from_short(self.challenge);
        let difference = |p: &Affine, q: &Affine| double_multiply_public(&self.s, p, &challenge, &q.negate());
        let points = [difference(&Affine::BASE, &self.key), difference(&self.h, &self.gamma)];
        if points.iter().any(Jacobian::is_infinity) {
            return None;
        }
        Jacobian::normalize_all(&points).try_into().ok()
    }
}
