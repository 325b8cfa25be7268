//! Loads zones: from their files if these have changed, otherwise from the stored version.

use super::activity::{Activity, ActivityKind, lock};
use super::preloaded::{PreloadedContents, PreloadedZone};
use super::publish::Candidate;
use super::settings::{OnlineSigning, SigningMode, ZoneSettings, ZoneSource};
use super::state::Fingerprint;
use super::state::Membership;
use super::zone::{LoadOutcome, Zone};
use super::{Service, VersionError, ZoneEvent};
use crate::zones::ServedZone;
use nonesuch_net::release_free_memory;
use nonesuch_zone::load_regular;
use std::path::Path;
use std::sync::Arc;

/// Minimum size of an image, in bytes, for which memory freed by loading is returned to the system
/// immediately.
const LARGE_IMAGE_BYTES: usize = 64 << 20;
/// Maximum number of attempts to read a file that changes while it is read.
const MAX_READ_ATTEMPTS: usize = 3;
/// Maximum number of logged warnings for one file.
const MAX_WARNINGS_PER_FILE: usize = 10;

impl Service {
    /// Loads a zone for the first time: from its file, otherwise from the stored version.
    pub(super) fn load_first(&self, zone: &Arc<Zone>) {
        let _lock = self.lock_zone(zone);
        if !self.contains(zone) {
            return;
        }
        if let Some(state) = self.state_directory.as_ref().filter(|_| !zone.is_member()) {
            Membership::remove(state, zone.apex());
        }
        self.send_event(&ZoneEvent::Added(zone.settings()));
        let activity = self.activities.begin(ActivityKind::Load, Some(zone.apex.to_string()));
        self.note_key_event(zone);
        let loaded = self.load_version(zone, None, false, &activity);
        if loaded.is_err() && lock(&zone.runtime).served.is_none() {
            self.serve_stored(zone, &activity);
        }
        self.record_result(zone, loaded.as_ref().err());
        if loaded.is_ok_and(|outcome| outcome == LoadOutcome::Waiting) {
            self.send_event(&ZoneEvent::NotLoaded { apex: zone.apex.clone() });
        }
        let is_large = |served: &Arc<ServedZone>| served.published().image().octets() >= LARGE_IMAGE_BYTES;
        if lock(&zone.runtime).served.as_ref().is_some_and(is_large) {
            release_free_memory();
        }
    }

    /// Loads zones for the first time, several concurrently.
    pub(super) fn load_all(&self, zones: &[Arc<Zone>]) {
        self.for_each_zone(zones, |zone| self.load_first(zone));
        if !zones.is_empty() {
            release_free_memory();
        }
    }

    /// Publishes the current version of a zone if it has changed. `preloaded` is the file if it was
    /// just read. With `is_forced`, publishes an unchanged version too.
    pub(super) fn load_version(
        &self,
        zone: &Zone,
        preloaded: Option<PreloadedZone>,
        is_forced: bool,
        activity: &Activity,
    ) -> Result<LoadOutcome, VersionError> {
        let settings = zone.settings();
        match (&settings.source, preloaded) {
            (ZoneSource::File(path), preloaded) => self.load_file(zone, path, preloaded, is_forced, activity),
            (
                ZoneSource::Stream(_),
                Some(PreloadedZone { contents: PreloadedContents::Zone(loaded), .. }),
            ) => {
                let candidate =
                    Candidate { recorded: loaded.verification, ..Candidate::new(loaded.contents) };
                self.publish_contents(zone, candidate, activity)?;
                Ok(LoadOutcome::Published)
            }
            (ZoneSource::Stream(name), _) => Err(VersionError::StreamAlreadyRead(name.clone())),
            (ZoneSource::Primaries | ZoneSource::Producer, _) => {
                let was_served = lock(&zone.runtime).served.is_some();
                // If the served version is not stored, the stored one is older and must not replace
                // it.
                match self.store_version(zone) {
                    Err(error) if is_forced => return Err(error),
                    Ok(()) | Err(_) => {}
                }
                let is_restored = (!was_served || is_forced) && self.serve_stored(zone, activity);
                Ok(match (is_restored, was_served) {
                    (true, _) => LoadOutcome::Published,
                    (false, true) => LoadOutcome::Unchanged,
                    (false, false) => LoadOutcome::Waiting,
                })
            }
        }
    }

