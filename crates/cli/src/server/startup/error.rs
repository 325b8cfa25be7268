//! Errors of `nonesuch serve FILE`.

use crate::zones::KEY_SET;
use nonesuch_authoritative::service::VersionError;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::{DenialGeneration, MECHANISMS};
use nonesuch_dnssec::online::PrepareError;
use std::path::PathBuf;

/// Why the zone of a file is not served. The messages refer to command line options.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ZoneFileError {
    #[error("{}: {source}", path.display())]
    NotServed { path: PathBuf, source: VersionError },
    /// The message of the source already names the file.
    #[error(transparent)]
    Refused(VersionError),
    #[error("{}: {KEY_SET}", path.display())]
    OnlyKeySet { path: PathBuf },
    #[error(
        "{}: the zone is signed with NSEC5: its server has no signing key and denies by nothing else: leave --keys and --denial \
         out, and give the folder of the VRF key with --nsec5-keys",
        path.display()
    )]
    Nsec5WithKeys { path: PathBuf },
    #[error(
        "{}: the zone is signed with NSEC5, and there is no folder {} with its VRF key: give it with --nsec5-keys",
        path.display(), dir.display()
    )]
    Nsec5KeysNeeded { path: PathBuf, dir: PathBuf },
    #[error(
        "{}: --keys is for records that are made when asked: say which with --denial ({}), or leave --keys out",
        path.display(), made_when_asked()
    )]
    KeysWithoutDenial { path: PathBuf },
    #[error("{}: the zone is not signed with NSEC5: leave --nsec5-keys out", path.display())]
    NotNsec5 { path: PathBuf },
    #[error(
        "{}: {mechanism} makes its records when the zone is signed: sign it with `nonesuch zone sign --denial {mechanism}`, and \
         leave --denial out",
        path.display()
    )]
    NotOnline { path: PathBuf, mechanism: Mechanism },
}

impl ZoneFileError {
    /// Whether the zone does not verify.
    pub(crate) fn is_no(&self) -> bool {
        match self {
            Self::OnlyKeySet { .. }
            | Self::NotServed {
                source: VersionError::Unsound { .. } | VersionError::WrongDigest(_), ..
            } => true,
            Self::NotServed { source: VersionError::Prepare(error), .. } => {
                matches!(**error, PrepareError::Unsound(_))
            }
            _ => false,
        }
    }
}

/// Names of the mechanisms whose records are generated online.
fn made_when_asked() -> String {
    let made = MECHANISMS.iter().filter(|entry| entry.generation == DenialGeneration::Online);
    made.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}
