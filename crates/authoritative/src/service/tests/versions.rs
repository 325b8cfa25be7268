//! Sequences of versions: the journal contains the changes, and warnings report unusual versions.

use super::transitions::{other_key, unsafe_transition};
use super::*;

#[test]
fn a_transferred_version_is_stored_and_sends_an_event() {
    let dir = tempfile::tempdir().unwrap();
    let service = Service::open(secondary_settings(dir.path()), KEY_FILES, Arc::new(Zones::new())).unwrap();
    let mut events = service.subscribe();
    service.begin().unwrap();
    assert_eq!(service.wait_until_loaded(), StartupSummary { serving: 0, waiting: 1, failed: 0 });
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::CatalogsLoaded)));
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Added(_))));
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::NotLoaded { .. })));
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Loaded)));
    assert_eq!(service.publish(&name("example."), contents(7), &[]).unwrap(), 7);
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Published { .. })));
    assert_eq!(service.contents(&name("example.")).unwrap().soa().unwrap().serial, 7);
    let other = read::read_text(
        b"$ORIGIN other.\n@ 60 SOA ns h 1 1 1 1 1\n@ 60 NS ns.example.\n",
        Path::new("z"),
        None,
    );
    let refused = service.publish(&name("example."), other.unwrap().contents, &[]);
    assert!(matches!(refused, Err(VersionError::OtherZone(_))));
    // Expiry, and the end of the expiry.
    service.set_expired(&name("example."), true);
    assert_eq!((serial(&service), service.status().expired), (None, 1));
    service.set_expired(&name("example."), false);
    assert_eq!(serial(&service), Some(7));
    drop(events);
    end(service);
    let service = started(secondary_settings(dir.path()));
    assert_eq!(serial(&service), Some(7));
    assert!(
        service.contents(&name("example.")).is_some(),
        "the records of a zone with outgoing transfers are in memory"
    );
}

#[test]
fn changes_are_in_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    for serial in [7, 8, 9] {
        service.publish(&name("example."), contents(serial), &[]).unwrap();
    }
    let state = service.zones().state(&name("example.")).unwrap();
    let zone = state.serving().unwrap();
    assert_eq!(zone.journal().unwrap().serials(), Some((7, 9)));
    // A lower serial clears the journal.
    service.publish(&name("example."), contents(3), &[]).unwrap();
    let state = service.zones().state(&name("example.")).unwrap();
    assert_eq!(state.serving().unwrap().journal().unwrap().serials(), None);
}

#[test]
fn each_step_is_in_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    let step = |from, to| ChangeSet::between(&contents(from), &contents(to), |_| true);
    let journal = || {
        let state = service.zones().state(&name("example.")).unwrap();
        let journal = state.serving().unwrap().journal().unwrap();
        let (from, to) = journal.serials().unwrap();
        let changes = journal.between(from, to).unwrap();
        (Some((from, to)), (0..).take_while(|index| changes.open(*index).is_some()).count())
    };
    service.publish(&name("example."), contents(1), &[]).unwrap();
    service.publish(&name("example."), contents(4), &[step(1, 2), step(2, 3), step(3, 4)]).unwrap();
    assert_eq!(journal(), (Some((1, 4)), 3));
    // Steps that do not lead from the previous version to this one are ignored; the server computes
    // the difference.
    for (serial, steps) in [(5, vec![step(3, 5)]), (6, vec![step(5, 7)]), (8, vec![step(6, 7), step(6, 8)])] {
        let before = journal().1;
        service.publish(&name("example."), contents(serial), &steps).unwrap();
        assert_eq!(journal(), (Some((1, serial)), before + 1));
    }
}

#[test]
fn a_zone_that_is_added_again_has_its_journal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    let settings = || transferable_settings(dir.path());
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

/// Returns a version with this serial and a TXT record `text`.
fn version_with_txt(serial: u32, text: &str) -> Contents {
    let text = zone_text(serial).replace("ns 60 A", &format!("odd 60 TXT {text}\nns 60 A"));
    read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents
}

