//! Counters of a load.

use std::collections::BTreeMap;
use std::time::Duration;

use nonesuch_proto::message::Rcode;

use super::histogram::DurationHistogram;
use super::inspector::InspectionResults;
use super::slots::QueryTimes;

/// The TC flag in octet 2 of the header (RFC 1035 §4.1.1).
pub(super) const TC: u8 = 0x02;

/// Counters of one thread or of all threads. Queries that are due during the warm-up are only
/// counted in `sent_with_warm_up`.
#[derive(Debug, Clone, Default)]
pub(super) struct Tally {
    /// End of the warm-up, in ns since the start of the run.
    measured_from: u64,
    /// Number of queries sent.
    pub(super) sent: u64,
    /// Number of queries without a response.
    pub(super) lost: u64,
    /// Number of queries with a response after the timeout.
    pub(super) late: u64,
    /// Number of queries of an open loop that were due but not sent before the end.
    pub(super) unsent: u64,
    /// Number of datagrams that answer neither an outstanding query nor a lost query.
    pub(super) unexpected: u64,
    /// Number of errors of sending and receiving after the first response.
    pub(super) refused: u64,
    /// Number of connections opened, including the warm-up.
    pub(super) connections: u64,
    /// Number of connections that failed, or that the server closed with outstanding queries or
    /// before the first response, including the warm-up.
    pub(super) connections_failed: u64,
    /// Number of truncated responses over UDP whose queries are repeated over TCP.
    pub(super) truncated_udp: u64,
    /// Total size of these responses in octets.
    pub(super) truncated_udp_octets: u64,
    /// Number of responses over TCP to these queries.
    pub(super) followed: u64,
    /// Total size of these responses in octets.
    pub(super) followed_octets: u64,
    /// Options and samples of the responses.
    pub(super) inspection: InspectionResults,
    /// Number of responses with TC set.
    pub(super) truncated: u64,
    /// Total size of the responses in octets.
    pub(super) octets: u64,
    /// Size of the longest response in octets.
    pub(super) octets_max: u64,
    /// CPU time of the thread, including the warm-up.
    pub(super) thread_cpu: Duration,
    /// Number of queries sent, including the warm-up.
    pub(super) sent_with_warm_up: u64,
    /// Number of responses by the response code in the header.
    by_rcode: [u64; 16],
    /// Times from the due time of a query to its response.
    pub(super) latencies: DurationHistogram,
    /// Delays of the queries of an open loop: send time minus due time.
    pub(super) lateness: DurationHistogram,
    /// Time of the first query sent, in ns since the start of the run.
    first_send: Option<u64>,
    /// Time of the last response received, in ns since the start of the run.
    last_receive: Option<u64>,
    /// Time at which the last query was due, in ns since the start of the run.
    last_due: u64,
}

impl Tally {
    /// Creates empty counters. `measured_from` is the end of the warm-up, in ns since the start of
    /// the run.
    pub(super) fn new(measured_from: u64) -> Self {
        Self { measured_from, ..Self::default() }
    }

    pub(super) fn add(&mut self, other: &Self) {
        self.sent += other.sent;
        self.lost += other.lost;
        self.late += other.late;
        self.unsent += other.unsent;
        self.unexpected += other.unexpected;
        self.refused += other.refused;
        self.connections += other.connections;
        self.connections_failed += other.connections_failed;
        self.truncated_udp += other.truncated_udp;
        self.truncated_udp_octets += other.truncated_udp_octets;
        self.followed += other.followed;
        self.followed_octets += other.followed_octets;
        self.inspection.add(&other.inspection);
        self.truncated += other.truncated;
        self.octets += other.octets;
        self.octets_max = self.octets_max.max(other.octets_max);
        self.thread_cpu += other.thread_cpu;
        self.sent_with_warm_up += other.sent_with_warm_up;
        self.by_rcode.iter_mut().zip(other.by_rcode).for_each(|(mine, theirs)| *mine += theirs);
        self.latencies.add(&other.latencies);
        self.lateness.add(&other.lateness);
        self.first_send = self.first_send.into_iter().chain(other.first_send).min();
        self.last_receive = self.last_receive.max(other.last_receive);
        self.last_due = self.last_due.max(other.last_due);
    }

    pub(super) fn received(&self) -> u64 {
        self.latencies.count()
    }

    /// Returns the time from the first query sent to the last response received.
    pub(super) fn duration(&self) -> Duration {
        let ends = self.first_send.zip(self.last_receive);
        ends.map_or(Duration::ZERO, |(first, last)| Duration::from_nanos(last.saturating_sub(first)))
    }

    /// Returns the time from the first query sent until the last query was due.
    pub(super) fn due_duration(&self) -> Duration {
        Duration::from_nanos(self.first_send.map_or(0, |first| self.last_due.saturating_sub(first)))
    }

    pub(super) fn rcodes(&self) -> BTreeMap<String, u64> {
        let counted = (0..).zip(self.by_rcode).filter(|&(_, count)| count > 0);
        counted.map(|(rcode, count)| (Rcode(rcode).to_string(), count)).collect()
    }

