//! Adds and removes zones while the service runs: members of catalogs (RFC 9432).
//!
//! The state file of a member contains its catalog, label and groups. With this note, the server
//! recognizes a member that was removed from its catalog while the server was not running, resets a
//! member whose label changed (RFC 9432 §5.4), and knows the members of the last valid version of a
//! catalog whose stored version is broken (§5.1).

use super::activity::lock;
use super::state::{Membership, STATE_SUFFIX, StateDirectory, file_stem};
use super::zone::Zone;
use super::{Service, ZoneEvent, ZoneSettings};
use crate::catalog::{Catalog, Member};
use crate::zones::ZoneState;
use nonesuch_proto::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;

/// Zones that were added or have new settings, and that must be loaded.
#[derive(Debug, Default)]
pub(super) struct AddedZones {
    new: Vec<Arc<Zone>>,
    changed: Vec<Arc<Zone>>,
}

impl Service {
    /// Adds zones. Workers answer SERVFAIL for them until they are loaded.
    pub(super) fn add_unloaded(&self, list: Vec<ZoneSettings>) -> AddedZones {
        let (mut new, mut changed) = (Vec::new(), Vec::new());
        let list: BTreeMap<Name, ZoneSettings> =
            list.into_iter().map(|settings| (settings.apex.clone(), settings)).collect();
        let zone_set_lock = lock(&self.zone_set_lock);
        for (apex, settings) in list {
            match self.zone(&apex) {
                Some(zone) if !zone.is_member() => {}
                Some(zone) => {
                    if zone.set_settings(settings) {
                        self.apply_policy(&zone);
                        changed.push(zone);
                    }
                }
                None => new.push(Arc::new(Zone::member(settings, self.zone_lock(&apex)))),
            }
        }
        self.insert_zones(&new);
        drop(zone_set_lock);
        for zone in &changed {
            self.send_event(&ZoneEvent::Changed(zone.settings()));
        }
        AddedZones { new, changed }
    }

    /// Loads the added zones. This may take long, because they are verified.
    pub(super) fn load_added(&self, AddedZones { new, changed }: &AddedZones) {
        self.load_all(new);
        // The log and the status of the zone contain the result.
        self.for_each_zone(changed, |zone| drop(self.reload_one(zone, true)));
    }

    /// Removes members. With `keeps_files`, their stored files remain.
    pub fn remove_zones(&self, zones: &[Name], keeps_files: bool) {
        let _zone_set_lock = lock(&self.zone_set_lock);
        let members = zones.iter().filter_map(|apex| self.zone(apex).filter(|zone| zone.is_member()));
        self.drop_zones(&members.collect::<Vec<_>>(), keeps_files);
    }

    /// Adds zones that are not ready. The service must not contain zones with these names, and the
    /// caller holds `zone_set_lock`.
    pub(super) fn insert_zones(&self, zones: &[Arc<Zone>]) {
        lock(&self.zone_map).extend(zones.iter().map(|zone| (zone.apex().clone(), Arc::clone(zone))));
        let states = zones.iter().map(|zone| (zone.apex().clone(), ZoneState::NotReady(zone.policy())));
        self.zones.set_all(states.collect());
    }

    /// Removes zones and stops serving them. Does not wait for a publication in progress. The
    /// caller holds `zone_set_lock`, so that no zone with the same name is added before the stored
    /// files are deleted.
    pub(super) fn drop_zones(&self, zones: &[Arc<Zone>], keeps_files: bool) {
        let mut zone_map = lock(&self.zone_map);
        zones.iter().for_each(|zone| drop(zone_map.remove(zone.apex())));
        drop(zone_map);
        zones.iter().for_each(|zone| zone.clear_runtime());
        let names: Vec<Name> = zones.iter().map(|zone| zone.apex().clone()).collect();
        self.zones.remove_all(&names);
        for (zone, apex) in zones.iter().zip(names) {
            if let Some(state) = self.state_directory.as_ref().filter(|_| !keeps_files) {
                state.remove(&apex);
            }
            self.mark_removed(&apex, zone.publication_lock(), keeps_files);
            self.send_event(&ZoneEvent::Removed { apex, keeps_files });
        }
    }
}

impl Membership {
    /// Returns the last valid version of `catalog` from the notes of its members. It contains no
    /// `coo` properties, because a broken catalog must not permit a member zone to move (RFC 9432
    /// §5.1). Returns `None` if no member has a note.
    pub(super) fn last_version(catalog: &Name, noted: &[Self]) -> Option<Catalog> {
        let members = noted.iter().filter(|noted| noted.catalog == *catalog).map(|noted| {
            let (label, groups) = (noted.label.clone(), noted.groups.clone());
            (noted.zone.view().to_canonical(), Member { label, groups, new_owner: None })
        });
        let members: BTreeMap<Name, Member> = members.collect();
        (!members.is_empty()).then(|| Catalog { apex: catalog.view().to_canonical(), members })
    }

    /// Writes the note to the state file of the zone; [`sync`](Self::sync) makes it durable. If the
    /// previous note has another label, removes all stored files of the zone first.
    ///
    /// # Errors
    /// Returns an error if writing fails.
    pub(super) fn persist(&self, state: &StateDirectory) -> io::Result<()> {
        let noted = Self::read_note(state, &file_stem(&self.zone));
        if noted.as_ref() == Some(self) {
            return Ok(());
        }
        if noted.is_some_and(|noted| noted.label != self.label) {
            state.remove(&self.zone);
        }
        state.update(&self.zone, |stored| stored.member = Some(self.clone()))
    }

