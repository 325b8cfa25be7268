//! Jobs of the driver: starts SOA queries and transfers as the limits permit, sends NOTIFY
//! messages, and passes the results to the state machine of the zone
//! ([`Machine`](crate::machine::Machine)).

use super::outage::RoundStep;
use super::{Driver, Task, Zone};
use crate::error::ExchangeError;
use crate::event::{Event, InboundOutcome};
use crate::exchange::QueryTarget;
use crate::notify::{NotifyAttemptResult, NotifyStatus, OutgoingNotify};
use crate::status::{Phase, Progress, TransferKind, TransferSnapshot};
use crate::task::{self, Job, Report, Version};
use nonesuch_server::acl::Remote;
use nonesuch_server::clock::seconds_now;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::sync::mpsc::UnboundedSender;

/// Maximum number of NOTIFY messages that wait for a response at the same time.
const UNANSWERED_NOTIFY_MAX: usize = 200;
/// Maximum number of repetitions among these messages. Because of this limit, secondaries that are
/// down do not delay the first attempts to other secondaries.
const UNANSWERED_REPETITIONS_MAX: usize = 100;

/// The result of a task.
pub(super) enum TaskResult {
    /// The result of an SOA query.
    Probe { zone_number: u64, task_number: u64, primary: SocketAddr, outcome: Result<Version, ExchangeError> },
    /// The result of a transfer.
    Transfer { zone_number: u64, task_number: u64, primary: SocketAddr, report: Report },
    /// The response to a NOTIFY, or why there is none.
    NotifyResponse { notify: Box<OutgoingNotify>, answer: Result<Vec<u8>, ExchangeError> },
}

/// Sends the result of a task, even if the task panics. Thus the driver gets a result for every
/// task, and frees the slot of the task in its [`JobQueue`](crate::queue::JobQueue). In the program
/// `nonesuch`, a panic ends the process; the guard is for other users of the crate, such as tests.
struct ResultGuard {
    sender: UnboundedSender<TaskResult>,
    /// The result to send when the guard is dropped.
    result: Option<TaskResult>,
}

impl ResultGuard {
    /// `on_panic` is the result if the task panics or is aborted. [`Driver::end_task`] ignores the
    /// result of an aborted task.
    const fn new(sender: UnboundedSender<TaskResult>, on_panic: TaskResult) -> Self {
        Self { sender, result: Some(on_panic) }
    }

    /// Sends `result`.
    fn send(mut self, result: TaskResult) {
        self.result = Some(result);
    }
}

impl Drop for ResultGuard {
    fn drop(&mut self) {
        if let Some(result) = self.result.take() {
            // Sending fails only if the driver has ended.
            let _ = self.sender.send(result);
        }
    }
}

/// Returns the error with the address of the primary before it. Connection errors already begin
/// with the address.
fn prefix_primary(primary: SocketAddr, error: &str) -> String {
    let peer = primary.to_string();
    if error.starts_with(&peer) { error.to_owned() } else { format!("{peer}: {error}") }
}

/// Returns the result of a transfer from `primary` for the state machine. A reload can change the
/// list of primaries during a transfer, and the state machine records a rejection under the index
/// of the primary. `current` is the primary that now has this index. If it is not `primary`, a
/// version that was not published becomes [`InboundOutcome::NoLongerWanted`].
fn attribute_outcome(
    outcome: InboundOutcome,
    primary: SocketAddr,
    current: Option<&Remote>,
) -> InboundOutcome {
    match outcome {
        InboundOutcome::Rejected { .. } | InboundOutcome::PublishFailed { .. }
            if current.is_none_or(|remote| remote.address != primary) =>
        {
            InboundOutcome::NoLongerWanted
        }
        outcome => outcome,
    }
}

impl Zone {
    /// Records that `step` succeeded at `primary`. If the primary was failing, logs that it answers
    /// again. `transfer_follows`: whether a transfer from the primary follows.
    fn record_success(&mut self, primary: SocketAddr, step: RoundStep, transfer_follows: bool, now: u64) {
        if let Some(failing_ms) = self.outages.record_success(primary, step, transfer_follows, now) {
            let zone = self.settings.apex.to_string();
            tracing::info!(
                name: "primary-answers-again",
                zone, peer = %primary, failed_seconds = failing_ms / 1000, "zone {zone}: primary answers again"
            );
        }
    }

