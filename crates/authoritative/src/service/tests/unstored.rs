//! Zone files whose version cannot be stored.

use super::*;
use nonesuch_zone::image::file;

/// Starts a service whose state directory accepts no zone from the start, as on a full disk. Works
/// for every user, including root.
fn started_without_room(settings: Settings) -> Arc<Service> {
    let zones = StateDirectory::zones_directory(settings.state_dir.as_deref().unwrap());
    let service = Service::open(settings, KEY_FILES, Arc::new(Zones::new())).unwrap();
    fs::remove_dir(zones).unwrap();
    service.begin().unwrap();
    let _ = service.wait_until_loaded();
    service
}

fn storage_error(service: &Service) -> Option<String> {
    service.zone_status(Some(&name("example."))).remove(0).storage_error
}

fn write_compiled(path: &Path, contents: &Contents) {
    let image = nonesuch_zone::Image::compile(contents).unwrap();
    let at = nonesuch_zone::Verification::Full { at: seconds_now() as u32 };
    let mut octets = Vec::new();
    file::write(&image, at, contents, at, &mut octets).unwrap();
    fs::write(path, octets).unwrap();
}

#[test]
fn a_file_that_cannot_be_stored_is_served_from_memory_if_no_version_is_stored() {
    for is_compiled in [false, true] {
        let dir = tempfile::tempdir().unwrap();
        let file = dir.path().join("zone");
        let write = |serial| {
            if is_compiled {
                write_compiled(&file, &contents(serial));
            } else {
                write(&file, &zone_text(serial));
            }
        };
        write(7);
        let service = started_without_room(file_settings(dir.path()));
        assert_eq!(serial(&service), Some(7));
        assert!(is_unstored(&service, |error| matches!(error, VersionError::Store { .. })));
        assert_eq!(service.status().troubled, ["example."]);
        // Another version is served too, because the state directory contains no older one.
        write(8);
        service.reload_zone(&name("example.")).unwrap();
        assert_eq!(serial(&service), Some(8));
        // The next reload stores it as soon as there is space.
        fs::create_dir(StateDirectory::zones_directory(&dir.path().join("state"))).unwrap();
        service.reload_zone(&name("example.")).unwrap();
        assert_eq!((serial(&service), storage_error(&service)), (Some(8), None));
        assert!(!service.reload_zone(&name("example.")).unwrap(), "unchanged");
        end(service);
        fs::remove_file(&file).unwrap();
        let service = started(file_settings(dir.path()));
        assert_eq!(serial(&service), Some(8), "the stored version");
        end(service);
    }
}

/// The operator must move the file. Meanwhile the zone is served, and no version is rejected
/// because of the file.
#[test]
fn a_zone_from_primaries_is_served_from_memory_if_a_foreign_file_has_its_name() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    let kept = dir.path().join("state/zones/example.kept");
    fs::write(&kept, "precious").unwrap();
    for version in [7, 8] {
        service.publish(&name("example."), contents(version), &[]).unwrap();
        assert_eq!(serial(&service), Some(version));
    }
    assert!(is_unstored(&service, VersionError::is_foreign_file));
    assert_eq!(service.status().troubled, ["example."]);
    assert!(service.store(&name("example.")).is_err());
    assert_eq!(fs::read(&kept).unwrap(), b"precious");
    fs::remove_file(&kept).unwrap();
    service.store(&name("example.")).unwrap();
    assert_eq!(storage_error(&service), None);
    end(service);
    assert_eq!(serial(&started(secondary_settings(dir.path()))), Some(8));
}
