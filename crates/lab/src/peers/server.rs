//! A running peer: start, readiness, measurement, stop.

use super::check::check_path;
use super::config::{self, PeerLocation};
use super::error::PeerError;
use super::info::{Peer, PeerRole};
use super::setup::{Serving, Setup};
use crate::measure::child::KillOnDrop;
use crate::measure::server::log_end;
use crate::process::{self, CpuTime};
use nonesuch_net::{ProcessSignal, signal_process};
use nonesuch_proto::message::{Header, Rcode, flags, push_query};
use nonesuch_proto::{Name, Rtype};
use std::fs::{self, File};
use std::io::{self, Read as _};
use std::net::{SocketAddr, UdpSocket};
use std::os::unix::fs::DirBuilderExt as _;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::thread;
use std::time::{Duration, Instant};

/// Maximum number of starts, each on another port, because another process may take the chosen
/// port.
const START_ATTEMPTS: usize = 5;
/// Time after SIGTERM until the processes are killed.
const STOP_LIMIT: Duration = Duration::from_secs(5);
/// Time between two checks whether a process has ended.
const STOP_POLL_INTERVAL: Duration = Duration::from_millis(1);
/// Time limit for a response while the peer starts, and time between two queries.
const QUERY_INTERVAL: Duration = Duration::from_millis(20);
/// Maximum octets of the log that [`PeerServer::log`] returns.
const LOG_OCTETS_MAX: u64 = 1 << 20;
/// File in the directory of the peer with both outputs of its program.
const LOG_FILE: &str = "log";

/// A running peer. Dropping it stops all its processes.
#[derive(Debug)]
pub struct PeerServer {
    /// The program and its role.
    pub peer: Peer,
    /// Address for UDP and TCP.
    pub address: SocketAddr,
    /// Address for DNS over TLS, if the setup has a certificate.
    pub tls_address: Option<SocketAddr>,
    folder: PathBuf,
    child: KillOnDrop,
}

impl PeerServer {
    /// Writes the configuration into the directory of `setup`, starts the program, and waits until
    /// an authoritative server answers for each zone that it does not transfer, or until a resolver
    /// answers.
    ///
    /// # Errors
    /// Fails if a program is missing, if the peer cannot do what `setup` requires, if it ends, or
    /// if it does not answer within the time limit. The last two errors have the end of its log.
    pub fn start(peer: Peer, setup: &Setup) -> Result<Self, PeerError> {
        setup.check(peer)?;
        peer.require_programs()?;
        let mut attempt = 1;
        loop {
            match Self::start_once(peer, setup) {
                Err(error) if attempt < START_ATTEMPTS && setup.port.is_none() && error.is_port_taken() => {
                    attempt += 1
                }
                result => return result,
            }
        }
    }

    fn start_once(peer: Peer, setup: &Setup) -> Result<Self, PeerError> {
        let folder = create_empty_folder(peer, setup)?;
        let location = PeerLocation::choose(setup, &folder)?;
        let mut command = config::prepare(peer, setup, &location)?;
        let path = folder.join(LOG_FILE);
        let output = File::create(&path).and_then(|log| Ok((log.try_clone()?, log)));
        let (log, same_log) = output.map_err(|source| PeerError::Write { path, source })?;
        command.current_dir(&folder).stdin(Stdio::null()).stdout(log).stderr(same_log);
        command.args(&setup.arguments);
        command.envs(setup.environment.iter().map(|(name, value)| (name, value)));
        let started = Instant::now();
        let child = config::spawn(&mut command)?;
        let PeerLocation { address, tls: tls_address, .. } = location;
        let mut server = Self { peer, address, tls_address, folder, child };
        server.wait_until_ready(setup, started + setup.limit)?;
        Ok(server)
    }

    /// The process ID of the program. It may have child processes ([`process::tree`]).
    #[must_use]
    pub fn pid(&self) -> u32 {
        self.child.0.id()
    }

    /// CPU time of all its processes.
    #[must_use]
    pub fn cpu_time(&self) -> CpuTime {
        process::tree_cpu_time(self.pid())
    }

    /// Memory of all its processes in KiB ([`process::tree_memory_kib`]).
    #[must_use]
    pub fn memory_kib(&self) -> u64 {
        process::tree_memory_kib(self.pid())
    }

    /// Directory of the configuration, the log and all other files of the peer.
    #[must_use]
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// The first MiB of its output.
    #[must_use]
    pub fn log(&self) -> String {
        let mut text = Vec::new();
        let log = File::open(self.folder.join(LOG_FILE));
        let _ = log.and_then(|log| log.take(LOG_OCTETS_MAX).read_to_end(&mut text));
        String::from_utf8_lossy(&text).into_owned()
    }

