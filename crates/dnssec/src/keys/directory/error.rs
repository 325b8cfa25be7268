//! Errors of the key files in a directory.

use crate::keys::{KeyFileError, KeySetError};
use nonesuch_proto::Name;
use nonesuch_proto::timestamp::Rfc3339;
use nonesuch_zone::read::read_remedy;
use std::io;
use std::path::PathBuf;

/// The reason why the key files in a directory cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum KeyDirectoryError {
    /// The directory cannot be read.
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read {
        /// The directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file in the directory cannot be read.
    #[error("{}: cannot be read: {source}{}", path.display(), listed_file_remedy(source))]
    ReadFile {
        /// The file.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file is malformed, or the files of a key do not belong together.
    #[error("{}: {source}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: KeyFileError,
    },
    /// The directory has no `.key` file of the zone.
    #[error(
        "{}: no key files of {zone} (a K*.key with a K*.private file) in this directory; generate them with `nonesuch key generate {zone} --dir DIR`",
        dir.display()
    )]
    NoKeys {
        /// The directory.
        dir: PathBuf,
        /// The zone.
        zone: Name,
    },
    /// A `.key` file has no `.private` file.
    #[error(
        "{}: there is no private key file in the same directory: restore it from a copy, or move this file \
        away; to publish a key that must not sign, add its DNSKEY record to the zone file",
        path.display()
    )]
    NoPrivateFile {
        /// The `.key` file.
        path: PathBuf,
    },
    /// A `.private` file has no `.key` file.
    #[error(
        "{}: there is no public key file (.key) in the same directory: restore it from a copy, or move this file away if the key is no longer used",
        path.display()
    )]
    NoPublicFile {
        /// The `.private` file.
        path: PathBuf,
    },
    /// No key signs at this time according to the times in the files.
    #[error(
        "{}: no key of {zone} is active at {}{}: activate one with dnssec-settime, generate one with \
        `nonesuch key generate {zone}`, or ignore the times with --ignore-key-times; `nonesuch key list` \
        shows the times",
        dir.display(),
        Rfc3339((*now).into()),
        next.as_ref().map_or_else(String::new, |(base, time)| format!(" ({base} becomes active at {})", Rfc3339((*time).into())))
    )]
    NoActiveKey {
        /// The directory.
        dir: PathBuf,
        /// The zone.
        zone: Name,
        /// The time for which the caller requested keys, in seconds since 1970.
        now: u32,
        /// Base name of the key with the earliest activation after `now`, and that time.
        next: Option<(String, u32)>,
    },
    /// The keys cannot sign a zone together.
    #[error(transparent)]
    KeySet(#[from] KeySetError),
}

/// Returns advice for a file that was in the list of the directory. Its path is correct, so a
/// missing file was removed in the meantime.
fn listed_file_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::NotFound => {
            ": the file was removed while the directory was read: restore it, or run the command again"
        }
        _ => read_remedy(error),
    }
}
