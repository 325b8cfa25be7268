//! NSEC5 in `zone sign`: finds or generates the VRF key, generates the VRF proofs of the names of
//! the zone, and stores the proofs.

use crate::arguments::SignArguments;
use crate::files::{
    FILE_SIZE_REMEDY, FileError, KEY_MODE, check_writable, is_standard_stream, parent_directory,
    write_failure, write_output,
};
use crate::keys::find_signing_key;
use crate::nsec5::{
    default_directory, is_published, load_vrf_keys, private_file_names, published_keys, read_proofs,
};
use crate::progress::{ProgressCount, RateBar};
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfKeyError, VrfPrivateKey};
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::denial::nsec5::{
    Nsec5Chain, Nsec5DirectoryError, Nsec5Error, Proofs, ProveOptions, ProveStatistics, StoredVrfKey,
    check_nsec5_requirements, check_vrf_key_cannot_sign, prove_chain,
};
use nonesuch_dnssec::keys::{Nsec5Key, proofs_file_name};
use nonesuch_dnssec::sign::SignError;
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::Name;
use nonesuch_zone::Contents;
use std::fmt;
use std::fs::DirBuilder;
use std::io;
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::time::Instant;

/// Why the VRF proofs of the names of a zone are not generated or not stored.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum ProofError {
    File(FileError),
    #[error("{}: cannot be written: {source}{}", path.display(), write_remedy(source))]
    Write {
        path: PathBuf,
        source: io::Error,
    },
    Directory(#[from] Nsec5DirectoryError),
    Nsec5(#[from] Nsec5Error),
    Seal(#[from] SignError),
    #[error("cannot generate a VRF key: {0}")]
    VrfGeneration(VrfKeyError),
    #[error(
        "cannot generate a VRF key whose key tag no NSEC5KEY record of {zone} has: remove the NSEC5KEY records that \
            are no longer used from the zone file"
    )]
    NoFreeTag {
        zone: Name,
    },
    #[error("{}: the VRF key has the algorithm {found}, but --vrf requires {requested}: leave --vrf out, \
        or name another directory", path.display())]
    OtherVrf {
        path: PathBuf,
        found: VrfAlgorithm,
        requested: VrfAlgorithm,
    },
    #[error(
        "{}: this directory has {count} VRF keys of {zone}, and the NSEC5KEY records in the zone file do \
            not select one of them: move the keys that are no longer used to another directory",
        dir.display()
    )]
    SeveralVrfKeys {
        dir: PathBuf,
        zone: Name,
        count: usize,
    },
    #[error(
        "{}: a signing key is in the directory of the VRF key, which the server reads: move it to a \
            separate directory",
        path.display()
    )]
    SigningKey {
        path: PathBuf,
    },
    #[error("{}: not a directory: name a directory for the VRF key and the proofs with --nsec5-keys", dir.display())]
    NotADirectory {
        dir: PathBuf,
    },
}

impl From<FileError> for ProofError {
    fn from(error: FileError) -> Self {
        match error {
            FileError::Write { path, source } => Self::Write { path, source },
            error => Self::File(error),
        }
    }
}

/// The remedy for a file or the directory of `--nsec5-keys` that cannot be written.
fn write_remedy(error: &io::Error) -> &'static str {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
            ": free disk space, or name another directory with --nsec5-keys"
        }
        io::ErrorKind::FileTooLarge => FILE_SIZE_REMEDY,
        io::ErrorKind::PermissionDenied => {
            ": make the file and its directory writable, or name another directory with --nsec5-keys"
        }
        _ => ": name another directory with --nsec5-keys",
    }
}

/// Maximum attempts to generate a key with a tag that no NSEC5KEY record of the zone has.
const MAX_ATTEMPTS: usize = 16;

/// The proofs of the zone that is being signed, and the path of the file for them.
pub(super) struct ZoneProofs {
    proofs: Proofs,
    path: PathBuf,
    statistics: ProveStatistics,
    seconds: f64,
}

