//! What ties a service to transfers and catalogs: zones of primaries are refreshed, secondaries are told of new versions,
//! members of catalogs come and go (RFC 9432).

use super::members::AddedZones;
use super::membership::CatalogMembership;
use super::state::Membership;
use super::{CatalogSettings as Role, Service, ZoneEvent, ZoneSettings, ZoneSource};
use crate::catalog::{Catalog, Change, Group, OwningCatalog, ProducedMember, Registry, produce};
use nonesuch_proto::Name;
use nonesuch_secondary::notify::NotifyReason;
use nonesuch_secondary::{SecondaryZone, Transfers};
use nonesuch_zone::Contents;
use std::cell::RefCell;
use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Sender, channel};
use tokio::sync::mpsc::UnboundedReceiver;

/// Follows what happens to the zones of `service`, in a thread of its own that ends with the service; to be called before the
/// service begins.
///
/// # Errors
/// What the system says of a new thread.
pub fn handle_zone_events(
    service: &Arc<Service>,
    events: UnboundedReceiver<ZoneEvent>,
    transfers: Arc<Transfers>,
) -> io::Result<()> {
    let registry = Registry::new(service.configured());
    let loads = start_loader(Arc::clone(service))?;
    let notes = start_syncer(Arc::clone(service))?;
    let follower = ZoneEventHandler {
        service: Arc::clone(service),
        transfers,
        registry,
        has_loaded: false,
        loads,
        notes,
        logged_groups: RefCell::default(),
    };
    // Until the members of stored catalogs are loaded, and until the catalogs of this server are made.
    service.begin_loading();
    service.begin_loading();
    std::thread::Builder::new().name("zones".to_owned()).spawn(move || follower.run(events)).map(drop)
}

/// What is loaded in a thread of its own: it may take long, and what happens meanwhile is followed all the same.
enum LoaderTask {
    Members(AddedZones),
    /// All that was kept of members stands in front.
    StoredMembersDone,
}

