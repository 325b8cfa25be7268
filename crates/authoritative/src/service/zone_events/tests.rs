//! Connection of a service with transfers, while zones are being loaded.

use super::super::{ServiceZoneStore, Settings, ZoneTemplate};
use super::*;
use crate::catalog::{CatalogError, ProducedMember};
use crate::service::activity::lock;
use crate::zones::Zones;
use arc_swap::ArcSwap;
use nonesuch_dnssec::keys::directory::KeyDirectoryError;
use nonesuch_secondary::TransfersOptions;
use nonesuch_secondary::notify::SecondaryStatuses;
use nonesuch_server::acl::Remote;
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

fn name(text: &str) -> Name {
    text.parse().unwrap()
}

/// Returns settings of a consumer of the catalog `catalog.`, whose members have this primary. No
/// server listens there.
fn settings(dir: &std::path::Path, primary: &str) -> Settings {
    let of_primary = |apex: &str, primary: &str| {
        let mut zone = ZoneSettings::of_file(name(apex), dir.join("unused"));
        zone.source = ZoneSource::Primaries;
        zone.transfers.primaries = vec![Remote::plain(primary.parse().unwrap())];
        zone
    };
    let mut catalog = of_primary("catalog.", "127.0.0.1:1");
    catalog.catalog =
        Some(CatalogSettings::Consumer { template: "member".to_owned(), groups: BTreeMap::new() });
    let member = ZoneTemplate::new(of_primary("template.", primary));
    let templates = BTreeMap::from([("member".to_owned(), member)]);
    Settings {
        state_dir: Some(dir.join("state")),
        zones: vec![catalog],
        templates,
        load_jobs: 2,
        ..Settings::default()
    }
}

/// Returns the version of the catalog that follows `previous`.
fn catalog(members: &[&str], previous: Option<&Contents>) -> Contents {
    let members: Vec<ProducedMember> =
        members.iter().map(|member| ProducedMember::new(name(member), None)).collect();
    produce(&name("catalog."), &members, previous, 1_750_000_000).unwrap().unwrap()
}

#[track_caller]
fn wait_for(condition: impl Fn() -> bool) {
    let started_at = Instant::now();
    while !condition() {
        assert!(started_at.elapsed() < Duration::from_secs(20), "it never happens");
        std::thread::yield_now();
    }
}

/// Starts a service with transfers and a thread that handles zone events.
fn start_with_transfers(settings: Settings, keys: crate::service::KeyLoader) -> Arc<Service> {
    start_with_options(settings, keys, TransfersOptions::default())
}

fn start_with_options(
    settings: Settings,
    keys: crate::service::KeyLoader,
    options: TransfersOptions,
) -> Arc<Service> {
    let service = Service::open(settings, keys, Arc::new(Zones::new())).unwrap();
    let zone_store =
        ServiceZoneStore { service: Arc::clone(&service), settings: Arc::new(ArcSwap::default()) };
    let transfers = Arc::new(Transfers::start(options, Arc::new(zone_store)).unwrap());
    handle_zone_events(&service, service.subscribe(), transfers).unwrap();
    service.begin().unwrap();
    let _ = service.wait_until_loaded();
    service
}

/// Starts a service with a consumer of the catalog `catalog.`. Members of the group `open` have a
/// separate template.
fn started(dir: &std::path::Path) -> Arc<Service> {
    let mut settings = settings(dir, "127.0.0.1:1");
    let mut open = ZoneSettings::of_file(name("template."), dir.join("unused"));
    open.source = ZoneSource::Primaries;
    open.transfers.primaries = vec![Remote::plain("127.0.0.1:2".parse().unwrap())];
    settings.templates.insert("open".to_owned(), ZoneTemplate::new(open));
    let groups = BTreeMap::from([("open".to_owned(), "open".to_owned())]);
    settings.zones[0].catalog = Some(CatalogSettings::Consumer { template: "member".to_owned(), groups });
    start_with_transfers(settings, crate::service::tests::KEY_FILES)
}

/// Returns a version of the catalog with these records.
fn version(serial: u32, members: &str) -> Contents {
    let text = format!("@ 0 SOA . . {serial} 3600 600 86400 0\n@ 0 NS invalid.\nversion 0 TXT 2\n{members}");
    let path = std::path::Path::new("catalog");
    nonesuch_zone::read::read_text(text.as_bytes(), path, Some(&name("catalog."))).unwrap().contents
}

