//! The error that ends or interrupts the validation of a response.

use super::budget::Limit;
use super::reason::{BogusReason, IndeterminateReason};

/// An error that ends the validation of a response, with the resulting status.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum ValidationError {
    Bogus(BogusReason),
    Indeterminate(IndeterminateReason),
    /// Signatures or proofs must be verified before the validation continues. It is not a result.
    Pending,
}

impl From<BogusReason> for ValidationError {
    fn from(reason: BogusReason) -> Self {
        Self::Bogus(reason)
    }
}

impl From<IndeterminateReason> for ValidationError {
    fn from(reason: IndeterminateReason) -> Self {
        Self::Indeterminate(reason)
    }
}

impl From<Limit> for ValidationError {
    fn from(limit: Limit) -> Self {
        Self::Indeterminate(IndeterminateReason::Limit(limit))
    }
}
