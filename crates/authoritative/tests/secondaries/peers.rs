//! NSD, Knot DNS and BIND as secondaries, each with its own directory and a free port on the
//! loopback interface.

#![allow(dead_code, unreachable_pub)] // each test program uses a different part

use nonesuch_proto::message::{Message, Section, flags, push_query};
use nonesuch_proto::{Name, Rtype, rdata};
use nonesuch_testing::require_peer;
use nonesuch_zone::Contents;
use std::io::{Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// The TSIG key of all tests.
pub const KEY: &str = "transfer.example";
pub const SECRET: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// Maximum time to wait until a secondary has a version.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A DNS server program.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Program {
    Nsd,
    Knot,
    Bind,
}

impl Program {
    pub const ALL: [Self; 3] = [Self::Nsd, Self::Knot, Self::Bind];

    const fn command(self) -> &'static str {
        match self {
            Self::Nsd => "nsd",
            Self::Knot => "knotd",
            Self::Bind => "named",
        }
    }

    /// Returns the configuration file and the arguments of the program.
    fn configure(
        self,
        directory: &str,
        port: u16,
        primary: SocketAddr,
        algorithm: &str,
    ) -> (String, Vec<String>) {
        let (from, secret) = (primary.port(), SECRET);
        match self {
            Self::Nsd => (
                format!(
                    "server:\n  ip-address: 127.0.0.1@{port}\n  username: \"\"\n  zonesdir: \"{directory}\"\n  database: \"\"\n  \
                     pidfile: \"\"\n  xfrdfile: \"\"\n  zonelistfile: \"{directory}/zone.list\"\n  xfrdir: \"{directory}\"\n  \
                     server-count: 1\n  do-ip6: no\n  xfrd-reload-timeout: 0\n  logfile: \"{directory}/log\"\n\
                     remote-control:\n  control-enable: no\n\
                     key:\n  name: \"{KEY}\"\n  algorithm: {algorithm}\n  secret: \"{secret}\"\n\
                     zone:\n  name: \"example\"\n  zonefile: \"example.zone\"\n  allow-notify: 127.0.0.1 NOKEY\n  \
                     request-xfr: 127.0.0.1@{from} {KEY}\n  provide-xfr: 127.0.0.1 NOKEY\n"
                ),
                vec!["-d".to_owned(), "-c".to_owned(), format!("{directory}/conf")],
            ),
            Self::Knot => (
                format!(
                    "server:\n  rundir: {directory}\n  listen: 127.0.0.1@{port}\n  udp-workers: 1\n  tcp-workers: 1\n  \
                     background-workers: 1\n  tcp-remote-io-timeout: 60000\ndatabase:\n  storage: {directory}\nlog:\n  - target: {directory}/log\n    any: info\n\
                     key:\n  - id: {KEY}\n    algorithm: {algorithm}\n    secret: {secret}\n\
                     remote:\n  - id: primary\n    address: 127.0.0.1@{from}\n    key: {KEY}\n\
                     acl:\n  - id: all\n    address: 127.0.0.1\n    action: [notify, transfer]\n\
                     zone:\n  - domain: example.\n    master: primary\n    acl: all\n    storage: {directory}\n    \
                     zonefile-sync: -1\n    zonefile-load: none\n    journal-content: all\n"
                ),
                vec!["-c".to_owned(), format!("{directory}/conf")],
            ),
            Self::Bind => (
                format!(
                    "options {{ directory \"{directory}\"; listen-on port {port} {{ 127.0.0.1; }}; listen-on-v6 {{ none; }}; \
                     pid-file none; recursion no; dnssec-validation no; notify no; session-keyfile none; \
                     allow-transfer {{ 127.0.0.1; }}; serial-query-rate 1000; }};\n\
                     controls {{ }};\nlogging {{ channel f {{ file \"{directory}/log\"; severity info; }}; category default {{ f; }}; }};\n\
                     key \"{KEY}\" {{ algorithm {algorithm}; secret \"{secret}\"; }};\n\
                     zone \"example\" {{ type secondary; file \"example.zone\"; allow-notify {{ 127.0.0.1; }}; \
                     primaries {{ 127.0.0.1 port {from} key {KEY}; }}; }};\n"
                ),
                ["-c", &format!("{directory}/conf"), "-f", "-n", "1"].map(str::to_owned).to_vec(),
            ),
        }
    }
}

/// A running secondary. It is killed when it is dropped.
pub struct Secondary {
    pub program: Program,
    pub address: SocketAddr,
    process: Child,
}

impl Drop for Secondary {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Secondary {
    /// Starts `program` on a free port as a secondary of `primary`. If the program is not
    /// installed, prints this and returns `None`.
    pub fn start(program: Program, primary: SocketAddr, directory: &Path, algorithm: &str) -> Option<Self> {
        Self::start_at(program, free_port(), primary, directory, algorithm)
    }

    /// Starts `program` on this port, which the primary knows.
    pub fn start_at(
        program: Program,
        port: u16,
        primary: SocketAddr,
        directory: &Path,
        algorithm: &str,
    ) -> Option<Self> {
        require_peer!(program.command());
        let path = directory.to_str().expect("UTF-8");
        let (text, arguments) = program.configure(path, port, primary, algorithm);
        std::fs::write(directory.join("conf"), text).expect("written");
        let mut command = Command::new(program.command());
        let command =
            command.args(arguments).current_dir(directory).stdout(Stdio::null()).stderr(Stdio::null());
        let process = command.spawn().expect("started");
        Some(Self { program, address: ([127, 0, 0, 1], port).into(), process })
    }

