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

/// A zone of a file that everybody may transfer: it has a journal.
fn transferable(dir: &Path) -> Settings {
    let mut settings = of_file(dir);
    settings.zones[0].transfers.transfer = crate::acl::AccessList::anybody();
    settings
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
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::CatalogsLoaded)));
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Added(_))));
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::NotLoaded { .. })));
    assert_eq!(service.publish(&name("example."), contents(7), &[]).unwrap(), 7);
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Published { serial: 7, .. })));
    assert_eq!(service.contents(&name("example.")).unwrap().soa().unwrap().serial, 7);
    let other = read::read_text(
        b"$ORIGIN other.\n@ 60 SOA ns h 1 1 1 1 1\n@ 60 NS ns.example.\n",
        Path::new("z"),
        None,
    );
    let refused = service.publish(&name("example."), other.unwrap().contents, &[]);
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
        service.publish(&name("example."), contents(serial), &[]).unwrap();
    }
    let state = service.zones().state(&name("example.")).unwrap();
    let zone = state.serving().unwrap();
    assert_eq!(zone.journal().unwrap().serials(), Some((7, 9)));
    // A step back begins anew.
    service.publish(&name("example."), contents(3), &[]).unwrap();
    let state = service.zones().state(&name("example.")).unwrap();
    assert_eq!(state.serving().unwrap().journal().unwrap().serials(), None);
}

#[test]
fn each_step_stands_in_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary(dir.path()));
    let step = |from, to| ChangeSet::between(&contents(from), &contents(to), |_| true);
    let journal = || {
        let state = service.zones().state(&name("example.")).unwrap();
        let journal = state.serving().unwrap().journal().unwrap();
        (journal.serials(), journal.len())
    };
    service.publish(&name("example."), contents(1), &[]).unwrap();
    service.publish(&name("example."), contents(4), &[step(1, 2), step(2, 3), step(3, 4)]).unwrap();
    assert_eq!(journal(), (Some((1, 4)), 3));
    // Steps that do not lead from what was here to what is are not believed: what differs is looked for.
    for (serial, steps) in [(5, vec![step(3, 5)]), (6, vec![step(5, 7)]), (8, vec![step(6, 7), step(6, 8)])] {
        let before = journal().1;
        service.publish(&name("example."), contents(serial), &steps).unwrap();
        assert_eq!(journal(), (Some((1, serial)), before + 1));
    }
}

#[test]
fn what_cannot_be_kept_is_not_published() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary(dir.path()));
    service.publish(&name("example."), contents(7), &[]).unwrap();
    fs::remove_dir_all(dir.path().join("state/zones")).unwrap();
    assert!(matches!(service.publish(&name("example."), contents(8), &[]), Err(Refused::Keep { .. })));
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
    // Whoever takes it out by mistake loses nothing: what is kept goes on command alone.
    let kept = dir.path().join("state/zones/example.kept");
    assert!(kept.exists());
    let report = service.reload(of_file(dir.path()));
    assert_eq!(report.added, ["example."]);
    assert_eq!(serial(&service), Some(1));
    assert!(matches!(service.purge_zone(&name("example.")), Err(PurgeError::Served(_))));
    service.reload(Settings::default());
    service.purge_zone(&name("example.")).unwrap();
    assert!(!kept.exists());
    assert!(matches!(service.purge_zone(&name("example.")), Err(PurgeError::NotKept(_))));
}

#[test]
fn a_zone_that_comes_back_has_its_journal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    let settings = || transferable(dir.path());
    write(&file, &zone_text(1));
    let service = started(settings());
    write(&file, &zone_text(2));
    assert!(service.reload_zone(&name("example.")).unwrap());
    service.reload(Settings::default());
    write(&file, &zone_text(3));
    service.reload(settings());
    let state = service.zones().state(&name("example.")).unwrap();
    assert_eq!(state.serving().unwrap().journal().unwrap().serials(), Some((1, 3)));
}

#[test]
fn all_that_is_kept_of_zones_that_are_not_there_goes_on_command() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let mut settings = of_file(dir.path());
    for zone in ["one.", "two."] {
        let zone =
            ZoneSettings { source: Source::Primaries, ..ZoneSettings::of_file(name(zone), PathBuf::new()) };
        settings.zones.push(zone);
    }
    let service = started(settings);
    for zone in ["one.", "two."] {
        let text = zone_text(1).replace("example.", zone);
        let contents = read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
        service.publish(&name(zone), contents, &[]).unwrap();
    }
    assert!(service.purge_all().unwrap().is_empty());
    service.reload(of_file(dir.path()));
    assert_eq!(service.purge_all().unwrap(), ["one", "two"]);
    assert!(service.purge_all().unwrap().is_empty());
    assert!(dir.path().join("state/zones/example.kept").exists());
    let stateless = started(Settings { state_dir: None, ..of_file(dir.path()) });
    assert!(matches!(stateless.purge_all(), Err(PurgeError::NoState)));
}

