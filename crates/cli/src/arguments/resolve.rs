//! Arguments of `resolve`.

use super::values::parse_socket_address;
use clap::Args;
use std::net::SocketAddr;
use std::path::PathBuf;

#[derive(Debug, Args)]
pub(crate) struct ResolveArguments {
    /// Read all settings from this file.
    ///
    /// Only --check and --json can be combined with it.
    #[arg(long, value_name = "FILE", conflicts_with_all = ["listen", "hints", "anchor", "anchor_state", "workers"])]
    pub(crate) config: Option<PathBuf>,
    /// Check the configuration and the hints that it names, and do not resolve.
    #[arg(long, requires = "config")]
    pub(crate) check: bool,
    /// Listen on this address and port; may be repeated; port 0 selects a free port.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:5300", value_parser = parse_socket_address)]
    pub(crate) listen: Vec<SocketAddr>,
    /// Read the servers of the root zone from this file, in zone file format.
    ///
    /// Default: the root servers of the Internet. Servers on loopback addresses are queried only if
    /// the file names a loopback address.
    #[arg(long, value_name = "FILE")]
    pub(crate) hints: Option<PathBuf>,
    /// Read the trust anchors from this file.
    ///
    /// DS or DNSKEY records in zone file format, a root.key of Unbound, or root-anchors.xml of IANA.
    /// Default: the keys of the root zone of the Internet. With --hints, nothing is validated without
    /// this option.
    #[arg(long, value_name = "FILE")]
    pub(crate) anchor: Option<PathBuf>,
    /// Update the trust anchors automatically (RFC 5011), and store their state in this directory.
    ///
    /// The directory must exist. Default: the trust anchors do not change.
    #[arg(long, value_name = "DIR")]
    pub(crate) anchor_state: Option<PathBuf>,
    /// Set the number of threads. Default: one for each core.
    #[arg(long, value_parser = clap::value_parser!(u16).range(1..=256))]
    pub(crate) workers: Option<u16>,
    /// Print the lines "ready" and "stopped" as JSON.
    #[arg(long)]
    pub(crate) json: bool,
}
