//! Starts the proxy of a check, if it has none, in the network of this process or in network namespaces.

use super::super::QueryFault;
use crate::link::LinkError;
use crate::measure::child::KillOnDrop;
use crate::measure::server::log_end;
use crate::proxy::{Fault, Proxy, ProxyError, ProxyOptions};
use crate::testbed::{Network, PlacedLink, Site, TestbedError};
use nonesuch_net::NetError;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};
use std::path::PathBuf;
use std::process::{Command, ExitStatus, Stdio};
use std::time::Duration;
use tempfile::NamedTempFile;

/// The address of the resolver of the check in a namespace, from the network for tests (RFC 2544).
const RESOLVER_ADDRESS: Ipv4Addr = Ipv4Addr::new(198, 18, 0, 1);
/// The same with its port.
pub(super) const RESOLVER: SocketAddr = SocketAddr::V4(SocketAddrV4::new(RESOLVER_ADDRESS, PORT));
/// The port of a program, and of the resolver behind it.
const PORT: u16 = 53;
/// The text in arguments of a program that becomes the address on which it must listen.
const LISTEN: &str = "{listen}";
/// The text in arguments of a program that becomes the address of the resolver.
const UPSTREAM: &str = "{upstream}";

/// A program that is a proxy.
#[derive(Clone, Debug)]
pub struct ProxyProgram {
    /// The program.
    pub program: PathBuf,
    /// Its arguments. `{listen}` becomes the address on which it must listen, and `{upstream}` that of the resolver
    /// to which it must forward queries. The port of both is 53.
    pub arguments: Vec<String>,
}

/// The proxy that is checked.
#[derive(Clone, Debug)]
pub enum ProxyTarget {
    /// A running proxy with this address.
    Running(SocketAddr),
    /// `nonesuch proxy` with these faults, which the check starts.
    Own(Vec<Fault>),
    /// A program that the check starts in network namespaces.
    Program(ProxyProgram),
}

/// What determines a check of a proxy.
#[derive(Clone, Debug)]
pub struct ProxyCheckOptions {
    /// The proxy.
    pub target: ProxyTarget,
    /// The address on which the resolver of the check listens, unless it is in a namespace. The proxy must forward
    /// queries to it. Port 0 selects a free port, for a proxy that the check starts.
    pub upstream: SocketAddr,
    /// The address of the proxy on the side of the provider.
    pub wan: Option<SocketAddr>,
    /// Time limit for each response.
    pub timeout: Duration,
}

/// Why a check of a proxy does not start.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ProxyCheckError {
    /// The resolver of the check cannot listen.
    #[error(
        "{address}: {source}: choose another address for the resolver of the check with --upstream-listen"
    )]
    Listen {
        /// Its address.
        address: SocketAddr,
        /// The fault.
        source: NetError,
    },
    /// The proxy of the check cannot be started.
    #[error(transparent)]
    Proxy(#[from] ProxyError),
    /// The program cannot be started.
    #[error("cannot start {}: {source}: check that it is installed", program.display())]
    Program {
        /// The program.
        program: PathBuf,
        /// The error of the system.
        source: io::Error,
    },
    /// The program ended before it answered a query.
    #[error("the proxy ended ({status}): its arguments must keep it in the foreground; its output: {log}")]
    Ended {
        /// The exit status.
        status: ExitStatus,
        /// The end of its output.
        log: String,
    },
    /// The namespaces of the check, or the path between them, cannot be used.
    #[error(transparent)]
    Link(LinkError),
    /// Another fault of the network.
    #[error(transparent)]
    Network(TestbedError),
    /// A running proxy is not in a namespace of the check.
    #[error(
        "no path to the running proxy {proxy} can be simulated: let the check start the proxy, with --start-proxy or --program"
    )]
    NoPath {
        /// The proxy.
        proxy: SocketAddr,
    },
    /// The proxy does not forward queries to the check.
    #[error("{proxy}: {reason}: set {upstream} as the DNS server to which the proxy forwards queries")]
    NotForwarded {
        /// The proxy.
        proxy: SocketAddr,
        /// The resolver of the check.
        upstream: SocketAddr,
        /// What happened to the query.
        reason: String,
    },
    /// The system has no random octets.
    #[error(transparent)]
    Random(QueryFault),
}

