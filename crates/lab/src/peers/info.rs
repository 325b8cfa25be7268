//! The table of peers: programs, packages, and what each can do.

use super::error::PeerError;
use crate::measure::child::KillOnDrop;
use std::fs::File;
use std::io::Read as _;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::time::Duration;

/// Time limit within which a program must print its version.
const VERSION_LIMIT: Duration = Duration::from_secs(10);
/// Maximum octets of the output that are searched for the version.
const VERSION_OUTPUT_MAX: u64 = 4096;

/// Another DNS server. BIND has two roles and therefore two values.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Peer {
    /// BIND as authoritative server.
    Bind,
    /// Knot DNS.
    Knot,
    /// NSD.
    Nsd,
    /// PowerDNS Authoritative Server.
    PowerDns,
    /// CoreDNS as authoritative server.
    CoreDns,
    /// Unbound.
    Unbound,
    /// BIND as resolver.
    BindResolver,
    /// Knot Resolver.
    KnotResolver,
    /// PowerDNS Recursor.
    PowerDnsRecursor,
}

/// The role of a peer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PeerRole {
    /// Serves zones.
    Authoritative,
    /// Resolves and validates for clients.
    Resolver,
}

impl PeerRole {
    /// The role in lists and documents.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::Authoritative => "authoritative",
            Self::Resolver => "resolver",
        }
    }
}

/// How a peer denies existence in a zone that it signs online.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OnlineDenial {
    /// NSEC records with the names of the zone.
    Nsec,
    /// NSEC3 records with the hashes of the names of the zone (RFC 5155).
    Nsec3,
    /// NSEC3 records around the hash of the queried name (RFC 7129, appendix B).
    WhiteLies,
    /// NSEC records at the queried name (RFC 9824).
    Compact,
}

/// What a peer is and can do.
#[derive(Debug)]
pub struct PeerInfo {
    /// The peer.
    pub peer: Peer,
    /// Name in commands and data: lower-case letters and hyphens.
    pub name: &'static str,
    /// Name in texts.
    pub title: &'static str,
    /// What it does.
    pub role: PeerRole,
    /// The required programs; the first is the server.
    pub programs: &'static [&'static str],
    /// How to get it: a Debian package, or a sentence.
    pub package: &'static str,
    /// Option that makes the server print its version.
    version_option: &'static str,
    /// Denial of the zones that it signs online; empty if it does not sign online.
    pub online: &'static [OnlineDenial],
    /// Whether it is configured as a secondary, transfers zones with a TSIG key and sends NOTIFY.
    pub transfers: bool,
    /// Whether it is configured to answer over TLS.
    pub tls: bool,
    /// Resolvers: whether iteration from root servers works with servers on a port other than 53.
    pub iterates_on_any_port: bool,
}

/// Default values of the rows of authoritative servers.
const AUTHORITATIVE: PeerInfo = PeerInfo {
    peer: Peer::Bind,
    name: "",
    title: "",
    role: PeerRole::Authoritative,
    programs: &[],
    package: "",
    version_option: "-V",
    online: &[],
    transfers: false,
    tls: false,
    iterates_on_any_port: false,
};
/// Default values of the rows of resolvers.
const RESOLVER: PeerInfo = PeerInfo { role: PeerRole::Resolver, ..AUTHORITATIVE };

/// One row for each peer, in the order of [`Peer`].
static PEERS: [PeerInfo; 9] = [
    PeerInfo {
        peer: Peer::Bind,
        name: "bind",
        title: "BIND",
        programs: &["named"],
        package: "bind9",
        transfers: true,
        tls: true,
        ..AUTHORITATIVE
    },
    PeerInfo {
        peer: Peer::Knot,
        name: "knot",
        title: "Knot DNS",
        programs: &["knotd"],
        package: "knot",
        online: &[OnlineDenial::Compact],
        transfers: true,
        ..AUTHORITATIVE
    },
    PeerInfo {
        peer: Peer::Nsd,
        name: "nsd",
        title: "NSD",
        programs: &["nsd"],
        package: "nsd",
        version_option: "-v",
        transfers: true,
        tls: true,
        ..AUTHORITATIVE
    },
    PeerInfo {
        peer: Peer::PowerDns,
        name: "powerdns",
        title: "PowerDNS Authoritative Server",
        programs: &["pdns_server", "pdnsutil"],
        package: "pdns-server pdns-backend-bind",
        version_option: "--version",
        online: &[OnlineDenial::Nsec, OnlineDenial::Nsec3, OnlineDenial::WhiteLies],
        ..AUTHORITATIVE
    },
    PeerInfo {
        peer: Peer::CoreDns,
        name: "coredns",
        title: "CoreDNS",
        programs: &["coredns"],
        package: "not in Debian: `just coredns` builds it with Go",
        version_option: "-version",
        online: &[OnlineDenial::Compact],
        ..AUTHORITATIVE
    },
    PeerInfo {
        peer: Peer::Unbound,
        name: "unbound",
        title: "Unbound",
        programs: &["unbound", "unbound-control"],
        package: "unbound",
        tls: true,
        ..RESOLVER
    },
    PeerInfo {
        peer: Peer::BindResolver,
        name: "bind-resolver",
        title: "BIND (resolver)",
        programs: &["named", "rndc"],
        package: "bind9",
        tls: true,
        iterates_on_any_port: true,
        ..RESOLVER
    },
    PeerInfo {
        peer: Peer::KnotResolver,
        name: "knot-resolver",
        title: "Knot Resolver",
        programs: &["kresd"],
        package: "knot-resolver",
        tls: true,
        ..RESOLVER
    },
    PeerInfo {
        peer: Peer::PowerDnsRecursor,
        name: "powerdns-recursor",
        title: "PowerDNS Recursor",
        programs: &["pdns_recursor", "rec_control"],
        package: "pdns-recursor",
        version_option: "--version",
        ..RESOLVER
    },
];

