//! Tests of a service within the process: publishing, storing, rejecting and reporting.

mod keys;
mod opened;
mod standing;
mod states;
mod transitions;
mod unstored;
mod versions;

use super::*;
use nonesuch_dnssec::Mechanism;
use nonesuch_zone::read;
use std::fs;
use std::path::PathBuf;
use std::sync::LazyLock;

pub(super) const KEY_FILES: KeyLoader = KeyLoader {
    load_signing_keys: |dir, zone, _| {
        Err(KeyDirectoryError::NoKeys { dir: dir.to_path_buf(), zone: zone.clone() })
    },
    next_key_event: |_, _, _| None,
    load_prover: |dir, _, zone| {
        Err(LoadProverError::NoKey { dir: dir.to_path_buf(), zone: zone.apex().clone() })
    },
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
    let temporary = path.with_extension("temporary");
    fs::write(&temporary, text).unwrap();
    fs::rename(&temporary, path).unwrap();
}

fn started(settings: Settings) -> Arc<Service> {
    let service = Service::open(settings, KEY_FILES, Arc::new(Zones::new())).unwrap();
    service.begin().unwrap();
    let _ = service.wait_until_loaded();
    service
}

impl Service {
    /// Adds members of catalogs, and loads them.
    fn add_zones(&self, list: Vec<ZoneSettings>) {
        self.load_added(&self.add_unloaded(list));
    }
}

impl Zones {
    /// Returns the state of the zone with this name.
    pub(crate) fn state(&self, apex: &Name) -> Option<Arc<ZoneState>> {
        self.database().find_exact(apex.view()).map(|entry| Arc::clone(&entry.state()))
    }
}

fn file_settings(dir: &Path) -> Settings {
    let zone = ZoneSettings::of_file(name("example."), dir.join("zone"));
    Settings { state_dir: Some(dir.join("state")), zones: vec![zone], load_jobs: 2, ..Settings::default() }
}

/// Returns settings of a zone from a file that all clients may transfer, so that it has a journal.
fn transferable_settings(dir: &Path) -> Settings {
    let mut settings = file_settings(dir);
    settings.zones[0].transfers.transfer = nonesuch_server::acl::AccessList::allow_all();
    settings
}

/// Ends a service. Waits until loading threads have released it.
fn end(service: Arc<Service>) {
    while Arc::strong_count(&service) > 1 {
        std::thread::yield_now();
    }
    drop(service);
}

/// Returns settings of a zone of primaries, whose versions are published as transfers do.
fn secondary_settings(dir: &Path) -> Settings {
    let mut settings = file_settings(dir);
    settings.zones[0].source = ZoneSource::Primaries;
    settings
}

fn serial(service: &Service) -> Option<u32> {
    let state = service.zones().state(&name("example."))?;
    state.serving().map(|zone| zone.serial())
}

/// Returns whether the served version is not stored, with an error of writing that satisfies `is`.
/// The status of the zone then contains this error.
fn is_unstored(service: &Service, is: impl Fn(&VersionError) -> bool) -> bool {
    let zone = service.zone(&name("example.")).unwrap();
    let runtime = lock(&zone.runtime);
    let error = runtime.unstored.as_ref().map(|unstored| &unstored.error);
    let (text, is_wanted) = (error.map(ToString::to_string), error.is_some_and(is));
    drop(runtime);
    is_wanted && service.zone_status(Some(&name("example.")))[0].storage_error == text
}

fn journal(service: &Service) -> Option<(u32, u32)> {
    let state = service.zones().state(&name("example."))?;
    state.serving()?.journal()?.serials()
}

/// Returns a combined signing key with this secret.
fn key_pair(zone: &Name, secret: u8) -> KeyPair {
    let scalar = data_encoding::BASE64.encode(&[secret; 32]);
    let text = format!("Private-key-format: v1.3\nAlgorithm: 15 (ED25519)\nPrivateKey: {scalar}\n");
    let private = nonesuch_crypto::PrivateKey::from_bind(&text).unwrap();
    KeyPair::new(zone.clone(), 257, private)
}

