//! Names of key files, `K<zone>+<algorithm>+<tag>.key` and `.private` (dnssec-keygen(1)), and
//! detection of private keys in files with other names.

use nonesuch_crypto::{decode_pem, pkcs8_algorithms};
use nonesuch_proto::Name;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// File name suffixes of the two files of a key, `.key` first.
pub const KEY_FILE_SUFFIXES: [&str; 2] = [".key", ".private"];

/// Paths of the two files of the key with the base name `base` in `dir`, `.key` first.
#[must_use]
pub fn key_file_paths(dir: &Path, base: &str) -> [PathBuf; 2] {
    KEY_FILE_SUFFIXES.map(|suffix| dir.join(format!("{base}{suffix}")))
}

/// The owner in the base name of a key file, in file name syntax (`%XX`): `example.` for
/// `Kexample.+013+12345`. `prefix` is `K` for signing keys and `N` for VRF keys. `None` if the base
/// name does not have this form.
#[must_use]
pub fn owner_in_base_name(base: &str, prefix: char) -> Option<&str> {
    let mut parts = base.rsplitn(3, '+');
    let (_tag, _algorithm, owner) = (parts.next()?, parts.next()?, parts.next()?);
    owner.strip_prefix(prefix)
}

/// As [`owner_in_base_name`], but returns the owner as a domain name. `None` also if it is not
/// valid.
#[must_use]
pub fn zone_in_base_name(base: &str, prefix: char) -> Option<Name> {
    // File names have octets as `%XX`, domain names as `\DDD`.
    let mut pieces = owner_in_base_name(base, prefix)?.split('%');
    let mut name = pieces.next()?.to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        // Writing to a `String` cannot fail.
        let _ = write!(name, "\\{:03}{rest}", u8::from_str_radix(digits, 16).ok()?);
    }
    name.parse().ok()
}

/// Whether `base` is the base name of a signing key of `zone`.
#[must_use]
pub fn is_key_file_of(base: &str, zone: &Name) -> bool {
    zone_in_base_name(base, 'K').is_some_and(|owner| owner == *zone)
}

/// Whether the content of a file is a private key in BIND's format, in PEM or in DER.
#[must_use]
pub fn is_private_key(octets: &[u8]) -> bool {
    if pkcs8_algorithms(octets).is_ok() {
        return true;
    }
    // The text can contain the key, so it is zeroized.
    let text = Zeroizing::new(String::from_utf8_lossy(octets).into_owned());
    // Encrypted keys and keys in unsupported forms also count.
    text.contains("Private-key-format:") || text.contains("PRIVATE KEY-----") || decode_pem(&text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_base_name_determines_the_zone() {
        let zone = |base: &str, prefix| zone_in_base_name(base, prefix).map(|name| name.to_string());
        assert_eq!(zone("Nexample.+001+12345", 'N').as_deref(), Some("example."));
        assert_eq!(zone("Na%2Fb.+128+00001", 'N').as_deref(), Some("a/b."));
        assert_eq!(zone("N.+001+00001", 'N').as_deref(), Some("."));
        for other in ["Kexample.+001+12345", "Nexample.", "N%2.+001+00001", "N%é.+001+00001", "+1+2", ""] {
            assert_eq!(zone(other, 'N'), None, "{other}");
        }
    }

    /// dnssec-keygen(1) writes `/` of classless reverse zones (RFC 2317) as `%2F`.
    #[test]
    fn keys_of_classless_reverse_zones_are_found() {
        let zone: Name = "0/25.2.0.192.in-addr.arpa.".parse().unwrap();
        assert!(is_key_file_of("K0%2F25.2.0.192.in-addr.arpa.+013+12345", &zone));
        assert!(!is_key_file_of("K0.25.2.0.192.in-addr.arpa.+013+12345", &zone));
    }
}
