//! Errors of `nonesuch serve FILE`.

use crate::zones::ONLY_KEY_SET_MESSAGE;
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
    #[error("{}: {ONLY_KEY_SET_MESSAGE}", path.display())]
    OnlyKeySet { path: PathBuf },
    #[error(
        "{}: the zone is signed with NSEC5, whose server has no signing key and uses no other denial \
            mechanism: leave --keys and --denial out, and name the directory of the VRF key with \
            --nsec5-keys",
        path.display()
    )]
    Nsec5WithKeys { path: PathBuf },
    #[error(
        "{}: the zone is signed with NSEC5, and the directory {} with its VRF key does not exist: name \
            the directory with --nsec5-keys",
        path.display(), dir.display()
    )]
    Nsec5KeysNeeded { path: PathBuf, dir: PathBuf },
    #[error(
        "{}: --keys requires online signing: choose a mechanism with --denial ({}), or leave --keys out",
        path.display(), online_mechanisms()
    )]
    KeysWithoutDenial { path: PathBuf },
    #[error("{}: the zone is not signed with NSEC5: leave --nsec5-keys out", path.display())]
    NotNsec5 { path: PathBuf },
    #[error(
        "{}: {mechanism} is not an online mechanism: sign the zone with `nonesuch zone sign --denial \
            {mechanism}`, and leave --denial out",
        path.display()
    )]
    NotOnline { path: PathBuf, mechanism: Mechanism },
}

impl ZoneFileError {
    /// Whether the zone does not verify.
    pub(crate) fn is_negative(&self) -> bool {
        match self {
            Self::OnlyKeySet { .. }
            | Self::NotServed {
                source: VersionError::FaultsFound { .. } | VersionError::WrongDigest(_),
                ..
            } => true,
            Self::NotServed { source: VersionError::Prepare(error), .. } => {
                matches!(**error, PrepareError::Faulty(_))
            }
            _ => false,
        }
    }
}

/// Names of the mechanisms whose records are generated online.
fn online_mechanisms() -> String {
    let online = MECHANISMS.iter().filter(|entry| entry.generation == DenialGeneration::Online);
    online.map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}
