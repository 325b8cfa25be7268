//! The zone database: the server finds a zone by name and replaces it without a lock for the
//! threads that answer queries.
//!
//! The map of zones is immutable. Adding or removing a zone swaps the map; a change of one zone
//! swaps only the state in its entry. Therefore the cost of replacing one zone does not depend on
//! the number of zones.

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

/// Access lists of a zone, and the servers that receive NOTIFY. By default, every client may query,
/// and nothing else is permitted.
#[derive(Clone, Debug, Default)]
pub struct ZonePolicy {
    /// Clients that may query the zone; `None` permits all clients. Does not apply to transfers.
    pub query_access: Option<AccessList>,
    /// Clients that may transfer the zone from this server.
    pub transfer_access: AccessList,
    /// Servers that may send NOTIFY for the zone, in addition to its primaries.
    pub notify_from: AccessList,
    /// Servers that receive a NOTIFY when the zone changes.
    pub also_notify: Vec<Remote>,
    /// Whether this server transfers the zone from a primary.
    pub is_secondary: bool,
}

impl ZonePolicy {
    /// Returns the prefix of the first permitting entry for `address` in the access lists for
    /// transfers and NOTIFY. Without such an entry, returns a prefix of `address` alone if
    /// `also_notify` contains it, otherwise `None`. Ignores TSIG keys.
    #[must_use]
    pub fn matching_prefix(&self, address: IpAddr) -> Option<Prefix> {
        let entries = self.transfer_access.entries().iter().chain(self.notify_from.entries());
        let prefixes = entries.filter(|entry| !entry.denies).filter_map(|entry| entry.prefix);
        let address = address.to_canonical();
        let notified = || {
            let has_address = |remote: &&Remote| remote.address.ip().to_canonical() == address;
            self.also_notify.iter().find(has_address).and_then(|_| Prefix::of_address(address))
        };
        prefixes.into_iter().find(|prefix| prefix.contains(address)).or_else(notified)
    }
}

/// A version of a zone that the server answers from. It is immutable, and is replaced as a whole.
#[derive(Debug)]
pub struct ServedZone {
    published: Published,
    policy: Arc<ZonePolicy>,
    contents: Option<Arc<Contents>>,
    journal: Option<Arc<Journal>>,
    /// As returned by [`has_fast_path`](Self::has_fast_path). A single flag, so that a worker tests
    /// only one condition for most zones.
    has_fast_path: bool,
}

impl ServedZone {
    /// Creates a zone that the server answers queries from. It cannot be transferred.
    #[must_use]
    pub fn new(published: Published, policy: Arc<ZonePolicy>) -> Self {
        let has_fast_path = policy.query_access.is_none() && !published.needs_online_work();
        Self { published, policy, contents: None, journal: None, has_fast_path }
    }

    /// Returns the same zone with another policy.
    #[must_use]
    pub fn with_policy(&self, policy: Arc<ZonePolicy>) -> Self {
        let (contents, journal) = (self.contents.clone(), self.journal.clone());
        Self { contents, journal, ..Self::new(self.published.clone(), policy) }
    }

    /// Adds the records of the zone, which transfers need.
    #[must_use]
    pub fn with_contents(self, contents: Arc<Contents>) -> Self {
        Self { contents: Some(contents), ..self }
    }

    /// Adds the journal, which incremental transfers need.
    #[must_use]
    pub fn with_journal(self, journal: Arc<Journal>) -> Self {
        Self { journal: Some(journal), ..self }
    }

    /// Returns the published zone, which queries are answered from.
    #[must_use]
    pub const fn published(&self) -> &Published {
        &self.published
    }

    /// Returns whether a worker can answer from the image without further checks: all clients may
    /// query the zone, and no answer needs online signatures or proofs.
    #[inline]
    #[must_use]
    pub const fn has_fast_path(&self) -> bool {
        self.has_fast_path
    }

    /// Returns the access lists of the zone.
    #[must_use]
    pub const fn policy(&self) -> &Arc<ZonePolicy> {
        &self.policy
    }

    /// Returns the records of the zone, if it can be transferred.
    #[must_use]
    pub const fn contents(&self) -> Option<&Arc<Contents>> {
        self.contents.as_ref()
    }

    /// Returns the journal of the zone, if it has one.
    #[must_use]
    pub const fn journal(&self) -> Option<&Arc<Journal>> {
        self.journal.as_ref()
    }

    /// Returns the serial of the SOA record.
    #[must_use]
    pub fn serial(&self) -> u32 {
        self.published.image().serial()
    }
}

