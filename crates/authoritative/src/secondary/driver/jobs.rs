//! What the driver has done: probes and transfers are started as there is room, NOTIFY messages sent, and what came of them
//! is told to the zone's machine.

use super::super::event::{Ended, Event};
use super::super::status::{Phase, Progress, TransferKind};
use super::super::task::{self, Job, Report, Version};
use super::{Driver, Task, Zone};
use crate::notify::{Announcement, Outcome};
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// NOTIFY messages under way at once, and those of them that may be repeated ones: secondaries that are down are not to take the
/// place of those that answer.
const ANNOUNCEMENTS: [usize; 2] = [200, 100];
/// Why a task that broke off gave nothing.
const BROKE_OFF: &str = "it broke off within this server: see the log, and report it";

/// What a task tells at its end.
pub(super) enum Done {
    Probe { zone: u64, task: u64, primary: SocketAddr, outcome: Result<Version, String> },
    Transfer { zone: u64, task: u64, primary: SocketAddr, report: Report },
    Announced { announcement: Box<Announcement>, answer: Result<Vec<u8>, String> },
}

/// Tells what came of a task, also of one that breaks off: nothing waits for it for ever then, and its room is given back.
struct Teller {
    done: UnboundedSender<Done>,
    /// What is told where the task tells nothing.
    otherwise: Option<Done>,
}

impl Teller {
    const fn new(done: UnboundedSender<Done>, otherwise: Done) -> Self {
        Self { done, otherwise: Some(otherwise) }
    }

    fn tell(mut self, done: Done) {
        self.otherwise = Some(done);
    }
}

impl Drop for Teller {
    fn drop(&mut self) {
        if let Some(done) = self.otherwise.take() {
            // Without a driver nobody waits for it.
            let _ = self.done.send(done);
        }
    }
}

/// What went wrong with a primary. Errors of connections begin with its address.
fn words_of(primary: SocketAddr, error: &str) -> String {
    let peer = primary.to_string();
    if error.starts_with(&peer) { error.to_owned() } else { format!("{peer}: {error}") }
}

impl Zone {
    /// Tells of a primary whose version is before the one that is here.
    fn look_at_serial(&mut self, primary: SocketAddr, serial: Option<u32>) {
        let (apex, held) = (&self.settings.apex, self.machine.held());
        if let Some((theirs, held)) = serial.zip(held)
            && let Some(said) = self.behind.look(apex, primary, theirs, held.serial)
        {
            tracing::warn!(zone = %apex, peer = %primary, "{said}");
        }
    }
}

