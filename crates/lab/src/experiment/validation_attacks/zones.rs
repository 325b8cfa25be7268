//! The trees with hostile zones. Keys and signatures depend only on the number of their zone. Each
//! zone has keys of its own, so that no resolver knows the keys of a new zone.

use super::attack::{Attack, ForgedKeys, Kind, SIGNATURES};
use crate::testbed::{TestbedError, TreeFiles};
use crate::tree::{Description, Fault, PlantedFault, TreeError, ZoneDescription, with_key_tag};
use data_encoding::BASE64;
use nonesuch_crypto::{Algorithm, PrivateKey};
use nonesuch_dnssec::Mechanism;
use nonesuch_proto::{Name, Rtype, rdata};
use std::fmt::Write as _;
use std::fs;
use std::net::Ipv4Addr;
use std::path::Path;

/// Address of the server of the root; the next addresses are those of `example.` and of the zones
/// below it.
const FIRST_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
const ZONES_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 3);
/// The key tag of all forged DNSKEY records.
const TAG: u16 = 0x2f2f;
/// The records that the questions of forged answers match.
const WILDCARD: &str = "*.wild A 192.0.2.11\n";
/// Names of `good.example.`, which the other clients query.
pub(super) const GOOD_NAMES: u32 = 1_000;

/// Builds and writes the tree with `zones` hostile zones and `good.example.`
pub(super) fn write(
    attack: &Attack,
    zones: u32,
    (seed, now): (u64, u32),
    directory: &Path,
) -> Result<TreeFiles, TestbedError> {
    let tree = TreeFiles::write(&description(attack, zones)?, seed, now, directory)?;
    if let Kind::Signatures(keys) = attack.kind {
        for zone in 0..zones {
            let path = directory.join(format!("zones/z{zone}.example"));
            let text = fs::read_to_string(&path).map(|text| forge(&text, &keys));
            let written = text.and_then(|text| fs::write(&path, text));
            written.map_err(|source| TestbedError::Write { path, source })?;
        }
    }
    Ok(tree)
}

/// The description of the tree. With forged signatures, the zones still have their own.
fn description(attack: &Attack, zones: u32) -> Result<Description, TreeError> {
    let below = |origin: &str| ZoneDescription {
        server: Some(ZONES_ADDRESS),
        samples: Some(false),
        ..ZoneDescription::new(origin)
    };
    let hostile =
        ZoneDescription { count: Some(zones), records: WILDCARD.to_owned(), ..below("z#.example.") };
    let good = ZoneDescription { names: GOOD_NAMES, ..below("good.example.") };
    let mut all = vec![ZoneDescription::new("."), ZoneDescription::new("example."), good];
    match attack.kind {
        Kind::Signatures(keys) => {
            for zone in 0..zones {
                all.push(ZoneDescription {
                    // A zone signs with the algorithm of each of its keys (RFC 4035 §2.2).
                    algorithm: keys.algorithm,
                    bits: (keys.algorithm == Algorithm::RSASHA256).then_some(2048),
                    csk: true,
                    records: WILDCARD.to_owned() + &colliding_keys(zone, &keys)?,
                    ..below(&format!("z{zone}.example."))
                });
            }
        }
        Kind::Ds => {
            let tags = PlantedFault { rtype: Some(Rtype::A), ..PlantedFault::new(Fault::CollidingKeyTags) };
            let faults = vec![PlantedFault::new(Fault::CollidingDs), tags];
            all.push(ZoneDescription { csk: true, faults, ..hostile });
        }
        Kind::Nsec3(iterations) => {
            all.push(ZoneDescription {
                denial: Mechanism::Nsec3,
                iterations,
                salt: "5a".repeat(255),
                ..hostile
            });
        }
        Kind::Nsec5 => all.push(ZoneDescription { denial: Mechanism::Nsec5, ..hostile }),
    }
    Ok(Description { first_address: FIRST_ADDRESS, zones: all, ..Description::default() })
}

