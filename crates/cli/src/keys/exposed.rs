//! Detection of private keys that other users or a server can read.

use super::key_names_of_zone;
use crate::files::{is_world_readable, read_small_file, readable_key_warning};
use nonesuch_dnssec::keys::directory::{is_private_key, key_file_paths};
use nonesuch_proto::Name;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

/// Warns of private keys that every user may read.
pub(crate) fn warn_of_readable_keys(paths: &[PathBuf]) {
    paths
        .iter()
        .for_each(|path| tracing::warn!(name: "private-key-readable", "{}", readable_key_warning(path)));
}

/// Files with private keys of `zone` in `dir` that every user may read.
pub(crate) fn world_readable_keys(dir: &Path, zone: &Name) -> Vec<PathBuf> {
    // The code that reads the directory reports an error.
    let base_names = key_names_of_zone(dir, zone).unwrap_or_default();
    let private = base_names.iter().map(|base| {
        let [_, private] = key_file_paths(dir, base);
        private
    });
    private.filter(|path| is_world_readable(path)).collect()
}

/// The first file in `dir` that is a signing key by its name or its content; `None` if no file is.
pub(crate) fn find_signing_key(dir: &Path) -> io::Result<Option<PathBuf>> {
    let paths = fs::read_dir(dir)?.map(|entry| Ok(entry?.path()));
    let mut paths = paths.collect::<io::Result<Vec<_>>>()?;
    paths.sort_unstable();
    Ok(paths.into_iter().find(|path| is_named_as_key(path) || contains_signing_key(path)))
}

fn is_named_as_key(path: &Path) -> bool {
    let name = path.file_name().and_then(|name| name.to_str()).unwrap_or_default();
    name.starts_with('K') && name.ends_with(".private")
}

/// Whether a file contains a private key. A file that this process cannot read counts as none,
/// because the server could not use it either.
fn contains_signing_key(path: &Path) -> bool {
    read_small_file(path).is_some_and(|octets| is_private_key(&octets))
}

#[cfg(test)]
mod tests {
    use super::*;
    use nonesuch_crypto::{Algorithm, PrivateKey};

    #[test]
    fn signing_keys_are_found_by_name_or_content() {
        let directory = tempfile::tempdir().unwrap();
        let dir = directory.path();
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
        // RFC 8410 section 10.3: PKCS#8 of an Ed25519 key, in DER.
        let der =
            [&b"\x30\x2e\x02\x01\x00\x30\x05\x06\x03\x2b\x65\x70\x04\x22\x04\x20"[..], &[7; 32]].concat();
        assert!(found("a.der", &der));
        // A comment in another character set does not hide the key.
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
