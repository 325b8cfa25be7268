//! Online signing and online denial: what a server needs whose zone denies by records that the server generates, or by NSEC5.
//!
//! [`prepare()`] makes what can be served from a zone and its keys ([`OnlineKeys`]); [`Nsec5Prover`] holds the VRF key of a zone
//! with NSEC5. Each thread of the server has a [`OnlineSigner`], with a bounded cache of signatures and proofs and without locks,
//! and counts in [`SignerCounters`]. All of it is pure: the time is passed in.

mod cache;
mod counters;
mod key_set;
mod keys;
mod period;
pub(crate) mod prepare;
mod prover;
mod signer;
mod stored_proofs;

pub use counters::{OnlineCounters, Operation, SignerCounters};
pub use key_set::{KeySetOptions, KeySetSignError, sign_key_set};
pub use keys::{OnlineKeyError, OnlineKeys};
pub use period::{DEFAULT_VALIDITY, MAX_VALIDITY, MIN_VALIDITY, SignaturePeriod};
pub use prepare::{
    OnlineOptions, PrepareError, PreparedZone, prepare, prepare_keys, prepare_unverified, verify_as_it_is,
};
pub use prover::{LoadProverError, Nsec5Prover, Nsec5Zone, ProverError};
pub use signer::{Checkpoint, MAX_PENDING, OnlineSigner, RrsetToSign};

#[cfg(test)]
mod tests;
