//! Errors of trees.

use super::fault::Fault;
use crate::measure::key_files::WriteError;
use nonesuch_crypto::KeyError;
use nonesuch_dnssec::denial::nsec5::Nsec5Error;
use nonesuch_dnssec::keys::KeySetError;
use nonesuch_dnssec::sign::SignError;
use nonesuch_proto::Name;
use nonesuch_zone::ReadError;
use nonesuch_zone::read::read_remedy;
use std::io;
use std::net::Ipv4Addr;
use std::path::PathBuf;

/// The reason why a tree cannot be built or written.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
#[allow(missing_docs)] // the error messages describe variants and fields
pub enum TreeError {
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read { path: PathBuf, source: io::Error },
    #[error("{}: too large for the description of a tree: the maximum is 4 MiB; use `count`", path.display())]
    TooLarge { path: PathBuf },
    #[error("{file}:{line}:{column}: {message}")]
    Malformed { file: String, line: usize, column: usize, message: String },
    #[error("the tree has {zones} zones: the maximum is {maximum}")]
    TooManyZones { zones: u64, maximum: u32 },
    #[error("zone {zone}: {names} names: the maximum is {maximum}")]
    TooManyNames { zone: String, names: u32, maximum: u32 },
    #[error("'{origin}' is not a domain name: correct `origin`")]
    Origin { origin: String },
    #[error("the tree has no root: add a zone with origin = \".\"")]
    NoRoot,
    #[error("zone {zone}: described twice: remove one of the descriptions")]
    DuplicateZone { zone: Name },
    #[error(
        "zone {zone}: the server address {address} is not local: choose one in 127.0.0.0/8 or 198.18.0.0/15"
    )]
    Address { zone: Name, address: Ipv4Addr },
    #[error("zone {zone}: the salt is not hexadecimal, or longer than 255 octets: correct `salt`")]
    Salt { zone: Name },
    #[error(
        "zone {zone}: keys of algorithm {algorithm} cannot be derived from a seed: choose another algorithm"
    )]
    Algorithm { zone: Name, algorithm: nonesuch_crypto::Algorithm },
    #[error("zone {zone}: algorithm {algorithm}, with which this program does not sign: needs {needed}")]
    Unsupported { zone: Name, algorithm: nonesuch_crypto::Algorithm, needed: &'static str },
    #[error("zone {zone}: {source}")]
    Key { zone: Name, source: KeyError },
    #[error("zone {zone}: the VRF key: {source}")]
    Vrf { zone: Name, source: nonesuch_crypto::vrf::VrfKeyError },
    #[error("zone {zone}: {source}")]
    KeySet { zone: Name, source: Box<KeySetError> },
    #[error("zone {zone}: {source}")]
    Records { zone: Name, source: Box<ReadError> },
    #[error("zone {zone}: cannot be signed: {source}")]
    Sign { zone: Name, source: Box<SignError> },
    #[error("zone {zone}: {source}")]
    Nsec5 { zone: Name, source: Box<Nsec5Error> },
    #[error(
        "zone {zone}: a transition to NSEC5 needs a signed zone with NSEC3 and without faults: correct `also-nsec5`"
    )]
    Transition { zone: Name },
    #[error("zone {zone}: the library cannot sign: {source}")]
    Signature { zone: Name, source: nonesuch_crypto::SignError },
    #[error("zone {zone}: fault {fault}: needs {needed}")]
    Fault { zone: Name, fault: Fault, needed: &'static str },
    #[error("zone {zone}: fault {fault}: the library cannot sign: {source}")]
    FaultySignature { zone: Name, fault: Fault, source: nonesuch_crypto::SignError },
    #[error("{}: already exists: choose another directory, or remove this one", path.display())]
    Exists { path: PathBuf },
    #[error(transparent)]
    Write(#[from] WriteError),
}