impl From<TestbedError> for ProxyCheckError {
    fn from(error: TestbedError) -> Self {
        match error {
            // Without the remedy of an experiment.
            TestbedError::Namespace(error) => Self::Link(error.into()),
            TestbedError::Link(error) => Self::Link(error),
            error => Self::Network(error),
        }
    }
}

/// A namespace with all parts of a check.
pub(super) fn direct_network() -> Result<Network, ProxyCheckError> {
    Ok(Network::new(None, &[RESOLVER_ADDRESS], None)?)
}

/// Two namespaces with a path between them.
pub(super) fn linked_network(path: &PlacedLink) -> Result<Network, ProxyCheckError> {
    Ok(Network::new(Some(path), &[RESOLVER_ADDRESS], None)?)
}

/// Runs `action` at a part of the network; without a network, here.
pub(super) fn at<T: Send>(
    network: Option<&Network>,
    site: Site,
    action: impl FnOnce() -> T + Send,
) -> Result<T, ProxyCheckError> {
    match network {
        Some(network) => Ok(network.run(site, action)?),
        None => Ok(action()),
    }
}

/// A proxy that is checked. Dropping it stops it, unless it was running before.
#[derive(Debug)]
pub(super) struct RunningProxy {
    /// Its address on the side of the clients.
    pub(super) address: SocketAddr,
    process: Process,
}

#[derive(Debug)]
enum Process {
    Elsewhere,
    Own { _proxy: Proxy },
    Program { child: KillOnDrop, log: NamedTempFile },
}

impl RunningProxy {
    /// Starts the proxy unless it is running. It forwards queries to `upstream`.
    pub(super) fn start(
        options: &ProxyCheckOptions,
        network: Option<&Network>,
        upstream: SocketAddr,
    ) -> Result<Self, ProxyCheckError> {
        let listen = network.map_or_else(|| upstream.ip(), |network| network.resolver_address().into());
        match &options.target {
            ProxyTarget::Running(address) => Ok(Self { address: *address, process: Process::Elsewhere }),
            ProxyTarget::Own(faults) => {
                let options = ProxyOptions {
                    faults: faults.clone(),
                    wan: options.wan,
                    timeout: options.timeout,
                    ..ProxyOptions::new((listen, 0).into(), upstream)
                };
                let proxy = at(network, Site::Resolver, || Proxy::start(&options))??;
                Ok(Self { address: proxy.address(), process: Process::Own { _proxy: proxy } })
            }
            ProxyTarget::Program(program) => {
                let process = program.start(network, listen, upstream.ip())?;
                Ok(Self { address: (listen, PORT).into(), process })
            }
        }
    }

    /// Whether the proxy may still be starting.
    ///
    /// # Errors
    /// The program has ended.
    pub(super) fn is_starting(&mut self) -> Result<bool, ProxyCheckError> {
        let Process::Program { child, log } = &mut self.process else { return Ok(false) };
        match child.0.try_wait() {
            Ok(Some(status)) => Err(ProxyCheckError::Ended { status, log: log_end(log.path()) }),
            _ => Ok(true),
        }
    }
}

impl ProxyProgram {
    /// Starts the program. Its output goes to a file, for an error message.
    fn start(
        &self,
        network: Option<&Network>,
        listen: IpAddr,
        upstream: IpAddr,
    ) -> Result<Process, ProxyCheckError> {
        let failed = |source| ProxyCheckError::Program { program: self.program.clone(), source };
        let log = NamedTempFile::new().map_err(failed)?;
        let output = log.reopen().map_err(failed)?;
        let errors = output.try_clone().map_err(failed)?;
        let (listen, upstream) = (listen.to_string(), upstream.to_string());
        let arguments = self.arguments.iter();
        let arguments =
            arguments.map(|argument| argument.replace(LISTEN, &listen).replace(UPSTREAM, &upstream));
        let mut command = Command::new(&self.program);
        command.args(arguments).stdin(Stdio::null()).stdout(output).stderr(errors);
        let child = at(network, Site::Resolver, || command.spawn())?.map_err(failed)?;
        Ok(Process::Program { child: KillOnDrop(child), log })
    }
}
