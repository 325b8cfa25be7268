//! The key files of a zone: `K<zone>+<algorithm>+<tag>.key` and `.private`, with names as in BIND.

mod exposed;

pub(crate) use exposed::{find_signing_key, warn_of_readable_keys, world_readable_keys};

use crate::files::{FileError, KEY_MODE, read_key_file, read_key_text, write_failure, write_output};
use nonesuch_crypto::{Algorithm, PrivateKey};
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::directory::{
    KEY_FILE_SUFFIXES, KeyDirectory, KeyDirectoryError, KeyFiles, is_key_file_of, key_file_paths,
    owner_in_base_name,
};
use nonesuch_dnssec::keys::{KeyFileError, KeyRecord, KeyTimes};
use nonesuch_proto::Name;
use std::collections::BTreeMap;
use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

/// Why a key file is not read.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(crate) enum ReadKeyError {
    #[error(transparent)]
    File(#[from] FileError),
    #[error("{}: {source}", path.display())]
    Key { path: PathBuf, source: KeyFileError },
}

/// Displays an error without the path, for messages that already contain it.
pub(crate) struct ReasonOnly<'a>(pub(crate) &'a ReadKeyError);

impl fmt::Display for ReasonOnly<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            ReadKeyError::Key { source, .. } => fmt::Display::fmt(source, f),
            ReadKeyError::File(FileError::Read { source, .. }) => write!(f, "cannot be read: {source}"),
            other => fmt::Display::fmt(other, f),
        }
    }
}

/// Reads the key files of `zone` in `dir`.
pub(crate) fn read_directory(dir: &Path, zone: &Name) -> Result<KeyDirectory, KeyDirectoryError> {
    let mut base_names = list_key_files(dir)?;
    base_names.retain(|base, _| is_key_file_of(base, zone));
    let read = |(base, has_public): (String, bool)| {
        let [key_path, private_path] = key_file_paths(dir, &base);
        let public = has_public.then(|| read_key_text(&key_path));
        KeyFiles { public, private: private_path.exists().then(|| read_key_text(&private_path)), base }
    };
    KeyDirectory::new(dir, zone, base_names.into_iter().map(read).collect())
}

/// The timing metadata in a private key file.
pub(crate) fn load_key_times(path: &Path) -> Result<Option<KeyTimes>, ReadKeyError> {
    KeyTimes::parse(&read_key_file(path)?).map_err(key_file_error(path))
}

/// Base names of the `.key` files of `zone` in `dir`, sorted. Fails if no such file exists.
pub(crate) fn key_names_of_zone(dir: &Path, zone: &Name) -> Result<Vec<String>, KeyDirectoryError> {
    let base_names = list_key_files(dir)?
        .into_iter()
        .filter(|(base, has_public)| *has_public && is_key_file_of(base, zone));
    let base_names: Vec<String> = base_names.map(|(base, _)| base).collect();
    if base_names.is_empty() {
        return Err(KeyDirectoryError::NoKeys { dir: dir.to_path_buf(), zone: zone.clone() });
    }
    Ok(base_names)
}

/// Base names of the key files in `dir`, sorted. The value is true if the `.key` file exists, and
/// false if only the `.private` file exists.
pub(crate) fn list_key_files(dir: &Path) -> Result<BTreeMap<String, bool>, KeyDirectoryError> {
    let unreadable = |source| KeyDirectoryError::Read { path: dir.to_path_buf(), source };
    let [public, private] = KEY_FILE_SUFFIXES;
    let mut base_names = BTreeMap::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let Some(name) = name.to_str() else { continue };
        let Some(base) = name.strip_suffix(public).or_else(|| name.strip_suffix(private)) else { continue };
        if is_key_base_name(base) {
            *base_names.entry(base.to_owned()).or_default() |= name.ends_with(public);
        }
    }
    Ok(base_names)
}

/// Whether the base name of a file is that of a key.
pub(crate) fn is_key_base_name(base: &str) -> bool {
    owner_in_base_name(base, 'K').is_some()
}

/// Reads the public half of a key and checks that it can be used.
pub(crate) fn load_checked_record(path: &Path) -> Result<KeyRecord, ReadKeyError> {
    let record = load_unchecked_record(path)?;
    record.check_public().map_err(key_file_error(path))?;
    Ok(record)
}

/// Reads the public half of a key without checking that it can be used.
pub(crate) fn load_unchecked_record(path: &Path) -> Result<KeyRecord, ReadKeyError> {
    KeyRecord::parse(&read_key_file(path)?).map_err(key_file_error(path))
}

/// Reads the private half of the key of `record`, and checks that both halves match.
pub(crate) fn load_key_pair(record: KeyRecord, path: &Path) -> Result<KeyPair, ReadKeyError> {
    let private = PrivateKey::from_bind(&read_key_file(path)?);
    let pair = private.map_err(KeyFileError::Private).and_then(|private| record.into_key_pair(private));
    pair.map_err(key_file_error(path))
}

/// Converts an error to a [`ReadKeyError`] of the key file at `path`.
pub(crate) fn key_file_error(path: &Path) -> impl FnOnce(KeyFileError) -> ReadKeyError {
    move |source| ReadKeyError::Key { path: path.to_path_buf(), source }
}

/// Writes the two files of `key` to `dir`. Only the owner can read the private file.
pub(crate) fn store_key(dir: &Path, key: &KeyPair, times: &KeyTimes) -> Result<(), FileError> {
    fs::create_dir_all(dir).map_err(|source| FileError::Write { path: dir.to_path_buf(), source })?;
    let [key_path, private_path] = key_file_paths(dir, &key.base_name());
    let private = key.private_file_text(times);
    write_output(&private_path, KEY_MODE, |out| {
        out.write_all(private.as_bytes()).map_err(write_failure(&private_path))
    })?;
    let public = key.key_file_text(times);
    write_output(&key_path, 0o644, |out| out.write_all(public.as_bytes()).map_err(write_failure(&key_path)))
}

/// Warns if a generated or imported key is not suitable for a zone in production.
pub(crate) fn warn_about_key(key: &KeyPair) {
    let (algorithm, bits) = (key.algorithm(), key.private().bits());
    if let Some(reason) = experimental_reason(algorithm) {
        tracing::warn!(name: "algorithm-experimental", "{algorithm} is experimental: {reason}");
    }
    let lengths = algorithm.entry().and_then(|entry| entry.scheme.key_lengths.as_ref());
    if lengths.is_some_and(|lengths| lengths.forced.iter().any(|forced| bits <= u32::from(*forced))) {
        tracing::warn!(name: "key-weak", "a key of {bits} bits is weak: use it only for experiments");
    }
}

/// Why the algorithm is experimental; `None` if it is not.
pub(crate) fn experimental_reason(algorithm: Algorithm) -> Option<&'static str> {
    algorithm.entry()?.scheme.experimental
}

/// The algorithm as text: mnemonic and number.
pub(crate) fn algorithm_text(algorithm: Algorithm) -> String {
    match algorithm.entry() {
        Some(entry) => format!("{} ({})", entry.mnemonic, algorithm.0),
        None => algorithm.0.to_string(),
    }
}
