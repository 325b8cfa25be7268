//! The table of metrics: name, kind, unit, labels, what it says, and where its samples come from. The manual page and
//! `docs/metrics.md` are held against it by tests.

use super::Snapshot;
use super::process::Process;
use nonesuch_authoritative::statistics::{Carrier, CarrierSum, Cookie, Dropped, LATENCY_BOUNDS, Sizes, Tsig};
use nonesuch_dnssec::online::Operation;
use nonesuch_net::tcp::TcpCounters;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// It only grows.
    Counter,
    /// It goes up and down.
    Gauge,
    /// Numbers of observations up to each of several bounds.
    Histogram,
    /// Words in labels, always 1.
    Info,
}

/// A row of the table.
pub(super) struct Metric {
    /// The name without unit and suffix.
    pub(super) name: &'static str,
    pub(super) kind: Kind,
    /// `bytes` or `seconds`, or nothing.
    pub(super) unit: &'static str,
    /// The names of its labels.
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
    /// Adds its samples.
    pub(super) collect: fn(&Snapshot, &mut Vec<Sample>),
}

impl Metric {
    /// The name under which samples are found; of histograms without `_bucket`, `_sum` and `_count`.
    pub(super) fn full_name(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!("_{}", self.unit) };
        let suffix = match self.kind {
            Kind::Counter => "_total",
            Kind::Info => "_info",
            Kind::Gauge | Kind::Histogram => "",
        };
        format!("{}{unit}{suffix}", self.name)
    }
}

/// A value with its labels' values, in the order of the row's labels.
pub(super) struct Sample {
    pub(super) labels: Vec<Cow<'static, str>>,
    pub(super) value: Value,
}

pub(super) enum Value {
    Count(u64),
    Number(f64),
    /// The sum, and for each upper bound the observations between it and the one before.
    Histogram {
        sum: f64,
        cells: Vec<(f64, u64)>,
    },
}

