//! Handles the events of a service: starts to refresh zones of primaries, notifies secondaries of
//! new versions, and adds and removes members of catalogs (RFC 9432).
//!
//! [`handle_zone_events`] starts three threads:
//!
//! - `zones` handles the events in their order, and does not wait for zones to be loaded. It ends at
//!   [`ZoneEvent::Stopped`]; the other two end after it.
//! - `members` loads members of catalogs.
//! - `notes` syncs the membership notes of members to disk.
//!
//! A membership note is the catalog, label and groups of a member in its state file
//! ([`Membership`]).

use super::members::AddedZones;
use super::membership::CatalogMembership;
use super::state::Membership;
use super::{CatalogSettings, Service, ZoneEvent, ZoneSettings, ZoneSource};
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

/// Starts the threads that handle the `events` of `service`. They end when the service stops. The
/// caller must call this before [`Service::begin`], because [`Service::wait_until_loaded`] also
/// waits for the members of stored catalogs.
///
/// # Errors
/// Returns the error of the operating system if a thread cannot be started.
pub fn handle_zone_events(
    service: &Arc<Service>,
    events: UnboundedReceiver<ZoneEvent>,
    transfers: Arc<Transfers>,
) -> io::Result<()> {
    let registry = Registry::new(service.configured_zones());
    let loader = start_loader(Arc::clone(service))?;
    let syncer = start_syncer(Arc::clone(service))?;
    let handler = ZoneEventHandler {
        service: Arc::clone(service),
        transfers,
        registry,
        has_loaded_catalogs: false,
        loader,
        syncer,
        logged_groups: RefCell::default(),
    };
    // `run` ends one of them at `MembersLoaded`: the members of stored catalogs are loaded. It ends
    // the other at `Loaded`: the catalogs that this server produces are published.
    service.add_loading_task();
    service.add_loading_task();
    std::thread::Builder::new().name("zones".to_owned()).spawn(move || handler.run(events)).map(drop)
}

/// A task for the thread `members`.
enum LoaderTask {
    /// Load these members.
    Members(AddedZones),
    /// Send [`ZoneEvent::MembersLoaded`]. The tasks for all stored members precede this one.
    StoredMembersDone,
}

/// Starts the thread `members` and returns the sender of its tasks. The thread ends when the sender
/// is dropped. It loads the lists of zones one after the other, because a later list may contain
/// newer settings for the same zone. It loads several zones of a list concurrently, so that a slow
/// zone delays only the next list. Other threads load the later versions of a zone.
fn start_loader(service: Arc<Service>) -> io::Result<Sender<LoaderTask>> {
    let (sender, tasks) = channel();
    let load = move || {
        for task in tasks {
            match task {
                LoaderTask::Members(added) => service.load_added(&added),
                LoaderTask::StoredMembersDone => service.send_event(&ZoneEvent::MembersLoaded),
            }
        }
    };
    std::thread::Builder::new().name("members".to_owned()).spawn(load)?;
    Ok(sender)
}

/// Starts the thread `notes` and returns the sender of the members whose notes need a sync. The
/// thread ends when the sender is dropped. A catalog may have a hundred thousand members, and each
/// sync takes milliseconds. Therefore neither the thread `zones` nor the zones wait for it. After a
/// crash, a lost note is written again from the catalog.
fn start_syncer(service: Arc<Service>) -> io::Result<Sender<Vec<Name>>> {
    let (sender, written) = channel::<Vec<Name>>();
    let sync = move || {
        while let Ok(mut zones) = written.recv() {
            zones.extend(written.try_iter().flatten());
            let Some(state) = service.state_directory() else { continue };
            if let Err((zone, error)) = Membership::sync(state, &zones) {
                let name = zone.to_string();
                tracing::warn!(
                    name: "membership-not-synced",
                    zone = name,
                    "zone {name}: cannot sync its catalog membership to disk, a crash may lose it: {error}"
                );
            }
        }
    };
    std::thread::Builder::new().name("notes".to_owned()).spawn(sync)?;
    Ok(sender)
}

