//! The echo floor: the cost of a query for a server that only receives and sends, compared with
//! `nonesuch serve`.
//!
//! Every UDP server pays for system calls, the network code of the kernel, and copies. The echo
//! server returns each query, truncated or padded to the size of a response. It uses the same code
//! for receiving and sending as `nonesuch serve` (`recvmmsg`, `sendmmsg`), and does nothing else.
//! The same load generator loads both in turn. The difference is the cost of generating responses.

mod servers;

use self::servers::Servers;
use super::error::RunError;
use super::parameters::{Count, Denial, Octets, QueriedNames, Seconds, Workers, deduplicate};
use super::run::{Findings, RunOptions};
use crate::load::{LoadReport, QueryList};
use crate::machine::{self, CpuPlacement};
use crate::measure::server::Server;
use nonesuch_dnssec::Mechanism;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

/// Duration of the warm-up of each load, in seconds.
const WARM_UP_SECONDS: f64 = 0.1;
/// Algorithm of the zone's signatures.
const ALGORITHM: &str = "ECDSAP256SHA256";
/// CPU share below which a server with one worker counts as idle. An idle server sleeps between
/// batches, and waking up costs CPU time.
const BUSY_SHARE: f64 = 0.9;
/// Name of `nonesuch serve` in the data.
const SERVER: &str = "nonesuch";
/// Name of the echo server in the data.
const ECHO: &str = "echo";

/// Parameters of the experiment.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Number of rounds. A round loads each server once.
    pub rounds: Count,
    /// Duration of each load, in seconds.
    pub seconds: Seconds,
    /// Number of delegations of the generated zone.
    pub names: Count,
    /// Response sizes of echo servers, in octets, in addition to those of `nonesuch serve`.
    pub octets: Vec<Octets>,
    /// Denial mechanisms of the zone.
    pub denial: Vec<Denial>,
    /// Kinds of queries.
    pub queries: Vec<QueriedNames>,
    /// Numbers of workers of the servers. Each number is measured with its own servers.
    pub workers: Vec<Workers>,
    /// Maximum number of outstanding queries; at least one for each socket.
    pub outstanding: Count,
    /// Number of source sockets. The outstanding queries are distributed over them.
    pub sockets: Count,
}

impl Default for Parameters {
    fn default() -> Self {
        Self {
            rounds: Count::of(5),
            seconds: Seconds::of(1.0),
            names: Count::of(1000),
            octets: [160, 400, 800].map(Octets::of).to_vec(),
            denial: [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut].map(Denial).to_vec(),
            queries: vec![QueriedNames::Existing, QueriedNames::Denied],
            workers: vec![Workers::of(1)],
            outstanding: Count::of(128),
            sockets: Count::of(1),
        }
    }
}

impl Parameters {
    /// Returns the approximate duration of the experiment: the loads, and the preparation of the
    /// zones.
    pub fn duration(&self) -> Duration {
        let pairs = deduplicate(self.denial.clone()).len() * deduplicate(self.queries.clone()).len();
        let servers =
            (2 * pairs + deduplicate(self.octets.clone()).len()) * deduplicate(self.workers.clone()).len();
        let seconds =
            f64::from(self.rounds.value()) * (self.seconds.value() + WARM_UP_SECONDS) * servers as f64;
        // Generation and signing of the zones.
        let before = f64::from(self.names.value()) * self.denial.len() as f64 * 2e-5;
        Duration::try_from_secs_f64(seconds + before).unwrap_or(Duration::MAX)
    }
}

/// A row of the data: the result of one load.
#[derive(Serialize)]
struct Row<'r> {
    /// Number of the round, starting at 0.
    round: u32,
    #[serde(flatten)]
    subject: &'r Subject,
    /// Mean size of a query (DNS message).
    query_octets: f64,
    /// Mean size of a response (DNS message).
    response_octets: f64,
    /// Number of queries sent.
    sent: u64,
    /// Number of responses received.
    received: u64,
    /// Time from the first query to the last response.
    seconds: f64,
    /// CPU time of the server in user mode for each response.
    user_us: Option<f64>,
    /// CPU time of the server in kernel mode for each response.
    system_us: Option<f64>,
    /// CPU time of the load generator for each query.
    load_us: Option<f64>,
}

/// A server and the kind of its load. Each `nonesuch serve` has an echo server with the same
/// response size, and the same `denial` and `queries`. For an echo server with a size from the
/// parameter `octets`, both are `None`.
#[derive(Clone, Debug, Serialize)]
struct Subject {
    server: &'static str,
    denial: Option<String>,
    queries: Option<QueriedNames>,
    workers: u16,
}

/// A running server and its queries.
struct RunningServer {
    subject: Subject,
    server: Server,
    queries: Arc<QueryList>,
}

