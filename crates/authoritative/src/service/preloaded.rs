//! A file that is read before anybody knows which zone it has: that of a server of one zone, whose name nobody gave.

use super::activity::ActivityKind;
use super::state::Fingerprint;
use super::zone::{Update, Zone};
use super::{Service, VersionError, ZoneEvent};
use nonesuch_net::release_free_memory;
use nonesuch_proto::Name;
use nonesuch_zone::{ImageFile, LoadedZone};
use std::path::Path;
use std::sync::Arc;

/// What a file holds.
#[derive(Debug)]
pub(super) enum PreloadedContents {
    Image(Box<ImageFile>),
    Zone(LoadedZone),
}

/// What was read of a file, and what tells whether that has changed meanwhile.
#[derive(Debug)]
pub struct PreloadedZone {
    pub(super) contents: PreloadedContents,
    pub(super) fingerprint: Option<Fingerprint>,
}

impl PreloadedZone {
    /// Has `map` map the image that the file at `path` begins with, and `read` read the file where it returns none.
    ///
    /// # Errors
    /// Those of both.
    pub fn file<E>(
        path: &Path,
        map: impl FnOnce() -> Result<Option<ImageFile>, E>,
        read: impl FnOnce() -> Result<LoadedZone, E>,
    ) -> Result<Self, E> {
        // What cannot be looked at cannot be read either, and that is said then.
        let fingerprint = Fingerprint::of(path).ok();
        let found = match map()? {
            Some(image) => PreloadedContents::Image(Box::new(image)),
            None => PreloadedContents::Zone(read()?),
        };
        Ok(Self { contents: found, fingerprint })
    }

    /// What came from a stream, which nobody can read again.
    #[must_use]
    pub const fn stream(loaded: LoadedZone) -> Self {
        Self { contents: PreloadedContents::Zone(loaded), fingerprint: None }
    }

    /// The zone's name.
    #[must_use]
    pub fn apex(&self) -> Name {
        match &self.contents {
            PreloadedContents::Image(image) => image.image().apex().to_name(),
            PreloadedContents::Zone(loaded) => loaded.contents.apex().clone(),
        }
    }
}

impl Service {
    /// Loads the one zone of the settings of what was read of its file, in this thread; takes the place of
    /// [`begin`](Self::begin).
    ///
    /// # Errors
    /// Why it is refused; that is not logged, since nothing is served then.
    pub fn begin_preloaded(&self, opened: PreloadedZone) -> Result<(), VersionError> {
        let loaded = match self.all().as_slice() {
            [zone] => self.load_preloaded(zone, opened),
            _ => Err(VersionError::Unknown),
        };
        self.send_event(&ZoneEvent::CatalogsLoaded);
        self.send_event(&ZoneEvent::Loaded);
        self.end_loading();
        loaded.map(drop)
    }

    fn load_preloaded(&self, zone: &Arc<Zone>, opened: PreloadedZone) -> Result<Update, VersionError> {
        let _one = self.lock_zone(zone);
        self.send_event(&ZoneEvent::Added(zone.settings()));
        let activity = self.activities.begin(ActivityKind::Load, Some(zone.apex().to_string()));
        let is_read = matches!(opened.contents, PreloadedContents::Zone(_));
        self.note_key_event(zone);
        let loaded = self.load_version(zone, Some(opened), false, &activity);
        if is_read {
            // What reading and compiling have freed is a multiple of the image.
            release_free_memory();
        }
        loaded
    }
}
