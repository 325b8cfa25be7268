//! Metrics of TLS handshakes.

use super::{Metric, MetricKind, count_sample};

/// The rows.
pub(super) const METRICS: &[Metric] = &[Metric {
    name: "nonesuch_tls_handshakes",
    kind: MetricKind::Counter,
    unit: "",
    labels: &["outcome"],
    help: "TLS handshakes: full, resumed, failed; a handshake that takes too long is a connection that timed out",
    collect: |snapshot, out| {
        let Some(tls) = &snapshot.tls else { return };
        let full = tls.handshakes.saturating_sub(tls.resumed);
        for (outcome, times) in [("full", full), ("resumed", tls.resumed), ("failed", tls.handshakes_failed)]
        {
            out.push(count_sample(vec![outcome.into()], times));
        }
    },
}];
