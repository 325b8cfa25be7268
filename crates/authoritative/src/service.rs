//! From settings to running zones: loads, verifies, publishes, stores, reloads.
//!
//! Zones come from zone files, compiled zones, transfers and catalogs. Whatever its source, a version is published in this
//! order: verified as the zone's settings say, prepared and compiled (`build`), written to the state directory (`keep`),
//! swapped in (`publish`). So what a client has seen is what is served after a restart, whenever the process ends. A version
//! that is rejected (`refused` lists the reasons) leaves the previous one in place. No thread that answers waits for any of
//! this.
//!
//! Catalogs are loaded first, so that their members are served before any primary is asked. The thread that follows what
//! happens to zones (`follower`) waits for nothing: members are loaded in a thread of their own, and where a zone is removed
//! during its verification, the verifying thread cleans up at its end (`work`). What was transferred is published only while
//! the zone's settings still name that primary.
//!
//! The stored version of a zone that leaves the configuration stays until `ctl purge`; that of a member that leaves its
//! catalog is deleted at once.
//!
//! Whoever changes the facts of a zone holds their lock until they are shown; whoever adds or removes zones holds `changing`.

mod activity;
mod build;
mod compare;
mod event;
mod image_inputs;
mod images;
mod key_times;
mod load;
mod members;
mod membership;
mod persist;
mod preloaded;
mod publish;
mod purge;
mod record_limits;
mod reload;
mod settings;
mod state;
mod status;
mod version_error;
mod zone;
mod zone_events;
mod zone_lock;
mod zone_store;

pub use activity::{Activities, Activity, ActivityKind, ActivityStatus};
pub use compare::serial_warning;
pub use event::{StartupSummary, ZoneEvent};
pub use preloaded::PreloadedZone;
pub use publish::{SEMANTIC_KIND, SEMANTIC_LINES};
pub use purge::PurgeError;
pub use settings::{
    CatalogSettings, FULL, MANY, NSEC5_FOLDER, OnFault, OnlineSigning, RecordLimits, Settings, SigningMode,
    TransferSettings, VerifyChoice, ZoneSettings, ZoneSource, ZoneTemplate,
};
pub use state::{StateDirectory, StateError};
pub use status::{ReloadReport, ServiceStatus, ServingState, ZoneStatus};
pub use version_error::VersionError;
pub use zone_events::handle_zone_events;
pub use zone_store::ServiceZoneStore;

