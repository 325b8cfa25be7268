//! Valid but unusual zones in other checkers. BIND, ldns, NSD and Knot DNS accept every zone that
//! the verifier's tests consider valid; exceptions are listed here and in docs/differences.md with
//! the rule of the RFC. The test fails if a listed exception no longer occurs.

use crate::common;
#[path = "../../../dnssec/src/tests/unusual/records.rs"]
mod records;

use common::judges::{Judge, installed_judges, judged};
use common::{MECHANISMS, done, folder, generate_key, sign, text};
use records::Plain;
use std::fs;
use std::path::{Path, PathBuf};

const ORIGIN: &str = "example.";
const ALGORITHMS: [&str; 3] = ["rsasha256", "ecdsap256sha256", "ed25519"];

/// A case that a checker rejects: class in docs/differences.md, checker, mechanism (empty for all),
/// cases.
type Refusal = (&'static str, &'static str, &'static str, &'static [&'static str]);

const REFUSALS: &[Refusal] = &[
    ("order-of-zero-octets", "kzonecheck", "nsec", &["octets 0 at the end of a label"]),
    ("at-sign-as-a-label", "ldns-verify-zone", "nsec", &["an at sign as a label"]),
    ("unescaped-octets", "kzonecheck", "", &["octets around letters"]),
    ("unknown-type", "ldns-verify-zone", "", &["records of RFC 2535"]),
    ("unknown-type", "kzonecheck", "", &["records of RFC 2535"]),
    ("data-below-dname", "nsd-checkzone", "", BELOW_DNAME),
    ("data-below-dname", "kzonecheck", "", BELOW_DNAME),
    ("ns-at-wildcard", "dnssec-verify", "", &["NS at a wildcard", "DS at a wildcard"]),
    ("ns-at-wildcard", "named-checkzone", "", &["NS at a wildcard", "DS at a wildcard"]),
    ("ds-that-nobody-can-use", "kzonecheck", "", &["DS with an unknown digest", "DS of algorithm 0"]),
    ("ds-digest-length", "dnssec-verify", "", &["DS with a digest of the wrong length"]),
    ("ds-digest-length", "named-checkzone", "", &["DS with a digest of the wrong length"]),
    ("ds-digest-length", "kzonecheck", "", &["DS with a digest of the wrong length"]),
    ("cds-away-from-the-apex", "kzonecheck", "", &["CDS and CDNSKEY at signalling names", "CDS below a cut"]),
    ("dnskey-away-from-the-apex", "dnssec-verify", "", &["a DNSKEY that is no zone key away from the apex"]),
];

const BELOW_DNAME: &[&str] = &["data below a DNAME", "a cut below a DNAME", "a DNAME at the apex above data"];

fn is_listed(case: &str, judge: &str, mechanism: &str) -> bool {
    REFUSALS.iter().any(|(_, program, of, cases)| {
        *program == judge && (of.is_empty() || *of == mechanism) && cases.contains(&case)
    })
}

/// A KSK and a ZSK of each algorithm.
fn keys(folder: &Path) -> Vec<PathBuf> {
    let make = |algorithm: &&str| {
        let keys = folder.join(format!("keys-{algorithm}"));
        generate_key(&keys, ORIGIN, algorithm, &["--ksk"]);
        generate_key(&keys, ORIGIN, algorithm, &[]);
        keys
    };
    ALGORITHMS.iter().map(make).collect()
}

/// Signs each zone with each mechanism and alternating algorithms, and runs all checkers.
fn judge_all(rows: &[Plain]) {
    let folder = folder();
    let keys = keys(folder.path());
    let judges = installed_judges();
    let mut differences = Vec::new();
    for (number, (case, rule, records)) in rows.iter().enumerate() {
        let unsigned = folder.path().join("unsigned");
        let zone = format!(
            "$ORIGIN {ORIGIN}\n$TTL 3600\n@ SOA ns1 hostmaster 7 3600 300 3600000 900\n@ NS ns.elsewhere.test.\n{records}\n"
        );
        fs::write(&unsigned, zone).expect("written");
        for (place, mechanism) in MECHANISMS.iter().enumerate() {
            let keys = &keys[(number + place) % keys.len()];
            let signed = folder.path().join("signed");
            sign(&unsigned, ORIGIN, keys, mechanism, &signed);
            done(["zone", "verify", "-o", ORIGIN, text(&signed)]);
            differences.extend(judges.iter().filter_map(|judge| {
                let said = differs(judge, case, mechanism, &signed)?;
                Some(format!("{case} ({rule}), {mechanism}, {}: {said}", judge.program))
            }));
        }
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
}

/// The difference between a checker's result and the expected one, if any.
fn differs(judge: &Judge, case: &str, mechanism: &str, signed: &Path) -> Option<String> {
    let ended = judged(judge, ORIGIN, signed);
    match (ended.status == 0, is_listed(case, judge.program, mechanism)) {
        (true, true) => Some("is accepted: take it off the list".to_owned()),
        (false, false) => Some(ended.text()),
        _ => None,
    }
}

#[test]
fn unusual_names_are_accepted() {
    judge_all(records::NAMES);
}

#[test]
#[ignore = "`just judge`: thousands of programs"]
fn unusual_types_are_accepted() {
    judge_all(records::TYPES);
}

#[test]
#[ignore = "`just judge`: thousands of programs"]
fn unusual_structures_are_accepted() {
    judge_all(records::STRUCTURES);
}

#[test]
fn every_refusal_is_documented() {
    let page = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/differences.md");
    let page = fs::read_to_string(page).expect("the page of differences");
    for (class, ..) in REFUSALS {
        assert!(page.contains(&format!("| `{class}` |")), "{class}");
    }
}
