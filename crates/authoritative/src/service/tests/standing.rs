//! State of a zone: expired, removed, other access lists, outdated signatures.

use super::*;
use nonesuch_server::acl::AccessList;

#[test]
fn an_expired_zone_remains_expired_after_changes_of_its_settings() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    service.publish(&name("example."), contents(7), &[]).unwrap();
    service.set_expired(&name("example."), true);
    let mut settings = secondary_settings(dir.path());
    settings.zones[0].transfers.transfer = AccessList::allow_all();
    service.reload(settings.clone());
    let state = service.zones().state(&name("example.")).unwrap();
    assert!(matches!(&*state, ZoneState::Expired(policy) if !policy.transfer_access.entries().is_empty()));
    assert_eq!(service.status().expired, 1);
    assert_eq!(service.status().troubled, ["example."]);
    // A new version ends the expiry, and so does a file as source instead of primaries.
    service.publish(&name("example."), contents(8), &[]).unwrap();
    assert_eq!(serial(&service), Some(8));
    service.set_expired(&name("example."), true);
    write(&dir.path().join("zone"), &zone_text(9));
    service.reload(file_settings(dir.path()));
    assert_eq!(serial(&service), Some(9));
}

/// RFC 1035 §3.3.13: an expired zone is not authoritative, also between a start and the first check
/// of the transfers. No transfers run here.
#[test]
fn a_zone_that_expired_before_the_start_gets_servfail() {
    use nonesuch_secondary::Timers;
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    service.publish(&name("example."), contents(7), &[]).unwrap();
    end(service);
    let store = |timers: Timers| {
        let state = StateDirectory::open(&dir.path().join("state")).unwrap();
        state.update(&name("example."), |stored| stored.timers = Some(timers)).unwrap();
    };
    let now = seconds_now();
    // The expire time of the zone is an hour. Timers of another version, and times in the future,
    // are ignored.
    for (serial_of, refreshed, left, has_expired) in [
        (7, now - 3601, None, true),
        (7, now - 3000, None, false),
        (7, now - 3000, Some(2999), true),
        (7, now - 3601, Some(7200), true),
        (8, now - 3601, None, false),
        (7, now + 7200, None, false),
    ] {
        store(Timers { serial: serial_of, refreshed, left });
        let service =
            Service::open(secondary_settings(dir.path()), KEY_FILES, Arc::new(Zones::new())).unwrap();
        let mut events = service.subscribe();
        service.begin().unwrap();
        let settled = service.wait_until_loaded();
        assert_eq!((settled.waiting == 1, serial(&service).is_none()), (has_expired, has_expired));
        let is_published = |event: &ZoneEvent| matches!(event, ZoneEvent::Published { is_new: false, .. });
        let published_count = std::iter::from_fn(|| events.try_recv().ok()).filter(is_published).count();
        assert_eq!(published_count, 1, "transfers now manage the zone");
        // A primary, or the state machine of the transfers, decides finally.
        service.set_expired(&name("example."), false);
        assert_eq!(serial(&service), Some(7));
        end(service);
    }
    // The settings at the time of the start apply.
    store(Timers { serial: 7, refreshed: now - 3601, left: None });
    let mut settings = secondary_settings(dir.path());
    settings.zones[0].transfers.expire = 7200..=u32::MAX;
    assert_eq!(serial(&started(settings)), Some(7));
}

#[test]
fn a_version_from_a_former_primary_is_not_published() {
    let dir = tempfile::tempdir().unwrap();
    let from = |port: u16| Remote::plain(std::net::SocketAddr::from(([127, 0, 0, 1], port)));
    let with_primary = |port| {
        let mut settings = secondary_settings(dir.path());
        settings.zones[0].transfers.primaries = vec![from(port)];
        settings
    };
    let service = started(with_primary(1));
    let publish = |port, serial| service.publish_from(&from(port), &name("example."), contents(serial), &[]);
    assert_eq!(publish(1, 7).unwrap(), 7);
    service.reload(with_primary(2));
    assert!(matches!(publish(1, 8), Err(VersionError::PrimaryRemoved)));
    assert_eq!(serial(&service), Some(7));
    assert_eq!(publish(2, 8).unwrap(), 8);
    write(&dir.path().join("zone"), &zone_text(3));
    service.reload(file_settings(dir.path()));
    assert!(matches!(publish(2, 9), Err(VersionError::PrimaryRemoved)));
    assert_eq!(serial(&service), Some(3));
    // This is not a fault of the served version.
    assert_eq!(service.zone_status(Some(&name("example.")))[0].error, None);
}

