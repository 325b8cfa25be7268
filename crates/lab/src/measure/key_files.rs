//! Writes the files from which a server reads its keys.

use nonesuch_crypto::vrf::VrfPrivateKey;
use nonesuch_dnssec::KeySet;
use nonesuch_dnssec::denial::nsec5::Proofs;
use nonesuch_dnssec::keys::{KeyTimes, Nsec5Key, proofs_file_name};
use nonesuch_proto::Name;
use std::fs::{self, OpenOptions};
use std::io::{self, Write as _};
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Path, PathBuf};

/// Permissions of files without secrets.
pub(crate) const PUBLIC: u32 = 0o644;
/// Permissions of files with secrets: only the owner can read them.
const PRIVATE: u32 = 0o600;

/// A file or directory cannot be written.
#[derive(Debug, thiserror::Error)]
#[error("{}: cannot be written: {source}: check the path and the permissions", path.display())]
pub struct WriteError {
    pub(crate) path: PathBuf,
    pub(crate) source: io::Error,
}

/// Writes a file that must not exist.
pub(crate) fn write_new_file(path: &Path, mode: u32, octets: &[u8]) -> Result<(), WriteError> {
    let write = || OpenOptions::new().write(true).create_new(true).mode(mode).open(path)?.write_all(octets);
    write().map_err(|source| WriteError { path: path.to_owned(), source })
}

/// Creates a directory and its missing parents.
pub(crate) fn create_directory(path: &Path) -> Result<(), WriteError> {
    fs::create_dir_all(path).map_err(|source| WriteError { path: path.to_owned(), source })
}

/// Writes both files of each key into `directory`, which is created if it is missing.
pub(crate) fn write_signing_keys(
    directory: &Path,
    keys: &KeySet,
    times: &KeyTimes,
) -> Result<(), WriteError> {
    create_directory(directory)?;
    for key in keys.keys() {
        let path = |suffix: &str| directory.join(key.base_name() + suffix);
        write_new_file(&path(".key"), PUBLIC, key.key_file_text(times).as_bytes())?;
        write_new_file(&path(".private"), PRIVATE, key.private_file_text(times).as_bytes())?;
    }
    Ok(())
}

/// Writes the VRF key and the proofs of `zone` into `directory`, which is created if it is missing.
pub(crate) fn write_nsec5_files(
    directory: &Path,
    zone: &Name,
    key: &VrfPrivateKey,
    proofs: &Proofs,
) -> Result<(), WriteError> {
    create_directory(directory)?;
    let name = Nsec5Key::of(key).base_name(zone) + ".private";
    write_new_file(&directory.join(name), PRIVATE, key.to_text().as_bytes())?;
    let path = directory.join(proofs_file_name(zone));
    let mut octets = Vec::new();
    proofs.write_to(&mut octets).map_err(|source| WriteError { path: path.clone(), source })?;
    write_new_file(&path, PRIVATE, &octets)
}
