//! Servers under load. Servers with one worker are bound to one CPU, and the load generator to
//! another. The generator loads one server at a time, while all others wait.

use super::server::{Server, ServerError};
use crate::conditions::{BUSY_SHARE, Limit};
use crate::load::{self, LoadError, LoadOptions, LoadReport, QueryList};
use crate::machine::{self, CpuPlacement};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

/// Duration of the warm-up of each load, in seconds.
pub(crate) const WARM_UP_SECONDS: f64 = 0.1;
/// Number of queries whose responses are measured before a load.
const SAMPLED_QUERIES: u64 = 1000;
/// Time limit for these queries, in seconds.
const SAMPLE_LIMIT_SECONDS: f64 = 30.0;
/// Time limit for a server to read its zone.
const READY_LIMIT: Duration = Duration::from_secs(600);
/// Share of lost queries above which a load fails, because the figures are meaningless.
const MAX_LOST_SHARE: f64 = 0.01;
/// Octets of a query in addition to the question: header (RFC 1035 §4.1.1) and OPT record without
/// options (RFC 6891 §6.1.2).
const HEADER_AND_OPT: f64 = 12.0 + 11.0;

/// Reasons why a server is not measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LoadedError {
    #[error("{name}: {source}")]
    Start { name: String, source: ServerError },
    #[error("{name}: {source}")]
    Load { name: String, source: LoadError },
    #[error("{name}: {lost} of {sent} queries were not answered; reduce --set outstanding")]
    Unanswered { name: String, lost: u64, sent: u64 },
}

/// A running server and the queries of its load.
pub(crate) struct LoadedServer {
    name: String,
    server: Server,
    pub(crate) queries: Arc<QueryList>,
}

/// Conditions that are the same for all servers.
pub(crate) struct LoadSetup {
    /// Directory for log files.
    directory: PathBuf,
    /// `None` if this process may use only one CPU.
    pub(crate) cpus: Option<CpuPlacement>,
    outstanding: usize,
    sockets: usize,
    /// Number of started servers.
    started: u32,
    /// Number of servers with one worker that could not be bound to the server CPU.
    unbound: u32,
}

impl LoadSetup {
    /// Creates the setup. At least one query for each of the `sockets` is outstanding.
    pub(crate) fn new(directory: &Path, outstanding: u32, sockets: u32) -> Self {
        let (outstanding, sockets) = (outstanding.max(sockets) as usize, sockets as usize);
        Self {
            directory: directory.to_owned(),
            cpus: machine::choose_cpus(),
            outstanding,
            sockets,
            started: 0,
            unbound: 0,
        }
    }

    /// Starts a server. Binds a server with one worker to the server CPU. A server with several
    /// workers gets the option `--cpus`, so `command` must run this program. Errors contain `name`.
    pub(crate) fn start(
        &mut self,
        name: &str,
        mut command: Command,
        workers: u16,
        queries: &Arc<QueryList>,
    ) -> Result<LoadedServer, LoadedError> {
        if workers > 1 {
            let cpus: Vec<String> = machine::allowed_cpus().iter().rev().map(ToString::to_string).collect();
            command.args(["--cpus", &cpus.join(",")]);
        }
        let cpu = self.cpus.filter(|_| workers == 1).map(|cpus| cpus.server);
        self.started += 1;
        let log = self.directory.join(format!("log-{}", self.started));
        let server = Server::start(command, cpu, &log, READY_LIMIT)
            .map_err(|source| LoadedError::Start { name: name.to_owned(), source })?;
        self.unbound += u32::from(cpu.is_some() && !server.pinned);
        Ok(LoadedServer { name: name.to_owned(), server, queries: Arc::clone(queries) })
    }

    /// Loads a server for `seconds` after the warm-up.
    pub(crate) fn load(&self, loaded: &LoadedServer, seconds: f64) -> Result<LoadReport, LoadedError> {
        let warm_up = Duration::from_secs_f64(WARM_UP_SECONDS);
        self.run(loaded, &LoadOptions { warm_up, seconds, ..self.options(loaded) })
    }

    /// Returns the mean size of [`SAMPLED_QUERIES`] responses, in octets.
    pub(crate) fn response_octets(&self, loaded: &LoadedServer) -> Result<f64, LoadedError> {
        let limit = Some(SAMPLED_QUERIES);
        let seconds = SAMPLE_LIMIT_SECONDS;
        Ok(self.run(loaded, &LoadOptions { limit, seconds, ..self.options(loaded) })?.response_octets_mean)
    }

    fn options(&self, loaded: &LoadedServer) -> LoadOptions {
        LoadOptions {
            outstanding: self.outstanding,
            sockets: self.sockets,
            server_pid: Some(loaded.server.pid()),
            cpus: self.cpus.map(|cpus| vec![cpus.load]),
            ..LoadOptions::new(loaded.server.address, Arc::clone(&loaded.queries))
        }
    }

    fn run(&self, loaded: &LoadedServer, options: &LoadOptions) -> Result<LoadReport, LoadedError> {
        let name = loaded.name.clone();
        let report = match load::run(options) {
            Ok(report) => report,
            Err(source) => return Err(LoadedError::Load { name, source }),
        };
        if report.received == 0 || report.lost as f64 > MAX_LOST_SHARE * report.sent as f64 {
            return Err(LoadedError::Unanswered { name, lost: report.lost, sent: report.sent });
        }
        Ok(report)
    }

