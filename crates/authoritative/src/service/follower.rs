//! What ties a service to transfers and catalogs: zones of primaries are refreshed, secondaries are told of new versions,
//! members of catalogs come and go (RFC 9432).

use super::members::Added;
use super::membership::MemberOf;
use super::state::Membership;
use super::{Catalog as Role, Service, Source, ZoneEvent, ZoneSettings};
use crate::catalog::{Catalog, Change, Group, Listed, Registry, produce};
use nonesuch_proto::Name;
use nonesuch_secondary::notify::Occasion;
use nonesuch_secondary::{SecondaryZone, Transfers};
use nonesuch_zone::Contents;
use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use tokio::sync::mpsc::UnboundedReceiver;

/// Follows what happens to the zones of `service`, in a thread of its own that ends with the service; to be called before the
/// service begins.
///
/// # Errors
/// What the system says of a new thread.
pub fn follow(
    service: &Arc<Service>,
    events: UnboundedReceiver<ZoneEvent>,
    transfers: Arc<Transfers>,
) -> io::Result<()> {
    let registry = Registry::new(service.configured());
    let loads = start_loader(Arc::clone(service))?;
    let notes = start_syncer(Arc::clone(service))?;
    let follower = Follower {
        service: Arc::clone(service),
        transfers,
        registry,
        members: BTreeMap::new(),
        has_loaded: false,
        loads,
        notes,
        told_groups: RefCell::default(),
    };
    // Until the members of stored catalogs are loaded, and until the catalogs of this server are made.
    service.begin_loading();
    service.begin_loading();
    std::thread::Builder::new().name("zones".to_owned()).spawn(move || follower.run(events)).map(drop)
}

/// What is loaded in a thread of its own: it may take long, and what happens meanwhile is followed all the same.
enum Load {
    Members(Added),
    /// All that was kept of members stands in front.
    KeptOnes,
}

/// Starts the thread that loads members; it ends with the sender. It loads one list after the other: a later list may have other settings
/// for a zone of an earlier one, and the last settings must stay. Each list loads several zones at once, so one slow zone delays the next
/// list and not the rest of its own. Zones that are loaded once get their later versions from other threads.
fn start_loader(service: Arc<Service>) -> io::Result<Sender<Load>> {
    let (loads, received) = channel();
    let load = move || {
        for load in received {
            match load {
                Load::Members(added) => service.load_added(&added),
                Load::KeptOnes => service.tell(&ZoneEvent::MembersLoaded),
            }
        }
    };
    std::thread::Builder::new().name("members".to_owned()).spawn(load)?;
    Ok(loads)
}

/// Starts the thread that has the notes of members written to the disk; it ends with the sender. A catalog may have a hundred thousand
/// members, and each write takes milliseconds: neither the follower nor the zones wait for it. Where the machine stops before, the
/// note is written again from the catalog.
fn start_syncer(service: Arc<Service>) -> io::Result<Sender<Vec<Name>>> {
    let (notes, received) = channel::<Vec<Name>>();
    let sync = move || {
        while let Ok(mut zones) = received.recv() {
            zones.extend(received.try_iter().flatten());
            let Some(state) = service.state() else { continue };
            if let Err((zone, error)) = Membership::sync(state, &zones) {
                let name = zone.to_string();
                tracing::warn!(zone = name, "zone {name}: its note as a member may be lost: {error}");
            }
        }
    };
    std::thread::Builder::new().name("notes".to_owned()).spawn(sync)?;
    Ok(notes)
}

struct Follower {
    service: Arc<Service>,
    transfers: Arc<Transfers>,
    registry: Registry,
    /// Members, the catalog of each and its groups.
    members: BTreeMap<Name, (Name, Vec<Group>)>,
    /// Whether the stored versions of catalogs were taken: until then no single one is.
    has_loaded: bool,
    /// Groups without a template of which that was said.
    told_groups: RefCell<BTreeSet<(Name, Group)>>,
    loads: Sender<Load>,
    /// Takes members whose notes were written.
    notes: Sender<Vec<Name>>,
}

