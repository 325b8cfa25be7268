//! Zones that come and go while the service runs: members of catalogs (RFC 9432).
//!
//! A file next to the stored version of a member notes its catalog, label and groups. So the server recognizes a member that was
//! removed from its catalog while the server was down, resets one whose label has changed (RFC 9432 §5.4), and knows the members
//! of the last valid version of a catalog whose stored version is broken (§5.1).

use super::activity::lock;
use super::state::{MEMBER, StateFolder, file_stem};
use super::zone::Zone;
use super::{Service, ZoneEvent, ZoneSettings};
use crate::catalog::{Catalog, Member};
use crate::zones::ZoneState;
use data_encoding::HEXLOWER;
use nonesuch_proto::Name;
use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, Write as _};
use std::sync::Arc;

/// The first line of the file.
const HEAD: &str = "nonesuch member 1";

/// Zones that were added, or took other settings, and are to be loaded.
#[derive(Debug, Default)]
pub(super) struct Added {
    new: Vec<Arc<Zone>>,
    changed: Vec<Arc<Zone>>,
}

impl Service {
    /// Adds zones, as members of catalogs are, and loads those that are kept or have a file; one of the same name that was
    /// added so takes other settings. A zone of the configuration stays as it is.
    pub fn add_zones(&self, list: Vec<ZoneSettings>) {
        self.load_added(&self.take_in(list));
    }

    /// Adds zones, which are answered with SERVFAIL until they are loaded.
    pub(super) fn take_in(&self, list: Vec<ZoneSettings>) -> Added {
        let (mut new, mut changed) = (Vec::new(), Vec::new());
        let list: BTreeMap<Name, ZoneSettings> =
            list.into_iter().map(|settings| (settings.apex.clone(), settings)).collect();
        let changing = lock(&self.changing);
        for (apex, settings) in list {
            match self.zone(&apex) {
                Some(zone) if !zone.is_member() => {}
                Some(zone) => {
                    if zone.set_settings(settings) {
                        self.show_policy(&zone);
                        changed.push(zone);
                    }
                }
                None => new.push(Arc::new(Zone::member(settings, self.work_of(&apex)))),
            }
        }
        self.insert(&new);
        drop(changing);
        for zone in &changed {
            self.tell(&ZoneEvent::Changed(zone.settings()));
        }
        Added { new, changed }
    }

    /// Loads zones that were added, which may take long: they are verified.
    pub(super) fn load_added(&self, Added { new, changed }: &Added) {
        self.load_all(new);
        // What came of it stands in the log and in the zone's status.
        self.for_each(changed, |zone| drop(self.reload_one(zone, true)));
    }

    /// Takes zones away that were added; `is_kept`: what is kept of them stays.
    pub fn remove_zones(&self, zones: &[Name], is_kept: bool) {
        let _changing = lock(&self.changing);
        let members = zones.iter().filter_map(|apex| self.zone(apex).filter(|zone| zone.is_member()));
        self.drop_zones(&members.collect::<Vec<_>>(), is_kept);
    }

    /// Puts zones into the table, not ready yet; none of these names is there, and the caller holds `changing`.
    pub(super) fn insert(&self, zones: &[Arc<Zone>]) {
        lock(&self.table).extend(zones.iter().map(|zone| (zone.apex().clone(), Arc::clone(zone))));
        let states = zones.iter().map(|zone| (zone.apex().clone(), ZoneState::NotReady(zone.policy())));
        self.zones.set_all(states.collect());
    }

    /// Removes zones: they are not served any longer, and a running publication is not waited for. The caller holds `changing`, so
    /// that no zone comes back before its stored files are deleted.
    pub(super) fn drop_zones(&self, zones: &[Arc<Zone>], is_kept: bool) {
        let mut table = lock(&self.table);
        zones.iter().for_each(|zone| drop(table.remove(zone.apex())));
        drop(table);
        zones.iter().for_each(|zone| zone.close());
        let names: Vec<Name> = zones.iter().map(|zone| zone.apex().clone()).collect();
        self.zones.remove_all(&names);
        for (zone, apex) in zones.iter().zip(names) {
            if let Some(state) = self.state.as_ref().filter(|_| !is_kept) {
                state.remove(&apex);
            }
            self.abandon_work(&apex, zone.work(), is_kept);
            self.tell(&ZoneEvent::Removed { apex, is_kept });
        }
    }
}

/// Which catalog has a zone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Membership {
    pub(super) zone: Name,
    pub(super) catalog: Name,
    /// Its label there.
    pub(super) label: Vec<u8>,
    /// Its groups there.
    pub(super) groups: Vec<Vec<u8>>,
}

impl Membership {
    fn parse(text: &str) -> Option<Self> {
        let mut lines = text.lines();
        let mut value = |key: &str| lines.next()?.strip_prefix(key)?.strip_prefix(' ');
        let _ = value("nonesuch member")?;
        let (zone, catalog) = (value("zone")?.parse().ok()?, value("catalog")?.parse().ok()?);
        let decode = |hex: &str| HEXLOWER.decode(hex.as_bytes()).ok();
        let label = decode(value("label")?)?;
        let groups: Option<_> = lines.map(|line| decode(line.strip_prefix("group ")?)).collect();
        Some(Self { zone, catalog, label, groups: groups? })
    }

