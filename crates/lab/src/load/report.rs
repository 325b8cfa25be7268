//! Report of a load.

use std::collections::BTreeMap;

use serde::Serialize;

use super::ramp::RESPONSE_RATIO_MIN;
use super::tally::Tally;
use super::usage::CpuUse;
use super::{Arrivals, LoadOptions, ValidationCounts};
use crate::conditions::Limit;
use crate::process;

/// Durations in µs. Percentiles are at most 0.1 % too high.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Latency {
    /// Minimum.
    pub min: f64,
    /// Mean.
    pub mean: f64,
    /// Median.
    pub p50: f64,
    /// 90th percentile.
    pub p90: f64,
    /// 99th percentile.
    pub p99: f64,
    /// 99.9th percentile.
    pub p99_9: f64,
    /// 99.99th percentile.
    pub p99_99: f64,
    /// Maximum.
    pub max: f64,
}

/// Results of a load. `sent` is the sum of `received`, `late` and `lost`. Queries that are due
/// during the warm-up are not counted, except in `client_cpu_us_per_query`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct LoadReport {
    /// Requested rate of an open loop, in queries per second; `None` for a closed loop.
    pub rate: Option<f64>,
    /// Distribution of the send times in an open loop; `None` for a closed loop.
    pub arrivals: Option<&'static str>,
    /// Number of queries sent.
    pub sent: u64,
    /// Number of queries answered before the timeout.
    pub received: u64,
    /// Number of queries answered after the timeout, but before the load ended. Only the CPU time
    /// of the server for each response includes them.
    pub late: u64,
    /// Number of queries without a response.
    pub lost: u64,
    /// Number of queries of an open loop that were due but not sent, because the maximum number of
    /// queries was outstanding. `sent` does not include them.
    pub unsent: u64,
    /// Number of datagrams that answer neither an outstanding query nor a lost query: duplicates
    /// and other messages. No other field includes them.
    pub unexpected: u64,
    /// Number of errors when sending or receiving, after the first response: the system rejected a
    /// query, or reported that no process listens on the server's port.
    pub refused: u64,
    /// Transport of the queries: `udp`, `tcp` or `tls`.
    pub transport: &'static str,
    /// Number of connections opened, including the warm-up; 0 over UDP.
    pub connections: u64,
    /// Number of connections that failed, or that the server closed with outstanding queries or
    /// before the first response, including the warm-up. Their outstanding queries are lost.
    pub connections_failed: u64,
    /// The sampled responses.
    #[serde(skip)]
    pub samples: Vec<Vec<u8>>,
    /// Result of the validation of the samples; `None` if they were not validated.
    pub validation: Option<ValidationCounts>,
    /// Time from the first query sent to the last response received, in seconds. For an open loop,
    /// at least the number of due queries divided by the rate.
    pub seconds: f64,
    /// Responses per second.
    pub qps: f64,
    /// Number of responses for each response code in the header, without the upper bits in the OPT
    /// record.
    pub rcodes: BTreeMap<String, u64>,
    /// Number of responses with TC set. With `follow_truncated`, this includes the truncated
    /// responses over UDP, although `received` counts their queries only when they are answered
    /// over TCP.
    pub truncated: u64,
    /// Number of queries answered over TCP after a truncated response over UDP; `None` without
    /// `follow_truncated`. `received` includes them, and their latency and size are those of the
    /// response over TCP.
    pub followed: Option<u64>,
    /// Mean size of the truncated responses over UDP, in octets; `None` without such responses.
    pub truncated_octets_mean: Option<f64>,
    /// Mean size of the responses over TCP that replaced them, in octets; `None` without such
    /// responses.
    pub followed_octets_mean: Option<f64>,
    /// Number of responses for each name server identifier (RFC 5001): printable ASCII as text,
    /// otherwise in hexadecimal after `0x`. At most 64 identifiers.
    pub nsids: BTreeMap<String, u64>,
    /// Number of responses with further identifiers.
    pub nsids_other: u64,
    /// Number of responses with a server cookie; 0 without `cookies`.
    pub server_cookies: u64,
    /// Number of responses with the code BADCOOKIE; 0 without `cookies` and `nsid`.
    pub bad_cookies: u64,
    /// Mean size of the DNS messages in the responses, in octets.
    pub response_octets_mean: f64,
    /// Maximum size of a response, in octets.
    pub response_octets_max: u64,
    /// Time from the due time of a query until its response is received from the kernel; `None`
    /// without responses. In a closed loop, a query is due when a slot is free. With a full window,
    /// the latency is then the time in queues.
    pub latency_us: Option<Latency>,
    /// Delay from the due time of a query in an open loop until it is sent. The generator or a full
    /// window causes this part of the latency.
    pub lateness_us: Option<Latency>,
    /// Latencies as a histogram, in ascending order: the maximum of each bucket, in ns, and the
    /// number of latencies in it. The width of a bucket is 0.1 % of its value. Empty buckets are
    /// omitted.
    pub latency_histogram_ns: Vec<(u64, u64)>,
    /// CPU time of the generator's threads for each query sent, including the warm-up, in µs.
    pub client_cpu_us_per_query: Option<f64>,
    /// CPU time of the server for each response, including late responses, in µs.
    pub server_cpu_us_per_query: Option<f64>,
    /// Part of this CPU time in user mode, in µs.
    pub server_user_us_per_query: Option<f64>,
    /// Part of this CPU time in the kernel, in µs.
    pub server_system_us_per_query: Option<f64>,
    /// Share of the CPU time of all CPUs that other programs and other virtual machines used, from 0
    /// to 1. The server counts as another program if its process is not known.
    pub others_cpu: Option<f64>,
    /// What limited the load; `None` if the process of the server is not known and the generator was
    /// not the limit.
    pub limited_by: Option<Limit>,
    /// Resident memory of the server after the load, in KiB.
    pub server_resident_kib: Option<u64>,
    /// Proportional set size of the server after the load, in KiB.
    pub server_proportional_kib: Option<u64>,
}