/// Groups of which something is said: a catalog may have as many as members.
const MOST_GROUPS: usize = 100;

/// Zones that are to go, each with whether what is kept of it stays, and zones that are to come then, each with its catalog
/// and groups.
#[derive(Default)]
struct Due {
    removed: Vec<(Name, bool)>,
    added: BTreeMap<Name, (Name, Vec<Group>)>,
}

impl Due {
    fn add(&mut self, zone: Name, catalog: Name, groups: Vec<Group>) {
        self.added.insert(zone, (catalog, groups));
    }
}

fn with_apex(settings: ZoneSettings, note: MemberOf) -> (ZoneSettings, (Name, MemberOf)) {
    let apex = settings.apex.clone();
    (settings, (apex, note))
}

impl Follower {
    fn run(mut self, mut events: UnboundedReceiver<ZoneEvent>) {
        while let Some(event) = events.blocking_recv() {
            match event {
                // A zone of primaries may be stored: whether anything is to be transferred shows when it is settled.
                ZoneEvent::Added(settings) if settings.source == Source::Primaries => {}
                ZoneEvent::Added(settings) => self.set_zone(&settings),
                ZoneEvent::Changed(settings) => {
                    let secondaries = settings.transfers.also_notify.clone();
                    self.transfers.retain_secondaries(&settings.apex, secondaries);
                    // One of primaries when it is settled again, with what is kept of it.
                    if settings.source != Source::Primaries {
                        self.set_zone(&settings);
                    }
                    self.look_at(&settings.apex);
                }
                ZoneEvent::Published { apex, is_new, .. } => {
                    self.follow(&apex);
                    self.announce(&apex, is_new);
                    self.look_at(&apex);
                }
                ZoneEvent::NotLoaded { apex } => {
                    self.follow(&apex);
                    self.look_at(&apex);
                }
                ZoneEvent::Removed { apex, is_kept } => self.forget(&apex, is_kept),
                ZoneEvent::CatalogsLoaded => self.load_catalogs(),
                // The catalogs of this server are made by now: what came before this was heard.
                ZoneEvent::Loaded | ZoneEvent::MembersLoaded => self.service.end_loading(),
                ZoneEvent::Reloaded => {
                    self.renew();
                    self.transfers.reconsider_rejected();
                }
                ZoneEvent::Stopped => return,
            }
        }
    }

    /// Has a zone of primaries refreshed from now on.
    fn follow(&self, apex: &Name) {
        if let Some(settings) = self.service.settings_of(apex)
            && settings.source == Source::Primaries
        {
            self.set_zone(&settings);
        }
    }

    fn set_zone(&self, settings: &ZoneSettings) {
        if settings.source != Source::Primaries {
            self.transfers.remove_zone(&settings.apex);
            return;
        }
        let transfers = &settings.transfers;
        self.transfers.set_zone(SecondaryZone {
            apex: settings.apex.clone(),
            primaries: transfers.primaries.clone(),
            judged_by: settings.judged_by(),
            timing: transfers.timing(),
            bounds: transfers.bounds,
            request_ixfr: transfers.request_ixfr,
        });
    }

    /// Tells those who want to know of the version that is served.
    fn announce(&self, apex: &Name, is_new: bool) {
        let Some(settings) = self.service.settings_of(apex) else { return };
        if settings.transfers.also_notify.is_empty() {
            return;
        }
        if let Some(soa) = self.service.soa_record(apex) {
            // What a primary has sent is a change, however early it comes.
            let is_change = is_new && (settings.source == Source::Primaries || self.service.is_settled());
            let occasion = if is_change { Occasion::Change } else { Occasion::Start };
            self.transfers.announce(apex, soa, settings.transfers.also_notify.clone(), occasion);
        }
    }

