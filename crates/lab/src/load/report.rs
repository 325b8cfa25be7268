//! What came of the load.

use std::collections::BTreeMap;

use serde::Serialize;

use super::tally::Tally;
use super::{Arrivals, LoadOptions};
use crate::process::{self, CpuTime};

/// Durations in µs. Percentiles are at most 0.1 % too high.
#[derive(Debug, Clone, Copy, PartialEq, Default, Serialize)]
pub struct Latency {
    /// The shortest.
    pub min: f64,
    /// The mean.
    pub mean: f64,
    /// Half of them took no longer.
    pub p50: f64,
    /// 90 of 100 took no longer.
    pub p90: f64,
    /// 99 of 100 took no longer.
    pub p99: f64,
    /// 999 of 1000 took no longer.
    pub p99_9: f64,
    /// 9,999 of 10,000 took no longer.
    pub p99_99: f64,
    /// The longest.
    pub max: f64,
}

/// What came of the load. `sent` is `received` and `lost` together. What was due during the warm-up counts nowhere, but in
/// `client_cpu_us_per_query`.
#[derive(Debug, Clone, PartialEq, Default, Serialize)]
pub struct LoadReport {
    /// The rate asked for, queries a second: the loop was open. Nothing for a closed loop.
    pub rate: Option<f64>,
    /// How the queries of an open loop followed each other.
    pub arrivals: Option<&'static str>,
    /// Queries sent.
    pub sent: u64,
    /// Queries answered in time.
    pub received: u64,
    /// Queries not answered in time.
    pub lost: u64,
    /// Queries of an open loop that were due and never sent: as many as may be were outstanding. They are not among
    /// `sent`.
    pub unsent: u64,
    /// Datagrams that answered no outstanding query: late, doubled, or no answers at all. They count nowhere else.
    pub unexpected: u64,
    /// Times that the system refused to send a query, or told that nobody listened, after answers had come.
    pub refused: u64,
    /// From the first query sent to the last answer received; of an open loop at least to the end of the last query's
    /// interval.
    pub seconds: f64,
    /// Answers a second.
    pub qps: f64,
    /// Answers by response code, as the header has it (without EDNS's upper bits).
    pub rcodes: BTreeMap<String, u64>,
    /// Answers with TC set.
    pub truncated: u64,
    /// Mean size of an answer, octets of DNS message.
    pub response_octets_mean: f64,
    /// Size of the largest answer, octets.
    pub response_octets_max: u64,
    /// From when a query was to be sent until its answer was taken from the kernel; nothing without an answer. In a
    /// closed loop a query is to be sent when there is room for it: with a full window that is the time in queues.
    pub latency_us: Option<Latency>,
    /// How late the queries of an open loop were handed to the kernel: what of the latency is the generator's own fault,
    /// or comes of a full window.
    pub lateness_us: Option<Latency>,
    /// The latencies, from the shortest: the longest of a bucket, ns, and how many are in it. Buckets are as wide as a
    /// thousandth of their value; empty ones are left out.
    pub latency_histogram_ns: Vec<(u64, u64)>,
    /// CPU time of the generator's threads for each query that they sent, µs.
    pub client_cpu_us_per_query: Option<f64>,
    /// CPU time of the server for each answer, µs.
    pub server_cpu_us_per_query: Option<f64>,
    /// The part of it in the program.
    pub server_user_us_per_query: Option<f64>,
    /// The part of it in the kernel.
    pub server_system_us_per_query: Option<f64>,
    /// The server's resident memory after the load, KiB.
    pub server_resident_kib: Option<u64>,
    /// The same with shared pages by their share, KiB.
    pub server_proportional_kib: Option<u64>,
}

/// The report of what was counted while the server spent `spent`.
pub(super) fn report(options: &LoadOptions, tally: &Tally, spent: Option<CpuTime>) -> LoadReport {
    let received = tally.received();
    // Each query of an open loop stands for an interval of the schedule, the last one too: a hundred at a hundred a second
    // take a second, though the last is sent after 0.99.
    let due = (tally.sent + tally.unsent) as f64;
    let seconds = tally.duration().as_secs_f64().max(options.rate.map_or(0.0, |rate| due / rate));
    let per_answer = |total: f64| if received == 0 { 0.0 } else { total / received as f64 };
    let cpu =
        |part: fn(CpuTime) -> u64| spent.filter(|_| received > 0).map(|spent| per_answer(part(spent) as f64));
    let own = tally.own_cpu.as_secs_f64() * 1e6;
    let memory = options.server_pid.and_then(process::memory);
    LoadReport {
        rate: options.rate,
        arrivals: options.rate.map(|_| Arrivals::name(options.arrivals)),
        sent: tally.sent,
        received,
        lost: tally.lost,
        unsent: tally.unsent,
        unexpected: tally.unexpected,
        refused: tally.refused,
        seconds,
        qps: if seconds > 0.0 { received as f64 / seconds } else { 0.0 },
        rcodes: tally.rcodes(),
        truncated: tally.truncated,
        response_octets_mean: per_answer(tally.octets as f64),
        response_octets_max: tally.octets_max,
        latency_us: tally.latencies.summary(),
        lateness_us: tally.lateness.summary(),
        latency_histogram_ns: tally.latencies.buckets(),
        client_cpu_us_per_query: (tally.all_sent > 0).then(|| own / tally.all_sent as f64),
        server_cpu_us_per_query: cpu(|time| time.user_us + time.system_us),
        server_user_us_per_query: cpu(|time| time.user_us),
        server_system_us_per_query: cpu(|time| time.system_us),
        server_resident_kib: memory.map(|memory| memory.resident_kib),
        server_proportional_kib: memory.and_then(|memory| memory.proportional_kib),
    }
}