    /// Logs a warning if the primary has an older serial than the local one.
    fn check_serial(&mut self, primary: SocketAddr, serial: Option<u32>) {
        let (apex, local_soa) = (&self.settings.apex, self.machine.local_soa());
        if let Some((primary_serial, local_soa)) = serial.zip(local_soa)
            && let Some(warning) =
                self.outdated_primaries.check_serial(apex, primary, primary_serial, local_soa.serial)
        {
            tracing::warn!(name: "soa-warning", zone = %apex, peer = %primary, "zone {apex}: {warning}");
        }
    }
}

impl Driver {
    /// Starts queued jobs as the limits permit.
    pub(super) fn start_jobs(&mut self) {
        while let Some((primary, zone_number)) = self.probes.pop() {
            self.start_probe(primary, zone_number);
        }
        while let Some((primary, zone_number)) = self.transfers.pop() {
            self.start_transfer(primary, zone_number);
        }
    }

    fn start_probe(&mut self, primary: SocketAddr, zone_number: u64) {
        self.last_number += 1;
        let task_number = self.last_number;
        let Some(zone) = self.zones.get_mut(&zone_number) else { return self.probes.release(primary) };
        let (settings, primary_index) = (Arc::clone(&zone.settings), zone.primary_index);
        let (zone_store, options) = (Arc::clone(&self.zone_store), Arc::clone(&self.options));
        let on_panic =
            TaskResult::Probe { zone_number, task_number, primary, outcome: Err(ExchangeError::Panicked) };
        let guard = ResultGuard::new(self.result_sender.clone(), on_panic);
        let spawned = tokio::spawn(async move {
            let outcome = match settings.primaries.get(primary_index) {
                Some(remote) => {
                    let target = QueryTarget { remote, keys: &zone_store.keys(), options: &options };
                    task::probe(&settings.apex, &target).await
                }
                None => Err(ExchangeError::NoPrimary),
            };
            guard.send(TaskResult::Probe { zone_number, task_number, primary, outcome });
        });
        zone.task =
            Some(Task { number: task_number, primary, abort: spawned.abort_handle(), transfer: None });
    }

    fn start_transfer(&mut self, primary: SocketAddr, zone_number: u64) {
        let started_at = self.now() / 1000;
        self.last_number += 1;
        let task_number = self.last_number;
        let Some(zone) = self.zones.get_mut(&zone_number) else { return self.transfers.release(primary) };
        let progress = Arc::new(Progress::default());
        let job = Job {
            settings: Arc::clone(&zone.settings),
            primary_index: zone.primary_index,
            is_ixfr: zone.is_ixfr,
            local_soa: zone.machine.local_soa().filter(|_| !zone.machine.accepts_any_serial()),
            zone_store: Arc::clone(&self.zone_store),
            options: Arc::clone(&self.options),
            progress: Arc::clone(&progress),
        };
        let key = zone.settings.primaries.get(zone.primary_index).and_then(|remote| remote.key.clone());
        let report = Report::panicked(zone.is_ixfr, key);
        let guard = ResultGuard::new(
            self.result_sender.clone(),
            TaskResult::Transfer { zone_number, task_number, primary, report },
        );
        let spawned = tokio::spawn(async move {
            let report = task::transfer(job).await;
            guard.send(TaskResult::Transfer { zone_number, task_number, primary, report });
        });
        let kind = if zone.is_ixfr { TransferKind::Ixfr } else { TransferKind::Axfr };
        zone.phase = Phase::Transferring;
        let transfer = Some(TransferSnapshot { progress, kind, since: started_at });
        zone.task = Some(Task { number: task_number, primary, abort: spawned.abort_handle(), transfer });
        self.publish_status(zone_number);
    }

