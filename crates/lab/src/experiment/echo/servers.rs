//! Servers of the experiment: zone files, processes and loads.

use super::{ALGORITHM, Cell, ECHO, Parameters, SERVER, Subject, WARM_UP, default_queries};
use crate::experiment::error::{RunError, temporary_folder};
use crate::experiment::parameters::{Octets, QueriedNames, each_once};
use crate::experiment::run::RunOptions;
use crate::load::{self, LoadOptions, LoadReport, QueryList};
use crate::machine::{self, CpuPlacement};
use crate::measure::job;
use crate::measure::level::unmasked;
use crate::measure::server::{Server, serving};
use nonesuch_dnssec::Mechanism;
use std::path::PathBuf;
use std::process::Command;
use std::sync::Arc;
use std::time::Duration;

const ORIGIN: &str = "example.";
/// Number of queries in a list, which each load repeats.
const QUERIES: u64 = 100_000;
/// Time limit for a server to read its zone.
const READY_LIMIT: Duration = Duration::from_secs(600);
/// Share of lost queries above which the experiment fails, because the figures are meaningless.
const LOST_SHARE: f64 = 0.01;

/// Zones, queries and options of the servers.
pub(super) struct Servers<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) options: &'a RunOptions<'a>,
    places: Option<CpuPlacement>,
    /// Temporary directory with zones, keys and log files. Dropping it removes the files.
    folder: tempfile::TempDir,
    lists: Vec<(QueriedNames, Arc<QueryList>)>,
    logs: u32,
}

impl<'a> Servers<'a> {
    /// Generates the zone, its keys, its queries and its signed versions in a temporary directory.
    pub(super) fn prepare(
        parameters: &'a Parameters,
        options: &'a RunOptions<'a>,
        places: Option<CpuPlacement>,
    ) -> Result<Self, RunError> {
        let folder = temporary_folder(&std::env::temp_dir())?;
        let mut servers = Self { parameters, options, places, folder, lists: Vec::new(), logs: 0 };
        let denials = each_once(parameters.denial.clone());
        if denials.is_empty() || parameters.queries.is_empty() {
            return Ok(servers);
        }
        for kind in each_once(parameters.queries.clone()) {
            let list = servers.generate(kind)?;
            servers.lists.push((kind, Arc::new(list)));
        }
        for flag in [&["--ksk"][..], &[]] {
            let mut command =
                servers.command(&["key", "generate", ORIGIN, "--algorithm", ALGORITHM, "--dir"]);
            servers.carry_out(command.arg(servers.folder.path()).args(flag))?;
        }
        for denial in denials {
            let mut command =
                servers.command(&["zone", "sign", "-o", ORIGIN, "--denial", &denial.0.to_string(), "--keys"]);
            command.arg(servers.folder.path()).arg("-f").arg(servers.signed(denial.0)).arg(servers.zone());
            servers.carry_out(&mut command)?;
        }
        Ok(servers)
    }

    /// Generates the zone and queries for it. Each call generates the same zone.
    fn generate(&self, kind: QueriedNames) -> Result<QueryList, RunError> {
        let file = self.folder.path().join("queries");
        let denied = if kind == QueriedNames::Denied { "100" } else { "0" };
        let mut command =
            self.command(&["zone", "generate", "--like", "tld", "-o", ORIGIN, "--denied", denied]);
        command.args(["--names", &self.parameters.names.value().to_string()]);
        command.args(["--seed", &self.options.seed.to_string(), "--query-count", &QUERIES.to_string()]);
        self.carry_out(command.arg("--queries").arg(&file).arg("-f").arg(self.zone()))?;
        QueryList::from_file(&file)
            .map_err(|error| RunError::Zone { zone: ORIGIN.to_owned(), reason: error.to_string() })
    }

