//! Zones that are signed online, when a time in their key files passes or the files change.

use super::transitions::zone_signer;
use super::*;
use crate::zones::ZoneState;
use nonesuch_dnssec::keys::KeyRecord;

const DAY: u32 = 86_400;

/// The key-signing key, and the keys that sign data.
const KEY_SIGNER: u8 = 1;
const DATA_SIGNERS: [u8; 2] = [2, 3];

/// Keys from a file that contains, for each key, the time from which it signs data, in lines such
/// as `0 2`. All keys are published.
const KEYS: KeyLoader = KeyLoader {
    load_signing_keys: |dir, zone, at| {
        let none = || KeyDirectoryError::NoKeys { dir: dir.to_path_buf(), zone: zone.clone() };
        let lines = lines(dir).ok_or_else(none)?;
        let active = lines.iter().filter(|(since, _)| at.is_none_or(|at| *since <= at));
        let (_, active) = *active.max().ok_or_else(none)?;
        let pairs = vec![key_pair(zone, KEY_SIGNER), zone_signer(zone, active)];
        let signers = DATA_SIGNERS.map(|secret| KeyRecord::of(&zone_signer(zone, secret)));
        let records = signers.into_iter().chain([KeyRecord::of(&pairs[0])]).collect();
        Ok(SigningKeys { records, pairs, ..SigningKeys::default() })
    },
    next_key_event: |dir, _, now| {
        lines(dir)?.into_iter().map(|(since, _)| since).filter(|time| *time > now).min()
    },
    ..KEY_FILES
};

fn lines(dir: &Path) -> Option<Vec<(u32, u8)>> {
    let text = fs::read_to_string(dir.join("active")).ok()?;
    text.lines()
        .map(|line| line.split_once(' ').and_then(|(a, b)| a.parse().ok().zip(b.parse().ok())))
        .collect()
}

/// Writes the file in place, so that neither the file nor its directory gets a new inode.
fn set_keys(dir: &Path, text: &str) {
    fs::create_dir_all(dir.join("keys")).unwrap();
    fs::write(dir.join("keys/active"), text).unwrap();
}

fn signed_online(mut settings: Settings, dir: &Path) -> Settings {
    settings.zones[0].signing_mode = SigningMode::Online(OnlineSigning {
        mechanism: Mechanism::MinimalNsec,
        key_directory: dir.join("keys"),
        validity: DAY,
        ignore_key_times: false,
    });
    settings
}

fn started(settings: Settings) -> Arc<Service> {
    let service = Service::open(settings, KEYS, Arc::new(Zones::new())).unwrap();
    service.begin().unwrap();
    let _ = service.wait_until_loaded();
    service
}

/// Returns a secondary that signs online, with one version.
fn secondary_online(dir: &Path) -> Arc<Service> {
    let service = started(signed_online(secondary_settings(dir), dir));
    service.publish(&name("example."), contents(7), &[]).unwrap();
    service
}

/// Returns the secret of the key that signs data.
fn signer(service: &Service) -> u8 {
    let zone = service.zone(&name("example.")).unwrap();
    let runtime = lock(&zone.runtime);
    let [_, for_data] = runtime.served.as_ref().unwrap().published().online_keys().unwrap().signing_dnskeys();
    let signs = |secret: &u8| for_data.contains(&zone_signer(&name("example."), *secret).dnskey_rdata());
    DATA_SIGNERS.into_iter().find(signs).unwrap()
}

/// Simulates that a time in the key files passes.
fn pass_key_time(service: &Service) {
    lock(&service.zone(&name("example.")).unwrap().runtime).key_event = Some(1);
    service.next_key_event.store(1, Relaxed);
    assert!(service.is_key_event_due());
}

/// Returns the time of the next check of the keys, in seconds from now.
fn seconds_until_key_check(service: &Service) -> u32 {
    let zone = service.zone(&name("example.")).unwrap();
    let (of_zone, of_all) = (lock(&zone.runtime).key_event.unwrap(), service.next_key_event.load(Relaxed));
    assert_eq!(of_zone, of_all);
    of_zone - seconds_now() as u32
}

/// Runs `test` with a zone of a file, and with a secondary: version 7, signed by key 2.
fn with_each_source(test: impl Fn(&Path, &dyn Fn() -> Settings, Arc<Service>)) {
    for is_file in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        set_keys(dir, "0 2\n");
        write(&dir.join("zone"), &zone_text(7));
        let settings =
            || signed_online(if is_file { file_settings(dir) } else { secondary_settings(dir) }, dir);
        let service = if is_file { started(settings()) } else { secondary_online(dir) };
        test(dir, &settings, service);
    }
}

/// RFC 1034 §4.3.5: only a primary ends the expiry of a zone, not its keys.
#[test]
fn a_key_event_leaves_an_expired_zone_expired() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    set_keys(dir, "0 2\n");
    let service = secondary_online(dir);
    service.set_expired(&name("example."), true);
    set_keys(dir, "0 3\n");
    pass_key_time(&service);
    let mut events = service.subscribe();
    service.apply_key_times();
    let state = service.zones().state(&name("example.")).unwrap();
    assert!(matches!(&*state, ZoneState::Expired(_)), "{state:?}");
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Published { is_new: false, .. })));
    service.set_expired(&name("example."), false);
    assert_eq!((serial(&service), signer(&service)), (Some(7), 3));
    // A zone that has not expired is still served.
    set_keys(dir, "0 2\n");
    pass_key_time(&service);
    service.apply_key_times();
    assert_eq!((serial(&service), signer(&service)), (Some(7), 2));
}