/// Returns a version signed by a key with this secret.
fn signed(serial: u32, secret: u8) -> Contents {
    signed_with(serial, &[secret], Mechanism::Nsec)
}

/// Returns a version signed by several keys.
fn signed_with(serial: u32, secrets: &[u8], mechanism: Mechanism) -> Contents {
    signed_by(&contents(serial), secrets, mechanism)
}

fn signed_by(contents: &Contents, secrets: &[u8], mechanism: Mechanism) -> Contents {
    // One time for all versions: signatures with two times would be two records if a test joins
    // versions.
    static NOW: LazyLock<u32> = LazyLock::new(|| seconds_now() as u32);
    let now = *NOW;
    signed_until(contents, secrets, mechanism, (now - 3600, now + 86_400))
}

/// Signs with a validity from `period.0` to `period.1`.
fn signed_until(contents: &Contents, secrets: &[u8], mechanism: Mechanism, period: (u32, u32)) -> Contents {
    use nonesuch_dnssec::{KeySet, SignOptions, sign};
    let pairs = secrets.iter().map(|secret| key_pair(&name("example."), *secret)).collect();
    let keys = KeySet::new(&name("example."), pairs).unwrap();
    let options = SignOptions::new(mechanism, period.0, period.1);
    sign(contents, &keys, &options).unwrap().into_contents()
}

#[test]
fn a_file_is_served_stored_and_reloaded() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    write(&file, &zone_text(1));
    let service = started(file_settings(dir.path()));
    assert_eq!(serial(&service), Some(1));
    assert!(!service.reload_zone(&name("example.")).unwrap(), "unchanged");
    write(&file, &zone_text(2));
    assert!(service.reload_zone(&name("example.")).unwrap());
    assert_eq!(serial(&service), Some(2));
    write(&file, "@ SOA nonsense");
    assert!(matches!(service.reload_zone(&name("example.")), Err(VersionError::Load(_))));
    assert_eq!(serial(&service), Some(2), "the previous version stays");
    let status = service.zone_status(Some(&name("example.")));
    assert!(status[0].error.as_deref().is_some_and(|error| error.contains("zone:1:")), "{status:?}");
    assert_eq!(service.status().troubled, ["example."]);
    end(service);
    // After a restart, the last published version is served.
    let service = started(file_settings(dir.path()));
    assert_eq!(serial(&service), Some(2));
    assert_eq!(service.status().serving, 1);
    assert!(matches!(service.reload_zone(&name("other.")), Err(VersionError::UnknownZone)));
}

#[test]
fn a_zone_without_a_version_fails_alone() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let mut settings = file_settings(dir.path());
    settings.zones.push(ZoneSettings::of_file(name("missing."), dir.path().join("nowhere")));
    let service = Service::open(settings, KEY_FILES, Arc::new(Zones::new())).unwrap();
    service.begin().unwrap();
    assert_eq!(service.wait_until_loaded(), StartupSummary { serving: 1, waiting: 0, failed: 1 });
    assert_eq!(service.zone_status(Some(&name("missing.")))[0].state, ServingState::Failed);
    let state = service.zones().state(&name("missing.")).unwrap();
    assert!(matches!(&*state, ZoneState::Failed(_)));
    // The zone is served as soon as its file exists.
    write(&dir.path().join("nowhere"), &zone_text(1).replace("example.", "missing."));
    assert!(service.reload_zone(&name("missing.")).unwrap());
    assert!(service.zones().state(&name("missing.")).unwrap().serving().is_some());
}

