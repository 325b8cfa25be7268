//! From settings to running zones: loads, verifies, publishes, keeps, reloads.
//!
//! A zone is published in this order: verified as its settings say, prepared and compiled, written to the state folder,
//! swapped in. So what a client has seen is what is served after a restart, whenever the process ends. A version that is
//! refused leaves the one of before in its place. Nothing here is waited for by those who answer.

mod activity;
mod build;
mod compare;
mod follower;
mod keep;
mod link;
mod load;
mod made;
mod members;
mod publish;
mod purge;
mod reload;
mod settings;
mod state;
mod status;
mod zone;

pub use activity::{Activities, Activity, ActivityKind, ActivityStatus};
pub use follower::follow;
pub use link::Link;
pub use purge::PurgeError;
pub use settings::{
    Catalog, FULL, Making, Settings, Source, Template, TransferSettings, VerifyChoice, ZoneSettings,
};
pub(crate) use state::PART;
pub use state::{StateError, StateFolder};
pub use status::{ReloadReport, ServiceStatus, ZoneStanding, ZoneStatus};

use crate::zones::{ZoneState, Zones};
use crate::{OpenImageError, seconds_now};
use activity::lock;
use nonesuch_dnssec::KeyPair;
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_dnssec::online::{Nsec5Prover, Nsec5Zone, PrepareError};
use nonesuch_proto::Name;
use nonesuch_zone::image::CompileError;
use nonesuch_zone::{ChangeSet, Contents, LoadError};
use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::sync::{Arc, Condvar, Mutex};
use tokio::sync::mpsc::{UnboundedReceiver, UnboundedSender, unbounded_channel};
use zone::{Facts, Zone};

/// Zones that are loaded side by side by default: each takes memory for two versions of itself.
const JOBS: usize = 4;

/// The records of all keys of a zone, and the pairs of those whose private keys are there.
pub type SigningKeys = (Vec<KeyRecord>, Vec<KeyPair>);

/// Reading of key files, which whoever starts the service knows how to do. Errors say file and remedy.
#[derive(Clone, Copy, Debug)]
pub struct KeyFiles {
    /// The public records of a zone's keys in a folder, and the pairs of those whose private keys are there.
    pub signing: fn(&Path, &Name) -> Result<SigningKeys, String>,
    /// The VRF key and the proofs of a zone in a folder. Neither there nor beside the zone's file may a signing key be.
    pub prover: fn(&Path, Option<&Path>, &Nsec5Zone) -> Result<Nsec5Prover, String>,
}

/// Why a version of a zone is not published. What was published before goes on being served.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Refused {
    /// There is no such zone.
    #[error("there is no zone of this name here")]
    Unknown,
    /// Its records are not of this zone.
    #[error("the records are of {0}")]
    OtherZone(Name),
    /// Its file cannot be read.
    #[error(transparent)]
    Load(#[from] LoadError),
    /// Its file, an image, cannot be opened.
    #[error(transparent)]
    Image(#[from] OpenImageError),
    /// Its file cannot be looked at.
    #[error("{}: cannot be read: {source}", path.display())]
    Read {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
    /// Its file changed while it was read.
    #[error("{}: changed while it was read: write zone files beside and rename them into place", .0.display())]
    Moving(PathBuf),
    /// It is not sound.
    #[error(
        "not fit to be served: {faults} {}: {}; `nonesuch zone verify` lists all; mend the zone, or sign it again",
        if *faults == 1 { "fault" } else { "faults" }, first.join("; ")
    )]
    Unsound {
        /// Number of faults.
        faults: usize,
        /// The first of them.
        first: Vec<String>,
    },
    /// It is signed with NSEC5, and its VRF key is nowhere.
    #[error(
        "the zone has NSEC5, and its VRF key is in no folder nsec5 beside its file: name its folder with nsec5-keys"
    )]
    Nsec5KeysNeeded,
    /// It is to be served with NSEC5 and has none.
    #[error(
        "the zone is not signed with NSEC5: leave nsec5-keys out, or sign it with `nonesuch zone sign --denial nsec5`"
    )]
    NotNsec5,
    /// It is to be signed, and is not.
    #[error("the zone is not signed, and dnssec = \"required\" has that refused: sign it, or take that out")]
    NotSigned,
    /// Keys are missing or faulty.
    #[error("{0}")]
    Keys(String),
    /// It cannot be signed or denied when asked.
    #[error(transparent)]
    Prepare(#[from] Box<PrepareError>),
    /// It does not fit into an image.
    #[error(transparent)]
    Compile(#[from] CompileError),
    /// It could not be kept, and what is not kept is not published.
    #[error("{}: cannot be written: {source}: make room, or make it writable", path.display())]
    Keep {
        /// The file.
        path: PathBuf,
        /// What the system said.
        source: io::Error,
    },
}

/// What happens to zones, for those who transfer them.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum ZoneEvent {
    /// The zone is served in this version.
    Published {
        /// Its name.
        apex: Name,
        /// Its serial.
        serial: u32,
    },
    /// A zone of primaries has no version yet.
    NotLoaded {
        /// Its name.
        apex: Name,
    },
    /// The zone is there.
    Added(Arc<ZoneSettings>),
    /// The zone has other settings.
    Changed(Arc<ZoneSettings>),
    /// The zone is gone.
    Removed {
        /// Its name.
        apex: Name,
        /// Whether what is kept of it stays.
        is_kept: bool,
    },
    /// The stored versions of all catalogs that the settings name are loaded, as far as there are any.
    CatalogsLoaded,
    /// The settings were reloaded: templates may be others.
    Reloaded,
    /// Nothing will happen any more.
    Stopped,
}