fn mean(total: u64, count: u64) -> Option<f64> {
    (count > 0).then(|| total as f64 / count as f64)
}

/// Returns a name server identifier as text, or in hexadecimal if it is not printable.
fn nsid_text(nsid: &[u8]) -> String {
    let is_text = !nsid.starts_with(b"0x") && nsid.iter().all(|octet| matches!(octet, b' '..=b'~'));
    if is_text {
        return nsid.iter().copied().map(char::from).collect();
    }
    nsid.iter().fold("0x".to_owned(), |text, octet| format!("{text}{octet:02x}"))
}

/// Creates the report. `is_scheduled` is true if each query had a time at which it was due.
pub(super) fn build_report(
    options: &LoadOptions,
    tally: &Tally,
    use_of_cpu: &CpuUse,
    is_scheduled: bool,
) -> LoadReport {
    let received = tally.received();
    // Each query of an open loop has an interval of the schedule, including the last one: 100
    // queries at 100 queries per second take one second, although the last one is sent after 0.99
    // s.
    let due = (tally.sent + tally.unsent) as f64;
    let seconds = tally.duration().as_secs_f64().max(options.rate.map_or(0.0, |rate| due / rate));
    let per_answer = |total: f64| if received == 0 { 0.0 } else { total / received as f64 };
    let answers = received + tally.late;
    let cpu = |part: fn(process::CpuTime) -> u64| {
        use_of_cpu.server.filter(|_| answers > 0).map(|spent| part(spent) as f64 / answers as f64)
    };
    let generator_us = tally.thread_cpu.as_secs_f64() * 1e6;
    let memory = options.server_pid.and_then(process::memory);
    LoadReport {
        rate: options.rate,
        arrivals: options.rate.map(|_| Arrivals::name(options.arrivals)),
        sent: tally.sent,
        received,
        late: tally.late,
        lost: tally.lost,
        unsent: tally.unsent,
        unexpected: tally.unexpected,
        refused: tally.refused,
        transport: options.transport.name(),
        connections: tally.connections,
        connections_failed: tally.connections_failed,
        seconds,
        qps: if seconds > 0.0 { received as f64 / seconds } else { 0.0 },
        rcodes: tally.rcodes(),
        truncated: tally.truncated,
        followed: options.follow_truncated.then_some(tally.followed),
        truncated_octets_mean: mean(tally.truncated_udp_octets, tally.truncated_udp),
        followed_octets_mean: mean(tally.followed_octets, tally.followed),
        nsids: tally.inspection.nsids.iter().map(|(nsid, count)| (nsid_text(nsid), *count)).collect(),
        nsids_other: tally.inspection.other_nsids,
        server_cookies: tally.inspection.server_cookies,
        bad_cookies: tally.inspection.bad_cookies,
        samples: tally.inspection.samples.clone(),
        validation: None,
        response_octets_mean: per_answer(tally.octets as f64),
        response_octets_max: tally.octets_max,
        latency_us: tally.latencies.summary(),
        lateness_us: tally.lateness.summary(),
        latency_histogram_ns: tally.latencies.buckets(),
        client_cpu_us_per_query: (tally.sent_with_warm_up > 0)
            .then(|| generator_us / tally.sent_with_warm_up as f64),
        server_cpu_us_per_query: cpu(|time| time.user_us + time.system_us),
        server_user_us_per_query: cpu(|time| time.user_us),
        server_system_us_per_query: cpu(|time| time.system_us),
        others_cpu: use_of_cpu.others,
        limited_by: limit(options, tally, use_of_cpu, is_scheduled),
        server_resident_kib: memory.map(|memory| memory.resident_kib),
        server_proportional_kib: memory.and_then(|memory| memory.proportional_kib),
    }
}

