//! Signing and verifying zones, denial of existence, and the keys for it (RFC 4033, 4034, 4035, 5155).
//!
//! Everything here is pure: no I/O, no clock; the time is passed in. The order of life of a zone is in the types:
//! [`sign::sign`] makes a [`Signed`] zone of contents, [`verify::into_verified`] a [`Verified`] one, and
//! [`verify::into_verified_changed`] one of a zone and what was verified before.
#![forbid(unsafe_code)]

pub mod denial;
pub mod difference;
pub mod facts;
pub mod keys;
pub mod online;
pub mod rrsig;
pub mod sign;
pub mod statistics;
pub mod transition;
pub mod validate;
pub mod verify;

pub use denial::{Mechanism, Nsec3Params};
pub use keys::{KeyPair, KeySet};
pub use sign::{SignOptions, Signed, sign};
pub use verify::{Verified, VerifyOptions, into_verified, into_verified_changed, verify, verify_with};

#[cfg(test)]
mod tests;
