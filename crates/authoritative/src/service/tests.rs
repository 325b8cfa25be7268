//! Tests of a service within the process: what is published, kept, refused, told.

use super::*;
use nonesuch_zone::read;
use std::fs;

const KEY_FILES: KeyFiles = KeyFiles {
    signing: |dir, zone| Err(format!("{}: no keys of {zone}", dir.display())),
    prover: |dir, _, zone| Err(format!("{}: no VRF key of {}", dir.display(), zone.apex())),
};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

fn zone_text(serial: u32) -> String {
    format!(
        "$ORIGIN example.\n@ 60 SOA ns h {serial} 60 60 3600 60\n@ 60 NS ns\nns 60 A 192.0.2.1\nt 60 TXT \"{serial}\"\n"
    )
}

fn contents(serial: u32) -> Contents {
    read::read_text(zone_text(serial).as_bytes(), Path::new("zone"), None).unwrap().contents
}

fn write(path: &Path, text: &str) {
    let beside = path.with_extension("beside");
    fs::write(&beside, text).unwrap();
    fs::rename(&beside, path).unwrap();
}

fn started(settings: Settings) -> Arc<Service> {
    let service = Service::open(settings, KEY_FILES, Arc::new(Zones::new())).unwrap();
    service.begin().unwrap();
    let _ = service.wait();
    service
}

fn of_file(dir: &Path) -> Settings {
    let zone = ZoneSettings::of_file(name("example."), dir.join("zone"));
    Settings { state_dir: Some(dir.join("state")), zones: vec![zone], jobs: 2, ..Settings::default() }
}

/// Ends a service: whoever loads lets go of it soon.
fn end(service: Arc<Service>) {
    while Arc::strong_count(&service) > 1 {
        std::thread::yield_now();
    }
    drop(service);
}

/// A zone of primaries, which is published as transfers do it.
fn secondary(dir: &Path) -> Settings {
    let mut settings = of_file(dir);
    settings.zones[0].source = Source::Primaries;
    settings
}

fn serial(service: &Service) -> Option<u32> {
    let state = service.zones().state(&name("example."))?;
    state.serving().map(|zone| zone.serial())
}

#[test]
fn a_file_is_served_kept_and_looked_at_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    write(&file, &zone_text(1));
    let service = started(of_file(dir.path()));
    assert_eq!(serial(&service), Some(1));
    assert!(!service.reload_zone(&name("example.")).unwrap(), "unchanged");
    write(&file, &zone_text(2));
    assert!(service.reload_zone(&name("example.")).unwrap());
    assert_eq!(serial(&service), Some(2));
    write(&file, "@ SOA nonsense");
    assert!(matches!(service.reload_zone(&name("example.")), Err(Refused::Load(_))));
    assert_eq!(serial(&service), Some(2), "the version of before stays");
    let status = service.zone_status(Some(&name("example.")));
    assert!(status[0].error.as_deref().is_some_and(|error| error.contains("zone:1:")), "{status:?}");
    assert_eq!(service.status().troubled, ["example."]);
    end(service);
    // What was published last is served after a restart.
    let service = started(of_file(dir.path()));
    assert_eq!(serial(&service), Some(2));
    assert_eq!(service.status().serving, 1);
    assert!(matches!(service.reload_zone(&name("other.")), Err(Refused::Unknown)));
}

#[test]
fn a_zone_without_a_version_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let mut settings = of_file(dir.path());
    settings.zones.push(ZoneSettings::of_file(name("missing."), dir.path().join("nowhere")));
    let service = Service::open(settings, KEY_FILES, Arc::new(Zones::new())).unwrap();
    service.begin().unwrap();
    assert_eq!(service.wait(), Settled { serving: 1, waiting: 0, failed: 1 });
    assert_eq!(service.zone_status(Some(&name("missing.")))[0].state, ZoneStanding::Failed);
    let state = service.zones().state(&name("missing.")).unwrap();
    assert!(matches!(&*state, ZoneState::NotReady(_)));
}