#[test]
fn a_failed_key_event_is_retried() {
    with_each_source(|dir, settings, service| {
        set_keys(dir, "nonsense");
        pass_key_time(&service);
        service.apply_key_times();
        assert!((1..=60).contains(&seconds_until_key_check(&service)));
        assert_eq!((serial(&service), signer(&service)), (Some(7), 2));
        let report = service.reload(settings());
        assert_eq!((report.refused.len(), report.unchanged), (1, 0), "{report:?}");
        let expected = KeyDirectoryError::NoKeys { dir: dir.join("keys"), zone: name("example.") };
        assert_eq!(report.refused[0].1, expected.to_string());
        assert!((1..=60).contains(&seconds_until_key_check(&service)));
        set_keys(dir, "0 3\n");
        pass_key_time(&service);
        service.apply_key_times();
        assert_eq!((serial(&service), signer(&service)), (Some(7), 3));
        assert!(!service.is_key_event_due());
        end(service);
    });
}

#[test]
fn a_rejected_version_does_not_consume_the_key_event() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    set_keys(dir, "0 2\n");
    let service = secondary_online(dir);
    set_keys(dir, "0 3\n");
    pass_key_time(&service);
    let without_ns = zone_text(8).replace("@ 60 NS ns\n", "");
    let without_ns = read::read_text(without_ns.as_bytes(), Path::new("zone"), None).unwrap().contents;
    assert!(service.publish(&name("example."), without_ns, &[]).is_err());
    assert_eq!((serial(&service), signer(&service)), (Some(7), 2));
    service.apply_key_times();
    assert!((1..=60).contains(&seconds_until_key_check(&service)));
}

/// The directory is the same, and no time passes.
#[test]
fn a_reload_finds_other_keys_in_the_same_files() {
    with_each_source(|dir, settings, service| {
        assert_eq!(service.reload(settings()).unchanged, 1);
        set_keys(dir, "0 2\n5 3\n");
        assert_eq!(service.reload(settings()).updated, ["example."]);
        assert_eq!((serial(&service), signer(&service)), (Some(7), 3));
        assert_eq!(service.reload(settings()).unchanged, 1);
        end(service);
        // The stored version is compared too.
        let service = started(settings());
        assert_eq!((serial(&service), signer(&service)), (Some(7), 3));
        assert_eq!(service.reload(settings()).unchanged, 1);
        set_keys(dir, "0 2\n");
        assert_eq!(service.reload(settings()).updated, ["example."]);
        assert_eq!(signer(&service), 2);
        end(service);
    });
}

#[test]
fn the_keys_follow_a_clock_that_is_set_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let later = seconds_now() as u32 + 10 * DAY;
    set_keys(dir, &format!("0 2\n{later} 3\n"));
    write(&dir.join("zone"), &zone_text(7));
    let settings = Settings { clock_shift: 20 * DAY, ..signed_online(file_settings(dir), dir) };
    let mut service = started(settings);
    assert_eq!(signer(&service), 3);
    assert!(!service.is_key_event_due());
    while Arc::strong_count(&service) > 1 {
        std::thread::yield_now();
    }
    Arc::get_mut(&mut service).unwrap().clock_shift = 0;
    assert!(service.is_key_event_due());
    service.apply_key_times();
    assert_eq!((serial(&service), signer(&service)), (Some(7), 2));
    assert!(!service.is_key_event_due());
    assert_eq!(service.next_key_event.load(Relaxed), later);
}

/// `apply_key_times` resets the time of the next event and then reads the zones. If it reads a zone
/// before the zone has its event, the zone must set the time afterwards.
#[test]
fn an_event_is_noted_with_its_zone_first() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    set_keys(dir, "0 2\n");
    let service = secondary_online(dir);
    let zone = service.zone(&name("example.")).unwrap();
    set_keys(dir, &format!("0 2\n{} 3\n", u32::MAX - 1));
    service.keys_read_at.store(0, Relaxed);
    let runtime = lock(&zone.runtime);
    std::thread::scope(|scope| {
        scope.spawn(|| service.note_key_event(&zone));
        // The thread reads the key files now.
        while service.keys_read_at.load(Relaxed) == 0 {
            std::thread::yield_now();
        }
        for _ in 0..10_000 {
            std::thread::yield_now();
            assert_eq!(service.next_key_event.load(Relaxed), key_times::NEVER);
        }
        drop(runtime);
    });
    assert_eq!(service.next_key_event.load(Relaxed), u32::MAX - 1);
}

/// The time at which an old version was verified does not determine which keys sign now.
#[test]
fn an_outdated_version_is_signed_by_the_current_keys() {
    use nonesuch_dnssec::{KeySet, SignOptions, sign};
    let dir = tempfile::tempdir().unwrap();
    let (dir, apex, now) = (dir.path(), name("example."), seconds_now() as u32);
    set_keys(dir, &format!("0 2\n{} 3\n", now + 2 * DAY));
    let settings = |clock_shift| {
        let mut settings = Settings { clock_shift, ..signed_online(secondary_settings(dir), dir) };
        // With full verification, the version is built from its records, not mapped.
        settings.zones[0].verify = VerifyChoice::Full;
        settings
    };
    let service = started(settings(0));
    let pairs = DATA_SIGNERS
        .map(|secret| zone_signer(&apex, secret))
        .into_iter()
        .chain([key_pair(&apex, KEY_SIGNER)]);
    let keys = KeySet::new(&apex, pairs.collect()).unwrap();
    let options = SignOptions::new(Mechanism::Nsec, now - 3600, now + DAY);
    service.publish(&apex, sign(&contents(7), &keys, &options).unwrap().into_contents(), &[]).unwrap();
    assert_eq!(signer(&service), 2);
    end(service);
    let service = started(settings(3 * DAY));
    assert_eq!((serial(&service), signer(&service)), (Some(7), 3));
}
