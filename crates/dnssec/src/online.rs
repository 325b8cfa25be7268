//! Online signing and online denial: what a server needs whose zone denies by records that the server generates, or by NSEC5.
//!
//! [`prepare()`] makes what can be served from a zone and its keys ([`OnlineKeys`]); [`Nsec5Prover`] holds the VRF key of a zone
//! with NSEC5. Each thread of the server has a [`Workshop`], with a bounded cache of signatures and proofs and without locks,
//! and counts in [`Counters`]. All of it is pure: the time is passed in.

mod cache;
mod counters;
mod key_set;
mod keys;
mod period;
pub(crate) mod prepare;
mod prover;
mod stored;
mod workshop;

pub use counters::{Counters, OnlineCounters, Operation};
pub use key_set::{KeySetOptions, KeySetSignError, sign_key_set};
pub use keys::{OnlineKeyError, OnlineKeys};
pub use period::{DEFAULT_VALIDITY, LEAST_VALIDITY, MOST_VALIDITY, Period};
pub use prepare::{
    OnlineOptions, PrepareError, Prepared, prepare, prepare_keys, prepare_unverified, verify_as_it_is,
};
pub use prover::{LoadProverError, Nsec5Prover, Nsec5Zone, ProverError};
pub use workshop::{MOST_WANTED, Mark, Rrset, Workshop};

#[cfg(test)]
mod tests;
