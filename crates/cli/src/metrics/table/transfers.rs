//! Metrics of zone transfers and NOTIFY.

use super::{Metric, MetricKind, Sample, count_sample};
use crate::metrics::Snapshot;
use nonesuch_authoritative::transfer::outbound::TransferRefusal;
use nonesuch_server::statistics::Direction;
use std::collections::BTreeMap;

/// The rows.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "nonesuch_transfers",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["direction", "kind", "result"],
        help: "Completed zone transfers by direction, kind and result",
        collect: transfers,
    },
    Metric {
        name: "nonesuch_transfers_refused",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["reason"],
        help: "Refused transfer requests of clients, by reason",
        collect: refused,
    },
    Metric {
        name: "nonesuch_transfer_messages",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["direction"],
        help: "Messages of zone transfers",
        collect: |snapshot, out| add_by_direction(out, &snapshot.statistics.transfers.messages),
    },
    Metric {
        name: "nonesuch_transfer",
        kind: MetricKind::Counter,
        unit: "bytes",
        labels: &["direction"],
        help: "Size of the messages of zone transfers",
        collect: |snapshot, out| add_by_direction(out, &snapshot.statistics.transfers.octets),
    },
    Metric {
        name: "nonesuch_notifies",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["direction", "result"],
        help: "NOTIFY messages received and sent: accepted, refused, or (sent) unanswered in all attempts",
        collect: notifies,
    },
];

fn transfers(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for ((direction, kind, result), times) in &snapshot.statistics.transfers.ended {
        let labels = vec![direction.name().into(), kind.name().into(), result.name().into()];
        out.push(count_sample(labels, *times));
    }
}

fn refused(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    let refusals = &snapshot.statistics.transfers.refusals;
    out.extend(TransferRefusal::ALL.map(TransferRefusal::name).into_iter().map(|reason| {
        let times = refusals.get(reason).copied().unwrap_or_default();
        count_sample(vec![reason.into()], times)
    }));
}

/// Adds one value for each direction.
fn add_by_direction(out: &mut Vec<Sample>, numbers: &BTreeMap<Direction, u64>) {
    out.extend(
        numbers.iter().map(|(direction, number)| count_sample(vec![direction.name().into()], *number)),
    );
}

fn notifies(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    for ((direction, result), times) in &snapshot.statistics.transfers.notifies {
        out.push(count_sample(vec![direction.name().into(), result.name().into()], *times));
    }
}
