//! What a VRF proof states.

use super::point::Affine;
use super::scalar::Scalar;

/// What is public of a proof, but its key.
#[derive(Clone, Copy)]
pub(crate) struct Statement {
    /// The point of the input.
    pub(crate) h: Affine,
    pub(crate) gamma: Affine,
    pub(crate) challenge: u128,
    pub(crate) s: Scalar,
}