    /// Forgets a zone that is gone. Where it was a catalog, its members go with it; nobody has taken them out of it, and what
    /// is kept of them stays as what is kept of the catalog does.
    fn forget(&mut self, apex: &Name, is_kept: bool) {
        self.transfers.retain_secondaries(apex, Vec::new());
        if is_kept {
            self.transfers.retire_zone(apex);
        } else {
            self.transfers.remove_zone(apex);
        }
        let changes = self.registry.forget(apex);
        self.make(changes, true);
    }

    /// Makes or reads a catalog.
    fn look_at(&mut self, apex: &Name) {
        let Some(settings) = self.service.settings_of(apex) else { return };
        match &settings.catalog {
            Some(Role::Producer { members }) => {
                self.produce(apex, members, self.service.contents(apex).as_deref());
            }
            Some(Role::Consumer { .. }) if self.has_loaded => {
                let is_first = !self.registry.knows(apex);
                let Some(catalog) = self.read(apex) else { return self.keep_last_version(apex) };
                let changes = self.registry.update(catalog);
                self.make(changes, false);
                if is_first {
                    self.remove_lost_members();
                }
            }
            Some(Role::Consumer { .. }) => {}
            None => self.service.note_catalog(apex, None),
        }
    }

    /// Serves the member zones of the last valid version of a catalog whose newest version is broken (RFC 9432 §5.1).
    fn keep_last_version(&mut self, apex: &Name) {
        if self.registry.knows(apex) {
            self.registry.mark_broken(apex);
        } else if let Some(catalog) = Membership::last_version(apex, &self.noted_members()) {
            let changes = self.registry.update(catalog);
            self.make(changes, false);
        }
    }

    /// The version of a catalog that is loaded, where it is valid. A broken one must not be processed (RFC 9432 §5.1).
    fn read(&self, apex: &Name) -> Option<Catalog> {
        let contents = self.service.contents(apex)?;
        let zone = apex.to_string();
        let catalog = Catalog::read(&contents).inspect_err(|error| {
            tracing::error!(zone, "catalog {zone}: broken, its members stay as they are: {error}");
        });
        let fault = catalog.as_ref().err();
        let fault =
            fault.map(|error| format!("the catalog is broken, its members stay as they are: {error}"));
        self.service.note_catalog(apex, fault);
        catalog.ok()
    }

    /// Takes the stored versions of all catalogs at once, and serves the stored versions of their members. Where the stored version
    /// of a catalog is broken or absent, the members are those of its last valid version (RFC 9432 §5.1).
    fn load_catalogs(&mut self) {
        let settings = self.service.all_settings();
        let consumed = settings.iter().filter(|zone| matches!(zone.catalog, Some(Role::Consumer { .. })));
        let noted = self.noted_members();
        let version_of = |apex: &Name| self.read(apex).or_else(|| Membership::last_version(apex, &noted));
        let catalogs: Vec<Catalog> = consumed.filter_map(|zone| version_of(&zone.apex)).collect();
        let owners = noted.into_iter().map(|member| (member.zone, member.catalog)).collect();
        let changes = self.registry.load(catalogs, &owners);
        self.has_loaded = true;
        self.make(changes, false);
        self.remove_lost_members();
        self.load(Load::KeptOnes);
    }

    fn load(&self, load: Load) {
        // The thread ends only when this one has.
        let _ = self.loads.send(load);
    }

    /// What is noted of zones that no catalog has now.
    fn noted_members(&self) -> Vec<Membership> {
        let Some(state) = self.service.state() else { return Vec::new() };
        Membership::all_but(state, self.registry.members()).unwrap_or_else(|error| {
            tracing::warn!("state-dir cannot be read: {error}");
            Vec::new()
        })
    }