/// If the disk is full, a zone of primaries is still served: another transfer would not help.
#[test]
fn a_transferred_version_that_cannot_be_stored_is_served_from_memory() {
    let dir = tempfile::tempdir().unwrap();
    let service = started(secondary_settings(dir.path()));
    let apex = name("example.");
    service.publish(&apex, contents(6), &[]).unwrap();
    service.publish(&apex, contents(7), &[]).unwrap();
    assert_eq!(journal(&service), Some((6, 7)));
    let (zones, away) = (dir.path().join("state/zones"), dir.path().join("away"));
    fs::rename(&zones, &away).unwrap();
    assert_eq!(service.publish(&apex, contents(8), &[]).unwrap(), 8);
    assert_eq!(
        (serial(&service), journal(&service)),
        (Some(8), None),
        "no journal that leads to another version"
    );
    let error = || service.zone_status(Some(&apex))[0].storage_error.clone();
    assert!(is_unstored(&service, |error| matches!(error, VersionError::Store { .. })), "{:?}", error());
    assert_eq!(service.status().troubled, ["example."]);
    assert!(matches!(service.store(&apex), Err(VersionError::Store { .. })));
    // For all changes of the settings: the stored version is older.
    fs::rename(&away, &zones).unwrap();
    fs::rename(zones.join("example.kept"), zones.join("example.older")).unwrap();
    fs::create_dir(zones.join("example.kept")).unwrap();
    let mut settings = secondary_settings(dir.path());
    settings.zones[0].verify = VerifyChoice::Structural;
    assert_eq!(service.reload(settings).refused.len(), 1);
    assert_eq!((serial(&service), error().is_some()), (Some(8), true));
    fs::remove_dir(zones.join("example.kept")).unwrap();
    fs::rename(zones.join("example.older"), zones.join("example.kept")).unwrap();
    service.store(&apex).unwrap();
    assert_eq!(error(), None);
    // The journal contains no changes from versions that are not known to be stored.
    service.publish(&apex, contents(9), &[]).unwrap();
    assert_eq!(journal(&service), Some((8, 9)));
    end(service);
    assert_eq!(serial(&started(secondary_settings(dir.path()))), Some(9));
}

#[test]
fn a_file_that_cannot_be_stored_is_not_published() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(7));
    let service = started(file_settings(dir.path()));
    fs::remove_dir_all(dir.path().join("state/zones")).unwrap();
    write(&dir.path().join("zone"), &zone_text(8));
    assert!(matches!(service.reload_zone(&name("example.")), Err(VersionError::Store { .. })));
    assert_eq!(serial(&service), Some(7));
}

#[test]
fn errors_state_the_remedy() {
    let dir = tempfile::tempdir().unwrap();
    let (file, kept) = (dir.path().join("zone"), dir.path().join("state/zones/example.kept"));
    let service = started(file_settings(dir.path()));
    let refused = service.reload_zone(&name("example.")).unwrap_err().to_string();
    let missing = format!(
        "{}: cannot be read: No such file or directory (os error 2): correct the path",
        file.display()
    );
    assert_eq!(refused, missing);
    end(service);
    write(&file, &zone_text(1));
    fs::write(&kept, "precious").unwrap();
    let service = started(file_settings(dir.path()));
    let refused = service.reload_zone(&name("example.")).unwrap_err();
    assert!(refused.is_foreign_file(), "{refused:?}");
    let existing =
        "the server did not write the existing file and does not overwrite it; move it to another directory";
    assert_eq!(refused.to_string(), format!("{}: cannot be written: {existing}", kept.display()));
    for (kind, remedy) in [
        (io::ErrorKind::StorageFull, "free disk space"),
        (io::ErrorKind::PermissionDenied, "make the directory writable for the server's user"),
    ] {
        let error = VersionError::Store { path: kept.clone(), source: kind.into() };
        let expected = format!("{}: cannot be written: {}: {remedy}", kept.display(), io::Error::from(kind));
        assert_eq!(error.to_string(), expected);
    }
    let too_large = |source| VersionError::Store { path: kept.clone(), source }.to_string();
    let of_system = too_large(io::Error::from_raw_os_error(nix::errno::Errno::EFBIG as i32));
    assert!(of_system.contains("LimitFSIZE"), "{of_system}");
    let of_format = too_large(io::Error::new(io::ErrorKind::FileTooLarge, "too many names"));
    assert_eq!(of_format, format!("{}: cannot be written: too many names", kept.display()));
    // The expected directory of the VRF key of a zone with NSEC5.
    let mut settings = file_settings(dir.path()).zones.remove(0);
    let refused = settings.nsec5_directory().unwrap_err().to_string();
    let needed =
        |why: &str| format!("the zone has NSEC5, and {why}: set nsec5-keys to the directory of its VRF key");
    let directory = dir.path().join("nsec5");
    let reason = format!("the directory {} next to its file does not exist", directory.display());
    assert_eq!(refused, needed(&reason));
    settings.source = ZoneSource::Primaries;
    let refused = settings.nsec5_directory().unwrap_err().to_string();
    assert_eq!(refused, needed("it has no file, so there is no default directory"));
}

