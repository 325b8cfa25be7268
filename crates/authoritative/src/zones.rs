//! The zones that a server answers from: found by name, replaced one by one without a lock for those who answer.
//!
//! The table of zones is one immutable value, swapped when a zone comes or goes; each zone's state is swapped in its
//! place. So one zone of many is replaced at the cost of one.

use crate::Published;
use arc_swap::{ArcSwap, ArcSwapOption, Cache, Guard};
use nonesuch_proto::{Name, NameRef, Rtype};
use nonesuch_server::acl::{AccessList, Prefix, Remote};
use nonesuch_zone::image::OwnerForm;
use nonesuch_zone::{Contents, Journal};
use std::collections::HashMap;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

/// Who may do what with a zone, and who is told of it. By default everybody may ask, and nobody do anything else.
#[derive(Clone, Debug, Default)]
pub struct ZonePolicy {
    /// Who may ask for what is in the zone; `None` for everybody. Transfers are another matter.
    pub query: Option<AccessList>,
    /// Who may transfer the zone from us.
    pub transfer: AccessList,
    /// Who may tell us that the zone has changed, beside its primaries.
    pub notify_from: AccessList,
    /// Who is told when the zone has changed.
    pub also_notify: Vec<Remote>,
    /// Whether the zone is transferred from a primary.
    pub is_secondary: bool,
}

impl ZonePolicy {
    /// The addresses of the first entry for `address` in the access lists for transfers and for NOTIFY, else the address alone where
    /// a server with that address is notified. Ignores keys.
    #[must_use]
    pub fn entry_of(&self, address: IpAddr) -> Option<Prefix> {
        let entries = self.transfer.entries().iter().chain(self.notify_from.entries());
        let prefixes = entries.filter(|entry| !entry.is_denied).filter_map(|entry| entry.prefix);
        let address = address.to_canonical();
        let notified = || {
            let is_its = |remote: &&Remote| remote.address.ip().to_canonical() == address;
            self.also_notify.iter().find(is_its).and_then(|_| Prefix::of_host(address))
        };
        prefixes.into_iter().find(|prefix| prefix.contains(address)).or_else(notified)
    }
}

/// A zone as it is served: never changed, replaced as a whole.
#[derive(Debug)]
pub struct ServedZone {
    published: Published,
    policy: Arc<ZonePolicy>,
    contents: Option<Arc<Contents>>,
    journal: Option<Arc<Journal>>,
    /// One look tells most zones from those that take more.
    is_plain: bool,
}

impl ServedZone {
    /// A zone that is answered from, and not transferred.
    #[must_use]
    pub fn new(published: Published, policy: Arc<ZonePolicy>) -> Self {
        let is_plain = policy.query.is_none() && !published.is_online();
        Self { published, policy, contents: None, journal: None, is_plain }
    }

    /// The same zone with another policy.
    #[must_use]
    pub fn with_policy(&self, policy: Arc<ZonePolicy>) -> Self {
        let (contents, journal) = (self.contents.clone(), self.journal.clone());
        Self { contents, journal, ..Self::new(self.published.clone(), policy) }
    }

    /// With its records: those who transfer it want them.
    #[must_use]
    pub fn with_contents(self, contents: Arc<Contents>) -> Self {
        Self { contents: Some(contents), ..self }
    }

    /// With its changes so far: incremental transfers are made of them.
    #[must_use]
    pub fn with_journal(self, journal: Arc<Journal>) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// What is answered from.
    #[must_use]
    pub const fn published(&self) -> &Published {
        &self.published
    }

    /// Whether everybody may ask, and all answers come out of the image as they are.
    #[inline]
    #[must_use]
    pub const fn is_plain(&self) -> bool {
        self.is_plain
    }

    /// Who may do what with it.
    #[must_use]
    pub const fn policy(&self) -> &Arc<ZonePolicy> {
        &self.policy
    }

    /// Its records, where it can be transferred.
    #[must_use]
    pub const fn contents(&self) -> Option<&Arc<Contents>> {
        self.contents.as_ref()
    }

    /// Its changes so far.
    #[must_use]
    pub const fn journal(&self) -> Option<&Arc<Journal>> {
        self.journal.as_ref()
    }

