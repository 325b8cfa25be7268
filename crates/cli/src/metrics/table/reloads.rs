//! Metrics of reloads and of rejected zone versions, after which the server may serve outdated
//! data.

use super::{Metric, MetricKind, Sample, count_sample, number_sample};
use crate::metrics::{Snapshot, ZoneRow};

/// The rows.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "nonesuch_refused_zones",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &[],
        help: "Zones whose newest version was rejected, and broken catalogs; the previous version stays in use",
        collect: |snapshot, out| {
            let refused = snapshot.zones.iter().filter(|zone| zone.is_rejected).count();
            out.push(number_sample(vec![], refused as f64));
        },
    },
    Metric {
        name: "nonesuch_zone_is_refused",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &["zone"],
        help: "1 if the newest version of the zone was rejected or the catalog is broken, else 0",
        collect: collect_zone_is_refused,
    },
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

/// Exports nothing if the server has more than `max_zones_with_gauges` zones.
fn collect_zone_is_refused(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    if snapshot.zones.len() <= snapshot.max_zones_with_gauges {
        let is_rejected = |zone: &ZoneRow| f64::from(u8::from(zone.is_rejected));
        out.extend(
            snapshot
                .zones
                .iter()
                .map(|zone| number_sample(vec![zone.zone.clone().into()], is_rejected(zone))),
        );
    }
}