/// Stops a service and waits until its threads have ended, so that the state directory can be
/// opened again.
fn end(service: Arc<Service>) {
    service.stop();
    wait_for(|| Arc::strong_count(&service) == 1);
    drop(service);
}

/// Returns the member zones of the service, each with its label in the catalog and the port of its
/// primary.
fn members(service: &Service) -> Vec<(String, Vec<u8>, u16)> {
    let noted = Membership::all_except(service.state_directory().unwrap(), []).unwrap();
    let is_member = |zone: &Arc<crate::service::zone::Zone>| zone.is_member();
    let members = service.all_zones().into_iter().filter(is_member).map(|zone| {
        let label = noted.iter().find(|noted| noted.zone == *zone.apex()).map(|noted| noted.label.clone());
        let port = zone.settings().transfers.primaries[0].address.port();
        (zone.apex().to_string(), label.unwrap_or_default(), port)
    });
    members.collect()
}

/// RFC 9432 §4.1: two member nodes for one zone make the catalog broken. §5.1: its members are
/// neither removed nor reconfigured, also when the server restarts with it. The next valid version
/// is processed again.
#[test]
fn members_of_the_last_valid_version_stay_while_the_catalog_is_broken() {
    let dir = tempfile::tempdir().unwrap();
    let catalog = name("catalog.");
    let error = |service: &Service| service.zone_status(Some(&catalog))[0].error.clone();
    let expected = [("a.example.".to_owned(), b"n".to_vec(), 2), ("b.example.".to_owned(), b"o".to_vec(), 1)];
    let valid = "n.zones 0 PTR a.example.\ngroup.n.zones 0 TXT open\no.zones 0 PTR b.example.\n";
    let broken = "m.zones 0 PTR A.example.\nn.zones 0 PTR a.example.\np.zones 0 PTR c.example.\n";
    let service = started(dir.path());
    service.publish(&catalog, version(1, valid), &[]).unwrap();
    wait_for(|| members(&service) == expected);
    let stored =
        |service: &Service| service.state_directory().unwrap().read_state(&name("a.example.")).reused_serial;
    let state = service.state_directory().unwrap();
    state.update(&name("a.example."), |stored| stored.reused_serial = Some(1)).unwrap();
    service.publish(&catalog, version(2, broken), &[]).unwrap();
    wait_for(|| error(&service).is_some());
    let status_error = error(&service).unwrap();
    let nodes = [name("m.zones.catalog."), name("n.zones.catalog.")];
    let fault = CatalogError::SeveralNodes { zone: name("a.example."), nodes };
    assert!(status_error.contains(&fault.to_string()), "{status_error}");
    assert_eq!(service.status().troubled, ["catalog."]);
    assert_eq!(members(&service), expected);
    end(service);
    for _ in 0..2 {
        let service = started(dir.path());
        assert_eq!(members(&service), expected);
        assert_eq!(error(&service).as_ref(), Some(&status_error));
        assert_eq!(stored(&service), Some(1), "the zone was reset");
        end(service);
    }
    let service = started(dir.path());
    service.publish(&catalog, version(3, "n.zones 0 PTR a.example.\n"), &[]).unwrap();
    wait_for(|| members(&service) == [("a.example.".to_owned(), b"n".to_vec(), 1)]);
    assert_eq!(error(&service), None);
    assert_eq!(stored(&service), Some(1), "the label is the same");
    end(service);
}

#[test]
fn members_are_added_while_others_are_loaded() {
    let dir = tempfile::tempdir().unwrap();
    let service = start_with_transfers(settings(dir.path(), "127.0.0.1:1"), crate::service::tests::KEY_FILES);
    let first = catalog(&["a.example."], None);
    service.publish(&name("catalog."), first.clone(), &[]).unwrap();
    wait_for(|| service.zone(&name("a.example.")).is_some());
    // A reload with another template starts to load the member again, which does not end.
    let member = service.zone(&name("a.example.")).unwrap();
    let publication_guard = service.lock_zone(&member);
    service.reload(settings(dir.path(), "127.0.0.1:2"));
    wait_for(|| member.settings().transfers.primaries[0].address.port() == 2);
    let second = catalog(&["a.example.", "b.example."], Some(&first));
    service.publish(&name("catalog."), second, &[]).unwrap();
    wait_for(|| service.zone(&name("b.example.")).is_some());
    drop(publication_guard);
    service.stop();
}