    /// The serial of its SOA record.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.published.image().serial()
    }
}

/// What there is of a configured zone.
#[derive(Clone, Debug)]
pub enum ZoneState {
    /// It is answered from.
    Serving(Arc<ServedZone>),
    /// It is being loaded, or waits for its first transfer.
    NotReady(Arc<ZonePolicy>),
    /// Its version was rejected or cannot be read, and there is no other.
    Failed(Arc<ZonePolicy>),
    /// No primary was reached within the zone's time to expire (RFC 1035 §3.3.13).
    Expired(Arc<ZonePolicy>),
}

impl ZoneState {
    /// The zone, where it is answered from.
    #[must_use]
    pub const fn serving(&self) -> Option<&Arc<ServedZone>> {
        if let Self::Serving(zone) = self { Some(zone) } else { None }
    }

    /// Who may do what with the zone.
    #[must_use]
    pub fn policy(&self) -> &Arc<ZonePolicy> {
        match self {
            Self::Serving(zone) => zone.policy(),
            Self::NotReady(policy) | Self::Failed(policy) | Self::Expired(policy) => policy,
        }
    }
}

/// One configured zone.
#[derive(Debug)]
pub struct ZoneEntry {
    apex: Name,
    state: ArcSwap<ZoneState>,
    /// When the zone expires, where it is transferred from a primary and that is known.
    expires: ArcSwapOption<Instant>,
    /// Queries for names in the zone, where they are counted.
    queries: AtomicU64,
}

impl ZoneEntry {
    /// Counts a query for a name in the zone.
    pub fn count_query(&self) {
        self.queries.fetch_add(1, Relaxed);
    }

    /// Queries for names in the zone, since it came or the server started.
    #[must_use]
    pub fn queries(&self) -> u64 {
        self.queries.load(Relaxed)
    }

    /// The zone's name, in lower case.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// What there is of it.
    #[must_use]
    pub fn state(&self) -> Guard<Arc<ZoneState>> {
        self.state.load()
    }

    /// Seconds that are left to the zone (RFC 7314 §3): those of its SOA record, or where it is transferred from a primary, what
    /// is left of them. `None` where it is not answered from, or nobody has said.
    #[must_use]
    pub fn seconds_left(&self) -> Option<u32> {
        let state = self.state.load();
        let zone = state.serving()?;
        if zone.policy().is_secondary {
            let left = self.expires.load().as_deref()?.saturating_duration_since(Instant::now());
            return Some(u32::try_from(left.as_secs()).unwrap_or(u32::MAX));
        }
        let mut soa = Vec::new();
        let apex = zone.published().image().find_exact(self.apex.view())?;
        apex.template(Rtype::SOA)?.append_uncompressed(OwnerForm::WrittenOut, false, usize::MAX, &mut soa)?;
        // The last five numbers are serial, refresh, retry, expire, minimum (RFC 1035 §3.3.13).
        soa.last_chunk::<8>()?.first_chunk().map(|octets| u32::from_be_bytes(*octets))
    }
}

/// The zones by their names.
///
/// A copy shares names and zones with the table that it was made of: zones come and go with those that stay untouched.
#[derive(Clone, Debug)]
pub struct ZoneDatabase {
    slots: HashMap<Arc<[u8]>, Arc<ZoneEntry>>,
    /// How many zones have names of n labels, the root not counted. A name has 127 at most.
    at_depth: [u32; 128],
}

impl Default for ZoneDatabase {
    fn default() -> Self {
        Self { slots: HashMap::new(), at_depth: [0; 128] }
    }
}

impl ZoneDatabase {
    /// The closest zone at or above `name`, which is in lower case.
    #[must_use]
    pub fn find(&self, name: NameRef<'_>) -> Option<&Arc<ZoneEntry>> {
        debug_assert!(is_lower(name));
        let mut suffix = name;
        let mut labels = name.label_count();
        loop {
            if self.at_depth[labels] > 0
                && let Some(slot) = self.slots.get(suffix.wire())
            {
                return Some(slot);
            }
            suffix = suffix.parent()?;
            labels -= 1;
        }
    }

    /// The zone of this name, which is in lower case.
    #[must_use]
    pub fn entry(&self, apex: NameRef<'_>) -> Option<&Arc<ZoneEntry>> {
        debug_assert!(is_lower(apex));
        self.slots.get(apex.wire())
    }