/// Even if the operator created the directory, only the server and its group may read its files.
#[test]
fn only_the_server_and_its_group_may_read_stored_files() {
    use std::os::unix::fs::PermissionsExt as _;
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let service = started(transferable_settings(dir.path()));
    write(&dir.path().join("zone"), &zone_text(2));
    service.reload_zone(&name("example.")).unwrap();
    let state = dir.path().join("state");
    let paths = |directory: &Path| -> Vec<PathBuf> {
        fs::read_dir(directory)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .filter(|path| path.is_file())
            .collect()
    };
    let files = [paths(&state), paths(&state.join("zones"))].concat();
    assert!(files.iter().any(|path| path.ends_with("example.journal")), "{files:?}");
    assert!(files.iter().any(|path| path.ends_with("lock")), "{files:?}");
    for path in files {
        let mode = fs::metadata(&path).unwrap().permissions().mode() & 0o777;
        assert_eq!(mode & 0o037, 0, "{}: {mode:o}", path.display());
    }
}

#[test]
fn a_reload_adds_removes_and_updates() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    write(&file, &zone_text(1));
    let service = started(file_settings(dir.path()));
    let mut events = service.subscribe();
    let mut settings = file_settings(dir.path());
    settings.zones[0].verify = VerifyChoice::Full;
    let report = service.reload(settings);
    assert_eq!((report.updated.as_slice(), report.unchanged), (&["example.".to_owned()][..], 0));
    assert!(matches!(events.try_recv(), Ok(ZoneEvent::Changed(_))));
    let report = service.reload(Settings::default());
    assert_eq!(report.removed, ["example."]);
    assert!(service.zones().state(&name("example.")).is_none());
    // A zone that was removed by mistake loses nothing: only a command removes stored files.
    let kept = dir.path().join("state/zones/example.kept");
    assert!(kept.exists());
    let report = service.reload(file_settings(dir.path()));
    assert_eq!(report.added, ["example."]);
    assert_eq!(serial(&service), Some(1));
    assert!(matches!(service.purge_zone(&name("example.")), Err(PurgeError::Served(_))));
    service.reload(Settings::default());
    service.purge_zone(&name("example.")).unwrap();
    assert!(!kept.exists());
    assert!(matches!(service.purge_zone(&name("example.")), Err(PurgeError::NotStored(_))));
}

#[test]
fn purge_removes_the_stored_files_of_zones_that_do_not_exist() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let mut settings = file_settings(dir.path());
    for zone in ["one.", "two."] {
        let zone = ZoneSettings {
            source: ZoneSource::Primaries,
            ..ZoneSettings::of_file(name(zone), PathBuf::new())
        };
        settings.zones.push(zone);
    }
    let service = started(settings);
    for zone in ["one.", "two."] {
        let text = zone_text(1).replace("example.", zone);
        let contents = read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
        service.publish(&name(zone), contents, &[]).unwrap();
    }
    assert!(service.purge_all().unwrap().is_empty());
    service.reload(file_settings(dir.path()));
    assert_eq!(service.purge_all().unwrap(), ["one", "two"]);
    assert!(service.purge_all().unwrap().is_empty());
    assert!(dir.path().join("state/zones/example.kept").exists());
    let stateless = started(Settings { state_dir: None, ..file_settings(dir.path()) });
    assert!(matches!(stateless.purge_all(), Err(PurgeError::NoState)));
}