    /// Removes what is kept of members that were taken out of their catalog while nobody looked (RFC 9432 §5.3). Those of
    /// catalogs that were not read yet, or are not in the configuration, are left alone.
    fn remove_lost_members(&self) {
        for Membership { zone, catalog, .. } in self.noted_members() {
            if self.registry.knows(&catalog) && self.service.settings_of(&zone).is_none() {
                tracing::info!(zone = zone.to_string(), %catalog, "zone {zone}: no member of {catalog} any longer");
                self.service.delete_stored(&zone);
            }
        }
    }

    fn produce(&self, apex: &Name, members: &[Listed], previous: Option<&Contents>) {
        let zone = apex.to_string();
        let label_of = |listed: &Listed| {
            let former = self.service.contents(listed.former_owner.as_ref()?)?;
            Some(Catalog::read(&former).ok()?.members.get(&listed.zone)?.label.clone())
        };
        let members = members.iter().map(|listed| Listed { label: label_of(listed), ..listed.clone() });
        let members: Vec<Listed> = members.collect();
        match produce(apex, &members, previous, nonesuch_server::clock::seconds_now() as u32) {
            Ok(Some(contents)) => {
                self.service.note_catalog(apex, None);
                // Why it is refused stands in the log and in the zone's status.
                let _ = self.service.publish(apex, contents, &[]);
            }
            Ok(None) => self.service.note_catalog(apex, None),
            Err(error) => {
                tracing::error!(zone, "catalog {zone}: cannot be made: {error}");
                self.service.note_catalog(apex, Some(format!("the catalog cannot be made: {error}")));
            }
        }
    }

    /// After a reload: other zones are configured, templates are others.
    fn renew(&mut self) {
        self.told_groups.borrow_mut().clear();
        let changes = self.registry.set_configured(self.service.configured());
        // What is a zone of the configuration now has what was kept of it.
        self.make(changes, true);
        let members = self.members.iter();
        let settings =
            members.filter_map(|(zone, (catalog, groups))| self.settings_for(zone, catalog, groups));
        self.add(settings.collect());
    }

    /// Makes changes of catalogs, in order: those that go together at once, then those that come. `is_kept`: what is kept of
    /// zones that go stays.
    fn make(&mut self, changes: Vec<Change>, is_kept: bool) {
        let mut due = Due::default();
        for change in changes {
            match change {
                Change::Add { zone, catalog, groups } => due.add(zone, catalog, groups),
                Change::Remove { zone } => {
                    self.before_removal(&zone, &mut due);
                    if let Some((catalog, _)) = self.members.remove(&zone) {
                        let name = zone.to_string();
                        tracing::info!(zone = name, %catalog, "zone {name}: no member of {catalog} any longer");
                    }
                    due.removed.push((zone, is_kept));
                }
                Change::Reset { zone, groups } => {
                    self.before_removal(&zone, &mut due);
                    due.removed.push((zone.clone(), false));
                    self.keep_catalog(zone, groups, &mut due);
                }
                Change::Regroup { zone, groups } => self.keep_catalog(zone, groups, &mut due),
                Change::Move { zone, to, groups, is_reset, .. } => {
                    if is_reset {
                        self.before_removal(&zone, &mut due);
                        due.removed.push((zone.clone(), false));
                    }
                    due.add(zone, to, groups);
                }
                Change::Clash { zone, catalog } => tracing::warn!(
                    zone = zone.to_string(),
                    %catalog,
                    "zone {zone}: is served already, and catalog {catalog} is not heeded there"
                ),
            }
        }
        self.settle(due);
    }

    /// A zone that was to come and goes again comes first.
    fn before_removal(&mut self, zone: &Name, due: &mut Due) {
        if due.added.contains_key(zone) {
            self.settle(std::mem::take(due));
        }
    }

    fn keep_catalog(&self, zone: Name, groups: Vec<Group>, due: &mut Due) {
        let catalog =
            due.added.get(&zone).or_else(|| self.members.get(&zone)).map(|(catalog, _)| catalog.clone());
        if let Some(catalog) = catalog {
            due.add(zone, catalog, groups);
        }
    }

