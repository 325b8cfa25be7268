//! One zone of a service: loading it, publishing its versions, what is known of it.

use super::activity::{Activity, ActivityKind, lock};
use super::build::{Before, Builder, Built};
use super::settings::{Making, Source, VerifyChoice, ZoneSettings};
use super::state::{Fingerprint, JOURNAL, ZONE};
use super::status::{ZoneStanding, ZoneStatus};
use super::{Refused, Service, StateFolder, ZoneEvent};
use crate::Published;
use crate::seconds_now;
use crate::zones::{ServedZone, ZonePolicy, ZoneState};
use nonesuch_dnssec::facts::{Expiry, ExpiryWatch};
use nonesuch_dnssec::verify::Mode;
use nonesuch_net::{Map, release_free_memory};
use nonesuch_proto::{Name, serial};
use nonesuch_zone::image::file::{self, PAGE, contents_range, is_image};
use nonesuch_zone::{ChangeSet, Contents, ImageFile, Journal, Verification, compiled, load};
use std::fs::File;
use std::io::Read as _;
use std::path::Path;
use std::sync::{Arc, Mutex};

/// Times that a file is read again which changes meanwhile.
const ATTEMPTS: usize = 3;

/// A zone.
#[derive(Debug)]
pub(super) struct Zone {
    apex: Name,
    /// Whether it was added while the service runs: it is not in the configuration.
    is_member: bool,
    /// Held by whoever makes a version of it.
    work: Mutex<()>,
    settings: Mutex<Arc<ZoneSettings>>,
    facts: Mutex<Facts>,
}

/// What is known of a zone.
#[derive(Debug, Default)]
struct Facts {
    served: Option<Arc<ServedZone>>,
    is_expired: bool,
    has_failed: bool,
    error: Option<String>,
    words: String,
    verified: String,
    records: Option<u64>,
    loaded_at: u64,
    /// Those of the files that the version was read from.
    origin: Vec<Fingerprint>,
    contents: Option<Arc<Contents>>,
    /// When all signatures of it were verified; `None` where they were not.
    verified_at: Option<u32>,
    journal: Option<Arc<Journal>>,
    /// Says of the expiration of signatures what was not said yet.
    expiry: ExpiryWatch,
}

/// What became of a zone that was looked at for a new version.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    Published,
    Unchanged,
    /// There is nothing to load it from: it is transferred or made.
    Waiting,
}

impl Zone {
    pub(super) fn new(settings: ZoneSettings) -> Self {
        let apex = settings.apex.clone();
        let (work, facts) = Default::default();
        Self { apex, is_member: false, work, settings: Mutex::new(Arc::new(settings)), facts }
    }

    pub(super) fn member(settings: ZoneSettings) -> Self {
        Self { is_member: true, ..Self::new(settings) }
    }

    pub(super) const fn apex(&self) -> &Name {
        &self.apex
    }

    pub(super) const fn is_member(&self) -> bool {
        self.is_member
    }

    pub(super) const fn work(&self) -> &Mutex<()> {
        &self.work
    }

    pub(super) fn settings(&self) -> Arc<ZoneSettings> {
        Arc::clone(&lock(&self.settings))
    }

    /// Takes other settings; tells whether they are others.
    pub(super) fn set_settings(&self, settings: ZoneSettings) -> bool {
        let mut current = lock(&self.settings);
        let differs = **current != settings;
        if differs {
            *current = Arc::new(settings);
        }
        differs
    }

    pub(super) fn policy(&self) -> Arc<ZonePolicy> {
        Arc::new(self.settings().policy())
    }

    pub(super) fn contents(&self) -> Option<Arc<Contents>> {
        lock(&self.facts).contents.clone()
    }

    pub(super) fn standing(&self) -> ZoneStanding {
        lock(&self.facts).standing()
    }

    /// Lets go of the files of the zone.
    pub(super) fn close(&self) {
        *lock(&self.facts) = Facts::default();
    }

    /// Notes whether the zone has expired; returns the state that it has then.
    pub(super) fn set_expired(&self, is_expired: bool) -> ZoneState {
        let policy = self.policy();
        let mut facts = lock(&self.facts);
        facts.is_expired = is_expired;
        match &facts.served {
            _ if is_expired => ZoneState::Expired(policy),
            Some(served) => ZoneState::Serving(Arc::clone(served)),
            None => ZoneState::NotReady(policy),
        }
    }

    /// What there is to say of the expiration of the zone's signatures.
    pub(super) fn look_at_expiry(&self, now: u32) -> Option<Expiry> {
        let mut facts = lock(&self.facts);
        let period = facts.served.as_ref()?.published().image().period()?;
        facts.expiry.look(period, now)
    }

