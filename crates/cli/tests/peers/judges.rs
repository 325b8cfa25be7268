//! Other verifiers for every way of signing: each algorithm that the peers support, with each
//! denial mechanism, each layout of keys and each option of `zone sign`. dnssec-verify,
//! ldns-verify-zone and kzonecheck accept the zone, named-checkzone and nsd-checkzone load it, and
//! NSD serves it. `interop_signing` and `unusual` test types and names.

use crate::common;
use common::judges::{Judge, installed_judges, judged};
use common::{PEER_ALGORITHMS, ask, done, folder, generate_key, peers, text};
use nonesuch_lab::peers::{Peer, Serving};
use nonesuch_testing::require_peer;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const ORIGIN: &str = "judged.example.";

/// Every case of signing: wildcard, empty non-terminals, secure and insecure zone cuts, glue,
/// alias, DNAME.
const ZONE: &str = "$ORIGIN judged.example.\n$TTL 3600\n@ SOA ns1 hostmaster 7 3600 300 3600000 900\n@ NS ns1\n\
    ns1 A 192.0.2.1\na.b.ent TXT \"t\"\n*.w MX 1 ns1\nalias CNAME ns1\ntree DNAME target.test.\n\
    d NS ns.d\nns.d A 192.0.2.2\nd2.un NS ns.elsewhere.test.\ns NS ns.elsewhere.test.\n\
    s DS 1 13 2 0000000000000000000000000000000000000000000000000000000000000001\n";

/// The denial options of `zone sign`.
const DENIALS: [&[&str]; 6] = [
    &["--denial", "nsec"],
    &["--denial", "nsec3"],
    &["--denial", "nsec3-opt-out"],
    &["--denial", "nsec3", "--nsec3-salt", "aabbccdd", "--nsec3-iterations", "5"],
    &["--denial", "nsec3-opt-out", "--nsec3-salt", "00"],
    &["--denial", "nsec3", "--nsec3-iterations", "50"],
];

/// Layouts of keys: options of `key generate` for each key.
const LAYOUTS: [&[&str]; 5] =
    [&["--csk"], &["--ksk", ""], &["--ksk", "--ksk", ""], &["--ksk", "", ""], &["--csk", "--csk"]];

/// Other options of `zone sign`.
const OPTIONS: [&[&str]; 5] = [
    &["--cds"],
    &["--jitter", "86400", "--seed", "7"],
    &["--serial", "unixtime"],
    &["--dnskey-ttl", "60"],
    &["--hedged"],
];

fn make_keys(folder: &Path, algorithm: &str, layout: &[&str]) -> PathBuf {
    let keys = folder.join(format!("keys-{algorithm}-{}", layout.len()));
    for option in layout {
        let options: Vec<&str> = Some(*option).filter(|option| !option.is_empty()).into_iter().collect();
        generate_key(&keys, ORIGIN, algorithm, &options);
    }
    keys
}

/// All checkers accept the zone, with two exceptions. `one-key`: `dnssec-verify` requires keys with
/// and without the SEP flag, unless its option `-z` ignores the flag. `two-keys-for-everything`:
/// `kzonecheck` requires a ZSK in addition to two keys with the flag.
fn judge(signed: &Path, options: &[&str]) {
    let zone = fs::read_to_string(signed).expect("the signed zone");
    let has_zsk = zone.contains("\tDNSKEY\t256 ");
    for judge in installed_judges() {
        let mut ended = judged(judge, ORIGIN, signed);
        if judge.program == "kzonecheck" && !has_zsk && zone.matches("\tDNSKEY\t257 ").count() > 1 {
            assert!(ended.text().contains("no valid signature"), "{options:?}: {}", ended.text());
            continue;
        }
        if judge.program == "dnssec-verify" && !has_zsk {
            assert!(ended.text().contains("Missing ZSK"), "{options:?}: {}", ended.text());
            let ignoring_the_flag = Judge { arguments: &["-q", "-z", "-o", "ORIGIN"], ..*judge };
            ended = judged(&ignoring_the_flag, ORIGIN, signed);
        }
        ended.expect_done(&format!("{}, {options:?}", judge.program));
    }
}

