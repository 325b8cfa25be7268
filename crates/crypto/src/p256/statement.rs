//! The statement that a VRF proof proves (RFC 9381, section 5.3).

use super::point::Affine;
use super::scalar::Scalar;

/// The public values of a proof.
#[derive(Clone, Copy)]
pub(crate) struct Statement {
    /// Y, the point of the public key.
    pub(crate) key: Affine,
    /// H, the point to which the input is hashed.
    pub(crate) h: Affine,
    /// Γ, the product of H and the private scalar.
    pub(crate) gamma: Affine,
    /// The challenge c of the proof.
    pub(crate) challenge: u128,
    /// s of the proof: the nonce plus the product of challenge and private scalar.
    pub(crate) s: Scalar,
}
