//! Metrics of online signing and online denial.

use super::{Metric, MetricKind, Sample, add_by_transport, count_sample, number_sample};
use crate::metrics::Snapshot;
use nonesuch_dnssec::online::Operation;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// The rows.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "nonesuch_online_operations",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["mechanism", "algorithm"],
        help: "Private-key operations: signatures over zone data (data), signatures over denial records, NSEC5 proofs",
        collect: online_operations,
    },
    Metric {
        name: "nonesuch_online_cache_hits",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["mechanism", "algorithm"],
        help: "Signatures and proofs found in the cache",
        collect: |snapshot, out| add_operations(out, &snapshot.online.hits),
    },
    Metric {
        name: "nonesuch_online_cache_misses",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["mechanism", "algorithm"],
        help: "Signatures and proofs not found in the cache",
        collect: |snapshot, out| add_operations(out, &snapshot.online.misses),
    },
    Metric {
        name: "nonesuch_online_stored_proofs",
        kind: MetricKind::Counter,
        unit: "",
        labels: &[],
        help: "NSEC5 proofs found in the stored proofs of the zone",
        collect: |snapshot, out| out.push(count_sample(vec![], snapshot.online.proofs_stored)),
    },
    Metric {
        name: "nonesuch_online_batches",
        kind: MetricKind::Counter,
        unit: "",
        labels: &[],
        help: "Batches of signatures and proofs generated together",
        collect: |snapshot, out| out.push(count_sample(vec![], snapshot.online.batches)),
    },
    Metric {
        name: "nonesuch_online_unmade",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["reason"],
        help: "Signatures and proofs that were not generated: the batch was full, or the library failed",
        collect: |snapshot, out| {
            out.push(count_sample(vec!["full".into()], snapshot.online.rejected));
            out.push(count_sample(vec!["failed".into()], snapshot.online.failed));
        },
    },
    Metric {
        name: "nonesuch_online_over_budget",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["transport"],
        help: "Queries without signatures or proofs because the online share was spent",
        collect: |snapshot, out| add_by_transport(snapshot, out, |sum| sum.over_budget),
    },
    Metric {
        name: "nonesuch_online_cache",
        kind: MetricKind::Gauge,
        unit: "bytes",
        labels: &[],
        help: "Size of the caches of signatures and proofs",
        collect: |snapshot, out| out.push(number_sample(vec![], snapshot.online.cache_octets as f64)),
    },
];

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
    add_operations(out, &snapshot.online.operations);
}

fn add_operations(out: &mut Vec<Sample>, times: &BTreeMap<Operation, u64>) {
    out.extend(times.iter().map(|(operation, times)| count_sample(operation_labels(*operation), *times)));
}