    /// Returns notes about CPUs and numbers of sockets that affect the started servers, which have
    /// these numbers of workers.
    pub(crate) fn notes(&self, workers: &[u16]) -> Vec<String> {
        let mut notes = Vec::new();
        let (cpus, most) = (machine::allowed_cpus().len(), workers.iter().copied().max().unwrap_or(1));
        if self.cpus.is_none() {
            notes.push("Server and load generator shared one CPU: the measurements include both.".to_owned());
        } else if usize::from(most) >= cpus {
            notes.push(format!(
                "The machine has {cpus} CPUs: with {cpus} or more workers, the load generator shared a CPU with a worker."
            ));
        }
        if self.unbound > 0 {
            notes.push(format!(
                "{} of {} servers could not be bound to the server CPU: they may have shared a CPU with the load generator.",
                self.unbound, self.started
            ));
        }
        if most > 1 && self.sockets < 8 * usize::from(most) {
            notes.push(format!(
                "The kernel distributes the {} sockets of the load generator over {most} workers at random: --set sockets={} distributes them evenly.",
                self.sockets,
                16 * most
            ));
        }
        notes
    }
}

impl LoadedServer {
    /// Returns the mean size of a query, in octets.
    pub(crate) fn query_octets(&self) -> f64 {
        mean_query_octets(&self.queries)
    }
}

/// Returns the mean size of the queries in a list, in octets.
pub(crate) fn mean_query_octets(queries: &QueryList) -> f64 {
    let octets: usize = (0..queries.len()).filter_map(|index| queries.question(index)).map(<[u8]>::len).sum();
    octets as f64 / queries.len().max(1) as f64 + HEADER_AND_OPT
}

/// Counts loads of servers with one worker, and those of which the server was not the limit. Such a
/// server sleeps between batches, and waking up costs CPU time.
#[derive(Default)]
pub(crate) struct IdleCounter {
    idle: u32,
    all: u32,
}

impl IdleCounter {
    /// Counts a load. Ignores servers with several workers.
    pub(crate) fn count(&mut self, workers: u16, report: &LoadReport) {
        if workers == 1 {
            let is_idle = report.limited_by.is_some_and(|limit| limit != Limit::Server);
            self.all += 1;
            self.idle += u32::from(is_idle);
        }
    }

    /// Returns a note if servers were idle.
    pub(crate) fn note(&self) -> Option<String> {
        (self.idle > 0).then(|| {
            format!(
                "In {} of {} loads of one worker the server was busy for less than {:.0} % of the \
                time: the load generator or other programs limited the rate, and a server that sleeps between \
                batches needs more CPU time for each query.",
                self.idle,
                self.all,
                100.0 * BUSY_SHARE
            )
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::echo::default_queries;
    use super::*;
    use crate::measure::{EchoOptions, EchoServer};

    #[test]
    fn queries_include_the_header_and_the_opt_record() {
        assert_eq!(mean_query_octets(&default_queries()), 45.0);
    }

    #[test]
    fn servers_are_started_and_loaded() {
        let directory = tempfile::tempdir().expect("a directory");
        let options = EchoOptions {
            listen: "127.0.0.1:0".parse().expect("an address"),
            octets: 100,
            workers: 1,
            cpus: Vec::new(),
        };
        // The shell stands for a server; this process answers for it.
        let echo = EchoServer::start(&options).expect("started");
        let mut command = Command::new("sh");
        command.args(["-c", &format!("echo ready {}; exec sleep 60", echo.address)]);
        let mut setup = LoadSetup::new(directory.path(), 1, 2);
        let loaded = setup.start("echo", command, 1, &default_queries()).expect("ready");
        let report = setup.load(&loaded, 0.05).expect("a report");
        assert!(report.received > 0, "{report:?}");
        assert_eq!(report.response_octets_mean, 100.0);
        drop(echo);
        let error = setup.load(&loaded, 0.05).expect_err("nothing answers");
        assert!(matches!(&error, LoadedError::Load { name, .. } if name == "echo"), "{error}");
        let error = setup
            .start("no server", Command::new("/bin/false"), 1, &default_queries())
            .err()
            .expect("a fault");
        assert!(matches!(&error, LoadedError::Start { name, .. } if name == "no server"), "{error}");
    }

    #[test]
    fn servers_that_cannot_be_bound_are_noted() {
        let directory = tempfile::tempdir().expect("a directory");
        let mut setup = LoadSetup::new(directory.path(), 1, 1);
        // No machine has this CPU.
        setup.cpus = Some(CpuPlacement { server: 1_000_000, load: 0 });
        let mut start = || {
            let mut command = Command::new("sh");
            command.args(["-c", "echo ready 127.0.0.1:53; exec sleep 60"]);
            setup.start("a server", command, 1, &default_queries()).expect("ready");
        };
        start();
        start();
        let notes = setup.notes(&[1]);
        assert_eq!(notes.iter().filter(|note| note.starts_with("2 of 2 servers")).count(), 1, "{notes:?}");
    }

    #[test]
    fn loads_that_the_server_did_not_limit_are_idle() {
        let mut counter = IdleCounter::default();
        let report = |limited_by| LoadReport { limited_by, ..LoadReport::default() };
        for (workers, limited_by) in [(1, Some(Limit::Server)), (1, None), (2, Some(Limit::LoadGenerator))] {
            counter.count(workers, &report(limited_by));
        }
        assert_eq!(counter.note(), None);
        counter.count(1, &report(Some(Limit::LoadGenerator)));
        assert!(counter.note().is_some_and(|note| note.contains("In 1 of 3 loads")));
    }

    #[test]
    fn workers_without_enough_sockets_are_noted() {
        let setup = |sockets| LoadSetup::new(Path::new(""), 128, sockets);
        let about_sockets =
            |notes: Vec<String>| notes.iter().filter(|note| note.contains("sockets=32")).count();
        assert_eq!(about_sockets(setup(1).notes(&[1, 2])), 1);
        assert_eq!(about_sockets(setup(16).notes(&[2])), 0);
        assert_eq!(about_sockets(setup(1).notes(&[1])), 0);
    }
}