/// The state of a configured zone.
#[derive(Clone, Debug)]
pub enum ZoneState {
    /// The server answers from this version.
    Serving(Arc<ServedZone>),
    /// The server is loading the zone, or waits for its first transfer.
    NotReady(Arc<ZonePolicy>),
    /// The version was rejected or cannot be read, and no other version exists.
    Failed(Arc<ZonePolicy>),
    /// No primary confirmed the zone within the expire time of its SOA record (RFC 1035 §3.3.13).
    Expired(Arc<ZonePolicy>),
}

impl ZoneState {
    /// Returns the zone, if the server answers from it.
    #[must_use]
    pub const fn serving(&self) -> Option<&Arc<ServedZone>> {
        if let Self::Serving(zone) = self { Some(zone) } else { None }
    }

    /// Returns the access lists of the zone.
    #[must_use]
    pub fn policy(&self) -> &Arc<ZonePolicy> {
        match self {
            Self::Serving(zone) => zone.policy(),
            Self::NotReady(policy) | Self::Failed(policy) | Self::Expired(policy) => policy,
        }
    }
}

/// The database entry of one configured zone.
#[derive(Debug)]
pub struct ZoneEntry {
    apex: Name,
    state: ArcSwap<ZoneState>,
    /// The time at which a zone transferred from a primary expires, if it is known.
    expires: ArcSwapOption<Instant>,
    /// Number of queries for names in the zone, if they are counted.
    query_count: AtomicU64,
}

impl ZoneEntry {
    /// Counts a query for a name in the zone.
    pub fn count_query(&self) {
        self.query_count.fetch_add(1, Relaxed);
    }

    /// Returns the number of counted queries for names in the zone, since the zone was added or the
    /// server started.
    #[must_use]
    pub fn query_count(&self) -> u64 {
        self.query_count.load(Relaxed)
    }

    /// Returns the name of the zone in lower case.
    #[must_use]
    pub const fn apex(&self) -> &Name {
        &self.apex
    }

    /// Returns the current state of the zone.
    #[must_use]
    pub fn state(&self) -> Guard<Arc<ZoneState>> {
        self.state.load()
    }

    /// Returns the seconds until the zone expires (RFC 7314 §3). For a zone that is not transferred
    /// from a primary, this is the expire field of its SOA record; for a transferred zone, the
    /// remaining time.
    /// Returns `None` if the server does not answer from the zone or the time is not known.
    #[must_use]
    pub fn seconds_until_expiry(&self) -> Option<u32> {
        let state = self.state.load();
        let zone = state.serving()?;
        if zone.policy().is_secondary {
            let remaining = self.expires.load().as_deref()?.saturating_duration_since(Instant::now());
            return Some(u32::try_from(remaining.as_secs()).unwrap_or(u32::MAX));
        }
        let mut soa = Vec::new();
        let apex = zone.published().image().find_exact(self.apex.view())?;
        apex.template(Rtype::SOA)?.append_uncompressed(OwnerForm::WrittenOut, false, usize::MAX, &mut soa)?;
        // The record ends with the numbers serial, refresh, retry, expire and minimum (RFC 1035
        // §3.3.13), of four octets each.
        soa.last_chunk::<8>()?.first_chunk().map(|octets| u32::from_be_bytes(*octets))
    }
}

/// A map from names to zones.
///
/// A clone shares the names and entries with the original, so that zones can be added and removed
/// without copying the others.
#[derive(Clone, Debug)]
pub struct ZoneDatabase {
    entries: HashMap<Arc<[u8]>, Arc<ZoneEntry>>,
    /// Number of zones at each label count; the index is the number of labels in the name without
    /// the root label, at most 127. A search skips label counts without zones.
    zones_by_label_count: [u32; 128],
}

impl Default for ZoneDatabase {
    fn default() -> Self {
        Self { entries: HashMap::new(), zones_by_label_count: [0; 128] }
    }
}

impl ZoneDatabase {
    /// Returns the closest zone at or above `name`, which must be in lower case. Returns `None` if
    /// there is no such zone.
    #[must_use]
    pub fn find_enclosing(&self, name: NameRef<'_>) -> Option<&Arc<ZoneEntry>> {
        debug_assert!(is_lower_case(name));
        let mut suffix = name;
        let mut labels = name.label_count();
        loop {
            if self.zones_by_label_count[labels] > 0
                && let Some(entry) = self.entries.get(suffix.wire())
            {
                return Some(entry);
            }
            suffix = suffix.parent()?;
            labels -= 1;
        }
    }

    /// Returns the zone named `apex`, which must be in lower case.
    #[must_use]
    pub fn find_exact(&self, apex: NameRef<'_>) -> Option<&Arc<ZoneEntry>> {
        debug_assert!(is_lower_case(apex));
        self.entries.get(apex.wire())
    }

