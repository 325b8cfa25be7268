//! Reloads settings and files.

use super::activity::{ActivityKind, lock};
use super::publish::Candidate;
use super::settings::{Settings, ZoneSettings};
use super::status::{ReloadReport, ZoneStatus};
use super::zone::{LoadOutcome, Zone};
use super::{Service, VersionError, ZoneEvent, ZoneSource};
use nonesuch_net::release_free_memory;
use nonesuch_proto::Name;
use nonesuch_server::clock::seconds_now;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

/// An existing zone, and whether its settings changed.
type ExistingZone = (Arc<Zone>, bool);

impl Service {
    /// Applies new settings: adds and removes zones, and loads zones whose settings or files
    /// changed. The state directory cannot be changed.
    pub fn reload(&self, settings: Settings) -> ReloadReport {
        let _lock = lock(&self.reloading);
        let activity = self.activities.begin(ActivityKind::Reload, None);
        let mut report = ReloadReport::default();
        *lock(&self.templates) = settings.templates;
        let wanted: BTreeMap<Name, _> =
            settings.zones.into_iter().map(|zone| (zone.apex.clone(), zone)).collect();
        let (new, old) = self.apply_settings(wanted, &mut report);
        self.load_all(&new);
        self.reload_old(&old, &mut report);
        for zone in new {
            let status = zone.status(self.shifted_now());
            report.refused.extend(status.error.map(|error| (status.zone.clone(), error)));
            report.warnings.extend(status.warnings.into_iter().map(|warning| (status.zone.clone(), warning)));
        }
        release_free_memory();
        report.at = seconds_now();
        report.seconds = activity.seconds();
        self.send_event(&ZoneEvent::Reloaded);
        log_report(&report);
        *lock(&self.last_reload) = Some(report.clone());
        report
    }

    /// Adds new zones, removes zones that `wanted` does not contain, and sets the settings of the
    /// others. Returns the new zones, and the others with a flag that shows whether their settings
    /// changed.
    fn apply_settings(
        &self,
        wanted: BTreeMap<Name, ZoneSettings>,
        report: &mut ReloadReport,
    ) -> (Vec<Arc<Zone>>, Vec<ExistingZone>) {
        let _zone_set_lock = lock(&self.zone_set_lock);
        let is_gone = |zone: &Arc<Zone>| match wanted.get(zone.apex()) {
            // A member of a catalog becomes a configured zone.
            Some(_) => zone.is_member(),
            None => !zone.is_member(),
        };
        let gone: Vec<Arc<Zone>> = self.all_zones().into_iter().filter(is_gone).collect();
        let removed = gone.iter().filter(|zone| !zone.is_member());
        report.removed.extend(removed.map(|zone| zone.apex().to_string()));
        // Stored files remain, so that nothing is lost if a zone was removed by mistake.
        self.drop_zones(&gone, true);
        let (mut new, mut old) = (Vec::new(), Vec::new());
        for (apex, settings) in wanted {
            let Some(zone) = self.zone(&apex) else {
                report.added.push(apex.to_string());
                let publication_lock = self.zone_lock(&apex);
                new.push(Arc::new(Zone::new(settings, publication_lock)));
                continue;
            };
            let differs = zone.set_settings(settings);
            if differs {
                self.apply_policy(&zone);
                self.send_event(&ZoneEvent::Changed(zone.settings()));
            }
            old.push((zone, differs));
        }
        self.insert_zones(&new);
        (new, old)
    }

    /// Adds a zone to the configured zones and loads it. Returns its status. A member with this
    /// name becomes a configured zone.
    pub fn add_configured(&self, settings: ZoneSettings) -> ZoneStatus {
        let _lock = lock(&self.reloading);
        let apex = settings.apex.clone();
        let zone_set_lock = lock(&self.zone_set_lock);
        let before: Vec<Arc<Zone>> = self.zone(&apex).into_iter().collect();
        self.drop_zones(&before, true);
        let zone = Arc::new(Zone::new(settings, self.zone_lock(&apex)));
        self.insert_zones(&[Arc::clone(&zone)]);
        drop(zone_set_lock);
        self.load_all(&[Arc::clone(&zone)]);
        // A catalog may list a member with this name.
        self.send_event(&ZoneEvent::Reloaded);
        zone.status(self.shifted_now())
    }

