//! Records `nonesuch resolve` from the counters of its control socket.

use super::session::Session;
use super::stop::Stop;
use super::{RecordError, SECOND, unix_micros};
use crate::commands::ctl::resolver_status;
use crate::control_protocol::CostModelSecond;
use nonesuch_lab::cost_model::{DomainCounter, Gap, GapReason, Window};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limit for a response.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum difference of the clocks of a window, in microseconds. If it is greater, the clock of the
/// system was set.
const CLOCK_TOLERANCE: u64 = SECOND;

/// The counters at a time.
pub(super) struct Sample {
    /// In microseconds since 1970.
    time: u64,
    instant: Instant,
    pid: u32,
    /// Time since the start of the resolver, in seconds.
    up_seconds: u64,
    total: CostModelSecond,
}

impl Sample {
    /// Requests the counters.
    pub(super) fn take(socket: &Path) -> Result<Self, RecordError> {
        let status = resolver_status(socket, TIMEOUT)?;
        let total = status.cost_model.total;
        Ok(Self {
            time: unix_micros(),
            instant: Instant::now(),
            pid: status.pid,
            up_seconds: status.up_seconds,
            total,
        })
    }
}

/// Records windows with the differences of the counters from `last` on, until recording must end. The
/// resolver may be restarted meanwhile.
pub(super) fn record(
    socket: &Path,
    mut last: Sample,
    session: &mut Session,
    stop: &Stop,
) -> Result<(), RecordError> {
    session.print_ready(&format!("control socket {}", socket.display()))?;
    let domains = DomainCounter::default();
    let mut is_reachable = true;
    while !stop.is_requested() {
        let length = session.window();
        stop.wait(Duration::from_micros(length - unix_micros() % length));
        match Sample::take(socket) {
            Ok(sample) => {
                match window(&last, &sample) {
                    Ok(window) if is_reachable => session.push(&window)?,
                    Ok(_) => session.gap(gap(&last, sample.time, GapReason::Disconnected)),
                    Err(reason) => session.gap(gap(&last, sample.time, reason)),
                }
                (last, is_reachable) = (sample, true);
            }
            Err(_) => is_reachable = false,
        }
        session.tick(&domains)?;
    }
    if !is_reachable {
        session.gap(gap(&last, unix_micros(), GapReason::Disconnected));
    }
    session.flush(&domains)
}

fn gap(last: &Sample, until: u64, reason: GapReason) -> Gap {
    Gap { from: last.time.min(until), until, reason }
}

/// Returns the window between two samples.
///
/// # Errors
/// The counters begin again, or the clock was set.
fn window(before: &Sample, after: &Sample) -> Result<Window, GapReason> {
    let elapsed = (after.instant - before.instant).as_micros() as u64;
    let length = after.time.checked_sub(before.time).filter(|length| *length > 0);
    let length = length.ok_or(GapReason::ClockJump)?;
    if length.abs_diff(elapsed) > CLOCK_TOLERANCE {
        return Err(GapReason::ClockJump);
    }
    // In a container, a restarted resolver can have the same process ID.
    if before.pid != after.pid || after.up_seconds < before.up_seconds {
        return Err(GapReason::CounterReset);
    }
    let (earlier, later) = (&before.total, &after.total);
    let difference = |count: fn(&CostModelSecond) -> u64| {
        count(later).checked_sub(count(earlier)).ok_or(GapReason::CounterReset)
    };
    let octets = later.response_octets.zip(earlier.response_octets);
    // The resolver reads its counters one after the other, so that a sample can have a part of the counts of
    // a response.
    let queries = difference(|total| total.queries)?;
    let responses = difference(|total| total.responses)?;
    let signatures = difference(|total| total.signatures.values().sum())?;
    Ok(Window {
        start: before.time,
        length,
        queries,
        tcp_queries: difference(|total| total.tcp_queries)?.min(queries),
        responses,
        truncated: difference(|total| total.truncated)?.min(responses),
        signed_responses: difference(|total| total.signed_responses)?.min(responses).min(signatures),
        signatures,
        verified: difference(|total| total.verified.values().sum())?,
        response_octets: octets.and_then(|(later, earlier)| later.checked_sub(earlier)),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A sample after `seconds`, with counters in proportion to `count`.
    fn sample(base: Instant, seconds: u64, pid: u32, count: u64) -> Sample {
        let total = CostModelSecond {
            unix: 1_700_000_000 + seconds,
            queries: 10 * count,
            tcp_queries: count,
            responses: 9 * count,
            truncated: count,
            signed_responses: 6 * count,
            response_octets: Some(500 * count),
            signatures: [(8, 4 * count), (13, 5 * count)].into(),
            verified: [(13, 3 * count)].into(),
        };
        let time = (1_700_000_000 + seconds) * SECOND;
        Sample { time, instant: base + Duration::from_secs(seconds), pid, up_seconds: seconds, total }
    }

    #[test]
    fn windows_have_the_differences_of_counters() {
        let base = Instant::now();
        let found = window(&sample(base, 10, 7, 2), &sample(base, 20, 7, 5)).unwrap();
        let wanted = Window {
            start: 1_700_000_010 * SECOND,
            length: 10 * SECOND,
            queries: 30,
            tcp_queries: 3,
            responses: 27,
            truncated: 3,
            signed_responses: 18,
            signatures: 27,
            verified: 9,
            response_octets: Some(1500),
        };
        assert_eq!(found, wanted);
        let mut of_earlier_release = sample(base, 20, 7, 5);
        of_earlier_release.total.response_octets = None;
        assert_eq!(window(&sample(base, 10, 7, 2), &of_earlier_release).unwrap().response_octets, None);
    }

    #[test]
    fn a_restart_and_a_set_clock_are_no_windows() {
        let base = Instant::now();
        let first = || sample(base, 10, 7, 2);
        assert_eq!(window(&first(), &sample(base, 20, 8, 5)), Err(GapReason::CounterReset));
        assert_eq!(window(&first(), &sample(base, 20, 7, 1)), Err(GapReason::CounterReset));
        let restarted = Sample { up_seconds: 3, ..sample(base, 20, 7, 5) };
        assert_eq!(window(&first(), &restarted), Err(GapReason::CounterReset));
        let clock = |time: u64| Sample { time, ..sample(base, 20, 7, 5) };
        for time in [first().time, first().time - 1, first().time + 30 * SECOND, first().time + 8 * SECOND] {
            assert_eq!(window(&first(), &clock(time)), Err(GapReason::ClockJump));
        }
        assert!(window(&first(), &clock(first().time + 9_500_000)).is_ok());
    }
}
