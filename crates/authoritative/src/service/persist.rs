//! Stores versions in the state directory: the image, followed by the records. After a restart, the
//! server maps the image.

use super::activity::{Activity, lock};
use super::build::{BuildMetadata, BuiltVersion};
use super::compare::{self, SerialChange, VersionSummary};
use super::image_inputs::ImageInputs;
use super::images::ImageReader;
use super::publish::Version;
use super::settings::{VerifyChoice, ZoneSettings, ZoneSource};
use super::state::{Fingerprint, STATE_SUFFIX, ZONE_SUFFIX};
use super::zone::Zone;
use super::{Service, VersionError};
use crate::image_file::begins_as_image;
use crate::open_image;
use nonesuch_proto::Name;
use nonesuch_zone::image::file;
use nonesuch_zone::{Contents, ImageFile, Verification, load_regular, open_regular};
use std::fs::File;
use std::path::Path;

impl Service {
    /// Writes a version to the state directory, if there is one. `origin` contains the fingerprints
    /// of the files that the version was read from.
    pub(super) fn persist(
        &self,
        zone: &Zone,
        built: &BuiltVersion,
        origin: &[Fingerprint],
    ) -> Result<(), VersionError> {
        let Some(contents) = built.contents.as_ref() else { return Ok(()) };
        self.write_version(zone, built.published.image(), contents, &built.metadata, origin)
    }

    /// Writes the image and the records of a version, and notes their metadata.
    fn write_version(
        &self,
        zone: &Zone,
        image: &nonesuch_zone::Image,
        contents: &Contents,
        metadata: &BuildMetadata,
        origin: &[Fingerprint],
    ) -> Result<(), VersionError> {
        let Some(state) = &self.state_directory else { return Ok(()) };
        let failed = |source| VersionError::Store { path: state.path(&zone.apex, ZONE_SUFFIX), source };
        let written = state.write(&zone.apex, ZONE_SUFFIX, |mut out| {
            file::write(image, metadata.of_image, contents, metadata.of_contents, &mut out)
        });
        written.map_err(failed)?;
        if metadata.inputs.is_none() && origin.is_empty() {
            return Ok(());
        }
        let noted = state.note_image(&zone.apex, |image_state| {
            image_state.inputs.clone_from(&metadata.inputs);
            image_state.origin = origin.to_vec();
        });
        noted.map_err(failed)
    }

    /// Stores the version of a zone that is served only from memory, because storing it failed at
    /// publication. Waits for a publication of the zone in progress.
    ///
    /// # Errors
    /// Returns an error if writing fails; the version is still served from memory.
    pub fn store(&self, apex: &Name) -> Result<(), VersionError> {
        let Some(zone) = self.zone(apex).filter(|zone| lock(&zone.runtime).unstored.is_some()) else {
            return Ok(());
        };
        let _lock = self.lock_zone(&zone);
        self.store_version(&zone)
    }

    /// Stores the version as [`store`](Self::store) does. The caller holds the zone's
    /// [`ZoneLockGuard`](super::zone_lock::ZoneLockGuard).
    pub(super) fn store_version(&self, zone: &Zone) -> Result<(), VersionError> {
        let runtime = lock(&zone.runtime);
        let unstored = runtime.unstored.as_ref().map(|unstored| unstored.metadata.clone());
        let (served, contents) = (runtime.served.clone(), runtime.contents.clone());
        drop(runtime);
        let Some(((metadata, served), contents)) = unstored.zip(served).zip(contents) else { return Ok(()) };
        self.write_version(zone, served.published().image(), &contents, &metadata, &[])?;
        lock(&zone.runtime).unstored = None;
        let (name, serial) = (zone.apex.to_string(), served.serial());
        tracing::info!(name: "zone-stored", zone = name, serial, "zone {name}: stored, serial {serial}");
        Ok(())
    }

    /// Returns a version with the mapped image in `file`, which was opened at `path`, for the
    /// caller to serve. Returns `None` if the zone must be verified or compiled again.
    pub(super) fn read_image(
        &self,
        zone: &Zone,
        file: ImageFile,
        path: &Path,
        settings: &ZoneSettings,
        origin: &[Fingerprint],
    ) -> Result<Option<Version>, VersionError> {
        let reader = self.image_reader(settings, origin, None, self.shifted_now());
        let Some(mut version) = reader.read(file, path)? else { return Ok(None) };
        let warnings = self.compare_with_last(
            &version,
            self.last_summary(zone).as_ref(),
            SerialChange::NoPrevious,
            settings,
        )?;
        version.warnings.extend(warnings);
        Ok(Some(version))
    }