#[test]
fn what_is_transferred_is_kept_and_told() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::open(secondary(dir.path()), KEY_FILES, Arc::new(Zones::new())).unwrap();
    let mut events = service.events();
    service.begin().unwrap();
    assert_eq!(service.wait(), Settled { serving: 0, waiting: 1, failed: 0 });
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Added(_))));
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::NotLoaded { .. })));
    assert_eq!(service.publish(&name("example."), contents(7), None).unwrap(), 7);
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Published { serial: 7, .. })));
    assert_eq!(service.contents(&name("example.")).unwrap().soa().unwrap().serial, 7);
    let other = read::read_text(
        b"$ORIGIN other.\n@ 60 SOA ns h 1 1 1 1 1\n@ 60 NS ns.example.\n",
        Path::new("z"),
        None,
    );
    let refused = service.publish(&name("example."), other.unwrap().contents, None);
    assert!(matches!(refused, Err(Refused::OtherZone(_))));
    // Expiry, and back.
    service.set_expired(&name("example."), true);
    assert_eq!((serial(&service), service.status().expired), (None, 1));
    service.set_expired(&name("example."), false);
    assert_eq!(serial(&service), Some(7));
    drop(events);
    end(service);
    let service = started(secondary(dir.path()));
    assert_eq!(serial(&service), Some(7));
    assert!(service.contents(&name("example.")).is_some(), "what is transferred on is held");
}

#[test]
fn changes_stand_in_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary(dir.path()));
    for serial in [7, 8, 9] {
        service.publish(&name("example."), contents(serial), None).unwrap();
    }
    let state = service.zones().state(&name("example.")).unwrap();
    let zone = state.serving().unwrap();
    assert_eq!(zone.journal().unwrap().serials(), Some((7, 9)));
    // A step back begins anew.
    service.publish(&name("example."), contents(3), None).unwrap();
    let state = service.zones().state(&name("example.")).unwrap();
    assert_eq!(state.serving().unwrap().journal().unwrap().serials(), None);
}

#[test]
fn what_cannot_be_kept_is_not_published() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary(dir.path()));
    service.publish(&name("example."), contents(7), None).unwrap();
    fs::remove_dir_all(dir.path().join("state/zones")).unwrap();
    assert!(matches!(service.publish(&name("example."), contents(8), None), Err(Refused::Keep { .. })));
    assert_eq!(serial(&service), Some(7));
}

#[test]
fn a_reload_adds_removes_and_updates() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    write(&file, &zone_text(1));
    let service = started(of_file(dir.path()));
    let mut events = service.events();
    let mut settings = of_file(dir.path());
    settings.zones[0].verify = VerifyChoice::Full;
    let report = service.reload(settings);
    assert_eq!((report.updated.as_slice(), report.unchanged), (&["example.".to_owned()][..], 0));
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Changed(_))));
    let report = service.reload(Settings::default());
    assert_eq!(report.removed, ["example."]);
    assert!(service.zones().state(&name("example.")).is_none());
    assert!(!dir.path().join("state/zones/example.zone").exists());
    let report = service.reload(of_file(dir.path()));
    assert_eq!(report.added, ["example."]);
    assert_eq!(serial(&service), Some(1));
}

#[test]
fn members_of_catalogs_stay_over_a_reload_and_do_not_take_configured_names() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let service = started(of_file(dir.path()));
    let member =
        ZoneSettings { source: Source::Primaries, ..ZoneSettings::of_file(name("member."), PathBuf::new()) };
    service.add_zone(member.clone());
    service.add_zone(ZoneSettings { apex: name("example."), ..member });
    assert_eq!(serial(&service), Some(1), "configured zones stay as they are");
    service.reload(of_file(dir.path()));
    assert!(service.zones().state(&name("member.")).is_some());
    assert_eq!(service.configured(), [name("example.")]);
    service.remove_zone(&name("example."));
    service.remove_zone(&name("member."));
    assert_eq!(service.all_settings().len(), 1);
}

#[test]
fn primaries_may_tell_that_a_zone_has_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = secondary(dir.path()).zones.remove(0);
    settings.transfers.primaries = vec!["192.0.2.1 key:k.".parse().unwrap()];
    settings.transfers.notify_from = crate::acl::AccessList::new(vec!["192.0.2.9".parse().unwrap()]);
    let policy = settings.policy();
    for (address, expected) in [("192.0.2.1", true), ("192.0.2.9", true), ("192.0.2.2", false)] {
        assert_eq!(policy.notify_from.allows(address.parse().unwrap(), None), expected, "{address}");
    }
    assert!(policy.is_secondary && !policy.transfer.allows("192.0.2.1".parse().unwrap(), None));
}

#[test]
fn a_state_folder_has_one_service() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let service = started(of_file(dir.path()));
    let second = Service::open(of_file(dir.path()), KEY_FILES, Arc::new(Zones::new()));
    assert!(matches!(second, Err(StateError::Locked { .. })));
    drop(service);
}
