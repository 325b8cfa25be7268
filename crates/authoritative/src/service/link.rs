//! What ties a service to transfers and catalogs: zones of primaries are refreshed, secondaries are told of new versions,
//! members of catalogs come and go (RFC 9432).

use super::{Catalog as Role, Refused, Service, Source, ZoneEvent, ZoneSettings};
use crate::Settings;
use crate::catalog::{Catalog, Change, Registry, produce};
use crate::notify::SoaRecord;
use crate::secondary::{Host, PublishError, Received, SecondaryZone, Span, Timing, Transfers};
use crate::tsig::Keys;
use arc_swap::ArcSwap;
use nonesuch_proto::{Name, Rtype};
use nonesuch_zone::Contents;
use std::collections::BTreeMap;
use std::io;
use std::ops::RangeInclusive;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedReceiver;

/// What transfers need of a service.
#[derive(Clone, Debug)]
pub struct Link {
    /// The service.
    pub service: Arc<Service>,
    /// The server's settings, the TSIG keys among them.
    pub settings: Arc<ArcSwap<Settings>>,
}

impl Host for Link {
    fn contents(&self, apex: &Name) -> Option<Arc<Contents>> {
        self.service.contents(apex)
    }

    fn publish(&self, apex: &Name, received: Received) -> Result<(), PublishError> {
        let Received { contents, change, .. } = received;
        self.service.publish(apex, contents, change).map(drop).map_err(|refused| match refused {
            Refused::Unsound { first, .. } => PublishError { faults: first },
            other => PublishError::new(other),
        })
    }

    fn expire(&self, apex: &Name) {
        self.service.set_expired(apex, true);
    }

    fn restore(&self, apex: &Name) {
        self.service.set_expired(apex, false);
    }

    fn keys(&self) -> Keys {
        self.settings.load().keys.clone()
    }
}

/// Follows what happens to the zones of `service`, in a thread of its own that ends with the service.
///
/// # Errors
/// What the system says of a new thread.
pub fn follow(
    service: &Arc<Service>,
    events: UnboundedReceiver<ZoneEvent>,
    transfers: Arc<Transfers>,
) -> io::Result<()> {
    let registry = Registry::new(service.configured());
    let follower = Follower { service: Arc::clone(service), transfers, registry, members: BTreeMap::new() };
    std::thread::Builder::new().name("zones".to_owned()).spawn(move || follower.run(events)).map(drop)
}

struct Follower {
    service: Arc<Service>,
    transfers: Arc<Transfers>,
    registry: Registry,
    /// Members, the catalog of each and its groups.
    members: BTreeMap<Name, (Name, Vec<Vec<u8>>)>,
}

