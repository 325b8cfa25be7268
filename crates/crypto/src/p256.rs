//! Arithmetic of P-256 (FIPS 186-4, section D.1.2.3) for its VRF and for ECDSA in batches. Single
//! signatures use aws-lc. A VRF proof multiplies one point by two secret scalars, and these
//! multiplications can share the doublings. No library offers that.
//!
//! [`Engine`] selects the arithmetic for batches. The *portable code* computes with one number at a
//! time on any machine. The *lanes* compute with eight numbers at a time, one in each lane of a
//! vector of AVX-512 IFMA.
//!
//! Functions for secrets run in constant time. Functions for public values branch on them; their
//! documentation states it.

mod engine;
mod field;
// Eight numbers at a time, with AVX-512 intrinsics that only some processors have.
#[cfg(all(target_arch = "x86_64", not(feature = "no_avx512")))]
#[allow(unsafe_code)]
mod lanes;
mod multiply;
mod nonce;
mod point;
mod scalar;
mod statement;
mod sum;
mod table;
#[cfg(test)]
mod tests;
mod windows;

pub(crate) use self::engine::Engine;
pub use self::engine::with_portable_arithmetic;
pub(crate) use self::field::Field;
#[cfg(test)]
pub(crate) use self::field::PRIME;
#[cfg(test)]
pub(crate) use self::multiply::Comb;
pub(crate) use self::multiply::{
    SecretWorkspace, ShortTable, double_multiply_public, multiply_base, multiply_base_public,
};
pub(crate) use self::nonce::nonce_of_digest;
pub(crate) use self::point::{Affine, COMPRESSED_OCTETS, EVEN_Y_PREFIX, EncodedPoint, Jacobian};
pub(crate) use self::scalar::{MontgomeryScalar, Scalar};
pub(crate) use self::statement::Statement;
pub(crate) use self::table::{LANE_TABLE_OCTETS, LaneTable, Table, Workspace, multiply_both};
#[cfg(test)]
pub(crate) use self::tests::ORDER;