    pub(super) fn status(&self, now: u32) -> ZoneStatus {
        let settings = self.settings();
        let facts = lock(&self.facts);
        let image = facts.served.as_ref().map(|served| served.published().image());
        let period = image.and_then(|image| image.period());
        let expires_soon = period.is_some_and(|period| !Expiry::of(period, now).is_far());
        ZoneStatus {
            zone: self.apex.to_string(),
            state: facts.standing(),
            serial: image.map(|image| image.serial()),
            served: image.map(|_| facts.words.clone()),
            source: source_words(&settings),
            records: facts.records,
            signatures: image.map_or(0, |image| image.signatures()),
            verified: image.map(|_| facts.verified.clone()),
            nearest_expiration: period.map(|period| period.expiration),
            expires_soon,
            loaded_at: image.map(|_| facts.loaded_at),
            image_octets: image.map_or(0, |image| image.octets()),
            error: facts.error.clone(),
        }
    }
}

impl Facts {
    const fn standing(&self) -> ZoneStanding {
        if self.is_expired {
            ZoneStanding::Expired
        } else if self.served.is_some() {
            ZoneStanding::Serving
        } else if self.has_failed {
            ZoneStanding::Failed
        } else {
            ZoneStanding::NotReady
        }
    }
}

fn source_words(settings: &ZoneSettings) -> String {
    match &settings.source {
        Source::File(path) => path.display().to_string(),
        Source::Primaries => {
            let primaries: Vec<String> =
                settings.transfers.primaries.iter().map(|remote| remote.address.to_string()).collect();
            format!("from {}", primaries.join(", "))
        }
        Source::Producer => "catalog of this server".to_owned(),
    }
}

/// A version of a zone on its way to being served.
struct Version {
    published: Published,
    contents: Option<Arc<Contents>>,
    records: Option<u64>,
    verified: String,
    verified_at: Option<u32>,
    origin: Vec<Fingerprint>,
}

impl Service {
    /// Loads a zone when it comes up: its file, else what was published last.
    pub(super) fn load_first(&self, zone: &Arc<Zone>) {
        let _one = lock(zone.work());
        self.tell(&ZoneEvent::Added(zone.settings()));
        let activity = self.activities.begin(ActivityKind::Load, Some(zone.apex.to_string()));
        let loaded = self.load_version(zone, false, &activity);
        self.note(zone, loaded.as_ref().err());
        if loaded.is_err() && lock(&zone.facts).served.is_none() {
            self.serve_kept(zone, &activity);
        }
        if loaded.is_ok_and(|update| update == Update::Waiting) {
            self.tell(&ZoneEvent::NotLoaded { apex: zone.apex.clone() });
        }
        release_free_memory();
    }

    /// Looks whether there is another version of a zone, and publishes it. `is_forced`: even where it is the same one.
    pub(super) fn load_version(
        &self,
        zone: &Zone,
        is_forced: bool,
        activity: &Activity,
    ) -> Result<Update, Refused> {
        let settings = zone.settings();
        let Source::File(path) = &settings.source else {
            let is_there = lock(&zone.facts).served.is_some();
            let is_kept = (!is_there || is_forced) && self.serve_kept(zone, activity);
            return Ok(match (is_kept, is_there) {
                (true, _) => Update::Published,
                (false, true) => Update::Unchanged,
                (false, false) => Update::Waiting,
            });
        };
        let mut origin = fingerprints(path, &settings)?;
        let is_same = lock(&zone.facts).origin == origin;
        if is_same && !is_forced {
            return Ok(Update::Unchanged);
        }
        if self.state.as_ref().is_some_and(|state| state.is_of(&zone.apex, &origin))
            && self.serve_kept_as(zone, &settings, &origin, activity)
        {
            return Ok(Update::Published);
        }
        for _ in 0..ATTEMPTS {
            activity.phase("read");
            if let Some(version) = self.map_file(path, &settings, &origin)? {
                self.keep_copy(zone, path, &origin)?;
                let after = fingerprints(path, &settings)?;
                if after == origin {
                    self.serve(zone, version);
                    return Ok(Update::Published);
                }
                origin = after;
                continue;
            }
            let loaded = load(path, Some(&zone.apex))?;
            let after = fingerprints(path, &settings)?;
            if after == origin {
                for warning in loaded.warnings.iter().take(10) {
                    let name = zone.apex.to_string();
                    tracing::warn!(zone = name, "{}: {warning}", path.display());
                }
                self.publish_contents(zone, loaded.contents, loaded.verification, None, origin, activity)?;
                return Ok(Update::Published);
            }
            origin = after;
        }
        Err(Refused::Moving(path.clone()))
    }