/// All metrics, in the order in which they are written.
pub(super) const TABLE: &[Metric] = &[
    Metric {
        name: "nonesuch_queries",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport", "type"],
        help: "Queries that were answered, by type. Types above 257 (CAA) are counted together as OTHER",
        collect: queries,
    },
    Metric {
        name: "nonesuch_responses",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport", "rcode"],
        help: "Responses to queries, by response code",
        collect: responses,
    },
    Metric {
        name: "nonesuch_truncated_responses",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Responses with the flag TC, those that the rate limit truncates included",
        collect: |snapshot, out| each(snapshot, out, |sum| sum.truncated),
    },
    Metric {
        name: "nonesuch_edns_queries",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Queries with EDNS",
        collect: |snapshot, out| each(snapshot, out, |sum| sum.edns),
    },
    Metric {
        name: "nonesuch_dnssec_ok_queries",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Queries with the flag DO, which ask for signatures",
        collect: |snapshot, out| each(snapshot, out, |sum| sum.dnssec_ok),
    },
    Metric {
        name: "nonesuch_query_size",
        kind: Kind::Histogram,
        unit: "bytes",
        labels: &["transport"],
        help: "Sizes of queries",
        collect: |snapshot, out| sizes(snapshot, out, &QUERY_SIZES, |sum| &sum.query_sizes),
    },
    Metric {
        name: "nonesuch_response_size",
        kind: Kind::Histogram,
        unit: "bytes",
        labels: &["transport"],
        help: "Sizes of responses to queries",
        collect: |snapshot, out| sizes(snapshot, out, &RESPONSE_SIZES, |sum| &sum.response_sizes),
    },
    Metric {
        name: "nonesuch_response_duration",
        kind: Kind::Histogram,
        unit: "seconds",
        labels: &["transport"],
        help: "From the return of the system call that received a batch of messages to the return of the one that sent the answer",
        collect: durations,
    },
    Metric {
        name: "nonesuch_other_requests",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport", "opcode", "rcode"],
        help: "Messages other than queries that could be read, by opcode and response code: NOTIFY, UPDATE, malformed ones",
        collect: other_requests,
    },
    Metric {
        name: "nonesuch_dropped",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport", "reason"],
        help: "Messages that were not answered",
        collect: dropped,
    },
    Metric {
        name: "nonesuch_rate_limit_slips",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Responses that the rate limit replaced by truncated ones",
        collect: |snapshot, out| each(snapshot, out, |sum| sum.slips),
    },
    Metric {
        name: "nonesuch_cookies",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport", "outcome"],
        help: "Queries with a DNS cookie",
        collect: |snapshot, out| {
            by_name(snapshot, out, |sum| {
                Cookie::ALL.map(Cookie::name).into_iter().zip(sum.cookies).collect()
            });
        },
    },
    Metric {
        name: "nonesuch_tsig",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport", "outcome"],
        help: "Messages with TSIG",
        collect: |snapshot, out| {
            by_name(snapshot, out, |sum| Tsig::ALL.map(Tsig::name).into_iter().zip(sum.tsig).collect());
        },
    },
    Metric {
        name: "nonesuch_connections",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport", "outcome"],
        help: "Connections accepted, and those that were refused, had to make room, were too slow, or broke",
        collect: connections,
    },
    Metric {
        name: "nonesuch_open_connections",
        kind: Kind::Gauge,
        unit: "",
        labels: &["transport"],
        help: "Connections that are open",
        collect: open_connections,
    },
    Metric {
        name: "nonesuch_udp_system_calls",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "System calls that received and sent datagrams",
        collect: |snapshot, out| out.push(count(vec![], snapshot.udp.system_calls)),
    },
    Metric {
        name: "nonesuch_online_operations",
        kind: Kind::Counter,
        unit: "",
        labels: &["mechanism", "algorithm"],
        help: "Private-key operations: signatures over the zone's data (data), over records of denial, and NSEC5 proofs",
        collect: online_operations,
    },
    Metric {
        name: "nonesuch_online_cache_hits",
        kind: Kind::Counter,
        unit: "",
        labels: &["mechanism", "algorithm"],
        help: "Signatures and proofs asked for that were in the cache",
        collect: |snapshot, out| lookups(out, &snapshot.online.hits),
    },
    Metric {
        name: "nonesuch_online_cache_misses",
        kind: Kind::Counter,
        unit: "",
        labels: &["mechanism", "algorithm"],
        help: "Signatures and proofs asked for that had to be made",
        collect: |snapshot, out| lookups(out, &snapshot.online.misses),
    },
    Metric {
        name: "nonesuch_online_stored_proofs",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "NSEC5 proofs asked for that are stored beside the zone",
        collect: |snapshot, out| out.push(count(vec![], snapshot.online.proofs_stored)),
    },
    Metric {
        name: "nonesuch_online_batches",
        kind: Kind::Counter,
        unit: "",
        labels: &[],
        help: "Times that what a batch of queries wants was made together",
        collect: |snapshot, out| out.push(count(vec![], snapshot.online.batches)),
    },
    Metric {
        name: "nonesuch_online_unmade",
        kind: Kind::Counter,
        unit: "",
        labels: &["reason"],
        help: "Signatures and proofs that were not made: the batch was full, or the library failed",
        collect: |snapshot, out| {
            out.push(count(vec!["full".into()], snapshot.online.refused));
            out.push(count(vec!["failed".into()], snapshot.online.failed));
        },
    },
    Metric {
        name: "nonesuch_online_over_budget",
        kind: Kind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Queries whose signatures or proofs the budget refused to make",
        collect: |snapshot, out| each(snapshot, out, |sum| sum.over_budget),
    },
    Metric {
        name: "nonesuch_online_cache",
        kind: Kind::Gauge,
        unit: "bytes",
        labels: &[],
        help: "What the caches of signatures and proofs take",
        collect: |snapshot, out| out.push(number(vec![], snapshot.online.cache_octets as f64)),
    },
    Metric {
        name: "nonesuch_transfers",
        kind: Kind::Counter,
        unit: "",
        labels: &["direction", "kind", "result"],
        help: "Zone transfers that ended",
        collect: transfers,
    },
    Metric {
        name: "nonesuch_transfer_messages",
        kind: Kind::Counter,
        unit: "",
        labels: &["direction"],
        help: "Messages of zone transfers",
        collect: |snapshot, out| {
            let messages = &snapshot.statistics.transfers.messages;
            out.extend(
                messages.iter().map(|(direction, times)| count(vec![direction.name().into()], *times)),
            );
        },
    },
    Metric {
        name: "nonesuch_transfer",
        kind: Kind::Counter,
        unit: "bytes",
        labels: &["direction"],
        help: "Octets of the messages of zone transfers",
        collect: |snapshot, out| {
            let octets = &snapshot.statistics.transfers.octets;
            out.extend(
                octets.iter().map(|(direction, octets)| count(vec![direction.name().into()], *octets)),
            );
        },
    },
    Metric {
        name: "nonesuch_notifies",
        kind: Kind::Counter,
        unit: "",
        labels: &["direction", "result"],
        help: "NOTIFY messages: those that came, accepted or refused; those that were sent, acknowledged or given up",
        collect: notifies,
    },
    Metric {
        name: "nonesuch_zones",
        kind: Kind::Gauge,
        unit: "",
        labels: &["state"],
        help: "Zones by what becomes of queries for them",
        collect: zones,
    },
    Metric {
        name: "nonesuch_nearest_signature_expiry_timestamp",
        kind: Kind::Gauge,
        unit: "seconds",
        labels: &[],
        help: "When the first signature of all zones expires, in seconds since 1970",
        collect: |snapshot, out| {
            let nearest = snapshot.zones.iter().filter_map(|zone| zone.nearest_expiration).min();
            out.extend(nearest.map(|time| number(vec![], time as f64)));
        },
    },
    Metric {
        name: "nonesuch_zone_serial",
        kind: Kind::Gauge,
        unit: "",
        labels: &["zone"],
        help: "The serial that is served",
        collect: |snapshot, out| each_zone(snapshot, out, |zone| zone.serial.map(f64::from)),
    },
    Metric {
        name: "nonesuch_zone_is_served",
        kind: Kind::Gauge,
        unit: "",
        labels: &["zone"],
        help: "1 where the zone is answered from, 0 where it is not ready, expired or failed",
        collect: |snapshot, out| {
            each_zone(snapshot, out, |zone| Some(f64::from(u8::from(zone.state == "serving"))));
        },
    },
    Metric {
        name: "nonesuch_zone_age",
        kind: Kind::Gauge,
        unit: "seconds",
        labels: &["zone"],
        help: "Since the zone was loaded or transferred",
        collect: |snapshot, out| {
            let age = |loaded_at| snapshot.now.saturating_sub(loaded_at) as f64;
            each_zone(snapshot, out, |zone| zone.loaded_at.map(age));
        },
    },
    Metric {
        name: "nonesuch_zone_nearest_signature_expiry_timestamp",
        kind: Kind::Gauge,
        unit: "seconds",
        labels: &["zone"],
        help: "When the first signature of the zone expires, in seconds since 1970",
        collect: |snapshot, out| {
            each_zone(snapshot, out, |zone| zone.nearest_expiration.map(|time| time as f64));
        },
    },
    Metric {
        name: "nonesuch_zone_records",
        kind: Kind::Gauge,
        unit: "",
        labels: &["zone"],
        help: "Records of the zone",
        collect: |snapshot, out| each_zone(snapshot, out, |zone| zone.records.map(|records| records as f64)),
    },
    Metric {
        name: "nonesuch_dnstap_frames",
        kind: Kind::Counter,
        unit: "",
        labels: &["outcome"],
        help: "Frames of dnstap: written, dropped because a queue was full, lost with a connection or file",
        collect: dnstap_frames,
    },
    Metric {
        name: "nonesuch_build",
        kind: Kind::Info,
        unit: "",
        labels: &["version"],
        help: "The version that runs",
        collect: |_, out| out.push(count(vec![env!("CARGO_PKG_VERSION").into()], 1)),
    },
    Metric {
        name: "process_cpu",
        kind: Kind::Counter,
        unit: "seconds",
        labels: &[],
        help: "CPU time of the process, in user and system mode",
        collect: |_, out| out.extend(Process::cpu_seconds().map(|seconds| number(vec![], seconds))),
    },
    Metric {
        name: "process_resident_memory",
        kind: Kind::Gauge,
        unit: "bytes",
        labels: &[],
        help: "Memory of the process that is resident",
        collect: |_, out| out.extend(Process::resident_octets().map(|octets| number(vec![], octets as f64))),
    },
    Metric {
        name: "process_open_fds",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Open files and sockets of the process",
        collect: |_, out| out.extend(Process::open_files().map(|files| number(vec![], files as f64))),
    },
    Metric {
        name: "process_max_fds",
        kind: Kind::Gauge,
        unit: "",
        labels: &[],
        help: "Files and sockets that the process may open",
        collect: |_, out| out.extend(Process::most_files().map(|files| number(vec![], files as f64))),
    },
    Metric {
        name: "process_start_time",
        kind: Kind::Gauge,
        unit: "seconds",
        labels: &[],
        help: "When the process was started, in seconds since 1970",
        collect: |_, out| out.extend(Process::start_time().map(|seconds| number(vec![], seconds))),
    },
];

