//! The driver runs in one thread for all secondary zones. It waits for the next event, passes it to
//! the state machine of the zone, and executes the actions of the machine.

mod jobs;
mod outage;
mod outdated_primaries;

use super::command::Command;
use super::event::{Action, Event, InboundOutcome};
use super::machine::Machine;
use super::options::TransfersOptions;
use super::queue::JobQueue;
use super::status::{
    Counts, FailingPrimary, Phase, RefreshState, StatusSnapshot, TransferSnapshot, ZoneSnapshot, ZoneStatus,
};
use super::stored::{RejectedSerials, RejectedVersions, Timers};
use super::timing::{LastRefresh, LocalSoa};
use super::write_order::{StateWrites, WriteTicket};
use super::{SecondaryZone, ZoneStore};
use crate::notify::{NotifyQueue, ReceivedNotify};
use jobs::TaskResult;
use nonesuch_proto::{Name, serial};
use nonesuch_server::acl::Remote;
use nonesuch_server::clock::{milliseconds_since_1970, seconds_now};
use outage::Outages;
use outdated_primaries::OutdatedPrimaries;
use std::collections::{BTreeSet, HashMap};
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// A secondary zone.
struct Zone {
    settings: Arc<SecondaryZone>,
    /// The state machine, which decides when to query which primary.
    machine: Machine,
    /// The time of the next timeout of this zone, as in [`Driver::due`].
    due: Option<u64>,
    phase: Phase,
    /// The index of the primary of the queued or active SOA query or transfer.
    primary_index: usize,
    /// Whether the queued or active transfer requests IXFR.
    is_ixfr: bool,
    /// The active SOA query or transfer.
    task: Option<Task>,
    /// The last error of a primary, with its address; `None` after a refresh.
    last_error: Option<String>,
    /// The time of expiry that was last passed to the [`ZoneStore`], in milliseconds since 1970.
    expires: Option<u64>,
    outdated_primaries: OutdatedPrimaries,
    /// The contents of the stored list of rejected versions.
    rejected: RejectedSerials,
    write_orders: StateWrites,
    outages: Outages,
}

impl Zone {
    /// Returns the versions that were rejected as whole zones, with the addresses of their
    /// primaries, for the stored list.
    fn rejected_serials(&self) -> RejectedSerials {
        let address = |primary: usize| self.settings.primaries.get(primary).map(|remote| remote.address);
        let rejected = self.machine.rejected_whole_zones();
        rejected.filter_map(|(primary, serial)| Some((address(primary)?, serial))).collect()
    }

    /// Returns the time at which to log that half of the expire time has passed, in milliseconds
    /// since 1970; `None` if the last round succeeded or this is already logged.
    fn half_expired_due(&self) -> Option<u64> {
        let half = self.machine.half_expired_at().filter(|_| self.machine.failed_rounds() > 0);
        self.outages.half_expired_due(half)
    }

    /// Logs that half of the expire time has passed, if this is due at `now`.
    fn log_half_expired(&mut self, now: u64) {
        if self.machine.failed_rounds() == 0 {
            return self.outages.set_half_expired_logged(false);
        }
        if self.half_expired_due().is_none_or(|half| half > now) {
            return;
        }
        self.outages.set_half_expired_logged(true);
        let (zone, error) = (self.settings.apex.to_string(), self.last_error.as_deref());
        let seconds = self.machine.expires_at().map(|at| at.saturating_sub(now) / 1000);
        tracing::warn!(
            name: "refresh-overdue",
            zone,
            expires_in_seconds = seconds,
            error,
            "zone {zone}: half of the expire time has passed without a refresh"
        );
    }

    fn refresh_state(&self) -> RefreshState {
        match (self.machine.is_expired(), self.machine.failed_rounds()) {
            (true, _) => RefreshState::Expired,
            (false, 1..) => RefreshState::Failing,
            (false, 0) if self.machine.local_soa().is_some() => RefreshState::Refreshed,
            (false, 0) => RefreshState::Pending,
        }
    }
}