#[test]
fn members_of_catalogs_remain_after_a_reload_and_do_not_replace_configured_zones() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let service = started(file_settings(dir.path()));
    let member = ZoneSettings {
        source: ZoneSource::Primaries,
        ..ZoneSettings::of_file(name("member."), PathBuf::new())
    };
    service.add_zones(vec![member.clone(), ZoneSettings { apex: name("example."), ..member }]);
    assert_eq!(serial(&service), Some(1), "configured zones stay as they are");
    service.reload(file_settings(dir.path()));
    assert!(service.zones().state(&name("member.")).is_some());
    assert_eq!(service.configured_zones(), [name("example.")]);
    service.remove_zones(&[name("example."), name("member.")], false);
    assert_eq!(service.all_settings().len(), 1);
}

#[test]
fn an_unsigned_version_is_rejected_if_dnssec_is_required() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let mut settings = file_settings(dir.path());
    settings.zones[0].requires_dnssec = true;
    let service = started(settings);
    assert!(matches!(service.reload_zone(&name("example.")), Err(VersionError::NotSigned)));
    assert_eq!(service.status().failed, 1);
}

/// Returns an image file of a zone that is large enough to be mapped.
fn image_of_many(serial: u32) -> Vec<u8> {
    let mut text = zone_text(serial);
    (0..8000).for_each(|number| text.push_str(&format!("n{number} 60 A 192.0.2.1\n")));
    let contents = read::read_text(text.as_bytes(), Path::new("zone"), None).unwrap().contents;
    let image = nonesuch_zone::Image::compile(&contents).unwrap();
    let (at, mut octets) = (nonesuch_zone::Verification::Full { at: 7 }, Vec::new());
    nonesuch_zone::image::file::write(&image, at, &contents, at, &mut octets).unwrap();
    octets
}

#[test]
fn a_compiled_zone_may_be_overwritten_in_place() {
    let dir = tempfile::tempdir().unwrap();
    let file = dir.path().join("zone");
    fs::write(&file, image_of_many(1)).unwrap();
    let settings = transferable_settings(dir.path());
    let service = started(settings.clone());
    assert_eq!(serial(&service), Some(1));
    let kept = dir.path().join("state/zones/example.kept");
    let maps = fs::read_to_string("/proc/self/maps").unwrap();
    let is_mapped = |path: &Path| maps.lines().any(|line| line.ends_with(&path.display().to_string()));
    assert!(is_mapped(&kept) && !is_mapped(&file), "{maps}");
    // An incomplete copy is rejected, and neither served nor stored.
    let next = image_of_many(2);
    fs::write(&file, &next[..next.len() - 100]).unwrap();
    let refused = service.reload_zone(&name("example."));
    assert!(matches!(refused, Err(VersionError::Image(_))), "{refused:?}");
    let state = service.zones().state(&name("example.")).unwrap();
    assert_eq!(state.serving().unwrap().published().image().apex_rdatas(Rtype::NS).len(), 1);
    fs::write(&file, &next).unwrap();
    assert!(service.reload_zone(&name("example.")).unwrap());
    assert_eq!((serial(&service), journal(&service)), (Some(2), Some((1, 2))));
    end(service);
    let service = started(settings);
    assert_eq!(serial(&service), Some(2));
}

#[test]
fn a_state_directory_has_one_service() {
    let dir = tempfile::tempdir().unwrap();
    write(&dir.path().join("zone"), &zone_text(1));
    let service = started(file_settings(dir.path()));
    let second = Service::open(file_settings(dir.path()), KEY_FILES, Arc::new(Zones::new()));
    assert!(matches!(second, Err(StateError::Locked { .. })));
    drop(service);
}
