//! Metrics of zones, and of rejected zone versions, after which the server may serve outdated data.

use super::{Metric, MetricKind, Sample, number_sample};
use crate::metrics::{Snapshot, ZoneRow};
use std::collections::BTreeMap;

/// The rows.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "nonesuch_zones",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &["state"],
        help: "Number of zones by state",
        collect: zones,
    },
    Metric {
        name: "nonesuch_nearest_signature_expiry_timestamp",
        kind: MetricKind::Gauge,
        unit: "seconds",
        labels: &[],
        help: "Time at which the first signature of all zones expires, in seconds since 1970",
        collect: |snapshot, out| {
            let nearest = snapshot.zones.iter().filter_map(|zone| zone.nearest_expiration).min();
            out.extend(nearest.map(|time| number_sample(vec![], time as f64)));
        },
    },
    Metric {
        name: "nonesuch_zone_serial",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &["zone"],
        help: "Serial of the served version",
        collect: |snapshot, out| add_for_each_zone(snapshot, out, |zone| zone.serial.map(f64::from)),
    },
    Metric {
        name: "nonesuch_zone_is_served",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &["zone"],
        help: "1 if the zone is served, 0 if it is not ready, expired or failed",
        collect: |snapshot, out| {
            add_for_each_zone(snapshot, out, |zone| Some(f64::from(u8::from(zone.state == "serving"))));
        },
    },
    Metric {
        name: "nonesuch_zone_age",
        kind: MetricKind::Gauge,
        unit: "seconds",
        labels: &["zone"],
        help: "Time since the zone was loaded or transferred",
        collect: |snapshot, out| {
            let age = |loaded_at| snapshot.now.saturating_sub(loaded_at) as f64;
            add_for_each_zone(snapshot, out, |zone| zone.loaded_at.map(age));
        },
    },
    Metric {
        name: "nonesuch_zone_nearest_signature_expiry_timestamp",
        kind: MetricKind::Gauge,
        unit: "seconds",
        labels: &["zone"],
        help: "Time at which the first signature of the zone expires, in seconds since 1970",
        collect: |snapshot, out| {
            add_for_each_zone(snapshot, out, |zone| zone.nearest_expiration.map(|time| time as f64));
        },
    },
    Metric {
        name: "nonesuch_zone_records",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &["zone"],
        help: "Number of records of the zone",
        collect: |snapshot, out| {
            add_for_each_zone(snapshot, out, |zone| zone.records.map(|records| records as f64))
        },
    },
    Metric {
        name: "nonesuch_zone_refreshed_timestamp",
        kind: MetricKind::Gauge,
        unit: "seconds",
        labels: &["zone"],
        help: "Time of the last successful refresh of a secondary zone, in seconds since 1970",
        collect: |snapshot, out| {
            add_for_each_zone(snapshot, out, |zone| zone.refresh?.refreshed.map(|time| time as f64));
        },
    },
    Metric {
        name: "nonesuch_zone_next_refresh_timestamp",
        kind: MetricKind::Gauge,
        unit: "seconds",
        labels: &["zone"],
        help: "Time of the next refresh of a secondary zone, in seconds since 1970; absent during a refresh",
        collect: |snapshot, out| {
            add_for_each_zone(snapshot, out, |zone| zone.refresh?.next.map(|time| time as f64))
        },
    },
    Metric {
        name: "nonesuch_zone_time_to_expiry",
        kind: MetricKind::Gauge,
        unit: "seconds",
        labels: &["zone"],
        help: "Time until a secondary zone expires unless it is refreshed; 0 if it has expired",
        collect: |snapshot, out| {
            let seconds_left = |expires: u64| expires.saturating_sub(snapshot.now) as f64;
            add_for_each_zone(snapshot, out, |zone| zone.refresh?.expires.map(seconds_left));
        },
    },
    Metric {
        name: "nonesuch_zone_queries",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["zone"],
        help: "Queries for names in the zone, if metrics-zone-queries is set",
        collect: |snapshot, out| {
            add_for_each_zone(snapshot, out, |zone| zone.queries.map(|queries| queries as f64));
        },
    },
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
];

fn zones(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    let mut states = BTreeMap::from(["serving", "not-ready", "expired", "failed"].map(|state| (state, 0)));
    for zone in &snapshot.zones {
        *states.entry(zone.state).or_default() += 1;
    }
    out.extend(states.into_iter().map(|(state, zones)| number_sample(vec![state.into()], f64::from(zones))));
}

/// Adds one value for each zone that has it; adds none if there are too many zones.
fn add_for_each_zone(snapshot: &Snapshot, out: &mut Vec<Sample>, value: impl Fn(&ZoneRow) -> Option<f64>) {
    if snapshot.zones.len() <= snapshot.max_zones_with_gauges {
        let known = snapshot.zones.iter().filter_map(|zone| Some((zone.zone.clone(), value(zone)?)));
        out.extend(known.map(|(zone, value)| number_sample(vec![zone.into()], value)));
    }
}

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
