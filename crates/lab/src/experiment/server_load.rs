//! Servers under load: this program and other servers, with zones of several algorithms and denial
//! mechanisms, kinds of queries and rates.
//!
//! The method publishes the zone in each way, starts all servers, and validates samples of their
//! responses. A server whose responses are not valid is left out. A round then loads each server
//! with each kind of query at each rate, while all other servers wait. Each load is a row.

mod composed;
mod counters;
mod parameters;
mod queries;
mod subject;

pub(super) use parameters::Parameters;
pub(super) use subject::LoadedZoneError;

use super::error::{RunError, temporary_directory};
use super::run::{Findings, RunOptions};
use crate::conditions;
use crate::load::LoadReport;
use crate::machine;
use composed::Twins;
use counters::OnlineCounts;
use parameters::{ServerChoice, SubjectChoice};
use queries::QueryKind;
use serde::Serialize;
use serde_json::json;
use std::time::Instant;
use subject::{Conditions, LoadedZone, Subject};

/// Duration of the warm-up of each load, in seconds.
const WARM_UP_SECONDS: f64 = 0.1;

/// A load gets a note if more than this share of its responses has an error code.
const MAX_ERROR_SHARE: f64 = 0.01;

/// A row of the data: the result of one load.
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
    /// Time from the start of the load of the first round, in seconds.
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
    /// Number of validated responses; `None` for an unsigned zone.
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
    /// Number of responses over UDP that were truncated and then repeated over TCP.
    truncated: u64,
    /// Number of responses with the most frequent response code, and this code.
    rcode: Option<&'r str>,
    seconds: f64,
    query_octets: f64,
    /// `None` without responses.
    response_octets: Option<f64>,
    response_octets_max: Option<u64>,
    truncated_octets: Option<f64>,
    /// Mean size of the responses over UDP, truncated or not.
    udp_octets: Option<f64>,
    user_us: Option<f64>,
    system_us: Option<f64>,
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
/// those that were not repeated over TCP.
fn udp_octets(report: &LoadReport) -> Option<f64> {
    let total = |mean: f64, count: u64| mean * count as f64;
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

/// Runs the experiment and returns its description for the record.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    let chosen = parameters.subjects();
    if chosen.is_empty() || parameters.queries.is_empty() || parameters.rates.is_empty() {
        return Err(
            findings.nothing("set zones, servers, algorithms, denial, queries and rates that fit together")
        );
    }
    let cpus = machine::choose_cpus();
    let RunOptions { now, seed, program, .. } = *options;
    let conditions = Conditions { parameters, program, cpus, now, seed };
    let mut zones: Vec<LoadedZone> = Vec::new();
    let mut subjects = Vec::new();
    for (index, choice) in chosen.iter().enumerate() {
        let progress = |what: &str| options.begin(index, chosen.len(), &format!("{choice}: {what}"));
        if zones.iter().all(|zone| zone.choice != choice.zone) {
            progress("generating queries");
            zones.push(LoadedZone::new(&choice.zone, &parameters.queries, seed)?);
        }
        for (place, zone) in zones.iter().enumerate().filter(|(_, zone)| zone.choice == choice.zone) {
            let directory = temporary_directory(&std::env::temp_dir())?;
            match conditions.start(choice, zone, directory, &progress) {
                Ok(subject) => subjects.push((place, subject)),
                Err(reason) => {
                    findings.record_failure(&choice.server.to_string(), choice.publication(), &reason);
                }
            }
        }
    }
    findings.note_failures();
    if subjects.is_empty() {
        return Err(findings.nothing("no server can be measured"));
    }
    record_peers(&subjects, findings);
    measure(&conditions, &zones, &subjects, options, findings)?;
    Ok(json!({
        "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        "server_cpu": cpus.filter(|_| parameters.workers.value() == 1).map(|cpus| cpus.server),
        "load_cpu": cpus.map(|cpus| cpus.load),
    }))
}

/// Adds the versions of the measured peers to the record.
fn record_peers(subjects: &[(usize, Subject)], findings: &mut Findings) {
    for (_, subject) in subjects {
        if let ServerChoice::Peer(peer) = subject.choice.server {
            let version = || peer.version().unwrap_or_else(|| "unknown".to_owned());
            findings.peers.entry(peer.info().name.to_owned()).or_insert_with(version);
        }
    }
}

/// Loads each server in each round, and adds a row for each load.
fn measure(
    conditions: &Conditions<'_>,
    zones: &[LoadedZone],
    subjects: &[(usize, Subject)],
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let parameters = conditions.parameters;
    let (rounds, started) = (parameters.rounds.value(), Instant::now());
    let twins = if parameters.conservative_nsec5 { Twins::of(subjects) } else { Vec::new() };
    // Servers of one program share memory, so that each has less while more of them run.
    let start_memory: Vec<u64> = subjects.iter().map(|(_, subject)| subject.memory_kib()).collect();
    for round in 0..rounds {
        for (index, (place, subject)) in subjects.iter().enumerate() {
            let start_memory_kib = start_memory.get(index).copied();
            let step = round as usize * subjects.len() + index;
            options.begin(step, rounds as usize * subjects.len(), &subject.choice.to_string());
            let lists = &zones[*place].lists;
            for ((kind, list), payload, rate) in lists.iter().flat_map(|list| parameters.loads_of(list)) {
                let at_s = started.elapsed().as_secs_f64();
                let before = subject.online_counts();
                let report = conditions.load(subject, *kind, list, rate, payload);
                let report = report.map_err(|source| RunError::LoadedServer {
                    name: subject.choice.to_string(),
                    source: Box::new(source),
                })?;
                let counts = subject.online_counts().since(before);
                note_error_codes(subject, *kind, &report, findings);
                let load = LoadColumns::of(&report, kind.query_octets(list));
                let row = Row {
                    round,
                    payload,
                    at_s,
                    load,
                    start_memory_kib,
                    counts,
                    ..row(subject, *kind, &report)
                };
                findings.push(&row)?;
            }
        }
        for (twins, (kind, list)) in
            twins.iter().flat_map(|twins| zones[twins.place].lists.iter().map(move |list| (twins, list)))
        {
            let rows = twins.rows(conditions, round, *kind, list, started.elapsed().as_secs_f64());
            let fault = |source| RunError::LoadedServer { name: twins.to_string(), source: Box::new(source) };
            rows.map_err(fault)?.iter().try_for_each(|row| findings.push(row))?;
        }
    }
    Ok(())
}

/// Returns the columns of the server and of the report, without those of the load.
fn row(subject: &Subject, kind: QueryKind, report: &LoadReport) -> Row<'static> {
    let SubjectChoice { zone, server, algorithms, denial, iterations } = &subject.choice;
    Row {
        server: server.to_string(),
        zone: zone.to_string(),
        scheme: algorithms.schemes(),
        denial: denial.to_string(),
        iterations: *iterations,
        queries: kind.to_string(),
        rate: report.rate,
        memory_kib: Some(subject.memory_kib()),
        ready_s: Some(subject.ready_s),
        records: Some(subject.published.records),
        zone_octets: Some(subject.published.octets),
        validated: subject.validated,
        conditions: conditions::Conditions { others_cpu: report.others_cpu, limited_by: report.limited_by },
        ..Row::default()
    }
}

/// Adds a note if more than 1 % of the responses have a code other than NOERROR and NXDOMAIN.
fn note_error_codes(subject: &Subject, kind: QueryKind, report: &LoadReport, findings: &mut Findings) {
    for rcode in frequent_error_codes(report) {
        findings.note(format!("{}, {kind} queries: responses with the code {rcode}.", subject.choice));
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
