//! What `serve` loads beside a zone where answers are made when asked: the zone's keys, or with NSEC5 its VRF key and
//! stored proofs.

use super::nsec5;
use crate::error::Failure;
use crate::files::{folder_of, is_open, open_key_words, read_small_file};
use crate::keys::{self, join_private, key_file, load_record, paths};
use nonesuch_authoritative::service::KeyFiles;
use nonesuch_crypto::{decode_pem, pkcs8_algorithms};
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_dnssec::online::{Nsec5Prover, Nsec5Zone};
use nonesuch_proto::Name;
use std::fs;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// How a service reads key files; of open ones it warns.
pub(super) const KEY_FILES: KeyFiles = KeyFiles {
    signing: |dir, zone| {
        warn_of(&open_keys(dir, zone));
        (QUIET_KEY_FILES.signing)(dir, zone)
    },
    prover: |dir, file, zone| {
        warn_of(&nsec5::open_keys(dir, zone.apex()));
        (QUIET_KEY_FILES.prover)(dir, file, zone)
    },
};

/// The same for those who warn of open key files themselves.
pub(super) const QUIET_KEY_FILES: KeyFiles = KeyFiles {
    signing: |dir, zone| load_available(dir, zone).map_err(|failure| failure.to_string()),
    prover: |dir, file, zone| load_prover(dir, file, zone).map_err(|failure| failure.to_string()),
};

/// Warns of private keys that everybody may read.
pub(super) fn warn_of(open: &[PathBuf]) {
    open.iter().for_each(|path| tracing::warn!("{}", open_key_words(path)));
}

/// Files of private keys of `zone` in `dir` that everybody may read.
pub(super) fn open_keys(dir: &Path, zone: &Name) -> Vec<PathBuf> {
    // What cannot be listed is said where it is read.
    let bases = keys::of_zone(dir, zone).unwrap_or_default();
    let private = bases.iter().map(|base| {
        let [_, private] = paths(dir, base);
        private
    });
    private.filter(|path| is_open(path)).collect()
}

/// The records of all keys of `zone` in `dir`, and the pairs of those whose private keys are there.
pub(super) fn load_available(dir: &Path, zone: &Name) -> Result<(Vec<KeyRecord>, Vec<KeyPair>), Failure> {
    let (mut records, mut pairs) = (Vec::new(), Vec::new());
    for base in keys::of_zone(dir, zone)? {
        let [key_path, private_path] = paths(dir, &base);
        let record = load_record(&key_path)?;
        record.check_base_name(&base).map_err(key_file(&key_path))?;
        if private_path.exists() {
            pairs.push(join_private(record.clone(), &private_path)?);
        }
        records.push(record);
    }
    Ok((records, pairs))
}

/// The VRF key and the stored proofs of `zone` in `dir`. Neither that folder nor that of the zone's `file` may hold a signing
/// key: what a server cannot read, nobody takes from it.
fn load_prover(dir: &Path, file: Option<&Path>, zone: &Nsec5Zone) -> Result<Nsec5Prover, Failure> {
    for folder in file.map(folder_of).into_iter().chain([dir]) {
        if let Some(path) = find_signing_key(folder)? {
            return Err(Failure::SigningKeyAtServer { path, zone: zone.apex().clone() });
        }
    }
    let (key, proofs) = nsec5::load_for_server(dir, zone)?;
    if proofs.is_none() {
        tracing::warn!("{}: no stored proofs of {}: all are made when asked", dir.display(), zone.apex());
    }
    Nsec5Prover::of(zone, key, proofs).map_err(|source| Failure::Prover { dir: dir.to_path_buf(), source })
}

/// A file in `dir` that is a signing key, by its name or by what it holds.
pub(super) fn find_signing_key(dir: &Path) -> Result<Option<PathBuf>, Failure> {
    let unreadable = |source| Failure::Read { path: dir.to_path_buf(), source };
    let mut paths = Vec::new();
    for entry in fs::read_dir(dir).map_err(unreadable)? {
        paths.push(entry.map_err(unreadable)?.path());
    }
    paths.sort_unstable();
    Ok(paths.into_iter().find(|path| is_named_as_key(path) || holds_signing_key(path)))
}

fn is_named_as_key(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with('K') && name.ends_with(".private")
}

/// Whether a file holds a private key of BIND's form, or one in PEM or DER; what cannot be read cannot be used.
fn holds_signing_key(path: &Path) -> bool {
    let Some(octets) = read_small_file(path) else { return false };
    if pkcs8_algorithms(&octets).is_ok() {
        return true;
    }
    // A copy where the file is not UTF-8.
    let text = Zeroizing::new(String::from_utf8_lossy(&octets).into_owned());
    // Keys that are encrypted, or of a form that is not read here, count too.
    text.contains("Private-key-format:") || text.contains("PRIVATE KEY-----") || decode_pem(&text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_crypto::{Algorithm, PrivateKey};

    #[test]
    fn signing_keys_are_known_by_name_or_by_what_they_hold() {
        let folder = tempfile::tempdir().unwrap();
        let dir = folder.path();
        let found = |name: &str, text: &[u8]| {
            let path = dir.join(name);
            fs::write(&path, text).unwrap();
            let found = find_signing_key(dir).unwrap();
            fs::remove_file(&path).unwrap();
            found.is_some_and(|found| found == path)
        };
        let key = PrivateKey::generate(Algorithm::ED25519, None).unwrap();
        assert!(found("Kexample.+015+00001.private", b""));
        assert!(found("anything", key.to_bind().as_bytes()));
        assert!(found("a.pem", b"-----BEGIN EC PRIVATE KEY-----\nAA==\n-----END EC PRIVATE KEY-----\n"));
        // RFC 8410, section 10.3: PKCS#8 of an Ed25519 key, in DER.
        let der =
            [&b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20"[..], &[7; 32]].concat();
        assert!(found("a.der", &der));
        // A comment in another character set hides nothing.
        assert!(found(
            "old.txt",
            b"# caf\xe9\n-----BEGIN PRIVATE KEY-----\nAA==\n-----END PRIVATE KEY-----\n"
        ));
        for (name, text) in [
            ("Kexample.+015+00001.key", &b"example. IN DNSKEY 257 3 15 AAAA"[..]),
            ("Nexample.+001+00001.private", b"Nonesuch-VRF-key-format: v1\n"),
            ("zone", b"example. SOA a b 1 2 3 4 5\n"),
            ("image", &[0; 100]),
        ] {
            assert!(!found(name, text), "{name}");
        }
        assert_eq!(find_signing_key(dir).unwrap(), None);
    }
}
