//! Reads the files of a zone with NSEC5 from file names and contents that the caller passes: VRF
//! keys in files `N<zone>+<algorithm>+<tag>.private`, and stored proofs.

use super::{Proofs, ProofsFileError};
use crate::keys::Nsec5Key;
use crate::keys::directory::zone_in_base_name;
use nonesuch_crypto::vrf::{VrfKeyError, VrfPrivateKey};
use nonesuch_proto::Name;
use nonesuch_zone::read::read_remedy;
use std::io;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// Error of the files in the directory of a zone with NSEC5.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Nsec5DirectoryError {
    /// A file or the directory cannot be read.
    #[error("{}: cannot be read: {source}{}", path.display(), read_remedy(source))]
    Read {
        /// The file or the directory.
        path: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// A file has no usable VRF key.
    #[error("{}: {source}", path.display())]
    Key {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: VrfKeyError,
    },
    /// The file has another key than its name states.
    #[error("{}: the file name does not match the key in the file: rename the file to {expected}.private", path.display())]
    KeyName {
        /// The file.
        path: PathBuf,
        /// Base name of the key in the file.
        expected: String,
    },
    /// The file of proofs is malformed.
    #[error("{}: {source}: sign the zone again, which rewrites the file", path.display())]
    Proofs {
        /// The file.
        path: PathBuf,
        /// The fault.
        source: ProofsFileError,
    },
}

/// A VRF key and its file.
#[derive(Debug)]
pub struct StoredVrfKey {
    /// The file.
    pub path: PathBuf,
    /// The key.
    pub key: VrfPrivateKey,
}

/// Whether `base`, a file name without its suffix, is the name of a VRF key of `zone`.
#[must_use]
pub fn is_vrf_key_of(base: &str, zone: &Name) -> bool {
    zone_in_base_name(base, 'N').is_some_and(|owner| owner == *zone)
}

impl StoredVrfKey {
    /// Parses `text`, the content of the file at `path` or the error of reading it. The file name
    /// must be the name of a key of `zone`.
    ///
    /// # Errors
    /// [`Nsec5DirectoryError::Read`] if `text` is an error; [`Nsec5DirectoryError::Key`];
    /// [`Nsec5DirectoryError::KeyName`].
    pub fn parse(
        path: PathBuf,
        zone: &Name,
        text: io::Result<Zeroizing<String>>,
    ) -> Result<Self, Nsec5DirectoryError> {
        let text = match text {
            Ok(text) => text,
            Err(source) => return Err(Nsec5DirectoryError::Read { path, source }),
        };
        let key = match VrfPrivateKey::from_text(&text) {
            Ok(key) => key,
            Err(source) => return Err(Nsec5DirectoryError::Key { path, source }),
        };
        let expected = Nsec5Key::of(&key).base_name(zone);
        let base = path.file_stem().and_then(|base| base.to_str()).unwrap_or_default();
        if !expected.eq_ignore_ascii_case(base) {
            return Err(Nsec5DirectoryError::KeyName { path, expected });
        }
        Ok(Self { path, key })
    }
}

/// Decodes `octets`, the content of the file of proofs at `path` or the error of reading it.
///
/// # Errors
/// [`Nsec5DirectoryError::Read`] if `octets` is an error; [`Nsec5DirectoryError::Proofs`].
pub fn parse_proofs(path: &Path, octets: io::Result<Vec<u8>>) -> Result<Proofs, Nsec5DirectoryError> {
    let octets = octets.map_err(|source| Nsec5DirectoryError::Read { path: path.to_path_buf(), source })?;
    Proofs::read(&octets).map_err(|source| Nsec5DirectoryError::Proofs { path: path.to_path_buf(), source })
}
