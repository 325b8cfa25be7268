//! What a peer serves or resolves, independent of the program.

use super::info::OnlineDenial;
use std::ffi::OsString;
use std::hash::{BuildHasher as _, RandomState};
use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener, UdpSocket};
use std::path::{Path, PathBuf};
use std::time::Duration;

/// Ports for servers. They are below the ports that Linux assigns to clients (32768 and above), so
/// that no client takes a port between the choice and the start of the server.
const SERVER_PORTS: std::ops::Range<u16> = 10_000..32_000;

/// The configuration of a peer.
#[derive(Clone, Debug)]
pub struct Setup {
    /// Directory for the peer. All its files are in a subdirectory with the name of the peer
    /// ([`PeerInfo::name`](super::PeerInfo)), which is emptied at the start.
    pub folder: PathBuf,
    /// Address on which the peer listens: a loopback address, or one of a network that is not routed
    /// on the Internet. BIND listens only on addresses of an interface.
    pub ip: Ipv4Addr,
    /// Port for UDP and TCP; `None` for a free port.
    pub port: Option<u16>,
    /// Threads or processes that answer queries.
    pub workers: u16,
    /// CPUs that the peer may use; empty for all CPUs of the caller.
    pub cpus: Vec<usize>,
    /// Maximum size of UDP responses, in octets, from 512 to 4096.
    pub udp_octets: u16,
    /// Time limit for the first answers, from the start of the process.
    pub limit: Duration,
    /// Authoritative servers: the zones.
    pub zones: Vec<PeerZone>,
    /// Authoritative servers: the TSIG key of transfers and NOTIFY messages. Without a key, clients
    /// on 127.0.0.0/8 may transfer the zones.
    pub transfer_key: Option<TransferKey>,
    /// Resolvers: servers, trust anchors, cache.
    pub resolver: ResolverSetup,
    /// Certificate and key of DNS over TLS, on a port of its own; `None` without TLS.
    pub tls: Option<TlsIdentity>,
    /// More lines, in the syntax of the peer, for its section of server options: `options` of BIND,
    /// `server` of Knot DNS, NSD and Unbound, the top of the file of other peers. The line feed
    /// after the last line may be missing.
    pub lines: String,
    /// More arguments of the program, after the others.
    pub arguments: Vec<String>,
    /// Variables of the environment of the program, for example `LD_PRELOAD`.
    pub environment: Vec<(String, OsString)>,
    /// More sections of the configuration file, in the syntax of the peer, before those of the
    /// zones. BIND, Knot DNS and NSD have them.
    pub sections: String,
}

impl Setup {
    /// One worker on 127.0.0.1, UDP responses of at most 1232 octets, a time limit of 60 s, and no
    /// zones.
    #[must_use]
    pub fn new(folder: &Path) -> Self {
        Self {
            folder: folder.to_owned(),
            ip: Ipv4Addr::LOCALHOST,
            port: None,
            workers: 1,
            cpus: Vec::new(),
            udp_octets: 1232,
            limit: Duration::from_secs(60),
            zones: Vec::new(),
            transfer_key: None,
            resolver: ResolverSetup::default(),
            tls: None,
            lines: String::new(),
            arguments: Vec::new(),
            environment: Vec::new(),
            sections: String::new(),
        }
    }

    /// Returns [`Setup::lines`] with a line feed after the last line.
    pub(super) fn complete_lines(&self) -> String {
        complete_last_line(&self.lines)
    }

    /// Returns [`Setup::sections`] with a line feed after the last line.
    pub(super) fn complete_sections(&self) -> String {
        complete_last_line(&self.sections)
    }
}

/// Returns `lines` with a line feed after the last line, so that the text that follows begins a new
/// line. An empty text stays empty.
fn complete_last_line(lines: &str) -> String {
    let is_complete = lines.is_empty() || lines.ends_with('\n');
    format!("{lines}{}", if is_complete { "" } else { "\n" })
}

/// A zone of an authoritative server.
#[derive(Clone, Debug)]
pub struct PeerZone {
    /// The apex.
    pub origin: String,
    /// The zone file. A secondary writes it.
    pub file: PathBuf,
    /// Where the records come from, and who signs them.
    pub serving: Serving,
    /// Address that gets NOTIFY messages; `None` for no messages.
    pub notify: Option<SocketAddr>,
    /// More lines, in the syntax of the peer, for the section of this zone. The line feed after the
    /// last line may be missing.
    pub lines: String,
}

impl PeerZone {
    /// A zone from a file, without NOTIFY.
    #[must_use]
    pub fn new(origin: &str, file: &Path, serving: Serving) -> Self {
        let origin = origin.to_owned();
        Self { origin, file: file.to_owned(), serving, notify: None, lines: String::new() }
    }

    /// Returns [`PeerZone::lines`] with a line feed after the last line.
    pub(super) fn complete_lines(&self) -> String {
        complete_last_line(&self.lines)
    }
}

/// Where the records of a zone come from, and who signs them.
#[derive(Clone, Debug)]
pub enum Serving {
    /// The zone file is not signed, and neither are the answers.
    Unsigned,
    /// The zone file is signed.
    Presigned,
    /// The zone file is not signed. The peer signs answers when it is queried.
    Online {
        /// How it denies existence.
        denial: OnlineDenial,
        /// Key files without the suffix (`DIR/Kexample.+013+12345`). If there are none, Knot DNS
        /// and PowerDNS generate a KSK and a ZSK for P-256.
        keys: Vec<PathBuf>,
    },
    /// The zone is transferred.
    Secondary {
        /// Address of the primary server.
        primary: SocketAddr,
        /// How BIND or NSD authenticates the primary in transfers over TLS (RFC 9103); `None` for
        /// transfers over TCP.
        tls: Option<PrimaryTls>,
    },
}