/// The state of a zone when it is added to the driver.
struct InitialState {
    local_soa: Option<LocalSoa>,
    refreshed: Option<LastRefresh>,
    rejected: RejectedSerials,
}

/// Maximum number of NOTIFY messages that the driver keeps for zones that are not loaded yet.
const EARLY_NOTIFY_COUNT_MAX: usize = 65_536;

/// An active SOA query or transfer.
struct Task {
    /// Distinguishes this task from earlier, aborted tasks of the zone.
    number: u64,
    /// The primary whose slot in the queue the task uses. The configured primaries of the zone may
    /// have changed since the task began.
    primary: SocketAddr,
    abort: AbortHandle,
    /// The progress of a transfer; `None` for an SOA query.
    transfer: Option<TransferSnapshot>,
}

/// The state of the transfer thread. All times are in milliseconds since 1970, as
/// [`Driver::now`] returns them.
pub(super) struct Driver {
    options: Arc<TransfersOptions>,
    zone_store: Arc<dyn ZoneStore>,
    /// The status that other threads read.
    status: Arc<Mutex<StatusSnapshot>>,
    /// The zones, by number.
    zones: HashMap<u64, Zone>,
    zone_numbers: HashMap<Name, u64>,
    /// The number that was last given to a zone or task.
    last_number: u64,
    /// The time of the next timeout and the number of each zone.
    due: BTreeSet<(u64, u64)>,
    /// The queue of SOA queries.
    probes: JobQueue,
    /// The queue of transfers.
    transfers: JobQueue,
    notify_queue: NotifyQueue,
    /// Number of first attempts and number of repetitions of NOTIFY that have no response yet.
    unanswered_notify: [usize; 2],
    /// NOTIFY messages for zones that are not loaded yet.
    early_notify: HashMap<Name, ReceivedNotify>,
    result_sender: mpsc::UnboundedSender<TaskResult>,
    results: mpsc::UnboundedReceiver<TaskResult>,
    /// Active writes of timers and rejected serials.
    writes: JoinSet<()>,
    /// The write orders of removed zones, while any write is active. If such a zone is added again,
    /// its writes must come later.
    removed_write_orders: HashMap<Name, StateWrites>,
    /// Start of the driver.
    start: Instant,
    /// Milliseconds since 1970 at the start.
    start_ms: u64,
}

impl Driver {
    pub(super) fn new(
        options: TransfersOptions,
        zone_store: Arc<dyn ZoneStore>,
        status: Arc<Mutex<StatusSnapshot>>,
    ) -> Self {
        let (result_sender, results) = mpsc::unbounded_channel();
        Self {
            probes: JobQueue::new(options.probes, options.probes),
            transfers: JobQueue::new(options.transfers, options.transfers_per_primary),
            notify_queue: NotifyQueue::new(options.notify_rate),
            unanswered_notify: [0; 2],
            early_notify: HashMap::new(),
            options: Arc::new(options),
            zone_store,
            status,
            zones: HashMap::new(),
            zone_numbers: HashMap::new(),
            last_number: 0,
            due: BTreeSet::new(),
            result_sender,
            results,
            writes: JoinSet::new(),
            removed_write_orders: HashMap::new(),
            start: Instant::now(),
            start_ms: milliseconds_since_1970(),
        }
    }

    /// Returns the time in milliseconds since 1970. It begins with the system's clock at the start
    /// of the driver, and continues with a monotonic clock.
    fn now(&self) -> u64 {
        self.start_ms + self.start.elapsed().as_millis() as u64
    }

    /// Returns the milliseconds by which the system's clock is ahead of [`Driver::now`], rounded to
    /// seconds.
    fn clock_offset(&self) -> i64 {
        clock_offset_ms(milliseconds_since_1970(), self.now())
    }