    /// Makes BIND, Knot DNS or NSD read its zone files again (SIGHUP).
    ///
    /// # Errors
    /// Fails if the process has ended.
    pub fn reload(&self) -> io::Result<()> {
        signal_process(self.pid(), ProcessSignal::HangUp)
    }

    fn wait_until_ready(&mut self, setup: &Setup, end: Instant) -> Result<(), PeerError> {
        if self.peer.info().role == PeerRole::Resolver {
            // A resolver answers this query without other servers (RFC 6761 §6.3).
            return self.wait_for_answer("localhost.", end, setup.limit, |_| true);
        }
        if setup.zones.is_empty() {
            return self.wait_for_answer(".", end, setup.limit, |_| true);
        }
        for zone in &setup.zones {
            // A secondary answers as soon as it listens, but perhaps without the zone.
            let is_secondary = matches!(zone.serving, Serving::Secondary { .. });
            let is_ready = |header: &Header| {
                is_secondary || (header.rcode() == Rcode::NOERROR && header.flags & flags::AA != 0)
            };
            self.wait_for_answer(&zone.origin, end, setup.limit, is_ready)?;
        }
        Ok(())
    }

    /// Queries the SOA record of `name` until the response satisfies `is_ready`.
    fn wait_for_answer(
        &mut self,
        name: &str,
        end: Instant,
        limit: Duration,
        is_ready: impl Fn(&Header) -> bool,
    ) -> Result<(), PeerError> {
        let (peer, folder) = (self.peer.info().title, self.folder.clone());
        let log = self.folder.join(LOG_FILE);
        while Instant::now() < end {
            if query_soa(self.address, name).is_some_and(|header| is_ready(&header)) {
                return Ok(());
            }
            if let Ok(Some(status)) = self.child.0.try_wait() {
                return Err(PeerError::Ended { peer, status, folder, log: log_end(&log) });
            }
        }
        let seconds = limit.as_secs();
        Err(PeerError::Silent { peer, address: self.address, seconds, folder, log: log_end(&log) })
    }
}

impl Drop for PeerServer {
    fn drop(&mut self) {
        let processes = process::tree(self.pid());
        // Each call fails only if the process has already ended.
        if !matches!(self.child.0.try_wait(), Ok(Some(_))) {
            let _ = signal_process(self.pid(), ProcessSignal::Terminate);
            let _ = self.child.end_within(STOP_LIMIT);
        }
        let end = Instant::now() + STOP_LIMIT;
        for pid in processes.into_iter().skip(1) {
            while process::is_running(pid) && Instant::now() < end {
                let _ = signal_process(pid, ProcessSignal::Kill);
                thread::sleep(STOP_POLL_INTERVAL);
            }
        }
        // The drop of `child` kills the program itself, if it still runs.
    }
}

/// Creates the directory of the peer, and removes the files of an earlier start, such as journals
/// and caches. Returns its absolute path.
fn create_empty_folder(peer: Peer, setup: &Setup) -> Result<PathBuf, PeerError> {
    let path = setup.folder.join(peer.info().name);
    let removed = match fs::remove_dir_all(&path) {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(()),
        result => result,
    };
    let created = removed.and_then(|()| create_private(&path)).and_then(|()| fs::canonicalize(&path));
    let folder = created.map_err(|source| PeerError::Write { path, source })?;
    check_path(&folder)?;
    Ok(folder)
}

/// Creates a directory that only this user can enter: it has keys and sockets that control the peer.
fn create_private(path: &Path) -> io::Result<()> {
    fs::DirBuilder::new().recursive(true).mode(0o700).create(path)
}

/// Sends one query for an SOA record, and returns the header of the response. Returns `None` after
/// [`QUERY_INTERVAL`] without a response.
fn query_soa(server: SocketAddr, name: &str) -> Option<Header> {
    const ID: u16 = 0x4e53;
    let started = Instant::now();
    let exchange = || {
        let socket = UdpSocket::bind((server.ip(), 0)).ok()?;
        socket.connect(server).ok()?;
        socket.set_read_timeout(Some(QUERY_INTERVAL)).ok()?;
        let mut message = Vec::new();
        push_query(&name.parse::<Name>().ok()?, Rtype::SOA, ID, flags::RD, &mut message);
        socket.send(&message).ok()?;
        let mut response = [0; 4096];
        let length = socket.recv(&mut response).ok()?;
        Header::read(&response[..length]).filter(|header| header.id == ID)
    };
    let header = exchange();
    if header.is_none() {
        // The system reports a closed port immediately. The pause avoids a busy loop.
        thread::sleep(QUERY_INTERVAL.saturating_sub(started.elapsed()));
    }
    header
}