#[test]
fn members_of_catalogs_stay_over_a_reload_and_do_not_take_configured_names() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let service = started(of_file(dir.path()));
    let member =
        ZoneSettings { source: Source::Primaries, ..ZoneSettings::of_file(name("member."), PathBuf::new()) };
    service.add_zones(vec![member.clone(), ZoneSettings { apex: name("example."), ..member }]);
    assert_eq!(serial(&service), Some(1), "configured zones stay as they are");
    service.reload(of_file(dir.path()));
    assert!(service.zones().state(&name("member.")).is_some());
    assert_eq!(service.configured(), [name("example.")]);
    service.remove_zones(&[name("example."), name("member.")], false);
    assert_eq!(service.all_settings().len(), 1);
}

fn journal(service: &Service) -> Option<(u32, u32)> {
    let state = service.zones().state(&name("example."))?;
    state.serving()?.journal()?.serials()
}

/// The records of a version whose serial does not tell what they are.
fn odd(serial: u32, text: &str) -> Contents {
    let text = zone_text(serial).replace("ns 60 A", &format!("odd 60 TXT {text}\nns 60 A"));
    read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents
}

#[test]
fn an_expired_zone_stays_expired_whatever_its_settings_become() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary(dir.path()));
    service.publish(&name("example."), contents(7), &[]).unwrap();
    service.set_expired(&name("example."), true);
    let mut settings = secondary(dir.path());
    settings.zones[0].transfers.transfer = crate::acl::AccessList::anybody();
    service.reload(settings.clone());
    let state = service.zones().state(&name("example.")).unwrap();
    assert!(matches!(&*state, ZoneState::Expired(policy) if !policy.transfer.entries().is_empty()));
    assert_eq!(service.status().expired, 1);
    // A new version ends it, and so does a file in the place of the primaries.
    service.publish(&name("example."), contents(8), &[]).unwrap();
    assert_eq!(serial(&service), Some(8));
    service.set_expired(&name("example."), true);
    write(&dir.path().join("zone"), &zone_text(9));
    service.reload(of_file(dir.path()));
    assert_eq!(serial(&service), Some(9));
}

#[test]
fn expiry_waits_for_nobody_who_makes_a_version() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary(dir.path()));
    service.publish(&name("example."), contents(7), &[]).unwrap();
    let zone = service.zone(&name("example.")).unwrap();
    let _one = lock(zone.work());
    service.set_expired(&name("example."), true);
    assert_eq!(serial(&service), None);
    service.set_expired(&name("example."), false);
    assert_eq!(serial(&service), Some(7));
}

#[test]
fn a_zone_that_is_gone_does_not_come_back_by_what_was_under_way() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(Settings { zones: Vec::new(), ..of_file(dir.path()) });
    let member = secondary(dir.path()).zones.remove(0);
    service.add_zones(vec![member.clone()]);
    service.publish(&name("example."), contents(7), &[]).unwrap();
    let zone = service.zone(&name("example.")).unwrap();
    let working = lock(zone.work());
    let remover = Arc::clone(&service);
    let removing = std::thread::spawn(move || remover.remove_zones(&[name("example.")], false));
    // It is not answered for at once, though somebody works at it still.
    while service.zones().state(&name("example.")).is_some() {
        std::thread::yield_now();
    }
    let activity = service.activities.begin(ActivityKind::Publish, None);
    let late = service.publish_contents(&zone, contents(8), None, &[], Vec::new(), &activity);
    assert!(matches!(late, Err(Refused::Unknown)), "{late:?}");
    service.show_policy(&zone);
    drop(working);
    removing.join().unwrap();
    service.load_first(&zone);
    service.set_expired(&name("example."), true);
    assert!(service.zones().state(&name("example.")).is_none());
    assert!(!dir.path().join("state/zones/example.kept").exists(), "what was kept late is gone too");
    // The same name comes anew.
    service.add_zones(vec![member]);
    assert!(matches!(&*service.zones().state(&name("example.")).unwrap(), ZoneState::NotReady(_)));
}

#[test]
fn rights_change_whatever_becomes_of_the_zone() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    let rights = |list: crate::acl::AccessList| {
        let mut settings = of_file(dir.path());
        settings.zones[0].transfers.transfer = list;
        settings.zones.push(ZoneSettings { apex: name("missing."), ..settings.zones[0].clone() });
        settings.zones[1].source = Source::File(dir.path().join("nowhere"));
        settings
    };
    write(&file, &zone_text(1));
    let service = started(rights(crate::acl::AccessList::anybody()));
    let is_open = |zone: &str| {
        let state = service.zones().state(&name(zone)).unwrap();
        state.policy().transfer.allows("192.0.2.1".parse().unwrap(), None)
    };
    assert!(is_open("example.") && is_open("missing."));
    // The version of before stays, since the newest one is refused: without those who may not have it any longer.
    write(&file, "@ SOA nonsense");
    let report = service.reload(rights(crate::acl::AccessList::default()));
    assert_eq!(report.refused.len(), 2);
    assert_eq!(serial(&service), Some(1));
    assert!(!is_open("example.") && !is_open("missing."));
    // It is this version that comes back where another one expired.
    service.set_expired(&name("example."), true);
    service.set_expired(&name("example."), false);
    assert!(!is_open("example."));
}

