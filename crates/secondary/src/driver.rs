//! The thread of all zones: waits for the next event, passes it to the zone's machine, and executes
//! the actions of the machine.

mod jobs;
mod outage;
mod outdated_primaries;

use super::command::Command;
use super::event::{Action, Event, InboundOutcome};
use super::machine::Machine;
use super::options::TransfersOptions;
use super::queue::Queue;
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
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

struct Zone {
    settings: Arc<SecondaryZone>,
    machine: Machine,
    /// The time of this zone in [`Driver::due`].
    due: Option<u64>,
    phase: Phase,
    /// The primary and the kind of the queued or active job.
    primary: usize,
    by_steps: bool,
    task: Option<Task>,
    last_error: Option<String>,
    /// The time of expiry that the server was given.
    expires: Option<u64>,
    behind: OutdatedPrimaries,
    /// The contents of the stored list of rejected versions.
    rejected: RejectedSerials,
    turns: StateWrites,
    outages: Outages,
}

impl Zone {
    /// Returns the versions that were rejected as whole zones, for the stored list.
    fn rejected_serials(&self) -> RejectedSerials {
        let address = |primary: usize| self.settings.primaries.get(primary).map(|remote| remote.address);
        let rejected = self.machine.rejected_wholes();
        rejected.filter_map(|(primary, serial)| Some((address(primary)?, serial))).collect()
    }

    /// Returns the time at which to log that half of the expire time has passed. Only set while
    /// refreshes fail.
    fn half_due(&self) -> Option<u64> {
        let half = self.machine.half_expired_at().filter(|_| self.machine.failed_rounds() > 0);
        self.outages.half_due(half)
    }

    /// Logs that half of the expire time has passed, if that is due at `now`.
    fn look_at_half(&mut self, now: u64) {
        if self.machine.failed_rounds() == 0 {
            return self.outages.note_half(false);
        }
        if self.half_due().is_none_or(|half| half > now) {
            return;
        }
        self.outages.note_half(true);
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

/// The initial state of a zone.
struct ZoneInfo {
    held: Option<LocalSoa>,
    refreshed: Option<LastRefresh>,
    rejected: RejectedSerials,
}

/// Maximum number of NOTIFY messages for zones that are not loaded yet.
const EARLY: usize = 65_536;

/// An active SOA query or transfer.
struct Task {
    number: u64,
    /// The task uses a slot of this primary. The configured primaries of the zone may have changed.
    primary: SocketAddr,
    abort: AbortHandle,
    transfer: Option<TransferSnapshot>,
}

pub(super) struct Driver {
    options: Arc<TransfersOptions>,
    host: Arc<dyn ZoneStore>,
    shown: Arc<Mutex<StatusSnapshot>>,
    zones: HashMap<u64, Zone>,
    numbers: HashMap<Name, u64>,
    last_number: u64,
    due: BTreeSet<(u64, u64)>,
    probes: Queue,
    transfers: Queue,
    outbox: NotifyQueue,
    /// Numbers of NOTIFY messages without a response yet: first attempts, and repetitions.
    announced: [usize; 2],
    /// NOTIFY messages for zones that are not loaded yet.
    early: HashMap<Name, ReceivedNotify>,
    done: mpsc::UnboundedSender<TaskResult>,
    ended: mpsc::UnboundedReceiver<TaskResult>,
    /// Active writes of timers and rejected serials.
    stores: JoinSet<()>,
    /// The write orders of removed zones, while any write is active. If such a zone is added again,
    /// its writes must come later.
    removed: HashMap<Name, StateWrites>,
    began: Instant,
    /// Milliseconds since 1970 at the start.
    offset: u64,
}

impl Driver {
    pub(super) fn new(
        options: TransfersOptions,
        host: Arc<dyn ZoneStore>,
        shown: Arc<Mutex<StatusSnapshot>>,
    ) -> Self {
        let (done, ended) = mpsc::unbounded_channel();
        Self {
            probes: Queue::new(options.probes, options.probes),
            transfers: Queue::new(options.transfers, options.transfers_each),
            outbox: NotifyQueue::new(options.notify_rate),
            announced: [0; 2],
            early: HashMap::new(),
            options: Arc::new(options),
            host,
            shown,
            zones: HashMap::new(),
            numbers: HashMap::new(),
            last_number: 0,
            due: BTreeSet::new(),
            done,
            ended,
            stores: JoinSet::new(),
            removed: HashMap::new(),
            began: Instant::now(),
            offset: milliseconds_since_1970(),
        }
    }

    fn now(&self) -> u64 {
        self.offset + self.began.elapsed().as_millis() as u64
    }

    /// Returns the milliseconds by which the system's clock is ahead of [`Driver::now`].
    fn system_ahead(&self) -> i64 {
        ahead(milliseconds_since_1970(), self.now())
    }

    fn shown(&self) -> MutexGuard<'_, StatusSnapshot> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.shown().counts);
    }

    /// Runs until the command `Stop`.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut notified: mpsc::Receiver<ReceivedNotify>,
    ) {
        let heartbeat = self.options.heartbeats.register("transfers");
        loop {
            heartbeat.report();
            self.handle_timeouts();
            self.start_jobs();
            self.send_announcements();
            while self.stores.try_join_next().is_some() {}
            if self.stores.is_empty() {
                self.removed.clear();
            }
            let wait = self.next_timeout().min(heartbeat.pause());
            tokio::select! {
                command = commands.recv() => match command {
                    None | Some(Command::Stop) => break,
                    Some(command) => self.take_command(command),
                },
                Some(notified) = notified.recv() => self.take_notified(&notified),
                Some(done) = self.ended.recv() => self.take_done(done),
                () = tokio::time::sleep(wait) => {}
            }
        }
        for task in self.zones.values_mut().filter_map(|zone| zone.task.take()) {
            task.abort.abort();
        }
        while self.stores.join_next().await.is_some() {}
    }

