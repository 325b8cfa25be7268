//! The echo floor: the cost of a query for a server that only receives and sends, compared with
//! `nonesuch serve`.
//!
//! Every UDP server pays for system calls, the network code of the kernel, and copies. The echo
//! server returns each query, truncated or padded to the size of a response. It uses the same code
//! for receiving and sending as `nonesuch serve` (`recvmmsg`, `sendmmsg`), and does nothing else.
//! The same load generator loads both in turn. The difference is the cost of generating responses.

use super::error::{RunError, temporary_directory};
use super::parameters::{Count, Octets, PresignedMechanism, QueriedNames, Seconds, Workers, deduplicate};
use super::run::{Findings, RunOptions};
use crate::conditions::Conditions;
use crate::load::QueryList;
use crate::measure::AlgorithmChoice;
use crate::measure::echo::{default_queries, echoing};
use crate::measure::level::LevelProgram;
use crate::measure::loaded::{IdleCounter, LoadSetup, LoadedServer, WARM_UP_SECONDS};
use crate::measure::prepare::PrepareZoneError;
use crate::measure::zone_files::ZoneFiles;
use nonesuch_crypto::Algorithm;
use nonesuch_dnssec::Mechanism;
use serde::{Deserialize, Serialize};
use serde_json::json;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

const ORIGIN: &str = "example.";
/// Algorithm of the zone's signatures.
const ALGORITHM: AlgorithmChoice = AlgorithmChoice { algorithm: Algorithm::ECDSAP256SHA256, bits: None };
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
    pub denial: Vec<PresignedMechanism>,
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
            denial: [Mechanism::Nsec, Mechanism::Nsec3, Mechanism::Nsec3OptOut]
                .map(PresignedMechanism)
                .to_vec(),
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
    #[serde(flatten)]
    conditions: Conditions,
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

impl fmt::Display for Subject {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.server)?;
        self.denial.iter().try_for_each(|denial| write!(f, " {denial}"))?;
        self.queries.iter().try_for_each(|queries| write!(f, " {queries}"))
    }
}

/// Runs the experiment and returns its description for the record.
pub(super) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    findings: &mut Findings,
) -> Result<serde_json::Value, RunError> {
    let workers: Vec<u16> = deduplicate(parameters.workers.iter().map(|workers| workers.value()));
    let is_served = !parameters.denial.is_empty() && !parameters.queries.is_empty();
    if workers.is_empty() || (parameters.octets.is_empty() && !is_served) {
        return Err(
            findings.nothing_to_measure("set a number of workers, and either octets or denial and queries")
        );
    }
    options.begin(0, 1, "generating the zone");
    let zone = ZoneFiles {
        program: LevelProgram::native(options.program),
        directory: temporary_directory(&std::env::temp_dir())?,
        origin: ORIGIN,
        now: options.now,
    };
    let lists = if is_served { prepare(parameters, options, &zone)? } else { Vec::new() };
    let setup = LoadSetup::new(zone.directory(), parameters.outstanding.value(), parameters.sockets.value());
    let mut servers = Servers { parameters, options, lists, setup, running: Vec::new(), zone };
    workers.iter().try_for_each(|workers| servers.start_all(*workers))?;
    servers.setup.notes(&workers).into_iter().for_each(|note| findings.note(note));
    servers.measure(findings)?;
    Ok(json!({
        "version": format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        "names": parameters.names.value(),
        "algorithm": ALGORITHM.to_string(),
        "server_cpu": servers.setup.cpus.map(|cpus| cpus.server),
        "load_cpu": servers.setup.cpus.map(|cpus| cpus.load),
    }))
}

/// Generates the zone, its keys and its signed versions. Returns the queries of each kind.
fn prepare(
    parameters: &Parameters,
    options: &RunOptions<'_>,
    zone: &ZoneFiles,
) -> Result<Vec<(QueriedNames, Arc<QueryList>)>, PrepareZoneError> {
    let mut lists = Vec::new();
    for kind in deduplicate(parameters.queries.clone()) {
        let denied = kind == QueriedNames::Denied;
        lists.push((kind, Arc::new(zone.generate(parameters.names.value(), denied, options.seed)?)));
    }
    zone.generate_keys(ALGORITHM)?;
    deduplicate(parameters.denial.clone()).iter().try_for_each(|denial| zone.sign(denial.0))?;
    Ok(lists)
}

/// The running servers.
struct Servers<'a> {
    parameters: &'a Parameters,
    options: &'a RunOptions<'a>,
    lists: Vec<(QueriedNames, Arc<QueryList>)>,
    setup: LoadSetup,
    running: Vec<(Subject, LoadedServer)>,
    /// The last field: the servers are stopped before their files are removed.
    zone: ZoneFiles,
}

impl Servers<'_> {
    /// Starts the servers with `workers` workers.
    fn start_all(&mut self, workers: u16) -> Result<(), RunError> {
        // The echo server does not read the queries, so any list will do.
        let any = self.lists.first().map_or_else(default_queries, |(_, list)| Arc::clone(list));
        for octets in deduplicate(self.parameters.octets.clone()) {
            let subject = Subject { server: ECHO, denial: None, queries: None, workers };
            self.start_echo(subject, octets, &any)?;
        }
        for denial in deduplicate(self.parameters.denial.clone()) {
            for (kind, list) in self.lists.clone() {
                let (queries, denial_name) = (Some(kind), Some(denial.0.to_string()));
                let subject = Subject { server: SERVER, denial: denial_name, queries, workers };
                let command = self.zone.serve_command(denial.0, workers);
                let served = self.setup.start(&subject.to_string(), command, workers, &list)?;
                // The floor of this server is measured with responses of the same size.
                let octets = Octets::nearest(self.setup.response_octets(&served)?);
                self.running.push((subject.clone(), served));
                self.start_echo(Subject { server: ECHO, ..subject }, octets, &list)?;
            }
        }
        Ok(())
    }

    fn start_echo(
        &mut self,
        subject: Subject,
        octets: Octets,
        list: &Arc<QueryList>,
    ) -> Result<(), RunError> {
        let command = echoing(self.zone.program.command(), octets.value(), subject.workers);
        let server = self.setup.start(&subject.to_string(), command, subject.workers, list)?;
        self.running.push((subject, server));
        Ok(())
    }

    /// Loads each server once in each round, and adds a row for each load.
    fn measure(&self, findings: &mut Findings) -> Result<(), RunError> {
        let (rounds, servers) = (self.parameters.rounds.value(), self.running.len());
        let mut idle = IdleCounter::default();
        for round in 0..rounds {
            for (place, (subject, server)) in self.running.iter().enumerate() {
                let step = round as usize * servers + place;
                self.options.begin(step, rounds as usize * servers, &subject.to_string());
                let report = self.setup.load(server, self.parameters.seconds.value())?;
                idle.count(subject.workers, &report);
                findings.push(&Row {
                    round,
                    subject,
                    query_octets: server.query_octets(),
                    response_octets: report.response_octets_mean,
                    sent: report.sent,
                    received: report.received,
                    seconds: report.seconds,
                    user_us: report.server_user_us_per_query,
                    system_us: report.server_system_us_per_query,
                    load_us: report.client_cpu_us_per_query,
                    conditions: Conditions { others_cpu: report.others_cpu, limited_by: report.limited_by },
                })?;
            }
        }
        findings.notes.extend(idle.note());
        Ok(())
    }
}

#[cfg(test)]
mod tests;
