//! The thread that does what the zones' machines decide, and the handle to it.

use super::driver::Driver;
use super::status::{Counts, ZoneStatus};
use super::{Host, SecondaryZone};
use crate::acl::Remote;
use crate::notify::{Notified, Occasion, SoaRecord};
use nonesuch_net::Heartbeats;
use nonesuch_proto::Name;
use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;
use tokio::sync::mpsc;

/// NOTIFY messages that may wait to be acted on.
const NOTIFIED: usize = 4096;

/// Limits of transfers in and of NOTIFY messages out.
#[derive(Clone, Debug)]
pub struct TransfersOptions {
    /// Transfers at once.
    pub transfers: usize,
    /// Transfers at once from one primary.
    pub transfers_each: usize,
    /// Primaries that are asked for serials at once.
    pub probes: usize,
    /// A transfer takes no longer than this, verification aside.
    pub time_limit: Duration,
    /// A primary keeps silent no longer than this in a transfer.
    pub idle_limit: Duration,
    /// NOTIFY messages sent in a second.
    pub notify_rate: u32,
    /// Certificates of those that may vouch for primaries over TLS, in PEM; without it a primary that is named cannot be
    /// authenticated, and is not asked.
    pub tls_authorities: Option<PathBuf>,
    /// Where the thread's loop reports. By default nowhere.
    pub heartbeats: Heartbeats,
}

impl Default for TransfersOptions {
    /// 10 transfers, 2 from one primary, 100 probes; 2 hours, 30 seconds; 100 messages a second.
    fn default() -> Self {
        Self {
            transfers: 10,
            transfers_each: 2,
            probes: 100,
            time_limit: Duration::from_secs(7200),
            idle_limit: Duration::from_secs(30),
            notify_rate: 100,
            tls_authorities: None,
            heartbeats: Heartbeats::default(),
        }
    }
}

/// What the thread is told.
pub(super) enum Command {
    Set(Box<SecondaryZone>),
    Remove(Name),
    Retire(Name),
    Reset(Name),
    Refresh(Name),
    Retransfer(Name),
    Reconsider,
    Announce { apex: Name, soa: SoaRecord, to: Vec<Remote>, occasion: Occasion },
    Stop,
}

/// What the thread shows.
#[derive(Debug, Default)]
pub(super) struct Shown {
    pub(super) zones: BTreeMap<Name, super::driver::ShownZone>,
    pub(super) counts: Counts,
}

/// All secondary zones of a server, and its NOTIFY messages to others. Stops when dropped; what was received then and is being
/// published is published.
#[derive(Debug)]
pub struct Transfers {
    commands: mpsc::UnboundedSender<Command>,
    notified: mpsc::Sender<Notified>,
    shown: Arc<Mutex<Shown>>,
    thread: Option<JoinHandle<()>>,
}

impl Transfers {
    /// Starts the thread, without zones.
    ///
    /// # Errors
    /// What the system says of a new thread.
    pub fn start(options: TransfersOptions, host: Arc<dyn Host>) -> io::Result<Self> {
        let (commands, taken_commands) = mpsc::unbounded_channel();
        let (notified, taken_notified) = mpsc::channel(NOTIFIED);
        let shown = Arc::new(Mutex::new(Shown::default()));
        let to_show = Arc::clone(&shown);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("transfers".into()).spawn(move || {
            let driver = Driver::new(options, host, to_show);
            runtime.block_on(driver.run(taken_commands, taken_notified));
        })?;
        Ok(Self { commands, notified, shown, thread: Some(thread) })
    }

    /// Adds a zone, or gives one that is there other settings: what is here of it, and when it was refreshed, stays.
    pub fn set_zone(&self, zone: SecondaryZone) {
        self.tell(Command::Set(Box::new(zone)));
    }

    /// Forgets a zone, and when it was refreshed.
    pub fn remove_zone(&self, apex: &Name) {
        self.tell(Command::Remove(apex.clone()));
    }

    /// Forgets a zone; the file that keeps when it was refreshed stays.
    pub fn retire_zone(&self, apex: &Name) {
        self.tell(Command::Retire(apex.clone()));
    }

    /// Begins anew with a zone, as if nothing of it were here.
    pub fn reset_zone(&self, apex: &Name) {
        self.tell(Command::Reset(apex.clone()));
    }

    /// Asks the zone's primaries at once.
    pub fn refresh(&self, apex: &Name) {
        self.tell(Command::Refresh(apex.clone()));
    }

    /// Transfers the whole zone at once, whatever its serial.
    pub fn retransfer(&self, apex: &Name) {
        self.tell(Command::Retransfer(apex.clone()));
    }

    /// Asks the primaries of zones at once whose newest version was rejected: settings or keys have changed.
    pub fn reconsider_rejected(&self) {
        self.tell(Command::Reconsider);
    }

    /// Takes a NOTIFY; never waits. Where it says no, too many wait already, and the NOTIFY is not to be answered: its
    /// sender will repeat it.
    #[must_use]
    pub fn notified(&self, notified: Notified) -> bool {
        self.notified.try_send(notified).is_ok()
    }

    /// Tells `to` of the version of a zone that has this SOA record.
    pub fn announce(&self, apex: &Name, soa: SoaRecord, to: Vec<Remote>, occasion: Occasion) {
        if !to.is_empty() {
            self.tell(Command::Announce { apex: apex.clone(), soa, to, occasion });
        }
    }

    /// All zones as they stand, in canonical order.
    #[must_use]
    pub fn status(&self) -> Vec<ZoneStatus> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.zones.values().map(super::driver::ShownZone::status).collect()
    }

    /// One zone as it stands.
    #[must_use]
    pub fn zone_status(&self, apex: &Name) -> Option<ZoneStatus> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.zones.get(apex).map(super::driver::ShownZone::status)
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).counts
    }

    /// Ends the thread, and waits for it.
    pub fn stop(mut self) {
        self.end();
    }

    fn tell(&self, command: Command) {
        // It fails where the thread has ended, and then nothing is left to be told.
        let _ = self.commands.send(command);
    }

    fn end(&mut self) {
        self.tell(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.end();
    }
}