    /// Verifies, compiles, keeps and serves `contents`; returns their serial.
    pub(super) fn publish_contents(
        &self,
        zone: &Zone,
        contents: Contents,
        recorded: Option<Verification>,
        change: Option<ChangeSet>,
        origin: Vec<Fingerprint>,
        activity: &Activity,
    ) -> Result<u32, Refused> {
        let settings = zone.settings();
        let (held, verified_at) = self.last_version(zone, &settings);
        let before = held.as_deref().zip(verified_at);
        let before = before.map(|(contents, at)| Before { contents, verified_at: Some(at) });
        let builder = Builder { settings: &settings, key_files: &self.key_files, activity, now: self.now() };
        let built = builder.build(contents, recorded, before.as_ref())?;
        warn_of_serial(zone, held.as_deref(), &built);
        activity.phase("keep");
        self.keep(zone, &settings, &built, &origin)?;
        self.add_to_journal(zone, &settings, held.as_deref(), &built.contents, change);
        drop(held);
        let serial = built.published.image().serial();
        let verified_at = match built.of_contents {
            Verification::Full { at } => Some(at),
            Verification::Nothing | Verification::Structural { .. } => None,
        };
        let records = Some(built.contents.record_count());
        let contents = settings.keeps_contents().then(|| Arc::new(built.contents));
        let version = Version {
            published: built.published,
            contents,
            records,
            verified: built.verified,
            verified_at,
            origin,
        };
        self.serve(zone, version);
        Ok(serial)
    }

    /// The version that was published last, where it is of use for the next one: what has not changed need not be verified
    /// again, and what has goes into the journal. With it, when its signatures were verified.
    fn last_version(&self, zone: &Zone, settings: &ZoneSettings) -> (Option<Arc<Contents>>, Option<u32>) {
        let facts = lock(&zone.facts);
        if facts.contents.is_some() {
            return (facts.contents.clone(), facts.verified_at);
        }
        let many =
            facts.served.as_ref().is_none_or(|served| served.published().image().signatures() > super::FULL);
        drop(facts);
        let for_verifying = match settings.verify {
            VerifyChoice::Changed => true,
            VerifyChoice::Auto => many,
            VerifyChoice::Full | VerifyChoice::Structural => false,
        };
        let kept = self.state.as_ref().filter(|_| for_verifying || settings.keeps_contents());
        // What was kept is of use, and no more: where it cannot be read, more is verified.
        let Some(loaded) = kept.and_then(|state| load(&state.path(&zone.apex, ZONE), Some(&zone.apex)).ok())
        else {
            return (None, None);
        };
        let verified_at = match loaded.verification {
            Some(Verification::Full { at }) => Some(at),
            _ => None,
        };
        (Some(Arc::new(loaded.contents)), verified_at)
    }

    /// Writes a version into the state folder.
    fn keep(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        built: &Built,
        origin: &[Fingerprint],
    ) -> Result<(), Refused> {
        let Some(state) = &self.state else { return Ok(()) };
        let failed = |source| Refused::Keep { path: state.path(&zone.apex, ZONE), source };
        let written = state.write(&zone.apex, ZONE, |mut out| {
            let image = built.published.image();
            if settings.making == Making::AsItIs && image.nsec5_key().is_none() {
                file::write(image, built.of_image, (&built.contents, built.of_contents), &mut out)
            } else {
                compiled::write(&built.contents, built.of_contents, &mut out)
            }
        });
        written.map_err(failed)?;
        if !origin.is_empty() {
            state.write_origin(&zone.apex, origin).map_err(failed)?;
        }
        Ok(())
    }

    /// Copies a file that is served as it is into the state folder.
    fn keep_copy(&self, zone: &Zone, path: &Path, origin: &[Fingerprint]) -> Result<(), Refused> {
        let Some(state) = &self.state else { return Ok(()) };
        let failed = |source| Refused::Keep { path: state.path(&zone.apex, ZONE), source };
        let copy = |out: &mut std::io::BufWriter<&File>| std::io::copy(&mut File::open(path)?, out).map(drop);
        state.write(&zone.apex, ZONE, copy).map_err(failed)?;
        state.write_origin(&zone.apex, origin).map_err(failed)
    }

