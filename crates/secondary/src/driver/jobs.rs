//! Jobs of the driver: starts SOA queries and transfers as the limits permit, sends NOTIFY
//! messages, and passes the results to the zone's machine.

use super::outage::FailedStep;
use super::{Driver, Task, Zone};
use crate::error::ExchangeError;
use crate::event::{Event, InboundOutcome};
use crate::exchange::Peer;
use crate::notify::{NotifyOutcome, NotifyResult, OutgoingNotify};
use crate::status::{Phase, Progress, TransferKind, TransferSnapshot};
use crate::task::{self, Job, Report, Version};
use nonesuch_server::acl::Remote;
use nonesuch_server::clock::seconds_now;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// Maximum number of NOTIFY messages without a response, and maximum number of repetitions among
/// them. Secondaries that are down must not delay messages to the others.
const ANNOUNCEMENTS: [usize; 2] = [200, 100];

/// The result of a task.
pub(super) enum TaskResult {
    Probe { zone: u64, task: u64, primary: SocketAddr, outcome: Result<Version, ExchangeError> },
    Transfer { zone: u64, task: u64, primary: SocketAddr, report: Report },
    Announced { announcement: Box<OutgoingNotify>, answer: Result<Vec<u8>, ExchangeError> },
}

/// Sends the result of a task, even if the task panics. So the driver never waits forever, and
/// always frees the slot.
struct ResultGuard {
    done: UnboundedSender<TaskResult>,
    /// The result to send if the task sends none.
    otherwise: Option<TaskResult>,
}

impl ResultGuard {
    const fn new(done: UnboundedSender<TaskResult>, otherwise: TaskResult) -> Self {
        Self { done, otherwise: Some(otherwise) }
    }

    fn tell(mut self, done: TaskResult) {
        self.otherwise = Some(done);
    }
}

impl Drop for ResultGuard {
    fn drop(&mut self) {
        if let Some(done) = self.otherwise.take() {
            // Sending fails only if the driver has ended.
            let _ = self.done.send(done);
        }
    }
}

/// Returns the error with the address of the primary in front. Connection errors already begin with
/// it.
fn words_of(primary: SocketAddr, error: &str) -> String {
    let peer = primary.to_string();
    if error.starts_with(&peer) { error.to_owned() } else { format!("{peer}: {error}") }
}

/// Returns the result of a transfer from `primary` for the machine. `in_place` is the primary that
/// now has the same index in the list. A rejection is attributed to the primary that sent the
/// version, so it is dropped if that is another primary.
fn current_meaning(ended: InboundOutcome, primary: SocketAddr, in_place: Option<&Remote>) -> InboundOutcome {
    match ended {
        InboundOutcome::Rejected { .. } | InboundOutcome::PublishFailed { .. }
            if in_place.is_none_or(|remote| remote.address != primary) =>
        {
            InboundOutcome::NoLongerWanted
        }
        ended => ended,
    }
}

impl Zone {
    /// Logs that a failing primary succeeded. `is_due`: a transfer from it follows.
    fn end_outage(&mut self, primary: SocketAddr, succeeded: FailedStep, is_due: bool, now: u64) {
        if let Some(failed) = self.outages.end(primary, succeeded, is_due, now) {
            let zone = self.settings.apex.to_string();
            tracing::info!(
                name: "primary-answers-again",
                zone, peer = %primary, failed_seconds = failed / 1000, "zone {zone}: primary answers again"
            );
        }
    }

    /// Logs a primary with an older version than the local one.
    fn look_at_serial(&mut self, primary: SocketAddr, serial: Option<u32>) {
        let (apex, held) = (&self.settings.apex, self.machine.local_soa());
        if let Some((theirs, held)) = serial.zip(held)
            && let Some(said) = self.behind.note_serial(apex, primary, theirs, held.serial)
        {
            tracing::warn!(name: "soa-warning", zone = %apex, peer = %primary, "zone {apex}: {said}");
        }
    }
}

