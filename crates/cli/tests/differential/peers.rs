//! The three servers, each a process of its own on a free port of the loopback interface, ended when dropped.

use std::fmt::Write as _;
use std::fs;
use std::io::{BufRead as _, BufReader};
use std::net::{SocketAddr, TcpListener, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use super::exchange::{Question, ask_once};

/// Longest wait for a server to answer its first query.
const START: Duration = Duration::from_secs(15);
/// A port that was free when looked for may be taken before the peer binds it.
const ATTEMPTS: usize = 5;

/// A running server.
pub struct Running {
    child: Child,
    pub address: SocketAddr,
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Whether `program` is installed.
pub fn is_installed(program: &str) -> bool {
    Command::new(program).arg("-V").stdout(Stdio::null()).stderr(Stdio::null()).status().is_ok()
}

/// Starts `nonesuch serve`.
pub fn start_ours(file: &Path, origin: &str) -> Running {
    let mut child = Command::new(env!("CARGO_BIN_EXE_nonesuch"))
        .args(["serve", "--listen", "127.0.0.1:0", "--workers", "1", "--origin", origin])
        .arg(file)
        .stdout(Stdio::piped())
        .spawn()
        .expect("nonesuch starts");
    let mut line = String::new();
    BufReader::new(child.stdout.take().expect("piped")).read_line(&mut line).expect("a line");
    let address = line.strip_prefix("ready: listening on ").and_then(|rest| rest.split(' ').next());
    let address = address.and_then(|text| text.parse().ok());
    Running { child, address: address.unwrap_or_else(|| panic!("nonesuch serve is not ready: {line:?}")) }
}

/// Starts NSD with `file` as `origin`, all of it in `folder`.
pub fn start_nsd(folder: &Path, file: &Path, origin: &str) -> Running {
    start_peer(folder, origin, |folder, address| {
        let (at, port, file) = (folder.display(), address.port(), file.display());
        // A peer is asked with a payload size of 4096 and must not answer less than it can.
        let text = format!(
            "server:\n ip-address: 127.0.0.1@{port}\n username: \"\"\n chroot: \"\"\n zonesdir: \"{at}\"\n \
             database: \"\"\n pidfile: \"{at}/pid\"\n xfrdfile: \"{at}/xfrd\"\n zonelistfile: \"{at}/list\"\n \
             xfrdir: \"{at}\"\n logfile: \"{at}/log\"\n server-count: 1\n rrl-ratelimit: 0\n \
             rrl-whitelist-ratelimit: 0\n ipv4-edns-size: 4096\nremote-control:\n control-enable: no\n\
             zone:\n name: {origin}\n zonefile: \"{file}\"\n"
        );
        let configuration = folder.join("nsd.conf");
        fs::write(&configuration, text).expect("written");
        let mut command = Command::new("nsd");
        command.arg("-d").arg("-c").arg(configuration);
        command
    })
}

/// Starts Knot DNS likewise.
pub fn start_knot(folder: &Path, file: &Path, origin: &str) -> Running {
    start_peer(folder, origin, |folder, address| {
        let mut text = String::new();
        let (at, port, file) = (folder.display(), address.port(), file.display());
        write!(
            text,
            "server:\n  listen: 127.0.0.1@{port}\n  rundir: \"{at}\"\n  udp-workers: 1\n  tcp-workers: 1\n  \
             background-workers: 1\n  udp-max-payload: 4096\ndatabase:\n  storage: \"{at}\"\n\
             log:\n  - target: stderr\n    any: error\ntemplate:\n  - id: default\n    storage: \"{at}\"\n    \
             semantic-checks: off\n    zonefile-sync: -1\n    zonefile-load: whole\n    journal-content: none\n\
             zone:\n  - domain: {origin}\n    file: \"{file}\"\n"
        )
        .expect("a string");
        let configuration = folder.join("knot.conf");
        fs::write(&configuration, text).expect("written");
        let mut command = Command::new("knotd");
        command.arg("-c").arg(configuration);
        command
    })
}

fn start_peer(folder: &Path, origin: &str, command: impl Fn(&Path, SocketAddr) -> Command) -> Running {
    fs::create_dir_all(folder).expect("a folder");
    for _ in 0..ATTEMPTS {
        let address = free_address();
        let log = fs::File::create(folder.join("output")).expect("a file");
        let child = command(folder, address)
            .stdin(Stdio::null())
            .stdout(log.try_clone().expect("a handle"))
            .stderr(log)
            .spawn()
            .expect("the peer starts");
        let mut running = Running { child, address };
        if answers(&mut running, origin) {
            return running;
        }
    }
    let output = fs::read_to_string(folder.join("output")).unwrap_or_default();
    let log = fs::read_to_string(folder.join("log")).unwrap_or_default();
    panic!("the peer does not answer: {output}{log}");
}

/// An address that is free for UDP and TCP now.
fn free_address() -> SocketAddr {
    loop {
        let socket = UdpSocket::bind("127.0.0.1:0").expect("a socket");
        let address = socket.local_addr().expect("an address");
        if TcpListener::bind(address).is_ok() {
            return address;
        }
    }
}

/// Polls until the zone is served; `false` when the process ends or the time is over.
fn answers(running: &mut Running, origin: &str) -> bool {
    let question = Question::apex_soa(origin);
    let end = Instant::now() + START;
    while Instant::now() < end {
        if matches!(running.child.try_wait(), Ok(Some(_)) | Err(_)) {
            return false;
        }
        if ask_once(running.address, &question, Duration::from_millis(100)) {
            return true;
        }
    }
    false
}