    fn next_timeout(&self) -> Duration {
        let zones = self.due.first().map(|(at, _)| *at);
        // If the limit is reached, the loop waits for a response instead.
        let room = self.room_for_announcements();
        let announcement = room.and_then(|may_repeat| self.outbox.poll_timeout(may_repeat));
        let next = zones.into_iter().chain(announcement).min();
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
            self.settle(number);
        }
    }

    fn take_command(&mut self, command: Command) {
        let now = self.now();
        match command {
            Command::Set(settings) => self.set_zone(*settings, now),
            Command::Remove(apex) => self.remove_zone(&apex, false),
            Command::Retire(apex) => self.remove_zone(&apex, true),
            Command::Refresh(apex) => self.tell(&apex, Event::Refresh, now),
            Command::Retransfer(apex) => self.tell(&apex, Event::Retransfer, now),
            Command::Reconsider => {
                let numbers: Vec<u64> = self.zones.keys().copied().collect();
                for number in numbers {
                    if let Some(zone) =
                        self.zones.get_mut(&number).filter(|zone| zone.machine.rejected().is_some())
                    {
                        zone.machine.handle_event(Event::Reconsider, now);
                        self.settle(number);
                    }
                }
            }
            Command::Retain { apex, to } => {
                let addresses: Vec<SocketAddr> = to.iter().map(|remote| remote.address).collect();
                self.options.secondaries.retain(&apex, &addresses);
                self.outbox.retain(&apex, &to);
            }
            Command::Announce { apex, soa, to, occasion } => {
                let addresses: Vec<SocketAddr> = to.iter().map(|remote| remote.address).collect();
                let serial = LocalSoa::from_rdata(&soa.rdata).map(|held| held.serial);
                self.options.secondaries.notify(&apex, &addresses, serial, seconds_now());
                self.outbox.push(&apex, &soa, &to, occasion, now);
            }
            Command::Stop => {}
        }
    }

    fn tell(&mut self, apex: &Name, event: Event, now: u64) {
        let Some(number) = self.numbers.get(apex).copied() else { return };
        if let Some(zone) = self.zones.get_mut(&number) {
            zone.machine.handle_event(event, now);
        }
        self.settle(number);
    }

    fn take_notified(&mut self, notified: &ReceivedNotify) {
        let Some(zone) = self.numbers.get(&notified.apex).and_then(|number| self.zones.get(number)) else {
            // The NOTIFY was acknowledged, so its sender does not repeat it. Keep it until the zone
            // is loaded. Only zones with this server as secondary get here.
            let is_newer = |early: &ReceivedNotify| match (early.serial, notified.serial) {
                (Some(early), Some(serial)) => serial::is_before(early, serial),
                (early, _) => early.is_some(),
            };
            if self.early.get(&notified.apex).is_none_or(is_newer) && self.early.len() < EARLY {
                self.early.insert(notified.apex.clone(), notified.clone());
            }
            return;
        };
        let is_sender = |remote: &Remote| canonical(remote.address.ip()) == canonical(notified.sender);
        let primary = zone.settings.primaries.iter().position(is_sender);
        self.count(|counts| counts.notified += 1);
        let event = Event::Notified { serial: notified.serial, primary };
        self.tell(&notified.apex, event, self.now());
    }

    fn set_zone(&mut self, settings: SecondaryZone, now: u64) {
        if let Some(number) = self.numbers.get(&settings.apex).copied()
            && let Some(zone) = self.zones.get_mut(&number)
        {
            if *zone.settings != settings {
                let primaries = settings.primaries.len();
                zone.machine.reconfigure(settings.timing, settings.request_ixfr, primaries, now);
                zone.settings = Arc::new(settings);
            }
            return self.settle(number);
        }
        let held = self.host.contents(&settings.apex).and_then(|contents| LocalSoa::of(&contents));
        let stored = self.host.load_state(&settings.apex);
        let timers = stored.timers.filter(|timers| held.is_some_and(|held| held.serial == timers.serial));
        let ahead = self.system_ahead();
        let refreshed = timers.map(|timers| LastRefresh::of(timers, ahead));
        let judged_by = settings.judged_by.as_ref();
        let rejected = stored.rejected.filter(|rejected| Some(&rejected.judged_by) == judged_by);
        let rejected = rejected.map(|rejected| rejected.serials).unwrap_or_default();
        self.add_zone(settings, ZoneInfo { held, refreshed, rejected }, now);
    }

    fn add_zone(&mut self, settings: SecondaryZone, known: ZoneInfo, now: u64) {
        let ZoneInfo { held, refreshed, rejected } = known;
        self.last_number += 1;
        let number = self.last_number;
        let noise = number ^ now << 20;
        let (timing, ixfr, primaries) = (settings.timing, settings.request_ixfr, settings.primaries.len());
        let mut machine = Machine::new(timing, ixfr, primaries, held, refreshed, noise, now);
        for (address, serial) in &rejected {
            let place = settings.primaries.iter().position(|remote| remote.address == *address);
            place.into_iter().for_each(|primary| machine.restore_rejected(primary, *serial));
        }
        if held.is_some() && machine.expires_at().is_some_and(|at| at > now) {
            // If the clock was set back since the server decided, the zone would otherwise stay
            // expired.
            self.host.restore(&settings.apex);
        }
        let early = self.early.remove(&settings.apex);
        let turns = self.removed.remove(&settings.apex).unwrap_or_default();
        self.numbers.insert(settings.apex.clone(), number);
        let zone = Zone {
            settings: Arc::new(settings),
            machine,
            due: None,
            phase: Phase::Idle,
            primary: 0,
            by_steps: false,
            task: None,
            last_error: None,
            expires: None,
            behind: OutdatedPrimaries::default(),
            rejected,
            turns,
            outages: Outages::default(),
        };
        self.zones.insert(number, zone);
        self.settle(number);
        if let Some(notified) = early {
            self.take_notified(&notified);
        }
    }

    /// Removes a zone. `is_kept`: its stored state is kept, because the zone may be added again.
    fn remove_zone(&mut self, apex: &Name, is_kept: bool) {
        self.outbox.forget_zone(apex);
        self.early.remove(apex);
        if let Some(zone) = self.take_zone(apex) {
            if !is_kept {
                let StateWrites { timers, rejected } = &zone.turns;
                let forget = || self.host.forget(&zone.settings.apex);
                WriteTicket::next(timers)
                    .write_if_newest(|| WriteTicket::next(rejected).write_if_newest(forget));
            }
            self.shown().zones.remove(apex);
        }
    }

    fn take_zone(&mut self, apex: &Name) -> Option<Zone> {
        let number = self.numbers.remove(apex)?;
        let mut zone = self.zones.remove(&number)?;
        if let Some(due) = zone.due {
            self.due.remove(&(due, number));
        }
        let (probes, transfers) = (&mut self.probes, &mut self.transfers);
        let _ = probes.withdraw(number) || transfers.withdraw(number);
        if let Some(task) = zone.task.take() {
            task.abort.abort();
            if task.transfer.is_some() { transfers.end(task.primary) } else { probes.end(task.primary) }
        }
        if !self.stores.is_empty() {
            self.removed.insert(apex.clone(), zone.turns.clone());
        }
        Some(zone)
    }

    /// Executes the actions of a zone's machine, and schedules its next timeout.
    fn settle(&mut self, number: u64) {
        while let Some(action) = self.zones.get_mut(&number).and_then(|zone| zone.machine.poll_action()) {
            self.act(number, action);
        }
        let now = self.now();
        let Some(zone) = self.zones.get_mut(&number) else { return };
        store_rejected(zone, &self.host, &mut self.stores);
        let held = zone.machine.local_soa().map(|held| held.serial);
        let primaries = &zone.settings.primaries;
        let is_primary = |address| primaries.iter().any(|remote| remote.address == address);
        zone.behind.retain(held, is_primary);
        zone.outages.retain(is_primary);
        zone.look_at_half(now);
        let next = zone.machine.poll_timeout().into_iter().chain(zone.half_due()).min();
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
            let at = |at: u64| self.began + Duration::from_millis(at.saturating_sub(self.offset));
            self.host.set_expiry(&zone.settings.apex, expires.map(at).map(Instant::into_std));
        }
        self.show(number);
    }

    fn act(&mut self, number: u64, action: Action) {
        let Some(zone) = self.zones.get_mut(&number) else { return };
        let apex = &zone.settings.apex;
        match action {
            Action::Probe { primary } | Action::Transfer { primary, .. } => {
                let Some(remote) = zone.settings.primaries.get(primary) else {
                    let is_probe = matches!(action, Action::Probe { .. });
                    let failed = Event::Transferred { ended: InboundOutcome::Failed, expire: None };
                    let event = if is_probe { Event::ProbeFailed } else { failed };
                    let now = self.offset + self.began.elapsed().as_millis() as u64;
                    return zone.machine.handle_event(event, now);
                };
                zone.primary = primary;
                if let Action::Transfer { by_steps, .. } = action {
                    zone.by_steps = by_steps;
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
                self.host.expire(apex);
                self.count(|counts| counts.expired += 1);
            }
            Action::Restore => {
                let zone = apex.to_string();
                tracing::info!(name: "zone-restored", zone, "zone {zone}: refreshed after expiry, serving it again");
                self.host.restore(apex);
            }
            Action::Store => {
                let now = self.offset + self.began.elapsed().as_millis() as u64;
                store(zone, ahead(milliseconds_since_1970(), now), &self.host, &mut self.stores);
            }
        }
    }

    fn show(&self, number: u64) {
        let Some(zone) = self.zones.get(&number) else { return };
        let machine = &zone.machine;
        let ahead = self.system_ahead();
        let seconds = |at: u64| at.saturating_add_signed(ahead) / 1000;
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
            serial: machine.local_soa().map(|held| held.serial),
            primary: primary.map_or_else(String::new, |remote| remote.address.to_string()),
            refreshed: machine.refreshed().map(|refreshed| seconds(refreshed.at)),
            next: machine.next_round().map(seconds),
            expires: machine.expires_at().map(seconds),
            is_expired: machine.is_expired(),
            failures: machine.failed_rounds(),
            last_error: zone.last_error.clone(),
            rejected: machine.rejected(),
            outdated_primaries: zone.behind.warnings(&zone.settings.apex),
            transfer: None,
        };
        let transfer = zone.task.as_ref().and_then(|task| task.transfer.clone());
        self.shown().zones.insert(status.apex.clone(), ZoneSnapshot { status, transfer });
    }
}

