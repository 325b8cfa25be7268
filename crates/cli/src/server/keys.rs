//! Keys that `serve` loads for zones that are signed online: signing keys or, with NSEC5, the VRF
//! key and stored proofs.

use crate::files::parent_directory;
use crate::keys::{find_signing_key, read_directory, warn_of_readable_keys, world_readable_keys};
use crate::nsec5;
use nonesuch_authoritative::service::KeyLoader;
use nonesuch_dnssec::denial::nsec5::Nsec5DirectoryError;
use nonesuch_dnssec::online::{LoadProverError, Nsec5Prover, Nsec5Zone};
use std::path::Path;

/// The functions with which a service loads keys. They warn of key files that every user may read.
pub(crate) const KEY_LOADER: KeyLoader = KeyLoader {
    load_signing_keys: |dir, zone, at| {
        warn_of_readable_keys(&world_readable_keys(dir, zone));
        (QUIET_KEY_LOADER.load_signing_keys)(dir, zone, at)
    },
    load_prover: |dir, file, zone| {
        warn_of_readable_keys(&nsec5::world_readable_keys(dir, zone.apex()));
        (QUIET_KEY_LOADER.load_prover)(dir, file, zone)
    },
    ..QUIET_KEY_LOADER
};

/// The same functions without warnings, for callers that warn themselves.
pub(crate) const QUIET_KEY_LOADER: KeyLoader = KeyLoader {
    load_signing_keys: |dir, zone, at| Ok(read_directory(dir, zone)?.zone_keys(at)?.into()),
    next_key_event: |dir, zone, now| read_directory(dir, zone).ok()?.next_event(now),
    load_prover,
};

/// Loads the VRF key and the stored proofs of `zone` from `dir`. Fails if `dir` or the directory of
/// the zone's `file` contains a signing key, because an attacker must not be able to obtain that
/// key from the server.
fn load_prover(dir: &Path, file: Option<&Path>, zone: &Nsec5Zone) -> Result<Nsec5Prover, LoadProverError> {
    for directory in file.map(parent_directory).into_iter().chain([dir]) {
        let found = find_signing_key(directory)
            .map_err(|source| Nsec5DirectoryError::Read { path: directory.to_path_buf(), source })?;
        if let Some(path) = found {
            return Err(LoadProverError::SigningKey { path, zone: zone.apex().clone() });
        }
    }
    nsec5::load_prover(dir, zone)
}
