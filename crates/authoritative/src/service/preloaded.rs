//! A file that is read before the name of its zone is known. `nonesuch serve FILE` uses it if no
//! name is given.

use super::activity::ActivityKind;
use super::state::Fingerprint;
use super::zone::{LoadOutcome, Zone};
use super::{Service, VersionError, ZoneEvent};
use nonesuch_net::release_free_memory;
use nonesuch_proto::Name;
use nonesuch_zone::{ImageFile, LoadedZone};
use std::path::Path;
use std::sync::Arc;

/// Content of a file.
#[derive(Debug)]
pub(super) enum PreloadedContents {
    Image(Box<ImageFile>),
    Zone(LoadedZone),
}

/// A file that was read, with a fingerprint that shows whether it changed in the meantime.
#[derive(Debug)]
pub struct PreloadedZone {
    pub(super) contents: PreloadedContents,
    pub(super) fingerprint: Option<Fingerprint>,
}

impl PreloadedZone {
    /// Calls `map` to map the image at the start of the file at `path`. If it returns `None`, calls
    /// `read` to read the file.
    ///
    /// # Errors
    /// Returns the error of `map` or `read`.
    pub fn file<E>(
        path: &Path,
        map: impl FnOnce() -> Result<Option<ImageFile>, E>,
        read: impl FnOnce() -> Result<LoadedZone, E>,
    ) -> Result<Self, E> {
        // If this fails, `map` or `read` also fails and reports the error.
        let fingerprint = Fingerprint::of(path).ok();
        let found = match map()? {
            Some(image) => PreloadedContents::Image(Box::new(image)),
            None => PreloadedContents::Zone(read()?),
        };
        Ok(Self { contents: found, fingerprint })
    }

    /// Creates it from a stream, which cannot be read again.
    #[must_use]
    pub const fn stream(loaded: LoadedZone) -> Self {
        Self { contents: PreloadedContents::Zone(loaded), fingerprint: None }
    }

    /// Returns the name of the zone.
    #[must_use]
    pub fn apex(&self) -> Name {
        match &self.contents {
            PreloadedContents::Image(image) => image.image().apex().to_name(),
            PreloadedContents::Zone(loaded) => loaded.contents.apex().clone(),
        }
    }
}

impl Service {
    /// Loads the only zone of the settings from its preloaded file, in the calling thread. Call
    /// this instead of [`begin`](Self::begin).
    ///
    /// # Errors
    /// Returns the reason why the zone is rejected. It is not logged, because nothing is served.
    pub fn begin_preloaded(&self, preloaded: PreloadedZone) -> Result<(), VersionError> {
        let loaded = match self.all_zones().as_slice() {
            [zone] => self.load_preloaded(zone, preloaded),
            _ => Err(VersionError::UnknownZone),
        };
        self.send_event(&ZoneEvent::CatalogsLoaded);
        self.send_event(&ZoneEvent::Loaded);
        self.end_loading_task();
        loaded.map(drop)
    }

    fn load_preloaded(
        &self,
        zone: &Arc<Zone>,
        preloaded: PreloadedZone,
    ) -> Result<LoadOutcome, VersionError> {
        let _lock = self.lock_zone(zone);
        self.send_event(&ZoneEvent::Added(zone.settings()));
        let activity = self.activities.begin(ActivityKind::Load, Some(zone.apex().to_string()));
        let is_read = matches!(preloaded.contents, PreloadedContents::Zone(_));
        self.note_key_event(zone);
        let loaded = self.load_version(zone, Some(preloaded), false, &activity);
        if is_read {
            // Reading and compiling free several times the size of the image.
            release_free_memory();
        }
        loaded
    }
}
