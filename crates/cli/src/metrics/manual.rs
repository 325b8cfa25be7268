//! The manual page of the metrics, nonesuch-metrics(7), generated from their table.

use super::table::{GROUPS, Metric};
use std::fmt::Write as _;

/// The manual page in roff.
pub(crate) fn page() -> String {
    let mut out = format!(
        ".TH nonesuch-metrics 7 \"\" \"nonesuch {}\"\n.SH NAME\nnonesuch\\-metrics \\- metrics of nonesuch serve and nonesuch resolve\n.SH DESCRIPTION\n",
        env!("CARGO_PKG_VERSION")
    );
    out.push_str(
        "With metrics\\-listen in its configuration,\n.BR nonesuch\\-serve (1)\nor\n.BR nonesuch\\-resolve (1)\nanswers GET /metrics over HTTP with these metrics, \
         in the OpenMetrics format or, if the client does not request it, in the older text format of \
         Prometheus. Counters begin at 0 when the process starts. If the server has more zones than \
         metrics\\-zones (default 1000), there are no metrics for each zone.\n",
    );
    for (commands, parts) in GROUPS {
        // Writing to a string does not fail.
        let _ = writeln!(out, ".SH METRICS OF {}", escape(&commands.to_uppercase()));
        parts.iter().copied().flatten().for_each(|metric| push_metric(metric, &mut out));
    }
    out.push_str(".SH SEE ALSO\n.BR nonesuch\\-serve (1),\n.BR nonesuch\\-resolve (1)\n");
    out
}

fn push_metric(metric: &Metric, out: &mut String) {
    let labels = metric.labels.iter().map(|label| escape(label)).collect::<Vec<_>>().join(", ");
    let labels = if labels.is_empty() { String::new() } else { format!(" {{{labels}}}") };
    let kind = format!("{:?}", metric.kind).to_lowercase();
    let (name, help) = (escape(&metric.full_name()), escape(metric.help));
    // Writing to a string does not fail.
    let _ = write!(out, ".TP\n\\fB{name}\\fR{labels} ({kind})\n{help}.\n");
}

/// Escapes text for roff: no line begins with a control character, and hyphens can be searched for.
fn escape(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    if escaped.starts_with(['.', '\'']) { format!("\\&{escaped}") } else { escaped }
}
