//! Metrics of reloads of the configuration.

use super::{Metric, MetricKind, count_sample, number_sample};

/// The rows.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "nonesuch_reloads",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["result"],
        help: "Reloads of the configuration: done, or rejected because of an error in it",
        collect: |snapshot, out| {
            out.push(count_sample(vec!["done".into()], snapshot.reloads.succeeded));
            out.push(count_sample(vec!["refused".into()], snapshot.reloads.rejected));
        },
    },
    Metric {
        name: "nonesuch_last_reload_is_done",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &[],
        help: "1 if the configuration that was read last is in use, 0 if it was rejected",
        collect: |snapshot, out| {
            out.push(number_sample(vec![], f64::from(u8::from(!snapshot.reloads.is_last_rejected))));
        },
    },
    Metric {
        name: "nonesuch_last_reload_timestamp",
        kind: MetricKind::Gauge,
        unit: "seconds",
        labels: &[],
        help: "Time at which the configuration was read last, at the start or by a reload, in seconds since 1970",
        collect: |snapshot, out| out.push(number_sample(vec![], snapshot.reloads.last_read_at as f64)),
    },
    Metric {
        name: "nonesuch_configuration_timestamp",
        kind: MetricKind::Gauge,
        unit: "seconds",
        labels: &[],
        help: "Time at which the configuration in use was read, in seconds since 1970",
        collect: |snapshot, out| out.push(number_sample(vec![], snapshot.reloads.in_use_since as f64)),
    },
];
