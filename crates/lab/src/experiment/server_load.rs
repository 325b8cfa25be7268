//! Measures servers under load: this program and others. Varied: zone, algorithms, denial
//! mechanism, kind of query, UDP payload size, rate.
//!
//! For each server and each combination of zone, algorithms and denial mechanism, the experiment
//! writes the zone file and starts the server. It validates samples of the responses of each
//! server. A server whose responses are not valid is left out. A round then loads each server with
//! each kind of query and each UDP payload size at each rate, while all other servers wait. Each
//! load is a row. With `conservative-nsec5`, further rows have computed sizes.

mod composed;
mod counters;
mod parameters;
mod queries;
mod subject;

pub(super) use parameters::{Combination, CombinationError, Parameters};
pub(super) use subject::ZoneSourceError;

use super::error::{RunError, temporary_directory};
use super::run::{Findings, RunOptions};
use crate::conditions;
use crate::load::LoadReport;
use crate::machine;
use composed::Nsec3Nsec5Pair;
use counters::OnlineCounts;
use parameters::{ServerChoice, SubjectChoice};
use queries::QueryKind;
use serde::Serialize;
use serde_json::json;
use std::time::Instant;
use subject::{CommonSetup, RunningServer, ZoneWithQueries};

/// Duration of the warm-up of each load, in seconds.
const WARM_UP_SECONDS: f64 = 0.1;

/// A load gets a note if more than this share of its responses has an error code.
const MAX_ERROR_SHARE: f64 = 0.01;

/// A row of the data: the result of one load, or computed sizes ([`composed`]).
#[derive(Default, Serialize)]
struct Row<'r> {
    /// Number of the round, starting at 0.
    round: u32,
    server: String,
    zone: String,
    /// `None` for an unsigned zone.
    scheme: Option<String>,
    denial: String,
    /// Additional iterations of NSEC3.
    iterations: u16,
    queries: String,
    /// Offered rate in queries per second; `None` for a closed loop.
    rate: Option<f64>,
    /// UDP payload size in the queries, in octets.
    payload: u16,
    /// Start of this load, in seconds since the start of the first round.
    at_s: f64,
    #[serde(flatten)]
    load: LoadColumns<'r>,
    /// Memory of all processes of the server when all servers have started, in KiB.
    start_memory_kib: Option<u64>,
    /// The same after the load.
    memory_kib: Option<u64>,
    /// Time from the start of the server until it answered.
    ready_s: Option<f64>,
    /// Number of records of the zone file, and its size.
    records: Option<u64>,
    zone_octets: Option<u64>,
    /// Number of responses of this server, of all kinds of queries, that were validated before the
    /// first load; `None` for an unsigned zone.
    validated: Option<u64>,
    /// Counters of online signing during the load and its warm-up.
    #[serde(flatten)]
    counts: OnlineCounts,
    #[serde(flatten)]
    conditions: conditions::Conditions,
}

/// Columns from the report of the load.
#[derive(Default, Serialize)]
struct LoadColumns<'r> {
    sent: u64,
    received: u64,
    late: u64,
    lost: u64,
    unsent: u64,
    /// Number of responses with TC set; of composed rows: of those above the limit.
    truncated: u64,
    /// The most frequent response code.
    rcode: Option<&'r str>,
    seconds: f64,
    query_octets: f64,
    /// `None` without responses.
    response_octets: Option<f64>,
    response_octets_max: Option<u64>,
    truncated_octets: Option<f64>,
    /// Mean size of the responses over UDP, truncated or not.
    udp_octets: Option<f64>,
    /// CPU time of the server in user mode for each response, in µs.
    user_us: Option<f64>,
    /// CPU time of the server in kernel mode for each response, in µs.
    system_us: Option<f64>,
    /// CPU time of the load generator for each query, in µs.
    load_us: Option<f64>,
    latency_min_us: Option<f64>,
    latency_mean_us: Option<f64>,
    /// Standard deviation.
    latency_sd_us: Option<f64>,
    latency_p50_us: Option<f64>,
    latency_p90_us: Option<f64>,
    latency_p99_us: Option<f64>,
    latency_p99_9_us: Option<f64>,
    latency_max_us: Option<f64>,
}

