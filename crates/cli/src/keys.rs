//! The key files of a zone: `K<zone>+<algorithm>+<tag>.key` and `.private`, as BIND names them.

use crate::error::Failure;
use crate::files::{KEY_MODE, read_key_file, write_failure, write_output};
use nonesuch_crypto::{Algorithm, PrivateKey};
use nonesuch_dnssec::keys::{KeyFileError, KeyRecord, KeyTimes};
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::Name;
use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

/// Ends of the names of the two files.
pub(crate) const SUFFIXES: [&str; 2] = [".key", ".private"];

/// Reads the keys of `zone` in `dir`. Of key-signing keys the public files are enough.
pub(crate) fn load(dir: &Path, zone: &Name) -> Result<KeySet, Failure> {
    let bases = of_zone(dir, zone)?;
    let lone = base_names(dir, &SUFFIXES[1..])?
        .into_iter()
        .find(|base| is_of_zone(base, zone) && bases.binary_search(base).is_err());
    if let Some(base) = lone {
        // Without its public half the key would silently drop out of the zone.
        let [_, path] = paths(dir, &base);
        return Err(Failure::NoPublicFile { path });
    }
    let (mut keys, mut offline) = (Vec::new(), Vec::new());
    for base in &bases {
        match load_pair(dir, base) {
            Ok(pair) => keys.push(pair),
            // Its signatures may come with the zone, which the signer checks.
            Err(Failure::NoPrivateFile { path }) if load_record(&path)?.is_sep() => {
                let record = load_record(&path)?;
                record.check_base_name(base).map_err(key_file(&path))?;
                offline.push((record, path));
            }
            Err(failure) => return Err(failure),
        }
    }
    if let (true, Some((_, path))) = (keys.is_empty(), offline.first()) {
        return Err(Failure::NoPrivateFile { path: path.clone() });
    }
    let offline = offline.into_iter().map(|(record, _)| record).collect();
    Ok(KeySet::new(zone, keys)?.with_offline(offline)?)
}

/// Base names of the `.key` files of `zone` in `dir`, in order, at least one.
pub(crate) fn of_zone(dir: &Path, zone: &Name) -> Result<Vec<String>, Failure> {
    let mut bases = base_names(dir, &SUFFIXES[..1])?;
    bases.retain(|base| is_of_zone(base, zone));
    if bases.is_empty() {
        return Err(Failure::NoKeys { dir: dir.to_path_buf(), zone: zone.clone() });
    }
    Ok(bases)
}

/// Base names of the files in `dir` that are named as key files are and end so, in order, each once.
pub(crate) fn base_names(dir: &Path, suffixes: &[&str]) -> Result<Vec<String>, Failure> {
    let unreadable = |source| Failure::Read { path: dir.to_path_buf(), source };
    let mut bases = BTreeSet::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        let name = entry.map_err(unreadable)?.file_name();
        let base =
            name.to_str().and_then(|name| suffixes.iter().find_map(|suffix| name.strip_suffix(suffix)));
        bases.extend(base.filter(|base| owner(base).is_some()).map(str::to_owned));
    }
    Ok(bases.into_iter().collect())
}

/// The zone that a file's base name says; `None` where it is not that of a key.
pub(crate) fn owner(base: &str) -> Option<&str> {
    let mut parts = base.rsplitn(3, '+');
    let (_tag, _algorithm, owner) = (parts.next()?, parts.next()?, parts.next()?);
    owner.strip_prefix('K')
}

/// Whether a file's base name is that of a key of `zone`.
pub(crate) fn is_of_zone(base: &str, zone: &Name) -> bool {
    owner(base).and_then(|owner| owner.parse::<Name>().ok()).is_some_and(|owner| owner == *zone)
}

/// Reads the public half of a key, which must be of use.
pub(crate) fn load_record(path: &Path) -> Result<KeyRecord, Failure> {
    let record = parse_record(path)?;
    record.check_public().map_err(key_file(path))?;
    Ok(record)
}

/// Reads the public half of a key, perhaps one that cannot be used.
pub(crate) fn parse_record(path: &Path) -> Result<KeyRecord, Failure> {
    KeyRecord::parse(&read_key_file(path)?).map_err(key_file(path))
}

/// Reads the private half of the key of `record`.
pub(crate) fn join_private(record: KeyRecord, path: &Path) -> Result<KeyPair, Failure> {
    let private = PrivateKey::from_bind(&read_key_file(path)?);
    let pair = private.map_err(KeyFileError::Private).and_then(|private| record.join(private));
    pair.map_err(key_file(path))
}

/// An error of a key file as one of the file at `path`.
pub(crate) fn key_file(path: &Path) -> impl FnOnce(KeyFileError) -> Failure {
    move |source| Failure::KeyFile { path: path.to_path_buf(), source }
}

fn load_pair(dir: &Path, base: &str) -> Result<KeyPair, Failure> {
    let [key_path, private_path] = paths(dir, base);
    let record = load_record(&key_path)?;
    if !private_path.exists() {
        return Err(Failure::NoPrivateFile { path: key_path });
    }
    let pair = join_private(record, &private_path)?;
    pair.check_base_name(base).map_err(key_file(&key_path))?;
    Ok(pair)
}

/// Paths of the two files, `.key` first.
pub(crate) fn paths(dir: &Path, base: &str) -> [PathBuf; 2] {
    SUFFIXES.map(|suffix| dir.join(format!("{base}{suffix}")))
}

/// Writes the two files of `key` into `dir`; the private one can be read by its owner alone.
pub(crate) fn store(dir: &Path, key: &KeyPair, times: &KeyTimes) -> Result<(), Failure> {
    fs::create_dir_all(dir).map_err(|source| Failure::Write { path: dir.to_path_buf(), source })?;
    let [key_path, private_path] = paths(dir, &key.base_name());
    let private = key.private_file_text(times);
    write_output(&private_path, KEY_MODE, |out| {
        out.write_all(private.as_bytes()).map_err(write_failure(&private_path))
    })?;
    let public = key.key_file_text();
    write_output(&key_path, 0o644, |out| out.write_all(public.as_bytes()).map_err(write_failure(&key_path)))
}

/// Warns whoever makes or takes over a key that is no good for a zone in use.
pub(crate) fn warn_of(key: &KeyPair) {
    let (algorithm, bits) = (key.algorithm(), key.private().bits());
    if let Some(reason) = experimental(algorithm) {
        tracing::warn!("{algorithm} is experimental: {reason}");
    }
    let lengths = algorithm.entry().and_then(|entry| entry.scheme.key_lengths.as_ref());
    if lengths.is_some_and(|lengths| lengths.forced.iter().any(|forced| bits <= u32::from(*forced))) {
        tracing::warn!("a key of {bits} bits is weak: for experiments alone");
    }
}

/// Why the algorithm is experimental, where it is.
pub(crate) fn experimental(algorithm: Algorithm) -> Option<&'static str> {
    algorithm.entry()?.scheme.experimental
}

/// An algorithm for readers: mnemonic and number.
pub(crate) fn describe(algorithm: Algorithm) -> String {
    match algorithm.entry() {
        Some(entry) => format!("{} ({})", entry.mnemonic, algorithm.0),
        None => algorithm.0.to_string(),
    }
}
