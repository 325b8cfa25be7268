//! Metrics of connections and sockets.

use super::{Metric, MetricKind, Sample, count_sample, number_sample};
use crate::metrics::Snapshot;
use nonesuch_net::tcp::TcpCounters;
use std::borrow::Cow;

/// The rows.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "nonesuch_connections",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport", "outcome"],
        help: "Connections by outcome: accepted, refused, evicted to make room, timed out, broken",
        collect: connections,
    },
    Metric {
        name: "nonesuch_open_connections",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &["transport"],
        help: "Open connections",
        collect: open_connections,
    },
    Metric {
        name: "nonesuch_udp_system_calls",
        kind: MetricKind::Counter,
        unit: "",
        labels: &[],
        help: "System calls that received and sent datagrams",
        collect: |snapshot, out| out.push(count_sample(vec![], snapshot.udp.system_calls)),
    },
];

/// The connection counters for each transport that the server listens on.
fn connection_counters(snapshot: &Snapshot) -> impl Iterator<Item = (Cow<'static, str>, TcpCounters)> {
    let tls = snapshot.tls.map(|counters| ("tls".into(), counters));
    [("tcp".into(), snapshot.tcp)].into_iter().chain(tls)
}

fn open_connections(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    out.extend(
        connection_counters(snapshot)
            .map(|(transport, counters)| number_sample(vec![transport], counters.open as f64)),
    );
}

fn connections(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for (transport, counters) in connection_counters(snapshot) {
        let TcpCounters { accepted, refused, refused_client, evicted, timed_out, broken, .. } = counters;
        for (outcome, times) in [
            ("accepted", accepted),
            // Rejected because of the limit for all clients or for this client.
            ("refused", refused + refused_client),
            ("evicted", evicted),
            ("timed_out", timed_out),
            ("broken", broken),
        ] {
            out.push(count_sample(vec![transport.clone(), outcome.into()], times));
        }
    }
}
