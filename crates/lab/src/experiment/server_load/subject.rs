//! A measured server: publishes the zone, starts the server, validates its responses, loads it.

use super::counters::{self, Metrics, OnlineCounts};
use super::parameters::{Parameters, ServerChoice, SubjectChoice, online_denial};
use super::queries::{QueriesError, QueryKind};
use crate::generate::{GenerateError, GenerateOptions, QueriedZone, generate};
use crate::load::{self, LoadError, LoadOptions, LoadReport, QueryList, ValidationOptions, validate_samples};
use crate::machine::CpuPlacement;
use crate::measure::examine::strip;
use crate::measure::level::command_with_all_cpu_features;
use crate::measure::publication::{Publication, PublicationError, Published};
use crate::measure::server::{Server, ServerError, serving};
use crate::measure::zone_choice::ZoneChoice;
use crate::peers::{PeerError, PeerServer, PeerZone, Serving, Setup, free_address};
use crate::process;
use nonesuch_dnssec::Mechanism;
use nonesuch_dnssec::denial::DenialGeneration;
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
/// Time limit for a server to read its zone.
const READY_LIMIT: Duration = Duration::from_secs(1800);
/// Number of queries from whose responses the samples are taken, for each sample.
const QUERIES_PER_SAMPLE: u64 = 4;
/// Time limit for these queries, in seconds.
pub(super) const SAMPLE_SECONDS: f64 = 30.0;
/// Time limit of a query.
const TIMEOUT: Duration = Duration::from_secs(1);