    /// Adds a zone that is not there.
    fn insert(&mut self, apex: Name, state: ZoneState) {
        self.at_depth[apex.view().label_count()] += 1;
        let key = apex.wire().into();
        self.slots.insert(
            key,
            Arc::new(ZoneEntry {
                apex,
                state: ArcSwap::from_pointee(state),
                expires: ArcSwapOption::empty(),
                queries: AtomicU64::new(0),
            }),
        );
    }

    fn remove(&mut self, apex: NameRef<'_>) -> bool {
        let removed = self.slots.remove(apex.wire());
        if let Some(slot) = &removed {
            // A thread that nobody asks keeps the table that it has; the zone's memory is not to wait for it.
            slot.state.store(Arc::new(ZoneState::NotReady(Arc::default())));
            self.at_depth[apex.label_count()] -= 1;
        }
        removed.is_some()
    }
}

/// Whether a name is as the table has names: a look-up with a capital letter would find nothing (RFC 4343 §3).
fn is_lower(name: NameRef<'_>) -> bool {
    !name.wire().iter().any(u8::is_ascii_uppercase)
}

/// The zones of a server.
#[derive(Debug, Default)]
pub struct Zones {
    table: ArcSwap<ZoneDatabase>,
    /// Held by whoever changes the table, never by who answers.
    changing: Mutex<()>,
}

impl Zones {
    /// No zones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets what there is of one zone, which is added where it is not there. Queries being answered end with the old one.
    pub fn set(&self, apex: &Name, state: ZoneState) {
        self.set_all(vec![(apex.clone(), state)]);
    }

    /// Sets what there is of zones, with one swap of the table for all that are new.
    pub fn set_all(&self, zones: Vec<(Name, ZoneState)>) {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let table = self.table.load();
        let mut new = Vec::new();
        for (apex, state) in zones {
            let apex = apex.view().to_canonical();
            match table.entry(apex.view()) {
                Some(slot) => slot.state.store(Arc::new(state)),
                None => new.push((apex, state)),
            }
        }
        if !new.is_empty() {
            let mut table = ZoneDatabase::clone(&table);
            for (apex, state) in new {
                match table.entry(apex.view()) {
                    // Named twice.
                    Some(slot) => slot.state.store(Arc::new(state)),
                    None => table.insert(apex, state),
                }
            }
            self.table.store(Arc::new(table));
        }
    }

    /// Says when a zone that is transferred from a primary expires.
    pub fn set_expiry(&self, apex: &Name, expires: Option<Instant>) {
        if let Some(slot) = self.table.load().entry(apex.view().to_canonical().view()) {
            slot.expires.store(expires.map(Arc::new));
        }
    }

    /// Takes zones away, with one swap of the table; tells how many were there.
    pub fn remove_all(&self, zones: &[Name]) -> usize {
        let _changing = self.changing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut table = ZoneDatabase::clone(&self.table.load());
        let removed = zones.iter().filter(|apex| table.remove(apex.view().to_canonical().view())).count();
        if removed > 0 {
            self.table.store(Arc::new(table));
        }
        removed
    }

    /// The zones as they are.
    #[must_use]
    pub fn database(&self) -> Arc<ZoneDatabase> {
        self.table.load_full()
    }
}

/// One thread's view of the zones: tells with one load whether the table is another one.
#[derive(Debug)]
pub(crate) struct View {
    zones: Cache<ZonesPointer, Arc<ZoneDatabase>>,
}

/// What [`Cache`] wants: something that leads to the pointer.
#[derive(Clone, Debug)]
struct ZonesPointer(Arc<Zones>);

impl std::ops::Deref for ZonesPointer {
    type Target = ArcSwap<ZoneDatabase>;

    fn deref(&self) -> &ArcSwap<ZoneDatabase> {
        &self.0.table
    }
}

impl View {
    pub(crate) fn new(zones: Arc<Zones>) -> Self {
        Self { zones: Cache::new(ZonesPointer(zones)) }
    }

    pub(crate) fn table(&mut self) -> &Arc<ZoneDatabase> {
        self.zones.load()
    }
}
