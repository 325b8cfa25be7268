//! Keys with the alias algorithm numbers of zones with NSEC5: number, key tag, DS, CDS and RRSIG
//! agree everywhere.

use super::{NSEC_AND_NSEC3, assert_sound_with_aliases, name, node, options, rdatas, report, zone};
use crate::keys::{KeyPair, KeyRecord, KeySet, KeySetError, KeyTimes, SEP, ZONE_KEY};
use crate::rrsig::Rrsig;
use crate::sign::sign;
use crate::verify::{Anchor, VerifyOptions, verify};
use nonesuch_crypto::{ALGORITHMS, Algorithm, AlgorithmEntry, DigestType, PrivateKey, key_tag};
use nonesuch_proto::Rtype;

/// Every alias of the algorithm table.
fn aliases() -> impl Iterator<Item = Algorithm> {
    ALGORITHMS.iter().filter(|entry| entry.alias_of.is_some()).map(|entry| entry.algorithm)
}

fn pair(algorithm: Algorithm) -> Vec<KeyPair> {
    let make = |flags| KeyPair::generate(&name("example."), flags, algorithm, None).unwrap();
    let ksk = make(ZONE_KEY | SEP);
    let zsk = std::iter::repeat_with(|| make(ZONE_KEY)).find(|zsk| zsk.tag() != ksk.tag()).unwrap();
    vec![ksk, zsk]
}

/// Zone text uses the same IANA mnemonics for algorithms as the algorithm table.
#[test]
fn zone_text_knows_the_mnemonics_of_the_table() {
    let registered =
        |entry: &&AlgorithmEntry| entry.alias_of.is_none() && entry.scheme.experimental.is_none();
    for entry in ALGORITHMS.iter().filter(registered) {
        let contents = zone(&format!("secure NS ns\nsecure DS 1 {} 2 00", entry.mnemonic));
        let found = rdatas(&contents, "secure.example.", Rtype::DS);
        assert!(found[0].starts_with(&format!("1 {} 2 ", entry.algorithm.0)), "{found:?}");
    }
}

#[test]
fn a_key_with_two_algorithm_numbers_is_an_error() {
    let key = KeyPair::generate(&name("example."), ZONE_KEY | SEP, Algorithm::ED25519, None).unwrap();
    let alias = Algorithm::ED25519.nsec5_alias().unwrap();
    let text = key.private().to_bind().replace("Algorithm: 15 (ED25519)", &format!("Algorithm: {}", alias.0));
    let twin = KeyPair::new(name("example."), ZONE_KEY | SEP, PrivateKey::from_bind(&text).unwrap());
    let other = KeyPair::generate(&name("example."), ZONE_KEY | SEP, alias, None).unwrap();
    let copy = |key: &KeyPair| {
        KeyPair::new(name("example."), key.flags, PrivateKey::from_bind(&key.private().to_bind()).unwrap())
    };
    assert!(KeySet::new(&name("example."), vec![copy(&key), other]).is_ok());
    assert_eq!(
        KeySet::new(&name("example."), vec![twin, key]).err(),
        Some(KeySetError::TwoAlgorithmNumbers {
            zone: name("example."),
            first: Algorithm::ED25519,
            second: alias
        })
    );
}

