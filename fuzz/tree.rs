//! A small signed tree, for the targets that validate responses.

use nonesuch_crypto::{DigestType, PrivateKey};
use nonesuch_dnssec::keys::ds_rdata;
use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
use nonesuch_proto::Name;
use nonesuch_zone::{Contents, read::read_text};
use std::path::Path;

/// The inception of all signatures. They are valid for three years.
const INCEPTION: u32 = 1_700_000_000;
/// The time of validation.
pub(crate) const NOW: u32 = INCEPTION + 86_400;

pub(crate) fn name(text: &str) -> Name {
    text.parse().unwrap_or_else(|error| panic!("{text}: {error}"))
}

/// Returns the key of a zone. All zones have the same: only the names in signatures distinguish them.
fn pair(apex: &str) -> KeyPair {
    let text = include_str!("targets/key.private");
    let private = PrivateKey::from_bind(text).unwrap_or_else(|error| panic!("{error}"));
    KeyPair::new(name(apex), 257, private)
}

/// Returns the RDATA of the DS record of a zone.
pub(crate) fn ds(apex: &str) -> Vec<u8> {
    let digest = ds_rdata(name(apex).view(), &pair(apex).dnskey_rdata(), DigestType::SHA256);
    digest.unwrap_or_else(|| panic!("SHA-256 is known"))
}

/// Returns the line of a zone file with the DS record of a zone.
pub(crate) fn ds_line(apex: &str) -> String {
    let [high, low, algorithm, digest_type, digest @ ..] = &*ds(apex) else { panic!("a DS record") };
    let digest: String = digest.iter().map(|octet| format!("{octet:02x}")).collect();
    format!("{apex} 300 DS {} {algorithm} {digest_type} {digest}\n", u16::from_be_bytes([*high, *low]))
}

/// Returns the signed zone with the text of a zone file.
pub(crate) fn signed(apex: &str, text: &str, mechanism: Mechanism) -> Contents {
    let reading = read_text(text.as_bytes(), Path::new("zone"), None);
    let contents = reading.unwrap_or_else(|error| panic!("{error}")).contents;
    let keys = KeySet::new(&name(apex), vec![pair(apex)]).unwrap_or_else(|error| panic!("{error}"));
    let options = SignOptions::new(mechanism, INCEPTION, INCEPTION + 100_000_000);
    sign(&contents, &keys, &options).unwrap_or_else(|error| panic!("{error}")).into_contents()
}