/// Starts the thread that loads members; it ends with the sender. It loads one list after the other: a later list may have other settings
/// for a zone of an earlier one, and the last settings must stay. Each list loads several zones at once, so one slow zone delays the next
/// list and not the rest of its own. Zones that are loaded once get their later versions from other threads.
fn start_loader(service: Arc<Service>) -> io::Result<Sender<LoaderTask>> {
    let (loads, received) = channel();
    let load = move || {
        for load in received {
            match load {
                LoaderTask::Members(added) => service.load_added(&added),
                LoaderTask::StoredMembersDone => service.send_event(&ZoneEvent::MembersLoaded),
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

struct ZoneEventHandler {
    service: Arc<Service>,
    transfers: Arc<Transfers>,
    registry: Registry,
    /// Whether the stored versions of catalogs were taken: until then no single one is.
    has_loaded: bool,
    /// Groups without a template of which that was said.
    logged_groups: RefCell<BTreeSet<(Name, Group)>>,
    loads: Sender<LoaderTask>,
    /// Takes members whose notes were written.
    notes: Sender<Vec<Name>>,
}

/// Groups of which something is said: a catalog may have as many as members.
const MOST_GROUPS: usize = 100;

/// Zones that are to go, and zones that are to come then.
#[derive(Default)]
struct PendingChanges {
    /// Zones to be removed whose stored files stay.
    retired: Vec<Name>,
    /// Zones to be removed with their stored files.
    deleted: Vec<Name>,
    /// Zones to be added, or served with other settings.
    added: BTreeSet<Name>,
}

/// A member of a catalog, and where it comes from.
struct MemberZone {
    settings: ZoneSettings,
    member_of: CatalogMembership,
}

impl ZoneEventHandler {
    fn run(mut self, mut events: UnboundedReceiver<ZoneEvent>) {
        while let Some(event) = events.blocking_recv() {
            match event {
                // A zone of primaries may be stored: whether anything is to be transferred shows when it is settled.
                ZoneEvent::Added(settings) if settings.source == ZoneSource::Primaries => {}
                ZoneEvent::Added(settings) => self.set_zone(&settings),
                ZoneEvent::Changed(settings) => {
                    let secondaries = settings.transfers.also_notify.clone();
                    self.transfers.retain_secondaries(&settings.apex, secondaries);
                    // One of primaries when it is settled again, with what is kept of it.
                    if settings.source != ZoneSource::Primaries {
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
            && settings.source == ZoneSource::Primaries
        {
            self.set_zone(&settings);
        }
    }

    fn set_zone(&self, settings: &ZoneSettings) {
        if settings.source != ZoneSource::Primaries {
            self.transfers.remove_zone(&settings.apex);
            return;
        }
        let transfers = &settings.transfers;
        self.transfers.set_zone(SecondaryZone {
            apex: settings.apex.clone(),
            primaries: transfers.primaries.clone(),
            judged_by: settings.verification_digest(),
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
            let is_change = is_new && (settings.source == ZoneSource::Primaries || self.service.is_settled());
            let occasion = if is_change { NotifyReason::Change } else { NotifyReason::Start };
            self.transfers.send_notify(apex, soa, settings.transfers.also_notify.clone(), occasion);
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
        self.load(LoaderTask::StoredMembersDone);
    }

    fn load(&self, load: LoaderTask) {
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

    fn produce(&self, apex: &Name, members: &[ProducedMember], previous: Option<&Contents>) {
        let zone = apex.to_string();
        let label_of = |listed: &ProducedMember| {
            let former = self.service.contents(listed.former_owner.as_ref()?)?;
            Some(Catalog::read(&former).ok()?.members.get(&listed.zone)?.label.clone())
        };
        let members =
            members.iter().map(|listed| ProducedMember { label: label_of(listed), ..listed.clone() });
        let members: Vec<ProducedMember> = members.collect();
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
        self.logged_groups.borrow_mut().clear();
        let changes = self.registry.set_configured(self.service.configured());
        // What is a zone of the configuration now has what was kept of it.
        self.make(changes, true);
        let members = self.registry.members().filter_map(|zone| self.member_zone(zone));
        self.add(members.collect());
    }

    /// Makes changes of catalogs, in order: those that go together at once, then those that come. `is_kept`: what is kept of
    /// zones that go stays.
    fn make(&mut self, changes: Vec<Change>, is_kept: bool) {
        let mut due = PendingChanges::default();
        for change in changes {
            match change {
                Change::Add { zone } | Change::Update { zone } => drop(due.added.insert(zone)),
                Change::Remove { zone, catalog } => {
                    self.before_removal(&zone, &mut due);
                    let name = zone.to_string();
                    tracing::info!(zone = name, %catalog, "zone {name}: no member of {catalog} any longer");
                    if is_kept { &mut due.retired } else { &mut due.deleted }.push(zone);
                }
                Change::Reset { zone } => {
                    self.before_removal(&zone, &mut due);
                    due.deleted.push(zone.clone());
                    due.added.insert(zone);
                }
                Change::Clash { zone, catalog } => tracing::warn!(
                    zone = zone.to_string(),
                    %catalog,
                    "zone {zone}: is served already, and catalog {catalog} is not heeded there"
                ),
            }
        }
        self.apply_changes(due);
    }

    /// A zone that was to come and goes again comes first.
    fn before_removal(&mut self, zone: &Name, due: &mut PendingChanges) {
        if due.added.contains(zone) {
            self.apply_changes(std::mem::take(due));
        }
    }

    fn apply_changes(&mut self, due: PendingChanges) {
        for (zones, is_kept) in [(due.retired, true), (due.deleted, false)] {
            if !zones.is_empty() {
                self.service.remove_zones(&zones, is_kept);
            }
        }
        let members: Vec<MemberZone> = due.added.iter().filter_map(|zone| self.set_member(zone)).collect();
        if !due.added.is_empty() {
            // The thread ends only when this one has.
            let _ = self.notes.send(due.added.into_iter().collect());
        }
        if !members.is_empty() {
            self.add(members);
        }
    }

    /// Adds members, or gives them other settings, and notes where they come from.
    fn add(&self, members: Vec<MemberZone>) {
        let notes = members.iter().map(|member| (member.settings.apex.clone(), member.member_of.clone()));
        let notes: Vec<(Name, CatalogMembership)> = notes.collect();
        let settings = members.into_iter().map(|member| member.settings).collect();
        self.load(LoaderTask::Members(self.service.add_unloaded(settings)));
        for (apex, note) in notes {
            self.service.note_member(&apex, note);
        }
    }

    /// Notes in the state directory that a zone is a member; returns it with the settings that it is to be served with.
    fn set_member(&self, zone: &Name) -> Option<MemberZone> {
        if let Some((state, owner)) = self.service.state().zip(self.registry.owner(zone)) {
            let OwningCatalog { catalog, label, groups } = owner.clone();
            let membership = Membership { zone: zone.clone(), catalog, label, groups };
            if let Err(error) = membership.persist(state) {
                let catalog = &owner.catalog;
                tracing::warn!(zone = zone.to_string(), %catalog, "zone {zone}: cannot be noted as a member: {error}");
            }
        }
        self.member_zone(zone)
    }

    /// Whether nothing was said yet of a group that has no template: once for all of its members.
    fn is_untold(&self, catalog: &Name, group: &Group) -> bool {
        let mut told = self.logged_groups.borrow_mut();
        told.len() < MOST_GROUPS && told.insert((catalog.clone(), group.clone()))
    }

    /// A member with the settings of the template of its group.
    fn member_zone(&self, zone: &Name) -> Option<MemberZone> {
        let OwningCatalog { catalog, groups, .. } = self.registry.owner(zone)?;
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
        let member_of = CatalogMembership { catalog: catalog.clone(), template: name.clone() };
        template.map(|template| MemberZone { settings: template.for_member(zone.clone()), member_of })
    }
}

#[cfg(test)]
mod tests;
