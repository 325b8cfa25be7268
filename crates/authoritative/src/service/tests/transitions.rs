//! Versions that validators with the keys of the previous version regard as bogus.

use super::*;
use nonesuch_dnssec::denial::NameHash;
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_dnssec::transition::TransitionFault;
use nonesuch_zone::Verification;
use nonesuch_zone::write::write_zone;

/// Writes the zone file and loads it.
fn load(service: &Service, dir: &Path, zone: &Contents) -> Result<bool, VersionError> {
    write_version(dir, zone);
    service.reload_zone(&name("example."))
}

fn write_version(dir: &Path, zone: &Contents) {
    let mut text = Vec::new();
    write_zone(zone, &mut text).unwrap();
    write(&dir.join("zone"), &String::from_utf8(text).unwrap());
}

#[track_caller]
fn assert_unsafe(outcome: Result<bool, VersionError>, expected: &TransitionFault) {
    match outcome {
        Err(VersionError::UnsafeTransition(faults)) => assert!(faults.contains(expected), "{faults:?}"),
        other => panic!("{other:?}"),
    }
}

/// Returns the warning about a version that is served although validators regard it as bogus.
pub(super) fn unsafe_transition(fault: &TransitionFault) -> String {
    format!("unsafe transition: {fault}")
}

/// Returns the fault of a version that a combined signing key with the secret `next` signs, after
/// one with the secret `previous`.
pub(super) fn other_key(previous: u8, next: u8) -> TransitionFault {
    let tags = |secret| vec![key_pair(&name("example."), secret).tag()];
    TransitionFault::DnskeySigners { previous: tags(previous), next: tags(next) }
}

/// Returns the fault of a version whose DNSKEY RRset lacks this key, the only signer of an RRset at
/// the apex of the previous version.
fn removed_signer(rtype: Rtype, key: &KeyPair) -> TransitionFault {
    TransitionFault::OldDataSigners { owner: name("example."), rtype, tags: vec![key.tag()] }
}

#[test]
fn an_unsafe_transition_of_a_zone_file_is_rejected_until_it_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut settings = file_settings(dir);
    write_version(dir, &signed(1, 1));
    let service = started(settings.clone());
    assert_unsafe(load(&service, dir, &signed(2, 2)), &other_key(1, 2));
    let status = &service.zone_status(Some(&name("example.")))[0];
    assert_eq!(status.serial, Some(1), "the previous version stays");
    assert!(status.error.as_deref().is_some_and(|error| error.contains("allow-unsafe-transition")));
    // Other kinds: a changed chain with the same serial, and data signed only by a new key.
    let other_chain =
        TransitionFault::DenialKind { serial: 1, previous: NameHash::Unhashed, next: NameHash::Sha1 };
    assert_unsafe(load(&service, dir, &signed_with(1, &[1], Mechanism::Nsec3)), &other_chain);
    end(service);
    // After a restart, the stored version is the previous one too.
    write_version(dir, &signed(2, 2));
    let service = started(settings.clone());
    assert_eq!(serial(&service), Some(1));
    assert_unsafe(service.reload_zone(&name("example.")), &other_key(1, 2));
    // A stepwise change is safe: the old key is removed after its successor has signed.
    assert!(load(&service, dir, &signed_with(3, &[1, 2], Mechanism::Nsec)).unwrap());
    assert!(load(&service, dir, &signed(4, 2)).unwrap());
    assert!(load(&service, dir, &signed_with(5, &[2], Mechanism::Nsec3)).unwrap());
    assert_eq!(service.warnings(&name("example.")), [""; 0]);
    settings.zones[0].allows_unsafe_transition = true;
    service.reload(settings);
    assert!(load(&service, dir, &signed(6, 3)).unwrap());
    assert_eq!(service.warnings(&name("example."))[0], unsafe_transition(&other_key(2, 3)));
}