    /// Notes what differs from the version of before in the journal that incremental transfers are made of. A journal that
    /// cannot be written makes transfers larger, and nothing else.
    fn add_to_journal(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        before: Option<&Contents>,
        contents: &Contents,
        change: Option<ChangeSet>,
    ) {
        let Some(journal) = self.journal(zone, settings) else { return };
        let serials = before.and_then(Contents::soa).zip(contents.soa());
        let follows = serials.is_some_and(|(old, new)| serial::is_before(old.serial, new.serial));
        let appended = match (before, follows) {
            (Some(before), true) => {
                let change = change.unwrap_or_else(|| ChangeSet::between(before, contents, |_| true));
                journal.append(&change).map(drop)
            }
            _ => journal.clear(),
        };
        if let Err(error) = appended {
            let name = zone.apex.to_string();
            tracing::warn!(zone = name, %error, "zone {name}: no incremental transfers of this change: {error}");
        }
    }

    /// The journal of a zone that is transferred.
    fn journal(&self, zone: &Zone, settings: &ZoneSettings) -> Option<Arc<Journal>> {
        let state = self.state.as_ref()?;
        let is_wanted = settings.keeps_contents()
            && settings.transfers.journal_octets > 0
            && !matches!(settings.making, Making::Online { .. });
        let mut facts = lock(&zone.facts);
        if is_wanted && facts.journal.is_none() {
            let path = state.path(&zone.apex, JOURNAL);
            facts.journal = open_journal(&path, &zone.apex, settings.transfers.journal_octets).map(Arc::new);
        } else if !is_wanted {
            facts.journal = None;
        }
        facts.journal.clone()
    }

    /// Serves what the state folder has of a zone; tells whether it does.
    fn serve_kept(&self, zone: &Zone, activity: &Activity) -> bool {
        let settings = zone.settings();
        let is_served = self.serve_kept_as(zone, &settings, &[], activity);
        if is_served && matches!(settings.source, Source::File(_)) {
            let name = zone.apex.to_string();
            tracing::warn!(zone = name, "zone {name}: served as it was published last, out of state-dir");
        }
        is_served
    }

    fn serve_kept_as(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        origin: &[Fingerprint],
        activity: &Activity,
    ) -> bool {
        let Some(path) = self.state.as_ref().map(|state: &StateFolder| state.path(&zone.apex, ZONE)) else {
            return false;
        };
        if !path.exists() {
            return false;
        }
        activity.phase("read");
        let version = match self.map_file(&path, settings, origin) {
            Ok(Some(version)) => Ok(version),
            _ => self.build_kept(zone, settings, &path, origin, activity),
        };
        match version {
            Ok(version) => {
                self.serve(zone, version);
                true
            }
            Err(error) => {
                let name = zone.apex.to_string();
                tracing::warn!(zone = name, %error, "{}: cannot be served: {error}", path.display());
                false
            }
        }
    }

    fn build_kept(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        path: &Path,
        origin: &[Fingerprint],
        activity: &Activity,
    ) -> Result<Version, Refused> {
        let loaded = load(path, Some(&zone.apex))?;
        let builder = Builder { settings, key_files: &self.key_files, activity, now: self.now() };
        let built = builder.build(loaded.contents, loaded.verification, None)?;
        let verified_at = match built.of_contents {
            Verification::Full { at } => Some(at),
            Verification::Nothing | Verification::Structural { .. } => None,
        };
        let records = Some(built.contents.record_count());
        let contents = settings.keeps_contents().then(|| Arc::new(built.contents));
        let origin = origin.to_vec();
        Ok(Version {
            published: built.published,
            contents,
            records,
            verified: built.verified,
            verified_at,
            origin,
        })
    }

    /// The image that the file at `path` begins with, where it may be served without verifying the zone.
    fn map_file(
        &self,
        path: &Path,
        settings: &ZoneSettings,
        origin: &[Fingerprint],
    ) -> Result<Option<Version>, Refused> {
        // Who asks for all signatures to be verified does not rely on what a file says.
        if settings.making != Making::AsItIs || settings.verify == VerifyChoice::Full {
            return Ok(None);
        }
        let unreadable = |source| Refused::Read { path: path.to_path_buf(), source };
        let Some(page) = read_page(path).map_err(unreadable)? else { return Ok(None) };
        let unusable = |source| nonesuch_zone::LoadError::Image { path: path.to_path_buf(), source };
        let range = contents_range(&page).map_err(unusable)?;
        let map = Map::open(path, usize::try_from(range.start).unwrap_or(usize::MAX)).map_err(unreadable)?;
        let file = ImageFile::open(map).map_err(unusable)?;
        let mode = if settings.verify == VerifyChoice::Structural { Mode::Structural } else { Mode::Full };
        let (recorded, signatures) = (file.record().verification, file.signatures());
        if file.image().apex() != settings.apex.view() || file.image().nsec5_key().is_some() {
            return Ok(None);
        }
        let Ok(published) = Published::from_file(file, mode, self.now()) else { return Ok(None) };
        let contents = if settings.keeps_contents() {
            Some(Arc::new(load(path, Some(&settings.apex))?.contents))
        } else {
            None
        };
        let verified_at = match recorded {
            Verification::Full { at } if signatures > 0 => Some(at),
            _ => None,
        };
        let records = contents.as_ref().map(|contents| contents.record_count());
        let verified = "when its image was made".to_owned();
        Ok(Some(Version { published, contents, records, verified, verified_at, origin: origin.to_vec() }))
    }

