//! One thread for all zones: it waits for the next thing to happen, tells the zone's machine, and does what that says.

use super::machine::{Action, Ended, Event, Held, Machine};
use super::queue::Queue;
use super::status::{Counts, Phase, Progress, TransferKind, ZoneStatus};
use super::task::{self, Job, Report};
use super::timers::Timers;
use super::transfers::{Command, Shown, TransfersOptions};
use super::{Host, SecondaryZone};
use crate::acl::Remote;
use crate::notify::{Notified, Outbox, Outcome};
use nonesuch_proto::Name;
use std::collections::{BTreeSet, HashMap};
use std::net::{IpAddr, SocketAddr};
use std::sync::atomic::Ordering::Relaxed;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, SystemTime, UNIX_EPOCH};
use tokio::sync::mpsc;
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

/// A zone as it is shown: the progress of a transfer is read when somebody looks.
#[derive(Debug)]
pub(super) struct ShownZone {
    status: ZoneStatus,
    transfer: Option<(Arc<Progress>, TransferKind, u64)>,
}

impl ShownZone {
    pub(super) fn status(&self) -> ZoneStatus {
        let mut status = self.status.clone();
        if let Some((progress, kind, since)) = &self.transfer {
            status.transfer = Some(progress.of(*kind, *since));
            if progress.is_publishing.load(Relaxed) {
                status.phase = Phase::Publishing;
            }
        }
        status
    }
}

struct Zone {
    settings: Arc<SecondaryZone>,
    machine: Machine,
    /// As it stands among the times that are waited for.
    due: Option<u64>,
    phase: Phase,
    /// What waits or is under way: the primary, and how.
    primary: usize,
    by_steps: bool,
    task: Option<Task>,
    last_error: Option<String>,
}

/// A probe or transfer under way.
struct Task {
    number: u64,
    abort: AbortHandle,
    progress: Option<(Arc<Progress>, TransferKind, u64)>,
}

/// What a task tells at its end.
enum Done {
    Probe { zone: u64, task: u64, primary: SocketAddr, outcome: Result<u32, String> },
    Transfer { zone: u64, task: u64, primary: SocketAddr, report: Report },
    Announced { ticket: u64, apex: Name, remote: Remote, answer: Result<Vec<u8>, String> },
}

pub(super) struct Driver {
    options: Arc<TransfersOptions>,
    host: Arc<dyn Host>,
    shown: Arc<Mutex<Shown>>,
    zones: HashMap<u64, Zone>,
    numbers: HashMap<Name, u64>,
    last_number: u64,
    due: BTreeSet<(u64, u64)>,
    probes: Queue,
    transfers: Queue,
    outbox: Outbox,
    done: mpsc::UnboundedSender<Done>,
    ended: mpsc::UnboundedReceiver<Done>,
    /// Timers that are being stored.
    stores: JoinSet<()>,
    began: Instant,
    /// Milliseconds from 1970 to the beginning.
    offset: u64,
}

impl Driver {
    pub(super) fn new(options: TransfersOptions, host: Arc<dyn Host>, shown: Arc<Mutex<Shown>>) -> Self {
        let (done, ended) = mpsc::unbounded_channel();
        let since = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        Self {
            probes: Queue::new(options.probes, options.probes),
            transfers: Queue::new(options.transfers, options.transfers_each),
            outbox: Outbox::new(options.notify_rate),
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
            began: Instant::now(),
            offset: since.as_millis() as u64,
        }
    }

    fn now(&self) -> u64 {
        self.offset + self.began.elapsed().as_millis() as u64
    }

    fn shown(&self) -> MutexGuard<'_, Shown> {
        self.shown.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn count(&self, change: impl FnOnce(&mut Counts)) {
        change(&mut self.shown().counts);
    }

