//! Transaction signatures: TSIG (RFC 8945). Octets in, octets out; the time is passed in, in seconds since 1970.
//!
//! A server verifies a request with [`TsigKeys::verify`] and signs what it answers with the [`ResponseSigner`] that comes of it. A client
//! signs a request with [`sign_request`] and verifies the answers with the [`AnswerVerifier`] that comes of it. Answers of
//! many messages (RFC 8945 §5.3.1) are signed message by message; of others' answers, up to 99 messages in a row need not be
//! signed.
//!
//! RFC 8945 §5.2.3 would have a server keep the latest time signed of each key and refuse earlier ones. That is not done
//! here, as it is not by other servers: requests of one key come by several ways and overtake each other.
//!
//! The library `domain` is not used for TSIG and transfers: its TSIG needs `ring` beside aws-lc, and both work on messages that
//! it builds itself, while the octets of a response or a transfer exist here already. NSD, Knot and BIND are the peers of
//! the interoperation tests.

mod client;
mod key;
mod record;
mod server;
mod text;

pub use client::{AnswerVerifier, CheckedMessage, ResponseTsigError, sign_request};
pub use key::{TsigAlgorithm, TsigKey, TsigKeyError, TsigKeys};
pub use server::{ResponseSigner, TsigError, TsigRejection, VerifiedRequest};
pub use text::{KeyTextError, KeyTextFault, read_keys};

/// Seconds that the clocks of both sides may differ (RFC 8945 §10 recommends 300).
pub const FUDGE: u16 = 300;

#[cfg(test)]
mod tests;
