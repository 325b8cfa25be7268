//! Transaction signatures: TSIG (RFC 8945). The functions work on octets. The caller passes the
//! time, in seconds since 1970.
//!
//! A server verifies a request with [`TsigKeys::verify`], and signs the response with the
//! [`ResponseSigner`] of the verified request. A client signs a request with [`sign_request`], and
//! verifies the response with the [`ResponseVerifier`] that it returns. In a response of several
//! messages (RFC 8945 §5.3.1), the server signs each message. A client accepts up to 99 unsigned
//! messages in a row from other servers.
//!
//! RFC 8945 §5.2.3 lets a server store the latest time signed of each key and reject earlier times.
//! This server does not do so, and neither do other servers, because requests with one key arrive
//! over several paths and overtake each other.
//!
//! The library `domain` is not used for TSIG and transfers. Its TSIG needs `ring` in addition to
//! aws-lc. Both parts work on messages that `domain` builds itself, but here the octets of a
//! response or transfer already exist. The interoperation tests use NSD, Knot and BIND.

mod client;
mod key;
mod record;
mod server;
mod text;

pub use client::{CheckedMessage, ResponseTsigError, ResponseVerifier, sign_request};
pub use key::{TsigAlgorithm, TsigKey, TsigKeyError, TsigKeys};
pub use server::{ResponseSigner, TsigError, TsigRejection, VerifiedRequest};
pub use text::{KeyTextError, KeyTextFault, read_keys};

/// Permitted difference between the clocks of both sides, in seconds (RFC 8945 §10 recommends 300).
pub const FUDGE_SECONDS: u16 = 300;

#[cfg(test)]
mod tests;