/// State of the thread `zones`.
struct ZoneEventHandler {
    service: Arc<Service>,
    transfers: Arc<Transfers>,
    registry: Registry,
    /// Whether the stored versions of all catalogs are loaded. Until then, no catalog is processed,
    /// because the owner of a zone can depend on all catalogs.
    has_loaded_catalogs: bool,
    /// Groups without a template, with their catalogs, that have been logged.
    logged_groups: RefCell<BTreeSet<(Name, Group)>>,
    /// Sends tasks to the thread `members`.
    loader: Sender<LoaderTask>,
    /// Sends members whose notes were written and need a sync to the thread `notes`.
    syncer: Sender<Vec<Name>>,
}

/// Maximum number of groups without a template that are logged between two reloads. A catalog may
/// have as many groups as members.
const MAX_LOGGED_GROUPS: usize = 100;

/// Zones to remove, and zones to add afterwards.
#[derive(Default)]
struct PendingChanges {
    /// Zones to remove; their stored files remain.
    retired: Vec<Name>,
    /// Zones to remove with their stored files.
    deleted: Vec<Name>,
    /// Zones to add, or to serve with other settings.
    added: BTreeSet<Name>,
}

/// A member of a catalog, with its origin.
struct MemberZone {
    settings: ZoneSettings,
    member_of: CatalogMembership,
}

impl ZoneEventHandler {
    /// Handles events until [`ZoneEvent::Stopped`].
    fn run(mut self, mut events: UnboundedReceiver<ZoneEvent>) {
        while let Some(event) = events.blocking_recv() {
            match event {
                // Only loading shows whether a zone of primaries needs a transfer, because a
                // version of it may be stored.
                ZoneEvent::Added(settings) if settings.source == ZoneSource::Primaries => {}
                ZoneEvent::Added(settings) => self.update_transfers(&settings),
                ZoneEvent::Changed(settings) => {
                    let secondaries = settings.transfers.also_notify.clone();
                    self.transfers.retain_secondaries(&settings.apex, secondaries);
                    // For a zone of primaries, this happens after it is loaded again with its
                    // stored version.
                    if settings.source != ZoneSource::Primaries {
                        self.update_transfers(&settings);
                    }
                    self.update_catalog(&settings.apex);
                }
                ZoneEvent::Published { apex, is_new, .. } => {
                    self.refresh_if_secondary(&apex);
                    self.notify_secondaries(&apex, is_new);
                    self.update_catalog(&apex);
                }
                ZoneEvent::NotLoaded { apex } => {
                    self.refresh_if_secondary(&apex);
                    self.update_catalog(&apex);
                }
                ZoneEvent::Removed { apex, keeps_files } => self.handle_removal(&apex, keeps_files),
                ZoneEvent::CatalogsLoaded => self.load_catalogs(),
                // The catalogs that this server produces are complete, because earlier events have
                // been handled.
                ZoneEvent::Loaded | ZoneEvent::MembersLoaded => self.service.end_loading_task(),
                ZoneEvent::Reloaded => {
                    self.handle_reload();
                    self.transfers.reconsider_rejected();
                }
                ZoneEvent::Stopped => return,
            }
        }
    }

    /// Starts to refresh a zone if it comes from primaries.
    fn refresh_if_secondary(&self, apex: &Name) {
        if let Some(settings) = self.service.settings_of(apex)
            && settings.source == ZoneSource::Primaries
        {
            self.update_transfers(&settings);
        }
    }

