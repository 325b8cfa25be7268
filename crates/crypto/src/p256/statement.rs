//! The statement that a VRF proof proves.

use super::point::Affine;
use super::scalar::Scalar;

/// The public values of a proof, except the key.
#[derive(Clone, Copy)]
pub(crate) struct Statement {
    /// The point of the input.
    pub(crate) h: Affine,
    pub(crate) gamma: Affine,
    pub(crate) challenge: u128,
    pub(crate) s: Scalar,
}