    /// Returns a version with the image at the start of the file at `path`, for the caller to
    /// serve. With a state directory, the server copies the file there and maps only the copy,
    /// because a process that changes a mapped file would crash the server. Returns `None` if the
    /// zone must be verified or compiled again.
    pub(super) fn copy_image(
        &self,
        zone: &Zone,
        path: &Path,
        settings: &ZoneSettings,
        origin: &[Fingerprint],
    ) -> Result<Option<Version>, VersionError> {
        let reader = self.image_reader(settings, origin, None, self.shifted_now());
        let Some(state) = &self.state_directory else {
            let file = if reader.may_use_images() { open_image(path)? } else { None };
            let version = file.map(|file| self.read_image(zone, file, path, settings, origin));
            return Ok(version.transpose()?.flatten());
        };
        if !reader.may_use_images() || !begins_as_image(path)? {
            return Ok(None);
        }
        let last_summary = self.last_summary(zone);
        let last_contents =
            if settings.keeps_contents_in_memory() { self.last_version(zone, settings) } else { None };
        let last_contents = last_contents.map(|last| last.contents);
        let failed = |source| VersionError::Store { path: state.path(&zone.apex, ZONE_SUFFIX), source };
        let copy =
            |out: &mut std::io::BufWriter<&File>| std::io::copy(&mut open_regular(path)?, out).map(drop);
        let mut copied = Ok(None);
        let check = |part: &Path| {
            copied = reader.open(part).and_then(|version| {
                let Some(mut version) = version else { return Ok(None) };
                let after = version.contents.as_deref();
                let serial_change = after.map_or(SerialChange::NoPrevious, |after| {
                    SerialChange::of(last_contents.as_deref(), after)
                });
                let warnings =
                    self.compare_with_last(&version, last_summary.as_ref(), serial_change, settings)?;
                version.warnings.extend(warnings);
                self.clear_ambiguous_journal(zone, settings, serial_change)?;
                Ok(Some((version, serial_change)))
            });
            matches!(copied, Ok(Some(_)))
        };
        state.write_checked(&zone.apex, ZONE_SUFFIX, copy, check).map_err(failed)?;
        let Some((version, serial_change)) = copied? else { return Ok(None) };
        if let Some(contents) = &version.contents {
            self.add_to_journal(zone, settings, last_contents.as_deref(), serial_change, contents, &[]);
        }
        Ok(Some(version))
    }

    /// Returns warnings about the differences from the last version.
    fn compare_with_last(
        &self,
        version: &Version,
        last_summary: Option<&VersionSummary>,
        serial_change: SerialChange,
        settings: &ZoneSettings,
    ) -> Result<Vec<String>, VersionError> {
        compare::compare_versions(
            last_summary,
            &version.published,
            serial_change,
            settings,
            self.shifted_now(),
        )
    }

    /// Records the files that the stored version was read from.
    pub(super) fn note_origin(&self, zone: &Zone, origin: &[Fingerprint]) -> Result<(), VersionError> {
        let Some(state) = &self.state_directory else { return Ok(()) };
        let failed = |source| VersionError::Store { path: state.path(&zone.apex, STATE_SUFFIX), source };
        state.note_image(&zone.apex, |image_state| image_state.origin = origin.to_vec()).map_err(failed)
    }

    /// Serves the stored version of a zone. Returns whether it is served.
    pub(super) fn serve_stored(&self, zone: &Zone, activity: &Activity) -> bool {
        let settings = zone.settings();
        let is_served = self.serve_stored_with_origin(zone, &settings, &[], activity);
        if is_served && matches!(settings.source, ZoneSource::File(_)) {
            let name = zone.apex.to_string();
            tracing::warn!(name: "stored-zone-served", zone = name, "zone {name}: serving the stored version from state-dir");
        }
        is_served
    }