/// Converts an IPv4-mapped IPv6 address to the IPv4 address.
const fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Returns the milliseconds by which the system's clock is ahead of [`Driver::now`]. The latter is
/// monotonic since the driver started. The system's clock, which the next start and the displayed
/// times use, may have been set since. The result is rounded to whole seconds, so the delay between
/// the two readings has no effect.
const fn ahead(system_now: u64, now: u64) -> i64 {
    let milliseconds = system_now as i64 - now as i64;
    (milliseconds + 500).div_euclid(1000) * 1000
}

/// Converts the milliseconds `left` at `at` for the stored timers: whole seconds up to the second
/// in which the zone expires. Plain rounding would lose one second each time that timers are read
/// and stored again.
fn seconds_left(at: u64, left: u64) -> u32 {
    u32::try_from(at.saturating_add(left) / 1000 - at / 1000).unwrap_or(u32::MAX)
}

/// Stores the time of the last refresh. The timers belong to the stored version. If the served
/// version cannot be stored, the timers are not changed.
fn store(zone: &Zone, system_ahead: i64, host: &Arc<dyn ZoneStore>, stores: &mut JoinSet<()>) {
    let (Some(held), Some(refreshed)) = (zone.machine.local_soa(), zone.machine.refreshed()) else { return };
    let at = refreshed.at.saturating_add_signed(system_ahead);
    let left = refreshed.left.map(|left| seconds_left(at, left));
    let timers = Timers { serial: held.serial, refreshed: at / 1000, left };
    let (apex, host, turn) =
        (zone.settings.apex.clone(), Arc::clone(host), WriteTicket::next(&zone.turns.timers));
    // The disk may be slow, and other zones must not wait for it.
    stores.spawn_blocking(move || {
        if host.store(&apex) {
            turn.write_if_newest(|| host.store_timers(&apex, timers));
        }
    });
}