    /// Swaps a version in.
    fn serve(&self, zone: &Zone, version: Version) {
        let settings = zone.settings();
        let journal = self.journal(zone, &settings);
        let words = version.published.way();
        let serial = version.published.image().serial();
        let mut served = ServedZone::new(version.published, zone.policy());
        if let Some(contents) = &version.contents {
            served = served.with_contents(Arc::clone(contents));
        }
        if let Some(journal) = journal {
            served = served.with_journal(journal);
        }
        let served = Arc::new(served);
        let mut facts = lock(&zone.facts);
        facts.served = Some(Arc::clone(&served));
        facts.has_failed = false;
        facts.is_expired = false;
        facts.words = words;
        facts.verified = version.verified;
        facts.records = version.records;
        facts.loaded_at = seconds_now();
        facts.origin = version.origin;
        facts.contents = version.contents;
        facts.verified_at = version.verified_at;
        let (name, words, verified) = (zone.apex.to_string(), facts.words.clone(), facts.verified.clone());
        drop(facts);
        self.zones.set(&zone.apex, ZoneState::Serving(served));
        tracing::info!(zone = name, serial, "zone {name}: serial {serial}, {words}; verified: {verified}");
        self.tell(&ZoneEvent::Published { apex: zone.apex.clone(), serial });
    }

    /// Notes why the newest version of a zone is refused, or that it is not.
    pub(super) fn note(&self, zone: &Zone, refused: Option<&Refused>) {
        let mut facts = lock(&zone.facts);
        facts.error = refused.map(ToString::to_string);
        facts.has_failed = refused.is_some() && facts.served.is_none();
        let is_served = facts.served.is_some();
        drop(facts);
        if let Some(error) = refused {
            let name = zone.apex.to_string();
            let rest = if is_served { "the version of before stays" } else { "it is not served" };
            tracing::error!(zone = name, %error, "zone {name}: refused, {rest}: {error}");
        }
    }
}

fn open_journal(path: &Path, apex: &Name, most: u64) -> Option<Journal> {
    let zone = apex.to_string();
    let opened = Journal::open(path, apex, most).map(|(journal, _)| journal);
    let opened = opened.or_else(|error| {
        tracing::warn!(zone, %error, "{}: {error}; a new one takes its place", path.display());
        Journal::replace(path, apex, most)
    });
    opened
        .map_err(|error| tracing::warn!(zone, %error, "zone {zone}: no incremental transfers: {error}"))
        .ok()
}

/// What tells that the files of a zone are those that they were.
fn fingerprints(path: &Path, settings: &ZoneSettings) -> Result<Vec<Fingerprint>, Refused> {
    let keys = match &settings.making {
        Making::Online { keys, .. } | Making::Nsec5 { keys } => Some(keys.as_path()),
        Making::AsItIs => None,
    };
    let paths = [path].into_iter().chain(keys);
    paths
        .map(|path| {
            Fingerprint::of(path).map_err(|source| Refused::Read { path: path.to_path_buf(), source })
        })
        .collect()
}

/// The first page of a regular file that begins as an image does.
fn read_page(path: &Path) -> std::io::Result<Option<Vec<u8>>> {
    let mut page = Vec::with_capacity(PAGE);
    File::open(path)?.take(PAGE as u64).read_to_end(&mut page)?;
    Ok(is_image(&page).then_some(page))
}

/// Secondaries take no version whose serial is not after theirs (RFC 1982, RFC 1996).
fn warn_of_serial(zone: &Zone, before: Option<&Contents>, built: &Built) {
    let (Some(old), Some(new)) = (before.and_then(Contents::soa), built.contents.soa()) else { return };
    if !serial::is_before(old.serial, new.serial) && old.serial != new.serial {
        let name = zone.apex.to_string();
        tracing::warn!(
            zone = name,
            "zone {name}: serial {} is not after {}: secondaries will not take this version; raise the serial",
            new.serial,
            old.serial
        );
    }
}