    /// Handles the result of a task: logs it, and passes it to the state machine of the zone.
    pub(super) fn handle_result(&mut self, result: TaskResult) {
        let now = self.now();
        match result {
            TaskResult::Probe { zone_number, task_number, primary, outcome } => {
                let Some(entry) = self.end_task(zone_number, task_number) else { return };
                entry.check_serial(primary, outcome.as_ref().ok().map(|version| version.serial));
                let event = match outcome {
                    Ok(Version { serial, expire }) => Event::Serial { serial, expire },
                    Err(error) => {
                        let zone = entry.settings.apex.to_string();
                        let error = error.to_string();
                        match entry.outages.record_failure(primary, RoundStep::Probe, &error, now) {
                            Some(failing_ms) => tracing::warn!(
                                name: "soa-query-failed",
                                zone, peer = %primary, error, failing_seconds = failing_ms / 1000,
                                "zone {zone}: SOA query to primary failed"
                            ),
                            None => {
                                tracing::debug!(name: "soa-query-failed", zone, peer = %primary, error, "zone {zone}: SOA query to primary failed");
                            }
                        }
                        entry.last_error = Some(prefix_primary(primary, &error));
                        Event::ProbeFailed
                    }
                };
                let is_answered = event != Event::ProbeFailed;
                entry.machine.handle_event(event, now);
                if is_answered {
                    entry.record_success(primary, RoundStep::Probe, entry.machine.is_transferring(), now);
                }
                if is_answered && entry.machine.failed_rounds() == 0 {
                    entry.last_error = None;
                }
                self.probes.release(primary);
                self.update_zone(zone_number);
            }
            TaskResult::Transfer { zone_number, task_number, primary, report } => {
                let Some(entry) = self.end_task(zone_number, task_number) else { return };
                // `Some` if a warning is due.
                let failing_ms = match (&report.outcome, &report.error) {
                    // A transfer of the whole zone follows.
                    (InboundOutcome::IxfrFailed, _) if entry.is_ixfr => None,
                    (InboundOutcome::Failed | InboundOutcome::IxfrFailed, Some(error)) => {
                        entry.outages.record_failure(primary, RoundStep::Transfer, &error.to_string(), now)
                    }
                    // Not reached: a failed transfer has an error.
                    (InboundOutcome::Failed | InboundOutcome::IxfrFailed, None) => None,
                    // The primary answered. It does not matter whether its version is newer or
                    // valid.
                    _ => {
                        entry.record_success(primary, RoundStep::Transfer, false, now);
                        None
                    }
                };
                report.log(&entry.settings.apex, primary, failing_ms);
                if let InboundOutcome::UpToDate { serial } = report.outcome {
                    entry.check_serial(primary, Some(serial));
                }
                entry.last_error =
                    report.error.as_ref().map(|error| prefix_primary(primary, &error.to_string()));
                let current = entry.settings.primaries.get(entry.primary_index);
                let outcome = attribute_outcome(report.outcome, primary, current);
                let event = Event::Transferred { outcome, expire: report.expire };
                entry.machine.handle_event(event, now);
                self.transfers.release(primary);
                self.update_zone(zone_number);
                self.count(|counts| report.add_to(counts));
            }
            TaskResult::NotifyResponse { notify, answer } => {
                self.unanswered_notify[usize::from(notify.is_repeated)] -= 1;
                self.handle_notify_response(&notify, answer, now);
            }
        }
    }

    /// Removes the task from its zone, and returns the zone. Returns `None` if the task was
    /// aborted; [`Driver::take_zone`] has freed its slot in this case.
    fn end_task(&mut self, zone_number: u64, task_number: u64) -> Option<&mut Zone> {
        let zone = self.zones.get_mut(&zone_number)?;
        zone.task.take_if(|running| running.number == task_number)?;
        zone.phase = Phase::Idle;
        Some(zone)
    }

    /// Returns whether a NOTIFY may be sent now: `None` if none may be sent, `Some(false)` if only
    /// a first attempt may be sent, `Some(true)` if a repetition may be sent too.
    pub(super) const fn may_send_notify(&self) -> Option<bool> {
        let [first, repeated] = self.unanswered_notify;
        if first + repeated < UNANSWERED_NOTIFY_MAX {
            Some(repeated < UNANSWERED_REPETITIONS_MAX)
        } else {
            None
        }
    }

