//! Versions that break validators which hold the keys of the version before.

use super::*;
use nonesuch_zone::Verification;
use nonesuch_zone::write::write_zone;

/// Writes the zone file, and has it loaded.
fn load(service: &Service, dir: &Path, zone: &Contents) -> Result<bool, Refused> {
    write_version(dir, zone);
    service.reload_zone(&name("example."))
}

fn write_version(dir: &Path, zone: &Contents) {
    let mut text = Vec::new();
    write_zone(zone, &mut text).unwrap();
    write(&dir.join("zone"), &String::from_utf8(text).unwrap());
}

#[track_caller]
fn is_refused(outcome: Result<bool, Refused>, words: &str) {
    match outcome {
        Err(error @ Refused::UnsafeTransition(_)) => assert!(error.to_string().contains(words), "{error}"),
        other => panic!("{other:?}"),
    }
}

const OTHER_KEY: &str = "no key that signed the previous DNSKEY RRset";

#[test]
fn a_zone_file_that_breaks_validators_is_refused_until_it_is_allowed() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let mut settings = of_file(dir);
    write_version(dir, &signed(1, 1));
    let service = started(settings.clone());
    is_refused(load(&service, dir, &signed(2, 2)), OTHER_KEY);
    let status = &service.zone_status(Some(&name("example.")))[0];
    assert_eq!(status.serial, Some(1), "the version before stays");
    assert!(status.error.as_deref().is_some_and(|error| error.contains("allow-unsafe-transition")));
    // Other kinds: the chain under the same serial, data signed by a new key alone.
    is_refused(load(&service, dir, &signed_with(1, &[1], Mechanism::Nsec3)), "from NSEC to NSEC3");
    end(service);
    // The version that is kept is the previous one after a restart, too.
    write_version(dir, &signed(2, 2));
    let service = started(settings.clone());
    assert_eq!(serial(&service), Some(1));
    is_refused(service.reload_zone(&name("example.")), OTHER_KEY);
    // Step by step nothing breaks: the old key goes when its successor has signed.
    assert!(load(&service, dir, &signed_with(3, &[1, 2], Mechanism::Nsec)).unwrap());
    assert!(load(&service, dir, &signed(4, 2)).unwrap());
    assert!(load(&service, dir, &signed_with(5, &[2], Mechanism::Nsec3)).unwrap());
    assert_eq!(service.warnings(&name("example.")), [""; 0]);
    settings.zones[0].allows_unsafe_transition = true;
    service.reload(settings);
    assert!(load(&service, dir, &signed(6, 3)).unwrap());
    assert!(service.warnings(&name("example."))[0].contains(OTHER_KEY));
}

/// A server that was down for long is to serve the newest version, and not one that is bogus everywhere.
#[test]
fn a_version_whose_signatures_have_expired_holds_no_other_up() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let now = seconds_now() as u32;
    write_version(dir, &signed_until(&contents(1), &[1], Mechanism::Nsec, (now - 7200, now - 60)));
    let mut settings = of_file(dir);
    settings.zones[0].verify = VerifyChoice::Nothing;
    let service = started(settings.clone());
    assert!(load(&service, dir, &signed(2, 2)).unwrap());
    assert_eq!((serial(&service), service.warnings(&name("example."))), (Some(2), Vec::new()));
    is_refused(load(&service, dir, &signed(3, 3)), OTHER_KEY);
    write_version(dir, &signed_until(&contents(4), &[2], Mechanism::Nsec, (now - 7200, now - 60)));
    assert!(service.reload_zone(&name("example.")).unwrap());
    end(service);
    // The stored version has expired, too.
    write_version(dir, &signed(5, 3));
    assert_eq!(serial(&started(settings)), Some(5));
}

#[test]
fn a_compiled_zone_that_breaks_validators_is_refused() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let compiled = |zone: &Contents| {
        let image = nonesuch_zone::Image::compile(zone).unwrap();
        let at = Verification::Full { at: seconds_now() as u32 };
        let mut octets = Vec::new();
        nonesuch_zone::image::file::write(&image, at, (zone, at), &mut octets).unwrap();
        fs::write(dir.join("beside"), octets).unwrap();
        fs::rename(dir.join("beside"), dir.join("zone")).unwrap();
    };
    for state_dir in [Some(dir.join("state")), None] {
        let settings = Settings { state_dir, ..of_file(dir) };
        compiled(&signed(1, 1));
        let service = started(settings);
        compiled(&signed(2, 2));
        is_refused(service.reload_zone(&name("example.")), OTHER_KEY);
        assert_eq!(serial(&service), Some(1));
        compiled(&signed_with(2, &[1, 2], Mechanism::Nsec));
        assert!(service.reload_zone(&name("example.")).unwrap());
        assert_eq!(serial(&service), Some(2));
        end(service);
        let _ = fs::remove_dir_all(dir.join("state"));
    }
}

#[test]
fn a_version_from_a_primary_that_breaks_validators_is_served_with_a_warning() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary(dir.path()));
    let zone = name("example.");
    service.publish(&zone, signed(1, 1), &[]).unwrap();
    service.publish(&zone, signed_with(2, &[3], Mechanism::Nsec3), &[]).unwrap();
    let warnings = service.warnings(&zone);
    assert_eq!(warnings.len(), 2, "{warnings:?}");
    assert!(warnings[0].starts_with("unsafe transition: no key that signed"), "{warnings:?}");
    assert!(warnings[1].contains("example. NS is signed only by key "), "{warnings:?}");
    service.publish(&zone, signed_with(2, &[3], Mechanism::Nsec), &[]).unwrap();
    let warnings = service.warnings(&zone);
    assert!(warnings.iter().any(|warning| warning.contains("from NSEC3 to NSEC under the same serial 2")));
}
