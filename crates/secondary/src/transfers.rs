//! The thread that does what the zones' machines decide, and the handle to it.

use super::command::Command;
use super::driver::Driver;
use super::options::TransfersOptions;
use super::status::{Counts, StatusSnapshot, ZoneSnapshot, ZoneStatus};
use super::{SecondaryZone, ZoneStore};
use crate::notify::{NotifyReason, ReceivedNotify, SoaRecord};
use nonesuch_proto::Name;
use nonesuch_server::acl::Remote;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::mpsc;

/// NOTIFY messages that may wait to be acted on.
const NOTIFIED: usize = 4096;

/// All secondary zones of a server, and its NOTIFY messages to others. Stops when dropped; what was received then and is being
/// published is published.
#[derive(Debug)]
pub struct Transfers {
    commands: mpsc::UnboundedSender<Command>,
    notified: mpsc::Sender<ReceivedNotify>,
    shown: Arc<Mutex<StatusSnapshot>>,
    thread: Option<JoinHandle<()>>,
}

impl Transfers {
    /// Starts the thread, without zones.
    ///
    /// # Errors
    /// What the system says of a new thread.
    pub fn start(options: TransfersOptions, host: Arc<dyn ZoneStore>) -> io::Result<Self> {
        let (commands, taken_commands) = mpsc::unbounded_channel();
        let (notified, taken_notified) = mpsc::channel(NOTIFIED);
        let shown = Arc::new(Mutex::new(StatusSnapshot::default()));
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

    /// Forgets the secondaries of a zone but these: no other one is to be told of it any more.
    pub fn retain_secondaries(&self, apex: &Name, to: Vec<Remote>) {
        self.tell(Command::Retain { apex: apex.clone(), to });
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
    pub fn notified(&self, notified: ReceivedNotify) -> bool {
        self.notified.try_send(notified).is_ok()
    }

    /// Tells `to` of the version of a zone that has this SOA record.
    pub fn send_notify(&self, apex: &Name, soa: SoaRecord, to: Vec<Remote>, occasion: NotifyReason) {
        if !to.is_empty() {
            self.tell(Command::Announce { apex: apex.clone(), soa, to, occasion });
        }
    }

    /// All zones as they stand, in canonical order.
    #[must_use]
    pub fn status(&self) -> Vec<ZoneStatus> {
        let shown = self.shown.lock().unwrap_or_else(PoisonError::into_inner);
        shown.zones.values().map(ZoneSnapshot::status).collect()
    }

    /// What happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner).counts
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