/// Returns what limited the load. `is_scheduled` is true if each query had a time at which it was
/// due.
fn limit(options: &LoadOptions, tally: &Tally, use_of_cpu: &CpuUse, is_scheduled: bool) -> Option<Limit> {
    let seconds = tally.duration().as_secs_f64();
    let server = use_of_cpu.busiest_thread.filter(|_| seconds > 0.0).map(|cpu| cpu.as_secs_f64() / seconds);
    let cpu = tally.thread_cpu.as_secs_f64() / options.threads as f64;
    let generator = cpu / (options.warm_up.as_secs_f64() + seconds);
    // A generator that polls is always busy.
    let does_poll = is_scheduled && options.polls();
    let generator = Some(generator).filter(|share| share.is_finite() && !does_poll);
    let unlimited = if is_scheduled && reaches_rate(options, tally) { Limit::Rate } else { Limit::Other };
    Limit::of_load(server, generator, unlimited)
}

/// Whether the queries of an open loop were answered, as fast as they were due.
fn reaches_rate(options: &LoadOptions, tally: &Tally) -> bool {
    let due = (tally.sent + tally.unsent) as f64;
    let received = tally.received() as f64;
    let duration = tally.duration().as_secs_f64();
    // At random times, fewer queries than the rate requests can be due.
    let is_on_time = tally.due_duration().as_secs_f64() >= RESPONSE_RATIO_MIN * duration
        || options.rate.is_some_and(|rate| received >= RESPONSE_RATIO_MIN * rate * duration.max(due / rate));
    is_on_time && received >= RESPONSE_RATIO_MIN * due
}

#[cfg(test)]
mod tests {
    use super::super::tests::options;
    use super::*;
    use crate::load::slots::QueryTimes;
    use std::time::Duration;

    const MS: u64 = 1_000_000;

    /// One query in each of 1000 ms: `received` answers after `latency` ms, then late answers and
    /// lost queries; `unsent` queries are due after them.
    fn tally(received: u64, latency: u64, late: u64, unsent: u64) -> Tally {
        let mut tally = Tally::new(0);
        for at in 0..1000 - unsent {
            let times = QueryTimes { due: at * MS, sent: at * MS };
            tally.count_sent(times, true);
            if at < received {
                tally.count_answer(times, (at + latency) * MS, &[0, 0, 0x80, 0]);
            } else {
                tally.count_lost(times);
                if at < received + late {
                    tally.count_late(times);
                }
            }
        }
        (1000 - unsent..1000).for_each(|at| tally.count_unsent(at * MS));
        tally.thread_cpu = Duration::from_millis(500);
        tally
    }