#[test]
fn a_reused_serial_causes_a_warning_and_is_not_in_the_journal() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    let settings = || transferable_settings(dir.path());
    write(&file, &zone_text(3));
    let service = started(settings());
    write(&file, &zone_text(4));
    service.reload_zone(&name("example.")).unwrap();
    assert_eq!((journal(&service), service.warnings(&name("example."))), (Some((3, 4)), Vec::new()));
    // The same records are no new version.
    write(&file, &zone_text(4));
    service.reload_zone(&name("example.")).unwrap();
    assert_eq!((journal(&service), service.warnings(&name("example."))), (Some((3, 4)), Vec::new()));
    write(&file, &zone_text(4).replace("192.0.2.1", "192.0.2.77"));
    let report = service.reload(settings());
    let [(zone, warning)] = &report.warnings[..] else { panic!("{report:?}") };
    assert_eq!(zone, "example.");
    assert_eq!(*warning, compare::SerialChange::Reused { serial: 4 }.warning(4).unwrap());
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
    // A lower serial, and the same serials again.
    for (serial, expected) in [(5, None), (6, None), (7, None), (8, Some((7, 8)))] {
        service.publish(&name("example."), version_with_txt(serial, "other"), &[]).unwrap();
        assert_eq!(journal(&service), expected, "{serial}");
    }
}

#[test]
fn a_journal_that_does_not_end_at_the_version_is_cleared() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    let file = dir.path().join("state/zones/example.journal");
    for serial in [7, 8] {
        service.publish(&name("example."), contents(serial), &[]).unwrap();
    }
    let before = fs::read(&file).unwrap();
    service.publish(&name("example."), contents(9), &[]).unwrap();
    end(service);
    // The state after a crash between storing the version and its journal.
    fs::write(&file, before).unwrap();
    let service = started(secondary_settings(dir.path()));
    assert_eq!((serial(&service), journal(&service)), (Some(9), None));
    service.publish(&name("example."), contents(10), &[]).unwrap();
    assert_eq!(journal(&service), Some((9, 10)));
    end(service);
    // A file that no server wrote remains, and there is no journal.
    fs::write(&file, "precious").unwrap();
    let service = started(secondary_settings(dir.path()));
    service.publish(&name("example."), contents(11), &[]).unwrap();
    assert_eq!((journal(&service), fs::read(&file).unwrap()), (None, b"precious".to_vec()));
}

#[test]
fn a_zone_that_becomes_unsigned_or_has_other_keys_causes_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    let zone = name("example.");
    let warned = |version: Contents| {
        service.publish(&zone, version, &[]).unwrap();
        service.warnings(&zone)
    };
    assert!(
        warned(contents(1)).is_empty() && warned(signed(2, 1)).is_empty() && warned(signed(3, 1)).is_empty()
    );
    assert_eq!(warned(signed(4, 2))[0], unsafe_transition(&other_key(1, 2)));
    // The setting that rejects unsigned versions.
    let required = "dnssec = \"required\"";
    assert!(warned(contents(5))[0].contains(required));
    assert!(warned(signed(6, 2)).is_empty());
    end(service);
    // The stored version also has this information.
    write(&dir.path().join("zone"), &zone_text(7));
    let service = started(file_settings(dir.path()));
    assert_eq!(serial(&service), Some(7));
    assert!(service.warnings(&zone)[0].contains(required));
}