/// How the zones of the settings came up.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Settled {
    /// Zones that are served.
    pub serving: usize,
    /// Zones of primaries that wait for their first transfer.
    pub waiting: usize,
    /// Zones that could not be loaded.
    pub failed: usize,
}

/// Zones and what keeps them up to date.
#[derive(Debug)]
pub struct Service {
    zones: Arc<Zones>,
    key_files: KeyFiles,
    state: Option<StateFolder>,
    table: Mutex<BTreeMap<Name, Arc<Zone>>>,
    /// Held by whoever adds zones or takes them away: one who looks whether a zone is there relies on it until it has acted.
    changing: Mutex<()>,
    templates: Mutex<BTreeMap<String, Template>>,
    jobs: usize,
    clock_shift: u32,
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
        let new: Vec<Arc<Zone>> =
            settings.zones.into_iter().map(|settings| Arc::new(Zone::new(settings))).collect();
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
                |zone: &Arc<Zone>| matches!(zone.settings().catalog, Some(Catalog::Consumer { .. }));
            let (catalogs, others): (Vec<_>, Vec<_>) = loader.all().into_iter().partition(is_consumer);
            loader.load_all(&catalogs);
            loader.tell(&ZoneEvent::CatalogsLoaded);
            loader.load_all(&others);
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

