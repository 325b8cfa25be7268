//! Key files, names and roles.

use super::{key, name};
use crate::keys::{
    KeyFileError, KeyPair, KeyRecord, KeySet, KeySetError, KeyTimes, REVOKE, Role, ds_rdata, roles,
};
use data_encoding::HEXUPPER;
use nonesuch_crypto::{Algorithm, DigestType, KeyError};
use nonesuch_proto::Rtype;
use proptest::prelude::*;
use proptest::sample::Index;
use proptest::test_runner::RngSeed;

const ED25519: Algorithm = Algorithm::ED25519;
const P256: Algorithm = Algorithm::ECDSAP256SHA256;

/// The example of RFC 8080 §6.1, in the formats of BIND.
const KEY_FILE: &str = "; This is a key-signing key, keyid 3613, for example.com.\n\
    ; Created: 20260101000000 (Thu Jan  1 00:00:00 2026)\n\
    example.com. IN DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQw AQEX1SxZJA4=\n";
const PRIVATE_FILE: &str = "Private-key-format: v1.3\nAlgorithm: 15 (ED25519)\n\
    PrivateKey: ODIyNjAzODQ2MjgwODAxMjI2NDUxOTAyMDQxNDIyNjI=\nCreated: 20260101000000\n";

fn error(key_file: &str) -> KeyFileError {
    KeyPair::parse(key_file, PRIVATE_FILE).unwrap_err()
}

#[test]
fn rfc8080_key_has_its_tag_and_ds() {
    let pair = KeyPair::parse(KEY_FILE, PRIVATE_FILE).unwrap();
    assert_eq!(
        (pair.tag(), pair.is_sep(), pair.base_name().as_str()),
        (3613, true, "Kexample.com.+015+03613")
    );
    let ds = ds_rdata(pair.owner.view(), &pair.dnskey_rdata(), DigestType::SHA256).unwrap();
    let digest = "3AA5AB37EFCE57F737FC1627013FEE07BDF241BD10F3B1964AB55C78E79A304B";
    assert_eq!(HEXUPPER.encode(&ds), format!("0E1D0F02{digest}"));
    assert_eq!(ds_rdata(pair.owner.view(), &pair.dnskey_rdata(), DigestType(99)), None);
    assert_eq!(ds_rdata(pair.owner.view(), &[1], DigestType::SHA256), None);
}

#[test]
fn key_files_are_written_and_read_back() {
    for (zone, flags, algorithm) in
        [("Example.", 257, ED25519), (".", 256, P256), ("a\\;b\\032c.example.", 257, P256)]
    {
        let pair = key(zone, flags, algorithm, 9);
        let read = KeyPair::parse(
            &pair.key_file_text(&KeyTimes::default()),
            &pair.private_file_text(&KeyTimes::active_since(1_503_360_000)),
        )
        .unwrap();
        assert!(
            pair.private_file_text(&KeyTimes::active_since(1_503_360_000))
                .ends_with("\nActivate: 20170822000000\n")
        );
        assert_eq!((&read.owner, read.flags, read.dnskey_rdata()), (&pair.owner, flags, pair.dnskey_rdata()));
        assert_eq!(read.check_base_name(&pair.base_name()), Ok(()));
        assert!(pair.key_file_text(&KeyTimes::default()).starts_with("; This is a "));
    }
}

#[test]
fn forms_of_the_key_file() {
    let digits = "l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=";
    for form in [
        format!("example.com. 3600 IN DNSKEY 257 3 15 {digits} ;{{id = 3613 (ksk), size = 256b}}"),
        format!("example.com. IN 1h DNSKEY 257 3 ED25519 {digits}\r\n"),
        format!("example.com.\tDNSKEY\t257 3 15 ( {digits} ) ; comment"),
        format!("EXAMPLE.com DNSKEY 257 3 15 {digits}"),
    ] {
        assert_eq!(KeyPair::parse(&form, PRIVATE_FILE).unwrap().tag(), 3613, "{form}");
    }
}

#[test]
fn times_of_a_file_are_read_and_written_unchanged() {
    assert_eq!(KeyTimes::parse("Private-key-format: v1.2\nAlgorithm: 15\nPrivateKey: x\n"), Ok(None));
    let pair = KeyPair::parse(KEY_FILE, PRIVATE_FILE).unwrap();
    let lines = "Created: 20170822000000 (Tue Aug 22 00:00:00 2017)\nInactive: 20180101000000\n";
    let times = KeyTimes::parse(lines).unwrap().unwrap();
    let text = pair.private_file_text(&times);
    assert!(text.ends_with("=\nCreated: 20170822000000\nInactive: 20180101000000\n"), "{}", text.len());
    assert_eq!(KeyTimes::parse(&text), Ok(Some(times)));
}