/// Finds or generates the VRF key, and generates the VRF proofs of the names of the zone. Returns
/// `None` for mechanisms other than NSEC5.
pub(super) fn prepare(
    arguments: &SignArguments,
    output: &Path,
    contents: &Contents,
    keys: &KeySet,
) -> Result<Option<ZoneProofs>, ProofError> {
    if arguments.mechanism().name_hash() != NameHash::Vrf {
        if arguments.nsec5_keys.is_some() || arguments.vrf.is_some() || arguments.keep_nsec5key {
            tracing::warn!(name: "option-without-effect", "--nsec5-keys, --vrf and --keep-nsec5key apply only to NSEC5: no effect");
        }
        return Ok(None);
    }
    // Before any file is created, so that unsuitable signing keys or an apex that is too long leave
    // no files.
    check_nsec5_requirements(contents.apex(), keys)?;
    let dir = arguments.nsec5_keys.clone().unwrap_or_else(|| default_directory(output));
    let key = find_or_generate_key(&dir, arguments.vrf, contents)?;
    let dnskeys: Vec<Vec<u8>> = keys.keys().iter().map(KeyPair::dnskey_rdata).collect();
    check_vrf_key_cannot_sign(contents.apex(), &Nsec5Key::of(&key), dnskeys.iter().map(Vec::as_slice))?;
    let path = dir.join(proofs_file_name(contents.apex()));
    // The proofs are written after the zone. An error would then leave a zone without its proofs,
    // so the path is checked now.
    check_writable(&path)?;
    let stored = stored_proofs(&path, keys);
    let bar = RateBar::new("proving");
    let update = |done, total| bar.show(done, total, &[ProgressCount { done, name: "names" }]);
    let mut options = ProveOptions::new(arguments.mechanism());
    options.stored = stored.as_ref();
    options.progress = bar.is_visible().then_some(&update);
    let started_at = Instant::now();
    let (proofs, statistics) = prove_chain(contents, &key, &options)?;
    bar.end();
    Ok(Some(ZoneProofs { proofs, path, statistics, seconds: started_at.elapsed().as_secs_f64() }))
}

impl ZoneProofs {
    /// The chain that the signer generates. With `keep_other_keys`, the zone keeps its NSEC5KEY
    /// records of other keys.
    pub(super) const fn chain(&self, keep_other_keys: bool) -> Nsec5Chain<'_> {
        Nsec5Chain { proofs: &self.proofs, keep_other_keys }
    }

    /// Stores the proofs of the signed zone with the serial `serial`, sealed by one of `keys`, for
    /// the server and for the next signing.
    pub(super) fn store(&mut self, serial: u32, keys: &KeySet) -> Result<(), ProofError> {
        self.proofs.set_serial(serial);
        self.proofs.add_seal(keys).map_err(SignError::from)?;
        write_output(&self.path, KEY_MODE, |mut out| {
            Ok(self.proofs.write_to(&mut out).map_err(write_failure(&self.path))?)
        })
    }

    pub(super) fn to_json(&self) -> serde_json::Value {
        let key = self.proofs.key();
        serde_json::json!({
            "algorithm": key.algorithm().to_string(), "key_tag": key.tag(), "proofs": self.path,
            "proofs_made": self.statistics.generated, "proofs_kept": self.statistics.reused, "proving_seconds": self.seconds,
        })
    }
}

impl fmt::Display for ZoneProofs {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (key, ProveStatistics { generated, reused }) = (self.proofs.key(), self.statistics);
        let (path, seconds) = (self.path.display(), self.seconds);
        write!(
            f,
            "{path}: key {} ({}), {generated} proofs generated and {reused} reused in {seconds:.2} s",
            key.tag(),
            key.algorithm()
        )
    }
}

/// The stored proofs. Returns `None`, so that all proofs are generated, if there is no file, and
/// with a warning if the file cannot be read or is not sealed by one of `keys`.
fn stored_proofs(path: &Path, keys: &KeySet) -> Option<Proofs> {
    let proofs = read_proofs(path).unwrap_or_else(|error| {
        match error {
            // The text of the error ends with the advice to sign the zone again. This run does so,
            // so the warning has only the cause.
            Nsec5DirectoryError::Proofs { path, source } => {
                tracing::warn!(name: "proofs-not-used", "{}: {source}; generating all proofs again", path.display());
            }
            error => tracing::warn!(name: "proofs-not-used", "{error}; generating all proofs again"),
        }
        None
    })?;
    if !proofs.is_sealed_by(keys) {
        tracing::warn!(
            name: "proofs-not-used",
            "{}: the file is not sealed by any of the given keys; generating all proofs again",
            path.display()
        );
        return None;
    }
    Some(proofs)
}