#[test]
fn zones_signed_with_aliases_have_the_alias_number_and_no_faults() {
    let contents = zone("www A 192.0.2.1\nsecure NS ns\nsecure DS 1 13 2 00\ninsecure NS ns\n*.w TXT \"x\"");
    for algorithm in aliases() {
        // The tests of the command `zone sign` include algorithms that sign slowly.
        if algorithm.entry().is_some_and(|entry| entry.scheme.signs_slowly) {
            continue;
        }
        let keys = KeySet::new(&name("example."), pair(algorithm)).unwrap();
        for mechanism in NSEC_AND_NSEC3 {
            let wanted = crate::SignOptions { publish_cds: true, ..options(mechanism) };
            let signed = sign(&contents, &keys, &wanted).unwrap();
            assert_sound_with_aliases(signed.contents(), &keys, mechanism);
            let numbers = numbers(signed.contents());
            assert!(
                numbers.iter().all(|number| *number == algorithm.0),
                "{algorithm} {mechanism}: {numbers:?}"
            );
            let ksk = &keys.keys()[0];
            let cds = &rdatas(signed.contents(), "example.", Rtype::CDS)[0];
            assert!(cds.starts_with(&format!("{} {} 2 ", ksk.tag(), algorithm.0)), "{cds}");
            // The DS record of the alias matches the key. The DS record of the original algorithm
            // does not.
            let record = KeyRecord::parse(&ksk.key_file_text(&KeyTimes::default())).unwrap();
            let ds = record.ds_rdata(DigestType::SHA256).unwrap();
            assert_eq!(ds[2], algorithm.0);
            let faults = |ds: Vec<u8>| {
                let now = Some(super::NOW);
                let options =
                    VerifyOptions { now, anchors: vec![Anchor::Ds(ds)], ..VerifyOptions::default() };
                verify(signed.contents(), &options).faults.len()
            };
            assert_eq!(faults(ds.clone()), 0);
            let mut plain = ds;
            plain[2] = algorithm.without_alias().0;
            assert_eq!(faults(plain), 1);
        }
    }
}

/// The algorithm number of every DNSKEY, CDNSKEY, CDS and RRSIG record.
fn numbers(contents: &nonesuch_zone::Contents) -> Vec<u8> {
    let mut numbers = Vec::new();
    for node in contents.nodes() {
        for rrset in node.rrsets() {
            let at = match rrset.rtype() {
                Rtype::DNSKEY | Rtype::CDNSKEY => 3,
                Rtype::CDS | Rtype::RRSIG => 2,
                _ => continue,
            };
            numbers.extend(rrset.rdatas().map(|rdata| rdata[at]));
        }
    }
    assert!(numbers.len() > 10);
    numbers
}

#[test]
fn the_key_tag_depends_on_the_alias_number_and_files_contain_it() {
    for algorithm in aliases() {
        let plain = algorithm.without_alias();
        for key in pair(algorithm) {
            let tag = key_tag(&key.dnskey_rdata());
            assert_eq!((key.tag(), key.algorithm(), key.dnskey_rdata()[3]), (tag, algorithm, algorithm.0));
            // The number is in the low octet of a word. The tag therefore changes by the same
            // amount, plus the carry.
            let mut other = key.dnskey_rdata();
            other[3] = plain.0;
            assert_ne!(key_tag(&other), tag);
            assert_eq!(key.base_name(), format!("Kexample.+{:03}+{tag:05}", algorithm.0));
            let private = key.private_file_text(&KeyTimes::active_since(0));
            let line = format!("Algorithm: {} (NSEC5-{plain})\n", algorithm.0);
            assert!(private.contains(&line));
            let read = KeyPair::parse(&key.key_file_text(&KeyTimes::default()), &private).unwrap();
            assert_eq!((read.algorithm(), read.tag()), (algorithm, tag));
        }
    }
}

/// Key and signature of an alias are those of its original algorithm. The signed data contain the
/// number, so a record of one number is not valid under the other.
#[test]
fn a_signature_with_another_algorithm_number_is_a_fault() {
    let keys = KeySet::new(&name("example."), pair(Algorithm(231))).unwrap();
    let signed = sign(&zone("www A 192.0.2.1"), &keys, &options(NSEC_AND_NSEC3[0])).unwrap();
    let contents = super::rewrite(signed.contents(), |_, rtype, _, rdata| match rtype {
        Rtype::DNSKEY => rdata[3] = Algorithm::ED25519.0,
        Rtype::RRSIG => rdata[2] = Algorithm::ED25519.0,
        _ => {}
    });
    let signatures: Vec<_> =
        node(&contents, "www.example.").rrsets().filter(|rrset| rrset.rtype() == Rtype::RRSIG).collect();
    let first = signatures[0].rdatas().next().unwrap();
    assert_eq!(Rrsig::parse(first).unwrap().algorithm, Algorithm::ED25519);
    assert!(!report(&contents).faults.is_empty());
}