#[test]
fn a_record_has_the_properties_of_its_key_pair() {
    let pair = KeyPair::parse(KEY_FILE, PRIVATE_FILE).unwrap();
    let record = KeyRecord::parse(KEY_FILE).unwrap();
    assert_eq!((record.owner(), record.flags(), record.rdata()), (&pair.owner, 257, &*pair.dnskey_rdata()));
    assert_eq!((record.tag(), record.bits(), record.base_name()), (3613, Some(256), pair.base_name()));
    assert_eq!(record.ds_rdata(DigestType::SHA384).unwrap().len(), 4 + 48);
    assert_eq!(record.ds_rdata(DigestType(3)), None);
    // RSASHA1 keys can be read and are never used.
    let other = KeyRecord::parse("example. DNSKEY 256 3 5 AQPSKmynfzW4kyBv015MUG2D").unwrap();
    assert_eq!((other.algorithm(), other.bits(), other.is_sep()), (Algorithm(5), None, false));
    assert!(other.base_name().starts_with("Kexample.+005+"));
}

#[test]
fn roles_depend_on_the_other_keys_of_the_algorithm() {
    let role = |keys: &[(Algorithm, u16)]| roles(keys);
    assert_eq!(role(&[(ED25519, 257), (ED25519, 256)]), [Role::Ksk, Role::Zsk]);
    assert_eq!(role(&[(ED25519, 257), (P256, 256)]), [Role::Csk, Role::Csk]);
    assert_eq!(role(&[(P256, 257), (P256, 257)]), [Role::Csk, Role::Csk]);
    assert_eq!(role(&[(P256, 257 | REVOKE), (P256, 257)]), [Role::Ksk, Role::Csk]);
    assert_eq!(role(&[(P256, 257 | REVOKE), (P256, 256)]), [Role::Ksk, Role::Csk]);
    assert_eq!(role(&[]), []);
    assert_eq!([Role::Ksk, Role::Zsk, Role::Csk].map(|role| role.to_string()), ["KSK", "ZSK", "CSK"]);
}

#[test]
fn base_names_are_those_of_bind() {
    // dnssec-keygen -a 13 'a\.b_*.Example' writes Ka%2Eb_%2A.example.+013+TAG, for the root
    // K.+013+TAG.
    let base = |zone: &str| key(zone, 256, P256, 3).base_name();
    assert!(base("a\\.b_*.Example.").starts_with("Ka%2Eb_%2A.example.+013+"));
    assert!(base(".").starts_with("K.+013+"));
}

#[test]
fn files_of_different_keys_are_rejected() {
    let other = key("example.com.", 257, ED25519, 5);
    let public = other.tag();
    assert_eq!(
        error(&other.key_file_text(&KeyTimes::default())),
        KeyFileError::PublicKey { public, private: 3613 }
    );
    let other = key("example.com.", 257, P256, 5);
    assert_eq!(
        error(&other.key_file_text(&KeyTimes::default())),
        KeyFileError::Algorithm { public: P256, private: ED25519 }
    );
    let pair = KeyPair::parse(KEY_FILE, PRIVATE_FILE).unwrap();
    let found = "Kexample.com.+015+00001".to_owned();
    let expected = pair.base_name();
    assert_eq!(pair.check_base_name(&found), Err(KeyFileError::BaseName { expected, found }));
}

#[test]
fn damaged_key_files_are_errors() {
    assert_eq!(error(""), KeyFileError::NoRecord);
    assert_eq!(error("; nothing but a comment"), KeyFileError::NoRecord);
    assert_eq!(error("example.com. IN A 192.0.2.1"), KeyFileError::NoRecord);
    assert_eq!(error(&format!("{KEY_FILE}{KEY_FILE}")), KeyFileError::SecondRecord);
    assert!(matches!(error("a..b. IN DNSKEY 257 3 15 AAAA"), KeyFileError::Owner(_)));
    assert!(matches!(error("example.com. IN DNSKEY 257 3 15 ???"), KeyFileError::Record(_)));
    assert!(matches!(error("example.com. IN DNSKEY 257 3"), KeyFileError::Record(_)));
    let flags = KEY_FILE.replace("DNSKEY 257", "DNSKEY 1");
    assert_eq!(error(&flags), KeyFileError::NotAZoneKey { flags: 1, protocol: 3 });
    let private = KeyPair::parse(KEY_FILE, "nonsense").unwrap_err();
    assert_eq!(private, KeyFileError::Private(KeyError::NotAPrivateKeyFile));
}