/// DNSKEY records with the tag [`TAG`], as lines of a zone file.
fn colliding_keys(zone: u32, keys: &ForgedKeys) -> Result<String, TreeError> {
    let (mut text, mut count, mut number) = (String::new(), 0, u64::from(zone) << 16);
    while count < keys.count {
        number += 1;
        let origin = || format!("z{zone}.example.").parse().unwrap_or_else(|_| Name::root());
        let key = public_key(number, keys).map_err(|source| TreeError::Key { zone: origin(), source })?;
        // Protocol 3 (RFC 4034 §2.1.2).
        let dnskey = with_key_tag([&[0, 0, 3, keys.algorithm.0][..], &key].concat(), TAG);
        let Some(dnskey) = dnskey else { continue };
        let mut line = Vec::new();
        rdata::push_text(Rtype::DNSKEY, &dnskey, &mut line);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "@ DNSKEY {}", String::from_utf8_lossy(&line));
        count += 1;
    }
    Ok(text)
}

/// A public key that depends on `number`. RSA keys have an odd modulus with unknown factors, because
/// they never sign.
fn public_key(number: u64, keys: &ForgedKeys) -> Result<Vec<u8>, nonesuch_crypto::KeyError> {
    if keys.algorithm == Algorithm::RSASHA256 {
        let mut modulus = octets_of(number, keys.octets);
        modulus[0] |= 0x80;
        modulus[keys.octets - 1] |= 1;
        // The exponent 65537 with its length (RFC 3110 §2).
        return Ok([&[3, 1, 0, 1][..], &modulus].concat());
    }
    let mut secret = vec![0; keys.octets];
    secret[keys.octets - 8..].copy_from_slice(&number.to_be_bytes());
    let (algorithm, secret) = (keys.algorithm, BASE64.encode(&secret));
    let key = PrivateKey::from_bind(&format!(
        "Private-key-format: v1.3\nAlgorithm: {} ({algorithm})\nPrivateKey: {secret}\n",
        algorithm.0
    ))?;
    Ok(key.public_key().to_vec())
}

/// Octets that depend on `number` only.
fn octets_of(number: u64, count: usize) -> Vec<u8> {
    let mut octets = vec![0; count];
    blake3::Hasher::new().update(&number.to_be_bytes()).finalize_xof().fill(&mut octets);
    octets
}

/// A signature of the right form that does not verify. It is less than the modulus or the order of
/// the curve, so that a verifier computes all.
fn signature(number: u64, keys: &ForgedKeys) -> Vec<u8> {
    let is_rsa = keys.algorithm == Algorithm::RSASHA256;
    let (octets, half) = if is_rsa { (keys.octets, 0) } else { (2 * keys.octets, keys.octets) };
    let mut signature = octets_of(number, octets);
    (signature[0], signature[half]) = (0x11, 0x11);
    signature
}