/// The VRF key of the zone in `dir`: the only key, or the only one that the zone publishes.
/// Generates a key if `dir` contains no key of the zone.
fn find_or_generate_key(
    dir: &Path,
    requested: Option<VrfAlgorithm>,
    contents: &Contents,
) -> Result<VrfPrivateKey, ProofError> {
    let zone = contents.apex();
    if dir.exists() && !dir.is_dir() {
        return Err(ProofError::NotADirectory { dir: dir.to_path_buf() });
    }
    DirBuilder::new()
        .recursive(true)
        .mode(0o700)
        .create(dir)
        .map_err(|source| FileError::Write { path: dir.to_path_buf(), source })?;
    check_no_signing_keys(dir)?;
    let mut keys = load_vrf_keys(dir, zone)?;
    let count = keys.len();
    if count > 1 {
        keys.retain(|stored| is_published(contents, &stored.key));
    }
    let found = keys.pop();
    if count > 1 && (found.is_none() || !keys.is_empty()) {
        return Err(ProofError::SeveralVrfKeys { dir: dir.to_path_buf(), zone: zone.clone(), count });
    }
    let Some(StoredVrfKey { path, key }) = found else {
        return generate_key(dir, requested.unwrap_or(VrfAlgorithm::P256_SHA256_TAI), contents);
    };
    match requested.filter(|requested| *requested != key.algorithm()) {
        Some(requested) => Err(ProofError::OtherVrf { path, found: key.algorithm(), requested }),
        None => Ok(key),
    }
}

/// Generates a key with a tag that no NSEC5KEY record of the zone has, and writes its file in
/// `dir`.
fn generate_key(
    dir: &Path,
    algorithm: VrfAlgorithm,
    contents: &Contents,
) -> Result<VrfPrivateKey, ProofError> {
    let zone = contents.apex();
    let is_tag_published = |tag: u16| published_keys(contents).any(|other| other.tag() == tag);
    let key = generate_with_new_tag(algorithm, zone, is_tag_published)?;
    let path = dir.join(format!("{}.private", Nsec5Key::of(&key).base_name(zone)));
    let text = key.to_text();
    write_output(&path, KEY_MODE, |out| out.write_all(text.as_bytes()).map_err(write_failure(&path)))?;
    Ok(key)
}

/// Generates a key with a tag for which `is_tag_published` is false, because a validator treats all
/// NSEC5 denials of a zone with two keys of one tag as bogus.
fn generate_with_new_tag(
    algorithm: VrfAlgorithm,
    zone: &Name,
    is_tag_published: impl Fn(u16) -> bool,
) -> Result<VrfPrivateKey, ProofError> {
    for _ in 0..MAX_ATTEMPTS {
        let key = VrfPrivateKey::generate(algorithm).map_err(ProofError::VrfGeneration)?;
        if !is_tag_published(Nsec5Key::of(&key).tag()) {
            return Ok(key);
        }
    }
    Err(ProofError::NoFreeTag { zone: zone.clone() })
}

/// Fails if the directory contains a signing key, because the server reads this directory.
fn check_no_signing_keys(dir: &Path) -> Result<(), ProofError> {
    let names =
        private_file_names(dir).map_err(|source| FileError::Read { path: dir.to_path_buf(), source })?;
    let found = names.into_iter().find(|name| name.starts_with('K'));
    found.map_or(Ok(()), |name| Err(ProofError::SigningKey { path: dir.join(name) }))
}

/// For a zone with NSEC5: warns if the directory of the signed zone at `output` contains a signing
/// key, because a server of this zone would refuse to start.
pub(super) fn warn_of_signing_keys(output: &Path) {
    if is_standard_stream(output) {
        return;
    }
    // No warning for a directory that cannot be listed: no key can be found there.
    if let Ok(Some(path)) = find_signing_key(parent_directory(output)) {
        tracing::warn!(
            name: "signing-key-exposed",
            "{}: a signing key in the directory of the signed zone: with NSEC5 a server must not have \
                access to one, and `nonesuch serve` would not start; move the keys away from the zone \
                and its directory of proofs",
            path.display()
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The directory has no VRF key in this case, so no file can be removed from it.
    #[test]
    fn without_an_unpublished_key_tag_the_error_names_the_records_of_the_zone() {
        let zone: Name = "example.".parse().unwrap();
        let generate = |is_tag_published: &dyn Fn(u16) -> bool| {
            generate_with_new_tag(VrfAlgorithm::P256_SHA256_TAI, &zone, is_tag_published)
        };
        assert!(generate(&|_| false).is_ok());
        let error = generate(&|_| true).err().unwrap();
        assert!(matches!(&error, ProofError::NoFreeTag { zone: found } if *found == zone));
        assert!(error.to_string().contains("NSEC5KEY records"), "{error}");
    }
}
