//! The validators: Unbound and Knot Resolver as servers, `delv` as a program.

use super::common::{Ended, is_installed, peers, run, text};
use nonesuch_crypto::DigestType;
use nonesuch_dnssec::keys::KeyRecord;
use nonesuch_lab::peers::{Peer, PeerServer, Setup, TrustAnchor};
use nonesuch_proto::edns::{self, push_opt};
use nonesuch_proto::message::{Header, flags, push_query};
use nonesuch_proto::{Name, Rtype};
use std::fs;
use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::Duration;

/// Time limit for a response of a resolver.
const WAIT: Duration = Duration::from_secs(15);

/// A validator's result for a response.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Verdict {
    pub(crate) rcode: u8,
    pub(crate) secure: bool,
    pub(crate) has_answer: bool,
}

/// The trust anchor for the public key file of a KSK or CSK.
pub(crate) fn anchor_of(zone: &str, key_file: &Path) -> TrustAnchor {
    let record = KeyRecord::parse(&fs::read_to_string(key_file).expect("a key file")).expect("a key");
    let rdata = record.ds_rdata(DigestType::SHA256).expect("a digest");
    let digest = data_encoding::HEXUPPER.encode(&rdata[4..]);
    let tag = u16::from_be_bytes([rdata[0], rdata[1]]);
    TrustAnchor { zone: zone.to_owned(), ds: format!("{tag} {} {} {digest}", rdata[2], rdata[3]) }
}

/// A running validator.
pub(crate) enum Validator {
    Unbound(PeerServer),
    KnotResolver(PeerServer),
    Delv { anchor: PathBuf, zone: String, server: SocketAddr },
}

impl Validator {
    /// The installed validators, which send their queries to `server`.
    pub(crate) fn all(folder: &Path, anchor: &TrustAnchor, server: SocketAddr) -> Vec<Self> {
        let mut all = Vec::new();
        if is_installed("unbound") {
            all.push(Self::Unbound(peers::start(Peer::Unbound, &peers::resolver(folder, anchor, server))));
        }
        if is_installed("kresd") {
            all.push(Self::KnotResolver(start_knot_resolver(folder, anchor, server)));
        }
        if is_installed("delv") {
            let line = anchor.ds.splitn(4, ' ').collect::<Vec<_>>();
            let fields = format!("{} {} {} \"{}\"", line[0], line[1], line[2], line[3]);
            let file = folder.join("anchor.conf");
            let content = format!("trust-anchors {{ {} static-ds {fields}; }};\n", anchor.zone);
            fs::write(&file, content).expect("written");
            all.push(Self::Delv { anchor: file, zone: anchor.zone.clone(), server });
        }
        all
    }

    pub(crate) const fn name(&self) -> &'static str {
        match self {
            Self::Unbound(_) => "Unbound",
            Self::KnotResolver(_) => "Knot Resolver",
            Self::Delv { .. } => "delv",
        }
    }

    /// Whether it follows referrals; the others query a single server.
    pub(crate) const fn follows_referrals(&self) -> bool {
        matches!(self, Self::Unbound(_))
    }

    pub(crate) fn ask(&self, name: &str, rtype: u16) -> Verdict {
        match self {
            Self::Unbound(server) | Self::KnotResolver(server) => ask_over_tcp(server.address, name, rtype),
            Self::Delv { anchor, zone, server } => read_delv(&run_delv(anchor, zone, *server, name, rtype)),
        }
    }
}

/// Sends a query with RD, AD and DO over TCP. TCP is used because Knot Resolver returns the RCODE
/// of a failure in a response that is truncated over UDP.
fn ask_over_tcp(server: SocketAddr, name: &str, rtype: u16) -> Verdict {
    let mut query = vec![0, 0];
    let name: Name = name.parse().expect("a name");
    push_query(&name, Rtype(rtype), 0x1234, flags::RD | flags::AD, &mut query);
    query[2 + 11] = 1;
    push_opt(1232, 0, edns::DO, &mut query);
    let length = u16::try_from(query.len() - 2).expect("a short query").to_be_bytes();
    query[..2].copy_from_slice(&length);
    let mut stream = TcpStream::connect(server).expect("connected");
    stream.set_read_timeout(Some(WAIT)).expect("a limit");
    stream.write_all(&query).expect("sent");
    let mut length = [0; 2];
    stream.read_exact(&mut length).unwrap_or_else(|error| panic!("no answer for {name}: {error}"));
    let mut response = vec![0; usize::from(u16::from_be_bytes(length))];
    stream.read_exact(&mut response).expect("a whole response");
    let header = Header::read(&response).expect("a header");
    Verdict {
        rcode: header.rcode().0 as u8,
        secure: header.flags & flags::AD != 0,
        has_answer: header.counts[1] > 0,
    }
}

fn run_delv(anchor: &Path, zone: &str, server: SocketAddr, name: &str, rtype: u16) -> Ended {
    let (port, root, rtype) = (server.port().to_string(), format!("+root={zone}"), format!("TYPE{rtype}"));
    let mut command = Command::new("delv");
    command.args(["@127.0.0.1", "-p", &port, "-a", text(anchor), &root, "-q", name, "-t", &rtype]);
    run(&mut command)
}

/// `delv` prints one verdict before the records; a denial is a comment.
fn read_delv(ended: &Ended) -> Verdict {
    let said = ended.text();
    let is_secure = said.contains("fully validated") && !said.contains("unsigned answer");
    let rcode = match () {
        () if said.contains("-$NXDOMAIN") => 3,
        () if said.contains("-$NXRRSET") || is_secure || said.contains("; unsigned answer") => 0,
        () => 2,
    };
    let has_answer =
        said.lines().any(|line| !line.starts_with(';') && line.split_whitespace().nth(2) == Some("IN"));
    Verdict { rcode, secure: is_secure, has_answer }
}

/// Knot Resolver caches nothing, so that it sends each query to the server.
fn start_knot_resolver(folder: &Path, anchor: &TrustAnchor, server: SocketAddr) -> PeerServer {
    let lines = "policy.add(policy.all(policy.FLAGS({'NO_CACHE'})))\n".to_owned();
    peers::start(Peer::KnotResolver, &Setup { lines, ..peers::resolver(folder, anchor, server) })
}