/// A server that was not running for a long time must serve the newest version, not one that is
/// bogus everywhere.
#[test]
fn an_expired_version_does_not_prevent_a_transition() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let now = seconds_now() as u32;
    write_version(dir, &signed_until(&contents(1), &[1], Mechanism::Nsec, (now - 7200, now - 60)));
    let mut settings = file_settings(dir);
    settings.zones[0].verify = VerifyChoice::Nothing;
    let service = started(settings.clone());
    assert!(load(&service, dir, &signed(2, 2)).unwrap());
    assert_eq!((serial(&service), service.warnings(&name("example."))), (Some(2), Vec::new()));
    assert_unsafe(load(&service, dir, &signed(3, 3)), &other_key(2, 3));
    write_version(dir, &signed_until(&contents(4), &[2], Mechanism::Nsec, (now - 7200, now - 60)));
    assert!(service.reload_zone(&name("example.")).unwrap());
    end(service);
    // The stored version has expired too.
    write_version(dir, &signed(5, 3));
    assert_eq!(serial(&started(settings)), Some(5));
}

#[test]
fn an_unsafe_transition_of_a_compiled_zone_is_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let compiled = |zone: &Contents| {
        let image = nonesuch_zone::Image::compile(zone).unwrap();
        let at = Verification::Full { at: seconds_now() as u32 };
        let mut octets = Vec::new();
        nonesuch_zone::image::file::write(&image, at, zone, at, &mut octets).unwrap();
        fs::write(dir.join("temporary"), octets).unwrap();
        fs::rename(dir.join("temporary"), dir.join("zone")).unwrap();
    };
    for state_dir in [Some(dir.join("state")), None] {
        let settings = Settings { state_dir, ..file_settings(dir) };
        compiled(&signed(1, 1));
        let service = started(settings);
        compiled(&signed(2, 2));
        assert_unsafe(service.reload_zone(&name("example.")), &other_key(1, 2));
        assert_eq!(serial(&service), Some(1));
        compiled(&signed_with(2, &[1, 2], Mechanism::Nsec));
        assert!(service.reload_zone(&name("example.")).unwrap());
        assert_eq!(serial(&service), Some(2));
        end(service);
        let _ = fs::remove_dir_all(dir.join("state"));
    }
}

#[test]
fn an_unsafe_transition_from_a_primary_is_served_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    let zone = name("example.");
    service.publish(&zone, signed(1, 1), &[]).unwrap();
    service.publish(&zone, signed_with(2, &[3], Mechanism::Nsec3), &[]).unwrap();
    let [old, new] = [1, 3].map(|secret| key_pair(&zone, secret));
    let foreign =
        TransitionFault::NewDataSigners { owner: zone.clone(), rtype: Rtype::NS, tags: vec![new.tag()] };
    let expected = [other_key(1, 3), foreign, removed_signer(Rtype::NS, &old)];
    assert_eq!(service.warnings(&zone), expected.each_ref().map(unsafe_transition));
    service.publish(&zone, signed_with(2, &[3], Mechanism::Nsec), &[]).unwrap();
    let other_chain =
        TransitionFault::DenialKind { serial: 2, previous: NameHash::Sha1, next: NameHash::Unhashed };
    let warnings = service.warnings(&zone);
    assert!(warnings.contains(&unsafe_transition(&other_chain)), "{warnings:?}");
}

pub(super) fn zone_signer(zone: &Name, secret: u8) -> KeyPair {
    let mut pair = key_pair(zone, secret);
    pair.flags = 256;
    pair
}

/// Returns a version signed by a key-signing key and this zone-signing key. If `published` is set,
/// also publishes another zone-signing key.
fn by_zone_signer(serial: u32, secret: u8, published: Option<u8>) -> Contents {
    use nonesuch_dnssec::{KeySet, SignOptions, sign};
    let apex = name("example.");
    let records = published.map(|secret| KeyRecord::of(&zone_signer(&apex, secret)));
    let keys = KeySet::new(&apex, vec![key_pair(&apex, 1), zone_signer(&apex, secret)]).unwrap();
    let keys = keys.with_offline(records.into_iter().collect()).unwrap();
    let now = seconds_now() as u32;
    let options = SignOptions::new(Mechanism::Nsec, now - 3600, now + 86_400);
    sign(&contents(serial), &keys, &options).unwrap().into_contents()
}