impl Follower {
    fn run(mut self, mut events: UnboundedReceiver<ZoneEvent>) {
        while let Some(event) = events.blocking_recv() {
            match event {
                // A zone of primaries may be stored: whether anything is to be transferred shows when it is settled.
                ZoneEvent::Added(settings) if settings.source == Source::Primaries => {}
                ZoneEvent::Added(settings) => self.set_zone(&settings),
                ZoneEvent::Changed(settings) => {
                    self.set_zone(&settings);
                    self.look_at(&settings.apex);
                }
                ZoneEvent::Published { apex, .. } => {
                    self.follow(&apex);
                    self.announce(&apex);
                    self.look_at(&apex);
                }
                ZoneEvent::NotLoaded { apex } => {
                    self.follow(&apex);
                    self.look_at(&apex);
                }
                ZoneEvent::Removed(apex) => {
                    self.transfers.remove_zone(&apex);
                    let changes = self.registry.forget(&apex);
                    self.make(changes);
                }
                ZoneEvent::Reloaded => self.renew(),
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
        let span = |range: &RangeInclusive<u32>| Span { least: *range.start(), most: *range.end() };
        let transfers = &settings.transfers;
        let timing = Timing {
            refresh: span(&transfers.refresh),
            retry: span(&transfers.retry),
            expire: span(&transfers.expire),
        };
        let timers = self.service.state().map(|state| state.path(&settings.apex, super::state::TIMERS));
        let zone = SecondaryZone::new(settings.apex.clone(), transfers.primaries.clone());
        self.transfers.set_zone(SecondaryZone { timers, timing, ..zone });
    }

    /// Tells those who want to know of the version that is served.
    fn announce(&self, apex: &Name) {
        let Some(settings) = self.service.settings_of(apex) else { return };
        if settings.transfers.also_notify.is_empty() {
            return;
        }
        let soa = self.service.contents(apex).and_then(|contents| {
            let soa = contents.apex_rrset(Rtype::SOA)?;
            Some(SoaRecord { ttl: soa.ttl(), rdata: soa.rdatas().next()?.to_vec() })
        });
        if let Some(soa) = soa {
            self.transfers.announce(apex, soa, settings.transfers.also_notify.clone());
        }
    }

    /// Makes or reads a catalog.
    fn look_at(&mut self, apex: &Name) {
        let Some(settings) = self.service.settings_of(apex) else { return };
        let contents = self.service.contents(apex);
        match (&settings.catalog, contents) {
            (Some(Role::Producer { members }), previous) => self.produce(apex, members, previous.as_deref()),
            (Some(Role::Consumer { .. }), Some(contents)) => match Catalog::read(&contents) {
                Ok(catalog) => {
                    let changes = self.registry.update(catalog);
                    self.make(changes);
                }
                Err(error) => {
                    let zone = apex.to_string();
                    tracing::error!(zone, %error, "catalog {zone}: broken, its members stay as they are: {error}");
                }
            },
            _ => {}
        }
    }

    fn produce(&self, apex: &Name, members: &[(Name, Option<String>)], previous: Option<&Contents>) {
        let zone = apex.to_string();
        match produce(apex, members, previous, crate::seconds_now() as u32) {
            Ok(Some(contents)) => {
                // Why it is refused stands in the log and in the zone's status.
                let _ = self.service.publish(apex, contents, None);
            }
            Ok(None) => {}
            Err(error) => tracing::error!(zone, %error, "catalog {zone}: cannot be made: {error}"),
        }
    }

    /// After a reload: other zones are configured, templates are others.
    fn renew(&mut self) {
        let changes = self.registry.set_configured(self.service.configured());
        self.make(changes);
        for (zone, (catalog, groups)) in self.members.clone() {
            self.serve_member(&zone, &catalog, &groups);
        }
    }

    fn make(&mut self, changes: Vec<Change>) {
        for change in changes {
            match change {
                Change::Add { zone, catalog, groups } => self.set_member(zone, catalog, groups),
                Change::Remove { zone } => {
                    self.members.remove(&zone);
                    tracing::info!(zone = zone.to_string(), "zone {zone}: no member of a catalog any longer");
                    self.service.remove_zone(&zone);
                }
                Change::Reset { zone, groups } => {
                    self.service.remove_zone(&zone);
                    self.keep_catalog(zone, groups);
                }
                Change::Regroup { zone, groups } => self.keep_catalog(zone, groups),
                Change::Move { zone, to, groups, is_reset, .. } => {
                    if is_reset {
                        self.service.remove_zone(&zone);
                    }
                    self.set_member(zone, to, groups);
                }
                Change::Clash { zone, catalog } => tracing::warn!(
                    zone = zone.to_string(),
                    "zone {zone}: is served already, and catalog {catalog} is not heeded there"
                ),
            }
        }
    }

    fn keep_catalog(&mut self, zone: Name, groups: Vec<Vec<u8>>) {
        if let Some((catalog, _)) = self.members.get(&zone).cloned() {
            self.set_member(zone, catalog, groups);
        }
    }

    fn set_member(&mut self, zone: Name, catalog: Name, groups: Vec<Vec<u8>>) {
        self.serve_member(&zone, &catalog, &groups);
        self.members.insert(zone, (catalog, groups));
    }

    /// Serves a member by the template of its group.
    fn serve_member(&self, zone: &Name, catalog: &Name, groups: &[Vec<u8>]) {
        let settings = self.service.settings_of(catalog);
        let Some(Role::Consumer { template, groups: by_group }) =
            settings.as_ref().and_then(|of| of.catalog.as_ref())
        else {
            return;
        };
        let of_group = groups.iter().find_map(|group| by_group.get(std::str::from_utf8(group).ok()?));
        let name = of_group.unwrap_or(template);
        let Some(template) = self.service.template(name) else {
            tracing::error!(
                zone = zone.to_string(),
                "zone {zone}: there is no template {name} for this member of {catalog}"
            );
            return;
        };
        self.service.add_zone(template.for_member(zone.clone()));
    }
}