    /// Syncs the notes of these zones to disk: each file, then the directory.
    ///
    /// # Errors
    /// Returns the first zone whose note cannot be synced, with the error.
    pub(super) fn sync<'z>(state: &StateDirectory, zones: &'z [Name]) -> Result<(), (&'z Name, io::Error)> {
        for zone in zones {
            state.sync(zone, STATE_SUFFIX).map_err(|error| (zone, error))?;
        }
        zones.last().map_or(Ok(()), |zone| state.sync_names().map_err(|error| (zone, error)))
    }

    /// Removes the note, because the zone is now configured.
    pub(super) fn remove(state: &StateDirectory, zone: &Name) {
        // An error is harmless: most zones have no note.
        let _ = state.update(zone, |stored| stored.member = None);
    }

    fn read_note(state: &StateDirectory, stem: &str) -> Option<Self> {
        let noted = state.read_stem(stem).member?;
        (file_stem(&noted.zone) == stem).then_some(noted)
    }

    /// Returns all notes, except those of `zones`.
    ///
    /// # Errors
    /// Returns an error if the directory cannot be read.
    pub(super) fn all_except<'z>(
        state: &StateDirectory,
        zones: impl IntoIterator<Item = &'z Name>,
    ) -> io::Result<Vec<Self>> {
        let known: BTreeSet<String> = zones.into_iter().map(file_stem).collect();
        let others = state.stems()?;
        Ok(others.difference(&known).filter_map(|stem| Self::read_note(state, stem)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::catalog::Group;
    use crate::service::state::ZONE_SUFFIX;
    use std::io::Write as _;

    fn membership(catalog: &str, label: &[u8]) -> Membership {
        let name = |text: &str| text.parse().unwrap();
        Membership {
            zone: name("member."),
            catalog: name(catalog),
            label: label.to_vec(),
            groups: vec![Group::from_rdata(b"\x03one"), Group::from_rdata(b"\x01\n\x03two")],
        }
    }

    #[test]
    fn another_label_removes_the_stored_files() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateDirectory::open(dir.path()).unwrap();
        let zone: Name = "member.".parse().unwrap();
        let keep = || state.write(&zone, ZONE_SUFFIX, |out| out.write_all(b"\x89NSCI\r\n\x1a")).unwrap();
        let is_stored = || state.path(&zone, ZONE_SUFFIX).exists();
        keep();
        // The member uses the stored version of the configured zone with the same name.
        membership("a.", b"one").persist(&state).unwrap();
        assert!(is_stored());
        membership("a.", b"one").persist(&state).unwrap();
        membership("b.", b"one").persist(&state).unwrap();
        assert!(is_stored(), "a move with the same label");
        membership("b.", b"\0two").persist(&state).unwrap();
        assert!(!is_stored());
        assert_eq!(Membership::all_except(&state, []).unwrap(), [membership("b.", b"\0two")]);
        assert!(Membership::all_except(&state, [&zone]).unwrap().is_empty());
        Membership::remove(&state, &zone);
        assert!(Membership::all_except(&state, []).unwrap().is_empty());
        // A file that no server wrote remains.
        std::fs::write(state.path(&zone, STATE_SUFFIX), "precious").unwrap();
        Membership::remove(&state, &zone);
        assert!(state.path(&zone, STATE_SUFFIX).exists());
    }

    /// Set in the process that writes a note.
    const WRITES: &str = "NONESUCH_TEST_WRITES_A_NOTE";

    /// Does nothing, except in the process that the next test starts.
    #[test]
    fn a_note_is_written_if_the_environment_requests_it() {
        let Some(dir) = std::env::var_os(WRITES) else { return };
        let state = StateDirectory::open(std::path::Path::new(&dir)).unwrap();
        let note = membership("a.", b"one");
        note.persist(&state).unwrap();
        Membership::sync(&state, &[note.zone]).unwrap();
    }

    #[test]
    fn the_note_of_a_member_and_its_file_name_are_synced_to_disk() {
        use std::process::Command;
        if !Command::new("strace").arg("true").output().is_ok_and(|ended| ended.status.success()) {
            nonesuch_testing::record_skip("strace cannot be run");
            return;
        }
        let dir = tempfile::tempdir().unwrap();
        let trace = dir.path().join("trace");
        let test = "service::members::tests::a_note_is_written_if_the_environment_requests_it";
        let ended = Command::new("strace")
            .args(["-f", "-y", "-e", "trace=fsync,fdatasync", "-o"])
            .arg(&trace)
            .arg(std::env::current_exe().unwrap())
            .args([test, "--exact"])
            .env(WRITES, dir.path())
            .output()
            .unwrap();
        assert!(ended.status.success(), "{ended:?}");
        let trace = std::fs::read_to_string(trace).unwrap();
        let place = |end: &str| trace.lines().position(|line| line.contains(end));
        let (file, names) = (place("/zones/member.state>)").unwrap(), place("/zones>)").unwrap());
        assert!(file < names, "{trace}");
    }
}
