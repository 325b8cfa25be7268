//! Runs the zones of a server: loads, verifies, publishes, stores and reloads them.
//!
//! Zones come from zone files, compiled zones, transfers and catalogs. For every source, the steps
//! of publication have this order: verify as the zone's settings require, prepare and compile
//! (`build`), write to the state directory (`persist`), replace the previous version (`publish`).
//! Therefore a restart serves the version that clients have seen, even if the process is killed. If
//! a version is rejected (`version_error` lists the reasons), the previous version remains. No
//! thread that answers queries waits for these steps.
//!
//! Catalogs are loaded first, so that their stored members are served before the server contacts a
//! primary. The thread that handles zone events (`zone_events`) does not wait for verification:
//! another thread loads members. If a zone is removed during its verification, the verifying thread
//! deletes the stored files when it ends (`zone_lock`). A transferred version is published only if
//! the zone's settings still name that primary.
//!
//! If a zone is removed from the configuration, its stored version remains until `ctl purge`. If a
//! member is removed from its catalog, its stored version is deleted immediately.
//!
//! A thread that changes the runtime state of a zone holds the lock of this state until the change
//! is visible to workers. A thread that adds or removes zones holds `zone_set_lock`.

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
pub use publish::{MAX_FINDINGS, MAX_FINDINGS_PER_KIND};
pub use purge::PurgeError;
pub use settings::{
    CatalogSettings, FULL_VERIFICATION_LIMIT, NSEC5_DIRECTORY, OnFault, OnlineSigning, RecordLimits,
    Settings, SigningMode, TransferSettings, VerifyChoice, WARNING_LIMIT, ZoneSettings, ZoneSource,
    ZoneTemplate,
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
use nonesuch_dnssec::keys::{CdsSchedule, KeyRecord};
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

/// Default for the maximum number of zones that are loaded concurrently; on a machine with fewer
/// CPU cores, the default is the number of cores. Each load needs memory for two versions of the
/// zone.
const DEFAULT_LOAD_JOBS: usize = 4;

/// The keys of a zone that is signed online.
#[derive(Debug, Default)]
pub struct SigningKeys {
    /// Records of all published keys.
    pub records: Vec<KeyRecord>,
    /// Key pairs that sign.
    pub pairs: Vec<KeyPair>,
    /// Keys whose CDS and CDNSKEY records are published or withdrawn.
    pub sync: CdsSchedule,
}

impl From<ZoneKeys> for SigningKeys {
    fn from(keys: ZoneKeys) -> Self {
        Self { records: keys.published(), pairs: keys.pairs, sync: keys.timing.cds }
    }
}

/// Functions that load keys from key files. The program that creates the service supplies them.
#[derive(Clone, Copy, Debug)]
pub struct KeyLoader {
    /// Returns the keys of a zone in a directory, selected by the timing metadata in their files at
    /// a time in seconds since 1970. With `None` as the time, ignores the timing metadata.
    pub load_signing_keys: fn(&Path, &Name, Option<u32>) -> Result<SigningKeys, KeyDirectoryError>,
    /// Returns the first time after the given time at which the timing metadata in a directory
    /// changes the role of a key of the zone; `None` if there is none. Times are in seconds since
    /// 1970.
    pub next_key_event: fn(&Path, &Name, u32) -> Option<u32>,
    /// Returns the VRF key and the stored proofs of a zone from a directory. The second parameter
    /// is the path of the zone file, if the zone has one. Fails if the directory, or the directory
    /// of the zone file, contains a signing key.
    pub load_prover: fn(&Path, Option<&Path>, &Nsec5Zone) -> Result<Nsec5Prover, LoadProverError>,
}

/// The zones of a server, and the tasks that keep them up to date.
#[derive(Debug)]
pub struct Service {
    zones: Arc<Zones>,
    key_loader: KeyLoader,
    state_directory: Option<StateDirectory>,
    /// The configured zones and the members of catalogs.
    zone_map: Mutex<BTreeMap<Name, Arc<Zone>>>,
    /// Held while the set of zones changes. A thread that checks whether a zone exists holds it
    /// until it has acted on the result.
    zone_set_lock: Mutex<()>,
    /// Locks of removed zones with a publication in progress. A new zone with the same name shares
    /// the lock.
    removed_zone_locks: Mutex<BTreeMap<Name, Arc<ZoneLock>>>,
    /// Templates for members of catalogs, by name.
    templates: Mutex<BTreeMap<String, ZoneTemplate>>,
    /// Maximum number of zones that are loaded concurrently.
    load_jobs: usize,
    /// Seconds added to the clock, modulo 2^32 ([`Settings::clock_shift`]).
    clock_shift: u32,
    /// Time of the next key event of any zone, in seconds since 1970; `key_times::NEVER` if there
    /// is none.
    next_key_event: AtomicU32,
    /// Latest time at which keys were read, in seconds since 1970. A current time before this shows
    /// that the clock was set back.
    keys_read_at: AtomicU32,
    activities: Activities,
    /// Receivers of zone events.
    listeners: Mutex<Vec<UnboundedSender<ZoneEvent>>>,
    /// Held during a reload.
    reloading: Mutex<()>,
    last_reload: Mutex<Option<ReloadReport>>,
    /// Number of tasks that load zones before the service is ready.
    loading_tasks: Mutex<usize>,
    /// Notified when a loading task ends.
    loading_task_ended: Condvar,
}

impl Service {
    /// Creates a service and adds the zones of `settings` to `zones`, in the state
    /// [`NotReady`](ZoneState::NotReady). Call [`begin`](Self::begin) to load them.
    ///
    /// # Errors
    /// Returns an error if the state directory cannot be opened, or if another process uses it.
    pub fn open(
        settings: Settings,
        key_loader: KeyLoader,
        zones: Arc<Zones>,
    ) -> Result<Arc<Self>, StateError> {
        let service = Self::new(&settings, key_loader, zones)?;
        let new: Vec<Arc<Zone>> = settings
            .zones
            .into_iter()
            .map(|settings| Arc::new(Zone::new(settings, Arc::default())))
            .collect();
        service.insert_zones(&new);
        Ok(Arc::new(service))
    }

    /// Starts to load the zones in separate threads, and returns immediately. Catalogs are loaded
    /// first, because their members must be loaded too.
    ///
    /// # Errors
    /// Returns the error of the operating system if no thread can be started.
    pub fn begin(self: &Arc<Self>) -> io::Result<()> {
        let loader = Arc::clone(self);
        let load = move || {
            let is_consumer =
                |zone: &Arc<Zone>| matches!(zone.settings().catalog, Some(CatalogSettings::Consumer { .. }));
            let (catalogs, others): (Vec<_>, Vec<_>) = loader.all_zones().into_iter().partition(is_consumer);
            loader.load_all(&catalogs);
            loader.send_event(&ZoneEvent::CatalogsLoaded);
            loader.load_all(&others);
            loader.send_event(&ZoneEvent::Loaded);
            loader.end_loading_task();
        };
        std::thread::Builder::new().name("load".to_owned()).spawn(load).map(drop)
    }

    /// Makes [`wait_until_loaded`](Self::wait_until_loaded) wait for one more loading task, until
    /// the task calls [`end_loading_task`](Self::end_loading_task).
    fn add_loading_task(&self) {
        *lock(&self.loading_tasks) += 1;
    }

    /// Ends a loading task.
    fn end_loading_task(&self) {
        *lock(&self.loading_tasks) -= 1;
        self.loading_task_ended.notify_all();
    }

    /// Returns whether all loading tasks have ended.
    fn has_finished_loading(&self) -> bool {
        *lock(&self.loading_tasks) == 0
    }

    fn new(settings: &Settings, key_loader: KeyLoader, zones: Arc<Zones>) -> Result<Self, StateError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            zones,
            key_loader,
            state_directory: settings.state_dir.as_deref().map(StateDirectory::open).transpose()?,
            zone_map: Mutex::default(),
            zone_set_lock: Mutex::default(),
            removed_zone_locks: Mutex::default(),
            templates: Mutex::new(settings.templates.clone()),
            load_jobs: if settings.load_jobs == 0 {
                cores.min(DEFAULT_LOAD_JOBS)
            } else {
                settings.load_jobs
            },
            clock_shift: settings.clock_shift,
            next_key_event: AtomicU32::new(key_times::NEVER),
            keys_read_at: AtomicU32::new(0),
            activities: Activities::default(),
            listeners: Mutex::default(),
            reloading: Mutex::default(),
            last_reload: Mutex::default(),
            // Counts the thread that `begin` starts.
            loading_tasks: Mutex::new(1),
            loading_task_ended: Condvar::new(),
        })
    }

    /// Waits until every zone of the settings and every member of a stored catalog is served, waits
    /// for a transfer, or has failed to load. Returns the numbers of zones in these states.
    #[must_use]
    pub fn wait_until_loaded(&self) -> StartupSummary {
        let mut task_count = lock(&self.loading_tasks);
        while *task_count > 0 {
            task_count =
                self.loading_task_ended.wait(task_count).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        drop(task_count);
        let mut summary = StartupSummary::default();
        for zone in self.all_zones() {
            match zone.serving_state() {
                ServingState::Serving => summary.serving += 1,
                ServingState::NotReady | ServingState::Expired => summary.waiting += 1,
                ServingState::Failed => summary.failed += 1,
            }
        }
        summary
    }

    /// Calls `work` for all zones in `list`, concurrently in up to `load_jobs` threads.
    fn for_each_zone(&self, list: &[Arc<Zone>], work: impl Fn(&Arc<Zone>) + Sync) {
        let next_index = AtomicUsize::new(0);
        let run = || {
            while let Some(zone) = list.get(next_index.fetch_add(1, Relaxed)) {
                work(zone);
            }
        };
        std::thread::scope(|scope| {
            for _ in 1..self.load_jobs.min(list.len()) {
                // If no thread can be started, the other threads do the work.
                let _ = std::thread::Builder::new().name("load".to_owned()).spawn_scoped(scope, run);
            }
            run();
        });
    }

    /// Publishes `contents` as the next version of a zone. `steps` contains the changes from the
    /// previous version, one for each serial (RFC 1995 §4). If it is empty, the server computes the
    /// difference. Returns the serial of the version, which is then served, and stored if possible.
    ///
    /// # Errors
    /// Returns the reason why the version is rejected, also if no zone has this name; the previous
    /// version remains.
    pub fn publish(&self, apex: &Name, contents: Contents, steps: &[ChangeSet]) -> Result<u32, VersionError> {
        self.publish_if(apex, contents, steps, |_| true)
    }

    /// Publishes a version transferred from `primary`, as [`publish`](Self::publish) does.
    ///
    /// # Errors
    /// Returns the reason why the version is rejected, also if the settings of the zone no longer
    /// name this primary.
    pub fn publish_from(
        &self,
        primary: &Remote,
        apex: &Name,
        contents: Contents,
        steps: &[ChangeSet],
    ) -> Result<u32, VersionError> {
        self.publish_if(apex, contents, steps, |settings| {
            settings.source == ZoneSource::Primaries && settings.transfers.primaries.contains(primary)
        })
    }

    /// Publishes a version if the current settings of the zone satisfy `is_wanted`. A reload or a
    /// catalog may have changed the settings since the transfer began.
    fn publish_if(
        &self,
        apex: &Name,
        contents: Contents,
        steps: &[ChangeSet],
        is_wanted: impl FnOnce(&ZoneSettings) -> bool,
    ) -> Result<u32, VersionError> {
        let zone = self.zone(apex).ok_or(VersionError::UnknownZone)?;
        if contents.apex() != zone.apex() {
            return Err(VersionError::OtherZone(contents.apex().clone()));
        }
        let _lock = self.lock_zone(&zone);
        if !self.contains(&zone) {
            return Err(VersionError::UnknownZone);
        }
        if !is_wanted(&zone.settings()) {
            return Err(VersionError::PrimaryRemoved);
        }
        let activity = self.activities.begin(ActivityKind::Publish, Some(apex.to_string()));
        let is_key_event = self.note_key_event(&zone);
        let candidate = Candidate { steps, ..Candidate::new(contents) };
        let published = self.publish_contents(&zone, candidate, &activity);
        if is_key_event && published.is_err() {
            self.retry_key_event(&zone);
        }
        self.record_result(&zone, published.as_ref().err());
        published
    }

    /// Returns the records of the last published version. Returns `None` if they are not in memory.
    /// They are in memory for catalogs, and for zones that are transferred or whose secondaries
    /// receive NOTIFY.
    #[must_use]
    pub fn contents(&self, apex: &Name) -> Option<Arc<Contents>> {
        self.zone(apex)?.contents()
    }

    /// Returns the SOA record of the last published version. Returns `None` if the records of the
    /// zone are not in memory ([`contents`](Self::contents)).
    #[must_use]
    pub fn soa_record(&self, apex: &Name) -> Option<SoaRecord> {
        let contents = self.contents(apex)?;
        let soa = contents.apex_rrset(Rtype::SOA)?;
        Some(SoaRecord { ttl: soa.ttl(), rdata: soa.rdatas().next()?.to_vec() })
    }

    /// Opens the stored version of a zone, for reading in parts. Returns `None` if no version is
    /// stored.
    ///
    /// # Errors
    /// Returns an error if the stored version cannot be opened.
    pub fn stored_zone(&self, apex: &Name) -> Result<Option<StoredZone>, LoadError> {
        let Some(directory) = &self.state_directory else { return Ok(None) };
        if !directory.has_file(apex, state::ZONE_SUFFIX) {
            return Ok(None);
        }
        open_compiled(&directory.path(apex, state::ZONE_SUFFIX), Some(apex))
    }

    /// Sets whether a zone of primaries has expired. The server answers SERVFAIL for an expired
    /// zone. When the zone is no longer expired, the server answers again from its last version.
    pub fn set_expired(&self, apex: &Name, is_expired: bool) {
        if let Some(zone) = self.zone(apex) {
            // Does not wait for the publication of a version, because the caller also handles other
            // zones.
            let mut runtime = lock(&zone.runtime);
            if std::mem::replace(&mut runtime.is_expired, is_expired) != is_expired {
                self.publish_state(&zone, &runtime);
            }
        }
    }

    /// Sets the time at which a zone of primaries expires, for the EXPIRE option (RFC 7314). `None`
    /// means that the time is not known.
    pub fn set_expiry(&self, apex: &Name, expires: Option<std::time::Instant>) {
        self.zones.set_expiry(apex, expires);
    }

    /// Makes the state of a zone visible to workers. A thread that changes the state holds its lock
    /// until this returns, so that the last change wins.
    fn publish_state(&self, zone: &Zone, runtime: &ZoneRuntime) {
        if runtime.is_removed {
            return;
        }
        let state = match &runtime.served {
            _ if runtime.is_expired => ZoneState::Expired(zone.policy()),
            Some(served) => ZoneState::Serving(Arc::clone(served)),
            None if runtime.has_failed => ZoneState::Failed(zone.policy()),
            None => ZoneState::NotReady(zone.policy()),
        };
        self.zones.set(zone.apex(), state);
    }

    /// Applies the access lists in the settings of a zone immediately, independently of its
    /// versions.
    fn apply_policy(&self, zone: &Zone) {
        let mut runtime = lock(&zone.runtime);
        runtime.served = runtime.served.take().map(|served| Arc::new(served.with_policy(zone.policy())));
        self.publish_state(zone, &runtime);
    }

    /// Sends [`ZoneEvent::Stopped`], the last event, to all listeners.
    pub fn stop(&self) {
        self.send_event(&ZoneEvent::Stopped);
        lock(&self.listeners).clear();
    }

    /// Returns the names of the zones in the settings, without members of catalogs.
    #[must_use]
    pub fn configured_zones(&self) -> Vec<Name> {
        self.all_zones().iter().filter(|zone| !zone.is_member()).map(|zone| zone.apex().clone()).collect()
    }

    /// Returns a receiver for all events from now on.
    #[must_use]
    pub fn subscribe(&self) -> UnboundedReceiver<ZoneEvent> {
        let (sender, receiver) = unbounded_channel();
        lock(&self.listeners).push(sender);
        receiver
    }

    fn send_event(&self, event: &ZoneEvent) {
        lock(&self.listeners).retain(|listener| listener.send(event.clone()).is_ok());
    }

    /// Returns the zones that workers answer from.
    #[must_use]
    pub const fn zones(&self) -> &Arc<Zones> {
        &self.zones
    }

    /// Returns the state directory, if one is configured.
    #[must_use]
    pub const fn state_directory(&self) -> Option<&StateDirectory> {
        self.state_directory.as_ref()
    }

    /// Returns the activities in progress.
    #[must_use]
    pub const fn activities(&self) -> &Activities {
        &self.activities
    }

    /// Returns the settings of a zone, if it exists.
    #[must_use]
    pub fn settings_of(&self, apex: &Name) -> Option<Arc<ZoneSettings>> {
        Some(self.zone(apex)?.settings())
    }

    /// Returns the template with this name, if it exists.
    #[must_use]
    pub fn template(&self, name: &str) -> Option<ZoneTemplate> {
        lock(&self.templates).get(name).cloned()
    }

    /// Returns the settings of all zones.
    #[must_use]
    pub fn all_settings(&self) -> Vec<Arc<ZoneSettings>> {
        self.all_zones().iter().map(|zone| zone.settings()).collect()
    }

    /// Returns the time that the service compares with key times and with the validity of
    /// signatures: the system clock plus [`Settings::clock_shift`], in seconds since 1970 modulo
    /// 2^32.
    fn shifted_now(&self) -> u32 {
        (seconds_now() as u32).wrapping_add(self.clock_shift)
    }

    fn zone(&self, apex: &Name) -> Option<Arc<Zone>> {
        lock(&self.zone_map).get(apex).cloned()
    }

    /// Returns whether the service still contains this zone. A caller checks this after it has
    /// waited for the lock of the zone.
    fn contains(&self, zone: &Arc<Zone>) -> bool {
        self.zone(zone.apex()).is_some_and(|found| Arc::ptr_eq(&found, zone))
    }

    fn all_zones(&self) -> Vec<Arc<Zone>> {
        lock(&self.zone_map).values().cloned().collect()
    }
}

#[cfg(test)]
mod tests;
