//! The run: zones, servers of them, echo servers with answers of the same size, and rounds of load over all in turn.

use super::About;
use super::parameters::{Kind, Octets, Parameters, WARM_UP, each_once};
use super::rows::{ECHO, Row, SERVER, Subject, columns};
use crate::compare::server::Server;
use crate::experiment::data::DataTable;
use crate::experiment::error::RunError;
use crate::experiment::level::unmasked;
use crate::experiment::method;
use crate::experiment::run::{Found, RunOptions, Step};
use crate::load::{self, LoadOptions, LoadReport, QueryList};
use crate::machine::{self, Places};
use nonesuch_dnssec::Mechanism;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::Duration;

const ORIGIN: &str = "example.";
const ALGORITHM: &str = "ECDSAP256SHA256";
/// Queries of a list; it is gone through again and again.
const QUERIES: u64 = 100_000;
/// A server has so long to read its zone.
const READY_LIMIT: Duration = Duration::from_secs(600);
/// Where more queries are lost, the figures say nothing.
const LOST_SHARE: f64 = 0.01;
/// Where a server is less busy than this, it sleeps between queries, and wakes at a cost.
const BUSY_SHARE: f64 = 0.9;

/// Runs the experiment.
pub(in crate::experiment) fn run(
    parameters: &Parameters,
    options: &RunOptions<'_>,
) -> Result<Found, RunError> {
    let folder = tempfile::Builder::new().prefix("nonesuch-lab-").tempdir();
    let folder = folder.map_err(|source| RunError::Folder { path: std::env::temp_dir(), source })?;
    let mut runner = Runner {
        parameters,
        options,
        folder: folder.path().to_owned(),
        places: machine::choose_places(),
        logs: 0,
        notes: Vec::new(),
    };
    let workers: Vec<u16> = each_once(&parameters.workers).iter().map(|workers| workers.value()).collect();
    runner.check(&workers)?;
    runner.tell(0, 1, "making the zone");
    let lists = runner.prepare()?;
    let mut cells = Vec::new();
    for workers in &workers {
        runner.add_cells(*workers, &lists, &mut cells)?;
    }
    let data = runner.measure(&cells)?;
    let about = About {
        version: format!("Nonesuch {}", env!("CARGO_PKG_VERSION")),
        names: u64::from(parameters.names.value()),
        algorithm: ALGORITHM.to_owned(),
        server_cpu: runner.places.map(|places| places.server as u64),
        load_cpu: runner.places.map(|places| places.load as u64),
    };
    Ok(Found { about: method::About::EchoFloor(about), data, notes: runner.notes })
}

/// A running server and what it is asked.
struct Cell {
    subject: Subject,
    server: Server,
    queries: Arc<QueryList>,
    /// Octets of a query, in the mean.
    query_octets: f64,
}

struct Runner<'a> {
    parameters: &'a Parameters,
    options: &'a RunOptions<'a>,
    folder: PathBuf,
    places: Option<Places>,
    /// Log files so far.
    logs: u32,
    notes: Vec<String>,
}

