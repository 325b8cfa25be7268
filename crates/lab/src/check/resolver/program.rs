//! Starts a resolver for a check, with root hints, trust anchors and a negative trust anchor for its servers.

use super::super::zones::Role;
use super::super::zones::ZoneOptions;
use super::configuration::ResolverKind;
use super::context::StartError;
use crate::measure::server::Server;
use crate::peers::{Peer, PeerServer, ResolverSetup, RootServer, Setup, TrustAnchor, Upstream};
use crate::tree::{AnchorForm, Tree};
use std::fs;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;
use tempfile::TempDir;

/// Time limit for the resolver to be ready.
const READY_LIMIT: Duration = Duration::from_secs(30);

/// A resolver that the check starts.
#[derive(Clone, Debug)]
pub struct ProgramOptions {
    /// The resolver.
    pub kind: ResolverKind,
    /// The program `nonesuch`.
    pub nonesuch: PathBuf,
    /// UDP payload size of its queries, and maximum size of its responses over UDP, in octets.
    pub udp_octets: u16,
}

/// A running resolver. Dropping it ends its processes.
#[derive(Debug)]
pub(super) struct Program {
    /// Its address.
    pub(super) address: SocketAddr,
    _process: Process,
    /// After the process.
    _directory: TempDir,
}

#[derive(Debug)]
enum Process {
    Nonesuch { _server: Server },
    Peer { _server: PeerServer },
}

impl ResolverKind {
    /// The program of another project.
    pub(super) const fn peer(self) -> Option<Peer> {
        Some(match self {
            Self::Unbound => Peer::Unbound,
            Self::Bind => Peer::BindResolver,
            Self::KnotResolver => Peer::KnotResolver,
            Self::PowerDns => Peer::PowerDnsRecursor,
            Self::Nonesuch => return None,
        })
    }

    /// More lines of its configuration.
    const fn lines(self) -> &'static str {
        match self {
            Self::Bind => "  resolver-query-timeout 1500;\n",
            Self::PowerDns => "dont-throttle-netmasks=127.0.0.0/8\npacketcache-servfail-ttl=0\n",
            Self::Unbound | Self::KnotResolver | Self::Nonesuch => "",
        }
    }
}

impl Program {
    /// Starts the resolver for the zones of a check.
    pub(super) fn start(
        options: &ProgramOptions,
        zones: &ZoneOptions,
        tree: &Tree,
    ) -> Result<Self, StartError> {
        let directory = tempfile::tempdir().map_err(StartError::Directory)?;
        let path = directory.path().canonicalize().map_err(StartError::Directory)?;
        let negative = format!("nta.{}", zones.suffix);
        let (address, process) = match options.kind.peer() {
            Some(peer) => {
                let server = PeerServer::start(peer, &setup(options, zones, tree, &path, negative))?;
                (server.address, Process::Peer { _server: server })
            }
            None => {
                let server = start_nonesuch(options, tree, &path, &negative)?;
                (server.address, Process::Nonesuch { _server: server })
            }
        };
        Ok(Self { address, _process: process, _directory: directory })
    }
}

fn setup(options: &ProgramOptions, zones: &ZoneOptions, tree: &Tree, path: &Path, negative: String) -> Setup {
    let root = tree.zones.iter().find(|zone| zone.parent.is_none());
    let name = root.map_or_else(|| ".".to_owned(), |zone| zone.nameserver.to_string());
    let server = RootServer { name, address: zones.addresses.of(Role::Root) };
    let text = tree.anchors(AnchorForm::Ds);
    let ds = text.lines().filter_map(|line| line.split_once(" DS "));
    let anchors = ds.map(|(_, ds)| TrustAnchor { zone: ".".to_owned(), ds: ds.to_owned() }).collect();
    Setup {
        udp_octets: options.udp_octets,
        limit: READY_LIMIT,
        lines: options.kind.lines().to_owned(),
        resolver: ResolverSetup {
            upstream: Upstream::Roots { servers: vec![server], port: zones.port },
            anchors,
            negative_anchors: vec![negative],
            aggressive: true,
            ..ResolverSetup::default()
        },
        ..Setup::new(path)
    }
}

fn start_nonesuch(
    options: &ProgramOptions,
    tree: &Tree,
    path: &Path,
    negative: &str,
) -> Result<Server, StartError> {
    let write = |name: &str, text: &str| {
        let path = path.join(name);
        fs::write(&path, text).map(|()| path).map_err(StartError::Directory)
    };
    write("root.hints", &tree.root_hints())?;
    write("anchor.ds", &tree.anchors(AnchorForm::Ds))?;
    let octets = options.udp_octets;
    let text = format!(
        "version = 1\nlisten = [\"127.0.0.1:0\"]\nworkers = 1\nhints = \"root.hints\"\ntrust-anchors = \"anchor.ds\"\n\
         edns-payload = {octets}\n[negative-anchor.\"{negative}\"]\nuntil = \"2099-01-01T00:00:00Z\"\n"
    );
    let configuration = write("resolver.toml", &text)?;
    let mut command = Command::new(&options.nonesuch);
    command.args(["resolve", "--config"]).arg(configuration);
    Server::start(command, None, &path.join("log"), READY_LIMIT).map_err(StartError::Nonesuch)
}