    /// Runs a command of this program until it ends.
    fn carry_out(&self, command: &mut Command) -> Result<(), RunError> {
        let program = self.options.program.display().to_string();
        job::run(command).map(drop).map_err(|source| RunError::Probe { program, reason: source.to_string() })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = unmasked(self.options.program);
        command.args(words);
        command
    }

    fn zone(&self) -> PathBuf {
        self.folder.path().join("zone")
    }

    fn signed(&self, denial: Mechanism) -> PathBuf {
        self.folder.path().join(format!("{denial}.signed"))
    }

    /// Starts the servers with `workers` workers and appends them to `cells`.
    pub(super) fn start_all(&mut self, workers: u16, cells: &mut Vec<Cell>) -> Result<(), RunError> {
        let any = self.lists.first().map_or_else(default_queries, |(_, list)| Arc::clone(list));
        for octets in each_once(self.parameters.octets.clone()) {
            let subject = Subject { server: ECHO, denial: None, queries: None, workers };
            cells.push(self.start(subject, self.echo(octets, workers), &any)?);
        }
        for denial in each_once(self.parameters.denial.clone()) {
            for (kind, list) in self.lists.clone() {
                let subject = |server| Subject {
                    server,
                    denial: Some(denial.0.to_string()),
                    queries: Some(kind),
                    workers,
                };
                let program = unmasked(self.options.program);
                let command = serving(program, ORIGIN, &self.signed(denial.0), workers);
                let served = self.start(subject(SERVER), command, &list)?;
                // The floor of this server is measured with responses of the same size.
                let octets = Octets::near(self.load(&served, WARM_UP)?.response_octets_mean);
                cells.push(served);
                cells.push(self.start(subject(ECHO), self.echo(octets, workers), &list)?);
            }
        }
        Ok(())
    }

    fn echo(&self, octets: Octets, workers: u16) -> Command {
        let mut command = self.command(&["lab", "echo", "--listen", "127.0.0.1:0", "--octets"]);
        command.args([&octets.value().to_string(), "--workers", &workers.to_string()]);
        command
    }

    fn start(
        &mut self,
        subject: Subject,
        mut command: Command,
        queries: &Arc<QueryList>,
    ) -> Result<Cell, RunError> {
        if subject.workers > 1 {
            let cpus: Vec<String> = machine::allowed_cpus().iter().rev().map(ToString::to_string).collect();
            command.args(["--cpus", &cpus.join(",")]);
        }
        // A server with one worker is bound to its CPU with all its threads.
        let cpu = self.places.filter(|_| subject.workers == 1).map(|places| places.server);
        self.logs += 1;
        let log = self.folder.path().join(format!("log-{}", self.logs));
        let denial = subject.denial.as_deref().unwrap_or_default();
        let program = format!("{} {denial}", subject.server).trim_end().to_owned();
        let server = Server::start(command, cpu, &log, READY_LIMIT)
            .map_err(|error| RunError::Probe { program, reason: error.to_string() })?;
        Ok(Cell { subject, server, queries: Arc::clone(queries) })
    }

    pub(super) fn load(&self, cell: &Cell, seconds: f64) -> Result<LoadReport, RunError> {
        let sockets = self.parameters.sockets.value() as usize;
        let wanted = LoadOptions {
            warm_up: Duration::from_secs_f64(WARM_UP),
            seconds,
            outstanding: (self.parameters.outstanding.value() as usize).max(sockets),
            sockets,
            server_pid: Some(cell.server.pid()),
            cpus: self.places.map(|places| vec![places.load]),
            ..LoadOptions::new(cell.server.address, Arc::clone(&cell.queries))
        };
        let failed = |reason| RunError::Probe { program: cell.subject.server.to_owned(), reason };
        let report = load::run(&wanted).map_err(|error| failed(error.to_string()))?;
        if report.received == 0 || report.lost as f64 > LOST_SHARE * report.sent as f64 {
            return Err(failed(format!("{} of {} queries were not answered", report.lost, report.sent)));
        }
        Ok(report)
    }
}
