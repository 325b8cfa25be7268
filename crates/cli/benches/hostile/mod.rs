//! Hostile zones below `example.`, and the questions that make a validator work on them.
//!
//! Keys and signatures depend only on the number of their zone. Each zone has keys of its own, so that no
//! resolver knows the keys of a new zone.

mod probe;

pub(crate) use probe::Probe;

use crate::resolvers::{Tree, ZONE_SERVER};
use data_encoding::BASE64;
use nonesuch_crypto::{Algorithm, DigestType, PrivateKey};
use nonesuch_lab::tree::with_key_tag;
use nonesuch_proto::{Rtype, rdata};
use std::fmt::Write as _;
use std::fs;
use std::path::Path;

/// The key tag of all forged DNSKEY records.
const TAG: u16 = 0x2f2f;
/// RRSIG records of a forged answer.
const SIGNATURES: u64 = 24;
/// Colliding DNSKEY records.
const KEYS: u64 = 12;
/// Labels of a deep name between its first label and the zone.
const DEPTH: usize = 100;
/// Names of the honest zone, which the other clients query.
pub(crate) const GOOD_NAMES: u64 = 1_000;

/// A kind of attack.
pub(crate) struct Column {
    pub(crate) name: &'static str,
    pub(crate) title: &'static str,
    /// Number of hostile zones.
    pub(crate) zones: u64,
    pub(crate) kind: Kind,
}

/// The expensive records of a zone.
#[derive(Clone, Copy)]
pub(crate) enum Kind {
    /// Forged signatures over the answers: the algorithm, the octets of a modulus or coordinate, and the number
    /// of keys with the tag of the signatures.
    Signatures(Algorithm, usize, u64),
    /// DS records and DNSKEY records with one tag, and no right digest.
    Ds,
    /// Denials of deep names with this number of NSEC3 iterations and the longest salt.
    Nsec3(u16),
    /// Denials of deep names with NSEC5, which peers do not know.
    Nsec5,
}

const P256: (Algorithm, usize) = (Algorithm::ECDSAP256SHA256, 32);
const P384: (Algorithm, usize) = (Algorithm::ECDSAP384SHA384, 48);
const RSA2048: (Algorithm, usize) = (Algorithm::RSASHA256, 256);
const RSA4096: (Algorithm, usize) = (Algorithm::RSASHA256, 512);

const fn signatures(
    name: &'static str,
    title: &'static str,
    (algorithm, octets): (Algorithm, usize),
    keys: u64,
) -> Column {
    Column { name, title, zones: 100, kind: Kind::Signatures(algorithm, octets, keys) }
}

pub(crate) const COLUMNS: [Column; 12] = [
    signatures("keytrap-p256", "12 colliding keys, 24 RRSIGs, P-256", P256, KEYS),
    signatures("keytrap-p384", "12 colliding keys, 24 RRSIGs, P-384", P384, KEYS),
    signatures("keytrap-rsa2048", "12 colliding keys, 24 RRSIGs, RSA-2048", RSA2048, KEYS),
    signatures("keytrap-rsa4096", "12 colliding keys, 24 RRSIGs, RSA-4096", RSA4096, KEYS),
    signatures("signatures-p256", "one key, 24 RRSIGs, P-256", P256, 1),
    signatures("signatures-p384", "one key, 24 RRSIGs, P-384", P384, 1),
    signatures("signatures-rsa2048", "one key, 24 RRSIGs, RSA-2048", RSA2048, 1),
    signatures("signatures-rsa4096", "one key, 24 RRSIGs, RSA-4096", RSA4096, 1),
    // A known zone costs nothing, so each query of the attack is for another zone.
    Column { name: "ds", title: "32 colliding DS, 13 colliding keys", zones: 10_000, kind: Kind::Ds },
    Column {
        name: "encloser-50",
        title: "100 labels, NSEC3 50 iterations",
        zones: 100,
        kind: Kind::Nsec3(50),
    },
    Column {
        name: "encloser-150",
        title: "100 labels, NSEC3 150 iterations",
        zones: 100,
        kind: Kind::Nsec3(150),
    },
    Column { name: "nsec5", title: "100 labels, NSEC5", zones: 100, kind: Kind::Nsec5 },
];

impl Column {
    /// Question `number` for a zone. Different numbers give names that no cache can know.
    pub(crate) fn question(&self, zone: u64, number: u64) -> String {
        match self.kind {
            Kind::Signatures(..) | Kind::Ds => format!("n{number}.wild.z{zone}.example."),
            Kind::Nsec3(_) | Kind::Nsec5 => format!("{}n{number}.z{zone}.example.", "a.".repeat(DEPTH)),
        }
    }

    /// Whether only the first query for a zone is expensive.
    pub(crate) const fn needs_new_zones(&self) -> bool {
        matches!(self.kind, Kind::Ds)
    }

    /// Whether Unbound interrupts a validation with timers, for seconds, and then drops late responses: its
    /// CPU time for a query is measured with many queries at once.
    pub(crate) const fn is_interrupted_by_peers(&self) -> bool {
        matches!(self.kind, Kind::Nsec3(_))
    }

    pub(crate) const fn is_known_to_peers(&self) -> bool {
        !matches!(self.kind, Kind::Nsec5)
    }

