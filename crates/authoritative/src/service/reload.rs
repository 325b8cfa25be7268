//! Reloading: other settings, other files.

use super::activity::{ActivityKind, lock};
use super::settings::Settings;
use super::status::ReloadReport;
use super::zone::{Update, Zone};
use super::{Refused, Service, ZoneEvent};
use crate::seconds_now;
use crate::zones::ZoneState;
use nonesuch_net::release_free_memory;
use nonesuch_proto::Name;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

impl Service {
    /// Takes other settings: zones come and go, those whose settings or files have changed are loaded. The state folder
    /// stays the one of the start.
    pub fn reload(&self, settings: Settings) -> ReloadReport {
        let _one = lock(&self.reloading);
        let activity = self.activities.begin(ActivityKind::Reload, None);
        let mut report = ReloadReport::default();
        *lock(&self.templates) = settings.templates;
        let wanted: BTreeMap<Name, _> =
            settings.zones.into_iter().map(|zone| (zone.apex.clone(), zone)).collect();
        let gone =
            self.all().into_iter().filter(|zone| !zone.is_member() && !wanted.contains_key(zone.apex()));
        for zone in gone {
            report.removed.push(zone.apex().to_string());
            self.drop_zone(zone.apex());
        }
        let (mut new, mut old, mut states) = (Vec::new(), Vec::new(), Vec::new());
        for (apex, settings) in wanted {
            match self.zone(&apex) {
                Some(zone) if !zone.is_member() => {
                    let differs = zone.set_settings(settings);
                    if differs {
                        self.tell(&ZoneEvent::Changed(zone.settings()));
                    }
                    old.push((zone, differs));
                }
                found => {
                    // A member of a catalog that the configuration has now.
                    if found.is_some() {
                        self.drop_zone(&apex);
                    }
                    report.added.push(apex.to_string());
                    let zone = Arc::new(Zone::new(settings));
                    states.push((apex.clone(), ZoneState::NotReady(zone.policy())));
                    lock(&self.table).insert(apex, Arc::clone(&zone));
                    new.push(zone);
                }
            }
        }
        self.zones.set_all(states);
        self.for_each(&new, |zone| self.load_first(zone));
        self.reload_old(&old, &mut report);
        for zone in new {
            let status = zone.status(self.now());
            report.refused.extend(status.error.map(|error| (status.zone, error)));
        }
        release_free_memory();
        report.at = seconds_now();
        report.seconds = activity.seconds();
        self.tell(&ZoneEvent::Reloaded);
        log(&report);
        *lock(&self.last_reload) = Some(report.clone());
        report
    }

    /// Loads those of `zones` anew that have changed.
    fn reload_old(&self, zones: &[(Arc<Zone>, bool)], report: &mut ReloadReport) {
        let outcomes: Mutex<Vec<(Name, Result<Update, Refused>)>> = Mutex::default();
        let list: Vec<Arc<Zone>> = zones.iter().map(|(zone, _)| Arc::clone(zone)).collect();
        let forced: BTreeMap<&Name, bool> =
            zones.iter().map(|(zone, differs)| (zone.apex(), *differs)).collect();
        self.for_each(&list, |zone| {
            let is_forced = forced.get(zone.apex()).copied().unwrap_or(false);
            let outcome = self.reload_one(zone, is_forced);
            lock(&outcomes).push((zone.apex().clone(), outcome));
        });
        let mut outcomes = outcomes.into_inner().unwrap_or_else(std::sync::PoisonError::into_inner);
        outcomes.sort_by(|a, b| a.0.cmp(&b.0));
        for (apex, outcome) in outcomes {
            match outcome {
                Ok(Update::Published) => report.updated.push(apex.to_string()),
                Ok(Update::Unchanged | Update::Waiting) => report.unchanged += 1,
                Err(error) => report.refused.push((apex.to_string(), error.to_string())),
            }
        }
    }

    /// Loads one zone anew where it has changed.
    pub(super) fn reload_one(&self, zone: &Zone, is_forced: bool) -> Result<Update, Refused> {
        let _one = lock(zone.work());
        let activity = self.activities.begin(ActivityKind::Load, Some(zone.apex().to_string()));
        let outcome = self.load_version(zone, is_forced, &activity);
        self.note(zone, outcome.as_ref().err());
        outcome
    }

    /// Loads the zone `apex` anew where its files have changed; tells whether another version is served.
    ///
    /// # Errors
    /// Why the newest version is refused; the one of before stays.
    pub fn reload_zone(&self, apex: &Name) -> Result<bool, Refused> {
        let zone = self.zone(apex).ok_or(Refused::Unknown)?;
        self.reload_one(&zone, false).map(|update| update == Update::Published)
    }
}

fn log(report: &ReloadReport) {
    let seconds = report.seconds;
    tracing::info!(
        seconds,
        "reload: {} zones added, {} removed, {} updated, {} refused, {} unchanged, in {seconds:.2} s",
        report.added.len(),
        report.removed.len(),
        report.updated.len(),
        report.refused.len(),
        report.unchanged
    );
}
