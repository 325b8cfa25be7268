//! Arguments of `plan record`.

use crate::arguments::values::{parse_seconds, parse_window};
use clap::{ArgGroup, Args};
use std::net::IpAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
#[command(group(ArgGroup::new("source").required(true).args(["control", "dnstap", "pcap"])))]
pub(crate) struct PlanRecordArguments {
    /// Write the recording to this directory.
    #[arg(long, value_name = "DIR")]
    pub(crate) out: PathBuf,
    /// Record nonesuch resolve, from the counters of its control socket.
    ///
    /// The recording has no domains.
    #[arg(long, value_name = "SOCKET", conflicts_with_all = ["verified", "anchor"])]
    pub(crate) control: Option<PathBuf>,
    /// Record Unbound, BIND or another resolver from its dnstap messages.
    ///
    /// A file, or a Unix socket on which to listen: the resolver connects to it. The resolver must
    /// send RESOLVER_QUERY and RESOLVER_RESPONSE, or FORWARDER_QUERY and FORWARDER_RESPONSE.
    #[arg(long, value_name = "SOCKET-OR-FILE")]
    pub(crate) dnstap: Option<PathBuf>,
    /// Record a resolver from a pcap or pcapng file with its packets; - for standard input.
    ///
    /// The capture must be of one interface, with complete packets (tcpdump -s 0).
    #[arg(long, value_name = "FILE", requires = "resolver")]
    pub(crate) pcap: Option<PathBuf>,
    /// Set the address from which the resolver queries servers; may be repeated.
    #[arg(long, value_name = "ADDRESS", conflicts_with = "control")]
    pub(crate) resolver: Vec<IpAddr>,
    /// Set the port of servers in packets; may be repeated. Default: 53.
    #[arg(long, value_name = "PORT", requires = "pcap")]
    pub(crate) port: Vec<u16>,
    /// Read the verified signatures from this file of the counting library.
    ///
    /// The library tools/count-verifications, preloaded into the resolver, writes it. Default: the
    /// verified signatures are estimated, by verifying the signatures in the responses.
    #[arg(long, value_name = "FILE")]
    pub(crate) verified: Option<PathBuf>,
    /// Read the trust anchors for the estimate from this file.
    ///
    /// DS or DNSKEY records in zone file format, a root.key of Unbound, or root-anchors.xml of IANA.
    /// Default: the keys of the root zone of the Internet.
    #[arg(long, value_name = "FILE", conflicts_with = "verified")]
    pub(crate) anchor: Option<PathBuf>,
    /// Set the length of windows, from 1s to 1h.
    #[arg(long, value_name = "SECONDS", default_value = "10", value_parser = parse_window)]
    pub(crate) window: u32,
    /// Set the name of the recording in reports. Default: that of the directory.
    #[arg(long)]
    pub(crate) name: Option<String>,
    /// End after this time, in seconds or as 30m, 12h, 7d.
    #[arg(long, value_name = "SECONDS", value_parser = parse_seconds)]
    pub(crate) duration: Option<f64>,
    /// Print the lines at begin and end as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