/// Replaces the signature over the wildcard in a zone file by forged signatures with the tag
/// [`TAG`].
fn forge(text: &str, keys: &ForgedKeys) -> String {
    let mut forged = String::with_capacity(text.len());
    for line in text.lines() {
        let mut fields: Vec<&str> = line.split_whitespace().collect();
        let is_signature = line.starts_with("*.wild.") && fields.get(3) == Some(&"RRSIG");
        if !is_signature || fields.get(4) != Some(&"A") || fields.len() < 13 {
            let _ = writeln!(forged, "{line}");
            continue;
        }
        // Type covered, algorithm, labels, TTL, expiration, inception, tag, signer, signature.
        let (algorithm, tag) = (keys.algorithm.0.to_string(), TAG.to_string());
        (fields[5], fields[10]) = (&algorithm, &tag);
        for number in 0..SIGNATURES {
            let signature = BASE64.encode(&signature(number, keys));
            let _ = writeln!(forged, "{} {signature}", fields[..12].join(" "));
        }
    }
    forged
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::Tree;
    use nonesuch_crypto::key_tag;

    const NOW: u32 = 1_767_225_600;

    fn zone_texts(attack: &str, zones: u32) -> Vec<String> {
        let attack: Attack = attack.parse().expect("an attack");
        let description = description(&attack, zones).expect("a description");
        let tree = Tree::build(&description, 1, NOW).expect("a tree");
        let hostile = tree.zones.iter().filter(|zone| zone.origin.to_string().starts_with('z'));
        hostile.map(|zone| zone.text()).collect()
    }

    /// Number of records of this type in a zone file.
    fn count(text: &str, rtype: &str) -> usize {
        text.lines().filter(|line| line.split_whitespace().nth(3) == Some(rtype)).count()
    }

    #[test]
    fn forged_answers_have_many_signatures_by_colliding_keys() {
        for (name, keys) in [("keytrap-p256", 12), ("keytrap-p384", 12), ("signatures-p256", 1)] {
            let attack: Attack = name.parse().expect("an attack");
            let Kind::Signatures(forged) = attack.kind else { panic!("{name}") };
            let zones = zone_texts(name, 2);
            assert_eq!(zones.len(), 2);
            for text in &zones {
                assert_eq!(count(text, "DNSKEY"), keys + 1, "{name}: {text}");
                let text = forge(text, &forged);
                let signatures: Vec<&str> = text
                    .lines()
                    .filter(|line| line.starts_with("*.wild.") && line.contains(&format!(" {TAG} ")))
                    .collect();
                assert_eq!(signatures.len() as u64, SIGNATURES, "{name}: {text}");
                let read = nonesuch_zone::read::read_text(text.as_bytes(), Path::new("zone"), None);
                assert!(read.is_ok(), "{name}");
            }
        }
    }

    #[test]
    fn forged_keys_have_the_tag_and_differ() {
        for name in ["keytrap-p384", "keytrap-rsa2048", "keytrap-rsa4096"] {
            let attack: Attack = name.parse().expect("an attack");
            let Kind::Signatures(keys) = attack.kind else { panic!("{name}") };
            let lines = colliding_keys(3, &keys).expect("keys");
            let mut lines: Vec<&str> = lines.lines().collect();
            assert_eq!(lines.len() as u64, keys.count);
            for line in &lines {
                let fields: Vec<&str> = line.split_whitespace().collect();
                let flags: u16 = fields[2].parse().expect("flags");
                let key = BASE64.decode(fields[5..].concat().as_bytes()).expect("a key");
                let dnskey = [&flags.to_be_bytes()[..], &[3, keys.algorithm.0], &key].concat();
                assert_eq!(key_tag(&dnskey), TAG, "{name}");
            }
            lines.sort_unstable();
            lines.dedup();
            assert_eq!(lines.len() as u64, keys.count, "{name}");
            assert_ne!(colliding_keys(3, &keys).ok(), colliding_keys(4, &keys).ok());
            let length = signature(0, &keys).len();
            let is_rsa = keys.algorithm == Algorithm::RSASHA256;
            assert_eq!(length, if is_rsa { keys.octets } else { 2 * keys.octets });
        }
    }

    #[test]
    fn denials_are_expensive_and_ds_records_collide() {
        let nsec3 = &zone_texts("encloser-150", 1)[0];
        let fields = format!(" 150 {}", "5a".repeat(255));
        assert!(count(nsec3, "NSEC3") > 0 && nsec3.to_lowercase().contains(&fields), "{nsec3}");
        // Zone files have the records of NSEC5 in the generic form (RFC 3597 §5).
        assert!(count(&zone_texts("nsec5", 1)[0], "TYPE65280") > 0);
        let ds = zone_texts("ds", 2);
        assert_eq!((ds.len(), count(&ds[0], "DNSKEY")), (2, 13), "{}", ds[0]);
    }
}
