//! A measured server: writes the zone file, starts the server, validates its responses, loads it.

use super::counters::{self, Metrics, OnlineCounts};
use super::parameters::{Parameters, ServerChoice, SubjectChoice, online_denial};
use super::queries::{QueriesError, QueryKind};
use crate::generate::{GenerateError, GenerateOptions, QueriedZone, generate};
use crate::load::{self, LoadError, LoadOptions, LoadReport, QueryList, ValidationOptions, validate_samples};
use crate::machine::CpuPlacement;
use crate::measure::examine::strip_dnssec;
use crate::measure::level::command_with_all_cpu_features;
use crate::measure::server::{READY_LIMIT, Server, ServerError, serve_command};
use crate::measure::zone_choice::ZoneChoice;
use crate::measure::zone_preparation::{PreparedZone, ZonePreparation, ZonePreparationError};
use crate::peers::{PeerError, PeerServer, PeerZone, Serving, Setup, free_address};
use crate::process;
use nonesuch_dnssec::Mechanism;
use nonesuch_proto::{Name, NameError};
use nonesuch_zone::read::{read_file, read_text};
use nonesuch_zone::{Contents, ReadError};
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// Apex of generated zones.
const ORIGIN: &str = "example.";
/// Number of queries sent for each wanted sample; the samples are chosen from the responses.
const QUERIES_PER_SAMPLE: u64 = 4;
/// Time limit for these queries, in seconds.
pub(super) const SAMPLE_SECONDS: f64 = 30.0;
/// Time limit of a query.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Reasons why a server is not measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum RunningServerError {
    #[error(transparent)]
    ZonePreparation(#[from] ZonePreparationError),
    #[error(transparent)]
    Server(#[from] ServerError),
    #[error(transparent)]
    Peer(#[from] PeerError),
    #[error(transparent)]
    Load(#[from] LoadError),
    #[error("{wrong} of {samples} sampled answers cannot be validated, for example {reason}")]
    Invalid { wrong: u64, samples: u64, reason: String },
    #[error("no answer to any of {0} queries")]
    Silent(u64),
    #[error("no free address for the metrics of the server: {0}")]
    NoMetrics(io::Error),
    #[error("the metrics of the server cannot be read: {0}")]
    Metrics(io::Error),
}

/// Reasons why a zone cannot be used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ZoneSourceError {
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("'{0}' is not a name: {1}")]
    Origin(String, #[source] NameError),
    #[error("{kind} queries: {source}; list the other kinds, for example --set queries=existing,denied")]
    Queries { kind: QueryKind, source: QueriesError },
}

/// A zone without DNSSEC records, and its lists of queries.
pub(super) struct ZoneWithQueries {
    pub(super) choice: ZoneChoice,
    pub(super) contents: Contents,
    pub(super) lists: Vec<(QueryKind, Arc<QueryList>)>,
}

impl ZoneWithQueries {
    /// Generates or reads the zone, and generates the queries with `seed`.
    pub(super) fn new(choice: &ZoneChoice, kinds: &[QueryKind], seed: u64) -> Result<Self, ZoneSourceError> {
        let contents = match choice {
            ZoneChoice::Like { like, names } => {
                let mut text = Vec::new();
                generate(&GenerateOptions { like: *like, names: *names, seed, origin: ORIGIN }, &mut text)?;
                read_text(&text, Path::new("generated zone"), None)?.contents
            }
            ZoneChoice::File { path, origin } => {
                let name = |text: &String| {
                    text.parse::<Name>().map_err(|fault| ZoneSourceError::Origin(text.clone(), fault))
                };
                let origin = origin.as_ref().map(name).transpose()?;
                strip_dnssec(&read_file(path, origin.as_ref())?.contents)
            }
        };
        let queried = QueriedZone::of(&contents);
        let list = |kind: &QueryKind| match kind.list(&queried, seed) {
            Ok(list) => Ok((*kind, list)),
            Err(source) => Err(ZoneSourceError::Queries { kind: *kind, source }),
        };
        let lists = kinds.iter().map(list).collect::<Result<_, _>>()?;
        Ok(Self { choice: choice.clone(), contents, lists })
    }
}

enum Process {
    Nonesuch(Server),
    Peer(PeerServer),
}

/// A running server.
pub(super) struct RunningServer {
    pub(super) choice: SubjectChoice,
    process: Process,
    pub(super) prepared: PreparedZone,
    /// Time from the start of the process until it answered.
    pub(super) ready_s: f64,
    /// Number of validated responses; `None` for an unsigned zone.
    pub(super) validated: Option<u64>,
    metrics: Option<Metrics>,
    /// The files of the server; dropped after the server.
    _directory: TempDir,
}

/// Settings that all servers share.
pub(super) struct CommonSetup<'a> {
    pub(super) parameters: &'a Parameters,
    /// Path of the program `nonesuch`.
    pub(super) program: &'a Path,
    pub(super) cpus: Option<CpuPlacement>,
    pub(super) now: u32,
    pub(super) seed: u64,
}

impl CommonSetup<'_> {
    /// Writes the zone file, starts the server and validates samples of its responses.
    pub(super) fn start(
        &self,
        choice: &SubjectChoice,
        zone: &ZoneWithQueries,
        directory: TempDir,
        progress: &dyn Fn(&str),
    ) -> Result<RunningServer, RunningServerError> {
        let prepared = ZonePreparation {
            zone: &zone.contents,
            algorithms: &choice.algorithms.0,
            mechanism: choice.denial.0.unwrap_or(Mechanism::Nsec),
            iterations: choice.iterations,
            vrf: choice.vrf(),
            runs_max: 1,
            now: self.now,
            directory: directory.path(),
            progress,
        }
        .prepare()?;
        progress("starting the server");
        let metrics = self.metrics(choice.server)?;
        let started = Instant::now();
        let process = match choice.server {
            ServerChoice::Nonesuch => self.start_nonesuch(&prepared, directory.path(), metrics)?,
            ServerChoice::Peer(peer) => Process::Peer(PeerServer::start(
                peer,
                &self.peer_setup(choice, &prepared, directory.path(), metrics),
            )?),
        };
        let ready_s = started.elapsed().as_secs_f64();
        let choice = choice.clone();
        if let Some(metrics) = metrics {
            metrics.read().map_err(RunningServerError::Metrics)?;
        }
        let mut server = RunningServer {
            choice,
            process,
            prepared,
            ready_s,
            validated: None,
            metrics,
            _directory: directory,
        };
        progress("validating responses");
        self.validate(&mut server, zone)?;
        Ok(server)
    }

    /// Returns the metrics that a server gets; `None` if its counters are not read.
    fn metrics(&self, server: ServerChoice) -> Result<Option<Metrics>, RunningServerError> {
        if !self.parameters.online_counters {
            return Ok(None);
        }
        let address = free_address(Ipv4Addr::LOCALHOST).map_err(RunningServerError::NoMetrics)?;
        Ok(match server {
            ServerChoice::Nonesuch => Some(Metrics::of_nonesuch(address)),
            ServerChoice::Peer(peer) => Metrics::of_peer(peer, address),
        })
    }

    fn start_nonesuch(
        &self,
        prepared: &PreparedZone,
        directory: &Path,
        metrics: Option<Metrics>,
    ) -> Result<Process, ServerError> {
        let Parameters { workers, udp_octets, .. } = self.parameters;
        let program = command_with_all_cpu_features(self.program);
        let command = match metrics {
            Some(metrics) => {
                let text = metrics.configuration(&prepared.served, workers.value(), udp_octets.value());
                counters::serving(program, directory, &text)?
            }
            None => {
                let mut command = serve_command(program, &prepared.served, workers.value());
                command.args(["--max-udp-size", &udp_octets.value().to_string()]);
                command
            }
        };
        // A server with several workers is not pinned to a CPU.
        let cpu = self.cpus.map(|cpus| cpus.server).filter(|_| workers.value() == 1);
        Ok(Process::Nonesuch(Server::start(command, cpu, &directory.join("log"), READY_LIMIT)?))
    }

    fn peer_setup(
        &self,
        choice: &SubjectChoice,
        prepared: &PreparedZone,
        directory: &Path,
        metrics: Option<Metrics>,
    ) -> Setup {
        let serving = match choice.denial.0 {
            None => Serving::Unsigned,
            Some(mechanism) => match online_denial(mechanism) {
                Some(denial) => Serving::Online { denial, keys: prepared.key_files.clone() },
                None => Serving::Presigned,
            },
        };
        let workers = self.parameters.workers.value();
        let lines = metrics.map(Metrics::coredns_line).unwrap_or_default();
        let zone = PeerZone::new(&prepared.served.origin, &prepared.served.file, serving);
        Setup {
            workers,
            cpus: self.cpus.iter().filter(|_| workers == 1).map(|cpus| cpus.server).collect(),
            udp_octets: self.parameters.udp_octets.value(),
            limit: READY_LIMIT,
            zones: vec![PeerZone { lines, ..zone }],
            ..Setup::new(directory)
        }
    }

    /// Validates samples of the responses to each kind of query.
    fn validate(&self, server: &mut RunningServer, zone: &ZoneWithQueries) -> Result<(), RunningServerError> {
        let samples = self.parameters.samples.value();
        for (kind, list) in &zone.lists {
            let limit = u64::from(samples) * QUERIES_PER_SAMPLE;
            let options = LoadOptions {
                samples: samples as usize,
                limit: Some(limit),
                seconds: SAMPLE_SECONDS,
                ..self.options(server, *kind, list)
            };
            let report = load::run(&options)?;
            if report.received == 0 {
                return Err(RunningServerError::Silent(report.sent));
            }
            if server.prepared.anchors.is_empty() {
                continue;
            }
            let wanted = ValidationOptions {
                zone: zone.contents.apex().clone(),
                anchors: server.prepared.anchors.clone(),
                now: self.now,
            };
            let counts = validate_samples(&options, &wanted, report.samples.iter().map(Vec::as_slice))?;
            if let Some((wrong, reason)) = counts.invalid() {
                let (samples, reason) = (counts.total(), reason.to_owned());
                return Err(RunningServerError::Invalid { wrong, samples, reason });
            }
            *server.validated.get_or_insert(0) += counts.total();
        }
        Ok(())
    }

    /// Loads a server at `rate` queries per second; `None`: a closed loop. The queries have the UDP
    /// payload size `payload`, in octets.
    pub(super) fn load(
        &self,
        server: &RunningServer,
        kind: QueryKind,
        list: &Arc<QueryList>,
        rate: Option<f64>,
        payload: u16,
    ) -> Result<LoadReport, LoadError> {
        let Parameters { seconds, query_limit, .. } = self.parameters;
        load::run(&LoadOptions {
            rate,
            edns_size: payload,
            warm_up: Duration::from_secs_f64(super::WARM_UP_SECONDS),
            seconds: seconds.value(),
            limit: Some(u64::from(*query_limit)).filter(|limit| *limit > 0),
            ..self.options(server, kind, list)
        })
    }

    /// Returns the options that all loads share. At least one query for each socket is outstanding.
    pub(super) fn options(
        &self,
        server: &RunningServer,
        kind: QueryKind,
        list: &Arc<QueryList>,
    ) -> LoadOptions {
        let Parameters { outstanding, sockets, udp_octets, .. } = self.parameters;
        let sockets = sockets.value() as usize;
        kind.with_labels(LoadOptions {
            outstanding: (outstanding.value() as usize).max(sockets),
            sockets,
            edns_size: udp_octets.value(),
            follow_truncated: true,
            server_pid: Some(server.pid()),
            cpus: self.cpus.map(|cpus| vec![cpus.load]),
            timeout: TIMEOUT,
            seed: self.seed,
            ..LoadOptions::new(server.address(), Arc::clone(list))
        })
    }
}

impl RunningServer {
    /// Reads the counters of online signing; missing if the server has none, or does not answer.
    pub(super) fn online_counts(&self) -> OnlineCounts {
        self.metrics.and_then(|metrics| metrics.read().ok()).unwrap_or_default()
    }

    fn pid(&self) -> u32 {
        match &self.process {
            Process::Nonesuch(server) => server.pid(),
            Process::Peer(server) => server.pid(),
        }
    }

    fn address(&self) -> SocketAddr {
        match &self.process {
            Process::Nonesuch(server) => server.address,
            Process::Peer(server) => server.address,
        }
    }

    /// Returns the memory of all processes of the server, in KiB: the proportional set size, or the
    /// resident memory where the system does not state it.
    pub(super) fn memory_kib(&self) -> u64 {
        process::tree_memory_kib(self.pid())
    }
}