/// Validators that cached an RRset with the signature of this key fetch a DNSKEY RRset without the
/// key.
#[test]
fn the_only_key_that_signed_the_previous_version_may_not_be_removed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write_version(dir, &by_zone_signer(1, 2, Some(3)));
    let service = started(file_settings(dir));
    let removed = removed_signer(Rtype::NS, &zone_signer(&name("example."), 2));
    assert_unsafe(load(&service, dir, &by_zone_signer(2, 3, None)), &removed);
    end(service);
    // The stored version also has this information.
    let service = started(file_settings(dir));
    assert_eq!(serial(&service), Some(1));
    assert_unsafe(service.reload_zone(&name("example.")), &removed);
    assert!(load(&service, dir, &by_zone_signer(2, 3, Some(2))).unwrap());
    assert!(load(&service, dir, &by_zone_signer(3, 3, None)).unwrap());
    end(service);
    let other = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(other.path()));
    service.publish(&name("example."), by_zone_signer(1, 2, Some(3)), &[]).unwrap();
    service.publish(&name("example."), by_zone_signer(2, 3, None), &[]).unwrap();
    assert_eq!(service.warnings(&name("example.")), [unsafe_transition(&removed)]);
}

/// No version contains the keys of an online signer, but caches contain their signatures.
#[test]
fn the_only_key_that_signed_online_may_not_be_removed() {
    fn keys_in(dir: &Path, zone: &Name) -> SigningKeys {
        let secret = if dir.ends_with("new") { 3 } else { 2 };
        let pairs = vec![key_pair(zone, 1), zone_signer(zone, secret)];
        let records = pairs.iter().map(KeyRecord::of).collect();
        SigningKeys { records, pairs, ..SigningKeys::default() }
    }
    const KEYS: KeyLoader =
        KeyLoader { load_signing_keys: |dir, zone, _| Ok(keys_in(dir, zone)), ..KEY_FILES };
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    write(&dir.join("zone"), &zone_text(1));
    let settings = |keys: &str| {
        let (mut settings, keys) = (file_settings(dir), dir.join(keys));
        fs::create_dir_all(&keys).unwrap();
        settings.zones[0].signing_mode = SigningMode::Online(OnlineSigning {
            mechanism: Mechanism::MinimalNsec,
            key_directory: keys,
            validity: 86_400,
            ignore_key_times: false,
        });
        settings
    };
    let open = |keys| {
        let service = Service::open(settings(keys), KEYS, Arc::new(Zones::new())).unwrap();
        service.begin().unwrap();
        let _ = service.wait_until_loaded();
        service
    };
    let removed = removed_signer(Rtype::SOA, &zone_signer(&name("example."), 2));
    let service = open("old");
    service.reload(settings("new"));
    assert_unsafe(service.reload_zone(&name("example.")), &removed);
    end(service);
    let service = open("new");
    let status = &service.zone_status(Some(&name("example.")))[0];
    assert!(status.error.as_deref().is_some_and(|error| error.contains(&removed.to_string())), "{status:?}");
}

/// DNSKEY records alone do not make a zone signed, neither when the served nor when the stored
/// version is compared.
#[test]
fn an_unsigned_zone_with_keys_remains_unsigned_after_a_restart() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let key = "@ 60 DNSKEY 257 3 15 l02Woi0iS8Aa25FQkUd9RMzZHJpBoRQwAQEX1SxZJA4=\n";
    write(&dir.join("zone"), &format!("{}{key}", zone_text(1)));
    let mut settings = file_settings(dir);
    settings.zones[0].verify = VerifyChoice::Nothing;
    end(started(settings.clone()));
    write(&dir.join("zone"), &zone_text(2));
    let service = started(settings);
    assert_eq!((serial(&service), service.warnings(&name("example."))), (Some(2), Vec::new()));
}
