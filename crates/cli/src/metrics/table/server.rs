//! Metrics of the server and its process.

use super::{Metric, MetricKind, Sample, count_sample, number_sample};
use crate::metrics::Snapshot;
use crate::metrics::process::Process;

/// The rows.
pub(super) const METRICS: &[Metric] = &[
    Metric {
        name: "nonesuch_dnstap_frames",
        kind: MetricKind::Counter,
        unit: "",
        labels: &["outcome"],
        help: "dnstap frames: written, dropped because a queue was full, lost with a connection or file",
        collect: dnstap_frames,
    },
    Metric {
        name: "nonesuch_log_lines_dropped",
        kind: MetricKind::Counter,
        unit: "",
        labels: &[],
        help: "Log lines dropped because standard error did not accept them",
        collect: |snapshot, out| out.push(count_sample(vec![], snapshot.log.dropped)),
    },
    Metric {
        name: "nonesuch_log_lines_suppressed",
        kind: MetricKind::Counter,
        unit: "",
        labels: &[],
        help: "Log lines suppressed because one peer or zone caused too many lines of one event",
        collect: |snapshot, out| out.push(count_sample(vec![], snapshot.log.suppressed)),
    },
    Metric {
        name: "nonesuch_build",
        kind: MetricKind::Info,
        unit: "",
        labels: &["version"],
        help: "Version of the running server",
        collect: |_, out| out.push(count_sample(vec![env!("CARGO_PKG_VERSION").into()], 1)),
    },
    Metric {
        name: "process_cpu",
        kind: MetricKind::Counter,
        unit: "seconds",
        labels: &[],
        help: "CPU time of the process, user and system",
        collect: |_, out| out.extend(Process::cpu_seconds().map(|seconds| number_sample(vec![], seconds))),
    },
    Metric {
        name: "process_resident_memory",
        kind: MetricKind::Gauge,
        unit: "bytes",
        labels: &[],
        help: "Resident memory of the process",
        collect: |_, out| {
            out.extend(Process::resident_octets().map(|octets| number_sample(vec![], octets as f64)))
        },
    },
    Metric {
        name: "process_open_fds",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &[],
        help: "Open files and sockets of the process",
        collect: |_, out| out.extend(Process::open_files().map(|files| number_sample(vec![], files as f64))),
    },
    Metric {
        name: "process_max_fds",
        kind: MetricKind::Gauge,
        unit: "",
        labels: &[],
        help: "Maximum number of open files and sockets of the process",
        collect: |_, out| {
            out.extend(Process::max_open_files().map(|files| number_sample(vec![], files as f64)))
        },
    },
    Metric {
        name: "process_start_time",
        kind: MetricKind::Gauge,
        unit: "seconds",
        labels: &[],
        help: "Start time of the process, in seconds since 1970",
        collect: |_, out| out.extend(Process::start_time().map(|seconds| number_sample(vec![], seconds))),
    },
];

fn dnstap_frames(snapshot: &Snapshot, out: &mut Vec<Sample>) {
    let Some(dnstap) = &snapshot.dnstap else { return };
    for (outcome, frames) in [("written", dnstap.written), ("dropped", dnstap.dropped), ("lost", dnstap.lost)]
    {
        out.push(count_sample(vec![outcome.into()], frames));
    }
}
