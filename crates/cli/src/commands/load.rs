//! `nonesuch load`.

mod replay;

use crate::arguments::LoadArguments;
use crate::files::{FileError, print_line};
use crate::outcome::CommandOutcome;
use nonesuch_lab::load::{
    Latency, LoadError, LoadOptions, LoadReport, QueryList, QueryListError, ReplayError, run as run_load,
};
use nonesuch_net::Transport;
use std::sync::Arc;
use std::time::Duration;

/// Default number of outstanding queries of a closed loop, for all sockets together. The socket
/// buffer of the server has room for all of them: with the default size of the system, for about
/// 200.
const CLOSED_LOOP_QUERIES: usize = 128;
/// Default maximum number of outstanding queries of each socket in an open loop. A stall of 20 ms
/// at 200,000 queries per second reaches it.
const OPEN_LOOP_QUERIES: usize = 4096;

/// Why no load is generated.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Queries(#[from] QueryListError),
    Replay(#[from] ReplayError),
    Load(#[from] LoadError),
}

pub(crate) fn run(arguments: &LoadArguments) -> Result<CommandOutcome, Failure> {
    let report = match (&arguments.replay.replay, &arguments.queries) {
        (Some(capture), _) => replay::run(arguments, capture)?,
        (None, queries) => run_queries(arguments, queries.as_deref().unwrap_or_else(|| Path::new("-")))?,
    };
    let text = if arguments.json { serde_json::json!(report).to_string() } else { describe(&report) };
    print_line(&text)?;
    Ok(CommandOutcome::Done)
}

/// Sends the queries of the query list at `path`.
fn run_queries(arguments: &LoadArguments, path: &Path) -> Result<LoadReport, Failure> {
    let queries = QueryList::from_file(path)?;
    for line in queries.skipped() {
        tracing::warn!(name: "query-skipped", "{}:{}: skipped: {}", path.display(), line.line, line.reason);
    }
    Ok(run_load(&options(arguments, queries))?)
}

fn options(arguments: &LoadArguments, queries: QueryList) -> LoadOptions {
    let transport = if arguments.tcp { Transport::Tcp } else { Transport::Udp };
    let per_thread = if transport == Transport::Udp { arguments.sockets } else { arguments.connections };
    let sockets = arguments.threads.saturating_mul(per_thread);
    let outstanding = match arguments.rate {
        Some(_) => sockets.saturating_mul(OPEN_LOOP_QUERIES),
        None => sockets.max(CLOSED_LOOP_QUERIES),
    };
    LoadOptions {
        seconds: arguments.seconds,
        // A value that is not a duration becomes the maximum, which the load generator rejects by
        // name.
        warm_up: Duration::try_from_secs_f64(arguments.warm_up).unwrap_or(Duration::MAX),
        limit: arguments.limit,
        outstanding: arguments.outstanding.unwrap_or(outstanding),
        threads: arguments.threads,
        sockets: arguments.sockets,
        transport,
        connections: arguments.connections,
        queries_per_connection: arguments.queries_per_connection,
        sources: arguments.source,
        rate: arguments.rate,
        arrivals: arguments.arrivals,
        seed: arguments.seed,
        spin: !arguments.sleep,
        dnssec_ok: arguments.dnssec_ok,
        compact_ok: arguments.compact_ok,
        edns_size: arguments.edns_size,
        edns_options: arguments.edns_option.clone(),
        random_prefix: arguments.random_prefix,
        repeatable: arguments.repeatable,
        timeout: Duration::try_from_secs_f64(arguments.timeout).unwrap_or(Duration::MAX),
        server_pid: arguments.server_pid,
        cpus: (!arguments.cpus.is_empty()).then(|| arguments.cpus.clone()),
        ..LoadOptions::new(arguments.server, Arc::new(queries))
    }
}

fn describe(report: &LoadReport) -> String {
    let rcodes: Vec<String> = report.rcodes.iter().map(|(rcode, count)| format!("{rcode} {count}")).collect();
    let mut lines = vec![format!(
        "queries    {} sent, {} answered, {} late, {} lost, {:.2} s",
        report.sent, report.received, report.late, report.lost, report.seconds
    )];
    if report.unsent > 0 {
        lines.push(format!(
            "unsent     {}: too many queries were outstanding when they were due",
            report.unsent
        ));
    }
    lines.push(match report.rate {
        Some(rate) => format!("rate       {:.0} answers/s of {rate:.0} queries/s", report.qps),
        None => format!("rate       {:.0} answers/s", report.qps),
    });
    lines.push(format!("rcodes     {}, truncated {}", rcodes.join(", "), report.truncated));
    lines.push(format!(
        "octets     mean {:.1}, max {}",
        report.response_octets_mean, report.response_octets_max
    ));
    if report.transport != "udp" {
        lines.push(format!(
            "transport  {}, {} connections, {} failed",
            report.transport, report.connections, report.connections_failed
        ));
    }
    let latencies = [("latency", &report.latency_us), ("lateness", &report.lateness_us)];
    lines.extend(
        latencies.iter().filter_map(|(name, latency)| Some(describe_latency(name, latency.as_ref()?))),
    );
    if let Some(cpu) = report.server_cpu_us_per_query {
        lines.push(format!(
            "server     {cpu:.2} µs CPU per query ({:.2} user, {:.2} system), {} KiB resident",
            report.server_user_us_per_query.unwrap_or(0.0),
            report.server_system_us_per_query.unwrap_or(0.0),
            report.server_resident_kib.unwrap_or(0)
        ));
    }
    if let Some(cpu) = report.client_cpu_us_per_query {
        lines.push(format!("generator  {cpu:.2} µs CPU per query"));
    }
    lines.join("\n")
}

fn describe_latency(name: &str, latency: &Latency) -> String {
    format!(
        "{name:10} min {:.0}, mean {:.0}, p50 {:.0}, p90 {:.0}, p99 {:.0}, p99.9 {:.0}, p99.99 {:.0}, max {:.0} µs",
        latency.min,
        latency.mean,
        latency.p50,
        latency.p90,
        latency.p99,
        latency.p99_9,
        latency.p99_99,
        latency.max
    )
}
