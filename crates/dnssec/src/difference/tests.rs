//! Tests of the DNSSEC differences between two versions.

use super::*;
use crate::keys::Nsec5Key;
use nonesuch_crypto::vrf::{VrfAlgorithm, VrfPrivateKey};
use nonesuch_zone::read;
use std::path::Path;

fn zone(text: &str) -> Contents {
    let text = format!("$TTL 60\n@ SOA ns h 1 2 3 4 5\n@ NS ns\n@ RRSIG SOA 13 1 60 2 1 7 x. AAAA\n{text}");
    read::read_text(text.as_bytes(), Path::new("zone"), Some(&"x.".parse().unwrap())).unwrap().contents
}

fn signatures(old: &str, new: &str) -> SignatureCounts {
    difference(&zone(old), &zone(new)).signatures
}

/// The numbers for two versions with only the RRSIG record of the SOA record.
const ONLY_SOA_KEPT: SignatureCounts = SignatureCounts {
    kept: 1,
    renewed: 0,
    changed: 0,
    expires_later: 0,
    expires_earlier: 0,
    removed: 0,
    added: 0,
};

#[test]
fn signatures_are_compared_by_key() {
    let a = "a TXT x\na RRSIG TXT 13 2 60 20 1 7 x. AAAA\n";
    assert_eq!(signatures(a, a), SignatureCounts { kept: 2, ..ONLY_SOA_KEPT });
    assert_eq!(
        signatures(a, &a.replace(" 20 ", " 30 ")),
        SignatureCounts { renewed: 1, expires_later: 1, ..ONLY_SOA_KEPT }
    );
    assert_eq!(
        signatures(a, &a.replace(" 20 ", " 10 ")),
        SignatureCounts { renewed: 1, expires_earlier: 1, ..ONLY_SOA_KEPT }
    );
    assert_eq!(signatures(a, &a.replace("AAAA", "BBBB")), SignatureCounts { renewed: 1, ..ONLY_SOA_KEPT });
    let changed = a.replace("TXT x\n", "TXT y\n").replace("AAAA", "BBBB");
    assert_eq!(signatures(a, &changed), SignatureCounts { changed: 1, ..ONLY_SOA_KEPT });
    assert_eq!(
        signatures(a, &a.replace(" 7 x.", " 8 x.")),
        SignatureCounts { removed: 1, added: 1, ..ONLY_SOA_KEPT }
    );
    assert_eq!(signatures(a, ""), SignatureCounts { removed: 1, ..ONLY_SOA_KEPT });
    assert_eq!(signatures("a TXT x\n", a), SignatureCounts { added: 1, ..ONLY_SOA_KEPT });
    // RFC 4034 §3.1.5: 10 follows 4294967290.
    let before = a.replace(" 20 ", " 4294967290 ");
    assert_eq!(signatures(&before, a), SignatureCounts { renewed: 1, expires_later: 1, ..ONLY_SOA_KEPT });
}

#[test]
fn chains_keys_and_data_are_counted_separately() {
    let old = zone(
        "@ DNSKEY 256 3 13 AAAA\n@ NSEC a NS SOA\na NSEC x. TXT\na TXT x\na CDS 1 13 2 00\n@ CDS 1 13 2 00\n",
    );
    let new = zone("@ DNSKEY 257 3 13 AAAA\n@ NSEC b NS SOA\nb NSEC x. TXT\na TXT x\nb TXT x\n");
    let found = difference(&old, &new);
    assert_eq!(found.chain, RrsetCounts { removed: 1, added: 1, changed: 1 });
    assert_eq!((found.keys_removed.len(), found.keys_added.len()), (1, 1));
    assert_eq!(found.apex_types, [Rtype::CDS]);
    assert!(!found.is_empty() && difference(&old, &old).is_empty());
    let mut text = Vec::new();
    data_changes(&old, &new).write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    // CDS records at names other than the apex are data.
    assert_eq!(text, "- a.x.\t60\tIN\tCDS\t1 13 2 00\n+ b.x.\t60\tIN\tTXT\t\"x\"\n");
}

/// The type numbers of NSEC5 are for private use: only chain records and valid keys count as such;
/// other records of these types are data.
#[test]
fn nsec5_records_are_distinguished_from_data_with_the_same_types() {
    // A hash has 256 bits: the last base32hex digit has only one of them.
    let [first, second] = ["0", "1"].map(|digit| digit.repeat(51) + "0");
    let chain = |seed: u8, types: &str| {
        let key = VrfPrivateKey::from_secret(VrfAlgorithm::EDWARDS25519_SHA512_ELL2, &[seed; 32]).unwrap();
        let key = data_encoding::HEXLOWER.encode(Nsec5Key::of(&key).rdata());
        format!("@ TYPE65281 \\# 33 {key}\n{first} NSEC5 7 0 {second} {types}\n")
    };
    let data = "p TYPE65280 \\# 1 00\np TYPE65281 \\# 1 00\n";
    let old = zone(&format!("{}{data}", chain(1, "A")));
    let new = zone(&format!("{}{}", chain(2, "AAAA"), data.replace(" 00", " 01")));
    let found = difference(&old, &new);
    assert_eq!(found.chain, RrsetCounts { removed: 0, added: 0, changed: 1 });
    assert_eq!(found.apex_types, [Rtype::NSEC5KEY]);
    let mut text = Vec::new();
    data_changes(&old, &new).write(&mut text).unwrap();
    let text = String::from_utf8(text).unwrap();
    assert_eq!(text.lines().count(), 4, "{text}");
    assert!(text.lines().all(|line| line[2..].starts_with("p.x.\t")), "{text}");
    // Also at the apex, for records that are not valid keys.
    let (old, new) = (zone("@ TYPE65281 \\# 1 63\n"), zone("@ TYPE65281 \\# 1 64\n"));
    assert!(difference(&old, &new).is_empty());
    assert!(!data_changes(&old, &new).is_empty());
}
