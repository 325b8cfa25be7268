//! The key files of a zone: `K<zone>+<algorithm>+<tag>.key` and `.private`, as BIND names them.

use crate::error::Failure;
use crate::files::{read_text, write_failure, write_output};
use nonesuch_dnssec::{KeyPair, KeySet};
use nonesuch_proto::Name;
use std::fs;
use std::path::Path;

/// Reads the keys of `zone` in `dir`.
pub(crate) fn load(dir: &Path, zone: &Name) -> Result<KeySet, Failure> {
    let unreadable = |source| Failure::Read { path: dir.to_path_buf(), source };
    let mut names = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        names.push(entry.map_err(unreadable)?.file_name());
    }
    names.sort();
    let mut keys = Vec::new();
    for name in names.iter().filter_map(|name| name.to_str()) {
        let Some(base) = name.strip_suffix(".key").filter(|base| is_of_zone(base, zone)) else { continue };
        keys.push(load_pair(dir, base)?);
    }
    if keys.is_empty() {
        return Err(Failure::NoKeys { dir: dir.to_path_buf(), zone: zone.clone() });
    }
    Ok(KeySet::new(zone, keys)?)
}

/// Whether a file's base name is that of a key of `zone`.
fn is_of_zone(base: &str, zone: &Name) -> bool {
    let mut parts = base.rsplitn(3, '+');
    let (_tag, _algorithm, owner) = (parts.next(), parts.next(), parts.next());
    let owner = owner.and_then(|owner| owner.strip_prefix('K'));
    owner.and_then(|owner| owner.parse::<Name>().ok()).is_some_and(|owner| owner == *zone)
}

fn load_pair(dir: &Path, base: &str) -> Result<KeyPair, Failure> {
    let key_path = dir.join(format!("{base}.key"));
    let private_path = dir.join(format!("{base}.private"));
    if !private_path.exists() {
        return Err(Failure::NoPrivateFile { path: key_path });
    }
    let private = zeroize::Zeroizing::new(read_text(&private_path)?);
    let pair = KeyPair::parse(&read_text(&key_path)?, &private)
        .and_then(|pair| pair.check_base_name(base).map(|()| pair));
    pair.map_err(|source| Failure::KeyFile { path: private_path, source })
}

/// Writes the two files of `key` into `dir`; the private one can be read by its owner alone.
/// Other tools take the key to be in use from the time `since`.
pub(crate) fn store(dir: &Path, key: &KeyPair, since: u32) -> Result<(), Failure> {
    let base = key.base_name();
    let private_path = dir.join(format!("{base}.private"));
    let private = key.private_file_text(since);
    write_output(&private_path, 0o600, |out| {
        out.write_all(private.as_bytes()).map_err(write_failure(&private_path))
    })?;
    let key_path = dir.join(format!("{base}.key"));
    let public = key.key_file_text();
    write_output(&key_path, 0o644, |out| out.write_all(public.as_bytes()).map_err(write_failure(&key_path)))
}