#[test]
fn a_serial_with_other_records_is_warned_of_and_nothing_leads_from_it() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    let settings = || transferable(dir.path());
    write(&file, &zone_text(3));
    let service = started(settings());
    write(&file, &zone_text(4));
    service.reload_zone(&name("example.")).unwrap();
    assert_eq!((journal(&service), service.warnings(&name("example."))), (Some((3, 4)), Vec::new()));
    // The same records again are no other version.
    write(&file, &zone_text(4));
    service.reload_zone(&name("example.")).unwrap();
    assert_eq!((journal(&service), service.warnings(&name("example."))), (Some((3, 4)), Vec::new()));
    write(&file, &zone_text(4).replace("192.0.2.1", "192.0.2.77"));
    let report = service.reload(settings());
    let [(zone, warning)] = &report.warnings[..] else { panic!("{report:?}") };
    assert!(zone == "example." && warning.contains("serial 4 is as before although records differ"));
    assert_eq!(journal(&service), None);
    end(service);
    // Secondaries have other records with this serial, also after a restart.
    let service = started(settings());
    write(&file, &zone_text(5));
    service.reload_zone(&name("example.")).unwrap();
    assert_eq!((serial(&service), journal(&service)), (Some(5), None));
    assert!(service.warnings(&name("example.")).is_empty());
    write(&file, &zone_text(6));
    service.reload_zone(&name("example.")).unwrap();
    assert_eq!(journal(&service), Some((5, 6)));
    // Back, and the same serials once more.
    for (serial, expected) in [(5, None), (6, None), (7, None), (8, Some((7, 8)))] {
        service.publish(&name("example."), odd(serial, "other"), &[]).unwrap();
        assert_eq!(journal(&service), expected, "{serial}");
    }
}

#[test]
fn a_journal_that_does_not_lead_to_the_version_is_begun_anew() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary(dir.path()));
    let file = dir.path().join("state/zones/example.journal");
    for serial in [7, 8] {
        service.publish(&name("example."), contents(serial), &[]).unwrap();
    }
    let before = fs::read(&file).unwrap();
    service.publish(&name("example."), contents(9), &[]).unwrap();
    end(service);
    // As a stop between the version and its journal leaves it.
    fs::write(&file, before).unwrap();
    let service = started(secondary(dir.path()));
    assert_eq!((serial(&service), journal(&service)), (Some(9), None));
    service.publish(&name("example."), contents(10), &[]).unwrap();
    assert_eq!(journal(&service), Some((9, 10)));
    end(service);
    // What no server has written stays, and there is no journal.
    fs::write(&file, "precious").unwrap();
    let service = started(secondary(dir.path()));
    service.publish(&name("example."), contents(11), &[]).unwrap();
    assert_eq!((journal(&service), fs::read(&file).unwrap()), (None, b"precious".to_vec()));
}

#[test]
fn a_zone_that_must_be_signed_is_refused_where_it_is_not() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let mut settings = of_file(dir.path());
    settings.zones[0].requires_dnssec = true;
    let service = started(settings);
    assert!(matches!(service.reload_zone(&name("example.")), Err(Refused::NotSigned)));
    assert_eq!(service.status().failed, 1);
}

/// A version that is signed, by a key of this secret.
fn signed(serial: u32, secret: u8) -> Contents {
    use nonesuch_dnssec::{KeyPair, KeySet, Mechanism, SignOptions, sign};
    let scalar = data_encoding::BASE64.encode(&[secret; 32]);
    let text = format!("Private-key-format: v1.3\nAlgorithm: 15 (ED25519)\nPrivateKey: {scalar}\n");
    let private = nonesuch_crypto::PrivateKey::from_bind(&text).unwrap();
    let keys = KeySet::new(&name("example."), vec![KeyPair::new(name("example."), 257, private)]).unwrap();
    let now = seconds_now() as u32;
    let options = SignOptions::new(Mechanism::Nsec, now - 3600, now + 86_400);
    sign(&contents(serial), &keys, &options).unwrap().into_contents()
}

