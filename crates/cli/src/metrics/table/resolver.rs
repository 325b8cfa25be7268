//! Metrics of a resolver: its cache and its queries to servers.

use super::{Metric, MetricKind, Sample, count_sample, number_sample};
use crate::metrics::{ResolverCounters, Snapshot};

/// The rows.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "nonesuch_cache_lookups",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["result"],
        help: "Lookups in the cache, several for most queries: hit, miss",
        collect: |snapshot, out| {
            counts(snapshot, out, |counters| {
                vec![("hit", counters.cache.hits), ("miss", counters.cache.misses)]
            });
        },
    },
    Metric {
        name: "nonesuch_cache_insertions",
        kind: MetricKind::Counter,
        unit: "",
        labels: &[],
        help: "RRsets, negative answers and failures stored in the cache",
        collect: |snapshot, out| count(snapshot, out, |counters| counters.cache.insertions),
    },
    Metric {
        name: "nonesuch_cache_evictions",
        kind: MetricKind::Counter,
        unit: "",
        labels: &[],
        help: "Entries of the cache that were removed before they expired, to make room for others",
        collect: |snapshot, out| count(snapshot, out, |counters| counters.cache.evictions),
    },
    Metric {
        name: "nonesuch_cache_entries",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &[],
        help: "Entries of the cache, including expired entries whose memory is not used again yet",
        collect: |snapshot, out| gauge(snapshot, out, |counters| counters.cache.entries),
    },
    Metric {
        name: "nonesuch_cache_memory",
        kind: MetricKind::Gauge,
        unit: "bytes",
        labels: &[],
        help: "Memory of the cache",
        collect: |snapshot, out| gauge(snapshot, out, |counters| counters.cache.octets),
    },
    Metric {
        name: "nonesuch_upstream_queries",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Queries sent to servers",
        collect: |snapshot, out| {
            counts(snapshot, out, |counters| {
                vec![("udp", counters.upstream.datagrams_out), ("tcp", counters.upstream.messages_out)]
            });
        },
    },
    Metric {
        name: "nonesuch_upstream_responses",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Messages received from queried servers",
        collect: |snapshot, out| {
            counts(snapshot, out, |counters| {
                vec![("udp", counters.upstream.datagrams_in), ("tcp", counters.upstream.messages_in)]
            });
        },
    },
    Metric {
        name: "nonesuch_upstream_failures",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["reason"],
        help: "Queries to servers that could not be sent, or whose connection ended, and messages that answer no query",
        collect: |snapshot, out| counts(snapshot, out, failures),
    },
    Metric {
        name: "nonesuch_upstream_connections",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["outcome"],
        help: "Queries over TCP by their connection: opened, reused",
        collect: |snapshot, out| {
            counts(snapshot, out, |counters| {
                let upstream = counters.upstream;
                vec![("opened", upstream.connections_opened), ("reused", upstream.connections_reused)]
            });
        },
    },
    Metric {
        name: "nonesuch_upstream_open_sockets",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &["transport"],
        help: "Open sockets for queries to servers",
        collect: |snapshot, out| {
            let Some(ResolverCounters { upstream, .. }) = &snapshot.resolver else { return };
            for (transport, open) in [("udp", upstream.open_sockets), ("tcp", upstream.open_connections)] {
                out.push(number_sample(vec![transport.into()], open as f64));
            }
        },
    },
    Metric {
        name: "nonesuch_upstream_servers",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &[],
        help: "Servers of which the round-trip time and other properties are stored",
        collect: |snapshot, out| gauge(snapshot, out, |counters| counters.servers.servers as u64),
    },
    Metric {
        name: "nonesuch_model_queries",
        kind: MetricKind::Counter,
        unit: "",
        labels: &[],
        help: "Queries to servers, for the cost model (Q)",
        collect: |snapshot, out| count(snapshot, out, |counters| counters.model.queries),
    },
    Metric {
        name: "nonesuch_model_responses",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["content"],
        help: "Responses of servers, for the cost model: all (R), signed (R_s), truncated",
        collect: |snapshot, out| {
            counts(snapshot, out, |counters| {
                let model = &counters.model;
                vec![
                    ("all", model.responses),
                    ("signed", model.signed_responses),
                    ("truncated", model.truncated),
                ]
            });
        },
    },
    Metric {
        name: "nonesuch_model_signatures",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["algorithm"],
        help: "Signatures in responses of servers, for the cost model (S)",
        collect: |snapshot, out| by_algorithm(snapshot, out, |(_, signatures, _)| signatures),
    },
    Metric {
        name: "nonesuch_model_verifications",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["algorithm"],
        help: "Signatures that were verified, valid or not, for the cost model (S_v)",
        collect: |snapshot, out| by_algorithm(snapshot, out, |(.., verified)| verified),
    },
    Metric {
        name: "nonesuch_trust_zones",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &[],
        help: "Zones whose keys or insecurity are known",
        collect: |snapshot, out| gauge(snapshot, out, |counters| counters.secure_zones),
    },
    Metric {
        name: "nonesuch_negative_trust_anchors",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &[],
        help: "Negative trust anchors, whose zones are not validated (RFC 7646)",
        collect: |snapshot, out| gauge(snapshot, out, |counters| counters.negative_anchors),
    },
    Metric {
        name: "nonesuch_denial_records",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &[],
        help: "Validated denial records that answer queries for other names",
        collect: |snapshot, out| gauge(snapshot, out, |counters| counters.denials.entries as u64),
    },
    Metric {
        name: "nonesuch_denial_lookups",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["result"],
        help: "Lookups of denial records of earlier responses: hit, miss",
        collect: |snapshot, out| {
            counts(snapshot, out, |counters| {
                vec![("hit", counters.denials.hits), ("miss", counters.denials.misses)]
            });
        },
    },
];

/// Adds a sample for each algorithm.
fn by_algorithm(snapshot: &Snapshot, out: &mut Vec<Sample>, value: fn((u8, u64, u64)) -> u64) {
    let algorithms = snapshot.resolver.iter().flat_map(|counters| &counters.model.algorithms);
    out.extend(algorithms.map(|row| count_sample(vec![row.0.to_string().into()], value(*row))));
}

/// Why queries to servers fail.
fn failures(counters: &ResolverCounters) -> Vec<(&'static str, u64)> {
    let upstream = &counters.upstream;
    vec![
        ("refused", upstream.refused),
        ("unreachable", upstream.unreachable),
        ("no_resource", upstream.local_failures),
        ("wrong_address", upstream.foreign_datagrams),
        ("wrong_message", upstream.broken_connections),
    ]
}

fn count(snapshot: &Snapshot, out: &mut Vec<Sample>, value: fn(&ResolverCounters) -> u64) {
    out.extend(snapshot.resolver.iter().map(|counters| count_sample(vec![], value(counters))));
}

fn gauge(snapshot: &Snapshot, out: &mut Vec<Sample>, value: fn(&ResolverCounters) -> u64) {
    out.extend(snapshot.resolver.iter().map(|counters| number_sample(vec![], value(counters) as f64)));
}

/// Adds a sample for each value of the label.
fn counts(
    snapshot: &Snapshot,
    out: &mut Vec<Sample>,
    values: fn(&ResolverCounters) -> Vec<(&'static str, u64)>,
) {
    let values = snapshot.resolver.iter().flat_map(values);
    out.extend(values.map(|(label, value)| count_sample(vec![label.into()], value)));
}
