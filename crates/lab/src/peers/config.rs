//! The configuration files of the peers, one module for each program.

mod bind;
mod coredns;
mod knot;
mod knot_resolver;
mod nsd;
mod powerdns;
mod powerdns_recursor;
mod unbound;

use super::error::PeerError;
use super::info::{Peer, find_program};
use super::setup::{RootServer, Setup, TrustAnchor, free_address};
use crate::measure::child::KillOnDrop;
use crate::measure::server::log_end;
use std::fmt::Write as _;
use std::fs::{self, File};
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time limit for a program that prepares the data of a peer or controls it.
const RUN_LIMIT: Duration = Duration::from_secs(60);

/// Directory and addresses of a peer.
pub(super) struct PeerLocation {
    /// Absolute path, which [`check_path`](super::check::check_path) accepts.
    pub(super) folder: PathBuf,
    /// Address for UDP and TCP.
    pub(super) address: SocketAddr,
    /// Address for DNS over TLS; `None` without a certificate.
    pub(super) tls: Option<SocketAddr>,
}

impl PeerLocation {
    /// Chooses free ports for the addresses that `setup` does not determine.
    pub(super) fn choose(setup: &Setup, folder: &Path) -> Result<Self, PeerError> {
        let ip = setup.ip;
        let free_port = || free_address(ip).map_err(|source| PeerError::Port { ip, source });
        let address = setup.port.map_or_else(free_port, |port| Ok((ip, port).into()))?;
        let mut location = Self { folder: folder.to_owned(), address, tls: None };
        if setup.tls.is_some() {
            location.tls = Some(location.another_address(ip)?);
        }
        Ok(location)
    }

    /// Returns this IP address, that of the setup, with another free port.
    fn another_address(&self, ip: Ipv4Addr) -> Result<SocketAddr, PeerError> {
        loop {
            let found = free_address(ip).map_err(|source| PeerError::Port { ip, source })?;
            // The addresses are not bound yet, so that they are still free.
            if found != self.address && Some(found) != self.tls {
                return Ok(found);
            }
        }
    }

    /// Writes a file in the directory of the peer.
    fn write(&self, name: &str, text: &str) -> Result<PathBuf, PeerError> {
        let path = self.folder.join(name);
        fs::write(&path, text).map_err(|source| PeerError::Write { path: path.clone(), source })?;
        Ok(path)
    }

    /// Writes the root servers as a hints file.
    fn write_hints(&self, servers: &[RootServer]) -> Result<PathBuf, PeerError> {
        self.write("root.hints", &hints_file_text(servers))
    }

    /// Runs a program that prepares data of the peer, to its end.
    fn run_preparation(&self, command: &mut Command) -> Result<(), PeerError> {
        run_to_end(command, &self.folder, "preparation.log")
    }
}

/// Runs a program to its end in the directory `folder`, with both outputs in the file `log` there.
pub(crate) fn run_to_end(command: &mut Command, folder: &Path, log: &str) -> Result<(), PeerError> {
    let path = folder.join(log);
    let output = File::create(&path).and_then(|log| Ok((log.try_clone()?, log)));
    let (log, same_log) = output.map_err(|source| PeerError::Write { path: path.clone(), source })?;
    command.current_dir(folder).stdin(Stdio::null()).stdout(log).stderr(same_log);
    let status = spawn(command)?.end_within(RUN_LIMIT);
    if status.is_some_and(|status| status.success()) {
        return Ok(());
    }
    Err(PeerError::Step { command: format!("{command:?}"), log: log_end(&path) })
}

/// Writes the configuration of a peer, prepares its data, and returns the command that starts it in
/// the foreground.
pub(super) fn prepare(peer: Peer, setup: &Setup, location: &PeerLocation) -> Result<Command, PeerError> {
    match peer {
        Peer::Bind => bind::prepare(setup, location),
        Peer::Knot => knot::prepare(setup, location),
        Peer::Nsd => nsd::prepare(setup, location),
        Peer::PowerDns => powerdns::prepare(setup, location),
        Peer::CoreDns => coredns::prepare(setup, location),
        Peer::Unbound => unbound::prepare(setup, location),
        Peer::BindResolver => bind::prepare_resolver(setup, location),
        Peer::KnotResolver => knot_resolver::prepare(setup, location),
        Peer::PowerDnsRecursor => powerdns_recursor::prepare(setup, location),
    }
}

/// Starts a program, which ends when the handle is dropped.
pub(super) fn spawn(command: &mut Command) -> Result<KillOnDrop, PeerError> {
    let started = command.spawn();
    started
        .map(KillOnDrop)
        .map_err(|source| PeerError::Start { program: command.get_program().into(), source })
}

/// The command of a program.
pub(super) fn program(name: &str) -> Command {
    Command::new(find_program(name).unwrap_or_else(|| name.into()))
}

/// The command of a program, restricted to the CPUs of the setup.
fn program_command(name: &str, setup: &Setup) -> Command {
    let command = program(name);
    if setup.cpus.is_empty() {
        return command;
    }
    let cpus: Vec<String> = setup.cpus.iter().map(usize::to_string).collect();
    let mut restricted = Command::new("taskset");
    restricted.args(["-c", &cpus.join(",")]).arg(command.get_program());
    restricted
}

/// The text of a hints file: NS and A records of the root servers (RFC 8109).
fn hints_file_text(servers: &[RootServer]) -> String {
    servers.iter().fold(String::new(), |mut text, RootServer { name, address }| {
        let _ = writeln!(text, ". 3600000 IN NS {name}\n{name} 3600000 IN A {address}");
        text
    })
}

/// The trust anchors as DS records in the format of a zone file.
fn anchor_records(anchors: &[TrustAnchor]) -> String {
    anchors.iter().fold(String::new(), |text, anchor| text + &anchor.record() + "\n")
}

const fn yes_or_no(value: bool) -> &'static str {
    if value { "yes" } else { "no" }
}
