//! Primaries with failing SOA queries or transfers: the time of the first failure, the last error,
//! and when to log them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Milliseconds from the first failure to the second log line.
const HOUR_MS: u64 = 3_600_000;
/// Milliseconds from the first failure to the third log line, and from there to each further one.
const DAY_MS: u64 = 24 * HOUR_MS;

/// A step of a round that can fail. A round is one attempt to refresh a zone: the server queries
/// the primaries of the zone one after the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RoundStep {
    /// The SOA query.
    Probe,
    /// The transfer.
    Transfer,
}

/// Failures of one primary since its last success.
#[derive(Debug)]
struct Outage {
    /// Time of the first failure, in milliseconds since 1970.
    since: u64,
    /// The step that failed last.
    last_step: RoundStep,
    /// The last error.
    error: String,
    /// Number of log lines so far.
    log_lines: u64,
}

impl Outage {
    /// Time of the next log line, in milliseconds since 1970: the first failure, an hour after it,
    /// and each day after it.
    const fn next_line_at(&self) -> u64 {
        self.since
            + match self.log_lines {
                0 => 0,
                1 => HOUR_MS,
                log_lines => (log_lines - 1) * DAY_MS,
            }
    }
}

/// The failing primaries of a zone.
#[derive(Debug, Default)]
pub(super) struct Outages {
    failing: BTreeMap<SocketAddr, Outage>,
    /// Whether the log has the warning that half of the expire time has passed.
    is_half_expired_logged: bool,
}

impl Outages {
    /// Records a failure of `step` at `now`, in milliseconds since 1970. If a log line is due,
    /// returns the milliseconds since the first failure.
    pub(super) fn record_failure(
        &mut self,
        primary: SocketAddr,
        step: RoundStep,
        error: &str,
        now: u64,
    ) -> Option<u64> {
        let new = || Outage { since: now, last_step: step, error: String::new(), log_lines: 0 };
        let outage = self.failing.entry(primary).or_insert_with(new);
        outage.last_step = step;
        error.clone_into(&mut outage.error);
        if now < outage.next_line_at() {
            return None;
        }
        while outage.next_line_at() <= now {
            outage.log_lines += 1;
        }
        Some(now - outage.since)
    }

    /// Records at `now` that `step` succeeded. If this ends the failures of the primary, returns
    /// the milliseconds since the first failure. An SOA response does not end failures of transfers
    /// if a transfer follows (`transfer_follows`), because that transfer shows whether the failure
    /// continues.
    pub(super) fn record_success(
        &mut self,
        primary: SocketAddr,
        step: RoundStep,
        transfer_follows: bool,
        now: u64,
    ) -> Option<u64> {
        let outage = self.failing.get(&primary)?;
        if step == RoundStep::Probe && outage.last_step == RoundStep::Transfer && transfer_follows {
            return None;
        }
        let since = outage.since;
        self.failing.remove(&primary);
        Some(now.saturating_sub(since))
    }

    /// Removes servers that are not primaries of the zone any more.
    pub(super) fn retain(&mut self, is_primary: impl Fn(SocketAddr) -> bool) {
        self.failing.retain(|primary, _| is_primary(*primary));
    }

    /// Returns `half`, the time at which to log that half of the expire time has passed; `None` if
    /// this is already logged.
    pub(super) fn half_expired_due(&self, half: Option<u64>) -> Option<u64> {
        half.filter(|_| !self.is_half_expired_logged)
    }

    /// Records whether the log has the warning that half of the expire time has passed since the
    /// last refresh.
    pub(super) const fn set_half_expired_logged(&mut self, is_logged: bool) {
        self.is_half_expired_logged = is_logged;
    }

    /// Returns the failing primaries: address, time of the first failure in milliseconds since
    /// 1970, and last error.
    pub(super) fn list(&self) -> impl Iterator<Item = (SocketAddr, u64, &str)> {
        self.failing.iter().map(|(primary, outage)| (*primary, outage.since, outage.error.as_str()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: u64 = 1_750_000_000_000;

    fn primary() -> SocketAddr {
        "192.0.2.1:53".parse().unwrap()
    }

    /// A primary fails every ten minutes: the minutes in which a line is logged.
    #[test]
    fn a_failure_that_lasts_is_logged_at_once_after_an_hour_and_each_day() {
        let mut outages = Outages::default();
        let minutes = (0..3 * 1440).step_by(10).filter(|minute| {
            outages.record_failure(primary(), RoundStep::Probe, "timeout", NOW + minute * 60_000).is_some()
        });
        assert_eq!(minutes.collect::<Vec<u64>>(), [0, 60, 1440, 2880]);
        assert_eq!(
            outages.record_success(primary(), RoundStep::Probe, false, NOW + 3 * DAY_MS),
            Some(3 * DAY_MS)
        );
        assert_eq!(outages.record_success(primary(), RoundStep::Probe, false, NOW + 3 * DAY_MS), None);
        assert_eq!(
            outages.record_failure(primary(), RoundStep::Probe, "timeout", NOW + 3 * DAY_MS),
            Some(0),
            "another one"
        );
        // If a server is queried less often, each query logs one line.
        assert_eq!(
            outages.record_failure(primary(), RoundStep::Probe, "timeout", NOW + 9 * DAY_MS),
            Some(6 * DAY_MS)
        );
        assert_eq!(
            outages.record_failure(primary(), RoundStep::Probe, "timeout", NOW + 10 * DAY_MS - 1),
            None
        );
    }

    #[test]
    fn a_soa_record_does_not_end_failures_of_transfers() {
        let mut outages = Outages::default();
        for round in 0..6 {
            let now = NOW + round * 60_000;
            assert_eq!(outages.record_success(primary(), RoundStep::Probe, true, now), None);
            let line = outages.record_failure(primary(), RoundStep::Transfer, "connection reset", now);
            assert_eq!(line.is_some(), round == 0);
        }
        let listed: Vec<_> = outages.list().collect();
        assert_eq!(listed, [(primary(), NOW, "connection reset")]);
        assert!(outages.record_success(primary(), RoundStep::Probe, false, NOW + DAY_MS).is_some());
        outages.record_failure(primary(), RoundStep::Transfer, "connection reset", NOW);
        outages.retain(|_| false);
        assert_eq!(outages.list().count(), 0);
    }
}