    /// Whether a query with this due time counts: it is due after the warm-up.
    pub(super) const fn is_measured(&self, due: u64) -> bool {
        due >= self.measured_from
    }

    /// Counts a query that was sent. `scheduled` is true in an open loop; then the delay is
    /// recorded.
    pub(super) fn count_sent(&mut self, times: QueryTimes, scheduled: bool) {
        self.sent_with_warm_up += 1;
        if self.is_measured(times.due) {
            self.sent += 1;
            self.first_send.get_or_insert(times.sent);
            self.last_due = self.last_due.max(times.due);
            if scheduled {
                self.lateness.record(times.sent.saturating_sub(times.due));
            }
        }
    }

    /// Counts a query that was due but not sent before the end.
    pub(super) fn count_unsent(&mut self, due: u64) {
        if self.is_measured(due) {
            self.unsent += 1;
            self.last_due = self.last_due.max(due);
        }
    }

    pub(super) fn count_lost(&mut self, times: QueryTimes) {
        self.lost += u64::from(self.is_measured(times.due));
    }

    /// Counts a response after the timeout, to a query that is counted as lost until then.
    pub(super) fn count_late(&mut self, times: QueryTimes) {
        if self.is_measured(times.due) {
            self.lost -= 1;
            self.late += 1;
        }
    }

    /// Counts a datagram that answers neither an outstanding query nor a lost query.
    pub(super) fn count_unexpected(&mut self, now: u64) {
        self.unexpected += u64::from(self.is_measured(now));
    }

    /// Counts a truncated response over UDP whose query is repeated over TCP.
    pub(super) fn count_truncated(&mut self, times: QueryTimes, message: &[u8]) {
        if self.is_measured(times.due) {
            self.truncated += 1;
            self.truncated_udp += 1;
            self.truncated_udp_octets += message.len() as u64;
        }
    }

    /// Counts the response over TCP to a query that is repeated, in addition to
    /// [`count_answer`](Self::count_answer).
    pub(super) fn count_followed(&mut self, times: QueryTimes, message: &[u8]) {
        if self.is_measured(times.due) {
            self.followed += 1;
            self.followed_octets += message.len() as u64;
        }
    }

    /// Counts a response that was received at `now`.
    pub(super) fn count_answer(&mut self, times: QueryTimes, now: u64, message: &[u8]) {
        let [_, _, high, low, ..] = *message else { return };
        if !self.is_measured(times.due) {
            return;
        }
        let octets = message.len() as u64;
        self.truncated += u64::from(high & TC != 0);
        self.by_rcode[usize::from(low & 0x0f)] += 1;
        self.octets += octets;
        self.octets_max = self.octets_max.max(octets);
        self.latencies.record(now.saturating_sub(times.due));
        self.last_receive = Some(now);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const DUE_IN_WARM_UP: QueryTimes = QueryTimes { due: 99, sent: 150 };
    const DUE_AFTER_WARM_UP: QueryTimes = QueryTimes { due: 100, sent: 130 };

    fn message(high: u8, low: u8, octets: usize) -> Vec<u8> {
        let mut message = vec![0; octets];
        (message[2], message[3]) = (high, low);
        message
    }

    #[test]
    fn the_warm_up_counts_nowhere() {
        let mut tally = Tally::new(100);
        for times in [DUE_IN_WARM_UP, DUE_AFTER_WARM_UP] {
            tally.count_sent(times, true);
            tally.count_answer(times, 200, &message(0x82, 3, 70));
            tally.count_lost(times);
            tally.count_lost(times);
            tally.count_late(times);
            tally.count_unsent(times.due);
            tally.count_unexpected(times.due);
        }
        assert_eq!((tally.sent, tally.received(), tally.sent_with_warm_up), (1, 1, 2));
        assert_eq!((tally.lost, tally.late), (1, 1));
        assert_eq!((tally.unsent, tally.unexpected, tally.truncated, tally.octets), (1, 1, 1, 70));
        assert_eq!(tally.rcodes(), BTreeMap::from([("NXDOMAIN".to_owned(), 1)]));
        // Latency is measured from the due time, not from the send time.
        assert_eq!(tally.latencies.buckets(), [(100, 1)]);
        assert_eq!(tally.lateness.buckets(), [(30, 1)]);
        assert_eq!(tally.duration(), Duration::from_nanos(70));
        tally.count_unsent(150);
        assert_eq!(tally.due_duration(), Duration::from_nanos(20));
    }

    #[test]
    fn threads_are_summed_up() {
        let mut total = Tally::new(0);
        for (sent, now) in [(50, 90), (20, 60)] {
            let mut tally = Tally::new(0);
            tally.thread_cpu = Duration::from_micros(3);
            tally.count_sent(QueryTimes { due: sent, sent }, false);
            tally.count_answer(QueryTimes { due: sent, sent }, now, &message(0x80, 0, now as usize));
            total.add(&tally);
        }
        assert_eq!((total.sent, total.octets, total.octets_max), (2, 150, 90));
        assert_eq!((total.duration(), total.lateness.count()), (Duration::from_nanos(70), 0));
        assert_eq!(total.thread_cpu, Duration::from_micros(6));
    }
}