    /// Sends the NOTIFY messages that are due, as the limits permit.
    pub(super) fn send_notify_messages(&mut self) {
        while let Some(may_repeat) = self.may_send_notify()
            && let Some(notify) = self.notify_queue.poll(self.now(), may_repeat)
        {
            self.unanswered_notify[usize::from(notify.is_repeated)] += 1;
            let (zone_store, options) = (Arc::clone(&self.zone_store), Arc::clone(&self.options));
            let notify = Box::new(notify);
            let on_panic =
                TaskResult::NotifyResponse { notify: notify.clone(), answer: Err(ExchangeError::Panicked) };
            let guard = ResultGuard::new(self.result_sender.clone(), on_panic);
            tokio::spawn(async move {
                let answer = task::send_notify(&notify, &zone_store.keys(), &options).await;
                guard.send(TaskResult::NotifyResponse { notify, answer });
            });
        }
    }

    fn handle_notify_response(
        &mut self,
        notify: &OutgoingNotify,
        answer: Result<Vec<u8>, ExchangeError>,
        now: u64,
    ) {
        let outcome = self.notify_queue.handle_response(notify.ticket, answer.as_deref().ok(), now);
        let (zone, peer) = (&notify.apex, notify.remote.address);
        let status = match outcome {
            Some(NotifyAttemptResult::Acknowledged) => Some(NotifyStatus::Acknowledged),
            Some(NotifyAttemptResult::Rejected(rcode)) => Some(NotifyStatus::Rejected(rcode)),
            Some(NotifyAttemptResult::Unanswered) => Some(NotifyStatus::Unanswered),
            Some(NotifyAttemptResult::WillRepeat) | None => None,
        };
        if let Some(status) = status {
            self.options.secondary_statuses.record_result(zone, peer, status, seconds_now());
        }
        match outcome {
            Some(NotifyAttemptResult::Acknowledged) => {
                tracing::debug!(name: "notify-acknowledged", %zone, %peer, "zone {zone}: secondary acknowledged NOTIFY");
                self.count(|counts| counts.acknowledged += 1);
            }
            Some(NotifyAttemptResult::Rejected(rcode)) => {
                tracing::warn!(name: "notify-rejected", %zone, %peer, %rcode, "zone {zone}: secondary rejected NOTIFY");
                self.count(|counts| counts.notify_refused += 1);
            }
            Some(NotifyAttemptResult::Unanswered) => {
                let error = answer.err().unwrap_or(ExchangeError::InvalidResponse);
                tracing::warn!(name: "notify-not-acknowledged", %zone, %peer, %error, "zone {zone}: secondary did not acknowledge NOTIFY");
                self.count(|counts| counts.notify_unanswered += 1);
            }
            Some(NotifyAttemptResult::WillRepeat) | None => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RejectionPeriod;

    #[test]
    fn a_rejection_does_not_apply_to_another_primary_with_the_same_index() {
        let [one, other]: [SocketAddr; 2] =
            ["192.0.2.1:53", "192.0.2.2:53"].map(|text| text.parse().unwrap());
        let (current, rejected) =
            (Remote::plain(one), InboundOutcome::Rejected { serial: 7, verdict: RejectionPeriod::Final });
        assert_eq!(attribute_outcome(rejected, one, Some(&current)), rejected);
        assert_eq!(attribute_outcome(rejected, other, Some(&current)), InboundOutcome::NoLongerWanted);
        assert_eq!(attribute_outcome(rejected, one, None), InboundOutcome::NoLongerWanted);
        assert_eq!(attribute_outcome(InboundOutcome::Failed, other, Some(&current)), InboundOutcome::Failed);
    }

    #[test]
    fn a_primary_is_named_once() {
        let primary: SocketAddr = "[::1]:853".parse().unwrap();
        assert_eq!(prefix_primary(primary, "[::1]:853 over TLS: refused"), "[::1]:853 over TLS: refused");
        assert_eq!(
            prefix_primary(primary, "it answers with SERVFAIL"),
            "[::1]:853: it answers with SERVFAIL"
        );
    }
}