    /// Serves the stored version of a zone, which was read from the files with the fingerprints
    /// `origin`. Returns whether it is served. If its signatures are not valid at the current time,
    /// checks them at the time of its verification instead.
    pub(super) fn serve_stored_with_origin(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        origin: &[Fingerprint],
        activity: &Activity,
    ) -> bool {
        let Some(state) = &self.state_directory else { return false };
        let path = state.path(&zone.apex, ZONE_SUFFIX);
        if !state.has_file(&zone.apex, ZONE_SUFFIX) {
            return false;
        }
        activity.begin_phase("read");
        let read = |now| {
            let inputs = state.image_inputs(&zone.apex);
            match self.image_reader(settings, origin, inputs, now).open(&path) {
                Ok(Some(version)) => Ok(version),
                _ => self.build_stored(zone, settings, &path, origin, activity, now),
            }
        };
        let now = self.shifted_now();
        let version = read(now).or_else(|error| {
            let outdated = verified_at(&path).filter(|at| *at != now).and_then(|at| read(at).ok());
            if outdated.is_some() {
                log_outdated(zone);
            }
            outdated.ok_or(error)
        });
        match version {
            Ok(version) => self.serve_version(zone, Version { is_new: false, ..version }),
            Err(error) => {
                let name = zone.apex.to_string();
                // The operator cannot repair a file that the server wrote.
                let remedy = match &error {
                    VersionError::Load(_) | VersionError::Image(_) => {
                        "; the server loads the zone again from its source, no action is needed"
                    }
                    _ => "",
                };
                tracing::warn!(
                    name: "stored-zone-not-served",
                    zone = name,
                    "zone {name}: cannot serve the stored version {}: {error}{remedy}",
                    path.display()
                );
                false
            }
        }
    }

    /// Builds the stored version from its records, and stores the new image.
    fn build_stored(
        &self,
        zone: &Zone,
        settings: &ZoneSettings,
        path: &Path,
        origin: &[Fingerprint],
        activity: &Activity,
        now: u32,
    ) -> Result<Version, VersionError> {
        let loaded = load_regular(path, Some(&zone.apex))?;
        let builder = self.builder(settings, activity, now);
        let built = builder.build(loaded.contents, loaded.verification, None)?;
        // Stored so that the next start can map it. With `verify = "full"`, images are not mapped.
        if settings.verify != VerifyChoice::Full
            && let Err(error) = self.persist(zone, &built, origin)
        {
            let name = zone.apex.to_string();
            tracing::warn!(name: "image-not-stored", zone = name, %error, "zone {name}: image not stored, the next start takes as long as this one: {error}");
        }
        Ok(Version::of(built, settings, origin.to_vec()))
    }

    /// Returns a reader of images of a zone; signatures must be valid at `now`. `inputs` contains
    /// the inputs of the image if the zone is signed online and they are known.
    fn image_reader<'r>(
        &'r self,
        settings: &'r ZoneSettings,
        origin: &'r [Fingerprint],
        inputs: Option<ImageInputs>,
        now: u32,
    ) -> ImageReader<'r> {
        let key_time = settings.key_time(self.shifted_now());
        ImageReader { settings, key_loader: &self.key_loader, origin, inputs, now, key_time }
    }
}

/// Returns the time at which a stored version was verified, in seconds since 1970 modulo 2^32.
fn verified_at(path: &Path) -> Option<u32> {
    let of_image = open_image(path).ok().flatten().map(|file| file.record().verification);
    let of_contents = || load_regular(path, None).ok().and_then(|loaded| loaded.verification);
    match of_image.filter(|found| *found != Verification::Nothing).or_else(of_contents)? {
        Verification::Full { at } | Verification::Structural { at } | Verification::OtherTables { at } => {
            Some(at)
        }
        Verification::Nothing => None,
    }
}

/// Logs that a stored zone is served with signatures that are not valid at the current time.
/// Expired signatures or a changed clock do not prevent serving: clients without validation can
/// still use the answers.
fn log_outdated(zone: &Zone) {
    let name = zone.apex.to_string();
    tracing::error!(
        name: "stored-zone-not-valid",
        zone = name,
        "zone {name}: serving the stored version, its signatures are not valid at the current time: re-sign the zone, or correct the clock"
    );
}
