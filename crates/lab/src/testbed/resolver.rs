//! The measured resolver: `nonesuch resolve` or a peer.

use super::{Network, READY_LIMIT, Site, TestbedError, TreeFiles, quoted, user_setting};
use crate::measure::level::command_with_all_cpu_features;
use crate::measure::server::Server;
use crate::peers::{
    Peer, PeerRole, PeerServer, ResolverSetup, Setup, TlsIdentity, Upstream, free_address, run_to_end,
};
use crate::process;
use serde::{Deserialize, Serialize};
use std::fmt::Write as _;
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::str::FromStr;

/// Name of this program in parameters and data.
const NONESUCH: &str = "nonesuch";
/// Name of its control socket, in the directory of its configuration.
const CONTROL_SOCKET: &str = "control";

/// A resolver: this program, or a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub enum Resolver {
    /// `nonesuch resolve`.
    Nonesuch,
    /// Another resolver.
    Peer(Peer),
}

impl Resolver {
    /// The other resolver; `None` for this program.
    pub(crate) const fn peer(self) -> Option<Peer> {
        match self {
            Self::Nonesuch => None,
            Self::Peer(peer) => Some(peer),
        }
    }
}

/// The text is not the name of a resolver.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("'{0}' is not a resolver: write nonesuch or the name of a resolver that `nonesuch lab list` shows")]
pub struct ResolverNameError(String);

impl FromStr for Resolver {
    type Err = ResolverNameError;

    fn from_str(text: &str) -> Result<Self, ResolverNameError> {
        let is_named = |peer: &Peer| peer.info().name == text && peer.info().role == PeerRole::Resolver;
        let peer = || Peer::all().find(is_named).map(Self::Peer);
        let found = if text == NONESUCH { Some(Self::Nonesuch) } else { peer() };
        found.ok_or_else(|| ResolverNameError(text.to_owned()))
    }
}

impl std::fmt::Display for Resolver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.pad(match self {
            Self::Nonesuch => NONESUCH,
            Self::Peer(peer) => peer.info().name,
        })
    }
}

crate::measure::subject::serde_as_text!(ResolverNameError: Resolver);

/// The configuration of a resolver. It has one worker.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ResolverOptions<'o> {
    /// Whether it validates, with the trust anchors of the tree.
    pub(crate) validates: bool,
    /// Whether it answers from cached denial records (RFC 8198). Knot Resolver always does.
    pub(crate) aggressive: bool,
    /// Whether this program uses experimental algorithms, among them the alias numbers of NSEC5.
    pub(crate) experimental: bool,
    /// Size of the cache, in MiB.
    pub(crate) cache_mib: u32,
    /// UDP payload size of its queries, and maximum size of its responses over UDP, in octets.
    pub(crate) udp_octets: u16,
    /// Certificate and key, if it answers over TLS.
    pub(crate) tls: Option<&'o TlsIdentity>,
    /// How a peer is recorded. This program counts by itself.
    pub(crate) recorded: Option<&'o RecordedPeer>,
    /// CPU; `None`: any.
    pub(crate) cpu: Option<usize>,
}

/// How the work of a peer is recorded for the cost model.
#[derive(Clone, Debug)]
pub(crate) struct RecordedPeer {
    /// The Unix socket for its dnstap messages, on which the recorder listens.
    pub(crate) dnstap: PathBuf,
    /// The library that counts verified signatures (`tools/count-verifications`).
    pub(crate) library: PathBuf,
    /// The file to which the library writes.
    pub(crate) totals: PathBuf,
}

/// A running resolver with an empty cache. Dropping it ends its processes.
#[derive(Debug)]
pub(crate) struct RunningResolver {
    /// Address for UDP and TCP.
    pub(crate) address: SocketAddr,
    /// Address for TLS.
    pub(crate) tls_address: Option<SocketAddr>,
    process: Process,
}

#[derive(Debug)]
enum Process {
    Nonesuch { server: Server, program: PathBuf, configuration: PathBuf },
    Peer(PeerServer),
}

impl RunningResolver {
    /// Starts a resolver. It listens on `port`, or on a free port. Writes its files to `directory`.
    pub(crate) fn start(
        resolver: Resolver,
        tree: &TreeFiles,
        network: &Network,
        options: &ResolverOptions<'_>,
        (program, directory): (&Path, &Path),
        port: Option<u16>,
    ) -> Result<Self, TestbedError> {
        if options.validates && tree.anchors.is_empty() {
            return Err(TestbedError::NoAnchor);
        }
        let place = Place { tree, network, options, program, directory, port };
        network.run(Site::Resolver, || match resolver {
            Resolver::Nonesuch => place.start_nonesuch(),
            Resolver::Peer(peer) => place.start_peer(peer),
        })?
    }

    /// The control socket of this program.
    pub(crate) fn control_socket(&self) -> Option<PathBuf> {
        match &self.process {
            Process::Nonesuch { configuration, .. } => Some(configuration.with_file_name(CONTROL_SOCKET)),
            Process::Peer(_) => None,
        }
    }

    /// Process ID of the resolver. It may have child processes.
    pub(crate) fn pid(&self) -> u32 {
        match &self.process {
            Process::Nonesuch { server, .. } => server.pid(),
            Process::Peer(server) => server.pid(),
        }
    }

