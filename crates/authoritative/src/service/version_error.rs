//! Reasons why a version of a zone is rejected.

use crate::OpenImageError;
use nonesuch_dnssec::keys::directory::KeyDirectoryError;
use nonesuch_dnssec::online::{LoadProverError, PrepareError};
use nonesuch_dnssec::transition::{TransitionFault, list_faults};
use nonesuch_dnssec::verify::{Fault, FaultReason, Report, format_fault_count};
use nonesuch_proto::{Name, Rtype};
use nonesuch_secondary::{PublishError, RejectionPeriod};
use nonesuch_zone::LoadError;
use nonesuch_zone::image::CompileError;
use nonesuch_zone::read::read_remedy;
use std::io;
use std::path::{Path, PathBuf};

/// Reasons why a version of a zone is not published. The server continues to serve the previous
/// version.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// The service has no zone with this name, or the zone was removed in the meantime.
    #[error("the server has no zone with this name")]
    UnknownZone,
    /// The settings of the zone no longer name the primary from which the version was transferred.
    #[error("the settings of the zone changed during the transfer and no longer contain this primary")]
    PrimaryRemoved,
    /// The records belong to the zone with this name, and not to the zone to be published.
    #[error("the records belong to the zone {0}")]
    OtherZone(Name),
    /// The file cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// The file begins as an image does, and the image cannot be opened.
    #[error(transparent)]
    Image(#[from] OpenImageError),
    /// The metadata of the file cannot be read.
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
    /// The source is a stream that can be read only once.
    #[error("{} is a stream and cannot be read again: serve a zone that changes from a file", .0.display())]
    StreamAlreadyRead(PathBuf),
    /// The file changed while the server read it.
    #[error("{}: changed while the server read it: write each version to a temporary file in the same directory, and rename it", .0.display())]
    ChangedWhileRead(PathBuf),
    /// The zone has no NS records at its apex (RFC 2181 §6.1). Such a version is rejected even with
    /// `on-fault = "warn"`.
    #[error("the zone has no NS records at its apex: add them")]
    NoApexNs,
    /// Verification found faults.
    #[error(
        "verification found {}, first: {}; `nonesuch zone verify FILE` lists all faults; correct the zone, or sign it again with \
         `nonesuch zone sign`",
        format_fault_count(*faults), first.join("; ")
    )]
    FaultsFound {
        /// Number of faults.
        faults: usize,
        /// Texts of the first three faults.
        first: Vec<String>,
        /// Period for which this version remains rejected.
        verdict: RejectionPeriod,
    },
    /// The ZONEMD record does not verify (RFC 8976 §4): the records differ from those that were
    /// published.
    #[error(
        "the zone digest does not verify: {0}; obtain the version from which the publisher computed the digest, remove the ZONEMD \
         record, or set verify = \"none\" to serve the zone without verification"
    )]
    WrongDigest(Box<Fault>),
    /// Only the key set (DNSKEY, CDS and CDNSKEY) is signed, and the settings do not require online signing.
    #[error(
        "only the DNSKEY, CDS and CDNSKEY records are signed, as by `nonesuch zone sign --only-keys`: set denial and keys to sign the \
         other records online, or sign the whole zone"
    )]
    OnlyKeySet,
    /// The zone is signed with NSEC5, and its VRF key is missing.
    #[error("the zone has NSEC5, and {}: set nsec5-keys to the directory of its VRF key", missing_directory_text(directory.as_deref()))]
    Nsec5KeysNeeded {
        /// The missing directory next to the zone file; `None` if the zone has no file.
        directory: Option<PathBuf>,
    },
    /// The settings require NSEC5, and the zone is not signed with NSEC5.
    #[error(
        "the zone is not signed with NSEC5: remove nsec5-keys, or sign it with `nonesuch zone sign --denial nsec5`"
    )]
    NotNsec5,
    /// A name has more records of one type than `max-records-per-type` permits.
    #[error(
        "{owner} has {count} {rtype} records, and max-records-per-type allows {limit}: remove some, or raise it"
    )]
    TooManyRecords {
        /// The name.
        owner: Name,
        /// The type.
        rtype: Rtype,
        /// Number of records.
        count: usize,
        /// The limit.
        limit: u32,
    },
    /// A name has more types than `max-types-per-name` permits.
    #[error("{owner} has {count} types, and max-types-per-name allows {limit}: remove some, or raise it")]
    TooManyTypes {
        /// The name.
        owner: Name,
        /// Number of types.
        count: usize,
        /// The limit.
        limit: u32,
    },
    /// The settings require a signed zone, and the version is not signed.
    #[error(
        "the zone is not signed, and dnssec = \"required\" rejects unsigned versions: sign the zone, or remove this setting"
    )]
    NotSigned,
    /// Validators with the keys of the previous version would regard the version as bogus.
    #[error(
        "validating resolvers that have cached the previous version would treat the new version as bogus: {}; sign with \
         the keys of the previous version too, or permit this with allow-unsafe-transition",
        list_faults(.0)
    )]
    UnsafeTransition(Vec<TransitionFault>),
    /// Keys are missing or invalid.
    #[error(transparent)]
    Keys(#[from] Box<KeyDirectoryError>),
    /// The VRF key or the stored proofs are missing or invalid.
    #[error(transparent)]
    Prover(#[from] Box<LoadProverError>),
    /// The zone cannot be prepared for online signing.
    #[error(transparent)]
    Prepare(#[from] Box<PrepareError>),
    /// The zone does not fit into an image.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// The version cannot be stored. If an older version is stored, the new one is not published.
    #[error("{}: cannot be written: {source}{}", path.display(), write_remedy(source))]
    Store {
        /// Path of the file.
        path: PathBuf,
        /// Error of the operating system.
        source: io::Error,
    },
}

impl VersionError {
    /// Converts the error of a transferred version to the error that the transfers expect. `now` is
    /// the time of verification, in seconds since 1970 modulo 2^32.
    pub(super) fn into_publish_error(self, now: u32) -> PublishError {
        let reason = self.to_string();
        let verdict = match self {
            Self::UnknownZone | Self::PrimaryRemoved => return PublishError::NoLongerWanted(reason),
            Self::Store { .. } | Self::Keys(_) => return PublishError::Failed(reason),
            Self::FaultsFound { first, verdict, .. } => {
                return PublishError::Rejected { reason: first.join("; "), verdict };
            }
            Self::Prepare(error) => match *error {
                PrepareError::Keys(_) => return PublishError::Failed(reason),
                PrepareError::Faulty(report) => rejection_period(&report, now),
                _ => RejectionPeriod::Final,
            },
            _ => RejectionPeriod::Final,
        };
        PublishError::Rejected { reason, verdict }
    }

    /// Returns whether the version cannot be stored because a file that no server wrote has the
    /// name of a stored file. The operator must move that file.
    pub(super) fn is_foreign_file(&self) -> bool {
        matches!(self, Self::Store { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }
}

/// Returns how long a version with this report, which was verified at `now`, remains rejected. If
/// signatures are not yet valid, this is until the last of them becomes valid. If no signature is
/// too new but some have expired, this is 0 seconds. Without either fault, the rejection is final.
pub(super) fn rejection_period(report: &Report, now: u32) -> RejectionPeriod {
    let seconds_until_valid = |fault: &Fault| match fault.reason {
        FaultReason::NotYetValid { inception, .. } => Some(inception.wrapping_sub(now)),
        FaultReason::Expired { .. } => Some(0),
        _ => None,
    };
    let seconds = report.faults.iter().filter_map(seconds_until_valid).max();
    seconds.map_or(RejectionPeriod::Final, |seconds| RejectionPeriod::For { seconds })
}

/// Returns why the VRF key of a zone is missing: `directory`, its default directory, does not
/// exist; or the zone has no default directory (`None`).
fn missing_directory_text(directory: Option<&Path>) -> String {
    let not_found =
        |directory: &Path| format!("the directory {} next to its file does not exist", directory.display());
    directory.map_or_else(|| "it has no file, so there is no default directory".to_owned(), not_found)
}

/// Returns the remedy for an error when writing a file in the state directory; empty if the error
/// message contains it.
fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        // The operating system reports this kind for its limits. Without its error number, the
        // error is about a limit of the file format, and states it.
        io::ErrorKind::FileTooLarge if error.raw_os_error().is_some() => {
            ": raise the file size limit of the server (`ulimit -f`, LimitFSIZE of systemd), or move state-dir to a file system that \
             permits larger files"
        }
        io::ErrorKind::AlreadyExists | io::ErrorKind::FileTooLarge => "",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => ": free disk space",
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": make the directory writable for the server's user"
        }
        _ => ": check the directory and its free disk space",
    }
}
