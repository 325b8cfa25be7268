//! Reads the files of a stolen server.

use crate::keys;
use crate::nsec5;
use crate::zones::{ReadZoneError, load_zone};
use nonesuch_authoritative::service::StateDirectory;
use nonesuch_dnssec::denial::nsec5::Nsec5DirectoryError;
use nonesuch_dnssec::keys::directory::KeyDirectoryError;
use nonesuch_dnssec::keys::proofs_file_name;
use nonesuch_lab::enumerate::StolenFiles;
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::Node;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Maximum number of subdirectories that are read.
const DIRECTORIES_MAX: usize = 1000;

/// Why the files of a stolen server are not read.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum StolenServerError {
    #[error("{}: cannot be read: {source}: name the state directory or the key directory of a server", path.display())]
    Directory {
        path: PathBuf,
        source: io::Error,
    },
    Keys(#[from] KeyDirectoryError),
    Nsec5(#[from] Nsec5DirectoryError),
    Zone(#[from] ReadZoneError),
}

/// Reads the keys, proofs and stored versions of `zone` in the directories and their subdirectories.
pub(super) fn read(directories: &[PathBuf], zone: &Name) -> Result<StolenFiles, StolenServerError> {
    let names: Vec<String> = directories.iter().map(|path| path.display().to_string()).collect();
    let mut files = StolenFiles { directory: names.join(", "), ..StolenFiles::default() };
    for directory in directories {
        read_directory(directory, zone, &mut files)?;
        for subdirectory in subdirectories(directory)? {
            read_directory(&subdirectory, zone, &mut files)?;
        }
    }
    Ok(files)
}

fn subdirectories(directory: &Path) -> Result<Vec<PathBuf>, StolenServerError> {
    let failed = |source| StolenServerError::Directory { path: directory.to_path_buf(), source };
    let mut found = Vec::new();
    for entry in fs::read_dir(directory).map_err(failed)? {
        let path = entry.map_err(failed)?.path();
        if path.is_dir() && found.len() < DIRECTORIES_MAX {
            found.push(path);
        }
    }
    found.sort();
    Ok(found)
}

/// Adds the files of one directory.
fn read_directory(directory: &Path, zone: &Name, files: &mut StolenFiles) -> Result<(), StolenServerError> {
    match keys::read_directory(directory, zone) {
        // A thief ignores the times in the key files.
        Ok(keys) => files.signing_keys.extend(keys.zone_keys(None)?.pairs),
        Err(KeyDirectoryError::NoKeys { .. }) => {}
        Err(error) => return Err(error.into()),
    }
    let vrf_keys = nsec5::load_vrf_keys(directory, zone)?;
    files.vrf_keys.extend(vrf_keys.into_iter().map(|stored| stored.key));
    if files.proofs.is_none() {
        files.proofs = nsec5::read_proofs(&directory.join(proofs_file_name(zone)))?;
    }
    let stored = StateDirectory::version_path(directory, zone);
    if stored.is_file() {
        let contents = load_zone(&stored, Some(zone))?.contents;
        // The owners of these records are hashes.
        let is_hash = |node: &Node<'_>| node.has(Rtype::NSEC3) || node.has(Rtype::NSEC5);
        let names = contents.nodes().filter(|node| !is_hash(node));
        files.stored_names.extend(names.map(|node| node.name().to_name()));
    }
    Ok(())
}