impl<'r> LoadColumns<'r> {
    fn of(report: &'r LoadReport, query_octets: f64) -> Self {
        let latency = report.latency_us;
        Self {
            sent: report.sent,
            received: report.received,
            late: report.late,
            lost: report.lost,
            unsent: report.unsent,
            truncated: report.truncated,
            rcode: report.rcodes.iter().max_by_key(|(_, count)| **count).map(|(rcode, _)| rcode.as_str()),
            seconds: report.seconds,
            query_octets,
            response_octets: (report.received > 0).then_some(report.response_octets_mean),
            response_octets_max: (report.received > 0).then_some(report.response_octets_max),
            truncated_octets: report.truncated_octets_mean,
            udp_octets: udp_octets(report),
            user_us: report.server_user_us_per_query,
            system_us: report.server_system_us_per_query,
            load_us: report.client_cpu_us_per_query,
            latency_min_us: latency.map(|latency| latency.min),
            latency_mean_us: latency.map(|latency| latency.mean),
            latency_sd_us: standard_deviation_us(&report.latency_histogram_ns),
            latency_p50_us: latency.map(|latency| latency.p50),
            latency_p90_us: latency.map(|latency| latency.p90),
            latency_p99_us: latency.map(|latency| latency.p99),
            latency_p99_9_us: latency.map(|latency| latency.p99_9),
            latency_max_us: latency.map(|latency| latency.max),
        }
    }
}

/// Returns the mean size of the responses over UDP, in octets: of the truncated responses, and of
/// the complete responses over UDP.
fn udp_octets(report: &LoadReport) -> Option<f64> {
    let total = |mean: f64, count: u64| mean * count as f64;
    // Responses over TCP, to queries whose response over UDP was truncated.
    let followed = report.followed.unwrap_or(0);
    let complete = total(report.response_octets_mean, report.received)
        - total(report.followed_octets_mean.unwrap_or(0.0), followed);
    let truncated = total(report.truncated_octets_mean.unwrap_or(0.0), report.truncated);
    let count = (report.received + report.truncated).saturating_sub(followed);
    (count > 0).then(|| (complete + truncated) / count as f64)
}

/// Returns the sample standard deviation of a histogram of values in ns, in µs; `None` with fewer
/// than two values.
fn standard_deviation_us(histogram: &[(u64, u64)]) -> Option<f64> {
    let count: u64 = histogram.iter().map(|(_, count)| count).sum();
    if count < 2 {
        return None;
    }
    let sum = |value: fn(f64, f64) -> f64, mean: f64| -> f64 {
        histogram.iter().map(|(ns, count)| value(*ns as f64, mean) * *count as f64).sum()
    };
    let mean = sum(|ns, _| ns, 0.0) / count as f64;
    let squares = sum(|ns, mean| (ns - mean).powi(2), mean);
    Some((squares / (count - 1) as f64).sqrt() / 1000.0)
}

/// Runs the experiment and returns its description for the record of the run.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    let chosen = parameters.subjects();
    if chosen.is_empty() || parameters.queries.is_empty() || parameters.rates.is_empty() {
        return Err(findings.nothing_to_measure(
            "set zones, servers, algorithms, denial, queries and rates that fit together",
        ));
    }
    let cpus = machine::choose_cpus();
    let RunOptions { now, seed, program, .. } = *options;
    let setup = CommonSetup { parameters, program, cpus, now, seed };
    let mut zones: Vec<ZoneWithQueries> = Vec::new();
    let mut servers = Vec::new();
    for (index, choice) in chosen.iter().enumerate() {
        let progress = |what: &str| options.begin(index, chosen.len(), &format!("{choice}: {what}"));
        let known = zones.iter().position(|zone| zone.choice == choice.zone);
        let zone_index = known.unwrap_or(zones.len());
        if known.is_none() {
            progress("generating queries");
            zones.push(ZoneWithQueries::new(&choice.zone, &parameters.queries, seed)?);
        }
        let directory = temporary_directory(&std::env::temp_dir())?;
        match setup.start(choice, &zones[zone_index], directory, &progress) {
            Ok(server) => servers.push((zone_index, server)),
            Err(reason) => {
                findings.record_failure(&choice.server.to_string(), choice.zone_description(), &reason);
            }
        }
    }
    findings.note_failures();
    if servers.is_empty() {
        return Err(findings.nothing_to_measure("no server can be measured"));
    }
    record_peers(&servers, findings);
    measure(&setup, &zones, &servers, options, findings)?;
    Ok(json!({
        "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        // A server with several workers is not pinned to a CPU.
        "server_cpu": cpus.filter(|_| parameters.workers.value() == 1).map(|cpus| cpus.server),
        "load_cpu": cpus.map(|cpus| cpus.load),
    }))
}

