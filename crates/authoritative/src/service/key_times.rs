//! Handles the timing metadata in key files of zones that are signed online. A key event is a time
//! at which this metadata changes the role of a key, or at which the server reads the keys again
//! after a failure. When it occurs, the server publishes the zone again with the keys that are then
//! active. The server also does so if a reload, or a check after the clock was set back, finds keys
//! that differ from those that sign the served version.

use super::Service;
use super::activity::lock;
use super::image_inputs::signers_digest;
use super::settings::{SigningMode, ZoneSource};
use super::zone::Zone;
use nonesuch_zone::Contents;
use std::sync::Arc;
use std::sync::atomic::Ordering::Relaxed;

/// Time of the next key event if there is none: later than all other times.
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

    /// Publishes each zone again whose key event has occurred. If the clock was set back, publishes
    /// each zone again whose active keys now differ from those that sign the served version.
    pub fn apply_key_times(&self) {
        let now = self.shifted_now();
        let is_clock_set_back = now < self.keys_read_at.swap(now, Relaxed);
        let reason =
            if is_clock_set_back { "the clock was set back" } else { "a time in its key files has passed" };
        let key_event = |zone: &Zone| lock(&zone.runtime).key_event.unwrap_or(NEVER);
        // Each zone lowers this time to its own next event: the zones of `others` below, and the
        // zones that are published again in `reload_one`.
        self.next_key_event.store(NEVER, Relaxed);
        let needs_publication = |zone: &Arc<Zone>| match is_clock_set_back {
            true => self.have_keys_changed(zone),
            false => key_event(zone) <= now,
        };
        let (zones, others): (Vec<_>, Vec<_>) = self.all_zones().into_iter().partition(needs_publication);
        for zone in others {
            // The recorded event follows the time before the clock was set back. An earlier event
            // can now be the next one.
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

    /// Determines the next key event of a zone from its key files and records it. Returns whether
    /// the event that was recorded before has occurred. Call this function before the keys are
    /// read: then an event between the two causes another publication.
    pub(super) fn note_key_event(&self, zone: &Zone) -> bool {
        let (settings, now) = (zone.settings(), self.shifted_now());
        let next = match &settings.signing_mode {
            SigningMode::Online(signing) if !signing.ignore_key_times => {
                self.keys_read_at.fetch_max(now, Relaxed);
                (self.key_loader.next_key_event)(&signing.key_directory, &zone.apex, now)
            }
            _ => None,
        };
        let previous = std::mem::replace(&mut lock(&zone.runtime).key_event, next);
        // The event of the zone is stored first, because `apply_key_times` first resets
        // `next_key_event` and then reads the events of the zones. In the other order, it could
        // reset this time and then read the previous event of the zone.
        self.next_key_event.fetch_min(next.unwrap_or(NEVER), Relaxed);
        previous.is_some_and(|time| time <= now)
    }

    /// Schedules another attempt to publish a zone with its current keys, because the last attempt
    /// failed. The attempt is a key event, [`RETRY_SECONDS`] from now.
    pub(super) fn retry_key_event(&self, zone: &Zone) {
        let time = self.shifted_now().saturating_add(RETRY_SECONDS);
        let mut runtime = lock(&zone.runtime);
        runtime.key_event = Some(runtime.key_event.map_or(time, |next| next.min(time)));
        drop(runtime);
        self.next_key_event.fetch_min(time, Relaxed);
    }

    /// Returns whether the keys that are active now, according to the key files, differ from those
    /// that sign the served version online. Returns true if the keys cannot be read, and false if
    /// the zone is not signed online or no version is served.
    pub(super) fn have_keys_changed(&self, zone: &Zone) -> bool {
        let settings = zone.settings();
        let SigningMode::Online(signing) = &settings.signing_mode else { return false };
        let Some(served_digest) = lock(&zone.runtime).key_digest.clone() else { return false };
        let keys = (self.key_loader.load_signing_keys)(
            &signing.key_directory,
            &zone.apex,
            settings.key_time(self.shifted_now()),
        );
        keys.map_or(true, |keys| signers_digest(signing.mechanism, &keys) != served_digest)
    }

    /// Returns the records of the served version, for publication with other keys. Returns `None`
    /// if they are not in memory, or if the zone comes from a file, which is then read again.
    pub(super) fn contents_if_not_from_file(zone: &Zone) -> Option<Contents> {
        let is_file = matches!(zone.settings().source, ZoneSource::File(_));
        let contents = lock(&zone.runtime).contents.clone().filter(|_| !is_file);
        contents.map(|contents| (*contents).clone())
    }
}