/// Runs the experiment and returns its description for the record.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    let cpus = machine::choose_cpus();
    let workers: Vec<u16> = deduplicate(parameters.workers.iter().map(|workers| workers.value()));
    check(parameters, &workers, cpus, findings)?;
    options.begin(0, 1, "generating the zone");
    let mut servers = Servers::prepare(parameters, options, cpus)?;
    let mut cells = Vec::new();
    for workers in workers {
        servers.start_all(workers, &mut cells)?;
    }
    measure(&servers, &cells, findings)?;
    Ok(json!({
        "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        "names": parameters.names.value(),
        "algorithm": ALGORITHM,
        "server_cpu": cpus.map(|cpus| cpus.server),
        "load_cpu": cpus.map(|cpus| cpus.load),
    }))
}

/// Fails if there is nothing to measure. Adds notes about numbers of CPUs or sockets that affect
/// the measurements.
fn check(
    parameters: &Parameters,
    workers: &[u16],
    cpus: Option<CpuPlacement>,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let nothing = workers.is_empty()
        || (parameters.octets.is_empty() && (parameters.denial.is_empty() || parameters.queries.is_empty()));
    if nothing {
        let reason = "set a number of workers, and either octets or denial and queries".to_owned();
        return Err(RunError::Nothing { reason });
    }
    let cpu_count = machine::allowed_cpus().len();
    if cpus.is_none() {
        findings.note("Server and load generator shared one CPU: the measurements include both.".to_owned());
    } else if workers.iter().any(|workers| usize::from(*workers) >= cpu_count) {
        findings.note(format!(
            "The machine has {cpu_count} CPUs: with {cpu_count} or more workers, the load generator shared a CPU with a worker."
        ));
    }
    let most_workers = workers.iter().copied().max().unwrap_or(1);
    let sockets = parameters.sockets.value();
    if most_workers > 1 && sockets < 8 * u32::from(most_workers) {
        findings.note(format!(
            "The kernel distributes the {sockets} sockets of the load generator over {most_workers} workers at random: --set sockets={} distributes them evenly.",
            16 * most_workers
        ));
    }
    Ok(())
}

/// Loads each server once in each round, and adds a row for each load.
fn measure(servers: &Servers<'_>, cells: &[RunningServer], findings: &mut Findings) -> Result<(), RunError> {
    let rounds = servers.parameters.rounds.value();
    let (mut idle, mut single) = (0, 0);
    for round in 0..rounds {
        for (place, cell) in cells.iter().enumerate() {
            let Subject { server, denial, queries, workers } = &cell.subject;
            let queries = queries.map(|asked| asked.to_string()).unwrap_or_default();
            let what = format!("{server} {} {queries}", denial.as_deref().unwrap_or_default());
            let step = round as usize * cells.len() + place;
            servers.options.begin(step, rounds as usize * cells.len(), what.trim_end());
            let report = servers.load(cell, servers.parameters.seconds.value())?;
            if *workers == 1 {
                single += 1;
                idle += u32::from(is_idle(&report));
            }
            findings.push(&Row {
                round,
                subject: &cell.subject,
                query_octets: mean_query(&cell.queries),
                response_octets: report.response_octets_mean,
                sent: report.sent,
                received: report.received,
                seconds: report.seconds,
                user_us: report.server_user_us_per_query,
                system_us: report.server_system_us_per_query,
                load_us: report.client_cpu_us_per_query,
            })?;
        }
    }
    if idle > 0 {
        findings.note(format!(
            "In {idle} of {single} loads of one worker the server was busy for less than {:.0} % of the \
            time: the load generator or other programs limited the rate, and a server that sleeps between \
            batches needs more CPU time for each query.",
            100.0 * BUSY_SHARE
        ));
    }
    Ok(())
}

/// Whether a server with one worker was idle for part of the time.
fn is_idle(report: &LoadReport) -> bool {
    report.server_cpu_us_per_query.is_some_and(|cpu| cpu * report.qps / 1e6 < BUSY_SHARE)
}

/// Returns the queries for echo servers if no zone is served: 45 octets, as for a small zone.
fn default_queries() -> Arc<QueryList> {
    let list = QueryList::parse(Path::new("none"), b"name0000.example. A");
    Arc::new(list.unwrap_or_default())
}

/// Returns the mean size of a query, in octets: header, question and OPT record.
fn mean_query(queries: &QueryList) -> f64 {
    let octets: usize = (0..queries.len()).filter_map(|index| queries.question(index)).map(<[u8]>::len).sum();
    octets as f64 / queries.len().max(1) as f64 + 12.0 + 11.0
}

#[cfg(test)]
mod tests;