    /// Removes a zone from the configured zones; its stored version remains. Returns whether the
    /// zone existed.
    pub fn remove_configured(&self, apex: &Name) -> bool {
        let _lock = lock(&self.reloading);
        let zone_set_lock = lock(&self.zone_set_lock);
        let found: Vec<Arc<Zone>> = self.zone(apex).into_iter().filter(|zone| !zone.is_member()).collect();
        self.drop_zones(&found, true);
        drop(zone_set_lock);
        self.send_event(&ZoneEvent::Reloaded);
        !found.is_empty()
    }

    /// Loads the zones in `zones` that changed.
    fn reload_old(&self, zones: &[ExistingZone], report: &mut ReloadReport) {
        let outcomes: Mutex<Vec<(Name, Result<LoadOutcome, VersionError>)>> = Mutex::default();
        let list: Vec<Arc<Zone>> = zones.iter().map(|(zone, _)| Arc::clone(zone)).collect();
        let forced: BTreeMap<&Name, bool> =
            zones.iter().map(|(zone, differs)| (zone.apex(), *differs)).collect();
        self.for_each_zone(&list, |zone| {
            let is_forced = forced.get(zone.apex()).copied().unwrap_or(false);
            let outcome = self.reload_one(zone, is_forced);
            lock(&outcomes).push((zone.apex().clone(), outcome));
        });
        let mut outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        outcomes.sort_by(|a, b| a.0.cmp(&b.0));
        for (apex, outcome) in outcomes {
            match outcome {
                Ok(LoadOutcome::Published) => {
                    report.updated.push(apex.to_string());
                    let warnings = self.warnings(&apex).into_iter();
                    report.warnings.extend(warnings.map(|warning| (apex.to_string(), warning)));
                }
                Ok(LoadOutcome::Unchanged | LoadOutcome::Waiting) => report.unchanged += 1,
                Err(error) => report.refused.push((apex.to_string(), error.to_string())),
            }
        }
    }

    /// Loads one zone if it changed.
    pub(super) fn reload_one(&self, zone: &Arc<Zone>, is_forced: bool) -> Result<LoadOutcome, VersionError> {
        let _lock = self.lock_zone(zone);
        if !self.contains(zone) {
            return Err(VersionError::UnknownZone);
        }
        let activity = self.activities.begin(ActivityKind::Load, Some(zone.apex().to_string()));
        let is_key_event = self.note_key_event(zone) || (!is_forced && self.have_keys_changed(zone));
        let outcome = match Self::contents_if_not_from_file(zone).filter(|_| is_key_event) {
            Some(contents) => {
                let candidate = Candidate { is_new: false, ..Candidate::new(contents) };
                self.publish_contents(zone, candidate, &activity).map(|_| LoadOutcome::Published)
            }
            None => self.load_version(zone, None, is_forced || is_key_event, &activity),
        };
        if is_key_event && !matches!(outcome, Ok(LoadOutcome::Published | LoadOutcome::Waiting)) {
            self.retry_key_event(zone);
        }
        self.record_result(zone, outcome.as_ref().err());
        let is_published = matches!(outcome, Ok(LoadOutcome::Published));
        if is_forced && !is_published && zone.settings().source == ZoneSource::Primaries {
            self.send_event(&ZoneEvent::NotLoaded { apex: zone.apex().clone() });
        }
        outcome
    }

    /// Returns warnings about the served version of a zone and its differences from the previous
    /// one.
    #[must_use]
    pub fn warnings(&self, apex: &Name) -> Vec<String> {
        self.zone(apex).map(|zone| lock(&zone.runtime).warnings.clone()).unwrap_or_default()
    }

    /// Loads the zone `apex` if its files changed. Returns whether a version was published.
    ///
    /// # Errors
    /// Returns the reason why the newest version is rejected; the previous version remains.
    pub fn reload_zone(&self, apex: &Name) -> Result<bool, VersionError> {
        let zone = self.zone(apex).ok_or(VersionError::UnknownZone)?;
        self.reload_one(&zone, false).map(|outcome| outcome == LoadOutcome::Published)
    }
}

fn log_report(report: &ReloadReport) {
    let seconds = report.seconds;
    tracing::info!(
        name: "zones-reloaded",
        seconds,
        "reload: {} added, {} removed, {} updated, {} rejected, {} unchanged, in {seconds:.2} s",
        report.added.len(),
        report.removed.len(),
        report.updated.len(),
        report.refused.len(),
        report.unchanged
    );
}
