//! The transfer thread and the handle to it. The thread executes the actions of the zones'
//! machines.

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

/// Maximum number of received NOTIFY messages that wait for the transfer thread.
const NOTIFY_QUEUE_MAX: usize = 4096;

/// The handle to the transfer thread, which handles all secondary zones of a server and its NOTIFY
/// messages to other servers. Dropping the handle stops the thread. A publication that is active at
/// that time still finishes.
#[derive(Debug)]
pub struct Transfers {
    commands: mpsc::UnboundedSender<Command>,
    notified: mpsc::Sender<ReceivedNotify>,
    status: Arc<Mutex<StatusSnapshot>>,
    thread: Option<JoinHandle<()>>,
}

impl Transfers {
    /// Starts the thread, without zones.
    ///
    /// # Errors
    /// Fails if the system cannot create the runtime or the thread.
    pub fn start(options: TransfersOptions, zone_store: Arc<dyn ZoneStore>) -> io::Result<Self> {
        let (commands, command_receiver) = mpsc::unbounded_channel();
        let (notified, notify_receiver) = mpsc::channel(NOTIFY_QUEUE_MAX);
        let status = Arc::new(Mutex::new(StatusSnapshot::default()));
        let driver_status = Arc::clone(&status);
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build()?;
        let thread = std::thread::Builder::new().name("transfers".into()).spawn(move || {
            let driver = Driver::new(options, zone_store, driver_status);
            runtime.block_on(driver.run(command_receiver, notify_receiver));
        })?;
        Ok(Self { commands, notified, status, thread: Some(thread) })
    }

    /// Adds a zone, or changes the settings of an existing zone. The local version and the time of
    /// its last refresh are kept.
    pub fn set_zone(&self, zone: SecondaryZone) {
        self.send_command(Command::SetZone(Box::new(zone)));
    }

    /// Removes a zone and its stored state.
    pub fn remove_zone(&self, apex: &Name) {
        self.send_command(Command::RemoveZone(apex.clone()));
    }

    /// Removes a zone, but keeps its stored state.
    pub fn retire_zone(&self, apex: &Name) {
        self.send_command(Command::RemoveZoneKeepState(apex.clone()));
    }

    /// Removes all secondaries of a zone except `to`. The removed ones get no more NOTIFY messages.
    pub fn retain_secondaries(&self, apex: &Name, to: Vec<Remote>) {
        self.send_command(Command::RetainSecondaries { apex: apex.clone(), to });
    }

    /// Queries the primaries of the zone now.
    pub fn refresh(&self, apex: &Name) {
        self.send_command(Command::Refresh(apex.clone()));
    }

    /// Transfers the whole zone now, whatever its serial.
    pub fn retransfer(&self, apex: &Name) {
        self.send_command(Command::Retransfer(apex.clone()));
    }

    /// Queries the primaries of all zones with a rejected version now, because settings or keys
    /// have changed.
    pub fn reconsider_rejected(&self) {
        self.send_command(Command::RefreshRejected);
    }

    /// Queues a received NOTIFY without waiting. Returns `false` if the queue is full. The server
    /// must then not respond to the NOTIFY, because the sender repeats it only without a response.
    #[must_use]
    pub fn queue_notify(&self, notified: ReceivedNotify) -> bool {
        self.notified.try_send(notified).is_ok()
    }

    /// Sends NOTIFY messages to `to`, with the SOA record of the zone's version.
    pub fn send_notify(&self, apex: &Name, soa: SoaRecord, to: Vec<Remote>, reason: NotifyReason) {
        if !to.is_empty() {
            self.send_command(Command::Notify { apex: apex.clone(), soa, to, reason });
        }
    }

    /// Returns the status of all zones, in canonical order.
    #[must_use]
    pub fn status(&self) -> Vec<ZoneStatus> {
        let status = self.status.lock().unwrap_or_else(PoisonError::into_inner);
        status.zones.values().map(ZoneSnapshot::status).collect()
    }

    /// Returns the counters since the start.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.status.lock().unwrap_or_else(PoisonError::into_inner).counts
    }

    fn send_command(&self, command: Command) {
        // Sending fails only if the thread has ended, and then the command has no purpose.
        let _ = self.commands.send(command);
    }

    fn stop(&mut self) {
        self.send_command(Command::Stop);
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

impl Drop for Transfers {
    fn drop(&mut self) {
        self.stop();
    }
}