    /// Passes the settings of a zone to the transfers. Removes a zone that does not come from
    /// primaries from the transfers.
    fn update_transfers(&self, settings: &ZoneSettings) {
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

    /// Notifies the secondaries of the served version.
    fn notify_secondaries(&self, apex: &Name, is_new: bool) {
        let Some(settings) = self.service.settings_of(apex) else { return };
        if settings.transfers.also_notify.is_empty() {
            return;
        }
        if let Some(soa) = self.service.soa_record(apex) {
            // A version from a primary is always a change, even during startup.
            let is_change =
                is_new && (settings.source == ZoneSource::Primaries || self.service.has_finished_loading());
            let reason = if is_change { NotifyReason::Change } else { NotifyReason::Start };
            self.transfers.send_notify(apex, soa, settings.transfers.also_notify.clone(), reason);
        }
    }

    /// Handles the removal of a zone. If the zone is a catalog, its members are also removed. Their
    /// stored versions remain, because no catalog version removed the members.
    fn handle_removal(&mut self, apex: &Name, keeps_files: bool) {
        self.transfers.retain_secondaries(apex, Vec::new());
        if keeps_files {
            self.transfers.retire_zone(apex);
        } else {
            self.transfers.remove_zone(apex);
        }
        let changes = self.registry.remove_catalog(apex);
        self.apply_changes(changes, true);
    }

    /// Produces or reads a catalog.
    fn update_catalog(&mut self, apex: &Name) {
        let Some(settings) = self.service.settings_of(apex) else { return };
        match &settings.catalog {
            Some(CatalogSettings::Producer { members }) => {
                self.produce(apex, members, self.service.contents(apex).as_deref());
            }
            Some(CatalogSettings::Consumer { .. }) if self.has_loaded_catalogs => {
                let is_first = !self.registry.contains(apex);
                let Some(catalog) = self.read_catalog(apex) else { return self.keep_last_version(apex) };
                let changes = self.registry.update(catalog);
                self.apply_changes(changes, false);
                if is_first {
                    self.remove_lost_members();
                }
            }
            Some(CatalogSettings::Consumer { .. }) => {}
            None => self.service.note_catalog_fault(apex, None),
        }
    }

    /// Serves the member zones of the last valid version of a catalog whose newest version is
    /// broken (RFC 9432 §5.1).
    fn keep_last_version(&mut self, apex: &Name) {
        if self.registry.contains(apex) {
            self.registry.mark_broken(apex);
        } else if let Some(catalog) = Membership::last_version(apex, &self.noted_members()) {
            let changes = self.registry.update(catalog);
            self.apply_changes(changes, false);
        }
    }

    /// Returns the loaded version of a catalog if it is valid. A broken catalog must not be
    /// processed (RFC 9432 §5.1).
    fn read_catalog(&self, apex: &Name) -> Option<Catalog> {
        let contents = self.service.contents(apex)?;
        let zone = apex.to_string();
        let catalog = Catalog::read(&contents).inspect_err(|error| {
            tracing::error!(name: "catalog-broken", zone, "catalog {zone}: broken, keeping its members: {error}");
        });
        let fault = catalog.as_ref().err();
        let fault = fault.map(|error| format!("the catalog is broken, keeping its members: {error}"));
        self.service.note_catalog_fault(apex, fault);
        catalog.ok()
    }

    /// Processes the stored versions of all catalogs together, and serves the stored versions of
    /// their members. If the stored version of a catalog is broken or missing, the members are
    /// those of its last valid version (RFC 9432 §5.1).
    fn load_catalogs(&mut self) {
        let settings = self.service.all_settings();
        let consumed =
            settings.iter().filter(|zone| matches!(zone.catalog, Some(CatalogSettings::Consumer { .. })));
        let noted = self.noted_members();
        let version_of =
            |apex: &Name| self.read_catalog(apex).or_else(|| Membership::last_version(apex, &noted));
        let catalogs: Vec<Catalog> = consumed.filter_map(|zone| version_of(&zone.apex)).collect();
        let owners = noted.into_iter().map(|member| (member.zone, member.catalog)).collect();
        let changes = self.registry.restore(catalogs, &owners);
        self.has_loaded_catalogs = true;
        self.apply_changes(changes, false);
        self.remove_lost_members();
        self.send_task(LoaderTask::StoredMembersDone);
    }

    /// Sends a task to the thread `members`.
    fn send_task(&self, task: LoaderTask) {
        // Sending cannot fail, because the thread `members` ends only after this thread.
        let _ = self.loader.send(task);
    }

    /// Returns the membership notes of zones that no catalog owns now.
    fn noted_members(&self) -> Vec<Membership> {
        let Some(state) = self.service.state_directory() else { return Vec::new() };
        Membership::all_except(state, self.registry.members()).unwrap_or_else(|error| {
            tracing::warn!(name: "state-directory-not-read", "state-dir: cannot read the directory: {error}");
            Vec::new()
        })
    }

    /// Deletes the stored versions of members that were removed from their catalog while the server
    /// was not running (RFC 9432 §5.3). Does not delete members of catalogs that are not read yet
    /// or not configured.
    fn remove_lost_members(&self) {
        for Membership { zone, catalog, .. } in self.noted_members() {
            if self.registry.contains(&catalog) && self.service.settings_of(&zone).is_none() {
                tracing::info!(name: "member-removed", zone = zone.to_string(), %catalog, "zone {zone}: removed from catalog {catalog}");
                self.service.delete_stored(&zone);
            }
        }
    }

    /// Generates the catalog `apex` with these members, and publishes it if it differs from the
    /// `previous` version.
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
                self.service.note_catalog_fault(apex, None);
                // The log and the status of the zone contain the reason for a rejection.
                let _ = self.service.publish(apex, contents, &[]);
            }
            Ok(None) => self.service.note_catalog_fault(apex, None),
            Err(error) => {
                tracing::error!(name: "catalog-not-generated", zone, "catalog {zone}: not generated: {error}");
                self.service
                    .note_catalog_fault(apex, Some(format!("the catalog cannot be generated: {error}")));
            }
        }
    }

    /// Applies the configured zones and templates after a reload.
    fn handle_reload(&mut self) {
        self.logged_groups.borrow_mut().clear();
        let changes = self.registry.set_configured(self.service.configured_zones());
        // The stored files of a member become those of the configured zone.
        self.apply_changes(changes, true);
        let members = self.registry.members().filter_map(|zone| self.member_zone(zone));
        self.add_members(members.collect());
    }

    /// Applies changes of catalogs in their order. Combines consecutive changes: first all
    /// removals, then all additions. With `keeps_files`, the stored files of removed zones remain.
    fn apply_changes(&mut self, changes: Vec<Change>, keeps_files: bool) {
        let mut pending = PendingChanges::default();
        for change in changes {
            match change {
                Change::Add { zone } | Change::Update { zone } => drop(pending.added.insert(zone)),
                Change::Remove { zone, catalog } => {
                    self.apply_pending_addition(&zone, &mut pending);
                    let name = zone.to_string();
                    tracing::info!(name: "member-removed", zone = name, %catalog, "zone {name}: removed from catalog {catalog}");
                    if keeps_files { &mut pending.retired } else { &mut pending.deleted }.push(zone);
                }
                Change::Reset { zone } => {
                    self.apply_pending_addition(&zone, &mut pending);
                    pending.deleted.push(zone.clone());
                    pending.added.insert(zone);
                }
                Change::Clash { zone, catalog } => tracing::warn!(
                    name: "member-ignored",
                    zone = zone.to_string(),
                    %catalog,
                    "zone {zone}: already served, ignoring its entry in catalog {catalog}"
                ),
            }
        }
        self.apply_pending(pending);
    }

    /// Applies the pending changes if they add `zone`. The caller then removes the zone again, and
    /// pending removals precede pending additions.
    fn apply_pending_addition(&mut self, zone: &Name, pending: &mut PendingChanges) {
        if pending.added.contains(zone) {
            self.apply_pending(std::mem::take(pending));
        }
    }

    /// Removes and adds the zones in `pending`.
    fn apply_pending(&mut self, pending: PendingChanges) {
        for (zones, keeps_files) in [(pending.retired, true), (pending.deleted, false)] {
            if !zones.is_empty() {
                self.service.remove_zones(&zones, keeps_files);
            }
        }
        let members: Vec<MemberZone> =
            pending.added.iter().filter_map(|zone| self.persist_member(zone)).collect();
        if !pending.added.is_empty() {
            // Sending cannot fail, because the thread `notes` ends only after this thread.
            let _ = self.syncer.send(pending.added.into_iter().collect());
        }
        if !members.is_empty() {
            self.add_members(members);
        }
    }

    /// Adds members or changes their settings, and records their catalogs for the status.
    fn add_members(&self, members: Vec<MemberZone>) {
        let notes = members.iter().map(|member| (member.settings.apex.clone(), member.member_of.clone()));
        let notes: Vec<(Name, CatalogMembership)> = notes.collect();
        let settings = members.into_iter().map(|member| member.settings).collect();
        self.send_task(LoaderTask::Members(self.service.add_unloaded(settings)));
        for (apex, note) in notes {
            self.service.note_member(&apex, note);
        }
    }

    /// Writes the membership note of a zone to the state directory. Returns the zone with the
    /// settings to serve it with.
    fn persist_member(&self, zone: &Name) -> Option<MemberZone> {
        if let Some((state, owner)) = self.service.state_directory().zip(self.registry.owner(zone)) {
            let OwningCatalog { catalog, label, groups } = owner.clone();
            let membership = Membership { zone: zone.clone(), catalog, label, groups };
            if let Err(error) = membership.persist(state) {
                let catalog = &owner.catalog;
                tracing::warn!(name: "membership-not-stored", zone = zone.to_string(), %catalog, "zone {zone}: cannot store its catalog membership: {error}");
            }
        }
        self.member_zone(zone)
    }

    /// Notes that a group without a template is logged. Returns `false` if it was logged before, or
    /// if [`MAX_LOGGED_GROUPS`] groups were. A group is logged once for all of its members.
    fn mark_group_logged(&self, catalog: &Name, group: &Group) -> bool {
        let mut logged = self.logged_groups.borrow_mut();
        logged.len() < MAX_LOGGED_GROUPS && logged.insert((catalog.clone(), group.clone()))
    }

    /// Returns a member with the settings from the template of its first group that has one, or
    /// from the default template of the catalog. Returns `None` if no catalog owns the zone, or if
    /// the template does not exist.
    fn member_zone(&self, zone: &Name) -> Option<MemberZone> {
        let OwningCatalog { catalog, groups, .. } = self.registry.owner(zone)?;
        let settings = self.service.settings_of(catalog)?;
        let Some(CatalogSettings::Consumer { template, groups: by_group }) = &settings.catalog else {
            return None;
        };
        let of_group = groups.iter().find_map(|group| by_group.get(group.text()?));
        let name = of_group.unwrap_or(template);
        let is_unlogged = |group: &&Group| of_group.is_none() && self.mark_group_logged(catalog, group);
        if let Some(group) = groups.first().filter(is_unlogged) {
            let situation =
                if !by_group.is_empty() { "this group has no template" } else { "no group has a template" };
            tracing::info!(
                name: "member-group",
                zone = zone.to_string(),
                %catalog,
                "zone {zone}: in group {group} of catalog {catalog}, {situation}: serving the zones of this group with template {name}"
            );
        }
        let template = self.service.template(name);
        if template.is_none() {
            tracing::error!(
                name: "template-missing",
                zone = zone.to_string(),
                %catalog,
                "zone {zone}: template {name} for members of catalog {catalog} does not exist"
            );
        }
        let member_of = CatalogMembership { catalog: catalog.clone(), template: name.clone() };
        template.map(|template| MemberZone { settings: template.for_member(zone.clone()), member_of })
    }
}

#[cfg(test)]
mod tests;
