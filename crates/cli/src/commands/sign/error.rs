//! Errors of `nonesuch zone sign`.

use super::proofs::ProofError;
use crate::files::FileError;
use crate::zones::ReadZoneError;
use nonesuch_dnssec::keys::directory::KeyDirectoryError;
use nonesuch_dnssec::online::KeySetSignError;
use nonesuch_dnssec::sign::SignError;
use nonesuch_dnssec::verify::{Fault, format_fault_count};
use nonesuch_zone::LoadError;
use nonesuch_zone::change::{ChangeFault, ChangeReadError};
use std::path::PathBuf;

/// Why a zone is not signed.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Load(#[from] LoadError),
    Zone(#[from] ReadZoneError),
    Keys(#[from] KeyDirectoryError),
    Proofs(#[from] ProofError),
    Sign(#[from] SignError),
    SignKeySet(#[from] KeySetSignError),
    #[error("the salt '{0}' has characters that are not hexadecimal digits (write - for no salt)")]
    Salt(String),
    #[error("the salt '{0}' has an odd number of digits; an octet has two: add or remove a digit")]
    OddSalt(String),
    #[error(
        "{}: cannot be read: No such file or directory (os error 2): correct the path; for the first \
            run, sign the zone file without --previous, or set --previous and --output to the same file",
        path.display()
    )]
    NoPreviousZone {
        path: PathBuf,
    },
    #[error(
        "{}: the previous signed zone is invalid ({}, the first: {first}): name another version with \
            --previous, or sign without --previous",
        path.display(),
        format_fault_count(*count)
    )]
    PreviousInvalid {
        path: PathBuf,
        count: usize,
        first: Fault,
    },
    #[error("{}:{source}", path.display())]
    ChangeSet {
        path: PathBuf,
        source: ChangeReadError,
    },
    #[error("{}:{line}: {fault}", path.display())]
    Change {
        path: PathBuf,
        line: u32,
        fault: ChangeFault,
    },
}
