//! `nonesuch load`.

use crate::Outcome;
use crate::arguments::LoadArguments;
use crate::error::Failure;
use crate::files::print_line;
use nonesuch_lab::load::{LoadOptions, LoadReport, QueryList, run as run_load};
use std::sync::Arc;
use std::time::Duration;

pub(crate) fn run(arguments: &LoadArguments) -> Result<Outcome, Failure> {
    let queries = QueryList::from_file(&arguments.queries)?;
    for line in queries.skipped() {
        tracing::warn!("{}:{}: skipped: {}", arguments.queries.display(), line.line, line.reason);
    }
    let mut options = LoadOptions::new(arguments.server, Arc::new(queries));
    options.seconds = arguments.seconds;
    options.limit = arguments.limit;
    options.outstanding = arguments.outstanding;
    options.threads = arguments.threads;
    options.rate = arguments.rate;
    options.dnssec_ok = arguments.dnssec_ok;
    options.edns_size = arguments.edns_size;
    options.timeout = Duration::try_from_secs_f64(arguments.timeout).unwrap_or(Duration::from_secs(1));
    options.server_pid = arguments.server_pid;
    options.cpus = (!arguments.cpus.is_empty()).then(|| arguments.cpus.clone());
    let report = run_load(&options)?;
    let text = if arguments.json { serde_json::json!(report).to_string() } else { describe(&report) };
    print_line(&text)?;
    Ok(Outcome::Done)
}

fn describe(report: &LoadReport) -> String {
    let rcodes: Vec<String> = report.rcodes.iter().map(|(rcode, count)| format!("{rcode} {count}")).collect();
    let mut lines = vec![
        format!(
            "queries    {} sent, {} answered, {} lost, {:.2} s",
            report.sent, report.received, report.lost, report.seconds
        ),
        format!("rate       {:.0} answers/s", report.qps),
        format!("rcodes     {}, truncated {}", rcodes.join(", "), report.truncated),
        format!("octets     mean {:.1}, max {}", report.response_octets_mean, report.response_octets_max),
    ];
    if let Some(latency) = &report.latency_us {
        lines.push(format!(
            "latency    min {:.0}, mean {:.0}, p50 {:.0}, p90 {:.0}, p99 {:.0}, max {:.0} µs",
            latency.min, latency.mean, latency.p50, latency.p90, latency.p99, latency.max
        ));
    }
    if let Some(cpu) = report.server_cpu_us_per_query {
        lines.push(format!(
            "server     {cpu:.2} µs CPU a query ({:.2} user, {:.2} system), {} KiB resident",
            report.server_user_us_per_query.unwrap_or(0.0),
            report.server_system_us_per_query.unwrap_or(0.0),
            report.server_resident_kib.unwrap_or(0)
        ));
    }
    lines.join("\n")
}