    /// Adds a zone that the database does not contain.
    fn insert(&mut self, apex: Name, state: ZoneState) {
        self.zones_by_label_count[apex.view().label_count()] += 1;
        let key = apex.wire().into();
        self.entries.insert(
            key,
            Arc::new(ZoneEntry {
                apex,
                state: ArcSwap::from_pointee(state),
                expires: ArcSwapOption::empty(),
                query_count: AtomicU64::new(0),
            }),
        );
    }

    /// Removes the zone named `apex`, which must be in lower case. Returns whether it existed.
    fn remove(&mut self, apex: NameRef<'_>) -> bool {
        let removed = self.entries.remove(apex.wire());
        if let Some(entry) = &removed {
            // A thread that receives no queries retains its copy of the database. Releasing the
            // state here frees the memory of the zone without waiting for that thread.
            entry.state.store(Arc::new(ZoneState::NotReady(Arc::default())));
            self.zones_by_label_count[apex.label_count()] -= 1;
        }
        removed.is_some()
    }
}

/// Returns whether a name is in lower case, as all names in the database are (RFC 4343 §3).
fn is_lower_case(name: NameRef<'_>) -> bool {
    !name.wire().iter().any(u8::is_ascii_uppercase)
}

/// The zones of a server.
#[derive(Debug, Default)]
pub struct Zones {
    database: ArcSwap<ZoneDatabase>,
    /// Held while the database is replaced. Threads that answer queries do not take it.
    replacing: Mutex<()>,
}

impl Zones {
    /// Creates an empty set of zones.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets the state of one zone, and adds the zone if the database does not contain it. A query
    /// in progress completes with the old state.
    pub fn set(&self, apex: &Name, state: ZoneState) {
        self.set_all(vec![(apex.clone(), state)]);
    }

    /// Sets the states of several zones. Replaces the database at most once, for all new zones
    /// together.
    pub fn set_all(&self, zones: Vec<(Name, ZoneState)>) {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let database = self.database.load();
        let mut new = Vec::new();
        for (apex, state) in zones {
            let apex = apex.view().to_canonical();
            match database.find_exact(apex.view()) {
                Some(entry) => entry.state.store(Arc::new(state)),
                None => new.push((apex, state)),
            }
        }
        if !new.is_empty() {
            let mut database = ZoneDatabase::clone(&database);
            for (apex, state) in new {
                match database.find_exact(apex.view()) {
                    // `zones` contains the name twice.
                    Some(entry) => entry.state.store(Arc::new(state)),
                    None => database.insert(apex, state),
                }
            }
            self.database.store(Arc::new(database));
        }
    }

    /// Sets the time at which a zone transferred from a primary expires; `None` if it is not known.
    /// Does nothing if the database does not contain the zone.
    pub fn set_expiry(&self, apex: &Name, expires: Option<Instant>) {
        if let Some(entry) = self.database.load().find_exact(apex.view().to_canonical().view()) {
            entry.expires.store(expires.map(Arc::new));
        }
    }

    /// Removes zones, with one replacement of the database. Returns the number of zones that it
    /// contained.
    pub fn remove_all(&self, zones: &[Name]) -> usize {
        let _replacing = self.replacing.lock().unwrap_or_else(PoisonError::into_inner);
        let mut database = ZoneDatabase::clone(&self.database.load());
        let removed = zones.iter().filter(|apex| database.remove(apex.view().to_canonical().view())).count();
        if removed > 0 {
            self.database.store(Arc::new(database));
        }
        removed
    }

    /// Returns the current database.
    #[must_use]
    pub fn database(&self) -> Arc<ZoneDatabase> {
        self.database.load_full()
    }
}

/// A thread's cached pointer to the zone database. Before each use, one atomic load shows whether
/// the database was replaced.
#[derive(Debug)]
pub(crate) struct DatabaseCache {
    pointer: Cache<ZonesPointer, Arc<ZoneDatabase>>,
}

/// Lets [`Cache`] dereference to the pointer of the database.
#[derive(Clone, Debug)]
struct ZonesPointer(Arc<Zones>);

impl std::ops::Deref for ZonesPointer {
    type Target = ArcSwap<ZoneDatabase>;

    fn deref(&self) -> &ArcSwap<ZoneDatabase> {
        &self.0.database
    }
}

impl DatabaseCache {
    pub(crate) fn new(zones: Arc<Zones>) -> Self {
        Self { pointer: Cache::new(ZonesPointer(zones)) }
    }

    /// Returns the current database.
    pub(crate) fn database(&mut self) -> &Arc<ZoneDatabase> {
        self.pointer.load()
    }
}