impl Driver {
    /// Starts queued jobs as the limits permit.
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
        let broken = TaskResult::Probe { zone: number, task, primary, outcome: Err(ExchangeError::BrokeOff) };
        let teller = ResultGuard::new(self.done.clone(), broken);
        let spawned = tokio::spawn(async move {
            let outcome = match settings.primaries.get(place) {
                Some(remote) => {
                    let primary = Peer { remote, keys: &host.keys(), options: &options };
                    task::probe(&settings.apex, &primary).await
                }
                None => Err(ExchangeError::NoPrimary),
            };
            teller.tell(TaskResult::Probe { zone: number, task, primary, outcome });
        });
        zone.task = Some(Task { number: task, primary, abort: spawned.abort_handle(), transfer: None });
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
            local_soa: zone.machine.local_soa().filter(|_| !zone.machine.takes_any_serial()),
            host: Arc::clone(&self.host),
            options: Arc::clone(&self.options),
            progress: Arc::clone(&progress),
        };
        let key = zone.settings.primaries.get(zone.primary).and_then(|remote| remote.key.clone());
        let report = Report::broken(zone.by_steps, key);
        let teller =
            ResultGuard::new(self.done.clone(), TaskResult::Transfer { zone: number, task, primary, report });
        let spawned = tokio::spawn(async move {
            let report = task::transfer(job).await;
            teller.tell(TaskResult::Transfer { zone: number, task, primary, report });
        });
        let kind = if zone.by_steps { TransferKind::Ixfr } else { TransferKind::Axfr };
        zone.phase = Phase::Transferring;
        let transfer = Some(TransferSnapshot { progress, kind, since });
        zone.task = Some(Task { number: task, primary, abort: spawned.abort_handle(), transfer });
        self.show(number);
    }

    pub(super) fn take_done(&mut self, done: TaskResult) {
        let now = self.now();
        match done {
            TaskResult::Probe { zone, task, primary, outcome } => {
                let Some(zone_of) = self.end_task(zone, task) else { return };
                zone_of.look_at_serial(primary, outcome.as_ref().ok().map(|version| version.serial));
                let event = match outcome {
                    Ok(Version { serial, expire }) => Event::Serial { serial, expire },
                    Err(error) => {
                        let zone = zone_of.settings.apex.to_string();
                        let error = error.to_string();
                        match zone_of.outages.begin(primary, FailedStep::Probe, &error, now) {
                            Some(since) => tracing::warn!(
                                name: "soa-query-failed",
                                zone, peer = %primary, error, failing_seconds = since / 1000,
                                "zone {zone}: SOA query to primary failed"
                            ),
                            None => {
                                tracing::debug!(name: "soa-query-failed", zone, peer = %primary, error, "zone {zone}: SOA query to primary failed");
                            }
                        }
                        zone_of.last_error = Some(words_of(primary, &error));
                        Event::ProbeFailed
                    }
                };
                let is_answered = event != Event::ProbeFailed;
                zone_of.machine.handle_event(event, now);
                if is_answered {
                    zone_of.end_outage(primary, FailedStep::Probe, zone_of.machine.is_transferring(), now);
                }
                if is_answered && zone_of.machine.failed_rounds() == 0 {
                    zone_of.last_error = None;
                }
                self.probes.end(primary);
                self.settle(zone);
            }
            TaskResult::Transfer { zone, task, primary, report } => {
                let Some(zone_of) = self.end_task(zone, task) else { return };
                let line = match (&report.ended, &report.error) {
                    // A transfer of the whole zone follows.
                    (InboundOutcome::IxfrFailed, _) if zone_of.by_steps => None,
                    (InboundOutcome::Failed | InboundOutcome::IxfrFailed, Some(error)) => {
                        zone_of.outages.begin(primary, FailedStep::Transfer, &error.to_string(), now)
                    }
                    (InboundOutcome::Failed | InboundOutcome::IxfrFailed, None) => None,
                    // The primary sent a version, whatever verification found.
                    _ => {
                        zone_of.end_outage(primary, FailedStep::Transfer, false, now);
                        None
                    }
                };
                report.log(&zone_of.settings.apex, primary, line);
                if let InboundOutcome::UpToDate { serial } = report.ended {
                    zone_of.look_at_serial(primary, Some(serial));
                }
                zone_of.last_error = report.error.as_ref().map(|error| words_of(primary, &error.to_string()));
                let ended =
                    current_meaning(report.ended, primary, zone_of.settings.primaries.get(zone_of.primary));
                let event = Event::Transferred { ended, expire: report.expire };
                zone_of.machine.handle_event(event, now);
                self.transfers.end(primary);
                self.settle(zone);
                self.count(|counts| report.add_to(counts));
            }
            TaskResult::Announced { announcement, answer } => {
                self.announced[usize::from(announcement.is_repeated)] -= 1;
                self.take_answer(&announcement, answer, now);
            }
        }
    }

    /// Returns the zone of this task; `None` if the task was aborted. Its slot is then already
    /// free.
    fn end_task(&mut self, number: u64, task: u64) -> Option<&mut Zone> {
        let zone = self.zones.get_mut(&number)?;
        zone.task.take_if(|running| running.number == task)?;
        zone.phase = Phase::Idle;
        Some(zone)
    }

    /// Returns whether a repetition may be sent; `None` if no NOTIFY may be sent.
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
            let broken = TaskResult::Announced {
                announcement: announcement.clone(),
                answer: Err(ExchangeError::BrokeOff),
            };
            let teller = ResultGuard::new(self.done.clone(), broken);
            tokio::spawn(async move {
                let answer = task::announce(&announcement, &host.keys(), &options).await;
                teller.tell(TaskResult::Announced { announcement, answer });
            });
        }
    }

    fn take_answer(
        &mut self,
        announcement: &OutgoingNotify,
        answer: Result<Vec<u8>, ExchangeError>,
        now: u64,
    ) {
        let outcome = self.outbox.handle_response(announcement.ticket, answer.as_deref().ok(), now);
        let (zone, peer) = (&announcement.apex, announcement.remote.address);
        let result = match outcome {
            Some(NotifyOutcome::Acknowledged) => Some(NotifyResult::Acknowledged),
            Some(NotifyOutcome::Refused(rcode)) => Some(NotifyResult::Refused(rcode)),
            Some(NotifyOutcome::GivenUp) => Some(NotifyResult::NoAnswer),
            Some(NotifyOutcome::Waiting) | None => None,
        };
        if let Some(result) = result {
            self.options.secondaries.note_result(zone, peer, result, seconds_now());
        }
        match outcome {
            Some(NotifyOutcome::Acknowledged) => {
                tracing::debug!(name: "notify-acknowledged", %zone, %peer, "zone {zone}: secondary acknowledged NOTIFY");
                self.count(|counts| counts.acknowledged += 1);
            }
            Some(NotifyOutcome::Refused(rcode)) => {
                tracing::warn!(name: "notify-rejected", %zone, %peer, %rcode, "zone {zone}: secondary rejected NOTIFY");
                self.count(|counts| counts.notify_refused += 1);
            }
            Some(NotifyOutcome::GivenUp) => {
                let error = answer.err().unwrap_or(ExchangeError::Nonsense);
                tracing::warn!(name: "notify-not-acknowledged", %zone, %peer, %error, "zone {zone}: secondary did not acknowledge NOTIFY");
                self.count(|counts| counts.notify_unanswered += 1);
            }
            Some(NotifyOutcome::Waiting) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RejectionPeriod;

    #[test]
    fn a_rejected_version_says_nothing_of_the_primary_that_took_the_place_of_its_own() {
        let [one, other]: [SocketAddr; 2] =
            ["192.0.2.1:53", "192.0.2.2:53"].map(|text| text.parse().unwrap());
        let (in_place, rejected) =
            (Remote::plain(one), InboundOutcome::Rejected { serial: 7, verdict: RejectionPeriod::Final });
        assert_eq!(current_meaning(rejected, one, Some(&in_place)), rejected);
        assert_eq!(current_meaning(rejected, other, Some(&in_place)), InboundOutcome::NoLongerWanted);
        assert_eq!(current_meaning(rejected, one, None), InboundOutcome::NoLongerWanted);
        assert_eq!(current_meaning(InboundOutcome::Failed, other, Some(&in_place)), InboundOutcome::Failed);
    }

    #[test]
    fn a_primary_is_named_once() {
        let primary: SocketAddr = "[::1]:853".parse().unwrap();
        assert_eq!(words_of(primary, "[::1]:853 over TLS: refused"), "[::1]:853 over TLS: refused");
        assert_eq!(words_of(primary, "it answers with SERVFAIL"), "[::1]:853: it answers with SERVFAIL");
    }
}
