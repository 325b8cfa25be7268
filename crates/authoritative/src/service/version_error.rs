//! Why a version of a zone is refused.

use crate::OpenImageError;
use nonesuch_dnssec::keys::directory::KeyDirectoryError;
use nonesuch_dnssec::online::{LoadProverError, PrepareError};
use nonesuch_dnssec::transition::{TransitionFault, list_faults};
use nonesuch_dnssec::verify::{Fault, FaultReason, Report, count_faults};
use nonesuch_proto::{Name, Rtype};
use nonesuch_secondary::{PublishError, RejectionPeriod};
use nonesuch_zone::LoadError;
use nonesuch_zone::image::CompileError;
use nonesuch_zone::read::read_remedy;
use std::io;
use std::path::{Path, PathBuf};

/// Why a version of a zone is not published. What was published before goes on being served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VersionError {
    /// There is no such zone.
    #[error("there is no zone of this name here")]
    Unknown,
    /// It was transferred from somebody whom the zone is not had from any longer.
    #[error("the zone is no longer had from this primary: its settings have changed meanwhile")]
    OtherSource,
    /// Its records are not of this zone.
    #[error("the records are of {0}")]
    OtherZone(Name),
    /// Its file cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its file, an image, cannot be opened.
    #[error(transparent)]
    Image(#[from] OpenImageError),
    /// Its file cannot be looked at.
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// It came from what can be read once.
    #[error("{} cannot be read again: serve a file, where another version is to take its place", .0.display())]
    ReadOnce(PathBuf),
    /// Its file changed while it was read.
    #[error("{}: changed while it was read: write zone files beside and rename them into place", .0.display())]
    Moving(PathBuf),
    /// It has no NS records at its apex (RFC 2181 §6.1), whatever is done about faults.
    #[error("there are no NS records at the zone's apex: add them")]
    NoApexNs,
    /// It is not sound.
    #[error(
        "not fit to be served: {}, the first: {}; `nonesuch zone verify FILE` lists all; mend the zone, or sign it again with \
         `nonesuch zone sign`",
        count_faults(*faults), first.join("; ")
    )]
    Unsound {
        /// Number of faults.
        faults: usize,
        /// The first of them.
        first: Vec<String>,
        /// How long they are faults.
        verdict: RejectionPeriod,
    },
    /// Its ZONEMD record does not verify (RFC 8976 §4): these are not the records that were published.
    #[error(
        "not fit to be served: the zone digest does not verify: {0}; get the version that its publisher digested, remove the ZONEMD \
         record, or set verify = \"none\" to serve it unchecked"
    )]
    WrongDigest(Box<Fault>),
    /// Its key set alone is signed.
    #[error(
        "the key set is signed and nothing else, as `nonesuch zone sign --only-keys` leaves it: have the rest made when asked, with \
         denial and keys, or sign the zone as a whole"
    )]
    OnlyKeySet,
    /// It is signed with NSEC5, and its VRF key is nowhere.
    #[error("the zone has NSEC5, and {}: name the folder of its VRF key with nsec5-keys", without_folder(folder.as_deref()))]
    Nsec5KeysNeeded {
        /// The folder beside its file; `None` where it has no file.
        folder: Option<PathBuf>,
    },
    /// It is to be served with NSEC5 and has none.
    #[error(
        "the zone is not signed with NSEC5: leave nsec5-keys out, or sign it with `nonesuch zone sign --denial nsec5`"
    )]
    NotNsec5,
    /// A name has more records of one type than `max-records-per-type` allows.
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
    /// A name has more types than `max-types-per-name` allows.
    #[error("{owner} has {count} types, and max-types-per-name allows {limit}: remove some, or raise it")]
    TooManyTypes {
        /// The name.
        owner: Name,
        /// Number of types.
        count: usize,
        /// The limit.
        limit: u32,
    },
    /// It is to be signed, and is not.
    #[error("the zone is not signed, and dnssec = \"required\" has that refused: sign it, or take that out")]
    NotSigned,
    /// It would be bogus for validators that hold the previous version's keys.
    #[error(
        "the new version breaks validators that hold the previous one: {}; sign with the keys that the previous version has, or allow \
         this (allow-unsafe-transition)",
        list_faults(.0)
    )]
    UnsafeTransition(Vec<TransitionFault>),
    /// Keys are missing or faulty.
    #[error(transparent)]
    Keys(#[from] Box<KeyDirectoryError>),
    /// The VRF key or the stored proofs are missing or faulty.
    #[error(transparent)]
    Prover(#[from] Box<LoadProverError>),
    /// It cannot be signed or denied when asked.
    #[error(transparent)]
    Prepare(#[from] Box<PrepareError>),
    /// It does not fit into an image.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// It could not be stored. A version that is not stored is not published where an older one is.
    #[error("{}: cannot be written: {source}{}", path.display(), write_remedy(source))]
    Store {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

impl VersionError {
    /// What it means for a version that was transferred and verified at `now`.
    pub(super) fn of_transfer(self, now: u32) -> PublishError {
        let reason = self.to_string();
        let verdict = match self {
            Self::Unknown | Self::OtherSource => return PublishError::NoLongerWanted(reason),
            Self::Store { .. } | Self::Keys(_) => return PublishError::Failed(reason),
            Self::Unsound { first, verdict, .. } => {
                return PublishError::Rejected { reason: first.join("; "), verdict };
            }
            Self::Prepare(error) => match *error {
                PrepareError::Keys(_) => return PublishError::Failed(reason),
                PrepareError::Unsound(report) => verdict_of(&report, now),
                _ => RejectionPeriod::Final,
            },
            _ => RejectionPeriod::Final,
        };
        PublishError::Rejected { reason, verdict }
    }

    /// Whether a file that no server has written is in the place of a stored version: the operator has to move it.
    pub(super) fn is_in_the_way(&self) -> bool {
        matches!(self, Self::Store { source, .. } if source.kind() == io::ErrorKind::AlreadyExists)
    }
}

/// How long a version has these faults that was verified at `now`.
pub(super) fn verdict_of(report: &Report, now: u32) -> RejectionPeriod {
    let wait = |fault: &Fault| match fault.reason {
        FaultReason::NotYetValid { inception, .. } => Some(inception.wrapping_sub(now)),
        FaultReason::Expired { .. } => Some(0),
        _ => None,
    };
    let seconds = report.faults.iter().filter_map(wait).max();
    seconds.map_or(RejectionPeriod::Final, |seconds| RejectionPeriod::For { seconds })
}

fn without_folder(folder: Option<&Path>) -> String {
    let there_is_none = |folder: &Path| format!("there is no folder {} beside its file", folder.display());
    folder.map_or_else(|| "has no file that a folder could stand beside".to_owned(), there_is_none)
}

/// What to do where a file of the state folder cannot be written; nothing where the error says it.
fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::AlreadyExists => "",
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            ": make room"
        }
        io::ErrorKind::PermissionDenied | io::ErrorKind::ReadOnlyFilesystem => {
            ": make the folder writable for the server's user"
        }
        _ => ": see to the folder and to the room in it",
    }
}