    fn load_file(
        &self,
        zone: &Zone,
        path: &Path,
        preloaded: Option<PreloadedZone>,
        is_forced: bool,
        activity: &Activity,
    ) -> Result<LoadOutcome, VersionError> {
        let settings = zone.settings();
        let mut origin = fingerprints(path, &settings)?;
        let runtime = lock(&zone.runtime);
        let (is_same, is_unstored) = (runtime.origin == origin, runtime.unstored.is_some());
        drop(runtime);
        // A version that could not be stored is loaded again, because space may be available now.
        if is_same && !is_forced && !is_unstored {
            return Ok(LoadOutcome::Unchanged);
        }
        if self.state_directory.as_ref().is_some_and(|state| state.was_read_from(&zone.apex, &origin))
            && self.serve_stored_with_origin(zone, &settings, &origin, activity)
        {
            return Ok(LoadOutcome::Published);
        }
        // If the file has changed since then, it is read again.
        let mut preloaded = preloaded.filter(|preloaded| preloaded.fingerprint.as_ref() == origin.first());
        for _ in 0..MAX_READ_ATTEMPTS {
            activity.begin_phase("read");
            let (version, mut loaded) = match preloaded.take().map(|preloaded| preloaded.contents) {
                Some(PreloadedContents::Image(file)) => {
                    (self.read_image(zone, *file, path, &settings, &origin)?, None)
                }
                Some(PreloadedContents::Zone(loaded)) => (None, Some(loaded)),
                None => match self.copy_image(zone, path, &settings, &origin) {
                    // If there is no space for a copy, the file is read into memory.
                    Err(error @ VersionError::Store { .. })
                        if self.has_nothing_stored(zone) && !error.is_foreign_file() =>
                    {
                        (None, None)
                    }
                    copied => (copied?, None),
                },
            };
            if let Some(version) = version {
                let after = fingerprints(path, &settings)?;
                if after == origin {
                    self.note_origin(zone, &origin)?;
                    self.serve_version(zone, version);
                    return Ok(LoadOutcome::Published);
                }
                origin = after;
                continue;
            }
            let was_preloaded = loaded.is_some();
            let loaded = loaded.take().map_or_else(|| load_regular(path, Some(&zone.apex)), Ok)?;
            let after = fingerprints(path, &settings)?;
            if after == origin {
                for warning in loaded.warnings.iter().filter(|_| !was_preloaded).take(MAX_WARNINGS_PER_FILE) {
                    let name = zone.apex.to_string();
                    tracing::warn!(name: "zone-warning", zone = name, "{}: {warning}", path.display());
                }
                let file_warnings = loaded
                    .warnings
                    .iter()
                    .take(MAX_WARNINGS_PER_FILE)
                    .map(|warning| format!("{}: {warning}", path.display()));
                let file_warnings: Vec<String> = file_warnings.collect();
                let recorded = loaded.verification;
                let candidate = Candidate { recorded, origin, ..Candidate::new(loaded.contents) };
                self.publish_contents(zone, candidate, activity)?;
                lock(&zone.runtime).warnings.extend(file_warnings);
                return Ok(LoadOutcome::Published);
            }
            origin = after;
        }
        Err(VersionError::ChangedWhileRead(path.to_path_buf()))
    }
}

/// Returns fingerprints of the files of a zone: the zone file and the key directory.
fn fingerprints(path: &Path, settings: &ZoneSettings) -> Result<Vec<Fingerprint>, VersionError> {
    let key_directory = match &settings.signing_mode {
        SigningMode::Online(OnlineSigning { key_directory, .. }) | SigningMode::Nsec5 { key_directory } => {
            Some(key_directory.as_path())
        }
        SigningMode::AsLoaded => None,
    };
    let paths = [path].into_iter().chain(key_directory);
    paths
        .map(|path| {
            Fingerprint::of(path).map_err(|source| VersionError::Read { path: path.to_path_buf(), source })
        })
        .collect()
}