#[test]
fn expiry_does_not_wait_for_a_publication() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    service.publish(&name("example."), contents(7), &[]).unwrap();
    let zone = service.zone(&name("example.")).unwrap();
    let _lock = service.lock_zone(&zone);
    service.set_expired(&name("example."), true);
    assert_eq!(serial(&service), None);
    service.set_expired(&name("example."), false);
    assert_eq!(serial(&service), Some(7));
}

#[test]
fn a_publication_in_progress_does_not_restore_a_removed_zone() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(Settings { zones: Vec::new(), ..file_settings(dir.path()) });
    let member = secondary_settings(dir.path()).zones.remove(0);
    service.add_zones(vec![member.clone()]);
    service.publish(&name("example."), contents(7), &[]).unwrap();
    let zone = service.zone(&name("example.")).unwrap();
    let publication_guard = service.lock_zone(&zone);
    // The removal does not wait for a publication in progress.
    let remover = Arc::clone(&service);
    let (done, is_done) = std::sync::mpsc::channel();
    let removing = std::thread::spawn(move || {
        remover.remove_zones(&[name("example.")], false);
        done.send(remover.purge_all().is_ok())
    });
    assert_eq!(is_done.recv_timeout(std::time::Duration::from_secs(20)), Ok(true));
    assert!(service.zones().state(&name("example.")).is_none());
    let activity = service.activities.begin(ActivityKind::Publish, None);
    let late = service.publish_contents(&zone, Candidate::new(contents(8)), &activity);
    assert!(matches!(late, Err(VersionError::UnknownZone)), "{late:?}");
    service.apply_policy(&zone);
    assert!(dir.path().join("state/zones/example.kept").exists());
    drop(publication_guard);
    removing.join().unwrap().unwrap();
    assert!(lock(&service.removed_zone_locks).is_empty());
    service.load_first(&zone);
    service.set_expired(&name("example."), true);
    assert!(service.zones().state(&name("example.")).is_none());
    assert!(
        !dir.path().join("state/zones/example.kept").exists(),
        "a version that was stored late is removed too"
    );
    // A zone with the same name is added again.
    service.add_zones(vec![member]);
    assert!(matches!(&*service.zones().state(&name("example.")).unwrap(), ZoneState::NotReady(_)));
}

/// A zone that is added again must not begin with the version that an abandoned verification
/// stores.
#[test]
fn a_zone_that_is_added_again_waits_for_the_publication_of_the_removed_one() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(Settings { zones: Vec::new(), ..file_settings(dir.path()) });
    let member = secondary_settings(dir.path()).zones.remove(0);
    service.add_zones(vec![member.clone()]);
    for keeps_files in [false, true] {
        service.publish(&name("example."), contents(7), &[]).unwrap();
        let zone = service.zone(&name("example.")).unwrap();
        let publication_guard = service.lock_zone(&zone);
        service.remove_zones(&[name("example.")], keeps_files);
        let added = service.add_unloaded(vec![member.clone()]);
        let loader = Arc::clone(&service);
        let loading = std::thread::spawn(move || loader.load_added(&added));
        let activity = service.activities.begin(ActivityKind::Publish, None);
        assert!(service.publish_contents(&zone, Candidate::new(contents(8)), &activity).is_err());
        assert_eq!(serial(&service), None);
        drop((publication_guard, activity));
        loading.join().unwrap();
        assert_eq!(serial(&service), keeps_files.then_some(8));
    }
}

