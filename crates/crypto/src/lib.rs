//! DNSSEC cryptography: the table of algorithms, keys, signatures, digests and the NSEC3 hash.
//!
//! All functions take and return octets. This crate has no types for names, records, zones or
//! messages: callers pass the octets of a DNSKEY, RRSIG, DS or NSEC3 record and receive octets.
//!
//! - [`ALGORITHMS`] is the only list of the supported algorithms. Each algorithm has a row there
//!   and a module.
//! - [`PrivateKey`] signs. It is read from and written to BIND's `.private` files, and read from
//!   PKCS#8.
//! - [`PublicKey`] verifies. It is parsed once from the DNSKEY public key field.
//! - [`implementation()`] names the code that performs an operation on this machine.
//! - [`hmac`] generates and verifies message authentication codes.
//! - [`vrf`] contains the verifiable random functions of NSEC5, with their own table and key types.
//! - [`DigestType`] computes DS digests, [`key_tag`] key tags, and [`nsec3_hash`] the hashed owner
//!   names of NSEC3. [`Nsec3Hasher`] hashes many names at a time.
//!
//! The crate implements RFC 3110 and 5702 (RSA), 6605 (ECDSA), 8080 (Ed25519, Ed448), 4034 (key
//! tags), 4509 and 6605 (DS digests), 5155 (NSEC3), 9381 (VRFs), FIPS 204 (ML-DSA), FIPS 205
//! (SLH-DSA), Falcon of round 3 of the NIST competition, and MAYO of round 2 of the call for
//! additional signatures.

#![deny(unsafe_code)]

mod algorithm;
mod batch;
mod bind_format;
mod der;
mod digest;
mod ecdsa;
mod ed25519;
mod ed448;
mod error;
mod falcon;
// A test allocator that records freed memory.
#[cfg(test)]
#[allow(unsafe_code)]
mod freed;
// Calls aws-lc functions that write to a buffer of the caller.
#[allow(unsafe_code)]
mod hash;
pub mod hmac;
mod implementation;
mod key;
mod limbs;
mod mayo;
mod mldsa;
mod nsec3;
mod p256;
mod pkcs8;
#[cfg(test)]
mod rfc_tests;
mod rsa;
// Calls aws-lc functions that the Rust interface does not offer.
#[allow(unsafe_code)]
mod rsa_ffi;
mod slhdsa;
mod system_random;
pub mod vrf;
mod wipe;

pub use crate::pkcs8::{decode_pem, pkcs8_algorithms};
pub use algorithm::{
    ALGORITHMS, Algorithm, AlgorithmEntry, KeyLengths, Scheme, TABLES_DIGEST_OCTETS, UnknownMnemonic,
    tables_digest,
};
pub use batch::{SignItem, VerifyItem, sign_batch, sign_each, verify_batch};
pub use digest::{DigestType, HashFunction, Hasher, key_tag};
pub use error::{BadSignature, KeyError, SignError};
pub use implementation::{AT_RUN_TIME, Implementation, Operation, implementation};
pub use key::{PrivateKey, PublicKey};
pub use nsec3::{NSEC3_LANES, Nsec3Blocks, Nsec3Hasher, Nsec3Hashes, nsec3_hash};
#[doc(hidden)]
pub use p256::with_portable_arithmetic;
