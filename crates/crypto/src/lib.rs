//! The table of DNSSEC algorithms: keys, signatures, digests and the NSEC3 hash. Octets in, octets out.
//!
//! Nothing here knows what a name, a record, a zone or a message is: callers hand over the octets that a
//! DNSKEY, RRSIG, DS or NSEC3 record is made of, and get octets back.
//!
//! - [`ALGORITHMS`] is the one place that knows which algorithms there are; each has a row there and a module.
//! - [`PrivateKey`] signs, is read from and written to BIND's `.private` files, and read from PKCS#8.
//! - [`PublicKey`] verifies; it is parsed once from the DNSKEY public key field.
//! - [`hmac`] makes and verifies message authentication codes.
//! - [`vrf`] has the verifiable random functions of NSEC5, with a table and keys of their own.
//! - [`DigestType`] makes DS digests, [`key_tag`] key tags, [`nsec3_hash`] the hashed owner names of NSEC3.
//!
//! RFC 3110 and 5702 (RSA), 6605 (ECDSA), 8080 (Ed25519, Ed448), 4034 (key tags), 4509 and 6605 (DS digests),
//! 5155 (NSEC3); FIPS 204 (ML-DSA); Falcon of round 3 of the NIST
//! competition, MAYO of round 2 of the call for additional signatures; RFC 9381 (VRFs).

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
// A test allocator that logs freed memory.
#[cfg(test)]
#[allow(unsafe_code)]
mod freed;
// Calls into aws-lc that write where they are told.
#[allow(unsafe_code)]
mod hash;
pub mod hmac;
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
// Calls into aws-lc where its Rust interface falls short.
#[allow(unsafe_code)]
mod rsa_ffi;
pub mod vrf;
mod wipe;

pub use crate::pkcs8::{decode_pem, pkcs8_algorithms};
pub use algorithm::{
    ALGORITHMS, Algorithm, AlgorithmEntry, KeyLengths, Scheme, TABLES_DIGEST, UnknownMnemonic, tables_digest,
};
pub use batch::{VerifyItem, sign_batch, verify_batch};
pub use digest::{DigestType, HashFunction, Hasher, key_tag};
pub use error::{BadSignature, KeyError, SignError};
pub use key::{PrivateKey, PublicKey};
pub use nsec3::nsec3_hash;
#[doc(hidden)]
pub use p256::without_lanes;