    /// Runs until it is told to stop.
    pub(super) async fn run(
        mut self,
        mut commands: mpsc::UnboundedReceiver<Command>,
        mut notified: mpsc::Receiver<Notified>,
    ) {
        loop {
            self.handle_timeouts();
            self.start_jobs();
            self.send_announcements();
            while self.stores.try_join_next().is_some() {}
            let wait = self.next_timeout();
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
        let next = zones.into_iter().chain(self.outbox.poll_timeout()).min();
        let now = self.now();
        // One millisecond more: the time must have come when it is looked at again.
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
            Command::Remove(apex) => self.remove_zone(&apex),
            Command::Reset(apex) => self.reset_zone(&apex, now),
            Command::Refresh(apex) => self.tell(&apex, Event::Refresh, now),
            Command::Retransfer(apex) => self.tell(&apex, Event::Retransfer, now),
            Command::Announce { apex, soa, to } => self.outbox.announce(&apex, &soa, &to, now),
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

    fn take_notified(&mut self, notified: &Notified) {
        let Some(zone) = self.numbers.get(&notified.apex).and_then(|number| self.zones.get(number)) else {
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
        let held = self.host.contents(&settings.apex).and_then(|contents| Held::of(&contents));
        let stored = settings.timers.as_deref().and_then(Timers::read);
        let stored = stored.filter(|timers| held.is_some_and(|held| held.serial == timers.serial));
        let refreshed = stored.map(|timers| timers.refreshed.saturating_mul(1000));
        self.add_zone(settings, held, refreshed, now);
    }

    fn add_zone(&mut self, settings: SecondaryZone, held: Option<Held>, refreshed: Option<u64>, now: u64) {
        self.last_number += 1;
        let number = self.last_number;
        let noise = number ^ now << 20;
        let (timing, ixfr, primaries) = (settings.timing, settings.request_ixfr, settings.primaries.len());
        let machine = Machine::new(timing, ixfr, primaries, held, refreshed, noise, now);
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
        };
        self.zones.insert(number, zone);
        self.settle(number);
    }

    fn remove_zone(&mut self, apex: &Name) {
        self.outbox.forget_zone(apex);
        if let Some(zone) = self.take_zone(apex) {
            if let Some(path) = &zone.settings.timers {
                // It may never have been written; a file that is left is passed over where its serial does not fit.
                let _ = std::fs::remove_file(path);
            }
            self.shown().zones.remove(apex);
        }
    }

    fn reset_zone(&mut self, apex: &Name, now: u64) {
        if let Some(zone) = self.take_zone(apex) {
            self.add_zone((*zone.settings).clone(), None, None, now);
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
            let address = zone.settings.primaries.get(zone.primary).map(|remote| remote.address);
            if let Some(address) = address {
                if task.progress.is_some() { transfers.end(address) } else { probes.end(address) }
            }
        }
        Some(zone)
    }

    /// Does what a zone's machine wants done, and waits for its next time.
    fn settle(&mut self, number: u64) {
        while let Some(action) = self.zones.get_mut(&number).and_then(|zone| zone.machine.poll_action()) {
            self.act(number, action);
        }
        let Some(zone) = self.zones.get_mut(&number) else { return };
        let next = zone.machine.poll_timeout();
        if next != zone.due {
            if let Some(due) = zone.due {
                self.due.remove(&(due, number));
            }
            if let Some(next) = next {
                self.due.insert((next, number));
            }
            zone.due = next;
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
                    let event = if is_probe { Event::ProbeFailed } else { Event::Transferred(Ended::Failed) };
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
                tracing::warn!(zone = %apex, "zone expired: no primary could be reached in the time that its SOA record sets");
                self.host.expire(apex);
                self.count(|counts| counts.expired += 1);
            }
            Action::Restore => {
                tracing::info!(zone = %apex, "zone is served again");
                self.host.restore(apex);
            }
            Action::Store => store(zone, &mut self.stores),
        }
    }

    /// Starts what there is room for.
    fn start_jobs(&mut self) {
        while let Some((address, number)) = self.probes.pop() {
            self.start_probe(address, number);
        }
        while let Some((address, number)) = self.transfers.pop() {
            self.start_transfer(address, number);
        }
    }

    fn start_probe(&mut self, primary: SocketAddr, number: u64) {
        self.last_number += 1;
        let task = self.last_number;
        let Some(zone) = self.zones.get_mut(&number) else { return self.probes.end(primary) };
        let (settings, place) = (Arc::clone(&zone.settings), zone.primary);
        let (host, options, done) = (Arc::clone(&self.host), Arc::clone(&self.options), self.done.clone());
        let spawned = tokio::spawn(async move {
            let outcome = match settings.primaries.get(place) {
                Some(remote) => task::probe(&settings.apex, remote, &host.keys(), &options).await,
                None => Err("the primary was taken out of the configuration".into()),
            };
            let _ = done.send(Done::Probe { zone: number, task, primary, outcome });
        });
        zone.task = Some(Task { number: task, abort: spawned.abort_handle(), progress: None });
    }

    fn start_transfer(&mut self, primary: SocketAddr, number: u64) {
        let since = self.now() / 1000;
        self.last_number += 1;
        let task = self.last_number;
        let Some(zone) = self.zones.get_mut(&number) else { return self.transfers.end(primary) };
        let progress = Arc::new(Progress::default());
        let job = Job {
            settings: Arc::clone(&zone.settings),
            primary: zone.primary,
            by_steps: zone.by_steps,
            host: Arc::clone(&self.host),
            options: Arc::clone(&self.options),
            progress: Arc::clone(&progress),
        };
        let done = self.done.clone();
        let spawned = tokio::spawn(async move {
            let report = task::transfer(job).await;
            let _ = done.send(Done::Transfer { zone: number, task, primary, report });
        });
        let kind = if zone.by_steps { TransferKind::Ixfr } else { TransferKind::Axfr };
        zone.phase = Phase::Transferring;
        let progress = Some((progress, kind, since));
        zone.task = Some(Task { number: task, abort: spawned.abort_handle(), progress });
        self.show(number);
    }

    fn take_done(&mut self, done: Done) {
        let now = self.now();
        match done {
            Done::Probe { zone, task, primary, outcome } => {
                let Some(zone_of) = self.end_task(zone, task) else { return };
                let event = match outcome {
                    Ok(serial) => Event::Serial(serial),
                    Err(error) => {
                        let apex = &zone_of.settings.apex;
                        tracing::debug!(zone = %apex, peer = %primary, error, "primary could not be asked");
                        zone_of.last_error = Some(format!("{primary}: {error}"));
                        Event::ProbeFailed
                    }
                };
                zone_of.machine.handle_event(event, now);
                self.probes.end(primary);
                self.settle(zone);
            }
            Done::Transfer { zone, task, primary, report } => {
                let Some(zone_of) = self.end_task(zone, task) else { return };
                report.log(&zone_of.settings.apex, primary);
                zone_of.last_error = report.error.as_ref().map(|error| format!("{primary}: {error}"));
                zone_of.machine.handle_event(Event::Transferred(report.ended), now);
                self.transfers.end(primary);
                self.settle(zone);
                self.count(|counts| report.add_to(counts));
            }
            Done::Announced { ticket, apex, remote, answer } => {
                self.take_answer(ticket, &apex, &remote, answer, now);
            }
        }
    }

    /// The zone whose task this is; none where the task was given up meanwhile, and its room given back.
    fn end_task(&mut self, number: u64, task: u64) -> Option<&mut Zone> {
        let zone = self.zones.get_mut(&number)?;
        zone.task.take_if(|running| running.number == task)?;
        zone.phase = Phase::Idle;
        Some(zone)
    }

    fn send_announcements(&mut self) {
        while let Some(announcement) = self.outbox.poll(self.now()) {
            let (host, options, done) =
                (Arc::clone(&self.host), Arc::clone(&self.options), self.done.clone());
            tokio::spawn(async move {
                let answer = task::announce(&announcement, &host.keys(), &options).await;
                let (ticket, apex, remote) = (announcement.ticket, announcement.apex, announcement.remote);
                let _ = done.send(Done::Announced { ticket, apex, remote, answer });
            });
        }
    }

    fn take_answer(
        &mut self,
        ticket: u64,
        apex: &Name,
        remote: &Remote,
        answer: Result<Vec<u8>, String>,
        now: u64,
    ) {
        let outcome = self.outbox.settle(ticket, answer.as_deref().ok(), now);
        let (zone, peer) = (apex, remote.address);
        match outcome {
            Some(Outcome::Acknowledged) => {
                tracing::debug!(%zone, %peer, "secondary was notified");
                self.count(|counts| counts.acknowledged += 1);
            }
            Some(Outcome::Refused(rcode)) => {
                tracing::warn!(%zone, %peer, %rcode, "secondary refuses NOTIFY");
                self.count(|counts| counts.unheard += 1);
            }
            Some(Outcome::GivenUp) => {
                let error = answer.err().unwrap_or_else(|| "its answer makes no sense".into());
                tracing::warn!(%zone, %peer, error, "secondary could not be notified");
                self.count(|counts| counts.unheard += 1);
            }
            Some(Outcome::Waiting) | None => {}
        }
    }

    fn show(&self, number: u64) {
        let Some(zone) = self.zones.get(&number) else { return };
        let machine = &zone.machine;
        let primary = zone.settings.primaries.get(machine.primary());
        let status = ZoneStatus {
            apex: zone.settings.apex.clone(),
            phase: zone.phase,
            serial: machine.held().map(|held| held.serial),
            primary: primary.map_or_else(String::new, |remote| remote.address.to_string()),
            refreshed: machine.refreshed().map(|at| at / 1000),
            next: machine.next_round().map(|at| at / 1000),
            expires: machine.expires_at().map(|at| at / 1000),
            is_expired: machine.is_expired(),
            failures: machine.failed_rounds(),
            last_error: zone.last_error.clone(),
            transfer: None,
        };
        let transfer = zone.task.as_ref().and_then(|task| task.progress.clone());
        self.shown().zones.insert(status.apex.clone(), ShownZone { status, transfer });
    }
}

/// An IPv4 address that was mapped into IPv6 is the IPv4 address.
const fn canonical(address: IpAddr) -> IpAddr {
    address.to_canonical()
}

/// Stores when a zone was refreshed.
fn store(zone: &Zone, stores: &mut JoinSet<()>) {
    let (Some(path), Some(held), Some(refreshed)) =
        (zone.settings.timers.clone(), zone.machine.held(), zone.machine.refreshed())
    else {
        return;
    };
    let timers = Timers { serial: held.serial, refreshed: refreshed / 1000 };
    let apex = zone.settings.apex.clone();
    // The disk may be slow, and other zones wait for nothing.
    stores.spawn_blocking(move || {
        if let Err(error) = timers.write(&path) {
            tracing::warn!(zone = %apex, file = %path.display(), %error, "timers cannot be stored: make the folder writable for this user");
        }
    });
}