    fn settle(&mut self, due: Due) {
        for is_kept in [true, false] {
            let zones = due.removed.iter().filter(|(_, kept)| *kept == is_kept).map(|(zone, _)| zone.clone());
            let zones: Vec<Name> = zones.collect();
            if !zones.is_empty() {
                self.service.remove_zones(&zones, is_kept);
            }
        }
        let noted: Vec<Name> = due.added.keys().cloned().collect();
        let added = due.added.into_iter();
        let settings: Vec<(ZoneSettings, MemberOf)> =
            added.filter_map(|(zone, (catalog, groups))| self.set_member(zone, catalog, groups)).collect();
        if !noted.is_empty() {
            // The thread ends only when this one has.
            let _ = self.notes.send(noted);
        }
        if !settings.is_empty() {
            self.add(settings);
        }
    }

    /// Adds members, or gives them other settings, and notes where they come from.
    fn add(&self, members: Vec<(ZoneSettings, MemberOf)>) {
        let (settings, notes): (Vec<ZoneSettings>, Vec<_>) =
            members.into_iter().map(|(settings, note)| with_apex(settings, note)).unzip();
        self.load(Load::Members(self.service.take_in(settings)));
        for (apex, note) in notes {
            self.service.note_member(&apex, note);
        }
    }

    /// Notes that a zone is a member; returns the settings that it is to be served with.
    fn set_member(
        &mut self,
        zone: Name,
        catalog: Name,
        groups: Vec<Group>,
    ) -> Option<(ZoneSettings, MemberOf)> {
        let settings = self.settings_for(&zone, &catalog, &groups);
        if let Some((state, label)) = self.service.state().zip(self.registry.label(&zone)) {
            let (of, groups) = (catalog.clone(), groups.clone());
            let membership = Membership { zone: zone.clone(), catalog: of, label: label.to_vec(), groups };
            if let Err(error) = membership.settle(state) {
                tracing::warn!(zone = zone.to_string(), %catalog, "zone {zone}: cannot be noted as a member: {error}");
            }
        }
        self.members.insert(zone, (catalog, groups));
        settings
    }

    /// Whether nothing was said yet of a group that has no template: once for all of its members.
    fn is_untold(&self, catalog: &Name, group: &Group) -> bool {
        let mut told = self.told_groups.borrow_mut();
        told.len() < MOST_GROUPS && told.insert((catalog.clone(), group.clone()))
    }

    /// The settings of a member by the template of its group.
    fn settings_for(
        &self,
        zone: &Name,
        catalog: &Name,
        groups: &[Group],
    ) -> Option<(ZoneSettings, MemberOf)> {
        let settings = self.service.settings_of(catalog)?;
        let Some(Role::Consumer { template, groups: by_group }) = &settings.catalog else { return None };
        let of_group = groups.iter().find_map(|group| by_group.get(group.text()?));
        let name = of_group.unwrap_or(template);
        let untold = |group: &&Group| of_group.is_none() && self.is_untold(catalog, group);
        if let Some(group) = groups.first().filter(untold) {
            let words = if !by_group.is_empty() {
                "which has no template here"
            } else {
                "and no group has a template here"
            };
            tracing::info!(
                zone = zone.to_string(),
                %catalog,
                "zone {zone}: {catalog} has it in the group {group}, {words}: what is in it is served by {name}"
            );
        }
        let template = self.service.template(name);
        if template.is_none() {
            tracing::error!(
                zone = zone.to_string(),
                %catalog,
                "zone {zone}: there is no template {name} for this member of {catalog}"
            );
        }
        let member_of = MemberOf { catalog: catalog.clone(), template: name.clone() };
        template.map(|template| (template.for_member(zone.clone()), member_of))
    }
}

#[cfg(test)]
mod tests;