impl Driver {
    /// Starts what there is room for.
    pub(super) fn start_jobs(&mut self) {
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
        let (host, options) = (Arc::clone(&self.host), Arc::clone(&self.options));
        let broken = Done::Probe { zone: number, task, primary, outcome: Err(BROKE_OFF.to_owned()) };
        let teller = Teller::new(self.done.clone(), broken);
        let spawned = tokio::spawn(async move {
            let outcome = match settings.primaries.get(place) {
                Some(remote) => task::probe(&settings.apex, remote, &host.keys(), &options).await,
                None => Err("the primary was taken out of the configuration".into()),
            };
            teller.tell(Done::Probe { zone: number, task, primary, outcome });
        });
        zone.task = Some(Task { number: task, primary, abort: spawned.abort_handle(), progress: None });
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
            held: zone.machine.held().filter(|_| !zone.machine.takes_any_serial()),
            host: Arc::clone(&self.host),
            options: Arc::clone(&self.options),
            progress: Arc::clone(&progress),
        };
        let report = Report::broken(zone.by_steps, BROKE_OFF);
        let teller = Teller::new(self.done.clone(), Done::Transfer { zone: number, task, primary, report });
        let spawned = tokio::spawn(async move {
            let report = task::transfer(job).await;
            teller.tell(Done::Transfer { zone: number, task, primary, report });
        });
        let kind = if zone.by_steps { TransferKind::Ixfr } else { TransferKind::Axfr };
        zone.phase = Phase::Transferring;
        let progress = Some((progress, kind, since));
        zone.task = Some(Task { number: task, primary, abort: spawned.abort_handle(), progress });
        self.show(number);
    }

    pub(super) fn take_done(&mut self, done: Done) {
        let now = self.now();
        match done {
            Done::Probe { zone, task, primary, outcome } => {
                let Some(zone_of) = self.end_task(zone, task) else { return };
                zone_of.look_at_serial(primary, outcome.as_ref().ok().map(|version| version.serial));
                let event = match outcome {
                    Ok(Version { serial, expire }) => Event::Serial { serial, expire },
                    Err(error) => {
                        let apex = &zone_of.settings.apex;
                        let said = Some(words_of(primary, &error));
                        // What lasts is said once.
                        if zone_of.machine.failed_rounds() == 0 || zone_of.last_error != said {
                            tracing::warn!(zone = %apex, peer = %primary, error, "primary could not be asked");
                        } else {
                            tracing::debug!(zone = %apex, peer = %primary, error, "primary could not be asked");
                        }
                        zone_of.last_error = said;
                        Event::ProbeFailed
                    }
                };
                let is_answered = event != Event::ProbeFailed;
                zone_of.machine.handle_event(event, now);
                if is_answered && zone_of.machine.failed_rounds() == 0 {
                    zone_of.last_error = None;
                }
                self.probes.end(primary);
                self.settle(zone);
            }
            Done::Transfer { zone, task, primary, report } => {
                let Some(zone_of) = self.end_task(zone, task) else { return };
                report.log(&zone_of.settings.apex, primary);
                if let Ended::UpToDate { serial } = report.ended {
                    zone_of.look_at_serial(primary, Some(serial));
                }
                zone_of.last_error = report.error.as_ref().map(|error| words_of(primary, error));
                let event = Event::Transferred { ended: report.ended, expire: report.expire };
                zone_of.machine.handle_event(event, now);
                self.transfers.end(primary);
                self.settle(zone);
                self.count(|counts| report.add_to(counts));
            }
            Done::Announced { announcement, answer } => {
                self.announced[usize::from(announcement.is_repeated)] -= 1;
                self.take_answer(&announcement, answer, now);
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

    /// Whether there is room for another NOTIFY, and for one that is repeated.
    pub(super) const fn room_for_announcements(&self) -> Option<bool> {
        let [first, repeated] = self.announced;
        if first + repeated < ANNOUNCEMENTS[0] { Some(repeated < ANNOUNCEMENTS[1]) } else { None }
    }

    pub(super) fn send_announcements(&mut self) {
        while let Some(may_repeat) = self.room_for_announcements()
            && let Some(announcement) = self.outbox.poll(self.now(), may_repeat)
        {
            self.announced[usize::from(announcement.is_repeated)] += 1;
            let (host, options) = (Arc::clone(&self.host), Arc::clone(&self.options));
            let announcement = Box::new(announcement);
            let broken =
                Done::Announced { announcement: announcement.clone(), answer: Err(BROKE_OFF.to_owned()) };
            let teller = Teller::new(self.done.clone(), broken);
            tokio::spawn(async move {
                let answer = task::announce(&announcement, &host.keys(), &options).await;
                teller.tell(Done::Announced { announcement, answer });
            });
        }
    }

    fn take_answer(&mut self, announcement: &Announcement, answer: Result<Vec<u8>, String>, now: u64) {
        let outcome = self.outbox.settle(announcement.ticket, answer.as_deref().ok(), now);
        let (zone, peer) = (&announcement.apex, announcement.remote.address);
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
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_primary_is_named_once() {
        let primary: SocketAddr = "[::1]:853".parse().unwrap();
        assert_eq!(words_of(primary, "[::1]:853 over TLS: refused"), "[::1]:853 over TLS: refused");
        assert_eq!(words_of(primary, "it answers with SERVFAIL"), "[::1]:853: it answers with SERVFAIL");
    }
}
