//! The echo floor: what a query costs a server that does nothing but receive and send, beside what it costs ours.
//!
//! A server of datagrams pays for system calls, for the kernel's network and for copies, whatever it answers. A server
//! that sends back the head of each query, filled up to the size of an answer, by the same code (`recvmmsg`, `sendmmsg`),
//! pays for that alone. Both are loaded in turn by the same generator, so that what is left between them is the making of
//! answers.

mod servers;

use self::servers::Servers;
use super::error::RunError;
use super::parameters::{Count, Denial, Octets, QueriedNames, Seconds, Workers, each_once};
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

/// Seconds of each load before anything counts.
const WARM_UP: f64 = 0.1;
/// The algorithm that the zone is signed with.
const ALGORITHM: &str = "ECDSAP256SHA256";
/// Where a server is less busy than this, it sleeps between queries, and wakes at a cost.
const BUSY_SHARE: f64 = 0.9;
/// The server that makes answers, as the data have it.
const SERVER: &str = "nonesuch";
/// The server that makes none.
const ECHO: &str = "echo";

/// What is loaded, how often and for how long.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields, default, rename_all = "kebab-case")]
pub struct Parameters {
    /// Rounds; each loads every server once.
    pub rounds: Count,
    /// Seconds of each load.
    pub seconds: Seconds,
    /// Names of the zone that is served.
    pub names: Count,
    /// Octets of the answers of echo servers beside those that have the size of our answers.
    pub octets: Vec<Octets>,
    /// Denial mechanisms of the zone.
    pub denial: Vec<Denial>,
    /// Which queries.
    pub queries: Vec<QueriedNames>,
    pub workers: Vec<Workers>,
    pub outstanding: Count,
    /// Sockets of the load generator, which share them.
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
    /// How long all of it takes, about: loads, and what comes before them.
    pub fn duration(&self) -> Duration {
        let pairs = each_once(self.denial.clone()).len() * each_once(self.queries.clone()).len();
        let servers =
            (2 * pairs + each_once(self.octets.clone()).len()) * each_once(self.workers.clone()).len();
        let seconds = f64::from(self.rounds.value()) * (self.seconds.value() + WARM_UP) * servers as f64;
        // Making and signing the zones.
        let before = f64::from(self.names.value()) * self.denial.len() as f64 * 2e-5;
        Duration::try_from_secs_f64(seconds + before).unwrap_or(Duration::MAX)
    }
}

/// A row of the data: a load.
#[derive(Serialize)]
struct Row<'r> {
    round: u32,
    #[serde(flatten)]
    subject: &'r Subject,
    query_octets: f64,
    response_octets: f64,
    sent: u64,
    received: u64,
    seconds: f64,
    user_us: Option<f64>,
    system_us: Option<f64>,
    load_us: Option<f64>,
}

/// What is loaded. An echo server has mechanism and queries of the answers whose size it has; neither for another size.
#[derive(Clone, Debug, Serialize)]
struct Subject {
    server: &'static str,
    denial: Option<String>,
    queries: Option<QueriedNames>,
    workers: u16,
}

/// A running server and what it is asked.
struct Cell {
    subject: Subject,
    server: Server,
    queries: Arc<QueryList>,
}

/// Runs the experiment.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    let places = machine::choose_cpus();
    let workers: Vec<u16> = each_once(parameters.workers.iter().map(|workers| workers.value()));
    check(parameters, &workers, places, findings)?;
    options.begin(0, 1, "making the zone");
    let mut servers = Servers::prepare(parameters, options, places)?;
    let mut cells = Vec::new();
    for workers in workers {
        servers.start_all(workers, &mut cells)?;
    }
    measure(&servers, &cells, findings)?;
    Ok(json!({
        "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        "names": parameters.names.value(),
        "algorithm": ALGORITHM,
        "server_cpu": places.map(|places| places.server),
        "load_cpu": places.map(|places| places.load),
    }))
}

fn check(
    parameters: &Parameters,
    workers: &[u16],
    places: Option<CpuPlacement>,
    findings: &mut Findings,
) -> Result<(), RunError> {
    let nothing = workers.is_empty()
        || (parameters.octets.is_empty() && (parameters.denial.is_empty() || parameters.queries.is_empty()));
    if nothing {
        let reason = "name a number of workers, and either octets or denial and queries".to_owned();
        return Err(RunError::Nothing { reason });
    }
    let cpus = machine::allowed_cpus().len();
    if places.is_none() {
        findings.note("Server and load generator shared one CPU: the figures are of both.".to_owned());
    } else if workers.iter().any(|workers| usize::from(*workers) >= cpus) {
        findings.note(format!(
            "There are {cpus} CPUs: the load generator shared one with a worker where there were as many workers or more."
        ));
    }
    let most = workers.iter().copied().max().unwrap_or(1);
    let sockets = parameters.sockets.value();
    if most > 1 && sockets < 8 * u32::from(most) {
        findings.note(format!(
            "The kernel spreads the generator's {sockets} sockets over {most} workers by chance: --set sockets={} spreads them evenly.",
            16 * most
        ));
    }
    Ok(())
}

fn measure(servers: &Servers<'_>, cells: &[Cell], findings: &mut Findings) -> Result<(), RunError> {
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
            "In {idle} of {single} loads of one worker the server was busy for less than {:.0} % of the time: the load \
             generator or other programs set the pace, and a server that sleeps between batches spends more on each query.",
            100.0 * BUSY_SHARE
        ));
    }
    Ok(())
}

/// Whether a server of one worker had time to sleep.
fn is_idle(report: &LoadReport) -> bool {
    report.server_cpu_us_per_query.is_some_and(|cpu| cpu * report.qps / 1e6 < BUSY_SHARE)
}

/// What an echo server is asked where no zone is served: 45 octets, as queries of a small zone have.
fn default_queries() -> Arc<QueryList> {
    let list = QueryList::parse(Path::new("none"), b"name0000.example. A");
    Arc::new(list.unwrap_or_default())
}

/// Octets of a query in the mean: header, question, OPT record.
fn mean_query(queries: &QueryList) -> f64 {
    let octets: usize = (0..queries.len()).filter_map(|index| queries.question(index)).map(<[u8]>::len).sum();
    octets as f64 / queries.len().max(1) as f64 + 12.0 + 11.0
}

#[cfg(test)]
mod tests;
