//! Names of key files, `K<zone>+<algorithm>+<tag>.key` and `.private` (dnssec-keygen(1)), and the
//! recognition of other private keys.

use nonesuch_crypto::{decode_pem, pkcs8_algorithms};
use nonesuch_proto::Name;
use std::fmt::Write as _;
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// File name suffixes of the two files of a key.
pub const SUFFIXES: [&str; 2] = [".key", ".private"];

/// Paths of the two files of a key in `dir`, `.key` first.
#[must_use]
pub fn file_paths(dir: &Path, base: &str) -> [PathBuf; 2] {
    SUFFIXES.map(|suffix| dir.join(format!("{base}{suffix}")))
}

/// The owner in the base name of a file, in file name syntax: `example.` for `Kexample.+013+12345`,
/// where `kind` is `K`. `None` if the base name does not have this form.
#[must_use]
pub fn owner_of(base: &str, kind: char) -> Option<&str> {
    let mut parts = base.rsplitn(3, '+');
    let (_tag, _algorithm, owner) = (parts.next()?, parts.next()?, parts.next()?);
    owner.strip_prefix(kind)
}

/// The zone in the base name of a file, as [`owner_of`], as a domain name.
#[must_use]
pub fn zone_of(base: &str, kind: char) -> Option<Name> {
    // File names have octets as `%XX`, domain names as `\DDD`.
    let mut pieces = owner_of(base, kind)?.split('%');
    let mut name = pieces.next()?.to_owned();
    for piece in pieces {
        let (digits, rest) = piece.split_at_checked(2)?;
        // Writing to a `String` cannot fail.
        let _ = write!(name, "\\{:03}{rest}", u8::from_str_radix(digits, 16).ok()?);
    }
    name.parse().ok()
}

/// Whether the base name of a file is the name of a signing key of `zone`.
#[must_use]
pub fn is_of_zone(base: &str, zone: &Name) -> bool {
    zone_of(base, 'K').is_some_and(|owner| owner == *zone)
}

/// Whether the octets are a private key in BIND's format, in PEM or in DER, with any file name.
#[must_use]
pub fn is_private_key(octets: &[u8]) -> bool {
    if pkcs8_algorithms(octets).is_ok() {
        return true;
    }
    // The text is a copy of the key, so it is zeroized.
    let text = Zeroizing::new(String::from_utf8_lossy(octets).into_owned());
    // Encrypted keys and keys in unsupported forms also count.
    text.contains("Private-key-format:") || text.contains("PRIVATE KEY-----") || decode_pem(&text).is_ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_of_files_say_the_zone() {
        let zone = |base: &str, kind| zone_of(base, kind).map(|name| name.to_string());
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
        assert!(is_of_zone("K0%2F25.2.0.192.in-addr.arpa.+013+12345", &zone));
        assert!(!is_of_zone("K0.25.2.0.192.in-addr.arpa.+013+12345", &zone));
    }
}
