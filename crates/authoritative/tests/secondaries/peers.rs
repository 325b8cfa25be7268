//! NSD, Knot DNS and BIND as secondaries, each with its own directory and a free port on the
//! loopback interface.

#![allow(dead_code, unreachable_pub)] // each test program uses a different part

use nonesuch_lab::peers::{Peer, PeerServer, PeerZone, Serving, Setup, TransferKey, free_address};
use nonesuch_proto::message::{Message, Section, flags, push_query};
use nonesuch_proto::{Name, Rtype, rdata};
use nonesuch_testing::require_peer;
use nonesuch_zone::Contents;
use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, SocketAddr, TcpStream, UdpSocket};
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

/// The TSIG key of all tests.
pub const KEY: &str = "transfer.example";
pub const SECRET: &str = "MDEyMzQ1Njc4OTAxMjM0NTY3ODkwMTIzNDU2Nzg5MDE=";

/// Maximum time to wait until a secondary has a version.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The programs that can be secondaries.
pub const SECONDARIES: [Peer; 3] = [Peer::Nsd, Peer::Knot, Peer::Bind];

/// A running secondary. It stops when it is dropped.
pub struct Secondary {
    pub server: PeerServer,
}

impl Secondary {
    /// Starts `peer` on a free port as a secondary of `primary`. If the program is not installed,
    /// prints this and returns `None`.
    pub fn start(peer: Peer, primary: SocketAddr, directory: &Path, algorithm: &str) -> Option<Self> {
        Self::start_at(peer, None, primary, directory, algorithm)
    }

    /// Starts `peer` on this port, which the primary knows.
    pub fn start_at(
        peer: Peer,
        port: Option<u16>,
        primary: SocketAddr,
        directory: &Path,
        algorithm: &str,
    ) -> Option<Self> {
        require_peer!(peer.info().programs[0]);
        let mut zone = PeerZone::new(
            "example.",
            &directory.join("example.zone"),
            Serving::Secondary { primary, tls: None },
        );
        // Transfers from the secondary need no key.
        let (lines, sections) = match peer {
            Peer::Nsd => ("  provide-xfr: 127.0.0.1 NOKEY", ""),
            Peer::Knot => {
                ("    acl: all", "acl:\n  - id: all\n    address: 127.0.0.1\n    action: [notify, transfer]")
            }
            _ => ("  allow-transfer { 127.0.0.1; };", ""),
        };
        lines.clone_into(&mut zone.lines);
        let [name, algorithm, secret] = [KEY, algorithm, SECRET].map(str::to_owned);
        let setup = Setup {
            port,
            zones: vec![zone],
            transfer_key: Some(TransferKey { name, algorithm, secret }),
            sections: sections.to_owned(),
            ..Setup::new(directory)
        };
        let server = PeerServer::start(peer, &setup).unwrap_or_else(|error| panic!("{error}"));
        Some(Self { server })
    }

    /// Sends a NOTIFY for the zone (RFC 1996 §3).
    pub fn notify(&self) {
        let mut message = Vec::new();
        push_query(&apex(), Rtype::SOA, 7, flags::AA | 4 << 11, &mut message);
        let socket = UdpSocket::bind("127.0.0.1:0").expect("bound");
        socket.send_to(&message, self.server.address).expect("sent");
    }

    /// Returns the serial that the secondary answers with; `None` if it has no zone.
    pub fn serial(&self) -> Option<u32> {
        let socket = UdpSocket::bind("127.0.0.1:0").ok()?;
        socket.set_read_timeout(Some(Duration::from_millis(200))).ok()?;
        let mut message = Vec::new();
        push_query(&apex(), Rtype::SOA, 8, 0, &mut message);
        socket.send_to(&message, self.server.address).ok()?;
        let mut buffer = [0; 4096];
        let length = socket.recv(&mut buffer).ok()?;
        let answer = Message::parse(&buffer[..length]).ok()?;
        let soa = answer.section(Section::Answer).find(|record| record.rtype == Rtype::SOA)?;
        let at = soa.rdata.len() - 20;
        soa.rdata[at..].first_chunk().map(|octets| u32::from_be_bytes(*octets))
    }

    /// Waits until the secondary answers with this serial. Repeats the NOTIFY every two seconds.
    pub fn wait_for(&self, serial: u32) {
        let mut told = Instant::now();
        self.wait_until(serial, || {
            if told.elapsed() > Duration::from_secs(2) {
                self.notify();
                told = Instant::now();
            }
        });
    }

    /// Waits until the secondary answers with this serial. The primary sends the NOTIFY.
    pub fn wait_for_news(&self, serial: u32) {
        self.wait_until(serial, || {});
    }

    fn wait_until(&self, serial: u32, mut meanwhile: impl FnMut()) {
        let started_at = Instant::now();
        while self.serial() != Some(serial) {
            let is_late = started_at.elapsed() >= TIMEOUT;
            assert!(!is_late, "{:?} has no version {serial}: {}", self.server.peer, self.server.log());
            thread::sleep(Duration::from_millis(5));
            meanwhile();
        }
    }

    /// Returns all records of this version in the form of [`canonical`]. While NSD changes to a new
    /// version, the old process may still accept connections, and closes them when it ends; or it answers NOTAUTH.
    pub fn records(&self, serial: u32) -> Vec<Canonical> {
        let started_at = Instant::now();
        loop {
            let records = self.transfer();
            if let Ok(records) = &records {
                let soa = records.iter().find(|record| record.1 == Rtype::SOA.0).expect("an SOA record");
                if soa.3[soa.3.len() - 20..].starts_with(&serial.to_be_bytes()) {
                    return records.clone();
                }
            }
            assert!(started_at.elapsed() < TIMEOUT, "no transfer of version {serial}: {records:?}");
            thread::sleep(Duration::from_millis(5));
        }
    }

    fn transfer(&self) -> io::Result<Vec<Canonical>> {
        let mut message = Vec::new();
        push_query(&apex(), Rtype::AXFR, 9, 0, &mut message);
        let mut stream = TcpStream::connect(self.server.address)?;
        stream.set_read_timeout(Some(TIMEOUT))?;
        stream.write_all(&[&(message.len() as u16).to_be_bytes()[..], &message].concat())?;
        let mut all = Vec::new();
        while all.len() < 2 || all.iter().filter(|record: &&Canonical| record.1 == Rtype::SOA.0).count() < 2 {
            let mut length = [0; 2];
            stream.read_exact(&mut length)?;
            let mut octets = vec![0; usize::from(u16::from_be_bytes(length))];
            stream.read_exact(&mut octets)?;
            let answer = Message::parse(&octets).expect("well formed");
            let rcode = answer.header.rcode().0;
            if rcode != 0 {
                return Err(io::Error::other(format!("RCODE {rcode}")));
            }
            all.extend(
                answer
                    .section(Section::Answer)
                    .map(|record| canonical(record.owner.view(), record.rtype, record.ttl, &record.rdata)),
            );
        }
        all.pop();
        all.sort();
        Ok(all)
    }
}

/// Returns a port that is free for UDP and TCP.
pub fn free_port() -> u16 {
    free_address(Ipv4Addr::LOCALHOST).expect("a free port").port()
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
