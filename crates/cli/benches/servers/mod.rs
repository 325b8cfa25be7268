//! The measured servers: this project's server, and the peers of `nonesuch_lab::peers`. Each server
//! has one worker on CPU 0.
//!
//! A row is skipped with a message if its program is missing or its server does not answer.

use crate::common::{ORIGIN, OURS, run};
use nonesuch_lab::peers::{OnlineDenial, Peer, PeerError, PeerServer, PeerZone, Serving, Setup};
use nonesuch_lab::process;
use std::fs;
use std::io::{self, BufRead as _, BufReader};
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};

/// A way to serve a zone.
pub(crate) struct Row {
    /// Name in tables.
    pub(crate) name: &'static str,
    start: Start,
}

/// How a row starts its server.
enum Start {
    Ours(fn(&Site<'_>) -> io::Result<Server>),
    /// The zone is signed, or the peer signs online.
    Peer(Peer, Option<OnlineDenial>),
}

/// The inputs of a server.
pub(crate) struct Site<'a> {
    /// The directory of this server.
    pub(crate) folder: PathBuf,
    /// The zone: signed for [`PRESIGNED`], otherwise as [`ONLINE`] requires.
    pub(crate) zone: &'a Path,
    /// A directory with a KSK and a ZSK for servers that sign, and the base names of the keys.
    pub(crate) keys: &'a Path,
    pub(crate) key_names: &'a [String; 2],
    /// CPUs for the server.
    pub(crate) cpus: Cpus,
}

/// The CPUs that a server may use.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum Cpus {
    /// Only CPU 0.
    First,
    /// All CPUs.
    All,
}

/// Servers of a signed zone; the first is this project's server.
pub(crate) const PRESIGNED: &[Row] = &[
    Row { name: "nonesuch", start: Start::Ours(|site| start_ours(site, &[])) },
    Row { name: "nsd", start: Start::Peer(Peer::Nsd, None) },
    Row { name: "knot", start: Start::Peer(Peer::Knot, None) },
    Row { name: "bind", start: Start::Peer(Peer::Bind, None) },
];

/// This project's server with one and with two workers, on any CPU.
pub(crate) const WORKERS: &[Row] = &[
    Row { name: "one worker", start: Start::Ours(|site| start_workers(site, "1")) },
    Row { name: "two workers", start: Start::Ours(|site| start_workers(site, "2")) },
];

/// Servers with online denial. All of them use the same keys.
pub(crate) const ONLINE: &[Row] = &[
    Row { name: "nonesuch white-lies", start: Start::Ours(|site| start_online(site, "white-lies")) },
    Row { name: "nonesuch compact", start: Start::Ours(|site| start_online(site, "compact")) },
    Row { name: "nonesuch minimal-nsec", start: Start::Ours(|site| start_online(site, "minimal-nsec")) },
    Row {
        name: "nonesuch nsec5-p256",
        start: Start::Ours(|site| start_nsec5(site, "ecdsap256sha256", "p256")),
    },
    Row {
        name: "nonesuch nsec5-ed25519",
        start: Start::Ours(|site| start_nsec5(site, "ed25519", "ed25519")),
    },
    Row { name: "powerdns narrow", start: Start::Peer(Peer::PowerDns, Some(OnlineDenial::WhiteLies)) },
    Row { name: "coredns black lies", start: Start::Peer(Peer::CoreDns, Some(OnlineDenial::Compact)) },
    Row { name: "knot onlinesign", start: Start::Peer(Peer::Knot, Some(OnlineDenial::Compact)) },
];

/// Starts the servers of `rows` that can be started, each in its own directory below `dir`. Reports
/// skipped servers.
pub(crate) fn start_all(
    rows: &[Row],
    dir: &Path,
    zone: &Path,
    keys: (&Path, &[String; 2]),
    cpus: Cpus,
) -> Vec<Server> {
    let mut servers = Vec::new();
    for row in rows {
        let folder = dir.join(format!(
            "{}-{}",
            row.name.replace(' ', "-"),
            zone.file_name().unwrap_or_default().display()
        ));
        fs::create_dir_all(&folder).expect("a directory for the server");
        let site = Site { folder, zone, keys: keys.0, key_names: keys.1, cpus };
        let started = match row.start {
            Start::Ours(start) => start(&site).map_err(|error| error.to_string()),
            Start::Peer(peer, denial) => start_peer(&site, peer, denial).map_err(|error| error.to_string()),
        };
        match started {
            Ok(mut server) => {
                server.name = row.name;
                servers.push(server);
            }
            Err(error) => println!("left out: {}: {error}", row.name),
        }
    }
    servers
}

fn start_peer(site: &Site<'_>, peer: Peer, denial: Option<OnlineDenial>) -> Result<Server, PeerError> {
    let keys = || site.key_names.iter().map(|name| site.keys.join(name)).collect();
    let serving = denial.map_or(Serving::Presigned, |denial| Serving::Online { denial, keys: keys() });
    let cpus = if site.cpus == Cpus::First { vec![0] } else { Vec::new() };
    let setup =
        Setup { cpus, zones: vec![PeerZone::new(ORIGIN, site.zone, serving)], ..Setup::new(&site.folder) };
    let server = PeerServer::start(peer, &setup)?;
    Ok(Server { name: "", address: server.address, process: Process::Peer(server) })
}