    fn new(settings: &Settings, key_files: KeyFiles, zones: Arc<Zones>) -> Result<Self, StateError> {
        let cores = std::thread::available_parallelism().map_or(1, usize::from);
        Ok(Self {
            zones,
            key_files,
            state: settings.state_dir.as_deref().map(StateFolder::open).transpose()?,
            table: Mutex::default(),
            changing: Mutex::default(),
            templates: Mutex::new(settings.templates.clone()),
            jobs: if settings.jobs == 0 { cores.min(JOBS) } else { settings.jobs },
            clock_shift: settings.clock_shift,
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
    pub fn wait(&self) -> Settled {
        let mut loading = lock(&self.loading);
        while *loading > 0 {
            loading = self.settled.wait(loading).unwrap_or_else(std::sync::PoisonError::into_inner);
        }
        drop(loading);
        let mut settled = Settled::default();
        for zone in self.all() {
            match zone.standing() {
                ZoneStanding::Serving => settled.serving += 1,
                ZoneStanding::NotReady | ZoneStanding::Expired => settled.waiting += 1,
                ZoneStanding::Failed => settled.failed += 1,
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
    pub fn publish(&self, apex: &Name, contents: Contents, steps: &[ChangeSet]) -> Result<u32, Refused> {
        let zone = self.zone(apex).ok_or(Refused::Unknown)?;
        if contents.apex() != zone.apex() {
            return Err(Refused::OtherZone(contents.apex().clone()));
        }
        let _one = lock(zone.work());
        if !self.has(&zone) {
            return Err(Refused::Unknown);
        }
        let activity = self.activities.begin(ActivityKind::Publish, Some(apex.to_string()));
        let published = self.publish_contents(&zone, contents, None, steps, Vec::new(), &activity);
        self.note(&zone, published.as_ref().err());
        published
    }

    /// What was published of a zone last, where its records are held: zones that are transferred, in or out.
    #[must_use]
    pub fn contents(&self, apex: &Name) -> Option<Arc<Contents>> {
        self.zone(apex)?.contents()
    }

    /// Says whether a zone of primaries has expired; it is served again from what is held when it has not.
    pub fn set_expired(&self, apex: &Name, is_expired: bool) {
        if let Some(zone) = self.zone(apex) {
            // No version that is being made is waited for: whoever calls has other zones to see to.
            let mut facts = lock(&zone.facts);
            facts.is_expired = is_expired;
            self.show(&zone, &facts);
        }
    }

    /// Has answers made by what is known of a zone. Whoever changes that holds it until it is shown, so that the last word stays.
    fn show(&self, zone: &Zone, facts: &Facts) {
        if facts.is_gone {
            return;
        }
        let state = match &facts.served {
            _ if facts.is_expired => ZoneState::Expired(zone.policy()),
            Some(served) => ZoneState::Serving(Arc::clone(served)),
            None => ZoneState::NotReady(zone.policy()),
        };
        self.zones.set(zone.apex(), state);
    }

    /// Has who may transfer a zone, and tell that it has changed, asked of its settings from now on, whatever becomes of its
    /// versions.
    fn show_policy(&self, zone: &Zone) {
        let mut facts = lock(&zone.facts);
        facts.served = facts.served.take().map(|served| Arc::new(served.with_policy(zone.policy())));
        self.show(zone, &facts);
    }

    /// Tells those who follow what happens that nothing will.
    pub fn stop(&self) {
        self.tell(&ZoneEvent::Stopped);
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

    fn tell(&self, event: &ZoneEvent) {
        lock(&self.listeners).retain(|listener| listener.send(event.clone()).is_ok());
    }

    /// The zones that are answered from.
    #[must_use]
    pub const fn zones(&self) -> &Arc<Zones> {
        &self.zones
    }

    /// The folder in which published zones are kept.
    #[must_use]
    pub const fn state(&self) -> Option<&StateFolder> {
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
    pub fn template(&self, name: &str) -> Option<Template> {
        lock(&self.templates).get(name).cloned()
    }

    /// The settings of all zones.
    #[must_use]
    pub fn all_settings(&self) -> Vec<Arc<ZoneSettings>> {
        self.all().iter().map(|zone| zone.settings()).collect()
    }

    /// What is told of the service.
    #[must_use]
    pub fn status(&self) -> ServiceStatus {
        let zones = self.zone_status(None);
        let count = |state| zones.iter().filter(|zone| zone.state == state).count();
        let troubled = zones.iter().filter(|zone| zone.error.is_some() || zone.expires_soon);
        ServiceStatus {
            serving: count(ZoneStanding::Serving),
            not_ready: count(ZoneStanding::NotReady),
            expired: count(ZoneStanding::Expired),
            failed: count(ZoneStanding::Failed),
            troubled: troubled.map(|zone| zone.zone.clone()).collect(),
            activities: self.activities.list(),
            last_reload: lock(&self.last_reload).clone(),
        }
    }

    /// What is told of one zone, or of all.
    #[must_use]
    pub fn zone_status(&self, apex: Option<&Name>) -> Vec<ZoneStatus> {
        let now = self.now();
        match apex {
            Some(apex) => self.zone(apex).iter().map(|zone| zone.status(now)).collect(),
            None => self.all().iter().map(|zone| zone.status(now)).collect(),
        }
    }

    /// Warns in the log of signatures that expire soon or have expired, zone by zone; to be called now and then.
    pub fn warn_of_expiry(&self) {
        let now = self.now();
        for zone in self.all() {
            if let Some(expiry) = zone.look_at_expiry(now) {
                let name = zone.apex().to_string();
                tracing::warn!(zone = name, "zone {name}: {expiry}");
            }
        }
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
