//! `nonesuch load`.

use crate::arguments::LoadArguments;
use crate::files::{FileError, print_line};
use crate::outcome::{COMMIT, CommandOutcome, command_line};
use crate::zones::{AnchorError, ReadZoneError, read_anchors_of_first_zone, read_zone, time_or_now};
use nonesuch_lab::generate::{GenerateError, QueriedZone};
use nonesuch_lab::load::{
    Latency, LoadError, LoadOptions, LoadReport, Progress, QueryList, QueryListError, ReplayError,
    ValidationOptions, run as run_load, run_with_progress, validate_samples,
};
use nonesuch_lab::record::{Invocation, RecordError, RunRecord};
use nonesuch_net::tls::ClientTls;
use nonesuch_net::{TlsError, Transport};
use serde::Serialize;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

mod ramp;
mod replay;

/// Default number of outstanding queries of a closed loop, for all sockets together. All of them
/// fit the receive buffer of the server's socket, which by default holds about 200 queries.
const DEFAULT_OUTSTANDING_CLOSED_LOOP: usize = 128;
/// Default maximum number of outstanding queries of each socket in an open loop. At 200,000 queries
/// per second, a server that stalls for 20 ms causes this number.
const DEFAULT_OUTSTANDING_PER_SOCKET: usize = 4096;

/// Default interval of the periodic lines of a longer load, in seconds.
const DEFAULT_INTERVAL_SECONDS: f64 = 10.0;
/// Number of queries that are generated for a zone. The load repeats them.
const GENERATED_QUERY_COUNT: u64 = 50_000;