/// Adds the versions of the measured peers to the record of the run.
fn record_peers(servers: &[(usize, RunningServer)], findings: &mut Findings) {
    for (_, server) in servers {
        if let ServerChoice::Peer(peer) = server.choice.server {
            let version = || peer.version().unwrap_or_else(|| "unknown".to_owned());
            findings.peers.entry(peer.info().name.to_owned()).or_insert_with(version);
        }
    }
}

/// Loads each server in each round with each kind of query and each UDP payload size at each rate,
/// and adds a row for each load. Then adds the rows of composed responses.
fn measure(
    setup: &CommonSetup<'_>,
    zones: &[ZoneWithQueries],
    servers: &[(usize, RunningServer)],
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let parameters = setup.parameters;
    let (rounds, started) = (parameters.rounds.value(), Instant::now());
    let pairs = if parameters.conservative_nsec5 { Nsec3Nsec5Pair::of(servers) } else { Vec::new() };
    // Servers of one program share memory, so that each has less while more of them run.
    let start_memory: Vec<u64> = servers.iter().map(|(_, server)| server.memory_kib()).collect();
    for round in 0..rounds {
        for (index, (zone_index, server)) in servers.iter().enumerate() {
            let start_memory_kib = start_memory.get(index).copied();
            let step = round as usize * servers.len() + index;
            options.begin(step, rounds as usize * servers.len(), &server.choice.to_string());
            let lists = &zones[*zone_index].lists;
            for ((kind, list), payload, rate) in lists.iter().flat_map(|list| parameters.loads_of(list)) {
                let at_s = started.elapsed().as_secs_f64();
                let before = server.online_counts();
                let report = setup.load(server, *kind, list, rate, payload);
                let report = report.map_err(|source| RunError::LoadedServer {
                    name: server.choice.to_string(),
                    source: Box::new(source),
                })?;
                let counts = server.online_counts().since(before);
                note_error_codes(server, *kind, &report, findings);
                let load = LoadColumns::of(&report, kind.query_octets(list));
                let row = Row {
                    round,
                    payload,
                    at_s,
                    load,
                    start_memory_kib,
                    counts,
                    ..row(server, *kind, &report)
                };
                findings.push(&row)?;
            }
        }
        for (pair, (kind, list)) in
            pairs.iter().flat_map(|pair| zones[pair.zone_index].lists.iter().map(move |list| (pair, list)))
        {
            let rows = pair.rows(setup, round, *kind, list, started.elapsed().as_secs_f64());
            let fault = |source| RunError::LoadedServer { name: pair.to_string(), source: Box::new(source) };
            rows.map_err(fault)?.iter().try_for_each(|row| findings.push(row))?;
        }
    }
    Ok(())
}

/// Returns a row without `round`, `payload`, `at_s`, `start_memory_kib` and `load`, which the
/// caller sets.
fn row(server: &RunningServer, kind: QueryKind, report: &LoadReport) -> Row<'static> {
    let SubjectChoice { zone, server: choice, algorithms, denial, iterations } = &server.choice;
    Row {
        server: choice.to_string(),
        zone: zone.to_string(),
        scheme: algorithms.schemes(),
        denial: denial.to_string(),
        iterations: *iterations,
        queries: kind.to_string(),
        rate: report.rate,
        memory_kib: Some(server.memory_kib()),
        ready_s: Some(server.ready_s),
        records: Some(server.prepared.records),
        zone_octets: Some(server.prepared.octets),
        validated: server.validated,
        conditions: conditions::Conditions { others_cpu: report.others_cpu, limited_by: report.limited_by },
        ..Row::default()
    }
}

/// Adds a note for each error code, if more than 1 % of the responses have a code other than
/// NOERROR and NXDOMAIN.
fn note_error_codes(server: &RunningServer, kind: QueryKind, report: &LoadReport, findings: &mut Findings) {
    for rcode in frequent_error_codes(report) {
        findings.note(format!("{}, {kind} queries: responses with the code {rcode}.", server.choice));
    }
}

/// Returns the response codes other than NOERROR and NXDOMAIN, if more than [`MAX_ERROR_SHARE`] of
/// the responses have one of them.
fn frequent_error_codes(report: &LoadReport) -> Vec<&str> {
    let is_error = |rcode: &str| !matches!(rcode, "NOERROR" | "NXDOMAIN");
    let errors = report.rcodes.iter().filter(|(rcode, _)| is_error(rcode));
    let count: u64 = errors.clone().map(|(_, count)| count).sum();
    let are_frequent = count as f64 > MAX_ERROR_SHARE * report.received as f64;
    errors.filter(|_| are_frequent).map(|(rcode, _)| rcode.as_str()).collect()
}

#[cfg(test)]
mod tests;
