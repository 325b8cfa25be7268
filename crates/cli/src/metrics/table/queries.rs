//! Metrics of queries and other messages: received, answered and dropped.

use super::{
    Metric, MetricKind, Sample, Value, add_by_transport, add_named_by_transport, by_transport, count_sample,
};
use crate::metrics::Snapshot;
use nonesuch_server::statistics::{
    CookieResult, DropReason, LATENCY_BOUNDS_NS, Sizes, TransportTotals, TsigResult,
};
use std::borrow::Cow;

/// The rows.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "nonesuch_queries",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport", "type"],
        help: "Answered queries by type, transfers included; types above 257 (CAA) are counted as OTHER",
        collect: queries,
    },
    Metric {
        name: "nonesuch_responses",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport", "rcode"],
        help: "Responses to queries, by response code",
        collect: responses,
    },
    Metric {
        name: "nonesuch_truncated_responses",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Responses with the TC flag, including those truncated by rate limiting",
        collect: |snapshot, out| add_by_transport(snapshot, out, |sum| sum.truncated),
    },
    Metric {
        name: "nonesuch_edns_queries",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Queries with EDNS",
        collect: |snapshot, out| add_by_transport(snapshot, out, |sum| sum.edns),
    },
    Metric {
        name: "nonesuch_dnssec_ok_queries",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Queries with the DO flag",
        collect: |snapshot, out| add_by_transport(snapshot, out, |sum| sum.dnssec_ok),
    },
    Metric {
        name: "nonesuch_query_size",
        kind: MetricKind::Histogram,
        unit: "bytes",
        labels: &["transport"],
        help: "Size of query messages",
        collect: |snapshot, out| sizes(snapshot, out, &QUERY_SIZES, |sum| &sum.query_sizes),
    },
    Metric {
        name: "nonesuch_response_size",
        kind: MetricKind::Histogram,
        unit: "bytes",
        labels: &["transport"],
        help: "Size of responses to queries; a transfer over TCP has none",
        collect: |snapshot, out| sizes(snapshot, out, &RESPONSE_SIZES, |sum| &sum.response_sizes),
    },
    Metric {
        name: "nonesuch_response_duration",
        kind: MetricKind::Histogram,
        unit: "seconds",
        labels: &["transport"],
        help: "Time from the system call that received the batch of queries to the one that sent the response; in a resolver, only of responses that were not in the cache",
        collect: durations,
    },
    Metric {
        name: "nonesuch_other_requests",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport", "opcode", "rcode"],
        help: "Answered messages that are not valid queries, by opcode and response code: NOTIFY, UPDATE, malformed messages",
        collect: other_requests,
    },
    Metric {
        name: "nonesuch_dropped",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport", "reason"],
        help: "Messages without a response, by reason",
        collect: dropped,
    },
    Metric {
        name: "nonesuch_rate_limit_slips",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Responses that rate limiting replaced with truncated responses",
        collect: |snapshot, out| add_by_transport(snapshot, out, |sum| sum.slips),
    },
    Metric {
        name: "nonesuch_prohibited",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Queries answered with REFUSED because allow-query does not allow the client",
        collect: |snapshot, out| add_by_transport(snapshot, out, |sum| sum.prohibited),
    },
    Metric {
        name: "nonesuch_cookies",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport", "outcome"],
        help: "Queries with a DNS cookie, by outcome",
        collect: |snapshot, out| {
            add_named_by_transport(snapshot, out, |sum| {
                CookieResult::ALL.map(CookieResult::name).into_iter().zip(sum.cookies).collect()
            });
        },
    },
    Metric {
        name: "nonesuch_tsig",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport", "outcome"],
        help: "Messages with a TSIG record, by outcome",
        collect: |snapshot, out| {
            add_named_by_transport(snapshot, out, |sum| {
                TsigResult::ALL.map(TsigResult::name).into_iter().zip(sum.tsig).collect()
            });
        },
    },
];

/// Upper bounds of the sizes of queries. [`Sizes::up_to`] is exact for them.
const QUERY_SIZES: [usize; 12] = [32, 48, 64, 80, 96, 112, 128, 192, 256, 512, 1232, 4096];
/// Upper bounds of the sizes of responses.
const RESPONSE_SIZES: [usize; 15] =
    [64, 128, 192, 256, 384, 512, 768, 1024, 1232, 2048, 4096, 8192, 16384, 32768, 65536];

fn queries(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, sum) in by_transport(snapshot) {
        for (rtype, times) in &sum.types {
            let name = rtype.map_or(Cow::Borrowed("OTHER"), |rtype| rtype.to_string().into());
            out.push(count_sample(vec![transport.clone(), name], *times));
        }
    }
}

fn responses(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, sum) in by_transport(snapshot) {
        for (rcode, times) in &sum.rcodes {
            out.push(count_sample(vec![transport.clone(), rcode.to_string().into()], *times));
        }
    }
}

fn sizes(
    snapshot: &Snapshot,
    out: &mut Vec<Sample>,
    bounds: &[usize],
    of: impl Fn(&TransportTotals) -> &Sizes,
) {
    for (transport, sum) in by_transport(snapshot) {
        let sizes = of(sum);
        let mut counted = 0;
        let buckets = bounds.iter().map(|bound| {
            let up_to = sizes.up_to(*bound);
            (*bound as f64, up_to - std::mem::replace(&mut counted, up_to))
        });
        let mut buckets: Vec<(f64, u64)> = buckets.collect();
        buckets.push((f64::MAX, sizes.total() - counted));
        let value = Value::Histogram { sum: sizes.octets as f64, buckets };
        out.push(Sample { labels: vec![transport], value });
    }
}

fn durations(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, sum) in by_transport(snapshot) {
        let bounds = LATENCY_BOUNDS_NS.iter().map(|bound| *bound as f64 / 1e9).chain([f64::MAX]);
        let buckets = bounds.zip(sum.latencies.buckets).collect();
        let value = Value::Histogram { sum: sum.latencies.nanoseconds as f64 / 1e9, buckets };
        out.push(Sample { labels: vec![transport], value });
    }
}

fn other_requests(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, sum) in by_transport(snapshot) {
        for ((opcode, rcode), times) in &sum.other_messages {
            let labels = vec![transport.clone(), opcode_name(*opcode), rcode.to_string().into()];
            out.push(count_sample(labels, *times));
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
    add_named_by_transport(snapshot, out, |sum| {
        DropReason::ALL.map(DropReason::name).into_iter().zip(sum.drops).collect()
    });
    let udp = &snapshot.udp;
    for (reason, times) in
        [("too_long", udp.oversized), ("receive_error", udp.receive_errors), ("send_error", udp.send_errors)]
    {
        out.push(count_sample(vec!["udp".into(), reason.into()], times));
    }
    let busy = snapshot.resolver.as_ref().map(|resolver| resolver.discarded_queries);
    out.extend(busy.map(|times| count_sample(vec!["udp".into(), "busy".into()], times)));
}
