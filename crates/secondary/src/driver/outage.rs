//! Primaries with failing SOA queries or transfers: the time of the first failure, the last error,
//! and when to log them.

use std::collections::BTreeMap;
use std::net::SocketAddr;

/// Milliseconds from the first failure to the second log line.
const HOUR: u64 = 3_600_000;
/// Milliseconds from the first failure to the third log line, and from there to each further one.
const DAY: u64 = 24 * HOUR;

/// The step that failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FailedStep {
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
    last: FailedStep,
    error: String,
    /// Number of log lines so far.
    lines: u64,
}

impl Outage {
    /// Time of the next line: at the first failure, after an hour, and after each day.
    const fn next_line(&self) -> u64 {
        self.since
            + match self.lines {
                0 => 0,
                1 => HOUR,
                lines => (lines - 1) * DAY,
            }
    }
}

/// The failing primaries of a zone.
#[derive(Debug, Default)]
pub(super) struct Outages {
    failing: BTreeMap<SocketAddr, Outage>,
    is_half_logged: bool,
}

impl Outages {
    /// Records a failure at `now`. If a log line is due, returns the milliseconds since the first
    /// failure.
    pub(super) fn begin(
        &mut self,
        primary: SocketAddr,
        last: FailedStep,
        error: &str,
        now: u64,
    ) -> Option<u64> {
        let new = || Outage { since: now, last, error: String::new(), lines: 0 };
        let outage = self.failing.entry(primary).or_insert_with(new);
        outage.last = last;
        error.clone_into(&mut outage.error);
        if now < outage.next_line() {
            return None;
        }
        while outage.next_line() <= now {
            outage.lines += 1;
        }
        Some(now - outage.since)
    }

    /// Records a success at `now`. If the primary was failing, returns the milliseconds since the
    /// first failure. An SOA response does not end failures of transfers if another transfer is
    /// due, because that transfer shows whether the failure continues.
    pub(super) fn end(
        &mut self,
        primary: SocketAddr,
        succeeded: FailedStep,
        is_due: bool,
        now: u64,
    ) -> Option<u64> {
        let outage = self.failing.get(&primary)?;
        if succeeded == FailedStep::Probe && outage.last == FailedStep::Transfer && is_due {
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
    /// that is already logged.
    pub(super) fn half_due(&self, half: Option<u64>) -> Option<u64> {
        half.filter(|_| !self.is_half_logged)
    }

    /// Records that this was logged, or that the zone was refreshed since.
    pub(super) const fn note_half(&mut self, is_logged: bool) {
        self.is_half_logged = is_logged;
    }

    /// Returns the failing primaries: address, time of the first failure in milliseconds since
    /// 1970, last error.
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
            outages.begin(primary(), FailedStep::Probe, "timeout", NOW + minute * 60_000).is_some()
        });
        assert_eq!(minutes.collect::<Vec<u64>>(), [0, 60, 1440, 2880]);
        assert_eq!(outages.end(primary(), FailedStep::Probe, false, NOW + 3 * DAY), Some(3 * DAY));
        assert_eq!(outages.end(primary(), FailedStep::Probe, false, NOW + 3 * DAY), None);
        assert_eq!(
            outages.begin(primary(), FailedStep::Probe, "timeout", NOW + 3 * DAY),
            Some(0),
            "another one"
        );
        // If a server is queried less often, each query logs one line.
        assert_eq!(outages.begin(primary(), FailedStep::Probe, "timeout", NOW + 9 * DAY), Some(6 * DAY));
        assert_eq!(outages.begin(primary(), FailedStep::Probe, "timeout", NOW + 10 * DAY - 1), None);
    }

    #[test]
    fn a_soa_record_does_not_end_failures_of_transfers() {
        let mut outages = Outages::default();
        for round in 0..6 {
            let now = NOW + round * 60_000;
            assert_eq!(outages.end(primary(), FailedStep::Probe, true, now), None);
            let line = outages.begin(primary(), FailedStep::Transfer, "connection reset", now);
            assert_eq!(line.is_some(), round == 0);
        }
        let listed: Vec<_> = outages.list().collect();
        assert_eq!(listed, [(primary(), NOW, "connection reset")]);
        assert!(outages.end(primary(), FailedStep::Probe, false, NOW + DAY).is_some());
        outages.begin(primary(), FailedStep::Transfer, "connection reset", NOW);
        outages.retain(|_| false);
        assert_eq!(outages.list().count(), 0);
    }
}