/// Reasons why a subject is not measured.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub(super) enum SubjectError {
    #[error(transparent)]
    Publication(#[from] PublicationError),
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
pub enum LoadedZoneError {
    #[error(transparent)]
    Generate(#[from] GenerateError),
    #[error(transparent)]
    Read(#[from] ReadError),
    #[error("'{0}' is not a name: {1}")]
    Origin(String, #[source] NameError),
    #[error("{kind} queries: {source}; omit them with --set queries=")]
    Queries { kind: QueryKind, source: QueriesError },
}

/// A zone without DNSSEC records, and its lists of queries.
pub(super) struct LoadedZone {
    pub(super) choice: ZoneChoice,
    pub(super) contents: Contents,
    pub(super) lists: Vec<(QueryKind, Arc<QueryList>)>,
}

impl LoadedZone {
    /// Generates or reads the zone, and generates the queries with `seed`.
    pub(super) fn new(choice: &ZoneChoice, kinds: &[QueryKind], seed: u64) -> Result<Self, LoadedZoneError> {
        let contents = match choice {
            ZoneChoice::Like { like, names } => {
                let mut text = Vec::new();
                generate(&GenerateOptions { like: *like, names: *names, seed, origin: ORIGIN }, &mut text)?;
                read_text(&text, Path::new("generated zone"), None)?.contents
            }
            ZoneChoice::File { path, origin } => {
                let name = |text: &String| {
                    text.parse::<Name>().map_err(|fault| LoadedZoneError::Origin(text.clone(), fault))
                };
                let origin = origin.as_ref().map(name).transpose()?;
                strip(&read_file(path, origin.as_ref())?.contents)
            }
        };
        let queried = QueriedZone::of(&contents);
        let list = |kind: &QueryKind| match kind.list(&queried, seed) {
            Ok(list) => Ok((*kind, list)),
            Err(source) => Err(LoadedZoneError::Queries { kind: *kind, source }),
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
pub(super) struct Subject {
    pub(super) choice: SubjectChoice,
    process: Process,
    pub(super) published: Published,
    /// Time from the start of the process until it answered.
    pub(super) ready_s: f64,
    /// Number of validated responses; `None` for an unsigned zone.
    pub(super) validated: Option<u64>,
    metrics: Option<Metrics>,
    /// The files of the server; dropped after the server.
    _directory: TempDir,
}

/// What is the same for all subjects.
pub(super) struct Conditions<'a> {
    pub(super) parameters: &'a Parameters,
    /// Path of the program `nonesuch`.
    pub(super) program: &'a Path,
    pub(super) cpus: Option<CpuPlacement>,
    pub(super) now: u32,
    pub(super) seed: u64,
}

impl Conditions<'_> {
    /// Publishes the zone, starts the server and validates samples of its responses.
    pub(super) fn start(
        &self,
        choice: &SubjectChoice,
        zone: &LoadedZone,
        directory: TempDir,
        progress: &dyn Fn(&str),
    ) -> Result<Subject, SubjectError> {
        let published = Publication {
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
        .publish()?;
        progress("starting the server");
        let metrics = self.metrics(choice.server)?;
        let started = Instant::now();
        let process = match choice.server {
            ServerChoice::Nonesuch => self.start_nonesuch(&published, directory.path(), metrics)?,
            ServerChoice::Peer(peer) => Process::Peer(PeerServer::start(
                peer,
                &self.peer_setup(choice, &published, directory.path(), metrics),
            )?),
        };
        let ready_s = started.elapsed().as_secs_f64();
        let choice = choice.clone();
        if let Some(metrics) = metrics {
            metrics.read().map_err(SubjectError::Metrics)?;
        }
        let mut subject =
            Subject { choice, process, published, ready_s, validated: None, metrics, _directory: directory };
        progress("validating responses");
        self.validate(&mut subject, zone)?;
        Ok(subject)
    }

    /// Returns the metrics that a server gets; `None` if its counters are not read.
    fn metrics(&self, server: ServerChoice) -> Result<Option<Metrics>, SubjectError> {
        if !self.parameters.online_counters {
            return Ok(None);
        }
        let address = free_address(Ipv4Addr::LOCALHOST).map_err(SubjectError::NoMetrics)?;
        Ok(match server {
            ServerChoice::Nonesuch => Some(Metrics::of_nonesuch(address)),
            ServerChoice::Peer(peer) => Metrics::of_peer(peer, address),
        })
    }

    fn start_nonesuch(
        &self,
        published: &Published,
        directory: &Path,
        metrics: Option<Metrics>,
    ) -> Result<Process, ServerError> {
        let Parameters { workers, udp_octets, .. } = self.parameters;
        let program = command_with_all_cpu_features(self.program);
        let command = match metrics {
            Some(metrics) => {
                let text = metrics.configuration(&published.served, workers.value(), udp_octets.value());
                counters::serving(program, directory, &text)?
            }
            None => {
                let mut command = serving(program, &published.served, workers.value());
                command.args(["--max-udp-size", &udp_octets.value().to_string()]);
                command
            }
        };
        let cpu = self.cpus.map(|cpus| cpus.server).filter(|_| workers.value() == 1);
        Ok(Process::Nonesuch(Server::start(command, cpu, &directory.join("log"), READY_LIMIT)?))
    }

    fn peer_setup(
        &self,
        choice: &SubjectChoice,
        published: &Published,
        directory: &Path,
        metrics: Option<Metrics>,
    ) -> Setup {
        let serving = match choice.denial.0 {
            None => Serving::Unsigned,
            Some(mechanism) => match online_denial(mechanism) {
                Some(denial) if mechanism.generation() == DenialGeneration::Online => {
                    Serving::Online { denial, keys: published.key_files.clone() }
                }
                _ => Serving::Presigned,
            },
        };
        let workers = self.parameters.workers.value();
        let lines = metrics.map(Metrics::coredns_line).unwrap_or_default();
        let zone = PeerZone::new(&published.served.origin, &published.served.file, serving);
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
    fn validate(&self, subject: &mut Subject, zone: &LoadedZone) -> Result<(), SubjectError> {
        let samples = self.parameters.samples.value();
        for (kind, list) in &zone.lists {
            let limit = u64::from(samples) * QUERIES_PER_SAMPLE;
            let options = LoadOptions {
                samples: samples as usize,
                limit: Some(limit),
                seconds: SAMPLE_SECONDS,
                ..self.options(subject, *kind, list)
            };
            let report = load::run(&options)?;
            if report.received == 0 {
                return Err(SubjectError::Silent(report.sent));
            }
            if subject.published.anchors.is_empty() {
                continue;
            }
            let wanted = ValidationOptions {
                zone: zone.contents.apex().clone(),
                anchors: subject.published.anchors.clone(),
                now: self.now,
            };
            let counts = validate_samples(&options, &wanted, report.samples.iter().map(Vec::as_slice))?;
            let (wrong, samples) = (counts.bogus + counts.indeterminate, report.samples.len() as u64);
            if let Some(reason) = counts.first_reason.filter(|_| wrong > 0) {
                return Err(SubjectError::Invalid { wrong, samples, reason });
            }
            *subject.validated.get_or_insert(0) += samples;
        }
        Ok(())
    }

    /// Loads a server at `rate` queries per second; `None`: a closed loop. The queries have the UDP
    /// payload size `payload`, in octets.
    pub(super) fn load(
        &self,
        subject: &Subject,
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
            ..self.options(subject, kind, list)
        })
    }

    pub(super) fn options(&self, subject: &Subject, kind: QueryKind, list: &Arc<QueryList>) -> LoadOptions {
        let Parameters { outstanding, sockets, udp_octets, .. } = self.parameters;
        let sockets = sockets.value() as usize;
        kind.with_labels(LoadOptions {
            outstanding: (outstanding.value() as usize).max(sockets),
            sockets,
            edns_size: udp_octets.value(),
            follow_truncated: true,
            server_pid: Some(subject.pid()),
            cpus: self.cpus.map(|cpus| vec![cpus.load]),
            timeout: TIMEOUT,
            seed: self.seed,
            ..LoadOptions::new(subject.address(), Arc::clone(list))
        })
    }
}

impl Subject {
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
