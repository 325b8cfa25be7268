//! Tests of the key files of a zone, with names and texts.

use super::*;
use nonesuch_crypto::Algorithm;

const NOW: u32 = 1_767_225_600;

fn zone() -> Name {
    "example.".parse().unwrap()
}

fn pair(flags: u16) -> KeyPair {
    KeyPair::generate(&zone(), flags, Algorithm::ED25519, None).unwrap()
}

fn text(text: &str) -> FileText {
    Some(Ok(Zeroizing::new(text.to_owned())))
}

/// The files of `pair` with `times`.
fn files(pair: &KeyPair, times: &KeyTimes) -> KeyFiles {
    KeyFiles {
        base: pair.base_name(),
        public: text(&pair.key_file_text(times)),
        private: text(&pair.private_file_text(times)),
    }
}

fn directory(files: Vec<KeyFiles>) -> KeyDirectory {
    KeyDirectory::new(Path::new("keys"), &zone(), files).unwrap()
}

#[test]
fn keys_of_one_zone_are_classified_by_the_times_in_their_files() {
    let (now, later) = (KeyTimes::active_since(NOW), KeyTimes::active_since(NOW + 100));
    let other = KeyPair::generate(&"other.".parse().unwrap(), 257, Algorithm::ED25519, None).unwrap();
    let (ksk, zsk) = (pair(257), pair(256));
    let all = || directory(vec![files(&zsk, &later), files(&other, &now), files(&ksk, &now)]);
    assert_eq!(all().next_event(NOW), Some(NOW + 100));
    let keys = all().zone_keys(Some(NOW)).unwrap();
    assert_eq!(keys.pairs.iter().map(KeyPair::tag).collect::<Vec<_>>(), [ksk.tag()]);
    assert!(keys.timing.passive.is_empty() && keys.offline.is_empty());
    assert_eq!(keys.published(), [KeyRecord::of(&ksk)]);
    assert_eq!(all().key_set(None).unwrap().keys().len(), 2);
}

#[test]
fn directories_without_usable_keys_are_errors() {
    let ksk = pair(257);
    let error = KeyDirectory::new(
        Path::new("keys"),
        &"other.".parse().unwrap(),
        vec![files(&ksk, &KeyTimes::default())],
    );
    assert!(matches!(error, Err(KeyDirectoryError::NoKeys { .. })));
    let error =
        directory(vec![files(&ksk, &KeyTimes::active_since(NOW + 1))]).zone_keys(Some(NOW)).unwrap_err();
    let next = Some((ksk.base_name(), NOW + 1));
    assert!(
        matches!(&error, KeyDirectoryError::NoActiveKey { next: found, .. } if *found == next),
        "{error}"
    );
}

#[test]
fn a_missing_file_of_a_key_is_an_error() {
    let (ksk, zsk) = (pair(257), pair(256));
    let complete = |key| files(key, &KeyTimes::default());
    let incomplete = KeyFiles { public: None, ..complete(&zsk) };
    let error = directory(vec![complete(&ksk), incomplete]).key_set(None).unwrap_err();
    let path = Path::new("keys").join(format!("{}.private", zsk.base_name()));
    assert!(matches!(&error, KeyDirectoryError::NoPublicFile { path: found } if *found == path), "{error}");
    let offline = KeyFiles { private: None, ..complete(&zsk) };
    let error = directory(vec![complete(&ksk), offline]).key_set(None).unwrap_err();
    let path = path.with_extension("key");
    assert!(matches!(&error, KeyDirectoryError::NoPrivateFile { path: found } if *found == path), "{error}");
    // The signatures of a KSK may be part of the zone.
    let offline = KeyFiles { private: None, ..complete(&ksk) };
    assert_eq!(directory(vec![offline, complete(&zsk)]).key_set(None).unwrap().offline().len(), 1);
}

#[test]
fn errors_name_the_file() {
    let (a, b) = (pair(257), pair(257));
    let swapped =
        KeyFiles { private: files(&b, &KeyTimes::default()).private, ..files(&a, &KeyTimes::default()) };
    let error = directory(vec![swapped]).zone_keys(None).unwrap_err();
    let path = Path::new("keys").join(format!("{}.private", a.base_name()));
    assert!(
        matches!(
            &error,
            KeyDirectoryError::File { path: found, source: KeyFileError::PublicKey { .. } } if *found == path
        ),
        "{error:?}"
    );
    assert!(error.to_string().starts_with(&format!("keys/{}.private: ", a.base_name())), "{error}");
    let denied = || io::Error::from(io::ErrorKind::PermissionDenied);
    let unreadable = Some(Err(denied()));
    let files = KeyFiles { public: unreadable, ..files(&a, &KeyTimes::default()) };
    let error = directory(vec![files]).zone_keys(None).unwrap_err();
    assert!(matches!(error, KeyDirectoryError::ReadFile { .. }), "{error:?}");
    assert_eq!(
        error.to_string(),
        format!(
            "keys/{}.key: cannot be read: {}: give this user permission to read it",
            a.base_name(),
            denied()
        )
    );
}

/// RFC 5011 §2.1: a key is revoked by another DNSKEY record of the same key. The `.key` file may
/// have either record.
#[test]
fn withdrawn_keys_are_removed_with_and_without_the_revoke_flag() {
    let usual = pair(257);
    let since = KeyTimes::active_since(NOW);
    let private = PrivateKey::from_bind(&usual.private_file_text(&since)).unwrap();
    let revoked = KeyPair::new(zone(), 257 | 0x80, private);
    let [plain, flagged] = [&usual, &revoked].map(KeyPair::dnskey_rdata);
    for key in [&usual, &revoked] {
        let with = |lines: &str| {
            let complete = files(key, &since);
            let private = format!("{}{lines}", key.private_file_text(&since).as_str());
            directory(vec![KeyFiles { private: text(&private), ..complete }, files(&pair(257), &since)])
        };
        let timing = with("Revoke: 20260101000000\n").zone_keys(Some(NOW)).unwrap().timing;
        assert_eq!(timing.withdrawn, std::slice::from_ref(&plain));
        let lines = "Revoke: 20260101000000\nDelete: 20260201000000\n";
        let timing = with(lines).zone_keys(Some(NOW + 31 * 86_400)).unwrap().timing;
        assert_eq!(timing.withdrawn, [plain.clone(), flagged.clone()]);
        // The CDS records of the key without the REVOKE flag are withdrawn too.
        assert!(timing.cds.iter().any(|found| found == (plain.as_slice(), CdsPhase::Deleted)));
    }
}
