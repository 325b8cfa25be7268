//! The authoritative servers of a tree: `nonesuch serve`, with counters of what the resolver asked.

use super::composer::Composer;
use super::{Network, READY_LIMIT, Site, TestbedError, TreeFiles, user_setting};
use crate::measure::level::command_with_all_cpu_features;
use crate::measure::metrics::{read_metrics, total};
use crate::measure::server::Server;
use crate::peers::{OnlineDenial, Peer, PeerServer, PeerZone, Serving, Setup};
use crate::process::{CpuTime, trees_cpu_time};
use crate::tree::SUCCESSOR_SUFFIX;
use nonesuch_net::{bind, pin_current_thread};
use serde::{Deserialize, Serialize};
use std::fs;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};

/// Port of the metrics of the first server.
const METRICS_PORT: u16 = 9530;

/// What all authoritative servers of a tree have answered. `None`: a server does not count it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct UpstreamCounts {
    /// Queries over UDP.
    pub(crate) upstream_udp: Option<u64>,
    /// Queries over TCP.
    pub(crate) upstream_tcp: Option<u64>,
    /// Truncated responses over UDP.
    pub(crate) upstream_truncated: Option<u64>,
    /// Accepted TCP connections.
    pub(crate) upstream_connections: Option<u64>,
    /// Octets of queries, without headers of UDP, TCP and IP.
    pub(crate) upstream_query_octets: Option<u64>,
    /// Octets of responses, likewise.
    pub(crate) upstream_response_octets: Option<u64>,
}

impl UpstreamCounts {
    fn of_metrics(text: &str) -> Self {
        let [udp, tcp] = ["transport=\"udp\"", "transport=\"tcp\""];
        let count = |name: &str, label: &str| Some(total(text, name, label));
        Self {
            upstream_udp: count("nonesuch_queries_total", udp),
            upstream_tcp: count("nonesuch_queries_total", tcp),
            upstream_truncated: count("nonesuch_truncated_responses_total", udp),
            upstream_connections: count("nonesuch_connections_total", "outcome=\"accepted\""),
            upstream_query_octets: count("nonesuch_query_size_bytes_sum", ""),
            upstream_response_octets: count("nonesuch_response_size_bytes_sum", ""),
        }
    }

    /// Combines each pair of known counts.
    fn zip(self, other: Self, combine: fn(u64, u64) -> u64) -> Self {
        let both = |one: Option<u64>, two: Option<u64>| Some(combine(one?, two?));
        Self {
            upstream_udp: both(self.upstream_udp, other.upstream_udp),
            upstream_tcp: both(self.upstream_tcp, other.upstream_tcp),
            upstream_truncated: both(self.upstream_truncated, other.upstream_truncated),
            upstream_connections: both(self.upstream_connections, other.upstream_connections),
            upstream_query_octets: both(self.upstream_query_octets, other.upstream_query_octets),
            upstream_response_octets: both(self.upstream_response_octets, other.upstream_response_octets),
        }
    }

    /// Returns the difference from the earlier counts.
    pub(crate) fn since(self, earlier: Self) -> Self {
        self.zip(earlier, u64::saturating_sub)
    }
}

/// The program that serves the zones below the top-level domain.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ZoneServer {
    /// `nonesuch serve`.
    Nonesuch,
    /// PowerDNS Authoritative Server, which generates white lies.
    Powerdns,
}

/// The running servers of a tree. Dropping them ends their processes.
#[derive(Debug)]
pub(crate) struct TreeServers {
    servers: Vec<Server>,
    /// Addresses of the metrics of the servers that resolvers query.
    metrics: Vec<SocketAddr>,
    /// The servers of zones in a conservative transition.
    composers: Vec<Composer>,
    /// The server of the zones below the top-level domain, if it is not `nonesuch serve`.
    powerdns: Option<PeerServer>,
}

/// How the servers of a tree are started.
#[derive(Clone, Copy)]
pub(crate) struct ServersOptions<'o> {
    pub(crate) program: &'o Path,
    /// CPU of all servers; `None`: any.
    pub(crate) cpu: Option<usize>,
    pub(crate) zone_server: ZoneServer,
    /// Directory for logs.
    pub(crate) directory: &'o Path,
    /// More lines for the top of the configurations of `nonesuch serve`.
    pub(crate) settings: &'o str,
}

impl TreeServers {
    /// Starts a server with one worker for each address of the tree.
    pub(crate) fn start(
        tree: &TreeFiles,
        network: &Network,
        options: ServersOptions<'_>,
    ) -> Result<Self, TestbedError> {
        network.run(Site::Servers, || Self::start_here(tree, options))?
    }

    fn start_here(tree: &TreeFiles, options: ServersOptions<'_>) -> Result<Self, TestbedError> {
        let mut all =
            Self { servers: Vec::new(), metrics: Vec::new(), composers: Vec::new(), powerdns: None };
        for (address, port) in tree.addresses.iter().zip(METRICS_PORT..) {
            if tree.transitions.contains(address) {
                all.start_composer(tree, *address, options)?;
                continue;
            }
            if options.zone_server == ZoneServer::Powerdns && Some(address) == tree.addresses.last() {
                all.powerdns = Some(start_powerdns(tree, *address, options)?);
                continue;
            }
            let metrics = SocketAddr::from((Ipv4Addr::LOCALHOST, port));
            let settings = format!("metrics-listen = \"{metrics}\"\n{}", options.settings);
            let text = configuration(tree, &address.to_string())?;
            let text = text.replacen("version = 1\n", &format!("version = 1\n{settings}"), 1);
            all.servers.push(start_server(tree, &address.to_string(), &text, options)?);
            all.metrics.push(metrics);
        }
        Ok(all)
    }

