//! Errors of the `key` commands.

use crate::files::FileError;
use crate::keys::ReadKeyError;
use nonesuch_crypto::{Algorithm, KeyError};
use nonesuch_dnssec::keys::KeyFileError;
use nonesuch_dnssec::keys::directory::KeyDirectoryError;
use nonesuch_proto::{Name, NameError};
use std::fmt;
use std::path::PathBuf;

/// Why a `key` command fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    ReadKey(#[from] ReadKeyError),
    KeyDirectory(#[from] KeyDirectoryError),
    #[error("{}: {source}", path.display())]
    KeyFile {
        path: PathBuf,
        source: KeyFileError,
    },
    Generation(#[from] KeyError),
    #[error("no key with a tag of its own could be made in {}: remove keys that are no longer used", dir.display())]
    NoFreeTag {
        dir: PathBuf,
    },
    #[error("{}: {source}", path.display())]
    PrivateKey {
        path: PathBuf,
        source: KeyError,
    },
    #[error("{}: no .key file beside it says whose key it is: give --zone ZONE", path.display())]
    ZoneNeeded {
        path: PathBuf,
    },
    #[error("{}: no .key file beside it says what the key is for: give --ksk, --csk or --zsk", path.display())]
    RoleNeeded {
        path: PathBuf,
    },
    #[error("{}: the key may be of {choices}: give --algorithm", path.display())]
    AlgorithmNeeded {
        path: PathBuf,
        choices: String,
    },
    #[error("{}: the key is {found}, not {wanted}: leave the option out, or take another file", path.display())]
    Contradiction {
        path: PathBuf,
        found: Property,
        wanted: Property,
    },
    #[error("{}: another key stands in its place, and nothing was written: {obstacle}", path.display())]
    FileExists {
        path: PathBuf,
        obstacle: Obstacle,
    },
    #[error("{place}: no key that the parent's DS records are to name: --all takes zone-signing keys too")]
    NoEntryPoint {
        place: String,
    },
    #[error("the zone '{text}' is no domain name: {source}")]
    ZoneName {
        text: String,
        source: NameError,
    },
    #[error(
        "'{name}' is no name that every server takes for a TSIG key: use letters, digits, - and _, as in transfer.example."
    )]
    TsigName {
        name: Name,
    },
    #[error("the system's random generator fails: {0}")]
    Random(getrandom::Error),
}

/// A property of a key that contradicts an option.
#[derive(Debug)]
pub(crate) enum Property {
    Algorithm(Algorithm),
    Zone(Name),
    /// The role, by the SEP flag.
    Role {
        is_sep: bool,
    },
}

impl fmt::Display for Property {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Algorithm(algorithm) => write!(f, "of {algorithm}"),
            Self::Zone(zone) => write!(f, "of {zone}"),
            Self::Role { is_sep: true } => f.write_str("a KSK or CSK"),
            Self::Role { is_sep: false } => f.write_str("a ZSK"),
        }
    }
}

/// Why the existing file at the path of an imported key prevents the import.
#[derive(Debug, thiserror::Error)]
pub(crate) enum Obstacle {
    #[error("it holds another key of the same tag")]
    OtherKey,
    #[error(transparent)]
    Unusable(Box<Failure>),
}