/// Why `nonesuch load` fails.
#[derive(Debug, thiserror::Error)]
#[error(transparent)]
#[non_exhaustive]
pub(crate) enum Failure {
    File(#[from] FileError),
    Queries(#[from] QueryListError),
    Tls(#[from] TlsError),
    Zone(#[from] ReadZoneError),
    Anchor(#[from] AnchorError),
    Generate(#[from] GenerateError),
    Replay(#[from] ReplayError),
    Load(#[from] LoadError),
    Record(#[from] RecordError),
}

pub(crate) fn run(arguments: &LoadArguments) -> Result<CommandOutcome, Failure> {
    if let Some(capture) = &arguments.replay.replay {
        let record = record(arguments)?;
        print_report(arguments, &record, &replay::run(arguments, capture)?)?;
        return Ok(CommandOutcome::Done);
    }
    let options = load_options(arguments, read_queries(arguments)?, tls_settings(arguments)?);
    let record = record(arguments)?;
    if arguments.ramp {
        return ramp::run(arguments, &record, &options);
    }
    let validation = validation_options(arguments)?;
    let mut report = match progress_interval(arguments) {
        Some(interval) => run_in_intervals(arguments, &options, interval)?,
        None => run_load(&options)?,
    };
    if let Some(validation) = validation {
        let samples = report.samples.iter().map(Vec::as_slice);
        report.validation = Some(validate_samples(&options, &validation, samples)?);
    }
    print_report(arguments, &record, &report)?;
    let is_bogus = report.validation.is_some_and(|counts| counts.bogus > 0);
    Ok(if is_bogus { CommandOutcome::Negative } else { CommandOutcome::Done })
}

/// Begins the record of the run.
fn record(arguments: &LoadArguments) -> Result<RunRecord, RecordError> {
    RunRecord::begin(Invocation {
        now: time_or_now(None),
        command: &command_line(),
        seed: arguments.seed,
        commit: COMMIT,
    })
}

fn print_report(arguments: &LoadArguments, record: &RunRecord, report: &LoadReport) -> Result<(), FileError> {
    let text = if arguments.json { to_json(record, report) } else { report_text(report) };
    print_line(&text)
}

/// Returns the report as JSON, with the record of the run.
fn to_json(record: &RunRecord, report: &impl Serialize) -> String {
    let mut json = serde_json::json!(report);
    json["record"] = serde_json::json!(record);
    json.to_string()
}

/// Returns the interval of the periodic lines; `None` without such lines.
fn progress_interval(arguments: &LoadArguments) -> Option<Duration> {
    let is_long = arguments.seconds > DEFAULT_INTERVAL_SECONDS && !arguments.json;
    let default = if is_long { DEFAULT_INTERVAL_SECONDS } else { 0.0 };
    let seconds = arguments.interval.unwrap_or(default);
    (seconds > 0.0).then(|| Duration::try_from_secs_f64(seconds).unwrap_or(Duration::MAX))
}

fn run_in_intervals(
    arguments: &LoadArguments,
    options: &LoadOptions,
    interval: Duration,
) -> Result<LoadReport, Failure> {
    let mut printed = Ok(());
    let report = run_with_progress(options, interval, |progress| {
        let line = if arguments.json {
            serde_json::json!({ "interval": progress }).to_string()
        } else {
            progress_line(progress)
        };
        if printed.is_ok() {
            printed = print_line(&line);
        }
    })?;
    printed?;
    Ok(report)
}

fn progress_line(progress: &Progress) -> String {
    let latency = progress.latency_us.map_or_else(String::new, |latency| {
        format!(", p50 {:.0}, p99 {:.0}, max {:.0} µs", latency.p50, latency.p99, latency.max)
    });
    format!(
        "{:>8.1} s {:.0} answers/s, {} sent, {} lost{latency}",
        progress.end, progress.qps, progress.sent, progress.lost
    )
}

fn validation_options(arguments: &LoadArguments) -> Result<Option<ValidationOptions>, Failure> {
    let Some(path) = &arguments.anchor else { return Ok(None) };
    let (zone, anchors) = read_anchors_of_first_zone(path)?;
    Ok(Some(ValidationOptions { zone, anchors, now: time_or_now(arguments.now) }))
}

/// Reads the query list, or generates one for the zone.
fn read_queries(arguments: &LoadArguments) -> Result<QueryList, Failure> {
    if let Some(path) = &arguments.zone {
        let contents = read_zone(path, arguments.origin.as_ref())?;
        let mut text = Vec::new();
        let zone = QueriedZone::of(&contents);
        zone.write_queries(arguments.denied_share, GENERATED_QUERY_COUNT, arguments.seed, &mut text)?;
        return Ok(QueryList::parse(path, &text)?);
    }
    // One of the two options is required.
    let path = arguments.queries.as_deref().unwrap_or_else(|| Path::new("-"));
    let queries = QueryList::from_file(path)?;
    for line in queries.skipped() {
        tracing::warn!(name: "query-skipped", "{}:{}: skipped: {}", path.display(), line.line, line.reason);
    }
    Ok(queries)
}

fn tls_settings(arguments: &LoadArguments) -> Result<Option<ClientTls>, TlsError> {
    let hostname = arguments.tls_hostname.as_deref();
    let tls = match &arguments.tls_ca {
        _ if !arguments.tls => return Ok(None),
        Some(authorities) => ClientTls::authenticated(authorities, hostname)?,
        None => ClientTls::opportunistic(hostname)?,
    };
    Ok(Some(tls))
}

fn load_options(arguments: &LoadArguments, queries: QueryList, tls: Option<ClientTls>) -> LoadOptions {
    let transport = match (arguments.tcp, arguments.tls) {
        (false, false) => Transport::Udp,
        (true, _) => Transport::Tcp,
        (false, true) => Transport::Tls,
    };
    let per_thread = if transport == Transport::Udp { arguments.sockets } else { arguments.connections };
    let sockets = arguments.threads.saturating_mul(per_thread);
    let outstanding = match arguments.rate {
        Some(_) => sockets.saturating_mul(DEFAULT_OUTSTANDING_PER_SOCKET),
        None => sockets.max(DEFAULT_OUTSTANDING_CLOSED_LOOP),
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
        tls,
        follow_truncated: arguments.follow_truncated,
        checking_disabled: arguments.checking_disabled,
        nsid: arguments.nsid,
        cookies: arguments.cookie,
        samples: arguments.validate.unwrap_or(0),
        connections: arguments.connections,
        queries_per_connection: arguments.queries_per_connection,
        sources: arguments.source,
        rate: arguments.rate,
        arrivals: arguments.arrivals,
        seed: arguments.seed,
        may_poll: !arguments.sleep,
        dnssec_ok: arguments.dnssec_ok,
        compact_ok: arguments.compact_ok,
        edns_size: arguments.edns_size,
        edns_options: arguments.edns_option.clone(),
        zipf: arguments.zipf,
        random_prefix: arguments.random_prefix,
        random_label: arguments.random_label,
        repeatable: arguments.repeatable,
        timeout: Duration::try_from_secs_f64(arguments.timeout).unwrap_or(Duration::MAX),
        server_pid: arguments.server_pid,
        cpus: (!arguments.cpus.is_empty()).then(|| arguments.cpus.clone()),
        ..LoadOptions::new(arguments.server, Arc::new(queries))
    }
}

fn report_text(report: &LoadReport) -> String {
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
    if let Some(followed) = report.followed {
        lines.push(format!(
            "over TCP   {followed} answers after truncation, {} octets instead of {}",
            mean_octets(report.followed_octets_mean),
            mean_octets(report.truncated_octets_mean)
        ));
    }
    let nsids = report.nsids.iter().map(|(nsid, count)| format!("{nsid} {count}"));
    let nsids: Vec<String> =
        nsids.chain((report.nsids_other > 0).then(|| format!("others {}", report.nsids_other))).collect();
    if !nsids.is_empty() {
        lines.push(format!("NSIDs      {}", nsids.join(", ")));
    }
    if report.server_cookies + report.bad_cookies > 0 {
        lines.push(format!(
            "cookies    {} from the server, {} BADCOOKIE",
            report.server_cookies, report.bad_cookies
        ));
    }
    if let Some(counts) = &report.validation {
        lines.push(format!(
            "validated  {} secure, {} insecure, {} bogus, {} indeterminate",
            counts.secure, counts.insecure, counts.bogus, counts.indeterminate
        ));
        lines.extend(counts.first_reason.iter().map(|reason| format!("           {reason}")));
    }
    if report.transport != "udp" {
        lines.push(format!(
            "transport  {}, {} connections, {} failed",
            report.transport, report.connections, report.connections_failed
        ));
    }
    let latencies = [("latency", &report.latency_us), ("lateness", &report.lateness_us)];
    lines.extend(latencies.iter().filter_map(|(name, latency)| Some(latency_line(name, latency.as_ref()?))));
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
    if let Some(limit) = report.limited_by {
        lines.push(format!("limited by {limit}"));
    }
    if let Some(share) = report.others_cpu {
        let is_server_known = report.server_resident_kib.is_some();
        let server =
            if is_server_known { "" } else { " (including a server on this machine: set --server-pid)" };
        lines.push(format!("other CPU  {:.1} % of all CPUs{server}", 100.0 * share));
    }
    lines.join("\n")
}

/// Returns a mean size, or a dash without responses.
fn mean_octets(mean: Option<f64>) -> String {
    mean.map_or_else(|| "-".to_owned(), |mean| format!("{mean:.1}"))
}

fn latency_line(name: &str, latency: &Latency) -> String {
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