#[test]
fn a_zone_that_is_signed_no_longer_or_by_other_keys_is_warned_of() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary(dir.path()));
    let zone = name("example.");
    let warned = |version: Contents| {
        service.publish(&zone, version, &[]).unwrap();
        service.warnings(&zone)
    };
    assert!(
        warned(contents(1)).is_empty() && warned(signed(2, 1)).is_empty() && warned(signed(3, 1)).is_empty()
    );
    assert!(warned(signed(4, 2))[0].contains("no key of the version before"));
    assert!(warned(contents(5))[0].contains("was signed, and this one is not"));
    assert!(warned(signed(6, 2)).is_empty());
    end(service);
    // What is kept tells it too.
    write(&dir.path().join("zone"), &zone_text(7));
    let service = started(of_file(dir.path()));
    assert_eq!(serial(&service), Some(7));
    assert!(service.warnings(&zone)[0].contains("was signed, and this one is not"));
}

/// Signatures that expire while a server is down, or a clock that is wrong at its start, take no zone away.
#[test]
fn what_was_published_is_served_whatever_the_clock_says_at_the_next_start() {
    for verify in [VerifyChoice::Auto, VerifyChoice::Full, VerifyChoice::Structural] {
        let dir = tempfile::tempdir().unwrap();
        let mut text = Vec::new();
        nonesuch_zone::write::write_zone(&signed(3, 1), &mut text).unwrap();
        write(&dir.path().join("zone"), &String::from_utf8(text).unwrap());
        let mut settings = of_file(dir.path());
        settings.zones[0].verify = verify;
        let service = started(settings.clone());
        assert_eq!(serial(&service), Some(3));
        end(service);
        settings.clock_shift = 30 * 86_400;
        let service = started(settings.clone());
        assert_eq!(serial(&service), Some(3), "{verify:?}");
        end(service);
        // What comes anew is not published, and the kept version stays, whatever becomes of its file.
        let mut text = Vec::new();
        nonesuch_zone::write::write_zone(&signed(4, 1), &mut text).unwrap();
        write(&dir.path().join("zone"), &String::from_utf8(text).unwrap());
        let service = started(settings);
        assert_eq!(serial(&service), Some(3), "{verify:?}");
        assert!(service.reload_zone(&name("example.")).is_err(), "{verify:?}");
        end(service);
    }
}

/// An image file of a zone that is large enough to be mapped.
fn image_of_many(serial: u32) -> Vec<u8> {
    let mut text = zone_text(serial);
    (0..8000).for_each(|number| text.push_str(&format!("n{number} 60 A 192.0.2.1\n")));
    let contents = read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
    let image = nonesuch_zone::Image::compile(&contents).unwrap();
    let (at, mut octets) = (nonesuch_zone::Verification::Full { at: 7 }, Vec::new());
    nonesuch_zone::image::file::write(&image, at, (&contents, at), &mut octets).unwrap();
    octets
}

#[test]
fn a_compiled_zone_may_be_written_over_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    fs::write(&file, image_of_many(1)).unwrap();
    let settings = transferable(dir.path());
    let service = started(settings.clone());
    assert_eq!(serial(&service), Some(1));
    let kept = dir.path().join("state/zones/example.kept");
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let is_mapped = |path: &Path| maps.lines().any(|line| line.ends_with(&path.display().to_string()));
    assert!(is_mapped(&kept) && !is_mapped(&file), "{maps}");
    // Half a copy is refused, and neither served nor kept.
    let next = image_of_many(2);
    fs::write(&file, &next[..next.len() - 100]).unwrap();
    let refused = service.reload_zone(&name("example."));
    assert!(matches!(refused, Err(Refused::Image(_))), "{refused:?}");
    let state = service.zones().state(&name("example.")).unwrap();
    assert_eq!(state.serving().unwrap().published().image().apex_rdatas(nonesuch_proto::Rtype::NS).len(), 1);
    fs::write(&file, &next).unwrap();
    assert!(service.reload_zone(&name("example.")).unwrap());
    assert_eq!((serial(&service), journal(&service)), (Some(2), Some((1, 2))));
    end(service);
    let service = started(settings);
    assert_eq!(serial(&service), Some(2));
}

#[test]
fn primaries_may_tell_that_a_zone_has_changed() {
    let dir = tempfile::tempdir().unwrap();
    let mut settings = secondary(dir.path()).zones.remove(0);
    settings.transfers.primaries = vec!["192.0.2.1 key:k.".parse().unwrap()];
    settings.transfers.notify_from = crate::acl::AccessList::new(vec!["192.0.2.9".parse().unwrap()]);
    settings.transfers.primaries.push("192.0.2.3".parse().unwrap());
    let policy = settings.policy();
    // A primary that has a key signs with it, unless its address alone is said to be enough.
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
    settings.transfers.notify_from = crate::acl::AccessList::new(vec!["192.0.2.1".parse().unwrap()]);
    assert!(settings.policy().notify_from.allows("192.0.2.1".parse().unwrap(), None));
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