    fn lock_status(&self) -> MutexGuard<'_, StatusSnapshot> {
        self.status.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the counters of the status.
    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.lock_status().counts);
    }

    /// Runs until the command `Stop`.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut received_notify: mpsc::Receiver<ReceivedNotify>,
    ) {
        let heartbeat = self.options.heartbeats.register("transfers");
        loop {
            heartbeat.report();
            self.handle_timeouts();
            self.start_jobs();
            self.send_notify_messages();
            while self.writes.try_join_next().is_some() {}
            if self.writes.is_empty() {
                self.removed_write_orders.clear();
            }
            let wait = self.time_to_next_timeout().min(heartbeat.max_wait());
            tokio::select! {
                command = commands.recv() => match command {
                    None | Some(Command::Stop) => break,
                    Some(command) => self.handle_command(command),
                },
                Some(notify) = received_notify.recv() => self.handle_notify(&notify),
                Some(result) = self.results.recv() => self.handle_result(result),
                () = tokio::time::sleep(wait) => {}
            }
        }
        for task in self.zones.values_mut().filter_map(|zone| zone.task.take()) {
            task.abort.abort();
        }
        while self.writes.join_next().await.is_some() {}
    }

    /// Returns the time until a zone has a timeout or a NOTIFY can be sent; an hour if
    /// neither is scheduled.
    fn time_to_next_timeout(&self) -> Duration {
        let zones = self.due.first().map(|(at, _)| *at);
        // If no NOTIFY may be sent now, the loop waits for a response instead.
        let next_notify =
            self.may_send_notify().and_then(|may_repeat| self.notify_queue.poll_timeout(may_repeat));
        let next = zones.into_iter().chain(next_notify).min();
        let now = self.now();
        // Add one millisecond, because the time must have passed at the next check.
        next.map_or(Duration::from_secs(3600), |at| Duration::from_millis(at.saturating_sub(now) + 1))
    }

    fn handle_timeouts(&mut self) {
        let now = self.now();
        while let Some(&(at, number)) = self.due.first()
            && at <= now
        {
            self.due.pop_first();
            let Some(zone) = self.zones.get_mut(&number) else { continue };
            zone.due = None;
            zone.machine.handle_timeout(now);
            self.update_zone(number);
        }
    }

    fn handle_command(&mut self, command: Command) {
        let now = self.now();
        match command {
            Command::SetZone(settings) => self.set_zone(*settings, now),
            Command::RemoveZone(apex) => self.remove_zone(&apex, false),
            Command::RemoveZoneKeepState(apex) => self.remove_zone(&apex, true),
            Command::Refresh(apex) => self.pass_event(&apex, Event::Refresh, now),
            Command::Retransfer(apex) => self.pass_event(&apex, Event::Retransfer, now),
            Command::RefreshRejected => {
                let zone_numbers: Vec<u64> = self.zones.keys().copied().collect();
                for number in zone_numbers {
                    if let Some(zone) =
                        self.zones.get_mut(&number).filter(|zone| zone.machine.rejected().is_some())
                    {
                        zone.machine.handle_event(Event::Reconsider, now);
                        self.update_zone(number);
                    }
                }
            }
            Command::RetainSecondaries { apex, to } => {
                let addresses: Vec<SocketAddr> = to.iter().map(|remote| remote.address).collect();
                self.options.secondary_statuses.retain(&apex, &addresses);
                self.notify_queue.retain(&apex, &to);
            }
            Command::Notify { apex, soa, to, reason } => {
                let addresses: Vec<SocketAddr> = to.iter().map(|remote| remote.address).collect();
                let serial = LocalSoa::from_rdata(&soa.rdata).map(|soa| soa.serial);
                self.options.secondary_statuses.record_notify(&apex, &addresses, serial, seconds_now());
                self.notify_queue.push(&apex, &soa, &to, reason, now);
            }
            Command::Stop => {}
        }
    }

    /// Passes an event to the state machine of the zone, if there is such a zone.
    fn pass_event(&mut self, apex: &Name, event: Event, now: u64) {
        let Some(number) = self.zone_numbers.get(apex).copied() else { return };
        if let Some(zone) = self.zones.get_mut(&number) {
            zone.machine.handle_event(event, now);
        }
        self.update_zone(number);
    }

    /// Passes a NOTIFY to the state machine of its zone, or keeps it until the zone is added.
    fn handle_notify(&mut self, notify: &ReceivedNotify) {
        let Some(zone) = self.zone_numbers.get(&notify.apex).and_then(|number| self.zones.get(number)) else {
            // The zone is not loaded yet. The NOTIFY was acknowledged, so its sender does not
            // repeat it. Keep it until the zone is loaded. A NOTIFY without a serial can refer to
            // any version, so it replaces one with a serial, and none replaces it.
            let replaces = |early: &ReceivedNotify| match (early.serial, notify.serial) {
                (Some(early), Some(serial)) => serial::is_before(early, serial),
                (early, _) => early.is_some(),
            };
            if self.early_notify.get(&notify.apex).is_none_or(replaces)
                && self.early_notify.len() < EARLY_NOTIFY_COUNT_MAX
            {
                self.early_notify.insert(notify.apex.clone(), notify.clone());
            }
            return;
        };
        // An IPv4-mapped IPv6 address is equal to the IPv4 address.
        let is_sender = |remote: &Remote| remote.address.ip().to_canonical() == notify.sender.to_canonical();
        let primary = zone.settings.primaries.iter().position(is_sender);
        self.count(|counts| counts.notified += 1);
        let event = Event::Notified { serial: notify.serial, primary };
        self.pass_event(&notify.apex, event, self.now());
    }

    /// Changes the settings of a zone, or adds the zone with its stored state.
    fn set_zone(&mut self, settings: SecondaryZone, now: u64) {
        if let Some(number) = self.zone_numbers.get(&settings.apex).copied()
            && let Some(zone) = self.zones.get_mut(&number)
        {
            if *zone.settings != settings {
                let primaries = settings.primaries.len();
                zone.machine.reconfigure(settings.timing, settings.request_ixfr, primaries, now);
                zone.settings = Arc::new(settings);
            }
            return self.update_zone(number);
        }
        let local_soa = self.zone_store.contents(&settings.apex).and_then(|contents| LocalSoa::of(&contents));
        let stored = self.zone_store.load_state(&settings.apex);
        let timers = stored
            .timers
            .filter(|timers| local_soa.is_some_and(|local_soa| local_soa.serial == timers.serial));
        let clock_offset_ms = self.clock_offset();
        let refreshed = timers.map(|timers| LastRefresh::of(timers, clock_offset_ms));
        let judged_by = settings.judged_by.as_ref();
        let rejected = stored.rejected.filter(|rejected| Some(&rejected.judged_by) == judged_by);
        let rejected = rejected.map(|rejected| rejected.serials).unwrap_or_default();
        self.add_zone(settings, InitialState { local_soa, refreshed, rejected }, now);
    }

    fn add_zone(&mut self, settings: SecondaryZone, initial: InitialState, now: u64) {
        let InitialState { local_soa, refreshed, rejected } = initial;
        self.last_number += 1;
        let number = self.last_number;
        // Differs between zones and between starts of the driver.
        let seed = number ^ (now << 20);
        let (timing, ixfr, primaries) = (settings.timing, settings.request_ixfr, settings.primaries.len());
        let mut machine = Machine::new(timing, ixfr, primaries, local_soa, refreshed, seed, now);
        for (address, serial) in &rejected {
            let index = settings.primaries.iter().position(|remote| remote.address == *address);
            index.into_iter().for_each(|primary| machine.restore_rejected(primary, *serial));
        }
        if local_soa.is_some() && machine.expires_at().is_some_and(|at| at > now) {
            // The server may have treated the stored version as expired. If the clock was set back
            // since then, the zone would otherwise stay expired.
            self.zone_store.restore(&settings.apex);
        }
        let early = self.early_notify.remove(&settings.apex);
        let write_orders = self.removed_write_orders.remove(&settings.apex).unwrap_or_default();
        self.zone_numbers.insert(settings.apex.clone(), number);
        let zone = Zone {
            settings: Arc::new(settings),
            machine,
            due: None,
            phase: Phase::Idle,
            primary_index: 0,
            is_ixfr: false,
            task: None,
            last_error: None,
            expires: None,
            outdated_primaries: OutdatedPrimaries::default(),
            rejected,
            write_orders,
            outages: Outages::default(),
        };
        self.zones.insert(number, zone);
        self.update_zone(number);
        if let Some(notify) = early {
            self.handle_notify(&notify);
        }
    }

    /// Removes a zone and, unless `keeps_state`, its stored state. A zone that may be added again
    /// keeps it.
    fn remove_zone(&mut self, apex: &Name, keeps_state: bool) {
        self.notify_queue.forget_zone(apex);
        self.early_notify.remove(apex);
        if let Some(zone) = self.take_zone(apex) {
            if !keeps_state {
                let StateWrites { timers, rejected } = &zone.write_orders;
                let forget = || self.zone_store.forget(&zone.settings.apex);
                WriteTicket::next(timers)
                    .write_if_newest(|| WriteTicket::next(rejected).write_if_newest(forget));
            }
            self.lock_status().zones.remove(apex);
        }
    }

    /// Removes a zone from the driver, and aborts its SOA query or transfer.
    fn take_zone(&mut self, apex: &Name) -> Option<Zone> {
        let number = self.zone_numbers.remove(apex)?;
        let mut zone = self.zones.remove(&number)?;
        if let Some(due) = zone.due {
            self.due.remove(&(due, number));
        }
        let (probes, transfers) = (&mut self.probes, &mut self.transfers);
        // A zone waits in at most one of the queues.
        let _ = probes.remove_waiting(number) || transfers.remove_waiting(number);
        if let Some(task) = zone.task.take() {
            task.abort.abort();
            if task.transfer.is_some() {
                transfers.release(task.primary)
            } else {
                probes.release(task.primary)
            }
        }
        if !self.writes.is_empty() {
            self.removed_write_orders.insert(apex.clone(), zone.write_orders.clone());
        }
        Some(zone)
    }

    /// Executes the pending actions of the state machine of a zone, and schedules its next timeout.
    /// Called after each event and timeout of the zone.
    fn update_zone(&mut self, number: u64) {
        while let Some(action) = self.zones.get_mut(&number).and_then(|zone| zone.machine.poll_action()) {
            self.execute_action(number, action);
        }
        let now = self.now();
        let Some(zone) = self.zones.get_mut(&number) else { return };
        store_rejected(zone, &self.zone_store, &mut self.writes);
        let local_serial = zone.machine.local_soa().map(|soa| soa.serial);
        let primaries = &zone.settings.primaries;
        let is_primary = |address| primaries.iter().any(|remote| remote.address == address);
        zone.outdated_primaries.retain(local_serial, is_primary);
        zone.outages.retain(is_primary);
        zone.log_half_expired(now);
        let next = zone.machine.poll_timeout().into_iter().chain(zone.half_expired_due()).min();
        if next != zone.due {
            if let Some(due) = zone.due {
                self.due.remove(&(due, number));
            }
            if let Some(next) = next {
                self.due.insert((next, number));
            }
            zone.due = next;
        }
        let expires = zone.machine.expires_at();
        if expires != zone.expires {
            zone.expires = expires;
            let instant_at = |at: u64| self.start + Duration::from_millis(at.saturating_sub(self.start_ms));
            let expiry = expires.map(|at| instant_at(at).into_std());
            self.zone_store.set_expiry(&zone.settings.apex, expiry);
        }
        self.publish_status(number);
    }

    fn execute_action(&mut self, number: u64, action: Action) {
        let Some(zone) = self.zones.get_mut(&number) else { return };
        let apex = &zone.settings.apex;
        match action {
            Action::Probe { primary } | Action::Transfer { primary, .. } => {
                // Only for a zone without primaries.
                let Some(remote) = zone.settings.primaries.get(primary) else {
                    let is_probe = matches!(action, Action::Probe { .. });
                    let failed = Event::Transferred { outcome: InboundOutcome::Failed, expire: None };
                    let event = if is_probe { Event::ProbeFailed } else { failed };
                    // `Driver::now` would borrow `self`, and `zone` is borrowed from it.
                    let now = self.start_ms + self.start.elapsed().as_millis() as u64;
                    return zone.machine.handle_event(event, now);
                };
                zone.primary_index = primary;
                if let Action::Transfer { is_ixfr, .. } = action {
                    zone.is_ixfr = is_ixfr;
                    zone.phase = Phase::Waiting;
                    self.transfers.push(remote.address, number);
                } else {
                    zone.phase = Phase::Probing;
                    self.probes.push(remote.address, number);
                }
            }
            Action::Expire => {
                let (zone, error) = (apex.to_string(), zone.last_error.as_deref());
                tracing::error!(
                    name: "zone-expired",
                    zone,
                    error,
                    "zone {zone}: expired, no refresh from a primary within the expire time of its SOA record"
                );
                self.zone_store.expire(apex);
                self.count(|counts| counts.expired += 1);
            }
            Action::Restore => {
                let zone = apex.to_string();
                tracing::info!(name: "zone-restored", zone, "zone {zone}: refreshed after expiry, serving it again");
                self.zone_store.restore(apex);
            }
            Action::Store => {
                let now = self.start_ms + self.start.elapsed().as_millis() as u64;
                store_timers(
                    zone,
                    clock_offset_ms(milliseconds_since_1970(), now),
                    &self.zone_store,
                    &mut self.writes,
                );
            }
        }
    }

    /// Publishes the status of the zone for other threads.
    fn publish_status(&self, number: u64) {
        let Some(zone) = self.zones.get(&number) else { return };
        let machine = &zone.machine;
        let clock_offset_ms = self.clock_offset();
        // Converts a time of `Driver::now` to seconds of the system's clock.
        let seconds = |at: u64| at.saturating_add_signed(clock_offset_ms) / 1000;
        let failing = |(address, since, error): (SocketAddr, u64, &str)| FailingPrimary {
            address,
            since: seconds(since),
            error: error.to_owned(),
        };
        let primary = zone.settings.primaries.get(machine.primary());
        let status = ZoneStatus {
            apex: zone.settings.apex.clone(),
            state: zone.refresh_state(),
            failing: zone.outages.list().map(failing).collect(),
            phase: zone.phase,
            serial: machine.local_soa().map(|soa| soa.serial),
            primary: primary.map_or_else(String::new, |remote| remote.address.to_string()),
            refreshed: machine.refreshed().map(|refreshed| seconds(refreshed.at)),
            next: machine.next_round().map(seconds),
            expires: machine.expires_at().map(seconds),
            is_expired: machine.is_expired(),
            failures: machine.failed_rounds(),
            last_error: zone.last_error.clone(),
            rejected: machine.rejected(),
            outdated_primaries: zone.outdated_primaries.warnings(&zone.settings.apex),
            transfer: None,
        };
        let transfer = zone.task.as_ref().and_then(|task| task.transfer.clone());
        self.lock_status().zones.insert(status.apex.clone(), ZoneSnapshot { status, transfer });
    }
}

