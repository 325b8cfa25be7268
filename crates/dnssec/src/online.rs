//! Online signing and online denial, for a server of a zone with records generated online or with
//! NSEC5.
//!
//! [`prepare()`] prepares a zone for serving with its keys ([`OnlineKeys`]). [`Nsec5Prover`] has
//! the VRF key of a zone with NSEC5. Each thread of the server has its own [`OnlineSigner`], with a
//! bounded cache of signatures and proofs and without locks; it counts in [`SignerCounters`]. The
//! module does no I/O and does not read the clock: the caller passes the time.

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
    OnlineOptions, PrepareError, PreparedZone, prepare, prepare_keys, prepare_unverified, verify_signed_part,
};
pub use prover::{LoadProverError, Nsec5Prover, Nsec5Zone, ProverError};
pub use signer::{Checkpoint, MAX_PENDING, OnlineSigner, RrsetToSign, ZoneSigner};

#[cfg(test)]
mod tests;