/// The identity of a primary server in transfers over TLS.
#[derive(Clone, Debug)]
pub struct PrimaryTls {
    /// Certificates of the trusted authorities in PEM. With several zones, all have the same file.
    pub authorities: PathBuf,
    /// Name in the certificate of the primary.
    pub name: String,
}

/// A TSIG key (RFC 8945).
#[derive(Clone)]
pub struct TransferKey {
    /// Name of the key.
    pub name: String,
    /// Algorithm as in configuration files, for example `hmac-sha256`.
    pub algorithm: String,
    /// Secret in Base64.
    pub secret: String,
}

impl std::fmt::Debug for TransferKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TransferKey").field("name", &self.name).finish_non_exhaustive()
    }
}

/// The files of a TLS server.
#[derive(Clone, Debug)]
pub struct TlsIdentity {
    /// Certificate chain in PEM.
    pub certificate: PathBuf,
    /// Private key in PEM.
    pub key: PathBuf,
}

/// The configuration of a resolver.
#[derive(Clone, Debug)]
pub struct ResolverSetup {
    /// The servers that it queries.
    pub upstream: Upstream,
    /// Trust anchors. Without any, the resolver does not validate.
    pub anchors: Vec<TrustAnchor>,
    /// Zones at and below which nothing is validated (negative trust anchors, RFC 7646).
    pub negative_anchors: Vec<String>,
    /// Size of the cache in MiB, at least 10.
    pub cache_mib: u32,
    /// Whether the resolver answers from cached NSEC and NSEC3 records (aggressive use, RFC 8198).
    /// Knot Resolver ignores the value and always does so.
    pub aggressive: bool,
    /// Source address of its queries.
    pub source: Ipv4Addr,
}

impl Default for ResolverSetup {
    /// No servers, no trust anchors of either kind, a cache of 64 MiB, no aggressive use of NSEC records, queries
    /// from 127.0.0.1.
    fn default() -> Self {
        Self {
            upstream: Upstream::Stubs(Vec::new()),
            anchors: Vec::new(),
            negative_anchors: Vec::new(),
            cache_mib: 64,
            aggressive: false,
            source: Ipv4Addr::LOCALHOST,
        }
    }
}

/// The servers that a resolver queries.
#[derive(Clone, Debug)]
pub enum Upstream {
    /// Iteration from root servers, as on the Internet. Every server of the tree has this port. A
    /// port other than 53 requires [`PeerInfo::iterates_on_any_port`](super::PeerInfo).
    Roots {
        /// The root servers.
        servers: Vec<RootServer>,
        /// Port of every server.
        port: u16,
    },
    /// Given servers for given zones, on any port. No other server is queried.
    Stubs(Vec<StubZone>),
}

/// A root server.
#[derive(Clone, Debug)]
pub struct RootServer {
    /// Its name, as in the NS records of the root zone.
    pub name: String,
    /// Its address: a loopback address, or one of a network that is not routed on the Internet.
    pub address: Ipv4Addr,
}

/// A zone and its server.
#[derive(Clone, Debug)]
pub struct StubZone {
    /// The apex.
    pub zone: String,
    /// Address of an authoritative server of the zone.
    pub server: SocketAddr,
}

/// A DS record as trust anchor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrustAnchor {
    /// The apex of the zone.
    pub zone: String,
    /// Key tag, algorithm and digest type in decimal, and the digest in hexadecimal, with a space
    /// between two fields.
    pub ds: String,
}

impl TrustAnchor {
    /// Returns the record in presentation format (RFC 4034 §5.3).
    #[must_use]
    pub fn record(&self) -> String {
        format!("{} 3600 IN DS {}", self.zone, self.ds)
    }
}

/// Networks of the clients of a resolver: loopback addresses, and a network for documentation (RFC
/// 5737) that simulated paths use.
pub(super) const CLIENTS: [&str; 2] = ["127.0.0.0/8", "192.0.2.0/24"];

/// Whether the address is a loopback address, or in a network that is not routed on the Internet:
/// 198.18.0.0/15 for benchmarks (RFC 2544), 192.0.2.0/24 for documentation (RFC 5737).
pub(super) fn is_local(ip: Ipv4Addr) -> bool {
    ip.is_loopback() || matches!(ip.octets(), [198, 18 | 19, ..] | [192, 0, 2, _])
}

/// Returns an address with this IP address and a port from 10,000 to 31,999 that is free for UDP
/// and TCP. The port is not reserved: another process can take it.
///
/// # Errors
/// Fails if the system has no such address, or if no port is free.
pub fn free_address(ip: Ipv4Addr) -> io::Result<SocketAddr> {
    let count = SERVER_PORTS.end - SERVER_PORTS.start;
    // Each call of each process starts at another port.
    let first = (RandomState::new().hash_one(0) % u64::from(count)) as u16;
    let mut failure = io::ErrorKind::AddrInUse.into();
    for step in 0..count {
        let address = SocketAddr::from((ip, SERVER_PORTS.start + (first + step) % count));
        match (TcpListener::bind(address), UdpSocket::bind(address)) {
            (Ok(_), Ok(_)) => return Ok(address),
            (Err(error), _) | (_, Err(error)) if error.kind() != io::ErrorKind::AddrInUse => {
                return Err(error);
            }
            (Err(error), _) | (_, Err(error)) => failure = error,
        }
    }
    Err(failure)
}
