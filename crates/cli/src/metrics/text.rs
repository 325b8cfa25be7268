//! The text of the metrics: OpenMetrics 1.0 from `prometheus-client`, and the older Prometheus text
//! format, which is derived from it.

use super::Snapshot;
use super::table::{Metric, MetricKind, Sample, Value, table, table_of};
use prometheus_client::collector::Collector;
use prometheus_client::encoding::{DescriptorEncoder, MetricEncoder, NoLabelSet};
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::{Registry, Unit};
use std::borrow::Cow;
use std::fmt;

/// Media type of OpenMetrics.
pub(super) const OPEN_METRICS_TYPE: &str = "application/openmetrics-text; version=1.0.0; charset=utf-8";
/// Media type of the older Prometheus text format.
pub(super) const PROMETHEUS_TEXT_TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Collector that writes the rows of the table with the values of a snapshot.
#[derive(Debug)]
struct SnapshotCollector(Snapshot);

impl Collector for SnapshotCollector {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        let mut samples = Vec::new();
        for metric in table_of(&self.0) {
            (metric.collect)(&self.0, &mut samples);
            let unit = unit_of(metric);
            let mut family =
                encoder.encode_descriptor(metric.name, metric.help, unit.as_ref(), type_of(metric.kind))?;
            for sample in samples.drain(..) {
                encode(metric, &sample, &mut family)?;
            }
        }
        Ok(())
    }
}

fn unit_of(metric: &Metric) -> Option<Unit> {
    match metric.unit {
        "" => None,
        "bytes" => Some(Unit::Bytes),
        "seconds" => Some(Unit::Seconds),
        other => Some(Unit::Other(other.to_owned())),
    }
}

const fn type_of(kind: MetricKind) -> MetricType {
    match kind {
        MetricKind::Counter => MetricType::Counter,
        MetricKind::Gauge => MetricType::Gauge,
        MetricKind::Histogram => MetricType::Histogram,
        MetricKind::Info => MetricType::Info,
    }
}

fn encode(metric: &Metric, sample: &Sample, family: &mut MetricEncoder<'_>) -> fmt::Result {
    let values = sample.labels.iter().map(|value| escape(value));
    let labels: Vec<(&str, Cow<'_, str>)> = metric.labels.iter().copied().zip(values).collect();
    if metric.kind == MetricKind::Info {
        return family.encode_info(&labels);
    }
    if labels.is_empty() {
        return encode_value(metric.kind, &sample.value, family);
    }
    encode_value(metric.kind, &sample.value, &mut family.encode_family(&labels)?)
}

fn encode_value(kind: MetricKind, value: &Value, out: &mut MetricEncoder<'_>) -> fmt::Result {
    match value {
        Value::Count(count) if kind == MetricKind::Counter => {
            out.encode_counter::<NoLabelSet, u64, u64>(count, None)
        }
        Value::Number(number) if kind == MetricKind::Counter => {
            out.encode_counter::<NoLabelSet, f64, u64>(number, None)
        }
        Value::Count(count) => out.encode_gauge(&(*count as f64)),
        Value::Number(number) => out.encode_gauge(number),
        Value::Histogram { sum, buckets } => {
            let count = buckets.iter().map(|(_, times)| times).sum();
            out.encode_histogram::<NoLabelSet>(*sum, count, buckets, None)
        }
    }
}

/// Escapes the value of a label; `prometheus-client` leaves this to its callers.
fn escape(value: &str) -> Cow<'_, str> {
    if value.contains(['\\', '"', '\n']) {
        value.replace('\\', "\\\\").replace('"', "\\\"").replace('\n', "\\n").into()
    } else {
        value.into()
    }
}

/// The metrics in OpenMetrics.
pub(super) fn open_metrics(snapshot: Snapshot) -> String {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(SnapshotCollector(snapshot)));
    let mut out = String::new();
    // Writing to a string does not fail.
    let _ = prometheus_client::encoding::text::encode(&mut out, &registry);
    out
}

/// The metrics in the older Prometheus text format. In this format, `# HELP` and `# TYPE` contain
/// the name of the samples with its suffix, and there are neither units nor an end marker.
pub(super) fn prometheus_text(snapshot: Snapshot) -> String {
    let text = open_metrics(snapshot);
    let mut out = String::with_capacity(text.len());
    for line in text.lines() {
        match line
            .split_once(' ')
            .filter(|(start, _)| *start == "#")
            .and_then(|(_, rest)| rest.split_once(' '))
        {
            Some(("HELP" | "TYPE", rest)) => push_description(line, rest, &mut out),
            Some(_) => {}
            None if line == "# EOF" => {}
            None => out.extend([line, "\n"]),
        }
    }
    out
}

/// Appends the line `# HELP NAME …` or `# TYPE NAME …` with the suffix of the samples. `rest` is
/// the line from `NAME` on.
fn push_description(line: &str, rest: &str, out: &mut String) {
    let (name, text) = rest.split_once(' ').unwrap_or((rest, ""));
    let is_of_name = |metric: &&Metric| {
        let full = metric.full_name();
        full.strip_prefix(name).is_some_and(|suffix| ["", "_total", "_info"].contains(&suffix))
    };
    let Some(metric) = table().find(is_of_name) else { return };
    let text = if line.starts_with("# TYPE") && metric.kind == MetricKind::Info { "gauge" } else { text };
    out.extend([&line[..7], &metric.full_name(), " ", text, "\n"]);
}
