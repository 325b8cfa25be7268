//! Errors of the `key` commands.

use crate::files::FileError;
use crate::keys::{ReadKeyError, ReasonOnly};
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
    #[error("cannot generate a key with an unused key tag in {}: remove keys that are no longer used", dir.display())]
    NoFreeTag {
        dir: PathBuf,
    },
    #[error("{}: {source}", path.display())]
    PrivateKey {
        path: PathBuf,
        source: KeyError,
    },
    #[error("{}: the .key file with the name of the zone is missing: set --zone ZONE", path.display())]
    ZoneNeeded {
        path: PathBuf,
    },
    #[error("{}: the .key file with the role of the key is missing: set --ksk, --csk or --zsk", path.display())]
    RoleNeeded {
        path: PathBuf,
    },
    #[error("{}: the algorithm of the key may be {choices}: set --algorithm", path.display())]
    AlgorithmNeeded {
        path: PathBuf,
        choices: String,
    },
    #[error("{}: the key is {found}, not {wanted}: leave {} out, or name another file", path.display(), wanted.option())]
    Contradiction {
        path: PathBuf,
        found: Property,
        wanted: Property,
    },
    #[error(
        "{}: already exists, and nothing was written: {obstacle}; move the file, or name another directory \
            with --dir",
        path.display()
    )]
    FileExists {
        path: PathBuf,
        obstacle: Obstacle,
    },
    #[error("{input}: found no unrevoked key with the SEP flag: add --all to include keys without the flag")]
    NoEntryPoint {
        input: String,
    },
    #[error("the zone '{text}' is not a domain name: {source}")]
    ZoneName {
        text: String,
        source: NameError,
    },
    #[error(
        "'{name}' is not accepted by every server as the name of a TSIG key: use letters, digits, - and \
            _, for example transfer.example."
    )]
    TsigName {
        name: Name,
    },
    #[error("cannot get random octets from the system: {0}")]
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

impl Property {
    /// The option that requires this property.
    const fn option(&self) -> &'static str {
        match self {
            Self::Algorithm(_) => "--algorithm",
            Self::Zone(_) => "--zone",
            Self::Role { is_sep: true } => "--ksk or --csk",
            Self::Role { is_sep: false } => "--zsk",
        }
    }
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
    #[error("it has another key with the same key tag")]
    KeyMismatch,
    #[error("{}", ReasonOnly(.0))]
    Unusable(ReadKeyError),
    #[error(transparent)]
    NotPrivate(KeyError),
}