    /// Starts the servers of both versions of the zones at an address on free ports, and the
    /// composer at the address.
    fn start_composer(
        &mut self,
        tree: &TreeFiles,
        address: Ipv4Addr,
        options: ServersOptions<'_>,
    ) -> Result<(), TestbedError> {
        let start = |suffix: &str| {
            let name = format!("{address}{suffix}");
            let text =
                configuration(tree, &name)?.replacen(&format!("\"{address}:53\""), "\"127.0.0.1:0\"", 1);
            start_server(tree, &name, &text, options)
        };
        let (old, new) = (start("")?, start(SUCCESSOR_SUFFIX)?);
        let servers = [old.address, new.address];
        self.servers.extend([old, new]);
        // The threads of the composer inherit the CPU. Unpinned, they would still work.
        let _ = options.cpu.map(pin_current_thread);
        self.composers.push(Composer::start(bind(SocketAddr::from((address, 53)), 1)?, servers)?);
        Ok(())
    }

    /// What the servers have answered since their start.
    pub(crate) fn counts(&self, network: &Network) -> Result<UpstreamCounts, TestbedError> {
        if self.powerdns.is_some() {
            return Ok(UpstreamCounts::default());
        }
        let texts = self.read_metrics(network)?;
        let counts = texts.iter().map(|text| UpstreamCounts::of_metrics(text));
        let counts = counts.chain(self.composers.iter().map(Composer::counts));
        Ok(counts.reduce(|sum, counts| sum.zip(counts, u64::saturating_add)).unwrap_or_default())
    }

    fn read_metrics(&self, network: &Network) -> Result<Vec<String>, TestbedError> {
        let read =
            || self.metrics.iter().map(|address| read_metrics(*address)).collect::<Result<Vec<_>, _>>();
        network.run(Site::Servers, read)?.map_err(TestbedError::Metrics)
    }

    /// Number of signatures and proofs that `nonesuch serve` has generated online.
    pub(crate) fn online_operations(&self, network: &Network) -> Result<u64, TestbedError> {
        let texts = self.read_metrics(network)?;
        Ok(texts.iter().map(|text| total(text, "nonesuch_online_operations_total", "")).sum())
    }

    /// CPU time of all servers, without that of composers.
    pub(crate) fn cpu_time(&self) -> CpuTime {
        let roots = self.servers.iter().map(Server::pid).chain(self.powerdns.as_ref().map(PeerServer::pid));
        trees_cpu_time(&roots.collect::<Vec<u32>>())
    }
}

/// Reads a configuration of the tree.
fn configuration(tree: &TreeFiles, name: &str) -> Result<String, TestbedError> {
    let path = tree.directory.join("servers").join(format!("{name}.toml"));
    fs::read_to_string(&path).map_err(|source| TestbedError::Write { path, source })
}

/// Starts a server with one worker and the configuration `text`.
fn start_server(
    tree: &TreeFiles,
    name: &str,
    text: &str,
    options: ServersOptions<'_>,
) -> Result<Server, TestbedError> {
    let settings = format!("version = 1\nworkers = 1\n{}", user_setting());
    // Signatures and proofs are measured, so that the time for them is not limited.
    let text = text.replacen("version = 1\n", &settings, 1)
        + "\n[limits]\nonline-share = 100\nonline-busy-share = 100\n";
    // In the directory of the configuration, because paths are relative to it.
    let path = tree.directory.join("servers").join(format!("{name}.measured.toml"));
    fs::write(&path, text).map_err(|source| TestbedError::Write { path: path.clone(), source })?;
    let mut command = command_with_all_cpu_features(options.program);
    command.args(["serve", "--config"]).arg(&path);
    let log = options.directory.join(format!("{name}.log"));
    let started = Server::start(command, options.cpu, &log, READY_LIMIT);
    started.map_err(|source| TestbedError::Server { what: format!("the server {name}"), source })
}

/// Starts PowerDNS for the zones at an address of the tree.
fn start_powerdns(
    tree: &TreeFiles,
    address: Ipv4Addr,
    options: ServersOptions<'_>,
) -> Result<PeerServer, TestbedError> {
    let mut zones = Vec::new();
    for zone in tree.zones.iter().filter(|zone| zone.server == address) {
        let keys = key_files(&tree.directory.join("keys").join(&zone.file))?;
        let serving = Serving::Online { denial: OnlineDenial::WhiteLies, keys };
        zones.push(PeerZone::new(&zone.origin, &tree.directory.join("zones").join(&zone.file), serving));
    }
    let setup = Setup {
        ip: address,
        port: Some(53),
        cpus: options.cpu.into_iter().collect(),
        zones,
        limit: READY_LIMIT,
        ..Setup::new(options.directory)
    };
    Ok(PeerServer::start(Peer::PowerDns, &setup)?)
}

/// The keys in a directory, without the suffix of their files.
fn key_files(directory: &Path) -> Result<Vec<PathBuf>, TestbedError> {
    let fault = |source| TestbedError::Write { path: directory.to_owned(), source };
    let files = fs::read_dir(directory).map_err(fault)?.filter_map(|file| Some(file.ok()?.path()));
    let keys = files.filter(|file| file.extension().is_some_and(|end| end == "key"));
    Ok(keys.map(|file| file.with_extension("")).collect())
}