impl Runner<'_> {
    fn check(&mut self, workers: &[u16]) -> Result<(), RunError> {
        let parameters = self.parameters;
        let nothing = workers.is_empty()
            || (parameters.octets.is_empty()
                && (parameters.denial.is_empty() || parameters.queries.is_empty()));
        if nothing {
            let reason = "name a number of workers, and either octets or denial and queries".to_owned();
            return Err(RunError::Nothing { reason });
        }
        let cpus = machine::allowed_cpus().len();
        if self.places.is_none() {
            self.notes.push("Server and load generator shared one CPU: the figures are of both.".to_owned());
        } else if workers.iter().any(|workers| usize::from(*workers) >= cpus) {
            self.notes.push(format!(
                "There are {cpus} CPUs: the load generator shared one with a worker where there were as many workers or more."
            ));
        }
        let most = workers.iter().copied().max().unwrap_or(1);
        if most > 1 && parameters.sockets.value() < 8 * u32::from(most) {
            self.notes.push(format!(
                "The kernel spreads the generator's {} sockets over {most} workers by chance: --set sockets={} spreads them evenly.",
                parameters.sockets.value(),
                16 * most
            ));
        }
        Ok(())
    }

    fn tell(&self, index: usize, steps: usize, what: &str) {
        (self.options.progress)(Step { index: index as u64, steps: steps as u64, what });
    }

    /// Runs a command of this program to its end.
    fn carry_out(&self, command: &mut Command) -> Result<(), RunError> {
        let program = self.options.program.display().to_string();
        let failed = |reason: String| RunError::Probe { program: program.clone(), reason };
        let output = command.stdin(Stdio::null()).output().map_err(|error| failed(error.to_string()))?;
        if output.status.success() {
            return Ok(());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(failed(format!("{}; it said: {}", output.status, said.trim())))
    }

    fn command(&self, words: &[&str]) -> Command {
        let mut command = unmasked(self.options.program);
        command.args(words);
        command
    }

    fn zone(&self) -> PathBuf {
        self.folder.join("zone")
    }

    fn signed(&self, denial: Mechanism) -> PathBuf {
        self.folder.join(format!("{denial}.signed"))
    }

    /// Leaves the zone, its keys and its signed forms in the folder; returns the queries of each kind.
    fn prepare(&self) -> Result<Vec<(Kind, Arc<QueryList>)>, RunError> {
        let denials = each_once(&self.parameters.denial);
        if denials.is_empty() || self.parameters.queries.is_empty() {
            return Ok(Vec::new());
        }
        let mut lists = Vec::new();
        for kind in each_once(&self.parameters.queries) {
            let file = self.folder.join(format!("queries-{}", kind.name()));
            let denied = if kind == Kind::Denied { "100" } else { "0" };
            let mut command =
                self.command(&["zone", "generate", "--like", "tld", "-o", ORIGIN, "--denied", denied]);
            command.args(["--names", &self.parameters.names.value().to_string()]);
            command.args(["--seed", &self.options.seed.to_string(), "--query-count", &QUERIES.to_string()]);
            self.carry_out(command.arg("--queries").arg(&file).arg("-f").arg(self.zone()))?;
            let list = QueryList::from_file(&file)
                .map_err(|error| RunError::Zone { zone: ORIGIN.to_owned(), reason: error.to_string() })?;
            lists.push((kind, Arc::new(list)));
        }
        for flag in [&["--ksk"][..], &[]] {
            let mut command = self.command(&["key", "generate", ORIGIN, "--algorithm", ALGORITHM, "--dir"]);
            self.carry_out(command.arg(&self.folder).args(flag))?;
        }
        for denial in denials {
            let mut command =
                self.command(&["zone", "sign", "-o", ORIGIN, "--denial", &denial.0.to_string(), "--keys"]);
            self.carry_out(command.arg(&self.folder).arg("-f").arg(self.signed(denial.0)).arg(self.zone()))?;
        }
        Ok(lists)
    }

    /// Starts the servers with so many workers.
    fn add_cells(
        &mut self,
        workers: u16,
        lists: &[(Kind, Arc<QueryList>)],
        cells: &mut Vec<Cell>,
    ) -> Result<(), RunError> {
        let any = lists.first().map_or_else(default_queries, |(_, list)| Arc::clone(list));
        for octets in each_once(&self.parameters.octets) {
            let subject = Subject::new(ECHO, None, workers);
            cells.push(self.start_echo(subject, octets, &any)?);
        }
        for denial in each_once(&self.parameters.denial) {
            for (kind, list) in lists {
                let name = denial.0.to_string();
                let of = Some((name.as_str(), *kind));
                let served = self.start_server(Subject::new(SERVER, of, workers), denial.0, list)?;
                // The floor is that of answers as large as these.
                let octets = Octets::near(self.load(&served, WARM_UP)?.response_octets_mean);
                cells.push(served);
                cells.push(self.start_echo(Subject::new(ECHO, of, workers), octets, list)?);
            }
        }
        Ok(())
    }

    fn start_server(
        &mut self,
        subject: Subject,
        denial: Mechanism,
        queries: &Arc<QueryList>,
    ) -> Result<Cell, RunError> {
        let mut command =
            self.command(&["serve", "--listen", "127.0.0.1:0", "--verify", "structural", "-o", ORIGIN]);
        command.arg(self.signed(denial));
        self.start(subject, command, queries)
    }

    fn start_echo(
        &mut self,
        subject: Subject,
        octets: Octets,
        queries: &Arc<QueryList>,
    ) -> Result<Cell, RunError> {
        let mut command = self.command(&["lab", "echo", "--listen", "127.0.0.1:0", "--octets"]);
        command.arg(octets.value().to_string());
        self.start(subject, command, queries)
    }

    fn start(
        &mut self,
        subject: Subject,
        mut command: Command,
        queries: &Arc<QueryList>,
    ) -> Result<Cell, RunError> {
        command.args(["--workers", &subject.workers.to_string()]);
        if subject.workers > 1 {
            let cpus: Vec<String> = machine::allowed_cpus().iter().rev().map(ToString::to_string).collect();
            command.args(["--cpus", &cpus.join(",")]);
        }
        // A server of one worker is kept on its CPU with all of its threads.
        let cpu = self.places.filter(|_| subject.workers == 1).map(|places| places.server);
        self.logs += 1;
        let log = self.folder.join(format!("log-{}", self.logs));
        let server = Server::start(command, cpu, &log, READY_LIMIT).map_err(|error| RunError::Probe {
            program: format!("{} {}", subject.server, subject.denial).trim_end().to_owned(),
            reason: error.to_string(),
        })?;
        let query_octets = mean_query(queries);
        Ok(Cell { subject, server, queries: Arc::clone(queries), query_octets })
    }

    fn load(&self, cell: &Cell, seconds: f64) -> Result<LoadReport, RunError> {
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
        let failed = |reason| RunError::Probe { program: cell.subject.server.clone(), reason };
        let report = load::run(&wanted).map_err(|error| failed(error.to_string()))?;
        if report.received == 0 || report.lost as f64 > LOST_SHARE * report.sent as f64 {
            return Err(failed(format!("{} of {} queries were not answered", report.lost, report.sent)));
        }
        Ok(report)
    }

    fn measure(&mut self, cells: &[Cell]) -> Result<DataTable, RunError> {
        let mut data = DataTable::new(columns());
        let rounds = self.parameters.rounds.value();
        let (mut idle, mut single) = (0, 0);
        for round in 0..rounds {
            for (place, cell) in cells.iter().enumerate() {
                let step = round as usize * cells.len() + place;
                let what = [&cell.subject.server, &cell.subject.denial, &cell.subject.queries];
                let what = what.map(String::as_str).join(" ");
                self.tell(step, rounds as usize * cells.len(), what.trim_end());
                let report = self.load(cell, self.parameters.seconds.value())?;
                if cell.subject.workers == 1 {
                    single += 1;
                    idle += u32::from(is_idle(&report));
                }
                data.push(row(round, cell, &report).cells())?;
            }
        }
        if idle > 0 {
            self.notes.push(format!(
                "In {idle} of {single} loads of one worker the server was busy for less than {:.0} % of the time: the load \
                 generator or other programs set the pace, and a server that sleeps between batches spends more on each query.",
                100.0 * BUSY_SHARE
            ));
        }
        Ok(data)
    }
}

fn row(round: u32, cell: &Cell, report: &LoadReport) -> Row {
    Row {
        round,
        subject: cell.subject.clone(),
        query_octets: cell.query_octets,
        response_octets: report.response_octets_mean,
        sent: report.sent,
        received: report.received,
        seconds: report.seconds,
        user_us: report.server_user_us_per_query,
        system_us: report.server_system_us_per_query,
        load_us: report.client_cpu_us_per_query,
    }
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
mod tests {
    use super::*;

    #[test]
    fn the_usual_query_has_45_octets() {
        assert_eq!(mean_query(&default_queries()), 45.0);
    }
}