#[test]
fn access_lists_change_independently_of_versions() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    let with_access_list = |list: AccessList| {
        let mut settings = file_settings(dir.path());
        settings.zones[0].transfers.transfer = list;
        settings.zones.push(ZoneSettings { apex: name("missing."), ..settings.zones[0].clone() });
        settings.zones[1].source = ZoneSource::File(dir.path().join("nowhere"));
        settings
    };
    write(&file, &zone_text(1));
    let service = started(with_access_list(AccessList::allow_all()));
    let is_open = |zone: &str| {
        let state = service.zones().state(&name(zone)).unwrap();
        state.policy().transfer_access.allows("192.0.2.1".parse().unwrap(), None)
    };
    assert!(is_open("example.") && is_open("missing."));
    // The newest version is rejected and the previous version remains, with the new access list.
    write(&file, "@ SOA nonsense");
    let report = service.reload(with_access_list(AccessList::default()));
    assert_eq!(report.refused.len(), 2);
    assert_eq!(serial(&service), Some(1));
    assert!(!is_open("example.") && !is_open("missing."));
    // This version is served again after an expiry ends.
    service.set_expired(&name("example."), true);
    service.set_expired(&name("example."), false);
    assert!(!is_open("example."));
}

/// Signatures that expire while a server is not running, or a wrong clock at its start, do not
/// prevent serving.
#[test]
fn a_published_version_is_served_after_a_restart_at_any_time() {
    for verify in [VerifyChoice::Auto, VerifyChoice::Full, VerifyChoice::Structural] {
        let dir = tempfile::tempdir().unwrap();
        let mut text = Vec::new();
        nonesuch_zone::write::write_zone(&signed(3, 1), &mut text).unwrap();
        write(&dir.path().join("zone"), &String::from_utf8(text).unwrap());
        let mut settings = file_settings(dir.path());
        settings.zones[0].verify = verify;
        let service = started(settings.clone());
        assert_eq!(serial(&service), Some(3));
        end(service);
        settings.clock_shift = 30 * 86_400;
        let service = started(settings.clone());
        assert_eq!(serial(&service), Some(3), "{verify:?}");
        end(service);
        // A new version is not published, and the stored version remains, independent of its file.
        let mut text = Vec::new();
        nonesuch_zone::write::write_zone(&signed(4, 1), &mut text).unwrap();
        write(&dir.path().join("zone"), &String::from_utf8(text).unwrap());
        let service = started(settings);
        assert_eq!(serial(&service), Some(3), "{verify:?}");
        assert!(service.reload_zone(&name("example.")).is_err(), "{verify:?}");
        end(service);
    }
}

#[test]
fn primaries_may_send_notify() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = secondary_settings(dir.path()).zones.remove(0);
    settings.transfers.primaries = vec!["192.0.2.1 key:k.".parse().unwrap()];
    settings.transfers.notify_from = AccessList::new(vec!["192.0.2.9".parse().unwrap()]);
    settings.transfers.primaries.push("192.0.2.3".parse().unwrap());
    let policy = settings.policy();
    // If a primary has a key, its NOTIFY must be signed with it, unless the settings permit its
    // address alone.
    for (address, key, expected) in [
        ("192.0.2.1", Some("k."), true),
        ("192.0.2.1", None, false),
        ("192.0.2.1", Some("other."), false),
        ("192.0.2.3", None, true),
        ("192.0.2.9", None, true),
        ("192.0.2.2", Some("k."), false),
    ] {
        let key = key.map(name);
        let allows = policy.notify_from.allows(address.parse().unwrap(), key.as_ref().map(|key| key.view()));
        assert_eq!(allows, expected, "{address} {key:?}");
    }
    settings.transfers.notify_from = AccessList::new(vec!["192.0.2.1".parse().unwrap()]);
    assert!(settings.policy().notify_from.allows("192.0.2.1".parse().unwrap(), None));
    assert!(policy.is_secondary && !policy.transfer_access.allows("192.0.2.1".parse().unwrap(), None));
}