/// Signs with these options; this verifier and all checkers accept the zone.
fn sign_and_judge(folder: &Path, keys: &Path, options: &[&str]) -> PathBuf {
    let (unsigned, signed) = (folder.join("unsigned"), folder.join("signed"));
    fs::write(&unsigned, ZONE).expect("written");
    let sign = ["zone", "sign", text(&unsigned), "-o", ORIGIN, "--keys", text(keys), "-f", text(&signed)];
    done([&sign[..], options].concat());
    done(["zone", "verify", text(&signed)]);
    judge(&signed, options);
    signed
}

#[test]
fn every_algorithm_and_denial() {
    let folder = folder();
    for algorithm in PEER_ALGORITHMS {
        let keys = make_keys(folder.path(), algorithm, LAYOUTS[1]);
        for denial in DENIALS {
            sign_and_judge(folder.path(), &keys, denial);
        }
    }
}

#[test]
fn every_layout_of_keys() {
    for layout in LAYOUTS {
        let folder = folder();
        let keys = make_keys(folder.path(), "ecdsap256sha256", layout);
        for denial in &DENIALS[..3] {
            sign_and_judge(folder.path(), &keys, denial);
        }
    }
}

/// A zone during an algorithm rollover: everything is signed with both algorithms.
#[test]
fn two_algorithms_at_once() {
    for (first, second) in [("rsasha256", "ecdsap256sha256"), ("ecdsap256sha256", "ed25519")] {
        let folder = folder();
        let keys = folder.path().join("keys");
        for algorithm in [first, second] {
            generate_key(&keys, ORIGIN, algorithm, &["--ksk"]);
            generate_key(&keys, ORIGIN, algorithm, &[]);
        }
        for denial in &DENIALS[..3] {
            sign_and_judge(folder.path(), &keys, denial);
        }
    }
}

#[test]
fn every_option() {
    let folder = folder();
    let keys = make_keys(folder.path(), "ecdsap256sha256", LAYOUTS[1]);
    for options in OPTIONS {
        for denial in &DENIALS[..3] {
            sign_and_judge(folder.path(), &keys, &[*denial, options].concat());
        }
    }
}

/// A signed zone is signed again, with the same keys and with others, and is accepted as before.
#[test]
fn signing_what_is_signed() {
    let folder = folder();
    let first = make_keys(folder.path(), "ecdsap256sha256", LAYOUTS[1]);
    let second = make_keys(folder.path(), "ed25519", LAYOUTS[0]);
    for (before, after) in [(DENIALS[0], DENIALS[1]), (DENIALS[1], DENIALS[2]), (DENIALS[2], DENIALS[0])] {
        let signed = sign_and_judge(folder.path(), &first, before);
        let again = folder.path().join("again");
        for keys in [&first, &second] {
            let sign = ["zone", "sign", text(&signed), "--keys", text(keys), "-f", text(&again)];
            done([&sign[..], &["--drop-foreign-dnskeys"], after].concat());
            done(["zone", "verify", text(&again)]);
            judge(&again, after);
        }
    }
}

/// NSD loads each zone and answers from it.
#[test]
fn nsd_serves_every_algorithm_and_denial() {
    require_peer!("nsd");
    const SOA: u16 = 6;
    for algorithm in PEER_ALGORITHMS {
        let folder = folder();
        let keys = make_keys(folder.path(), algorithm, LAYOUTS[1]);
        for denial in &DENIALS[..3] {
            let signed = sign_and_judge(folder.path(), &keys, denial);
            let server =
                peers::start(Peer::Nsd, &peers::zone(folder.path(), ORIGIN, &signed, Serving::Presigned));
            let answer = ask(server.address, ORIGIN, SOA, Duration::from_secs(15)).expect("an answer");
            // The record and its signature.
            assert_eq!((answer.rcode, answer.answers), (0, 2), "{algorithm}, {denial:?}");
        }
    }
}