    fn limit_of(change: fn(&mut LoadOptions), tally: &Tally, server_share: f64) -> Option<Limit> {
        let mut options = options(([127, 0, 0, 1], 53).into(), "example A", 1);
        options.rate = Some(1000.0);
        change(&mut options);
        let busiest_thread = Some(tally.duration().mul_f64(server_share));
        let is_scheduled = options.rate.is_some();
        limit(&options, tally, &CpuUse { busiest_thread, ..CpuUse::default() }, is_scheduled)
    }

    #[test]
    fn the_rate_is_the_limit_only_if_it_was_reached() {
        let with_sleep: fn(&mut LoadOptions) = |options| options.may_poll = false;
        let cases = [
            ("reached", tally(1000, 1, 0, 0), Limit::Rate),
            ("1 % lost", tally(990, 1, 0, 0), Limit::Rate),
            ("5 % lost", tally(950, 1, 0, 0), Limit::Other),
            ("5 % late", tally(950, 1, 50, 0), Limit::Other),
            // The window is full because responses are missing, not because of the generator.
            ("5 % unsent", tally(950, 1, 0, 50), Limit::Other),
            ("answered too slowly", tally(1000, 100, 0, 0), Limit::Other),
        ];
        for (name, tally, expected) in cases {
            assert_eq!(limit_of(with_sleep, &tally, 0.5), Some(expected), "{name}");
            assert_eq!(limit_of(with_sleep, &tally, 0.9), Some(Limit::Server), "{name}");
        }
        let fewer: fn(&mut LoadOptions) = |options| options.rate = Some(1200.0);
        assert_eq!(limit_of(fewer, &tally(1000, 1, 0, 0), 0.5), Some(Limit::Rate));
    }

    #[test]
    fn a_busy_generator_is_the_limit_unless_it_polls() {
        let busy = |mut tally: Tally| {
            tally.thread_cpu = Duration::from_millis(990);
            tally
        };
        let sleeps: fn(&mut LoadOptions) = |options| options.may_poll = false;
        let has_too_few_cpus: fn(&mut LoadOptions) = |options| {
            options.may_poll = true;
            options.threads = 100_000;
        };
        for tally in [tally(1000, 1, 0, 0), tally(900, 1, 0, 100)] {
            assert_eq!(limit_of(sleeps, &busy(tally.clone()), 0.5), Some(Limit::LoadGenerator));
            let mut all_threads = tally;
            all_threads.thread_cpu = Duration::from_millis(990) * 100_000;
            assert_eq!(limit_of(has_too_few_cpus, &all_threads, 0.5), Some(Limit::LoadGenerator));
        }
        let polls: fn(&mut LoadOptions) = |options| (options.may_poll, options.threads) = (true, 0);
        let mut options = options(([127, 0, 0, 1], 53).into(), "example A", 1);
        polls(&mut options);
        assert!(options.polls(), "there is a CPU");
        assert_eq!(limit_of(polls, &busy(tally(1000, 1, 0, 0)), 0.5), Some(Limit::Rate));
        assert_eq!(limit_of(polls, &busy(tally(900, 1, 0, 100)), 0.5), Some(Limit::Other));
    }

    #[test]
    fn a_closed_loop_has_no_rate() {
        let closed: fn(&mut LoadOptions) = |options| options.rate = None;
        let mut tally = tally(1000, 1, 0, 0);
        assert_eq!(limit_of(closed, &tally, 0.5), Some(Limit::Other));
        assert_eq!(limit_of(closed, &tally, 0.9), Some(Limit::Server));
        // A closed loop does not poll.
        tally.thread_cpu = Duration::from_millis(990);
        assert_eq!(limit_of(closed, &tally, 0.5), Some(Limit::LoadGenerator));
        assert_eq!(limit_of(closed, &Tally::new(0), 0.5), None);
    }
}