/// Stores the list of rejected versions if it has changed.
fn store_rejected(zone: &mut Zone, host: &Arc<dyn ZoneStore>, stores: &mut JoinSet<()>) {
    let serials = zone.rejected_serials();
    if serials == zone.rejected {
        return;
    }
    zone.rejected.clone_from(&serials);
    let Some(judged_by) = zone.settings.judged_by.clone() else { return };
    let (apex, host) = (zone.settings.apex.clone(), Arc::clone(host));
    let turn = WriteTicket::next(&zone.turns.rejected);
    stores.spawn_blocking(move || {
        turn.write_if_newest(|| host.store_rejected(&apex, RejectedVersions { judged_by, serials }));
    });
}

#[cfg(test)]
mod tests {
    use super::{ahead, seconds_left};

    #[test]
    fn clocks_that_go_alike_are_alike_and_others_are_told_apart() {
        // A machine that started in 1970 and got the time after an hour; a machine with a clock
        // that was set back.
        let (hour, today) = (3_600_000, 1_800_000_000_000);
        assert_eq!(ahead(today, hour), (today - hour) as i64);
        assert_eq!(ahead(today - hour, today), -(hour as i64));
        // The clocks are read one after the other.
        for between in [0, 1, 30, 499] {
            assert_eq!([ahead(today, today + between), ahead(today + between, today)], [0, 0]);
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