/// Bounds of the sizes of queries: ends of cells of [`Sizes`].
const QUERY_SIZES: [usize; 12] = [32, 48, 64, 80, 96, 112, 128, 192, 256, 512, 1232, 4096];
/// Bounds of the sizes of responses.
const RESPONSE_SIZES: [usize; 15] =
    [64, 128, 192, 256, 384, 512, 768, 1024, 1232, 2048, 4096, 8192, 16384, 32768, 65536];

const fn count(labels: Vec<Cow<'static, str>>, value: u64) -> Sample {
    Sample { labels, value: Value::Count(value) }
}

const fn number(labels: Vec<Cow<'static, str>>, value: f64) -> Sample {
    Sample { labels, value: Value::Number(value) }
}

fn carriers(snapshot: &Snapshot) -> impl Iterator<Item = (Cow<'static, str>, &CarrierSum)> {
    Carrier::ALL.into_iter().map(|carrier| (carrier.name().into(), snapshot.statistics.of(carrier)))
}

/// One number for each transport.
fn each(snapshot: &Snapshot, out: &mut Vec<Sample>, value: impl Fn(&CarrierSum) -> u64) {
    out.extend(carriers(snapshot).map(|(transport, sum)| count(vec![transport], value(sum))));
}

/// Several numbers with names for each transport.
fn by_name(
    snapshot: &Snapshot,
    out: &mut Vec<Sample>,
    values: impl Fn(&CarrierSum) -> Vec<(&'static str, u64)>,
) {
    for (transport, sum) in carriers(snapshot) {
        let named = values(sum).into_iter();
        out.extend(named.map(|(name, times)| count(vec![transport.clone(), name.into()], times)));
    }
}

fn queries(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, sum) in carriers(snapshot) {
        for (rtype, times) in &sum.types {
            let name = rtype.map_or(Cow::Borrowed("OTHER"), |rtype| rtype.to_string().into());
            out.push(count(vec![transport.clone(), name], *times));
        }
    }
}

