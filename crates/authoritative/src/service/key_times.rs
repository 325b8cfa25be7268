//! Handles the timing metadata in key files: when a key changes its role, the server publishes the
//! zone again with the keys that are then active. The same happens if a reload, or a check after
//! the clock was set back, finds keys that differ from the signing ones.

use super::Service;
use super::activity::lock;
use super::image_inputs::signers_digest;
use super::settings::{SigningMode, ZoneSource};
use super::zone::Zone;
use nonesuch_zone::Contents;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// A time that means no event.
pub(super) const NEVER: u32 = u32::MAX;
/// Seconds until the keys are read again after a failed publication.
const RETRY_SECONDS: u32 = 60;

impl Service {
    /// Returns whether a key event has occurred, or the clock was set back, since the last call of
    /// [`apply_key_times`](Self::apply_key_times). The cost does not depend on the number of zones.
    #[must_use]
    pub fn is_key_event_due(&self) -> bool {
        let now = self.shifted_now();
        self.next_key_event.load(Relaxed) <= now || now < self.keys_read_at.load(Relaxed)
    }

    /// Publishes again the zones with a key event in the past. If the clock was set back, publishes
    /// again the zones whose active keys now differ.
    pub fn apply_key_times(&self) {
        let now = self.shifted_now();
        let is_clock_set_back = now < self.keys_read_at.swap(now, Relaxed);
        let reason =
            if is_clock_set_back { "the clock was set back" } else { "a time in its key files has passed" };
        let key_event = |zone: &Zone| lock(&zone.runtime).key_event.unwrap_or(NEVER);
        self.next_key_event.store(NEVER, Relaxed);
        let needs_publication = |zone: &Arc<Zone>| match is_clock_set_back {
            true => self.have_keys_changed(zone),
            false => key_event(zone) <= now,
        };
        let (zones, others): (Vec<_>, Vec<_>) = self.all_zones().into_iter().partition(needs_publication);
        for zone in others {
            if is_clock_set_back {
                self.note_key_event(&zone);
            }
            self.next_key_event.fetch_min(key_event(&zone), Relaxed);
        }
        self.for_each_zone(&zones, |zone| {
            let name = zone.apex.to_string();
            tracing::info!(name: "keys-read-again", zone = name, "zone {name}: reading the keys again: {reason}");
            // The log and the status of the zone contain the result.
            drop(self.reload_one(zone, false));
        });
    }

    /// Records the next key event of a zone; to be called before the keys are read. Returns whether
    /// the previously recorded event has occurred.
    pub(super) fn note_key_event(&self, zone: &Zone) -> bool {
        let (settings, now) = (zone.settings(), self.shifted_now());
        let next = match &settings.signing_mode {
            SigningMode::Online(signing) if !signing.ignore_key_times => {
                self.keys_read_at.fetch_max(now, Relaxed);
                (self.key_loader.next_key_event)(&signing.key_directory, &zone.apex, now)
            }
            _ => None,
        };
        let before = std::mem::replace(&mut lock(&zone.runtime).key_event, next);
        // Only after the zone has its event: `apply_key_times` first resets the time, and then
        // reads the zones.
        self.next_key_event.fetch_min(next.unwrap_or(NEVER), Relaxed);
        before.is_some_and(|time| time <= now)
    }

    /// Schedules another attempt to read the keys of a zone, because the version with them was not
    /// published.
    pub(super) fn retry_key_event(&self, zone: &Zone) {
        let time = self.shifted_now().saturating_add(RETRY_SECONDS);
        let mut runtime = lock(&zone.runtime);
        runtime.key_event = Some(runtime.key_event.map_or(time, |next| next.min(time)));
        drop(runtime);
        self.next_key_event.fetch_min(time, Relaxed);
    }

    /// Returns whether the current keys in the key files differ from those that sign the zone
    /// online, or cannot be read.
    pub(super) fn have_keys_changed(&self, zone: &Zone) -> bool {
        let settings = zone.settings();
        let SigningMode::Online(signing) = &settings.signing_mode else { return false };
        let Some(served) = lock(&zone.runtime).key_digest.clone() else { return false };
        let found = (self.key_loader.load_signing_keys)(
            &signing.key_directory,
            &zone.apex,
            settings.key_time(self.shifted_now()),
        );
        found.map_or(true, |found| signers_digest(signing.mechanism, &found) != served)
    }

    /// Returns the records of a zone that has no file, for publication with other keys.
    pub(super) fn contents_without_file(zone: &Zone) -> Option<Contents> {
        let is_file = matches!(zone.settings().source, ZoneSource::File(_));
        let contents = lock(&zone.runtime).contents.clone().filter(|_| !is_file);
        contents.map(|contents| (*contents).clone())
    }
}