use crate::zones::{ZoneState, Zones};
use activity::lock;
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::directory::{KeyDirectoryError, ZoneKeys};
use nonesuch_dnssec::keys::{KeyRecord, SyncKeys};
use nonesuch_dnssec::online::{LoadProverError, Nsec5Prover, Nsec5Zone};
use nonesuch_proto::{Name, Rtype};
use nonesuch_secondary::notify::SoaRecord;
use nonesuch_server::acl::Remote;
use nonesuch_server::clock::seconds_now;
use nonesuch_zone::{ChangeSet, Contents, LoadError, StoredZone, open_compiled};
use publish::Candidate;
use std::collections::BTreeMap;
use std::io;
use std::path::Path;
use std::sync::atomic::{AtomicU32, AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use zone::{Zone, ZoneRuntime};
use zone_lock::ZoneLock;

/// Zones that are loaded side by side by default: each takes memory for two versions of itself.
const JOBS: usize = 4;

/// The keys of a zone that is signed online.
#[derive(Debug, Default)]
pub struct SigningKeys {
    /// The records of all keys that are published.
    pub records: Vec<KeyRecord>,
    /// The pairs that sign.
    pub pairs: Vec<KeyPair>,
    /// Keys whose CDS and CDNSKEY records are published or withdrawn.
    pub sync: SyncKeys,
}

impl From<ZoneKeys> for SigningKeys {
    fn from(keys: ZoneKeys) -> Self {
        Self { records: keys.published(), pairs: keys.pairs, sync: keys.timing.sync }
    }
}

/// Reading of key files, which whoever starts the service knows how to do.
#[derive(Clone, Copy, Debug)]
pub struct KeyFiles {
    /// The keys of a zone in a directory, by the times in their files at a time in seconds since 1970; `None` ignores the times.
    pub signing: fn(&Path, &Name, Option<u32>) -> Result<SigningKeys, KeyDirectoryError>,
    /// The first time after the given one at which the times in those files change what a key does.
    pub next_event: fn(&Path, &Name, u32) -> Option<u32>,
    /// The VRF key and the proofs of a zone in a folder. Neither there nor beside the zone's file may a signing key be.
    pub prover: fn(&Path, Option<&Path>, &Nsec5Zone) -> Result<Nsec5Prover, LoadProverError>,
}

/// Zones and what keeps them up to date.
#[derive(Debug)]
pub struct Service {
    zones: Arc<Zones>,
    key_files: KeyFiles,
    state: Option<StateDirectory>,
    table: Mutex<BTreeMap<Name, Arc<Zone>>>,
    /// Held by whoever adds zones or takes them away: one who looks whether a zone is there relies on it until it has acted.
    changing: Mutex<()>,
    /// Locks of removed zones whose publication is still running.
    abandoned: Mutex<BTreeMap<Name, Arc<ZoneLock>>>,
    templates: Mutex<BTreeMap<String, ZoneTemplate>>,
    jobs: usize,
    clock_shift: u32,
    /// When a time in the key files of a zone passes next, in seconds since 1970.
    next_key_event: AtomicU32,
    /// The latest time at which keys were looked at: the clock was set back where it is before that.
    keys_seen_at: AtomicU32,
    activities: Activities,
    listeners: Mutex<Vec<UnboundedSender<ZoneEvent>>>,
    /// Held by one reload at a time.
    reloading: Mutex<()>,
    last_reload: Mutex<Option<ReloadReport>>,
    /// Those who have zones to load before the service is ready.
    loading: Mutex<usize>,
    settled: Condvar,
}

impl Service {
    /// Puts the zones of `settings` into `zones`, not ready yet. [`begin`](Self::begin) loads them.
    ///
    /// # Errors
    /// Where the state folder cannot be used.
    pub fn open(settings: Settings, key_files: KeyFiles, zones: Arc<Zones>) -> Result<Arc<Self>, StateError> {
        let service = Self::new(&settings, key_files, zones)?;
        let new: Vec<Arc<Zone>> = settings
            .zones
            .into_iter()
            .map(|settings| Arc::new(Zone::new(settings, Arc::default())))
            .collect();
        service.insert(&new);
        Ok(Arc::new(service))
    }

    /// Begins to load the zones, in threads of their own: catalogs first, since their members are to be loaded too.
    ///
    /// # Errors
    /// What the system says of a new thread.
    pub fn begin(self: &Arc<Self>) -> io::Result<()> {
        let loader = Arc::clone(self);
        let load = move || {
            let is_consumer =
                |zone: &Arc<Zone>| matches!(zone.settings().catalog, Some(CatalogSettings::Consumer { .. }));
            let (catalogs, others): (Vec<_>, Vec<_>) = loader.all().into_iter().partition(is_consumer);
            loader.load_all(&catalogs);
            loader.send_event(&ZoneEvent::CatalogsLoaded);
            loader.load_all(&others);
            loader.send_event(&ZoneEvent::Loaded);
            loader.end_loading();
        };
        std::thread::Builder::new().name("load".to_owned()).spawn(load).map(drop)
    }

    /// Has [`wait`](Self::wait) wait for one more who loads zones, until it calls [`end_loading`](Self::end_loading).
    fn begin_loading(&self) {
        *lock(&self.loading) += 1;
    }

    fn end_loading(&self) {
        *lock(&self.loading) -= 1;
        self.settled.notify_all();
    }

    /// Whether [`wait`](Self::wait) waits for nothing any more.
    fn is_settled(&self) -> bool {
        *lock(&self.loading) == 0
    }

    fn new(settings: &Settings, key_files: KeyFiles, zones: Arc<Zones>) -> Result<Self, StateError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            zones,
            key_files,
            state: settings.state_dir.as_deref().map(StateDirectory::open).transpose()?,
            table: Mutex::default(),
            changing: Mutex::default(),
            abandoned: Mutex::default(),
            templates: Mutex::new(settings.templates.clone()),
            jobs: if settings.jobs == 0 { cores.min(JOBS) } else { settings.jobs },
            clock_shift: settings.clock_shift,
            next_key_event: AtomicU32::new(key_times::NEVER),
            keys_seen_at: AtomicU32::new(0),
            activities: Activities::default(),
            listeners: Mutex::default(),
            reloading: Mutex::default(),
            last_reload: Mutex::default(),
            // The thread of `begin`.
            loading: Mutex::new(1),
            settled: Condvar::new(),
        })
    }

    /// Waits until every zone of the settings, and every member of a stored catalog, is served, waits for a transfer, or has
    /// failed.
    #[must_use]
    pub fn wait(&self) -> StartupSummary {
        let mut loading = lock(&self.loading);
        while *loading > 0 {
            loading = self.settled.wait(loading).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        drop(loading);
        let mut settled = StartupSummary::default();
        for zone in self.all() {
            match zone.serving_state() {
                ServingState::Serving => settled.serving += 1,
                ServingState::NotReady | ServingState::Expired => settled.waiting += 1,
                ServingState::Failed => settled.failed += 1,
            }
        }
        settled
    }

    /// Does `work` for all zones of `list`, some side by side.
    fn for_each(&self, list: &[Arc<Zone>], work: impl Fn(&Arc<Zone>) + Sync) {
        let next = AtomicUsize::new(0);
        let run = || {
            while let Some(zone) = list.get(next.fetch_add(1, Relaxed)) {
                work(zone);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.jobs.min(list.len()) {
                // Where no thread is to be had, the others do it.
                let _ = std::thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, run);
            }
            run();
        });
    }

    /// Publishes `contents` as the next version of a zone. `steps` led to them from the version of before, one for each serial
    /// (RFC 1995 §4); without them what differs is looked for. Returns the serial; it is kept and served then.
    ///
    /// # Errors
    /// Why the version is refused; the one of before stays.
    pub fn publish(&self, apex: &Name, contents: Contents, steps: &[ChangeSet]) -> Result<u32, VersionError> {
        self.publish_where(apex, contents, steps, |_| true)
    }

    /// Publishes what was transferred from `primary`, as [`publish`](Self::publish) does.
    ///
    /// # Errors
    /// Why the version is refused; also where the zone is had from a file or from others by now.
    pub fn publish_from(
        &self,
        primary: &Remote,
        apex: &Name,
        contents: Contents,
        steps: &[ChangeSet],
    ) -> Result<u32, VersionError> {
        self.publish_where(apex, contents, steps, |settings| {
            settings.source == ZoneSource::Primaries && settings.transfers.primaries.contains(primary)
        })
    }

    /// Publishes a version if the settings that the zone has when its turn comes are as they should be: a reload, or a catalog,
    /// may have changed them since it was asked for.
    fn publish_where(
        &self,
        apex: &Name,
        contents: Contents,
        steps: &[ChangeSet],
        is_wanted: impl FnOnce(&ZoneSettings) -> bool,
    ) -> Result<u32, VersionError> {
        let zone = self.zone(apex).ok_or(VersionError::Unknown)?;
        if contents.apex() != zone.apex() {
            return Err(VersionError::OtherZone(contents.apex().clone()));
        }
        let _one = self.lock_zone(&zone);
        if !self.has(&zone) {
            return Err(VersionError::Unknown);
        }
        if !is_wanted(&zone.settings()) {
            return Err(VersionError::OtherSource);
        }
        let activity = self.activities.begin(ActivityKind::Publish, Some(apex.to_string()));
        let is_key_event = self.note_key_event(&zone);
        let candidate = Candidate { steps, ..Candidate::new(contents) };
        let published = self.publish_contents(&zone, candidate, &activity);
        if is_key_event && published.is_err() {
            self.retry_key_event(&zone);
        }
        self.note(&zone, published.as_ref().err());
        published
    }

    /// What was published of a zone last, where its records are held: zones that are transferred, in or out.
    #[must_use]
    pub fn contents(&self, apex: &Name) -> Option<Arc<Contents>> {
        self.zone(apex)?.contents()
    }

    /// The SOA record of the version of a zone that was published last, where its records are held.
    #[must_use]
    pub fn soa_record(&self, apex: &Name) -> Option<SoaRecord> {
        let contents = self.contents(apex)?;
        let soa = contents.apex_rrset(Rtype::SOA)?;
        Some(SoaRecord { ttl: soa.ttl(), rdata: soa.rdatas().next()?.to_vec() })
    }

    /// What was published of a zone last, in the state folder, to be read chunk by chunk; `None` where nothing is kept of it.
    ///
    /// # Errors
    /// Those of opening what is kept.
    pub fn stored_zone(&self, apex: &Name) -> Result<Option<StoredZone>, LoadError> {
        let state = self.state.as_ref().filter(|state| state.has(apex, state::ZONE));
        state.map_or(Ok(None), |state| open_compiled(&state.path(apex, state::ZONE), Some(apex)))
    }

    /// Says whether a zone of primaries has expired; it is served again from what is held when it has not.
    pub fn set_expired(&self, apex: &Name, is_expired: bool) {
        if let Some(zone) = self.zone(apex) {
            // No version that is being made is waited for: whoever calls has other zones to see to.
            let mut facts = lock(&zone.runtime);
            if std::mem::replace(&mut facts.is_expired, is_expired) != is_expired {
                self.show(&zone, &facts);
            }
        }
    }

    /// Says when a zone of primaries expires, for those who ask (RFC 7314).
    pub fn set_expiry(&self, apex: &Name, expires: Option<std::time::Instant>) {
        self.zones.set_expiry(apex, expires);
    }

    /// Has answers made by what is known of a zone. Whoever changes that holds it until it is shown, so that the last word stays.
    fn show(&self, zone: &Zone, facts: &ZoneRuntime) {
        if facts.is_removed {
            return;
        }
        let state = match &facts.served {
            _ if facts.is_expired => ZoneState::Expired(zone.policy()),
            Some(served) => ZoneState::Serving(Arc::clone(served)),
            None if facts.has_failed => ZoneState::Failed(zone.policy()),
            None => ZoneState::NotReady(zone.policy()),
        };
        self.zones.set(zone.apex(), state);
    }

    /// Has who may transfer a zone, and tell that it has changed, asked of its settings from now on, whatever becomes of its
    /// versions.
    fn show_policy(&self, zone: &Zone) {
        let mut facts = lock(&zone.runtime);
        facts.served = facts.served.take().map(|served| Arc::new(served.with_policy(zone.policy())));
        self.show(zone, &facts);
    }

    /// Tells those who follow what happens that nothing will.
    pub fn stop(&self) {
        self.send_event(&ZoneEvent::Stopped);
        lock(&self.listeners).clear();
    }

    /// The names of the zones of the settings; members of catalogs are not among them.
    #[must_use]
    pub fn configured(&self) -> Vec<Name> {
        self.all().iter().filter(|zone| !zone.is_member()).map(|zone| zone.apex().clone()).collect()
    }

    /// What happens to zones from now on.
    #[must_use]
    pub fn events(&self) -> UnboundedReceiver<ZoneEvent> {
        let (sender, receiver) = unbounded_channel();
        lock(&self.listeners).push(sender);
        receiver
    }

    fn send_event(&self, event: &ZoneEvent) {
        lock(&self.listeners).retain(|listener| listener.send(event.clone()).is_ok());
    }

    /// The zones that are answered from.
    #[must_use]
    pub const fn zones(&self) -> &Arc<Zones> {
        &self.zones
    }

    /// The folder in which published zones are kept.
    #[must_use]
    pub const fn state(&self) -> Option<&StateDirectory> {
        self.state.as_ref()
    }

    /// What goes on.
    #[must_use]
    pub const fn activities(&self) -> &Activities {
        &self.activities
    }

    /// The settings of a zone.
    #[must_use]
    pub fn settings_of(&self, apex: &Name) -> Option<Arc<ZoneSettings>> {
        Some(self.zone(apex)?.settings())
    }

    /// The template of this name.
    #[must_use]
    pub fn template(&self, name: &str) -> Option<ZoneTemplate> {
        lock(&self.templates).get(name).cloned()
    }

    /// The settings of all zones.
    #[must_use]
    pub fn all_settings(&self) -> Vec<Arc<ZoneSettings>> {
        self.all().iter().map(|zone| zone.settings()).collect()
    }

    /// The time of signatures: seconds since 1970 modulo 2^32.
    fn now(&self) -> u32 {
        (seconds_now() as u32).wrapping_add(self.clock_shift)
    }

    fn zone(&self, apex: &Name) -> Option<Arc<Zone>> {
        lock(&self.table).get(apex).cloned()
    }

    /// Whether a zone is still there: to be asked by whoever has waited for its lock.
    fn has(&self, zone: &Arc<Zone>) -> bool {
        self.zone(zone.apex()).is_some_and(|found| Arc::ptr_eq(&found, zone))
    }

    fn all(&self) -> Vec<Arc<Zone>> {
        lock(&self.table).values().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