#[test]
fn public_key_files_of_ldns_and_others_are_read() {
    let Some(folder) = nonesuch_testing::public_data("rfc-zones/test-data") else { return };
    let mut read = 0;
    for entry in std::fs::read_dir(&folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|extension| extension != "key") {
            continue;
        }
        let text = |path: &std::path::Path| std::fs::read_to_string(path).unwrap();
        let pair = KeyPair::parse(&text(&path), &text(&path.with_extension("private"))).unwrap();
        assert_eq!(pair.check_base_name(path.file_stem().unwrap().to_str().unwrap()), Ok(()));
        let ds = path.with_extension("ds");
        if ds.exists() {
            let made = ds_rdata(pair.owner.view(), &pair.dnskey_rdata(), DigestType::SHA256).unwrap();
            let digest = text(&ds).split_ascii_whitespace().last().unwrap().to_uppercase();
            assert_eq!(HEXUPPER.encode(&made[4..]), digest, "{path:?}");
        }
        read += 1;
    }
    assert!(read >= 12, "{read}");
}

fn signers(keys: Vec<KeyPair>, rtype: Rtype) -> Vec<(u16, Algorithm)> {
    let set = KeySet::new(&name("example."), keys).unwrap();
    set.signers(rtype)
        .iter()
        .map(|place| &set.keys()[*place])
        .map(|key| (key.flags, key.algorithm()))
        .collect()
}

#[test]
fn roles_of_ksk_and_zsk() {
    let keys = || vec![key("example.", 256, ED25519, 1), key("example.", 257, ED25519, 2)];
    for rtype in [Rtype::DNSKEY, Rtype::CDS, Rtype::CDNSKEY] {
        assert_eq!(signers(keys(), rtype), [(257, ED25519)]);
    }
    assert_eq!(signers(keys(), Rtype::SOA), [(256, ED25519)]);
}

#[test]
fn keys_sign_everything_if_all_or_none_have_the_sep_flag() {
    for flags in [256, 257] {
        let keys = || vec![key("example.", flags, ED25519, 1)];
        assert_eq!(signers(keys(), Rtype::DNSKEY), [(flags, ED25519)]);
        assert_eq!(signers(keys(), Rtype::SOA), [(flags, ED25519)]);
    }
}

#[test]
fn roles_are_assigned_for_each_algorithm() {
    let keys = || {
        vec![key("example.", 257, ED25519, 1), key("example.", 256, P256, 2), key("example.", 257, P256, 3)]
    };
    assert_eq!(signers(keys(), Rtype::DNSKEY), [(257, P256), (257, ED25519)]);
    assert_eq!(signers(keys(), Rtype::MX), [(256, P256), (257, ED25519)]);
}

#[test]
fn a_revoked_key_signs_only_the_key_set() {
    let keys = || vec![key("example.", 257 | REVOKE, ED25519, 1), key("example.", 257, ED25519, 2)];
    assert_eq!(signers(keys(), Rtype::DNSKEY).len(), 2);
    assert_eq!(signers(keys(), Rtype::A), [(257, ED25519)]);
    let set = KeySet::new(&name("example."), keys()).unwrap();
    assert_eq!(set.secure_entry_points().map(|key| key.flags).collect::<Vec<_>>(), [257]);
}

#[test]
fn sets_that_cannot_sign_are_errors() {
    let zone = name("example.");
    let error = |keys| KeySet::new(&zone, keys).unwrap_err();
    assert_eq!(error(vec![]), KeySetError::NoKey(zone.clone()));
    let other = key("other.", 257, ED25519, 1);
    let (owner, tag) = (name("other."), other.tag());
    assert_eq!(error(vec![other]), KeySetError::WrongZone { zone: zone.clone(), owner, tag });
    let host = key("example.", 0, ED25519, 1);
    let tag = host.tag();
    assert_eq!(error(vec![host]), KeySetError::NotAZoneKey { zone: zone.clone(), tag, flags: 0 });
    let revoked = key("example.", 257 | REVOKE, ED25519, 1);
    assert_eq!(error(vec![revoked]), KeySetError::NoUsableKey { zone: zone.clone(), algorithm: ED25519 });
    let twice = || key("example.", 257, ED25519, 1);
    let tag = twice().tag();
    let expected = KeySetError::SameTag { zone: zone.clone(), algorithm: ED25519, tag };
    assert_eq!(error(vec![twice(), twice()]), expected);
}

proptest! {
    #![proptest_config(ProptestConfig { rng_seed: RngSeed::Fixed(21), ..ProptestConfig::default() })]

    #[test]
    fn damaged_key_files_never_panic(place: Index, octet in 0_u8..128, cut: bool) {
        let mut text = KEY_FILE.as_bytes().to_vec();
        let place = place.index(text.len());
        if cut { text.truncate(place) } else { text[place] = octet }
        if let Ok(pair) = KeyPair::parse(&String::from_utf8(text).unwrap(), PRIVATE_FILE) {
            let key = KeyPair::parse(KEY_FILE, PRIVATE_FILE).unwrap();
            prop_assert_eq!(pair.private().public_key(), key.private().public_key());
        }
    }

    #[test]
    fn any_text_as_key_file_never_panics(text in "[ -~\\n\\\\;()]{0,200}") {
        prop_assert!(KeyPair::parse(&text, PRIVATE_FILE).is_err());
    }
}
