//! A service of one zone without a state directory, whose file is read before the name of the zone
//! is known.

use super::*;
use nonesuch_zone::{LoadedZone, load};
use std::cell::Cell;

fn settings_without_state(source: ZoneSource) -> Settings {
    let zone = ZoneSettings { source, ..ZoneSettings::of_file(name("example."), "zone".into()) };
    Settings { zones: vec![zone], ..Settings::default() }
}

fn open(settings: Settings) -> Arc<Service> {
    Service::open(settings, KEY_FILES, Arc::new(Zones::new())).unwrap()
}

fn loaded(serial: u32) -> LoadedZone {
    LoadedZone { contents: contents(serial), warnings: Vec::new(), verification: None }
}

fn preload(file: &Path) -> PreloadedZone {
    PreloadedZone::file(file, || Ok(crate::open_image(file).unwrap()), || load(file, None)).unwrap()
}

#[test]
fn a_preloaded_file_is_served_and_reloaded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    write(&file, &zone_text(1));
    let found = preload(&file);
    assert_eq!(found.apex(), name("example."));
    let service = open(settings_without_state(ZoneSource::File(file.clone())));
    service.begin_preloaded(found).unwrap();
    assert_eq!((serial(&service), service.wait_until_loaded().serving), (Some(1), 1));
    assert!(!service.reload_zone(&name("example.")).unwrap(), "unchanged");
    write(&file, &zone_text(2));
    assert!(service.reload_zone(&name("example.")).unwrap());
    write(&file, "nonsense");
    assert!(service.reload_zone(&name("example.")).is_err());
    assert_eq!(serial(&service), Some(2));
    let left: Vec<_> = fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
    assert_eq!(left, ["zone"], "no files are stored");
}

/// The file may have changed since it was read.
#[test]
fn a_preloaded_file_that_has_changed_is_read_again() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    write(&file, &zone_text(1));
    let found = preload(&file);
    write(&file, &zone_text(2));
    let service = open(settings_without_state(ZoneSource::File(file)));
    service.begin_preloaded(found).unwrap();
    assert_eq!(serial(&service), Some(2));
}

#[test]
fn an_image_is_served_as_it_is_and_no_zone_file_is_read() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("image");
    fs::write(&file, image_of_many(5)).unwrap();
    let is_read = Cell::new(false);
    let read = || {
        is_read.set(true);
        Ok::<_, VersionError>(load(&file, None)?)
    };
    let found = PreloadedZone::file(&file, || Ok(crate::open_image(&file)?), read).unwrap();
    assert!(!is_read.get());
    let service = open(settings_without_state(ZoneSource::File(file)));
    service.begin_preloaded(found).unwrap();
    assert_eq!(serial(&service), Some(5));
    let status = &service.zone_status(None)[0];
    assert_eq!(status.verified.as_deref(), Some("when its image was created"));
}

#[test]
fn a_stream_is_read_once() {
    let service = open(settings_without_state(ZoneSource::Stream("standard input".into())));
    service.begin_preloaded(PreloadedZone::stream(loaded(3))).unwrap();
    assert_eq!(serial(&service), Some(3));
    let report = service.reload(settings_without_state(ZoneSource::Stream("standard input".into())));
    let [(zone, error)] = report.refused.as_slice() else { panic!("{report:?}") };
    assert_eq!(zone, "example.");
    assert_eq!(*error, VersionError::StreamAlreadyRead("standard input".into()).to_string());
    assert_eq!(serial(&service), Some(3));
}

#[test]
fn a_rejected_preloaded_zone_is_reported_and_not_served() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    write(&file, &zone_text(1));
    let mut settings = settings_without_state(ZoneSource::File(file.clone()));
    settings.zones[0].requires_dnssec = true;
    let service = open(settings);
    assert!(matches!(service.begin_preloaded(preload(&file)), Err(VersionError::NotSigned)));
    assert_eq!(serial(&service), None);
}

/// The caller of the periodic check learns the time of the next one.
#[test]
fn the_time_of_the_next_expiry_check_is_returned() {
    let service = open(settings_without_state(ZoneSource::Stream("standard input".into())));
    assert_eq!(service.warn_of_expiry(), None, "nothing is served");
    let signed = LoadedZone { contents: signed(1, 7), ..loaded(1) };
    service.begin_preloaded(PreloadedZone::stream(signed)).unwrap();
    // Valid for a day and an hour: the expiration is near in the last quarter.
    let next = service.warn_of_expiry().unwrap();
    assert!((1..=86_400 * 3 / 4).contains(&next), "{next}");
}