impl Peer {
    /// All peers.
    pub fn all() -> impl Iterator<Item = Self> {
        PEERS.iter().map(|info| info.peer)
    }

    /// Returns what the peer is and can do.
    #[must_use]
    pub fn info(self) -> &'static PeerInfo {
        &PEERS[self as usize]
    }

    /// Returns the required programs that are not installed.
    #[must_use]
    pub fn missing_programs(self) -> Vec<&'static str> {
        self.info().programs.iter().copied().filter(|program| find_program(program).is_none()).collect()
    }

    /// Returns the version as the server prints it, for example `9.18.49-1~deb12u3-Debian`. Returns
    /// `None` if the program is not installed, or prints no version within ten seconds.
    #[must_use]
    pub fn version(self) -> Option<String> {
        let info = self.info();
        version_of(info.programs.first()?, info.version_option)
    }

    /// Checks that all programs are installed.
    pub(crate) fn require_programs(self) -> Result<(), PeerError> {
        let missing = self.missing_programs();
        if missing.is_empty() {
            return Ok(());
        }
        let info = self.info();
        Err(PeerError::Missing { peer: info.title, programs: missing.join(", "), package: info.package })
    }
}

/// Returns the version that a program prints with this option, or `None` as [`Peer::version`] does.
pub(crate) fn version_of(program: &str, option: &str) -> Option<String> {
    version_in(&output_of(Command::new(find_program(program)?).arg(option))?)
}

/// Returns the path of a program in `PATH`, in a directory of system programs, or in the directory
/// where Go installs programs.
#[must_use]
pub fn find_program(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let mut folders: Vec<PathBuf> = std::env::split_paths(&path).collect();
    folders.extend(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.extend(std::env::var_os("HOME").map(|home| PathBuf::from(home).join("go/bin")));
    folders.into_iter().map(|folder| folder.join(program)).find(|path| path.is_file())
}

/// Returns the start of what a command prints on both outputs.
fn output_of(command: &mut Command) -> Option<String> {
    let log = tempfile::NamedTempFile::new().ok()?;
    let output = log.reopen().ok()?;
    command.stdin(Stdio::null()).stderr(output.try_clone().ok()?).stdout(output);
    KillOnDrop(command.spawn().ok()?).end_within(VERSION_LIMIT)?;
    let mut text = Vec::new();
    File::open(log.path()).ok()?.take(VERSION_OUTPUT_MAX).read_to_end(&mut text).ok()?;
    Some(String::from_utf8_lossy(&text).into_owned())
}

/// Returns the first version in `output`: the part of a word from its first digit on, which skips a
/// prefix such as `CoreDNS-`, if it begins with digits, a dot and a digit. A time such as
/// `12:30:00` has no dot.
fn version_in(output: &str) -> Option<String> {
    let words = output.split(|letter: char| letter.is_whitespace() || letter == ',');
    let from_digit =
        |word: &str| word.find(|letter: char| letter.is_ascii_digit()).map(|at| word[at..].to_owned());
    words.filter_map(from_digit).find(|word| {
        let mut parts = word.splitn(2, '.');
        let is_number = |part: &str| !part.is_empty() && part.bytes().all(|octet| octet.is_ascii_digit());
        parts.next().is_some_and(is_number)
            && parts.next().is_some_and(|rest| rest.starts_with(|letter: char| letter.is_ascii_digit()))
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rows_are_in_the_order_of_the_peers() {
        for (index, peer) in Peer::all().enumerate() {
            assert_eq!((peer as usize, peer.info().peer), (index, peer));
            assert!(!peer.info().name.is_empty() && !peer.info().programs.is_empty(), "{peer:?}");
        }
    }

    #[test]
    fn versions_are_found_in_the_output_of_each_program() {
        for (output, version) in [
            ("BIND 9.18.49-1~deb12u3-Debian (Extended Support Version) <id:>\n", "9.18.49-1~deb12u3-Debian"),
            ("knotd (Knot DNS), version 3.2.6\n", "3.2.6"),
            ("NSD version 4.6.1\nWritten by NLnet Labs.\n", "4.6.1"),
            ("Nov 23 12:39:17 PowerDNS Authoritative Server 4.7.3 (C) 2001-2022\n", "4.7.3"),
            ("CoreDNS-1.15.0\nlinux/amd64, go1.24\n", "1.15.0"),
            ("Version 1.17.1\n\nConfigure line: --build=x86_64\n", "1.17.1"),
            ("Knot Resolver, version 5.6.0\n", "5.6.0"),
        ] {
            assert_eq!(version_in(output).as_deref(), Some(version));
        }
        assert_eq!(version_in("Nov 23 12:39:17 unknown option v1"), None);
    }

    #[test]
    fn installed_peers_have_a_version() {
        for peer in Peer::all() {
            let installed = find_program(peer.info().programs[0]).is_some();
            assert_eq!(peer.version().is_some(), installed, "{peer:?}");
        }
    }
}
