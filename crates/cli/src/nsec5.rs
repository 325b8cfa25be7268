//! The directory with the VRF key and the stored proofs of a zone, for NSEC5.
//!
//! It contains the data that a name server needs, and no signing key. An attacker who obtains it
//! can enumerate the zone but cannot forge data.

use crate::files::{is_world_readable, read_key_text};
use nonesuch_authoritative::service::NSEC5_DIRECTORY;
use nonesuch_crypto::vrf::VrfPrivateKey;
use nonesuch_dnssec::denial::nsec5::{
    Nsec5DirectoryError, Nsec5Evidence, Proofs, StoredVrfKey, is_vrf_key_of, parse_proofs,
};
use nonesuch_dnssec::keys::{Nsec5Key, proofs_file_name};
use nonesuch_dnssec::online::{LoadProverError, Nsec5Prover, Nsec5Zone};
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::Contents;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Why the evidence for a verification cannot be loaded.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum EvidenceError {
    #[error(transparent)]
    Directory(#[from] Nsec5DirectoryError),
    #[error("{}: not a directory with proofs or a VRF key: name the directory of the zone's proofs with \
        --nsec5-keys, or leave --nsec5-keys out", dir.display())]
    NoDirectory { dir: PathBuf },
    #[error("{}: contains neither proofs nor a VRF key of the zone {zone}: name the directory that contains \
        them, or leave --nsec5-keys out", dir.display())]
    NoEvidence { dir: PathBuf, zone: Name },
}

/// The data with which a verification matches names to NSEC5 records: proofs, VRF key, or neither.
#[derive(Default)]
pub(crate) struct Evidence {
    proofs: Option<Proofs>,
    key: Option<VrfPrivateKey>,
}

impl Evidence {
    pub(crate) const fn view(&self) -> Nsec5Evidence<'_> {
        Nsec5Evidence { proofs: self.proofs.as_ref(), key: self.key.as_ref() }
    }
}

/// Loads the evidence for the verification of the NSEC5 zone in `file`: its stored proofs or,
/// without them, its VRF key. The directory is `requested` or, if that is `None`, the default
/// directory next to the file, if it exists.
pub(crate) fn load_evidence(
    file: &Path,
    requested: Option<&Path>,
    contents: &Contents,
) -> Result<Evidence, EvidenceError> {
    let dir = requested.map_or_else(|| default_directory(file), Path::to_path_buf);
    let is_requested = requested.is_some();
    if contents.apex_rrset(Rtype::NSEC5KEY).is_none() || !is_requested && !dir.is_dir() {
        return Ok(Evidence::default());
    }
    if !dir.is_dir() {
        return Err(EvidenceError::NoDirectory { dir });
    }
    let path = dir.join(proofs_file_name(contents.apex()));
    let proofs = read_proofs(&path)?;
    if proofs.is_some() {
        return Ok(Evidence { proofs, key: None });
    }
    let mut keys = load_vrf_keys(&dir, contents.apex())?;
    keys.retain(|stored| is_published(contents, &stored.key));
    let key = keys.pop().map(|stored| stored.key);
    if key.is_none() && is_requested {
        return Err(EvidenceError::NoEvidence { dir, zone: contents.apex().clone() });
    }
    Ok(Evidence { proofs: None, key })
}

/// Loads the VRF key of the zone and the stored proofs from `dir`.
pub(crate) fn load_prover(dir: &Path, zone: &Nsec5Zone) -> Result<Nsec5Prover, LoadProverError> {
    let proofs = read_proofs(&dir.join(proofs_file_name(zone.apex())))?;
    let keys = load_vrf_keys(dir, zone.apex())?;
    let has_proofs = proofs.is_some();
    let prover = Nsec5Prover::from_directory(zone, dir, keys, proofs)?;
    if !has_proofs {
        tracing::warn!(
            name: "proofs-missing",
            "{}: no stored proofs of {}: generating all proofs online",
            dir.display(),
            zone.apex()
        );
    }
    Ok(prover)
}

/// The default directory for the zone in `file`: `nsec5` next to the file; for `-` (standard input
/// or output), in the working directory.
pub(crate) fn default_directory(file: &Path) -> PathBuf {
    file.parent().unwrap_or_else(|| Path::new("")).join(NSEC5_DIRECTORY)
}

/// Reads a file of proofs. Returns `None` if it does not exist. A file that is not regular is an
/// error.
pub(crate) fn read_proofs(path: &Path) -> Result<Option<Proofs>, Nsec5DirectoryError> {
    let octets = match fs::metadata(path) {
        // A file that is not regular contains no proofs.
        Ok(metadata) if !metadata.is_file() => Ok(Vec::new()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(None),
        found => found.and_then(|_| fs::read(path)),
    };
    parse_proofs(path, octets).map(Some)
}

/// The NSEC5KEY records of the zone.
pub(crate) fn published_keys(contents: &Contents) -> impl Iterator<Item = Nsec5Key> {
    let rdatas = contents.apex_rrset(Rtype::NSEC5KEY).into_iter().flat_map(|rrset| rrset.rdatas());
    rdatas.filter_map(Nsec5Key::from_rdata)
}

/// Whether the zone has the NSEC5KEY record of `key`.
pub(crate) fn is_published(contents: &Contents, key: &VrfPrivateKey) -> bool {
    let public = Nsec5Key::of(key);
    published_keys(contents).any(|other| other == public)
}

/// The VRF keys of `zone` in `dir`, in the order of their file names.
pub(crate) fn load_vrf_keys(dir: &Path, zone: &Name) -> Result<Vec<StoredVrfKey>, Nsec5DirectoryError> {
    let read = |path: PathBuf| {
        let text = read_key_text(&path);
        StoredVrfKey::parse(path, zone, text)
    };
    vrf_key_paths(dir, zone)?.into_iter().map(read).collect()
}

/// The paths of the VRF key files of `zone` in `dir`, sorted.
fn vrf_key_paths(dir: &Path, zone: &Name) -> Result<Vec<PathBuf>, Nsec5DirectoryError> {
    let mut names = private_file_names(dir)
        .map_err(|source| Nsec5DirectoryError::Read { path: dir.to_path_buf(), source })?;
    names.retain(|name| name.strip_suffix(".private").is_some_and(|base| is_vrf_key_of(base, zone)));
    Ok(names.iter().map(|name| dir.join(name)).collect())
}

/// Files with VRF keys of `zone` in `dir` that every user may read. Such a key makes it possible to
/// enumerate the zone.
pub(crate) fn world_readable_keys(dir: &Path, zone: &Name) -> Vec<PathBuf> {
    // The code that reads the directory reports an error.
    let mut paths = vrf_key_paths(dir, zone).unwrap_or_default();
    paths.retain(|path| is_world_readable(path));
    paths
}

/// Names of the files in `dir` with the suffix of private keys, sorted.
pub(crate) fn private_file_names(dir: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(dir)? {
        let name = entry?.file_name();
        names.extend(name.to_str().filter(|name| name.ends_with(".private")).map(str::to_owned));
    }
    names.sort_unstable();
    Ok(names)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_default_directory_is_next_to_the_file() {
        assert_eq!(default_directory(Path::new("a/b.signed")), Path::new("a/nsec5"));
        assert_eq!(default_directory(Path::new("b.signed")), Path::new("nsec5"));
        assert_eq!(default_directory(Path::new("-")), Path::new("nsec5"));
    }
}