fn responses(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, sum) in carriers(snapshot) {
        for (rcode, times) in &sum.rcodes {
            out.push(count(vec![transport.clone(), rcode.to_string().into()], *times));
        }
    }
}

fn sizes(snapshot: &Snapshot, out: &mut Vec<Sample>, bounds: &[usize], of: impl Fn(&CarrierSum) -> &Sizes) {
    for (transport, sum) in carriers(snapshot) {
        let sizes = of(sum);
        let mut below = 0;
        let cells = bounds.iter().map(|bound| {
            let up_to = sizes.up_to(*bound);
            (*bound as f64, up_to - std::mem::replace(&mut below, up_to))
        });
        let mut cells: Vec<(f64, u64)> = cells.collect();
        cells.push((f64::MAX, sizes.count() - below));
        let value = Value::Histogram { sum: sizes.octets as f64, cells };
        out.push(Sample { labels: vec![transport], value });
    }
}

fn durations(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, sum) in carriers(snapshot) {
        let bounds = LATENCY_BOUNDS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::MAX]);
        let cells = bounds.zip(sum.latencies.cells).collect();
        let value = Value::Histogram { sum: sum.latencies.nanoseconds as f64 / 1e9, cells };
        out.push(Sample { labels: vec![transport], value });
    }
}

fn other_requests(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, sum) in carriers(snapshot) {
        for ((opcode, rcode), times) in &sum.refused {
            let labels = vec![transport.clone(), opcode_name(*opcode), rcode.to_string().into()];
            out.push(count(labels, *times));
        }
    }
}