/// Converts a stored version into one of a program that verified it and did not record its tables
/// of algorithms.
fn forget_tables(path: &Path) {
    const PAGE: usize = nonesuch_zone::image::file::PAGE;
    // Sizes in octets of the header and the trailer of compiled contents, of the numbers in the
    // trailer, and of a digest.
    const HEADER: usize = 320;
    const TRAILER: usize = 64;
    const NUMBERS: usize = 24;
    const DIGEST: usize = 32;
    let mut octets = fs::read(path).unwrap();
    let tables = nonesuch_crypto::tables_digest();
    let contents = nonesuch_zone::image::file::contents_range(&octets[..PAGE]).unwrap().start as usize;
    for (start, length) in [(0, PAGE - DIGEST), (contents, HEADER)] {
        let place = octets[start..start + length].windows(tables.len()).position(|found| found == tables);
        octets[start + place.unwrap()..][..tables.len()].fill(0);
    }
    let seal = blake3::hash(&octets[..PAGE - DIGEST]);
    octets[PAGE - DIGEST..PAGE].copy_from_slice(seal.as_bytes());
    let end = octets.len() - TRAILER;
    let offset = u64::from_le_bytes(octets[end..end + 8].try_into().unwrap()) as usize;
    let mut hasher = blake3::Hasher::new();
    hasher.update(&octets[contents..contents + HEADER]);
    hasher.update(&octets[contents + offset..end + NUMBERS]);
    octets[end + NUMBERS..end + NUMBERS + DIGEST].copy_from_slice(hasher.finalize().as_bytes());
    fs::write(path, octets).unwrap();
}

/// Converts a file with an image into one of a program with version 1 of the image format.
fn make_version_1(path: &Path) {
    const PAGE: usize = nonesuch_zone::image::file::PAGE;
    const DIGEST: usize = 32;
    let mut octets = fs::read(path).unwrap();
    octets[8..12].copy_from_slice(&1u32.to_le_bytes());
    let seal = blake3::hash(&octets[..PAGE - DIGEST]);
    octets[PAGE - DIGEST..PAGE].copy_from_slice(seal.as_bytes());
    fs::write(path, octets).unwrap();
}

/// After an upgrade, the stored version may be the only source: the primaries may be unreachable.
#[test]
fn a_stored_version_with_an_older_image_format_is_served_and_stored_again() {
    let dir = tempfile::tempdir().unwrap();
    let stored = dir.path().join("state/zones/example.kept");
    let service = started(secondary_settings(dir.path()));
    service.publish(&name("example."), signed(7, 1), &[]).unwrap();
    end(service);
    make_version_1(&stored);
    let service = started(secondary_settings(dir.path()));
    assert_eq!(serial(&service), Some(7));
    assert!(service.stored_zone(&name("example.")).unwrap().is_some());
    end(service);
    assert!(crate::open_image(&stored).unwrap().is_some());
    // The same file, compiled by an older program.
    make_version_1(&stored);
    fs::rename(&stored, dir.path().join("zone")).unwrap();
    assert_eq!(serial(&started(file_settings(dir.path()))), Some(7));
}

#[test]
fn a_version_verified_with_other_algorithm_tables_is_verified_again() {
    let dir = tempfile::tempdir().unwrap();
    let stored = dir.path().join("state/zones/example.kept");
    let settings = || {
        let mut settings = secondary_settings(dir.path());
        settings.zones[0].verify = VerifyChoice::Changed;
        settings
    };
    let verified = |service: &Service| {
        let status = service.zone_status(Some(&name("example."))).remove(0);
        (status.serial, status.verified.unwrap())
    };
    let service = started(settings());
    service.publish(&name("example."), signed(1, 1), &[]).unwrap();
    end(service);
    let service = started(settings());
    assert_eq!(verified(&service), (Some(1), "when its image was created".to_owned()));
    end(service);
    // It is served and verified completely; the next start relies on that.
    forget_tables(&stored);
    let service = started(settings());
    let (serial, words) = verified(&service);
    assert!(serial == Some(1) && words.starts_with("full: "), "{words}");
    end(service);
    let service = started(settings());
    assert_eq!(verified(&service), (Some(1), "when its image was created".to_owned()));
    // The next version relies on the stored one if this is permitted.
    service.publish(&name("example."), signed(2, 1), &[]).unwrap();
    assert!(verified(&service).1.starts_with("changed: "), "{:?}", verified(&service));
    end(service);
    forget_tables(&stored);
    // If this process has published nothing yet, only the stored version exists.
    let service = Service::open(settings(), KEY_FILES, Arc::new(Zones::new())).unwrap();
    service.publish(&name("example."), signed(3, 1), &[]).unwrap();
    assert!(verified(&service).1.starts_with("full: "), "{:?}", verified(&service));
}