    /// Writes the tree with the hostile zones and `good.example.`
    pub(crate) fn write(&self, dir: &Path) {
        let all = (0..self.zones).map(|zone| self.section(zone));
        let good = format!("origin = \"good.example.\"\nnames = {GOOD_NAMES}\nserver = \"{ZONE_SERVER}\"");
        let text = all.fold(String::new(), |text, section| text + &section + "\n[[zone]]\n") + &good;
        Tree::write(dir, "ecdsap256sha256", &text);
        if let Kind::Signatures(algorithm, octets, _) = self.kind {
            for zone in 0..self.zones {
                forge(&dir.join(format!("zones/z{zone}.example")), algorithm, octets);
            }
        }
    }

    /// The section of the description of the tree for one zone.
    fn section(&self, zone: u64) -> String {
        let lines = match self.kind {
            Kind::Signatures(algorithm, octets, keys) => {
                // A zone signs with the algorithm of each of its keys (RFC 4035 §2.2).
                let bits = if algorithm == Algorithm::RSASHA256 { "\nbits = 2048" } else { "" };
                let lines = format!("algorithm = \"{algorithm}\"\ncsk = true{bits}");
                return with_records(zone, &lines, &colliding_keys(zone, algorithm, octets, keys));
            }
            Kind::Ds => {
                "csk = true\nfaults = [{ fault = \"colliding-ds\" }, { fault = \"colliding-key-tags\", type = \"A\" }]"
                    .to_owned()
            }
            Kind::Nsec3(iterations) => {
                let salt = "5a".repeat(255);
                format!("denial = \"nsec3\"\niterations = {iterations}\nsalt = \"{salt}\"")
            }
            Kind::Nsec5 => "denial = \"nsec5\"".to_owned(),
        };
        with_records(zone, &lines, "")
    }
}

/// The section for a zone with a wildcard, with more lines and records.
fn with_records(zone: u64, lines: &str, records: &str) -> String {
    format!(
        "origin = \"z{zone}.example.\"\nserver = \"{ZONE_SERVER}\"\nsamples = false\n{lines}\n\
         records = '''\n*.wild A 192.0.2.11\n{records}'''\n"
    )
}

/// DNSKEY records with the tag [`TAG`], as lines of a zone file.
fn colliding_keys(zone: u64, algorithm: Algorithm, octets: usize, count: u64) -> String {
    let numbers = (zone << 16) + 1..;
    let keys = numbers.filter_map(|number| {
        let fields = [&[0, 0, 3, algorithm.0][..], &public_key(number, algorithm, octets)].concat();
        with_key_tag(fields, TAG)
    });
    keys.take(count as usize).fold(String::new(), |mut text, key| {
        let mut line = Vec::new();
        rdata::push_text(Rtype::DNSKEY, &key, &mut line);
        // Writing to a `String` cannot fail.
        let _ = writeln!(text, "@ DNSKEY {}", String::from_utf8_lossy(&line));
        text
    })
}

/// A public key that depends on `number`. RSA keys have an odd modulus with unknown factors, because they
/// never sign.
fn public_key(number: u64, algorithm: Algorithm, octets: usize) -> Vec<u8> {
    if algorithm == Algorithm::RSASHA256 {
        let mut modulus = stream(number, octets);
        modulus[0] |= 0x80;
        modulus[octets - 1] |= 1;
        return [&[3, 1, 0, 1][..], &modulus].concat();
    }
    let mut secret = vec![0; octets];
    secret[octets - 8..].copy_from_slice(&number.to_be_bytes());
    let fields =
        format!("Algorithm: {} ({algorithm})\nPrivateKey: {}\n", algorithm.0, BASE64.encode(&secret));
    let key = PrivateKey::from_bind(&format!("Private-key-format: v1.3\n{fields}")).expect("a small scalar");
    key.public_key().to_vec()
}

/// Octets that depend on `number` only.
fn stream(number: u64, octets: usize) -> Vec<u8> {
    let block = |block: u64| {
        let parts = [&number.to_be_bytes()[..], &block.to_be_bytes()];
        DigestType::SHA256.digest(&parts).expect("a known digest")
    };
    (0..).flat_map(block).take(octets).collect()
}

/// A signature of the right form that does not verify. It is less than the modulus or the order of the curve,
/// so that a verifier computes all.
fn signature(number: u64, algorithm: Algorithm, octets: usize) -> Vec<u8> {
    let (octets, half) = if algorithm == Algorithm::RSASHA256 { (octets, 0) } else { (2 * octets, octets) };
    let mut signature = stream(number, octets);
    (signature[0], signature[half]) = (0x11, 0x11);
    signature
}

/// Replaces the signature over the wildcard in a zone file by forged signatures with the tag [`TAG`].
fn forge(file: &Path, algorithm: Algorithm, octets: usize) {
    let text = fs::read_to_string(file).expect("a zone file");
    let mut forged = String::with_capacity(text.len());
    let mut count = 0;
    for line in text.lines() {
        let mut fields: Vec<String> = line.split_whitespace().map(str::to_owned).collect();
        let is_target = line.starts_with("*.wild.") && fields.get(3).is_some_and(|rtype| rtype == "RRSIG");
        if !is_target || fields.get(4).is_none_or(|covered| covered != "A") {
            let _ = writeln!(forged, "{line}");
            continue;
        }
        // Type covered, algorithm, labels, TTL, expiration, inception, tag, signer, signature.
        (fields[5], fields[10]) = (algorithm.0.to_string(), TAG.to_string());
        for number in 0..SIGNATURES {
            fields[12] = BASE64.encode(&signature(number, algorithm, octets));
            let _ = writeln!(forged, "{}", fields.join(" "));
            count += 1;
        }
    }
    assert_eq!(count, SIGNATURES, "{}: one signature over the wildcard", file.display());
    fs::write(file, forged).expect("a zone file");
}