/// The mnemonic of an opcode in the IANA registry.
fn opcode_name(opcode: u8) -> Cow<'static, str> {
    match opcode {
        0 => "QUERY".into(),
        1 => "IQUERY".into(),
        2 => "STATUS".into(),
        4 => "NOTIFY".into(),
        5 => "UPDATE".into(),
        6 => "DSO".into(),
        number => format!("OPCODE{number}").into(),
    }
}

fn dropped(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    by_name(snapshot, out, |sum| Dropped::ALL.map(Dropped::name).into_iter().zip(sum.drops).collect());
    let udp = &snapshot.udp;
    for (reason, times) in
        [("too_long", udp.oversized), ("receive_error", udp.receive_errors), ("send_error", udp.send_errors)]
    {
        out.push(count(vec!["udp".into(), reason.into()], times));
    }
}

/// What was counted of connections, for each transport that is listened on.
fn by_connection(snapshot: &Snapshot) -> impl Iterator<Item = (Cow<'static, str>, TcpCounters)> {
    let tls = snapshot.tls.map(|counters| ("tls".into(), counters));
    [("tcp".into(), snapshot.tcp)].into_iter().chain(tls)
}

fn open_connections(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    out.extend(
        by_connection(snapshot).map(|(transport, counters)| number(vec![transport], counters.open as f64)),
    );
}

fn connections(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, counters) in by_connection(snapshot) {
        let TcpCounters { accepted, refused, refused_client, evicted, timed_out, broken, .. } = counters;
        for (outcome, times) in [
            ("accepted", accepted),
            // For want of room for anybody, or for this client.
            ("refused", refused + refused_client),
            ("evicted", evicted),
            ("timed_out", timed_out),
            ("broken", broken),
        ] {
            out.push(count(vec![transport.clone(), outcome.into()], times));
        }
    }
}

/// The labels of an operation: the mechanism, or `data`, and the algorithm.
fn operation_labels(operation: Operation) -> Vec<Cow<'static, str>> {
    match operation {
        Operation::SignData(algorithm) => vec!["data".into(), algorithm.to_string().into()],
        Operation::SignDenial(mechanism, algorithm) => {
            vec![mechanism.to_string().into(), algorithm.to_string().into()]
        }
        Operation::Prove(algorithm) => vec!["nsec5".into(), algorithm.to_string().into()],
    }
}

fn online_operations(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    lookups(out, &snapshot.online.operations);
}

fn lookups(out: &mut Vec<Sample>, times: &BTreeMap<Operation, u64>) {
    out.extend(times.iter().map(|(operation, times)| count(operation_labels(*operation), *times)));
}

fn transfers(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for ((direction, kind, result), times) in &snapshot.statistics.transfers.ended {
        let labels = vec![direction.name().into(), kind.name().into(), result.name().into()];
        out.push(count(labels, *times));
    }
}

fn notifies(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for ((direction, accepted), times) in &snapshot.statistics.transfers.notifies {
        let result = if *accepted { "accepted" } else { "refused" };
        out.push(count(vec![direction.name().into(), result.into()], *times));
    }
}

fn zones(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    let mut states = BTreeMap::from(["serving", "not-ready", "expired", "failed"].map(|state| (state, 0)));
    for zone in &snapshot.zones {
        *states.entry(zone.state).or_default() += 1;
    }
    out.extend(states.into_iter().map(|(state, zones)| number(vec![state.into()], f64::from(zones))));
}

/// One number for each zone that has it; none where there are too many zones.
fn each_zone(snapshot: &Snapshot, out: &mut Vec<Sample>, value: impl Fn(&super::ZoneRow) -> Option<f64>) {
    if snapshot.zones.len() <= snapshot.most_zones {
        let known = snapshot.zones.iter().filter_map(|zone| Some((zone.zone.clone(), value(zone)?)));
        out.extend(known.map(|(zone, value)| number(vec![zone.into()], value)));
    }
}

fn dnstap_frames(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    let Some(tap) = &snapshot.tap else { return };
    for (outcome, frames) in [("written", tap.written), ("dropped", tap.dropped), ("lost", tap.lost)] {
        out.push(count(vec![outcome.into()], frames));
    }
}