    fn text(&self) -> String {
        let label = HEXLOWER.encode(&self.label);
        let groups = self.groups.iter().map(|group| format!("group {}\n", HEXLOWER.encode(group)));
        let groups: String = groups.collect();
        format!("{HEAD}\nzone {}\ncatalog {}\nlabel {label}\n{groups}", self.zone, self.catalog)
    }

    /// The last valid version of `catalog`, as far as the notes of its members have it: without `coo` properties, since a broken
    /// catalog lets no member zone go (RFC 9432 §5.1). `None` where no member is noted.
    pub(super) fn last_version(catalog: &Name, noted: &[Self]) -> Option<Catalog> {
        let members = noted.iter().filter(|noted| noted.catalog == *catalog).map(|noted| {
            let (label, groups) = (noted.label.clone(), noted.groups.clone());
            (noted.zone.view().to_canonical(), Member { label, groups, new_owner: None })
        });
        let members: BTreeMap<Name, Member> = members.collect();
        (!members.is_empty()).then(|| Catalog { apex: catalog.view().to_canonical(), members })
    }

    /// Notes it beside what is kept of the zone. Where the label is another one than was noted, what is kept goes first.
    ///
    /// # Errors
    /// Those of writing.
    pub(super) fn settle(&self, state: &StateFolder) -> io::Result<()> {
        let noted = Self::of_stem(state, &file_stem(&self.zone));
        if noted.as_ref() == Some(self) {
            return Ok(());
        }
        if noted.is_some_and(|noted| noted.label != self.label) {
            state.remove(&self.zone);
        }
        // One that is lost is made anew from the catalog.
        state.write_soon(&self.zone, MEMBER, |out| out.write_all(self.text().as_bytes()))
    }

    /// Forgets it: the zone is one of the configuration.
    pub(super) fn forget(state: &StateFolder, zone: &Name) {
        // Most zones never were members.
        let _ = std::fs::remove_file(state.path(zone, MEMBER));
    }

    fn of_stem(state: &StateFolder, stem: &str) -> Option<Self> {
        let noted = Self::parse(&state.read_stem(stem, MEMBER)?)?;
        (file_stem(&noted.zone) == stem).then_some(noted)
    }

    /// All that is noted, but of zones that are among `zones`.
    ///
    /// # Errors
    /// Those of reading the folder.
    pub(super) fn all_but<'z>(
        state: &StateFolder,
        zones: impl IntoIterator<Item = &'z Name>,
    ) -> io::Result<Vec<Self>> {
        let known: BTreeSet<String> = zones.into_iter().map(file_stem).collect();
        let others = state.stems()?;
        Ok(others.difference(&known).filter_map(|stem| Self::of_stem(state, stem)).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::service::state::ZONE;

    fn membership(catalog: &str, label: &[u8]) -> Membership {
        let name = |text: &str| text.parse().unwrap();
        Membership {
            zone: name("member."),
            catalog: name(catalog),
            label: label.to_vec(),
            groups: vec![b"one".to_vec(), b"\ntwo".to_vec()],
        }
    }

    #[test]
    fn another_label_has_what_is_kept_removed() {
        let dir = tempfile::tempdir().unwrap();
        let state = StateFolder::open(dir.path()).unwrap();
        let zone: Name = "member.".parse().unwrap();
        let keep = || state.write(&zone, ZONE, |out| out.write_all(b"\x89NSCI\r\n\x1a")).unwrap();
        let is_kept = || state.path(&zone, ZONE).exists();
        keep();
        // What was kept of a zone of the configuration is of use to the member.
        membership("a.", b"one").settle(&state).unwrap();
        assert!(is_kept());
        membership("a.", b"one").settle(&state).unwrap();
        membership("b.", b"one").settle(&state).unwrap();
        assert!(is_kept(), "a move with the same label");
        membership("b.", b"\0two").settle(&state).unwrap();
        assert!(!is_kept());
        assert_eq!(Membership::all_but(&state, []).unwrap(), [membership("b.", b"\0two")]);
        assert!(Membership::all_but(&state, [&zone]).unwrap().is_empty());
        Membership::forget(&state, &zone);
        assert!(Membership::all_but(&state, []).unwrap().is_empty());
    }

    #[test]
    fn a_note_that_cannot_be_read_is_none() {
        let text = membership("a.", b"one").text();
        assert_eq!(Membership::parse(&text), Some(membership("a.", b"one")));
        // One that was written without groups, and one that is not whole.
        let (without, cut) = (text.split("group").next().unwrap(), &text[..text.len() - 2]);
        assert_eq!(Membership::parse(without).map(|noted| noted.groups), Some(vec![]));
        for wrong in [
            "",
            cut,
            "nonesuch member 1\n",
            &text.replace("label ", "label x"),
            &text.replace("catalog", "katalog"),
        ] {
            assert_eq!(Membership::parse(wrong), None, "{wrong}");
        }
    }
}