/// If a member is removed during its verification, the event thread, a reload and a purge do not
/// wait for it.
#[test]
fn nothing_waits_for_a_member_that_is_removed_during_its_verification() {
    use std::sync::Mutex;
    use std::sync::atomic::{AtomicBool, Ordering::SeqCst};
    static GATE: Mutex<()> = Mutex::new(());
    static IS_VERIFIED: AtomicBool = AtomicBool::new(false);
    let keys = crate::service::KeyLoader {
        // Building a version includes reading the keys.
        load_signing_keys: |dir, zone, _| {
            IS_VERIFIED.store(true, SeqCst);
            let _open = lock(&GATE);
            Err(KeyDirectoryError::NoKeys { dir: dir.to_path_buf(), zone: zone.clone() })
        },
        ..crate::service::tests::KEY_FILES
    };
    let dir = tempfile::tempdir().unwrap();
    let mut settings = settings(dir.path(), "127.0.0.1:1");
    let mut member = settings.templates["member"].settings().clone();
    let mechanism = nonesuch_dnssec::Mechanism::Compact;
    member.signing_mode = crate::service::SigningMode::Online(crate::service::OnlineSigning {
        mechanism,
        key_directory: dir.path().join("keys"),
        validity: 86_400,
        ignore_key_times: false,
    });
    settings.templates.insert("member".to_owned(), ZoneTemplate::new(member));
    let service = start_with_transfers(settings.clone(), keys);
    let first = catalog(&["a.example."], None);
    service.publish(&name("catalog."), first.clone(), &[]).unwrap();
    wait_for(|| service.zone(&name("a.example.")).is_some());
    let gate = lock(&GATE);
    let publisher = Arc::clone(&service);
    let publishing = std::thread::spawn(move || {
        let text = b"$ORIGIN a.example.\n@ 60 SOA ns h 1 1 1 1 1\n@ 60 NS ns.other.\n";
        let contents =
            nonesuch_zone::read::read_text(text, std::path::Path::new("zone"), None).unwrap().contents;
        publisher.publish(&name("a.example."), contents, &[]).is_err()
    });
    wait_for(|| IS_VERIFIED.load(SeqCst));
    let second = catalog(&[], Some(&first));
    service.publish(&name("catalog."), second.clone(), &[]).unwrap();
    wait_for(|| service.zone(&name("a.example.")).is_none());
    let third = catalog(&["b.example."], Some(&second));
    service.publish(&name("catalog."), third, &[]).unwrap();
    wait_for(|| service.zone(&name("b.example.")).is_some());
    let (done, is_done) = channel();
    let other = Arc::clone(&service);
    std::thread::spawn(move || {
        other.reload(settings);
        let _ = other.purge_zone(&name("a.example."));
        done.send(other.purge_all().is_ok())
    });
    assert_eq!(is_done.recv_timeout(Duration::from_secs(20)), Ok(true));
    drop(gate);
    assert!(publishing.join().unwrap());
    service.stop();
}

/// Displayed and sent information follows the configuration, even if no version is published.
#[test]
fn a_secondary_that_was_removed_from_the_configuration_is_forgotten() {
    let dir = tempfile::tempdir().unwrap();
    let notifying = |ports: &[u16]| {
        let mut settings = settings(dir.path(), "127.0.0.1:1");
        // With primaries and no stored version, a change of the settings publishes nothing.
        settings.state_dir = None;
        let to = ports.iter().map(|port| Remote::plain(([127, 0, 0, 1], *port).into()));
        settings.zones[0].catalog = None;
        settings.zones[0].transfers.also_notify = to.collect();
        settings
    };
    let secondaries = Arc::new(SecondaryStatuses::default());
    let options =
        TransfersOptions { secondary_statuses: Arc::clone(&secondaries), ..TransfersOptions::default() };
    let service = start_with_options(notifying(&[1, 2]), crate::service::tests::KEY_FILES, options);
    service.publish(&name("catalog."), version(1, ""), &[]).unwrap();
    let ports = || -> Vec<u16> {
        secondaries.of_zone(&name("catalog.")).iter().map(|known| known.address.port()).collect()
    };
    for expected in [&[1, 2][..], &[2], &[]] {
        let _ = service.reload(notifying(expected));
        wait_for(|| ports() == expected);
    }
    end(service);
}