/// Returns the milliseconds by which the system's clock (`system_now`) is ahead of [`Driver::now`]
/// (`now`). The latter is monotonic since the driver started. The system's clock, which the next
/// start and the displayed times use, may have been set since. The result is rounded to whole
/// seconds, so the delay between the two readings has no effect.
const fn clock_offset_ms(system_now: u64, now: u64) -> i64 {
    let milliseconds = system_now as i64 - now as i64;
    (milliseconds + 500).div_euclid(1000) * 1000
}

/// Returns the seconds for the stored timers of a zone that expires `left_ms` milliseconds after
/// `at_ms`: from the second of `at_ms` to the second in which the zone expires. Plain rounding
/// would lose one second each time that timers are read and stored again.
fn seconds_left(at_ms: u64, left_ms: u64) -> u32 {
    u32::try_from(at_ms.saturating_add(left_ms) / 1000 - at_ms / 1000).unwrap_or(u32::MAX)
}

/// Stores the time of the last refresh. The stored timers belong to the stored version: if the
/// served version cannot be stored, they are not changed.
fn store_timers(zone: &Zone, clock_offset: i64, zone_store: &Arc<dyn ZoneStore>, writes: &mut JoinSet<()>) {
    let (Some(local_soa), Some(refreshed)) = (zone.machine.local_soa(), zone.machine.refreshed()) else {
        return;
    };
    let at = refreshed.at.saturating_add_signed(clock_offset);
    let left = refreshed.left.map(|left| seconds_left(at, left));
    let timers = Timers { serial: local_soa.serial, refreshed: at / 1000, left };
    let (apex, zone_store, ticket) =
        (zone.settings.apex.clone(), Arc::clone(zone_store), WriteTicket::next(&zone.write_orders.timers));
    // The disk may be slow, and other zones must not wait for it.
    writes.spawn_blocking(move || {
        if zone_store.store(&apex) {
            ticket.write_if_newest(|| zone_store.store_timers(&apex, timers));
        }
    });
}