/// An echo server with responses of `octets` octets. It shows the cost of receiving and sending.
pub(crate) fn start_echo(octets: f64) -> io::Result<Server> {
    let octets = format!("{}", octets.round().clamp(12.0, 4096.0));
    let mut command = Command::new(OURS);
    command.args(["lab", "echo", "--workers", "1", "--cpus", "0", "--octets", &octets]);
    let mut server = start_and_read(&mut command)?;
    server.name = "echo";
    Ok(server)
}

/// A running server. It ends on drop.
pub(crate) struct Server {
    pub(crate) name: &'static str,
    pub(crate) address: SocketAddr,
    process: Process,
}

enum Process {
    /// The output stays open, because the server may write more lines.
    Ours {
        child: Child,
        _output: Option<BufReader<ChildStdout>>,
    },
    Peer(PeerServer),
}

impl Drop for Process {
    fn drop(&mut self) {
        if let Self::Ours { child, .. } = self {
            let _ = child.kill();
            let _ = child.wait();
        }
    }
}

impl Server {
    pub(crate) fn pid(&self) -> u32 {
        match &self.process {
            Process::Ours { child, .. } => child.id(),
            Process::Peer(server) => server.pid(),
        }
    }

    /// User and system time of its processes, in µs.
    pub(crate) fn cpu(&self) -> (f64, f64) {
        let time = process::tree_cpu_time(self.pid());
        (time.user_us as f64, time.system_us as f64)
    }

    /// Memory of its processes in MiB, with a proportional part of shared pages (PSS).
    pub(crate) fn memory_mib(&self) -> f64 {
        process::tree_memory_kib(self.pid()) as f64 / 1024.0
    }
}

fn start_ours(site: &Site<'_>, more: &[&str]) -> io::Result<Server> {
    let mut command = serve_command(site);
    command.args(["--workers", "1"]);
    if site.cpus == Cpus::First {
        command.args(["--cpus", "0"]);
    }
    start_and_read(command.args(more))
}

fn start_workers(site: &Site<'_>, workers: &str) -> io::Result<Server> {
    start_and_read(serve_command(site).args(["--workers", workers]))
}

fn serve_command(site: &Site<'_>) -> Command {
    let mut command = Command::new(OURS);
    command.args(["serve", "--listen", "127.0.0.1:0", "--verify", "structural", "-o", ORIGIN]).arg(site.zone);
    command
}

fn start_online(site: &Site<'_>, denial: &str) -> io::Result<Server> {
    start_ours(site, &["--denial", denial, "--keys", &site.keys.display().to_string()])
}

/// Signs the zone first. The server gets the VRF key, and directories without a signing key.
fn start_nsec5(site: &Site<'_>, algorithm: &str, vrf: &str) -> io::Result<Server> {
    let (zone, vrf_keys) = sign_nsec5(&site.folder, site.zone, algorithm, vrf);
    let site = Site { folder: site.folder.join("served"), zone: &zone, ..*site };
    start_ours(&site, &["--nsec5-keys", &vrf_keys.display().to_string()])
}

/// Signs a zone with NSEC5 below `folder`. Returns the zone file, and the directory of the VRF key
/// and the proofs.
pub(crate) fn sign_nsec5(folder: &Path, plain: &Path, algorithm: &str, vrf: &str) -> (PathBuf, PathBuf) {
    let [keys, vrf_keys, served] = ["keys", "vrf", "served"].map(|name| folder.join(name));
    for folder in [&keys, &vrf_keys, &served] {
        fs::create_dir_all(folder).expect("a directory");
    }
    for flag in [&["--ksk"][..], &[]] {
        let mut command = Command::new(OURS);
        run(command
            .args(["key", "generate", ORIGIN, "--nsec5", "-a", algorithm, "--dir"])
            .arg(&keys)
            .args(flag));
    }
    let zone = served.join("zone");
    let mut command = Command::new(OURS);
    command.args(["zone", "sign", "-o", ORIGIN, "--denial", "nsec5", "--vrf", vrf, "--keys"]).arg(&keys);
    run(command.arg("--nsec5-keys").arg(&vrf_keys).arg("-f").arg(&zone).arg(plain));
    (zone, vrf_keys)
}

/// Starts a server of this project, which prints its address when it is ready. Returns an error if
/// it ends before.
pub(crate) fn start_and_read(command: &mut Command) -> io::Result<Server> {
    let log = tempfile::NamedTempFile::new()?;
    let errors = log.reopen()?;
    let mut child = command.stdout(Stdio::piped()).stderr(errors).spawn()?;
    let mut line = String::new();
    let mut output = child.stdout.take().map(BufReader::new);
    // Earlier lines report single zones.
    while let Some(output) = &mut output
        && !line.starts_with("ready")
    {
        line.clear();
        if output.read_line(&mut line)? == 0 {
            break;
        }
    }
    match line.split_whitespace().find_map(|word| word.parse().ok()) {
        Some(address) => {
            Ok(Server { name: "nonesuch", address, process: Process::Ours { child, _output: output } })
        }
        None => {
            let _ = child.kill();
            let _ = child.wait();
            let said = fs::read_to_string(log.path()).unwrap_or_default();
            Err(io::Error::other(said.lines().next().unwrap_or("it ended without a message").trim()))
        }
    }
}