    /// Removes all cached data. The caller is in the network of the resolver.
    pub(crate) fn flush_cache(&self) -> Result<(), TestbedError> {
        match &self.process {
            Process::Nonesuch { program, configuration, .. } => {
                let mut command = Command::new(program);
                command.args(["ctl", "--config"]).arg(configuration).args(["cache", "flush"]);
                let directory = configuration.parent().unwrap_or_else(|| Path::new("."));
                run_to_end(&mut command, directory, "flush.log")?;
            }
            Process::Peer(server) => server.flush_cache()?,
        }
        Ok(())
    }

    /// Memory of all its processes, in KiB.
    pub(crate) fn memory_kib(&self) -> u64 {
        process::tree_memory_kib(self.pid())
    }

    /// Number of open sockets of all its processes.
    pub(crate) fn open_sockets(&self) -> u64 {
        process::tree(self.pid()).into_iter().map(process::open_sockets).sum()
    }
}

/// Where and how a resolver starts.
#[derive(Clone, Copy)]
struct Place<'p> {
    tree: &'p TreeFiles,
    network: &'p Network,
    options: &'p ResolverOptions<'p>,
    program: &'p Path,
    directory: &'p Path,
    port: Option<u16>,
}

impl Place<'_> {
    fn start_nonesuch(self) -> Result<RunningResolver, TestbedError> {
        let ip = self.network.resolver_address();
        let free =
            || free_address(ip).map_err(|source| TestbedError::Write { path: "a port".into(), source });
        let tls_address = self.options.tls.map(|_| free()).transpose()?;
        let path = self.directory.join("nonesuch.toml");
        let text = self.configuration(SocketAddr::from((ip, self.port.unwrap_or(0))), tls_address);
        fs::write(&path, text).map_err(|source| TestbedError::Write { path: path.clone(), source })?;
        let mut command = command_with_all_cpu_features(self.program);
        command.args(["resolve", "--config"]).arg(&path);
        let log = self.directory.join("nonesuch.log");
        let started = Server::start(command, self.options.cpu, &log, READY_LIMIT);
        let server =
            started.map_err(|source| TestbedError::Server { what: "nonesuch resolve".to_owned(), source })?;
        let address = server.address;
        let process = Process::Nonesuch { server, program: self.program.to_owned(), configuration: path };
        Ok(RunningResolver { address, tls_address, process })
    }

    fn configuration(self, address: SocketAddr, tls: Option<SocketAddr>) -> String {
        let ResolverOptions { validates, aggressive, experimental, cache_mib, udp_octets, .. } =
            *self.options;
        // Half of the memory is for the cache.
        let memory = 2 * cache_mib;
        let mut text = format!(
            "version = 1\nlisten = [\"{address}\"]\nworkers = 1\nallow-query = [\"any\"]\nhints = {}\n\
             memory = \"{memory}MiB\"\nvalidation = {validates}\naggressive-denial = {aggressive}\n\
             experimental-algorithms = {experimental}\nedns-payload = {udp_octets}\ncontrol-socket = \"{CONTROL_SOCKET}\"\n{}",
            quoted(&self.tree.hints()),
            user_setting(),
        );
        // Writing to a `String` cannot fail.
        if validates {
            let _ = writeln!(text, "trust-anchors = {}", quoted(&self.tree.anchor_file()));
        }
        if let (Some(tls), Some(TlsIdentity { certificate, key })) = (tls, self.options.tls) {
            let (certificate, key) = (quoted(certificate), quoted(key));
            let _ =
                writeln!(text, "listen-tls = [\"{tls}\"]\ntls-certificate = {certificate}\ntls-key = {key}");
        }
        text
    }

    fn start_peer(self, peer: Peer) -> Result<RunningResolver, TestbedError> {
        let ResolverOptions { validates, aggressive, cache_mib, udp_octets, tls, recorded, cpu, .. } =
            *self.options;
        if tls.is_some() && !peer.info().tls {
            return Err(TestbedError::NoTls(peer.info().title));
        }
        let lines = recorded.map(|recorded| peer.dnstap_lines(&recorded.dnstap));
        let lines = lines.map(|lines| lines.ok_or(TestbedError::NoDnstap(peer.info().title))).transpose()?;
        let environment = recorded.map(|RecordedPeer { library, totals, .. }| {
            [("LD_PRELOAD", library), ("NONESUCH_VERIFICATIONS", totals)]
                .map(|(name, path)| (name.to_owned(), path.clone().into_os_string()))
                .to_vec()
        });
        let setup = Setup {
            ip: self.network.resolver_address(),
            port: self.port,
            cpus: cpu.into_iter().collect(),
            udp_octets,
            limit: READY_LIMIT,
            tls: tls.cloned(),
            lines: lines.unwrap_or_default(),
            environment: environment.unwrap_or_default(),
            resolver: ResolverSetup {
                upstream: Upstream::Roots { servers: vec![self.tree.root.clone()], port: 53 },
                anchors: if validates { self.tree.anchors.clone() } else { Vec::new() },
                negative_anchors: Vec::new(),
                cache_mib,
                aggressive,
                source: self.network.resolver_source(),
            },
            ..Setup::new(self.directory)
        };
        let server = PeerServer::start(peer, &setup)?;
        let (address, tls_address) = (server.address, server.tls_address);
        Ok(RunningResolver { address, tls_address, process: Process::Peer(server) })
    }
}