/// `max-records-per-type` and `max-types-per-name` apply to versions from all sources.
#[test]
fn versions_with_more_records_or_types_than_configured_are_rejected() {
    let dir = tempfile::tempdir().unwrap();
    let crowded = |serial: u32| {
        let mut text = zone_text(serial);
        (0..150).for_each(|number| {
            text.push_str(&format!("many 60 TXT {number}\nwide 60 TYPE{} \\# 0\n", 1000 + number))
        });
        text
    };
    let with = |records_per_type, types_per_name| {
        let mut settings = file_settings(dir.path());
        settings.zones[0].limits = RecordLimits { records_per_type, types_per_name };
        settings
    };
    let file = dir.path().join("zone");
    write(&file, &crowded(1));
    let service = started(with(None, None));
    assert_eq!(serial(&service), Some(1));
    let warnings = service.warnings(&name("example."));
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    for (warning, parts) in warnings.iter().zip([
        ["many.example. ", " 150 TXT ", " max-records-per-type "],
        ["wide.example. ", " 150 types", " max-types-per-name "],
    ]) {
        assert!(parts.iter().all(|part| warning.contains(part)), "{warning}");
    }
    // With a limit configured, a new version is rejected, and the previous one remains.
    write(&file, &crowded(2));
    let report = service.reload(with(Some(149), None));
    let many = VersionError::TooManyRecords {
        owner: name("many.example."),
        rtype: Rtype::TXT,
        count: 150,
        limit: 149,
    };
    assert_eq!(report.refused, [("example.".to_owned(), many.to_string())]);
    assert_eq!(serial(&service), Some(1));
    let report = service.reload(with(None, Some(149)));
    let wide = VersionError::TooManyTypes { owner: name("wide.example."), count: 150, limit: 149 };
    assert_eq!(report.refused, [("example.".to_owned(), wide.to_string())]);
    service.reload(with(Some(150), Some(0)));
    assert_eq!(serial(&service), Some(2));
    assert_eq!(service.warnings(&name("example.")), [""; 0]);
    // The limit also applies to the stored version, which remains on disk.
    end(service);
    let service = started(with(Some(100), None));
    assert_eq!(serial(&service), None);
    end(service);
    let service = started(with(Some(0), Some(0)));
    assert_eq!(serial(&service), Some(2));
}

/// A journal is first written under a temporary name.
#[test]
fn a_foreign_file_with_the_name_of_a_journal_is_not_overwritten() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let service = started(transferable_settings(dir.path()));
    end(service);
    let zones = dir.path().join("state/zones");
    fs::remove_file(zones.join("example.journal")).unwrap();
    fs::write(zones.join("example.journal.new"), "precious").unwrap();
    let service = started(transferable_settings(dir.path()));
    write(&dir.path().join("zone"), &zone_text(2));
    service.reload_zone(&name("example.")).unwrap();
    assert_eq!((serial(&service), journal(&service)), (Some(2), None));
    assert_eq!(fs::read(zones.join("example.journal.new")).unwrap(), b"precious");
}

/// Another server may have the same address; a different key or certificate shows this.
#[test]
fn rejections_are_remembered_only_for_the_same_primaries() {
    let dir = tempfile::tempdir().unwrap();
    let judged_by = |primary: &str| {
        let mut zone = secondary_settings(dir.path()).zones.remove(0);
        zone.transfers.primaries = vec![primary.parse().unwrap()];
        zone.verification_digest().unwrap()
    };
    let primary = "192.0.2.1:853";
    assert_eq!(judged_by(primary), judged_by(primary));
    for other in ["192.0.2.2:853", "192.0.2.1:853 key:k.", "192.0.2.1:853 tls", "192.0.2.1:853 tls:a.example"]
    {
        assert_ne!(judged_by(primary), judged_by(other), "{other}");
    }
}
