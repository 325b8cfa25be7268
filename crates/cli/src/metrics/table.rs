//! The table of metrics: name, kind, unit, labels, help text, and the function that collects the
//! samples. Each subject has a submodule with its rows and functions. Tests compare the manual page
//! and `docs/metrics.md` with the table.

mod connections;
mod handshakes;
mod online;
mod queries;
mod reloads;
mod resolver;
mod server;
mod transfers;
mod zones;

use super::Snapshot;
use nonesuch_net::Transport;
use nonesuch_server::statistics::TransportTotals;
use std::borrow::Cow;

/// The kind of a metric.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MetricKind {
    /// A value that only increases.
    Counter,
    /// A value that can increase and decrease.
    Gauge,
    /// Numbers of observations up to each of several bounds.
    Histogram,
    /// Text in labels; the value is always 1.
    Info,
}

/// A row of the table.
pub(super) struct Metric {
    /// The name without unit and suffix.
    pub(super) name: &'static str,
    pub(super) kind: MetricKind,
    /// `bytes`, `seconds` or empty.
    pub(super) unit: &'static str,
    /// The names of its labels.
    pub(super) labels: &'static [&'static str],
    pub(super) help: &'static str,
    /// Adds its samples.
    pub(super) collect: fn(&Snapshot, &mut Vec<Sample>),
}

impl Metric {
    /// The name of the samples; for histograms, without `_bucket`, `_sum` and `_count`.
    pub(super) fn full_name(&self) -> String {
        let unit = if self.unit.is_empty() { String::new() } else { format!("_{}", self.unit) };
        let suffix = match self.kind {
            MetricKind::Counter => "_total",
            MetricKind::Info => "_info",
            MetricKind::Gauge | MetricKind::Histogram => "",
        };
        format!("{}{unit}{suffix}", self.name)
    }
}

/// A value with the values of its labels, in the order of the row's labels.
pub(super) struct Sample {
    pub(super) labels: Vec<Cow<'static, str>>,
    pub(super) value: Value,
}

/// The value of a sample.
pub(super) enum Value {
    Count(u64),
    Number(f64),
    /// The sum and, for each upper bound, the number of observations between the previous bound and
    /// this one.
    Histogram {
        sum: f64,
        buckets: Vec<(f64, u64)>,
    },
}

/// Metrics of both kinds of servers, in the order of the output.
const COMMON: [&[Metric]; 5] =
    [queries::METRICS, connections::METRICS, handshakes::METRICS, server::METRICS, reloads::METRICS];
/// Metrics of `nonesuch serve` only.
const AUTHORITATIVE: [&[Metric]; 3] = [online::METRICS, transfers::METRICS, zones::METRICS];
/// Metrics of `nonesuch resolve` only.
const RESOLVER: [&[Metric]; 1] = [resolver::METRICS];

/// The metrics with a heading for each group, in the order of the documents.
pub(super) const GROUPS: [(&str, &[&[Metric]]); 3] = [
    ("nonesuch serve and nonesuch resolve", &COMMON),
    ("nonesuch serve", &AUTHORITATIVE),
    ("nonesuch resolve", &RESOLVER),
];

/// All metrics.
pub(super) fn table() -> impl Iterator<Item = &'static Metric> {
    GROUPS.iter().flat_map(|(_, parts)| *parts).copied().flatten()
}

/// The metrics of the server of a snapshot.
pub(super) fn table_of(snapshot: &Snapshot) -> impl Iterator<Item = &'static Metric> + use<> {
    let own: &[&[Metric]] = if snapshot.resolver.is_some() { &RESOLVER } else { &AUTHORITATIVE };
    COMMON.iter().chain(own).copied().flatten()
}

/// A sample with an integer value.
const fn count_sample(labels: Vec<Cow<'static, str>>, value: u64) -> Sample {
    Sample { labels, value: Value::Count(value) }
}

/// A sample with a floating-point value.
const fn number_sample(labels: Vec<Cow<'static, str>>, value: f64) -> Sample {
    Sample { labels, value: Value::Number(value) }
}

/// The counters of each transport, with its label.
fn by_transport(snapshot: &Snapshot) -> impl Iterator<Item = (Cow<'static, str>, &TransportTotals)> {
    Transport::ALL.into_iter().map(|carrier| (carrier.name().into(), snapshot.statistics.of(carrier)))
}

/// Adds one value for each transport.
fn add_by_transport(snapshot: &Snapshot, out: &mut Vec<Sample>, value: impl Fn(&TransportTotals) -> u64) {
    out.extend(by_transport(snapshot).map(|(transport, sum)| count_sample(vec![transport], value(sum))));
}

/// Adds several named values for each transport.
fn add_named_by_transport(
    snapshot: &Snapshot,
    out: &mut Vec<Sample>,
    values: impl Fn(&TransportTotals) -> Vec<(&'static str, u64)>,
) {
    for (transport, sum) in by_transport(snapshot) {
        let named = values(sum).into_iter();
        out.extend(named.map(|(name, times)| count_sample(vec![transport.clone(), name.into()], times)));
    }
}