    /// Sends a NOTIFY for the zone (RFC 1996 §3).
    pub fn notify(&self) {
        let mut message = Vec::new();
        push_query(&apex(), Rtype::SOA, 7, flags::AA | 4 << 11, &mut message);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
        socket.send_to(&message, self.address).expect("sent");
    }

    /// Returns the serial that the secondary answers with; `None` if it has no zone.
    pub fn serial(&self) -> Option<u32> {
        let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
        socket.set_read_timeout(Some(Duration::from_millis(200))).ok()?;
        let mut message = Vec::new();
        push_query(&apex(), Rtype::SOA, 8, 0, &mut message);
        socket.send_to(&message, self.address).ok()?;
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).ok()?;
        let answer = Message::parse(&buffer[..length]).ok()?;
        let soa = answer.section(Section::Answer).find(|record| record.rtype == Rtype::SOA)?;
        let at = soa.rdata.len() - 20;
        soa.rdata[at..].first_chunk().map(|octets| u32::from_be_bytes(*octets))
    }

    /// Waits until the secondary answers with this serial. Repeats the NOTIFY every two seconds.
    pub fn wait_for(&self, serial: u32, directory: &Path) {
        let mut told = Instant::now();
        self.wait_until(serial, directory, || {
            if told.elapsed() > Duration::from_secs(2) {
                self.notify();
                told = Instant::now();
            }
        });
    }

    /// Waits until the secondary answers with this serial. The primary sends the NOTIFY.
    pub fn wait_for_news(&self, serial: u32, directory: &Path) {
        self.wait_until(serial, directory, || {});
    }

    fn wait_until(&self, serial: u32, directory: &Path, mut meanwhile: impl FnMut()) {
        let started_at = Instant::now();
        while self.serial() != Some(serial) {
            let log = || std::fs::read_to_string(directory.join("log")).unwrap_or_default();
            assert!(started_at.elapsed() < TIMEOUT, "{:?} has no version {serial}: {}", self.program, log());
            thread::sleep(Duration::from_millis(5));
            meanwhile();
        }
    }

    /// Returns all records of this version in the form of [`canonical`]. While NSD changes to a new
    /// version, the old process may still accept connections.
    pub fn records(&self, serial: u32) -> Vec<Canonical> {
        let started_at = Instant::now();
        loop {
            let records = self.transfer();
            let soa = records.iter().find(|record| record.1 == Rtype::SOA.0).expect("an SOA record");
            if soa.3[soa.3.len() - 20..].starts_with(&serial.to_be_bytes()) || started_at.elapsed() > TIMEOUT
            {
                return records;
            }
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn transfer(&self) -> Vec<Canonical> {
        let mut message = Vec::new();
        push_query(&apex(), Rtype::AXFR, 9, 0, &mut message);
        let mut stream = TcpStream::connect(self.address).expect("connected");
        stream.set_read_timeout(Some(TIMEOUT)).expect("set");
        stream.write_all(&[&(message.len() as u16).to_be_bytes()[..], &message].concat()).expect("sent");
        let mut all = Vec::new();
        while all.len() < 2 || all.iter().filter(|record: &&Canonical| record.1 == Rtype::SOA.0).count() < 2 {
            let mut length = [0; 2];
            stream.read_exact(&mut length).expect("a message");
            let mut octets = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut octets).expect("a message");
            let answer = Message::parse(&octets).expect("well formed");
            assert_eq!(answer.header.rcode().0, 0);
            all.extend(
                answer
                    .section(Section::Answer)
                    .map(|record| canonical(record.owner.view(), record.rtype, record.ttl, &record.rdata)),
            );
        }
        all.pop();
        all.sort();
        all
    }
}

/// Returns a port that is free for UDP and TCP.
pub fn free_port() -> u16 {
    let free = || {
        let listener = TcpListener::bind("127.0.0.1:0").ok()?;
        let address = listener.local_addr().ok()?;
        UdpSocket::bind(address).ok().map(|_| address.port())
    };
    (0..20).find_map(|_| free()).expect("a free port")
}

pub fn apex() -> Name {
    "example.".parse().expect("a name")
}

/// Owner and RDATA in canonical form, type and TTL. Canonical form is necessary because secondaries
/// do not retain letter case.
pub type Canonical = (Vec<u8>, u16, u32, Vec<u8>);

fn canonical(owner: nonesuch_proto::NameRef<'_>, rtype: Rtype, ttl: u32, octets: &[u8]) -> Canonical {
    let (mut name, mut data) = (Vec::new(), Vec::new());
    owner.push_canonical(&mut name);
    rdata::push_canonical(rtype, octets, &mut data);
    // NSD also converts the next name of NSEC records to lower case.
    if rtype == Rtype::NSEC {
        data.make_ascii_lowercase();
    }
    (name, rtype.0, ttl, data)
}

/// Returns the records of a zone in the same form.
pub fn records_of(contents: &Contents) -> Vec<Canonical> {
    let all = contents.nodes().flat_map(|node| {
        node.rrsets().flat_map(move |rrset| {
            rrset.rdatas().map(move |rdata| canonical(node.name(), rrset.rtype(), rrset.ttl(), rdata))
        })
    });
    let mut all: Vec<Canonical> = all.collect();
    all.sort();
    all
}
