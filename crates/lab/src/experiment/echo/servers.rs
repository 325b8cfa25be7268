//! Servers of the experiment: zone files, processes and loads.

use super::{ALGORITHM, ECHO, Parameters, RunningServer, SERVER, Subject, WARM_UP_SECONDS, default_queries};
use crate::experiment::error::{RunError, temporary_folder};
use crate::experiment::parameters::{Octets, QueriedNames, deduplicate};
use crate::experiment::run::RunOptions;
use crate::load::{self, LoadOptions, LoadReport, QueryList};
use crate::machine::{self, CpuPlacement};
use crate::measure::ServedZone;
use crate::measure::job;
use crate::measure::level::command_with_all_cpu_features;
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
const MAX_LOST_SHARE: f64 = 0.01;

/// Zones, queries and options of the servers.
pub(super) struct Servers<'a> {
    pub(super) parameters: &'a Parameters,
    pub(super) options: &'a RunOptions<'a>,
    cpus: Option<CpuPlacement>,
    /// Temporary directory with zones, keys and log files. Dropping it removes the files.
    folder: tempfile::TempDir,
    /// Query list of each kind of queries.
    lists: Vec<(QueriedNames, Arc<QueryList>)>,
    /// Number of log files, one for each started server.
    logs: u32,
}

impl<'a> Servers<'a> {
    /// Generates the zone, its keys, its queries and its signed versions in a temporary directory.
    pub(super) fn prepare(
        parameters: &'a Parameters,
        options: &'a RunOptions<'a>,
        cpus: Option<CpuPlacement>,
    ) -> Result<Self, RunError> {
        let folder = temporary_folder(&std::env::temp_dir())?;
        let mut servers = Self { parameters, options, cpus, folder, lists: Vec::new(), logs: 0 };
        let denials = deduplicate(parameters.denial.clone());
        if denials.is_empty() || parameters.queries.is_empty() {
            return Ok(servers);
        }
        for kind in deduplicate(parameters.queries.clone()) {
            let list = servers.generate(kind)?;
            servers.lists.push((kind, Arc::new(list)));
        }
        for flag in [&["--ksk"][..], &[]] {
            let mut command =
                servers.command(&["key", "generate", ORIGIN, "--algorithm", ALGORITHM, "--dir"]);
            servers.run_command(command.arg(servers.folder.path()).args(flag))?;
        }
        for denial in denials {
            let mut command =
                servers.command(&["zone", "sign", "-o", ORIGIN, "--denial", &denial.0.to_string(), "--keys"]);
            command.arg(servers.folder.path()).arg("-f").arg(servers.signed(denial.0)).arg(servers.zone());
            servers.run_command(&mut command)?;
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
        self.run_command(command.arg("--queries").arg(&file).arg("-f").arg(self.zone()))?;
        QueryList::from_file(&file)
            .map_err(|error| RunError::Zone { zone: ORIGIN.to_owned(), reason: error.to_string() })
    }

    /// Runs a command of this program until it ends.
    fn run_command(&self, command: &mut Command) -> Result<(), RunError> {
        let program = self.options.program.display().to_string();
        job::run(command).map(drop).map_err(|source| RunError::Probe { program, reason: source.to_string() })
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = command_with_all_cpu_features(self.options.program);
        command.args(words);
        command
    }

    fn zone(&self) -> PathBuf {
        self.folder.path().join("zone")
    }

    fn signed(&self, denial: Mechanism) -> PathBuf {
        self.folder.path().join(format!("{denial}.signed"))
    }

    /// Starts the servers with `workers` workers and appends them to `running`.
    pub(super) fn start_all(
        &mut self,
        workers: u16,
        running: &mut Vec<RunningServer>,
    ) -> Result<(), RunError> {
        // The echo server does not read the queries, so any list will do.
        let any = self.lists.first().map_or_else(default_queries, |(_, list)| Arc::clone(list));
        for octets in deduplicate(self.parameters.octets.clone()) {
            let subject = Subject { server: ECHO, denial: None, queries: None, workers };
            running.push(self.start(subject, self.echo(octets, workers), &any)?);
        }
        for denial in deduplicate(self.parameters.denial.clone()) {
            for (kind, list) in self.lists.clone() {
                let subject = |server| Subject {
                    server,
                    denial: Some(denial.0.to_string()),
                    queries: Some(kind),
                    workers,
                };
                let program = command_with_all_cpu_features(self.options.program);
                let command =
                    serving(program, &ServedZone::without_keys(ORIGIN, &self.signed(denial.0)), workers);
                let served = self.start(subject(SERVER), command, &list)?;
                // The floor of this server is measured with responses of the same size.
                let octets = Octets::nearest(self.load(&served, WARM_UP_SECONDS)?.response_octets_mean);
                running.push(served);
                running.push(self.start(subject(ECHO), self.echo(octets, workers), &list)?);
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
    ) -> Result<RunningServer, RunError> {
        if subject.workers > 1 {
            let cpus: Vec<String> = machine::allowed_cpus().iter().rev().map(ToString::to_string).collect();
            command.args(["--cpus", &cpus.join(",")]);
        }
        // A server with one worker is bound to its CPU with all its threads.
        let cpu = self.cpus.filter(|_| subject.workers == 1).map(|cpus| cpus.server);
        self.logs += 1;
        let log = self.folder.path().join(format!("log-{}", self.logs));
        let denial = subject.denial.as_deref().unwrap_or_default();
        let program = format!("{} {denial}", subject.server).trim_end().to_owned();
        let server = Server::start(command, cpu, &log, READY_LIMIT)
            .map_err(|error| RunError::Probe { program, reason: error.to_string() })?;
        Ok(RunningServer { subject, server, queries: Arc::clone(queries) })
    }

    pub(super) fn load(&self, running: &RunningServer, seconds: f64) -> Result<LoadReport, RunError> {
        let sockets = self.parameters.sockets.value() as usize;
        let wanted = LoadOptions {
            warm_up: Duration::from_secs_f64(WARM_UP_SECONDS),
            seconds,
            outstanding: (self.parameters.outstanding.value() as usize).max(sockets),
            sockets,
            server_pid: Some(running.server.pid()),
            cpus: self.cpus.map(|cpus| vec![cpus.load]),
            ..LoadOptions::new(running.server.address, Arc::clone(&running.queries))
        };
        let failed = |reason| RunError::Probe { program: running.subject.server.to_owned(), reason };
        let report = load::run(&wanted).map_err(|error| failed(error.to_string()))?;
        if report.received == 0 || report.lost as f64 > MAX_LOST_SHARE * report.sent as f64 {
            return Err(failed(format!("{} of {} queries were not answered", report.lost, report.sent)));
        }
        Ok(report)
    }
}