/// Stores the list of rejected versions if it has changed.
fn store_rejected(zone: &mut Zone, zone_store: &Arc<dyn ZoneStore>, writes: &mut JoinSet<()>) {
    let serials = zone.rejected_serials();
    if serials == zone.rejected {
        return;
    }
    zone.rejected.clone_from(&serials);
    let Some(judged_by) = zone.settings.judged_by.clone() else { return };
    let (apex, zone_store) = (zone.settings.apex.clone(), Arc::clone(zone_store));
    let ticket = WriteTicket::next(&zone.write_orders.rejected);
    writes.spawn_blocking(move || {
        ticket.write_if_newest(|| zone_store.store_rejected(&apex, RejectedVersions { judged_by, serials }));
    });
}

#[cfg(test)]
mod tests {
    use super::{clock_offset_ms, seconds_left};

    #[test]
    fn the_offset_of_the_clock_is_rounded_to_seconds() {
        // A machine that started in 1970 and got the time after an hour; a machine with a clock
        // that was set back.
        let (hour, today) = (3_600_000, 1_800_000_000_000);
        assert_eq!(clock_offset_ms(today, hour), (today - hour) as i64);
        assert_eq!(clock_offset_ms(today - hour, today), -(hour as i64));
        // The clocks are read one after the other.
        for between in [0, 1, 30, 499] {
            assert_eq!(
                [clock_offset_ms(today, today + between), clock_offset_ms(today + between, today)],
                [0, 0]
            );
        }
    }

    #[test]
    fn a_zone_expires_in_the_same_second_however_often_its_timers_are_stored() {
        let (at, left) = (1_800_000_000_700, 9_400);
        let seconds = seconds_left(at, left);
        assert_eq!(1_800_000_000 + u64::from(seconds), (at + left) / 1000);
        assert_eq!(seconds_left(at / 1000 * 1000, u64::from(seconds) * 1000), seconds);
        assert_eq!([seconds_left(at, 0), seconds_left(at, u64::MAX)], [0, u32::MAX]);
    }
}
