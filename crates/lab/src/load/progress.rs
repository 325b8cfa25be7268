//! Counts of each interval of a load.

use std::collections::VecDeque;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use serde::Serialize;

use super::Latency;
use super::histogram::DurationHistogram;
use super::pacer::to_ns;
use super::tally::Tally;

/// Results of one interval of a load.
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct Progress {
    /// End of the interval, in seconds since the end of the warm-up.
    pub end: f64,
    /// Number of queries sent in the interval.
    pub sent: u64,
    /// Number of queries answered in the interval.
    pub received: u64,
    /// Number of queries whose timeout ended in the interval.
    pub lost: u64,
    /// Responses per second.
    pub qps: f64,
    /// Latencies of the responses in the interval; `None` without responses.
    pub latency_us: Option<Latency>,
}

/// Counts of one thread or of all threads: since the start, or for one interval.
#[derive(Debug, Clone, Default)]
struct Counts {
    sent: u64,
    /// Number of queries without a response in time, including late responses. So this count
    /// never decreases.
    lost: u64,
    latencies: DurationHistogram,
}

impl Counts {
    fn from_tally(tally: &Tally) -> Self {
        Self { sent: tally.sent, lost: tally.lost + tally.late, latencies: tally.latencies.clone() }
    }

    /// Returns the counts since `earlier`.
    fn since(&self, earlier: &Self) -> Self {
        Self {
            sent: self.sent - earlier.sent,
            lost: self.lost - earlier.lost,
            latencies: self.latencies.since(&earlier.latencies),
        }
    }

    fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.latencies.add(&other.latencies);
    }
}

/// Counts of one interval of one thread.
#[derive(Debug)]
pub(super) struct IntervalCounts {
    /// Number of the interval, starting at 0.
    number: u64,
    counts: Counts,
}

/// Sends the counts of each interval of a thread.
#[derive(Debug)]
pub(super) struct IntervalReporter {
    sender: Sender<IntervalCounts>,
    /// Length of an interval in ns.
    interval: u64,
    /// Number of the current interval.
    number: u64,
    /// Counts at the start of the current interval.
    at_start: Counts,
}

impl IntervalReporter {
    pub(super) fn new(sender: Sender<IntervalCounts>, interval: Duration) -> Self {
        Self { sender, interval: to_ns(interval).max(1), number: 0, at_start: Counts::default() }
    }

    /// Sends the counts of the intervals that have ended `elapsed` ns after the end of the warm-up.
    /// If several intervals have ended since the last call, because the thread was suspended, the
    /// first of them has all counts.
    pub(super) fn report(&mut self, elapsed: u64, tally: &Tally) {
        while elapsed >= (self.number + 1) * self.interval {
            let counts = Counts::from_tally(tally);
            let since = counts.since(&self.at_start);
            self.at_start = counts;
            // The receiver lives as long as the threads.
            let _ = self.sender.send(IntervalCounts { number: self.number, counts: since });
            self.number += 1;
        }
    }
}

/// Receives the counts of `threads` threads until all of them have ended. Calls `report` for each
/// interval that all threads have ended.
pub(super) fn receive(
    receiver: &Receiver<IntervalCounts>,
    threads: usize,
    interval: Duration,
    mut report: impl FnMut(&Progress),
) {
    // Sums of the intervals from number `first` on, and the number of threads in each sum.
    let (mut first, mut sums): (u64, VecDeque<(Counts, usize)>) = (0, VecDeque::new());
    for IntervalCounts { number, counts } in receiver {
        let index = (number - first) as usize;
        while sums.len() <= index {
            sums.push_back((Counts::default(), 0));
        }
        if let Some((sum, count)) = sums.get_mut(index) {
            sum.add(&counts);
            *count += 1;
        }
        while let Some((sum, _)) = sums.pop_front_if(|(_, count)| *count == threads) {
            first += 1;
            report(&progress(&sum, first, interval));
        }
    }
}

fn progress(counts: &Counts, intervals: u64, interval: Duration) -> Progress {
    let seconds = interval.as_secs_f64();
    let received = counts.latencies.count();
    Progress {
        end: intervals as f64 * seconds,
        sent: counts.sent,
        received,
        lost: counts.lost,
        qps: received as f64 / seconds,
        latency_us: counts.latencies.summary(),
    }
}

#[cfg(test)]
mod tests {
    use super::super::slots::QueryTimes;
    use super::super::{LoadError, LoadOptions, run_with_progress};
    use super::*;
    use std::sync::mpsc::channel;

    const SECOND: u64 = 1_000_000_000;

    fn count(tally: &mut Tally, sent: u64, answered: u64, latency: u64) {
        let times = QueryTimes { due: 0, sent: 0 };
        (0..sent).for_each(|_| tally.count_sent(times, false));
        (0..answered).for_each(|_| tally.count_answer(times, latency, &[0; 12]));
    }

    #[test]
    fn intervals_of_all_threads_are_summed_up() {
        let (sender, receiver) = channel();
        let interval = Duration::from_secs(2);
        let mut threads = [(); 2].map(|()| (IntervalReporter::new(sender.clone(), interval), Tally::new(0)));
        drop(sender);
        for (reporter, tally) in &mut threads {
            count(tally, 10, 8, 1000);
            reporter.report(SECOND, tally);
            tally.count_lost(QueryTimes { due: 0, sent: 0 });
            reporter.report(2 * SECOND, tally);
        }
        // One thread is suspended for two intervals. The other one ends after the second.
        let [(mut first, mut counted), (mut second, mut other)] = threads;
        count(&mut other, 5, 4, 9000);
        second.report(4 * SECOND, &other);
        drop(second);
        count(&mut counted, 100, 40, 2000);
        first.report(7 * SECOND, &counted);
        drop(first);
        let mut found = Vec::new();
        receive(&receiver, 2, interval, |progress| found.push(*progress));
        let figures = |progress: &Progress| (progress.end, progress.sent, progress.received, progress.lost);
        assert_eq!(found.iter().map(figures).collect::<Vec<_>>(), [(2.0, 20, 16, 2), (4.0, 105, 44, 0)]);
        assert_eq!((found[0].qps, found[1].qps), (8.0, 22.0));
        // The second interval has no latencies of the first one.
        let latency = found[1].latency_us.expect("responses");
        assert!((latency.min - 2.0).abs() < 0.01 && (latency.max - 9.0).abs() < 0.01, "{latency:?}");
    }

    #[test]
    fn a_load_reports_its_intervals() {
        let (server, address) = super::super::tests::start_limited(u32::MAX);
        let options = LoadOptions {
            limit: None,
            seconds: 0.35,
            rate: Some(1000.0),
            threads: 2,
            ..super::super::tests::options(address, "example A", 1)
        };
        let mut found = Vec::new();
        let report =
            run_with_progress(&options, Duration::from_millis(100), |progress| found.push(*progress))
                .expect("ran");
        let error = run_with_progress(&options, Duration::from_millis(99), |_| ()).expect_err("too short");
        server.stop().expect("stopped");
        assert!(matches!(error, LoadError::Misconfigured { option: "--interval", .. }), "{error}");
        assert_eq!(report.received, 350);
        // A slow machine may need longer for the load.
        assert!(found.len() >= 3, "{found:?}");
        assert!((found[0].end - 0.1).abs() < 1e-9 && found[0].received > 0, "{found:?}");
        let received: u64 = found.iter().map(|progress| progress.received).sum();
        assert!(received <= report.received, "{found:?}");
    }
}
